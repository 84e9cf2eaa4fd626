//! Tests of the lab as a whole, in one program.

mod explore;
mod planted;
mod scenario_files;
mod support;
mod virtual_runs;
