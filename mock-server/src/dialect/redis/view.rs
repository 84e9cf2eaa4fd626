//! A database as one command sees it: at one moment, with what has expired already gone.

use std::sync::Arc;

use kvlab_timing::Stamp;

use super::State;
use super::counters::Lane;
use super::database::Database;
use super::entry::{Entry, NEW_KEY_FREQUENCY};
use super::fault::Fault;
use crate::dialect::Context;
use crate::limit::Eviction;
use crate::shared::Shared;

/// A database at the moment of one command. Cheap to make and to copy.
#[derive(Debug, Clone, Copy)]
pub struct View<'c> {
    shared: &'c Shared,
    lane: &'c Lane,
    database: &'c Database,
    number: usize,
    now: Stamp,
    /// Whether commands leave no trace of having used a key.
    untraced: bool,
}

impl<'c> View<'c> {
    /// Database `number`, if there is one.
    #[must_use]
    #[inline]
    pub fn new(context: &Context<'c>, number: usize) -> Option<Self> {
        Self::at(context.shared, context.worker, context.now, number)
    }

    /// Database `number`, if there is one, at a moment when `worker` has no command at hand.
    #[must_use]
    #[inline]
    pub fn at(shared: &'c Shared, worker: usize, now: Stamp, number: usize) -> Option<Self> {
        let state = &shared.redis;
        Some(Self {
            shared,
            lane: state.counters.lane(worker),
            database: state.databases.get(number)?,
            number,
            now,
            untraced: false,
        })
    }

    /// The same, but commands leave no trace of having used a key.
    #[must_use]
    #[inline]
    pub fn untraced(mut self, untraced: bool) -> Self {
        self.untraced = untraced;
        self
    }

    /// The state of the RESP side.
    #[must_use]
    pub fn state(&self) -> &'c State {
        &self.shared.redis
    }

    /// The database itself.
    #[must_use]
    pub fn database(&self) -> &'c Database {
        self.database
    }

    /// The number of the database.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The calendar time, in milliseconds since 1970.
    #[must_use]
    pub fn unix_millis(&self) -> u64 {
        self.shared.unix_millis(self.now)
    }

    /// The second of the server's life, as entries note their last access.
    #[must_use]
    #[inline]
    pub fn second(&self) -> u32 {
        let since = self.now.saturating_since(self.shared.started);
        u32::try_from(since / 1_000_000_000).unwrap_or(u32::MAX)
    }

    /// Calls `read` with the entry of `key`, as a command that reads it: hits and misses are
    /// counted, and the access is noted.
    #[inline]
    pub fn read<R>(self, key: &[u8], read: impl FnOnce(Option<&Entry>) -> R) -> R {
        self.peek(key, |entry| {
            if let Some(entry) = entry {
                self.note_access(entry);
            }
            read(entry)
        })
    }

    /// As [`View::read`], for a command that does not count as an access.
    #[inline]
    pub fn peek<R>(self, key: &[u8], read: impl FnOnce(Option<&Entry>) -> R) -> R {
        let (result, expired) = self.database.keys.read(key, |entry| {
            let live = entry.filter(|entry| !self.has_expired(entry));
            match live {
                Some(_) => self.lane.hits.add(1),
                None => self.lane.misses.add(1),
            }
            (read(live), live.is_none() && entry.is_some())
        });
        if expired {
            self.purge(key);
        }
        result
    }

    /// Whether `key` exists, for the server's own use: nothing is counted.
    #[must_use]
    pub fn exists(self, key: &[u8]) -> bool {
        self.database.keys.read(key, |entry| {
            entry.is_some_and(|entry| !self.has_expired(entry))
        })
    }

    /// Calls `update` with the place of `key`, to be filled, changed or emptied.
    #[inline]
    pub fn update<R>(self, key: &[u8], update: impl FnOnce(&mut Option<Entry>) -> R) -> R {
        self.database
            .keys
            .update(key, |place| self.change(key, place, update))
    }

    /// As [`View::update`], for a change that may fail.
    ///
    /// # Errors
    /// What `update` gives.
    #[inline]
    pub fn try_update<R>(
        self,
        key: &[u8],
        update: impl FnOnce(&mut Option<Entry>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        self.update(key, update)
    }

    /// As [`View::read`], for a command that may fail.
    ///
    /// # Errors
    /// What `read` gives.
    #[inline]
    pub fn try_read<R>(
        self,
        key: &[u8],
        read: impl FnOnce(Option<&Entry>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        self.read(key, read)
    }

    /// As [`View::update`] for a key that must exist already: `None` if it does not.
    #[inline]
    pub fn modify<R>(self, key: &[u8], modify: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        self.database
            .keys
            .modify(key, |place| {
                self.change(key, place, |place| place.as_mut().map(modify))
            })
            .flatten()
    }

    /// Removes `key` and returns its entry.
    pub fn remove(self, key: &[u8]) -> Option<Entry> {
        let removed = self
            .database
            .keys
            .modify(key, |place| self.change(key, place, Option::take));
        removed.flatten()
    }

    /// Says that `key` was changed. Every command that changes a key calls this once, while it still
    /// holds its passage through the gate.
    #[inline]
    pub fn touch(self, key: &[u8]) {
        self.lane.changes.add(1);
        self.notify(key);
    }

    /// Counts changes of many keys at once, which are announced otherwise.
    pub fn count_changes(self, count: usize) {
        self.lane.changes.add(count as u64);
    }

    /// Removes `key` if it has expired; whether it did.
    pub fn purge(self, key: &[u8]) -> bool {
        if self.state().pause.is_active(self.now) {
            return false;
        }
        let purged = self.database.keys.modify(key, |place| {
            let expired = place.as_ref().is_some_and(|entry| self.has_expired(entry));
            if expired {
                self.drop_expired(place);
            }
            expired
        });
        if purged == Some(true) {
            self.notify(key);
            return true;
        }
        false
    }

    /// Up to `count` keys from a place that `draw` says; only those that expire, if `volatile`.
    pub(super) fn sample(self, draw: u64, count: usize, volatile: bool) -> Vec<Arc<[u8]>> {
        if volatile && self.database.expiring() == 0 {
            return Vec::new();
        }
        let keys = &self.database.keys;
        keys.sample(draw, count, |key| {
            !volatile || keys.read(key, |entry| entry.is_some_and(Entry::is_volatile))
        })
    }

    /// How well `key` fits the policy: the highest goes first.
    pub(super) fn rate(self, key: &[u8], policy: Eviction) -> Option<u64> {
        self.database.keys.read(key, |entry| {
            let entry = entry?;
            Some(match policy {
                Eviction::VolatileTtl => u64::MAX - entry.expires_at.unwrap_or(u64::MAX),
                Eviction::AllKeysLfu | Eviction::VolatileLfu => {
                    u64::from(u8::MAX - self.frequency(entry))
                }
                _ => u64::from(self.second().saturating_sub(entry.accessed())),
            })
        })
    }

    /// Whether `key` is still there and the policy allows it to go.
    pub(super) fn may_go(self, key: &[u8], policy: Eviction) -> bool {
        self.database.keys.read(key, |entry| {
            entry.is_some_and(|entry| !policy.is_volatile() || entry.is_volatile())
        })
    }

    /// Evicts `key`; whether it was there.
    pub(super) fn evict(self, key: &[u8]) -> bool {
        let evicted = self.database.keys.modify(key, |place| {
            self.lane.resize(size(place), 0);
            self.database.note_expiry(expires(place), false);
            place.take().is_some()
        });
        let evicted = evicted == Some(true);
        if evicted {
            self.lane.evicted.add(1);
            self.notify(key);
        }
        evicted
    }

    /// How often the entry is used lately, as OBJECT FREQ tells.
    #[must_use]
    pub fn frequency(&self, entry: &Entry) -> u8 {
        entry.frequency(
            self.minute(),
            self.state().settings.live().frequency_decay(),
        )
    }

    /// The minute of the server's life, wrapping around.
    fn minute(&self) -> u16 {
        u16::try_from(self.second() / 60 % (1 << 16)).unwrap_or_default()
    }

    /// Whether the entry has expired at this moment.
    #[must_use]
    #[inline]
    pub fn has_expired(&self, entry: &Entry) -> bool {
        entry
            .expires_at
            .is_some_and(|expires_at| self.unix_millis() > expires_at)
    }

    /// Removes every key. The caller tells who watches them.
    pub fn clear(self) {
        let keys = &self.database.keys;
        keys.scan(0, usize::MAX, |key| {
            self.remove(key);
        });
        // Nothing is left; this lets the walk of SCAN begin afresh.
        keys.clear();
    }

    /// Changes a place in the passage of a command. An entry that expired goes first, which is a
    /// change that watchers are told of even if the command does nothing.
    #[inline]
    fn change<R>(
        self,
        key: &[u8],
        place: &mut Option<Entry>,
        update: impl FnOnce(&mut Option<Entry>) -> R,
    ) -> R {
        if let Some(entry) = place
            && entry.expires_at.is_some()
            && self.has_expired(entry)
        {
            self.drop_expired(place);
            self.notify(key);
        }
        let counts_frequency = self.state().settings.live().counts_frequency();
        let frequency = counts_frequency.then(|| place.as_ref().map(|entry| self.frequency(entry)));
        let (expired_before, size_before) = (expires(place), size(place));
        let result = update(place);
        self.database.note_expiry(expired_before, expires(place));
        let size_after = size(place);
        if size_after != size_before {
            self.lane.resize(size_before, size_after);
        }
        if let Some(entry) = place {
            match frequency {
                None => self.note_access(entry),
                Some(before) => self.note_change(entry, before),
            }
        }
        result
    }

    /// As [`View::note_access`], where a key may have been made or got another value: its frequency
    /// is that of a new one, or goes on from the one before.
    #[cold]
    fn note_change(self, entry: &Entry, before: Option<u8>) {
        entry.note_frequency(self.minute(), before.unwrap_or(NEW_KEY_FREQUENCY));
        if before.is_some() {
            self.note_access(entry);
        } else if !self.untraced {
            entry.note_access(self.second());
        }
    }

    #[inline]
    fn note_access(self, entry: &Entry) {
        if !self.untraced {
            entry.note_access(self.second());
            if self.state().settings.live().counts_frequency() {
                self.note_frequency(entry);
            }
        }
    }

    /// Raises the counter of an entry that is used, with the chance that belongs to its value.
    #[cold]
    fn note_frequency(self, entry: &Entry) {
        let frequency = self.frequency(entry);
        let above = u64::from(frequency.saturating_sub(NEW_KEY_FREQUENCY));
        let one_in = above * self.state().settings.live().frequency_factor() + 1;
        let rises = self.state().evictor.draw().is_multiple_of(one_in);
        let frequency = frequency.saturating_add(u8::from(rises));
        entry.note_frequency(self.minute(), frequency);
    }

    fn drop_expired(self, place: &mut Option<Entry>) {
        self.lane.resize(size(place), 0);
        *place = None;
        self.database.note_expiry(true, false);
        self.lane.expired.add(1);
    }

    #[inline]
    fn notify(self, key: &[u8]) {
        let watches = &self.state().watches;
        if watches.any() {
            watches.touch(self.number, key);
        }
    }
}

/// Bytes that an entry is counted with.
#[inline]
fn size(place: &Option<Entry>) -> usize {
    place.as_ref().map_or(0, |entry| entry.value.size())
}

#[inline]
fn expires(place: &Option<Entry>) -> bool {
    place
        .as_ref()
        .is_some_and(|entry| entry.expires_at.is_some())
}
