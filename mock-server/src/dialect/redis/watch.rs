//! WATCH: which connections are told when a key changes.
//!
//! Every write asks whether anything is watched at all, which is one relaxed load; only then is the
//! register locked. WATCH itself passes the gate exclusively, so a write on another worker comes
//! wholly before or wholly after it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The watched keys of all connections.
#[derive(Debug, Default)]
pub struct Watches {
    /// How many (connection, key) pairs there are.
    count: AtomicUsize,
    register: Mutex<Register>,
}

/// The number of a database, and a key in it.
type WatchedKey = (usize, Box<[u8]>);
/// Whom to tell, by key.
type Register = HashMap<WatchedKey, Vec<Arc<AtomicBool>>>;

/// What one connection watches.
#[derive(Debug, Default)]
pub struct Watching {
    /// Set when one of the keys changed.
    dirty: Arc<AtomicBool>,
    keys: Vec<WatchedKey>,
}

impl Watches {
    /// Whether any key is watched.
    #[must_use]
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// `key` of database `number` changed.
    pub fn touch(&self, number: usize, key: &[u8]) {
        if let Some(watchers) = self.register().get(&(number, Box::from(key))) {
            for dirty in watchers {
                dirty.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Every watched key of database `number` that `is_affected` changed.
    pub fn touch_all(&self, number: usize, is_affected: impl Fn(&[u8]) -> bool) {
        for ((database, key), watchers) in &*self.register() {
            if *database == number && is_affected(key) {
                for dirty in watchers {
                    dirty.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        // Entries are added and removed whole, so a poisoned lock is still sound.
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watching {
    /// Watches `key` of database `number` too.
    pub fn add(&mut self, watches: &Watches, number: usize, key: &[u8]) {
        let name = (number, Box::from(key));
        if self.keys.contains(&name) {
            return;
        }
        self.keys.push(name.clone());
        let mut register = watches.register();
        register
            .entry(name)
            .or_default()
            .push(Arc::clone(&self.dirty));
        watches.count.fetch_add(1, Ordering::Relaxed);
    }

    /// The watched keys, each with the number of its database.
    pub fn keys(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.keys.iter().map(|(number, key)| (*number, &**key))
    }

    /// How many keys are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether one of the keys changed since it was watched.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Watches nothing any more.
    pub fn clear(&mut self, watches: &Watches) {
        if self.keys.is_empty() {
            return;
        }
        let mut register = watches.register();
        for name in self.keys.drain(..) {
            watches.count.fetch_sub(1, Ordering::Relaxed);
            if let Some(watchers) = register.get_mut(&name) {
                watchers.retain(|dirty| !Arc::ptr_eq(dirty, &self.dirty));
                if watchers.is_empty() {
                    register.remove(&name);
                }
            }
        }
        drop(register);
        self.dirty.store(false, Ordering::Relaxed);
    }
}
