//! Judging load generators, ours and others, by what they report against what truly happened.
//!
//! A mock server with a chosen timing model runs inside; the tool runs as a process against it, and
//! its report is held against the server's rows of that very run. `docs/grade.md` says how to use
//! it, `docs/accuracy.md` what the figures mean.
//!
//! ```text
//! scenario (mock + load) -> tool's command line -> child process -> its report   \
//!                                               -> server's rows  -> truth        > scores -> verdict
//! ```
//!
//! * a closed loop is judged by the server's own sojourn of the same run, plus the tool's floor;
//! * a load with a rate is judged by its timetable, simulated.

pub mod json;
pub mod judge;
pub mod mock;
pub mod run;
pub mod scenario;
pub mod tables;
pub mod text;
pub mod truth;
pub mod words;

use kvlab_bench_client::Control;
use serde::Serialize;

use crate::check::score::{Aspect, Score, ScoreName};
use crate::subject::process::End;
use crate::subject::{Reported, Shape, Subject};
use crate::truth::Quantile;
use crate::verdict::{Finding, Verdict};
use run::{Floors, GradeError, Job};
use truth::Facts;

/// What one tool came to in one scenario.
#[derive(Clone, Debug)]
pub struct Graded {
    /// Name of the tool.
    pub tool: &'static str,
    /// Its command line, without the way to the program.
    pub command: String,
    /// The load that it was asked for.
    pub shape: Option<Shape>,
    /// How it ended; nothing when it was not run.
    pub end: Option<End>,
    /// How long it ran, in nanoseconds.
    pub elapsed_ns: u64,
    /// What it reports, where that could be read.
    pub reported: Option<Reported>,
    /// What truly happened.
    pub facts: Option<Facts>,
    /// What the tool and the machine add to a request by themselves, where it was measured.
    pub floor: Option<run::ToolFloor>,
    /// The figures.
    pub scores: Vec<Score>,
    /// All that was looked at.
    pub findings: Vec<Finding>,
    /// Over all findings and figures; nothing when it cannot do this load.
    pub verdict: Option<Verdict>,
    /// What it got wrong, or that it got nothing wrong, in a sentence.
    pub sentence: String,
    /// Runs that were needed; more than one when earlier ones were void.
    pub attempts: u32,
}

impl Graded {
    /// The figure of a quantile, of the service or response time.
    #[must_use]
    pub fn error(&self, q: Quantile) -> Option<&Score> {
        self.scores
            .iter()
            .find(|score| is_error(score.name) && score.quantile == Some(q))
    }

    /// The figure of the mean or the maximum.
    #[must_use]
    pub fn error_of(&self, aspect: Aspect) -> Option<&Score> {
        self.scores
            .iter()
            .find(|score| is_error(score.name) && score.of == Some(aspect))
    }

    /// The figure of a name.
    #[must_use]
    pub fn score(&self, name: ScoreName) -> Option<&Score> {
        self.scores.iter().find(|score| score.name == name)
    }
}

fn is_error(name: ScoreName) -> bool {
    matches!(name, ScoreName::ServErr | ScoreName::RespErr)
}

/// All tools in one scenario.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Name of the scenario.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// The timing model of the server, as text.
    pub server: String,
    /// The tools, in the order they were run.
    pub rows: Vec<Graded>,
}

/// A tool that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it says its version is.
    pub version: String,
}

/// Hears how the grading goes on.
pub trait Progress {
    /// Something begins, in a line.
    fn say(&mut self, line: &str);
}

/// Grades one tool in one scenario; a void run is tried again up to `retries` times.
///
/// # Errors
/// When the server or the tool cannot be started.
pub fn grade(
    subject: &dyn Subject,
    job: &Job<'_>,
    floors: &mut Floors,
    retries: u32,
    control: &Control,
    progress: &mut dyn Progress,
) -> Result<Graded, GradeError> {
    let arguments = match job.arguments(subject) {
        Ok(arguments) => arguments,
        Err(reason) => return Ok(judge::not_run(subject, reason)),
    };
    let mut attempts = 1;
    loop {
        progress.say(&format!("{}: {}", job.scenario.name, subject.name()));
        let floor = floors.of(subject, job, control)?;
        let seen = run::run(subject, job, &arguments, control)?;
        let mut graded = judge::judge(subject, job, seen, floor);
        graded.attempts = attempts;
        if graded.verdict != Some(Verdict::Void) || attempts > retries || control.is_stopped() {
            return Ok(graded);
        }
        progress.say(&format!(
            "{}: {} is void, trying again",
            job.scenario.name,
            subject.name()
        ));
        attempts += 1;
        floors.forget(subject, job);
    }
}
