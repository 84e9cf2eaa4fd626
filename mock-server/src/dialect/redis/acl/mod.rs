//! Users, and what each of them may do: the access lists of Redis.
//!
//! | what                                          | where          |
//! |-----------------------------------------------|----------------|
//! | who there is, who is logged in where, the log | here, [`log`]  |
//! | one user: passwords, switched on or off       | [`user`]       |
//! | what a user may run, on which keys            | [`selector`]   |
//!
//! Every connection holds its [`User`]. A user who may do everything, which nearly all are, is told
//! by one flag, so that a request pays one load for all of this.
//!
//! The words and the order of checks are those of redis-server 7.0.15, with the texts of 7.2 where the
//! version says so. How rules are listed (`ACL LIST`, `ACL GETUSER`) is that of 7.2 in all versions:
//! they stand in the order in which they were given, where 7.0 computes a shortest form.

pub mod log;
pub mod selector;
pub mod user;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::log::{Entry, Log};
use self::selector::Denial;
pub use self::user::{Definition, User};
use super::call::Call;
use super::command::client_line;
use crate::config::ServerConfig;

/// The name of the user whom every connection has before it logs in.
pub const DEFAULT_USER: &[u8] = b"default";

/// More users are refused.
pub const USERS_MAX: usize = 10_000;

/// All users of a server.
#[derive(Debug)]
pub struct Users {
    default: Arc<User>,
    all: Mutex<BTreeMap<Vec<u8>, Arc<User>>>,
    /// What was denied, for ACL LOG.
    pub log: Log,
    denied: Denied,
}

/// How often something was denied, by what it was.
#[derive(Debug, Default)]
struct Denied {
    logins: AtomicU64,
    commands: AtomicU64,
    keys: AtomicU64,
    channels: AtomicU64,
}

impl Users {
    /// The users that a server with `config` starts with.
    ///
    /// Without accounts there is the default user alone, who may do everything without a password,
    /// or with that of `requirepass`. With accounts and none for the default user, that user is
    /// switched off, as by the line `user default off` in a configuration file.
    #[must_use]
    pub fn new(config: &ServerConfig) -> Self {
        let mut default = Definition::default_user();
        let password = config.redis.parameters.iter().rev();
        let password = password
            .filter(|(name, _)| name.eq_ignore_ascii_case("requirepass"))
            .map(|(_, password)| password.as_str())
            .next()
            .unwrap_or_default();
        if !password.is_empty() {
            default.set_only_password(password.as_bytes());
        } else if !config.users.is_empty() {
            default.reset();
        }
        let mut all = BTreeMap::new();
        for account in &config.users {
            let definition = Definition::of_account(account.password().as_bytes());
            let name = account.name().as_bytes();
            if name == DEFAULT_USER {
                default = definition;
            } else {
                all.insert(name.to_vec(), Arc::new(User::new(name, definition)));
            }
        }
        let default = Arc::new(User::new(DEFAULT_USER, default));
        all.insert(DEFAULT_USER.to_vec(), Arc::clone(&default));
        Self {
            default,
            all: Mutex::new(all),
            log: Log::default(),
            denied: Denied::default(),
        }
    }

    /// The user whom every connection has before it logs in.
    #[must_use]
    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// The user named `name`.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<Arc<User>> {
        self.lock().get(name).cloned()
    }

    /// All users by name.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<User>> {
        self.lock().values().cloned().collect()
    }

    /// The user of this name and password, if they may log in.
    #[must_use]
    pub fn log_in(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        self.find(name)
            .filter(|user| user.definition().admits(password))
    }

    /// Gives the user named `name` another definition, and makes it if there is none. False when
    /// there are too many.
    pub fn define(&self, name: &[u8], definition: Definition) -> bool {
        let mut all = self.lock();
        match all.get(name) {
            Some(user) => user.redefine(definition),
            None if all.len() >= USERS_MAX => return false,
            None => {
                all.insert(name.to_vec(), Arc::new(User::new(name, definition)));
            }
        }
        true
    }

    /// Forgets the user named `name`; whether there was one.
    pub fn remove(&self, name: &[u8]) -> bool {
        self.lock().remove(name).is_some()
    }

    /// What CONFIG SET requirepass does to the default user: this one password, or none at all.
    pub fn require_password(&self, password: &[u8]) {
        let mut definition = Definition::clone(&self.default.definition());
        if password.is_empty() {
            definition.need_no_password();
        } else {
            definition.set_only_password(password);
        }
        self.default.redefine(definition);
    }

    /// Counts something that was denied; `None` is a login.
    pub fn count_denied(&self, denial: Option<Denial>) {
        let counter = match denial {
            None => &self.denied.logins,
            Some(Denial::Command) => &self.denied.commands,
            Some(Denial::Key(_)) => &self.denied.keys,
            Some(Denial::Channel(_)) => &self.denied.channels,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// How many logins, commands, keys and channels were denied.
    #[must_use]
    pub fn denied(&self) -> [u64; 4] {
        let denied = &self.denied;
        [
            &denied.logins,
            &denied.commands,
            &denied.keys,
            &denied.channels,
        ]
        .map(|counter| counter.load(Ordering::Relaxed))
    }

    /// CONFIG RESETSTAT.
    pub fn reset_counts(&self) {
        let denied = &self.denied;
        for counter in [
            &denied.logins,
            &denied.commands,
            &denied.keys,
            &denied.channels,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Arc<User>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the user of the connection may run the command of `call`; what may not be run is counted
/// and logged.
///
/// # Errors
/// What is denied.
pub fn permit(call: &Call<'_, '_>) -> Result<(), Denial> {
    let checked = call.peer.user.definition().check(call.command, call.args);
    if let Err(denial) = checked {
        let object = match denial {
            Denial::Command => call.command.name.as_bytes(),
            Denial::Key(place) | Denial::Channel(place) => call.args.arg(place),
        };
        note(call, Some(denial), call.peer.user.name(), object);
    }
    checked
}

/// Counts and logs that somebody could not log in as `user`.
pub fn note_failed_login(call: &Call<'_, '_>, user: &[u8]) {
    note(call, None, user, call.args.name());
}

fn note(call: &Call<'_, '_>, denial: Option<Denial>, user: &[u8], object: &[u8]) {
    let state = call.state();
    state.users.count_denied(denial);
    let reason = match denial {
        None => "auth",
        Some(Denial::Command) => "command",
        Some(Denial::Key(_)) => "key",
        Some(Denial::Channel(_)) => "channel",
    };
    // A transaction that runs is no longer open, but its commands may not be parked.
    let is_inside = call.peer.transaction.is_some() || !call.may_park;
    let entry = Entry {
        reason,
        context: if is_inside { "multi" } else { "toplevel" },
        object: object.to_vec(),
        user: user.to_vec(),
        client: client_line(call),
    };
    let most = state.settings.value("acllog-max-len").parse().unwrap_or(0);
    state.users.log.add(entry, call.context.unix_millis(), most);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;

    fn users(accounts: &[&str], password: &str) -> Users {
        let mut config = ServerConfig {
            users: accounts
                .iter()
                .map(|text| text.parse::<Account>().unwrap())
                .collect(),
            ..ServerConfig::default()
        };
        let parameter = ("requirepass".to_owned(), password.to_owned());
        config.redis.parameters.push(parameter);
        Users::new(&config)
    }

    #[test]
    fn the_default_user_is_on_unless_there_are_others() {
        let alone = users(&[], "");
        assert!(alone.default_user().is_open());
        let beside = users(&["alice:secret"], "");
        assert!(!beside.default_user().is_open());
        assert!(beside.log_in(b"default", b"").is_none());
        assert!(beside.log_in(b"alice", b"secret").is_some());
        assert!(beside.log_in(b"alice", b"Secret").is_none());
        assert!(beside.log_in(b"bob", b"secret").is_none());
    }

    #[test]
    fn the_default_user_may_have_an_account_or_a_password() {
        let account = users(&["alice:secret", "default:d"], "");
        assert!(account.log_in(b"default", b"d").is_some());
        assert!(!account.default_user().is_open());
        let password = users(&["alice:secret"], "d");
        assert!(password.log_in(b"default", b"d").is_some());
        assert!(password.default_user().is_unrestricted());
        password.require_password(b"");
        assert!(password.default_user().is_open());
    }
}
