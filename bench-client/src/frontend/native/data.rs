//! Options of the data: the key space, how it is visited, and the values written.

use std::num::NonZeroU64;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::quantity::{Call, bytes, count, decimal, share};
use crate::settings::{Content, KeyPattern, Settings, SizeDistribution};

/// The key space, how it is visited, and the values written.
#[derive(Args, Clone, Debug)]
#[group(skip)]
#[command(next_help_heading = "Data")]
pub struct DataArgs {
    /// Key space: a number of keys from 0, or FIRST-LAST [default: 10k]
    #[arg(long, value_name = "COUNT|FIRST-LAST")]
    pub keys: Option<KeyRange>,

    /// Text before the number of a key, which has 12 digits [default: key:]
    #[arg(long, value_name = "TEXT")]
    pub key_prefix: Option<String>,

    /// Order of the keys: sequential, uniform, zipf[(EXPONENT)], gaussian[(mean=F,deviation=F)],
    /// hot[(keys=F,operations=F)] or parallel; F is a share of the key space or of the requests,
    /// as in 0.2 or 20% [default: uniform]
    #[arg(long, value_name = "PATTERN", value_parser = key_pattern)]
    pub key_pattern: Option<KeyPattern>,

    /// Size of written values in bytes: 32, 1KiB; 10-1000 for uniform; 32:9,4KiB:1 for weighted;
    /// lognormal(median=100,sigma=1.5[,most=1MiB]) [default: 32]
    #[arg(long, value_name = "SIZE", value_parser = value_size)]
    pub value_size: Option<SizeDistribution>,

    /// What values are made of [default: random]
    #[arg(long, value_name = "KIND", value_enum)]
    pub value_content: Option<ContentArg>,

    /// Seed of all random choices; the same seed gives the same sequence of operations
    /// [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

/// First key and number of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Smallest key number.
    pub first: u64,
    /// How many.
    pub count: NonZeroU64,
}

/// What values are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ContentArg {
    /// Random bytes, which do not compress
    Random,
    /// Random lower-case letters and digits
    Text,
    /// The letter x, repeated
    Fill,
}

impl DataArgs {
    /// Writes what the options say into the settings.
    pub(super) fn apply(&self, settings: &mut Settings) {
        if let Some(keys) = self.keys {
            settings.keys.first = keys.first;
            settings.keys.count = keys.count;
            // The default width holds every number up to a trillion; beyond it keys grow.
            let last = keys.first.saturating_add(keys.count.get() - 1);
            if last.to_string().len() > usize::from(settings.keys.width) {
                settings.keys.width = 20;
            }
        }
        if let Some(prefix) = &self.key_prefix {
            settings.keys.prefix.clone_from(prefix);
        }
        if let Some(pattern) = self.key_pattern {
            settings.keys.pattern = pattern;
        }
        if let Some(size) = &self.value_size {
            settings.values.size = size.clone();
        }
        if let Some(content) = self.value_content {
            settings.values.content = match content {
                ContentArg::Random => Content::Random,
                ContentArg::Text => Content::Text,
                ContentArg::Fill => Content::Fill(b'x'),
            };
        }
        if let Some(seed) = self.seed {
            settings.seed = seed;
        }
    }
}

impl FromStr for KeyRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, keys) = match text.split_once('-') {
            None => (0, count(text)?),
            Some((first, last)) => {
                let (first, last) = (count(first)?, count(last)?);
                let keys = last
                    .checked_sub(first)
                    .and_then(|span| span.checked_add(1))
                    .ok_or_else(|| format!("expected FIRST up to LAST, found {text:?}"))?;
                (first, keys)
            }
        };
        let count = NonZeroU64::new(keys).ok_or("expected at least 1 key")?;
        Ok(Self { first, count })
    }
}

fn key_pattern(text: &str) -> Result<KeyPattern, String> {
    let call = Call::parse(text)?;
    match call.name {
        "sequential" => call.arguments([]).map(|[]| KeyPattern::Sequential),
        "uniform" => call.arguments([]).map(|[]| KeyPattern::Uniform),
        "parallel" => call.arguments([]).map(|[]| KeyPattern::Parallel),
        "zipf" => {
            let [exponent] = call.arguments(["exponent"])?;
            Ok(KeyPattern::Zipf {
                exponent: number_or(exponent, 0.99)?,
            })
        }
        "gaussian" => {
            let [mean, deviation] = call.arguments(["mean", "deviation"])?;
            Ok(KeyPattern::Gaussian {
                mean: mean.map_or(Ok(0.5), share)?,
                deviation: deviation.map_or(Ok(0.1), share)?,
            })
        }
        "hot" => {
            let [keys, operations] = call.arguments(["keys", "operations"])?;
            Ok(KeyPattern::HotSet {
                keys: keys.map_or(Ok(0.2), share)?,
                operations: operations.map_or(Ok(0.8), share)?,
            })
        }
        other => Err(format!(
            "expected sequential, uniform, zipf, gaussian, hot or parallel, found {other:?}"
        )),
    }
}

fn value_size(text: &str) -> Result<SizeDistribution, String> {
    if text.starts_with("lognormal") {
        return lognormal(text);
    }
    if text.contains(':') {
        let pairs = text.split(',').map(|pair| {
            let (size, weight) = pair
                .split_once(':')
                .ok_or_else(|| format!("expected SIZE:WEIGHT, found {pair:?}"))?;
            let weight = weight
                .parse()
                .map_err(|_| format!("expected a whole number as weight, found {weight:?}"))?;
            Ok((bytes(size)?, weight))
        });
        return Ok(SizeDistribution::Weighted(
            pairs.collect::<Result<_, String>>()?,
        ));
    }
    match text.split_once('-') {
        Some((least, most)) => Ok(SizeDistribution::Uniform {
            least: bytes(least)?,
            most: bytes(most)?,
        }),
        None => Ok(SizeDistribution::Fixed(bytes(text)?)),
    }
}

fn lognormal(text: &str) -> Result<SizeDistribution, String> {
    let call = Call::parse(text)?;
    if call.name != "lognormal" {
        return Err(format!("expected lognormal, found {:?}", call.name));
    }
    let [median, sigma, most] = call.arguments(["median", "sigma", "most"])?;
    let median = median.ok_or("lognormal needs a median")?;
    Ok(SizeDistribution::Lognormal {
        median: f64::from(bytes(median)?),
        sigma: number_or(sigma, 1.0)?,
        most: most.map_or(Ok(DEFAULT_LOGNORMAL_MOST), bytes)?,
    })
}

fn number_or(text: Option<&str>, default: f64) -> Result<f64, String> {
    text.map_or(Ok(default), |text| {
        decimal(text).ok_or_else(|| format!("expected a decimal number, found {text:?}"))
    })
}

/// Upper bound of lognormal sizes without `most`.
const DEFAULT_LOGNORMAL_MOST: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_ranges_have_both_forms() {
        let range = |first, count| {
            Ok(KeyRange {
                first,
                count: NonZeroU64::new(count).unwrap(),
            })
        };
        assert_eq!("10k".parse(), range(0, 10_000));
        assert_eq!("5-5".parse(), range(5, 1));
        assert_eq!("1-10M".parse(), range(1, 10_000_000));
        for text in ["0", "", "9-8", "-5", "5-", "x"] {
            assert!(text.parse::<KeyRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn key_patterns_are_read() {
        let table = [
            ("sequential", KeyPattern::Sequential),
            ("uniform", KeyPattern::Uniform),
            ("parallel", KeyPattern::Parallel),
            ("zipf", KeyPattern::Zipf { exponent: 0.99 }),
            ("zipf(1.2)", KeyPattern::Zipf { exponent: 1.2 }),
            (
                "gaussian(mean=0.25)",
                KeyPattern::Gaussian {
                    mean: 0.25,
                    deviation: 0.1,
                },
            ),
            (
                "hot(keys=1%,operations=95%)",
                KeyPattern::HotSet {
                    keys: 0.01,
                    operations: 0.95,
                },
            ),
        ];
        for (text, pattern) in table {
            assert_eq!(key_pattern(text), Ok(pattern), "{text}");
        }
        for text in ["", "random", "zipf(x)", "hot(keys=2)", "uniform(1)"] {
            assert!(key_pattern(text).is_err(), "{text}");
        }
    }

    #[test]
    fn value_sizes_are_read() {
        let table = [
            ("0", SizeDistribution::Fixed(0)),
            ("1KiB", SizeDistribution::Fixed(1024)),
            (
                "10-1000",
                SizeDistribution::Uniform {
                    least: 10,
                    most: 1000,
                },
            ),
            (
                "32:9,4KiB:1",
                SizeDistribution::Weighted(vec![(32, 9), (4096, 1)]),
            ),
            (
                "lognormal(median=100,sigma=1.5,most=64KiB)",
                SizeDistribution::Lognormal {
                    median: 100.0,
                    sigma: 1.5,
                    most: 65_536,
                },
            ),
        ];
        for (text, size) in table {
            assert_eq!(value_size(text), Ok(size), "{text}");
        }
        for text in ["", "x", "10-", "32:", "lognormal", "lognormals(median=1)"] {
            assert!(value_size(text).is_err(), "{text}");
        }
    }
}
