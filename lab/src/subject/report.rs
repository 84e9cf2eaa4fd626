//! What a tool reports, in one form for all tools.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::truth::Quantile;

/// What a tool reports of its run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reported {
    /// Which time it reports.
    pub kind: Kind,
    /// Samples in its latencies, where it says how many.
    pub count: Option<u64>,
    /// Operations it says it completed, where it counts them apart from its latencies.
    pub operations: Option<u64>,
    /// Mean latency.
    pub mean_ns: Option<f64>,
    /// Latency by quantile, as far as it tells.
    pub quantiles: BTreeMap<Quantile, Reading>,
    /// Largest latency.
    pub max_ns: Option<u64>,
    /// Operations per second.
    pub rate_per_second: Option<f64>,
    /// Requests it counts as failed; nothing when it has no such count.
    pub errors: Option<u64>,
    /// The finest step of its latencies at one millisecond.
    pub resolution_ns: u64,
    /// Latencies it says it could not represent.
    pub clamped: Option<u64>,
}

/// Which time a tool reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// From the send to the reply.
    #[default]
    Service,
    /// From the intended moment to the reply.
    Response,
}

/// A value that a tool prints, or the two printed values it must lie between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// Not below this.
    pub low_ns: u64,
    /// Not above this: the value itself when it is printed.
    pub high_ns: u64,
}

impl Reading {
    /// A value that is printed.
    #[must_use]
    pub fn exact(ns: u64) -> Self {
        Self {
            low_ns: ns,
            high_ns: ns,
        }
    }

    /// The value within the reading that lies nearest to `ns`: where a tool leaves a range, the
    /// doubt is in its favour.
    #[must_use]
    pub fn nearest(&self, ns: u64) -> u64 {
        ns.clamp(self.low_ns, self.high_ns)
    }
}

/// A cumulative table of a report: values and how many samples each is not exceeded by.
#[derive(Clone, Debug, Default)]
pub(super) struct Cumulative(Vec<(u64, u64)>);

impl Cumulative {
    /// Adds `value_ns`, which `count` samples do not exceed.
    pub(super) fn push(&mut self, value_ns: u64, count: u64) {
        self.0.push((value_ns, count));
    }

    /// All samples.
    pub(super) fn total(&self) -> Option<u64> {
        self.0.iter().map(|(_, count)| *count).max()
    }

    /// The quantile: not above the least value that its rank does not exceed, and not below the
    /// largest value that its rank exceeds. `minimum_ns` bounds the rest.
    pub(super) fn quantile(&self, q: Quantile, minimum_ns: u64) -> Option<Reading> {
        let rank = q.rank(self.total()?);
        let reached = self.0.iter().filter(|(_, count)| *count >= rank);
        let high_ns = reached.map(|(value, _)| *value).min()?;
        let below = self.0.iter().filter(|(_, count)| *count < rank);
        let low_ns = below.map(|(value, _)| *value).max().unwrap_or(minimum_ns);
        Some(Reading {
            low_ns: low_ns.min(high_ns),
            high_ns,
        })
    }
}

/// Milliseconds as printed, in nanoseconds; `None` for `-nan` and the like.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    nanoseconds(text, 1e6)
}

/// A printed number in units of `unit_ns`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a printed latency is finite and not negative here; rounded, and the cast saturates"
)]
pub(super) fn nanoseconds(text: &str, unit_ns: f64) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then(|| (number * unit_ns).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_between_the_printed_values_around_its_rank() {
        let mut table = Cumulative::default();
        for (value, count) in [(10, 50), (20, 87), (30, 93), (25, 90), (40, 100)] {
            table.push(value, count);
        }
        assert_eq!(table.total(), Some(100));
        let at = |q| table.quantile(q, 5).unwrap();
        let reading = |low_ns, high_ns| Reading { low_ns, high_ns };
        assert_eq!(at(Quantile::P50), reading(5, 10));
        assert_eq!(at(Quantile::P90), reading(20, 25));
        assert_eq!(at(Quantile::P99), reading(30, 40));
        assert_eq!(Cumulative::default().quantile(Quantile::P50, 0), None);
    }

    #[test]
    fn doubt_favours_the_tool() {
        let reading = Reading {
            low_ns: 10,
            high_ns: 20,
        };
        assert_eq!(
            [5, 15, 30].map(|truth| reading.nearest(truth)),
            [10, 15, 20]
        );
        assert_eq!(Reading::exact(7).nearest(100), 7);
    }

    #[test]
    fn printed_times_are_read_and_no_numbers_refused() {
        assert_eq!(milliseconds("0.207"), Some(207_000));
        assert_eq!(milliseconds(" 3000.319 "), Some(3_000_319_000));
        assert_eq!(nanoseconds("139.550", 1e3), Some(139_550));
        for text in ["-nan", "nan", "inf", "---", "-1", ""] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
