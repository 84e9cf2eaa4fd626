//! The open loop's timetable: intended moments by arithmetic, response times by simulation.

use std::collections::{BTreeMap, BTreeSet};

use kvlab_bench_client::record::RowKind;
use kvlab_bench_client::settings::{Arrivals, Load, PipelineMode};

use super::accounting::all_load_answered;
use crate::runner::{Evidence, Tier};
use crate::truth::join::is_timed;
use crate::truth::schedule::{Arrival, Pool, Served, simulate};
use crate::truth::{Pair, Sorted};
use crate::verdict::Finding;

/// What the timetable of a run says.
#[derive(Clone, Debug)]
pub enum Timetable {
    /// A closed loop has none.
    Closed,
    /// Something happened that the simulation does not know; why.
    Unknown(&'static str),
    /// It was worked through.
    Simulated {
        /// Response times of the measured part.
        responses: Sorted,
        /// Requests whose moments differ from the simulation's; only told under virtual time.
        differing: Vec<String>,
    },
}

/// Works through the timetable of a run.
#[must_use]
pub fn timetable(evidence: &Evidence) -> Timetable {
    if !evidence.settings.load.is_open() {
        return Timetable::Closed;
    }
    if !all_load_answered(evidence) {
        return Timetable::Unknown("not every request was answered");
    }
    let Some(pools) = &evidence.pools else {
        return Timetable::Unknown("connections were made anew or not used");
    };
    let mut by_pool: BTreeMap<usize, Vec<&Pair>> = BTreeMap::new();
    for pair in &evidence.joined.pairs {
        if !matches!(pair.client.kind, RowKind::Load | RowKind::Warmup) {
            continue;
        }
        let Some(pool) = pools.of_address.get(&pair.client.local) else {
            return Timetable::Unknown("connections were made anew or not used");
        };
        by_pool.entry(*pool).or_default().push(pair);
    }
    let mut responses = Vec::new();
    let mut differing = Vec::new();
    for (pool, mut pairs) in by_pool {
        pairs.sort_by_key(|pair| (pair.client.intended, pair.client.sent, pair.key()));
        if pools.connections.get(pool) != Some(&in_order_of_use(&pairs).len()) {
            return Timetable::Unknown("connections were made anew or not used");
        }
        for (pair, served) in pairs.iter().zip(served(evidence, &pairs)) {
            if is_timed(&pair.client) {
                responses.push(served.received_ns - pair.client.intended.as_nanos());
            }
            differing.extend(difference(evidence, pair, served));
        }
    }
    Timetable::Simulated {
        responses: Sorted::new(responses),
        differing,
    }
}

/// The numbers of the connections on the server. A client uses each once before it uses one again,
/// so the order of their first requests is the order in which they stand.
fn in_order_of_use(pairs: &[&Pair]) -> Vec<u64> {
    let mut seen = BTreeSet::new();
    let numbers = pairs.iter().map(|pair| pair.server.connection);
    numbers.filter(|number| seen.insert(*number)).collect()
}

fn served(evidence: &Evidence, pairs: &[&Pair]) -> Vec<Served> {
    let pipeline = evidence.settings.pipeline;
    let pool = Pool {
        connections: in_order_of_use(pairs),
        depth: usize::try_from(pipeline.depth.get()).unwrap_or(usize::MAX),
        batch: pipeline.mode == PipelineMode::Batch,
        leg_ns: evidence.tier.leg_ns(),
        freezes: evidence.server.freezes(),
    };
    let arrivals: Vec<Arrival> = pairs
        .iter()
        .map(|pair| Arrival {
            intended_ns: pair.client.intended.as_nanos(),
            wanted_ns: pair.server.wanted_ns,
        })
        .collect();
    simulate(&pool, &arrivals)
}

fn difference(evidence: &Evidence, pair: &Pair, served: Served) -> Option<String> {
    let sent = pair.client.sent.as_nanos();
    let received = pair.client.received?.as_nanos();
    let same = (sent, received) == (served.sent_ns, served.received_ns);
    (evidence.tier != Tier::Real && !same).then(|| {
        format!(
            "{}: sent {sent}, received {received}; by the timetable {} and {}",
            pair.key(),
            served.sent_ns,
            served.received_ns
        )
    })
}

impl Timetable {
    /// Whether intended moments, and under virtual time all others, are those of the timetable.
    pub(super) fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        let mut findings = Vec::new();
        findings.extend(intended(evidence));
        if let (
            Self::Simulated {
                responses,
                differing,
            },
            Tier::Virtual { .. },
        ) = (self, evidence.tier)
        {
            let holds = differing.is_empty();
            let text = if holds {
                format!(
                    "{} response times equal the simulated timetable's",
                    responses.len()
                )
            } else {
                format!(
                    "{} requests differ from the simulated timetable",
                    differing.len()
                )
            };
            findings.push(
                Finding::proof("timetable", holds, text).with_examples(differing.iter().cloned()),
            );
        }
        findings
    }
}

/// Uniform arrivals: the i-th was intended at `start + floor(i / rate)`.
fn intended(evidence: &Evidence) -> Option<Finding> {
    let Load::Open {
        rate,
        arrivals: Arrivals::Uniform,
    } = evidence.settings.load
    else {
        return None;
    };
    let joined = &evidence.joined;
    let paired = joined.pairs.iter().map(|pair| &pair.client);
    let mut intended: Vec<u64> = paired
        .chain(&joined.client_only)
        .chain(&joined.excused)
        .filter(|row| row.kind == RowKind::Load && !row.retried)
        .map(|row| row.intended.as_nanos())
        .collect();
    intended.sort_unstable();
    // Requests that were never handed to a connection have no row: only without them is every
    // moment known.
    let complete = intended.len() as u64 == evidence.summary.due;
    if !complete {
        return None;
    }
    let start = evidence.summary.started.as_nanos();
    let (num, den) = (u128::from(rate.numerator()), u128::from(rate.denominator()));
    let wrong: Vec<String> = (0_u128..)
        .zip(&intended)
        .filter_map(|(index, found)| {
            let after = index * 1_000_000_000 * den / num;
            let expected = u128::from(start) + after;
            (u128::from(*found) != expected)
                .then(|| format!("arrival {index}: intended at {found}, timetable {expected}"))
        })
        .collect();
    let text = if wrong.is_empty() {
        format!(
            "{} arrivals at the moments of the uniform timetable",
            intended.len()
        )
    } else {
        format!(
            "{} arrivals not at the moments of the timetable",
            wrong.len()
        )
    };
    Some(Finding::proof("intended", wrong.is_empty(), text).with_examples(wrong))
}
