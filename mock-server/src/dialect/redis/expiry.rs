//! Expiry in the background. Keys that expired are removed when somebody looks at them; this removes
//! those that nobody looks at, in small steps on the injected clock.
//!
//! Every command calls [`Expiry::tick`], which does something at most every [`PERIOD_NS`]. A worker
//! with a timer of its own may call it too, so that keys go while no client is active.
//!
//! A step walks on over the slots of the databases. While many of the keys it meets had expired it
//! goes on, up to a limit, as a real server does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use kvlab_timing::Stamp;

use super::view::View;
use crate::shared::Shared;

/// Where the walk stands, and when it went on last.
#[derive(Debug, Default)]
pub struct Expiry {
    last_ns: AtomicU64,
    walk: Mutex<Walk>,
}

#[derive(Debug, Default)]
struct Walk {
    database: usize,
    cursor: u64,
}

/// At most this often a step is made.
pub const PERIOD_NS: u64 = 100_000_000;

/// Slots that are looked at in one go, with the gate held.
const STRIDE: usize = 100;
/// Strides of one step, at most.
const STRIDES_MAX: usize = 32;

impl Expiry {
    /// Makes a step if the last one was long enough ago.
    #[inline]
    pub fn tick(&self, shared: &Shared, worker: usize, now: Stamp) {
        let last = self.last_ns.load(Ordering::Relaxed);
        if now.as_nanos() >= last.saturating_add(PERIOD_NS) {
            self.tick_now(shared, worker, now, last);
        }
    }

    #[cold]
    fn tick_now(&self, shared: &Shared, worker: usize, now: Stamp, last: u64) {
        let won = self.last_ns.compare_exchange(
            last,
            now.as_nanos(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if won.is_ok() {
            shared.redis.counters.sample(now);
            self.step(shared, worker, now);
        }
    }

    /// When the next step is due, for a worker that has nothing else to do.
    #[must_use]
    pub fn next(&self) -> Stamp {
        Stamp::from_nanos(self.last_ns.load(Ordering::Relaxed)).add_nanos(PERIOD_NS)
    }

    /// Removes keys that expired by `now`, and returns how many. `worker` must be the caller, and must
    /// not be inside a command.
    pub fn step(&self, shared: &Shared, worker: usize, now: Stamp) -> usize {
        let databases = &shared.redis.databases;
        let mut removed = 0;
        let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
        let mut empty = 0;
        for _ in 0..STRIDES_MAX {
            while databases
                .get(walk.database)
                .is_some_and(|database| database.expiring() == 0)
                && empty < databases.count()
            {
                walk.advance(databases.count());
                empty += 1;
            }
            let Some(view) = View::at(shared, worker, now, walk.database) else {
                break;
            };
            if view.database().expiring() == 0 {
                break;
            }
            let gone = {
                let _pass = shared.gate.shared(worker);
                let mut gone = 0;
                walk.cursor = view.database().keys.scan(walk.cursor, STRIDE, |key| {
                    gone += usize::from(view.purge(key));
                });
                gone
            };
            if walk.cursor == 0 {
                walk.advance(databases.count());
            }
            removed += gone;
            // As long as a tenth of what is met had expired there is likely to be more.
            if gone * 10 < STRIDE {
                break;
            }
        }
        removed
    }
}

impl Walk {
    fn advance(&mut self, count: usize) {
        self.database = (self.database + 1) % count.max(1);
        self.cursor = 0;
    }
}
