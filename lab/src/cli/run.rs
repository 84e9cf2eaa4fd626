//! `kvlab run [FILE…]` and `kvlab run --tier TIER`: runs scenarios and prints the verdict.

use std::fs;
use std::io::{ErrorKind, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context as _;
use clap::{Args, Command, FromArgMatches};
use kvlab_bench_client::frontend::{ExitStatus, SignalWatch};
use kvlab_bench_client::{Control, RunError};

use super::grade::{self, GradeArgs};
use super::output::unless_closed;
use crate::report::junit::{self, Broken};
use crate::report::{Report, brief, html, json, text};
use crate::runner::PartError;
use crate::runner::parallel::{self, Outcome};
use crate::runner::suite::{self, Clock, Progress};
use crate::scenario::{Scenario, ScenarioError, TierName};
use crate::subject::{self, Subject};
use crate::verdict::Verdict;

/// Options of `kvlab run`.
#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// Scenario files, or names of built-in scenarios; without one, the built-in quickstart: both
    /// protocols, closed and open loop
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Run the built-in scenarios of a tier
    #[arg(long, value_name = "TIER", value_enum, conflicts_with_all = ["files", "virtual"])]
    pub tier: Option<TierName>,

    /// Run under virtual time: exact, reproducible, and as fast as the machine can
    #[arg(long)]
    pub r#virtual: bool,

    /// Threads of a virtual run; they change nothing about its result [default: one per core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,

    /// Seed in place of those in the files
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Runs of each client with the same seed, in place of what the files say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: Option<u32>,

    /// List the clients that would be run, and run none
    #[arg(long)]
    pub list: bool,

    /// Report every client in full, also those of a tier or a sweep that passed
    #[arg(long)]
    pub full_text: bool,

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

impl RunArgs {
    fn clock(&self) -> Clock {
        if self.r#virtual || self.tier == Some(TierName::Virtual) {
            Clock::Virtual
        } else {
            Clock::Real
        }
    }

    fn json_takes_stdout(&self) -> bool {
        self.json
            .as_ref()
            .is_some_and(|file| file.as_os_str() == "-")
    }
}

/// Runs the scenarios; results go to `out`, everything else to `err`. The full tier ends with the
/// grading of all load generators that are installed, when there are others than ours.
pub fn run(args: &RunArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitStatus {
    let status = run_scenarios(args, out, err);
    let is_whole = [ExitStatus::Done, ExitStatus::Failed, ExitStatus::Void].contains(&status);
    if args.tier == Some(TierName::Full) && is_whole && !args.list {
        return worse(status, grade_others(args, out, err));
    }
    status
}

fn run_scenarios(args: &RunArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitStatus {
    let scenarios = match scenarios(args) {
        Ok(scenarios) => scenarios,
        Err(error) => {
            // Nobody is left to be told when stderr is closed.
            let _ = writeln!(err, "error: {error}");
            return ExitStatus::Usage;
        }
    };
    if args.list {
        return list(&scenarios, out);
    }
    if args.clock() == Clock::Real && refuse_boundaries(&scenarios, err) {
        return ExitStatus::Usage;
    }
    let control = Control::new();
    let _watch = match SignalWatch::start(control.clone()) {
        Ok(watch) => watch,
        Err(error) => {
            let _ = writeln!(err, "error: cannot watch for signals: {error}");
            return ExitStatus::Failed;
        }
    };
    let Outcome { reports, error } = if args.quiet {
        run_all(args, &scenarios, &control, &mut suite::Quiet)
    } else {
        run_all(args, &scenarios, &control, &mut Lines(err))
    };
    let mut cut_short = None;
    let mut broken = None;
    if let Some((scenario, error)) = error {
        let _ = writeln!(err, "error: scenario {scenario}, {error}");
        cut_short = Some(status_of(&error.source));
        broken = Some(Broken { scenario, error });
    } else if control.is_stopped() {
        let _ = writeln!(err, "interrupted: the report holds what was finished");
        cut_short = Some(ExitStatus::Interrupted);
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

fn run_all(
    args: &RunArgs,
    scenarios: &[Scenario],
    control: &Control,
    progress: &mut dyn Progress,
) -> Outcome {
    if args.clock() == Clock::Virtual {
        let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = args.jobs.unwrap_or_else(cores);
        return parallel::run(scenarios, threads, control, progress);
    }
    let mut outcome = Outcome::default();
    for scenario in scenarios {
        match suite::run(scenario, Clock::Real, control, progress) {
            Ok(report) => outcome.reports.push(report),
            Err(error) => {
                outcome.error = Some((scenario.name.clone(), error));
                break;
            }
        }
        if control.is_stopped() {
            break;
        }
    }
    outcome
}

fn scenarios(args: &RunArgs) -> Result<Vec<Scenario>, ScenarioError> {
    let mut scenarios = match args.tier {
        Some(tier) => Scenario::of_tier(tier)?,
        None if args.files.is_empty() => vec![Scenario::quickstart()?],
        None => args
            .files
            .iter()
            .map(|file| load(file))
            .collect::<Result<_, _>>()?,
    };
    for scenario in &mut scenarios {
        if let Some(seed) = args.seed {
            scenario.set_seed(seed);
        }
        if let Some(repeat) = args.repeat {
            scenario.repeat = repeat;
        }
    }
    Ok(scenarios)
}

/// A file, or where there is none a built-in scenario of that name.
fn load(file: &Path) -> Result<Scenario, ScenarioError> {
    let named = || Scenario::named(file.to_str()?);
    match Scenario::load(file) {
        Err(ScenarioError::Read { path, source }) if source.kind() == ErrorKind::NotFound => {
            named().unwrap_or(Err(ScenarioError::Read { path, source }))
        }
        other => other,
    }
}

/// Compares the load generators that are installed. The report as JSON holds the scenarios alone;
/// where it takes stdout, this goes to stderr.
fn grade_others(args: &RunArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitStatus {
    let is_other = |subject: &&dyn Subject| !subject.name().starts_with("kvlab");
    let installed = subject::all().into_iter().filter(is_other);
    if installed
        .filter_map(|subject| subject.find())
        .next()
        .is_none()
    {
        let _ = writeln!(
            err,
            "no other load generator is installed: nothing to compare"
        );
        return ExitStatus::Done;
    }
    let quiet = args.quiet.then_some("--quiet");
    let words = ["--all", "--quick"].into_iter().chain(quiet);
    let command = GradeArgs::augment_args(Command::new("grade").no_binary_name(true));
    let read = command.try_get_matches_from(words);
    let grading = match read.and_then(|found| GradeArgs::from_arg_matches(&found)) {
        Ok(grading) => grading,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            return ExitStatus::Usage;
        }
    };
    if !args.json_takes_stdout() {
        let _ = writeln!(out);
        return grade::run(&grading, out, err);
    }
    let mut text = Vec::new();
    let status = grade::run(&grading, &mut text, err);
    let _ = err.write_all(&text);
    status
}

/// Of two verdicts the one that outweighs the other; anything that is no verdict outweighs both.
fn worse(one: ExitStatus, other: ExitStatus) -> ExitStatus {
    let weight = |status: &ExitStatus| match status {
        ExitStatus::Done => 0,
        ExitStatus::Void => 1,
        ExitStatus::Failed => 2,
        _ => 3,
    };
    if weight(&other) > weight(&one) {
        other
    } else {
        one
    }
}

/// Whether a quantile that is to be judged lies where the distribution jumps; says which.
fn refuse_boundaries(scenarios: &[Scenario], err: &mut dyn Write) -> bool {
    let edges = scenarios.iter().flat_map(|scenario| {
        let edges = scenario.boundaries();
        edges.map(move |(client, edge)| (&scenario.name, client, edge))
    });
    let mut count = 0;
    for (scenario, client, edge) in edges {
        count += 1;
        if count <= MOST_BOUNDARIES {
            let _ = writeln!(err, "error: {scenario}: {edge} (client {client})");
        }
    }
    if count > MOST_BOUNDARIES {
        let _ = writeln!(err, "and {} more", count - MOST_BOUNDARIES);
    }
    count > 0
}

/// The clients by scenario.
fn list(scenarios: &[Scenario], out: &mut dyn Write) -> ExitStatus {
    let mut text = String::new();
    for scenario in scenarios {
        for part in &scenario.parts {
            text.push_str(&format!("{}: {}\n", scenario.name, part.name));
        }
    }
    match unless_closed(out.write_all(text.as_bytes())) {
        Ok(()) => ExitStatus::Done,
        Err(_) => ExitStatus::Failed,
    }
}

/// Writes all that was asked for. What cannot be written keeps nothing else from being written; the
/// first error is told.
fn write(
    args: &RunArgs,
    reports: &[Report],
    broken: Option<&Broken>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let to_stdout = args.json_takes_stdout();
    let page = args
        .html
        .as_deref()
        .map(|file| save(file, &html::render(reports)));
    let junit = args.junit.as_deref().map(|file| {
        let document = junit::render(reports, broken);
        save(
            file,
            &document.context("cannot render the report as JUnit XML")?,
        )
    });
    let json = args.json.as_deref().map(|file| {
        let document = json::render(reports).context("cannot render the report as JSON")?;
        if to_stdout {
            return Ok(unless_closed(out.write_all(document.as_bytes()))?);
        }
        save(file, &document)
    });
    let text = write_text(args, reports, if to_stdout { err } else { out });
    [page, junit, json]
        .into_iter()
        .flatten()
        .collect::<Result<(), _>>()?;
    text
}

fn write_text(
    args: &RunArgs,
    reports: &[Report],
    for_people: &mut dyn Write,
) -> anyhow::Result<()> {
    for (place, report) in reports.iter().enumerate() {
        let gap = if place > 0 { "\n" } else { "" };
        let is_brief = args.tier.is_some() || report.parts.len() > MOST_IN_FULL;
        let rendered = if is_brief && !args.full_text {
            brief::render(report)
        } else {
            text::render(report)
        };
        unless_closed(write!(for_people, "{gap}{rendered}"))?;
    }
    if reports.len() > 1 {
        let clients: usize = reports.iter().map(|report| report.parts.len()).sum();
        let worst = reports.iter().map(|report| report.verdict).max();
        let worst = worst.unwrap_or_default();
        let scenarios = reports.len();
        unless_closed(writeln!(
            for_people,
            "\n{scenarios} scenarios, {clients} clients: {worst}"
        ))?;
    }
    Ok(())
}

fn save(file: &Path, document: &str) -> anyhow::Result<()> {
    fs::write(file, document).with_context(|| format!("cannot write {}", file.display()))
}

fn status_of(error: &PartError) -> ExitStatus {
    match error {
        PartError::Client(RunError::NoConnection { .. } | RunError::Tls { .. }) => {
            ExitStatus::NoConnection
        }
        PartError::Client(RunError::LoginRefused { .. }) => ExitStatus::LoginRefused,
        _ => ExitStatus::Failed,
    }
}

/// Quantiles at an edge that are named one by one.
const MOST_BOUNDARIES: usize = 10;
/// Clients up to which a report shows each in full.
const MOST_IN_FULL: usize = 8;

/// Progress as lines.
struct Lines<'a>(&'a mut dyn Write);

impl Progress for Lines<'_> {
    fn say(&mut self, line: &str) {
        let _ = writeln!(self.0, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_of_two_verdicts_is_the_exit_status() {
        use ExitStatus::{Done, Failed, Interrupted, Void};
        for (one, other, whole) in [
            (Done, Done, Done),
            (Done, Void, Void),
            (Failed, Void, Failed),
            (Void, Failed, Failed),
            (Failed, Interrupted, Interrupted),
        ] {
            assert_eq!(worse(one, other), whole);
        }
    }
}
