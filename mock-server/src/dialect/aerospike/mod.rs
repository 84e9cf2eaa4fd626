//! The Aerospike wire protocol: frames, then messages by kind.

use bytes::BytesMut;

use crate::config::ServerConfig;
use crate::dialect::{Context, Flow, Frame, Refusal};
use crate::exchange::{Class, Exchange, Protocol};
use crate::shared::Shared;

/// Operation names by ordinal.
pub static OPERATION_NAMES: &[&str] = &["unknown"];

/// Namespaces and state of the Aerospike side, shared by all workers.
#[derive(Debug)]
pub struct State {}

impl State {
    /// Empty namespaces for a server with `config`.
    #[must_use]
    pub fn new(_config: &ServerConfig) -> Self {
        Self {}
    }
}

/// One Aerospike connection.
#[derive(Debug)]
pub struct Connection {}

impl Connection {
    /// A connection that has sent nothing yet.
    #[must_use]
    pub fn new(_shared: &Shared) -> Self {
        Self {}
    }

    /// The next message at the front of `buf`.
    ///
    /// # Errors
    /// When the framing is wrong.
    pub fn decode(&mut self, _buf: &[u8]) -> Result<Option<Frame>, Refusal> {
        Err(Refusal::Silent)
    }

    /// Looks again at a message that was held.
    pub fn recall(&mut self, frame: &[u8]) -> Frame {
        Frame {
            len: frame.len(),
            empty: false,
        }
    }

    /// The current message as rules see it.
    #[must_use]
    pub fn describe<'a>(&'a self, _frame: &'a [u8]) -> Exchange<'a> {
        Exchange {
            protocol: Protocol::Aerospike,
            command: "unknown",
            class: Class::Admin,
            key: &[],
        }
    }

    /// Ordinal of the current message's operation.
    #[must_use]
    pub fn ordinal(&self) -> u16 {
        0
    }

    /// Runs the current message.
    pub fn execute(
        &mut self,
        _frame: &[u8],
        _context: &mut Context<'_>,
        _out: &mut BytesMut,
    ) -> Flow {
        Flow::Close
    }
}
