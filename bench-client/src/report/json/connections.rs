//! What happened to connections, as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::result::Stats;
use crate::limits::{FoundBucket, FoundCap, Limits};
use crate::record::Summary;
use crate::report::nanos;

#[derive(Serialize)]
pub(super) struct Connections {
    wanted: u64,
    at_start: u64,
    established: u64,
    failed: u64,
    lost: u64,
    /// From the begin of the set-up until all were up; null if the load began without some.
    all_up_ns: Option<u64>,
    setup: Stats,
    tcp: Option<Stats>,
    tls: Option<Stats>,
    login: Option<Stats>,
    first_reply: Option<Stats>,
    causes: BTreeMap<&'static str, u64>,
    texts: Vec<Text>,
    unsolicited_bytes: u64,
    curve: Vec<Point>,
    limits: Found,
}

#[derive(Serialize)]
struct Text {
    text: String,
    count: u64,
}

#[derive(Serialize)]
struct Point {
    at_ns: u64,
    up: u64,
    connecting: u64,
}

#[derive(Serialize)]
struct Found {
    bucket: Option<Bucket>,
    cap: Option<Cap>,
    syn_repeats: Vec<Repeats>,
    hung: u64,
}

#[derive(Serialize)]
struct Bucket {
    burst: u64,
    window_ns: u64,
    rate_per_second: f64,
    measured_burst: f64,
    measured_rate_per_second: f64,
    form: &'static str,
    evidence: u64,
}

#[derive(Serialize)]
struct Cap {
    connections: u64,
    form: &'static str,
    evidence: u64,
}

#[derive(Serialize)]
struct Repeats {
    after_ns: u64,
    connects: u64,
}

impl Connections {
    pub(super) fn of(summary: &Summary) -> Self {
        let connects = &summary.tally.connects;
        let texts = connects.texts.iter();
        let curve = summary.setup.curve.iter();
        Self {
            wanted: summary.connections_wanted,
            at_start: summary.connections_at_start,
            established: connects.established,
            failed: connects.failed,
            lost: connects.lost,
            all_up_ns: summary.setup.all_up.map(nanos),
            setup: Stats::of(&connects.setup),
            tcp: Stats::unless_empty(&connects.tcp),
            tls: Stats::unless_empty(&connects.tls),
            login: Stats::unless_empty(&connects.login),
            first_reply: Stats::unless_empty(&connects.first_reply),
            causes: connects.causes.iter().collect(),
            texts: texts
                .map(|(text, count)| Text {
                    text: text.clone(),
                    count: *count,
                })
                .collect(),
            unsolicited_bytes: connects.unsolicited_bytes,
            curve: curve
                .map(|point| Point {
                    at_ns: nanos(point.at),
                    up: point.up,
                    connecting: point.connecting,
                })
                .collect(),
            limits: Found::of(&summary.limits),
        }
    }
}

impl Found {
    fn of(limits: &Limits) -> Self {
        Self {
            bucket: limits.bucket.as_ref().map(Bucket::of),
            cap: limits.cap.as_ref().map(Cap::of),
            syn_repeats: limits
                .retries
                .iter()
                .filter(|(_, connects)| *connects > 0)
                .map(|(seconds, connects)| Repeats {
                    after_ns: seconds * 1_000_000_000,
                    connects,
                })
                .collect(),
            hung: limits.hung,
        }
    }
}

impl Bucket {
    fn of(found: &FoundBucket) -> Self {
        Self {
            burst: found.burst,
            window_ns: nanos(found.window()),
            rate_per_second: found.per_second,
            measured_burst: found.measured_burst,
            measured_rate_per_second: found.measured_per_second,
            form: found.form.name(),
            evidence: found.evidence,
        }
    }
}

impl Cap {
    fn of(found: &FoundCap) -> Self {
        Self {
            connections: found.connections,
            form: found.form.name(),
            evidence: found.evidence,
        }
    }
}
