//! Durations as people write them: `300us`, `1.5ms`, `2s`, `1h`.
//!
//! One number and one unit, exact to the nanosecond; only a bare `0` needs no unit. Every option and
//! configuration key of kvlab that takes a time reads it here.

use std::fmt;
use std::time::Duration;

use crate::clock::NANOS_PER_SECOND;

/// Reads a duration: a decimal number and one of `ns`, `us` (or `µs`), `ms`, `s`, `m`, `h`.
///
/// ```
/// use std::time::Duration;
/// use kvlab_timing::duration;
///
/// assert_eq!(duration::parse("1.5ms")?, Duration::from_micros(1_500));
/// assert_eq!(duration::format(Duration::from_micros(1_500)), "1.5ms");
/// # Ok::<(), duration::DurationError>(())
/// ```
///
/// # Errors
///
/// When it is not of that form, not a whole number of nanoseconds, or longer than 584 years.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let given = || text.to_owned();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(DurationError::Syntax { text: given() });
    }
    let unit_ns = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, unit_ns)) => *unit_ns,
        None if unit.is_empty() && is_zero(whole) && is_zero(fraction) => 1,
        None if unit.is_empty() => return Err(DurationError::NoUnit { text: given() }),
        None => return Err(DurationError::Syntax { text: given() }),
    };
    let whole: u64 = whole
        .parse()
        .map_err(|_| DurationError::TooLong { text: given() })?;
    let below_ns =
        fraction_of(fraction, unit_ns).ok_or(DurationError::TooFine { text: given() })?;
    whole
        .checked_mul(unit_ns)
        .and_then(|nanos| nanos.checked_add(below_ns))
        .map(Duration::from_nanos)
        .ok_or(DurationError::TooLong { text: given() })
}

/// Writes a duration in the largest unit that suits, with all its digits: `1ms`, `1.5ms`, `90s`,
/// `2h`, `0`. [`parse`] reads the same duration back (up to its limit of 584 years).
pub fn format(duration: Duration) -> String {
    Human(duration).to_string()
}

/// Prints a duration as [`format()`] does, without a string in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Human(pub Duration);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let (name, unit_ns) = match nanos {
            0 => return f.write_str("0"),
            // Minutes and hours only when they come out whole: 90s reads better than 1.5m.
            _ if nanos.is_multiple_of(u128::from(HOUR)) => ("h", HOUR),
            _ if nanos.is_multiple_of(u128::from(MINUTE)) => ("m", MINUTE),
            1_000_000_000.. => ("s", NANOS_PER_SECOND),
            1_000_000.. => ("ms", 1_000_000),
            1_000.. => ("us", 1_000),
            _ => ("ns", 1),
        };
        let unit_ns = u128::from(unit_ns);
        write!(f, "{}", nanos / unit_ns)?;
        let below = nanos % unit_ns;
        if below > 0 {
            // The units that can leave a rest are powers of ten.
            let width = usize::try_from(unit_ns.ilog10()).unwrap_or_default();
            let decimals = format!("{below:0width$}");
            write!(f, ".{}", decimals.trim_end_matches('0'))?;
        }
        f.write_str(name)
    }
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// Not a number followed by a unit.
    #[error(
        "'{text}' is not a duration: expected a number and a unit (ns, us, ms, s, m, h), as in 1.5ms"
    )]
    Syntax {
        /// What was given.
        text: String,
    },
    /// A number without unit.
    #[error("'{text}' lacks a unit: expected ns, us, ms, s, m or h, as in {text}ms")]
    NoUnit {
        /// What was given.
        text: String,
    },
    /// More digits than nanoseconds have.
    #[error("'{text}' is finer than a nanosecond: expected a whole number of nanoseconds")]
    TooFine {
        /// What was given.
        text: String,
    },
    /// More than 2^64 nanoseconds.
    #[error("'{text}' is too long: expected at most 584 years")]
    TooLong {
        /// What was given.
        text: String,
    },
}

fn is_zero(digits: &str) -> bool {
    digits.bytes().all(|digit| digit == b'0')
}

/// Nanoseconds of the decimals `digits` of a unit, if they are whole.
fn fraction_of(digits: &str, unit_ns: u64) -> Option<u64> {
    let digits = digits.trim_end_matches('0');
    let decimals = u32::try_from(digits.len())
        .ok()
        .filter(|decimals| *decimals <= MAX_DECIMALS)?;
    let value: u128 = format!("0{digits}").parse().ok()?;
    let scaled = value * u128::from(unit_ns);
    let power = 10_u128.pow(decimals);
    scaled
        .is_multiple_of(power)
        .then(|| u64::try_from(scaled / power).ok())
        .flatten()
}

const MINUTE: u64 = 60 * NANOS_PER_SECOND;
const HOUR: u64 = 60 * MINUTE;

/// An hour is 2^13 * 3^2 * 5^11 ns: with more decimals (not ending in 0) no unit comes out whole.
const MAX_DECIMALS: u32 = 13;

const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", MINUTE),
    ("h", HOUR),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_to_the_nanosecond() {
        for (text, nanos) in [
            ("0", 0),
            ("0.00", 0),
            ("0ns", 0),
            ("20ns", 20),
            ("300us", 300_000),
            ("300µs", 300_000),
            ("1ms", 1_000_000),
            ("1.5ms", 1_500_000),
            ("0.000001ms", 1),
            ("1.0000000000000ns", 1),
            ("2.5s", 2_500_000_000),
            ("150ms", 150_000_000),
            ("1m", 60_000_000_000),
            ("1h", 3_600_000_000_000),
            ("0.0000000000025h", 9),
            ("18446744073709551615ns", u64::MAX),
            ("18446744073.709551615s", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_what_was_expected() {
        let owned = |text: &str| text.to_owned();
        for text in [
            "", "ms", ".5ms", "1.ms", "1..2s", "1.2.3s", "-1s", "+1s", "1 ms", "1e3s", "1d", "1Ms",
        ] {
            assert_eq!(
                parse(text),
                Err(DurationError::Syntax { text: owned(text) })
            );
        }
        for text in ["1", "0.5", "00.001"] {
            assert_eq!(
                parse(text),
                Err(DurationError::NoUnit { text: owned(text) })
            );
        }
        for text in [
            "0.5ns",
            "1.0001us",
            "0.00000000000001h",
            "0.000000000000000000001s",
        ] {
            assert_eq!(
                parse(text),
                Err(DurationError::TooFine { text: owned(text) })
            );
        }
        for text in [
            "18446744073709551616ns",
            "18446744073.709551616s",
            "9999999h",
        ] {
            assert_eq!(
                parse(text),
                Err(DurationError::TooLong { text: owned(text) })
            );
        }
        assert_eq!(
            parse("10").unwrap_err().to_string(),
            "'10' lacks a unit: expected ns, us, ms, s, m or h, as in 10ms"
        );
    }

    #[test]
    fn durations_print_in_the_unit_that_suits() {
        for (nanos, text) in [
            (0, "0"),
            (999, "999ns"),
            (1_000, "1us"),
            (1_001, "1.001us"),
            (1_000_000, "1ms"),
            (1_500_000, "1.5ms"),
            (999_999_999, "999.999999ms"),
            (1_000_000_001, "1.000000001s"),
            (60_000_000_000, "1m"),
            (90_000_000_000, "90s"),
            (5_400_000_000_000, "90m"),
            (7_200_000_000_000, "2h"),
        ] {
            assert_eq!(format(Duration::from_nanos(nanos)), text);
        }
    }

    proptest! {
        #[test]
        fn a_printed_duration_parses_back(
            nanos in prop_oneof![any::<u64>(), 0_u64..10_000_000_000, 0_u64..2_000_000],
        ) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9.]{0,30}[a-zµ]{0,3}") {
            let _ = parse(&text);
        }
    }
}
