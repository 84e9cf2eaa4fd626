//! The open loop's timetable: intended moments by arithmetic, response times by simulation.

use std::collections::{BTreeMap, BTreeSet};

use kvlab_bench_client::record::RowKind;
use kvlab_bench_client::settings::{Arrivals, Load, PipelineMode};
use kvlab_mock_server::exchange::Class;
use kvlab_mock_server::stamp::FaultKind;
use kvlab_timing::Stamp;

use super::accounting::{all_load_answered, is_harmless};
use crate::runner::{Evidence, Tier};
use crate::truth::arrivals::{self, Timing};
use crate::truth::join::is_timed;
use crate::truth::schedule::{Arrival, Pool, Served, Server, simulate};
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
    timetable_from(evidence, Stamp::ZERO)
}

/// The same, with the response times of requests that were intended from a moment on alone.
#[must_use]
pub(crate) fn timetable_from(evidence: &Evidence, from: Stamp) -> Timetable {
    if !evidence.settings.load.is_open() {
        return Timetable::Closed;
    }
    if !evidence.server.cuts.is_empty() {
        return Timetable::Unknown("the server ended connections");
    }
    if evidence.server.limits_connections() {
        return Timetable::Unknown("the server limited connections");
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
            if pair.server.queue_place.is_some() {
                return Timetable::Unknown("other requests passed the queue too");
            }
            if pair.server.throttle_place.is_some() {
                return Timetable::Unknown("other requests asked the throttles too");
            }
            continue;
        }
        let Some(pool) = pools.of_address.get(&pair.client.local) else {
            return Timetable::Unknown("connections were made anew or not used");
        };
        by_pool.entry(*pool).or_default().push(pair);
    }
    let mut server = server(evidence);
    let mut threads = Vec::new();
    for (pool, pairs) in &mut by_pool {
        pairs.sort_by_key(|pair| (pair.client.intended, pair.client.sent, pair.key()));
        let thread = thread(evidence, pairs, server.rows.len());
        if !server.throttles.is_empty() {
            server
                .rows
                .extend(pairs.iter().map(|pair| pair.server.clone()));
        }
        if pools.connections.get(*pool) != Some(&thread.0.connections.len()) {
            return Timetable::Unknown("connections were made anew or not used");
        }
        threads.push(thread);
    }
    let mut responses = Vec::new();
    let mut differing = Vec::new();
    let simulated = simulate(&server, &threads);
    for (pair, served) in by_pool.values().flatten().zip(simulated.iter().flatten()) {
        if is_timed(&pair.client) && pair.client.intended >= from {
            responses.push(served.received_ns - pair.client.intended.as_nanos());
        }
        differing.extend(difference(evidence, pair, *served));
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

fn server(evidence: &Evidence) -> Server {
    Server {
        leg_ns: evidence.tier.leg_ns(),
        freezes: evidence.server.freezes(),
        line: evidence.server.line(),
        shapes: evidence.server.shapes(),
        throttles: evidence.rule().throttles,
        rows: Vec::new(),
    }
}

/// One thread of the client and what it was to send; its rows stand behind `before` others.
fn thread(evidence: &Evidence, pairs: &[&Pair], before: usize) -> (Pool, Vec<Arrival>) {
    let pipeline = evidence.settings.pipeline;
    let pool = Pool {
        connections: in_order_of_use(pairs),
        depth: usize::try_from(pipeline.depth.get()).unwrap_or(usize::MAX),
        batch: pipeline.mode == PipelineMode::Batch,
    };
    let arrivals = (before..).zip(pairs).map(|(row, pair)| Arrival {
        intended_ns: pair.client.intended.as_nanos(),
        connection: pair.server.connection,
        drawn_ns: pair.server.drawn_ns,
        service_ns: pair.server.service_ns,
        is_data: pair.server.class != Class::Admin,
        is_too_large: pair.server.fault == FaultKind::TooLarge,
        row,
    });
    (pool, arrivals.collect())
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

/// The moments that requests were intended for, in order, where all of them are known: requests
/// that were never handed to a connection have no row.
pub(super) fn intended_moments(evidence: &Evidence) -> Option<Vec<u64>> {
    let joined = &evidence.joined;
    let paired = joined.pairs.iter().map(|pair| &pair.client);
    let mut intended: Vec<u64> = paired
        .chain(&joined.client_only)
        .chain(&joined.excused)
        .filter(|row| row.kind == RowKind::Load && !row.retried)
        .map(|row| row.intended.as_nanos())
        .collect();
    intended.sort_unstable();
    (intended.len() as u64 == evidence.summary.due).then_some(intended)
}

/// The timetable of the measured part by its law, rate and seed; `None` for a closed loop.
pub(super) fn derived_moments(evidence: &Evidence) -> Option<(Vec<u64>, Arrivals)> {
    let Load::Open { rate, arrivals } = evidence.settings.load else {
        return None;
    };
    let stop = evidence.settings.stop;
    let start = evidence.summary.started;
    let timing = Timing {
        rate,
        threads: evidence.settings.threads.get(),
        start,
        end: stop.duration.map_or(Stamp::MAX, |length| start + length),
        // An interrupted run has fewer, but never more than it counted.
        most: stop.requests.unwrap_or(u64::MAX),
    };
    let moments = match arrivals {
        Arrivals::Uniform => arrivals::uniform(&timing),
        Arrivals::Poisson => arrivals::poisson(&timing, evidence.settings.seed),
    };
    Some((moments, arrivals))
}

/// Every request was intended for the moment that the timetable's law, rate and seed give.
fn intended(evidence: &Evidence) -> Option<Finding> {
    if evidence.summary.interrupted || !evidence.summary.notices.iter().all(is_harmless) {
        return None;
    }
    let intended = intended_moments(evidence)?;
    let (derived, law) = derived_moments(evidence)?;
    let (slack, name) = match law {
        Arrivals::Uniform => (0, "uniform"),
        Arrivals::Poisson => (arrivals::SLACK_NS, "poisson"),
    };
    let wrong: Vec<String> = (0..)
        .zip(intended.iter().zip(&derived))
        .filter(|(_, (found, expected))| found.abs_diff(**expected) > slack)
        .map(|(index, (found, expected))| {
            let index: u64 = index;
            format!("arrival {index}: intended at {found}, timetable {expected}")
        })
        .collect();
    let holds = wrong.is_empty() && intended.len() == derived.len();
    let text = if holds {
        let count = intended.len();
        format!("{count} arrivals at the moments of the {name} timetable")
    } else {
        format!(
            "{} of {} arrivals not at the moments of the timetable, which has {}",
            wrong.len(),
            intended.len(),
            derived.len()
        )
    };
    Some(Finding::proof("intended", holds, text).with_examples(wrong))
}
