//! A usage error: which option, what was found, what was expected.

use std::fmt;

use crate::settings::SettingsError;

/// An option, or a combination of options, that makes no sense. Ends with exit status 2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: expected {expected}, found {found}")]
pub struct UsageError {
    /// The option as typed, for example `--rate`, or `URL`.
    pub option: &'static str,
    /// What would have been legal.
    pub expected: String,
    /// What was given.
    pub found: String,
}

impl UsageError {
    pub(in crate::frontend) fn new(
        option: &'static str,
        expected: impl Into<String>,
        found: impl fmt::Display,
    ) -> Self {
        Self {
            option,
            expected: expected.into(),
            found: found.to_string(),
        }
    }
}

impl From<SettingsError> for UsageError {
    /// Rules that concern several values are checked by the settings; here they get the names of
    /// the options that carry the values.
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::MoreThreadsThanConnections {
                threads,
                connections,
            } => Self::new(
                "--connections",
                format!("at least as many as --threads ({threads})"),
                connections,
            ),
            SettingsError::NoOperation => Self::new(
                "--ratio, --command, --operation",
                "at least one operation with a weight above 0",
                "none",
            ),
            SettingsError::TooManyOperations { found } => Self::new(
                "--command, --operation",
                format!("at most {} operations", crate::settings::MAX_CLASSES),
                found,
            ),
            SettingsError::NoEnd => {
                Self::new("--duration", "a duration or a number of --requests", "none")
            }
            SettingsError::ZeroTime => Self::new("--timeout", "a time longer than 0", "0"),
            SettingsError::EndlessStaircase => Self::new(
                "--test-time",
                "a duration and no number of requests where connections come step by step",
                "none, or both",
            ),
            SettingsError::StaircaseRate { why } => Self::new(
                "--rate",
                "a rate that can be divided among the connections of a step",
                why,
            ),
            SettingsError::Backoff => Self::new(
                "--backoff",
                "a first wait not above the longest",
                "one above it",
            ),
            SettingsError::NoPipeline { depth } => Self::new(
                "--pipeline",
                "1, because this protocol takes one request at a time on a connection",
                depth,
            ),
            SettingsError::Keys(why) => Self::new("--keys, --key-pattern", "a legal value", why),
            SettingsError::Values(why) => Self::new("--value-size", "a legal size", why),
            SettingsError::Rotation(why) => Self::new("--command", "a legal rotation", why),
            SettingsError::Command { command, why } => Self::new(
                "--command",
                "a command",
                format_args!("{command:?} ({why})"),
            ),
        }
    }
}
