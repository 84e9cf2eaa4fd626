//! `kvlab memtier`, and `kvlab` called as `memtier_benchmark`: that tool's command lines.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;

use clap::Args;
use kvlab_bench_client::frontend::memtier;

use super::bench::Certifying;
use crate::ExitStatus;

/// Options of memtier_benchmark, which its own front end reads.
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct MemtierArgs {
    /// As memtier_benchmark takes them; see kvlab memtier --help
    #[arg(
        value_name = "OPTIONS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    options: Vec<OsString>,
}

/// Whether the program was called by this name, through a link.
pub(super) fn is_called_so(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new("memtier_benchmark"))
}

pub(super) fn run(
    args: &MemtierArgs,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> ExitStatus {
    run_options(&args.options, stdout, stderr)
}

/// The same without a subcommand in front.
pub(super) fn run_options(
    options: &[OsString],
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> ExitStatus {
    let mut certifying = Certifying::default();
    memtier::run(options, Some(&mut certifying), stdout, stderr)
}
