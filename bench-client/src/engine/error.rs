//! Why a run has no result.

use std::io;

use super::TlsFault;
use crate::settings::{Address, SettingsError};

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The settings are not legal.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Not one connection could be made.
    #[error("no connection to {address}: {error}")]
    NoConnection {
        /// Where to.
        address: Address,
        /// The last error seen.
        error: String,
    },
    /// The server refused the login.
    #[error("login refused by {address}: {text}")]
    LoginRefused {
        /// The server.
        address: Address,
        /// Its words.
        text: String,
    },
    /// The server refused another step of the handshake.
    #[error("handshake refused by {address}: {text}")]
    HandshakeRefused {
        /// The server.
        address: Address,
        /// Its words.
        text: String,
    },
    /// TLS with the server cannot be had.
    #[error("no TLS with {address}: {fault}")]
    Tls {
        /// The server.
        address: Address,
        /// What is wrong.
        fault: TlsFault,
    },
    /// TLS cannot be spoken here.
    #[error("cannot speak TLS: {0}")]
    NoTls(String),
    /// Kernel stamps were demanded and the kernel gives none.
    #[error("no receive stamps of the kernel: {0}")]
    NoKernelStamps(String),
    /// Stopped before the load began.
    #[error("stopped before the load began")]
    Stopped,
    /// The machine refused a thread, a runtime or a timer.
    #[error("cannot start a worker: {0}")]
    Worker(#[from] io::Error),
}
