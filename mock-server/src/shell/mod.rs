//! The real shell: threads, sockets and the clock around the sessions.
//!
//! Each worker is one thread with one current-thread runtime and the connections pinned to it. A
//! connection is one task that waits for its socket, reads once, hands the bytes to its session and
//! writes what is due; a worker's pacer task waits for the earliest due moment with the precise
//! waiter. Nothing is spawned, locked between threads or sent through a channel per request. One
//! acceptor per port hands sockets to the workers in turn.

mod acceptor;
mod connection;
mod hub;
mod secure;
mod transport;
mod worker_thread;

pub(crate) use acceptor::{Acceptors, BACKLOG};
pub(crate) use worker_thread::{Errand, Order, WorkerThread};
