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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn rates_are_read_exactly() {
        for (text, num, den) in [
            ("1000", 1_000, 1),
            ("0.1", 1, 10),
            ("0.10", 1, 10),
            ("2.5k", 2_500, 1),
            ("2.5K", 2_500, 1),
            ("10M", 10_000_000, 1),
            ("0.00001M", 10, 1),
            ("0.333333333", 333_333_333, 1_000_000_000),
            ("1234.5678", 6_172_839, 5_000),
            ("007", 7, 1),
        ] {
            let rate = rate(text);
            assert_eq!((rate.numerator(), rate.denominator()), (num, den), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_what_was_expected() {
        let kind = |text: &str| text.parse::<Rate>().unwrap_err();
        for text in [
            "", ".", "1.", ".5", "k", "-1", "+1", "1e3", "1 k", "1kk", "1.2.3", "1m", "inf",
        ] {
            assert_eq!(
                kind(text),
                RateError::Syntax {
                    text: text.to_owned()
                }
            );
        }
        let huge = "99999999999999999999";
        for text in [
            "0",
            "0.0",
            "0.09",
            "0.099999999",
            "10.1M",
            "10000000.1",
            huge,
            "9999999999M",
        ] {
            assert_eq!(
                kind(text),
                RateError::OutOfRange {
                    text: text.to_owned()
                }
            );
        }
        assert_eq!(kind("1.0000000001"), RateError::TooFine);
        assert_eq!(
            kind("fast").to_string(),
            "'fast' is not a rate: expected a number such as 1000, 0.1, 2.5k or 10M (per second)"
        );
    }

    #[test]
    fn a_rate_from_a_period_is_the_reduced_fraction() {
        let per = |events, period| Rate::per_period(events, period);
        assert_eq!(per(200, Duration::from_millis(500)), Rate::new(400, 1));
        assert_eq!(per(1, Duration::from_secs(10)), Ok(Rate::MIN));
        assert_eq!(per(7, Duration::from_nanos(3)), Rate::new(7_000_000_000, 3));
        // More events than 64 bits could count in nanoseconds, but the fraction fits.
        assert_eq!(
            per(u64::MAX, Duration::from_secs(1)),
            Rate::new(u64::MAX, 1)
        );
        assert_eq!(
            per(u64::MAX, Duration::from_nanos(1)),
            Err(RateError::TooFine)
        );
        assert_eq!(per(0, Duration::from_secs(1)), Err(RateError::NotPositive));
        assert_eq!(per(1, Duration::ZERO), Err(RateError::NotPositive));
        assert_eq!(per(1, Duration::MAX), Err(RateError::TooFine));
    }

    #[test]
    fn the_denominator_is_bounded_in_lowest_terms() {
        assert!(Rate::new(1, 10_000_000_000).is_ok());
        assert_eq!(Rate::new(1, 10_000_000_001), Err(RateError::TooFine));
        assert_eq!(Rate::new(3, 30_000_000_000), Rate::new(1, 10_000_000_000));
        assert_eq!(Rate::new(0, 1), Err(RateError::NotPositive));
        assert_eq!(Rate::new(1, 0), Err(RateError::NotPositive));
    }

    #[test]
    fn rates_are_ordered_by_value() {
        assert!(rate("0.3") < rate("0.333333333"));
        assert!(Rate::new(1, 3).unwrap() > rate("0.333333333"));
        assert!(rate("999999.999999999") < rate("1M"));
    }

    #[test]
    fn floating_point_values_are_the_nearest() {
        // Literals, rounded by the compiler: 10^8 / 3 is nearest to 33333333.33333333209...
        assert!(rate("0.1").as_f64().to_bits() == 0.1_f64.to_bits());
        assert!(rate("2.5k").mean_gap_ns().to_bits() == 400_000_f64.to_bits());
        let third = Rate::new(30, 1).unwrap().mean_gap_ns();
        assert!(third.to_bits() == 33_333_333.333_333_332_f64.to_bits());
    }

    #[test]
    fn an_endless_decimal_is_cut_when_printed() {
        assert_eq!(Rate::new(2, 3).unwrap().to_string(), "0.666666666");
        assert_eq!(Rate::new(1, 10_000_000_000).unwrap().to_string(), "0");
        assert_eq!(rate("1234.50").to_string(), "1234.5");
    }

    proptest! {
        #[test]
        fn a_printed_rate_parses_back(billionths in 100_000_000_u64..=10_000_000_000_000_000) {
            let rate = Rate::new(billionths, 1_000_000_000).unwrap();
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9.kM+-]{0,24}") {
            if let Ok(rate) = text.parse::<Rate>() {
                prop_assert!(Rate::MIN <= rate && rate <= Rate::MAX);
            }
        }
    }
}
