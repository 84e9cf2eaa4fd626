//! A latency histogram with exact ends.
//!
//! HDR histogram of nanoseconds, 1 ns to one hour with three digits (relative error below 0.1 %).
//! Minimum, maximum and sum are kept exactly beside it. Nothing is dropped: what lies outside of
//! the range is recorded at its end and counted as clamped.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Largest latency that is recorded as it is: one hour.
pub const LATENCY_MAX_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// Latencies of one kind.
#[derive(Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    clamped: u64,
}

/// Nothing recorded is copied as that: a fresh histogram takes no memory before it is written to.
impl Clone for Latency {
    fn clone(&self) -> Self {
        if self.count == 0 {
            return Self::default();
        }
        Self {
            histogram: self.histogram.clone(),
            ..*self
        }
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            // The three constants are legal bounds, as the test below shows.
            histogram: Histogram::new_with_bounds(1, LATENCY_MAX_NS, DIGITS)
                .unwrap_or_else(|error| unreachable!("constant bounds: {error:?}")),
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            clamped: 0,
        }
    }
}

impl Latency {
    /// Records one latency.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let inside = ns.clamp(1, LATENCY_MAX_NS);
        self.clamped += u64::from(ns > LATENCY_MAX_NS);
        // `inside` is in range, so there is a bucket for it.
        self.histogram.saturating_record(inside);
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all latencies of another.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.histogram
            .add(&other.histogram)
            .unwrap_or_else(|error| unreachable!("equal bounds: {error:?}"));
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.clamped += other.clamped;
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.histogram.reset();
        }
        self.count = 0;
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
        self.clamped = 0;
    }

    /// Latencies recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The quantile `q` (0 to 1) in nanoseconds, 0 when nothing was recorded: the highest value
    /// that counts as equal to the sample of that rank, never above the exact maximum.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        self.histogram
            .value_at_quantile(q)
            .clamp(self.min_ns.min(self.max_ns), self.max_ns)
    }

    /// The quantile `q` (0 to 1); see [`Self::quantile_ns`].
    #[must_use]
    pub fn quantile(&self, q: f64) -> Duration {
        Duration::from_nanos(self.quantile_ns(q))
    }

    /// Mean in nanoseconds from the exact sum, 0 when nothing was recorded.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "the nearest value is what is wanted"
    )]
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum_ns as f64 / self.count as f64
        }
    }

    /// Exact sum in nanoseconds.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Exact minimum in nanoseconds, 0 when nothing was recorded.
    #[must_use]
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Exact maximum in nanoseconds, 0 when nothing was recorded.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Latencies above one hour, recorded as one hour in the histogram.
    #[must_use]
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    /// The histogram itself, for logs and finer statistics. Latencies of 0 ns stand in it as 1.
    #[must_use]
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_sum_and_mean_are_exact() {
        let mut latency = Latency::default();
        for ns in [1_234_567, 7, 98_765_432_101] {
            latency.record(ns);
        }
        assert_eq!(latency.min_ns(), 7);
        assert_eq!(latency.max_ns(), 98_765_432_101);
        assert_eq!(latency.sum_ns(), 98_766_666_675);
        assert_eq!(latency.quantile_ns(1.0), 98_765_432_101);
        assert!((latency.mean_ns() - 98_766_666_675.0 / 3.0).abs() < 1e-3);
    }

    #[test]
    fn beyond_an_hour_is_clamped_and_counted_not_dropped() {
        let mut latency = Latency::default();
        latency.record(LATENCY_MAX_NS + 1);
        latency.record(LATENCY_MAX_NS);
        latency.record(0);
        assert_eq!((latency.count(), latency.clamped()), (3, 1));
        assert_eq!(latency.histogram().len(), 3);
    }

    #[test]
    fn quantile_is_within_a_thousandth_of_the_rank_sample() {
        let mut latency = Latency::default();
        for index in 1..=1000_u64 {
            latency.record(index * 1_003);
        }
        for (q, exact) in [(0.5, 501_500_u64), (0.99, 992_970), (0.999, 1_001_997)] {
            let found = latency.quantile_ns(q);
            assert!(
                found.abs_diff(exact) * 1000 <= exact,
                "{q}: {found} for {exact}"
            );
        }
    }

    #[test]
    fn merged_is_as_if_recorded_together_and_clear_forgets() {
        let (mut left, mut right, mut both) =
            (Latency::default(), Latency::default(), Latency::default());
        for ns in 0..500_u64 {
            let ns = ns * ns * 17;
            if ns % 2 == 0 {
                left.record(ns)
            } else {
                right.record(ns)
            }
            both.record(ns);
        }
        left.merge(&right);
        assert_eq!(left.histogram(), both.histogram());
        assert_eq!(
            (left.sum_ns(), left.max_ns()),
            (both.sum_ns(), both.max_ns())
        );
        left.clear();
        assert_eq!(
            (left.count(), left.quantile_ns(0.5), left.min_ns()),
            (0, 0, 0)
        );
        assert_eq!(left.histogram().len(), 0);
    }
}
