//! Delays as they were measured somewhere: a law from quantiles or from a histogram.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kvlab_timing::duration::Human;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::counts::Counts;
use super::curve::{Curve, Point};
use super::{LawError, files};
use crate::stamp::LONGEST_NS;

/// `empirical(...)`: delays by measured quantiles, straight lines in between, or by the buckets of a
/// histogram, each of which stands for its highest value as it does in the quantiles that
/// HdrHistogram reports.
#[derive(Debug, Clone)]
pub struct Empirical {
    source: Source,
    table: Arc<Table>,
}

/// Where a law comes from, as it is written.
#[derive(Debug, Clone, PartialEq)]
enum Source {
    Inline,
    File {
        path: String,
        unit: Option<Unit>,
        tag: Option<String>,
    },
}

#[derive(Debug, PartialEq)]
pub(super) enum Table {
    Curve(Curve),
    Counts(Counts),
}

/// What a histogram counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanos,
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// The unit of this name: `ns`, `us`, `ms` or `s`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ns" => Some(Self::Nanos),
            "us" => Some(Self::Micros),
            "ms" => Some(Self::Millis),
            "s" => Some(Self::Seconds),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Micros => "us",
            Self::Millis => "ms",
            Self::Seconds => "s",
        }
    }

    pub(super) fn nanos(self) -> u64 {
        match self {
            Self::Nanos => 1,
            Self::Micros => 1_000,
            Self::Millis => 1_000_000,
            Self::Seconds => 1_000_000_000,
        }
    }
}

impl Empirical {
    /// A law by its quantiles: shares from 0 to 1, which rise, with times, which do not fall.
    ///
    /// # Errors
    /// When the first share is not 0 or the last not 1, or the points are no curve.
    pub fn from_quantiles(points: &[(f64, Duration)]) -> Result<Self, LawError> {
        let point = |(share, time): &(f64, Duration)| Point {
            share: *share,
            ns: time.as_nanos() as f64,
        };
        Ok(Self {
            source: Source::Inline,
            table: Arc::new(Table::Curve(Curve::new(
                points.iter().map(point).collect(),
            )?)),
        })
    }

    /// A law from a file, which is read here and now: a CSV of quantiles, or an interval log of
    /// HdrHistogram, of which `unit` says what it counts (nanoseconds by default) and `tag` which of
    /// its histograms to take.
    ///
    /// # Errors
    /// Tells the file, and the line where there is one, when it cannot be read.
    pub fn from_file(path: &str, unit: Option<Unit>, tag: Option<&str>) -> Result<Self, LawError> {
        let table = files::read_table(Path::new(path), unit, tag)?;
        Ok(Self {
            source: Source::File {
                path: path.to_owned(),
                unit,
                tag: tag.map(str::to_owned),
            },
            table: Arc::new(table),
        })
    }

    pub(in crate::latency) fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match &*self.table {
            Table::Curve(curve) => crate::latency::distribution::whole(curve.sample_ns(rng)),
            Table::Counts(counts) => counts.sample(rng).min(LONGEST_NS),
        }
    }

    pub(in crate::latency) fn mean_ns(&self) -> f64 {
        match &*self.table {
            Table::Curve(curve) => curve.mean_ns(),
            Table::Counts(counts) => counts.mean_ns(),
        }
    }

    pub(in crate::latency) fn quantile_ns(&self, q: f64) -> f64 {
        match &*self.table {
            Table::Curve(curve) => curve.quantile_ns(q),
            Table::Counts(counts) => counts.quantile_ns(q),
        }
    }

    pub(in crate::latency) fn cdf(&self, ns: f64) -> f64 {
        match &*self.table {
            Table::Curve(curve) => curve.cdf(ns),
            Table::Counts(counts) => counts.cdf(ns),
        }
    }
}

impl PartialEq for Empirical {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.table == other.table
    }
}

impl fmt::Display for Empirical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.source, &*self.table) {
            (Source::File { path, unit, tag }, _) => {
                write!(f, "empirical(file={path}")?;
                if let Some(unit) = unit {
                    write!(f, ",unit={}", unit.name())?;
                }
                if let Some(tag) = tag {
                    write!(f, ",tag={tag}")?;
                }
                f.write_str(")")
            }
            (Source::Inline, Table::Curve(curve)) => {
                for (place, Point { share, ns }) in curve.points().iter().enumerate() {
                    let before = if place == 0 { "empirical(" } else { "," };
                    let nanos = crate::latency::distribution::whole(*ns);
                    let time = Human(Duration::from_nanos(nanos));
                    write!(f, "{before}{}%:{time}", percent(*share))?;
                }
                f.write_str(")")
            }
            // A histogram always comes from a file.
            (Source::Inline, Table::Counts(_)) => f.write_str("empirical()"),
        }
    }
}

/// A share in percent, as short as it was written: 0.29 x 100 is 28.999999999999996.
fn percent(share: f64) -> f64 {
    (share * 1e14).round() / 1e12
}
