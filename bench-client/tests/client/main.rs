//! The tests of the load generator as its users see it, in one program: linking it takes longer
//! than running it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod cli;
mod connections;
mod docs;
mod fake;
mod gates;
mod memtier;
mod memtier_output;
mod memtier_requests;
mod memtier_truth;
mod real_socket;
mod redis_cluster;
mod responder;
mod retries;
mod separate_clients;
mod staircase;
mod unix_socket;
mod virtual_time;
