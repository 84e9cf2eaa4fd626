//! Where the data lives: concurrent maps from keys to entries, and the gate that makes commands
//! over several keys atomic. Access is by closures only; no map guard leaves [`shard`].

pub mod gate;
pub mod shard;

pub use gate::{Gate, Pass};
pub use shard::Keyspace;
