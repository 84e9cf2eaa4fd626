//! `--find-rate`: trials on real sockets, one after the other, until the search has its answer.

use std::io::Write;

use kvlab_timing::{Clock, Rate, WallClock};

use super::session::{Refusal, refusal, resolve};
use super::sinks::Failures;
use super::{BenchArgs, UsageError};
use crate::engine::{Control, run as run_engine};
use crate::frontend::{ExitStatus, SignalWatch};
use crate::host::Host;
use crate::report::{FoundRate, Head};
use crate::search::{Answer, End, Search, Step, Trial, Watch};
use crate::settings::Settings;

/// Searches, prints a line for each trial to `stderr` and the answer to `stdout`.
pub(super) fn run(args: &BenchArgs, stdout: &mut dyn Write, stderr: &mut dyn Write) -> ExitStatus {
    match Session::prepare(args) {
        Ok(session) => session.run(stdout, stderr),
        Err(refusal) => refusal.tell(stderr),
    }
}

struct Session<'a> {
    args: &'a BenchArgs,
    settings: Settings,
    search: Search,
    control: Control,
}

impl<'a> Session<'a> {
    fn prepare(args: &'a BenchArgs) -> Result<Self, Refusal> {
        let usage = |error: UsageError| Refusal::new(ExitStatus::Usage, error);
        for (option, given) in [
            ("--csv", args.output.csv.is_some()),
            ("--hdr-log", args.output.hdr_log.is_some()),
            ("--html", args.output.html.is_some()),
            ("--start-at", args.measure.start_at.is_some()),
        ] {
            if given {
                let expected = "no --find-rate beside it";
                return Err(usage(UsageError::new(option, expected, "--find-rate")));
            }
        }
        let first = args.load.rate.unwrap_or(first_rate());
        let plan = args.search.plan(first).map_err(usage)?;
        let settings = resolve(&args.search.trial_args(args, first))?;
        for objective in &plan.objectives {
            if objective.limit >= settings.timeout {
                let expected = "a limit below --timeout, after which nothing is measured";
                return Err(usage(UsageError::new("--slo", expected, objective)));
            }
        }
        Ok(Self {
            args,
            settings,
            search: Search::new(plan),
            control: Control::new(),
        })
    }

    fn run(mut self, stdout: &mut dyn Write, stderr: &mut dyn Write) -> ExitStatus {
        let _watch = match SignalWatch::start(self.control.clone()) {
            Ok(watch) => watch,
            Err(error) => {
                let text = format_args!("cannot watch for signals: {error}");
                return Refusal::new(ExitStatus::Failed, text).tell(stderr);
            }
        };
        let mut cut_short = None;
        let answer = loop {
            match self.search.next() {
                Step::Done(answer) => break answer,
                Step::Try(rate) => {
                    cut_short = self.try_rate(rate, stderr).err();
                    if cut_short.is_some() {
                        break self.search.interrupted();
                    }
                }
            }
        };
        let mut status = self.report(&answer, stdout, stderr);
        if let Some(refusal) = cut_short {
            status = refusal.tell(stderr);
        }
        status
    }

    /// Makes a trial, and says how it came out.
    fn try_rate(&mut self, rate: Rate, stderr: &mut dyn Write) -> Result<(), Refusal> {
        let trial_args = self.args.search.trial_args(self.args, rate);
        let mut settings = self.settings.clone();
        trial_args
            .load
            .apply(&mut settings)
            .map_err(|error| Refusal::new(ExitStatus::Usage, error))?;
        // Other arrivals, keys and values each time, but the same in each search.
        let number = self.search.trials();
        settings.seed = settings.seed.wrapping_add(u64::from(number));
        if let Some(length) = settings.stop.duration {
            settings.interval = length / STRETCHES;
        }
        let mut watch = Watch::new(&self.search.plan().objectives);
        let result = run_engine(&settings, &self.control, &mut watch).map_err(|e| refusal(&e))?;
        if self.control.is_stopped() {
            let text = "interrupted: the answer holds what was found until then";
            return Err(Refusal::new(ExitStatus::Interrupted, text));
        }
        let trial = watch.finish(&result.summary);
        let line = self.line(rate, &trial);
        let standing = self.search.record(rate, trial);
        if !self.args.output.quiet {
            // Where stderr is closed nobody wants to know.
            let _ = writeln!(stderr, "trial {}: {line}: {}", number + 1, standing.name());
        }
        Ok(())
    }

    fn line(&self, rate: Rate, trial: &Trial) -> String {
        let quantiles = self
            .search
            .plan()
            .objectives
            .iter()
            .zip(&trial.quantiles_ns);
        let mut parts: Vec<String> = quantiles
            .map(|(objective, ns)| {
                #[expect(clippy::cast_precision_loss, reason = "shown with three decimals")]
                let ms = *ns as f64 / 1e6;
                format!(
                    "{} {} {ms:.3} ms",
                    objective.kind.name(),
                    objective.quantile_name()
                )
            })
            .collect();
        if trial.failed > 0 {
            parts.push(format!("{} of {} failed", trial.failed, trial.due));
        }
        if trial.piles_up() {
            parts.push("requests pile up".to_owned());
        }
        format!("{rate}/s, {}", parts.join(", "))
    }

    fn report(
        &self,
        answer: &Answer,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> ExitStatus {
        let head = Head {
            program: concat!("kvlab ", env!("CARGO_PKG_VERSION")).to_owned(),
            target: self.args.url.to_string(),
            settings: self.settings.clone(),
            host: Host::read(),
            wall: WallClock::real(Clock::real()),
        };
        let found = FoundRate {
            head: &head,
            search: &self.search,
            answer,
        };
        let mut failures = Failures::default();
        let json = self.args.output.json.as_ref();
        let json_to_stdout = json.is_some_and(|path| path.as_os_str() == "-");
        let written = match json {
            None => Ok(()),
            Some(_) if json_to_stdout => found.json(&mut *stdout),
            Some(path) => std::fs::File::create(path).and_then(|file| found.json(file)),
        };
        if let Err(error) = written {
            let name = json.map_or("stdout".to_owned(), |path| path.display().to_string());
            failures.add(if json_to_stdout { "stdout" } else { &name }, &error);
        }
        let printed = if json_to_stdout {
            found.text(&mut *stderr)
        } else {
            found.text(stdout)
        };
        if let Err(error) = printed {
            failures.add(if json_to_stdout { "stderr" } else { "stdout" }, &error);
        }
        let mut status = status_of(answer);
        for message in &failures.messages {
            status = Refusal::new(ExitStatus::Failed, message).tell(stderr);
        }
        status
    }
}

fn status_of(answer: &Answer) -> ExitStatus {
    match answer.end {
        End::Found | End::AtMost => ExitStatus::Done,
        End::AtLeast => ExitStatus::Failed,
        End::OutOfTrials if answer.met.is_some() && answer.broken.is_some() => ExitStatus::Done,
        End::ClientLimit | End::OutOfTrials => ExitStatus::Void,
    }
}

/// The rate to begin with where none is given.
fn first_rate() -> Rate {
    // Never 0, so this cannot fail.
    Rate::per_second(1_000).unwrap_or(Rate::MIN)
}

/// Parts that a trial is cut into.
const STRETCHES: u32 = 20;
