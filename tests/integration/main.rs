//! Workspace-level tests.

mod aerospike_vectors;
mod redis_cases;
