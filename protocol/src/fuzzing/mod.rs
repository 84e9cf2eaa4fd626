//! Bodies of the fuzz targets under `fuzz/`.
//!
//! They live here, so that a test on the stable toolchain runs the same bodies over the seed corpus. Each
//! takes arbitrary bytes and panics only when a promise of the crate is broken.

pub mod aerospike;
pub mod resp;
