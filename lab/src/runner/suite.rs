//! A whole scenario: its clients one after the other, judged and put together in a report.

use std::time::Duration;

use kvlab_bench_client::Control;

use super::client::Own;
use super::{PartError, Tier, real, virtual_time};
use crate::check::{judge, repro};
use crate::environment::{Machine, Priority};
use crate::report::{PartReport, Report};
use crate::scenario::{Part, Scenario};
use crate::verdict::Verdict;

/// The clock a scenario is run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The machine's.
    Real,
    /// One that jumps.
    Virtual,
}

/// Hears how a scenario goes on; a run takes a while.
pub trait Progress {
    /// Something begins or happened, in a line.
    fn say(&mut self, line: &str);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn say(&mut self, _line: &str) {}
}

/// Why a scenario has no report.
#[derive(Debug, thiserror::Error)]
#[error("{part}: {source}")]
pub struct SuiteError {
    /// The client that could not be run.
    pub part: String,
    /// Why.
    pub source: Box<PartError>,
}

/// Runs every client of a scenario and judges it. A void run is tried again as often as the
/// scenario says, a failed one never. When `control` stops it, the report holds the
/// clients that were finished.
///
/// # Errors
/// When a client could not be run at all.
pub fn run(
    scenario: &Scenario,
    clock: Clock,
    control: &Control,
    progress: &mut dyn Progress,
) -> Result<Report, SuiteError> {
    let machine = (clock == Clock::Real).then(|| {
        Priority::raise();
        Machine::measure()
    });
    let mut parts = Vec::with_capacity(scenario.parts.len());
    for (index, part) in scenario.parts.iter().enumerate() {
        let place = format!("{}/{} {}", index + 1, scenario.parts.len(), part.name);
        let report = match clock {
            Clock::Virtual => run_virtual(scenario, part, control),
            Clock::Real => run_real(scenario, part, &place, control, progress),
        };
        if control.is_stopped() {
            // What was cut short proves nothing, whether it ended with numbers or an error.
            break;
        }
        let report = report.map_err(|source| SuiteError {
            part: part.name.clone(),
            source: Box::new(source),
        })?;
        progress.say(&format!("{place}: {}", report.judgement.verdict));
        parts.push(report);
    }
    let tier = match clock {
        Clock::Real => Tier::Real,
        Clock::Virtual => Tier::Virtual {
            leg_ns: scenario.network_ns,
        },
    };
    Ok(Report::new(scenario, tier, machine, parts))
}

pub(super) fn run_virtual(
    scenario: &Scenario,
    part: &Part,
    control: &Control,
) -> Result<PartReport, PartError> {
    repeated(scenario, part, control, |_| {
        let (config, settings) = (scenario.server_for(part), part.settings.clone());
        let evidence = virtual_time::run_by(&Own, config, settings, scenario.network_ns, control)?;
        let judgement = judge(&evidence, &part.expect, None);
        Ok(PartReport::new(part, &evidence, judgement, 1))
    })
}

fn run_real(
    scenario: &Scenario,
    part: &Part,
    place: &str,
    control: &Control,
    progress: &mut dyn Progress,
) -> Result<PartReport, PartError> {
    repeated(scenario, part, control, |run| {
        let place = if scenario.repeat > 1 {
            format!("{place}, run {run} of {}", scenario.repeat)
        } else {
            place.to_owned()
        };
        run_once(scenario, part, &place, control, progress)
    })
}

/// Runs a part as often as the scenario says. The report is that of the worst run, the last of
/// several, with how far all of them lie apart.
fn repeated(
    scenario: &Scenario,
    part: &Part,
    control: &Control,
    mut run: impl FnMut(u32) -> Result<PartReport, PartError>,
) -> Result<PartReport, PartError> {
    let mut reports = vec![run(1)?];
    for number in 2..=scenario.repeat {
        if control.is_stopped() {
            break;
        }
        reports.push(run(number)?);
    }
    let last = reports.len() - 1;
    let worst = (0..=last)
        .max_by_key(|place| (reports[*place].judgement.verdict, *place))
        .unwrap_or(last);
    if reports.len() < 2 {
        return Ok(reports.swap_remove(worst));
    }
    let stop = part.settings.stop;
    let has_fixed_number = stop.duration.is_none() || part.settings.load.is_open();
    let runs: Vec<repro::Run<'_>> = reports
        .iter()
        .map(|report| repro::Run {
            judgement: &report.judgement,
            sequence_hash: report.sequence_hash,
            has_fixed_number,
        })
        .collect();
    let scores = repro::scores(&runs, &part.expect);
    let verdicts: Vec<Verdict> = runs.iter().map(|run| run.judgement.verdict).collect();
    let mut report = reports.swap_remove(worst);
    report.runs = verdicts;
    let judgement = &mut report.judgement;
    let finding = repro::finding(&scores);
    if let Some(finding) = &finding
        && judgement.verdict == Verdict::Pass
    {
        judgement.verdict = finding.verdict;
    }
    judgement.findings.extend(finding);
    judgement.scores.extend(scores);
    Ok(report)
}

fn run_once(
    scenario: &Scenario,
    part: &Part,
    place: &str,
    control: &Control,
    progress: &mut dyn Progress,
) -> Result<PartReport, PartError> {
    let config = scenario.server_for(part);
    let mut attempt = 1;
    loop {
        progress.say(&format!(
            "{place}: {} between two measurements of the floor",
            length(part)
        ));
        let (evidence, floor) = real::run_with_floor(&config, &part.settings, control)?;
        let judgement = judge(&evidence, &part.expect, Some(&floor));
        if judgement.verdict != Verdict::Void || attempt > scenario.retries || control.is_stopped()
        {
            return Ok(PartReport::new(part, &evidence, judgement, attempt));
        }
        let reasons = judgement
            .findings
            .iter()
            .filter(|finding| finding.verdict == Verdict::Void);
        let reasons: Vec<&str> = reasons.map(|finding| finding.text.as_str()).collect();
        progress.say(&format!(
            "{place}: void ({}), trying again",
            reasons.join("; ")
        ));
        attempt += 1;
    }
}

fn length(part: &Part) -> String {
    let stop = part.settings.stop;
    let warmup = part.settings.warmup;
    let time = |time: Duration| kvlab_timing::duration::format(time);
    match (stop.duration, stop.requests) {
        (Some(duration), _) => format!("{} of load", time(duration + warmup)),
        (None, Some(requests)) => format!("{requests} requests"),
        (None, None) => "the load".to_owned(),
    }
}
