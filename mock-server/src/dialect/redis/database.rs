//! The databases: keyspaces whose entries may expire, numbered, with numbers that can be swapped.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::entry::Entry;
use crate::store::Keyspace;

/// One database.
#[derive(Debug)]
pub struct Database {
    /// Its keys. Entries that expired may still be in it: use [`super::view::View`] to look.
    pub(super) keys: Keyspace<Entry>,
    /// How many of them have an expiry.
    expiring: AtomicUsize,
}

/// All databases of a server.
#[derive(Debug)]
pub struct Databases {
    databases: Vec<Database>,
    /// Which database a number stands for. Changed by SWAPDB alone, in an exclusive passage.
    numbers: Vec<AtomicUsize>,
}

impl Databases {
    /// `count` empty databases.
    #[must_use]
    pub fn new(count: usize, seed: u64) -> Self {
        let empty = |_| Database {
            keys: Keyspace::new(seed),
            expiring: AtomicUsize::new(0),
        };
        Self {
            databases: (0..count).map(empty).collect(),
            numbers: (0..count).map(AtomicUsize::new).collect(),
        }
    }

    /// How many databases there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.databases.len()
    }

    /// Database `number`.
    #[must_use]
    #[inline]
    pub fn get(&self, number: usize) -> Option<&Database> {
        let place = self.numbers.get(number)?.load(Ordering::Relaxed);
        self.databases.get(place)
    }

    /// Lets two numbers change places; both must exist.
    pub fn swap(&self, first: usize, second: usize) {
        if let (Some(first), Some(second)) = (self.numbers.get(first), self.numbers.get(second)) {
            let kept = first.load(Ordering::Relaxed);
            first.store(second.load(Ordering::Relaxed), Ordering::Relaxed);
            second.store(kept, Ordering::Relaxed);
        }
    }
}

impl Database {
    /// Number of keys, those included that expired and were not yet removed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys have an expiry.
    #[must_use]
    pub fn expiring(&self) -> usize {
        self.expiring.load(Ordering::Relaxed)
    }

    /// Notes that an entry had an expiry, or none, and now has one, or none.
    #[inline]
    pub(super) fn note_expiry(&self, before: bool, after: bool) {
        match (before, after) {
            (false, true) => {
                self.expiring.fetch_add(1, Ordering::Relaxed);
            }
            (true, false) => {
                self.expiring.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}
