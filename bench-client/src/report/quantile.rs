//! Which quantiles are reported, and when there are enough samples for one.
//!
//! A quantile q of n samples rests on the n (1 - q) samples beyond it. With 100 of them its rank is
//! known within about 20 %; with fewer than 10 it is an accident. So a report shows a quantile when
//! at least 10 samples lie beyond it, marks it as uncertain below 100, and shows `n/a` (nothing in
//! CSV, `null` in JSON) below 10.

use crate::record::Latency;

/// A quantile of the reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// The quantile, 0 to 1.
    pub q: f64,
    /// One sample in this many lies beyond it.
    pub one_in: u64,
    /// Title for people.
    pub title: &'static str,
    /// Part of a field name for programs.
    pub field: &'static str,
}

/// How well a quantile is supported by samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// At least 100 samples lie beyond it: its value in nanoseconds.
    Firm(u64),
    /// 10 to 99 samples lie beyond it: its value in nanoseconds.
    Weak(u64),
    /// Fewer than 10 samples lie beyond it: no number.
    None,
}

impl Quantile {
    /// The value, where the samples support it.
    #[must_use]
    pub fn of(&self, latency: &Latency) -> Support {
        let beyond = latency.count() / self.one_in;
        if beyond >= 100 {
            Support::Firm(latency.quantile_ns(self.q))
        } else if beyond >= 10 {
            Support::Weak(latency.quantile_ns(self.q))
        } else {
            Support::None
        }
    }
}

impl Support {
    /// The value in nanoseconds, if there is one.
    #[must_use]
    pub fn ns(self) -> Option<u64> {
        match self {
            Self::Firm(ns) | Self::Weak(ns) => Some(ns),
            Self::None => None,
        }
    }
}

const fn quantile(q: f64, one_in: u64, title: &'static str, field: &'static str) -> Quantile {
    Quantile {
        q,
        one_in,
        title,
        field,
    }
}

/// The median.
pub(super) const P50: Quantile = quantile(0.5, 2, "p50", "p50");
/// The 99th percentile.
pub(super) const P99: Quantile = quantile(0.99, 100, "p99", "p99");

/// The quantiles of the summaries.
pub const QUANTILES: [Quantile; 5] = [
    P50,
    quantile(0.9, 10, "p90", "p90"),
    P99,
    quantile(0.999, 1_000, "p99.9", "p999"),
    quantile(0.9999, 10_000, "p99.99", "p9999"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: u64) -> Latency {
        let mut latency = Latency::default();
        for ns in 1..=count {
            latency.record(ns);
        }
        latency
    }

    #[test]
    fn support_changes_at_ten_and_a_hundred_samples_beyond() {
        let p99 = QUANTILES[2];
        assert_eq!(p99.of(&samples(0)), Support::None);
        assert_eq!(p99.of(&samples(999)), Support::None);
        assert_eq!(p99.of(&samples(1_000)), Support::Weak(990));
        assert!(matches!(p99.of(&samples(9_999)), Support::Weak(_)));
        assert!(matches!(p99.of(&samples(10_000)), Support::Firm(_)));
    }

    #[test]
    fn one_in_says_the_same_as_q() {
        for Quantile { q, one_in, .. } in QUANTILES {
            let beyond = 1.0 - 1.0 / f64::from(u32::try_from(one_in).unwrap());
            assert!((q - beyond).abs() < 1e-12, "{q}");
        }
    }
}
