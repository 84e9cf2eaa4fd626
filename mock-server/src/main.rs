//! `kvlab-server`: the mock server alone, for containers.

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    kvlab_mock_server::cli::run(std::env::args_os(), &mut io::stdout(), &mut io::stderr())
}
