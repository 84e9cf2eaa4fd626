//! Exact statistics of raw samples, by sorting them.
//!
//! The quantile of a share `p` of `n` samples is the sample of rank `ceil(p * n)`, counted from 1:
//! the smallest sample that at least that share of all samples does not exceed. Shares are whole
//! thousandths, so the rank is integer arithmetic and nothing is interpolated.

use std::fmt;

use serde::{Serialize, Serializer};

/// A quantile, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantile(u16);

impl Quantile {
    /// The median.
    pub const P50: Self = Self(500);
    /// The 90th percentile.
    pub const P90: Self = Self(900);
    /// The 99th percentile.
    pub const P99: Self = Self(990);
    /// The 99.9th percentile.
    pub const P99_9: Self = Self(999);
    /// The quantiles that are reported and judged.
    pub const JUDGED: [Self; 4] = [Self::P50, Self::P90, Self::P99, Self::P99_9];

    /// As a fraction, 0 to 1.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// The rank of this quantile among `n` samples, from 1; 0 when there are none.
    #[must_use]
    pub fn rank(self, n: u64) -> u64 {
        let scaled = u128::from(n) * u128::from(self.0);
        // At most n, so the conversion cannot fail.
        u64::try_from(scaled.div_ceil(1000)).unwrap_or(n)
    }

    /// Samples that are expected above this quantile, times 1000.
    fn above_thousandths(self, n: u64) -> u128 {
        u128::from(n) * u128::from(1000 - self.0)
    }

    /// Whether `n` samples support it: at least 100 are expected above it, which holds the rank
    /// error at 20 %.
    #[must_use]
    pub fn is_supported_by(self, n: u64) -> bool {
        self.above_thousandths(n) >= u128::from(SAMPLES_ABOVE) * 1000
    }

    /// The number of samples from which on the quantile is supported.
    #[must_use]
    pub fn samples_needed(self) -> u64 {
        (SAMPLES_ABOVE * 1000).div_ceil(u64::from(1000 - self.0))
    }
}

/// Deviations of a 95 % interval.
pub const Z_95: f64 = 1.96;
/// Samples that have to lie above a quantile for it to be judged.
pub const SAMPLES_ABOVE: u64 = 100;

/// `p50`, `p99.9`.
impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0 / 10)?;
        match self.0 % 10 {
            0 => Ok(()),
            tenth => write!(f, ".{tenth}"),
        }
    }
}

impl Serialize for Quantile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Samples in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sorted(Vec<u64>);

impl Sorted {
    /// Sorts the samples.
    #[must_use]
    pub fn new(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        Self(samples)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sample at a quantile, `None` when there are no samples.
    #[must_use]
    pub fn quantile(&self, q: Quantile) -> Option<u64> {
        self.at_rank(q.rank(self.len()))
    }

    /// The sample of a rank, counted from 1 and held within the samples.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<u64> {
        let place = rank.clamp(1, self.len().max(1)) - 1;
        self.0.get(usize::try_from(place).ok()?).copied()
    }

    /// Half the width of the order-statistic interval around a quantile: the true quantile of the
    /// law lies between the samples of ranks `n p -+ z sqrt(n p (1 - p))`.
    #[must_use]
    pub fn half_width(&self, q: Quantile, z: f64) -> u64 {
        let (low, high) = self.interval(q, z);
        high.saturating_sub(low).div_ceil(2)
    }

    /// The samples at the ends of the order-statistic interval around a quantile.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a width in ranks, rounded up"
    )]
    pub fn interval(&self, q: Quantile, z: f64) -> (u64, u64) {
        let (n, p) = (self.len() as f64, q.as_f64());
        let reach = (z * (n * p * (1.0 - p)).sqrt()).ceil() as u64;
        let rank = q.rank(self.len());
        let low = self.at_rank(rank.saturating_sub(reach).max(1));
        let high = self.at_rank(rank.saturating_add(reach));
        (low.unwrap_or(0), high.unwrap_or(0))
    }

    /// The smallest sample, 0 when there are none.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.0.first().copied().unwrap_or(0)
    }

    /// The largest sample, 0 when there are none.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    /// The exact sum.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.0.iter().map(|sample| u128::from(*sample)).sum()
    }

    /// The mean, 0 when there are no samples.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the nearest value is wanted")]
    pub fn mean(&self) -> f64 {
        self.sum() as f64 / self.len().max(1) as f64
    }

    /// The mean rounded to the nearest whole number, half up; 0 when there are no samples.
    #[must_use]
    pub fn rounded_mean(&self) -> u64 {
        rounded_mean(self.sum(), self.len())
    }

    /// The samples, ascending.
    #[must_use]
    pub fn samples(&self) -> &[u64] {
        &self.0
    }
}

/// `sum / count` rounded to the nearest whole number, half up; 0 when there are none.
#[must_use]
pub fn rounded_mean(sum: u128, count: u64) -> u64 {
    let count = u128::from(count.max(1));
    u64::try_from((sum + count / 2) / count).unwrap_or(u64::MAX)
}

impl FromIterator<u64> for Sorted {
    fn from_iter<I: IntoIterator<Item = u64>>(samples: I) -> Self {
        Self::new(samples.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_is_the_smallest_sample_that_the_share_does_not_exceed() {
        let ten = Sorted::new((1..=10).rev().collect());
        let at = |q| ten.quantile(q).unwrap();
        assert_eq!((at(Quantile::P50), at(Quantile::P90)), (5, 9));
        assert_eq!((at(Quantile::P99), at(Quantile::P99_9)), (10, 10));
        let thousand: Sorted = (1..=1000).collect();
        let at = |q| thousand.quantile(q).unwrap();
        assert_eq!((at(Quantile::P99), at(Quantile::P99_9)), (990, 999));
        assert_eq!(Sorted::new(vec![7]).quantile(Quantile::P50), Some(7));
        assert_eq!(Sorted::default().quantile(Quantile::P50), None);
    }

    #[test]
    fn rank_is_exact_where_floating_point_is_not() {
        // 0.999 * 20 000 is 19 980.000000000004 in floating point, which would round up to 19 981.
        assert_eq!(Quantile::P99_9.rank(20_000), 19_980);
        assert_eq!(Quantile::P50.rank(3), 2);
        assert_eq!(Quantile::P99_9.rank(u64::MAX), 18_428_297_329_635_842_064);
    }

    #[test]
    fn a_quantile_needs_a_hundred_samples_above_it() {
        for (q, needed) in [
            (Quantile::P50, 200),
            (Quantile::P90, 1_000),
            (Quantile::P99, 10_000),
            (Quantile::P99_9, 100_000),
        ] {
            assert_eq!(q.samples_needed(), needed, "{q}");
            assert!(q.is_supported_by(needed), "{q}");
            assert!(!q.is_supported_by(needed - 1), "{q}");
        }
    }

    #[test]
    fn interval_has_the_width_of_the_binomial_law() {
        // n p (1 - p) = 10000 * 0.25 = 2500, its root 50; two of them to each side of rank 5000.
        let samples: Sorted = (1..=10_000).collect();
        assert_eq!(samples.interval(Quantile::P50, 2.0), (4_900, 5_100));
        assert_eq!(samples.half_width(Quantile::P50, 2.0), 100);
        // At the end the interval is cut.
        assert_eq!(samples.interval(Quantile::P99_9, 100.0).1, 10_000);
    }

    #[test]
    fn means_are_exact_and_rounded_half_up() {
        let samples: Sorted = [1, 2, 2, 5].into_iter().collect();
        assert_eq!((samples.mean(), samples.rounded_mean()), (2.5, 3));
        assert_eq!(rounded_mean(7, 3), 2);
        assert_eq!(Sorted::default().rounded_mean(), 0);
    }

    #[test]
    fn quantiles_print_as_percentiles() {
        let text: Vec<String> = Quantile::JUDGED.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["p50", "p90", "p99", "p99.9"]);
    }
}
