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
