//! Workspace-level tests.

mod accounts;
mod aerospike_vectors;
mod memtier_cases;
mod memtier_cluster;
mod memtier_requests;
mod memtier_truth;
mod redis_cases;
mod redis_documents;
mod redis_random;
mod resp_wire;
