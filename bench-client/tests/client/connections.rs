//! Making, losing and renewing connections under virtual time: every moment and every count is
//! exact, by the arithmetic of the limit that the server applies.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use super::fake::{Gate, MILLI, SECOND, START, Script, World};
use kvlab_bench_client::record::{Cause, ConnectRow, ErrorKind, Notice, Outcome, RowKind};
use kvlab_bench_client::settings::{
    Arrivals, ConnectSettings, Load, RedisTarget, Renew, Stop, Target, WhenDown,
};
use kvlab_bench_client::{RunError, RunResult, Settings};
use kvlab_timing::{Rate, Stamp};

fn settings(connections: u32, load: Load, duration_ns: u64) -> Settings {
    let target = RedisTarget::new("127.0.0.1:6379".parse().unwrap(), 0, 1);
    Settings {
        connections: NonZeroU32::new(connections).unwrap(),
        load,
        stop: Stop {
            duration: Some(Duration::from_nanos(duration_ns)),
            requests: None,
        },
        record_rows: true,
        ..Settings::new(Target::Redis(target))
    }
}

fn probed(mut settings: Settings) -> Settings {
    if let Target::Redis(target) = &mut settings.target {
        target.probe = true;
    }
    settings
}

fn open(rate: u64) -> Load {
    Load::Open {
        rate: Rate::per_second(rate).unwrap(),
        arrivals: Arrivals::Uniform,
    }
}

fn since_start(stamp: Stamp) -> u64 {
    stamp.as_nanos() - START
}

/// The causes, in the order of the attempts' begins.
fn by_begin(result: &RunResult) -> Vec<ConnectRow> {
    let mut rows = result.connects.clone();
    rows.sort_by_key(|row| (row.begun, row.thread, row.place));
    rows
}

fn count(result: &RunResult, cause: Cause) -> usize {
    let rows = result.connects.iter();
    let rows = rows.filter(|row| row.cause == Some(cause)).count();
    let counted = result.summary.tally.connects.causes.of(cause);
    if cause != Cause::End {
        assert_eq!(rows as u64, counted, "{cause}");
    }
    rows
}

#[test]
fn a_ramp_begins_each_connection_at_its_moment_whichever_thread_makes_it() {
    let mut settings = probed(settings(10, Load::Closed, 10 * MILLI));
    settings.threads = NonZeroU32::new(3).unwrap();
    settings.connects = ConnectSettings {
        rate: Some(Rate::per_second(400).unwrap()),
        burst: NonZeroU32::new(4).unwrap(),
        ..ConnectSettings::default()
    };
    let result = World::new(MILLI, 10).run(&settings).unwrap();
    let begun: Vec<u64> = by_begin(&result)
        .iter()
        .map(|row| since_start(row.begun))
        .collect();
    // Four at once, then one in 2.5 ms.
    let ramp = (1..=6).map(|n| n * 2_500_000);
    let expected: Vec<u64> = [0; 4].into_iter().chain(ramp).collect();
    assert_eq!(begun, expected);
    assert!(result.connects.iter().all(|row| row.wanted == row.begun));
    // A PING takes 1 ms and two legs of 10 ns; the load begins when the last has its answer.
    let up = 15 * MILLI + MILLI + 20;
    let first = result.rows.iter().filter(|row| row.kind == RowKind::Load);
    assert_eq!(first.map(|row| since_start(row.sent)).min(), Some(up));
    assert_eq!(result.summary.setup.all_up, Some(Duration::from_nanos(up)));
    let tally = &result.summary.tally.connects;
    assert_eq!(
        (tally.login.count(), tally.login.min_ns()),
        (10, MILLI + 20)
    );
    assert_eq!(tally.setup.max_ns(), MILLI + 20);
    assert_eq!((tally.tcp.count(), tally.tcp.max_ns()), (10, 0));
    assert_eq!((tally.first_reply.count(), tally.tls.count()), (10, 0));
}

#[test]
fn a_delayed_accept_shows_in_the_first_reply_and_not_in_the_load() {
    // A bucket of 20 and 40 per second: attempt i, from 0, waits max(0, (i + 1 - 20) / 40 s).
    let mut world = World::new(MILLI, 0);
    world.gate = Box::new(|n, since| Gate::Hold(since + (n + 1).saturating_sub(20) * 25 * MILLI));
    let settings = probed(settings(100, Load::Closed, 100 * MILLI));
    let result = world.run(&settings).unwrap();
    let mut waits: Vec<u64> = result
        .connects
        .iter()
        .map(|row| row.first_reply_ns().unwrap())
        .collect();
    waits.sort_unstable();
    let expected: Vec<u64> = (1..=100_u64)
        .map(|n| n.saturating_sub(20) * 25 * MILLI + MILLI)
        .collect();
    assert_eq!(waits, expected);
    let service = result.summary.tally.service();
    assert_eq!((service.min_ns(), service.max_ns()), (MILLI, MILLI));
    assert_eq!(result.summary.connections_at_start, 100);
    assert_eq!(
        result.summary.setup.all_up,
        Some(Duration::from_millis(2_001))
    );
}

#[test]
fn resets_refusals_and_lines_are_told_apart_and_tried_again() {
    // The first 12 attempts end badly, each in its way; what comes later is served.
    let mut world = World::new(MILLI, 100);
    world.refuse = Box::new(|n| n < 3);
    world.gate = Box::new(|n, _| match n {
        3..6 => Gate::Reset,
        6..8 => Gate::Close,
        8..12 => Gate::Line("-ERR max number of clients reached\r\n"),
        _ => Gate::Serve,
    });
    let settings = probed(settings(20, Load::Closed, 100 * MILLI));
    let result = world.run(&settings).unwrap();
    assert_eq!(count(&result, Cause::Refused), 3);
    assert_eq!(count(&result, Cause::ResetBeforeReply), 3);
    assert_eq!(count(&result, Cause::ClosedBeforeReply), 2);
    let line = Cause::ErrorLine(ErrorKind::new(b"ERR"));
    assert_eq!(count(&result, line), 4);
    assert_eq!(count(&result, Cause::End), 20);
    let tally = &result.summary.tally.connects;
    let texts: Vec<_> = tally.texts.iter().collect();
    let text = "ERR max number of clients reached".to_owned();
    assert_eq!(texts, [(&text, &4)]);
    assert_eq!(tally.failed, 12);
    assert_eq!(result.summary.connections_at_start, 20);
    // Full jitter: the second attempt begins within the first wait of 10 ms, and is the second.
    for row in result.connects.iter().filter(|row| row.attempt == 1) {
        let first = result
            .connects
            .iter()
            .find(|other| other.place == row.place && other.attempt == 0)
            .unwrap();
        let waited = row.begun.saturating_since(first.ended.unwrap());
        assert!(waited <= 10 * MILLI, "{waited}");
        assert_eq!(row.wanted, row.begun);
    }
}

#[test]
fn the_load_begins_at_the_time_out_with_those_that_are_up_and_says_so() {
    let mut world = World::new(MILLI, 0);
    world.gate = Box::new(|n, _| if n < 312 { Gate::Serve } else { Gate::Hang });
    let mut settings = settings(400, Load::Closed, 10 * MILLI);
    settings.connect_timeout = Duration::from_secs(9);
    settings.connects.setup_timeout = Some(Duration::from_secs(2));
    let result = world.run(&settings).unwrap();
    assert_eq!(since_start(result.summary.started), 2 * SECOND);
    assert_eq!(result.summary.connections_at_start, 312);
    assert_eq!(result.summary.setup.all_up, None);
    let missing = Notice::ConnectionsMissing {
        wanted: 400,
        up: 312,
    };
    assert!(result.summary.notices.contains(&missing));
}

#[test]
fn a_thread_without_a_connection_does_not_end_the_run_of_the_others() {
    // A cap of 3: of four threads with one connection each, the last gets a line.
    let mut world = World::new(MILLI, 0);
    world.gate = Box::new(|n, _| match n {
        0..3 => Gate::Serve,
        _ => Gate::Line("-ERR max number of clients reached\r\n"),
    });
    let mut settings = probed(settings(4, Load::Closed, 50 * MILLI));
    settings.threads = NonZeroU32::new(4).unwrap();
    let result = world.run(&settings).unwrap();
    assert_eq!(result.summary.connections_at_start, 3);
    assert!(result.summary.tally.outcomes().hits > 0);
    // Nobody let in at all ends the run, with the server's words.
    let mut world = World::new(MILLI, 0);
    world.gate = Box::new(|_, _| Gate::Line("-ERR max number of clients reached\r\n"));
    let error = world.run(&settings).unwrap_err();
    assert!(
        matches!(&error, RunError::HandshakeRefused { text, .. } if text.contains("max number")),
        "{error}"
    );
}

#[test]
fn a_server_that_refuses_everybody_ends_the_set_up_after_three_attempts_each() {
    let mut world = World::new(MILLI, 0);
    world.refuse = Box::new(|_| true);
    let mut settings = settings(4, Load::Closed, SECOND);
    settings.threads = NonZeroU32::new(2).unwrap();
    let error = world.run(&settings).unwrap_err();
    assert!(matches!(&error, RunError::NoConnection { .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    // Waits of at most 10 and 20 ms.
    assert!(world.elapsed_ns() <= 30 * MILLI, "{}", world.elapsed_ns());
}

#[test]
fn requests_without_a_connection_wait_or_are_counted_as_not_sent() {
    // One connection. The server closes it at the request due at 300 ms, and refuses three times;
    // the waits are 10, 20, 40 ms at most, and 80 ms before the fourth attempt, which succeeds.
    let down = |when_down| {
        let mut world = World::new(0, 0);
        world.script = Box::new(|n| match n {
            30 => Script::Close,
            _ => Script::Reply("$-1\r\n"),
        });
        world.refuse = Box::new(|n| (1..4).contains(&n));
        let mut settings = settings(1, open(100), SECOND);
        settings.connects.when_down = when_down;
        world.run(&settings).unwrap()
    };
    let waited = down(WhenDown::Wait);
    let dropped = down(WhenDown::Drop);
    for result in [&waited, &dropped] {
        assert_eq!(result.summary.due, 100);
        let outcomes = result.summary.tally.outcomes();
        assert_eq!((outcomes.total(), outcomes.lost), (100, 1));
        assert_eq!(count(result, Cause::ClosedLater), 1);
        assert_eq!(count(result, Cause::Refused), 3);
    }
    // Both were down for the same time, because the jitter depends on the seed alone.
    let back = |result: &RunResult| {
        let mut rows = result.connects.iter();
        let row = rows.find(|row| row.cause == Some(Cause::End));
        since_start(row.unwrap().connected.unwrap())
    };
    let up_again = back(&waited);
    assert_eq!(back(&dropped), up_again);
    assert!(up_again > 310 * MILLI, "a wait that shows: {up_again}");
    // Requests are due every 10 ms; those before the return could not be sent.
    let late = (up_again - 1) / (10 * MILLI) - 30;
    assert_eq!(waited.summary.tally.outcomes().not_sent, 0);
    let worst = waited.summary.tally.response().max_ns();
    assert_eq!(worst, up_again - 310 * MILLI);
    assert_eq!(dropped.summary.tally.outcomes().not_sent, late);
    assert_eq!(dropped.summary.tally.response().max_ns(), 0);
}

#[test]
fn a_connection_is_renewed_after_its_requests_and_none_is_lost() {
    let mut settings = settings(2, Load::Closed, 100 * MILLI);
    settings.connects.renew = Renew::Requests(NonZeroU64::new(7).unwrap());
    let result = World::new(MILLI, 0).run(&settings).unwrap();
    // Connecting takes no time here, so each connection does its request per millisecond.
    let outcomes = result.summary.tally.outcomes();
    assert_eq!((outcomes.hits, outcomes.failed()), (200, 0));
    // 100 requests on each place: 14 full connections and one with two.
    assert_eq!(count(&result, Cause::Retired), 28);
    assert_eq!(count(&result, Cause::End), 2);
    assert_eq!(result.summary.tally.connects.lost, 0);
    let mut by_connection = std::collections::BTreeMap::<_, u64>::new();
    for row in &result.rows {
        *by_connection.entry(row.local).or_default() += 1;
        assert_eq!(row.outcome, Outcome::Hit);
    }
    let mut sizes: Vec<u64> = by_connection.into_values().collect();
    sizes.sort_unstable();
    assert_eq!(sizes[..2], [2, 2]);
    assert!(sizes[2..].iter().all(|size| *size == 7), "{sizes:?}");
}

#[test]
fn a_connection_is_renewed_after_its_time_once_its_reply_came() {
    // A lifetime of 10.5 ms ends between a send and its reply.
    let mut settings = settings(1, Load::Closed, 100 * MILLI);
    settings.connects.renew = Renew::After(Duration::from_micros(10_500));
    let result = World::new(MILLI, 0).run(&settings).unwrap();
    let outcomes = result.summary.tally.outcomes();
    assert_eq!((outcomes.hits, outcomes.failed()), (100, 0));
    let lives: Vec<u64> = by_begin(&result)
        .iter()
        .filter(|row| row.cause == Some(Cause::Retired))
        .map(|row| row.ended.unwrap().saturating_since(row.logged_in.unwrap()))
        .collect();
    assert_eq!(lives, [11 * MILLI; 9]);
    // By the exponential law the lives differ, and again nothing is lost.
    settings.connects.renew = Renew::Exponential(Duration::from_millis(10));
    let result = World::new(MILLI, 0).run(&settings).unwrap();
    let outcomes = result.summary.tally.outcomes();
    assert_eq!((outcomes.hits, outcomes.failed()), (100, 0));
    assert!(count(&result, Cause::Retired) > 2);
}

#[test]
fn a_connection_that_times_out_again_and_again_is_given_up_after_its_attempts() {
    let mut world = World::new(MILLI, 0);
    world.script = Box::new(|_| Script::Silence);
    let mut settings = settings(1, Load::Closed, 100 * SECOND);
    settings.timeout = Duration::from_millis(100);
    settings.backoff.attempts = 3;
    let result = world.run(&settings).unwrap();
    // The first failure and three attempts more.
    assert_eq!(result.summary.tally.outcomes().timeouts, 4);
    assert_eq!(count(&result, Cause::TimedOut), 4);
    assert!(
        result
            .summary
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::ServerLost(_)))
    );
}
