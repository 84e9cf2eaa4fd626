//! The front end that takes memtier_benchmark's command lines and prints what its users expect.
//!
//! | File | What it holds |
//! |---|---|
//! | [`model`] | the results of the runs, in memtier's terms |
//! | [`config`] | the resolved options, as they are printed |
//! | [`recorder`] | from the engine's intervals and summary to the model |
//! | [`sheet`] | the tables of the model: rates, best, worst and average run |
//! | [`text`] | stdout: tables and distributions |
//! | [`distribution`] | the steps of a latency distribution |
//! | [`json`], [`json_writer`], [`micros`] | `--json-out-file` |
//! | [`files`] | opening and writing all files; [`hdr_files`], [`client_csv`], [`json_lines`] |
//! | [`progress`], [`statsd`], [`staircase`], [`show_config`] | what is shown and sent during a run |
//! | [`remarks`] | lines the original has no place for |

pub mod client_csv;
pub mod config;
pub mod distribution;
pub mod files;
pub mod hdr_files;
pub mod json;
pub mod json_lines;
pub mod json_writer;
pub mod micros;
pub mod model;
pub mod progress;
pub mod recorder;
pub mod remarks;
pub mod sheet;
pub mod show_config;
pub mod staircase;
pub mod statsd;
pub mod text;
