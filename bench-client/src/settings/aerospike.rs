//! An Aerospike target: seed addresses, namespace, set and the operations of the mix.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use super::{AerospikeLogin, ClassSpec, KeyPattern};

/// An Aerospike cluster and the operations to send to it.
#[derive(Clone, Debug)]
pub struct AerospikeTarget {
    /// Seed addresses, tried in turn until one answers.
    pub seeds: Vec<SocketAddr>,
    /// Who logs in; `None` sends no login.
    pub login: Option<AerospikeLogin>,
    /// Namespace.
    pub namespace: String,
    /// Set; empty for none.
    pub set: String,
    /// Bin that holds the value.
    pub bin: String,
    /// Whether the user key is stored with the record.
    pub send_key: bool,
    /// Time to live of written records, in seconds, as on the wire (0 = namespace default).
    pub ttl: u32,
    /// Time between two tends of the cluster.
    pub tend_interval: Duration,
    /// When and how often an operation is tried again.
    pub retries: Retries,
    /// The mix; each is a class of its own in the report.
    pub operations: Vec<AerospikeOperation>,
}

/// Bound of the attempts of one operation beyond the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Retries {
    /// Attempts after the first; 0 retries nothing.
    pub most: u8,
}

/// One operation of the mix.
#[derive(Clone, Debug, PartialEq)]
pub struct AerospikeOperation {
    /// Name in reports.
    pub name: String,
    /// Share among the operations.
    pub weight: u32,
    /// What is done.
    pub verb: AerospikeVerb,
    /// Key pattern of its own.
    pub pattern: Option<KeyPattern>,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AerospikeVerb {
    /// Write the bin.
    Put,
    /// Read all bins.
    Get,
    /// Ask for the record's metadata only.
    Exists,
    /// Delete the record.
    Remove,
    /// Set the time to live anew.
    Touch,
    /// Write the bin and read it back in one operate request.
    Operate,
    /// Read this many records in one batch request.
    BatchRead(NonZeroU32),
}

impl AerospikeTarget {
    /// A cluster behind one seed, without login, with `put` and `get` of the given weights.
    #[must_use]
    pub fn new(seed: SocketAddr, namespace: &str, set: &str, put: u32, get: u32) -> Self {
        let mut operations = vec![
            AerospikeOperation::new(AerospikeVerb::Put, put),
            AerospikeOperation::new(AerospikeVerb::Get, get),
        ];
        operations.retain(|operation| operation.weight > 0);
        Self {
            seeds: vec![seed],
            login: None,
            namespace: namespace.to_owned(),
            set: set.to_owned(),
            bin: "b".to_owned(),
            send_key: false,
            ttl: 0,
            tend_interval: Duration::from_secs(1),
            retries: Retries::default(),
            operations,
        }
    }
}

impl AerospikeOperation {
    /// An operation under the verb's own name.
    #[must_use]
    pub fn new(verb: AerospikeVerb, weight: u32) -> Self {
        Self {
            name: verb.name().to_owned(),
            weight,
            verb,
            pattern: None,
        }
    }

    pub(super) fn class(&self) -> ClassSpec {
        ClassSpec {
            name: self.name.clone(),
            weight: self.weight,
            writes: matches!(self.verb, AerospikeVerb::Put | AerospikeVerb::Operate),
            pattern: self.pattern,
        }
    }
}

impl AerospikeVerb {
    /// Name in reports and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Exists => "exists",
            Self::Remove => "remove",
            Self::Touch => "touch",
            Self::Operate => "operate",
            Self::BatchRead(_) => "batch-read",
        }
    }
}
