//! `kvlab compare A B`: two groups of runs against each other.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use kvlab_bench_client::Control;
use kvlab_bench_client::frontend::{ExitStatus, SignalWatch};
use kvlab_timing::duration;

use super::output;
use crate::compare::interleave::{self, InterleaveError, Line, Plan};
use crate::compare::stored::Group;
use crate::compare::{Comparison, Outcome, compare};

/// Options of `kvlab compare`.
#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct CompareArgs {
    /// Stored results of the first group: a file or a folder; with --runs a command
    #[arg(value_name = "A")]
    pub a: OsString,

    /// Those of the second group
    #[arg(value_name = "B")]
    pub b: OsString,

    /// A and B are commands: run each this many times, interleaved
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: Option<u16>,

    /// Where --runs keeps the results
    #[arg(long, value_name = "FOLDER", requires = "runs")]
    pub save: Option<PathBuf>,

    /// Longest time of one run
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration::parse)]
    pub time_limit: Duration,

    /// Write the comparison as JSON to FILE; - is stdout, and the text then goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// End with status 1 when B is shown to be worse than A: a higher latency, a lower rate
    #[arg(long)]
    pub fail_if_worse: bool,
}

/// Compares; results go to `out`, everything else to `err`.
pub fn run(args: &CompareArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitStatus {
    let groups = match args.runs {
        None => stored(args),
        Some(runs) => measured(args, usize::from(runs), err),
    };
    let (a, b) = match groups {
        Ok(groups) => groups,
        Err((status, message)) => {
            // Nobody is left to be told when stderr is closed.
            let _ = writeln!(err, "error: {message}");
            return status;
        }
    };
    let comparison = match compare(&a, &b) {
        Ok(comparison) => comparison,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            return ExitStatus::Usage;
        }
    };
    let text = comparison.to_string();
    if let Err(error) = output::write(
        &text,
        || comparison.to_json(),
        args.json.as_deref(),
        out,
        err,
    ) {
        let _ = writeln!(err, "error: {error:#}");
        return ExitStatus::Failed;
    }
    if args.fail_if_worse && is_worse(&comparison) {
        return ExitStatus::Failed;
    }
    ExitStatus::Done
}

type Wrong = (ExitStatus, String);

fn stored(args: &CompareArgs) -> Result<(Group, Group), Wrong> {
    let load = |path: &OsString| {
        Group::load(Path::new(path)).map_err(|error| (ExitStatus::Usage, error.to_string()))
    };
    Ok((load(&args.a)?, load(&args.b)?))
}

fn measured(args: &CompareArgs, runs: usize, err: &mut dyn Write) -> Result<(Group, Group), Wrong> {
    let line = |text: &OsString| {
        Line::parse(&text.to_string_lossy()).map_err(|error| (ExitStatus::Usage, error.to_string()))
    };
    let (a, b) = (line(&args.a)?, line(&args.b)?);
    let control = Control::new();
    let _watch = SignalWatch::start(control.clone()).map_err(|error| {
        (
            ExitStatus::Failed,
            format!("cannot watch for signals: {error}"),
        )
    })?;
    let temporary = std::env::temp_dir().join(format!("kvlab-compare-{}", std::process::id()));
    let plan = Plan {
        runs,
        limit: args.time_limit,
        folder: args.save.as_deref().unwrap_or(&temporary),
    };
    let mut say = |line: &str| {
        let _ = writeln!(err, "{line}");
    };
    let result = interleave::run((&a, &b), &plan, &control, &mut say);
    match result {
        Ok(groups) => {
            if args.save.is_none() {
                // What cannot be removed lies in the folder for temporary files.
                let _ = fs::remove_dir_all(&temporary);
            }
            Ok(groups)
        }
        Err(error) => {
            let status = match error {
                InterleaveError::Interrupted => ExitStatus::Interrupted,
                InterleaveError::Start { .. } => ExitStatus::Usage,
                _ => ExitStatus::Failed,
            };
            let message = format!("{error}; finished runs are in {}", plan.folder.display());
            Err((status, message))
        }
    }
}

fn is_worse(comparison: &Comparison) -> bool {
    comparison.figures.iter().any(|figure| {
        let worse = if figure.figure == "rate" {
            Outcome::Lower
        } else {
            Outcome::Higher
        };
        figure.outcome == worse
    })
}

const AFTER_HELP: &str = "\
Examples:
  kvlab compare before/ after/
  kvlab compare --runs 8 'kvlab bench redis://127.0.0.1:6379' 'kvlab bench redis://127.0.0.1:6380'";
