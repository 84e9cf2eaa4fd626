//! What the server remembers of one RESP connection.

use std::sync::Arc;

use kvlab_protocol::resp::{OwnedArgs, Version};
use kvlab_timing::Stamp;

use super::State;
use super::acl::{DEFAULT_USER, Definition, User};
use super::table::Command;
use super::watch::Watching;

/// What the server remembers of one RESP connection.
#[derive(Debug)]
pub struct Peer {
    /// RESP2 or RESP3.
    pub version: Version,
    /// The selected database, which exists.
    pub database: usize,
    /// Whether it has logged in, or needed not.
    pub authenticated: bool,
    /// The user that it is.
    pub user: Arc<User>,
    /// The user that it is without a login.
    default_user: Arc<User>,
    /// Which replies are sent.
    pub replies: Replies,
    /// The open transaction.
    pub transaction: Option<Box<Transaction>>,
    /// The watched keys.
    pub watching: Watching,
    /// CLIENT NO-TOUCH: commands do not count as uses of keys.
    pub no_touch: bool,
    /// When a command that waits began to; it is run again and again until it is done.
    pub waiting_since: Option<Stamp>,
    /// How many random numbers were drawn for it.
    draws: u64,
}

/// Which replies are sent, by CLIENT REPLY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replies {
    /// All.
    On,
    /// None.
    Off,
    /// All but that of the next command.
    SkipNext,
    /// All but that of the current command.
    Skip,
}

/// An open transaction.
#[derive(Debug, Default)]
pub struct Transaction {
    /// The commands so far.
    pub queued: Vec<(QueuedCommand, OwnedArgs)>,
    /// Whether a command could not be queued.
    pub broken: bool,
    /// Whether a queued command may write.
    pub may_write: bool,
}

/// A command of a transaction.
pub type QueuedCommand = &'static Command;

impl Peer {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(state: &State) -> Self {
        Self {
            version: Version::Resp2,
            database: 0,
            authenticated: state.users.default_user().is_open(),
            user: Arc::clone(state.users.default_user()),
            default_user: Arc::clone(state.users.default_user()),
            replies: Replies::On,
            transaction: None,
            watching: Watching::default(),
            no_touch: false,
            waiting_since: None,
            draws: 0,
        }
    }

    /// Commands that come from inside the process, which may do everything.
    #[must_use]
    pub fn inside(state: &State) -> Self {
        Self {
            authenticated: true,
            user: Arc::new(User::new(DEFAULT_USER, Definition::default_user())),
            ..Self::new(state)
        }
    }

    /// Whether it has to log in before anything else.
    #[must_use]
    #[inline]
    pub fn has_to_log_in(&self) -> bool {
        !self.authenticated && !self.default_user.is_open()
    }

    /// It has logged in as `user`.
    pub fn log_in(&mut self, user: Arc<User>) {
        self.authenticated = true;
        self.user = user;
    }

    /// It is as it was before any login.
    pub fn log_out(&mut self) {
        self.authenticated = self.default_user.is_open();
        self.user = Arc::clone(&self.default_user);
    }

    /// Whether replies to the current command are sent.
    #[must_use]
    #[inline]
    pub fn is_silent(&self) -> bool {
        matches!(self.replies, Replies::Off | Replies::Skip)
    }

    /// A command is done: what CLIENT REPLY SKIP said moves on by one.
    #[inline]
    pub fn next_command(&mut self) {
        self.waiting_since = None;
        self.replies = match self.replies {
            Replies::Skip => Replies::On,
            Replies::SkipNext => Replies::Skip,
            other => other,
        };
    }

    /// A random number, which depends on the seed of the server, the connection and the number of
    /// draws before, and on nothing else.
    pub fn draw(&mut self, seed: u64, connection: u64) -> u64 {
        self.draws += 1;
        // SplitMix64: one multiplication-and-shift mix of a counter.
        let mut mixed = seed
            .wrapping_add(connection.wrapping_mul(0xd1b5_4a32_d192_ed03))
            .wrapping_add(self.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Drops the open transaction, if there is one, and what is watched.
    pub fn discard(&mut self, state: &State) {
        self.transaction = None;
        self.watching.clear(&state.watches);
    }
}
