//! Placeholder, replaced in the next commits.

pub mod aerospike;
mod cursor;
