//! What a server is told to be: resolved, legal settings.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use crate::latency::{Freeze, LatencyRules};

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
    /// Worker threads, at least 1.
    pub workers: usize,
    /// Seeds everything that is drawn at random.
    pub seed: u64,
    /// How late replies are meant to be.
    pub latency: LatencyRules,
    /// The periodic freeze, if any.
    pub freeze: Option<Freeze>,
    /// Whether to keep a row for every request.
    pub record_rows: bool,
    /// Whether waiting ends in a short spin (precise) or in a plain wake-up (cheap).
    pub spin: bool,
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
            workers: 1,
            seed: 0,
            latency: LatencyRules::default(),
            freeze: None,
            record_rows: false,
            spin: true,
            redis: RedisConfig::default(),
            aerospike: AerospikeConfig::default(),
        }
    }
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
        }
    }
}
