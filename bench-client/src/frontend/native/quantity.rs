//! Numbers and small expressions as people type them on a command line.
//!
//! ```text
//! count    10000   10k   2M   1G        powers of a thousand
//! size     32   4kB   4KiB   1MiB      bytes
//! share    0.25   25%                  0 to 1
//! call     zipf   zipf(0.99)   gaussian(mean=0.5,deviation=0.1)
//! ```

use std::time::Duration;

use kvlab_timing::duration;

/// A whole number with an optional `k`, `M` or `G`.
pub(super) fn count(text: &str) -> Result<u64, String> {
    scaled(
        text,
        &[("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)],
    )
    .ok_or_else(|| "expected a whole number, with k, M or G for thousands".to_owned())
}

/// A number of bytes with an optional unit.
pub(super) fn bytes(text: &str) -> Result<u32, String> {
    let units = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("B", 1),
    ];
    scaled(text, &units)
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| format!("expected bytes, as in 32, 4kB, 4KiB or 1MiB, found {text:?}"))
}

/// A fraction between 0 and 1, or a percentage.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => decimal(percent).map(|percent| percent / 100.0),
        None => decimal(text),
    };
    number
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("expected a share, as in 0.2 or 20%, found {text:?}"))
}

/// A finite decimal number from 0.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if digits && plain {
        text.parse().ok()
    } else {
        None
    }
}

/// A duration with its unit.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

/// A duration with its unit, longer than 0.
pub(super) fn positive_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("expected a time longer than 0".to_owned()),
        time => Ok(time),
    }
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "" => 1,
        _ => units.iter().find(|(name, _)| *name == unit)?.1,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// `name`, `name(value)` or `name(key=value,key=value)`, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    /// What stands before the parentheses.
    pub(super) name: &'a str,
    arguments: Vec<(&'a str, &'a str)>,
}

impl<'a> Call<'a> {
    /// Takes a call apart. An argument without a key gets the empty one.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Self {
                name: text.trim(),
                arguments: Vec::new(),
            });
        };
        let inside = rest
            .strip_suffix(')')
            .ok_or_else(|| format!("expected a closing parenthesis, found {text:?}"))?;
        let arguments = inside
            .split(',')
            .map(|argument| match argument.split_once('=') {
                Some((key, value)) => (key.trim(), value.trim()),
                None => ("", argument.trim()),
            })
            .collect();
        Ok(Self {
            name: name.trim(),
            arguments,
        })
    }

    /// The arguments under these keys, in this order, each at most once. A single argument may
    /// leave its key out when only one is possible.
    pub(super) fn arguments<const N: usize>(
        &self,
        keys: [&str; N],
    ) -> Result<[Option<&'a str>; N], String> {
        let mut found = [None; N];
        for (key, value) in &self.arguments {
            let place = if key.is_empty() && N == 1 {
                Some(0)
            } else {
                keys.iter().position(|name| name == key)
            };
            match place.and_then(|place| found.get_mut(place)) {
                Some(slot @ None) => *slot = Some(*value),
                Some(Some(_)) => return Err(format!("{}: {key} given twice", self.name)),
                None if N == 0 => return Err(format!("{} takes no argument", self.name)),
                None => {
                    return Err(format!(
                        "{} takes {}, found {key:?}",
                        self.name,
                        keys.join(", ")
                    ));
                }
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_scale_by_thousands() {
        for (text, number) in [
            ("0", 0),
            ("17", 17),
            ("10k", 10_000),
            ("2M", 2_000_000),
            ("1G", 1_000_000_000),
        ] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for text in ["", "k", "-1", "1.5k", "1K", "1 k", "20000000000G"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_know_both_kinds_of_units() {
        for (text, number) in [
            ("32", 32),
            ("32B", 32),
            ("4kB", 4_000),
            ("4KiB", 4_096),
            ("1MiB", 1_048_576),
            ("3MB", 3_000_000),
        ] {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        for text in ["", "1k", "5GiB", "4294967296", "1.5KiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_fractions_or_percentages() {
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("25%"), Ok(0.25));
        assert_eq!(share("1"), Ok(1.0));
        for text in ["1.01", "101%", "-0.1", "nan", "inf", "", "%", ".", "1e-1"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn calls_give_their_arguments_by_key() {
        let call = Call::parse("gaussian( deviation=0.1, mean=0.5)").unwrap();
        assert_eq!(call.name, "gaussian");
        assert_eq!(
            call.arguments(["mean", "deviation"]),
            Ok([Some("0.5"), Some("0.1")])
        );
        let zipf = Call::parse("zipf(0.99)").unwrap();
        assert_eq!(zipf.arguments(["exponent"]), Ok([Some("0.99")]));
        assert_eq!(
            Call::parse("zipf").unwrap().arguments(["exponent"]),
            Ok([None])
        );
    }

    #[test]
    fn calls_refuse_what_they_do_not_know() {
        assert!(Call::parse("zipf(1").is_err());
        let twice = Call::parse("hot(keys=1,keys=1)").unwrap();
        assert!(twice.arguments(["keys", "operations"]).is_err());
        let unknown = Call::parse("hot(key=1)").unwrap();
        assert!(unknown.arguments(["keys", "operations"]).is_err());
        let none = Call::parse("uniform(3)").unwrap();
        assert!(none.arguments([]).is_err());
    }
}
