//! Settings as given, by options or by a TOML file, and how they become a [`ServerConfig`].
//!
//! The file's keys are the names of the options without their dashes in front, but `spin = false`
//! stands for `--no-spin`, and what an option repeats is a list:
//!
//! ```toml
//! redis-port = 0
//! aerospike-port = "off"
//! latency = ["constant(1ms)", "get=lognormal(p50=300us,p99=2ms)"]
//! freeze = "every=2s,for=150ms"
//! ```

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use kvlab_timing::duration::{self, DurationError, Human};
use serde::{Deserialize, Serialize};

use super::port::Port;
use crate::account::Account;
use crate::config::{ConfigError, RedisVersion, ServerConfig};
use crate::latency::{Cut, Freeze, LatencyRules, Queue, Rule, Shape};
use crate::limit::{AcceptLimit, AcceptRate, ConnectionLimit, ConnectionLimits, OutputLimit};
use crate::limit::{
    BlockForm, Blocked, ByteSize, Eviction, RequestLimits, Share, SizeLimit, Throttle,
};
use crate::server::StartError;
use crate::tls::{CertificateSource, ClientAuth, TlsConfig};

/// Settings of a server as given; what is `None` was not given. Lists that are given replace those
/// they override.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Settings {
    /// Profile that gives what is given nowhere else, as `SERVICE:PLAN`.
    pub profile: Option<String>,
    /// Address to listen on.
    pub bind: Option<IpAddr>,
    /// Port for RESP.
    pub redis_port: Option<Port>,
    /// Port for Aerospike.
    pub aerospike_port: Option<Port>,
    /// Port for both.
    pub port: Option<Port>,
    /// Port for RESP over TLS.
    pub redis_tls_port: Option<Port>,
    /// Port for Aerospike over TLS.
    pub aerospike_tls_port: Option<Port>,
    /// Whether no plain port is opened.
    pub tls_required: Option<bool>,
    /// Certificate of the server.
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate.
    pub tls_key: Option<PathBuf>,
    /// Folder in which a certificate is made and kept.
    pub tls_self_signed: Option<PathBuf>,
    /// Authorities that sign the certificates of clients.
    pub tls_client_ca: Option<PathBuf>,
    /// Whether clients must have a certificate.
    #[serde(with = "as_text::one")]
    pub tls_client_auth: Option<ClientAuth>,
    /// Where to write the ports.
    pub ports_file: Option<PathBuf>,
    /// Latency rules.
    #[serde(with = "as_text::list")]
    pub latency: Option<Vec<Rule>>,
    /// The changes of delays over time.
    #[serde(with = "as_text::list")]
    pub shape: Option<Vec<OrNone<Shape>>>,
    /// The queue.
    #[serde(with = "as_text::one")]
    pub queue: Option<OrNone<Queue>>,
    /// The freezes.
    #[serde(with = "as_text::list")]
    pub freeze: Option<Vec<OrNone<Freeze>>>,
    /// The moments at which connections are ended.
    #[serde(with = "as_text::list")]
    pub cut: Option<Vec<OrNone<Cut>>>,
    /// How much passes in a time.
    #[serde(with = "as_text::list")]
    pub throttle: Option<Vec<OrNone<Throttle>>>,
    /// How large requests may be.
    #[serde(with = "as_text::list")]
    pub size_limit: Option<Vec<OrNone<SizeLimit>>>,
    /// How much memory data may take.
    #[serde(with = "as_text::one")]
    pub max_memory: Option<OrNone<ByteSize>>,
    /// What is evicted from the RESP side.
    #[serde(with = "as_text::one")]
    pub eviction: Option<Eviction>,
    /// From which share of the memory on a namespace takes no writes.
    #[serde(with = "as_text::one")]
    pub stop_writes: Option<OrNone<Share>>,
    /// Commands that nobody may run.
    #[serde(with = "as_text::list")]
    pub block: Option<Vec<OrNone<Blocked>>>,
    /// How a RESP client is told so.
    #[serde(with = "as_text::one")]
    pub block_form: Option<BlockForm>,
    /// Number of databases.
    pub databases: Option<usize>,
    /// Connections of each protocol.
    #[serde(with = "as_text::count")]
    pub max_connections: Option<OrNone<u64>>,
    /// The same of one client address.
    #[serde(with = "as_text::count")]
    pub max_connections_per_address: Option<OrNone<u64>>,
    /// What becomes of connections beyond these two.
    #[serde(with = "as_text::one")]
    pub connection_limit: Option<ConnectionLimit>,
    /// What a RESP client beyond these two is told.
    pub connection_text: Option<String>,
    /// New connections per time and core.
    #[serde(with = "as_text::one")]
    pub accept_rate: Option<OrNone<AcceptRate>>,
    /// Cores that multiply the accept rate.
    pub cores: Option<u32>,
    /// What becomes of connections that come faster.
    #[serde(with = "as_text::one")]
    pub accept_limit: Option<AcceptLimit>,
    /// What a RESP client that comes faster is told.
    pub accept_text: Option<String>,
    /// How long a connection may be silent.
    #[serde(with = "as_text::one")]
    pub idle_timeout: Option<OrNone<Time>>,
    /// How long a connection may last.
    #[serde(with = "as_text::one")]
    pub max_age: Option<OrNone<Time>>,
    /// Bytes of replies that may wait for a client.
    #[serde(with = "as_text::one")]
    pub output_limit: Option<OrNone<OutputLimit>>,
    /// Whether waiting ends in a short spin.
    pub spin: Option<bool>,
    /// Worker threads.
    pub workers: Option<usize>,
    /// Seeds everything that is drawn at random.
    pub seed: Option<u64>,
    /// Version of Redis to be.
    #[serde(with = "as_text::one")]
    pub redis_version: Option<RedisVersion>,
    /// Name of the Aerospike node.
    pub node_name: Option<String>,
    /// Name of the Aerospike cluster.
    pub cluster_name: Option<String>,
    /// Aerospike build to be.
    pub build: Option<String>,
    /// Aerospike namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Who may log in.
    #[serde(with = "as_text::list")]
    pub user: Option<Vec<OrNone<Account>>>,
    /// Whether to print statistics at the end.
    pub stats: bool,
    /// Where to write the rows.
    pub rows: Option<PathBuf>,
}

impl Settings {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// Tells line, column and key of what is not understood.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The configuration file that gives these settings.
    #[must_use]
    pub fn to_toml(&self) -> String {
        // Every field has a form in TOML, so this does not fail.
        toml::to_string(self).unwrap_or_default()
    }

    /// These settings, and those of `other` where nothing is given here.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            profile: self.profile.or(other.profile),
            bind: self.bind.or(other.bind),
            redis_port: self.redis_port.or(other.redis_port),
            aerospike_port: self.aerospike_port.or(other.aerospike_port),
            port: self.port.or(other.port),
            redis_tls_port: self.redis_tls_port.or(other.redis_tls_port),
            aerospike_tls_port: self.aerospike_tls_port.or(other.aerospike_tls_port),
            tls_required: self.tls_required.or(other.tls_required),
            tls_cert: self.tls_cert.or(other.tls_cert),
            tls_key: self.tls_key.or(other.tls_key),
            tls_self_signed: self.tls_self_signed.or(other.tls_self_signed),
            tls_client_ca: self.tls_client_ca.or(other.tls_client_ca),
            tls_client_auth: self.tls_client_auth.or(other.tls_client_auth),
            ports_file: self.ports_file.or(other.ports_file),
            latency: self.latency.or(other.latency),
            shape: self.shape.or(other.shape),
            queue: self.queue.or(other.queue),
            freeze: self.freeze.or(other.freeze),
            cut: self.cut.or(other.cut),
            throttle: self.throttle.or(other.throttle),
            size_limit: self.size_limit.or(other.size_limit),
            max_memory: self.max_memory.or(other.max_memory),
            eviction: self.eviction.or(other.eviction),
            stop_writes: self.stop_writes.or(other.stop_writes),
            block: self.block.or(other.block),
            block_form: self.block_form.or(other.block_form),
            databases: self.databases.or(other.databases),
            max_connections: self.max_connections.or(other.max_connections),
            max_connections_per_address: self
                .max_connections_per_address
                .or(other.max_connections_per_address),
            connection_limit: self.connection_limit.or(other.connection_limit),
            connection_text: self.connection_text.or(other.connection_text),
            accept_rate: self.accept_rate.or(other.accept_rate),
            cores: self.cores.or(other.cores),
            accept_limit: self.accept_limit.or(other.accept_limit),
            accept_text: self.accept_text.or(other.accept_text),
            idle_timeout: self.idle_timeout.or(other.idle_timeout),
            max_age: self.max_age.or(other.max_age),
            output_limit: self.output_limit.or(other.output_limit),
            spin: self.spin.or(other.spin),
            workers: self.workers.or(other.workers),
            seed: self.seed.or(other.seed),
            redis_version: self.redis_version.or(other.redis_version),
            node_name: self.node_name.or(other.node_name),
            cluster_name: self.cluster_name.or(other.cluster_name),
            build: self.build.or(other.build),
            namespaces: self.namespaces.or(other.namespaces),
            user: self.user.or(other.user),
            stats: self.stats || other.stats,
            rows: self.rows.or(other.rows),
        }
    }

    /// The configuration these settings give over the defaults. A shared port takes the place of the
    /// two usual ones, but not of those that are given.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn resolve(&self) -> Result<ServerConfig, StartError> {
        let shared_port = self.port.and_then(Port::number);
        let usual = |port: u16| match shared_port {
            Some(_) => Port::Off,
            None => Port::Number(port),
        };
        let mut config = ServerConfig {
            redis_port: self.redis_port.unwrap_or(usual(REDIS_PORT)).number(),
            aerospike_port: self
                .aerospike_port
                .unwrap_or(usual(AEROSPIKE_PORT))
                .number(),
            shared_port,
            tls: self.tls()?,
            latency: LatencyRules::new(self.latency.clone().unwrap_or_default())?,
            shapes: values(&self.shape),
            queue: self.queue.clone().and_then(|setting| setting.0),
            freezes: values(&self.freeze),
            cuts: values(&self.cut),
            users: values(&self.user),
            requests: RequestLimits {
                throttles: values(&self.throttle),
                sizes: values(&self.size_limit),
                max_memory: self.max_memory.and_then(|setting| setting.0),
                eviction: self.eviction,
                stop_writes: self.stop_writes.and_then(|setting| setting.0),
                blocked: values(&self.block),
                block_form: self.block_form.clone().unwrap_or_default(),
            },
            connections: self.connections(),
            rows_file: self.rows.clone(),
            ..ServerConfig::default()
        };
        set(&mut config.bind, &self.bind);
        set(&mut config.workers, &self.workers);
        set(&mut config.seed, &self.seed);
        set(&mut config.spin, &self.spin);
        set(&mut config.redis.version, &self.redis_version);
        set(&mut config.redis.databases, &self.databases);
        set(&mut config.aerospike.node_name, &self.node_name);
        set(&mut config.aerospike.cluster_name, &self.cluster_name);
        set(&mut config.aerospike.build, &self.build);
        set(&mut config.aerospike.namespaces, &self.namespaces);
        config.check()?;
        Ok(config)
    }

    fn tls(&self) -> Result<TlsConfig, ConfigError> {
        let refuse = |what, expected| {
            Err(ConfigError {
                what,
                found: "missing".to_owned(),
                expected,
            })
        };
        let certificate = match (&self.tls_cert, &self.tls_key, &self.tls_self_signed) {
            (None, None, None) => CertificateSource::InMemory,
            (None, None, Some(folder)) => CertificateSource::SelfSigned(folder.clone()),
            (Some(certificate), Some(key), None) => CertificateSource::Files {
                certificate: certificate.clone(),
                key: key.clone(),
            },
            (Some(_), None, _) => return refuse("tls-key", "the key of tls-cert"),
            (None, Some(_), _) => return refuse("tls-cert", "the certificate of tls-key"),
            (Some(_), Some(_), Some(folder)) => {
                return Err(ConfigError {
                    what: "tls-self-signed",
                    found: folder.display().to_string(),
                    expected: "none beside tls-cert and tls-key",
                });
            }
        };
        Ok(TlsConfig {
            redis_port: self.redis_tls_port.and_then(Port::number),
            aerospike_port: self.aerospike_tls_port.and_then(Port::number),
            required: self.tls_required.unwrap_or_default(),
            certificate,
            client_ca: self.tls_client_ca.clone(),
            client_auth: self.tls_client_auth.unwrap_or_default(),
        })
    }

    /// The limits on connections these settings give.
    fn connections(&self) -> ConnectionLimits {
        let time = |given: &Option<OrNone<Time>>| Some(given.as_ref()?.0?.0);
        ConnectionLimits {
            max: self.max_connections.and_then(|given| given.0),
            max_per_address: self.max_connections_per_address.and_then(|given| given.0),
            at_cap: self.connection_limit,
            text: self.connection_text.clone(),
            rate: self.accept_rate.and_then(|given| given.0),
            cores: self.cores.unwrap_or(1),
            at_rate: self.accept_limit.unwrap_or_default(),
            rate_text: self.accept_text.clone(),
            idle: time(&self.idle_timeout),
            max_age: time(&self.max_age),
            output: self.output_limit.and_then(|given| given.0),
        }
    }

    /// Every setting of `config`, defaults too, and those of `given` that concern the program alone.
    #[must_use]
    pub fn from_config(config: &ServerConfig, given: &Self) -> Self {
        let (tls_cert, tls_key, tls_self_signed) = match &config.tls.certificate {
            CertificateSource::InMemory => (None, None, None),
            CertificateSource::Files { certificate, key } => {
                (Some(certificate.clone()), Some(key.clone()), None)
            }
            CertificateSource::SelfSigned(folder) => (None, None, Some(folder.clone())),
        };
        let limits = &config.connections;
        Self {
            // Its settings are among those printed.
            profile: None,
            bind: Some(config.bind),
            redis_port: Some(config.redis_port.into()),
            aerospike_port: Some(config.aerospike_port.into()),
            port: Some(config.shared_port.into()),
            redis_tls_port: Some(config.tls.redis_port.into()),
            aerospike_tls_port: Some(config.tls.aerospike_port.into()),
            tls_required: Some(config.tls.required),
            tls_cert,
            tls_key,
            tls_self_signed,
            tls_client_ca: config.tls.client_ca.clone(),
            tls_client_auth: Some(config.tls.client_auth),
            ports_file: given.ports_file.clone(),
            latency: Some(config.latency.rules().to_vec()),
            shape: settings(&config.shapes),
            queue: Some(OrNone(config.queue.clone())),
            freeze: settings(&config.freezes),
            cut: settings(&config.cuts),
            throttle: settings(&config.requests.throttles),
            size_limit: settings(&config.requests.sizes),
            max_memory: Some(OrNone(config.requests.max_memory)),
            eviction: Some(config.requests.eviction.unwrap_or_default()),
            stop_writes: Some(OrNone(config.requests.stop_writes)),
            block: settings(&config.requests.blocked),
            block_form: Some(config.requests.block_form.clone()),
            databases: Some(config.redis.databases),
            max_connections: limits.max.map(OrNone::some),
            max_connections_per_address: limits.max_per_address.map(OrNone::some),
            connection_limit: limits.at_cap,
            connection_text: limits.text.clone(),
            accept_rate: limits.rate.map(OrNone::some),
            cores: limits.rate.map(|_| limits.cores),
            accept_limit: limits.rate.map(|_| limits.at_rate),
            accept_text: limits.rate_text.clone(),
            idle_timeout: limits.idle.map(Time).map(OrNone::some),
            max_age: limits.max_age.map(Time).map(OrNone::some),
            output_limit: limits.output.map(OrNone::some),
            spin: Some(config.spin),
            workers: Some(config.workers),
            seed: Some(config.seed),
            redis_version: Some(config.redis.version),
            node_name: Some(config.aerospike.node_name.clone()),
            cluster_name: Some(config.aerospike.cluster_name.clone()),
            build: Some(config.aerospike.build.clone()),
            namespaces: Some(config.aerospike.namespaces.clone()),
            user: settings(&config.users),
            stats: given.stats,
            rows: config.rows_file.clone(),
        }
    }
}

fn set<T: Clone>(setting: &mut T, given: &Option<T>) {
    if let Some(given) = given {
        setting.clone_from(given);
    }
}

/// A value, or `none` to override those of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrNone<T>(pub Option<T>);

impl<T> OrNone<T> {
    fn some(value: T) -> Self {
        Self(Some(value))
    }
}

/// A time as people write it: `300s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        duration::parse(text).map(Self)
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Human(self.0).fmt(f)
    }
}

impl<T: FromStr> FromStr for OrNone<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        match text {
            "none" => Ok(Self(None)),
            _ => text.parse().map(|value| Self(Some(value))),
        }
    }
}

impl<T: std::fmt::Display> std::fmt::Display for OrNone<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// The values of a list as it was given.
fn values<T: Clone>(given: &Option<Vec<OrNone<T>>>) -> Vec<T> {
    let all = given.iter().flatten();
    all.filter_map(|setting| setting.0.clone()).collect()
}

/// The list as it could have been given.
fn settings<T: Clone>(values: &[T]) -> Option<Vec<OrNone<T>>> {
    let setting = |value: &T| OrNone(Some(value.clone()));
    Some(values.iter().map(setting).collect())
}

const REDIS_PORT: u16 = 6379;
const AEROSPIKE_PORT: u16 = 3000;

/// Values that stand in a file as the text people write on the command line.
mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::Deserialize;
    use serde::de::{Deserializer, Error};

    fn read<T: FromStr<Err: Display>, E: Error>(text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    pub(super) mod one {
        use serde::ser::Serializer;

        use super::*;

        pub(crate) fn serialize<T: Display, S: Serializer>(
            value: &Option<T>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match value {
                Some(value) => serializer.collect_str(value),
                None => serializer.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<T>, D::Error> {
            let text = String::deserialize(deserializer)?;
            read(&text).map(Some)
        }
    }

    /// A whole number, or `none`.
    pub(super) mod count {
        use serde::ser::Serializer;

        use super::super::OrNone;
        use super::*;

        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a whole number or 'none'")]
        enum Form {
            Number(u64),
            Word(String),
        }

        pub(crate) fn serialize<S: Serializer>(
            value: &Option<OrNone<u64>>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match value {
                Some(OrNone(Some(count))) => serializer.serialize_u64(*count),
                Some(OrNone(None)) => serializer.serialize_str("none"),
                None => serializer.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<OrNone<u64>>, D::Error> {
            match Form::deserialize(deserializer)? {
                Form::Number(count) => Ok(Some(OrNone(Some(count)))),
                Form::Word(word) if word == "none" => Ok(Some(OrNone(None))),
                Form::Word(_) => Err(D::Error::custom("expected a whole number or 'none'")),
            }
        }
    }

    pub(super) mod list {
        use serde::ser::Serializer;

        use super::*;

        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a text or a list of texts")]
        enum Form {
            One(String),
            More(Vec<String>),
        }

        pub(crate) fn serialize<T: Display, S: Serializer>(
            values: &Option<Vec<T>>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match values {
                Some(values) => serializer.collect_seq(values.iter().map(ToString::to_string)),
                None => serializer.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Vec<T>>, D::Error> {
            let texts = match Form::deserialize(deserializer)? {
                Form::One(text) => vec![text],
                Form::More(texts) => texts,
            };
            texts
                .iter()
                .map(|text| read(text))
                .collect::<Result<_, _>>()
                .map(Some)
        }
    }
}

#[cfg(test)]
mod tests {
    use kvlab_timing::Stamp;

    use super::*;

    const FULL: &str = r#"bind = "127.0.0.1"
redis-port = 0
aerospike-port = "off"
port = 4000
redis-tls-port = 0
aerospike-tls-port = "off"
tls-required = false
tls-cert = "/tmp/cert.pem"
tls-key = "/tmp/key.pem"
tls-client-ca = "/tmp/ca.pem"
tls-client-auth = "required"
ports-file = "/tmp/ports"
latency = ["constant(1ms)", "redis.get@user:*=lognormal(p50=300us,p99=2ms)"]
shape = ["step(at=5s,factor=3)", "spike(at=5s,for=200ms,every=2s,add=20ms)"]
queue = "servers=4,service=exponential(mean=1ms),limit=100"
freeze = ["every=2s,for=150ms,first=1s", "at=3s,for=1s,connection=2"]
cut = ["every=10s", "at=3s,connection=2,how=reset"]
throttle = ["ops=1000/s,burst=10,then=error", "in=10MB/s,per=client,of=write"]
size-limit = ["request=10MB,text=ERR {actual} > {limit}", "arguments=3999"]
max-memory = "250MB"
eviction = "allkeys-lru"
stop-writes = "90%"
block = ["config", "client|kill"]
block-form = "noperm"
databases = 1
max-connections = 100
max-connections-per-address = 10
connection-limit = "error"
connection-text = "ERR full"
accept-rate = "200/500ms"
cores = 2
accept-limit = "backlog"
accept-text = "ERR too fast"
idle-timeout = "5m"
max-age = "12h"
output-limit = "hard=32MiB,soft=8MiB,for=1m"
spin = false
workers = 2
seed = 7
redis-version = "7.0.15"
node-name = "B7"
cluster-name = "c"
build = "6.0.0.1"
namespaces = ["a", "b"]
user = ["alice:s3:cret", "default:d"]
stats = true
rows = "/tmp/rows.csv"
"#;

    #[test]
    fn a_file_gives_every_setting_and_prints_back() {
        let settings = Settings::from_toml(FULL).unwrap();
        assert_eq!(settings.to_toml(), FULL);
        let config = settings.resolve().unwrap();
        assert_eq!(config.redis_port, Some(0));
        assert_eq!(config.aerospike_port, None);
        assert_eq!(config.shared_port, Some(4000));
        assert_eq!(config.latency.rules().len(), 2);
        let first = |place: usize| config.freezes[place].when.first_ns;
        assert_eq!((first(0), first(1)), (1_000_000_000, 3_000_000_000));
        assert_eq!(config.requests.throttles.len(), 2);
        assert_eq!(config.requests.max_memory, Some(ByteSize(250_000_000)));
        assert_eq!(config.redis.databases, 1);
        assert!(!config.spin);
        let limits = &config.connections;
        assert_eq!((limits.max, limits.max_per_address), (Some(100), Some(10)));
        assert_eq!(limits.bucket(Stamp::ZERO).map(|b| b.capacity()), Some(400));
        assert_eq!(limits.at_rate, AcceptLimit::Backlog);
        assert_eq!(limits.idle, Some(Duration::from_secs(300)));
        assert_eq!((config.workers, config.seed), (2, 7));
        assert_eq!(config.redis.version.to_string(), "7.0.15");
        assert_eq!(config.aerospike.namespaces, ["a", "b"]);
        assert_eq!(config.users[0].password(), "s3:cret");
        assert_eq!(Settings::from_config(&config, &settings), settings);
    }

    #[test]
    fn the_printed_defaults_are_the_documented_ones() {
        let nothing = Settings::default();
        let config = nothing.resolve().unwrap();
        let printed = Settings::from_config(&config, &nothing).to_toml();
        assert_eq!(
            printed,
            r#"bind = "127.0.0.1"
redis-port = 6379
aerospike-port = 3000
port = "off"
redis-tls-port = "off"
aerospike-tls-port = "off"
tls-required = false
tls-client-auth = "optional"
latency = []
shape = []
queue = "none"
freeze = []
cut = []
throttle = []
size-limit = []
max-memory = "none"
eviction = "noeviction"
stop-writes = "none"
block = []
block-form = "unknown"
databases = 16
spin = true
workers = 1
seed = 0
redis-version = "7.2.4"
node-name = "A1"
cluster-name = "lab"
build = "8.1.2.0"
namespaces = ["test"]
user = []
stats = false
"#
        );
        let again = Settings::from_toml(&printed).unwrap().resolve().unwrap();
        assert_eq!(Settings::from_config(&again, &nothing).to_toml(), printed);
    }

    #[test]
    fn one_rule_needs_no_list() {
        for (key, text) in [
            ("latency", "constant(1ms)"),
            ("freeze", "every=2s,for=150ms"),
            ("cut", "every=2s"),
            ("shape", "step(at=5s,factor=3)"),
            ("throttle", "ops=1/s"),
            ("size-limit", "key=1KB"),
            ("block", "config"),
        ] {
            let one = Settings::from_toml(&format!("{key} = \"{text}\"")).unwrap();
            let list = Settings::from_toml(&format!("{key} = [\"{text}\"]")).unwrap();
            assert_eq!(one, list);
        }
    }

    #[test]
    fn what_is_given_first_beats_what_comes_after() {
        let options = Settings::from_toml(
            "seed = 1\nlatency = [\"none\"]\nfreeze = \"none\"\ncut = \"none\"\nqueue = \"none\"\n\
             max-connections = \"none\"\naccept-rate = \"none\"\nidle-timeout = \"none\"",
        );
        let merged = options.unwrap().or(Settings::from_toml(FULL).unwrap());
        assert_eq!(merged.seed, Some(1));
        assert_eq!(merged.workers, Some(2));
        assert_eq!(merged.latency.as_ref().map(Vec::len), Some(1));
        let config = merged.resolve().unwrap();
        assert!(config.latency.is_none());
        assert_eq!((config.freezes, config.cuts), (Vec::new(), Vec::new()));
        assert_eq!(config.queue, None);
        let limits = config.connections;
        assert_eq!((limits.max, limits.rate, limits.idle), (None, None, None));
    }

    #[test]
    fn a_shared_port_closes_the_usual_ones_but_no_given_one() {
        let ports = |text: &str| {
            let config = Settings::from_toml(text).unwrap().resolve().unwrap();
            (config.redis_port, config.aerospike_port, config.shared_port)
        };
        assert_eq!(ports(""), (Some(6379), Some(3000), None));
        assert_eq!(ports("port = 0"), (None, None, Some(0)));
        assert_eq!(ports("port = 0\nredis-port = 1"), (Some(1), None, Some(0)));
        assert_eq!(ports("port = \"off\""), (Some(6379), Some(3000), None));
        assert_eq!(ports("redis-port = \"off\""), (None, Some(3000), None));
    }

    #[test]
    fn a_certificate_has_a_key_and_one_origin() {
        let resolve = |text: &str| {
            let text = format!("redis-tls-port = 0\n{text}");
            let config = Settings::from_toml(&text).unwrap().resolve();
            config.map(|config| config.tls.certificate)
        };
        assert_eq!(resolve("").unwrap(), CertificateSource::InMemory);
        assert_eq!(
            resolve("tls-self-signed = \"d\"").unwrap(),
            CertificateSource::SelfSigned("d".into())
        );
        for (text, message) in [
            (
                "tls-cert = \"c\"",
                "tls-key is 'missing'; expected the key of tls-cert",
            ),
            (
                "tls-key = \"k\"",
                "tls-cert is 'missing'; expected the certificate of tls-key",
            ),
            (
                "tls-cert = \"c\"\ntls-key = \"k\"\ntls-self-signed = \"d\"",
                "tls-self-signed is 'd'; expected none beside tls-cert and tls-key",
            ),
        ] {
            assert_eq!(resolve(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn faults_in_a_file_are_told_with_line_and_key() {
        for (text, parts) in [
            ("seed = 1\nredis_port = 1\n", ["line 2", "redis_port"]),
            ("seed = \"x\"\n", ["line 1", "seed"]),
            (
                "\n\nlatency = [\"constant(1)\"]\n",
                ["line 3", "lacks a unit"],
            ),
            ("freeze = \"every=1s\"\n", ["line 1", "'for' is missing"]),
            (
                "redis-port = 70000\n",
                ["line 1", "a number from 0 to 65535"],
            ),
            ("redis-port = \"on\"\n", ["line 1", "expected a number"]),
            ("redis-version = \"7\"\n", ["line 1", "three numbers"]),
            ("throttle = \"ops=1\"\n", ["line 1", "an amount above 0"]),
            ("size-limit = \"key=0\"\n", ["line 1", "a size above 0"]),
            ("eviction = \"lru\"\n", ["line 1", "allkeys-lru"]),
            ("stop-writes = \"0.9\"\n", ["line 1", "1% to 100%"]),
            (
                "max-connections = \"all\"\n",
                ["line 1", "a whole number or 'none'"],
            ),
            ("accept-rate = \"200\"\n", ["line 1", "as in 200/500ms"]),
            (
                "accept-limit = \"drop\"\n",
                ["line 1", "delay, error, close"],
            ),
            ("output-limit = \"soft=1MB\"\n", ["line 1", "hard=32MiB"]),
        ] {
            let message = Settings::from_toml(text).unwrap_err().to_string();
            for part in parts {
                assert!(message.contains(part), "{message}");
            }
        }
    }
}
