//! The program `kvlab-bench`: the load generator alone, for containers. `kvlab bench` is the same.

use std::io::{stderr, stdout};
use std::process::ExitCode;

use clap::Parser;
use kvlab_bench_client::frontend::native::{self, BenchArgs};

/// Load a RESP or Aerospike server and report how long its answers took
#[derive(Debug, Parser)]
#[command(name = "kvlab-bench", version, max_term_width = 100)]
struct Options {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    let options = Options::parse();
    native::run(&options.bench, &mut stdout(), &mut stderr()).into()
}
