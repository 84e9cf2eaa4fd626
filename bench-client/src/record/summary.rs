//! The result of a run in numbers.

use std::time::Duration;

use kvlab_timing::Stamp;

use super::{Certificate, LATE, Outcomes, Tally};
use crate::limits::Limits;
use crate::settings::{Address, Load, Pipeline};

/// The result of a run, warm-up left out.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The load model.
    pub load: Load,
    /// Depth and mode of the pipelines.
    pub pipeline: Pipeline,
    /// Names of the classes, in the order of `tally.classes`.
    pub classes: Vec<String>,
    /// Start of the measured part.
    pub started: Stamp,
    /// First intended start (open loop) or first send (closed loop) of the measured part.
    pub first: Option<Stamp>,
    /// Last reply to a request of the measured part.
    pub last: Option<Stamp>,
    /// Requests that were due in the measured part; equals `tally.outcomes().total()`.
    pub due: u64,
    /// Counts and latencies.
    pub tally: Tally,
    /// Requests of the warm-up, by outcome.
    pub warmup: Outcomes,
    /// Load connections wanted; of a staircase those of the steps that were taken.
    pub connections_wanted: u64,
    /// Load connections that were up when the load began, and those of later steps that came up.
    pub connections_at_start: u64,
    /// How the set-up went.
    pub setup: SetupSummary,
    /// What the attempts to connect say about the server's limits.
    pub limits: Limits,
    /// One entry per thread.
    pub threads: Vec<ThreadSummary>,
    /// Hash over the sequence of operations drawn (class, key, value size) of every stream; equal
    /// for equal settings and seed where the number of requests is fixed, a replay in order aside:
    /// which thread takes which line of it is a matter of time.
    pub sequence_hash: u64,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// What a reader must know before trusting the numbers.
    pub notices: Vec<Notice>,
    /// How far the latencies can be off, where somebody found that out.
    pub certificate: Option<Certificate>,
}

impl Summary {
    /// Time from the first send (intended start in an open loop) to the last reply.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        match (self.first, self.last) {
            (Some(first), Some(last)) => Duration::from_nanos(last.saturating_since(first)),
            _ => Duration::ZERO,
        }
    }

    /// Answered requests per second of [`Self::elapsed`]; 0 when nothing was answered.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "the nearest value is what is wanted"
    )]
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed().as_secs_f64();
        if seconds == 0.0 {
            return 0.0;
        }
        self.tally.outcomes().answered() as f64 / seconds
    }
}

impl Summary {
    /// Whether the client itself, and not the server, may have been the limit; the notices say why.
    #[must_use]
    pub fn is_saturated(&self) -> bool {
        self.notices.iter().any(Notice::is_saturation)
    }
}

impl Notice {
    /// Whether it says that the client could not keep up.
    #[must_use]
    pub fn is_saturation(&self) -> bool {
        match self {
            Self::FellBehind { late_p50, .. } => *late_p50 > LATE,
            Self::Busy { .. } | Self::LagGrew { .. } => true,
            _ => false,
        }
    }
}

/// How the set-up went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetupSummary {
    /// When it began.
    pub begun: Stamp,
    /// From its begin until all load connections were up; `None` if the load began without some.
    pub all_up: Option<Duration>,
    /// How many connections were up over time, from the begin of the set-up; at most
    /// [`MAX_CURVE`] points.
    pub curve: Vec<CurvePoint>,
}

/// How many load connections there were at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurvePoint {
    /// From the begin of the set-up.
    pub at: Duration,
    /// Connections through their login.
    pub up: u64,
    /// Connections that were being made.
    pub connecting: u64,
}

/// What one thread did.
#[derive(Clone, Debug, Default)]
pub struct ThreadSummary {
    /// Connections of the thread.
    pub connections: u32,
    /// Requests due in the measured part.
    pub due: u64,
    /// Processor time over elapsed time in the measured part; `None` under virtual time.
    pub cpu_share: Option<f64>,
    /// Processor time of the measured part; `None` under virtual time.
    pub cpu: Option<Duration>,
    /// Part of it at most that was spent spinning for the next due moment, where nothing else was
    /// to do; `None` under virtual time.
    pub spun: Option<Duration>,
}

/// What a reader must know before trusting the numbers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// The client itself did not keep its schedule: the 99th percentile of its lateness (send
    /// minus the moment the request was due and a slot was free) is above a tenth of the 99th
    /// percentile of the response time. Waiting for a slow server's slots is no lateness.
    FellBehind {
        /// Median lateness.
        late_p50: Duration,
        /// 99th percentile of the lateness.
        late_p99: Duration,
        /// Largest lateness.
        late_max: Duration,
        /// 99th percentile of the response time.
        response_p99: Duration,
    },
    /// A thread worked for more than 70 % of the time: the client itself may be the limit.
    Busy {
        /// The thread, from 0.
        thread: u32,
        /// Its processor time over elapsed time, spinning left out.
        cpu_share: f64,
    },
    /// The schedule lag grew from quarter to quarter of the run: more was due than the client's
    /// slots could carry, and response times say how long the run was.
    LagGrew {
        /// Median lag of the first quarter.
        first: Duration,
        /// Median lag of the last quarter.
        last: Duration,
    },
    /// The load began later than it was to, because set-up took too long.
    StartedLate {
        /// By how much.
        by: Duration,
    },
    /// Requests timed out; they are counted but not in the latencies, whose tails are therefore
    /// too good.
    TimeoutsExcluded {
        /// How many.
        count: u64,
    },
    /// Not all connections were up when the load began.
    ConnectionsMissing {
        /// Connections wanted.
        wanted: u64,
        /// Connections up.
        up: u64,
    },
    /// The server delayed new connections that had no login or probe, so that the delay is in the
    /// latencies of their first requests.
    LimitInLatencies,
    /// The server went away before the end and did not come back.
    ServerLost(ConnectionLoss),
    /// The kernel gives no receive stamps, so that there is no network latency.
    NoKernelStamps {
        /// What stands in the way.
        reason: String,
    },
    /// Some replies came without a kernel stamp; they are not in the network latency.
    StampsMissing {
        /// How many of the hits and misses.
        count: u64,
        /// Hits and misses.
        of: u64,
    },
    /// Kernel stamps lay outside of send and read, as after a step of the calendar clock; they
    /// count as the nearer of the two.
    StampsAstray {
        /// How many.
        count: u64,
    },
    /// Latencies above one hour stand in the histogram as one hour.
    Clamped {
        /// How many.
        count: u64,
    },
}

/// The loss of a server in the middle of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLoss {
    /// The server's address.
    pub address: Address,
    /// When the last connection was given up.
    pub at: Stamp,
    /// The last error seen.
    pub error: String,
}

/// Points of the curve of a set-up.
pub const MAX_CURVE: usize = 240;
