//! The options of `serve`, as typed.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::port::Port;
use super::settings::{OrNone, Settings, Time};
use crate::account::Account;
use crate::config::RedisVersion;
use crate::latency::{Cut, Freeze, Queue, Rule, Shape};
use crate::limit::{AcceptLimit, AcceptRate, ConnectionLimit, OutputLimit};
use crate::limit::{BlockForm, Blocked, ByteSize, Eviction, Share, SizeLimit, Throttle};
use crate::tls::ClientAuth;

/// The options of `serve`. Each but `--config` and `--print-config` is also a key of the
/// configuration file.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServeArgs {
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", help_heading = "Listening")]
    pub bind: Option<IpAddr>,

    /// Port for Redis clients: a number, 0 for a free one, off for none [default: 6379]
    #[arg(long, value_name = "PORT", help_heading = "Listening")]
    pub redis_port: Option<Port>,

    /// Port for Aerospike clients, likewise [default: 3000]
    #[arg(long, value_name = "PORT", help_heading = "Listening")]
    pub aerospike_port: Option<Port>,

    /// One port for both, told apart by the first byte; closes the other two unless they are given
    #[arg(long, value_name = "PORT", help_heading = "Listening")]
    pub port: Option<Port>,

    /// Port for Redis clients over TLS: a number, 0 for a free one, off for none [default: off]
    #[arg(long, value_name = "PORT", help_heading = "TLS")]
    pub redis_tls_port: Option<Port>,

    /// Port for Aerospike clients over TLS, likewise [default: off]
    #[arg(long, value_name = "PORT", help_heading = "TLS")]
    pub aerospike_tls_port: Option<Port>,

    /// Opens no plain port: a protocol without a TLS port of its own speaks TLS on its usual one
    /// [default: false]
    #[arg(long, value_name = "BOOL", help_heading = "TLS", num_args = 0..=1,
          default_missing_value = "true")]
    pub tls_required: Option<bool>,

    /// Certificate of the server, and the intermediate ones behind it, in PEM form; without one, one
    /// is made for the run
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub tls_key: Option<PathBuf>,

    /// Makes a certificate for this machine's own names and keeps it in this folder; clients trust
    /// ca.pem there
    #[arg(long, value_name = "DIR", help_heading = "TLS")]
    pub tls_self_signed: Option<PathBuf>,

    /// Authorities that sign the certificates of clients, in PEM form; without it no client is asked
    /// for one
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub tls_client_ca: Option<PathBuf>,

    /// Whether clients must have a certificate: optional or required [default: optional]
    #[arg(long, value_name = "WORD", help_heading = "TLS")]
    pub tls_client_auth: Option<ClientAuth>,

    /// Writes the ports to this file once they are open: lines such as redis=6379
    #[arg(long, value_name = "FILE", help_heading = "Listening")]
    pub ports_file: Option<PathBuf>,

    /// Delays replies, may be repeated: [SELECTOR=]LAW, such as 'constant(1ms)' or
    /// 'get=lognormal(p50=300us,p99=2ms)'
    #[arg(long, value_name = "RULE", help_heading = "Timing")]
    pub latency: Vec<Rule>,

    /// Changes delays over time, may be repeated: step(at=5s,factor=3),
    /// ramp(at=5s,over=10s,factor=4), spike(at=5s,for=200ms[,every=2s],add=20ms), or none
    #[arg(long, value_name = "SHAPE", help_heading = "Timing")]
    pub shape: Vec<OrNone<Shape>>,

    /// Reads and writes pass a queue: servers=4,service=exponential(mean=1ms)[,limit=N], or none
    #[arg(long, value_name = "QUEUE", help_heading = "Timing")]
    pub queue: Option<OrNone<Queue>>,

    /// Freezes the server, may be repeated: every=2s,for=150ms[,first=1s], at=3s,for=1s, or none;
    /// with ,connection=N that connection alone
    #[arg(long, value_name = "FREEZE", help_heading = "Timing")]
    pub freeze: Vec<OrNone<Freeze>>,

    /// Ends connections, may be repeated: every=2s[,first=1s], at=3s, or none; with ,connection=N
    /// that one alone, with ,how=reset by a reset
    #[arg(long, value_name = "CUT", help_heading = "Timing")]
    pub cut: Vec<OrNone<Cut>>,

    /// Limits operations or bytes per time, may be repeated: ops=1000/s, in=10MB/s or out=10MB/s,
    /// behind which may stand ,burst=N ,per=server|client ,of=SELECTOR ,then=delay|error|drop
    /// and ,text=TEXT; or none
    #[arg(long, value_name = "THROTTLE", help_heading = "Limits on requests")]
    pub throttle: Vec<OrNone<Throttle>>,

    /// Limits sizes, may be repeated: request=10MB, key=32KB, value=1MB, arguments=3999,
    /// pipeline=100, each with [,text=TEXT], or none
    #[arg(long, value_name = "LIMIT", help_heading = "Limits on requests")]
    pub size_limit: Vec<OrNone<SizeLimit>>,

    /// Memory that data may take, or none [default: none]
    #[arg(long, value_name = "SIZE", help_heading = "Limits on requests")]
    pub max_memory: Option<OrNone<ByteSize>>,

    /// What Redis evicts when it is full: noeviction, allkeys-lru, volatile-ttl, ...
    /// [default: noeviction]
    #[arg(long, value_name = "POLICY", help_heading = "Limits on requests")]
    pub eviction: Option<Eviction>,

    /// Share of the memory from which an Aerospike namespace takes no writes [default: 70%]
    #[arg(long, value_name = "SHARE", help_heading = "Limits on requests")]
    pub stop_writes: Option<OrNone<Share>>,

    /// A command that nobody may run, may be repeated: config, client|kill, aerospike.truncate, or
    /// none
    #[arg(long, value_name = "COMMAND", help_heading = "Limits on requests")]
    pub block: Vec<OrNone<Blocked>>,

    /// How a blocked command is refused: unknown, noperm, or a text with {command}
    /// [default: unknown]
    #[arg(long, value_name = "FORM", help_heading = "Limits on requests")]
    pub block_form: Option<BlockForm>,

    /// Number of Redis databases [default: 16]
    #[arg(long, value_name = "NUMBER", help_heading = "Limits on requests")]
    pub databases: Option<usize>,
    /// Connections that Redis clients and Aerospike clients may each have, or none for the usual 10000
    /// and 15000
    #[arg(long, value_name = "NUMBER", help_heading = "Connections")]
    pub max_connections: Option<OrNone<u64>>,

    /// The same for the clients of one address, or none
    #[arg(long, value_name = "NUMBER", help_heading = "Connections")]
    pub max_connections_per_address: Option<OrNone<u64>>,

    /// What becomes of connections beyond these: error (usual for Redis), close (for Aerospike), reset
    /// or backlog
    #[arg(long, value_name = "FORM", help_heading = "Connections")]
    pub connection_limit: Option<ConnectionLimit>,

    /// What a Redis client beyond these is told in place of ERR max number of clients reached
    #[arg(long, value_name = "TEXT", help_heading = "Connections")]
    pub connection_text: Option<String>,

    /// New connections per time and core, as in 200/500ms, or none: a bucket that holds so many and is
    /// refilled with as many in that time
    #[arg(long, value_name = "RATE", help_heading = "Connections")]
    pub accept_rate: Option<OrNone<AcceptRate>>,

    /// Cores that the accept rate is multiplied by [default: 1]
    #[arg(long, value_name = "NUMBER", help_heading = "Connections")]
    pub cores: Option<u32>,

    /// What becomes of connections that come faster: delay, error, close, reset or backlog
    /// [default: delay]
    #[arg(long, value_name = "FORM", help_heading = "Connections")]
    pub accept_limit: Option<AcceptLimit>,

    /// What a Redis client that comes faster is told in place of ERR max number of clients reached
    #[arg(long, value_name = "TEXT", help_heading = "Connections")]
    pub accept_text: Option<String>,

    /// Ends connections on which nothing happens for this time, or none
    #[arg(long, value_name = "TIME", help_heading = "Connections")]
    pub idle_timeout: Option<OrNone<Time>>,

    /// Ends connections of this age, or none
    #[arg(long, value_name = "TIME", help_heading = "Connections")]
    pub max_age: Option<OrNone<Time>>,

    /// Ends connections whose clients do not take their replies: 32MiB, or
    /// hard=32MiB,soft=8MiB,for=60s, or none
    #[arg(long, value_name = "LIMIT", help_heading = "Connections")]
    pub output_limit: Option<OrNone<OutputLimit>>,

    /// Waits without spinning: cheaper, and about 50 us less precise
    #[arg(long, help_heading = "Timing")]
    pub no_spin: bool,

    /// Worker threads [default: 1]
    #[arg(long, value_name = "NUMBER", help_heading = "Timing")]
    pub workers: Option<usize>,

    /// Seeds everything that is drawn at random [default: 0]
    #[arg(long, value_name = "NUMBER", help_heading = "Timing")]
    pub seed: Option<u64>,

    /// Version of Redis to be [default: 7.2.4]
    #[arg(long, value_name = "VERSION", help_heading = "Identity")]
    pub redis_version: Option<RedisVersion>,

    /// Name of the Aerospike node [default: A1]
    #[arg(long, value_name = "NAME", help_heading = "Identity")]
    pub node_name: Option<String>,

    /// Name of the Aerospike cluster [default: lab]
    #[arg(long, value_name = "NAME", help_heading = "Identity")]
    pub cluster_name: Option<String>,

    /// Aerospike build to be [default: 8.1.2.0]
    #[arg(long, value_name = "BUILD", help_heading = "Identity")]
    pub build: Option<String>,

    /// Aerospike namespace, may be repeated [default: test]
    #[arg(long, value_name = "NAME", help_heading = "Identity")]
    pub namespace: Vec<String>,

    /// A user who may log in, on both protocols, may be repeated, or none; with any, clients have to
    #[arg(long, value_name = "NAME:PASSWORD", help_heading = "Access")]
    pub user: Vec<OrNone<Account>>,

    /// Prints statistics at the end: delays wanted and done, calls, bytes
    #[arg(long, help_heading = "Output")]
    pub stats: bool,

    /// Writes a row for every request, with its stamps, to this CSV file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub rows: Option<PathBuf>,

    /// Limits and identity of a managed service's plan, as in aiven:startup-4; options and the
    /// configuration file beat it (--list-profiles names them all)
    #[arg(long, value_name = "SERVICE:PLAN", help_heading = "Identity")]
    pub profile: Option<String>,

    /// Lists the profiles with their pages and dates, and ends
    #[arg(long, help_heading = "Output")]
    pub list_profiles: bool,

    /// Reads settings from this TOML file; options beat it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub config: Option<PathBuf>,

    /// Prints the settings that result, as a configuration file, and ends
    #[arg(long, help_heading = "Output")]
    pub print_config: bool,
}

impl ServeArgs {
    /// The options over the settings of the file, if one is named.
    pub(super) fn settings(self) -> Result<Settings> {
        let file = match &self.config {
            Some(path) => {
                let name = path.display();
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the configuration file {name}"))?;
                Settings::from_toml(&text)
                    .with_context(|| format!("in the configuration file {name}"))?
            }
            None => Settings::default(),
        };
        let options = Settings {
            profile: self.profile,
            bind: self.bind,
            redis_port: self.redis_port,
            aerospike_port: self.aerospike_port,
            port: self.port,
            redis_tls_port: self.redis_tls_port,
            aerospike_tls_port: self.aerospike_tls_port,
            tls_required: self.tls_required,
            tls_cert: self.tls_cert,
            tls_key: self.tls_key,
            tls_self_signed: self.tls_self_signed,
            tls_client_ca: self.tls_client_ca,
            tls_client_auth: self.tls_client_auth,
            ports_file: self.ports_file,
            latency: (!self.latency.is_empty()).then_some(self.latency),
            shape: (!self.shape.is_empty()).then_some(self.shape),
            queue: self.queue,
            freeze: (!self.freeze.is_empty()).then_some(self.freeze),
            cut: (!self.cut.is_empty()).then_some(self.cut),
            throttle: (!self.throttle.is_empty()).then_some(self.throttle),
            size_limit: (!self.size_limit.is_empty()).then_some(self.size_limit),
            max_memory: self.max_memory,
            eviction: self.eviction,
            stop_writes: self.stop_writes,
            block: (!self.block.is_empty()).then_some(self.block),
            block_form: self.block_form,
            databases: self.databases,
            max_connections: self.max_connections,
            max_connections_per_address: self.max_connections_per_address,
            connection_limit: self.connection_limit,
            connection_text: self.connection_text,
            accept_rate: self.accept_rate,
            cores: self.cores,
            accept_limit: self.accept_limit,
            accept_text: self.accept_text,
            idle_timeout: self.idle_timeout,
            max_age: self.max_age,
            output_limit: self.output_limit,
            spin: self.no_spin.then_some(false),
            workers: self.workers,
            seed: self.seed,
            redis_version: self.redis_version,
            node_name: self.node_name,
            cluster_name: self.cluster_name,
            build: self.build,
            namespaces: (!self.namespace.is_empty()).then_some(self.namespace),
            user: (!self.user.is_empty()).then_some(self.user),
            stats: self.stats,
            rows: self.rows,
        };
        Ok(options.or(file))
    }
}
