//! A client that lies is caught: each test plants one bias into the rows or figures of an honest
//! run and demands the finding that tells it.

use kvlab::check::judge;
use kvlab::runner::Evidence;
use kvlab::truth::Pair;
use kvlab::verdict::{Finding, Kind, Verdict};
use kvlab_bench_client::record::{Latency, RowKind};

use super::support::{assert_passes, run, scenario};

/// An open loop with freezes, so that there are queues to leave out.
fn honest() -> Evidence {
    let text = "[server]\nlatency = 'exponential(1ms)'\nfreeze = 'every=200ms,for=40ms'\n\
                [[client]]\ntarget = 'redis'\nconnections = 4\nrate = 1500\nduration = '1s'\n";
    let (evidence, judgement) = run(&scenario(text), 0);
    assert_passes(&judgement, text);
    evidence
}

/// What the judge finds broken; a virtual run has no measurements that could be void.
fn broken(evidence: &Evidence) -> Vec<Finding> {
    let part = &scenario("[[client]]\ntarget = 'redis'\nrate = 1500\n").parts[0];
    let judgement = judge(evidence, &part.expect, None);
    let broken: Vec<Finding> = judgement
        .findings
        .into_iter()
        .filter(|finding| finding.verdict != Verdict::Pass)
        .collect();
    assert_eq!(judgement.verdict == Verdict::Fail, !broken.is_empty());
    broken
}

fn assert_caught(evidence: &Evidence, by: &[&str]) {
    let broken = broken(evidence);
    let names: Vec<&str> = broken.iter().map(|finding| finding.name).collect();
    for name in by {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
    assert!(broken.iter().any(|finding| finding.kind == Kind::Proof));
}

fn measured(evidence: &mut Evidence) -> impl Iterator<Item = &mut Pair> {
    evidence
        .joined
        .pairs
        .iter_mut()
        .filter(|pair| pair.client.kind == RowKind::Load)
}

/// Writes the histograms anew from the rows, as a client would that believes its own rows.
fn record_again(
    evidence: &mut Evidence,
    keep: impl Fn(usize) -> bool,
    change: impl Fn(u64) -> u64,
) {
    let rows: Vec<_> = measured(evidence).map(|pair| pair.client).collect();
    let (mut service, mut response, mut lag) =
        (Latency::default(), Latency::default(), Latency::default());
    for (place, row) in rows.iter().enumerate() {
        lag.record(row.sent.saturating_since(row.intended));
        if let Some(received) = row.received.filter(|_| keep(place)) {
            service.record(change(received.saturating_since(row.sent)));
            response.record(change(received.saturating_since(row.intended)));
        }
    }
    let tally = &mut evidence.summary.tally;
    tally.lag = lag;
    for class in &mut tally.classes {
        (class.service, class.response) = (Latency::default(), Latency::default());
    }
    let first = &mut tally.classes[0];
    (first.service, first.response) = (service, response);
}

#[test]
fn the_honest_run_written_anew_is_not_caught() {
    let mut evidence = honest();
    record_again(&mut evidence, |_| true, |ns| ns);
    assert_eq!(broken(&evidence), []);
}

#[test]
fn a_clock_that_is_started_late_is_caught() {
    let mut evidence = honest();
    for pair in measured(&mut evidence) {
        pair.client.sent = pair.client.sent.add_nanos(10_000);
    }
    record_again(&mut evidence, |_| true, |ns| ns);
    assert_caught(&evidence, &["exact", "timetable"]);
}

#[test]
fn a_clock_that_is_stopped_early_is_caught() {
    let mut evidence = honest();
    for pair in measured(&mut evidence) {
        pair.client.received = pair.client.received.map(|at| at.sub_nanos(1));
    }
    record_again(&mut evidence, |_| true, |ns| ns);
    assert_caught(&evidence, &["exact", "timetable", "response"]);
}

#[test]
fn one_row_dropped_in_a_thousand_is_caught() {
    let mut evidence = honest();
    let row = evidence.joined.pairs.remove(700);
    evidence.joined.server_only.push(row.server);
    assert_caught(&evidence, &["rows", "accounting", "recorder"]);
}

#[test]
fn one_sample_dropped_in_a_thousand_is_caught() {
    let mut evidence = honest();
    record_again(&mut evidence, |place| place % 1000 != 999, |ns| ns);
    assert_caught(&evidence, &["recorder"]);
}

#[test]
fn a_request_that_is_skipped_and_not_counted_is_caught() {
    let mut evidence = honest();
    evidence.summary.due -= 1;
    assert_caught(&evidence, &["accounting", "due"]);
}

#[test]
fn queueing_that_is_left_out_is_caught() {
    let mut evidence = honest();
    for pair in measured(&mut evidence) {
        pair.client.intended = pair.client.sent;
    }
    record_again(&mut evidence, |_| true, |ns| ns);
    assert_caught(&evidence, &["intended"]);
}

#[test]
fn a_clamped_maximum_is_caught() {
    let mut evidence = honest();
    record_again(&mut evidence, |_| true, |ns| ns.min(20_000_000));
    assert_caught(&evidence, &["recorder"]);
}

#[test]
fn a_percentile_that_is_off_by_one_rank_is_caught() {
    let mut evidence = honest();
    // Of 1500 samples the largest is dropped and the smallest recorded twice: every quantile is
    // that of the rank below.
    let smallest = measured(&mut evidence)
        .filter_map(|pair| pair.service_ns())
        .min()
        .unwrap();
    let largest = measured(&mut evidence)
        .filter_map(|pair| pair.service_ns())
        .max()
        .unwrap();
    record_again(
        &mut evidence,
        |_| true,
        |ns| if ns == largest { smallest } else { ns },
    );
    assert_caught(&evidence, &["recorder"]);
}

#[test]
fn a_server_that_is_late_and_hides_it_is_caught() {
    let mut evidence = honest();
    for pair in measured(&mut evidence) {
        pair.server.due = pair.server.due.add_nanos(50_000);
        pair.server.written = pair.server.due;
    }
    assert_caught(&evidence, &["stamps", "exact"]);
}
