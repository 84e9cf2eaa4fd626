//! The worker under virtual time: what it records must equal arithmetic to the nanosecond.

use std::collections::VecDeque;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use super::fake::{MILLI, SECOND, START, Script, World};
use kvlab_bench_client::record::{ClientRow, Outcome, RowKind};
use kvlab_bench_client::settings::{
    Arrivals, KeyPattern, Load, Pipeline, PipelineMode, RedisTarget, RespVersion, Stop, Target,
};
use kvlab_bench_client::{RunError, RunResult, Settings};
use kvlab_timing::Rate;
use proptest::prelude::*;

fn settings(connections: u32, depth: u32, load: Load, duration_ns: u64) -> Settings {
    let target = RedisTarget::new("127.0.0.1:6379".parse().unwrap(), 1, 1);
    Settings {
        connections: NonZeroU32::new(connections).unwrap(),
        pipeline: Pipeline {
            depth: NonZeroU32::new(depth).unwrap(),
            mode: PipelineMode::Window,
        },
        load,
        stop: Stop {
            duration: Some(Duration::from_nanos(duration_ns)),
            requests: None,
        },
        record_rows: true,
        ..Settings::new(Target::Redis(target))
    }
}

fn open(rate: u64, arrivals: Arrivals) -> Load {
    Load::Open {
        rate: Rate::per_second(rate).unwrap(),
        arrivals,
    }
}

fn response(row: &ClientRow) -> u64 {
    row.received.unwrap().saturating_since(row.intended)
}

fn service(row: &ClientRow) -> u64 {
    row.received.unwrap().saturating_since(row.sent)
}

/// Every request is in exactly one outcome, and rows and summary agree.
fn assert_accounted(result: &RunResult) {
    let summary = &result.summary;
    let outcomes = summary.tally.outcomes();
    assert_eq!(summary.due, outcomes.total(), "{outcomes:?}");
    let final_rows = |kind, outcome: fn(&Outcome) -> bool| {
        let rows = result.rows.iter();
        rows.filter(|row| row.kind == kind && !row.retried && outcome(&row.outcome))
            .count() as u64
    };
    let load = RowKind::Load;
    assert_eq!(
        final_rows(load, |outcome| *outcome == Outcome::Hit),
        outcomes.hits
    );
    assert_eq!(
        final_rows(load, |outcome| *outcome == Outcome::Miss),
        outcomes.misses
    );
    assert_eq!(
        final_rows(load, |outcome| matches!(outcome, Outcome::Error(_))),
        outcomes.errors
    );
    assert_eq!(
        final_rows(load, |outcome| *outcome == Outcome::Timeout),
        outcomes.timeouts
    );
    assert_eq!(
        final_rows(load, |outcome| *outcome == Outcome::ConnectionLost),
        outcomes.lost
    );
    assert_eq!(final_rows(load, |_| true) + outcomes.not_sent, summary.due);
    assert_eq!(
        final_rows(RowKind::Warmup, |_| true) + summary.warmup.not_sent,
        summary.warmup.total()
    );
    let recorded: u64 = summary
        .tally
        .classes
        .iter()
        .map(|class| class.service.count() + class.failed.count())
        .sum();
    assert_eq!(recorded, outcomes.answered());
    // On one connection the sequences are 0, 1, 2, ... and no stamp goes back.
    let mut rows: Vec<&ClientRow> = result.rows.iter().collect();
    rows.sort_by_key(|row| (row.local, row.ordinal, row.sequence));
    for pair in rows.windows(2) {
        if pair[0].local == pair[1].local {
            assert_eq!(pair[1].sequence, pair[0].sequence + 1);
            assert!(pair[1].sent >= pair[0].sent);
        } else {
            assert_eq!(pair[1].sequence, 0);
        }
    }
    for row in &result.rows {
        assert!(row.intended <= row.sent && row.received.is_none_or(|at| at >= row.sent));
    }
}

#[test]
fn closed_loop_records_exactly_what_the_server_and_network_take() {
    let mut world = World::new(MILLI, 50_001);
    let result = world.run(&settings(10, 1, Load::Closed, SECOND)).unwrap();
    assert_accounted(&result);
    // A round trip is 1 ms + 2 x 50.001 us: each connection sends at 0, 1, 2, ... of them.
    let round = MILLI + 2 * 50_001;
    assert_eq!(result.summary.due, 10 * SECOND.div_ceil(round));
    assert!(
        result
            .rows
            .iter()
            .all(|row| service(row) == round && row.intended == row.sent)
    );
    let latency = result.summary.tally.service();
    assert_eq!((latency.min_ns(), latency.max_ns()), (round, round));
    assert_eq!(latency.quantile_ns(0.5), round);
    assert!(result.summary.tally.response().is_empty());
    assert!(
        result.summary.notices.is_empty(),
        "{:?}",
        result.summary.notices
    );
}

#[test]
fn window_keeps_all_slots_full_and_times_each_reply() {
    let mut world = World::new(MILLI, 0);
    let result = world
        .run(&settings(2, 16, Load::Closed, 10 * MILLI))
        .unwrap();
    assert_accounted(&result);
    // All 32 requests of a round are sent together and answered together.
    assert_eq!(result.summary.due, 320);
    assert!(result.rows.iter().all(|row| service(row) == MILLI));
}

#[test]
fn batch_waits_for_all_replies_and_window_does_not() {
    // The second request of each pair is answered 5 ns late, byte by byte.
    let script = |n: u64| {
        if n.is_multiple_of(2) {
            Script::Reply("+OK\r\n")
        } else {
            Script::Dribble("+OK\r\n")
        }
    };
    let run = |mode| {
        let mut world = World::new(1000, 0);
        world.script = Box::new(script);
        let mut settings = settings(1, 2, Load::Closed, 10_000);
        settings.pipeline.mode = mode;
        let result = world.run(&settings).unwrap();
        assert_accounted(&result);
        let mut sent: Vec<u64> = result.rows.iter().map(|row| row.sent.as_nanos()).collect();
        sent.sort_unstable();
        sent
    };
    let batch = run(PipelineMode::Batch);
    assert!(batch.chunks(2).all(|pair| pair[0] == pair[1]), "{batch:?}");
    // The last byte arrives 4 ns after the first.
    assert_eq!(batch[2] - batch[0], 1004);
    let window = run(PipelineMode::Window);
    assert_eq!(window[2] - window[0], 1000);
    assert_eq!(window[3] - window[0], 1004);
}

/// Response times of arrivals at `i * gap`, without any limit in the client.
fn expected_unlimited(world: &World, gap: u64, count: u64) -> Vec<u64> {
    (0..count)
        .map(|i| {
            let intended = START + i * gap;
            let start = world.thaw(intended + world.network_ns);
            world.thaw(start + world.delay_ns) + world.network_ns - intended
        })
        .collect()
}

#[test]
fn open_loop_with_spare_slots_equals_the_arithmetic_of_the_freeze() {
    let mut world = World::new(MILLI, 20_000);
    world.freeze = Some((500 * MILLI, 2 * SECOND, 150 * MILLI));
    let settings = settings(10, 64, open(1000, Arrivals::Uniform), 20 * SECOND);
    let result = world.run(&settings).unwrap();
    assert_accounted(&result);
    let mut rows: Vec<_> = result.rows.clone();
    rows.sort_by_key(|row| row.intended);
    let found: Vec<u64> = rows.iter().map(response).collect();
    assert_eq!(found, expected_unlimited(&world, MILLI, 20_000));
    assert!(rows.iter().all(|row| row.sent == row.intended));
    // The reported quantiles are those of the exact samples, within the histogram's 0.1 %.
    let mut exact = found;
    exact.sort_unstable();
    let latency = result.summary.tally.response();
    for (q, rank) in [
        (0.5, 10_000),
        (0.9, 18_000),
        (0.99, 19_800),
        (0.999, 19_980),
    ] {
        let (reported, exact) = (latency.quantile_ns(q), exact[rank - 1]);
        assert!(
            reported.abs_diff(exact) * 1000 <= exact,
            "{q}: {reported} for {exact}"
        );
    }
    assert!(exact[19_799] > 130 * MILLI && exact[9_999] == MILLI + 40_000);
}

#[test]
fn open_loop_with_one_slot_equals_the_arithmetic_of_its_own_queue() {
    let mut world = World::new(MILLI, 20_000);
    world.freeze = Some((500 * MILLI, 2 * SECOND, 150 * MILLI));
    let settings = settings(10, 1, open(1000, Arrivals::Uniform), 4 * SECOND);
    let result = world.run(&settings).unwrap();
    assert_accounted(&result);
    // Ten servers and one queue, first come first served: an arrival goes out at once if a slot
    // is free, else when the earliest reply comes.
    let mut busy_until: Vec<u64> = vec![0; 10];
    let expected: Vec<(u64, u64)> = (0..4000)
        .map(|i| {
            let intended = START + i * MILLI;
            let earliest = busy_until.iter_mut().min().unwrap();
            let sent = intended.max(*earliest);
            let start = world.thaw(sent + world.network_ns);
            let received = world.thaw(start + world.delay_ns) + world.network_ns;
            *earliest = received;
            (received - intended, received - sent)
        })
        .collect();
    let mut rows: Vec<_> = result.rows.clone();
    rows.sort_by_key(|row| row.intended);
    let found: Vec<(u64, u64)> = rows
        .iter()
        .map(|row| (response(row), service(row)))
        .collect();
    assert_eq!(found, expected);
    // The queue is the server's doing: the client was never late itself.
    assert_eq!(result.summary.tally.lateness.max_ns(), 0);
    assert!(result.summary.tally.lag.max_ns() > 100 * MILLI);
    assert!(
        result.summary.notices.is_empty(),
        "{:?}",
        result.summary.notices
    );
}

#[test]
fn threads_share_one_timetable() {
    let mut world = World::new(MILLI, 0);
    let mut settings = settings(7, 4, open(3000, Arrivals::Uniform), SECOND);
    settings.threads = NonZeroU32::new(3).unwrap();
    let result = world.run(&settings).unwrap();
    assert_accounted(&result);
    let mut intended: Vec<u64> = result
        .rows
        .iter()
        .map(|row| row.intended.as_nanos())
        .collect();
    intended.sort_unstable();
    let expected: Vec<u64> = (0..3000).map(|i| START + i * SECOND / 3000).collect();
    assert_eq!(intended, expected);
}

#[test]
fn warm_up_is_left_out_by_stamp_and_does_not_move_the_timetable() {
    let mut world = World::new(MILLI, 0);
    let mut settings = settings(2, 8, open(700, Arrivals::Uniform), SECOND);
    settings.warmup = Duration::from_nanos(333_333_333);
    let result = world.run(&settings).unwrap();
    assert_accounted(&result);
    assert_eq!(result.summary.due, 700);
    // Arrivals 0 .. 233 of the warm-up lie before its end: 233 x 1/700 s = 0.33286 s.
    assert_eq!(result.summary.warmup.total(), 234);
    let first = result.rows.iter().filter(|row| row.kind == RowKind::Load);
    assert_eq!(
        first.map(|row| row.intended.as_nanos()).min(),
        Some(START + 333_333_333)
    );
    let measured_bytes = |result: &RunResult| result.summary.sequence_hash;
    let without = World::new(MILLI, 0)
        .run(&Settings {
            warmup: Duration::ZERO,
            ..settings.clone()
        })
        .unwrap();
    assert_eq!(measured_bytes(&result), measured_bytes(&without));
}

#[test]
fn number_of_requests_ends_the_run() {
    for load in [Load::Closed, open(10_000, Arrivals::Poisson)] {
        let mut settings = settings(3, 4, load, SECOND);
        settings.threads = NonZeroU32::new(2).unwrap();
        settings.stop = Stop {
            duration: None,
            requests: Some(1001),
        };
        let result = World::new(MILLI, 0).run(&settings).unwrap();
        assert_accounted(&result);
        assert_eq!(result.summary.due, 1001);
        assert_eq!(result.summary.tally.outcomes().hits, 1001);
    }
}

#[test]
fn overload_is_drained_and_the_rest_counted_as_not_sent() {
    // One slot, 1 ms per request: 1000/s of the 3000/s that are due.
    let mut settings = settings(1, 1, open(3000, Arrivals::Uniform), SECOND);
    settings.drain = Duration::from_millis(500);
    let result = World::new(MILLI, 0).run(&settings).unwrap();
    assert_accounted(&result);
    let outcomes = result.summary.tally.outcomes();
    assert_eq!(result.summary.due, 3000);
    // Sends at 0, 1, ..., 1499 ms; at 1500 ms the last reply and the end of the drain coincide.
    assert!((1500..=1501).contains(&outcomes.hits), "{outcomes:?}");
    assert_eq!(outcomes.not_sent, 3000 - outcomes.hits);
}

#[test]
fn misses_errors_and_pushes_are_told_apart() {
    let mut world = World::new(1000, 0);
    world.script = Box::new(|n| match n % 4 {
        0 => Script::Reply("$-1\r\n"),
        1 => Script::Reply("-LOADING Redis is loading the dataset in memory\r\n"),
        2 => Script::Reply(">2\r\n$1\r\na\r\n$1\r\nb\r\n+OK\r\n"),
        _ => Script::Dribble("-WRONGTYPE Operation against a key\r\n"),
    });
    let mut settings = settings(1, 1, Load::Closed, SECOND);
    settings.stop = Stop {
        duration: None,
        requests: Some(400),
    };
    let result = world.run(&settings).unwrap();
    assert_accounted(&result);
    let outcomes = result.summary.tally.outcomes();
    assert_eq!(
        (outcomes.hits, outcomes.misses, outcomes.errors),
        (100, 100, 200)
    );
    let errors: Vec<(String, u64)> = result
        .summary
        .tally
        .errors()
        .iter()
        .map(|(kind, n)| (kind.to_string(), *n))
        .collect();
    assert_eq!(
        errors,
        [("LOADING".to_owned(), 100), ("WRONGTYPE".to_owned(), 100)]
    );
    assert_eq!(result.summary.tally.pushes, 100);
}

#[test]
fn silence_is_a_timeout_and_takes_the_later_ones_with_it() {
    let mut world = World::new(MILLI, 0);
    // Open loop, 100 ms apart, one connection: request 3 is never answered.
    world.script = Box::new(|n| {
        if n == 3 {
            Script::Silence
        } else {
            Script::Reply("+OK\r\n")
        }
    });
    let mut settings = settings(1, 8, open(10, Arrivals::Uniform), SECOND);
    settings.timeout = Duration::from_millis(250);
    let result = world.run(&settings).unwrap();
    assert_accounted(&result);
    let mut rows = result.rows.clone();
    rows.sort_by_key(|row| row.intended);
    let outcomes: VecDeque<Outcome> = rows.iter().map(|row| row.outcome).collect();
    // Sent at 300 ms, timed out at 550 ms; those of 400 and 500 ms go with the connection.
    let (hit, timeout, lost) = (Outcome::Hit, Outcome::Timeout, Outcome::ConnectionLost);
    assert_eq!(
        outcomes,
        [hit, hit, hit, timeout, lost, lost, hit, hit, hit, hit]
    );
    assert_eq!(result.summary.tally.connects.lost, 1);
    assert_eq!(result.summary.tally.connects.established, 2);
}

#[test]
fn refused_server_is_an_error_and_not_a_result() {
    let mut world = World::new(MILLI, 0);
    world.refuse = Box::new(|_| true);
    let error = world
        .run(&settings(4, 1, Load::Closed, SECOND))
        .unwrap_err();
    assert!(matches!(error, RunError::NoConnection { .. }), "{error}");
}

#[test]
fn refused_login_is_its_own_error() {
    let mut world = World::new(MILLI, 0);
    world.script = Box::new(|_| Script::Reply("-WRONGPASS invalid username-password pair\r\n"));
    let mut settings = settings(4, 1, Load::Closed, SECOND);
    settings.threads = NonZeroU32::new(2).unwrap();
    if let Target::Redis(target) = &mut settings.target {
        target.password = Some("nope".into());
    }
    let error = world.run(&settings).unwrap_err();
    assert!(matches!(&error, RunError::LoginRefused { text, .. } if text.starts_with("WRONGPASS")));
}

#[test]
fn handshake_counts_in_the_sequence() {
    let mut settings = settings(2, 1, Load::Closed, 10 * MILLI);
    if let Target::Redis(target) = &mut settings.target {
        target.password = Some("pw".into());
        target.version = RespVersion::Three;
        target.database = 3;
    }
    let result = World::new(MILLI, 0).run(&settings).unwrap();
    assert_accounted(&result);
    let handshakes = result
        .rows
        .iter()
        .filter(|row| row.kind == RowKind::Handshake);
    assert_eq!(handshakes.map(|row| row.sequence).max(), Some(1));
    let loads = result.rows.iter().filter(|row| row.kind == RowKind::Load);
    assert_eq!(loads.map(|row| row.sequence).min(), Some(2));
    assert_eq!(result.summary.tally.control, 4);
}

#[test]
fn server_that_goes_away_ends_the_run_with_what_was_measured() {
    let mut world = World::new(MILLI, 0);
    world.script = Box::new(|n| {
        if n < 100 {
            Script::Reply("+OK\r\n")
        } else {
            Script::Close
        }
    });
    world.refuse = Box::new(|attempt| attempt >= 2);
    let result = world
        .run(&settings(2, 1, open(1000, Arrivals::Uniform), 60 * SECOND))
        .unwrap();
    assert_accounted(&result);
    let outcomes = result.summary.tally.outcomes();
    assert_eq!(outcomes.hits, 100);
    assert_eq!(outcomes.lost, 2);
    assert!(outcomes.not_sent > 0);
    assert!(
        result
            .summary
            .notices
            .iter()
            .any(|notice| { matches!(notice, kvlab_bench_client::record::Notice::ServerLost(_)) })
    );
    assert!(result.summary.elapsed() < Duration::from_secs(1));
}

#[test]
fn parallel_ranges_belong_to_connections() {
    let mut settings = settings(3, 2, Load::Closed, SECOND);
    settings.threads = NonZeroU32::new(2).unwrap();
    settings.keys.pattern = KeyPattern::Parallel;
    settings.keys.count = NonZeroU64::new(90).unwrap();
    settings.stop = Stop {
        duration: None,
        requests: Some(600),
    };
    let mut world = World::new(MILLI, 0);
    world.run(&settings).unwrap();
    for (number, read) in world.read.iter().enumerate() {
        let text = String::from_utf8_lossy(read).into_owned();
        let keys: Vec<usize> = text
            .split("key:")
            .skip(1)
            .map(|rest| rest[..12].parse().unwrap())
            .collect();
        // Keys 30 n to 30 n + 29, one after the other, over and over.
        let expected: Vec<usize> = (0..keys.len()).map(|i| 30 * number + i % 30).collect();
        assert_eq!(keys, expected);
        assert!(keys.len() > 60);
    }
}

#[test]
fn one_seed_sends_the_same_bytes() {
    let run = |seed, delay| {
        let mut settings = settings(1, 4, Load::Closed, SECOND);
        settings.seed = seed;
        settings.keys.pattern = KeyPattern::Zipf { exponent: 0.99 };
        settings.stop = Stop {
            duration: None,
            requests: Some(500),
        };
        let mut world = World::new(delay, 10);
        let result = world.run(&settings).unwrap();
        (world.read, result.summary.sequence_hash)
    };
    assert_eq!(run(5, 1000), run(5, 777_777));
    let (other, hash) = run(6, 1000);
    assert_ne!(other, run(5, 1000).0);
    assert_ne!(hash, run(5, 1000).1);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the server does, every request that was due ends in exactly one outcome.
    #[test]
    fn nothing_is_lost_whatever_happens(
        (connections, threads, depth) in (1_u32..6, 1_u32..4, 1_u32..6),
        batch in any::<bool>(),
        load in prop_oneof![
            Just(Load::Closed),
            (1_u64..4000).prop_map(|rate| open(rate, Arrivals::Uniform)),
            (1_u64..4000).prop_map(|rate| open(rate, Arrivals::Poisson)),
        ],
        requests in prop::option::of(0_u64..400),
        (warmup_ms, drain_ms, timeout_ms) in (0_u64..80, 0_u64..80, 1_u64..40),
        login in any::<bool>(),
        freeze_ms in prop::option::of((0_u64..100, 60_u64..200, 1_u64..50)),
        chaos in any::<u64>(),
        harshness in 0_u64..40,
    ) {
        let threads = threads.min(connections);
        let mut settings = settings(connections, depth, load, 200 * MILLI);
        settings.threads = NonZeroU32::new(threads).unwrap();
        settings.stop.requests = requests;
        settings.warmup = Duration::from_millis(warmup_ms);
        settings.drain = Duration::from_millis(drain_ms);
        settings.timeout = Duration::from_millis(timeout_ms);
        settings.seed = chaos;
        if batch {
            settings.pipeline.mode = PipelineMode::Batch;
        }
        if let Target::Redis(target) = &mut settings.target {
            target.password = login.then(|| "pw".into());
        }
        let mut world = World::new(MILLI, 20_000);
        world.freeze = freeze_ms
            .map(|(first, every, length)| (first * MILLI, every * MILLI, length * MILLI));
        // The first requests are let through, so that the login succeeds.
        let safe = u64::from(connections) * u64::from(login);
        world.script = Box::new(move |n| match scatter(chaos, n) % 100 {
            _ if n < safe => Script::Reply("+OK\r\n"),
            roll if roll * 3 < harshness => Script::Close,
            roll if roll * 2 < harshness => Script::Silence,
            roll if roll < harshness => Script::Dribble("-ERR no\r\n"),
            roll if roll < 60 => Script::Reply("+OK\r\n"),
            roll if roll < 80 => Script::Dribble("$-1\r\n"),
            _ => Script::Dribble(">1\r\n+x\r\n$3\r\nabc\r\n"),
        });
        world.refuse = Box::new(move |attempt| {
            attempt >= u64::from(connections) && scatter(!chaos, attempt) % 100 < harshness
        });
        let result = world.run(&settings).unwrap();
        assert_accounted(&result);
        if let Some(requests) = requests {
            prop_assert!(result.summary.due <= requests);
        }
        // No latency in an outcome that was answered is longer than the time-out.
        let timeout = timeout_ms * MILLI;
        let loads = || result.rows.iter().filter(|row| row.kind != RowKind::Handshake);
        prop_assert!(loads().all(|row| row.received.is_none() || service(row) <= timeout));
    }
}

/// A fixed number for each pair: splitmix64.
fn scatter(seed: u64, n: u64) -> u64 {
    let mut z = (seed ^ n.wrapping_mul(0xD134_2543_DE82_EF95)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}
