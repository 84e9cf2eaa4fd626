//! The lab: runs server and load generator together and proves their numbers.

pub mod runner;
pub mod scenario;
pub mod truth;
