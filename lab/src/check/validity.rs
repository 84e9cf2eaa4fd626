//! Whether the machine could carry the claim: injection error, lateness of the sends, steal, floor.

use kvlab_bench_client::record::Latency;
use serde::Serialize;

use super::score::{Score, ScoreName, Unit, precise};
use crate::noise::{self, Floor};
use crate::runner::{Evidence, Tier};
use crate::scenario::{Expect, Limit, Limits};
use crate::truth::{Quantile, Sorted};
use crate::verdict::{Finding, Verdict};

/// A distribution in a few numbers, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// Samples.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl From<&Sorted> for Spread {
    fn from(samples: &Sorted) -> Self {
        let at = |q| samples.quantile(q).unwrap_or(0);
        Self {
            count: samples.len(),
            p50_ns: at(Quantile::P50),
            p90_ns: at(Quantile::P90),
            p99_ns: at(Quantile::P99),
            max_ns: samples.max(),
        }
    }
}

impl From<&Latency> for Spread {
    fn from(latency: &Latency) -> Self {
        Self {
            count: latency.count(),
            p50_ns: latency.quantile_ns(0.5),
            p90_ns: latency.quantile_ns(0.9),
            p99_ns: latency.quantile_ns(0.99),
            max_ns: latency.max_ns(),
        }
    }
}

/// How well the machine carried a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Validity {
    /// From the due moment of a reply to just before its write.
    pub injection_error: Spread,
    /// From the due moment of a reply to just after its write.
    pub injection_error_after: Spread,
    /// What a reply waited for the one before it or for the end of a freeze.
    pub order_delay: Spread,
    /// The client's time minus the server's, request by request.
    pub pair_error: Spread,
    /// From the intended moment to the send; what a request waits for a free slot is part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<Spread>,
    /// From the moment a request was due and had a slot to its send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Spread>,
    /// Processor time of each client thread over elapsed time, 0 to 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_share: Vec<f64>,
    /// Share of processor time that the hypervisor took, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_share: Option<f64>,
    /// Share of processor time that anybody used, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// Share of processor time that other processes used, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_share: Option<f64>,
    /// Context switches of the whole machine per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches_per_second: Option<f64>,
    /// Share of the time in which some thread of the machine waited for a core, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure_share: Option<f64>,
    /// Median of what the machine adds to a request of a closed loop whose connections march in step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_in_step_ns: Option<u64>,
    /// Median of what the machine adds to a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_ns: Option<u64>,
    /// How far the floor moved from before the run to after it, from the middle to each end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_drift_ns: Option<u64>,
    /// How far the 90th percentile of the floor lies above its median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_spread_p90_ns: Option<u64>,
    /// How far the 99th percentile of the floor lies above its median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_spread_p99_ns: Option<u64>,
    /// Whether the server delays anything, so that there is something to inject.
    #[serde(skip)]
    injects: bool,
    /// Whether the run had a real-time priority.
    #[serde(skip)]
    is_realtime: bool,
    /// Whether the run was one under virtual time.
    #[serde(skip)]
    is_virtual: bool,
    /// How long the server writes when all slots of a closed loop are due together.
    #[serde(skip)]
    burst_ns: u64,
}

impl Validity {
    pub(super) fn new(evidence: &Evidence, floor: Option<&Floor>) -> Self {
        let pairs = evidence.joined.pairs.iter();
        let answered = pairs.filter(|pair| pair.is_measured() && pair.server.answered);
        let spread = |of: &dyn Fn(&crate::truth::Pair) -> Option<u64>| {
            Spread::from(&answered.clone().filter_map(of).collect::<Sorted>())
        };
        let tally = &evidence.summary.tally;
        let open = evidence.settings.load.is_open();
        let slots = u64::from(evidence.settings.connections.get())
            * u64::from(evidence.settings.pipeline.depth.get());
        Self {
            injection_error: spread(&|pair| {
                Some(pair.server.written.saturating_since(pair.server.due))
            }),
            injection_error_after: spread(&|pair| {
                Some(pair.server.written_after.saturating_since(pair.server.due))
            }),
            order_delay: spread(&|pair| {
                let stayed = pair.server.due.saturating_since(pair.server.read);
                let server = &pair.server;
                let asked = server.wanted_ns + server.wait_ns + server.service_ns;
                Some(stayed.saturating_sub(asked))
            }),
            pair_error: spread(&noise::difference),
            lag: open.then(|| Spread::from(&tally.lag)),
            lateness: open.then(|| Spread::from(&tally.lateness)),
            cpu_share: evidence
                .summary
                .threads
                .iter()
                .filter_map(|thread| thread.cpu_share)
                .collect(),
            steal_share: evidence.machine.map(|machine| machine.steal_share),
            busy_share: evidence.machine.map(|machine| machine.busy_share),
            others_share: evidence.machine.map(|machine| machine.others_share),
            switches_per_second: evidence.machine.map(|machine| machine.switches_per_second),
            pressure_share: evidence.machine.and_then(|machine| machine.pressure_share),
            floor_in_step_ns: floor.and_then(Floor::in_step).map(Floor::median_ns),
            floor_ns: floor.map(Floor::median_ns),
            floor_drift_ns: floor.map(Floor::drift_ns),
            floor_spread_p90_ns: floor.map(|floor| floor.spread_ns(Quantile::P90)),
            floor_spread_p99_ns: floor.map(|floor| floor.spread_ns(Quantile::P99)),
            burst_ns: if open {
                0
            } else {
                BURST_NS.min(slots * WRITE_NS)
            },
            is_realtime: evidence.machine.is_some_and(|machine| machine.is_realtime),
            is_virtual: evidence.tier != Tier::Real,
            injects: !evidence.server.latency.is_none() && evidence.tier == Tier::Real,
        }
    }

    /// Whether requests waited for free slots: the largest lag is far above the client's own lateness.
    pub(super) fn waited_for_slots(&self) -> bool {
        self.waited(|lag| lag.max_ns)
    }

    /// Whether that was so for the 99th percentile of the lag.
    pub(super) fn one_in_a_hundred_waited(&self) -> bool {
        self.waited(|lag| lag.p99_ns)
    }

    fn waited(&self, at: impl Fn(&Spread) -> u64) -> bool {
        let granted = if self.is_virtual { 0 } else { SLOTS_NS };
        match (&self.lag, &self.lateness) {
            (Some(lag), Some(lateness)) => {
                at(lag) > granted.saturating_add(at(lateness).saturating_mul(2))
            }
            _ => false,
        }
    }

    /// The injection error at its quantiles, before the write.
    pub(super) fn injection_scores(&self, limits: &Limits) -> Vec<Score> {
        let error = &self.injection_error;
        let (p50, p90, p99) = self.injection_limits(limits);
        [
            (Quantile::P50, error.p50_ns, p50),
            (Quantile::P90, error.p90_ns, p90),
            (Quantile::P99, error.p99_ns, p99),
        ]
        .map(|(q, value, limit)| {
            let score = Score::new(ScoreName::InjErr, Unit::Nanoseconds).at(q);
            if !q.is_supported_by(error.count) {
                let needed = q.samples_needed();
                return score.because(format!("needs {needed} samples, has {}", error.count));
            }
            let score = score.value(precise(value));
            if !self.injects {
                return if self.is_virtual {
                    score.within(0.0)
                } else {
                    score.because("nothing is injected")
                };
            }
            let judged = score.within(precise(limit));
            // Beyond its limits a run is void: the server is at fault, not the client.
            Score {
                verdict: judged.verdict.map(|verdict| match verdict {
                    Verdict::Fail => Verdict::Void,
                    other => other,
                }),
                ..judged
            }
        })
        .to_vec()
    }

    /// Limits of the injection error: those of the scenario, or the usual ones. In a closed loop all
    /// slots may be due together.
    fn injection_limits(&self, limits: &Limits) -> (u64, u64, u64) {
        let at = |q, usual| match limits.at(q) {
            None => usual,
            Some(Limit::Unjudged) => u64::MAX,
            Some(Limit::Within(tolerance)) => tolerance.of_ns(0),
        };
        let (p50, p90, p99) = INJECTION;
        (
            at(Quantile::P50, p50 + self.burst_ns / 2),
            at(Quantile::P90, p90 + self.burst_ns),
            at(Quantile::P99, p99 + self.burst_ns),
        )
    }

    /// The signs by which a run is void.
    pub(super) fn findings(&self, expect: &Expect) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.injects {
            let limits = self.injection_limits(&expect.injection);
            let error = &self.injection_error;
            findings.push(limited("injection", "injection error", error, &limits));
        }
        if let Some(lateness) = &self.lateness {
            findings.push(limited(
                "lateness",
                "schedule lag of the client",
                lateness,
                &LATENESS,
            ));
        }
        if let Some(steal) = self.steal_share {
            let text = format!(
                "{:.1} % of processor time stolen, limit {:.1} %",
                steal * 100.0,
                STEAL_SHARE * 100.0
            );
            findings.push(Finding::validity("steal", steal <= STEAL_SHARE, text));
        }
        if let Some(others) = self.others_share.filter(|_| !self.is_realtime) {
            let waited = self.pressure_share.map_or_else(String::new, |share| {
                format!(
                    "; a thread waited for a core {:.0} % of the time",
                    share * 100.0
                )
            });
            let text = format!(
                "{:.0} % of processor time used by other processes, limit {:.0} %{waited}",
                others * 100.0,
                OTHERS_SHARE * 100.0
            );
            findings.push(Finding::validity("others", others <= OTHERS_SHARE, text));
        }
        if let (Some(floor), Some(drift), Some(p90), Some(p99)) = (
            self.floor_ns,
            self.floor_drift_ns,
            self.floor_spread_p90_ns,
            self.floor_spread_p99_ns,
        ) {
            let holds = drift <= FLOOR_DRIFT && p90 <= FLOOR_SPREAD.0 && p99 <= FLOOR_SPREAD.1;
            let text = format!(
                "floor {} +-{} us, its p90 {} us and p99 {} us above, limits +-{}, {} and {} us",
                micros(floor),
                micros(drift),
                micros(p90),
                micros(p99),
                micros(FLOOR_DRIFT),
                micros(FLOOR_SPREAD.0),
                micros(FLOOR_SPREAD.1),
            );
            findings.push(Finding::validity("floor", holds, text));
        }
        findings
    }
}

fn limited(name: &'static str, what: &str, found: &Spread, limits: &(u64, u64, u64)) -> Finding {
    let all = [
        ("p50", found.p50_ns, limits.0),
        ("p90", found.p90_ns, limits.1),
        ("p99", found.p99_ns, limits.2),
    ];
    let holds = all.iter().all(|(_, found, limit)| found <= limit);
    let list: Vec<String> = all
        .iter()
        .map(|(q, found, limit)| format!("{q} {} of {} us", micros(*found), micros(*limit)))
        .collect();
    Finding::validity(name, holds, format!("{what}: {}", list.join(", ")))
}

/// Microseconds with one decimal.
fn micros(ns: u64) -> String {
    let tenths = ns.saturating_add(50) / 100;
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        tenth => format!("{}.{tenth}", tenths / 10),
    }
}

/// Limits of the injection error at p50, p90, p99: beyond them the server did not do what it was
/// told, and says so.
const INJECTION: (u64, u64, u64) = (20_000, 120_000, 500_000);
/// What writing one reply takes, about. In a closed loop all slots may be due together, and the last
/// of them is written after all others: that is no noise.
const WRITE_NS: u64 = 4_000;
/// Bound of what is granted for it.
const BURST_NS: u64 = 1_000_000;
/// Lag beyond the client's own lateness from which on requests have waited for slots.
const SLOTS_NS: u64 = 100_000;
/// Limits of the client's lateness: beyond them it did not get the processor when it was due.
const LATENESS: (u64, u64, u64) = (50_000, 250_000, 1_000_000);
/// How far the floor may move during a run, from the middle to each end.
const FLOOR_DRIFT: u64 = 50_000;
/// Limits of the floor's spread at p90 and p99.
const FLOOR_SPREAD: (u64, u64) = (250_000, 1_000_000);
/// Share of processor time that the hypervisor may take.
const STEAL_SHARE: f64 = 0.02;
/// Share of processor time that other processes may use.
const OTHERS_SHARE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    #[test]
    fn a_run_is_void_as_soon_as_one_limit_is_passed() {
        let quiet = Spread {
            count: 1,
            p50_ns: 20_000,
            p90_ns: 120_000,
            p99_ns: 500_000,
            max_ns: u64::MAX,
        };
        let verdict = |spread: &Spread| limited("injection", "", spread, &INJECTION).verdict;
        assert_eq!(verdict(&quiet), Verdict::Pass);
        for noisy in [
            Spread {
                p50_ns: 20_001,
                ..quiet
            },
            Spread {
                p90_ns: 120_001,
                ..quiet
            },
            Spread {
                p99_ns: 500_001,
                ..quiet
            },
        ] {
            assert_eq!(verdict(&noisy), Verdict::Void);
        }
    }

    #[test]
    fn microseconds_are_rounded_to_a_decimal() {
        assert_eq!(micros(0), "0");
        assert_eq!(micros(12_340), "12.3");
        assert_eq!(micros(12_950), "13");
    }
}
