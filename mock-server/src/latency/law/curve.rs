//! A law known by some of its quantiles, straight lines in between.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::{LawError, unit};
use crate::stamp::LONGEST_NS;

/// Quantiles from 0 to 1 with their times in nanoseconds; the shares rise, the times do not fall.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    points: Vec<Point>,
}

/// A share of all requests, from 0 to 1, and the time they do not exceed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) share: f64,
    pub(super) ns: f64,
}

impl Curve {
    /// More points are refused.
    pub(super) const MAX_POINTS: usize = 100_000;

    pub(super) fn new(points: Vec<Point>) -> Result<Self, LawError> {
        let wrong = |found: String, expected| Err(LawError::Points { found, expected });
        if !(2..=Self::MAX_POINTS).contains(&points.len()) {
            let found = format!("{} quantiles", points.len());
            return wrong(found, "2 to 100000 of them");
        }
        let percent = |point: &Point| format!("{}%", 100.0 * point.share);
        for pair in points.windows(2) {
            let [before, after] = pair else { continue };
            if after.share <= before.share {
                let found = format!("{} after {}", percent(after), percent(before));
                return wrong(found, "shares that rise");
            }
            if after.ns < before.ns {
                let found = format!("{} ns after {} ns", after.ns, before.ns);
                return wrong(found, "times that do not fall");
            }
        }
        for (end, share) in [(points.first(), 0.0), (points.last(), 1.0)] {
            if let Some(point) = end.filter(|point| point.share != share) {
                let found = format!("{} at an end", percent(point));
                return wrong(found, "0% first and 100% last");
            }
        }
        if let Some(last) = points.last().filter(|last| last.ns > LONGEST_NS as f64) {
            return wrong(format!("{} ns", last.ns), "times of at most 1h");
        }
        Ok(Self { points })
    }

    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    pub(super) fn sample_ns(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        self.quantile_ns(unit(rng))
    }

    pub(super) fn mean_ns(&self) -> f64 {
        let lines = self.points.windows(2).filter_map(|pair| match pair {
            [a, b] => Some((b.share - a.share) * 0.5 * (a.ns + b.ns)),
            _ => None,
        });
        lines.sum()
    }

    pub(super) fn quantile_ns(&self, q: f64) -> f64 {
        // The first point at or above; the one before it is below.
        let above = self.points.partition_point(|point| point.share < q);
        match (
            self.points.get(above.wrapping_sub(1)),
            self.points.get(above),
        ) {
            (Some(a), Some(b)) => a.ns + (b.ns - a.ns) * ((q - a.share) / (b.share - a.share)),
            (_, Some(end)) | (Some(end), None) => end.ns,
            (None, None) => 0.0,
        }
    }

    pub(super) fn cdf(&self, ns: f64) -> f64 {
        // The first point beyond; the one before it is at or below, the last of several equal ones.
        let beyond = self.points.partition_point(|point| point.ns <= ns);
        match (
            self.points.get(beyond.wrapping_sub(1)),
            self.points.get(beyond),
        ) {
            (Some(a), Some(b)) => a.share + (b.share - a.share) * ((ns - a.ns) / (b.ns - a.ns)),
            (Some(_), None) => 1.0,
            (None, _) => 0.0,
        }
    }
}
