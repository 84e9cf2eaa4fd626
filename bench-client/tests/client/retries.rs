//! Requests that are sent again, under virtual time: when, how often, and what their latency is
//! must equal arithmetic to the nanosecond.

use std::num::NonZeroU32;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use super::fake::{MILLI, SECOND, START, Script, World};
use kvlab_bench_client::Settings;
use kvlab_bench_client::record::{FailedRequest, Outcome, RowKind};
use kvlab_bench_client::settings::{
    Arrivals, Clients, FailureLog, Load, RedisTarget, Retry, RetryOn, Stop, Target,
};
use kvlab_timing::Rate;

const LOADING: Script = Script::Reply("-LOADING Redis is loading the dataset in memory\r\n");
const OK: Script = Script::Reply("+OK\r\n");

fn settings(requests: u64, retry: Retry) -> Settings {
    let mut target = RedisTarget::new("127.0.0.1:6379".parse().unwrap(), 0, 1);
    target.retry_on = Some(RetryOn::default());
    Settings {
        clients: Clients::Separate,
        stop: Stop {
            duration: None,
            requests: Some(requests),
        },
        retry: Some(retry),
        record_rows: true,
        ..Settings::new(Target::Redis(target))
    }
}

fn retry(wait: u64, factor: f64) -> Retry {
    Retry {
        most: None,
        wait: Duration::from_millis(wait),
        factor,
        most_waiting: 64,
    }
}

/// A world of 1 ms a request in which the requests read with these numbers are in error.
fn world(in_error: fn(u64) -> bool) -> World {
    let mut world = World::new(MILLI, 0);
    world.script = Box::new(move |n| if in_error(n) { LOADING } else { OK });
    world
}

#[test]
fn waits_grow_and_the_latency_counts_from_the_first_send() {
    // The first three requests that the server reads are the first one and its retries.
    let settings = settings(1, retry(10, 3.0));
    let result = world(|n| n < 3).run(&settings).unwrap();
    let sent: Vec<u64> = result
        .rows
        .iter()
        .map(|row| row.sent.as_nanos() - START)
        .collect();
    // Each answer comes after 1 ms; then 10, 30 and 90 ms pass.
    assert_eq!(sent, [0, 11 * MILLI, 42 * MILLI, 133 * MILLI]);
    let attempts: Vec<(u8, bool)> = result
        .rows
        .iter()
        .map(|row| (row.attempt, row.retried))
        .collect();
    assert_eq!(attempts, [(0, true), (1, true), (2, true), (3, false)]);
    let tally = &result.summary.tally;
    assert_eq!(tally.classes[0].retries, 3);
    assert_eq!((tally.outcomes().hits, tally.outcomes().errors), (1, 0));
    assert_eq!(
        (tally.service().min_ns(), tally.service().count()),
        (134 * MILLI, 1)
    );
}

#[test]
fn what_waits_leaves_its_slot_to_the_next_request() {
    // The first request fails once and waits 4.5 ms; meanwhile the others go on.
    let mut retry = retry(0, 0.0);
    retry.wait = Duration::from_micros(4_500);
    let result = world(|n| n == 0).run(&settings(10, retry)).unwrap();
    let mut sent: Vec<(u64, u8)> = result
        .rows
        .iter()
        .map(|row| ((row.sent.as_nanos() - START) / MILLI, row.attempt))
        .collect();
    sent.sort_unstable();
    // It is due again at 5.5 ms, when the one sent at 5 ms has the slot until 6 ms.
    let expected: Vec<(u64, u8)> = (0..=10).map(|at| (at, u8::from(at == 6))).collect();
    assert_eq!(sent, expected);
    assert_eq!(result.summary.tally.outcomes().hits, 10);
    assert_eq!(result.summary.due, 10);
}

#[test]
fn a_full_queue_holds_new_requests_up() {
    let mut retry = retry(50, 0.0);
    retry.most_waiting = 3;
    let result = world(|n| n < 5).run(&settings(5, retry)).unwrap();
    let mut sent: Vec<u64> = result
        .rows
        .iter()
        .map(|row| (row.sent.as_nanos() - START) / MILLI)
        .collect();
    sent.sort_unstable();
    // Three fail and wait. The first is sent again at 51 ms and the second at 52 ms, and both fail
    // again; the third is answered at 54 ms, and only then is there room for the two new ones.
    assert_eq!(sent, [0, 1, 2, 51, 52, 53, 54, 55, 102, 103]);
    assert_eq!(result.summary.tally.outcomes().hits, 5);
}

#[test]
fn a_bound_of_retries_leaves_an_error_that_is_told() {
    let (log, told) = sync_channel(16);
    let mut settings = settings(
        2,
        Retry {
            most: Some(2),
            ..retry(0, 0.0)
        },
    );
    settings.failures = Some(FailureLog(log));
    let result = world(|n| n < 3).run(&settings).unwrap();
    drop(settings);
    let outcomes = result.summary.tally.outcomes();
    assert_eq!((outcomes.hits, outcomes.errors), (1, 1));
    let told: Vec<FailedRequest> = told.iter().collect();
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0].status,
        "LOADING Redis is loading the dataset in memory"
    );
    assert_eq!(
        (told[0].retries, told[0].at.as_nanos()),
        (2, START + 3 * MILLI)
    );
    assert!(told[0].key.starts_with(b"key:"), "{:?}", told[0].key);
}

#[test]
fn what_the_request_is_at_fault_for_is_not_sent_again() {
    let mut world = World::new(MILLI, 0);
    world.script = Box::new(|_| Script::Reply("-WRONGTYPE Operation against a key\r\n"));
    let result = world.run(&settings(3, retry(0, 0.0))).unwrap();
    assert_eq!(result.summary.tally.outcomes().errors, 3);
    assert_eq!(result.rows.len(), 3);
}

#[test]
fn requests_of_a_lost_connection_are_sent_again() {
    let mut world = World::new(MILLI, 0);
    world.script = Box::new(|n| if n == 4 { Script::Close } else { OK });
    let mut settings = settings(20, retry(0, 0.0));
    settings.pipeline.depth = NonZeroU32::new(4).unwrap();
    let result = world.run(&settings).unwrap();
    let outcomes = result.summary.tally.outcomes();
    assert_eq!((outcomes.hits, outcomes.lost), (20, 0));
    let lost = result
        .rows
        .iter()
        .filter(|row| row.outcome == Outcome::ConnectionLost);
    assert!(lost.clone().count() > 0 && lost.clone().all(|row| row.retried));
}

#[test]
fn an_open_loop_keeps_its_timetable_and_nothing_is_begun_after_the_end() {
    let mut settings = settings(1, retry(400, 0.0));
    settings.load = Load::Open {
        rate: Rate::per_second(10).unwrap(),
        arrivals: Arrivals::Uniform,
    };
    settings.stop = Stop {
        duration: Some(Duration::from_secs(1)),
        requests: None,
    };
    let (log, told) = sync_channel(16);
    settings.failures = Some(FailureLog(log));
    let result = world(|_| true).run(&settings).unwrap();
    drop(settings);
    let first: Vec<u64> = result
        .rows
        .iter()
        .filter(|row| row.kind == RowKind::Load && row.attempt == 0)
        .map(|row| row.sent.as_nanos())
        .collect();
    let expected: Vec<u64> = (0..10).map(|i| START + i * SECOND / 10).collect();
    assert_eq!(first, expected);
    // Sent at 0 to 0.5 s they are sent again at 0.401 to 0.901 s, and the first ones at 0.802 s
    // and 0.902 s once more; all others would be sent again after the end.
    assert_eq!(result.summary.tally.classes[0].retries, 8);
    assert_eq!(result.summary.tally.outcomes().errors, 10);
    assert_eq!(told.iter().map(|failed| failed.retries).sum::<u32>(), 8);
    assert!(
        result
            .rows
            .iter()
            .all(|row| row.sent.as_nanos() < START + SECOND)
    );
}
