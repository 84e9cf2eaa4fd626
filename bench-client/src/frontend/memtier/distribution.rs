//! The steps of a latency distribution.
//!
//! The percentile levels begin at 0 and grow by a tenth of the distance to 100 halved again and
//! again: 0, 5, 10, …, 50, 52.5, …, 75, 76.25, … At each level stands the lowest recorded value
//! that at least so many percent of the samples do not exceed. When the level has passed all but
//! the last recorded value, 100 ends the list. This is the walk of the HdrHistogram libraries
//! with ten ticks per half distance.

use crate::record::Latency;

/// One step of the distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Latency in nanoseconds that `percentile` of the samples do not exceed.
    pub ns: u64,
    /// The level, 0 to 100.
    pub percentile: f64,
    /// Samples up to `ns`.
    pub count: u64,
}

/// All steps of a latency. Without samples it is one step: 100 percent at 0.
#[must_use]
pub fn steps(latency: &Latency) -> Vec<Step> {
    let histogram = latency.histogram();
    let total = histogram.len();
    let mut steps = Vec::new();
    let mut level = 0.0_f64;
    let mut count = 0;
    let mut ns = 0;
    for value in histogram.iter_recorded() {
        count += value.count_since_last_iteration();
        // No value lies above the exact maximum, wherever its bucket ends.
        ns = histogram
            .highest_equivalent(value.value_iterated_to())
            .min(latency.max_ns().max(1));
        let reached = 100.0 * as_float(count) / as_float(total);
        while level <= reached {
            steps.push(Step {
                ns,
                percentile: level,
                count,
            });
            level += 100.0 / (TICKS_PER_HALF * halvings(level).exp2());
            if count == total {
                break;
            }
        }
    }
    steps.push(Step {
        ns,
        percentile: 100.0,
        count,
    });
    steps
}

/// Halvings of the distance to 100 that lie below the level, plus one.
fn halvings(level: f64) -> f64 {
    (100.0 / (100.0 - level)).log2().floor() + 1.0
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a percentile needs no more than 52 bits"
)]
fn as_float(count: u64) -> f64 {
    count as f64
}

const TICKS_PER_HALF: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(samples: &[(u64, u64)]) -> Latency {
        let mut latency = Latency::default();
        for &(ns, count) in samples {
            for _ in 0..count {
                latency.record(ns);
            }
        }
        latency
    }

    #[test]
    fn levels_halve_their_distance_to_a_hundred() {
        let samples: Vec<_> = (1..=1_000).map(|ns| (ns, 1)).collect();
        let levels: Vec<f64> = steps(&latency(&samples))
            .iter()
            .map(|step| step.percentile)
            .collect();
        let expected = [
            0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 52.5, 55.0, 57.5, 60.0,
            62.5, 65.0, 67.5, 70.0, 72.5, 75.0, 76.25,
        ];
        for (level, expected) in levels.iter().zip(expected) {
            assert!((level - expected).abs() < 1e-9, "{level} for {expected}");
        }
        assert!((levels.last().unwrap() - 100.0).abs() < f64::EPSILON);
    }

    #[test]
    fn each_level_has_the_lowest_value_that_reaches_it() {
        let steps = steps(&latency(&[(100, 50), (200, 50)]));
        let at = |level: f64| {
            let step = steps
                .iter()
                .find(|step| (step.percentile - level).abs() < 1e-9);
            step.map(|step| (step.ns, step.count))
        };
        assert_eq!(at(50.0), Some((100, 50)));
        // The last value is reached: one more level, and the end.
        assert_eq!(at(52.5), Some((200, 100)));
        assert_eq!(at(55.0), None);
        assert_eq!(at(100.0), Some((200, 100)));
    }

    #[test]
    fn a_single_value_is_the_whole_distribution() {
        let steps = steps(&latency(&[(1_234_567, 3)]));
        let seen: Vec<_> = steps.iter().map(|step| (step.ns, step.count)).collect();
        assert_eq!(
            seen,
            [(1_234_567, 3); 2],
            "exact, not the end of its bucket"
        );
    }

    #[test]
    fn no_samples_are_one_step_at_zero() {
        let expected = Step {
            ns: 0,
            percentile: 100.0,
            count: 0,
        };
        assert_eq!(steps(&Latency::default()), [expected]);
    }
}
