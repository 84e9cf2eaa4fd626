//! The numbers of a run as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::connections::Connections;
use crate::record::{ClassTally, Latency, Notice, Outcomes, Summary};
use crate::report::number::rate;
use crate::report::quantile::QUANTILES;
use crate::report::{Head, all_classes, certificate, nanos, notice};

#[derive(Serialize)]
pub(super) struct RunResult {
    load_model: &'static str,
    interrupted: bool,
    /// Whether the client, and not the server, may have been the limit; the notices say why.
    saturated: bool,
    /// Calendar time of the start of the load, warm-up included.
    load_started_unix_ns: u64,
    /// Calendar time of the start of the measured part.
    started_unix_ns: u64,
    elapsed_ns: u64,
    due: u64,
    sent: u64,
    rate_per_second: f64,
    total: Class,
    classes: Vec<Class>,
    /// Send minus intended start.
    lag: Option<Stats>,
    /// The part of the lag that is the client's own.
    lateness: Option<Stats>,
    /// Read minus the kernel's receive stamp; null without such stamps.
    read_delay: Option<Stats>,
    kernel_stamps_astray: u64,
    /// From one look at the sockets to the next, sleep left out; null under virtual time.
    loop_turn: Option<Stats>,
    bytes_out: u64,
    bytes_in: u64,
    bytes_out_per_second: f64,
    bytes_in_per_second: f64,
    connections: Connections,
    threads: Vec<Thread>,
    warmup_requests: u64,
    control_replies: u64,
    pushes: u64,
    /// Hexadecimal, because it uses all 64 bits.
    sequence_hash: String,
    notices: Vec<Said>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<certificate::Entry>,
}

#[derive(Serialize)]
struct Class {
    name: String,
    requests: u64,
    rate_per_second: f64,
    outcomes: Counts,
    errors: BTreeMap<String, u64>,
    retries: u64,
    service: Stats,
    response: Option<Stats>,
    /// Kernel's receive stamp minus send.
    network: Option<Stats>,
    /// Service time of error replies.
    failed: Option<Stats>,
}

#[derive(Serialize)]
struct Counts {
    hits: u64,
    misses: u64,
    errors: u64,
    timeouts: u64,
    connection_lost: u64,
    not_sent: u64,
}

#[derive(Serialize)]
pub(super) struct Stats {
    samples: u64,
    min_ns: Option<u64>,
    mean_ns: Option<f64>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    p9999_ns: Option<u64>,
    max_ns: Option<u64>,
    clamped: u64,
}

#[derive(Serialize)]
struct Thread {
    connections: u32,
    due: u64,
    cpu_share: Option<f64>,
    cpu_ns: Option<u64>,
    /// The part of `cpu_ns`, at most, that waited for the next due moment or reply.
    spun_ns: Option<u64>,
}

#[derive(Serialize)]
struct Said {
    kind: &'static str,
    text: String,
}

impl RunResult {
    pub(super) fn of(head: &Head, summary: &Summary) -> Self {
        let tally = &summary.tally;
        let elapsed = summary.elapsed();
        let open_loop = summary.load.is_open();
        let class = |name: &str, class: &ClassTally| Class::of(name, class, elapsed, open_loop);
        Self {
            load_model: if open_loop { "open" } else { "closed" },
            interrupted: summary.interrupted,
            saturated: summary.is_saturated(),
            load_started_unix_ns: head
                .wall
                .unix_nanos(summary.started.sub_nanos(nanos(head.settings.warmup))),
            started_unix_ns: head.wall.unix_nanos(summary.started),
            elapsed_ns: nanos(elapsed),
            due: summary.due,
            sent: tally.sent,
            rate_per_second: summary.rate(),
            total: class("total", &all_classes(tally)),
            classes: summary
                .classes
                .iter()
                .zip(&tally.classes)
                .map(|(name, tally)| class(name, tally))
                .collect(),
            lag: open_loop.then(|| Stats::of(&tally.lag)),
            lateness: open_loop.then(|| Stats::of(&tally.lateness)),
            read_delay: Stats::unless_empty(&tally.read_delay),
            kernel_stamps_astray: tally.stamps_astray,
            loop_turn: Stats::unless_empty(&tally.turns),
            bytes_out: tally.bytes_out,
            bytes_in: tally.bytes_in,
            bytes_out_per_second: rate(tally.bytes_out, elapsed),
            bytes_in_per_second: rate(tally.bytes_in, elapsed),
            connections: Connections::of(summary),
            threads: summary
                .threads
                .iter()
                .map(|thread| Thread {
                    connections: thread.connections,
                    due: thread.due,
                    cpu_share: thread.cpu_share,
                    cpu_ns: thread.cpu.map(nanos),
                    spun_ns: thread.spun.map(nanos),
                })
                .collect(),
            warmup_requests: summary.warmup.total(),
            control_replies: tally.control,
            pushes: tally.pushes,
            sequence_hash: format!("{:016x}", summary.sequence_hash),
            notices: summary.notices.iter().map(Said::of).collect(),
            certificate: summary.certificate.as_ref().map(certificate::Entry::of),
        }
    }
}

impl Class {
    fn of(name: &str, class: &ClassTally, elapsed: Duration, open_loop: bool) -> Self {
        let errors = class.errors.iter();
        Self {
            name: name.to_owned(),
            requests: class.outcomes.total(),
            rate_per_second: rate(class.outcomes.answered(), elapsed),
            outcomes: Counts::of(&class.outcomes),
            errors: errors
                .map(|(kind, count)| (kind.to_string(), *count))
                .collect(),
            retries: class.retries,
            service: Stats::of(&class.service),
            response: open_loop.then(|| Stats::of(&class.response)),
            network: Stats::unless_empty(&class.network),
            failed: Stats::unless_empty(&class.failed),
        }
    }
}

impl Counts {
    fn of(outcomes: &Outcomes) -> Self {
        Self {
            hits: outcomes.hits,
            misses: outcomes.misses,
            errors: outcomes.errors,
            timeouts: outcomes.timeouts,
            connection_lost: outcomes.lost,
            not_sent: outcomes.not_sent,
        }
    }
}

impl Stats {
    pub(super) fn unless_empty(latency: &Latency) -> Option<Self> {
        (!latency.is_empty()).then(|| Self::of(latency))
    }

    pub(super) fn of(latency: &Latency) -> Self {
        let some = !latency.is_empty();
        let [p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns] =
            QUANTILES.map(|quantile| quantile.of(latency).ns());
        Self {
            samples: latency.count(),
            min_ns: some.then(|| latency.min_ns()),
            mean_ns: some.then(|| latency.mean_ns()),
            p50_ns,
            p90_ns,
            p99_ns,
            p999_ns,
            p9999_ns,
            max_ns: some.then(|| latency.max_ns()),
            clamped: latency.clamped(),
        }
    }
}

impl Said {
    fn of(notice: &Notice) -> Self {
        Self {
            kind: notice::kind(notice),
            text: notice::sentence(notice),
        }
    }
}
