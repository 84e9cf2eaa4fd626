//! Numbers, ranges and lists as the options take them.
//!
//! ```text
//! 10000          digits alone: no sign, no unit, nothing behind them
//! 10-200         a range; the ends may come in either order
//! 1:10           a ratio
//! 32:9,1024:1    sizes by weight
//! 50,99,99.9     percentiles
//! ```
//!
//! The original reads numbers with `strtoul`, where `-1` becomes four billion and a port of 70000
//! becomes 4464. Here what does not fit is an error that names the option and its bounds.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::UsageError;
use super::table::Name;

/// A whole number within bounds.
///
/// # Errors
/// Anything but digits, or a number outside of the bounds.
pub fn whole<T>(name: Name, text: &str, bounds: RangeInclusive<T>) -> Result<T, UsageError>
where
    T: FromStr + PartialOrd + Display,
{
    digits(text)
        .filter(|number| bounds.contains(number))
        .ok_or_else(|| {
            let (least, most) = (bounds.start(), bounds.end());
            UsageError::new(
                name.spelled(),
                format!("a whole number from {least} to {most}"),
                format_args!("{text:?}"),
            )
        })
}

/// A number with an optional fraction, above `above` and below or at `most`.
///
/// # Errors
/// Anything else.
pub fn decimal(name: Name, text: &str, above: f64, most: f64) -> Result<f64, UsageError> {
    plain_decimal(text)
        .filter(|number| *number > above && *number <= most)
        .ok_or_else(|| {
            let bounds = if most.is_finite() {
                format!("a number above {above}, at most {most}")
            } else {
                format!("a number above {above}")
            };
            UsageError::new(name.spelled(), bounds, format_args!("{text:?}"))
        })
}

/// Two whole numbers in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The smaller.
    pub least: u32,
    /// The larger.
    pub most: u32,
}

impl Range {
    /// A range whose smaller end is at least `least` and whose larger end is above 0.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(name: Name, text: &str, least: u32, most: u32) -> Result<Self, UsageError> {
        let ends = text.split_once('-').and_then(|(one, other)| {
            let (one, other) = (digits::<u32>(one)?, digits::<u32>(other)?);
            Some(Self {
                least: one.min(other),
                most: one.max(other),
            })
        });
        ends.filter(|range| range.least >= least && range.most >= 1 && range.most <= most)
            .ok_or_else(|| {
                UsageError::new(
                    name.spelled(),
                    format!("two numbers MIN-MAX from {least} to {most}, the larger above 0"),
                    format_args!("{text:?}"),
                )
            })
    }
}

/// So many of one, then so many of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The number before the colon.
    pub first: u32,
    /// The number behind it.
    pub second: u32,
}

impl Ratio {
    /// Two numbers that are not both 0.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(name: Name, text: &str) -> Result<Self, UsageError> {
        text.split_once(':')
            .and_then(|(first, second)| {
                Some(Self {
                    first: digits(first)?,
                    second: digits(second)?,
                })
            })
            .filter(|ratio| ratio.first > 0 || ratio.second > 0)
            .ok_or_else(|| {
                UsageError::new(
                    name.spelled(),
                    "two whole numbers A:B, not both 0",
                    format_args!("{text:?}"),
                )
            })
    }
}

/// Sizes with their weights, in the order given; at least one weight is above 0.
///
/// # Errors
/// Anything else than `SIZE:WEIGHT` parted by commas, or sizes outside of 1 to `most`.
pub fn sizes(name: Name, text: &str, most: u32) -> Result<Vec<(u32, u32)>, UsageError> {
    let list: Option<Vec<(u32, u32)>> = text
        .split(',')
        .map(|item| {
            let (size, weight) = item.split_once(':')?;
            let (size, weight) = (digits::<u32>(size)?, digits::<u32>(weight)?);
            (1..=most).contains(&size).then_some((size, weight))
        })
        .collect();
    list.filter(|list| list.iter().any(|(_, weight)| *weight > 0))
        .ok_or_else(|| {
            UsageError::new(
                name.spelled(),
                format!(
                    "SIZE:WEIGHT,SIZE:WEIGHT,… with sizes from 1 to {most} and a weight above 0"
                ),
                format_args!("{text:?}"),
            )
        })
}

/// Percentiles between 0 and 100, in the order given.
///
/// # Errors
/// Anything else. The original takes 150 and shows the maximum for it.
pub fn percentiles(name: Name, text: &str) -> Result<Vec<f64>, UsageError> {
    text.split(',')
        .map(|item| plain_decimal(item).filter(|percentile| *percentile <= 100.0))
        .collect::<Option<_>>()
        .ok_or_else(|| {
            UsageError::new(
                name.spelled(),
                "numbers from 0 to 100, parted by commas",
                format_args!("{text:?}"),
            )
        })
}

/// Digits and nothing else. `FromStr` of the whole numbers takes a plus sign too.
fn digits<T: FromStr>(text: &str) -> Option<T> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Digits with at most one point. `FromStr` of the floating numbers takes `nan` and `1e9` too.
fn plain_decimal(text: &str) -> Option<f64> {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let some = text.bytes().any(|byte| byte.is_ascii_digit());
    (plain && some).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_digits_within_bounds() {
        assert_eq!(whole(Name::Port, "1", 1..=65_535_u16), Ok(1));
        assert_eq!(whole(Name::Port, "65535", 1..=65_535_u16), Ok(65_535));
        for text in [
            "0", "65536", "70000", "-1", "+1", "", " 1", "1 ", "0x10", "1e3", "10k",
        ] {
            let error = whole(Name::Port, text, 1..=65_535_u16).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("--port: expected a whole number from 1 to 65535, found {text:?}")
            );
        }
    }

    #[test]
    fn decimals_have_no_exponent_and_no_sign() {
        let read = |text| decimal(Name::KeyZipfExp, text, 0.0, 4.999);
        assert_eq!(read("0.99"), Ok(0.99));
        assert_eq!(read("2"), Ok(2.0));
        for text in ["0", "5", "-1", "nan", "inf", "1e0", "", ".", "1.2.3"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_may_be_given_in_either_order() {
        let read = |text| Range::parse(Name::DataSizeRange, text, 1, 1000);
        assert_eq!(
            read("10-200"),
            Ok(Range {
                least: 10,
                most: 200
            })
        );
        assert_eq!(
            read("200-10"),
            Ok(Range {
                least: 10,
                most: 200
            })
        );
        assert_eq!(read("7-7"), Ok(Range { least: 7, most: 7 }));
        for text in ["0-5", "10", "-", "1-", "-5", "1-2-3", "1-1001", "a-b"] {
            assert!(read(text).is_err(), "{text}");
        }
        let wait = |text| Range::parse(Name::NumSlaves, text, 0, 1000);
        assert_eq!(wait("0-1"), Ok(Range { least: 0, most: 1 }));
        // As with the original, a range of zeros says nothing.
        assert!(wait("0-0").is_err());
    }

    #[test]
    fn ratios_are_not_all_zero() {
        let read = |text| Ratio::parse(Name::Ratio, text);
        assert_eq!(
            read("1:10"),
            Ok(Ratio {
                first: 1,
                second: 10
            })
        );
        assert_eq!(
            read("0:1"),
            Ok(Ratio {
                first: 0,
                second: 1
            })
        );
        for text in ["0:0", "1", "1:", ":1", "1:2:3", "-1:1", "1:4294967296"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn size_lists_keep_their_order() {
        let read = |text| sizes(Name::DataSizeList, text, 1000);
        assert_eq!(read("32:9,1000:1"), Ok(vec![(32, 9), (1000, 1)]));
        assert_eq!(read("5:0,6:1"), Ok(vec![(5, 0), (6, 1)]));
        for text in ["", "32", "32:", "32:0", "0:1", "1001:1", "32:1,", "a:1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percentiles_lie_between_0_and_100() {
        let read = |text| percentiles(Name::PrintPercentiles, text);
        assert_eq!(read("50,99,99.9"), Ok(vec![50.0, 99.0, 99.9]));
        assert_eq!(read("0,100"), Ok(vec![0.0, 100.0]));
        for text in ["", "150", "-1", "50,", "nan", "50;99"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
