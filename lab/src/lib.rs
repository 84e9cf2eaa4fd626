//! The lab: runs server and load generator together and proves their numbers; and the program
//! `kvlab` with all its subcommands.

pub mod cli;
mod exit;

pub use cli::run;
pub use exit::ExitStatus;
