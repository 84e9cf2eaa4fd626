//! The protocols a server speaks. A dialect finds requests in bytes, describes them to the rules,
//! executes them on the store and writes replies; it knows nothing of sockets, delays or order.

pub mod aerospike;
pub mod redis;

use std::sync::Arc;

use bytes::BytesMut;
use kvlab_timing::Stamp;

use kvlab_protocol::aerospike::result_code::ResultCode;

use crate::clients::ClientInfo;
use crate::exchange::{Exchange, Protocol};
use crate::limit::size::Excess;
use crate::shared::Shared;

/// A request found at the front of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Its length in bytes.
    pub len: usize,
    /// Whether it asks for nothing and gets no reply, as an empty line does in RESP, or the rest of a
    /// request that was refused for its size.
    pub empty: bool,
    /// In what it is larger than it may be; it is answered with an error then.
    pub(crate) excess: Option<Excess>,
}

/// Why a request is answered with an error in place of being executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decline {
    /// What a RESP client is told, without the leading `-`.
    pub(crate) text: String,
    /// What an Aerospike client is told.
    pub(crate) code: ResultCode,
}

/// What limits did to a command while it was executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limited {
    /// Writes that were refused because there is no memory.
    pub out_of_memory: u64,
    /// Whether it was refused because nobody may run it.
    pub blocked: bool,
    /// Keys that were evicted.
    pub evicted: u64,
}

/// Input that breaks the protocol: the connection ends, with or without a last word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Close without a reply.
    Silent,
    /// Close after this error text.
    Reply(String),
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It was executed; its reply, if it has one, has been written.
    Done,
    /// It was executed; the connection closes after its reply, and later input is discarded.
    Close,
    /// It was not executed and wrote nothing: it is to be executed again at `until`, or when an
    /// event says so.
    Park {
        /// When to try again at the latest; `None` waits for an event alone.
        until: Option<Stamp>,
    },
}

/// What a command may use beside its arguments and its connection.
#[derive(Debug)]
pub struct Context<'a> {
    /// The moment of its execution.
    pub now: Stamp,
    /// The worker it runs on.
    pub worker: usize,
    /// What all workers share.
    pub shared: &'a Arc<Shared>,
    /// The client it came from.
    pub client: &'a Arc<ClientInfo>,
    /// What limits did to it.
    pub limited: Limited,
}

impl Context<'_> {
    /// The calendar time, in milliseconds since 1970.
    #[must_use]
    pub fn unix_millis(&self) -> u64 {
        self.shared.unix_millis(self.now)
    }
}

/// The protocol state of one connection.
#[derive(Debug)]
pub enum Dialect {
    /// Nothing has been read yet; the first byte will tell.
    Undecided,
    /// RESP.
    Redis(Box<redis::Connection>),
    /// Aerospike.
    Aerospike(Box<aerospike::Connection>),
}

/// What a port listens for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// RESP alone.
    Redis,
    /// The Aerospike protocol alone.
    Aerospike,
    /// Either: the first byte tells, 2 being Aerospike's version byte.
    Shared,
}

/// The command names of a protocol, by ordinal.
#[must_use]
pub fn command_names(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::Redis => redis::command_names(),
        Protocol::Aerospike => aerospike::OPERATION_NAMES,
    }
}

impl Dialect {
    /// The state of a connection accepted by `listener`.
    #[must_use]
    pub fn new(listener: Listener, shared: &Shared) -> Self {
        match listener {
            Listener::Redis => Self::Redis(Box::new(redis::Connection::new(shared))),
            Listener::Aerospike => Self::Aerospike(Box::new(aerospike::Connection::new(shared))),
            Listener::Shared => Self::Undecided,
        }
    }

    /// Decides an undecided connection by its first byte.
    pub fn decide(&mut self, first: u8, shared: &Shared) {
        if self.is_undecided() {
            let aerospike = first == AEROSPIKE_VERSION;
            let listener = if aerospike {
                Listener::Aerospike
            } else {
                Listener::Redis
            };
            *self = Self::new(listener, shared);
        }
    }

    /// Whether the first byte has yet to tell the protocol.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        matches!(self, Self::Undecided)
    }

    /// The protocol, RESP while undecided.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Undecided | Self::Redis(_) => Protocol::Redis,
            Self::Aerospike(_) => Protocol::Aerospike,
        }
    }

    /// Whether a request starts only after the reply before it was written.
    #[must_use]
    pub fn is_serial(&self) -> bool {
        matches!(self, Self::Aerospike(_))
    }

    /// The next request at the front of `buf`; `None` if it is not complete.
    ///
    /// # Errors
    /// When the input breaks the protocol.
    pub fn decode(&mut self, buf: &[u8]) -> Result<Option<Frame>, Refusal> {
        match self {
            Self::Undecided => Ok(None),
            Self::Redis(redis) => redis.decode(buf),
            Self::Aerospike(aerospike) => aerospike.decode(buf),
        }
    }

    /// Looks again at a complete request that was decoded earlier and held.
    pub fn recall(&mut self, frame: &[u8]) -> Frame {
        match self {
            Self::Undecided => Frame {
                len: frame.len(),
                empty: true,
                excess: None,
            },
            Self::Redis(redis) => redis.recall(frame),
            Self::Aerospike(aerospike) => aerospike.recall(frame),
        }
    }

    /// The request executed or foreseen last, as rules see it.
    #[must_use]
    pub fn describe<'a>(&'a self, frame: &'a [u8]) -> Exchange<'a> {
        match self {
            Self::Undecided => Exchange {
                protocol: Protocol::Redis,
                command: "unknown",
                class: crate::exchange::Class::Admin,
                key: &[],
            },
            Self::Redis(redis) => redis.describe(frame),
            Self::Aerospike(aerospike) => aerospike.describe(frame),
        }
    }

    /// Ordinal, in [`command_names`], of the request decoded or recalled last.
    #[must_use]
    pub fn ordinal(&self) -> u16 {
        match self {
            Self::Undecided => 0,
            Self::Redis(redis) => redis.ordinal(),
            Self::Aerospike(aerospike) => aerospike.ordinal(),
        }
    }

    /// Executes the request decoded or recalled last.
    pub fn execute(&mut self, frame: &[u8], context: &mut Context<'_>, out: &mut BytesMut) -> Flow {
        match self {
            Self::Undecided => Flow::Done,
            Self::Redis(redis) => redis.execute(frame, context, out),
            Self::Aerospike(aerospike) => aerospike.execute(frame, context, out),
        }
    }

    /// The request decoded or recalled last as rules see it, before it is executed.
    pub fn foresee<'a>(&'a mut self, frame: &'a [u8]) -> Exchange<'a> {
        if let Self::Aerospike(aerospike) = self {
            aerospike.look_at(frame);
        }
        self.describe(frame)
    }

    /// Answers the request foreseen last, which is not executed, that the server has too
    /// much to do.
    pub fn refuse_overloaded(&mut self, out: &mut BytesMut) {
        match self {
            Self::Undecided => {}
            Self::Redis(redis) => redis.refuse_overloaded(out),
            Self::Aerospike(aerospike) => aerospike.refuse_overloaded(out),
        }
    }

    /// Answers the request in `frame`, decoded or recalled last, which is not executed, with an error.
    pub(crate) fn decline(
        &mut self,
        frame: &[u8],
        why: &Decline,
        context: &Context<'_>,
        out: &mut BytesMut,
    ) {
        match self {
            Self::Undecided => {}
            Self::Redis(redis) => redis.decline(&why.text, context, out),
            Self::Aerospike(aerospike) => aerospike.decline(frame, why.code, out),
        }
    }

    /// Whether what was refused for its size is still coming in, to be passed over.
    pub(crate) fn is_skipping(&self) -> bool {
        match self {
            Self::Undecided => false,
            Self::Redis(redis) => redis.is_skipping(),
            Self::Aerospike(aerospike) => aerospike.is_skipping(),
        }
    }

    /// Writes the last word for input that breaks the protocol, if the protocol has one.
    pub fn refuse(&mut self, refusal: &Refusal, out: &mut BytesMut) {
        if let (Self::Redis(redis), Refusal::Reply(text)) = (self, refusal) {
            redis.refuse(text, out);
        }
    }

    /// The connection is gone: undoes what it left in the shared state.
    pub fn close(&mut self, shared: &Shared, client: &ClientInfo) {
        if let Self::Redis(redis) = self {
            redis.close(shared, client);
        }
    }
}

/// First byte of every Aerospike message.
const AEROSPIKE_VERSION: u8 = 2;
