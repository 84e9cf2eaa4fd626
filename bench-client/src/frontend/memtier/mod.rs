//! The front end that takes memtier_benchmark's command lines and prints what its users expect.
//!
//! ```text
//! arguments --getopt--> Given --options--> Options --check, plan--> Plan --translate--> Settings
//!                                                                    |                     |
//!                            text, JSON, files <-- Results <-- recorder <-- engine <-------+
//! ```
//!
//! | File | What it holds |
//! |---|---|
//! | `run`, `watch` | one call from its arguments to its exit status |
//! | [`table`] | every option: spelling, argument, help |
//! | [`getopt`] | from arguments to options |
//! | [`options`] | the options as typed; `read` checks each on its own |
//! | [`number`], [`pattern`], [`credentials`], [`uri`], [`command`] | what stands behind them |
//! | [`monitor`], [`import`] | the files they name |
//! | [`check`] | rules that concern several options |
//! | [`plan`] | the resolved run; `resolve` makes it from the options |
//! | [`translate`] | from the plan to the settings of the engine; `traffic` what is sent, `secure` TLS |
//! | `verification` | the run of `--data-verify` |
//! | [`describe`] | from the plan to what is printed of it |
//! | [`help`] | `--help` and `--version` |
//! | [`model`] | the results of the runs, in memtier's terms |
//! | [`config`] | the resolved options, as they are printed |
//! | [`recorder`] | from the engine's intervals and summary to the model |
//! | [`sheet`] | the tables of the model: rates, best, worst and average run |
//! | [`text`] | stdout: tables and distributions |
//! | [`distribution`] | the steps of a latency distribution |
//! | [`json`], [`json_writer`], [`micros`] | `--json-out-file` |
//! | [`files`] | opening and writing all files; [`hdr_files`], [`client_csv`], [`json_lines`] |
//! | [`failed_keys`] | `--failed-keys-file` |
//! | [`progress`], [`realtime`], [`statsd`], [`graphite`], [`staircase`], [`show_config`] | what is shown and sent during a run |
//! | [`misses`] | `--miss-rate-threshold` |
//! | [`remarks`] | lines the original has no place for |

pub mod check;
pub mod client_csv;
pub mod command;
pub mod config;
pub mod credentials;
pub mod describe;
pub mod distribution;
pub mod failed_keys;
pub mod files;
pub mod getopt;
pub mod graphite;
pub mod hdr_files;
pub mod help;
pub mod import;
pub mod json;
pub mod json_lines;
pub mod json_writer;
pub mod micros;
pub mod misses;
pub mod model;
pub mod monitor;
pub mod number;
pub mod options;
pub mod pattern;
pub mod plan;
pub mod progress;
mod read;
pub mod realtime;
pub mod recorder;
mod refusal;
pub mod remarks;
mod resolve;
mod run;
mod secure;
pub mod sheet;
pub mod show_config;
pub mod staircase;
pub mod statsd;
pub mod table;
pub mod text;
mod traffic;
pub mod translate;
pub mod uri;
mod verification;
mod watch;

pub use options::Options;
pub use plan::Plan;
pub use refusal::Refusal;
pub use run::run;
pub use table::Name;

use super::native::UsageError;
