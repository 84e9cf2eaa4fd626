//! Computes the figures of a run and holds each against what is true.

use kvlab_bench_client::record::Latency;

use super::latency::{AspectRow, Figure, FigureKind, QuantileRow, TruthSource};
use super::law::Injected;
use super::score::Aspect;
use super::steady::Sample;
use super::timetable::Timetable;
use crate::noise::Floor;
use crate::runner::{Evidence, Tier};
use crate::scenario::{Expect, Limit, Limits, default_mean, default_response, default_service};
use crate::truth::exact::{Z_95, rounded_mean};
use crate::truth::{Pair, Quantile, Sorted};
use crate::verdict::Verdict;

/// What every figure of a run is made from.
pub(super) struct Basis<'a> {
    pub(super) evidence: &'a Evidence,
    pub(super) expect: &'a Expect,
    pub(super) floor: Option<&'a Floor>,
    pub(super) sample: &'a Sample<'a>,
    pub(super) timetable: &'a Timetable,
}

/// All figures of a run.
pub(super) fn figures(basis: &Basis<'_>) -> Vec<Figure> {
    let injected = Injected::new(basis.evidence);
    let mut figures = vec![service(basis, &injected)];
    if !matches!(basis.timetable, Timetable::Closed) {
        figures.push(response(basis, &injected));
    }
    figures.extend(network(basis, &injected));
    figures
}

fn service(basis: &Basis<'_>, injected: &Injected) -> Figure {
    let (tier, floor) = (basis.evidence.tier, basis.floor);
    let truth = sojourn(basis.sample);
    let raw = reported(basis.sample, Pair::service_ns);
    let added = match tier {
        Tier::Real => floor.map_or((0, 0), Floor::service_range_ns),
        Tier::Virtual { leg_ns } => (2 * leg_ns, 2 * leg_ns),
    };
    // Requests that met a freeze hide the machine's tail: it begins at a lower quantile.
    let frozen = if !basis.evidence.server.freezes.is_empty() {
        carried_share(&truth)
    } else {
        0.0
    };
    let usual = |at: At, true_ns: u64| match at {
        At::Quantile(q) => default_service(q).map(|tolerance| {
            let interval = if q >= Quantile::P99 {
                truth.half_width(q, Z_95).max(raw.half_width(q, Z_95))
            } else {
                0
            };
            tolerance.of_ns(true_ns) + interval + spread(floor, q, frozen)
        }),
        At::Mean | At::Max => None,
    };
    Comparison {
        tier,
        limits: &basis.expect.service,
        truth: &truth,
        raw: &raw,
        histogram: basis.whole(|| basis.evidence.summary.tally.service()),
        added: &|_| added,
        usual: &usual,
        carries: &|_| false,
    }
    .figure(FigureKind::Service, TruthSource::Sojourn, injected)
}

fn response(basis: &Basis<'_>, injected: &Injected) -> Figure {
    let (tier, floor) = (basis.evidence.tier, basis.floor);
    let by_stamps: Sorted;
    let (source, truth) = match basis.timetable {
        Timetable::Simulated { responses, .. } => (TruthSource::Timetable, responses),
        _ => {
            let leg_ns = tier.leg_ns();
            let written = |pair: &&Pair| {
                let after = pair.server.written.saturating_since(pair.client.intended);
                after + leg_ns
            };
            by_stamps = basis.sample.timed.iter().map(written).collect();
            (TruthSource::Stamps, &by_stamps)
        }
    };
    let raw = reported(basis.sample, Pair::response_ns);
    let median = truth.quantile(Quantile::P50).unwrap_or(0);
    let carries = |true_ns: u64| source == TruthSource::Timetable && true_ns >= 2 * median;
    let frozen = carried_share(truth);
    let base = floor.map_or(0, Floor::median_ns);
    // A quantile that a freeze or a queue carries is held to the timetable as it is; by the stamps
    // half of the floor is in the truth already.
    let added = |true_ns| match source {
        TruthSource::Timetable if !carries(true_ns) => (base, base),
        _ => (0, 0),
    };
    let by_stamps = if source == TruthSource::Stamps {
        base
    } else {
        0
    };
    let usual = |at: At, true_ns: u64| match at {
        At::Quantile(q) => default_response(q)
            .map(|tolerance| tolerance.of_ns(true_ns) + by_stamps + spread(floor, q, frozen)),
        At::Mean => Some(default_mean().of_ns(true_ns) + by_stamps + mean_spread(floor)),
        At::Max if carries(true_ns) => Some(default_mean().of_ns(true_ns)),
        At::Max => None,
    };
    Comparison {
        tier,
        limits: &basis.expect.response,
        truth,
        raw: &raw,
        histogram: basis.whole(|| basis.evidence.summary.tally.response()),
        added: &added,
        usual: &usual,
        carries: &carries,
    }
    .figure(FigureKind::Response, source, injected)
}

/// The service time up to the kernel's stamp, where all replies have one.
fn network(basis: &Basis<'_>, injected: &Injected) -> Option<Figure> {
    let raw = reported(basis.sample, network_ns);
    if raw.is_empty() || raw.len() < basis.sample.timed.len() as u64 {
        return None;
    }
    let truth = sojourn(basis.sample);
    let comparison = Comparison {
        tier: basis.evidence.tier,
        limits: &basis.expect.kernel,
        truth: &truth,
        raw: &raw,
        histogram: basis.whole(|| basis.evidence.summary.tally.network()),
        added: &|_| (0, 0),
        // Half of the floor is in it: what may remain is for the scenario to say.
        usual: &|_, _| None,
        carries: &|_| false,
    };
    Some(comparison.figure(FigureKind::Network, TruthSource::Sojourn, injected))
}

/// From the send to the kernel's receive stamp, which the conversion from the calendar clock may
/// have put outside of send and read.
pub(crate) fn network_ns(pair: &Pair) -> Option<u64> {
    let (sent, received) = (pair.client.sent, pair.client.received?);
    let kernel = pair.client.kernel?.min(received).max(sent);
    Some(kernel.saturating_since(sent))
}

pub(super) fn sojourn(sample: &Sample<'_>) -> Sorted {
    sample.timed.iter().map(|pair| pair.sojourn_ns()).collect()
}

pub(super) fn reported(sample: &Sample<'_>, time: impl Fn(&Pair) -> Option<u64>) -> Sorted {
    sample.timed.iter().filter_map(|pair| time(pair)).collect()
}

impl Basis<'_> {
    /// The client's own histogram, where it holds the very requests that are judged.
    fn whole(&self, histogram: impl Fn() -> Latency) -> Option<Latency> {
        (self.sample.is_whole && self.evidence.tier == Tier::Real).then(histogram)
    }
}

/// What of a distribution is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Quantile(Quantile),
    Mean,
    Max,
}

/// A reported distribution beside the true one.
struct Comparison<'a> {
    tier: Tier,
    /// What the scenario says.
    limits: &'a Limits,
    truth: &'a Sorted,
    /// By the client's rows.
    raw: &'a Sorted,
    /// By the client's histogram, where that is what it reports.
    histogram: Option<Latency>,
    /// What belongs to a reported value beside the true one: at least and at most.
    added: &'a dyn Fn(u64) -> (u64, u64),
    /// The tolerance where the scenario says nothing.
    usual: &'a dyn Fn(At, u64) -> Option<u64>,
    /// Whether a true value comes from the timetable's queue or freeze and not from the machine:
    /// then it is exact however few requests have it.
    carries: &'a dyn Fn(u64) -> bool,
}

impl Comparison<'_> {
    fn figure(&self, figure: FigureKind, truth: TruthSource, injected: &Injected) -> Figure {
        let quantile = |q: Quantile| {
            let true_ns = self.truth.quantile(q).unwrap_or(0);
            let reported_ns = match &self.histogram {
                Some(histogram) => histogram.quantile_ns(q.as_f64()),
                None => self.raw.quantile(q).unwrap_or(0),
            };
            let judged = self.judged(At::Quantile(q), (true_ns, reported_ns));
            QuantileRow {
                quantile: q,
                injected_ns: injected.at(q),
                true_ns,
                reported_ns,
                interval_ns: self.raw.interval(q, Z_95),
                error_ns: judged.error_ns,
                tolerance_ns: judged.tolerance_ns,
                verdict: judged.verdict,
                reason: judged.reason,
            }
        };
        let mean = match &self.histogram {
            Some(histogram) => rounded_mean(histogram.sum_ns(), histogram.count()),
            None => self.raw.rounded_mean(),
        };
        let max = match &self.histogram {
            Some(histogram) => histogram.max_ns(),
            None => self.raw.max(),
        };
        let aspects = [
            (Aspect::Mean, At::Mean, (self.truth.rounded_mean(), mean)),
            (Aspect::Max, At::Max, (self.truth.max(), max)),
        ];
        let aspect = |(of, at, (true_ns, reported_ns)): (Aspect, At, (u64, u64))| {
            let judged = self.judged(at, (true_ns, reported_ns));
            AspectRow {
                of,
                true_ns,
                reported_ns,
                interval_ns: None,
                error_ns: judged.error_ns,
                tolerance_ns: judged.tolerance_ns,
                verdict: judged.verdict,
                reason: judged.reason,
            }
        };
        Figure {
            figure,
            truth,
            samples: self.truth.len(),
            quantiles: Quantile::JUDGED.map(quantile).to_vec(),
            aspects: aspects.map(aspect).to_vec(),
        }
    }

    fn judged(&self, at: At, (true_ns, reported_ns): (u64, u64)) -> Judged {
        let error_ns = beyond(signed(reported_ns) - signed(true_ns), (self.added)(true_ns));
        let allowed = match self.tier {
            Tier::Virtual { .. } if self.truth.is_empty() => Err("no samples".to_owned()),
            Tier::Virtual { .. } => Ok(0),
            Tier::Real => self.supported(at, true_ns).and_then(|()| {
                let tolerance = match self.limit(at) {
                    Some(Limit::Unjudged) => None,
                    Some(Limit::Within(tolerance)) => Some(tolerance.of_ns(true_ns)),
                    None => (self.usual)(at, true_ns),
                };
                tolerance.ok_or_else(|| "not judged here".to_owned())
            }),
        };
        let (tolerance_ns, verdict, reason) = match allowed {
            Ok(tolerance) => {
                let holds = error_ns.unsigned_abs() <= tolerance;
                (Some(tolerance), Some(Verdict::from_holds(holds)), None)
            }
            Err(reason) => (None, None, Some(reason)),
        };
        Judged {
            error_ns,
            tolerance_ns,
            verdict,
            reason,
        }
    }

    fn limit(&self, at: At) -> Option<Limit> {
        match at {
            At::Quantile(q) => self.limits.at(q),
            At::Mean => self.limits.mean,
            At::Max => None,
        }
    }

    /// Whether there are samples enough.
    fn supported(&self, at: At, true_ns: u64) -> Result<(), String> {
        let count = self.truth.len();
        match at {
            At::Quantile(q) if !q.is_supported_by(count) && !(self.carries)(true_ns) => {
                Err(format!("needs {} samples, has {count}", q.samples_needed()))
            }
            _ if count == 0 => Err("no samples".to_owned()),
            _ => Ok(()),
        }
    }
}

struct Judged {
    error_ns: i64,
    tolerance_ns: Option<u64>,
    verdict: Option<Verdict>,
    reason: Option<String>,
}

/// How far a difference lies outside of a range; 0 within it.
fn beyond(difference_ns: i64, (least, most): (u64, u64)) -> i64 {
    difference_ns - difference_ns.clamp(signed(least), signed(most.max(least)))
}

/// The share of requests whose true time is at least twice the median: those that met a freeze or
/// its queue.
#[expect(clippy::cast_precision_loss, reason = "a share")]
fn carried_share(truth: &Sorted) -> f64 {
    let bound = truth.quantile(Quantile::P50).unwrap_or(0).saturating_mul(2);
    let below = truth.samples().partition_point(|time| *time < bound) as u64;
    1.0 - below as f64 / truth.len().max(1) as f64
}

/// What is granted for the floor: how far it moved, and above the median its own spread. Where a
/// share of the requests met a freeze, the quantile of the others is a higher one.
fn spread(floor: Option<&Floor>, q: Quantile, frozen: f64) -> u64 {
    let share = q.as_f64() / (1.0 - frozen).max(f64::MIN_POSITIVE);
    floor.map_or(0, |floor| {
        let above = if q == Quantile::P50 {
            0
        } else if share < 1.0 {
            floor.spread_at(share)
        } else {
            floor.spread_ns(q)
        };
        floor.drift_ns() + above
    })
}

/// What is granted to a mean: how far the floor moved and its mean lies above its median.
pub(super) fn mean_spread(floor: Option<&Floor>) -> u64 {
    floor.map_or(0, |floor| floor.drift_ns() + floor.mean_above_ns())
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_counts_from_the_nearer_end_of_what_is_added() {
        assert_eq!(beyond(120, (100, 100)), 20);
        assert_eq!(beyond(80, (100, 100)), -20);
        for (difference, error) in [(40, -10), (50, 0), (300, 0), (391, 0), (400, 9)] {
            assert_eq!(beyond(difference, (50, 391)), error);
        }
    }

    #[test]
    fn what_met_a_freeze_is_what_took_twice_the_median() {
        let times: Sorted = (0..1_000)
            .map(|i| if i < 75 { 2_000 + i } else { 1_000 })
            .collect();
        assert!((carried_share(&times) - 0.075).abs() < 1e-12);
        assert!(carried_share(&Sorted::default()).abs() <= 1.0);
    }
}
