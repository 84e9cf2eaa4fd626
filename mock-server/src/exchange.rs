//! What the server knows of one request: the words that latency rules, limits and statistics share.

use std::fmt;

/// The protocol a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// RESP2 or RESP3.
    Redis,
    /// The Aerospike wire protocol.
    Aerospike,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redis => "redis",
            Self::Aerospike => "aerospike",
        })
    }
}

/// What kind of work a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Reads data and changes none.
    Read,
    /// May change data.
    Write,
    /// Handshake, introspection, cluster tending: touches no data.
    Admin,
}

impl Class {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        })
    }
}

/// One request as rules see it, before it is executed.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// The protocol it came by.
    pub protocol: Protocol,
    /// Command (`get`, `mset`) or operation (`put`, `get`, `operate`, `info`), in lower case.
    pub command: &'static str,
    /// What kind of work it is.
    pub class: Class,
    /// The first key: key text on RESP, the record digest on Aerospike; empty if there is none.
    pub key: &'a [u8],
}
