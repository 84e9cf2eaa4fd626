//! The seam to a protocol: what the engine asks of a driver.
//!
//! The engine knows operation classes, key numbers and connections; a driver turns them into bytes
//! and replies into answers. It is chosen by static dispatch, because it sits on the path of every
//! request. A driver owns no socket and no clock.
//!
//! Connections come in *groups*, one for each node: a group has load connections (`Role::Load`)
//! and, where the protocol needs it, one connection to learn the cluster (`Role::Tend`). Each
//! connection begins with a *conversation*: the driver sends requests and takes their replies
//! until it says [`Step::Done`]. A load connection is ready then; a tend connection starts its
//! conversation anew at each tend. Every request, of a conversation or of the load, is counted in
//! the connection's sequence and expects exactly one frame as its reply, in order.

pub mod aerospike;
mod found;
mod misses;
mod passing;
mod records;
pub mod redis;
pub mod redis_cluster;
mod scan;

use std::time::Duration;

use bytes::BytesMut;

use crate::keyspace::KeySpace;
use crate::record::{ErrorKind, OpClass, Outcome};
use crate::settings::Address;

/// A protocol, seen from the engine.
pub trait Driver {
    /// What the driver keeps for one connection.
    type Session;

    /// Whether the key decides the group. If not, all load goes to group 0.
    const ROUTES_BY_KEY: bool;

    /// Whether a closed loop keeps the slots of all connections to each node busy; if not, as many
    /// requests are in play as the connections to one node have slots.
    const SLOTS_OF_EACH_NODE: bool = false;

    /// The next change of the connections that are wanted. Asked at the start, after each
    /// conversation, after each redirection and after [`Self::tend_failed`], until it says `None`.
    fn poll_topology(&mut self) -> Option<Topology>;

    /// Whether every key has a route; the load does not begin before.
    fn is_settled(&self) -> bool {
        true
    }

    /// Time between two tends; `None` where there is nothing to tend.
    fn tend_interval(&self) -> Option<Duration> {
        None
    }

    /// How soon a tend follows a redirection or the loss of a load connection, both of which say that
    /// the cluster is not as it was; `None` leaves it to the interval.
    fn tend_soon(&self) -> Option<Duration> {
        None
    }

    /// The group's tend connection could not be made, or was lost; the engine tries it again with
    /// back-off until the driver removes the group.
    fn tend_failed(&mut self, _group: GroupId) {}

    /// The name that the certificates of the group's node are for, where the cluster tells it.
    fn server_name(&self, _group: GroupId) -> Option<&str> {
        None
    }

    /// The state of a connection that was just made.
    fn open(&mut self, group: GroupId, role: Role) -> Self::Session;

    /// Goes on with the conversation: appends the next requests to `out`, or says that it is done.
    /// Called when the connection is made, after all replies to the last step came, and at each
    /// tend.
    fn converse(&mut self, session: &mut Self::Session, out: &mut BytesMut) -> Step;

    /// Takes a whole reply of the conversation.
    ///
    /// # Errors
    /// The server refused; the connection is closed.
    fn take_reply(&mut self, session: &mut Self::Session, frame: &[u8]) -> Result<(), Refusal>;

    /// Looks for one whole reply at the beginning of `bytes`. When it says `Ok(None)`, it is asked
    /// again with the same bytes and more behind them, so it may remember how far it looked.
    ///
    /// # Errors
    /// The bytes cannot be a reply; the connection is closed.
    fn frame(
        &mut self,
        session: &mut Self::Session,
        bytes: &[u8],
    ) -> Result<Option<Frame>, ProtocolError>;

    /// Where the operation has to go. Only asked when [`Self::ROUTES_BY_KEY`].
    fn route(&mut self, _operation: &Operation<'_>) -> Route {
        Route::To(GroupId(0))
    }

    /// The class of an operation on this connection, where what was answered before decides it.
    #[inline]
    fn settle(&mut self, class: OpClass, _session: &Self::Session) -> OpClass {
        class
    }

    /// What an answered operation ended with, where the whole reply has to be looked at for it.
    #[inline]
    fn judge(&self, _plan: &Plan, outcome: Outcome, _frame: &[u8]) -> Outcome {
        outcome
    }

    /// The request that is encoded next was sent here by [`Redirection::Ask`]; appends what has to
    /// stand before it. Both count as one request with one reply.
    fn ask(&mut self, _session: &mut Self::Session, _out: &mut BytesMut) {}

    /// Appends the request of an operation.
    fn encode(
        &mut self,
        operation: &Operation<'_>,
        session: &mut Self::Session,
        out: &mut BytesMut,
    );

    /// Whether the error that was read last may pass, so that its request is worth sending again.
    /// Asked where the settings want requests sent again.
    fn may_pass(&self) -> bool {
        true
    }

    /// The words of the error that was read last, where they are kept.
    fn words(&self) -> &str {
        ""
    }

    /// Whether an attempt that ended so is followed by another at once; `attempt` counts from 0.
    fn retries(&mut self, _class: OpClass, _outcome: Outcome, _attempt: u8) -> bool {
        false
    }
}

/// A node, or the only server; numbered by the driver from 0, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u16);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Carries the load.
    Load,
    /// Learns the cluster.
    Tend,
}

/// A change of the connections that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Keep a tend connection to this address.
    Tend {
        /// The group it belongs to.
        group: GroupId,
        /// Where to connect.
        address: Address,
    },
    /// Keep a pool of load connections to this address.
    Pool {
        /// The group it belongs to.
        group: GroupId,
        /// Where to connect.
        address: Address,
    },
    /// Close all connections of the group.
    Remove {
        /// The group that is gone.
        group: GroupId,
    },
}

/// One step of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Requests were appended; as many replies are awaited.
    Sent {
        /// How many, at least 1.
        requests: u32,
    },
    /// Nothing more to say.
    Done,
}

/// Where an operation has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To a connection of this group.
    To(GroupId),
    /// Nowhere at present; it is asked again when the topology changed.
    Nowhere,
}

/// A whole reply at the beginning of the bytes that were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Length in bytes.
    pub len: usize,
    /// What it says.
    pub answer: Answer,
}

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done, or found.
    Hit,
    /// Nothing under the key.
    Miss,
    /// Done, with so many of several keys found: a hit if there was one.
    Keys {
        /// Keys with something under them.
        found: u32,
        /// Keys with nothing under them.
        missing: u32,
    },
    /// An error.
    Error(ErrorKind),
    /// Not a reply to any request: pushed by the server.
    Push,
    /// Another node has the key. The request is sent there; its latency goes on.
    Redirected {
        /// How the server called it.
        kind: ErrorKind,
        /// Where to.
        to: Redirection,
    },
}

/// Where a request has to go instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirection {
    /// Where [`Driver::route`] says now.
    Moved,
    /// To this node, for this time: see [`Driver::ask`].
    Ask(GroupId),
}

/// The server refused in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// Whether the login was refused: trying again is pointless.
    pub login: bool,
    /// The server's words.
    pub text: String,
}

/// Bytes that cannot be a reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a reply of this protocol: {0}")]
pub struct ProtocolError(pub String);

/// One operation to send.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// What was drawn.
    pub plan: &'a Plan,
    /// The value to write; empty for classes that write none.
    pub value: &'a [u8],
    /// How key numbers are written, and further keys of the same operation.
    pub keys: &'a KeySpace,
}

/// An operation as the workload drew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it is counted under.
    pub class: OpClass,
    /// Which request of the target it is: the place of the class, unless there is a rotation.
    pub request: u32,
    /// Number of the (first) key.
    pub key: u64,
    /// Place of the value in the block of values.
    pub value_start: u32,
    /// Length of the value.
    pub value_len: u32,
    /// The numbers of a request that has some, or what further keys follow from
    /// ([`crate::keyspace::FurtherKeys`]); 0 for all others.
    pub drawn: [u32; 2],
    /// Place in its stream of operations, from 0.
    pub serial: u64,
}
