//! How long the turns of a worker's loop take.
//!
//! A turn begins when the thread looked at its sockets and ends when it looks at them again: in
//! between it reads, dispatches and writes for all connections that were ready. A reply that comes
//! just after a look lies in its socket until the turn is over, so a long turn is a delay that the
//! client adds by itself.
//!
//! ```text
//!  asleep | look, read, read, write, write | asleep        sleeping: hooks of the runtime
//!         |<------------ turn ------------>|
//!  look, read, write | look | look | look, read | ...      spinning: laps; empty ones do not count
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvlab_timing::{Clock, Stamp};

use crate::record::Latency;

/// The turns of one worker. The runtime's hooks have to be shareable between threads, hence the
/// lock; it is never contended.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Begin of the running turn; `None` while the thread sleeps.
    began: Option<Stamp>,
    turns: Latency,
}

impl Turns {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            state: Arc::default(),
        }
    }

    /// The thread woke up.
    pub(super) fn wake(&self) {
        self.state().began = Some(self.clock.now());
    }

    /// The thread goes to sleep.
    pub(super) fn sleep(&self) {
        let mut state = self.state();
        if let Some(began) = state.began.take() {
            let now = self.clock.now();
            state.turns.record(now.saturating_since(began));
        }
    }

    /// The thread has looked at its sockets without sleeping. A turn without `work` does not count;
    /// gives its length instead.
    pub(super) fn lap(&self, now: Stamp, work: bool) -> Option<u64> {
        let mut state = self.state();
        let length = now.saturating_since(state.began.replace(now)?);
        if !work {
            return Some(length);
        }
        state.turns.record(length);
        None
    }

    /// Exchanges what was recorded for an empty record.
    pub(super) fn take(&self, empty: &mut Latency) {
        std::mem::swap(&mut self.state().turns, empty);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What a panic left behind is still a legal state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_laps_with_work_count_and_the_others_are_given_back() {
        let stamp = Stamp::from_nanos;
        let turns = Turns::new(Clock::real());
        assert_eq!(turns.lap(stamp(100), true), None, "nothing began before");
        assert_eq!(turns.lap(stamp(130), true), None);
        assert_eq!(turns.lap(stamp(150), false), Some(20));
        assert_eq!(turns.lap(stamp(155), true), None);
        let mut taken = Latency::default();
        turns.take(&mut taken);
        assert_eq!((taken.count(), taken.sum_ns()), (2, 35));
        let mut again = Latency::default();
        turns.take(&mut again);
        assert!(again.is_empty());
    }

    #[test]
    fn sleep_is_no_part_of_a_turn() {
        let turns = Turns::new(Clock::real());
        turns.sleep();
        turns.wake();
        turns.sleep();
        turns.sleep();
        let mut taken = Latency::default();
        turns.take(&mut taken);
        assert_eq!(taken.count(), 1);
    }
}
