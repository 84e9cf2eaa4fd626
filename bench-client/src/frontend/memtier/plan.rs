//! What a command line asks for, resolved: defaults filled in, files read, nothing left to look up
//! but the address of the server.
//!
//! ```text
//! Options --check--> Options --resolve--> Plan --translate--> Settings, rows
//! ```
//!
//! The numbers are those of the original: requests, rate and pipeline are *per client*, and a
//! client is one connection (with `--cluster-mode` one to each primary).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kvlab_timing::Rate;

use super::credentials::Credentials;
use super::number::{Range, Ratio};
use super::options::{Family, OutputOptions, Protocol, ReadFallback, ReadPreference, TlsVersion};
use super::pattern::{Pattern, Patterns};
use crate::frontend::native::ErrorLimit;
use crate::random;
use crate::settings::Records;

/// Everything that a run needs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the server is.
    pub endpoint: Endpoint,
    /// `--uri` without its password; empty without one.
    pub uri: String,
    /// Login.
    pub login: Option<Credentials>,
    /// Protocol.
    pub protocol: Protocol,
    /// Database.
    pub database: u32,
    /// TLS, if it is asked for.
    pub tls: Option<Tls>,
    /// Cluster mode, if it is asked for.
    pub cluster: Option<Cluster>,
    /// Replicas to read from outside of cluster mode.
    pub read_servers: Vec<(String, u16)>,
    /// Threads.
    pub threads: u32,
    /// Clients of each thread.
    pub clients: u32,
    /// What ends a run.
    pub length: Length,
    /// The requests of a client were asked for as `allkeys`.
    pub all_keys: bool,
    /// How many times the whole test is run.
    pub runs: u32,
    /// Load before the measured part.
    pub warmup: Duration,
    /// Requests per second and connection; without it the loop is closed.
    pub rate: Option<u32>,
    /// Latencies count from the send, even where a schedule says when it should have been.
    pub from_send: bool,
    /// Requests in flight on one connection.
    pub pipeline: u32,
    /// What is sent.
    pub traffic: Traffic,
    /// Keys.
    pub keys: Keys,
    /// Values.
    pub values: Values,
    /// Values from a file.
    pub import: Option<Import>,
    /// How connections are made, and made again.
    pub reconnect: Reconnect,
    /// Sending again what failed.
    pub retry: Option<Retry>,
    /// What failed for good is appended to it.
    pub failed_keys: Option<PathBuf>,
    /// Clients that come step by step.
    pub staircase: Option<Staircase>,
    /// Seed of the first run.
    pub seed: u64,
    /// All runs draw the same.
    pub same_seed: bool,
    /// Each client draws its own.
    pub distinct_clients: bool,
    /// Requests that may fail.
    pub max_errors: ErrorLimit,
    /// One's own commands may be refused for what they are, or for the type of a value, as long as
    /// others go well.
    pub tolerates_own_commands: bool,
    /// How many times `-D` was given.
    pub debug: u32,
    /// Files and what is printed.
    pub output: OutputOptions,
    /// Our own outputs.
    pub own_output: OwnOutput,
    /// Lines for stderr before the test.
    pub notes: Vec<String>,
}

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Host and port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
        /// Which of its addresses may be used.
        family: Family,
    },
    /// A socket file.
    Unix(PathBuf),
}

/// TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The client's certificate chain.
    pub cert: Option<PathBuf>,
    /// The client's key; by default in the file of the certificate.
    pub key: Option<PathBuf>,
    /// The authorities to trust.
    pub cacert: Option<PathBuf>,
    /// Neither certificate nor host name are checked.
    pub skip_verify: bool,
    /// Versions to offer.
    pub versions: Vec<TlsVersion>,
    /// Host name to send and to check instead of the server's.
    pub sni: Option<String>,
}

/// Cluster mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Where reads go.
    pub reads: ReadPreference,
    /// What becomes of a read without a replica.
    pub fallback: ReadFallback,
    /// One round of all commands stays on one shard.
    pub transaction: bool,
}

/// What ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Requests of each client.
    Requests(u64),
    /// Seconds.
    Seconds(u32),
}

/// What is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// SET and GET by ratio.
    SetGet(SetGet),
    /// Commands of one's own, each as many times in a row as its ratio says.
    Commands(Vec<Step>),
    /// A SCAN that follows its cursor.
    Scan {
        /// Arguments, the cursor among them.
        arguments: Vec<Vec<u8>>,
        /// Cursors to follow before it begins anew; 0 follows them to the end.
        most: u32,
    },
}

/// SET and GET by ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetGet {
    /// So many SETs, then so many GETs.
    pub ratio: Ratio,
    /// Order of the keys of both.
    pub patterns: Patterns,
    /// Keys of one read; above 1 they are read with MGET.
    pub keys_per_get: u32,
    /// WAIT between the SETs.
    pub wait: Option<Wait>,
}

/// WAIT between the SETs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// So many SETs to so many WAITs.
    pub ratio: Ratio,
    /// Replicas to wait for, all alike likely.
    pub replicas: Range,
    /// Milliseconds to wait at most, drawn from a bell around the middle.
    pub timeout_ms: Range,
}

/// One of the commands of a rotation.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Name of its row: the command's name, with the line of the monitor file where there is one
    /// and rows are per line.
    pub name: String,
    /// What is sent.
    pub request: Request,
    /// How many times in a row.
    pub ratio: u32,
    /// Order of its keys.
    pub pattern: Pattern,
    /// It may go to a replica.
    pub is_read: bool,
}

/// What a step sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Arguments, the placeholders still in them.
    Arguments(Vec<Vec<u8>>),
    /// The next of these commands, or one of them at random.
    Replay {
        /// The commands of the monitor file.
        commands: Arc<[Vec<Vec<u8>>]>,
        /// In any order.
        random: bool,
    },
}

/// Keys: a prefix and a number from `least` to `most`.
#[derive(Clone, Debug, PartialEq)]
pub struct Keys {
    /// Text before the number.
    pub prefix: String,
    /// Smallest number.
    pub least: u64,
    /// Largest number.
    pub most: u64,
    /// Standard deviation of gaussian keys; a sixth of the range without it.
    pub stddev: Option<f64>,
    /// Centre of gaussian keys; the middle of the range without it.
    pub median: Option<f64>,
    /// Exponent of zipf keys.
    pub zipf_exponent: f64,
}

/// Values.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// How long they are.
    pub size: Size,
    /// Random bytes instead of `x`.
    pub random: bool,
    /// Where in the string they are written and read.
    pub offset: u32,
    /// Seconds to live, all alike likely; 0 of them is for ever.
    pub expiry: Option<Range>,
}

/// How long values are.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// All alike.
    Fixed(u32),
    /// Between these, all alike likely.
    Random(Range),
    /// From the smaller for the first key to the larger for the last.
    ByKey(Range),
    /// By weight.
    List(Vec<(u32, u32)>),
}

/// Values from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The file.
    pub path: PathBuf,
    /// Its records.
    pub records: Records,
    /// Keys of the key options instead of those of the file.
    pub generate_keys: bool,
    /// Times to live are ignored.
    pub no_expiry: bool,
    /// Compare after the test.
    pub verify: bool,
    /// Only compare.
    pub verify_only: bool,
}

/// How connections are made, and made again.
#[derive(Clone, Debug, PartialEq)]
pub struct Reconnect {
    /// Open a new connection after so many requests.
    pub interval: Option<u32>,
    /// Try again without end, or as often as `most_attempts` says.
    pub on_error: bool,
    /// Attempts in a row; 0 is without end.
    pub most_attempts: u32,
    /// Each wait is so many times the one before; 0 is all alike.
    pub backoff_factor: f64,
    /// Bound of connecting and logging in.
    pub timeout: Duration,
    /// Waits between two new connections of a thread, in microseconds.
    pub jitter_us: (u32, u32),
    /// New connections per second in all.
    pub rate: Option<Rate>,
}

/// Sending again what failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// So often at most; `None` is without end.
    pub most: Option<u32>,
    /// Wait before it is sent again.
    pub wait: Duration,
    /// Each wait is so many times the one before; 0 is all alike.
    pub factor: f64,
    /// Only after these errors; empty is after all that may pass.
    pub only_on: Vec<String>,
    /// Requests of one connection that wait to be sent again.
    pub most_queued: u32,
}

/// Clients that come step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staircase {
    /// Clients of each thread at the begin.
    pub start: u32,
    /// Clients of each thread that come with each step.
    pub step: u32,
    /// Seconds of a step.
    pub seconds: u32,
    /// Clients of each thread in the end.
    pub most: u32,
}

/// Our own outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnOutput {
    /// A line of JSON per second.
    pub json_lines: Option<PathBuf>,
    /// A page with charts.
    pub html: Option<PathBuf>,
    /// Runs against a known server around each run.
    pub certify: bool,
}

impl Plan {
    /// Connections in all, those to further nodes of a cluster not counted.
    #[must_use]
    pub fn connections(&self) -> u64 {
        u64::from(self.threads) * u64::from(self.clients)
    }

    /// Requests of a run in all; `None` where time ends it.
    #[must_use]
    pub fn requests(&self) -> Option<u64> {
        match self.length {
            Length::Requests(each) => Some(each.saturating_mul(self.connections())),
            Length::Seconds(_) => None,
        }
    }

    /// The keys that are sent: those of the key options, or the records of a file from 1 on.
    #[must_use]
    pub fn sent_keys(&self) -> Keys {
        match &self.import {
            Some(import) if !import.generate_keys => self.keys.of_records(&import.records),
            _ => self.keys.clone(),
        }
    }

    /// Seed of a run, from 1. Runs draw differently unless told otherwise: ten runs over the same
    /// keys in the same order would be one run measured ten times, and their spread says nothing.
    #[must_use]
    pub fn seed_of_run(&self, run: u32) -> u64 {
        if run <= 1 || self.same_seed {
            self.seed
        } else {
            random::mix(self.seed ^ random::mix(u64::from(run)))
        }
    }
}

impl Keys {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.most - self.least + 1
    }

    /// The numbers of records, in the place of those of the options.
    #[must_use]
    pub fn of_records(&self, records: &Records) -> Self {
        Self {
            least: 1,
            most: records.count() as u64,
            ..self.clone()
        }
    }

    /// The part of one client with pattern `P`: its first key and how many there are. The parts
    /// cover all keys once; the first ones take one more where it does not come out even. The
    /// original's parts are all as long as the longest, so that the last ones of them may lie
    /// beyond the largest key.
    #[must_use]
    pub fn part(&self, client: u64, clients: u64) -> (u64, u64) {
        let (each, more) = (self.count() / clients, self.count() % clients);
        let first = self.least + client * each + client.min(more);
        (first, each + u64::from(client < more))
    }
}
