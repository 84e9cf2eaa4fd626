//! The sets of a namespace: names that records carry, and what is counted per name.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// One set.
#[derive(Debug)]
pub struct Set {
    name: Box<[u8]>,
    objects: AtomicU64,
    bytes: AtomicI64,
    truncated_ns: AtomicU64,
}

impl Set {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// How many records it holds, expired ones that are not purged yet included.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }

    /// Bytes its records take.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// When it was last truncated, in nanoseconds since 1970; 0 for never.
    #[must_use]
    pub fn truncated_ns(&self) -> u64 {
        self.truncated_ns.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, came: u64, went: u64, bytes: i64) {
        if came != 0 {
            self.objects.fetch_add(came, Ordering::Relaxed);
        }
        if went != 0 {
            self.objects.fetch_sub(went, Ordering::Relaxed);
        }
        if bytes != 0 {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    pub(super) fn note_truncation(&self, at_ns: u64) {
        self.truncated_ns.fetch_max(at_ns, Ordering::Relaxed);
    }
}

/// The sets of one namespace, in the order they were created in. A set, once there, stays.
#[derive(Debug, Default)]
pub struct Sets {
    sets: RwLock<Vec<Arc<Set>>>,
}

impl Sets {
    /// The set called `name`.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<Arc<Set>> {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        sets.iter().find(|set| *set.name == *name).cloned()
    }

    /// The set called `name`, created if it is new; `None` for the empty name.
    pub fn intern(&self, name: &[u8]) -> Option<Arc<Set>> {
        if name.is_empty() {
            return None;
        }
        if let Some(set) = self.find(name) {
            return Some(set);
        }
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        // Another worker may have come first.
        if let Some(set) = sets.iter().find(|set| *set.name == *name) {
            return Some(Arc::clone(set));
        }
        let set = Arc::new(Set {
            name: name.into(),
            objects: AtomicU64::new(0),
            bytes: AtomicI64::new(0),
            truncated_ns: AtomicU64::new(0),
        });
        sets.push(Arc::clone(&set));
        Some(set)
    }

    /// All sets.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<Set>> {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        sets.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_set() {
        let sets = Sets::default();
        assert!(sets.intern(b"").is_none());
        let one = sets.intern(b"one").unwrap();
        let again = sets.intern(b"one").unwrap();
        assert!(Arc::ptr_eq(&one, &again));
        assert!(sets.find(b"two").is_none());
        sets.intern(b"two").unwrap();
        let names: Vec<_> = sets.list().iter().map(|set| set.name().to_vec()).collect();
        assert_eq!(names, [b"one".to_vec(), b"two".to_vec()]);
    }
}
