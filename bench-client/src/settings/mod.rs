//! Resolved settings of a run: every value is legal once [`Settings::check`] passed.
//!
//! Front ends translate a tool's own options into [`Settings`]; the engine reads nothing else.
//! Types carry the rules where they can (non-zero counts, rates); [`Settings::check`] holds the
//! rules that concern two values at once.

mod address;
mod aerospike;
mod connect;
mod keys;
mod load;
mod login;
mod measure;
mod records;
mod redis;
mod retry;
mod rotation;
mod staircase;
mod tls;
mod values;

use std::num::NonZeroU32;
use std::time::Duration;

use crate::random;
use crate::record::OpClass;

pub use address::Address;
pub use aerospike::{AerospikeOperation, AerospikeTarget, AerospikeVerb, Retries};
pub use connect::{ConnectSettings, Renew, WhenDown};
pub use keys::{KeyPattern, KeySettings};
pub use load::{Arrivals, Clients, Load, MixOrder, Pipeline, PipelineMode, Stop};
pub use login::{AerospikeLogin, Password};
pub use measure::{KernelStamps, Polling};
pub use records::{RecordSettings, Records};
pub(crate) use redis::Command;
pub use redis::{MissRule, RedisOperation, RedisTarget, RespVersion, RetryOn, ScanSettings};
pub use retry::{FailureLog, Retry};
pub use rotation::{
    Between, NumberLaw, ReplayCursor, Rotation, RotationRequest, RotationStep, StepKind,
};
pub use staircase::Staircase;
pub use tls::{Identity, TlsSettings, TlsTextError, TlsVersions, Trust, server_name};
pub use values::{Content, MAX_VALUE_SIZE, SizeDistribution, ValueSettings};

/// What a run does: whom it talks to, how hard, with what, and for how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server and the operations to send to it.
    pub target: Target,
    /// TLS, where connections are secured with it. Not under virtual time.
    pub tls: Option<TlsSettings>,
    /// Worker threads; each owns its share of the connections and of the schedule.
    pub threads: NonZeroU32,
    /// Load connections in all, spread over the threads. With several nodes this is the number
    /// of operations in flight at once and the upper bound of connections to each node.
    pub connections: NonZeroU32,
    /// Whether the connections of a thread share one sequence of operations.
    pub clients: Clients,
    /// Connections that come step by step; without it all are there when the load begins.
    pub staircase: Option<Staircase>,
    /// Requests in flight on one connection, and how the slots are refilled.
    pub pipeline: Pipeline,
    /// Closed loop, or open loop with a rate and an arrival law.
    pub load: Load,
    /// The rate is that of the connections to one node; the run has as many times more as the
    /// cluster has nodes when the load begins.
    pub rate_of_each_node: bool,
    /// When the run ends.
    pub stop: Stop,
    /// Load before the measured part; its requests are counted but not reported.
    pub warmup: Duration,
    /// The key space and the order in which it is visited.
    pub keys: KeySettings,
    /// Sizes and content of written values.
    pub values: ValueSettings,
    /// In which order the weighted operations follow each other.
    pub mix: MixOrder,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Time from the send of a request to its time-out.
    pub timeout: Duration,
    /// How long after the end an open loop goes on sending what was due before the end.
    pub drain: Duration,
    /// Bound of one attempt to connect, from its begin to the end of the login.
    pub connect_timeout: Duration,
    /// How connections are made, kept and renewed.
    pub connects: ConnectSettings,
    /// Waits between attempts to reconnect a lost connection.
    pub backoff: Backoff,
    /// Sending requests again that failed; without it only the target's own rules do.
    pub retry: Option<Retry>,
    /// Who is told of each request that failed for good.
    pub failures: Option<FailureLog>,
    /// Length of the intervals given to the observer.
    pub interval: Duration,
    /// Whether one row for each request is kept (the lab joins them with the server's rows).
    pub record_rows: bool,
    /// Whether the pacing thread may spin for the last microseconds before a due moment.
    pub spin: bool,
    /// Whether the kernel's receive stamps are taken.
    pub kernel_stamps: KernelStamps,
    /// Calendar time (Unix, nanoseconds) at which the load is to begin, warm-up included; without
    /// it the load begins as soon as all connections are up. Not used under virtual time.
    pub start_at_unix_ns: Option<u64>,
    /// What threads do with nothing to do.
    pub polling: Polling,
}

/// Bounded exponential waits with full jitter between attempts to reconnect: before attempt n a
/// random time from 0 to `min(first * factor^(n-1), most)`, so that connections that were lost together
/// do not come back together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Longest wait before the first attempt.
    pub first: Duration,
    /// It is so many times as long after each further failure.
    pub factor: f64,
    /// Upper bound of all waits.
    pub most: Duration,
    /// Failures in a row on one connection after which it is given up. During set-up none is: what
    /// ends that is its time-out.
    pub attempts: u32,
}

impl Backoff {
    /// The wait before the next attempt after this many failures in a row, by the random bits.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "waits are random; powers of 2 are exact"
    )]
    pub fn wait_ns(&self, failures: u32, bits: u64) -> u64 {
        let power = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.first.as_nanos() as f64 * self.factor.powi(power);
        // The cast saturates, and the bound is below that.
        let grown = (grown as u64).min(nanos(self.most));
        random::scale(bits, grown.saturating_add(1))
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(10),
            factor: 2.0,
            most: Duration::from_secs(1),
            attempts: 8,
        }
    }
}

/// The server to load, with the operations in its own terms.
#[derive(Clone, Debug)]
pub enum Target {
    /// A RESP server.
    Redis(RedisTarget),
    /// An Aerospike cluster.
    Aerospike(AerospikeTarget),
}

impl Target {
    /// Whether the server is reached by a socket file.
    #[must_use]
    pub fn is_socket_file(&self) -> bool {
        match self {
            Self::Redis(target) => target.address.tcp().is_none(),
            Self::Aerospike(_) => false,
        }
    }

    /// The classes of the run, in the order that [`crate::record::OpClass`] counts.
    #[must_use]
    pub fn classes(&self) -> Vec<ClassSpec> {
        match self {
            Self::Redis(target) => target
                .operations
                .iter()
                .map(RedisOperation::class)
                .collect(),
            Self::Aerospike(target) => target
                .operations
                .iter()
                .map(AerospikeOperation::class)
                .collect(),
        }
    }

    /// What can be sent, in the order that [`crate::driver::Plan::request`] counts.
    pub(crate) fn requests(&self) -> Vec<RequestSpec> {
        match self {
            Self::Redis(target) => target.commands().iter().map(Command::spec).collect(),
            // The driver finds further keys of a batch by itself.
            Self::Aerospike(_) => self
                .classes()
                .into_iter()
                .zip(0..)
                .map(|(class, place)| RequestSpec {
                    class: OpClass(place),
                    weight: class.weight,
                    writes: class.writes,
                    pattern: class.pattern,
                    goes_on: false,
                    keys: 1,
                    numbers: Vec::new(),
                })
                .collect(),
        }
    }

    /// The records whose keys are written in the place of numbers.
    pub(crate) fn names(&self) -> Option<Records> {
        let Self::Redis(target) = self else {
            return None;
        };
        let records = target.records.as_ref().filter(|records| records.own_keys);
        records.map(|records| records.records.clone())
    }

    /// Begins what the threads of a run share anew, for the next run.
    pub(crate) fn rewind(&self) {
        if let Some(rotation) = self.rotation() {
            rotation.cursor.rewind();
        }
    }

    /// What takes the place of the mix, if anything does.
    pub(crate) fn rotation(&self) -> Option<&Rotation> {
        match self {
            Self::Redis(target) => target.rotation.as_ref(),
            Self::Aerospike(_) => None,
        }
    }
}

/// What the engine needs to know of an operation: it never sees a command.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSpec {
    /// Name in reports, for example `GET` or `put`.
    pub name: String,
    /// Share among the operations.
    pub weight: u32,
    /// Whether a value is drawn for each request.
    pub writes: bool,
    /// Key pattern of its own, where it differs from the one of the run.
    pub pattern: Option<KeyPattern>,
}

/// What the workload needs to know of a request that can be sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestSpec {
    /// What it is counted under.
    pub(crate) class: OpClass,
    /// Share among the requests, where there is no rotation.
    pub(crate) weight: u32,
    /// Whether a value is drawn for it.
    pub(crate) writes: bool,
    /// Key pattern of its own, where it differs from the one of the run.
    pub(crate) pattern: Option<KeyPattern>,
    /// Its keys come from the stream of the request before it.
    pub(crate) goes_on: bool,
    /// How many keys it has.
    pub(crate) keys: usize,
    /// Laws of its numbers.
    pub(crate) numbers: Vec<NumberLaw>,
}

impl Settings {
    /// Settings with one thread, one connection, a closed loop of one second and default keys.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            tls: None,
            threads: NonZeroU32::MIN,
            connections: NonZeroU32::MIN,
            clients: Clients::Pooled,
            staircase: None,
            pipeline: Pipeline::default(),
            load: Load::Closed,
            rate_of_each_node: false,
            stop: Stop {
                duration: Some(Duration::from_secs(1)),
                requests: None,
            },
            warmup: Duration::ZERO,
            keys: KeySettings::default(),
            values: ValueSettings::default(),
            mix: MixOrder::Random,
            seed: 1,
            timeout: Duration::from_secs(5),
            drain: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            connects: ConnectSettings::default(),
            backoff: Backoff::default(),
            retry: None,
            failures: None,
            interval: Duration::from_secs(1),
            record_rows: false,
            spin: true,
            kernel_stamps: KernelStamps::Off,
            polling: Polling::Sleep,
            start_at_unix_ns: None,
        }
    }

    /// Bound of the set-up phase, in which all connections are made and the cluster is learnt: as
    /// given, or else the length of the ramp-up and three attempts to connect.
    #[must_use]
    pub fn setup_limit(&self) -> Duration {
        self.connects.setup_timeout.unwrap_or_else(|| {
            let ramp = self.connects.ramp(self.connections.get());
            ramp.saturating_add(self.connect_timeout.saturating_mul(3))
        })
    }

    /// Checks the rules that concern several values.
    ///
    /// # Errors
    /// Names the first rule that does not hold, in the words of the settings.
    pub fn check(&self) -> Result<(), SettingsError> {
        let classes = self.target.classes();
        if self.threads > self.connections {
            return Err(SettingsError::MoreThreadsThanConnections {
                threads: self.threads.get(),
                connections: self.connections.get(),
            });
        }
        if classes.is_empty() || classes.iter().all(|class| class.weight == 0) {
            return Err(SettingsError::NoOperation);
        }
        if classes.len() > MAX_CLASSES {
            return Err(SettingsError::TooManyOperations {
                found: classes.len(),
            });
        }
        if self.stop.duration.is_none() && self.stop.requests.is_none() {
            return Err(SettingsError::NoEnd);
        }
        if self.timeout.is_zero() || self.connect_timeout.is_zero() || self.interval.is_zero() {
            return Err(SettingsError::ZeroTime);
        }
        if matches!(self.target, Target::Aerospike(_)) && self.pipeline.depth.get() > 1 {
            return Err(SettingsError::NoPipeline {
                depth: self.pipeline.depth.get(),
            });
        }
        if self
            .connects
            .setup_timeout
            .is_some_and(|time| time.is_zero())
        {
            return Err(SettingsError::ZeroTime);
        }
        self.check_staircase()?;
        if self.backoff.first > self.backoff.most {
            return Err(SettingsError::Backoff);
        }
        if let Target::Redis(target) = &self.target {
            for operation in &target.operations {
                operation.check()?;
            }
            if let Some(rotation) = &target.rotation {
                rotation.check(classes.len())?;
            }
        }
        self.keys.check()?;
        for class in &classes {
            if let Some(pattern) = &class.pattern {
                pattern.check()?;
            }
        }
        self.values.check()
    }

    fn check_staircase(&self) -> Result<(), SettingsError> {
        let Some(stairs) = &self.staircase else {
            return Ok(());
        };
        if stairs.length.is_zero() {
            return Err(SettingsError::ZeroTime);
        }
        if self.stop.duration.is_none() || self.stop.requests.is_some() {
            return Err(SettingsError::EndlessStaircase);
        }
        let (all, threads) = (self.connections.get(), self.threads.get());
        for steps in 0..=stairs.steps(all.div_ceil(threads)) {
            stairs
                .load(self.load, steps, all, threads)
                .map_err(|error| SettingsError::StaircaseRate {
                    why: error.to_string(),
                })?;
        }
        Ok(())
    }
}

/// Whole nanoseconds, as far as the clock goes.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Bound of the number of operations in one mix: what is counted apart has a number of one byte,
/// and one of them stands for what belongs to no operation.
pub const MAX_CLASSES: usize = 255;

/// A rule that the settings break.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum SettingsError {
    /// A thread would have no connection.
    #[error("{threads} threads need at least as many connections, found {connections}")]
    MoreThreadsThanConnections {
        /// Threads asked for.
        threads: u32,
        /// Connections asked for.
        connections: u32,
    },
    /// The mix is empty, or all weights are 0.
    #[error("no operation with a weight above 0")]
    NoOperation,
    /// The mix is larger than [`MAX_CLASSES`].
    #[error("at most {MAX_CLASSES} operations in one mix, found {found}")]
    TooManyOperations {
        /// Operations given.
        found: usize,
    },
    /// Neither a duration nor a number of requests ends the run.
    #[error("a run needs a duration or a number of requests")]
    NoEnd,
    /// A staircase that a number of requests ends.
    #[error("connections that come step by step need a duration and no number of requests")]
    EndlessStaircase,
    /// The rate of a step of a staircase cannot be had.
    #[error("the rate of a step: {why}")]
    StaircaseRate {
        /// What is wrong with it.
        why: String,
    },
    /// A time-out, a step or an interval of 0.
    #[error("time-outs, steps and the interval must be longer than 0")]
    ZeroTime,
    /// The first wait of the back-off is longer than the longest.
    #[error("the first wait of a back-off must not be longer than the longest")]
    Backoff,
    /// The protocol answers one request at a time on a connection.
    #[error("this protocol takes one request at a time on a connection, pipeline is {depth}")]
    NoPipeline {
        /// Depth asked for.
        depth: u32,
    },
    /// A key pattern with an illegal parameter.
    #[error("key pattern: {0}")]
    Keys(&'static str),
    /// A value size or distribution with an illegal parameter.
    #[error("value size: {0}")]
    Values(&'static str),
    /// A rotation that points at nothing or draws a number from an empty range.
    #[error("rotation: {0}")]
    Rotation(&'static str),
    /// A command template that cannot be read.
    #[error("command {command:?}: {why}")]
    Command {
        /// The command as typed.
        command: String,
        /// What is wrong with it.
        why: String,
    },
}
