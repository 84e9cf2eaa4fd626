//! The engine: workers as state machines, and the real shell that runs them on sockets.
//!
//! A worker has no socket, clock or sleep inside. Both shells do the same with it:
//!
//! ```text
//!            handle_connected / handle_bytes / handle_closed / handle_timeout (now, ...)
//!   shell  ---------------------------------------------------------------------------->  worker
//!          <----------------------------------------------------------------------------
//!            poll_action (connect, close, flush), output + written, poll_timeout
//! ```

pub(crate) mod collector;
mod control;
mod error;
mod real;
mod recorder;
mod setup;
mod tls_fault;
pub mod worker;

pub use control::{Control, Observer, Silent};
pub use error::RunError;
pub use tls_fault::TlsFault;

use crate::keyspace::Share;
use crate::record::{ClientRow, ConnectRow, Summary};
use crate::settings::Settings;

/// What a run gives back.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The numbers.
    pub summary: Summary,
    /// One row per request and attempt, by thread and in the order of their ends; empty without
    /// [`Settings::record_rows`].
    pub rows: Vec<ClientRow>,
    /// One row per attempt to connect, by thread and in the order of their ends; empty without
    /// [`Settings::record_rows`].
    pub connects: Vec<ConnectRow>,
}

/// Runs the load on real sockets and returns when it is over.
///
/// `observer` is called on the calling thread, once per interval.
///
/// # Errors
/// Settings that are not legal, no connection at all, no TLS with the server, or a refused login. A server that goes away
/// during the load is no error: the result says so in its notices.
pub fn run(
    settings: &Settings,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<RunResult, RunError> {
    settings.check()?;
    real::run(settings, control, observer)
}

/// The shares of the threads in the connections: dealt out in turn, the first threads take one
/// more where it does not come out even.
pub(crate) fn shares(settings: &Settings) -> Vec<Share> {
    let (threads, all) = (settings.threads.get(), settings.connections.get());
    let mut first_connection = 0;
    (0..threads)
        .map(|thread| {
            let connections = all / threads + u32::from(thread < all % threads);
            let share = Share {
                thread,
                threads,
                first_connection,
                connections,
                all_connections: all,
            };
            first_connection += connections;
            share
        })
        .collect()
}
