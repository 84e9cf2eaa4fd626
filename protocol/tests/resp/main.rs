//! RESP: vectors of a real server, round trips, cuts at every boundary, limits.
// A test that unwraps or indexes wrongly fails, as it should.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod cuts;
mod fuzz_seeds;
mod numbers;
mod replies;
mod requests;
mod round_trips;
mod vectors;
