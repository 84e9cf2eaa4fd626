//! One user: a name, passwords, and what the user may do.
//!
//! Passwords are kept as the lower-case hexadecimal digits of their SHA-256, as a real server keeps
//! them. A [`Definition`] is changed as a whole: connections see the old one or the new one.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kvlab_protocol::resp::Args;
use sha2::{Digest, Sha256};

use super::selector::{Denial, RuleError, Selector};
use crate::config::RedisVersion;
use crate::dialect::redis::table::Command;

/// One user.
#[derive(Debug)]
pub struct User {
    name: Vec<u8>,
    /// May run everything on every key: nothing has to be looked at.
    unrestricted: AtomicBool,
    /// Is switched on and needs no password.
    open: AtomicBool,
    definition: Mutex<Arc<Definition>>,
}

impl User {
    /// A user.
    #[must_use]
    pub fn new(name: &[u8], definition: Definition) -> Self {
        let user = Self {
            name: name.to_vec(),
            unrestricted: AtomicBool::new(false),
            open: AtomicBool::new(false),
            definition: Mutex::default(),
        };
        user.redefine(definition);
        user
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Whether the user may run every command on every key and channel.
    #[must_use]
    #[inline]
    pub fn is_unrestricted(&self) -> bool {
        self.unrestricted.load(Ordering::Relaxed)
    }

    /// Whether the user is switched on and needs no password.
    #[must_use]
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// What the user is now.
    #[must_use]
    pub fn definition(&self) -> Arc<Definition> {
        Arc::clone(
            &self
                .definition
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Makes the user another one of the same name.
    pub fn redefine(&self, definition: Definition) {
        let mut now = self
            .definition
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let open = definition.enabled && definition.needs_no_password;
        self.open.store(open, Ordering::Relaxed);
        self.unrestricted
            .store(definition.is_unrestricted(), Ordering::Relaxed);
        *now = Arc::new(definition);
    }
}

/// All that ACL SETUSER decides about a user.
#[derive(Debug, Clone)]
pub struct Definition {
    enabled: bool,
    needs_no_password: bool,
    /// What was said about payloads of RESTORE, if anything was.
    skips_sanitizing: Option<bool>,
    passwords: Vec<String>,
    /// The root, which rules without brackets belong to.
    root: Selector,
    /// Further selectors: what any of them allows is allowed.
    others: Vec<Selector>,
}

impl Default for Definition {
    /// A new user: switched off, without a password, who may do nothing.
    fn default() -> Self {
        Self {
            enabled: false,
            needs_no_password: false,
            skips_sanitizing: None,
            passwords: Vec::new(),
            root: Selector::default(),
            others: Vec::new(),
        }
    }
}

impl Definition {
    /// More passwords or selectors of one user are refused.
    pub const LIST_MAX: usize = 1000;

    /// The default user of a fresh server.
    #[must_use]
    pub fn default_user() -> Self {
        Self {
            enabled: true,
            needs_no_password: true,
            root: Selector::everything(),
            ..Self::default()
        }
    }

    /// A user who may do everything with this password.
    #[must_use]
    pub fn of_account(password: &[u8]) -> Self {
        Self {
            enabled: true,
            passwords: vec![hash(password)],
            root: Selector::everything(),
            ..Self::default()
        }
    }

    /// Whether the user may log in with `password`.
    #[must_use]
    pub fn admits(&self, password: &[u8]) -> bool {
        if !self.enabled || self.needs_no_password {
            return self.enabled;
        }
        let given = hash(password);
        // All are compared whole, so that time tells nothing about where they differ.
        let differ = |known: &String| {
            let pairs = known.bytes().zip(given.bytes());
            known.len() != given.len() || pairs.fold(0, |all, (a, b)| all | (a ^ b)) != 0
        };
        self.passwords
            .iter()
            .fold(false, |found, known| found | !differ(known))
    }

    /// Whether no password is asked for.
    #[must_use]
    pub fn is_password_free(&self) -> bool {
        self.needs_no_password
    }

    /// Leaves `password` as the only one.
    pub fn set_only_password(&mut self, password: &[u8]) {
        self.needs_no_password = false;
        self.passwords = vec![hash(password)];
    }

    /// Lets the user in without a password.
    pub fn need_no_password(&mut self) {
        self.needs_no_password = true;
        self.passwords.clear();
    }

    /// Takes the user back to its beginning.
    pub fn reset(&mut self) {
        *self = Self {
            skips_sanitizing: Some(false),
            ..Self::default()
        };
    }

    /// Applies one rule of ACL SETUSER.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"" => {}
            b"on" => self.enabled = true,
            b"off" => self.enabled = false,
            b"skip-sanitize-payload" => self.skips_sanitizing = Some(true),
            b"sanitize-payload" => self.skips_sanitizing = Some(false),
            b"nopass" => self.need_no_password(),
            b"resetpass" => {
                self.needs_no_password = false;
                self.passwords.clear();
            }
            b"reset" => self.reset(),
            b"clearselectors" => self.others.clear(),
            _ => return self.apply_to_list(rule),
        }
        Ok(())
    }

    /// Applies a rule that adds to a list or takes from it.
    fn apply_to_list(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule {
            [b'>', password @ ..] => self.add_password(hash(password)),
            [b'#', digits @ ..] => self.add_password(known_hash(digits)?),
            [b'<', password @ ..] => self.remove_password(&hash(password)),
            [b'!', digits @ ..] => self.remove_password(&known_hash(digits)?),
            [b'(', rules @ .., b')'] => {
                let mut selector = Selector::default();
                let rules = rules.split(u8::is_ascii_whitespace);
                for rule in rules.filter(|rule| !rule.is_empty()) {
                    selector.apply(rule)?;
                }
                if self.others.len() >= Self::LIST_MAX {
                    return Err(RuleError::TooMany);
                }
                self.others.push(selector);
                Ok(())
            }
            _ => self.root.apply(rule),
        }
    }

    fn add_password(&mut self, hash: String) -> Result<(), RuleError> {
        if !self.passwords.contains(&hash) {
            if self.passwords.len() >= Self::LIST_MAX {
                return Err(RuleError::TooMany);
            }
            self.passwords.push(hash);
        }
        self.needs_no_password = false;
        Ok(())
    }

    fn remove_password(&mut self, hash: &str) -> Result<(), RuleError> {
        let place = self.passwords.iter().position(|known| known == hash);
        self.passwords
            .remove(place.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    fn is_unrestricted(&self) -> bool {
        self.root.is_unrestricted() || self.others.iter().any(Selector::is_unrestricted)
    }

    /// Whether the user may run `command` with these arguments.
    ///
    /// # Errors
    /// What is denied: the command if no selector allows it, else the last key or channel that none
    /// of them allows.
    pub fn check(&self, command: &'static Command, args: Args<'_>) -> Result<(), Denial> {
        let mut worst = Denial::Command;
        for selector in self.selectors() {
            match selector.check(command, args) {
                Ok(()) => return Ok(()),
                Err(denial) => worst = worst.max(denial),
            }
        }
        Err(worst)
    }

    /// The words that ACL GETUSER lists as flags in this version. From 7.2 on a new user has a word
    /// about payloads that one of 7.0 has only when it was given.
    #[must_use]
    pub fn flags(&self, version: RedisVersion) -> Vec<&'static str> {
        let mut flags = vec![if self.enabled { "on" } else { "off" }];
        if self.needs_no_password {
            flags.push("nopass");
        }
        let usual = (version >= RedisVersion::V7_2).then_some(false);
        match self.skips_sanitizing.or(usual) {
            Some(true) => flags.push("skip-sanitize-payload"),
            Some(false) => flags.push("sanitize-payload"),
            None => {}
        }
        flags
    }

    /// The passwords, hashed.
    #[must_use]
    pub fn passwords(&self) -> &[String] {
        &self.passwords
    }

    /// The root selector.
    #[must_use]
    pub fn root(&self) -> &Selector {
        &self.root
    }

    /// The selectors beside the root.
    #[must_use]
    pub fn others(&self) -> &[Selector] {
        &self.others
    }

    /// The rules that make this user, as ACL LIST writes them.
    #[must_use]
    pub fn rules(&self, version: RedisVersion) -> Vec<u8> {
        let mut text = self.flags(version).join(" ").into_bytes();
        for hash in &self.passwords {
            text.extend_from_slice(b" #");
            text.extend_from_slice(hash.as_bytes());
        }
        text.push(b' ');
        text.extend_from_slice(&self.root.rules());
        for selector in &self.others {
            text.extend_from_slice(b" (");
            text.extend_from_slice(&selector.rules());
            text.push(b')');
        }
        text
    }

    fn selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.others)
    }
}

/// The lower-case hexadecimal digits of the SHA-256 of a password.
#[must_use]
pub fn hash(password: &[u8]) -> String {
    let digest = Sha256::digest(password);
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A password that was hashed by somebody else.
fn known_hash(digits: &[u8]) -> Result<String, RuleError> {
    let legal = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 64 || !digits.iter().all(legal) {
        return Err(RuleError::BadHash);
    }
    Ok(String::from_utf8_lossy(digits).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hashed_with_sha_256() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            hash(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn any_of_the_passwords_will_do_and_none_once_switched_off() {
        let mut user = Definition::default();
        for rule in ["on", ">one", ">two"] {
            user.apply(rule.as_bytes()).unwrap();
        }
        assert!(user.admits(b"one") && user.admits(b"two") && !user.admits(b"three"));
        user.apply(b"<one").unwrap();
        assert!(!user.admits(b"one") && user.admits(b"two"));
        assert_eq!(user.apply(b"<one"), Err(RuleError::NoSuchPassword));
        user.apply(b"nopass").unwrap();
        assert!(user.admits(b"") && user.passwords().is_empty());
        user.apply(b"off").unwrap();
        assert!(!user.admits(b""));
    }

    #[test]
    fn a_hash_stands_for_its_password() {
        let mut user = Definition::default();
        user.apply(b"on").unwrap();
        let rule = format!("#{}", hash(b"secret"));
        user.apply(rule.as_bytes()).unwrap();
        assert!(user.admits(b"secret"));
        assert_eq!(user.apply(b"#12"), Err(RuleError::BadHash));
        let upper = rule.to_ascii_uppercase();
        assert_eq!(user.apply(upper.as_bytes()), Err(RuleError::BadHash));
    }
}
