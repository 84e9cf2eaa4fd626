//! `kvlab run [FILE…]`: runs scenarios and prints the verdict.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use kvlab_bench_client::frontend::{ExitStatus, SignalWatch};
use kvlab_bench_client::{Control, RunError};

use crate::report::junit::{self, Broken};
use crate::report::{Report, html, json, text};
use crate::runner::PartError;
use crate::runner::suite::{self, Clock, Progress};
use crate::scenario::Scenario;
use crate::verdict::Verdict;

/// Options of `kvlab run`.
#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// Scenario files; without one, the built-in quickstart: both protocols, closed and open loop
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Run under virtual time: exact, reproducible, and as fast as the machine can
    #[arg(long)]
    pub r#virtual: bool,

    /// Seed in place of those in the files
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Write the report as JSON to FILE; - is stdout, and the text then goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the report as one self-contained HTML page to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the report as JUnit XML to FILE, for continuous integration
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// Say nothing while it runs
    #[arg(long, short)]
    pub quiet: bool,
}

/// Runs the scenarios; results go to `out`, everything else to `err`.
pub fn run(args: &RunArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitStatus {
    let scenarios = match scenarios(args) {
        Ok(scenarios) => scenarios,
        Err(error) => {
            // Nobody is left to be told when stderr is closed.
            let _ = writeln!(err, "error: {error}");
            return ExitStatus::Usage;
        }
    };
    let clock = if args.r#virtual {
        Clock::Virtual
    } else {
        Clock::Real
    };
    let control = Control::new();
    let _watch = match SignalWatch::start(control.clone()) {
        Ok(watch) => watch,
        Err(error) => {
            let _ = writeln!(err, "error: cannot watch for signals: {error}");
            return ExitStatus::Failed;
        }
    };
    let mut reports = Vec::with_capacity(scenarios.len());
    let mut cut_short = None;
    let mut broken = None;
    for scenario in &scenarios {
        let result = if args.quiet {
            suite::run(scenario, clock, &control, &mut suite::Quiet)
        } else {
            suite::run(scenario, clock, &control, &mut Lines(err))
        };
        match result {
            Ok(report) => reports.push(report),
            Err(error) => {
                let _ = writeln!(err, "error: scenario {}, {error}", scenario.name);
                cut_short = Some(status_of(&error.source));
                let scenario = scenario.name.clone();
                broken = Some(Broken { scenario, error });
                break;
            }
        }
        if control.is_stopped() {
            let _ = writeln!(err, "interrupted: the report holds what was finished");
            cut_short = Some(ExitStatus::Interrupted);
            break;
        }
    }
    // What was measured before an error or an interruption is reported all the same.
    if let Err(error) = write(args, &reports, broken.as_ref(), out, err) {
        let _ = writeln!(err, "error: {error:#}");
        return ExitStatus::Failed;
    }
    if let Some(status) = cut_short {
        return status;
    }
    match reports
        .iter()
        .map(|report| report.verdict)
        .max()
        .unwrap_or_default()
    {
        Verdict::Pass => ExitStatus::Done,
        Verdict::Fail => ExitStatus::Failed,
        Verdict::Void => ExitStatus::Void,
    }
}

fn scenarios(args: &RunArgs) -> Result<Vec<Scenario>, crate::scenario::ScenarioError> {
    let mut scenarios = if args.files.is_empty() {
        vec![Scenario::quickstart()?]
    } else {
        args.files
            .iter()
            .map(|file| Scenario::load(file))
            .collect::<Result<_, _>>()?
    };
    if let Some(seed) = args.seed {
        scenarios
            .iter_mut()
            .for_each(|scenario| scenario.set_seed(seed));
    }
    Ok(scenarios)
}

fn write(
    args: &RunArgs,
    reports: &[Report],
    broken: Option<&Broken>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let to_stdout = args
        .json
        .as_ref()
        .is_some_and(|file| file.as_os_str() == "-");
    let for_people: &mut dyn Write = if to_stdout { err } else { &mut *out };
    for (place, report) in reports.iter().enumerate() {
        let gap = if place > 0 { "\n" } else { "" };
        unless_closed(write!(for_people, "{gap}{}", text::render(report)))?;
    }
    if let Some(file) = &args.html {
        save(file, &html::render(reports))?;
    }
    if let Some(file) = &args.junit {
        let document = junit::render(reports, broken);
        save(
            file,
            &document.context("cannot render the report as JUnit XML")?,
        )?;
    }
    let Some(file) = &args.json else {
        return Ok(());
    };
    let document = json::render(reports).context("cannot render the report as JSON")?;
    if to_stdout {
        return Ok(unless_closed(out.write_all(document.as_bytes()))?);
    }
    save(file, &document)
}

fn save(file: &Path, document: &str) -> anyhow::Result<()> {
    fs::write(file, document).with_context(|| format!("cannot write {}", file.display()))
}

/// A reader that has seen enough is no failure.
fn unless_closed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn status_of(error: &PartError) -> ExitStatus {
    match error {
        PartError::Client(RunError::NoConnection { .. }) => ExitStatus::NoConnection,
        PartError::Client(RunError::LoginRefused { .. }) => ExitStatus::LoginRefused,
        _ => ExitStatus::Failed,
    }
}

/// Progress as lines.
struct Lines<'a>(&'a mut dyn Write);

impl Progress for Lines<'_> {
    fn say(&mut self, line: &str) {
        let _ = writeln!(self.0, "{line}");
    }
}
