//! Load generators as processes of their own: how each is found, told what to do, and read.
//!
//! Every tool is one file and one line in [`all`]. A tool is judged by what it prints or writes for
//! its user, never by its insides, and our own load generator is run in the same way: as a process,
//! with options, read from its report. Nothing here judges.

mod asbench;
mod kvlab;
mod memtier;
pub mod options;
pub mod process;
mod redis_benchmark;
mod report;
mod valkey_benchmark;

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kvlab_bench_client::Control;
use kvlab_mock_server::exchange::Protocol;

use options::Options;
use process::{Finished, Limits};
pub use report::{Kind, Reading, Reported};

/// A load generator that can be run and read.
pub trait Subject: fmt::Debug + Sync {
    /// Its name: that of the program, and the word `kvlab grade` knows it by.
    fn name(&self) -> &'static str;

    /// Other words it is known by.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// The protocol it speaks.
    fn protocol(&self) -> Protocol {
        Protocol::Redis
    }

    /// Where the program is, if it is there.
    fn find(&self) -> Option<PathBuf> {
        find_on_path(self.name())
    }

    /// Its options for a standard load, without the address.
    ///
    /// # Errors
    /// Why it cannot do such a load.
    fn standard(&self, load: &Load) -> Result<Vec<String>, String>;

    /// The load that its options ask for.
    ///
    /// # Errors
    /// When an option is one that the grading sets itself, or makes no sense.
    fn shape(&self, arguments: &[OsString]) -> Result<Shape, String>;

    /// The whole command line after the name of the program: its options, the address of the server,
    /// and what is needed to read it. Files go to `folder`.
    fn command_line(&self, arguments: &[OsString], at: SocketAddr, folder: &Path) -> Vec<OsString>;

    /// What it reports. Files are in `folder`.
    ///
    /// # Errors
    /// Why its report cannot be read.
    fn read(&self, finished: &Finished, folder: &Path) -> Result<Reported, String>;

    /// Records of the Aerospike side that its reads expect: set, first key, how many.
    fn records(&self, _arguments: &[OsString]) -> Option<Records> {
        None
    }

    /// Its version, as it says itself.
    fn version(&self, program: &Path) -> String {
        version_line(program, &["--version"])
    }
}

/// All load generators that can be judged; ours first.
#[must_use]
pub fn all() -> [&'static dyn Subject; 6] {
    [
        &kvlab::Kvlab {
            protocol: Protocol::Redis,
        },
        &redis_benchmark::RedisBenchmark,
        &valkey_benchmark::ValkeyBenchmark,
        &memtier::Memtier,
        &kvlab::Kvlab {
            protocol: Protocol::Aerospike,
        },
        &asbench::Asbench,
    ]
}

/// The load generator of a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Subject> {
    all()
        .into_iter()
        .find(|subject| subject.name() == name || subject.aliases().contains(&name))
}

/// A load in the words that all tools share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Connections, or threads where a thread is a connection.
    pub connections: u32,
    /// Requests in flight on each.
    pub depth: u32,
    /// Requests per second in all, for tools that can keep a rate.
    pub rate: Option<u32>,
    /// Requests in all of a tool that is told how many, in a closed loop.
    pub requests: u32,
    /// Length of the run of a tool that is told how long, or keeps a rate.
    pub duration: Duration,
}

/// The load that a tool's options ask for, as far as its truth depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Connections.
    pub connections: u32,
    /// Requests in flight on each.
    pub depth: u32,
    /// Whether a connection sends its next requests only when all replies are there.
    pub batch: bool,
    /// Requests per second in all, where it is to keep a rate.
    pub rate: Option<f64>,
    /// How long it is to run, where that is fixed.
    pub duration: Option<Duration>,
    /// Requests in all, where that is fixed.
    pub requests: Option<u64>,
}

impl Shape {
    /// Requests that may be in flight together.
    #[must_use]
    pub fn slots(&self) -> u64 {
        u64::from(self.connections) * u64::from(self.depth)
    }

    /// Requests due, where a rate is to be kept for a known time.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of requests, rounded; the cast saturates"
    )]
    pub fn due(&self) -> Option<u64> {
        match (self.rate, self.duration, self.requests) {
            (Some(_), _, Some(requests)) => Some(requests),
            (Some(rate), Some(duration), None) => {
                Some((rate * duration.as_secs_f64()).round() as u64)
            }
            _ => None,
        }
    }
}

/// Records that have to be there before a tool reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// Namespace.
    pub namespace: String,
    /// Set.
    pub set: String,
    /// First key, an integer.
    pub first: i64,
    /// How many; at most [`Records::MOST`].
    pub count: i64,
}

impl Records {
    /// More are not put in.
    pub const MOST: i64 = 100_000;
}

/// The first file of that name on the PATH that may be executed.
fn find_on_path(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| {
            file.metadata()
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
}

/// What a program says to `arguments`: the first words of its first line with a number in it.
fn version_line(program: &Path, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new(program);
    command.args(arguments);
    let limits = Limits {
        time: VERSION_TIME,
        output: VERSION_OUTPUT,
    };
    let Ok(finished) = process::run(command, &limits, &Control::new()) else {
        return "unknown".to_owned();
    };
    let text = format!("{}\n{}", finished.stdout, finished.stderr);
    let line = text
        .lines()
        .find(|line| line.bytes().any(|byte| byte.is_ascii_digit()));
    let words = line.unwrap_or("unknown").split_whitespace();
    let words: Vec<&str> = words.take(VERSION_WORDS).collect();
    words.join(" ").chars().take(VERSION_LENGTH).collect()
}

const VERSION_TIME: Duration = Duration::from_secs(5);
const VERSION_OUTPUT: usize = 16 * 1024;
const VERSION_WORDS: usize = 2;
const VERSION_LENGTH: usize = 60;

/// Refuses options that the grading gives itself.
fn refuse(options: &Options<'_>, names: &[&str], why: &str) -> Result<(), String> {
    match names.iter().find(|name| options.has(&[name])) {
        Some(name) => Err(format!("{name}: {why}")),
        None => Ok(()),
    }
}

/// Why an address is refused.
const OWN_SERVER: &str = "the tool is run against a server of the grading's own; leave it out";
/// Why a file of the report is refused.
const OWN_REPORT: &str = "the report is asked for by the grading itself; leave it out";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_by_name_and_alias() {
        for (word, name) in [
            ("redis-benchmark", "redis-benchmark"),
            ("valkey-benchmark", "valkey-benchmark"),
            ("memtier_benchmark", "memtier_benchmark"),
            ("memtier", "memtier_benchmark"),
            ("asbench", "asbench"),
            ("kvlab", "kvlab"),
            ("kvlab-aerospike", "kvlab-aerospike"),
        ] {
            assert_eq!(named(word).map(Subject::name), Some(name), "{word}");
        }
        assert!(named("wrk").is_none());
    }

    #[test]
    fn due_follows_from_rate_and_length() {
        let shape = Shape {
            connections: 10,
            depth: 4,
            batch: false,
            rate: Some(1000.0),
            duration: Some(Duration::from_millis(2500)),
            requests: None,
        };
        assert_eq!((shape.due(), shape.slots()), (Some(2500), 40));
        let closed = Shape {
            rate: None,
            ..shape
        };
        assert_eq!(closed.due(), None);
        let counted = Shape {
            requests: Some(7),
            ..shape
        };
        assert_eq!(counted.due(), Some(7));
    }
}
