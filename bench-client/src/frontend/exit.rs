//! How a program of kvlab ends, as a number for the shell.

use std::process::ExitCode;

use crate::engine::RunError;

/// The exit status of a run. The numbers are the same for all programs of kvlab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// 0: all was done.
    Done,
    /// 1: a check failed, or a result could not be written.
    Failed,
    /// 2: the options or their combination make no sense.
    Usage,
    /// 3: the machine was too noisy for the claim.
    Void,
    /// 4: no connection to the server, or it was lost for good during the run.
    NoConnection,
    /// 5: the server refused the login.
    LoginRefused,
    /// 6: more requests failed than `--max-errors` allows.
    TooManyErrors,
    /// 7: fewer connections were up when the load began than `--require-connections` asks for.
    TooFewConnections,
    /// 130: ended by SIGINT or SIGTERM; the summary covers what was measured until then.
    Interrupted,
}

impl ExitStatus {
    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Void => 3,
            Self::NoConnection => 4,
            Self::LoginRefused => 5,
            Self::TooManyErrors => 6,
            Self::TooFewConnections => 7,
            Self::Interrupted => 130,
        }
    }
}

impl ExitStatus {
    /// What an engine without a result means for the shell.
    #[must_use]
    pub fn of_run(error: &RunError) -> Self {
        match error {
            RunError::Settings(_) | RunError::NoTls(_) => Self::Usage,
            RunError::NoConnection { .. }
            | RunError::HandshakeRefused { .. }
            | RunError::Tls { .. } => Self::NoConnection,
            RunError::LoginRefused { .. } => Self::LoginRefused,
            RunError::Stopped => Self::Interrupted,
            RunError::NoKernelStamps(_) | RunError::Worker(_) => Self::Failed,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_readme() {
        let table = [
            (ExitStatus::Done, 0),
            (ExitStatus::Failed, 1),
            (ExitStatus::Usage, 2),
            (ExitStatus::Void, 3),
            (ExitStatus::NoConnection, 4),
            (ExitStatus::LoginRefused, 5),
            (ExitStatus::TooManyErrors, 6),
            (ExitStatus::TooFewConnections, 7),
            (ExitStatus::Interrupted, 130),
        ];
        for (status, code) in table {
            assert_eq!(status.code(), code, "{status:?}");
        }
    }
}
