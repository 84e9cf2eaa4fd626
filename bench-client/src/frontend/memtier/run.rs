//! `kvlab memtier`: from arguments to the exit status.
//!
//! ```text
//! parse, check, resolve      no server, no file of results yet: mistakes end here
//! files, address, settings   what cannot be written or found ends here
//! run 1 … run N              the engine, watched second by second
//! tables, JSON, files        also when a run was broken or interrupted
//! ```

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::time::Duration;

use kvlab_timing::{Clock, WallClock};

use super::check::check;
use super::client_csv::ClientStats;
use super::failed_keys::FailedKeys;
use super::files::{Files, Places, write_all};
use super::getopt::{self, Given};
use super::graphite::Graphite;
use super::model::{Results, Row, Run, Verification};
use super::options::{Family, Options};
use super::plan::{Endpoint, Length, Plan};
use super::progress::Meter;
use super::realtime::Realtime;
use super::recorder::{Recorder, RowPlan};
use super::statsd::Statsd;
use super::translate::Translation;
use super::verification::Verdict;
use super::watch::Watch;
use super::{Name, Refusal, help, misses, show_config, text};
use crate::engine::{Control, RunError, Silent, TlsFault, run as run_engine};
use crate::frontend::native::Addresses;
use crate::frontend::{Companion, ExitStatus, SignalWatch};
use crate::host::{self, Host};
use crate::record::{ErrorKind, Notice, Outcomes};
use crate::report::Head;
use crate::report::html::{RunPart, Runs};
use crate::settings::{Address, Settings};

/// Runs memtier's command line, without the name of the program. Without a companion `--certify` is
/// refused.
///
/// Tables go to `stdout` or `--out-file`; progress, notes and errors go to `stderr`. SIGINT and
/// SIGTERM are taken over while it runs: the first ends the load and the tables of what was
/// measured are printed, the second ends the process.
pub fn run<A>(
    arguments: A,
    companion: Option<&mut dyn Companion>,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> ExitStatus
where
    A: IntoIterator<Item: Into<OsString>>,
{
    let given = match getopt::parse(arguments) {
        Ok(given) => given,
        Err(error) => return Refusal::from(error).tell(stderr),
    };
    let asked = |name| given.iter().any(|one| one.name == name);
    for (name, text) in [
        (Name::Help, help::help as fn() -> String),
        (Name::Version, help::version),
    ] {
        if asked(name) {
            // A reader that is gone has read enough.
            let _ = stdout.write_all(text().as_bytes());
            return ExitStatus::Done;
        }
    }
    match Session::prepare(&given, companion, stdout, stderr) {
        Ok(session) => session.run(stdout, stderr),
        Err(refusal) => refusal.tell(stderr),
    }
}

/// All that can fail without a server is done.
struct Session<'a> {
    plan: Plan,
    /// With `--certify`.
    companion: Option<&'a mut dyn Companion>,
    /// With `--html`.
    page: Option<Runs>,
    settings: Settings,
    rows: RowPlan,
    files: Files,
    failed_keys: Option<FailedKeys>,
    statsd: Option<Statsd>,
    graphite: Option<Graphite>,
}

impl<'a> Session<'a> {
    fn prepare(
        given: &[Given],
        companion: Option<&'a mut dyn Companion>,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> Result<Self, Refusal> {
        let options = Options::read(given)?;
        let mut note = |text: &str| {
            // Where stderr is closed nobody wants to know.
            let _ = writeln!(stderr, "{text}");
        };
        for warning in check(&options)? {
            note(&format!("warning: {warning}"));
        }
        let plan = Plan::resolve(options, entropy())?;
        for line in &plan.notes {
            note(line);
        }
        let certify = plan.own_output.certify;
        if certify && companion.is_none() {
            return Err(Refusal::usage(
                "--certify: this program has no known server",
            ));
        }
        // What is not there is said before anything is written.
        plan.translate(SocketAddr::from(([0, 0, 0, 0], 0)))
            .map_err(Refusal::usage)?;
        let files = Files::create(plan.places())
            .map_err(|error| Refusal::new(ExitStatus::Failed, error))?;
        if plan.output.show_config {
            let _ = stderr.write_all(show_config::FRAME_ABOVE.as_bytes());
            let _ = stdout.write_all(show_config::render(&plan.config()).as_bytes());
            let _ = stderr.write_all(show_config::FRAME_BELOW.as_bytes());
        }
        let address = plan.address()?;
        let Translation { mut settings, rows } = plan.translate(address).map_err(Refusal::usage)?;
        settings.tls = plan.tls_settings()?;
        settings.check().map_err(Refusal::usage)?;
        settings.record_rows = plan.output.client_stats.is_some();
        make_room(&settings, plan.cluster.is_some())?;
        let failed_keys = failed_keys(&plan, &rows, &settings, stderr);
        let (statsd, graphite) = metrics(&plan, stderr).unzip();
        Ok(Self {
            companion: companion.filter(|_| certify),
            page: plan
                .own_output
                .html
                .is_some()
                .then(|| Runs::new("kvlab memtier")),
            plan,
            settings,
            rows,
            files,
            failed_keys,
            statsd,
            graphite,
        })
    }

    fn run(mut self, stdout: &mut dyn Write, stderr: &mut dyn Write) -> ExitStatus {
        let control = Control::new();
        let _watch = match SignalWatch::start(control.clone()) {
            Ok(watch) => watch,
            Err(error) => {
                let text = format_args!("cannot watch for signals: {error}");
                return Refusal::new(ExitStatus::Failed, text).tell(stderr);
            }
        };
        let mut end = End::default();
        if let (true, Length::Requests(each)) = (self.plan.all_keys, self.plan.length) {
            let printed = self.files.print(stdout, &text::requests_set(each));
            end.failures.extend(printed.err().map(|e| e.to_string()));
        }
        let mut runs = Vec::new();
        let (verify, verify_only) = match &self.plan.import {
            Some(import) => (import.verify, import.verify_only),
            None => (false, false),
        };
        let asked = if verify_only { 0 } else { self.plan.runs };
        for number in 1..=asked {
            let run = self.one(number, &control, &mut end, stdout, stderr);
            let whole = run.is_whole();
            runs.push(run);
            if !whole || control.is_stopped() {
                break;
            }
        }
        if let Some(Err(error)) = self.failed_keys.take().map(FailedKeys::finish) {
            let _ = writeln!(stderr, "warning: --failed-keys-file: {error}");
        }
        // What a run wrote that did not come to its end is not known.
        let verification = if verify && runs.iter().all(Run::is_whole) {
            self.verify(runs.last(), &control, &mut end)
        } else {
            None
        };
        let results = Results {
            config: self.plan.config(),
            heading: self.plan.heading(),
            layout: self.plan.layout(),
            runs,
            verification,
        };
        let mut errors = self.files.finish(&results, stdout);
        if let Some(page) = self.page.as_ref().and_then(Runs::render) {
            errors.extend(self.files.page(&page).err());
        }
        end.failures.extend(errors.iter().map(ToString::to_string));
        end.conclude(&self.plan, &results.runs, stderr)
    }

    /// Reads again what the last run wrote.
    fn verify(&self, last: Option<&Run>, control: &Control, end: &mut End) -> Option<Verification> {
        let sets = last.map(|run| run.rows.first().map_or(0, Row::good));
        let Some((settings, keys)) = self.plan.verification(&self.settings, sets) else {
            return Some(Verification::default());
        };
        match run_engine(&settings, control, &mut Silent) {
            Ok(result) => {
                let verdict = Verdict::of(keys, &result.summary);
                end.interrupted |= result.summary.interrupted;
                end.verdict = (verdict.counts.failed > 0).then_some(verdict);
                Some(verdict.counts)
            }
            Err(error) => {
                let text = format_args!("--data-verify: {error}");
                end.refusal = Some(Refusal::new(ExitStatus::of_run(&error), text));
                None
            }
        }
    }

    /// One run.
    fn one(
        &mut self,
        number: u32,
        control: &Control,
        end: &mut End,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> Run {
        let layout = self.plan.layout();
        // Where stderr is closed nobody wants to know.
        let _ = writeln!(stderr, "[RUN #{number}] Preparing benchmark client...");
        let stairs = self.plan.staircase_plan();
        if let Some(stairs) = &stairs {
            let _ = stderr.write_all(stairs.render(number).as_bytes());
        }
        self.settings.seed = self.plan.seed_of_run(number);
        let mut settings = self.settings.clone();
        if let Some(companion) = &mut self.companion {
            companion.before(&mut settings, control, stderr);
        }
        let _ = writeln!(stderr, "[RUN #{number}] Launching threads now...");
        let wall = WallClock::real(Clock::real());
        settings.failures = self.failed_keys.as_ref().map(FailedKeys::log);
        let (threads, clients) = (self.plan.threads, self.plan.clients);
        let mut watch = Watch {
            number,
            recorder: Recorder::new(number, self.rows.clone(), &layout.percentiles, wall)
                .with_staircase(stairs),
            meter: Meter::new(number, threads, clients, layout.from).with_staircase(stairs),
            realtime: self.plan.output.realtime_latencies.then(|| {
                let seconds = self
                    .plan
                    .output
                    .latency_window
                    .unwrap_or(DEFAULT_WINDOW_SECONDS);
                let window = Duration::from_secs(u64::from(seconds));
                Realtime::new(window, &layout.percentiles, layout.from)
            }),
            page: self.page.is_some().then(RunPart::default),
            rows: &self.rows,
            layout: &layout,
            files: &mut self.files,
            statsd: self.statsd.as_ref(),
            control,
            stdout,
            stderr,
            failures: Vec::new(),
        };
        mark(
            self.graphite.as_ref(),
            watch.stderr,
            &format!("run {number} begins"),
        );
        let mut result = run_engine(&settings, control, &mut watch);
        settings.failures = None;
        mark(
            self.graphite.as_ref(),
            watch.stderr,
            &format!("run {number} is over"),
        );
        if let (Some(companion), Ok(result)) = (&mut self.companion, &mut result) {
            companion.after(&mut result.summary, control);
        }
        if let (Some(page), Some(part), Ok(result)) = (&mut self.page, watch.page.take(), &result) {
            let head = Head {
                program: concat!("kvlab ", env!("CARGO_PKG_VERSION")).to_owned(),
                target: self.plan.server_shown(),
                settings,
                host: Host::read(),
                wall,
            };
            page.add(head, part, &result.summary);
        }
        let recorder = std::mem::replace(
            &mut watch.recorder,
            Recorder::new(number, self.rows.clone(), &[], wall),
        );
        let run = match &result {
            Ok(result) => recorder.finish(&result.summary),
            Err(error) => recorder.fail(error.to_string()),
        };
        if run.interrupted {
            let seconds = run.duration.as_secs_f64();
            let _ = writeln!(
                watch.stderr,
                "\n[RUN #{number}] Interrupted by user (Ctrl+C) after {seconds:.1} secs, stopping \
                 threads..."
            );
        }
        end.failures.extend(watch.finish(&run));
        if let (true, Ok(result)) = (self.plan.reconnect.on_error, &result) {
            let lost = result.summary.tally.connects.lost;
            let _ = writeln!(
                stderr,
                "[RUN #{number}] {lost} connections were lost with --reconnect-on-error"
            );
        }
        if !self.plan.output.miss_tracking_off {
            let threshold = self.plan.output.miss_rate_threshold;
            for warning in misses::warnings(&run, threshold.unwrap_or(MISS_RATE_THRESHOLD)) {
                let _ = writeln!(stderr, "{warning}");
            }
        }
        match &result {
            Ok(result) => {
                end.outcomes += result.summary.tally.outcomes();
                let errors = result.summary.tally.errors();
                let of_kind = |kind: &&[u8]| errors.get(&ErrorKind::new(kind)).copied();
                end.about_commands += ABOUT_COMMANDS.iter().filter_map(of_kind).sum::<u64>();
                end.interrupted |= result.summary.interrupted;
                for notice in &result.summary.notices {
                    match notice {
                        Notice::ServerLost(loss) => {
                            end.lost = Some(format!(
                                "the connection to {} was lost: {}; the results cover what was \
                                 measured before",
                                loss.address, loss.error
                            ));
                        }
                        Notice::ConnectionsMissing { wanted, up } => {
                            end.lost =
                                Some(format!("only {up} of {wanted} connections could be made"));
                        }
                        _ => {}
                    }
                }
                if let Some(prefix) = &self.plan.output.client_stats {
                    let stats = ClientStats {
                        run: number,
                        rows: &result.rows,
                        plan: &self.rows,
                        layout: &layout,
                        begin: result.summary.started,
                        threads,
                        clients,
                    };
                    let errors = write_all(&stats.render(prefix));
                    end.failures.extend(errors.iter().map(ToString::to_string));
                }
            }
            Err(error) => {
                let text = format_args!("{error}{}", remedy(error));
                end.refusal = Some(Refusal::new(ExitStatus::of_run(error), text));
            }
        }
        run
    }
}

/// How it ended.
#[derive(Debug, Default)]
struct End {
    outcomes: Outcomes,
    /// Errors about the command that was sent, or the type of the value it met.
    about_commands: u64,
    interrupted: bool,
    /// The server went away for good, or did not take all connections.
    lost: Option<String>,
    /// A run that did not come about.
    refusal: Option<Refusal>,
    /// What was written is not there.
    verdict: Option<Verdict>,
    /// What could not be written.
    failures: Vec<String>,
}

impl End {
    /// Says what went wrong, and gives the status of the gravest of it.
    fn conclude(&self, plan: &Plan, runs: &[Run], stderr: &mut dyn Write) -> ExitStatus {
        let mut status = ExitStatus::Done;
        for failure in &self.failures {
            status = Refusal::new(ExitStatus::Failed, failure).tell(stderr);
        }
        let outcomes = self.judged(plan, stderr);
        if plan.max_errors.is_exceeded(&outcomes) {
            let text = format_args!(
                "{} of {} requests failed, more than --max-errors allows",
                outcomes.failed(),
                self.outcomes.total()
            );
            status = Refusal::new(ExitStatus::TooManyErrors, text).tell(stderr);
        }
        if let Some(verdict) = &self.verdict {
            status = Refusal::new(ExitStatus::TooManyErrors, verdict).tell(stderr);
        }
        if let Some(lost) = &self.lost {
            status = Refusal::new(ExitStatus::NoConnection, lost).tell(stderr);
        }
        if let Some(refusal) = &self.refusal {
            status = refusal.tell(stderr);
        }
        if self.interrupted || runs.iter().any(|run| run.interrupted) {
            status = ExitStatus::Interrupted;
        }
        status
    }

    /// What `--max-errors` is held against. Beside requests that went well, a command of one's own
    /// that the server does not take, or that meets a value of another type, did what was asked
    /// for; it is an error in the tables all the same.
    fn judged(&self, plan: &Plan, stderr: &mut dyn Write) -> Outcomes {
        let mut outcomes = self.outcomes;
        let good = outcomes.hits + outcomes.misses;
        if plan.tolerates_own_commands && good > 0 && self.about_commands > 0 {
            outcomes.errors = outcomes.errors.saturating_sub(self.about_commands);
            // Where stderr is closed nobody wants to know.
            let _ = writeln!(
                stderr,
                "warning: {} of {} requests were refused for the command itself (ERR, WRONGTYPE): \
                 they are in no rate, and fail the test with --max-errors alone",
                self.about_commands,
                self.outcomes.total()
            );
        }
        outcomes
    }
}

impl Plan {
    /// Where the results go.
    fn places(&self) -> Places {
        let shown = |path: &Option<std::path::PathBuf>| {
            path.as_ref().map(|path| path.display().to_string())
        };
        Places {
            out_file: shown(&self.output.out_file),
            json_out_file: shown(&self.output.json_out_file),
            hdr_file_prefix: self.output.hdr_file_prefix.clone(),
            client_stats: self.output.client_stats.clone(),
            json_lines: shown(&self.own_output.json_lines),
            html: shown(&self.own_output.html),
        }
    }

    /// The server as shown to people.
    fn server_shown(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Endpoint::Tcp { host, port, .. } => format!("{host}:{port}"),
            Endpoint::Unix(path) => path.display().to_string(),
        }
    }

    /// Looks up the address of the server.
    fn address(&self) -> Result<Address, Refusal> {
        let (host, port, family) = match &self.endpoint {
            Endpoint::Tcp { host, port, family } => (host, port, family),
            Endpoint::Unix(path) => return Ok(Address::unix(path)),
        };
        let wanted = |address: &SocketAddr| match family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        };
        Addresses::lookup_among(host, *port, self.reconnect.timeout, wanted)
            .map(|addresses| addresses.first.into())
            .map_err(|error| {
                Refusal::new(
                    ExitStatus::NoConnection,
                    format_args!("cannot find the host {host:?}: {error}"),
                )
            })
    }
}

/// The file of what failed. One that cannot be written is no reason not to measure.
fn failed_keys(
    plan: &Plan,
    rows: &RowPlan,
    settings: &Settings,
    stderr: &mut dyn Write,
) -> Option<FailedKeys> {
    let path = plan.failed_keys.as_ref()?;
    let wall = WallClock::real(Clock::real());
    FailedKeys::open(path, rows, settings, wall)
        .map_err(|error| {
            // Where stderr is closed nobody wants to know.
            let path = path.display();
            let _ = writeln!(stderr, "warning: --failed-keys-file: {path}: {error}");
        })
        .ok()
}

/// The connections of a cluster are as many times more as it has primaries, which is known only when
/// the first of them answers: there is room for the largest that there is, if it can be had.
fn make_room(settings: &Settings, cluster: bool) -> Result<(), Refusal> {
    let files = host::files_of(settings.threads, settings.connections);
    host::make_room_for_files(files).map_err(|limit| {
        Refusal::usage(format_args!(
            "--clients: {} connections need {files} open files, the limit is {limit} (ulimit -n)",
            settings.connections
        ))
    })?;
    if cluster {
        let all = settings.connections.saturating_mul(MOST_PRIMARIES);
        host::make_room_up_to(host::files_of(settings.threads, all));
    }
    Ok(())
}

/// Nodes that the specification of Redis clusters is made for.
const MOST_PRIMARIES: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

/// The metrics server, and the marks on its time line. One that cannot be found is no reason not to
/// measure.
fn metrics(plan: &Plan, stderr: &mut dyn Write) -> Option<(Statsd, Graphite)> {
    let options = &plan.output.statsd;
    let host = options.host.as_deref()?;
    let made = (host, options.port)
        .to_socket_addrs()
        .and_then(|mut found| {
            let none = || std::io::Error::other("the name has no address");
            found.next().ok_or_else(none)
        })
        .and_then(|server| {
            let statsd = Statsd::new(server, &options.prefix, &options.run_label)?;
            let graphite = Graphite {
                server: SocketAddr::new(server.ip(), options.graphite_port),
                tags: vec![options.prefix.clone(), options.run_label.clone()],
            };
            Ok((statsd, graphite))
        });
    made.map_err(|error| {
        // Where stderr is closed nobody wants to know.
        let _ = writeln!(stderr, "warning: no metrics are sent to {host}: {error}");
    })
    .ok()
}

/// Sets a mark on the time line; without a server for it that is said on stderr.
fn mark(graphite: Option<&Graphite>, stderr: &mut dyn Write, what: &str) {
    let Some(graphite) = graphite else {
        return;
    };
    if let Err(error) = graphite.event(what, "") {
        // Where stderr is closed nobody wants to know.
        let _ = writeln!(stderr, "warning: no mark is set in Graphite: {error}");
    }
}

/// What options there are against a fault of TLS.
fn remedy(error: &RunError) -> &'static str {
    let RunError::Tls { fault, .. } = error else {
        return "";
    };
    match fault {
        TlsFault::Untrusted => {
            "; --cacert FILE names the authority to trust, --tls-skip-verify accepts any certificate"
        }
        TlsFault::OtherName { .. } => {
            "; --sni NAME looks for another name, --tls-skip-verify for none"
        }
        TlsFault::CertificateRequired => "; --cert FILE and --key FILE give it one",
        TlsFault::NoTls => "; leave out --tls, or name the server's TLS port",
        _ => "",
    }
}

/// Bits that differ from call to call: keys of the standard library's hash maps are made of what
/// the system calls random.
fn entropy() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// Percent of misses without `--miss-rate-threshold`.
const MISS_RATE_THRESHOLD: f64 = 1.0;
/// Errors that say something about the command, not about the server's state.
const ABOUT_COMMANDS: [&[u8]; 2] = [b"ERR", b"WRONGTYPE"];
/// Length of the sliding window without `--latency-window`.
const DEFAULT_WINDOW_SECONDS: u32 = 60;
