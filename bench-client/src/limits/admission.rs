//! The bucket of a server that delays: from the moments of first replies.
//!
//! Sorted by their replies, connection n (from 1) of a full bucket of capacity B and refill r that
//! is taken from first at t has its token at `t + (n - B) / r`, once the burst is used up and as long
//! as somebody waits. So the delayed ones lie on the line `n = B + r * (moment - t)`: its slope is the
//! refill and its height at t the burst. The moment of a token is the reply less the shortest time
//! that any first reply took.

use kvlab_timing::Stamp;

use super::round::{roundest, roundest_count};
use super::{Attempt, FoundBucket, LimitForm, Verdict};

/// The bucket that the delayed connections agree with.
#[expect(
    clippy::cast_precision_loss,
    reason = "times of a run are far below 2^53 ns"
)]
pub(super) fn find(attempts: &[Attempt]) -> Option<FoundBucket> {
    let line = Line::through(&delayed(attempts)?)?;
    if line.height < LEAST_BURST || line.slope <= 0.0 {
        return None;
    }
    let tolerance = if line.worst < EXACT { EXACT } else { NOISE };
    // The bucket began somewhere between the first connect call and its return, which moves the
    // height of the line.
    let first = attempts.first()?;
    let unknown_ns = if line.worst < EXACT {
        0
    } else {
        first.noticed.saturating_since(first.at)
    };
    let error = line.slope * (unknown_ns as f64 / 1e9) + line.height * tolerance;
    let burst = roundest_count(line.height - error, line.height + error, line.height);
    Some(FoundBucket {
        burst,
        per_second: roundest(
            line.slope * (1.0 - tolerance),
            line.slope * (1.0 + tolerance),
        ),
        measured_burst: line.height,
        measured_per_second: line.slope,
        form: LimitForm::Delay,
        evidence: line.points,
    })
}

/// Seconds since the first connection and number, from 1, of each connection of the first stretch
/// in which all waited.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and times of a run are far below 2^53"
)]
fn delayed(attempts: &[Attempt]) -> Option<Vec<(f64, f64)>> {
    // Once somebody was lost while waiting, the numbers of those behind are not known.
    let lost = |attempt: &Attempt| match attempt.verdict {
        Verdict::Unknown => attempt.ended,
        _ => None,
    };
    let until = attempts.iter().filter_map(lost).min().unwrap_or(Stamp::MAX);
    let first = attempts.first()?.at;
    let mut served: Vec<(Stamp, Stamp)> = attempts
        .iter()
        .filter_map(|attempt| match attempt.verdict {
            Verdict::Served { asked, reply } if reply <= until => Some((asked, reply)),
            _ => None,
        })
        .collect();
    served.sort_by_key(|(_, reply)| *reply);
    let took = |(asked, reply): &(Stamp, Stamp)| reply.saturating_since(*asked);
    let base = served.iter().map(took).min()?;
    let longest = served.iter().map(took).max()? - base;
    let least = (longest / 10).max(3 * base).max(LEAST_WAIT_NS);
    let points: Vec<(f64, f64)> = served
        .iter()
        .enumerate()
        .skip_while(|(_, one)| took(one) - base <= least)
        .take_while(|(_, one)| took(one) - base > least)
        .map(|(place, (_, reply))| {
            let token = reply.sub_nanos(base).saturating_since(first);
            (token as f64 / 1e9, (place + 1) as f64)
        })
        .collect();
    (points.len() >= LEAST_POINTS).then_some(points)
}

/// A line fitted by least squares.
pub(super) struct Line {
    pub(super) slope: f64,
    /// At 0.
    pub(super) height: f64,
    /// The largest distance of a point from it.
    worst: f64,
    points: u64,
}

impl Line {
    /// `None` where the points are no line.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    pub(super) fn through(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        // Around the means, so that nothing is lost in the differences of large sums.
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / n;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
        let product = |(x, y): &(f64, f64)| (x - mean_x) * (y - mean_y);
        let square = |(x, _): &(f64, f64)| (x - mean_x) * (x - mean_x);
        let spread: f64 = points.iter().map(square).sum();
        if spread <= 0.0 {
            return None;
        }
        let slope = points.iter().map(product).sum::<f64>() / spread;
        let height = mean_y - slope * mean_x;
        let distance = |(x, y): &(f64, f64)| (y - height - slope * x).abs();
        let worst = points.iter().map(distance).fold(0.0, f64::max);
        (worst <= (n * MOST_OFF).max(2.0)).then_some(Self {
            slope,
            height,
            worst,
            points: points.len() as u64,
        })
    }
}

/// Delayed connections that it takes.
const LEAST_POINTS: usize = 10;
/// A shorter wait is no delay.
const LEAST_WAIT_NS: u64 = 1_000_000;
/// A server that takes its connections one by one looks like a burst of 1.
pub(super) const LEAST_BURST: f64 = 1.5;
/// Points may lie off the line by this part of their number.
const MOST_OFF: f64 = 0.03;
/// Below this distance from the line, in connections, the moments are exact but for whole
/// nanoseconds; then this is the relative error as well.
const EXACT: f64 = 1e-3;
/// Relative error that noise may cause.
pub(super) const NOISE: f64 = 0.02;
