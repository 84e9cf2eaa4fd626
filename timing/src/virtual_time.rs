//! A clock that jumps: the time of a simulated run is the moment of the event being handled.
//!
//! The virtual shell keeps all pending events ordered by moment, takes the first, moves this clock
//! to it and handles it. Nothing waits, so an hour takes seconds and is the same each time.

use crate::clock::Stamp;

/// The current moment of a simulated run.
///
/// ```
/// use kvlab_timing::{Stamp, VirtualClock};
///
/// let mut clock = VirtualClock::new(Stamp::ZERO);
/// clock.advance_to(Stamp::from_nanos(500))?;
/// assert_eq!(clock.now().as_nanos(), 500);
/// assert!(clock.advance_to(Stamp::from_nanos(499)).is_err());
/// # Ok::<(), kvlab_timing::ClockWouldGoBack>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualClock {
    now: Stamp,
}

impl VirtualClock {
    /// A clock that stands at `start`.
    pub const fn new(start: Stamp) -> VirtualClock {
        VirtualClock { now: start }
    }

    /// The moment the clock stands at.
    pub const fn now(&self) -> Stamp {
        self.now
    }

    /// Jumps to `moment`, which may be the present one: many events can share a moment.
    ///
    /// # Errors
    ///
    /// The clock keeps standing when `moment` has passed: the caller took its events out of order.
    pub const fn advance_to(&mut self, moment: Stamp) -> Result<(), ClockWouldGoBack> {
        if moment.as_nanos() < self.now.as_nanos() {
            return Err(ClockWouldGoBack {
                now: self.now,
                wanted: moment,
            });
        }
        self.now = moment;
        Ok(())
    }
}

/// A virtual clock was asked to move to a moment that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the virtual clock stands at {now} and cannot go back to {wanted}")]
pub struct ClockWouldGoBack {
    /// Where the clock stands, and still stands.
    pub now: Stamp,
    /// The earlier moment that was asked for.
    pub wanted: Stamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_jumps_forward_and_may_stay() {
        let mut clock = VirtualClock::new(Stamp::from_nanos(10));
        assert_eq!(clock.advance_to(Stamp::from_nanos(10)), Ok(()));
        assert_eq!(clock.advance_to(Stamp::MAX), Ok(()));
        assert_eq!(clock.now(), Stamp::MAX);
    }

    #[test]
    fn a_passed_moment_is_refused_and_changes_nothing() {
        let mut clock = VirtualClock::new(Stamp::from_nanos(10));
        let error = clock.advance_to(Stamp::from_nanos(9)).unwrap_err();
        assert_eq!(clock.now(), Stamp::from_nanos(10));
        assert_eq!(
            error.to_string(),
            "the virtual clock stands at 0.000000010 and cannot go back to 0.000000009"
        );
    }
}
