//! Workspace-level tests.

mod aerospike_vectors;
