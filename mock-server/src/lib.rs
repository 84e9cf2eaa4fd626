//! An in-memory server that speaks RESP and the Aerospike protocol, with a timing model.
//!
//! The core of a connection is a state machine ([`session`]) that two shells drive: the real one
//! with threads, sockets and a clock ([`MockServer`]), and the virtual one, in which whoever calls
//! carries bytes and time ([`virtual_shell`]).
//!
//! A server in a test, with delays, its data at hand, and a record of what it did:
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! use kvlab_mock_server::MockServer;
//!
//! let server = MockServer::builder()
//!     .latency("read=constant(2ms)")
//!     .seed(7)
//!     .record_rows(true)
//!     .start()?;
//! server.redis().set("greeting", "hello")?;
//!
//! // Any client will do; this one is a socket.
//! let address = server.redis_addr().ok_or("no RESP port")?;
//! let mut client = TcpStream::connect(address)?;
//! client.write_all(b"GET greeting\r\n")?;
//! let mut reply = [0; 11];
//! client.read_exact(&mut reply)?;
//! assert_eq!(&reply, b"$5\r\nhello\r\n");
//!
//! let truth = server.truth();
//! assert_eq!(truth.rows[0].command, "get");
//! assert_eq!(truth.rows[0].wanted_ns, 2_000_000);
//! assert!(truth.rows[0].written >= truth.rows[0].due);
//! // The server stops when its handle is dropped.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod account;
pub mod builder;
pub mod cli;
pub mod clients;
pub mod config;
pub mod dialect;
pub mod direct;
pub mod event;
pub mod exchange;
pub mod latency;
pub mod limit;
pub mod profile;
pub mod server;
pub mod session;
pub mod shared;
mod shell;
pub mod stamp;
pub mod store;
pub mod tls;
pub mod truth;
pub mod virtual_shell;
pub mod worker;

pub use account::Account;
pub use builder::ServerBuilder;
pub use config::ServerConfig;
pub use server::{MockServer, StartError};
pub use stamp::ServerRow;
pub use truth::{RunId, Truth};
