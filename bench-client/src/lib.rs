//! The load generator of kvlab: closed- and open-loop load on RESP and Aerospike servers.
//!
//! Each worker is one thread with one current-thread runtime. The heart of a worker is a state
//! machine without socket, clock or sleep ([`engine`]); the *real* shell ([`run`]) and the
//! *virtual* shell ([`virtual_shell`]) drive the same machine, so a run under virtual time
//! records exactly what the arithmetic says and a real run differs by the machine alone.
//!
//! Every request that the schedule makes due ends in exactly one counted [`record::Outcome`];
//! nothing is skipped when the server or the client falls behind. Response time counts from the
//! intended start, service time from the send; an open loop reports both.

pub mod driver;
pub mod engine;
pub mod frontend;
pub mod host;
pub mod keyspace;
pub mod limits;
mod numbers;
pub mod random;
pub mod record;
pub mod report;
pub mod schedule;
pub mod search;
pub mod settings;
pub mod values;
pub mod virtual_shell;
pub mod workload;

pub use engine::{Control, Observer, RunError, RunResult, run};
pub use settings::Settings;
