//! One run of a tool against a mock server of its own, and the floor of a tool.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kvlab_bench_client::Control;
use kvlab_mock_server::StartError;
use kvlab_mock_server::exchange::Protocol;
use kvlab_timing::Stamp;
use serde::Serialize;

use super::mock::Mock;
use super::scenario::Scenario;
use super::truth::Seen;
use crate::noise::{MachineUse, ProcessorTime};
use crate::subject::process::{self, Finished, Limits};
use crate::subject::{Reported, Subject};
use crate::truth::Quantile;

/// What is to be graded.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The program of the tool.
    pub program: &'a Path,
    /// Server and load.
    pub scenario: &'a Scenario,
    /// Options in place of those of the scenario's load.
    pub options: Option<&'a [OsString]>,
    /// When the tool is killed.
    pub time_limit: Duration,
}

impl Job<'_> {
    /// The tool's options: those given, or those of the scenario's load.
    ///
    /// # Errors
    /// Why the tool cannot do such a load.
    pub fn arguments(&self, subject: &dyn Subject) -> Result<Vec<OsString>, String> {
        match self.options {
            Some(options) => Ok(options.to_vec()),
            None => {
                let options = subject.standard(&self.scenario.load)?;
                Ok(options.into_iter().map(OsString::from).collect())
            }
        }
    }
}

/// Why there is nothing to judge.
#[derive(Debug, thiserror::Error)]
pub enum GradeError {
    /// The mock server does not start.
    #[error(transparent)]
    Server(#[from] StartError),
    /// The mock server has no port for the tool's protocol.
    #[error("the server has no port for the tool")]
    NoPort,
    /// The program cannot be run.
    #[error("cannot run {program}: {source}")]
    Program {
        /// Where it is.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No folder for the tool's files can be made.
    #[error("cannot make a folder for the tool's files: {0}")]
    Folder(io::Error),
}

/// What one run left behind.
#[derive(Debug)]
pub struct Run {
    /// The command line after the name of the program, as a text.
    pub command: String,
    /// The tool's options.
    pub arguments: Vec<OsString>,
    /// How the process ended.
    pub finished: Finished,
    /// Its report.
    pub reported: Result<Reported, String>,
    /// What the server saw.
    pub seen: Seen,
    /// When the server started; freezes count from here.
    pub started: Stamp,
    /// What the machine did meanwhile.
    pub machine: Option<MachineUse>,
}

/// Runs a tool once.
///
/// # Errors
/// When server or tool cannot be started.
pub fn run(
    subject: &dyn Subject,
    job: &Job<'_>,
    arguments: &[OsString],
    control: &Control,
) -> Result<Run, GradeError> {
    run_against(subject, job, &job.scenario.mock, arguments, control)
}

fn run_against(
    subject: &dyn Subject,
    job: &Job<'_>,
    mock: &Mock,
    arguments: &[OsString],
    control: &Control,
) -> Result<Run, GradeError> {
    let folder = Folder::new().map_err(GradeError::Folder)?;
    let server = mock.start(subject.records(arguments).as_ref())?;
    let address = match subject.protocol() {
        Protocol::Redis => server.redis_addr(),
        Protocol::Aerospike => server.aerospike_addr(),
    };
    let address = address.ok_or(GradeError::NoPort)?;
    let line = subject.command_line(arguments, address, &folder.0);
    let mut command = Command::new(job.program);
    command.args(&line).current_dir(&folder.0);
    let limits = Limits {
        time: job.time_limit,
        output: OUTPUT_LIMIT,
    };
    let before = ProcessorTime::now();
    let finished =
        process::run(command, &limits, control).map_err(|source| GradeError::Program {
            program: job.program.to_owned(),
            source,
        })?;
    let after = ProcessorTime::now();
    let started = server.shared().started;
    let truth = server.stop();
    Ok(Run {
        command: readable(subject.name(), &line, &folder.0),
        arguments: arguments.to_vec(),
        reported: subject.read(&finished, &folder.0),
        finished,
        seen: Seen::new(truth),
        started,
        machine: before
            .zip(after)
            .map(|(before, after)| after.since(&before)),
    })
}

/// A command line as a person would type it.
fn readable(name: &str, line: &[OsString], folder: &Path) -> String {
    let mut text = name.to_owned();
    let folder = folder.display().to_string();
    for word in line {
        let word = word.to_string_lossy().replace(&folder, "DIR");
        let is_plain = !word.is_empty() && word.chars().all(|c| !" '\"$&|<>()*?;\\".contains(c));
        text.push(' ');
        match is_plain {
            true => text.push_str(&word),
            false => text.push_str(&format!("'{word}'")),
        }
    }
    text
}

/// What a tool and the machine add to a request by themselves: its report of a run without delay,
/// less what the server saw of that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ToolFloor {
    /// Reported median less the server's.
    pub median_ns: u64,
    /// How far the difference at the 90th percentile lies above that, at most [`SPREAD_P90_NS`].
    pub spread_p90_ns: u64,
    /// The same at the 99th and above, at most [`SPREAD_P99_NS`].
    pub spread_p99_ns: u64,
}

/// What is granted for the spread of the floor, at most: as much as a run of the lab itself may show
/// before it is void.
pub const SPREAD_P90_NS: u64 = 250_000;
/// The same for the 99th percentile and above.
pub const SPREAD_P99_NS: u64 = 1_000_000;

impl ToolFloor {
    /// The floor that a run without delay shows; `None` when the tool reports no median.
    #[must_use]
    pub fn new(reported: &Reported, seen: &Seen) -> Option<Self> {
        let above = |q: Quantile| -> Option<u64> {
            let truth = seen.sojourn.quantile(q)?;
            let reading = reported.quantiles.get(&q)?;
            Some(reading.nearest(truth).saturating_sub(truth))
        };
        let median_ns = above(Quantile::P50)?;
        let spread = |q, most| above(q).unwrap_or(0).saturating_sub(median_ns).min(most);
        Some(Self {
            median_ns,
            spread_p90_ns: spread(Quantile::P90, SPREAD_P90_NS),
            spread_p99_ns: spread(Quantile::P99, SPREAD_P99_NS),
        })
    }

    /// What is granted at a quantile beyond the median.
    #[must_use]
    pub fn spread_ns(&self, q: Quantile) -> u64 {
        match q {
            q if q >= Quantile::P99 => self.spread_p99_ns,
            q if q >= Quantile::P90 => self.spread_p90_ns,
            _ => 0,
        }
    }
}

/// The floors that were measured, so that scenarios with the same load share one.
#[derive(Debug, Default)]
pub struct Floors(HashMap<String, Option<ToolFloor>>);

impl Floors {
    /// The floor of a tool under the load of a job.
    ///
    /// # Errors
    /// When server or tool cannot be started.
    pub fn of(
        &mut self,
        subject: &dyn Subject,
        job: &Job<'_>,
        control: &Control,
    ) -> Result<Option<ToolFloor>, GradeError> {
        let Ok(arguments) = floor_arguments(subject, job) else {
            return Ok(None);
        };
        let key = key(subject, &arguments);
        if let Some(floor) = self.0.get(&key) {
            return Ok(*floor);
        }
        let mock = job.scenario.mock.without_delay();
        let run = run_against(subject, job, &mock, &arguments, control)?;
        let reported = run.reported.ok();
        let floor = reported.and_then(|reported| ToolFloor::new(&reported, &run.seen));
        self.0.insert(key, floor);
        Ok(floor)
    }

    /// Measures the floor anew next time: the machine has changed.
    pub fn forget(&mut self, subject: &dyn Subject, job: &Job<'_>) {
        if let Ok(arguments) = floor_arguments(subject, job) {
            self.0.remove(&key(subject, &arguments));
        }
    }
}

fn key(subject: &dyn Subject, arguments: &[OsString]) -> String {
    readable(subject.name(), arguments, Path::new("/"))
}

/// The options of a floor run: the scenario's load, shortened, or what the user gave.
fn floor_arguments(subject: &dyn Subject, job: &Job<'_>) -> Result<Vec<OsString>, String> {
    if job.options.is_some() {
        return job.arguments(subject);
    }
    let mut load = job.scenario.load;
    load.requests = load.requests.min(FLOOR_REQUESTS);
    load.duration = load.duration.min(FLOOR_LENGTH);
    let options = subject.standard(&load)?;
    Ok(options.into_iter().map(OsString::from).collect())
}

const FLOOR_REQUESTS: u32 = 20_000;
const FLOOR_LENGTH: Duration = Duration::from_secs(1);
/// Bytes of a tool's stdout and of its stderr that are kept.
pub const OUTPUT_LIMIT: usize = 4 * 1024 * 1024;

/// A folder that only this user may enter, gone when dropped.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("kvlab-grade-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Fails when it is there already, whoever made it.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the folder of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Reading;

    #[test]
    fn folders_are_private_and_vanish() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new().unwrap();
        let path = folder.0.clone();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(path.join("file"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn command_lines_can_be_typed() {
        let line = ["-n", "5", "set", "a key", "/tmp/x/out.json"].map(OsString::from);
        let text = readable("tool", &line, Path::new("/tmp/x"));
        assert_eq!(text, "tool -n 5 set 'a key' DIR/out.json");
    }

    #[test]
    fn the_floor_is_what_the_report_has_beyond_the_server() {
        let seen = Seen {
            sojourn: (1..=1000).map(|_| 2_000).collect(),
            ..Seen::default()
        };
        let mut reported = Reported::default();
        assert_eq!(ToolFloor::new(&reported, &seen), None);
        for (q, ns) in [
            (Quantile::P50, 82_000),
            (Quantile::P90, 122_000),
            (Quantile::P99, 9_000_000),
        ] {
            reported.quantiles.insert(q, Reading::exact(ns));
        }
        let floor = ToolFloor::new(&reported, &seen).unwrap();
        assert_eq!(floor.median_ns, 80_000);
        assert_eq!(floor.spread_ns(Quantile::P50), 0);
        assert_eq!(floor.spread_ns(Quantile::P90), 40_000);
        // A tool that is slow by itself is not excused by it beyond this.
        assert_eq!(floor.spread_ns(Quantile::P99), SPREAD_P99_NS);
        assert_eq!(floor.spread_ns(Quantile::P99_9), SPREAD_P99_NS);
    }
}
