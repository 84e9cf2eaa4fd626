//! What users were denied lately: ACL LOG.
//!
//! Entries that are alike within a minute are one, with a count. The newest stands first, and there
//! are no more than `acllog-max-len`.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something that was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `auth`, `command`, `key` or `channel`.
    pub reason: &'static str,
    /// `toplevel` or `multi`.
    pub context: &'static str,
    /// The command, the key, or the command that was to log in.
    pub object: Vec<u8>,
    /// The user, or the name that was given.
    pub user: Vec<u8>,
    /// The connection, as CLIENT LIST describes it.
    pub client: Vec<u8>,
}

/// Equal entries within a minute.
#[derive(Debug, Clone)]
pub struct Line {
    /// The last of them.
    pub entry: Entry,
    /// How many.
    pub count: u64,
    /// A number of its own.
    pub id: u64,
    /// When the first came, in milliseconds since 1970.
    pub created_ms: u64,
    /// When the last came.
    pub updated_ms: u64,
}

/// The log.
#[derive(Debug, Default)]
pub struct Log {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    lines: VecDeque<Line>,
    next_id: u64,
}

/// As many lines are looked at for one that is alike.
const LOOK_BACK: usize = 10;
/// How long lines that are alike are one, in milliseconds.
const ALIKE_MS: u64 = 60_000;
/// More lines are not kept, whatever the parameter says.
const LINES_MAX: usize = 10_000;

impl Log {
    /// Adds what was denied at `now_ms`, and forgets all but the `most` newest lines.
    pub fn add(&self, entry: Entry, now_ms: u64, most: usize) {
        let mut inner = self.lock();
        let alike = |line: &Line| {
            line.entry.reason == entry.reason
                && line.entry.context == entry.context
                && line.entry.object == entry.object
                && line.entry.user == entry.user
                && now_ms.saturating_sub(line.updated_ms) <= ALIKE_MS
        };
        let found = inner.lines.iter().take(LOOK_BACK).position(alike);
        if let Some(line) = found.and_then(|place| inner.lines.get_mut(place)) {
            line.entry = entry;
            line.count += 1;
            line.updated_ms = now_ms;
            return;
        }
        let id = inner.next_id;
        inner.next_id += 1;
        inner.lines.push_front(Line {
            entry,
            count: 1,
            id,
            created_ms: now_ms,
            updated_ms: now_ms,
        });
        inner.lines.truncate(most.min(LINES_MAX));
    }

    /// The newest lines, `most` of them.
    #[must_use]
    pub fn newest(&self, most: usize) -> Vec<Line> {
        self.lock().lines.iter().take(most).cloned().collect()
    }

    /// Forgets all lines.
    pub fn clear(&self) {
        self.lock().lines.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(object: &str) -> Entry {
        Entry {
            reason: "command",
            context: "toplevel",
            object: object.into(),
            user: b"alice".to_vec(),
            client: Vec::new(),
        }
    }

    #[test]
    fn what_is_alike_within_a_minute_is_one_line() {
        let log = Log::default();
        log.add(entry("get"), 0, 128);
        log.add(entry("set"), 1, 128);
        log.add(entry("get"), 60_000, 128);
        let lines = log.newest(10);
        let found: Vec<_> = lines.iter().map(|line| (line.id, line.count)).collect();
        assert_eq!(found, [(1, 1), (0, 2)]);
        log.add(entry("get"), 120_001, 128);
        assert_eq!(log.newest(10)[0].id, 2);
        log.clear();
        assert!(log.newest(10).is_empty());
    }

    #[test]
    fn only_the_newest_lines_are_kept() {
        let log = Log::default();
        for (now, object) in ["a", "b", "c"].iter().enumerate() {
            log.add(entry(object), now as u64, 2);
        }
        let objects: Vec<_> = log.newest(10).into_iter().map(|l| l.entry.object).collect();
        assert_eq!(objects, [b"c".to_vec(), b"b".to_vec()]);
        log.add(entry("d"), 4, 0);
        assert!(log.newest(10).is_empty());
    }
}
