//! The lab: runs server and load generator together and proves their numbers.

pub mod check;
pub mod cli;
pub mod noise;
pub mod report;
pub mod runner;
pub mod scenario;
pub mod truth;
pub mod verdict;
