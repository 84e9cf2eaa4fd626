//! The one file that touches dashmap: a concurrent map from key bytes to values, with a stable
//! walking order.
//!
//! dashmap's guards deadlock when a second call on the same map is made while one is held, so no
//! guard leaves this file: callers pass closures, which must not touch the same [`Keyspace`].
//!
//! Beside the map stands a slot index. A key takes a free slot when it is created and keeps it for
//! as long as it lives, so a walk over the slots meets every key that was present from the start of
//! the walk to its end exactly once: that is the guarantee of Redis SCAN. The order of a walk
//! depends on the order of creations and removals alone, never on hashes, shards or cores.
//!
//! Lock order: shard of the map, then slot index; never the other way round.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry as MapEntry;
use foldhash::fast::FixedState;

/// A concurrent map from key bytes to `V`; see the module documentation for its guarantees.
#[derive(Debug)]
pub struct Keyspace<V> {
    map: DashMap<Arc<[u8]>, Cell<V>, FixedState>,
    index: Mutex<SlotIndex>,
    live: AtomicUsize,
}

/// A value and the slot its key occupies. An empty value is a key that is being removed; every
/// reader treats it as absent.
#[derive(Debug)]
struct Cell<V> {
    value: Option<V>,
    slot: u32,
}

#[derive(Debug, Default)]
struct SlotIndex {
    slots: Vec<Option<Arc<[u8]>>>,
    free: Vec<u32>,
}

/// Shards of every map: fixed, so that nothing depends on the number of cores.
const SHARDS: usize = 64;

/// Slots that a sample looks at in one go.
const SAMPLE_STRIDE: usize = 32;

impl<V> Keyspace<V> {
    /// An empty map whose hash is derived from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            map: DashMap::with_hasher_and_shard_amount(FixedState::with_seed(seed), SHARDS),
            index: Mutex::default(),
            live: AtomicUsize::new(0),
        }
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `read` with the value of `key`, or `None`; the key cannot change meanwhile.
    pub fn read<R>(&self, key: &[u8], read: impl FnOnce(Option<&V>) -> R) -> R {
        match self.map.get(key) {
            Some(cell) => read(cell.value.as_ref()),
            None => read(None),
        }
    }

    /// Calls `update` with the value of `key`, which it may create (put `Some`), change or remove
    /// (leave `None`); nobody else sees the key meanwhile.
    pub fn update<R>(&self, key: &[u8], update: impl FnOnce(&mut Option<V>) -> R) -> R {
        if let Some(mut cell) = self.map.get_mut(key) {
            let (owner, place) = cell.pair_mut();
            let result = self.apply(owner, place, update);
            let emptied = place.value.is_none();
            drop(cell);
            if emptied {
                self.map.remove_if(key, |_, cell| cell.value.is_none());
            }
            return result;
        }
        match self.map.entry(Arc::from(key)) {
            MapEntry::Occupied(mut entry) => {
                let owner = Arc::clone(entry.key());
                let result = self.apply(&owner, entry.get_mut(), update);
                if entry.get().value.is_none() {
                    entry.remove();
                }
                result
            }
            MapEntry::Vacant(entry) => {
                let mut value = None;
                let result = update(&mut value);
                if value.is_some() {
                    let slot = self.claim(entry.key());
                    entry.insert(Cell { value, slot });
                }
                result
            }
        }
    }

    /// Like [`Keyspace::update`] for a key that must exist already: calls `change` only then.
    pub fn modify<R>(&self, key: &[u8], change: impl FnOnce(&mut Option<V>) -> R) -> Option<R> {
        let mut cell = self.map.get_mut(key)?;
        cell.value.as_ref()?;
        let (owner, place) = cell.pair_mut();
        let result = self.apply(owner, place, change);
        let emptied = place.value.is_none();
        drop(cell);
        if emptied {
            self.map.remove_if(key, |_, cell| cell.value.is_none());
        }
        Some(result)
    }

    /// Removes `key` and returns its value.
    pub fn remove(&self, key: &[u8]) -> Option<V> {
        self.modify(key, Option::take).flatten()
    }

    /// Removes every key.
    pub fn clear(&self) {
        // Key by key, so that a writer on another worker never meets a cell without its slot.
        let keys: Vec<_> = self.index().slots.iter().flatten().cloned().collect();
        for key in keys {
            self.remove(&key);
        }
        let mut index = self.index();
        if self.is_empty() {
            *index = SlotIndex::default();
        }
    }

    /// Visits the keys of up to `count` slots from `cursor` on (0 starts) and returns the cursor to
    /// continue with, 0 at the end. The visitor runs without any lock held.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(&[u8])) -> u64 {
        let (keys, next) = {
            let index = self.index();
            let len = index.slots.len();
            let from = usize::try_from(cursor).unwrap_or(usize::MAX).min(len);
            let to = from.saturating_add(count.max(1)).min(len);
            let keys: Vec<_> = index
                .slots
                .get(from..to)
                .unwrap_or_default()
                .iter()
                .flatten()
                .cloned()
                .collect();
            (keys, if to == len { 0 } else { to as u64 })
        };
        for key in keys {
            visit(&key);
        }
        next
    }

    /// A key chosen by `pick`, a uniform random number; `None` when there is no key.
    #[must_use]
    pub fn choose(&self, pick: u64) -> Option<Arc<[u8]>> {
        let index = self.index();
        let len = index.slots.len();
        if len == 0 {
            return None;
        }
        let from = usize::try_from(pick % len as u64).unwrap_or(0);
        (0..len).find_map(|step| index.slots.get((from + step) % len).cloned().flatten())
    }

    /// Up to `count` keys that `wanted` says yes to, from the slot that `pick`, a uniform random
    /// number, falls on, once around. `wanted` is called without any lock held.
    #[must_use]
    pub fn sample(
        &self,
        pick: u64,
        count: usize,
        mut wanted: impl FnMut(&[u8]) -> bool,
    ) -> Vec<Arc<[u8]>> {
        let mut found = Vec::with_capacity(count.min(SAMPLE_STRIDE));
        let (mut seen, mut from) = (0, None);
        loop {
            let keys: Vec<_> = {
                let index = self.index();
                let len = index.slots.len();
                if seen >= len || found.len() >= count {
                    return found;
                }
                let start = *from.get_or_insert(usize::try_from(pick % len as u64).unwrap_or(0));
                let steps = seen..len.min(seen + SAMPLE_STRIDE);
                seen = steps.end;
                let slots = steps.map(|step| index.slots.get((start + step) % len));
                slots.flatten().flatten().cloned().collect()
            };
            for key in keys {
                if found.len() < count && wanted(&key) {
                    found.push(key);
                }
            }
        }
    }

    fn apply<R>(
        &self,
        key: &Arc<[u8]>,
        cell: &mut Cell<V>,
        change: impl FnOnce(&mut Option<V>) -> R,
    ) -> R {
        let existed = cell.value.is_some();
        let result = change(&mut cell.value);
        match (existed, cell.value.is_some()) {
            (false, true) => cell.slot = self.claim(key),
            (true, false) => self.release(cell.slot),
            _ => {}
        }
        result
    }

    fn claim(&self, key: &Arc<[u8]>) -> u32 {
        self.live.fetch_add(1, Ordering::Relaxed);
        self.index().claim(Arc::clone(key))
    }

    fn release(&self, slot: u32) {
        // Counted down last: a count of 0 then means that no slot is taken or about to be freed, on
        // which `clear` relies when another worker removes a key beside it.
        let mut index = self.index();
        index.release(slot);
        self.live.fetch_sub(1, Ordering::Relaxed);
    }

    fn index(&self) -> MutexGuard<'_, SlotIndex> {
        // The index is changed by two infallible methods only, so a poisoned lock is still sound.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotIndex {
    fn claim(&mut self, key: Arc<[u8]>) -> u32 {
        if let Some(slot) = self.free.pop()
            && let Some(place) = self.slots.get_mut(slot as usize)
        {
            *place = Some(key);
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        assert!(slot != u32::MAX, "a keyspace holds at most 2^32 - 1 keys");
        self.slots.push(Some(key));
        slot
    }

    fn release(&mut self, slot: u32) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = None;
            self.free.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(keys: &Keyspace<u32>, count: usize) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        let mut cursor = 0;
        loop {
            cursor = keys.scan(cursor, count, |key| seen.push(key.to_vec()));
            if cursor == 0 {
                return seen;
            }
        }
    }

    #[test]
    fn update_creates_changes_and_removes() {
        let keys = Keyspace::new(1);
        assert_eq!(keys.update(b"a", |v| v.replace(1)), None);
        assert_eq!(keys.update(b"a", |v| v.replace(2)), Some(1));
        assert_eq!(keys.read(b"a", |v| v.copied()), Some(2));
        assert_eq!(keys.update(b"a", Option::take), Some(2));
        assert_eq!(keys.read(b"a", |v| v.copied()), None);
        assert!(keys.is_empty());
        keys.update(b"b", |_| ());
        assert!(
            keys.is_empty(),
            "an update that creates nothing leaves no key"
        );
    }

    #[test]
    fn scan_meets_every_key_that_stays_exactly_once() {
        let keys = Keyspace::new(1);
        for i in 0..1000u32 {
            keys.update(&i.to_be_bytes(), |v| *v = Some(i));
        }
        let mut seen = Vec::new();
        let mut cursor = 0;
        let mut round = 0u32;
        loop {
            cursor = keys.scan(cursor, 7, |key| seen.push(key.to_vec()));
            // Odd keys come and go between the calls; even ones stay.
            keys.remove(&(round * 2 + 1).to_be_bytes());
            keys.update(&(100_000 + round).to_be_bytes(), |v| *v = Some(0));
            round += 1;
            if cursor == 0 {
                break;
            }
        }
        for i in (0..1000u32).step_by(2) {
            let times = seen.iter().filter(|k| k[..] == i.to_be_bytes()).count();
            assert_eq!(times, 1, "key {i}");
        }
    }

    #[test]
    fn a_sample_goes_once_around_from_where_it_falls() {
        let keys = Keyspace::new(1);
        assert!(keys.sample(7, 3, |_| true).is_empty());
        for i in 0..100u32 {
            keys.update(&i.to_be_bytes(), |v| *v = Some(i));
        }
        let number = |key: &Arc<[u8]>| u32::from_be_bytes(key[..].try_into().unwrap());
        let numbers = |found: Vec<Arc<[u8]>>| found.iter().map(number).collect::<Vec<_>>();
        assert_eq!(numbers(keys.sample(198, 3, |_| true)), [98, 99, 0]);
        let tenth = |key: &[u8]| key[3].is_multiple_of(10);
        assert_eq!(numbers(keys.sample(95, 2, tenth)), [0, 10]);
        assert_eq!(keys.sample(5, 1000, |_| true).len(), 100);
        assert_eq!(keys.sample(5, 1000, |_| false).len(), 0);
    }

    #[test]
    fn clear_restarts_the_walk() {
        let keys = Keyspace::new(1);
        for i in 0..10u32 {
            keys.update(&i.to_be_bytes(), |v| *v = Some(i));
        }
        keys.clear();
        assert_eq!(keys.len(), 0);
        assert!(walk(&keys, 3).is_empty());
        keys.update(b"x", |v| *v = Some(1));
        assert_eq!(walk(&keys, 3), [b"x".to_vec()]);
        assert_eq!(keys.choose(17).as_deref(), Some(&b"x"[..]));
    }
}
