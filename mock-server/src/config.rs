//! What a server is told to be: resolved settings, legal once [`ServerConfig::check`] says so.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::account::Account;
use crate::latency::{Cut, Freeze, Freezes, LatencyRules, Queue, Shape};
use crate::limit::ConnectionLimits;
use crate::limit::{Blocked, RequestLimits, SizeKind, Throttle};
use crate::tls::TlsConfig;

/// The settings of a server. [`ServerConfig::default`] is a server without delay on free ports of
/// the loopback address.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The address to listen on.
    pub bind: IpAddr,
    /// Port for RESP; 0 picks a free one, `None` opens none.
    pub redis_port: Option<u16>,
    /// Port for the Aerospike protocol; 0 picks a free one, `None` opens none.
    pub aerospike_port: Option<u16>,
    /// Port that serves both protocols and tells them apart by the first byte.
    pub shared_port: Option<u16>,
    /// Ports that speak TLS, and their certificate. A server under virtual time has none.
    pub tls: TlsConfig,
    /// Worker threads, at least 1.
    pub workers: usize,
    /// Seeds everything that is drawn at random.
    pub seed: u64,
    /// How late replies are meant to be.
    pub latency: LatencyRules,
    /// How the delays of reads and writes change over time, one change after the other.
    pub shapes: Vec<Shape>,
    /// The queue that reads and writes pass before their delay.
    pub queue: Option<Queue>,
    /// The freezes; they add up.
    pub freezes: Vec<Freeze>,
    /// The moments at which connections are ended.
    pub cuts: Vec<Cut>,
    /// What requests are limited to.
    pub requests: RequestLimits,
    /// What connections are limited to.
    pub connections: ConnectionLimits,
    /// Whether to keep a row for every request.
    pub record_rows: bool,
    /// Keeps only so many rows in memory, the last ones.
    pub row_limit: Option<usize>,
    /// Writes the rows to this file, as CSV, and keeps none in memory. Not for a server under virtual
    /// time.
    pub rows_file: Option<PathBuf>,
    /// Whether waiting ends in a short spin (precise) or in a plain wake-up (cheap).
    pub spin: bool,
    /// Who may log in, on both protocols. With none, nobody needs to.
    pub users: Vec<Account>,
    /// The RESP side.
    pub redis: RedisConfig,
    /// The Aerospike side.
    pub aerospike: AerospikeConfig,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            redis_port: Some(0),
            aerospike_port: Some(0),
            shared_port: None,
            tls: TlsConfig::default(),
            workers: 1,
            seed: 0,
            latency: LatencyRules::default(),
            shapes: Vec::new(),
            queue: None,
            freezes: Vec::new(),
            cuts: Vec::new(),
            requests: RequestLimits::default(),
            connections: ConnectionLimits::default(),
            record_rows: false,
            row_limit: None,
            rows_file: None,
            spin: true,
            users: Vec::new(),
            redis: RedisConfig::default(),
            aerospike: AerospikeConfig::default(),
        }
    }
}

impl ServerConfig {
    /// More workers are refused.
    pub const MAX_WORKERS: usize = 256;

    /// The same server without anything that delays, refuses or ends: no latency, no queue, no
    /// freezes, no cuts, no limits on connections or requests.
    #[must_use]
    pub fn without_delays(self) -> Self {
        Self {
            latency: LatencyRules::default(),
            shapes: Vec::new(),
            queue: None,
            freezes: Vec::new(),
            cuts: Vec::new(),
            requests: RequestLimits::default(),
            connections: ConnectionLimits::default(),
            ..self
        }
    }

    /// Checks what types alone do not: counts and names.
    ///
    /// # Errors
    /// Tells what is out of bounds, and the bounds.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |what, found: &dyn fmt::Display, expected| {
            Err(ConfigError {
                what,
                found: found.to_string(),
                expected,
            })
        };
        if !(1..=Self::MAX_WORKERS).contains(&self.workers) {
            return refuse("the number of workers", &self.workers, "1 to 256");
        }
        self.tls.check(self)?;
        if self.freezes.len() > Freezes::MAX {
            return refuse("the number of freezes", &self.freezes.len(), "at most 64");
        }
        let frozen = Freezes::share_of_time(&self.freezes);
        if frozen > Freezes::MOST_OF_TIME {
            let found = format!("{:.1}%", 100.0 * frozen);
            return refuse("the time in freezes", &found, "at most 99%");
        }
        if self.shapes.len() > Shape::MAX {
            return refuse("the number of shapes", &self.shapes.len(), "at most 64");
        }
        if self.cuts.len() > Cut::MAX {
            return refuse("the number of cuts", &self.cuts.len(), "at most 64");
        }
        let requests = &self.requests;
        if requests.throttles.len() > Throttle::MAX {
            let found = requests.throttles.len();
            return refuse("the number of throttles", &found, "at most 64");
        }
        for kind in SizeKind::ALL {
            let limits = requests.sizes.iter();
            if limits.filter(|limit| limit.kind == kind).count() > 1 {
                return refuse("a size limit", &kind.name(), "each kind once");
            }
        }
        if requests.blocked.len() > Blocked::MAX {
            let found = requests.blocked.len();
            return refuse("the number of blocked commands", &found, "at most 1024");
        }
        if requests.max_memory.is_some_and(|size| size.0 == 0) {
            return refuse("the memory limit", &"0", "a size above 0, or none");
        }
        if let Some((what, found, expected)) = self.connections.fault() {
            return refuse(what, &found, expected);
        }
        if !(1..=RedisConfig::MAX_DATABASES).contains(&self.redis.databases) {
            return refuse(
                "the number of databases",
                &self.redis.databases,
                "1 to 65536",
            );
        }
        if self.users.len() > Account::MAX {
            return refuse("the number of users", &self.users.len(), "at most 64");
        }
        for (place, user) in self.users.iter().enumerate() {
            let mut earlier = self.users.iter().take(place);
            if earlier.any(|earlier| earlier.name() == user.name()) {
                return refuse("a user", &user.name(), "each name once");
            }
        }
        for (name, value) in &self.redis.parameters {
            if let Err(reason) = crate::dialect::redis::settings::check(name, value) {
                let found = format!("{name} {value} ({reason})");
                return refuse("a Redis parameter", &found, "a legal value");
            }
        }
        let aerospike = &self.aerospike;
        for (what, name) in [
            ("the node name", &aerospike.node_name),
            ("the cluster name", &aerospike.cluster_name),
        ] {
            if !is_name(name, 64) {
                return refuse(what, name, "1 to 64 of A-Z a-z 0-9 - _ .");
            }
        }
        let numbers = aerospike.build.split('.');
        if numbers.clone().count() != 4 || numbers.into_iter().any(|part| !is_number(part)) {
            return refuse("the build", &aerospike.build, "four numbers, as in 8.1.2.0");
        }
        let names = &aerospike.namespaces;
        if !(1..=AerospikeConfig::MAX_NAMESPACES).contains(&names.len()) {
            return refuse("the number of namespaces", &names.len(), "1 to 32");
        }
        for (place, name) in names.iter().enumerate() {
            if !is_name(name, 31) {
                return refuse("a namespace", name, "1 to 31 of A-Z a-z 0-9 - _ .");
            }
            if names.iter().take(place).any(|earlier| earlier == name) {
                return refuse("a namespace", name, "each name once");
            }
        }
        Ok(())
    }
}

/// A setting out of its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is '{found}'; expected {expected}")]
pub struct ConfigError {
    /// The setting.
    pub what: &'static str,
    /// Its value.
    pub found: String,
    /// The bounds.
    pub expected: &'static str,
}

/// Names are sent between separators such as `:` and `;`, so they consist of few characters.
fn is_name(text: &str, longest: usize) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=longest).contains(&text.len()) && text.bytes().all(allowed)
}

fn is_number(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The RESP side of a server.
#[derive(Debug, Clone)]
pub struct RedisConfig {
    /// The version to be: INFO and HELLO say it, and it decides which rules apply.
    pub version: RedisVersion,
    /// Number of databases.
    pub databases: usize,
    /// Parameters of CONFIG that differ from their defaults, with their values, such as
    /// `requirepass`; [`crate::dialect::redis::settings::check`] tells whether one is legal.
    pub parameters: Vec<(String, String)>,
}

impl RedisConfig {
    /// More databases are refused.
    pub const MAX_DATABASES: usize = 65_536;
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            version: RedisVersion {
                major: 7,
                minor: 2,
                patch: 4,
            },
            databases: 16,
            parameters: Vec::new(),
        }
    }
}

/// A version of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RedisVersion {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
    /// Third number.
    pub patch: u16,
}

impl RedisVersion {
    /// The first that words and counts much as later ones do.
    pub const V7_2: Self = Self {
        major: 7,
        minor: 2,
        patch: 0,
    };
}

impl FromStr for RedisVersion {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let numbers: Vec<&str> = text.split('.').collect();
        let number = |place: usize| {
            let part = numbers.get(place).filter(|part| is_number(part));
            part.and_then(|part| part.parse::<u16>().ok())
        };
        match (numbers.len(), number(0), number(1), number(2)) {
            (3, Some(major), Some(minor), Some(patch)) => Ok(Self {
                major,
                minor,
                patch,
            }),
            _ => Err(ConfigError {
                what: "the Redis version",
                found: text.to_owned(),
                expected: "three numbers, as in 7.2.4",
            }),
        }
    }
}

impl fmt::Display for RedisVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The Aerospike side of a server.
#[derive(Debug, Clone)]
pub struct AerospikeConfig {
    /// Name of the node.
    pub node_name: String,
    /// Name of the cluster.
    pub cluster_name: String,
    /// The server build it claims to be: four numbers.
    pub build: String,
    /// Names of the namespaces.
    pub namespaces: Vec<String>,
    /// Seconds a record lives when its writer does not say; 0 for ever.
    pub default_ttl_s: u32,
    /// Seconds between purges of expired records; 0 purges nothing and forbids ttls.
    pub nsup_period_s: u32,
    /// Seconds for which the token of a login is good.
    pub session_ttl_s: u32,
}

impl AerospikeConfig {
    /// More namespaces are refused, as a real server does.
    pub const MAX_NAMESPACES: usize = 32;
}

impl Default for AerospikeConfig {
    fn default() -> Self {
        Self {
            node_name: "A1".to_owned(),
            cluster_name: "lab".to_owned(),
            build: "8.1.2.0".to_owned(),
            namespaces: vec!["test".to_owned()],
            default_ttl_s: 0,
            nsup_period_s: 5,
            session_ttl_s: 86_400,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_legal_and_safe() {
        let config = ServerConfig::default();
        assert_eq!(config.check(), Ok(()));
        assert!(config.bind.is_loopback());
    }

    #[test]
    fn settings_out_of_bounds_are_refused() {
        type Change = fn(&mut ServerConfig);
        let cases: [(Change, &str); 8] = [
            (
                |c| c.workers = 0,
                "the number of workers is '0'; expected 1 to 256",
            ),
            (
                |c| c.redis.databases = 0,
                "the number of databases is '0'; expected 1 to 65536",
            ),
            (
                |c| c.aerospike.node_name = "a b".to_owned(),
                "the node name is 'a b'; expected 1 to 64 of A-Z a-z 0-9 - _ .",
            ),
            (
                |c| c.aerospike.cluster_name.clear(),
                "the cluster name is ''; expected 1 to 64 of A-Z a-z 0-9 - _ .",
            ),
            (
                |c| c.aerospike.build = "8.1.2".to_owned(),
                "the build is '8.1.2'; expected four numbers, as in 8.1.2.0",
            ),
            (
                |c| c.aerospike.namespaces.clear(),
                "the number of namespaces is '0'; expected 1 to 32",
            ),
            (
                |c| c.aerospike.namespaces = vec!["a;b".to_owned()],
                "a namespace is 'a;b'; expected 1 to 31 of A-Z a-z 0-9 - _ .",
            ),
            (
                |c| c.aerospike.namespaces = vec!["a".to_owned(), "a".to_owned()],
                "a namespace is 'a'; expected each name once",
            ),
        ];
        for (change, message) in cases {
            let mut config = ServerConfig::default();
            change(&mut config);
            assert_eq!(config.check().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn versions_are_three_numbers() {
        let version: RedisVersion = "7.0.15".parse().unwrap();
        assert_eq!((version.major, version.minor, version.patch), (7, 0, 15));
        assert_eq!(version.to_string(), "7.0.15");
        for text in [
            "",
            "7",
            "7.0",
            "7.0.15.1",
            "7.0.x",
            "7.0.99999",
            "+7.0.1",
            "7..1",
        ] {
            assert!(text.parse::<RedisVersion>().is_err(), "{text}");
        }
    }
}
