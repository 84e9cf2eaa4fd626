//! The intervals of a run as JSON: how it went on, and how the client itself was meanwhile.

use serde::Serialize;

use crate::record::{self, Latency, Phase};
use crate::report::nanos;
use crate::report::quantile::{P50, P99};

#[derive(Serialize)]
pub(super) struct Interval {
    interval: u64,
    phase: &'static str,
    /// Stamps of the monotonic clock.
    begin_ns: u64,
    end_ns: u64,
    /// From the start of the measured part to the end of the interval; 0 in the warm-up.
    elapsed_ns: u64,
    sent: u64,
    answered: u64,
    failed: u64,
    service: Brief,
    response: Option<Brief>,
    network: Option<Brief>,
    lag: Option<Brief>,
    lateness: Option<Brief>,
    read_delay: Option<Brief>,
    loop_turn: Option<Brief>,
    threads: Vec<Thread>,
    connections: u64,
    connecting: u64,
    in_flight: u64,
    backlog: u64,
}

/// A distribution in three numbers.
#[derive(Serialize)]
struct Brief {
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

#[derive(Serialize)]
struct Thread {
    cpu_share: f64,
    spun_share: f64,
}

impl Interval {
    pub(super) fn of(interval: &record::Interval, open_loop: bool) -> Self {
        let tally = &interval.tally;
        let outcomes = tally.outcomes();
        let brief = |latency: &Latency| (!latency.is_empty()).then(|| Brief::of(latency));
        Self {
            interval: interval.index,
            phase: match interval.phase {
                Phase::Warmup => "warmup",
                Phase::Measured => "measured",
                Phase::Drain => "drain",
            },
            begin_ns: interval.begin.as_nanos(),
            end_ns: interval.end.as_nanos(),
            elapsed_ns: nanos(interval.elapsed),
            sent: tally.sent,
            answered: outcomes.answered(),
            failed: outcomes.failed(),
            service: Brief::of(&tally.service()),
            response: open_loop.then(|| Brief::of(&tally.response())),
            network: brief(&tally.network()),
            lag: open_loop.then(|| Brief::of(&tally.lag)),
            lateness: open_loop.then(|| Brief::of(&tally.lateness)),
            read_delay: brief(&tally.read_delay),
            loop_turn: brief(&tally.turns),
            threads: interval
                .threads
                .iter()
                .map(|thread| Thread {
                    cpu_share: thread.cpu_share,
                    spun_share: thread.spun_share,
                })
                .collect(),
            connections: interval.connections,
            connecting: interval.connecting,
            in_flight: interval.in_flight,
            backlog: interval.backlog,
        }
    }
}

impl Brief {
    fn of(latency: &Latency) -> Self {
        Self {
            p50_ns: P50.of(latency).ns(),
            p99_ns: P99.of(latency).ns(),
            max_ns: (!latency.is_empty()).then(|| latency.max_ns()),
        }
    }
}
