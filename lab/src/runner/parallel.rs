//! Many clients under virtual time on several threads. Each run is a world of its own, so the
//! threads change nothing about the result; reports and progress come in the order of the scenarios.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use kvlab_bench_client::Control;

use super::suite::{Progress, SuiteError, run_virtual};
use super::{PartError, Tier};
use crate::report::{PartReport, Report};
use crate::scenario::{Part, Scenario};

/// What came of several scenarios.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The reports of those that were finished, or begun when it was stopped.
    pub reports: Vec<Report>,
    /// The first client, in the order of the scenarios, that could not be run, and its scenario; the
    /// reports hold what stands before it.
    pub error: Option<(String, SuiteError)>,
}

/// Runs all clients of the scenarios on `threads` threads. When `control` stops it, the
/// reports hold the clients in front of the first one that was not finished.
#[must_use]
pub fn run(
    scenarios: &[Scenario],
    threads: NonZeroUsize,
    control: &Control,
    progress: &mut dyn Progress,
) -> Outcome {
    let jobs: Vec<(&Scenario, &Part)> = scenarios
        .iter()
        .flat_map(|scenario| scenario.parts.iter().map(move |part| (scenario, part)))
        .collect();
    let mut finished = run_jobs(&jobs, threads, control, progress).into_iter();
    let mut outcome = Outcome {
        reports: Vec::with_capacity(scenarios.len()),
        error: None,
    };
    for scenario in scenarios {
        let mut parts = Vec::with_capacity(scenario.parts.len());
        for part in &scenario.parts {
            match finished.next() {
                Some(Ok(report)) => parts.push(report),
                Some(Err(source)) => {
                    let error = SuiteError {
                        part: part.name.clone(),
                        source: Box::new(source),
                    };
                    outcome.error = Some((scenario.name.clone(), error));
                    break;
                }
                None => break,
            }
        }
        let complete = parts.len() == scenario.parts.len();
        if !parts.is_empty() {
            let tier = Tier::Virtual {
                leg_ns: scenario.network_ns,
            };
            outcome
                .reports
                .push(Report::new(scenario, tier, None, parts));
        }
        if !complete {
            break;
        }
    }
    outcome
}

/// The results from the first job on, up to the first one that failed or was not finished.
fn run_jobs(
    jobs: &[(&Scenario, &Part)],
    threads: NonZeroUsize,
    control: &Control,
    progress: &mut dyn Progress,
) -> Vec<Result<PartReport, PartError>> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    let mut results: Vec<Option<Result<PartReport, PartError>>> =
        jobs.iter().map(|_| None).collect();
    thread::scope(|scope| {
        for _ in 0..threads.get().min(jobs.len()) {
            let sender = sender.clone();
            scope.spawn(|| {
                let sender = sender;
                // Jobs are begun in order, so that those before a failed one are all finished.
                while !control.is_stopped() && !failed.load(Ordering::Relaxed) {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some((scenario, part)) = jobs.get(place) else {
                        return;
                    };
                    let result = run_virtual(scenario, part, control);
                    if control.is_stopped() {
                        // What was cut short proves nothing.
                        return;
                    }
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    if sender.send((place, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut said = 0;
        for (place, result) in receiver {
            results[place] = Some(result);
            while let Some(Some(Ok(report))) = results.get(said) {
                let verdict = report.judgement.verdict;
                progress.say(&format!(
                    "{}/{} {}, {}: {verdict}",
                    said + 1,
                    jobs.len(),
                    jobs[said].0.name,
                    report.name
                ));
                said += 1;
            }
        }
    });
    let mut kept = Vec::with_capacity(results.len());
    for result in results.into_iter().map_while(|result| result) {
        let is_last = result.is_err();
        kept.push(result);
        if is_last {
            break;
        }
    }
    kept
}
