//! Where the load became steady, and which requests are judged.
//!
//! From the begin of the load, warm-up included, the mean and the 99th percentile of the latency are
//! taken over windows of 100 ms, and MSER-5 ([`crate::statistics::mser`]) says how much of each
//! series to leave out. Random series have a least value somewhere, too: a cut only counts where
//! it makes the rest's squared standard error smaller by a tenth. What lies before the later of
//! both cuts and was not warm-up by the scenario is left out of the figures of a run in real time,
//! on both sides; requests are accounted for as a whole all the same. Under virtual time nothing
//! is left out.

use kvlab_bench_client::record::RowKind;
use kvlab_timing::Stamp;
use serde::Serialize;

use super::score::precise;
use crate::runner::{Evidence, Tier};
use crate::statistics::mser::{self, Truncation};
use crate::truth::join::is_timed;
use crate::truth::{Pair, Quantile, Sorted};

/// When the load was warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WarmUp {
    /// What the scenario calls warm-up, counted from the begin of the load.
    pub configured_ns: u64,
    /// From when on the windows' means are steady, counted from the begin of the load.
    pub steady_mean_ns: u64,
    /// The same of their 99th percentiles.
    pub steady_p99_ns: u64,
    /// Whether both settled in the first half of the run.
    pub is_steady: bool,
    /// What was left out of the figures at the begin of the measured part.
    pub left_out_ns: u64,
}

impl WarmUp {
    /// Looks for the end of the warm-up; `None` where there are too few windows or too few requests
    /// in them.
    pub(super) fn detect(evidence: &Evidence) -> Option<Self> {
        let load = |pair: &&Pair| matches!(pair.client.kind, RowKind::Load | RowKind::Warmup);
        let begin = evidence
            .joined
            .pairs
            .iter()
            .filter(load)
            .map(|pair| pair.client.intended)
            .min()?;
        let (means, tails) = windows(evidence, begin)?;
        let (mean, tail) = (mser::truncation(&means)?, mser::truncation(&tails)?);
        let configured_ns = evidence.summary.started.saturating_since(begin);
        let (steady_mean_ns, steady_p99_ns) = (cut_ns(mean), cut_ns(tail));
        let beyond = steady_mean_ns
            .max(steady_p99_ns)
            .saturating_sub(configured_ns);
        let is_steady = mean.is_steady && tail.is_steady;
        Some(Self {
            configured_ns,
            steady_mean_ns,
            steady_p99_ns,
            is_steady,
            left_out_ns: if evidence.tier == Tier::Real && is_steady {
                beyond
            } else {
                0
            },
        })
    }
}

/// Mean and 99th percentile of the latency by window, as far as all windows have enough requests.
fn windows(evidence: &Evidence, begin: Stamp) -> Option<(Vec<f64>, Vec<f64>)> {
    let mut windows: Vec<Vec<u64>> = Vec::new();
    for pair in &evidence.joined.pairs {
        let is_load = matches!(pair.client.kind, RowKind::Load | RowKind::Warmup);
        let latency = pair.response_ns();
        let (true, Some(latency)) = (is_load, latency) else {
            continue;
        };
        let after = pair.client.intended.saturating_since(begin);
        let place = usize::try_from(after / WINDOW_NS).ok()?;
        if place >= MOST_WINDOWS {
            return None;
        }
        if windows.len() <= place {
            windows.resize_with(place + 1, Vec::new);
        }
        windows[place].push(latency);
    }
    // The last one is cut off by the end of the run.
    windows.pop();
    if windows.iter().any(|window| window.len() < LEAST_IN_WINDOW) {
        return None;
    }
    let windows: Vec<Sorted> = windows.into_iter().map(Sorted::new).collect();
    let tails = windows
        .iter()
        .map(|window| precise(window.quantile(Quantile::P99).unwrap_or(0)));
    Some((windows.iter().map(Sorted::mean).collect(), tails.collect()))
}

fn cut_ns(found: Truncation) -> u64 {
    let counts = found.cut > 0 && found.rest <= WORTH_A_CUT * found.whole;
    if counts {
        found.cut as u64 * WINDOW_NS
    } else {
        0
    }
}

/// The requests that are judged.
pub(super) struct Sample<'a> {
    /// Hits and misses of the measured part, from when it was steady on.
    pub(super) timed: Vec<&'a Pair>,
    /// Whether that is all of them.
    pub(super) is_whole: bool,
}

impl<'a> Sample<'a> {
    pub(super) fn new(evidence: &'a Evidence, from: Stamp) -> Self {
        let all = evidence.joined.pairs.iter();
        let all: Vec<&Pair> = all.filter(|pair| is_timed(&pair.client)).collect();
        let count = all.len();
        let steady = all.into_iter().filter(|pair| pair.client.intended >= from);
        let timed: Vec<&Pair> = steady.collect();
        Self {
            is_whole: timed.len() == count,
            timed,
        }
    }
}

/// The moment from which on requests are judged.
pub(crate) fn steady_from(evidence: &Evidence, warm_up: Option<&WarmUp>) -> Stamp {
    let left_out = warm_up.map_or(0, |found| found.left_out_ns);
    if left_out == 0 {
        Stamp::ZERO
    } else {
        evidence.summary.started.add_nanos(left_out)
    }
}

const WINDOW_NS: u64 = 100_000_000;
/// Requests that each window has to have.
const LEAST_IN_WINDOW: usize = 5;
/// Bound of the windows: almost three hours.
const MOST_WINDOWS: usize = 100_000;
/// Share of the whole series' MSER below which a cut counts.
const WORTH_A_CUT: f64 = 0.9;
