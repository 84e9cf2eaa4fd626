//! Moments and the clock of the machine.
//!
//! A [`Stamp`] counts nanoseconds of one clock. The real clock is Linux `CLOCK_MONOTONIC`, which all
//! processes of a machine share, so a stamp taken by a client and one taken by a server are
//! comparable without conversion: that is what the whole proof of accuracy rests on. It is read
//! through the kernel's user-space page (vDSO), about 25 ns and no system call.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A moment: nanoseconds of `CLOCK_MONOTONIC`, or of a virtual clock.
///
/// Arithmetic saturates at [`Stamp::ZERO`] and [`Stamp::MAX`] (584 years); it never wraps.
///
/// ```
/// use std::time::Duration;
/// use kvlab_timing::Stamp;
///
/// let read = Stamp::from_nanos(1_000);
/// let due = read + Duration::from_millis(1);
/// assert_eq!(due.saturating_since(read), 1_000_000);
/// assert_eq!(read.since(due), -1_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(u64);

impl Stamp {
    /// The start of the clock.
    pub const ZERO: Stamp = Stamp(0);
    /// A moment that never comes.
    pub const MAX: Stamp = Stamp(u64::MAX);

    /// The moment `nanos` after the start of the clock.
    pub const fn from_nanos(nanos: u64) -> Stamp {
        Stamp(nanos)
    }

    /// Nanoseconds since the start of the clock.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to `self`, 0 if `earlier` is in fact later.
    pub const fn saturating_since(self, earlier: Stamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Nanoseconds from `earlier` to `self`, negative if `earlier` is in fact later; saturates at
    /// the ends of `i64` (292 years).
    pub fn since(self, earlier: Stamp) -> i64 {
        if self.0 >= earlier.0 {
            i64::try_from(self.0 - earlier.0).unwrap_or(i64::MAX)
        } else {
            i64::try_from(earlier.0 - self.0).map_or(i64::MIN, |nanos| -nanos)
        }
    }

    /// The moment `nanos` later, at most [`Stamp::MAX`].
    pub const fn add_nanos(self, nanos: u64) -> Stamp {
        Stamp(self.0.saturating_add(nanos))
    }

    /// The moment `nanos` earlier, at least [`Stamp::ZERO`].
    pub const fn sub_nanos(self, nanos: u64) -> Stamp {
        Stamp(self.0.saturating_sub(nanos))
    }

    pub(crate) fn to_timespec(self) -> Timespec {
        let seconds = i64::try_from(self.0 / NANOS_PER_SECOND);
        let nanos = i64::try_from(self.0 % NANOS_PER_SECOND);
        Timespec {
            // Neither can fail: 2^64 / 10^9 and 10^9 - 1 both fit i64 by far.
            tv_sec: seconds.unwrap_or(i64::MAX),
            tv_nsec: nanos.unwrap_or(0),
        }
    }

    /// Negative times cannot come from the clocks read here and would become [`Stamp::ZERO`].
    pub(crate) fn from_timespec(time: Timespec) -> Stamp {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        Stamp(
            seconds
                .saturating_mul(NANOS_PER_SECOND)
                .saturating_add(nanos),
        )
    }
}

impl Add<Duration> for Stamp {
    type Output = Stamp;

    fn add(self, later_by: Duration) -> Stamp {
        self.add_nanos(u64::try_from(later_by.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Seconds with all nine decimals: `12.000001500`.
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:09}",
            self.0 / NANOS_PER_SECOND,
            self.0 % NANOS_PER_SECOND
        )
    }
}

/// The monotonic clock of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    _real: (),
}

impl Clock {
    /// The clock that every process of this machine shares.
    pub const fn real() -> Clock {
        Clock { _real: () }
    }

    /// This moment. Later calls, from any thread or process, never return less.
    #[inline]
    pub fn now(&self) -> Stamp {
        Stamp::from_timespec(clock_gettime(ClockId::Monotonic))
    }
}

pub(crate) const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_a_sign_and_saturate() {
        let (a, b) = (Stamp::from_nanos(5), Stamp::from_nanos(12));
        assert_eq!(b.since(a), 7);
        assert_eq!(a.since(b), -7);
        assert_eq!(a.since(a), 0);
        assert_eq!(a.saturating_since(b), 0);
        assert_eq!(Stamp::MAX.since(Stamp::ZERO), i64::MAX);
        assert_eq!(Stamp::ZERO.since(Stamp::MAX), i64::MIN);
        let edge = Stamp::from_nanos(i64::MAX.unsigned_abs());
        assert_eq!(Stamp::ZERO.since(edge), -i64::MAX);
    }

    #[test]
    fn moments_saturate_at_both_ends() {
        assert_eq!(Stamp::MAX.add_nanos(1), Stamp::MAX);
        assert_eq!(Stamp::ZERO.sub_nanos(1), Stamp::ZERO);
        assert_eq!(
            Stamp::from_nanos(9).sub_nanos(4).add_nanos(1),
            Stamp::from_nanos(6)
        );
        assert_eq!(Stamp::ZERO + Duration::MAX, Stamp::MAX);
        assert_eq!(
            Stamp::ZERO + Duration::new(1, 5),
            Stamp::from_nanos(1_000_000_005)
        );
    }

    #[test]
    fn kernel_time_converts_both_ways() {
        for nanos in [
            0,
            1,
            999_999_999,
            1_000_000_000,
            1_234_567_890_123,
            u64::MAX,
        ] {
            let time = Stamp::from_nanos(nanos).to_timespec();
            assert_eq!(Stamp::from_timespec(time), Stamp::from_nanos(nanos));
        }
    }

    #[test]
    fn a_moment_prints_as_seconds() {
        assert_eq!(
            Stamp::from_nanos(12_000_001_500).to_string(),
            "12.000001500"
        );
        assert_eq!(Stamp::ZERO.to_string(), "0.000000000");
    }

    /// `CLOCK_BOOTTIME` also counts the time a machine was suspended, so it is never less.
    #[test]
    fn the_real_clock_is_the_clock_of_the_machine() {
        let before = clock_gettime(ClockId::Monotonic);
        let stamp = Clock::real().now();
        let after = clock_gettime(ClockId::Monotonic);
        assert!(Stamp::from_timespec(before) <= stamp && stamp <= Stamp::from_timespec(after));
        let boot = Stamp::from_timespec(clock_gettime(ClockId::Boottime));
        assert!(stamp <= boot);
    }
}
