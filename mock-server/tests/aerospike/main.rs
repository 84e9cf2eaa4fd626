//! The Aerospike side of the mock server, over sockets. What is measured of its memory is a program
//! of its own, because that counts all allocations of a process.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod accounts;
mod arbitrary;
mod limits;
mod records;
mod workers;
