//! Connections that come step by step, under virtual time: who is there, and what is sent, must
//! equal arithmetic to the nanosecond.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use super::fake::{Gate, MILLI, SECOND, START, World};
use kvlab_bench_client::record::{ClientRow, Notice};
use kvlab_bench_client::settings::{
    Arrivals, Backoff, Load, RedisTarget, SettingsError, Staircase, Stop, Target,
};
use kvlab_bench_client::{RunResult, Settings};
use kvlab_timing::Rate;

/// Seven connections on two threads: 4 and 3. Each thread begins with 1 and gets 2 more after each
/// second of four: 2, then 6, then 7 in all.
fn settings(load: Load) -> Settings {
    Settings {
        threads: NonZeroU32::new(2).unwrap(),
        connections: NonZeroU32::new(7).unwrap(),
        staircase: Some(Staircase {
            start: NonZeroU32::MIN,
            step: NonZeroU32::new(2).unwrap(),
            length: Duration::from_secs(1),
        }),
        load,
        stop: Stop {
            duration: Some(Duration::from_secs(4)),
            requests: None,
        },
        record_rows: true,
        ..Settings::new(Target::Redis(RedisTarget::new(
            "127.0.0.1:6379".parse().unwrap(),
            1,
            1,
        )))
    }
}

fn open(rate: u64, arrivals: Arrivals) -> Load {
    Load::Open {
        rate: Rate::per_second(rate).unwrap(),
        arrivals,
    }
}

/// Requests sent in each second.
fn per_second(result: &RunResult) -> Vec<u64> {
    let mut seconds = vec![0; 4];
    for row in &result.rows {
        let second = row.sent.as_nanos().checked_sub(START).unwrap() / SECOND;
        seconds[usize::try_from(second).unwrap()] += 1;
    }
    seconds
}

/// When each connection sent its first request, in order.
fn first_sends(rows: &[ClientRow]) -> Vec<u64> {
    let mut first: BTreeMap<u32, u64> = BTreeMap::new();
    for row in rows {
        let at = row.sent.as_nanos() - START;
        first
            .entry(row.connection)
            .and_modify(|first| *first = at.min(*first))
            .or_insert(at);
    }
    let mut all: Vec<u64> = first.into_values().collect();
    all.sort_unstable();
    all
}

#[test]
fn a_closed_loop_grows_exactly_by_the_clock() {
    let result = World::new(MILLI, 0).run(&settings(Load::Closed)).unwrap();
    // A connection is answered within a millisecond, and sends its next request then.
    assert_eq!(per_second(&result), [2_000, 6_000, 7_000, 7_000]);
    let second = |n: u64, times: usize| vec![n * SECOND; times];
    let expected = [second(0, 2), second(1, 4), second(2, 1)].concat();
    assert_eq!(first_sends(&result.rows), expected);
    let summary = &result.summary;
    assert_eq!(summary.tally.outcomes().hits, 22_000);
    assert_eq!(
        (summary.connections_wanted, summary.connections_at_start),
        (7, 7)
    );
    assert!(summary.notices.is_empty(), "{:?}", summary.notices);
}

#[test]
fn a_rate_grows_with_the_connections_from_the_moment_of_the_step() {
    let load = open(140, Arrivals::Uniform);
    let result = World::new(MILLI, 0).run(&settings(load)).unwrap();
    // 20 a second for each connection that is there: 40, 120, 140 and 140 in all.
    let mut expected = Vec::new();
    for (second, rate) in (0..).zip([40, 120, 140, 140]) {
        // The last step goes on without a new begin.
        expected.extend((0..rate).map(|i: u64| START + second * SECOND + i * SECOND / rate));
    }
    let mut intended: Vec<u64> = result
        .rows
        .iter()
        .map(|row| row.intended.as_nanos())
        .collect();
    intended.sort_unstable();
    assert_eq!(intended, expected);
    assert!(result.rows.iter().all(|row| row.sent == row.intended));
    assert_eq!(result.summary.due, 440);
}

#[test]
fn random_arrivals_grow_as_well() {
    let load = open(70_000, Arrivals::Poisson);
    let mut settings = settings(load);
    settings.pipeline.depth = NonZeroU32::new(1_000).unwrap();
    let result = World::new(MILLI, 0).run(&settings).unwrap();
    let mut intended = vec![0_u64; 4];
    for row in &result.rows {
        intended[usize::try_from((row.intended.as_nanos() - START) / SECOND).unwrap()] += 1;
    }
    // Five standard deviations of each count.
    for (found, expected) in intended.iter().zip([20_000_u64, 60_000, 70_000, 70_000]) {
        let far = 5.0 * (expected as f64).sqrt();
        assert!((found.abs_diff(expected) as f64) < far, "{intended:?}");
    }
}

#[test]
fn steps_count_from_the_measured_part_and_end_with_it() {
    let mut settings = settings(Load::Closed);
    settings.warmup = Duration::from_millis(500);
    settings.stop.duration = Some(Duration::from_secs(1));
    let result = World::new(MILLI, 0).run(&settings).unwrap();
    assert_eq!(
        first_sends(&result.rows),
        [0, 0],
        "a step at the end is none"
    );
    let summary = &result.summary;
    assert_eq!(
        (summary.warmup.hits, summary.tally.outcomes().hits),
        (1_000, 2_000)
    );
    assert_eq!(
        (summary.connections_wanted, summary.connections_at_start),
        (2, 2)
    );
    assert!(summary.notices.is_empty(), "{:?}", summary.notices);
}

#[test]
fn connections_of_a_step_that_never_come_are_told() {
    let mut world = World::new(MILLI, 0);
    // The first two are let in, and one of the step.
    world.gate = Box::new(|attempt, _| {
        if attempt < 3 {
            Gate::Serve
        } else {
            Gate::Reset
        }
    });
    let mut settings = settings(Load::Closed);
    settings.stop.duration = Some(Duration::from_secs(2));
    settings.backoff = Backoff {
        attempts: 2,
        ..Backoff::default()
    };
    let target = match &mut settings.target {
        Target::Redis(target) => target,
        Target::Aerospike(_) => unreachable!("it is a RESP server"),
    };
    target.probe = true;
    let result = world.run(&settings).unwrap();
    let missing = Notice::ConnectionsMissing { wanted: 6, up: 3 };
    assert!(
        result.summary.notices.contains(&missing),
        "{:?}",
        result.summary.notices
    );
}

#[test]
fn a_number_of_requests_and_a_step_without_length_are_refused() {
    let mut counted = settings(Load::Closed);
    counted.stop.requests = Some(5);
    assert_eq!(counted.check(), Err(SettingsError::EndlessStaircase));
    let mut instant = settings(Load::Closed);
    instant.staircase = instant.staircase.map(|stairs| Staircase {
        length: Duration::ZERO,
        ..stairs
    });
    assert_eq!(instant.check(), Err(SettingsError::ZeroTime));
    // A rate whose part for some of the connections is no fraction that fits.
    let fine = settings(Load::Open {
        rate: Rate::new(1, 9_999_999_999).unwrap(),
        arrivals: Arrivals::Uniform,
    });
    assert!(matches!(
        fine.check(),
        Err(SettingsError::StaircaseRate { .. })
    ));
}
