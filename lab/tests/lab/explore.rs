//! `kvlab explore`: what it demands of random scenarios, and that it would notice.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use kvlab::explore::trial::{Broken, Depth, Outcome, Tally, trial};
use kvlab::explore::{Exploration, Settings, explore, explore_by};
use kvlab::runner::client::{Bent, Client, Own};
use kvlab::scenario::Scenario;
use kvlab_bench_client::{Control, RunResult};
use rustix::process::{Pid, Signal, kill_process};

use super::bias;

fn settings(runs: u64, seed: u64) -> Settings {
    Settings {
        runs,
        seed,
        time: None,
    }
}

fn assert_all_hold(exploration: &Exploration) -> Tally {
    assert!(exploration.failure.is_none(), "{exploration}");
    exploration.tally
}

#[test]
fn random_scenarios_are_exact_and_fully_accounted_for() {
    let exploration = explore(&settings(400, 1), &Control::new(), &mut |_| {});
    let tally = assert_all_hold(&exploration);
    assert_eq!((exploration.held, tally.clients), (400, 400));
    // The draw reaches what it is meant to reach.
    for (what, count) in [
        ("open loops", tally.open),
        ("closed loops", tally.clients - tally.open),
        ("RESP", tally.redis),
        ("Aerospike", tally.clients - tally.redis),
        ("freezes", tally.frozen),
        ("cuts", tally.cut),
        ("queues", tally.queued),
        ("changing delays", tally.shaped),
        ("simulated timetables", tally.simulated),
        ("time-outs", tally.timed_out),
        ("repeated runs", tally.repeated),
    ] {
        assert!(count >= 20, "{count} {what}\n{exploration}");
    }
    for (what, count) in [
        ("lost connections", tally.lost),
        ("error replies", tally.refused),
    ] {
        assert!(count >= 3, "{count} {what}\n{exploration}");
    }
}

/// A bias that only shows in some scenarios.
fn in_pipelines_only(result: RunResult) -> RunResult {
    if result.summary.pipeline.depth.get() > 1 && !result.summary.load.is_open() {
        bias::clock_stopped_early(result, 1)
    } else {
        result
    }
}

/// The failure that exploring with a bent client comes to, and its scenario file.
fn failure_with(client: &(dyn Client + Sync)) -> (Broken, String) {
    let exploration = explore_by(client, &settings(200, 3), &Control::new(), &mut |_| {});
    let report = exploration.to_string();
    let failure = exploration.failure.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(exploration.held, failure.place);
    (failure.shrunk.broken, report)
}

#[test]
fn a_bent_client_is_found_and_its_scenario_is_made_small_and_fails_again() {
    let bent = Bent(in_pipelines_only);
    let (broken, report) = failure_with(&bent);
    assert_eq!(broken.what, "exact", "{report}");
    // What is printed is a scenario file of a few keys.
    let keys = report.lines().filter(|line| !line.starts_with(['#', '[']));
    assert!(keys.count() <= 8, "{report}");
    assert!(report.contains("\npipeline = 2\n"), "{report}");
    assert!(report.contains("\nrequests = 1\n"), "{report}");
    assert!(!report.contains("rate"), "{report}");
    Scenario::parse("printed", &report).unwrap_or_else(|error| panic!("{error}\nin\n{report}"));
    let again =
        |client: &dyn Client| trial(client, "printed", &report, Depth::Once, &Control::new());
    assert!(
        matches!(&again(&bent), Outcome::Broken(again) if again.what == broken.what),
        "{report}"
    );
    assert!(matches!(again(&Own), Outcome::Exact(_)), "{report}");
    // The same seed finds the same and prints the same bytes.
    assert_eq!(failure_with(&bent).1, report);
}

#[test]
fn a_panic_in_a_run_is_a_failure_like_any_other() {
    let bent = Bent(|result: RunResult| {
        assert!(result.summary.load.is_open(), "planted in closed loops");
        result
    });
    let (broken, report) = failure_with(&bent);
    assert_eq!(broken.what, "panic");
    assert!(report.contains("# planted in closed loops"), "{report}");
    assert!(!report.contains("rate"), "{report}");
}

fn kvlab(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvlab"));
    command.arg("explore").args(args);
    command
}

#[test]
fn the_program_prints_the_same_bytes_for_the_same_seed() {
    let run = || kvlab(&["--runs", "40", "--seed", "9"]).output().unwrap();
    let (first, second) = (run(), run());
    assert_eq!(first.status.code(), Some(0));
    assert!(!first.stdout.is_empty());
    assert_eq!(first.stdout, second.stdout);
}

#[test]
fn files_are_put_to_the_same_test() {
    let shipped = |name: &str| format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let output = kvlab(&[&shipped("fixed-hash")]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("1 files: all exact"), "{text}");
    let missing = kvlab(&["/nonexistent/x.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    let both = kvlab(&[&shipped("fixed-hash"), "--seed", "2"])
        .output()
        .unwrap();
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn an_interrupted_exploration_reports_what_was_done_and_ends_with_130() {
    let mut child = kvlab(&["--runs", "1000000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    progress.read_line(&mut line).unwrap();
    assert!(line.ends_with("scenarios hold\n"), "{line}");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let mut report = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut report)
        .unwrap();
    let mut rest = String::new();
    progress.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{report}{rest}");
    assert!(
        report.contains("scenarios of seed 1: all exact"),
        "{report}"
    );
    assert!(rest.contains("interrupted"), "{rest}");
}
