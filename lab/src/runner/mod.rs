//! Running one part of a scenario and collecting what both sides recorded.

pub mod client;
pub mod parallel;
pub mod real;
pub mod suite;
pub mod virtual_time;

use std::collections::HashMap;
use std::net::SocketAddr;

use kvlab_bench_client::record::{ClientRow, RowKind, Summary};
use kvlab_bench_client::settings::Target;
use kvlab_bench_client::{RunError, Settings};
use kvlab_mock_server::latency::{Cut, Freeze, LatencyRules, Queue, Shape};
use kvlab_mock_server::limit::{ConnectionLimits, Throttle};
use kvlab_mock_server::truth::Counts;
use kvlab_mock_server::{ServerConfig, StartError};
use kvlab_timing::Stamp;

use crate::noise::MachineUse;
use crate::truth::Joined;
use crate::truth::cuts::Cuts;
use crate::truth::line::LineRule;
use crate::truth::lives::Lives;
use crate::truth::shapes::Shapes;
use crate::truth::throttle::Throttles;
use crate::truth::timing::{Freezes, Rule};

/// What a finished run of one client left behind.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The clock it ran on.
    pub tier: Tier,
    /// What the client was told.
    pub settings: Settings,
    /// What the client reports.
    pub summary: Summary,
    /// Every request as both sides saw it.
    pub joined: Joined,
    /// What the server was told.
    pub server: ServerFacts,
    /// Which thread of the client each load connection belonged to, where that is certain.
    pub pools: Option<Pools>,
    /// What the server counted.
    pub counts: Counts,
    /// What was to become of every attempt to connect; under virtual time alone.
    pub lives: Option<Lives>,
    /// What the machine did meanwhile; nothing under virtual time.
    pub machine: Option<MachineUse>,
}

/// The load connections of the client by thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// Load connections of each thread.
    pub connections: Vec<usize>,
    /// The thread of each connection that carried load.
    pub of_address: HashMap<SocketAddr, usize>,
}

impl Pools {
    /// Reads the threads from the order of the rows, which come thread by thread. `None` when a
    /// connection was made anew or carried no load, so that the blocks cannot be told apart.
    #[must_use]
    pub fn from_rows(rows: &[ClientRow], connections: &[usize]) -> Option<Self> {
        let mut pools = Self {
            connections: connections.to_vec(),
            of_address: HashMap::new(),
        };
        let (mut thread, mut used) = (0, 0);
        for row in rows {
            if !matches!(row.kind, RowKind::Load | RowKind::Warmup) {
                continue;
            }
            match pools.of_address.get(&row.local) {
                Some(owner) if *owner == thread => {}
                Some(_) => return None,
                None => {
                    if used == *connections.get(thread)? {
                        (thread, used) = (thread + 1, 0);
                        connections.get(thread)?;
                    }
                    pools.of_address.insert(row.local, thread);
                    used += 1;
                }
            }
        }
        let all: usize = connections.iter().sum();
        (pools.of_address.len() == all).then_some(pools)
    }
}

/// The clock of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Sockets, threads and the clock of the machine.
    Real,
    /// In-memory pipes and a clock that jumps.
    Virtual {
        /// Time of a message from one side to the other.
        leg_ns: u64,
    },
}

impl Tier {
    /// Time of a message from one side to the other: known under virtual time, 0 otherwise.
    #[must_use]
    pub fn leg_ns(self) -> u64 {
        match self {
            Self::Real => 0,
            Self::Virtual { leg_ns } => leg_ns,
        }
    }
}

/// What the server was told and when it started.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// When it started; freezes count from here.
    pub started: Stamp,
    /// The delays it was to inject.
    pub latency: LatencyRules,
    /// How it was to change delays over time.
    pub shapes: Vec<Shape>,
    /// Its queue.
    pub queue: Option<Queue>,
    /// Its freezes.
    pub freezes: Vec<Freeze>,
    /// The moments at which it was to end connections.
    pub cuts: Vec<Cut>,
    /// What it was to limit connections to.
    pub connections: ConnectionLimits,
    /// Its throttles.
    pub throttles: Vec<Throttle>,
}

impl ServerFacts {
    fn new(config: &ServerConfig, started: Stamp) -> Self {
        Self {
            started,
            latency: config.latency.clone(),
            shapes: config.shapes.clone(),
            queue: config.queue.clone(),
            freezes: config.freezes.clone(),
            cuts: config.cuts.clone(),
            connections: config.connections.clone(),
            throttles: config.requests.throttles.clone(),
        }
    }

    /// Its freezes as moments.
    #[must_use]
    pub fn freezes(&self) -> Freezes {
        Freezes::new(self.started, &self.freezes)
    }

    /// Its changes over time as moments.
    #[must_use]
    pub fn shapes(&self) -> Shapes {
        Shapes::new(self.started, &self.shapes)
    }

    /// Its queue, but for the law of its service.
    #[must_use]
    pub fn line(&self) -> Option<LineRule> {
        self.queue.as_ref().map(|queue| LineRule {
            servers: queue.servers,
            limit: queue.limit,
        })
    }

    /// Whether it may hold, turn away or end connections.
    #[must_use]
    pub fn limits_connections(&self) -> bool {
        self.connections != ConnectionLimits::default()
    }

    /// Its cuts as moments.
    #[must_use]
    pub fn cuts(&self) -> Cuts {
        Cuts::new(self.started, &self.cuts)
    }
}

impl Evidence {
    /// The cuts of its server, and the ends that limits gave to connections.
    #[must_use]
    pub fn cuts(&self) -> Cuts {
        let ends = self.lives.iter().flat_map(Lives::ends);
        self.server.cuts().with_ends(ends.collect())
    }

    /// What the rows have to keep.
    #[must_use]
    pub fn rule(&self) -> Rule {
        Rule {
            freezes: self.server.freezes(),
            shapes: self.server.shapes(),
            line: self.server.line(),
            cuts: self.cuts(),
            throttles: Throttles::new(&self.server.throttles),
            open: self.settings.load.is_open(),
        }
    }
}

/// Why a part could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The server did not start.
    #[error(transparent)]
    Server(#[from] StartError),
    /// The server has no port for the client's protocol.
    #[error("the server has no port for this protocol")]
    NoPort,
    /// TLS is asked for where there is none.
    #[error(
        "tls: there is no TLS under virtual time, where no byte leaves the process; run it in real \
         time"
    )]
    NoTls,
    /// The client has no result.
    #[error(transparent)]
    Client(#[from] RunError),
    /// The client is not finished and its clock never moves again: nothing is pending, or what is
    /// pending only leads to more of the same moment.
    #[error("the client waits for ever at {at}")]
    Stuck {
        /// The moment.
        at: Stamp,
    },
    /// The run was stopped from outside.
    #[error("stopped")]
    Stopped,
}

/// Points the client at the server.
fn aim(settings: &mut Settings, address: SocketAddr) {
    match &mut settings.target {
        Target::Redis(target) => target.address = address.into(),
        Target::Aerospike(target) => target.seeds = vec![address],
    }
    settings.record_rows = true;
}

/// Load connections of each thread, as the client reports them.
fn connections_by_thread(summary: &Summary) -> Vec<usize> {
    summary
        .threads
        .iter()
        .map(|thread| usize::try_from(thread.connections).unwrap_or(usize::MAX))
        .collect()
}
