//! The program `kvlab`.

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    kvlab::run(std::env::args_os(), &mut io::stdout(), &mut io::stderr()).into()
}
