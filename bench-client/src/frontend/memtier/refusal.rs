//! Why a run did not come about: an exit status and one line.

use std::fmt;
use std::io::Write;

use super::UsageError;
use crate::frontend::ExitStatus;

/// Why a run did not come about, or has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the shell is told.
    pub status: ExitStatus,
    /// What people are told.
    pub text: String,
}

impl Refusal {
    /// A refusal with this status.
    #[must_use]
    pub fn new(status: ExitStatus, text: impl fmt::Display) -> Self {
        Self {
            status,
            text: text.to_string(),
        }
    }

    /// Options, or a file or an address they name, that cannot be used.
    #[must_use]
    pub fn usage(text: impl fmt::Display) -> Self {
        Self::new(ExitStatus::Usage, text)
    }

    /// Says it on stderr.
    pub fn tell(&self, stderr: &mut dyn Write) -> ExitStatus {
        // Where stderr is closed nobody wants to know.
        let _ = writeln!(stderr, "error: {}", self.text);
        self.status
    }
}

impl From<UsageError> for Refusal {
    fn from(error: UsageError) -> Self {
        Self::usage(error)
    }
}
