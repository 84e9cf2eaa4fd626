//! Front ends: command lines in, [`Settings`](crate::Settings) out, and a run with its reports.
//!
//! A front end holds no logic of the load: it translates options, opens the outputs, runs the
//! engine and maps the end of the run to an exit status.

mod companion;
mod exit;
pub mod memtier;
pub mod native;
mod signal;

pub use companion::Companion;
pub use exit::ExitStatus;
pub use signal::SignalWatch;
