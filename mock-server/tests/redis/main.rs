//! The RESP side from outside: several workers, other connections, versions, virtual time. What single
//! commands answer is in the case tables of the workspace's `tests`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounts;
mod across_connections;
mod arbitrary;
mod backlog;
mod client;
mod expiry;
mod limits;
mod memory;
mod profiles;
mod requests;
mod versions;
mod virtual_server;
mod workers;
