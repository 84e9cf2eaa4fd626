//! Rows from intervals and summaries made by hand.

use std::num::NonZeroU32;
use std::time::Duration;

use kvlab_timing::{Stamp, WallClock};

use super::super::model::{RowKind, Run};
use super::*;
use crate::record::ErrorKind;
use crate::settings::{Load, Pipeline, PipelineMode};

const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;

fn tally(sets: u64, gets: u64) -> Tally {
    let mut tally = Tally::new(2);
    for (class, count) in tally.classes.iter_mut().zip([sets, gets]) {
        class.outcomes.hits = count;
        class.bytes_out = 40 * count;
        class.bytes_in = 5 * count;
        for _ in 0..count {
            class.service.record(MILLI);
        }
    }
    tally
}

fn interval(begin_ns: u64, phase: Phase, tally: Tally) -> Interval {
    Interval {
        index: 0,
        phase,
        begin: Stamp::from_nanos(begin_ns),
        end: Stamp::from_nanos(begin_ns + SECOND),
        elapsed: Duration::ZERO,
        tally,
        ended: 0,
        progress: 0.0,
        connections: 2,
        connecting: 0,
        in_flight: 0,
        backlog: 0,
        threads: Vec::new(),
    }
}

fn summary(tally: Tally) -> Summary {
    Summary {
        load: Load::Closed,
        pipeline: Pipeline {
            depth: NonZeroU32::MIN,
            mode: PipelineMode::Window,
        },
        classes: vec!["SET".to_owned(), "GET".to_owned()],
        started: Stamp::from_nanos(10 * SECOND),
        first: Some(Stamp::from_nanos(10 * SECOND + MILLI)),
        last: Some(Stamp::from_nanos(12 * SECOND + 501 * MILLI)),
        due: 0,
        tally,
        warmup: Default::default(),
        connections_wanted: 2,
        connections_at_start: 2,
        setup: Default::default(),
        limits: Default::default(),
        threads: Vec::new(),
        sequence_hash: 0,
        interrupted: false,
        notices: Vec::new(),
        certificate: None,
    }
}

fn recorder() -> Recorder {
    // The clock's zero is one second after the beginning of 1970.
    let wall = WallClock::fixed(Stamp::ZERO, SECOND);
    let plan = RowPlan::standard(&[RowKind::Set, RowKind::Get]);
    Recorder::new(1, plan, &[50.0, 99.0], wall)
}

fn measured() -> Run {
    let mut recorder = recorder();
    recorder.interval(&interval(9 * SECOND, Phase::Warmup, tally(9, 9)));
    recorder.interval(&interval(10 * SECOND, Phase::Measured, tally(1, 2)));
    // Nothing ends in the second second; the third comes in two halves.
    recorder.interval(&interval(12 * SECOND, Phase::Measured, tally(3, 0)));
    recorder.interval(&interval(
        12 * SECOND + 500 * MILLI,
        Phase::Drain,
        tally(0, 4),
    ));
    recorder.interval(&interval(13 * SECOND, Phase::Drain, tally(0, 0)));
    recorder.finish(&summary(tally(4, 6)))
}

#[test]
fn duration_and_rate_come_from_the_monotonic_clock() {
    let run = measured();
    assert_eq!(run.duration, Duration::from_millis(2_500));
    assert_eq!(run.started_unix_ns, 11 * SECOND + MILLI);
    assert_eq!(run.finished_unix_ns(), 13 * SECOND + 501 * MILLI);
    assert!((run.rate() - 4.0).abs() < 1e-9, "10 in 2.5 s");
}

#[test]
fn each_second_stands_alone_and_a_silent_one_is_not_left_out() {
    let run = measured();
    let counts = |seconds: &[Second]| seconds.iter().map(Second::good).collect::<Vec<_>>();
    assert_eq!(counts(&run.rows[0].seconds), [1, 0, 3]);
    assert_eq!(counts(&run.rows[1].seconds), [2, 0, 4]);
    assert_eq!(counts(&run.seconds), [3, 0, 7], "the empty rest is dropped");
    let last = &run.seconds[2];
    assert_eq!((last.bytes_out, last.bytes_in), (280, 35));
    assert_eq!(last.service.sum_ns, u128::from(7 * MILLI));
    assert_eq!(last.service.percentiles_ns, [MILLI, MILLI]);
    assert!(run.seconds[1].service.percentiles_ns.is_empty());
}

#[test]
fn error_replies_are_no_operations_and_redirections_no_errors() {
    let mut errors = tally(0, 5);
    let get = &mut errors.classes[1];
    get.outcomes.errors = 4;
    // Those that were followed, and one that was sent round until it was given up.
    (get.moved, get.asked) = (2, 1);
    for (kind, count) in [("MOVED", 1), ("NOAUTH", 3)] {
        get.errors.insert(ErrorKind::new(kind.as_bytes()), count);
    }
    let rows = RowPlan::standard(&[RowKind::Set, RowKind::Get]).rows_of(&errors);
    let get = &rows[1];
    assert_eq!((get.good(), get.outcomes.errors), (5, 4));
    assert_eq!((get.moved, get.asked), (2, 1));
    assert_eq!(get.errors.values().sum::<u64>(), 4);
}

#[test]
fn a_run_that_could_not_be_ended_keeps_what_was_measured() {
    let mut recorder = recorder();
    recorder.interval(&interval(10 * SECOND, Phase::Measured, tally(1, 2)));
    let run = recorder.fail("the server refused".to_owned());
    assert_eq!(run.totals().good(), 3);
    assert_eq!(run.duration, Duration::from_secs(1));
    assert!(!run.is_whole());
    assert_eq!(run.seconds.len(), 1);
}

#[test]
fn lines_share_a_row_by_command_and_have_their_own_by_line() {
    let kinds = ["SET a 1", "GET b", "set c 2"].map(RowKind::of_command);
    let together = RowPlan::by_command(&kinds);
    assert_eq!(together.rows(), &kinds[..2]);
    assert_eq!(together.row_of(2), Some(0));
    let apart = RowPlan::by_line(&kinds);
    assert_eq!(apart.rows().len(), 3);
    assert_eq!(apart.row_of(2), Some(2));
}
