//! The `[server]` table.

use std::fmt::Display;
use std::str::FromStr;

use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::cli::Time;
use kvlab_mock_server::config::ConfigError;
use kvlab_mock_server::latency::{LatencyRules, Rule};
use kvlab_mock_server::limit::{ConnectionLimits, RequestLimits};
use serde::Deserialize;
use toml::Spanned;

use super::words::OneOrMore;

/// The server of a scenario, resolved.
#[derive(Clone, Debug)]
pub struct ServerPart {
    /// Its settings; the runner chooses the ports.
    pub config: ServerConfig,
}

/// The `[server]` table as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct RawServer {
    latency: OneOrMore,
    shape: OneOrMore,
    queue: Option<Spanned<String>>,
    freeze: OneOrMore,
    cut: OneOrMore,
    throttle: OneOrMore,
    size_limit: OneOrMore,
    max_memory: Option<Spanned<String>>,
    eviction: Option<Spanned<String>>,
    stop_writes: Option<Spanned<String>>,
    block: OneOrMore,
    block_form: Option<Spanned<String>>,
    databases: usize,
    max_connections: Option<u64>,
    max_connections_per_address: Option<u64>,
    cores: u32,
    connection_limit: Option<Spanned<String>>,
    connection_text: Option<Spanned<String>>,
    accept_rate: Option<Spanned<String>>,
    accept_limit: Option<Spanned<String>>,
    accept_text: Option<Spanned<String>>,
    idle_timeout: Option<Spanned<String>>,
    max_age: Option<Spanned<String>>,
    output_limit: Option<Spanned<String>>,
    workers: usize,
    seed: u64,
    spin: bool,
    tls: bool,
    redis_version: Option<Spanned<String>>,
    namespaces: Vec<String>,
    user: OneOrMore,
}

impl Default for RawServer {
    fn default() -> Self {
        let usual = ServerConfig::default();
        Self {
            latency: OneOrMore::default(),
            shape: OneOrMore::default(),
            queue: None,
            freeze: OneOrMore::default(),
            cut: OneOrMore::default(),
            throttle: OneOrMore::default(),
            size_limit: OneOrMore::default(),
            max_memory: None,
            eviction: None,
            stop_writes: None,
            block: OneOrMore::default(),
            block_form: None,
            databases: usual.redis.databases,
            max_connections: None,
            max_connections_per_address: None,
            cores: usual.connections.cores,
            connection_limit: None,
            connection_text: None,
            accept_rate: None,
            accept_limit: None,
            accept_text: None,
            idle_timeout: None,
            max_age: None,
            output_limit: None,
            workers: usual.workers,
            seed: 1,
            spin: usual.spin,
            tls: false,
            redis_version: None,
            namespaces: usual.aerospike.namespaces,
            user: OneOrMore::default(),
        }
    }
}

/// A message and the place in the file it is about, where there is a nearer one than the table.
pub(super) type Wrong = (Option<usize>, String);

impl OneOrMore {
    /// The values of the texts that stand at `key`.
    fn parse<T: FromStr<Err: Display>>(&self, key: &str) -> Result<Vec<T>, Wrong> {
        let parse = |text: &Spanned<String>| {
            let parsed = text.as_ref().parse();
            parsed.map_err(|error| (Some(text.span().start), format!("{key}: {error}")))
        };
        self.0.iter().map(parse).collect()
    }
}

/// The value of a text that stands at `key`, if one does.
fn one<T: FromStr<Err: Display>>(
    text: Option<&Spanned<String>>,
    key: &str,
) -> Result<Option<T>, Wrong> {
    let parse = |text: &Spanned<String>| {
        let parsed = text.as_ref().parse();
        parsed.map_err(|error| (Some(text.span().start), format!("{key}: {error}")))
    };
    text.map(parse).transpose()
}

impl RawServer {
    pub(super) fn resolve(self) -> Result<ServerPart, Wrong> {
        let rules: Vec<Rule> = self.latency.parse("latency")?;
        let latency =
            LatencyRules::new(rules).map_err(|error| (None, format!("latency: {error}")))?;
        if !(1..=MAX_WORKERS).contains(&self.workers) {
            let message = format!(
                "workers: expected 1 to {MAX_WORKERS}, found {}",
                self.workers
            );
            return Err((None, message));
        }
        if self.namespaces.is_empty() {
            return Err((None, "namespaces: expected at least one name".to_owned()));
        }
        let connections = ConnectionLimits {
            max: self.max_connections,
            max_per_address: self.max_connections_per_address,
            at_cap: one(self.connection_limit.as_ref(), "connection-limit")?,
            text: self.connection_text.map(Spanned::into_inner),
            rate: one(self.accept_rate.as_ref(), "accept-rate")?,
            cores: self.cores,
            at_rate: one(self.accept_limit.as_ref(), "accept-limit")?.unwrap_or_default(),
            rate_text: self.accept_text.map(Spanned::into_inner),
            idle: one::<Time>(self.idle_timeout.as_ref(), "idle-timeout")?.map(|time| time.0),
            max_age: one::<Time>(self.max_age.as_ref(), "max-age")?.map(|time| time.0),
            output: one(self.output_limit.as_ref(), "output-limit")?,
        };
        let mut config = ServerConfig {
            workers: self.workers,
            seed: self.seed,
            latency,
            shapes: self.shape.parse("shape")?,
            queue: one(self.queue.as_ref(), "queue")?,
            freezes: self.freeze.parse("freeze")?,
            cuts: self.cut.parse("cut")?,
            users: self.user.parse("user")?,
            requests: RequestLimits {
                throttles: self.throttle.parse("throttle")?,
                sizes: self.size_limit.parse("size-limit")?,
                max_memory: one(self.max_memory.as_ref(), "max-memory")?,
                eviction: one(self.eviction.as_ref(), "eviction")?,
                stop_writes: one(self.stop_writes.as_ref(), "stop-writes")?,
                blocked: self.block.parse("block")?,
                block_form: one(self.block_form.as_ref(), "block-form")?.unwrap_or_default(),
            },
            connections,
            spin: self.spin,
            record_rows: true,
            ..ServerConfig::default()
        };
        if let Some(text) = self.redis_version {
            let version = text.as_ref().parse();
            config.redis.version = version.map_err(|error: ConfigError| {
                (Some(text.span().start), format!("redis-version: {error}"))
            })?;
        }
        // With a certificate made for the run, which the client trusts.
        config.tls.required = self.tls;
        config.redis.databases = self.databases;
        config.aerospike.namespaces = self.namespaces;
        config.check().map_err(|error| (None, error.to_string()))?;
        Ok(ServerPart { config })
    }
}

/// Bound of the server's worker threads.
const MAX_WORKERS: usize = 64;
