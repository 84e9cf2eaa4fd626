//! Rates as exact fractions, and the arithmetic that turns them into moments.

mod pace;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::clock::NANOS_PER_SECOND;

pub use pace::{GapPacer, Pacer};

/// Events per second: an exact positive fraction in lowest terms.
///
/// The text form is a decimal number with an optional `k` or `M`, within 0.1 and 10 million, the
/// range of load the generator offers. Rates made from numbers may lie outside of it (bytes per
/// second of a bandwidth limit, say).
///
/// ```
/// use kvlab_timing::Rate;
///
/// let rate: Rate = "2.5k".parse()?;
/// assert_eq!(rate, Rate::per_second(2_500)?);
/// assert_eq!(rate.to_string(), "2500");
/// assert!("20M".parse::<Rate>().is_err());
/// # Ok::<(), kvlab_timing::RateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    num: u64,
    den: u64,
}

impl Rate {
    /// The smallest rate the text form accepts: one event in ten seconds.
    pub const MIN: Rate = Rate { num: 1, den: 10 };
    /// The largest rate the text form accepts: ten million per second.
    pub const MAX: Rate = Rate {
        num: 10_000_000,
        den: 1,
    };

    /// `num / den` events per second.
    ///
    /// # Errors
    ///
    /// When either is 0, or the denominator in lowest terms is above 10^10 (which keeps all the
    /// arithmetic on rates free of overflow).
    pub fn new(num: u64, den: u64) -> Result<Rate, RateError> {
        if num == 0 || den == 0 {
            return Err(RateError::NotPositive);
        }
        let divisor = greatest_common_divisor(num, den);
        let rate = Rate {
            num: num / divisor,
            den: den / divisor,
        };
        if rate.den > MAX_DENOMINATOR {
            return Err(RateError::TooFine);
        }
        Ok(rate)
    }

    /// `events` per second.
    ///
    /// # Errors
    ///
    /// When `events` is 0.
    pub fn per_second(events: u64) -> Result<Rate, RateError> {
        Rate::new(events, 1)
    }

    /// `events` in each `period`: 200 per 500 ms is 400 per second.
    ///
    /// # Errors
    ///
    /// When either is 0, or the fraction does not fit (see [`Rate::new`]).
    pub fn per_period(events: u64, period: Duration) -> Result<Rate, RateError> {
        let period_ns = u64::try_from(period.as_nanos()).map_err(|_| RateError::TooFine)?;
        // Reduced before it is multiplied, so that only a result that does not fit is refused.
        let second = greatest_common_divisor(NANOS_PER_SECOND, period_ns.max(1));
        let (second, period) = (NANOS_PER_SECOND / second, period_ns / second);
        let common = greatest_common_divisor(events.max(1), period.max(1));
        let num = (events / common)
            .checked_mul(second)
            .ok_or(RateError::TooFine)?;
        Rate::new(num, period / common)
    }

    /// Numerator in lowest terms: events in [`Rate::denominator`] seconds.
    pub const fn numerator(self) -> u64 {
        self.num
    }

    /// Denominator in lowest terms: the seconds in which [`Rate::numerator`] events happen.
    pub const fn denominator(self) -> u64 {
        self.den
    }

    /// The nearest floating-point number of events per second, for reports.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the nearest value is what is promised"
    )]
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }

    /// Mean time between events in nanoseconds, as a floating-point number: the scale of random
    /// gaps. For exact moments use a [`Pacer`].
    #[expect(
        clippy::cast_precision_loss,
        reason = "the nearest value is what is promised"
    )]
    pub fn mean_gap_ns(self) -> f64 {
        // Exact in u128; one rounding each for the two conversions and the division.
        (u128::from(self.den) * u128::from(NANOS_PER_SECOND)) as f64 / self.num as f64
    }

    /// `count` events take `floor(count * self.gap_num() / self.num)` nanoseconds. At most 10^19.
    fn gap_num(self) -> u128 {
        u128::from(self.den) * u128::from(NANOS_PER_SECOND)
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Rate, RateError> {
        let syntax = || RateError::Syntax {
            text: text.to_owned(),
        };
        let (number, scale) = match text.strip_suffix(['k', 'K']) {
            Some(number) => (number, 1_000),
            None => match text.strip_suffix('M') {
                Some(number) => (number, 1_000_000),
                None => (text, 1),
            },
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(syntax());
        }
        let fraction = fraction.trim_end_matches('0');
        let out_of_range = || RateError::OutOfRange {
            text: text.to_owned(),
        };
        let decimals = u32::try_from(fraction.len()).map_err(|_| RateError::TooFine)?;
        if decimals > MAX_DECIMALS {
            return Err(RateError::TooFine);
        }
        let den = 10_u64.pow(decimals);
        let fraction: u64 = format!("0{fraction}").parse().map_err(|_| syntax())?;
        let whole: u64 = whole.parse().map_err(|_| out_of_range())?;
        let num = whole
            .checked_mul(den)
            .and_then(|num| num.checked_add(fraction))
            .and_then(|num| num.checked_mul(scale))
            .ok_or_else(out_of_range)?;
        if num == 0 {
            return Err(out_of_range());
        }
        let rate = Rate::new(num, den)?;
        if rate < Rate::MIN || rate > Rate::MAX {
            return Err(out_of_range());
        }
        Ok(rate)
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Rate) -> std::cmp::Ordering {
        let left = u128::from(self.num) * u128::from(other.den);
        left.cmp(&(u128::from(other.num) * u128::from(self.den)))
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Rate) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Events per second as a decimal number; with a finite decimal expansion it is exact and parses
/// back, else it is cut after nine decimals.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.num / self.den)?;
        let fraction = u128::from(self.num % self.den) * 10_u128.pow(MAX_DECIMALS);
        let decimals = format!("{:09}", fraction / u128::from(self.den));
        match decimals.trim_end_matches('0') {
            "" => Ok(()),
            decimals => write!(f, ".{decimals}"),
        }
    }
}

/// Why a rate is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// The text is not a number of the accepted form.
    #[error(
        "'{text}' is not a rate: expected a number such as 1000, 0.1, 2.5k or 10M (per second)"
    )]
    Syntax {
        /// What was given.
        text: String,
    },
    /// The number is one, but too small or too large.
    #[error("'{text}' is out of range: expected a rate from 0.1 to 10M per second")]
    OutOfRange {
        /// What was given.
        text: String,
    },
    /// Nothing per second, or anything in no time.
    #[error("a rate needs at least one event and a period above zero")]
    NotPositive,
    /// The fraction has more digits than the arithmetic can carry exactly.
    #[error("the rate is too fine to be exact: at most 9 decimals, or a denominator up to 10^10")]
    TooFine,
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Ten seconds in nanoseconds. With it `count * gap_num` for any 64-bit count stays below 2^127.
const MAX_DENOMINATOR: u64 = 10 * NANOS_PER_SECOND;

const MAX_DECIMALS: u32 = 9;
