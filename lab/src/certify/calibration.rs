//! One calibration run: what is known of its requests, and how it is made like the measured run.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use kvlab_bench_client::Settings;
use kvlab_bench_client::record::{CertifiedLatency, Latency, RowKind, Summary};
use kvlab_bench_client::settings::{
    AerospikeOperation, AerospikeVerb, KeyPattern, Load, PipelineMode, RedisOperation, Stop, Target,
};
use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::latency::Distribution;

use super::curve::Curve;
use super::law;
use crate::noise;
use crate::runner::Evidence;
use crate::truth::join::is_timed;
use crate::truth::schedule::{Arrival, Pool, Server, simulate};
use crate::truth::{Pair, Quantile, Sorted};

/// What a run against the mock server showed.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Whether it came before the measured run.
    pub before: bool,
    /// The law of the server's delays.
    pub law: String,
    /// Answered requests.
    pub requests: u64,
    /// Answered requests per second.
    pub per_second: f64,
    /// 99th percentile of the client's own delay before the send, in nanoseconds.
    pub lateness_p99_ns: u64,
    /// Quantiles p50, p90, p99 of what was added to the server's time, in nanoseconds.
    pub added_ns: [u64; 3],
    samples: BTreeMap<CertifiedLatency, Samples>,
}

/// True and measured times of the same requests, in nanoseconds, and what the client recorded of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    truth: Vec<f64>,
    seen: Vec<f64>,
    recorded: Curve,
    recorded_longest: f64,
}

impl Samples {
    /// Two lists of the same length, in the same order. `None` when they are empty or nothing was
    /// recorded.
    #[must_use]
    pub fn new(truth: Vec<f64>, seen: Vec<f64>, recorded: &Latency) -> Option<Self> {
        assert_eq!(
            truth.len(),
            seen.len(),
            "one measured time for each true one"
        );
        if truth.is_empty() {
            return None;
        }
        Some(Self {
            truth,
            seen,
            recorded: Curve::of_latency(recorded)?,
            recorded_longest: time(recorded.max_ns()),
        })
    }

    /// What the client's recorder made of the measured times.
    #[must_use]
    pub fn recorded(&self) -> &Curve {
        &self.recorded
    }

    /// The longest time that the client's recorder holds.
    #[must_use]
    pub fn recorded_longest(&self) -> f64 {
        self.recorded_longest
    }

    /// The true times.
    #[must_use]
    pub fn truth(&self) -> &[f64] {
        &self.truth
    }

    /// The measured times.
    #[must_use]
    pub fn seen(&self) -> &[f64] {
        &self.seen
    }

    /// True and measured time of each request.
    pub fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        self.truth.iter().copied().zip(self.seen.iter().copied())
    }
}

impl Calibration {
    /// Reads a run; `None` when it has no answered request.
    #[must_use]
    pub fn of(evidence: &Evidence, law: &Distribution, before: bool) -> Option<Self> {
        let timed: Vec<&Pair> = evidence
            .joined
            .pairs
            .iter()
            .filter(|pair| is_timed(&pair.client) && pair.server.answered)
            .collect();
        let mut samples = BTreeMap::new();
        let mut add = |latency, list: Vec<(u64, u64)>| {
            let (truth, seen) = list.into_iter().map(|(t, s)| (time(t), time(s))).unzip();
            let recorded = measured(latency, &evidence.summary);
            if let Some(list) = Samples::new(truth, seen, &recorded) {
                samples.insert(latency, list);
            }
        };
        let service = timed
            .iter()
            .filter_map(|pair| Some((pair.sojourn_ns(), pair.service_ns()?)));
        add(CertifiedLatency::Service, service.collect());
        let network = timed
            .iter()
            .filter_map(|pair| Some((pair.sojourn_ns(), network_ns(pair)?)));
        add(CertifiedLatency::Network, network.collect());
        add(CertifiedLatency::Response, responses(evidence));
        let added: Sorted = timed
            .iter()
            .filter_map(|pair| noise::difference(pair))
            .collect();
        Some(Self {
            before,
            law: law::outline(law),
            requests: added.len(),
            per_second: evidence.summary.rate(),
            lateness_p99_ns: evidence.summary.tally.lateness.quantile_ns(0.99),
            added_ns: [
                added.quantile(Quantile::P50)?,
                added.quantile(Quantile::P90)?,
                added.quantile(Quantile::P99)?,
            ],
            samples,
        })
    }

    /// Whether the client's histograms hold what its rows say.
    ///
    /// # Errors
    /// Says where they differ: a fault of the recorder, which no correction can take out.
    pub fn is_recorded_as_seen(&self) -> Result<(), String> {
        for (latency, samples) in &self.samples {
            let seen = Curve::of_samples(samples.seen.clone());
            let seen = seen.ok_or("a calibration run got no answers")?;
            for share in [0.1, 0.25, 0.5, 0.75, 0.9, 0.99] {
                let (seen, recorded) = (seen.at(share), samples.recorded.at(share));
                if (seen - recorded).abs() > seen * RECORDER_OFF + RECORDER_OFF_NS {
                    return Err(format!(
                        "the client recorded a quantile {share} of the {} time of {:.0} us, and it was {:.0} us",
                        latency.name(),
                        recorded / 1e3,
                        seen / 1e3
                    ));
                }
            }
        }
        Ok(())
    }

    /// True and measured times of a latency, if the run has it.
    #[must_use]
    pub fn samples(&self, latency: CertifiedLatency) -> Option<&Samples> {
        self.samples.get(&latency)
    }
}

/// The latency as a run recorded it.
pub(super) fn measured(latency: CertifiedLatency, summary: &Summary) -> Latency {
    match latency {
        CertifiedLatency::Response => summary.tally.response(),
        CertifiedLatency::Service => summary.tally.service(),
        CertifiedLatency::Network => summary.tally.network(),
    }
}

/// From the send to the kernel's receive stamp, held between send and read as the recorder does.
fn network_ns(pair: &Pair) -> Option<u64> {
    let (sent, received) = (pair.client.sent, pair.client.received?);
    let stamp = pair.client.kernel?.min(received).max(sent);
    Some(stamp.saturating_since(sent))
}

/// True and measured response times of an open loop. The true one is what the timetable gives, worked
/// through with the server's own times: what a request waits for a free slot belongs to it, what the
/// client is late by does not.
fn responses(evidence: &Evidence) -> Vec<(u64, u64)> {
    let (Load::Open { .. }, Some(pools)) = (evidence.settings.load, &evidence.pools) else {
        return Vec::new();
    };
    let mut by_pool: BTreeMap<usize, Vec<&Pair>> = BTreeMap::new();
    for pair in &evidence.joined.pairs {
        if !matches!(pair.client.kind, RowKind::Load | RowKind::Warmup) {
            continue;
        }
        let Some(pool) = pools.of_address.get(&pair.client.local) else {
            return Vec::new();
        };
        by_pool.entry(*pool).or_default().push(pair);
    }
    let mut responses = Vec::new();
    for (number, mut pairs) in by_pool {
        pairs.sort_by_key(|pair| (pair.client.intended, pair.client.sent, pair.key()));
        let connections = pools.connections.get(number).copied().unwrap_or(0);
        let pool = Pool {
            connections: (0..connections).map(|number| number as u64).collect(),
            depth: usize::try_from(evidence.settings.pipeline.depth.get()).unwrap_or(usize::MAX),
            batch: evidence.settings.pipeline.mode == PipelineMode::Batch,
        };
        let arrivals: Vec<Arrival> = pairs
            .iter()
            .map(|pair| Arrival {
                intended_ns: pair.client.intended.as_nanos(),
                drawn_ns: pair.sojourn_ns(),
                service_ns: 0,
                is_data: true,
                is_too_large: false,
                row: 0,
                connection: 0,
            })
            .collect();
        // Sojourns hold what freezes and queues did, so the simulated server has none.
        let served = simulate(&Server::default(), &[(pool, arrivals)]);
        for (pair, served) in pairs.iter().zip(served.into_iter().flatten()) {
            let timed = is_timed(&pair.client) && pair.server.answered;
            if let Some(seen) = pair.response_ns().filter(|_| timed) {
                let truth = served.received_ns - pair.client.intended.as_nanos();
                responses.push((truth, seen));
            }
        }
    }
    responses
}

/// Makes the mock server take the client of these settings, and the client do without a login.
pub(super) fn fit(config: &mut ServerConfig, settings: &mut Settings) {
    config.tls.required = settings.tls.is_some();
    match &mut settings.target {
        Target::Redis(target) => {
            (target.user, target.password) = (None, None);
            let databases = u64::from(target.database) + 1;
            let databases = usize::try_from(databases).unwrap_or(usize::MAX);
            config.redis.databases = config.redis.databases.max(databases);
        }
        Target::Aerospike(target) => {
            target.login = None;
            config.aerospike.namespaces = vec![target.namespace.clone()];
        }
    }
}

/// The load that fills the mock server so that reads find something, where the mix reads whole values;
/// the key space is cut to what can be filled quickly.
pub(super) fn filling(settings: &mut Settings) -> Option<Settings> {
    let reads = match &settings.target {
        Target::Redis(target) => target
            .operations
            .iter()
            .any(|one| one.name.starts_with("GET")),
        Target::Aerospike(target) => target
            .operations
            .iter()
            .any(|one| !matches!(one.verb, AerospikeVerb::Put | AerospikeVerb::Remove)),
    };
    if !reads {
        return None;
    }
    let most = NonZeroU64::new(MOST_KEYS).unwrap_or(NonZeroU64::MIN);
    settings.keys.count = settings.keys.count.min(most);
    let mut filling = settings.clone();
    match &mut filling.target {
        Target::Redis(target) => target.operations = vec![RedisOperation::set(1)],
        Target::Aerospike(target) => {
            target.operations = vec![AerospikeOperation::new(AerospikeVerb::Put, 1)];
        }
    }
    filling.keys.pattern = KeyPattern::Sequential;
    filling.load = Load::Closed;
    filling.warmup = Duration::ZERO;
    filling.stop = Stop {
        duration: Some(LONGEST_FILLING),
        requests: Some(filling.keys.count.get()),
    };
    Some(filling)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "times within an hour are far below 2^52"
)]
fn time(ns: u64) -> f64 {
    ns as f64
}

/// How far a recorded quantile may be off: by the resolution of the histogram and what lies between
/// neighbouring samples.
const RECORDER_OFF: f64 = 0.02;
const RECORDER_OFF_NS: f64 = 5_000.0;
/// Keys that the mock server is filled with at most.
const MOST_KEYS: u64 = 10_000;
/// Time that filling may take.
const LONGEST_FILLING: Duration = Duration::from_millis(500);
