//! `kvlab explore`: random scenarios under virtual time, until one is not exact.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use kvlab_bench_client::Control;
use kvlab_bench_client::frontend::SignalWatch;

use super::output::unless_closed;
use crate::ExitStatus;
use crate::explore::trial::{Depth, Outcome, Tally, trial};
use crate::explore::{Seen, Settings, explore};
use crate::runner::client::Own;

/// Options of `kvlab explore`.
#[derive(Args, Clone, Debug)]
pub struct ExploreArgs {
    /// Scenario files to check in place of random ones, in the same way
    #[arg(value_name = "FILE", conflicts_with_all = ["runs", "seed", "seconds"])]
    pub files: Vec<PathBuf>,

    /// Scenarios to run
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,

    /// Seed of the scenarios; the same seed gives the same scenarios and prints the same bytes
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// Begin no further scenario after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,

    /// Say nothing while it runs
    #[arg(long, short)]
    pub quiet: bool,
}

/// Explores; the report goes to `out`, everything else to `err`.
pub fn run(args: &ExploreArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitStatus {
    let control = Control::new();
    let _watch = match SignalWatch::start(control.clone()) {
        Ok(watch) => watch,
        Err(error) => {
            // Nobody is left to be told when stderr is closed.
            let _ = writeln!(err, "error: cannot watch for signals: {error}");
            return ExitStatus::Failed;
        }
    };
    if !args.files.is_empty() {
        return check(&args.files, &control, out, err);
    }
    let settings = Settings {
        runs: args.runs,
        seed: args.seed,
        time: args.seconds.map(Duration::from_secs),
    };
    let exploration = explore(&settings, &control, &mut |held| {
        if !args.quiet {
            let _ = writeln!(err, "{held} scenarios hold");
        }
    });
    if exploration.interrupted {
        let _ = writeln!(err, "interrupted: the report holds what was finished");
    }
    let status = match &exploration.failure {
        Some(failure) => {
            let _ = writeln!(
                err,
                "scenario {} of seed {} fails after {} that hold",
                failure.place, exploration.seed, exploration.held
            );
            ExitStatus::Failed
        }
        None if exploration.interrupted => ExitStatus::Interrupted,
        None => ExitStatus::Done,
    };
    print(&exploration.to_string(), out).unwrap_or(status)
}

/// Puts scenario files to the same test.
fn check(
    files: &[PathBuf],
    control: &Control,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitStatus {
    let mut all = Tally::default();
    for file in files {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                let _ = writeln!(err, "error: cannot read {}: {error}", file.display());
                return ExitStatus::Usage;
            }
        };
        match trial(&Own, &name_of(file), &text, Depth::Again, control) {
            Outcome::Exact(tally) => all.add(&tally),
            Outcome::Stopped => {
                let _ = writeln!(err, "interrupted");
                return ExitStatus::Interrupted;
            }
            Outcome::Broken(broken) if broken.what == "refused" => {
                let _ = writeln!(err, "error: {}", broken.text);
                return ExitStatus::Usage;
            }
            Outcome::Broken(broken) => {
                let part = match broken.part.as_str() {
                    "" => String::new(),
                    part => format!(", {part}"),
                };
                let file = file.display();
                let report = format!("{file}{part}: fails by {}: {}\n", broken.what, broken.text);
                return print(&report, out).unwrap_or(ExitStatus::Failed);
            }
        }
    }
    let report = format!(
        "{} files: all exact, omission 0\n{}",
        files.len(),
        Seen(&all)
    );
    print(&report, out).unwrap_or(ExitStatus::Done)
}

fn name_of(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Writes the report; a status when that fails.
fn print(report: &str, out: &mut dyn Write) -> Option<ExitStatus> {
    let written = out.write_all(report.as_bytes()).and_then(|()| out.flush());
    unless_closed(written).err().map(|_| ExitStatus::Failed)
}
