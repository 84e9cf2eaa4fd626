//! The command line of the server: `kvlab serve` and the small program `kvlab-server`.
//!
//! Options beat the configuration file, the file beats the defaults. Results (the addresses listened
//! on, statistics) go to stdout, everything else to stderr.
//!
//! Exit codes are those of all of kvlab. A server ends with 0 (it was told to stop by SIGINT or
//! SIGTERM, or help was asked for), with 1 (it served, but not all rows could be written) or with 2
//! (the command line, the file or an address cannot be used, or too few files may be open, so it did
//! not start).

mod files;
mod options;
mod port;
mod ports_file;
mod profiles;
mod settings;
mod statistics;
mod stop;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use clap::error::ErrorKind;

pub use files::TooFewFiles;
pub use options::ServeArgs;
pub use port::Port;
pub use settings::{OrNone, Settings, Time};
pub use statistics::Statistics;

use self::ports_file::PortsFile;
use self::profiles::ProfileList;
use self::stop::StopSignals;
use crate::profile::{Day, Profile, Source};
use crate::server::{MockServer, StartError};
use crate::shared::Addresses;
use crate::tls::CertificateSource;
use crate::truth::RowsLost;

/// A mock of a Redis and an Aerospike server, with a timing model.
///
/// Listens on 127.0.0.1:6379 for Redis clients and on 127.0.0.1:3000 for Aerospike clients, prints
/// the addresses and serves until it is interrupted.
#[derive(Debug, Parser)]
#[command(name = "kvlab-server", version)]
struct Program {
    #[command(flatten)]
    serve: ServeArgs,
}

/// Runs the program `kvlab-server`: `args` begins with its name.
pub fn run<A>(args: A, stdout: &mut dyn Write, stderr: &mut dyn Write) -> ExitCode
where
    A: IntoIterator<Item: Into<OsString> + Clone>,
{
    let program = match Program::try_parse_from(args) {
        Ok(program) => program,
        Err(message) => {
            // Nothing is left to be done when the message finds no reader.
            let text = message.render();
            return if matches!(
                message.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) {
                let _ = write!(stdout, "{text}");
                ExitCode::SUCCESS
            } else {
                let _ = write!(stderr, "{text}");
                ExitCode::from(CANNOT_START)
            };
        }
    };
    match serve(program.serve, stdout) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(stderr, "error: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Serves as `args` say until SIGINT or SIGTERM comes or nobody reads `stdout` any more.
///
/// # Errors
/// When the settings are of no use or the server cannot be started.
pub fn serve(args: ServeArgs, stdout: &mut dyn Write) -> Result<()> {
    match serve_and_print(args, stdout) {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        result => result,
    }
}

fn serve_and_print(args: ServeArgs, stdout: &mut dyn Write) -> Result<()> {
    let print_config = args.print_config;
    if args.list_profiles {
        write!(stdout, "{}", ProfileList::new()?)?;
        return Ok(stdout.flush()?);
    }
    let mut settings = args.settings()?;
    let profile = settings.profile.as_deref().map(Profile::find).transpose()?;
    if let Some(profile) = &profile {
        settings = settings.or(profile.settings.clone());
    }
    let config = settings.resolve()?;
    if print_config {
        if let Some(profile) = &profile {
            write!(stdout, "{}", profile.notes())?;
        }
        let printed = Settings::from_config(&config, &settings).to_toml();
        write!(stdout, "{printed}")?;
        return Ok(stdout.flush()?);
    }
    if let Some(profile) = &profile {
        tell(profile);
    }
    // Caught from here on, so that whoever sees the ports can stop the server cleanly.
    let stop = StopSignals::catch().context("cannot catch signals")?;
    let ports_file = settings
        .ports_file
        .as_deref()
        .map(PortsFile::new)
        .transpose()?;
    files::take_all(&config)?;
    let made_in_memory =
        config.speaks_tls() && config.tls.certificate == CertificateSource::InMemory;
    let server = MockServer::start(config).map_err(explain)?;
    let addresses = server.addresses();
    if let Some(file) = &ports_file {
        file.write(&addresses)?;
    }
    if made_in_memory {
        // Where stderr is closed nobody wants to know.
        let _ = writeln!(io::stderr(), "{MADE_IN_MEMORY}");
    }
    for (name, address) in listed(&addresses) {
        writeln!(stdout, "listening {name} {address}")?;
    }
    stdout.flush()?;
    stop.wait();
    let (truth, rows) = server.stop_all();
    if settings.stats {
        write!(stdout, "{}", Statistics(&truth.stats))?;
        stdout.flush()?;
    }
    Ok(rows?)
}

const MADE_IN_MEMORY: &str = "note: no certificate is given, so one was made for this run, and clients \
    that verify it will refuse it; --tls-self-signed DIR writes its authority for them to trust, \
    --tls-cert and --tls-key take a certificate of yours";

/// Says on stderr what a server under a profile rests on; where stderr is closed nobody wants to know.
fn tell(profile: &Profile) {
    let Profile { name, title, .. } = profile;
    let mut stderr = io::stderr();
    let _ = writeln!(
        stderr,
        "profile {name}: {title}; --print-config shows its settings, pages and guesses"
    );
    for source in profile.outdated(Day::today()) {
        let Source { page, gives, .. } = source;
        let day = source.day();
        let _ = writeln!(
            stderr,
            "profile {name}: {gives}: more than a year old, of {day}: {page}"
        );
    }
}

/// The addresses by the names that scripts know them by.
fn listed(addresses: &Addresses) -> impl Iterator<Item = (&'static str, std::net::SocketAddr)> {
    [
        ("redis", addresses.redis),
        ("aerospike", addresses.aerospike),
        ("shared", addresses.shared),
        ("redis-tls", addresses.redis_tls),
        ("aerospike-tls", addresses.aerospike_tls),
        ("shared-tls", addresses.shared_tls),
    ]
    .into_iter()
    .filter_map(|(name, address)| Some((name, address?)))
}

/// Adds to a refused address what to do about it.
fn explain(error: StartError) -> anyhow::Error {
    let hint = match &error {
        StartError::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            "another program listens there; choose a port with --redis-port, --aerospike-port or \
             --port (0 picks a free one, off opens none)"
        }
        StartError::NoPort => "give --redis-port, --aerospike-port or --port a number",
        _ => return error.into(),
    };
    anyhow::anyhow!("{error}: {hint}")
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// The exit code that stands for `error`.
#[must_use]
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<RowsLost>() {
        ROWS_LOST
    } else {
        CANNOT_START
    }
}

/// Exit code of a server that could not write all its rows.
const ROWS_LOST: u8 = 1;
/// Exit code of a server that did not start.
const CANNOT_START: u8 = 2;
