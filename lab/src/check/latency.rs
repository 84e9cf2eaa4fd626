//! The figures: what was injected, what truly happened, what the client reports.
//!
//! In real time a service time is judged against the server's true sojourn and the floor, a response
//! time against the timetable; under virtual time both have to be exact.

use kvlab_mock_server::latency::{Distribution, Selector};
use kvlab_mock_server::stamp::FaultKind;
use serde::Serialize;

use super::timetable::Timetable;
use crate::noise::Floor;
use crate::runner::{Evidence, Tier};
use crate::scenario::{Expect, Limit, Limits, default_response, default_service};
use crate::truth::join::is_timed;
use crate::truth::{Pair, Quantile, Sorted};
use crate::verdict::{Finding, Verdict};

/// One figure of the client, quantile by quantile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Which time.
    pub figure: FigureKind,
    /// What it is held against.
    pub truth: TruthSource,
    /// Requests it covers.
    pub samples: u64,
    /// The quantiles.
    pub quantiles: Vec<QuantileRow>,
}

/// Which time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureKind {
    /// From the send to the reply.
    Service,
    /// From the intended moment to the reply.
    Response,
}

/// Where the true values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TruthSource {
    /// The server's stamps: written - read.
    Sojourn,
    /// The timetable, simulated.
    Timetable,
    /// The server's write minus the client's intended moment, where the timetable cannot be
    /// simulated.
    Stamps,
}

/// One quantile of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuantileRow {
    /// Which.
    pub quantile: Quantile,
    /// What the law that was to be injected has there; the sample's quantile where several laws
    /// apply.
    pub injected_ns: u64,
    /// What truly happened.
    pub true_ns: u64,
    /// What the client reports.
    pub reported_ns: u64,
    /// Reported minus true; for the service time also minus the floor.
    pub error_ns: i64,
    /// The allowed error, where it is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance_ns: Option<u64>,
    /// How it came out; `None` when it is not judged.
    pub verdict: Option<Verdict>,
    /// Why it is not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Figure {
    /// Whether every judged quantile is within its tolerance; `None` when none is judged.
    pub(super) fn finding(&self) -> Option<Finding> {
        let judged = self.quantiles.iter().filter(|row| row.verdict.is_some());
        let bad: Vec<String> = judged
            .clone()
            .filter(|row| row.verdict == Some(Verdict::Fail))
            .map(|row| {
                let allowed = row.tolerance_ns.unwrap_or(0);
                format!(
                    "{}: off by {} ns, allowed {allowed}",
                    row.quantile, row.error_ns
                )
            })
            .collect();
        let count = judged.count();
        if count == 0 {
            return None;
        }
        let name = match self.figure {
            FigureKind::Service => "service",
            FigureKind::Response => "response",
        };
        let text = format!(
            "{} of {count} quantiles within tolerance",
            count - bad.len()
        );
        Some(Finding::measurement(name, bad.is_empty(), text).with_examples(bad))
    }
}

/// All figures of a run.
pub(super) fn figures(
    evidence: &Evidence,
    timetable: &Timetable,
    expect: &Expect,
    floor: Option<&Floor>,
) -> Vec<Figure> {
    let timed: Vec<&Pair> = evidence
        .joined
        .pairs
        .iter()
        .filter(|pair| is_timed(&pair.client))
        .collect();
    let injected = Injected::new(evidence);
    let mut figures = vec![service(evidence, &timed, &injected, expect, floor)];
    if !matches!(timetable, Timetable::Closed) {
        figures.push(response(
            evidence, &timed, timetable, &injected, expect, floor,
        ));
    }
    figures
}

fn service(
    evidence: &Evidence,
    timed: &[&Pair],
    injected: &Injected,
    expect: &Expect,
    floor: Option<&Floor>,
) -> Figure {
    let sojourn: Sorted = timed.iter().map(|pair| pair.sojourn_ns()).collect();
    let raw: Sorted = timed.iter().filter_map(|pair| pair.service_ns()).collect();
    let histogram = evidence.summary.tally.service();
    let added = match evidence.tier {
        Tier::Real => floor.map_or(0, Floor::median_ns),
        Tier::Virtual { leg_ns } => 2 * leg_ns,
    };
    let row = |q: Quantile| {
        let true_ns = sojourn.quantile(q).unwrap_or(0);
        let reported_ns = match evidence.tier {
            Tier::Real => histogram.quantile_ns(q.as_f64()),
            Tier::Virtual { .. } => raw.quantile(q).unwrap_or(0),
        };
        let judging = Judging {
            explicit: expect.service.at(q),
            usual: default_service(q).map(|tolerance| {
                let interval = if q >= Quantile::P99 {
                    sojourn.half_width(q, Z_95).max(raw.half_width(q, Z_95))
                } else {
                    0
                };
                tolerance.of_ns(true_ns) + interval + spread(floor, q)
            }),
            carried_by_schedule: false,
            samples: sojourn.len(),
        };
        let error_ns = signed(reported_ns) - signed(true_ns) - signed(added);
        judging.row(
            evidence.tier,
            q,
            injected.at(q),
            (true_ns, reported_ns, error_ns),
        )
    };
    Figure {
        figure: FigureKind::Service,
        truth: TruthSource::Sojourn,
        samples: sojourn.len(),
        quantiles: Quantile::JUDGED.map(row).to_vec(),
    }
}

fn response(
    evidence: &Evidence,
    timed: &[&Pair],
    timetable: &Timetable,
    injected: &Injected,
    expect: &Expect,
    floor: Option<&Floor>,
) -> Figure {
    let by_stamps: Sorted;
    let (source, truth) = match timetable {
        Timetable::Simulated { responses, .. } => (TruthSource::Timetable, responses),
        _ => {
            let legs = evidence.tier.leg_ns();
            let written =
                |pair: &&Pair| pair.server.written.saturating_since(pair.client.intended) + legs;
            by_stamps = timed.iter().map(written).collect();
            (TruthSource::Stamps, &by_stamps)
        }
    };
    let raw: Sorted = timed.iter().filter_map(|pair| pair.response_ns()).collect();
    let histogram = evidence.summary.tally.response();
    let median = truth.quantile(Quantile::P50).unwrap_or(0);
    let row = |q: Quantile| {
        let true_ns = truth.quantile(q).unwrap_or(0);
        let reported_ns = match evidence.tier {
            Tier::Real => histogram.quantile_ns(q.as_f64()),
            Tier::Virtual { .. } => raw.quantile(q).unwrap_or(0),
        };
        let added = floor.map_or(0, Floor::median_ns) + spread(floor, q);
        let judging = Judging {
            explicit: expect.response.at(q),
            usual: default_response(q).map(|tolerance| tolerance.of_ns(true_ns) + added),
            carried_by_schedule: source == TruthSource::Timetable && true_ns >= 2 * median,
            samples: truth.len(),
        };
        let error_ns = signed(reported_ns) - signed(true_ns);
        judging.row(
            evidence.tier,
            q,
            injected.at(q),
            (true_ns, reported_ns, error_ns),
        )
    };
    Figure {
        figure: FigureKind::Response,
        truth: source,
        samples: truth.len(),
        quantiles: Quantile::JUDGED.map(row).to_vec(),
    }
}

/// By what one quantile is judged.
struct Judging {
    /// What the scenario says.
    explicit: Option<Limit>,
    /// The tolerance otherwise.
    usual: Option<u64>,
    /// Whether the true value comes from the timetable's queue or freeze and not from the machine:
    /// then it is exact however few requests have it.
    carried_by_schedule: bool,
    samples: u64,
}

impl Judging {
    fn row(
        &self,
        tier: Tier,
        quantile: Quantile,
        injected_ns: u64,
        (true_ns, reported_ns, error_ns): (u64, u64, i64),
    ) -> QuantileRow {
        let judged = match tier {
            Tier::Virtual { .. } if self.samples == 0 => Err("no samples".to_owned()),
            Tier::Virtual { .. } => Ok(0),
            Tier::Real if quantile.is_supported_by(self.samples) || self.carried_by_schedule => {
                let tolerance = match self.explicit {
                    Some(Limit::Unjudged) => None,
                    Some(Limit::Within(tolerance)) => Some(tolerance.of_ns(true_ns)),
                    None => self.usual,
                };
                tolerance.ok_or_else(|| "not judged here".to_owned())
            }
            Tier::Real => Err(format!(
                "needs {} samples, has {}",
                quantile.samples_needed(),
                self.samples
            )),
        };
        let (tolerance_ns, verdict, reason) = match judged {
            Ok(tolerance) => {
                let holds = error_ns.unsigned_abs() <= tolerance;
                (Some(tolerance), Some(Verdict::from_holds(holds)), None)
            }
            Err(reason) => (None, None, Some(reason)),
        };
        QuantileRow {
            quantile,
            injected_ns,
            true_ns,
            reported_ns,
            error_ns,
            tolerance_ns,
            verdict,
            reason,
        }
    }
}

/// What was to be injected.
struct Injected {
    law: Option<Distribution>,
    wanted: Sorted,
}

impl Injected {
    fn new(evidence: &Evidence) -> Self {
        let pairs = evidence
            .joined
            .pairs
            .iter()
            .filter(|pair| pair.is_measured());
        Self {
            law: single_law(evidence),
            wanted: pairs
                .filter(|pair| pair.server.fault != FaultKind::Refused)
                .map(|pair| pair.server.drawn_ns)
                .collect(),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "laws give finite times from 0 up; rounded to the nanosecond"
    )]
    fn at(&self, q: Quantile) -> u64 {
        match &self.law {
            Some(law) => law.quantile_ns(q.as_f64()).round() as u64,
            None => self.wanted.quantile(q).unwrap_or(0),
        }
    }
}

/// The law of all requests, where there is but one.
fn single_law(evidence: &Evidence) -> Option<Distribution> {
    match evidence.server.latency.rules() {
        [] => Some(Distribution::None),
        [rule] if rule.selector == Selector::DATA => Some(rule.law.clone()),
        _ => None,
    }
}

/// The delays that were drawn follow the law: the law's quantile lies within the order-statistic
/// interval of the sample, five deviations wide.
pub(super) fn law(evidence: &Evidence) -> Option<Finding> {
    let injected = Injected::new(evidence);
    let law = injected.law.as_ref()?;
    // Beyond these the interval would reach over the end of the sample.
    let supported = |q: &Quantile| q.is_supported_by(injected.wanted.len());
    let wrong: Vec<String> = Quantile::JUDGED
        .into_iter()
        .filter(supported)
        .filter_map(|q| {
            let (low, high) = injected.wanted.interval(q, 5.0);
            let expected = injected.at(q);
            // Delays are whole nanoseconds, the law's quantile is rounded to one.
            let holds = (low.saturating_sub(1)..=high.saturating_add(1)).contains(&expected);
            (!holds).then(|| format!("{q}: law {expected} ns, drawn {low} to {high} ns"))
        })
        .collect();
    let text = if wrong.is_empty() {
        format!("the delays drawn follow {law}")
    } else {
        format!("the delays drawn do not follow {law}")
    };
    Some(Finding::proof("law", wrong.is_empty(), text).with_examples(wrong))
}

/// The true sojourn against the law, where the scenario asks for it.
pub(super) fn sojourn(evidence: &Evidence, expect: &Expect) -> Option<Finding> {
    if expect.sojourn == Limits::default() {
        return None;
    }
    let injected = Injected::new(evidence);
    let timed = evidence
        .joined
        .pairs
        .iter()
        .filter(|pair| is_timed(&pair.client));
    let sojourn: Sorted = timed.map(Pair::sojourn_ns).collect();
    let mut list = Vec::new();
    let mut holds = true;
    for q in Quantile::JUDGED {
        let Some(Limit::Within(tolerance)) = expect.sojourn.at(q) else {
            continue;
        };
        let (wanted, found) = (injected.at(q), sojourn.quantile(q).unwrap_or(0));
        let error = found.abs_diff(wanted);
        holds &= error <= tolerance.of_ns(wanted);
        list.push(format!(
            "{q} {found} ns, injected {wanted} ns, allowed +-{tolerance}"
        ));
    }
    Some(Finding::measurement("sojourn", holds, list.join("; ")))
}

/// What is granted for the floor: how far it moved, and above the median its own spread.
fn spread(floor: Option<&Floor>, q: Quantile) -> u64 {
    floor.map_or(0, |floor| floor.drift_ns() + floor.spread_ns(q))
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Deviations of a 95 % interval.
const Z_95: f64 = 1.96;
