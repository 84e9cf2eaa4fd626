//! Tests of the lab as a whole, in one program.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, where a panic is the message"
)]

mod bias;
mod certified;
mod command_line;
mod compare_and_merge;
mod connections;
mod explore;
mod find_rate;
mod grade;
mod planted;
mod real_runs;
mod scenario_files;
mod schemas;
mod scores;
mod support;
mod sweeps;
mod tiers;
mod timing_models;
mod tls;
mod virtual_runs;
