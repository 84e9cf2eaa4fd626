//! `kvlab serve`: the mock server until it is interrupted.

use std::io::Write;

use kvlab_mock_server::cli::{ServeArgs, exit_code, serve};

use crate::ExitStatus;

pub(super) fn run(args: ServeArgs, stdout: &mut dyn Write, stderr: &mut dyn Write) -> ExitStatus {
    match serve(args, stdout) {
        Ok(()) => ExitStatus::Done,
        Err(error) => {
            // Where stderr is closed nobody wants to know.
            let _ = writeln!(stderr, "error: {error:#}");
            match exit_code(&error) {
                1 => ExitStatus::Failed,
                _ => ExitStatus::Usage,
            }
        }
    }
}
