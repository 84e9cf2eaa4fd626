//! Running two commands in turn: A B B A A B B A …, so that what changes on the machine meanwhile
//! meets both alike.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kvlab_bench_client::Control;

use super::stored::{self, Group, Stored, StoredError};
use crate::subject::process::{self, End, Limits};

/// A command that writes its result as JSON when `--json FILE` is added to its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// As it was given.
    pub text: String,
    /// Its words.
    words: Vec<String>,
}

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterleaveError {
    /// The text is no command.
    #[error("not a command: '{0}'")]
    NoCommand(String),
    /// A file or folder cannot be made.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The program cannot be started.
    #[error("cannot start '{command}': {source}")]
    Start {
        /// The command.
        command: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It ended with another status than 0.
    #[error("'{command}' ended with {how}{said}")]
    Ended {
        /// The command.
        command: String,
        /// With which exit status or signal.
        how: String,
        /// The end of what it wrote to stderr.
        said: String,
    },
    /// It did not end in time and was killed.
    #[error("'{command}' did not end within {} and was killed", kvlab_timing::duration::format(*limit))]
    Hung {
        /// The command.
        command: String,
        /// The limit.
        limit: Duration,
    },
    /// What it wrote is no result.
    #[error(transparent)]
    Result(#[from] StoredError),
    /// Stopped from outside.
    #[error("interrupted")]
    Interrupted,
}

impl Line {
    /// Splits a command line as a shell does, without expanding anything.
    ///
    /// # Errors
    /// When there is no word, or a quote is not closed.
    pub fn parse(text: &str) -> Result<Self, InterleaveError> {
        let words = shlex::split(text).filter(|words| !words.is_empty());
        Ok(Self {
            text: text.to_owned(),
            words: words.ok_or_else(|| InterleaveError::NoCommand(text.to_owned()))?,
        })
    }

    /// `kvlab` means this very program.
    fn command(&self) -> Command {
        let (program, arguments) = self
            .words
            .split_first()
            .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let own = (program == "kvlab")
            .then(std::env::current_exe)
            .and_then(Result::ok);
        let mut command = own.map_or_else(|| Command::new(program), Command::new);
        command.args(arguments);
        command
    }
}

/// How the commands are run.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Runs of each.
    pub runs: usize,
    /// Longest time of one run.
    pub limit: Duration,
    /// Where the results are kept, as `a-01.json` and so on.
    pub folder: &'a Path,
}

/// Runs both commands in turn. Results of finished runs stay in the folder whatever happens.
///
/// # Errors
/// When a run fails, hangs or has no result, or `control` stops it.
pub fn run(
    (a, b): (&Line, &Line),
    plan: &Plan<'_>,
    control: &Control,
    say: &mut dyn FnMut(&str),
) -> Result<(Group, Group), InterleaveError> {
    fs::create_dir_all(plan.folder).map_err(|source| InterleaveError::Write {
        path: plan.folder.to_owned(),
        source,
    })?;
    let mut groups = [a, b].map(|line| Group {
        name: line.text.clone(),
        runs: Vec::with_capacity(plan.runs),
    });
    for (number, first) in order(plan.runs) {
        for place in [first, 1 - first] {
            if control.is_stopped() {
                return Err(InterleaveError::Interrupted);
            }
            let (line, letter) = [(a, 'a'), (b, 'b')][place];
            let file = plan.folder.join(format!("{letter}-{:02}.json", number + 1));
            say(&format!(
                "run {} of {}: {}",
                number + 1,
                plan.runs,
                line.text
            ));
            groups[place]
                .runs
                .push(run_once(line, &file, plan.limit, control)?);
        }
    }
    let [a, b] = groups;
    Ok((a, b))
}

/// The number of each round and which command comes first in it: the first two times 0, 1, 1, 0.
fn order(runs: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..runs).map(|number| (number, number % 2))
}

fn run_once(
    line: &Line,
    file: &Path,
    limit: Duration,
    control: &Control,
) -> Result<Stored, InterleaveError> {
    let mut command = line.command();
    command.arg("--json").arg(file);
    let limits = Limits {
        time: limit,
        output: KEPT_OUTPUT,
    };
    let finished =
        process::run(command, &limits, control).map_err(|source| InterleaveError::Start {
            command: line.text.clone(),
            source,
        })?;
    let ended = |how: String| InterleaveError::Ended {
        command: line.text.clone(),
        how,
        said: last_words(&finished.stderr),
    };
    match finished.end {
        End::Exited(0) => {}
        End::Exited(code) => return Err(ended(format!("exit status: {code}"))),
        End::Signalled(number) => return Err(ended(format!("signal: {number}"))),
        End::Interrupted => return Err(InterleaveError::Interrupted),
        End::Hung => {
            return Err(InterleaveError::Hung {
                command: line.text.clone(),
                limit,
            });
        }
    }
    let text = fs::read_to_string(file).map_err(|source| StoredError::Read {
        path: file.to_owned(),
        source,
    })?;
    let mut results = stored::parse(&file.display().to_string(), &text)?;
    let wrong = || StoredError::Form {
        origin: file.display().to_string(),
        message: "expected one result".to_owned(),
    };
    let result = results.pop().filter(|_| results.is_empty());
    Ok(result.ok_or_else(wrong)?)
}

/// The last lines of what a command wrote to stderr, as the end of a sentence.
fn last_words(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().collect();
    let last = lines.len().saturating_sub(3);
    match lines.get(last..) {
        Some(last) if !last.is_empty() => format!(": {}", last.join(" / ")),
        _ => String::new(),
    }
}

/// Bytes kept of what a command prints: of use only when it fails.
const KEPT_OUTPUT: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_alternate_who_goes_first() {
        let order: Vec<(usize, usize)> = order(4).collect();
        assert_eq!(order, [(0, 0), (1, 1), (2, 0), (3, 1)]);
    }

    #[test]
    fn command_lines_are_split_as_a_shell_does() {
        let line = Line::parse("kvlab bench 'redis://h:1/0' --command 'SET a \"b c\"'").unwrap();
        assert_eq!(
            line.words,
            [
                "kvlab",
                "bench",
                "redis://h:1/0",
                "--command",
                "SET a \"b c\""
            ]
        );
        for wrong in ["", "  ", "kvlab 'bench"] {
            assert!(Line::parse(wrong).is_err(), "{wrong}");
        }
    }
}
