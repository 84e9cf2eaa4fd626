//! The same workers without socket and clock, for runs under virtual time.

use std::net::SocketAddr;

use bytes::Bytes;
use kvlab_timing::Stamp;

use crate::engine::{RunError, RunResult};
use crate::settings::Settings;

/// A connection of the virtual client; a reconnect is a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientConnId {
    /// Worker, from 0.
    pub thread: u32,
    /// Place among the worker's connections.
    pub place: u32,
    /// How many connections this place had before.
    pub epoch: u32,
}

/// What the virtual client wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAction {
    /// Connect; answer with `handle_connected` or `handle_closed`.
    Connect {
        /// The connection to make.
        conn: ClientConnId,
        /// Where to.
        address: SocketAddr,
    },
    /// Send; the bytes count as sent at the moment of the call that produced them.
    Send {
        /// On which connection.
        conn: ClientConnId,
        /// What.
        bytes: Bytes,
    },
    /// Close; nothing is to be told about this connection any more.
    Close {
        /// Which.
        conn: ClientConnId,
    },
}

/// All workers of a run in one place.
#[derive(Debug)]
pub struct VirtualClient {}

impl VirtualClient {
    /// The workers of these settings, setting up from `start` on.
    ///
    /// # Errors
    /// Settings that are not legal.
    pub fn new(settings: &Settings, start: Stamp) -> Result<Self, RunError> {
        settings.check()?;
        let _ = start;
        Ok(Self {})
    }

    /// The next thing to do; call until `None` after `new` and each `handle_*`.
    pub fn poll_action(&mut self) -> Option<ClientAction> {
        None
    }

    /// The connection is made, from this local address, which had connected `ordinal` times before.
    pub fn handle_connected(
        &mut self,
        now: Stamp,
        conn: ClientConnId,
        local: SocketAddr,
        ordinal: u32,
    ) {
        let _ = (now, conn, local, ordinal);
    }

    /// Bytes arrived.
    pub fn handle_bytes(&mut self, now: Stamp, conn: ClientConnId, bytes: &[u8]) {
        let _ = (now, conn, bytes);
    }

    /// The connection was refused, or the server closed it.
    pub fn handle_closed(&mut self, now: Stamp, conn: ClientConnId) {
        let _ = (now, conn);
    }

    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Stamp> {
        None
    }

    /// The moment given by [`Self::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Stamp) {
        let _ = now;
    }

    /// Whether the run is over.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        true
    }

    /// The result, with everything unfinished counted as it stands at `now`.
    ///
    /// # Errors
    /// As [`crate::run`].
    pub fn finish(self, now: Stamp) -> Result<RunResult, RunError> {
        let _ = now;
        Err(RunError::Stopped)
    }
}
