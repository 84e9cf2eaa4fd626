//! An in-memory server that speaks RESP and the Aerospike protocol, with a timing model.
//!
//! The core of a connection is a state machine ([`session`]) that two shells drive: the real one
//! with threads, sockets and a clock ([`MockServer`]), and the virtual one, in which whoever calls
//! carries bytes and time ([`virtual_shell`]).

pub mod builder;
pub mod cli;
pub mod clients;
pub mod config;
pub mod dialect;
pub mod event;
pub mod exchange;
mod glob;
pub mod latency;
pub mod server;
pub mod session;
pub mod shared;
mod shell;
pub mod stamp;
pub mod store;
pub mod virtual_shell;
pub mod worker;

pub use builder::ServerBuilder;
pub use config::ServerConfig;
pub use server::{MockServer, StartError};
pub use stamp::{ServerRow, Truth};
