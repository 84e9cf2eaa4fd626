//! Puts the scores of a run together: `docs/accuracy.md` has the definition of each.

use kvlab_bench_client::record::Latency;

use super::figures::{Basis, mean_spread, reported, sojourn};
use super::latency::{Figure, FigureKind, TruthSource};
use super::score::{Aspect, Score, ScoreName, Unit, precise};
use super::timetable::Timetable;
use super::validity::Validity;
use super::{Accounting, arrivals};
use crate::noise::Floor;
use crate::runner::Tier;
use crate::scenario::{Limit, Tolerance};
use crate::statistics::wasserstein::{distance, of_histogram, of_sorted};
use crate::truth::exact::Z_95;
use crate::truth::{Pair, Quantile, Sorted};
use crate::verdict::{Finding, Verdict};

/// All scores of a run.
pub(super) fn scores(
    basis: &Basis<'_>,
    figures: &[Figure],
    accounting: &Accounting,
    validity: &Validity,
) -> Vec<Score> {
    let evidence = basis.evidence;
    let mut scores: Vec<Score> = figures.iter().flat_map(of_figure).collect();
    scores.push(omission(basis, accounting));
    scores.extend(pair_errors(basis));
    scores.extend(wasserstein(basis));
    scores.extend(arrivals::scores(evidence, basis.expect, validity));
    scores.extend(validity.injection_scores(&basis.expect.injection));
    scores.extend(clamp(basis));
    scores
}

/// The findings that rest on scores alone; those of figures and validity have findings of their
/// own.
pub(super) fn findings(scores: &[Score]) -> Vec<Finding> {
    let names = [
        ("omission", ScoreName::Omission, true),
        ("pair error", ScoreName::PairErr, false),
        ("distance", ScoreName::W1, false),
        ("rate", ScoreName::RateErr, false),
        ("arrivals", ScoreName::ArrivalAD, true),
        ("clamp", ScoreName::Clamp, true),
    ];
    names
        .into_iter()
        .filter_map(|(name, score, is_proof)| {
            let judged = scores
                .iter()
                .filter(|found| found.name == score && found.verdict.is_some());
            let bad: Vec<String> = judged
                .clone()
                .filter(|score| score.verdict == Some(Verdict::Fail))
                .map(|score| {
                    let (value, limit) = (score.value.unwrap_or(f64::NAN), score.limit);
                    format!("{score}: {value}, limit {}", limit.unwrap_or(f64::NAN))
                })
                .collect();
            let count = judged.count();
            let text = format!(
                "{} of {count} scores within their limits",
                count - bad.len()
            );
            let finding = if is_proof {
                Finding::proof(name, bad.is_empty(), text)
            } else {
                Finding::measurement(name, bad.is_empty(), text)
            };
            (count > 0).then(|| finding.with_examples(bad))
        })
        .collect()
}

/// Errors as shares of the true value.
fn of_figure(figure: &Figure) -> Vec<Score> {
    let name = match figure.figure {
        FigureKind::Service => ScoreName::ServErr,
        FigureKind::Response => ScoreName::RespErr,
        FigureKind::Network => ScoreName::NetErr,
    };
    let share = |ns: f64, true_ns: u64| ns / precise(true_ns.max(1));
    let mut scores = Vec::new();
    for row in &figure.quantiles {
        let score = Score::new(name, Unit::Share).at(row.quantile);
        let enough = row.quantile.is_supported_by(figure.samples) || row.verdict.is_some();
        if !enough {
            scores.push(score.because(row.reason.clone().unwrap_or_default()));
            continue;
        }
        let error = signed(row.error_ns);
        let reported = precise(row.reported_ns);
        let end = |ns: u64| share(error + precise(ns) - reported, row.true_ns);
        scores.push(Score {
            value: Some(share(error, row.true_ns)),
            interval: Some((end(row.interval_ns.0), end(row.interval_ns.1))),
            limit: row.tolerance_ns.map(|ns| share(precise(ns), row.true_ns)),
            verdict: row.verdict,
            reason: row.reason.clone(),
            ..score
        });
    }
    for row in &figure.aspects {
        // Means of service times are told by W1, largest values only where a timetable has them.
        if row.verdict.is_none() && (row.of == Aspect::Max || figure.truth == TruthSource::Sojourn)
        {
            continue;
        }
        scores.push(Score {
            value: Some(share(signed(row.error_ns), row.true_ns)),
            limit: row.tolerance_ns.map(|ns| share(precise(ns), row.true_ns)),
            verdict: row.verdict,
            reason: row.reason.clone(),
            ..Score::new(name, Unit::Share).of(row.of)
        });
    }
    scores
}

/// 1 - recorded / due: every request ends in a latency or in a class of its own.
fn omission(basis: &Basis<'_>, accounting: &Accounting) -> Score {
    let tally = &basis.evidence.summary.tally;
    let failed: u64 = tally.classes.iter().map(|class| class.failed.count()).sum();
    let unanswered = accounting.timeouts + accounting.lost + accounting.not_sent;
    let recorded = tally.service().count() + failed + unanswered;
    let score = Score::new(ScoreName::Omission, Unit::Share);
    if accounting.due == 0 {
        return score.because("nothing was due");
    }
    let score = score.value(1.0 - precise(recorded) / precise(accounting.due));
    match basis.expect.omission {
        None => score.within(0.0),
        Some(Limit::Unjudged) => score.because("not judged here"),
        Some(Limit::Within(tolerance)) => score.within(tolerance.share),
    }
}

/// Client's time minus server's, request by request.
fn pair_errors(basis: &Basis<'_>) -> Vec<Score> {
    let (evidence, floor) = (basis.evidence, basis.floor);
    let errors = reported(basis.sample, crate::noise::difference);
    [Quantile::P50, Quantile::P99]
        .map(|q| {
            let score = Score::new(ScoreName::PairErr, Unit::Nanoseconds).at(q);
            let Some(value) = errors.quantile(q) else {
                return score.because("no samples");
            };
            let (low, high) = errors.interval(q, Z_95);
            let score = score
                .value(precise(value))
                .interval(precise(low), precise(high));
            let limit = match (evidence.tier, floor) {
                (Tier::Virtual { leg_ns }, _) => 2 * leg_ns,
                (Tier::Real, None) => return score.because("the floor was not measured"),
                (Tier::Real, Some(floor)) => match pair_limit(basis, floor, q, value) {
                    Ok(limit) => limit,
                    Err(reason) => return score.because(reason),
                },
            };
            if q.is_supported_by(errors.len()) || evidence.tier != Tier::Real {
                score.within(precise(limit))
            } else {
                score.because(format!(
                    "needs {} samples, has {}",
                    q.samples_needed(),
                    errors.len()
                ))
            }
        })
        .to_vec()
}

/// The largest pair error that passes, or why it is not judged.
fn pair_limit(basis: &Basis<'_>, floor: &Floor, q: Quantile, true_ns: u64) -> Result<u64, String> {
    let base = floor.median_ns();
    let explicit = match basis.expect.pair.at(q) {
        Some(Limit::Unjudged) => return Err("not judged here".to_owned()),
        Some(Limit::Within(tolerance)) => Some(tolerance.of_ns(true_ns)),
        None => None,
    };
    match (q, explicit) {
        (Quantile::P50, Some(above)) => return Ok(base + above),
        (_, Some(most)) => return Ok(most),
        _ => {}
    }
    let settings = &basis.evidence.settings;
    let in_bursts = floor.is_in_step() || settings.pipeline.depth.get() > 1;
    if !settings.load.is_open() && in_bursts {
        return Err("not judged: replies of a closed loop come in bursts".to_owned());
    }
    Ok(match q {
        Quantile::P50 => base + PAIR_ABOVE_NS + floor.drift_ns(),
        _ => {
            let machine = base + floor.spread_ns(q) + PAIR_ABOVE_NS + floor.drift_ns();
            PAIR_P99_NS.max(machine)
        }
    })
}

/// The mean distance of reported and true times, less the floor.
fn wasserstein(basis: &Basis<'_>) -> Vec<Score> {
    let (tier, tally) = (basis.evidence.tier, &basis.evidence.summary.tally);
    let leg_ns = tier.leg_ns();
    let truth = sojourn(basis.sample);
    let raw = reported(basis.sample, Pair::service_ns);
    let range = basis.floor.map(Floor::service_range_ns);
    let mut scores = vec![distance_score(
        basis,
        (Aspect::Service, range, 2 * leg_ns),
        (&truth, &raw, || tally.service()),
    )];
    if let Timetable::Simulated { responses, .. } = basis.timetable {
        let raw = reported(basis.sample, Pair::response_ns);
        let floor = basis.floor.map(Floor::median_ns);
        scores.push(distance_score(
            basis,
            (Aspect::Response, floor.zip(floor), 0),
            (responses, &raw, || tally.response()),
        ));
    }
    scores
}

fn distance_score(
    basis: &Basis<'_>,
    (of, floor, network_ns): (Aspect, Option<(u64, u64)>, u64),
    (truth, raw, histogram): (&Sorted, &Sorted, impl Fn() -> Latency),
) -> Score {
    let score = Score::new(ScoreName::W1, Unit::Nanoseconds).of(of);
    let is_real = basis.evidence.tier == Tier::Real;
    let reported = if is_real && basis.sample.is_whole {
        of_histogram(&histogram())
    } else {
        of_sorted(raw)
    };
    let Some(distance) = distance(&reported, &of_sorted(truth)) else {
        return score.because("no samples");
    };
    if !is_real {
        return score.value(distance - precise(network_ns)).within(0.0);
    }
    let Some((least, most)) = floor else {
        return score
            .value(distance)
            .because("the floor was not measured and is part of it");
    };
    let score = score.value(distance - distance.clamp(precise(least), precise(most)));
    let mean = truth.rounded_mean();
    match basis.expect.w1 {
        Some(Limit::Unjudged) => score.because("not judged here"),
        Some(Limit::Within(tolerance)) => score.within(precise(tolerance.of_ns(mean))),
        None => {
            let usual = Tolerance::new(W1_MICROS, W1_PERCENT).of_ns(mean);
            let server = match of {
                Aspect::Response => injection_error(basis.sample),
                _ => 0,
            };
            score.within(precise(usual + server + mean_spread(basis.floor)))
        }
    }
}

/// What the server was late by, on the average: the timetable does not know it, and the client is not
/// to blame.
fn injection_error(sample: &super::Sample<'_>) -> u64 {
    let late = sample.timed.iter().map(|pair| &pair.server);
    let late: Sorted = late
        .map(|row| row.written.saturating_since(row.due))
        .collect();
    late.rounded_mean()
}

/// What the client's histogram can hold, and what it could not.
fn clamp(basis: &Basis<'_>) -> [Score; 2] {
    let largest = Latency::default().histogram().high();
    let least = match basis.expect.clamp {
        None => Some(HOUR_NS),
        Some(Limit::Unjudged) => None,
        Some(Limit::Within(tolerance)) => Some(tolerance.of_ns(0)),
    };
    let saturated = basis.evidence.summary.tally.clamped();
    [
        Score {
            limit: least.map(precise),
            verdict: least.map(|least| Verdict::from_holds(largest >= least)),
            ..Score::new(ScoreName::Clamp, Unit::Nanoseconds).value(precise(largest))
        },
        Score::new(ScoreName::Clamp, Unit::Number)
            .of(Aspect::Saturated)
            .value(precise(saturated))
            .within(0.0),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "errors are far below 2^53 ns")]
fn signed(ns: i64) -> f64 {
    ns as f64
}

const HOUR_NS: u64 = 3_600_000_000_000;
/// How far the median of the pair errors may lie above the floor.
const PAIR_ABOVE_NS: u64 = 20_000;
/// Limit of their 99th percentile, where the floor's own is not above it.
const PAIR_P99_NS: u64 = 500_000;
/// Limit of the distance: the larger of both.
const W1_MICROS: u64 = 20;
const W1_PERCENT: f64 = 3.0;
