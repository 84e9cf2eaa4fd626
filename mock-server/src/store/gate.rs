//! The multi-key gate: makes commands over several keys, and transactions, atomic.
//!
//! A single-key command is atomic by its map shard and passes the gate shared; a command that must
//! see or change several keys at one moment passes it exclusively. With one worker nothing runs
//! beside a command, so the gate is not taken at all. With more, it is one lock per worker: a
//! shared pass takes the worker's own lock, which nobody else wants in the usual case, and an
//! exclusive pass takes all of them in order. A pass is never held while a command is parked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One lock per worker, each on a cache line of its own.
#[derive(Debug)]
pub struct Gate {
    lanes: Vec<Lane>,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(Mutex<()>);

/// A passage through the gate, which lasts until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Pass<'a> {
    _held: Held<'a>,
}

#[derive(Debug)]
enum Held<'a> {
    Free,
    Shared { _lane: MutexGuard<'a, ()> },
    Exclusive { _lanes: Vec<MutexGuard<'a, ()>> },
}

impl Gate {
    /// A gate for `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let lanes = if workers > 1 { workers } else { 0 };
        Self {
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
        }
    }

    /// A passage beside other shared ones, for one key.
    pub fn shared(&self, worker: usize) -> Pass<'_> {
        let held = match self.lanes.get(worker) {
            Some(lane) => Held::Shared { _lane: lock(lane) },
            None => Held::Free,
        };
        Pass { _held: held }
    }

    /// A passage alone, for several keys or a transaction.
    pub fn exclusive(&self) -> Pass<'_> {
        let held = if self.lanes.is_empty() {
            Held::Free
        } else {
            Held::Exclusive {
                _lanes: self.lanes.iter().map(lock).collect(),
            }
        };
        Pass { _held: held }
    }
}

fn lock(lane: &Lane) -> MutexGuard<'_, ()> {
    // The lock guards no data of its own, so a poisoned one is as good as new.
    lane.0.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn exclusive_passes_see_no_shared_one() {
        let gate = Gate::new(2);
        let inside = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for worker in 0..2 {
                let (gate, inside) = (&gate, &inside);
                scope.spawn(move || {
                    for _ in 0..2000 {
                        let pass = gate.shared(worker);
                        inside.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(pass);
                        let pass = gate.exclusive();
                        assert_eq!(inside.load(Ordering::SeqCst), 0);
                        drop(pass);
                    }
                });
            }
        });
    }

    #[test]
    fn one_worker_takes_no_lock() {
        let gate = Gate::new(1);
        let _first = gate.exclusive();
        let _second = gate.exclusive();
    }
}
