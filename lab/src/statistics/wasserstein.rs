//! The Wasserstein distance of order 1: how far, on average, one sample has to be moved to become
//! the other; the integral over all shares of the distance between both quantile functions.
//!
//! Samples are given as (value, count) in ascending order, so raw samples and histograms are
//! compared alike. Both quantile functions are steps; with n and m samples every step ends at a
//! multiple of 1 / (n m), so the integral is a sum of whole numbers and exact.

use kvlab_bench_client::record::Latency;

use crate::truth::Sorted;

/// The distance between two samples in the unit of their values; `None` when either has none.
///
/// ```
/// use kvlab::statistics::wasserstein::distance;
///
/// // Half of the sample moves by 10.
/// assert_eq!(distance(&[(5, 2)], &[(5, 1), (15, 1)]), Some(5.0));
/// assert_eq!(distance(&[], &[(5, 1)]), None);
/// ```
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "the nearest value is wanted")]
pub fn distance(left: &[(u64, u64)], right: &[(u64, u64)]) -> Option<f64> {
    let count =
        |sample: &[(u64, u64)]| -> u128 { sample.iter().map(|(_, n)| u128::from(*n)).sum() };
    let (n, m) = (count(left), count(right));
    if n == 0 || m == 0 {
        return None;
    }
    // A sample of the left weighs m of n * m parts, one of the right n.
    let steps = |sample: &[(u64, u64)], weight: u128| -> Vec<(u64, u128)> {
        let mut end = 0;
        let step = |(value, count): &(u64, u64)| {
            end += u128::from(*count) * weight;
            (*value, end)
        };
        sample.iter().map(step).collect()
    };
    let (left, right) = (steps(left, m), steps(right, n));
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let (mut at, mut sum) = (0_u128, 0_u128);
    while let (Some((x, x_end)), Some((y, y_end))) = (left.peek(), right.peek()) {
        let next = *x_end.min(y_end);
        sum += u128::from(x.abs_diff(*y)) * (next - at);
        at = next;
        left.next_if(|(_, end)| *end == next);
        right.next_if(|(_, end)| *end == next);
    }
    Some(sum as f64 / (n * m) as f64)
}

/// Raw samples as (value, count).
#[must_use]
pub fn of_sorted(samples: &Sorted) -> Vec<(u64, u64)> {
    samples.samples().iter().map(|value| (*value, 1)).collect()
}

/// The client's histogram as (value, count); a bucket stands at its middle.
#[must_use]
pub fn of_histogram(latency: &Latency) -> Vec<(u64, u64)> {
    let histogram = latency.histogram();
    histogram
        .iter_recorded()
        .map(|step| {
            let middle = histogram.median_equivalent(step.value_iterated_to());
            (middle, step.count_at_value())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(values: &[u64]) -> Vec<(u64, u64)> {
        of_sorted(&values.iter().copied().collect())
    }

    #[test]
    fn distance_of_equal_counts_is_the_mean_gap_of_the_ordered_samples() {
        // |1-2| + |3-3| + |9-4| = 6 over three.
        assert_eq!(distance(&raw(&[9, 1, 3]), &raw(&[2, 3, 4])), Some(2.0));
        assert_eq!(distance(&raw(&[2, 3, 4]), &raw(&[9, 1, 3])), Some(2.0));
        assert_eq!(distance(&raw(&[7, 7]), &raw(&[7, 7, 7])), Some(0.0));
    }

    #[test]
    fn unequal_counts_are_compared_share_by_share() {
        // Quantile functions: 0 up to 1/2, 6 from there; 0, 3, 6 by thirds. They differ by 3 between
        // 1/3 and 2/3: first 3 - 0, then 6 - 3.
        assert_eq!(distance(&raw(&[0, 6]), &raw(&[0, 3, 6])), Some(1.0));
        // Repeating every sample changes nothing.
        assert_eq!(
            distance(&[(0, 5), (6, 5)], &[(0, 2), (3, 2), (6, 2)]),
            Some(1.0)
        );
    }

    #[test]
    fn a_shift_is_its_own_distance() {
        let base: Vec<u64> = (0..1_000).map(|i| (i * 7_919) % 10_007).collect();
        let moved: Vec<u64> = base.iter().map(|value| value + 120).collect();
        assert_eq!(distance(&raw(&base), &raw(&moved)), Some(120.0));
    }

    #[test]
    fn a_histogram_is_as_near_as_its_buckets_are_wide() {
        let values: Vec<u64> = (1..=5_000).map(|i| i * 1_003).collect();
        let mut latency = Latency::default();
        values.iter().for_each(|ns| latency.record(*ns));
        let found = distance(&of_histogram(&latency), &raw(&values)).unwrap();
        // Buckets are at most a thousandth wide, the mean is 2.5 million: half a bucket is 1250.
        assert!(found > 0.0 && found < 1_250.0, "{found}");
    }
}
