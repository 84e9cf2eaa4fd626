//! `kvlab bench`: the load generator's own front end.

use std::io::Write;

use kvlab_bench_client::frontend::native::{self, BenchArgs};

use crate::ExitStatus;

pub(super) fn run(args: &BenchArgs, stdout: &mut dyn Write, stderr: &mut dyn Write) -> ExitStatus {
    native::run(args, stdout, stderr)
}
