//! Counters for INFO. Each worker counts in a lane of its own, which nobody else writes, so that
//! counting costs a load and a store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use kvlab_timing::Stamp;

use super::table;

/// A counter with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`. Only the worker that owns the counter may call it.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    /// The count.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What became of one command, in all.
#[derive(Debug, Default)]
pub struct Calls {
    /// Times it ran.
    pub calls: Counter,
    /// Times it was refused before it ran.
    pub rejected: Counter,
    /// Times it ran and answered with an error.
    pub failed: Counter,
}

/// The counters of one worker.
#[derive(Debug)]
#[repr(align(128))]
pub struct Lane {
    calls: Vec<Calls>,
    /// Commands that ran.
    pub commands: Counter,
    /// Bytes of requests.
    pub bytes_in: Counter,
    /// Bytes of replies.
    pub bytes_out: Counter,
    /// Keys looked up and found.
    pub hits: Counter,
    /// Keys looked up and not found.
    pub misses: Counter,
    /// Keys that expired.
    pub expired: Counter,
    /// Keys that were evicted.
    pub evicted: Counter,
    /// Changes of the data.
    pub changes: Counter,
    /// Bytes of values, as far as this worker added and took away; the sum over all workers counts.
    bytes: AtomicU64,
}

/// The counters of all workers.
#[derive(Debug)]
pub struct Counters {
    lanes: Vec<Lane>,
    /// Error replies by code word.
    errors: Mutex<BTreeMap<Vec<u8>, u64>>,
    /// Connections that ended because their client did not take their replies.
    pub output_limit: AtomicU64,
    pace: Mutex<Pace>,
}

/// Commands per second, from the last two samples.
#[derive(Debug, Default)]
struct Pace {
    at_ns: u64,
    commands: u64,
    per_second: u64,
}

impl Counters {
    /// Counters for `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let lane = |_| Lane {
            calls: (0..table::command_names().len())
                .map(|_| Calls::default())
                .collect(),
            commands: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            hits: Counter::default(),
            misses: Counter::default(),
            expired: Counter::default(),
            evicted: Counter::default(),
            changes: Counter::default(),
            bytes: AtomicU64::new(0),
        };
        Self {
            lanes: (0..workers.max(1)).map(lane).collect(),
            errors: Mutex::default(),
            output_limit: AtomicU64::new(0),
            pace: Mutex::default(),
        }
    }

    /// The lane of `worker`.
    ///
    /// # Panics
    /// Never: there is at least one lane.
    #[must_use]
    #[inline]
    pub fn lane(&self, worker: usize) -> &Lane {
        self.lanes
            .get(worker)
            .or(self.lanes.first())
            .unwrap_or_else(|| unreachable!())
    }

    /// The sum of one counter over all workers.
    pub fn sum(&self, counter: impl Fn(&Lane) -> &Counter) -> u64 {
        self.lanes.iter().map(|lane| counter(lane).value()).sum()
    }

    /// Bytes of all values.
    #[must_use]
    pub fn value_bytes(&self) -> u64 {
        let sum = self.lanes.iter().fold(0, |sum: u64, lane| {
            sum.wrapping_add(lane.bytes.load(Ordering::Relaxed))
        });
        // One worker's taking away may be seen before another's adding: the sum is below zero then.
        if sum > u64::MAX / 2 { 0 } else { sum }
    }

    /// Calls, rejections and failures of a command.
    #[must_use]
    pub fn calls(&self, ordinal: u16) -> [u64; 3] {
        let mut sums = [0; 3];
        for lane in &self.lanes {
            let calls = lane.calls(ordinal);
            sums[0] += calls.calls.value();
            sums[1] += calls.rejected.value();
            sums[2] += calls.failed.value();
        }
        sums
    }

    /// Counts an error reply with this code word.
    pub fn count_error(&self, code: &[u8]) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < ERROR_CODES_MAX {
            errors.insert(code.to_vec(), 1);
        }
    }

    /// Error replies by code word.
    #[must_use]
    pub fn errors(&self) -> BTreeMap<Vec<u8>, u64> {
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes a sample for [`Counters::per_second`].
    pub fn sample(&self, now: Stamp) {
        let commands = self.sum(|lane| &lane.commands);
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = now.as_nanos().saturating_sub(pace.at_ns).max(1);
        let done = u128::from(commands.saturating_sub(pace.commands));
        let per_second = done * 1_000_000_000 / u128::from(elapsed);
        *pace = Pace {
            at_ns: now.as_nanos(),
            commands,
            per_second: u64::try_from(per_second).unwrap_or(u64::MAX),
        };
    }

    /// Commands per second, lately.
    #[must_use]
    pub fn per_second(&self) -> u64 {
        self.pace
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .per_second
    }

    /// CONFIG RESETSTAT: starts again, except for what counts changes of the data.
    pub fn reset(&self) {
        for lane in &self.lanes {
            for calls in &lane.calls {
                calls.calls.reset();
                calls.rejected.reset();
                calls.failed.reset();
            }
            for counter in [
                &lane.commands,
                &lane.bytes_in,
                &lane.bytes_out,
                &lane.hits,
                &lane.misses,
                &lane.expired,
                &lane.evicted,
            ] {
                counter.reset();
            }
        }
        self.output_limit.store(0, Ordering::Relaxed);
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl Lane {
    /// A value of `before` bytes has become one of `after` bytes. Only the worker that owns the lane
    /// may call it.
    #[inline]
    pub fn resize(&self, before: usize, after: usize) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.bytes.store(
            bytes.wrapping_add(after as u64).wrapping_sub(before as u64),
            Ordering::Relaxed,
        );
    }

    /// The counters of a command.
    ///
    /// # Panics
    /// Never: there is a counter for every ordinal, and one for the unknown command.
    #[must_use]
    #[inline]
    pub fn calls(&self, ordinal: u16) -> &Calls {
        self.calls
            .get(usize::from(ordinal))
            .or(self.calls.first())
            .unwrap_or_else(|| unreachable!())
    }
}

/// Code words are taken from our own texts, so this bounds nothing but mistakes.
const ERROR_CODES_MAX: usize = 128;
