//! What a scenario came to, and its forms: text for people ([`text`]), a page with curves ([`html`]),
//! JSON for programs ([`json`]), JUnit XML for continuous integration ([`junit`]).
//!
//! The report of a virtual run holds nothing of the machine or the moment, so that two runs of the
//! same scenario print the same bytes.

pub mod brief;
pub mod html;
pub mod json;
pub mod junit;
mod scores;
pub mod series;
pub mod text;

use kvlab_bench_client::record::Notice;
use kvlab_bench_client::settings::{Arrivals, Load, PipelineMode, Settings, Target};
use kvlab_mock_server::ServerConfig;
use serde::Serialize;

use self::series::Series;
use crate::check::{Judgement, steady_from};
use crate::noise::Machine;
use crate::runner::{Evidence, Tier};
use crate::scenario::{Part, Scenario};
use crate::truth::digest::{of_delays, of_pairs};
use crate::verdict::Verdict;

/// What a scenario came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the scenario.
    pub name: String,
    /// What it shows.
    pub description: String,
    /// The clock it ran on.
    pub tier: Tier,
    /// Seed of the server; where a sweep varies the server, this and the next two are those of its
    /// first combination.
    pub seed: u64,
    /// The latency rules of the server, as text.
    pub latency: Vec<String>,
    /// Its freezes, as text.
    pub freeze: Option<String>,
    /// The machine; nothing under virtual time.
    pub machine: Option<Machine>,
    /// The clients.
    pub parts: Vec<PartReport>,
    /// The worst verdict of all clients.
    pub verdict: Verdict,
}

/// What one client came to.
#[derive(Clone, Debug)]
pub struct PartReport {
    /// Its name.
    pub name: String,
    /// Its server, where a sweep gave it one of its own; else the report's is its.
    pub server: Option<ServerReport>,
    /// What it did.
    pub load: LoadReport,
    /// Runs that were needed; more than one when earlier ones were void.
    pub attempts: u32,
    /// How each run came out, where the scenario asks for several.
    pub runs: Vec<Verdict>,
    /// What was found.
    pub judgement: Judgement,
    /// Hash over the joined rows, under virtual time.
    pub rows_hash: Option<u64>,
    /// Hash over the sequence of operations that the client drew.
    pub sequence_hash: u64,
    /// Hash over the delays that the server drew.
    pub delays_hash: u64,
    /// Answered requests per second.
    pub rate_per_second: f64,
    /// What the client itself says one must know.
    pub notices: Vec<String>,
    /// From the first request of the measured part to the last reply, in nanoseconds.
    pub elapsed_ns: u64,
    /// The curves.
    pub series: Series,
}

/// What a server was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerReport {
    /// Its latency rules, as text.
    pub latency: Vec<String>,
    /// Its freeze, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze: Option<String>,
    /// Its seed.
    pub seed: u64,
}

/// What a client did, in words that name the experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadReport {
    /// Protocol.
    pub protocol: &'static str,
    /// `closed` or `open`.
    pub model: &'static str,
    /// Arrivals per second of an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_second: Option<f64>,
    /// Their law.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<&'static str>,
    /// Connections.
    pub connections: u32,
    /// Requests in flight on each.
    pub pipeline: u32,
    /// How slots are filled again.
    pub pipeline_mode: &'static str,
    /// Client threads.
    pub threads: u32,
    /// Seed of the client.
    pub seed: u64,
}

impl Report {
    /// Puts the parts together.
    #[must_use]
    pub fn new(
        scenario: &Scenario,
        tier: Tier,
        machine: Option<Machine>,
        parts: Vec<PartReport>,
    ) -> Self {
        let server = ServerReport::from(&scenario.server.config);
        Self {
            name: scenario.name.clone(),
            description: scenario.description.clone(),
            tier,
            seed: server.seed,
            latency: server.latency,
            freeze: server.freeze,
            machine,
            verdict: parts
                .iter()
                .map(|part| part.judgement.verdict)
                .max()
                .unwrap_or_default(),
            parts,
        }
    }
}

impl PartReport {
    /// Takes from the evidence what a report holds.
    #[must_use]
    pub fn new(part: &Part, evidence: &Evidence, judgement: Judgement, attempts: u32) -> Self {
        let is_virtual = evidence.tier != Tier::Real;
        let from = steady_from(evidence, judgement.warm_up.as_ref());
        Self {
            name: part.name.clone(),
            server: part
                .server
                .as_ref()
                .map(|server| ServerReport::from(&server.config)),
            load: LoadReport::from(&part.settings),
            attempts,
            runs: Vec::new(),
            judgement,
            rows_hash: is_virtual.then(|| of_pairs(&evidence.joined.pairs)),
            sequence_hash: evidence.summary.sequence_hash,
            delays_hash: of_delays(&evidence.joined.pairs),
            rate_per_second: evidence.summary.rate(),
            notices: evidence.summary.notices.iter().map(notice).collect(),
            elapsed_ns: u64::try_from(evidence.summary.elapsed().as_nanos()).unwrap_or(u64::MAX),
            series: Series::new(evidence, from),
        }
    }
}

impl From<&ServerConfig> for ServerReport {
    fn from(config: &ServerConfig) -> Self {
        let rules = config.latency.rules().iter();
        Self {
            latency: rules.map(ToString::to_string).collect(),
            freeze: (!config.freezes.is_empty()).then(|| {
                let freezes: Vec<String> = config.freezes.iter().map(ToString::to_string).collect();
                freezes.join("; ")
            }),
            seed: config.seed,
        }
    }
}

impl From<&Settings> for LoadReport {
    fn from(settings: &Settings) -> Self {
        let (rate, arrivals) = match settings.load {
            Load::Closed => (None, None),
            Load::Open { rate, arrivals } => (Some(rate.as_f64()), Some(arrivals)),
        };
        Self {
            protocol: match settings.target {
                Target::Redis(_) => "redis",
                Target::Aerospike(_) => "aerospike",
            },
            model: if settings.load.is_open() {
                "open"
            } else {
                "closed"
            },
            rate_per_second: rate,
            arrivals: arrivals.map(|arrivals| match arrivals {
                Arrivals::Uniform => "uniform",
                Arrivals::Poisson => "poisson",
            }),
            connections: settings.connections.get(),
            pipeline: settings.pipeline.depth.get(),
            pipeline_mode: match settings.pipeline.mode {
                PipelineMode::Window => "window",
                PipelineMode::Batch => "batch",
            },
            threads: settings.threads.get(),
            seed: settings.seed,
        }
    }
}

fn notice(notice: &Notice) -> String {
    let ms = |time: &std::time::Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
    match notice {
        Notice::FellBehind {
            late_p50,
            late_p99,
            late_max,
            ..
        } => format!(
            "the client fell behind its schedule: p50 {}, p99 {}, at most {}",
            ms(late_p50),
            ms(late_p99),
            ms(late_max)
        ),
        Notice::Busy { thread, cpu_share } => {
            format!(
                "client thread {thread} used {:.0} % of a core",
                cpu_share * 100.0
            )
        }
        Notice::TimeoutsExcluded { count } => {
            format!("{count} requests timed out and are not in the latencies")
        }
        Notice::ConnectionsMissing { wanted, up } => {
            format!("{up} of {wanted} connections were up when the load began")
        }
        Notice::ServerLost(loss) => format!("the server went away: {}", loss.error),
        Notice::Clamped { count } => format!("{count} latencies above one hour"),
        other => kvlab_bench_client::report::sentence(other),
    }
}
