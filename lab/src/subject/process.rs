//! A tool as a child process: in a group of its own, bounded in time and in what it may print.
//!
//! When the time is over, or the grading is interrupted, the whole group is killed, so that nothing
//! the tool started stays behind. Output beyond the bound is read and thrown away, so that a tool
//! that prints without end neither fills the memory nor blocks.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use kvlab_bench_client::Control;
use kvlab_timing::Clock;
use rustix::process::{Pid, Signal, kill_process_group};

/// The bounds of a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// It is killed after this time.
    pub time: Duration,
    /// Bytes of stdout, and as many of stderr, that are kept.
    pub output: usize,
}

/// How a process ended, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// The beginning of its stdout, as text.
    pub stdout: String,
    /// The beginning of its stderr, as text.
    pub stderr: String,
    /// Whether it printed more than was kept.
    pub is_cut: bool,
    /// How long it ran.
    pub elapsed: Duration,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that somebody else sent.
    Signalled(i32),
    /// It was still running when its time was over, and was killed.
    Hung,
    /// The grading was interrupted, and it was killed.
    Interrupted,
}

/// Runs a program to its end, or until a limit or `control` ends it.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn run(mut command: Command, limits: &Limits, control: &Control) -> io::Result<Finished> {
    let clock = Clock::real();
    let started = clock.now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Numbers with a point, messages in English.
        .env("LC_ALL", "C")
        .process_group(0)
        .spawn()?;
    let stdout = keep(child.stdout.take(), limits.output);
    let stderr = keep(child.stderr.take(), limits.output);
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break match (status.code(), status.signal()) {
                (Some(code), _) => End::Exited(code),
                (None, signal) => End::Signalled(signal.unwrap_or(0)),
            };
        }
        if control.is_stopped() {
            break End::Interrupted;
        }
        if clock.now().saturating_since(started) >= nanos(limits.time) {
            break End::Hung;
        }
        thread::sleep(GLANCE);
    };
    let elapsed = Duration::from_nanos(clock.now().saturating_since(started));
    // What it left behind goes with it, whichever way it ended.
    kill_group(&mut child, ended)?;
    let (stdout, stdout_cut) = kept(&stdout);
    let (stderr, stderr_cut) = kept(&stderr);
    Ok(Finished {
        end: ended,
        stdout,
        stderr,
        is_cut: stdout_cut || stderr_cut,
        elapsed,
    })
}

/// Kills the group of a child that still runs, and takes its exit status.
fn kill_group(child: &mut Child, ended: End) -> io::Result<()> {
    if !matches!(ended, End::Hung | End::Interrupted) {
        return Ok(());
    }
    // The child has not been waited for, so its number still names it and its group.
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    match group.map(|group| kill_process_group(group, Signal::KILL)) {
        Some(Ok(())) => {}
        _ => child.kill()?,
    }
    child.wait().map(drop)
}

/// Reads a pipe to its end on a thread and keeps the first `most` bytes.
fn keep<R: Read + Send + 'static>(pipe: Option<R>, most: usize) -> Receiver<(Vec<u8>, bool)> {
    let (sender, receiver) = mpsc::channel();
    let Some(mut pipe) = pipe else {
        return receiver;
    };
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut cut = false;
        let mut chunk = vec![0; CHUNK];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => {
                    let room = most.saturating_sub(bytes.len());
                    cut |= count > room;
                    bytes.extend_from_slice(chunk.get(..count.min(room)).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Nobody waits any more when a process that outlived its group holds the pipe.
        let _ = sender.send((bytes, cut));
    });
    receiver
}

fn kept(receiver: &Receiver<(Vec<u8>, bool)>) -> (String, bool) {
    let (bytes, cut) = receiver.recv_timeout(PIPE_PATIENCE).unwrap_or_default();
    (String::from_utf8_lossy(&bytes).into_owned(), cut)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How often it is looked after; rarely enough to leave the cores to server and tool.
const GLANCE: Duration = Duration::from_millis(10);
/// How long the pipes of a process that has ended may stay open in other hands.
const PIPE_PATIENCE: Duration = Duration::from_secs(2);
const CHUNK: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    fn limits(time: Duration, output: usize) -> Limits {
        Limits { time, output }
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn output_and_exit_code_are_kept() {
        let script = "echo out; echo err >&2; exit 3";
        let finished = run(shell(script), &limits(LONG, 100), &Control::new()).unwrap();
        assert_eq!(finished.end, End::Exited(3));
        assert_eq!((&*finished.stdout, &*finished.stderr), ("out\n", "err\n"));
        assert!(!finished.is_cut);
    }

    #[test]
    fn a_signal_is_told_apart_from_an_exit() {
        let finished = run(shell("kill -9 $$"), &limits(LONG, 100), &Control::new()).unwrap();
        assert_eq!(finished.end, End::Signalled(9));
    }

    #[test]
    fn what_hangs_is_killed_with_all_its_children() {
        // The grandchild would hold the pipe for a minute.
        let script = "echo begun; sleep 60 & sleep 60";
        let short = limits(Duration::from_millis(300), 100);
        let finished = run(shell(script), &short, &Control::new()).unwrap();
        assert_eq!(finished.end, End::Hung);
        assert_eq!(finished.stdout, "begun\n");
        assert!(finished.elapsed < LONG, "{:?}", finished.elapsed);
    }

    #[test]
    fn an_interruption_ends_it() {
        let control = Control::new();
        control.stop();
        let finished = run(shell("sleep 60"), &limits(LONG, 100), &control).unwrap();
        assert_eq!(finished.end, End::Interrupted);
    }

    #[test]
    fn output_is_bounded_and_what_exceeds_it_does_not_block() {
        let script = "i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done";
        let finished = run(shell(script), &limits(LONG, 1000), &Control::new()).unwrap();
        assert_eq!(finished.end, End::Exited(0));
        assert_eq!((finished.stdout.len(), finished.is_cut), (1000, true));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let command = Command::new("/nonexistent/tool");
        assert!(run(command, &limits(LONG, 10), &Control::new()).is_err());
    }
}
