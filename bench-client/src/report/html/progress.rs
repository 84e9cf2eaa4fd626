//! How a run went on, in a bounded number of points.
//!
//! Intervals are added up in groups before their quantiles are taken: a quantile of a group is that
//! of all its requests. What ends after the load, in less than half the length of a group, is added to
//! the last one, for rates and quantiles of a few requests mislead. A group is one interval at first; whenever [`GROUPS_OF_A_SIZE`] groups of a
//! size are full, the next ones are twice as long, so that a run of a day has a few thousand points.

use kvlab_timing::Stamp;

use crate::record::{Interval, Latency, Phase};

/// The intervals of the measured part, in groups.
#[derive(Debug, Default)]
pub(super) struct Progress {
    begin: Option<Stamp>,
    points: Vec<Point>,
    open: Option<Group>,
}

/// What ended in a group of intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Begin, from the start of the measured part, in nanoseconds.
    pub(super) begin_ns: u64,
    /// End.
    pub(super) end_ns: u64,
    /// Requests answered.
    pub(super) answered: u64,
    /// Requests that ended otherwise.
    pub(super) failed: u64,
    /// Median, 99th percentile and largest of the latency; `None` where nothing was answered.
    pub(super) latency_ns: Option<[u64; 3]>,
}

#[derive(Debug)]
struct Group {
    begin_ns: u64,
    end_ns: u64,
    intervals: usize,
    answered: u64,
    failed: u64,
    latency: Latency,
}

/// Groups that are as long as each other.
const GROUPS_OF_A_SIZE: usize = 300;

impl Progress {
    /// Takes in an interval; the warm-up is left out.
    pub(super) fn add(&mut self, interval: &Interval) {
        if interval.phase == Phase::Warmup {
            return;
        }
        let base = *self.begin.get_or_insert(interval.begin);
        let begin_ns = interval.begin.saturating_since(base);
        let end_ns = interval.end.saturating_since(base);
        if let Some(group) = &self.open {
            let is_short = 2 * (end_ns - begin_ns) < group.end_ns - group.begin_ns;
            let is_rest = interval.phase == Phase::Drain && is_short;
            if group.intervals >= self.size() && !is_rest {
                self.close();
            }
        }
        let group = self.open.get_or_insert_with(|| Group {
            begin_ns,
            end_ns: begin_ns,
            intervals: 0,
            answered: 0,
            failed: 0,
            latency: Latency::default(),
        });
        let outcomes = interval.tally.outcomes();
        group.end_ns = end_ns;
        group.intervals += 1;
        group.answered += outcomes.answered();
        group.failed += outcomes.failed();
        group.latency.merge(&interval.tally.latency());
    }

    /// The points, once all intervals are there.
    pub(super) fn points(&mut self) -> &[Point] {
        self.close();
        &self.points
    }

    fn size(&self) -> usize {
        let doublings = u32::try_from(self.points.len() / GROUPS_OF_A_SIZE).unwrap_or(u32::MAX);
        1_usize.checked_shl(doublings).unwrap_or(usize::MAX)
    }

    fn close(&mut self) {
        let Some(group) = self.open.take() else {
            return;
        };
        let latency = &group.latency;
        let quantiles = [
            latency.quantile_ns(0.5),
            latency.quantile_ns(0.99),
            latency.max_ns(),
        ];
        self.points.push(Point {
            begin_ns: group.begin_ns,
            end_ns: group.end_ns,
            answered: group.answered,
            failed: group.failed,
            latency_ns: (!latency.is_empty()).then_some(quantiles),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::*;

    #[test]
    fn warm_up_is_left_out_and_a_point_has_the_quantiles_of_its_interval() {
        let mut progress = Progress::default();
        for interval in sample::intervals() {
            progress.add(&interval);
        }
        let expected = Point {
            begin_ns: 0,
            end_ns: 500_000_000,
            answered: 200,
            failed: 3,
            latency_ns: Some([sample::C; 3]),
        };
        assert_eq!(progress.points(), [expected]);
    }

    #[test]
    fn a_short_rest_belongs_to_the_last_interval() {
        let [_, one] = sample::intervals();
        for (length_ns, points) in [(249_999_999, 1), (250_000_000, 2)] {
            let mut progress = Progress::default();
            progress.add(&one);
            progress.add(&Interval {
                phase: Phase::Drain,
                begin: one.end,
                end: Stamp::from_nanos(one.end.as_nanos() + length_ns),
                ..one.clone()
            });
            assert_eq!(progress.points().len(), points, "{length_ns}");
        }
    }

    #[test]
    fn a_long_run_has_few_points_and_loses_no_request() {
        let [_, one] = sample::intervals();
        let mut progress = Progress::default();
        for _ in 0..2_101 {
            progress.add(&one);
        }
        // 300 groups of one, 300 of two, 300 of four, and one of the last interval.
        assert_eq!(progress.points().len(), 901);
        let answered: u64 = progress.points().iter().map(|point| point.answered).sum();
        assert_eq!(answered, 2_101 * 200);
    }
}
