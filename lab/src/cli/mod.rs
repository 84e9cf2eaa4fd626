//! The command line of `kvlab`: one file per subcommand.
//!
//! Results go to stdout, everything else to stderr; what `RUST_LOG` asks for is logged there too.

pub mod bench;
pub mod compare;
pub mod explore;
pub mod grade;
pub mod memtier;
pub mod merge;
mod output;
pub mod run;
mod serve;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::ExitStatus;

/// A laboratory for key-value stores: a mock server, a load generator, and proof of their numbers.
#[derive(Debug, Parser)]
#[command(name = "kvlab", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve Redis and Aerospike clients, with delays of choice
    Serve(Box<kvlab_mock_server::cli::ServeArgs>),
    /// Load a Redis or Aerospike server and report how long its answers took
    Bench(Box<bench::BenchCommand>),
    /// Load a Redis server with the command lines of memtier_benchmark
    Memtier(memtier::MemtierArgs),
    /// Run server and load together and judge whether the numbers are true
    Run(run::RunArgs),
    /// Judge any load generator, ours or another, by what it reports
    Grade(grade::GradeArgs),
    /// Draw random scenarios, run them under virtual time and demand that each is exact
    Explore(explore::ExploreArgs),
    /// Compare two groups of runs: stored results, or two commands run in turn
    Compare(compare::CompareArgs),
    /// Add the histogram logs of several clients
    Merge(merge::MergeArgs),
}

/// Runs `kvlab` with `args`, which begin with the name of the program.
pub fn run<A>(args: A, stdout: &mut dyn Write, stderr: &mut dyn Write) -> ExitStatus
where
    A: IntoIterator<Item: Into<OsString> + Clone>,
{
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    if let Some((program, options)) = args.split_first()
        && memtier::is_called_so(program)
    {
        start_log();
        return memtier::run_options(options, stdout, stderr);
    }
    let program = match Program::try_parse_from(args) {
        Ok(program) => program,
        Err(message) => return print_usage(&message, stdout, stderr),
    };
    start_log();
    match program.command {
        Command::Serve(args) => serve::run(*args, stdout, stderr),
        Command::Bench(args) => bench::run(&args, stdout, stderr),
        Command::Memtier(args) => memtier::run(&args, stdout, stderr),
        Command::Run(args) => run::run(&args, stdout, stderr),
        Command::Grade(args) => grade::run(&args, stdout, stderr),
        Command::Explore(args) => explore::run(&args, stdout, stderr),
        Command::Compare(args) => compare::run(&args, stdout, stderr),
        Command::Merge(args) => merge::run(&args, stdout, stderr),
    }
}

/// Help is a result; everything else that the parser has to say is a complaint.
fn print_usage(
    message: &clap::Error,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> ExitStatus {
    let text = message.render();
    // Nothing is left to be done when the text finds no reader.
    match message.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = write!(stdout, "{text}");
            ExitStatus::Done
        }
        _ => {
            let _ = write!(stderr, "{text}");
            ExitStatus::Usage
        }
    }
}

/// Logs to stderr: warnings, or what `RUST_LOG` asks for.
fn start_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second call in one process, as in a test, keeps the first log.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .try_init();
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a check failed, or a result could not be written
  2    the options, a file or an address cannot be used
  3    void: the machine was too noisy for the claim
  4    no connection to the server
  5    login refused
  6    more errors than allowed
  130  interrupted (a server that is told to stop ends with 0)";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn kvlab(args: &[&str]) -> (ExitStatus, String, String) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let args = ["kvlab"].iter().chain(args);
        let status = run(args, &mut stdout, &mut stderr);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status, text(stdout), text(stderr))
    }

    #[test]
    fn the_options_are_consistent() {
        Program::command().debug_assert();
    }

    #[test]
    fn help_is_a_result_and_a_wrong_option_a_complaint() {
        let (status, stdout, stderr) = kvlab(&["--help"]);
        assert_eq!((status, stderr.as_str()), (ExitStatus::Done, ""));
        for word in ["serve", "bench", "run", "130"] {
            assert!(stdout.contains(word), "{stdout}");
        }
        let (status, stdout, stderr) = kvlab(&["serve", "--latency", "konstant(1ms)"]);
        assert_eq!((status, stdout.as_str()), (ExitStatus::Usage, ""));
        assert!(stderr.contains("unknown law 'konstant'"), "{stderr}");
        let (status, stdout, _) = kvlab(&[]);
        assert_eq!((status, stdout.as_str()), (ExitStatus::Usage, ""));
    }

    #[test]
    fn memtier_reads_its_options_itself_under_both_names() {
        let called = |args: &[&str]| {
            let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
            let status = run(args, &mut stdout, &mut stderr);
            let text = |bytes| String::from_utf8(bytes).unwrap();
            (status, text(stdout), text(stderr))
        };
        for program in [
            &["kvlab", "memtier"][..],
            &["memtier_benchmark"],
            &["/usr/bin/memtier_benchmark"],
        ] {
            let with = |option: &[&str]| called(&[program, option].concat());
            let (status, stdout, _) = with(&["--help"]);
            assert_eq!(status, ExitStatus::Done);
            assert!(stdout.contains("--command-key-pattern"), "{stdout}");
            let (status, stdout, _) = with(&["-v"]);
            assert_eq!(status, ExitStatus::Done);
            assert!(stdout.starts_with("kvlab "), "{stdout}");
            // -h is the host: without one its argument is missing.
            let (status, stdout, stderr) = with(&["-h"]);
            assert_eq!((status, stdout.as_str()), (ExitStatus::Usage, ""));
            assert_eq!(stderr, "error: --host: expected HOST, found nothing\n");
            let (status, _, stderr) = with(&["-t", "0"]);
            assert_eq!(status, ExitStatus::Usage);
            assert!(
                stderr.starts_with("error: --threads: expected "),
                "{stderr}"
            );
        }
    }

    #[test]
    fn serve_prints_its_configuration() {
        let (status, stdout, stderr) = kvlab(&["serve", "--seed", "7", "--print-config"]);
        assert_eq!((status, stderr.as_str()), (ExitStatus::Done, ""));
        assert!(stdout.contains("\nseed = 7\n"), "{stdout}");
    }
}
