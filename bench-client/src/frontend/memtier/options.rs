//! The options as typed: read, each on its own checked, not yet set against each other.
//!
//! `None` is "not given", because some rules ask whether an option was given at all; the defaults
//! come in with [`super::plan`]. Where an option is repeated the last one counts, except for those
//! that are lists.

use std::path::PathBuf;
use std::time::Duration;

use kvlab_timing::Rate;

use super::command::Command;
use super::credentials::Credentials;
use super::number::{Range, Ratio};
use super::pattern::Patterns;
use super::uri::Uri;
use crate::frontend::native::ErrorLimit;

/// All options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Server, login, TLS, cluster.
    pub connection: ConnectionOptions,
    /// Files and what is printed.
    pub output: OutputOptions,
    /// How hard and for how long.
    pub test: TestOptions,
    /// How connections are made, and made again.
    pub reconnect: ReconnectOptions,
    /// Sending again what failed.
    pub retry: RetryOptions,
    /// Commands of one's own.
    pub commands: CommandOptions,
    /// Values.
    pub objects: ObjectOptions,
    /// Keys.
    pub keys: KeyOptions,
    /// `WAIT`.
    pub wait: WaitOptions,
    /// What memtier_benchmark has not.
    pub own: OwnOptions,
}

/// Server, login, TLS, cluster.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each is the option of that name")]
pub struct ConnectionOptions {
    pub server: Option<String>,
    pub port: Option<u16>,
    pub unix_socket: Option<PathBuf>,
    pub family: Family,
    pub protocol: Protocol,
    pub credentials: Option<Credentials>,
    pub uri: Option<Uri>,
    pub tls: bool,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub cacert: Option<PathBuf>,
    pub tls_skip_verify: bool,
    pub tls_protocols: Option<Vec<TlsVersion>>,
    pub sni: Option<String>,
    pub select_db: Option<u32>,
    pub run_count: Option<u32>,
    pub debug: u32,
    pub cluster_mode: bool,
    pub transaction: bool,
    pub read_preference: ReadPreference,
    pub read_preference_fallback: Option<ReadFallback>,
    pub read_servers: Vec<(String, u16)>,
}

/// `-4` or `-6`; the last one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Both.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Protocol of `-P`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2 without a word at the begin.
    #[default]
    Redis,
    /// RESP2, begun with `HELLO 2`.
    Resp2,
    /// RESP3, begun with `HELLO 3`.
    Resp3,
}

/// Versions of TLS that can be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// Where reads go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadPreference {
    /// To the primary of the slot.
    #[default]
    Primary,
    /// To a replica.
    Secondary,
    /// To a replica if there is one.
    SecondaryPreferred,
    /// To the fastest of all.
    Nearest,
}

/// What becomes of a read without a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFallback {
    /// It is an error.
    Error,
    /// It waits.
    Queue,
    /// It goes to the primary.
    Primary,
}

/// Files and what is printed.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each is the option of that name")]
#[expect(clippy::struct_excessive_bools, reason = "they are switches")]
pub struct OutputOptions {
    pub out_file: Option<PathBuf>,
    pub json_out_file: Option<PathBuf>,
    pub client_stats: Option<String>,
    pub hdr_file_prefix: Option<String>,
    pub show_config: bool,
    pub hide_histogram: bool,
    pub print_percentiles: Option<Vec<f64>>,
    pub print_all_runs: bool,
    pub realtime_latencies: bool,
    pub latency_window: Option<u32>,
    pub breakdown: Breakdown,
    pub miss_tracking_off: bool,
    pub miss_rate_threshold: Option<f64>,
    pub statsd: Statsd,
}

/// Rows of `--command`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Breakdown {
    /// One per name of a command.
    #[default]
    Command,
    /// One per `--command`.
    Line,
}

/// Where metrics go, if anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statsd {
    /// Server; `None` sends nothing.
    pub host: Option<String>,
    /// UDP port.
    pub port: u16,
    /// First part of the names.
    pub prefix: String,
    /// Second part of the names.
    pub run_label: String,
    /// HTTP port for events.
    pub graphite_port: u16,
}

impl Default for Statsd {
    fn default() -> Self {
        Self {
            host: None,
            port: 8125,
            prefix: "memtier".to_owned(),
            run_label: "default".to_owned(),
            graphite_port: 8080,
        }
    }
}

/// How hard and for how long.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each is the option of that name")]
pub struct TestOptions {
    pub requests: Option<Requests>,
    pub rate_limiting: Option<u32>,
    pub clients: Option<u32>,
    pub threads: Option<u32>,
    pub test_time: Option<u32>,
    pub clients_start: Option<u32>,
    pub clients_step: Option<u32>,
    pub step_duration: Option<u32>,
    pub ratio: Option<Ratio>,
    pub pipeline: Option<u32>,
    pub multi_key_get: Option<u32>,
    pub distinct_client_seed: bool,
    pub randomize: bool,
}

/// Requests of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// This many.
    Count(u64),
    /// As many as there are keys.
    AllKeys,
}

/// How connections are made, and made again.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each is the option of that name")]
pub struct ReconnectOptions {
    pub interval: Option<u32>,
    pub on_error: bool,
    pub max_attempts: Option<u32>,
    pub backoff_factor: Option<f64>,
    pub connection_timeout: Option<u32>,
    pub stage_timeout: Option<u32>,
    pub min_jitter_us: Option<u32>,
    pub max_jitter_us: Option<u32>,
}

/// Sending again what failed.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each is the option of that name")]
pub struct RetryOptions {
    pub on_error: bool,
    /// `None` is without end.
    pub max_retries: Option<u32>,
    pub backoff_ms: Option<u32>,
    pub backoff_factor: Option<f64>,
    pub only_on: Vec<String>,
    pub max_queue: Option<u32>,
    pub failed_keys_file: Option<PathBuf>,
}

/// Commands of one's own.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each is the option of that name")]
pub struct CommandOptions {
    pub commands: Vec<Command>,
    pub monitor_input: Option<PathBuf>,
    pub monitor_random: bool,
    pub scan_iteration: bool,
    pub scan_max_iterations: Option<u32>,
}

/// Values.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each is the option of that name")]
#[expect(clippy::struct_excessive_bools, reason = "they are switches")]
pub struct ObjectOptions {
    pub data_size: Option<u32>,
    pub data_offset: Option<u32>,
    pub random_data: bool,
    pub size_range: Option<Range>,
    pub size_list: Option<Vec<(u32, u32)>>,
    pub sizes_by_key: bool,
    pub expiry_range: Option<Range>,
    pub import: Option<PathBuf>,
    pub verify: bool,
    pub verify_only: bool,
    pub generate_keys: bool,
    pub no_expiry: bool,
}

/// Keys.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each is the option of that name")]
pub struct KeyOptions {
    pub prefix: Option<String>,
    pub minimum: Option<u64>,
    pub maximum: Option<u64>,
    pub patterns: Option<Patterns>,
    pub stddev: Option<f64>,
    pub median: Option<f64>,
    pub zipf_exponent: Option<f64>,
}

/// `WAIT`.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each is the option of that name")]
pub struct WaitOptions {
    pub ratio: Option<Ratio>,
    pub replicas: Option<Range>,
    pub timeout_ms: Option<Range>,
}

/// What memtier_benchmark has not.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each is the option of that name")]
pub struct OwnOptions {
    pub from_send: bool,
    pub warmup: Duration,
    pub seed: Option<u64>,
    pub same_seed: bool,
    pub max_errors: Option<ErrorLimit>,
    pub connect_rate: Option<Rate>,
    pub json_lines: Option<PathBuf>,
    pub html: Option<PathBuf>,
    pub certify: bool,
}
