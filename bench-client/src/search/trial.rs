//! One trial at one rate: what was seen of it, in stretches of time.
//!
//! Latencies of neighbouring requests depend on each other (a queue that is long stays long for a
//! while), so a trial is cut into stretches, and how much these differ says how far the whole can
//! be trusted.

use std::time::Duration;

use super::Objective;
use crate::engine::Observer;
use crate::record::{Interval, Notice, Phase, Summary};

/// What a trial showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// The measured part in stretches of equal length. What ended after it is in the last one.
    pub stretches: Vec<Stretch>,
    /// For each objective its quantile, in nanoseconds.
    pub quantiles_ns: Vec<u64>,
    /// Requests that were due.
    pub due: u64,
    /// Requests that failed: error, timeout, connection lost, not sent.
    pub failed: u64,
    /// Time from the first intended start to the last reply.
    pub elapsed: Duration,
    /// 99th percentile of the client's own delay before the send.
    pub lateness_p99: Duration,
    /// The largest share of its time that a thread of the client worked, if that is above what
    /// leaves the client in doubt ([`Notice::Busy`]).
    pub busy: Option<f64>,
}

/// A stretch of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Requests that ended in it.
    pub requests: u64,
    /// For each objective the requests that took longer than its limit, or failed.
    pub beyond: Vec<u64>,
    /// Requests due and not answered at its end.
    pub outstanding: u64,
}

impl Trial {
    /// Whether requests pile up: what is due and not answered grows over the trial by more than a
    /// fiftieth of what becomes due. A server that cannot keep a rate breaks every objective, if
    /// only one waits long enough.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of one trial are far below 2^52"
    )]
    pub fn piles_up(&self) -> bool {
        let third = self.stretches.len() / 3;
        if third == 0 {
            return false;
        }
        let mean = |stretches: &[Stretch]| {
            let sum: u64 = stretches.iter().map(|stretch| stretch.outstanding).sum();
            sum as f64 / stretches.len() as f64
        };
        let (head, rest) = self.stretches.split_at(third);
        // The last entry stands at the end of the drain.
        let tail = &rest[rest.len() - third..];
        let growth = mean(tail) - mean(head);
        growth > self.due as f64 * PILE_SHARE && growth > PILE_LEAST
    }

    /// Why the trial says nothing against the server: the client itself was too slow.
    #[must_use]
    pub fn flaw(&self, objectives: &[Objective]) -> Option<Flaw> {
        let tightest = objectives.iter().map(|objective| objective.limit).min()?;
        if self.lateness_p99 > tightest / LATE_PART {
            return Some(Flaw::Late {
                lateness_p99: self.lateness_p99,
                limit: tightest,
            });
        }
        self.busy.map(|cpu_share| Flaw::Busy { cpu_share })
    }
}

/// Why a trial that broke an objective is no evidence against the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flaw {
    /// The client sent late.
    Late {
        /// 99th percentile of its own delay.
        lateness_p99: Duration,
        /// The tightest limit, of which that is more than a tenth.
        limit: Duration,
    },
    /// A thread of the client worked nearly all of the time.
    Busy {
        /// Its processor time over elapsed time.
        cpu_share: f64,
    },
}

/// Watches a run and makes a [`Trial`] of it.
#[derive(Clone, Debug)]
pub struct Watch {
    objectives: Vec<Objective>,
    stretches: Vec<Stretch>,
}

impl Watch {
    /// Watches for these objectives.
    #[must_use]
    pub fn new(objectives: &[Objective]) -> Self {
        Self {
            objectives: objectives.to_vec(),
            stretches: Vec::new(),
        }
    }

    /// The run is over.
    #[must_use]
    pub fn finish(self, summary: &Summary) -> Trial {
        let outcomes = summary.tally.outcomes();
        let busy = summary.notices.iter().filter_map(|notice| match notice {
            Notice::Busy { cpu_share, .. } => Some(*cpu_share),
            _ => None,
        });
        let quantile = |objective: &Objective| {
            let latency = objective.kind.of(&summary.tally);
            latency.quantile_ns(objective.quantile())
        };
        Trial {
            stretches: self.stretches,
            quantiles_ns: self.objectives.iter().map(quantile).collect(),
            due: summary.due,
            failed: outcomes.failed(),
            elapsed: summary.elapsed(),
            lateness_p99: summary.tally.lateness.quantile(0.99),
            busy: busy.reduce(f64::max),
        }
    }
}

impl Observer for Watch {
    fn interval(&mut self, interval: &Interval) {
        let outcomes = interval.tally.outcomes();
        let beyond = self.objectives.iter().map(|objective| {
            let latency = objective.kind.of(&interval.tally);
            // A thousandth around the limit counts as equal to it.
            let within = latency.histogram().count_between(0, objective.limit_ns());
            latency.count() - within.min(latency.count()) + outcomes.failed()
        });
        let stretch = Stretch {
            requests: outcomes.total(),
            beyond: beyond.collect(),
            outstanding: interval.in_flight + interval.backlog,
        };
        match (interval.phase, self.stretches.last_mut()) {
            (Phase::Warmup, _) => {}
            (Phase::Drain, Some(last)) => last.add(&stretch),
            (Phase::Drain | Phase::Measured, _) => self.stretches.push(stretch),
        }
    }
}

impl Stretch {
    /// Adds what ended after the measured part. What is outstanding then is no measure of the load.
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        for (mine, theirs) in self.beyond.iter_mut().zip(&other.beyond) {
            *mine += theirs;
        }
    }
}

/// Growth of what is outstanding, as a share of what was due, that counts as piling up.
const PILE_SHARE: f64 = 0.02;
/// Requests by which it has to grow at least: short queues go up and down by chance.
const PILE_LEAST: f64 = 50.0;
/// The client may be late by one part in this many of the tightest limit.
const LATE_PART: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(outstanding: &[u64], due: u64) -> Trial {
        let stretch = |outstanding: &u64| Stretch {
            requests: 100,
            beyond: vec![0],
            outstanding: *outstanding,
        };
        Trial {
            stretches: outstanding.iter().map(stretch).collect(),
            due,
            ..Trial::default()
        }
    }

    #[test]
    fn a_growing_backlog_piles_up_and_a_swinging_one_does_not() {
        // Grows by 600 over two thirds of a trial of 10 000 requests: 6 %.
        assert!(trial(&[100, 200, 300, 400, 500, 600, 700, 800, 900], 10_000).piles_up());
        assert!(!trial(&[100, 200, 300, 400, 300, 200, 100, 200, 100], 10_000).piles_up());
        // By a hundredth only.
        assert!(!trial(&[0, 0, 0, 50, 50, 50, 100, 100, 100], 10_000).piles_up());
        // Large as a share, but a few requests.
        assert!(!trial(&[0, 0, 0, 5, 5, 5, 9, 9, 9], 100).piles_up());
        assert!(!trial(&[], 0).piles_up());
    }

    #[test]
    fn a_late_or_busy_client_is_a_flaw() {
        let objectives: Vec<Objective> = ["p50<10ms", "p99<2ms"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        let mut trial = trial(&[1], 1);
        trial.lateness_p99 = Duration::from_micros(200);
        assert_eq!(trial.flaw(&objectives), None);
        trial.lateness_p99 = Duration::from_micros(201);
        assert!(
            matches!(trial.flaw(&objectives), Some(Flaw::Late { limit, .. })
            if limit == Duration::from_millis(2))
        );
        trial.lateness_p99 = Duration::ZERO;
        trial.busy = Some(0.9);
        assert_eq!(trial.flaw(&objectives), Some(Flaw::Busy { cpu_share: 0.9 }));
    }
}
