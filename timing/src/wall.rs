//! Calendar time for stamps: `unix = stamp + offset`.
//!
//! Expiry times, `TIME`, `EXPIREAT` and log lines need the date; measuring never does. The offset is
//! sampled once from the machine, or fixed for a virtual run, and can be moved by tests that want a
//! key to expire now. It is not re-read, so a correction of the system clock does not bend a run.

use rustix::time::{ClockId, clock_gettime};

use crate::clock::{Clock, NANOS_PER_SECOND, Stamp};

/// Maps moments to Unix time and back.
///
/// Unix times before 1970 read as 0 and ones after the year 2554 as the largest value.
///
/// ```
/// use kvlab_timing::{Stamp, WallClock};
///
/// let wall = WallClock::fixed(Stamp::ZERO, WallClock::VIRTUAL_EPOCH_NS);
/// assert_eq!(wall.unix_seconds(Stamp::ZERO), 1_704_067_200); // 2024-01-01 00:00:00 UTC
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// Wider than both sides, so that no sequence of adjustments is lost to saturation.
    offset_ns: i128,
}

impl WallClock {
    /// The date at which virtual runs begin: 2024-01-01 00:00:00 UTC, in Unix nanoseconds.
    pub const VIRTUAL_EPOCH_NS: u64 = 1_704_067_200 * NANOS_PER_SECOND;

    /// Samples the machine's calendar clock, with an error well under a microsecond: the reading
    /// is put between two readings of the monotonic clock and the tightest of a few tries counts.
    pub fn real(clock: Clock) -> WallClock {
        let mut tightest = u64::MAX;
        let mut offset_ns = 0;
        for _ in 0..SAMPLES {
            let before = clock.now();
            let unix = Stamp::from_timespec(clock_gettime(ClockId::Realtime));
            let width = clock.now().saturating_since(before);
            if width < tightest {
                tightest = width;
                let middle = before.add_nanos(width / 2);
                offset_ns = i128::from(unix.as_nanos()) - i128::from(middle.as_nanos());
            }
        }
        WallClock { offset_ns }
    }

    /// The mapping in which `stamp` is `unix_ns` nanoseconds after 1970.
    pub fn fixed(stamp: Stamp, unix_ns: u64) -> WallClock {
        WallClock {
            offset_ns: i128::from(unix_ns) - i128::from(stamp.as_nanos()),
        }
    }

    /// Unix time in nanoseconds at `stamp`.
    pub fn unix_nanos(&self, stamp: Stamp) -> u64 {
        clamp(i128::from(stamp.as_nanos()) + self.offset_ns)
    }

    /// Unix time in microseconds at `stamp`, rounded down.
    pub fn unix_micros(&self, stamp: Stamp) -> u64 {
        self.unix_nanos(stamp) / 1_000
    }

    /// Unix time in milliseconds at `stamp`, rounded down.
    pub fn unix_millis(&self, stamp: Stamp) -> u64 {
        self.unix_nanos(stamp) / 1_000_000
    }

    /// Unix time in seconds at `stamp`, rounded down.
    pub fn unix_seconds(&self, stamp: Stamp) -> u64 {
        self.unix_nanos(stamp) / NANOS_PER_SECOND
    }

    /// The moment of a Unix time in nanoseconds; [`Stamp::ZERO`] if it lies before the clock began.
    pub fn stamp_at(&self, unix_ns: u64) -> Stamp {
        Stamp::from_nanos(clamp(i128::from(unix_ns) - self.offset_ns))
    }

    /// Moves the calendar by `by_ns`, forward if positive. Monotonic time is not touched.
    pub fn adjust(&mut self, by_ns: i64) {
        self.offset_ns += i128::from(by_ns);
    }

    /// Sets the calendar so that `stamp` is `unix_ns` nanoseconds after 1970.
    pub fn set(&mut self, stamp: Stamp, unix_ns: u64) {
        *self = WallClock::fixed(stamp, unix_ns);
    }
}

fn clamp(nanos: i128) -> u64 {
    u64::try_from(nanos).unwrap_or(if nanos < 0 { 0 } else { u64::MAX })
}

const SAMPLES: u32 = 5;

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn units_round_down() {
        let wall = WallClock::fixed(Stamp::from_nanos(100), 1_999_999_999);
        assert_eq!(wall.unix_nanos(Stamp::from_nanos(100)), 1_999_999_999);
        assert_eq!(wall.unix_micros(Stamp::from_nanos(100)), 1_999_999);
        assert_eq!(wall.unix_millis(Stamp::from_nanos(100)), 1_999);
        assert_eq!(wall.unix_seconds(Stamp::from_nanos(100)), 1);
        assert_eq!(wall.unix_seconds(Stamp::from_nanos(101)), 2);
    }

    #[test]
    fn unix_time_maps_back_to_the_moment() {
        let wall = WallClock::fixed(Stamp::from_nanos(77), WallClock::VIRTUAL_EPOCH_NS);
        let stamp = Stamp::from_nanos(123_456_789);
        assert_eq!(wall.stamp_at(wall.unix_nanos(stamp)), stamp);
        assert_eq!(wall.stamp_at(0), Stamp::ZERO);
        assert_eq!(wall.unix_nanos(Stamp::MAX), u64::MAX);
    }

    #[test]
    fn the_calendar_can_be_moved_and_moved_back() {
        let start = WallClock::fixed(Stamp::ZERO, 5_000);
        let mut wall = start;
        wall.adjust(-9_000);
        assert_eq!(wall.unix_nanos(Stamp::ZERO), 0);
        assert_eq!(wall.unix_nanos(Stamp::from_nanos(4_001)), 1);
        wall.adjust(9_000);
        assert_eq!(wall, start);
        wall.set(Stamp::from_nanos(10), 20);
        assert_eq!(wall.unix_nanos(Stamp::from_nanos(11)), 21);
    }

    #[test]
    fn the_real_calendar_agrees_with_the_standard_library() {
        let clock = Clock::real();
        let wall = WallClock::real(clock);
        let unix = || {
            let since = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap();
            u64::try_from(since.as_nanos()).unwrap()
        };
        let before = unix();
        let ours = wall.unix_nanos(clock.now());
        let after = unix();
        let slack = 50_000_000;
        assert!(before.saturating_sub(slack) <= ours && ours <= after + slack);
    }
}
