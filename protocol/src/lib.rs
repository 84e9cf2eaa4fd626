//! Wire codecs of kvlab: bytes in, values out.
//!
//! Nothing here owns a socket, a clock, a task or a lock. A decoder is handed the unconsumed bytes of a
//! connection and says either "one frame of `n` bytes is complete", "more bytes are needed"
//! (`Ok(None)`) or "this is malformed" (`Err`); an encoder appends to a buffer of the caller. Both the
//! mock server and the load generator are built on these codecs.
#![warn(clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::indexing_slicing))]

pub mod aerospike;
mod cursor;
#[doc(hidden)]
pub mod fuzzing;
pub mod resp;
