//! A distribution as its quantile function at evenly spaced shares.

use kvlab_bench_client::record::Latency;

/// The quantiles of shares `(i + 1/2) / POINTS`, ascending, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve(Vec<f64>);

impl Curve {
    /// Points of a curve: the highest lies at the share 0.99988.
    pub const POINTS: usize = 4096;

    /// The curve of samples; `None` when there are none.
    #[must_use]
    pub fn of_samples(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let last = samples.len().checked_sub(1)?;
        let at = |point: usize| {
            let place = (2 * point + 1) * samples.len() / (2 * Self::POINTS);
            samples[place.min(last)]
        };
        Some(Self((0..Self::POINTS).map(at).collect()))
    }

    /// The curve of a recorded latency; within its buckets of a thousandth samples count as spread
    /// evenly. `None` when nothing was recorded.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "times and counts of a run are far below 2^52"
    )]
    pub fn of_latency(latency: &Latency) -> Option<Self> {
        if latency.is_empty() {
            return None;
        }
        let all = latency.count() as f64;
        let histogram = latency.histogram();
        let (least, most) = (latency.min_ns() as f64, latency.max_ns() as f64);
        let mut points = Vec::with_capacity(Self::POINTS);
        let mut before = 0.0;
        for bucket in histogram.iter_recorded() {
            let count = bucket.count_at_value() as f64;
            let value = bucket.value_iterated_to();
            let low = histogram.lowest_equivalent(value) as f64;
            let high = histogram.highest_equivalent(value) as f64;
            while points.len() < Self::POINTS {
                let rank = share(points.len()) * all;
                if rank >= before + count {
                    break;
                }
                let inside = (rank - before) / count;
                points.push((low + (high - low) * inside).clamp(least, most));
            }
            before += count;
        }
        // Rounding may leave the last point out.
        points.resize(Self::POINTS, most);
        Some(Self(points))
    }

    pub(super) fn from_points(mut points: Vec<f64>) -> Self {
        debug_assert_eq!(points.len(), Self::POINTS);
        points.sort_unstable_by(f64::total_cmp);
        Self(points)
    }

    /// The points, ascending.
    #[must_use]
    pub fn points(&self) -> &[f64] {
        &self.0
    }

    /// The quantile of a share within 0 to 1.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place among the points; the cast saturates"
    )]
    pub fn at(&self, share: f64) -> f64 {
        let place = (share * Self::POINTS as f64) as usize;
        self.0[place.min(Self::POINTS - 1)]
    }
}

/// The share of a point.
#[expect(
    clippy::cast_precision_loss,
    reason = "a place among the points is far below 2^52"
)]
pub(super) fn share(point: usize) -> f64 {
    (point as f64 + 0.5) / Curve::POINTS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_at_their_shares() {
        let curve = Curve::of_samples((1..=1000).rev().map(f64::from).collect()).unwrap();
        assert_eq!(curve.at(0.5), 501.0);
        assert_eq!(curve.at(0.0), 1.0);
        assert_eq!(curve.at(1.0), 1000.0);
        assert_eq!(Curve::of_samples(Vec::new()), None);
    }

    #[test]
    fn a_recorded_latency_gives_the_curve_of_its_samples_within_a_thousandth() {
        let mut latency = Latency::default();
        let samples: Vec<u64> = (1..=5_000).map(|i| 100_000 + i * i).collect();
        for sample in &samples {
            latency.record(*sample);
        }
        let recorded = Curve::of_latency(&latency).unwrap();
        let exact = Curve::of_samples(samples.iter().map(|ns| *ns as f64).collect()).unwrap();
        for (found, exact) in recorded.points().iter().zip(exact.points()) {
            assert!(
                (found - exact).abs() <= exact / 500.0,
                "{found} for {exact}"
            );
        }
        assert_eq!(Curve::of_latency(&Latency::default()), None);
    }
}
