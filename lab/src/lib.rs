//! The lab: runs server and load generator together and proves their numbers; and the program
//! `kvlab` with all its subcommands.

pub mod certify;
pub mod check;
pub mod cli;
pub mod compare;
pub mod environment;
mod exit;
pub mod explore;
pub mod grade;
pub mod merge;
pub mod noise;
pub mod report;
pub mod runner;
pub mod scenario;
pub mod statistics;
pub mod subject;
pub mod truth;
pub mod verdict;

pub use cli::run;
pub use exit::ExitStatus;
