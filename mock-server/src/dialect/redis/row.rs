//! A command as data: one [`Row`] per command or subcommand, one list of rows per family.
//!
//! A row says all that a server tells about a command through COMMAND (arity, flags, keys, tips,
//! syntax) and all that the dispatcher needs to run it. Adding a command is a row; adding a family
//! is a file in [`super::command`] and a line in [`super::table`].

use super::call::{Call, Outcome};
use crate::config::RedisVersion;

/// Runs a command.
pub type Handler = fn(&mut Call<'_, '_>) -> Outcome;

/// One command or subcommand.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Name in lower case, without the container's name.
    pub name: &'static str,
    /// Number of arguments with the name; negative means at least so many.
    pub arity: i32,
    /// What kind of command it is, from [`flag`].
    pub flags: u32,
    /// Categories of access that the flags do not imply, from [`category`].
    pub categories: u32,
    /// Where its keys are.
    pub keys: &'static [KeySpec],
    /// Hints for proxies and clients.
    pub tips: &'static [&'static str],
    /// The version it appeared in.
    pub since: RedisVersion,
    /// Its arguments, in the notation of manuals; see [`super::syntax`].
    pub syntax: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Subcommands, if it is a container.
    pub subcommands: &'static [Row],
    /// Runs it.
    pub run: Handler,
}

/// Where keys are among the arguments, and what happens to them.
#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    /// `RO`, `RW`, `OW`, `RM`, then `access`, `update`, `insert`, `delete`.
    pub flags: &'static [&'static str],
    /// Position of the first key.
    pub first: u16,
    /// Position of the last key, counted from the first; negative counts from the end.
    pub last: i16,
    /// From one key to the next.
    pub step: u16,
    /// A remark that COMMAND INFO repeats.
    pub notes: Option<&'static str>,
}

/// Commands that belong together, as COMMAND DOCS groups them.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Name of the group.
    pub group: &'static str,
    /// Its commands.
    pub rows: &'static [Row],
}

/// Flags of commands; the order of the bits is the order in which a server lists them.
pub mod flag {
    /// May change data.
    pub const WRITE: u32 = 1;
    /// Reads data and changes none.
    pub const READONLY: u32 = 1 << 1;
    /// Refused when memory is over its limit.
    pub const DENYOOM: u32 = 1 << 2;
    /// For administrators.
    pub const ADMIN: u32 = 1 << 3;
    /// Concerns publish and subscribe.
    pub const PUBSUB: u32 = 1 << 4;
    /// Not for scripts.
    pub const NOSCRIPT: u32 = 1 << 5;
    /// May block the client.
    pub const BLOCKING: u32 = 1 << 6;
    /// Allowed while data is loaded.
    pub const LOADING: u32 = 1 << 7;
    /// Allowed while a replica is out of date.
    pub const STALE: u32 = 1 << 8;
    /// Not shown by MONITOR.
    pub const SKIP_MONITOR: u32 = 1 << 9;
    /// Not in the slow log.
    pub const SKIP_SLOWLOG: u32 = 1 << 10;
    /// Allowed behind ASKING.
    pub const ASKING: u32 = 1 << 11;
    /// Constant or logarithmic time.
    pub const FAST: u32 = 1 << 12;
    /// Allowed before authentication.
    pub const NO_AUTH: u32 = 1 << 13;
    /// May be replicated though it writes nothing itself.
    pub const MAY_REPLICATE: u32 = 1 << 14;
    /// Its keys may all be left out.
    pub const NO_MANDATORY_KEYS: u32 = 1 << 15;
    /// Refused while data is loaded in the background.
    pub const NO_ASYNC_LOADING: u32 = 1 << 16;
    /// Not allowed in a transaction.
    pub const NO_MULTI: u32 = 1 << 17;
    /// Its keys are not at fixed places.
    pub const MOVABLEKEYS: u32 = 1 << 18;
    /// Allowed while a script is overdue.
    pub const ALLOW_BUSY: u32 = 1 << 19;
    /// Runs commands that were queued, which may write.
    pub const RUNS_OTHERS: u32 = 1 << 28;
    /// Runs even while a transaction is open instead of being queued in it.
    pub const NEVER_QUEUED: u32 = 1 << 29;
    /// Touches keys that it does not name, one at a time.
    pub const ANY_KEY: u32 = 1 << 30;
    /// Needs every key to stand still, though it names none.
    pub const WHOLE_KEYSPACE: u32 = 1 << 31;

    /// Names by bit.
    pub const NAMES: [&str; 20] = [
        "write",
        "readonly",
        "denyoom",
        "admin",
        "pubsub",
        "noscript",
        "blocking",
        "loading",
        "stale",
        "skip_monitor",
        "skip_slowlog",
        "asking",
        "fast",
        "no_auth",
        "may_replicate",
        "no_mandatory_keys",
        "no_async_loading",
        "no_multi",
        "movablekeys",
        "allow_busy",
    ];
}

/// Categories of access; the order of the bits is the order in which a server lists them.
pub mod category {
    /// Keys of any type.
    pub const KEYSPACE: u32 = 1;
    /// Reads.
    pub const READ: u32 = 1 << 1;
    /// Writes.
    pub const WRITE: u32 = 1 << 2;
    /// Strings.
    pub const STRING: u32 = 1 << 7;
    /// Publish and subscribe.
    pub const PUBSUB: u32 = 1 << 12;
    /// For administrators.
    pub const ADMIN: u32 = 1 << 13;
    /// Constant or logarithmic time.
    pub const FAST: u32 = 1 << 14;
    /// Not fast.
    pub const SLOW: u32 = 1 << 15;
    /// May block.
    pub const BLOCKING: u32 = 1 << 16;
    /// To be used with care.
    pub const DANGEROUS: u32 = 1 << 17;
    /// Concerns the connection itself.
    pub const CONNECTION: u32 = 1 << 18;
    /// Transactions.
    pub const TRANSACTION: u32 = 1 << 19;

    /// Names by bit.
    pub const NAMES: [&str; 21] = [
        "keyspace",
        "read",
        "write",
        "set",
        "sortedset",
        "list",
        "hash",
        "string",
        "bitmap",
        "hyperloglog",
        "geo",
        "stream",
        "pubsub",
        "admin",
        "fast",
        "slow",
        "blocking",
        "dangerous",
        "connection",
        "transaction",
        "scripting",
    ];
}

impl Row {
    /// A command without flags, keys or description.
    #[must_use]
    pub const fn new(name: &'static str, arity: i32, run: Handler) -> Self {
        Self {
            name,
            arity,
            flags: 0,
            categories: 0,
            keys: &[],
            tips: &[],
            since: RedisVersion {
                major: 1,
                minor: 0,
                patch: 0,
            },
            syntax: "",
            summary: "",
            subcommands: &[],
            run,
        }
    }

    /// A command that is nothing but the sum of its subcommands.
    #[must_use]
    pub const fn container(name: &'static str, subcommands: &'static [Row]) -> Self {
        let mut row = Self::new(name, -2, super::command::without_subcommand);
        row.subcommands = subcommands;
        row
    }

    /// With these flags.
    #[must_use]
    pub const fn flags(mut self, flags: u32) -> Self {
        self.flags = flags;
        self
    }

    /// In these categories beside those that follow from the flags.
    #[must_use]
    pub const fn categories(mut self, categories: u32) -> Self {
        self.categories = categories;
        self
    }

    /// With keys at these places.
    #[must_use]
    pub const fn keys(mut self, keys: &'static [KeySpec]) -> Self {
        self.keys = keys;
        self
    }

    /// With these tips.
    #[must_use]
    pub const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    /// First seen in this version.
    #[must_use]
    pub const fn since(mut self, major: u16, minor: u16, patch: u16) -> Self {
        self.since = RedisVersion {
            major,
            minor,
            patch,
        };
        self
    }

    /// With this syntax and summary.
    #[must_use]
    pub const fn doc(mut self, syntax: &'static str, summary: &'static str) -> Self {
        self.syntax = syntax;
        self.summary = summary;
        self
    }

    /// With subcommands beside what it does itself.
    #[must_use]
    pub const fn subcommands(mut self, subcommands: &'static [Row]) -> Self {
        self.subcommands = subcommands;
        self
    }

    /// The categories, those that follow from the flags included.
    #[must_use]
    pub fn all_categories(&self) -> u32 {
        let implied = [
            (flag::WRITE, category::WRITE),
            (flag::READONLY, category::READ),
            (flag::ADMIN, category::ADMIN | category::DANGEROUS),
            (flag::PUBSUB, category::PUBSUB),
            (flag::FAST, category::FAST),
            (flag::BLOCKING, category::BLOCKING),
        ];
        let mut all = self.categories;
        for (flag, category) in implied {
            if self.flags & flag != 0 {
                all |= category;
            }
        }
        if all & category::FAST == 0 {
            all |= category::SLOW;
        }
        all
    }

    /// Whether it runs even while a transaction is open.
    #[must_use]
    #[inline]
    pub fn runs_in_transaction(&self) -> bool {
        self.flags & flag::NEVER_QUEUED != 0
    }

    /// Whether the argument at `place`, of `count` with the name, is a key.
    #[must_use]
    pub fn has_key_at(&self, place: usize, count: usize) -> bool {
        self.keys.iter().any(|spec| {
            let first = usize::from(spec.first);
            let span = usize::from(spec.last.unsigned_abs());
            let last = if spec.last < 0 {
                count.saturating_sub(span)
            } else {
                first + span
            };
            let step = usize::from(spec.step.max(1));
            (first..=last).contains(&place) && (place - first).is_multiple_of(step)
        })
    }

    /// Whether a request of `count` arguments, the name included, fits the arity. The
    /// arity of a subcommand counts the name of its container too.
    #[must_use]
    pub fn accepts(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let arity = i64::from(self.arity);
        if arity < 0 {
            count >= -arity
        } else {
            count == arity
        }
    }
}

impl KeySpec {
    /// One key at `first`.
    #[must_use]
    pub const fn one(first: u16, flags: &'static [&'static str]) -> Self {
        Self::range(first, 0, 1, flags)
    }

    /// Keys from `first` on, every `step` arguments, to the last one.
    #[must_use]
    pub const fn all(first: u16, step: u16, flags: &'static [&'static str]) -> Self {
        Self::range(first, -1, step, flags)
    }

    /// Keys from `first` to `last` arguments behind it, every `step` arguments.
    #[must_use]
    pub const fn range(first: u16, last: i16, step: u16, flags: &'static [&'static str]) -> Self {
        Self {
            flags,
            first,
            last,
            step,
            notes: None,
        }
    }

    /// With a remark.
    #[must_use]
    pub const fn notes(mut self, notes: &'static str) -> Self {
        self.notes = Some(notes);
        self
    }
}
