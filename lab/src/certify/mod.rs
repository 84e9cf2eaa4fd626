//! Certified results: how far can a latency figure be off?
//!
//! Before and after the measured run the same client drives the built-in mock server on the same
//! machine, with the same threads, connections, pipeline, rate, arrivals and payload and with a
//! delay law near the one seen. Of those runs the truth is known request by request, so they show what
//! client and machine add to the server's time; that is taken out of the measured quantiles
//! ([`unfold`]), and how well taking it out works on runs whose truth is known is the bound
//! ([`bound`]). `docs/accuracy.md` says what the bound means and what it does not cover.
//!
//! ```text
//! pilot on the real server            -> about which law
//! calibration run, first              -> what the machine adds, about; a better law
//! calibration runs before       x 4   -> with that law
//! the measured run
//! calibration runs after        x 4   -> with the law that the measured run showed
//! ```

pub mod bound;
pub mod calibration;
pub mod curve;
pub mod law;
pub mod unfold;

use std::time::Duration;

use kvlab_bench_client::Settings;
use kvlab_bench_client::record::{
    CalibrationRun, Certificate, CertifiedLatency, CertifiedQuantile, Summary,
};
use kvlab_bench_client::report::{QUANTILES, Quantile, Support};
use kvlab_bench_client::settings::{Load, Stop};
use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::latency::{Distribution, LatencyRules, LawError};

pub use calibration::{Calibration, Samples};

use crate::noise::MachineUse;
use crate::runner::{Evidence, PartError};
use curve::Curve;
use unfold::Blur;

/// A run of the client against a mock server of this configuration, which is filled by the first
/// settings before, if there are any.
pub type Drive<'a> =
    Box<dyn FnMut(ServerConfig, Option<Settings>, Settings) -> Result<Evidence, PartError> + 'a>;

/// Makes the certificate of one run.
pub struct Certifier<'a> {
    settings: Settings,
    drive: Drive<'a>,
    runs: Vec<Calibration>,
    /// Whether the real server finds what is read.
    finds: bool,
    number: u64,
    /// Why there can be no certificate, as soon as that is known.
    refused: Option<String>,
}

impl std::fmt::Debug for Certifier<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certifier").finish_non_exhaustive()
    }
}

/// The settings of the pilot: the measured run cut short.
#[must_use]
pub fn pilot(settings: &Settings) -> Settings {
    let seconds = match settings.load {
        Load::Closed => PILOT.0,
        Load::Open { rate, .. } => (PILOT_REQUESTS / rate.as_f64()).clamp(PILOT.0, PILOT.1),
    };
    let mut pilot = settings.clone();
    pilot.stop = Stop {
        duration: Some(Duration::from_secs_f64(seconds)),
        requests: None,
    };
    pilot.warmup = WARM_UP;
    // What holds with all connections holds with a part of them.
    pilot.staircase = None;
    pilot.start_at_unix_ns = None;
    pilot
}

impl<'a> Certifier<'a> {
    /// For a run with these settings; `drive` runs the client against a mock server.
    pub fn new(settings: &Settings, drive: Drive<'a>) -> Self {
        let settings = Settings {
            staircase: None,
            ..settings.clone()
        };
        Self {
            settings,
            drive,
            runs: Vec::new(),
            finds: false,
            number: 0,
            refused: None,
        }
    }

    /// No certificate will be made, for this reason.
    pub fn refuse(&mut self, reason: impl Into<String>) {
        self.refused.get_or_insert(reason.into());
    }

    /// The runs before the measured one, after a pilot on the real server.
    pub fn before(&mut self, pilot: &Summary) {
        if let Err(reason) = self.try_before(pilot) {
            self.refuse(reason);
        }
    }

    /// The runs after the measured one, and the certificate.
    pub fn after(mut self, result: &Summary, machine: Option<MachineUse>) -> Certificate {
        if self.refused.is_none()
            && let Err(reason) = self.try_after(result, machine)
        {
            self.refuse(reason);
        }
        let quantiles = match self.refused {
            None => self.quantiles(result),
            Some(_) => Vec::new(),
        };
        Certificate {
            quantiles,
            refused: self.refused,
            runs: self.runs.iter().map(Calibration::outline).collect(),
        }
    }

    fn try_before(&mut self, pilot: &Summary) -> Result<(), String> {
        let outcomes = pilot.tally.outcomes();
        self.finds = outcomes.hits > outcomes.misses;
        let seen = seen(pilot)?;
        let seconds = length(pilot);
        // What is added is not known yet; the median of what a quiet machine adds will do.
        let guess = Curve::from_points(seen.points().iter().map(|ns| ns - GUESS_NS).collect());
        let first = self.probe(&guess, seconds)?;
        let blur = blur([&first])?;
        let law = blur.unfold(&seen);
        for _ in 0..RUNS_EACH_SIDE {
            let run = self.run(&law, seconds, true)?;
            self.runs.push(run);
        }
        Ok(())
    }

    fn try_after(&mut self, result: &Summary, machine: Option<MachineUse>) -> Result<(), String> {
        if result.interrupted {
            return Err("the run was interrupted".to_owned());
        }
        if let Some(steal) = machine.map(|machine| machine.steal_share)
            && steal > MOST_STEAL
        {
            let percent = steal * 100.0;
            return Err(format!(
                "{percent:.1} % of the processor time of the measured run went to other machines"
            ));
        }
        let seen = seen(result)?;
        let law = blur(&self.runs)?.unfold(&seen);
        for _ in 0..RUNS_EACH_SIDE {
            let run = self.run(&law, length(result), false)?;
            self.runs.push(run);
        }
        self.same_load(result)
    }

    /// The first run, in which a few requests take longer than anything that was seen: a client that
    /// cannot record what is long would show the same figures whatever the server does.
    fn probe(&mut self, law: &Curve, seconds: f64) -> Result<Calibration, String> {
        let longest = law.points().last().copied().unwrap_or(0.0) / 1e9;
        let long = Duration::from_secs_f64(longest * PROBE_FACTOR) + PROBE_LEAST;
        let long = long.min(self.settings.timeout / 2);
        let law = law::near_with(law, nanos(long), self.number).map_err(no_law)?;
        let first = self.run_with(&law, seconds, true)?;
        let service = first.samples(CertifiedLatency::Service);
        let service = service.ok_or("a calibration run got no answers")?;
        let longest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        let (seen, recorded) = (longest(service.seen()), service.recorded_longest());
        if recorded < seen * (1.0 - PROBE_OFF) {
            return Err(format!(
                "the client recorded nothing above {:.0} us, and a request took {:.0} us",
                recorded / 1e3,
                seen / 1e3
            ));
        }
        Ok(first)
    }

    fn run(&mut self, law: &Curve, seconds: f64, before: bool) -> Result<Calibration, String> {
        let law = law::near(law, self.settings.seed.wrapping_add(self.number)).map_err(no_law)?;
        self.run_with(&law, seconds, before)
    }

    fn run_with(
        &mut self,
        law: &Distribution,
        seconds: f64,
        before: bool,
    ) -> Result<Calibration, String> {
        self.number += 1;
        let (config, filling, settings) = self.stage(law, seconds)?;
        let evidence = (self.drive)(config, filling, settings)
            .map_err(|error| format!("a calibration run failed: {error}"))?;
        if evidence.summary.interrupted {
            return Err("the calibration was interrupted".to_owned());
        }
        let run = Calibration::of(&evidence, law, before)
            .ok_or_else(|| "a calibration run got no answers".to_owned())?;
        run.is_recorded_as_seen()?;
        Ok(run)
    }

    /// A mock server and the client's settings for it.
    fn stage(
        &self,
        law: &Distribution,
        seconds: f64,
    ) -> Result<(ServerConfig, Option<Settings>, Settings), String> {
        let mut settings = self.settings.clone();
        settings.stop = Stop {
            duration: Some(Duration::from_secs_f64(seconds)),
            requests: None,
        };
        settings.warmup = WARM_UP;
        settings.start_at_unix_ns = None;
        settings.seed = self.settings.seed.wrapping_add(self.number);
        let mut config = ServerConfig {
            seed: settings.seed,
            latency: LatencyRules::new(vec![law.clone().into()])
                .map_err(|error| error.to_string())?,
            record_rows: true,
            ..ServerConfig::default()
        };
        calibration::fit(&mut config, &mut settings);
        let filling = self
            .finds
            .then(|| calibration::filling(&mut settings))
            .flatten();
        Ok((config, filling, settings))
    }

    /// Whether the calibration runs carried the load of the measured one, on a machine as quiet.
    fn same_load(&self, result: &Summary) -> Result<(), String> {
        let after = self.runs.iter().filter(|run| !run.before);
        let (count, sum) = after.fold((0.0, 0.0), |(count, sum), run| {
            (count + 1.0, sum + run.per_second)
        });
        let (found, wanted) = (sum / count, result.rate());
        if !((1.0 - MOST_RATE_OFF)..=(1.0 + MOST_RATE_OFF)).contains(&(found / wanted)) {
            return Err(format!(
                "the calibration runs came to {found:.0} requests per second and the measured run to \
                 {wanted:.0}: it is not the same load"
            ));
        }
        let latest = self.runs.iter().map(|run| run.lateness_p99_ns).max();
        let (late, latest) = (
            result.tally.lateness.quantile_ns(0.99),
            latest.unwrap_or_default(),
        );
        if late > latest * 2 + LATE_NS {
            return Err(format!(
                "the client was late by {} us at p99 in the measured run and by {} us at most in the \
                 calibration runs: the machine was not as quiet",
                late / 1000,
                latest / 1000
            ));
        }
        Ok(())
    }

    fn quantiles(&self, result: &Summary) -> Vec<CertifiedQuantile> {
        let mut all = Vec::new();
        for latency in [
            CertifiedLatency::Response,
            CertifiedLatency::Service,
            CertifiedLatency::Network,
        ] {
            let measured = calibration::measured(latency, result);
            let runs: Option<Vec<&Samples>> =
                self.runs.iter().map(|run| run.samples(latency)).collect();
            let judge = runs.and_then(|runs| bound::Judge::new(&measured, runs));
            let Some(judge) = judge else {
                continue;
            };
            let firm = |quantile: &&Quantile| quantile.of(&measured) != Support::None;
            for quantile in QUANTILES.iter().take(bound::LIMITS.len()).filter(firm) {
                all.push(CertifiedQuantile {
                    latency,
                    q: quantile.q,
                    title: quantile.title,
                    reported_ns: measured.quantile_ns(quantile.q),
                    bound: judge.bound(quantile),
                });
            }
        }
        narrowest(&mut all);
        all
    }
}

/// With kernel stamps there are two ways to the server's own time: from the service time and from the
/// network latency, which holds less of the client. The narrower bound counts for both.
fn narrowest(all: &mut [CertifiedQuantile]) {
    let width = |one: &CertifiedQuantile| match &one.bound {
        Ok(bound) => bound.half_width_ns,
        Err(_) => u64::MAX,
    };
    for place in 0..all.len() {
        let (latency, q) = (all[place].latency, all[place].q);
        if latency != CertifiedLatency::Service {
            continue;
        }
        let twin = all
            .iter()
            .position(|one| one.latency == CertifiedLatency::Network && one.q == q);
        if let Some(twin) = twin {
            let (from, to) = if width(&all[twin]) < width(&all[place]) {
                (twin, place)
            } else {
                (place, twin)
            };
            all[to].bound = all[from].bound.clone();
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn no_law(error: LawError) -> String {
    format!("no law near the one seen: {error}")
}

/// The service times of a run.
fn seen(summary: &Summary) -> Result<Curve, String> {
    Curve::of_latency(&summary.tally.service()).ok_or_else(|| "no request was answered".to_owned())
}

fn blur<'a>(runs: impl IntoIterator<Item = &'a Calibration>) -> Result<Blur, String> {
    let samples = runs
        .into_iter()
        .filter_map(|run| run.samples(CertifiedLatency::Service));
    Blur::of(samples).ok_or_else(|| "a calibration run got no answers".to_owned())
}

/// How long a calibration run takes to have enough requests, in seconds.
fn length(summary: &Summary) -> f64 {
    (REQUESTS / summary.rate().max(1.0)).clamp(LENGTH.0, LENGTH.1)
}

impl Calibration {
    fn outline(&self) -> CalibrationRun {
        CalibrationRun {
            before: self.before,
            law: self.law.clone(),
            requests: self.requests,
            per_second: self.per_second,
            added_ns: self.added_ns,
        }
    }
}

/// Calibration runs on each side of the measured one.
const RUNS_EACH_SIDE: usize = 4;
/// Requests that a calibration run should have.
const REQUESTS: f64 = 5_000.0;
/// Bounds of its length, in seconds.
const LENGTH: (f64, f64) = (0.5, 2.5);
const WARM_UP: Duration = Duration::from_millis(200);
/// Requests that the pilot should have, and the bounds of its length in seconds.
const PILOT_REQUESTS: f64 = 1_000.0;
const PILOT: (f64, f64) = (0.5, 2.0);
/// How much longer than the longest time seen a few requests of the first run take.
const PROBE_FACTOR: f64 = 3.0;
const PROBE_LEAST: Duration = Duration::from_millis(5);
/// The longest recorded time may be shorter than the longest time by this share.
const PROBE_OFF: f64 = 0.05;
/// What client and machine add, about.
const GUESS_NS: f64 = 90_000.0;
/// Share of processor time that the hypervisor may take.
const MOST_STEAL: f64 = 0.02;
/// How far the rates of calibration and measured run may be apart, as a share.
const MOST_RATE_OFF: f64 = 0.2;
/// Lateness that is always forgiven.
const LATE_NS: u64 = 50_000;

#[cfg(test)]
mod tests;
