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

/// The shortest text that [`parse`] reads back as the same duration, in the largest unit that suits:
/// `1ms`, `1.5ms`, `90s`, `2h`, `0`.
pub fn format(duration: Duration) -> String {
    Human(duration).to_string()
}

/// Prints a duration as [`format`] does, without a string in between.
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
    // An hour is 3.6 * 10^12 ns = 2^13 * ..., so thirteen decimals can still be whole.
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
const MAX_DECIMALS: u32 = 15;

const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", MINUTE),
    ("h", HOUR),
];
