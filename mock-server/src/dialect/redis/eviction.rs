//! Eviction: which key goes when the memory of the RESP side is used up.
//!
//! As a real server does it: of each database a few keys are drawn (`maxmemory-samples`), the best
//! candidates met so far are kept in a pool of 16, and the best of these goes, until `used_memory` is
//! within `maxmemory`. What is best is told by the policy: the longest time without use in seconds, the
//! lowest frequency of use, the earliest expiry. The random policies take a key of one database after
//! the other. What is drawn depends on the server's seed and the order of commands alone.
//!
//! The frequency of a key is a logarithmic counter, as OBJECT FREQ shows it: it starts at 5, an access
//! raises it with the probability `1 / ((counter - 5) * lfu-log-factor + 1)`, and each
//! `lfu-decay-time` minutes without use take one from it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kvlab_timing::Stamp;

use super::view::View;
use crate::limit::Eviction;
use crate::shared::Shared;

/// What eviction remembers from one time to the next.
#[derive(Debug)]
pub struct Evictor {
    pool: Mutex<Pool>,
    /// Draws for the counters of frequency.
    draws: AtomicU64,
}

#[derive(Debug)]
struct Pool {
    draws: u64,
    /// The database that a random policy looks at next.
    next_database: usize,
    /// Candidates; the best comes last.
    candidates: Vec<Candidate>,
    /// The policy they were rated by.
    policy: Eviction,
}

#[derive(Debug)]
struct Candidate {
    score: u64,
    database: usize,
    key: Arc<[u8]>,
}

/// Candidates that are kept.
const POOL: usize = 16;

impl Evictor {
    /// One that draws by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            pool: Mutex::new(Pool {
                draws: mix(seed ^ 0x6576_6963),
                next_database: 0,
                candidates: Vec::new(),
                policy: Eviction::None,
            }),
            draws: AtomicU64::new(mix(seed ^ 0x006c_6675)),
        }
    }

    /// A number drawn for a counter of frequency.
    pub(super) fn draw(&self) -> u64 {
        mix(self.draws.fetch_add(STEP, Ordering::Relaxed))
    }

    /// Evicts until memory is within its limit: how many keys went, and whether it is.
    #[cold]
    pub(super) fn evict(&self, shared: &Shared, worker: usize, now: Stamp) -> (u64, bool) {
        let state = &shared.redis;
        let live = state.settings.live();
        let policy = live.eviction();
        if policy == Eviction::None {
            return (0, false);
        }
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.policy != policy {
            (pool.policy, pool.candidates) = (policy, Vec::new());
        }
        let samples = live.samples();
        let _pass = shared.gate.shared(worker);
        let mut evicted = 0;
        while state.used_memory() > live.memory_max() {
            let chosen = if policy.is_random() {
                pool.any(shared, worker, now, policy)
            } else {
                pool.best(shared, worker, now, (policy, samples))
            };
            let Some((view, key)) = chosen else {
                return (evicted, false);
            };
            if view.evict(&key) {
                evicted += 1;
            }
        }
        (evicted, true)
    }
}

impl Pool {
    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(STEP);
        mix(self.draws)
    }

    /// Any key that the policy allows, of one database after the other.
    fn any<'c>(
        &mut self,
        shared: &'c Shared,
        worker: usize,
        now: Stamp,
        policy: Eviction,
    ) -> Option<(View<'c>, Arc<[u8]>)> {
        let count = shared.redis.databases.count();
        for _ in 0..count {
            let number = self.next_database % count;
            self.next_database = number + 1;
            let draw = self.draw();
            let Some(view) = View::at(shared, worker, now, number) else {
                continue;
            };
            if let Some(key) = view.sample(draw, 1, policy.is_volatile()).pop() {
                return Some((view, key));
            }
        }
        None
    }

    /// The best of the candidates that are still there.
    fn best<'c>(
        &mut self,
        shared: &'c Shared,
        worker: usize,
        now: Stamp,
        (policy, samples): (Eviction, usize),
    ) -> Option<(View<'c>, Arc<[u8]>)> {
        loop {
            let mut met = 0;
            for number in 0..shared.redis.databases.count() {
                let Some(view) = View::at(shared, worker, now, number) else {
                    continue;
                };
                if view.database().is_empty() {
                    continue;
                }
                let draw = self.draw();
                for key in view.sample(draw, samples, policy.is_volatile()) {
                    if let Some(score) = view.rate(&key, policy) {
                        met += 1;
                        self.offer(score, number, key);
                    }
                }
            }
            if met == 0 {
                return None;
            }
            while let Some(best) = self.candidates.pop() {
                if let Some(view) = View::at(shared, worker, now, best.database)
                    && view.may_go(&best.key, policy)
                {
                    return Some((view, best.key));
                }
            }
        }
    }

    fn offer(&mut self, score: u64, database: usize, key: Arc<[u8]>) {
        let known = |other: &Candidate| other.database == database && other.key == key;
        if self.candidates.iter().any(known) {
            return;
        }
        let place = self.candidates.partition_point(|other| other.score < score);
        if self.candidates.len() == POOL {
            if place == 0 {
                return;
            }
            self.candidates.remove(0);
            let candidate = Candidate {
                score,
                database,
                key,
            };
            self.candidates.insert(place - 1, candidate);
            return;
        }
        let candidate = Candidate {
            score,
            database,
            key,
        };
        self.candidates.insert(place, candidate);
    }
}

/// The step of the generator that [`mix`] finishes (splitmix64).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
