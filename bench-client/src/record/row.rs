//! Raw rows: one for each request handed to a connection.

use std::net::SocketAddr;

use kvlab_timing::Stamp;

use super::{OpClass, Outcome};

/// One request as the client saw it. The lab joins it with the server's row of the same
/// (address, ordinal, sequence).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRow {
    /// The client's end of the connection.
    pub local: SocketAddr,
    /// How many times this address had connected before.
    pub ordinal: u32,
    /// Place of the request on its connection, from 0, handshake and tend included.
    pub sequence: u64,
    /// What the request was for.
    pub kind: RowKind,
    /// Class in the mix, or [`OpClass::CONTROL`].
    pub class: OpClass,
    /// When the schedule wanted it sent; in a closed loop the moment of the send.
    pub intended: Stamp,
    /// Just before the write call that took its first byte. For a request that was never written
    /// ([`Outcome::NotSent`]) the moment it was given up.
    pub sent: Stamp,
    /// Just after the read that completed the reply.
    pub received: Option<Stamp>,
    /// When the kernel received the last segment that read took, where kernel stamps are taken:
    /// as converted, so that it may lie outside of `sent..=received` by the uncertainty of the
    /// conversion, and anywhere after a step of the calendar clock.
    pub kernel: Option<Stamp>,
    /// Number of the connection among the load connections of all threads to the same node, from
    /// 0; it stays the same when the connection is made anew. 0 for a tend connection.
    pub connection: u32,
    /// Length of the request in bytes.
    pub bytes_out: u32,
    /// Length of the reply in bytes; 0 without one.
    pub bytes_in: u32,
    /// How this attempt ended.
    pub outcome: Outcome,
    /// Attempts of the same operation before this one.
    pub attempt: u8,
    /// Whether another attempt followed. Only the last attempt counts in the summary's outcomes.
    pub retried: bool,
}

/// What a request was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// Opening a connection: login, version, database.
    Handshake,
    /// Learning the cluster.
    Tend,
    /// Load of the measured part.
    Load,
    /// Load before the measured part.
    Warmup,
}
