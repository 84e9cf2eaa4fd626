//! The front end that takes memtier_benchmark's command lines and prints what its users expect.
//!
//! | File | What it holds |
//! |---|---|
//! | [`model`] | the results of the runs, in memtier's terms |
//! | [`config`] | the resolved options, as they are printed |
//! | [`recorder`] | from the engine's intervals and summary to the model |
//! | [`sheet`] | the tables of the model: rates, best, worst and average run |

pub mod config;
pub mod model;
pub mod recorder;
pub mod sheet;
