//! Namespaces: where records live, how they expire, what is counted about them.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use kvlab_protocol::aerospike::digest::Digest;
use kvlab_protocol::aerospike::limits::RECORD_SIZE_MAX;

use super::bins::Bins;
use super::record::{Moment, Record, TtlRules};
use super::set::{Set, Sets};
use super::tally::Tally;
use crate::limit::{RequestLimits, Share, SizeKind};
use crate::store::Keyspace;

/// One namespace.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    ttl: TtlRules,
    records: Keyspace<Record>,
    sets: Sets,
    bytes: AtomicI64,
    truncated_ns: AtomicU64,
    purge: Purge,
    tally: Tally,
    room: Room,
}

/// The room that a namespace has for records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Bytes of all records; where that is no limit, what it is said to be.
    pub(super) total: u64,
    /// Percent of it from which on nothing is written.
    pub(super) stop_writes_pct: u64,
    /// Whether that is so.
    pub(super) is_limited: bool,
    /// Bytes of one record.
    pub(super) record_max: usize,
}

impl Room {
    /// The size of the storage of a namespace where nothing is said.
    const USUAL_TOTAL: u64 = 1_073_741_824;

    pub(super) fn new(limits: &RequestLimits) -> Self {
        let mut values = limits.sizes.iter();
        let value = values.find(|limit| limit.kind == SizeKind::Value);
        let record_max = value.and_then(|limit| usize::try_from(limit.most).ok());
        let stop = limits.stop_writes.unwrap_or(Share::USUAL_STOP_WRITES);
        Self {
            total: limits
                .max_memory
                .map_or(Self::USUAL_TOTAL, |size| size.0.max(1)),
            stop_writes_pct: stop.percent().into(),
            is_limited: limits.max_memory.is_some(),
            record_max: record_max.map_or(RECORD_SIZE_MAX, |most| most.min(RECORD_SIZE_MAX)),
        }
    }
}

/// The purge of expired records: a walk over the namespace that starts every `nsup_period` seconds
/// and goes on a few records at a time, driven by the messages that come in. It has no thread of its
/// own, so it works alike under real and virtual time.
#[derive(Debug, Default)]
struct Purge {
    /// Set when the first record gets a void-time: before that there is nothing to purge.
    needed: AtomicBool,
    /// When the next walk starts, in nanoseconds since 1970; 0 before the first was planned.
    next_ns: AtomicU64,
    /// Where the walk is; 0 when none is under way.
    cursor: AtomicU64,
    /// Held by the worker that takes a step.
    busy: AtomicBool,
}

/// Records one step of a purge looks at: more would delay the message that pays for it.
const PURGE_STEP: usize = 256;

impl Namespace {
    /// An empty namespace of a server with so many workers.
    #[must_use]
    pub fn new(name: &str, seed: u64, ttl: TtlRules, workers: usize) -> Self {
        Self {
            name: name.to_owned(),
            ttl,
            records: Keyspace::new(seed),
            sets: Sets::default(),
            bytes: AtomicI64::new(0),
            truncated_ns: AtomicU64::new(0),
            purge: Purge::default(),
            tally: Tally::new(workers),
            room: Room::new(&RequestLimits::default()),
        }
    }

    /// The same with this room for records.
    #[must_use]
    pub(super) fn with(self, room: Room) -> Self {
        Self { room, ..self }
    }

    /// Its room for records.
    pub(super) fn room(&self) -> Room {
        self.room
    }

    /// How many percent of its room are used, rounded down.
    pub(super) fn used_pct(&self) -> u64 {
        let used = u128::from(self.bytes()) * 100 / u128::from(self.room.total);
        u64::try_from(used).unwrap_or(u64::MAX)
    }

    /// Whether it takes no writes because its room is used up.
    #[inline]
    pub(super) fn stops_writes(&self) -> bool {
        self.room.is_limited && self.used_pct() >= self.room.stop_writes_pct
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it treats ttls.
    #[must_use]
    pub fn ttl(&self) -> TtlRules {
        self.ttl
    }

    /// Its records by digest. Create and remove them through the methods here alone, which keep the
    /// counts right.
    #[must_use]
    pub fn records(&self) -> &Keyspace<Record> {
        &self.records
    }

    /// Its sets.
    #[must_use]
    pub fn sets(&self) -> &Sets {
        &self.sets
    }

    /// Bytes its records take.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// When it was last truncated as a whole, in nanoseconds since 1970; 0 for never.
    #[must_use]
    pub fn truncated_ns(&self) -> u64 {
        self.truncated_ns.load(Ordering::Relaxed)
    }

    /// What is counted about operations on it.
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Notes that a record expires, so that purges begin.
    pub(super) fn note_expiry(&self) {
        if !self.purge.needed.load(Ordering::Relaxed) {
            self.purge.needed.store(true, Ordering::Relaxed);
        }
    }

    /// Puts a new record into an empty place.
    pub(super) fn create(&self, place: &mut Option<Record>, record: Record) {
        self.account(record.set.as_deref(), 1, 0, 0, stored_len(&record));
        *place = Some(record);
    }

    /// Takes a record out of its place.
    pub(super) fn discard(&self, place: &mut Option<Record>) {
        if let Some(record) = place.take() {
            self.account(record.set.as_deref(), 0, 1, stored_len(&record), 0);
        }
    }

    /// Gives a record other bins.
    pub(super) fn store_bins(&self, record: &mut Record, bins: &Bins) {
        let before = stored_len(record);
        record.bins.assign(bins);
        self.account(record.set.as_deref(), 0, 0, before, stored_len(record));
    }

    fn account(&self, set: Option<&Set>, came: u64, went: u64, before: usize, after: usize) {
        let [before, after] = [before, after].map(|len| i64::try_from(len).unwrap_or(i64::MAX));
        let grown = after.saturating_sub(before);
        if grown != 0 {
            self.bytes.fetch_add(grown, Ordering::Relaxed);
        }
        if let Some(set) = set {
            set.count(came, went, grown);
        }
    }

    /// Takes a step of the purge if one is due. Costs one load while no record has a void-time.
    #[inline]
    pub(super) fn maintain(&self, now: Moment) {
        if self.purge.needed.load(Ordering::Relaxed) && self.ttl.nsup_period != 0 {
            self.purge_step(now);
        }
    }

    fn purge_step(&self, now: Moment) {
        let next = self.purge.next_ns.load(Ordering::Relaxed);
        let under_way = self.purge.cursor.load(Ordering::Relaxed) != 0;
        let due = next != 0 && now.unix_ns >= next;
        if (!under_way && next != 0 && !due) || self.purge.busy.swap(true, Ordering::Acquire) {
            return;
        }
        if under_way || due {
            let from = self.purge.cursor.load(Ordering::Relaxed);
            let to = self.records.scan(from, PURGE_STEP, |digest| {
                self.discard_if(digest, |record| record.meta.is_expired(now));
            });
            self.purge.cursor.store(to, Ordering::Relaxed);
        }
        if !under_way {
            let period_ns = u64::from(self.ttl.nsup_period) * 1_000_000_000;
            let after = now.unix_ns.saturating_add(period_ns);
            self.purge.next_ns.store(after, Ordering::Relaxed);
        }
        self.purge.busy.store(false, Ordering::Release);
    }

    /// Removes the records of `set`, or all records, that were last written before `before_ns`.
    /// `at_ns` is the time kept as the set's or namespace's truncation time.
    pub(super) fn truncate(&self, set: Option<&[u8]>, before_ns: u64, at_ns: u64) {
        match set {
            Some(name) => {
                let Some(set) = self.sets.find(name) else {
                    return;
                };
                set.note_truncation(at_ns);
            }
            None => {
                self.truncated_ns.fetch_max(at_ns, Ordering::Relaxed);
            }
        }
        let mut cursor = 0;
        loop {
            cursor = self.records.scan(cursor, PURGE_STEP, |digest| {
                self.discard_if(digest, |record| {
                    record.updated_ns < before_ns && set.is_none_or(|set| record.is_in(set))
                });
            });
            if cursor == 0 {
                return;
            }
        }
    }

    fn discard_if(&self, digest: &[u8], condition: impl FnOnce(&Record) -> bool) {
        self.records.modify(digest, |place| {
            if place.as_ref().is_some_and(condition) {
                self.discard(place);
            }
        });
    }

    /// Calls `visit` with every record that has not expired by `now`, in the store's walking order.
    pub(super) fn for_each(&self, now: Moment, mut visit: impl FnMut(&Digest, &Record)) {
        let mut cursor = 0;
        loop {
            cursor = self.records.scan(cursor, PURGE_STEP, |key| {
                self.records.read(key, |record| {
                    if let (Some(record), Ok(digest)) = (record, key.try_into())
                        && !record.meta.is_expired(now)
                    {
                        visit(digest, record);
                    }
                });
            });
            if cursor == 0 {
                return;
            }
        }
    }
}

/// Bytes a record takes: what a real server would put on a device, rounded up to 16.
///
/// 35 bytes of head, set and user key with their lengths, and for each bin its name with a length
/// byte and its value with type and length. Real values are compared with 1 MiB and shown in
/// statistics; the sum here is close to them, not equal.
#[must_use]
pub(super) fn stored_len(record: &Record) -> usize {
    let set = record.set.as_ref().map_or(0, |set| 1 + set.name().len());
    let key = record.key.as_ref().map_or(0, |key| 4 + key.len());
    stored_len_of(set + key, &record.bins)
}

/// As [`stored_len`], from its parts.
pub(super) fn stored_len_of(set_and_key: usize, bins: &Bins) -> usize {
    // A packed bin has 8 bytes in front of its name; so has a stored one, about.
    (35 + set_and_key + bins.as_ops().len()).next_multiple_of(16)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kvlab_protocol::aerospike::message::ParticleType;

    use super::super::record::Meta;
    use super::*;

    const RULES: TtlRules = TtlRules {
        default_ttl: 0,
        nsup_period: 5,
    };

    fn at(seconds: u64) -> Moment {
        Moment::new((1_262_304_000 + seconds) * 1_000_000_000)
    }

    fn add(namespace: &Namespace, digest: u8, set: &[u8], void_time: u32, now: Moment) {
        let mut bins = Bins::default();
        bins.set(b"a", ParticleType::Blob, &[1, 2, 3]);
        let record = Record {
            meta: Meta {
                generation: 1,
                void_time,
            },
            updated_ns: now.unix_ns,
            set: namespace.sets().intern(set),
            key: None,
            bins,
        };
        if void_time != 0 {
            namespace.note_expiry();
        }
        namespace
            .records()
            .update(&[digest; 20], |place| namespace.create(place, record));
    }

    #[test]
    fn expired_records_go_at_the_next_purge_and_not_before() {
        let namespace = Namespace::new("test", 0, RULES, 1);
        add(&namespace, 1, b"s", 101, at(100));
        add(&namespace, 2, b"s", 0, at(100));
        namespace.maintain(at(100));
        namespace.maintain(at(104));
        assert_eq!(namespace.records().len(), 2, "expired, not purged");
        namespace.maintain(at(105));
        assert_eq!(namespace.records().len(), 1);
        assert_eq!(namespace.sets().find(b"s").unwrap().objects(), 1);
    }

    #[test]
    fn a_large_namespace_is_purged_step_by_step() {
        let namespace = Namespace::new("test", 0, RULES, 1);
        namespace.maintain(at(0));
        for round in 0..1000_u32 {
            let record_digest = round.to_be_bytes().repeat(5);
            let mut bins = Bins::default();
            bins.set(b"a", ParticleType::Blob, b"");
            let record = Record {
                meta: Meta {
                    generation: 1,
                    void_time: 10,
                },
                updated_ns: at(1).unix_ns,
                set: None,
                key: None,
                bins,
            };
            namespace.note_expiry();
            namespace
                .records()
                .update(&record_digest, |place| namespace.create(place, record));
        }
        namespace.maintain(at(1));
        let mut left = Vec::new();
        for _ in 0..5 {
            namespace.maintain(at(20));
            left.push(namespace.records().len());
        }
        assert_eq!(left, [744, 488, 232, 0, 0]);
    }

    #[test]
    fn truncation_spares_other_sets_and_later_writes() {
        let namespace = Namespace::new("test", 0, RULES, 1);
        add(&namespace, 1, b"a", 0, at(1));
        add(&namespace, 2, b"a", 0, at(3));
        add(&namespace, 3, b"b", 0, at(1));
        namespace.truncate(Some(b"a"), at(2).unix_ns, at(2).unix_ns);
        let mut left = Vec::new();
        namespace.for_each(at(9), |digest, _| left.push(digest[0]));
        assert_eq!(left, [2, 3]);
        assert_eq!(
            namespace.sets().find(b"a").unwrap().truncated_ns(),
            at(2).unix_ns
        );
        namespace.truncate(Some(b"nope"), u64::MAX, at(4).unix_ns);
        namespace.truncate(None, u64::MAX, at(4).unix_ns);
        assert!(namespace.records().is_empty());
        assert_eq!(namespace.bytes(), 0);
        assert!(Arc::strong_count(&namespace.sets().find(b"b").unwrap()) >= 1);
    }
}
