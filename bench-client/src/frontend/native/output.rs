//! Options of the outputs, and of what counts as a good end.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::UsageError;
use super::quantity::{count, share};
use crate::record::Outcomes;

/// The outputs, and what counts as a good end.
#[derive(Args, Clone, Debug)]
#[group(skip)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the whole result as JSON to this file; - is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write one CSV row per second and class to this file; - is stdout
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Write the histograms of each second to this file, in the HdrHistogram log format; - is
    /// stdout
    #[arg(long, value_name = "FILE")]
    pub hdr_log: Option<PathBuf>,

    /// Write the result as one self-contained HTML page with charts to this file; - is stdout
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Show no line each second
    #[arg(long, short)]
    pub quiet: bool,

    /// Requests that may fail (error, timeout, connection lost, not sent) before the exit status is
    /// 6: a number, a share as in 0.5%, or none [default: 1%]
    #[arg(long, value_name = "LIMIT")]
    pub max_errors: Option<ErrorLimit>,
}

/// How many requests may fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorLimit {
    /// This many.
    Count(u64),
    /// This share of the requests due.
    Share(f64),
    /// Any number.
    None,
}

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Stdout,
    File(PathBuf),
}

impl OutputArgs {
    /// The outputs asked for, in the order JSON, CSV, HDR log, HTML.
    pub(super) fn destinations(&self) -> Result<[Option<Destination>; 4], UsageError> {
        let destination = |path: &Option<PathBuf>| {
            path.clone().map(|path| {
                if path.as_os_str() == "-" {
                    Destination::Stdout
                } else {
                    Destination::File(path)
                }
            })
        };
        let all = [&self.json, &self.csv, &self.hdr_log, &self.html].map(destination);
        for (place, one) in all.iter().enumerate() {
            if one.is_some() && all.iter().skip(place + 1).any(|other| other == one) {
                return Err(UsageError::new(
                    "--json, --csv, --hdr-log, --html",
                    "a different file for each",
                    match one {
                        Some(Destination::File(path)) => path.display().to_string(),
                        _ => "- more than once".to_owned(),
                    },
                ));
            }
        }
        Ok(all)
    }

    /// How many requests may fail.
    pub(super) fn error_limit(&self) -> ErrorLimit {
        self.max_errors.unwrap_or(ErrorLimit::Share(0.01))
    }
}

impl ErrorLimit {
    /// Whether more failed than may fail.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share of requests needs no more than 52 bits"
    )]
    pub fn is_exceeded(self, outcomes: &Outcomes) -> bool {
        match self {
            Self::Count(most) => outcomes.failed() > most,
            Self::Share(most) => outcomes.failed() as f64 > most * outcomes.total() as f64,
            Self::None => false,
        }
    }
}

impl FromStr for ErrorLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            Ok(Self::None)
        } else if text.ends_with('%') {
            share(text).map(Self::Share)
        } else {
            count(text)
                .map(Self::Count)
                .map_err(|_| format!("expected a number, a share as in 0.5%, or none: {text:?}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_counts_shares_or_none() {
        assert_eq!("0".parse(), Ok(ErrorLimit::Count(0)));
        assert_eq!("1k".parse(), Ok(ErrorLimit::Count(1000)));
        assert_eq!("2%".parse(), Ok(ErrorLimit::Share(0.02)));
        assert_eq!("none".parse(), Ok(ErrorLimit::None));
        for text in ["", "0.5", "101%", "all"] {
            assert!(text.parse::<ErrorLimit>().is_err(), "{text}");
        }
    }

    #[test]
    fn limits_hold_up_to_their_edge() {
        let outcomes = Outcomes {
            hits: 98,
            errors: 1,
            not_sent: 1,
            ..Outcomes::default()
        };
        for (limit, exceeded) in [
            (ErrorLimit::Count(1), true),
            (ErrorLimit::Count(2), false),
            (ErrorLimit::Share(0.019), true),
            (ErrorLimit::Share(0.02), false),
            (ErrorLimit::None, false),
        ] {
            assert_eq!(limit.is_exceeded(&outcomes), exceeded, "{limit:?}");
        }
    }
}
