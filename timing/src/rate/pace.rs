//! When the i-th event of a rate is due.
//!
//! Uniform arrivals: event `i` is due at `start + floor(i * 10^9 * den / num)` nanoseconds. Each
//! moment is the exact one rounded down, so an hour at any rate ends where it must. A thread that
//! takes every `stride`-th event steps by whole nanoseconds and a carried remainder (no division
//! per event), which gives the same moments.
//!
//! Random arrivals: gaps come as floating-point nanoseconds; the part below a nanosecond is carried
//! in 64-bit fixed point, so what is lost is below 2^-64 ns per event.

use crate::clock::Stamp;
use crate::rate::Rate;

/// The moments of a uniform schedule, or of one thread's share of it.
///
/// ```
/// use kvlab_timing::{Pacer, Rate, Stamp};
///
/// // Three events per second; this thread takes the events 1, 3, 5, ...
/// let mut pacer = Pacer::uniform(Rate::per_second(3)?, Stamp::ZERO, 1, 2);
/// assert_eq!(pacer.next().as_nanos(), 333_333_333);
/// assert_eq!(pacer.next().as_nanos(), 1_000_000_000);
/// assert_eq!(pacer.intended(2).as_nanos(), 666_666_666);
/// # Ok::<(), kvlab_timing::RateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: Rate,
    start: Stamp,
    /// Index in the whole schedule of the event that `next` gives.
    index: u64,
    stride: u64,
    due: Stamp,
    /// What `due` lacks of the exact moment, in units of 1/num nanoseconds; below num.
    remainder: u128,
    step_ns: u64,
    step_remainder: u128,
}

impl Pacer {
    /// The events `phase`, `phase + stride`, `phase + 2 * stride`, ... of a schedule that begins at
    /// `start` with event 0. Thread k of T uses phase k and stride T. A stride of 0 counts as 1.
    pub fn uniform(rate: Rate, start: Stamp, phase: u64, stride: u64) -> Pacer {
        let stride = stride.max(1);
        let (due, remainder) = exact(rate, start, phase);
        let (step, step_remainder) = exact(rate, Stamp::ZERO, stride);
        Pacer {
            rate,
            start,
            index: phase,
            stride,
            due,
            remainder,
            step_ns: step.as_nanos(),
            step_remainder,
        }
    }

    /// When event `index` of the whole schedule is due, whichever thread takes it. Events after the
    /// end of the clock are due at [`Stamp::MAX`].
    pub fn intended(&self, index: u64) -> Stamp {
        exact(self.rate, self.start, index).0
    }

    /// When this thread's next event is due, without moving on.
    pub fn peek(&self) -> Stamp {
        self.due
    }

    /// The index in the whole schedule of this thread's next event.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// When this thread's next event is due; moves on to the one after it.
    #[expect(
        clippy::should_implement_trait,
        reason = "a schedule never ends, so no Option"
    )]
    pub fn next(&mut self) -> Stamp {
        let due = self.due;
        let num = u128::from(self.rate.numerator());
        self.due = due.add_nanos(self.step_ns);
        self.remainder += self.step_remainder;
        if self.remainder >= num {
            self.remainder -= num;
            self.due = self.due.add_nanos(1);
        }
        self.index = self.index.saturating_add(self.stride);
        due
    }
}

/// The moment of event `index` and what rounding down took, in units of 1/num nanoseconds.
fn exact(rate: Rate, start: Stamp, index: u64) -> (Stamp, u128) {
    // At most 2^64 * 10^19, below 2^128: see the bound on the denominator.
    let scaled = u128::from(index) * rate.gap_num();
    let num = u128::from(rate.numerator());
    let nanos = u64::try_from(scaled / num).unwrap_or(u64::MAX);
    (start.add_nanos(nanos), scaled % num)
}

/// Moments that follow each other by given, usually random, gaps.
///
/// ```
/// use kvlab_timing::{GapPacer, Stamp};
///
/// let mut pacer = GapPacer::new(Stamp::ZERO);
/// assert_eq!(pacer.after(1.5).as_nanos(), 1);
/// assert_eq!(pacer.after(1.5).as_nanos(), 3); // nothing was lost
/// ```
#[derive(Clone, Debug)]
pub struct GapPacer {
    due: Stamp,
    /// The part of the exact moment below one nanosecond, in units of 2^-64 ns.
    fraction: u64,
}

impl GapPacer {
    /// A schedule whose first gap is counted from `start`.
    pub const fn new(start: Stamp) -> GapPacer {
        GapPacer {
            due: start,
            fraction: 0,
        }
    }

    /// The moment the last gap ended: `start` before the first one.
    pub const fn last(&self) -> Stamp {
        self.due
    }

    /// Moves on by `gap_ns` nanoseconds and returns the moment, rounded down.
    ///
    /// A gap that is negative or not a number counts as 0, an endless one leads to [`Stamp::MAX`].
    pub fn after(&mut self, gap_ns: f64) -> Stamp {
        let gap_ns = gap_ns.max(0.0);
        let whole = gap_ns.floor();
        let below = if gap_ns.is_finite() {
            gap_ns - whole
        } else {
            0.0
        };
        // Both casts saturate; the second is exact but for bits below 2^-64.
        #[expect(clippy::cast_possible_truncation, reason = "rounded down on purpose")]
        #[expect(clippy::cast_sign_loss, reason = "not negative")]
        let (whole, below) = (whole as u64, (below * TWO_POW_64) as u64);
        let (fraction, carry) = self.fraction.overflowing_add(below);
        self.fraction = fraction;
        self.due = self.due.add_nanos(whole).add_nanos(u64::from(carry));
        self.due
    }
}

const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schedule(rate: &str) -> Pacer {
        Pacer::uniform(rate.parse().unwrap(), Stamp::ZERO, 0, 1)
    }

    const TEN_BILLION: u64 = 10_000_000_000;

    #[test]
    fn ten_billion_events_end_at_the_exact_moment() {
        // floor(10^10 * 10^9 / rate), worked out by hand.
        for (rate, nanos) in [
            ("10M", 1_000_000_000_000),
            ("9999999", 1_000_000_100_000),
            ("1000", 10_000_000_000_000_000),
            ("3", 3_333_333_333_333_333_333),
            ("7", 1_428_571_428_571_428_571),
            ("0.6", 16_666_666_666_666_666_666),
            ("1.1", 9_090_909_090_909_090_909),
        ] {
            assert_eq!(
                schedule(rate).intended(TEN_BILLION).as_nanos(),
                nanos,
                "{rate}"
            );
        }
        // 3170 years at 0.1 per second: later than the clock can tell.
        assert_eq!(schedule("0.1").intended(TEN_BILLION), Stamp::MAX);
        assert_eq!(
            schedule("0.1").intended(1_800_000_000).as_nanos(),
            18_000_000_000_000_000_000
        );
        assert_eq!(schedule("0.1").intended(u64::MAX), Stamp::MAX);
    }

    #[test]
    fn ten_billion_steps_carry_the_remainder() {
        // One thread of a billion: ten of its steps pass ten billion events of the schedule.
        for (rate, nanos) in [
            ("3", 3_333_333_333_333_333_333),
            ("9999999", 1_000_000_100_000),
        ] {
            let mut pacer = Pacer::uniform(rate.parse().unwrap(), Stamp::ZERO, 0, 1_000_000_000);
            for _ in 0..10 {
                pacer.next();
            }
            assert_eq!(
                (pacer.index(), pacer.peek().as_nanos()),
                (TEN_BILLION, nanos)
            );
        }
    }

    #[test]
    fn a_million_single_steps_do_not_drift() {
        let mut pacer = schedule("7");
        for _ in 0..1_000_000 {
            pacer.next();
        }
        // floor(10^15 / 7)
        assert_eq!(pacer.next().as_nanos(), 142_857_142_857_142);
    }

    #[test]
    fn the_schedule_counts_from_its_start() {
        let start = Stamp::from_nanos(123);
        let mut pacer = Pacer::uniform("10M".parse().unwrap(), start, 0, 1);
        let dues = [pacer.next(), pacer.next(), pacer.next()].map(Stamp::as_nanos);
        assert_eq!(dues, [123, 223, 323]);
    }

    #[test]
    fn a_schedule_stays_at_the_end_of_the_clock() {
        let mut pacer = Pacer::uniform(Rate::MIN, Stamp::MAX.sub_nanos(5), 0, 1);
        assert_eq!(pacer.next(), Stamp::MAX.sub_nanos(5));
        assert_eq!(pacer.next(), Stamp::MAX);
        assert_eq!(pacer.next(), Stamp::MAX);
    }

    #[test]
    fn odd_gaps_move_nothing_or_to_the_end() {
        let mut pacer = GapPacer::new(Stamp::from_nanos(9));
        for gap in [0.0, -0.0, -5.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(pacer.after(gap).as_nanos(), 9);
        }
        assert_eq!(pacer.after(f64::INFINITY), Stamp::MAX);
        assert_eq!(pacer.after(1.0), Stamp::MAX);
    }

    #[test]
    fn a_third_of_a_nanosecond_is_carried() {
        let mut pacer = GapPacer::new(Stamp::ZERO);
        let mut due = Stamp::ZERO;
        for _ in 0..3_000_000 {
            due = pacer.after(100.0 / 3.0);
        }
        // The nearest number to 100/3 is above it by less than 2^-48.
        assert_eq!(due.as_nanos(), 100_000_000);
    }

    /// A positive gap as an exact multiple of 2^-64 ns, from the bits of its representation.
    fn in_fixed_point(gap: f64) -> u128 {
        let bits = gap.to_bits();
        let mantissa = u128::from(bits & ((1 << 52) - 1) | (1 << 52));
        let exponent = i64::try_from(bits >> 52).unwrap() - 1075;
        mantissa << u32::try_from(exponent + 64).unwrap()
    }

    fn any_rate() -> impl Strategy<Value = Rate> {
        let decimal = (
            100_000_000_u64..=10_000_000_000_000_000,
            Just(1_000_000_000),
        );
        let fraction = (1_u64..=u64::MAX, 1_u64..=10_000_000_000);
        prop_oneof![decimal, fraction].prop_map(|(num, den)| Rate::new(num, den).unwrap())
    }

    proptest! {
        /// `due` is the last whole nanosecond that is not after `index` exact gaps:
        /// due * num <= index * den * 10^9 < (due + 1) * num.
        #[test]
        fn each_moment_is_the_exact_one_rounded_down(rate in any_rate(), index: u64) {
            let due = Pacer::uniform(rate, Stamp::ZERO, 0, 1).intended(index);
            let exact = u128::from(index) * u128::from(rate.denominator()) * 1_000_000_000;
            let num = u128::from(rate.numerator());
            prop_assert!(u128::from(due.as_nanos()) * num <= exact);
            if due < Stamp::MAX {
                prop_assert!(exact < (u128::from(due.as_nanos()) + 1) * num);
            }
        }

        #[test]
        fn stepping_gives_the_exact_moments_and_never_goes_back(
            rate in any_rate(), start: u32, phase in 0_u64..1_000, stride in 1_u64..1_000,
        ) {
            let start = Stamp::from_nanos(u64::from(start));
            let mut pacer = Pacer::uniform(rate, start, phase, stride);
            let mut last = Stamp::ZERO;
            for step in 0..200 {
                let due = pacer.next();
                prop_assert_eq!(due, pacer.intended(phase + step * stride));
                prop_assert!(due >= last);
                last = due;
            }
        }

        #[test]
        fn threads_together_take_each_event_once(rate in any_rate(), threads in 1_u64..9) {
            let mut whole = Pacer::uniform(rate, Stamp::ZERO, 0, 1);
            let mut shares: Vec<Pacer> =
                (0..threads).map(|k| Pacer::uniform(rate, Stamp::ZERO, k, threads)).collect();
            for index in 0..100 {
                let share = &mut shares[usize::try_from(index % threads).unwrap()];
                prop_assert_eq!(share.index(), index);
                prop_assert_eq!(share.next(), whole.next());
            }
        }

        #[test]
        fn gaps_add_up_without_loss(gaps in prop::collection::vec(1.0_f64..1e12, 1..200)) {
            let mut pacer = GapPacer::new(Stamp::ZERO);
            let mut exact = 0;
            for gap in gaps {
                exact += in_fixed_point(gap);
                let due = pacer.after(gap);
                prop_assert_eq!(u128::from(due.as_nanos()), exact >> 64);
                prop_assert_eq!(pacer.last(), due);
            }
        }
    }
}
