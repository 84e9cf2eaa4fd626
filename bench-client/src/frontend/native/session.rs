//! One run of the native front end, from the options to the exit status.

use std::io::{self, IsTerminal, Write};

use kvlab_timing::{Clock, WallClock};

use super::sinks::{Failures, OpenError, Opened, Sinks};
use super::{Addresses, BenchArgs, find_rate, moment};
use crate::engine::{Control, RunError, TlsFault, run as run_engine};
use crate::frontend::companion::Nobody;
use crate::frontend::{Companion, ExitStatus, SignalWatch};
use crate::host::{self, Host};
use crate::record::{Notice, Summary};
use crate::report::Head;
use crate::settings::Settings;

/// Runs the load that the options describe.
///
/// Results go to `stdout`; the line per second, notes and errors go to `stderr`. SIGINT and
/// SIGTERM are taken over while it runs: the first ends the load and the summary of what was
/// measured is printed, the second ends the process.
pub fn run(args: &BenchArgs, stdout: &mut dyn Write, stderr: &mut dyn Write) -> ExitStatus {
    run_beside(args, &mut Nobody, stdout, stderr)
}

/// As [`run`], with a companion.
pub fn run_beside(
    args: &BenchArgs,
    companion: &mut dyn Companion,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> ExitStatus {
    if args.search.find_rate {
        return find_rate::run(args, stdout, stderr);
    }
    match prepare(args) {
        Ok(prepared) => prepared.run(args, companion, stdout, stderr),
        Err(refusal) => refusal.tell(stderr),
    }
}

/// Why a run did not come about, or has no result.
pub(super) struct Refusal {
    status: ExitStatus,
    text: String,
}

impl Refusal {
    pub(super) fn new(status: ExitStatus, text: impl ToString) -> Self {
        Self {
            status,
            text: text.to_string(),
        }
    }

    pub(super) fn tell(&self, stderr: &mut dyn Write) -> ExitStatus {
        // Where stderr is closed nobody wants to know.
        let _ = writeln!(stderr, "error: {}", self.text);
        self.status
    }
}

/// All that can fail without a server is done.
struct Prepared {
    settings: Settings,
    opened: Opened,
}

fn prepare(args: &BenchArgs) -> Result<Prepared, Refusal> {
    let settings = resolve(args)?;
    let opened = Opened::create(&args.output).map_err(|error| {
        let status = match error {
            OpenError::Usage(_) => ExitStatus::Usage,
            OpenError::File { .. } => ExitStatus::Failed,
        };
        Refusal::new(status, error)
    })?;
    Ok(Prepared { settings, opened })
}

/// The settings of the options, for a host whose addresses are looked up, with room for the files of
/// all connections.
pub(super) fn resolve(args: &BenchArgs) -> Result<Settings, Refusal> {
    let usage = |error: &dyn ToString| Refusal::new(ExitStatus::Usage, error.to_string());
    // The options are checked before the name of the host is looked up.
    let nowhere = Addresses::one(([0, 0, 0, 0], args.url.port).into());
    let settings = args.settings(&nowhere).map_err(|error| usage(&error))?;
    let settings = if args.connect.unix_socket.is_some() {
        settings
    } else {
        let (host, port) = (&args.url.host, args.url.port);
        let addresses =
            Addresses::lookup(host, port, settings.connect_timeout).map_err(|error| {
                Refusal::new(
                    ExitStatus::NoConnection,
                    format_args!("cannot find the host {host:?}: {error}"),
                )
            })?;
        args.settings(&addresses).map_err(|error| usage(&error))?
    };
    let files = host::files_of(settings.threads, settings.connections);
    host::make_room_for_files(files).map_err(|limit| {
        usage(&format_args!(
            "--connections: {} connections need {files} open files, the limit is {limit} (ulimit -n)",
            settings.connections
        ))
    })?;
    Ok(settings)
}

impl Prepared {
    fn run(
        self,
        args: &BenchArgs,
        companion: &mut dyn Companion,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> ExitStatus {
        let mut head = Head {
            program: concat!("kvlab ", env!("CARGO_PKG_VERSION")).to_owned(),
            target: match &args.connect.unix_socket {
                Some(path) => format!("{} at {}", args.url, path.display()),
                None => args.url.to_string(),
            },
            settings: self.settings,
            host: Host::read(),
            wall: WallClock::real(Clock::real()),
        };
        let control = Control::new();
        let _watch = match SignalWatch::start(control.clone()) {
            Ok(watch) => watch,
            Err(error) => {
                let text = format_args!("cannot watch for signals: {error}");
                return Refusal::new(ExitStatus::Failed, text).tell(stderr);
            }
        };
        if let Some(unix_ns) = head
            .settings
            .start_at_unix_ns
            .filter(|_| !args.output.quiet)
        {
            // Where stderr is closed nobody wants to know.
            let _ = writeln!(stderr, "the load begins at {}", moment::text(unix_ns));
        }
        companion.before(&mut head.settings, &control, stderr);
        let text_to_stdout = !self.opened.takes_stdout();
        let mut sinks = Sinks::machine(self.opened, &mut *stdout, &head, &control);
        if !args.output.quiet {
            sinks.live(&mut *stderr, io::stderr().is_terminal());
        }
        let mut summary = match run_engine(&head.settings, &control, &mut sinks) {
            Ok(result) => result.summary,
            Err(error) => {
                drop(sinks);
                return refusal(&error).tell(stderr);
            }
        };
        companion.after(&mut summary, &control);
        let connections = head.settings.connections;
        let mut failures = sinks.finish(&summary);
        if !failures.reader_gone {
            if text_to_stdout {
                failures.print("stdout", stdout, head, &summary);
            } else {
                failures.print("stderr", stderr, head, &summary);
            }
        }
        let required = args.connect.required(connections);
        conclude((args, required), &summary, &failures, stderr)
    }
}

/// What an engine without a result means for the shell.
pub(super) fn refusal(error: &RunError) -> Refusal {
    let status = ExitStatus::of_run(error);
    match error {
        RunError::Tls { fault, .. } => {
            Refusal::new(status, format_args!("{error}{}", remedy(fault)))
        }
        _ => Refusal::new(status, error),
    }
}

/// What options there are against a fault.
fn remedy(fault: &TlsFault) -> &'static str {
    match fault {
        TlsFault::Untrusted => {
            "; --tls-ca FILE names the authority to trust, --tls-skip-verify accepts any certificate"
        }
        TlsFault::OtherName { .. } => {
            "; --tls-server-name NAME looks for another name, --tls-skip-verify for none"
        }
        TlsFault::CertificateRequired => "; --tls-cert FILE and --tls-key FILE give it one",
        TlsFault::NoTls => "; connect without TLS, or to the server's TLS port",
        _ => "",
    }
}

/// Says on stderr what went wrong, and gives the status of the gravest of it.
fn conclude(
    (args, required): (&BenchArgs, Option<u64>),
    summary: &Summary,
    failures: &Failures,
    stderr: &mut dyn Write,
) -> ExitStatus {
    let mut status = ExitStatus::Done;
    for message in &failures.messages {
        status = Refusal::new(ExitStatus::Failed, message).tell(stderr);
    }
    if failures.reader_gone {
        return status;
    }
    let outcomes = summary.tally.outcomes();
    if args.output.error_limit().is_exceeded(&outcomes) {
        let text = format_args!(
            "{} of {} requests failed, more than --max-errors allows",
            outcomes.failed(),
            outcomes.total()
        );
        status = Refusal::new(ExitStatus::TooManyErrors, text).tell(stderr);
    }
    let (up, wanted) = (summary.connections_at_start, summary.connections_wanted);
    if let Some(required) = required.filter(|required| up < *required) {
        let text = format_args!(
            "ran with {up} of {wanted} connections, --require-connections asks for {required}"
        );
        status = Refusal::new(ExitStatus::TooFewConnections, text).tell(stderr);
    }
    for notice in &summary.notices {
        if let Notice::ServerLost(loss) = notice {
            let text = format_args!(
                "the connection to {} was lost: {}; the results cover what was measured before",
                loss.address, loss.error
            );
            status = Refusal::new(ExitStatus::NoConnection, text).tell(stderr);
        }
    }
    if summary.interrupted {
        status = ExitStatus::Interrupted;
    }
    status
}
