//! The server's own record of what it did: the truth a client's numbers are judged by.
//!
//! A request is stamped when the read that completed it returned (`read`), when its reply was due
//! (`due`), just before the write call that handed over its last byte (`written`) and just after
//! that call (`written_after`). Every stamp is in nanoseconds of the one monotonic clock that a
//! client on the same machine reads too.

use std::fmt;
use std::net::SocketAddr;

use kvlab_timing::Stamp;

use crate::exchange::{Class, Protocol};

pub use crate::truth::{LONGEST_NS, Stats, Truth};

/// One request as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    /// The client's address.
    pub peer: SocketAddr,
    /// How many times this address had been accepted before on the same port.
    pub ordinal: u32,
    /// Number of the connection in the order of acceptance on the whole server, from 0.
    pub connection: u64,
    /// Number of the request on its connection, from 0, handshake included.
    pub sequence: u64,
    /// The protocol of the connection.
    pub protocol: Protocol,
    /// Command or operation name.
    pub command: &'static str,
    /// What kind of work it was.
    pub class: Class,
    /// When the request was complete in the server's hands.
    pub read: Stamp,
    /// Whether it was started; a request whose connection ended before has no delay, and `start` and
    /// `due` are the moment of that end.
    pub started: bool,
    /// When it was executed.
    pub start: Stamp,
    /// Bytes of the request.
    pub request_bytes: u64,
    /// Bytes of its reply.
    pub reply_bytes: u64,
    /// Its place in the order of all who asked the throttles and of all whose replies they counted,
    /// from 0; `None` if no throttle selects it.
    pub throttle_place: Option<u64>,
    /// How long the throttles made it wait for its start, in nanoseconds.
    pub throttle_ns: u64,
    /// The place of its reply in the same order, if a throttle counted it.
    pub reply_place: Option<u64>,
    /// How long after its start a throttle let its reply be written at the earliest, in nanoseconds.
    pub reply_wait_ns: u64,
    /// The delay that its law gave, in nanoseconds, before any change over time.
    pub drawn_ns: u64,
    /// The delay that was wanted for it, in nanoseconds.
    pub wanted_ns: u64,
    /// Its place in the order in which requests came to the queue, from 0; `None` without a queue and
    /// for requests that pass none.
    pub queue_place: Option<u64>,
    /// What it waited for a server of the queue, in nanoseconds; 0 without a queue.
    pub wait_ns: u64,
    /// What a server of the queue took for it, in nanoseconds; 0 without a queue.
    pub service_ns: u64,
    /// When its reply was due.
    pub due: Stamp,
    /// Just before the write call that handed over the last byte of the reply.
    pub written: Stamp,
    /// Just after that call.
    pub written_after: Stamp,
    /// Whether a reply was handed over; false when it has none by design, or the connection ended.
    pub answered: bool,
    /// What happened to it beside its delay.
    pub fault: FaultKind,
}

/// What happened to a request beside its delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum FaultKind {
    /// Nothing.
    #[default]
    None,
    /// A freeze moved its start or the moment its reply was due.
    Frozen,
    /// The queue was full: it was answered with an error and not executed.
    Refused,
    /// Its connection was cut before its reply was due.
    Cut,
    /// A throttle let it not pass: it was answered with an error and not executed.
    Throttled,
    /// A throttle let it, or one before it on its connection, not pass: it was not executed and is
    /// never answered.
    Dropped,
    /// It was larger than it may be: it was answered with an error and not executed.
    TooLarge,
    /// It was answered that there is no memory for what it writes.
    OutOfMemory,
    /// It was answered that nobody may run its command.
    Blocked,
}

impl FaultKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::None,
        Self::Frozen,
        Self::Refused,
        Self::Cut,
        Self::Throttled,
        Self::Dropped,
        Self::TooLarge,
        Self::OutOfMemory,
        Self::Blocked,
    ];

    /// Whether a limit other than the queue's refused it.
    pub(crate) fn is_by_limit(self) -> bool {
        matches!(
            self,
            Self::Throttled | Self::Dropped | Self::TooLarge | Self::OutOfMemory | Self::Blocked
        )
    }

    /// Whether a request that this happened to was never executed and so drew no delay.
    #[must_use]
    pub fn prevents_execution(self) -> bool {
        matches!(
            self,
            Self::Refused | Self::Throttled | Self::Dropped | Self::TooLarge
        )
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Frozen => "frozen",
            Self::Refused => "refused",
            Self::Cut => "cut",
            Self::Throttled => "throttled",
            Self::Dropped => "dropped",
            Self::TooLarge => "too-large",
            Self::OutOfMemory => "out-of-memory",
            Self::Blocked => "blocked",
        })
    }
}
