//! The server from outside: as a program of its own and as a part of a test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accuracy;
mod connections;
mod direct;
mod documents;
mod embedded;
mod program;
mod tls;
mod wire;
