//! A law for the mock server near one that was seen.
//!
//! Its quantile function is cut into straight pieces, so that none is off by more than it must be:
//! each piece is a uniform law, and together they are a mixture.

use std::time::Duration;

use kvlab_mock_server::latency::{Distribution, LawError, Mixture, Uniform};

use super::curve::{Curve, share};

/// A law whose quantiles are near those of `curve`.
///
/// # Errors
/// When a quantile lies above the longest delay of the server.
pub fn near(curve: &Curve) -> Result<Distribution, LawError> {
    Mixture::new(pieces(curve, Mixture::MAX_PARTS, 100.0)?).map(Distribution::Mixture)
}

/// The same, but one delay in a hundred is `long`.
///
/// # Errors
/// As [`near`].
pub fn near_with(curve: &Curve, long: Duration) -> Result<Distribution, LawError> {
    let mut pieces = pieces(curve, Mixture::MAX_PARTS - 1, 99.0)?;
    pieces.push((1.0, Distribution::constant(long)));
    Mixture::new(pieces).map(Distribution::Mixture)
}

/// At most this many pieces, whose shares add up to `percent`.
fn pieces(curve: &Curve, most: usize, percent: f64) -> Result<Vec<(f64, Distribution)>, LawError> {
    let points = curve.points();
    let mut cuts = vec![0, points.len() - 1];
    while cuts.len() <= most {
        let worst = cuts
            .windows(2)
            .filter_map(|ends| worst(points, ends[0], ends[1]))
            .max_by(|left, right| left.1.total_cmp(&right.1));
        match worst {
            Some((place, off)) if off > GOOD_ENOUGH => {
                cuts.push(place);
                cuts.sort_unstable();
            }
            _ => break,
        }
    }
    let last = cuts.len() - 2;
    let parts = cuts.windows(2).enumerate().map(|(piece, ends)| {
        let from = if piece == 0 { 0.0 } else { share(ends[0]) };
        let to = if piece == last { 1.0 } else { share(ends[1]) };
        let law = Uniform::new(time(points[ends[0]]), time(points[ends[1]]))?;
        Ok(((to - from) * percent, Distribution::Uniform(law)))
    });
    parts.collect()
}

/// The point between two others that is furthest from their straight line, as a share of its value.
#[expect(
    clippy::cast_precision_loss,
    reason = "places among the points are far below 2^52"
)]
fn worst(points: &[f64], from: usize, to: usize) -> Option<(usize, f64)> {
    let slope = (points[to] - points[from]) / (to - from) as f64;
    (from + 1..to)
        .map(|place| {
            let line = points[from] + slope * (place - from) as f64;
            let off = (points[place] - line).abs() / points[place].max(LEAST_NS);
            (place, off)
        })
        .max_by(|left, right| left.1.total_cmp(&right.1))
}

fn time(ns: f64) -> Duration {
    Duration::from_secs_f64(ns.max(0.0) / 1e9)
}

/// Pieces that are off by less than this share are not cut further.
const GOOD_ENOUGH: f64 = 0.002;
/// Below this, shares are of this: nobody cares for nanoseconds.
const LEAST_NS: f64 = 20_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_near(samples: Vec<f64>, tolerance: f64) {
        let curve = Curve::of_samples(samples).unwrap();
        let law = near(&curve).unwrap();
        for share in [0.1, 0.5, 0.9, 0.99, 0.998] {
            let (found, wanted) = (law.quantile_ns(share), curve.at(share));
            assert!(
                (found - wanted).abs() <= tolerance * wanted,
                "{found} for {wanted} at {share} of {law}"
            );
        }
    }

    #[test]
    fn quantiles_of_the_law_are_those_of_the_curve() {
        assert_near(vec![1e6; 1000], 1e-6);
        let exponential = |i: i32| -1e6 * (1.0 - (f64::from(i) + 0.5) / 5000.0).ln();
        assert_near((0..5000).map(exponential).collect(), 0.05);
        // 1.5 % take fifty times as long.
        let two = |i: i32| if i < 9_850 { 1e6 } else { 50e6 };
        assert_near((0..10_000).map(two).collect(), 1e-3);
    }

    #[test]
    fn one_delay_in_a_hundred_may_be_long() {
        let curve = Curve::of_samples((0..5000).map(|i| 1e6 + f64::from(i * i)).collect()).unwrap();
        let law = near_with(&curve, Duration::from_secs(1)).unwrap();
        assert_eq!(law.quantile_ns(0.995), 1e9);
        let (found, wanted) = (law.quantile_ns(0.495), curve.at(0.5));
        assert!(
            (found - wanted).abs() <= 0.03 * wanted,
            "{found} for {wanted}"
        );
    }

    #[test]
    fn a_server_that_takes_no_time_has_a_law() {
        let law = near(&Curve::of_samples(vec![0.0; 10]).unwrap()).unwrap();
        assert_eq!(law.quantile_ns(0.99), 0.0);
    }
}
