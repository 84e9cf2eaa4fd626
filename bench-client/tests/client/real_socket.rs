//! The real shell against a tiny RESP responder on a loopback socket. Wall-clock tests: they check
//! counts and order, not speed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use kvlab_bench_client::engine::Silent;
use kvlab_bench_client::record::{Interval, Notice, Outcome, Phase, RowKind, STAMP_TOLERANCE_NS};
use kvlab_bench_client::settings::{
    Arrivals, Content, KernelStamps, Load, Pipeline, PipelineMode, Polling, RedisTarget,
    SizeDistribution, Stop, Target, ValueSettings,
};
use kvlab_bench_client::{Control, Observer, RunError, Settings, run};
use kvlab_timing::{Clock, Rate, WallClock};

/// Answers each request with what `answer` says, until the other side closes; `None` closes.
fn responder(answer: fn(u64) -> Option<&'static [u8]>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The threads end with their connections and the process; nothing waits for them.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            thread::spawn(move || serve(stream, answer));
        }
    });
    address
}

fn serve(mut stream: TcpStream, answer: fn(u64) -> Option<&'static [u8]>) {
    stream.set_nodelay(true).unwrap();
    let (mut pending, mut chunk, mut served) = (Vec::new(), vec![0; 65_536], 0);
    loop {
        let Ok(n @ 1..) = stream.read(&mut chunk) else {
            return;
        };
        pending.extend_from_slice(&chunk[..n]);
        let mut replies = Vec::new();
        let mut start = 0;
        while let Some(len) = request_len(&pending[start..]) {
            start += len;
            let Some(reply) = answer(served) else {
                let _ = stream.write_all(&replies);
                return;
            };
            served += 1;
            replies.extend_from_slice(reply);
        }
        pending.drain(..start);
        if stream.write_all(&replies).is_err() {
            return;
        }
    }
}

fn request_len(bytes: &[u8]) -> Option<usize> {
    let line = |at: usize| {
        let end = at
            + bytes
                .get(at..)?
                .windows(2)
                .position(|pair| pair == b"\r\n")?;
        let number = std::str::from_utf8(&bytes[at + 1..end])
            .ok()?
            .parse::<usize>()
            .ok()?;
        Some((number, end + 2))
    };
    let (arguments, mut at) = line(0)?;
    for _ in 0..arguments {
        let (len, start) = line(at)?;
        at = start + len + 2;
    }
    (at <= bytes.len()).then_some(at)
}

fn settings(address: SocketAddr, connections: u32, requests: u64) -> Settings {
    Settings {
        connections: NonZeroU32::new(connections).unwrap(),
        stop: Stop {
            duration: None,
            requests: Some(requests),
        },
        record_rows: true,
        ..Settings::new(Target::Redis(RedisTarget::new(address, 1, 1)))
    }
}

fn ok(_: u64) -> Option<&'static [u8]> {
    Some(b"+OK\r\n")
}

#[test]
fn every_request_is_answered_and_has_its_row() {
    for (depth, mode) in [
        (1, PipelineMode::Window),
        (16, PipelineMode::Window),
        (16, PipelineMode::Batch),
    ] {
        let mut settings = settings(responder(ok), 5, 20_000);
        settings.threads = NonZeroU32::new(2).unwrap();
        settings.pipeline = Pipeline {
            depth: NonZeroU32::new(depth).unwrap(),
            mode,
        };
        let result = run(&settings, &Control::new(), &mut Silent).unwrap();
        assert_eq!(result.summary.due, 20_000);
        assert_eq!(result.summary.tally.outcomes().hits, 20_000);
        assert_eq!(result.rows.len(), 20_000);
        let mut rows = result.rows;
        rows.sort_by_key(|row| (row.local, row.sequence));
        for pair in rows
            .windows(2)
            .filter(|pair| pair[0].local == pair[1].local)
        {
            assert_eq!(pair[1].sequence, pair[0].sequence + 1);
            assert!(pair[1].sent >= pair[0].sent && pair[1].received >= pair[0].received);
        }
        assert!(rows.iter().all(|row| row.received.unwrap() > row.sent));
        assert!(
            result
                .summary
                .threads
                .iter()
                .all(|thread| thread.cpu_share.is_some())
        );
    }
}

#[test]
fn kernel_stamps_part_every_latency_in_two() {
    for depth in [1, 16] {
        let mut settings = settings(responder(ok), 5, 5_000);
        settings.pipeline.depth = NonZeroU32::new(depth).unwrap();
        settings.kernel_stamps = KernelStamps::Auto;
        let result = run(&settings, &Control::new(), &mut Silent).unwrap();
        let (tally, notices) = (&result.summary.tally, &result.summary.notices);
        let missing = |notice: &Notice| matches!(notice, Notice::NoKernelStamps { .. });
        if notices.iter().any(missing) {
            eprintln!("nothing to test: {notices:?}");
            assert!(tally.network().is_empty());
            return;
        }
        assert!(notices.is_empty(), "{notices:?}");
        assert_eq!(tally.stamps_astray, 0);
        assert_eq!(tally.read_delay.count(), 5_000);
        assert_eq!(
            tally.network().sum_ns() + tally.read_delay.sum_ns(),
            tally.service().sum_ns()
        );
        for row in &result.rows {
            let (kernel, received) = (row.kernel.unwrap(), row.received.unwrap());
            assert!(row.sent.saturating_since(kernel) <= STAMP_TOLERANCE_NS);
            assert!(kernel.saturating_since(received) <= STAMP_TOLERANCE_NS);
        }
    }
}

#[test]
fn without_the_option_there_is_no_network_latency() {
    let settings = settings(responder(ok), 2, 100);
    let result = run(&settings, &Control::new(), &mut Silent).unwrap();
    assert!(result.summary.tally.network().is_empty());
    assert!(result.rows.iter().all(|row| row.kernel.is_none()));
}

#[test]
fn large_values_pass_through_partial_writes() {
    let mut settings = settings(responder(ok), 2, 60);
    settings.pipeline.depth = NonZeroU32::new(8).unwrap();
    settings.values = ValueSettings {
        size: SizeDistribution::Fixed(3_000_000),
        content: Content::Random,
    };
    if let Target::Redis(target) = &mut settings.target {
        target
            .operations
            .retain(|operation| operation.name == "SET");
    }
    let result = run(&settings, &Control::new(), &mut Silent).unwrap();
    assert_eq!(result.summary.tally.outcomes().hits, 60);
    assert!(result.summary.tally.bytes_out > 60 * 3_000_000);
}

#[test]
fn open_loop_keeps_its_timetable() {
    let mut settings = settings(responder(ok), 4, 0);
    settings.stop = Stop {
        duration: Some(Duration::from_millis(500)),
        requests: None,
    };
    settings.load = Load::Open {
        rate: Rate::per_second(2000).unwrap(),
        arrivals: Arrivals::Uniform,
    };
    settings.warmup = Duration::from_millis(100);
    let result = run(&settings, &Control::new(), &mut Silent).unwrap();
    assert_eq!(result.summary.due, 1000);
    assert_eq!(result.summary.tally.outcomes().hits, 1000);
    assert_eq!(result.summary.warmup.hits, 200);
    let mut rows = result.rows;
    rows.retain(|row| row.kind == RowKind::Load);
    rows.sort_by_key(|row| row.intended);
    let start = result.summary.started;
    for (place, row) in (0..).zip(&rows) {
        assert_eq!(row.intended, start.add_nanos(place * 500_000));
        assert!(row.sent >= row.intended);
    }
}

#[derive(Default)]
struct Watcher {
    started: Option<u64>,
    intervals: Vec<(u64, Phase, u64)>,
    stop_after: Option<(usize, Control)>,
}

impl Observer for Watcher {
    fn started(&mut self, connections: u64) {
        self.started = Some(connections);
    }

    fn interval(&mut self, interval: &Interval) {
        let total = interval.tally.outcomes().total();
        self.intervals.push((interval.index, interval.phase, total));
        if let Some((after, control)) = &self.stop_after
            && self.intervals.len() >= *after
        {
            control.stop();
        }
    }
}

#[test]
fn intervals_add_up_to_the_summary() {
    let mut settings = settings(responder(ok), 4, 0);
    settings.threads = NonZeroU32::new(2).unwrap();
    settings.interval = Duration::from_millis(50);
    settings.stop = Stop {
        duration: Some(Duration::from_millis(300)),
        requests: None,
    };
    settings.warmup = Duration::from_millis(100);
    let mut watcher = Watcher::default();
    let result = run(&settings, &Control::new(), &mut watcher).unwrap();
    assert_eq!(watcher.started, Some(4));
    let indices: Vec<u64> = watcher.intervals.iter().map(|(index, ..)| *index).collect();
    assert_eq!(
        indices,
        (0..watcher.intervals.len() as u64).collect::<Vec<_>>()
    );
    let sum = |phases: &[Phase]| -> u64 {
        let all = watcher.intervals.iter();
        all.filter(|(_, phase, _)| phases.contains(phase))
            .map(|(.., total)| total)
            .sum()
    };
    assert_eq!(sum(&[Phase::Measured, Phase::Drain]), result.summary.due);
    assert!(sum(&[Phase::Warmup]) > 0);
    let measured = watcher
        .intervals
        .iter()
        .filter(|(_, phase, _)| *phase == Phase::Measured)
        .count();
    assert_eq!(measured, 6);
}

#[derive(Default)]
struct Health(Vec<Interval>);

impl Observer for Health {
    fn interval(&mut self, interval: &Interval) {
        self.0.push(interval.clone());
    }
}

#[test]
fn each_interval_says_how_the_client_was() {
    for polling in [Polling::Sleep, Polling::Spin] {
        let mut settings = settings(responder(ok), 4, 0);
        settings.threads = NonZeroU32::new(2).unwrap();
        settings.polling = polling;
        settings.interval = Duration::from_millis(100);
        settings.stop = Stop {
            duration: Some(Duration::from_millis(300)),
            requests: None,
        };
        settings.load = Load::Open {
            rate: Rate::per_second(1000).unwrap(),
            arrivals: Arrivals::Uniform,
        };
        let mut health = Health::default();
        let result = run(&settings, &Control::new(), &mut health).unwrap();
        let tally = &result.summary.tally;
        assert_eq!(tally.outcomes().hits, 300);
        // A request takes at least one turn for its send or its reply; both may share it.
        assert!(tally.turns.count() > 0);
        let measured = health.0.iter().filter(|i| i.phase == Phase::Measured);
        let mut turns = 0;
        for interval in measured {
            turns += interval.tally.turns.count();
            assert_eq!(interval.threads.len(), 2, "{polling:?}");
            for thread in &interval.threads {
                assert!(thread.spun_share <= thread.cpu_share, "{thread:?}");
                assert!(thread.cpu_share > 0.0, "{thread:?}");
            }
        }
        assert!(turns <= tally.turns.count());
        for thread in &result.summary.threads {
            assert!(thread.spun.unwrap() <= thread.cpu.unwrap());
        }
    }
}

#[test]
fn the_load_begins_at_the_moment_asked_for() {
    let clock = Clock::real();
    let wall = WallClock::real(clock);
    let wanted = clock.now() + Duration::from_millis(150);
    for load in [
        Load::Closed,
        Load::Open {
            rate: Rate::per_second(1000).unwrap(),
            arrivals: Arrivals::Uniform,
        },
    ] {
        let wanted = wanted.max(clock.now() + Duration::from_millis(150));
        let mut settings = settings(responder(ok), 2, 50);
        settings.load = load;
        settings.warmup = Duration::from_millis(20);
        settings.start_at_unix_ns = Some(wall.unix_nanos(wanted));
        let result = run(&settings, &Control::new(), &mut Silent).unwrap();
        let summary = &result.summary;
        // The calendar is converted twice, each time to well under a microsecond.
        let start = summary.started.sub_nanos(20_000_000);
        assert!(start.since(wanted).abs() < 10_000, "{start} {wanted}");
        let kinds = [RowKind::Load, RowKind::Warmup];
        let mut load = result.rows.iter().filter(|row| kinds.contains(&row.kind));
        assert!(load.all(|row| row.sent >= start));
        assert_eq!(summary.tally.outcomes().hits, 50);
        assert!(!is_late(&summary.notices), "{:?}", summary.notices);
    }
}

#[test]
fn a_start_that_was_missed_is_told() {
    let clock = Clock::real();
    let wall = WallClock::real(clock);
    let mut settings = settings(responder(ok), 2, 50);
    settings.start_at_unix_ns = Some(wall.unix_nanos(clock.now()));
    let result = run(&settings, &Control::new(), &mut Silent).unwrap();
    assert!(is_late(&result.summary.notices));
    assert_eq!(result.summary.tally.outcomes().hits, 50);
}

fn is_late(notices: &[Notice]) -> bool {
    let late = |notice: &Notice| matches!(notice, Notice::StartedLate { .. });
    notices.iter().any(late)
}

#[test]
fn a_run_can_be_stopped_while_it_waits_for_its_start() {
    let clock = Clock::real();
    let wall = WallClock::real(clock);
    let mut settings = settings(responder(ok), 2, 50);
    let far = clock.now() + Duration::from_secs(3600);
    settings.start_at_unix_ns = Some(wall.unix_nanos(far));
    let control = Control::new();
    control.stop();
    let result = run(&settings, &control, &mut Silent).unwrap();
    assert!(result.summary.interrupted);
    assert_eq!(result.summary.due, 0);
}

#[test]
fn a_stopped_run_gives_what_was_measured() {
    let mut settings = settings(responder(ok), 2, 0);
    settings.stop = Stop {
        duration: Some(Duration::from_secs(3600)),
        requests: None,
    };
    settings.interval = Duration::from_millis(20);
    let control = Control::new();
    let mut watcher = Watcher {
        stop_after: Some((3, control.clone())),
        ..Watcher::default()
    };
    let result = run(&settings, &control, &mut watcher).unwrap();
    assert!(result.summary.interrupted);
    assert!(result.summary.due > 0);
    assert_eq!(result.summary.due, result.summary.tally.outcomes().total());
}

#[test]
fn a_closed_port_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut settings = settings(address, 3, 10);
    settings.threads = NonZeroU32::new(3).unwrap();
    let error = run(&settings, &Control::new(), &mut Silent).unwrap_err();
    assert!(matches!(&error, RunError::NoConnection { .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn a_refused_login_is_told_apart() {
    let mut settings = settings(
        responder(|_| Some(b"-WRONGPASS invalid username-password pair\r\n")),
        2,
        10,
    );
    if let Target::Redis(target) = &mut settings.target {
        target.password = Some("nope".into());
    }
    let error = run(&settings, &Control::new(), &mut Silent).unwrap_err();
    assert!(matches!(&error, RunError::LoginRefused { .. }), "{error}");
}

#[test]
fn one_threads_refusal_ends_the_run_for_all() {
    static LOGINS: AtomicU64 = AtomicU64::new(0);
    // The fourth login over all connections is refused.
    let address = responder(|n| {
        if n > 0 || LOGINS.fetch_add(1, Ordering::Relaxed) != 3 {
            return Some(b"+OK\r\n");
        }
        Some(b"-WRONGPASS invalid username-password pair\r\n")
    });
    let mut settings = settings(address, 6, 0);
    settings.threads = NonZeroU32::new(3).unwrap();
    settings.stop = Stop {
        duration: Some(Duration::from_secs(3600)),
        requests: None,
    };
    if let Target::Redis(target) = &mut settings.target {
        target.password = Some("pw".into());
    }
    let error = run(&settings, &Control::new(), &mut Silent).unwrap_err();
    assert!(matches!(&error, RunError::LoginRefused { .. }), "{error}");
}

#[test]
fn closed_connections_come_back_and_every_request_is_counted() {
    // Each connection answers nine requests and closes at the tenth.
    let address = responder(|n| if n < 9 { Some(b"$-1\r\n") } else { None });
    let result = run(&settings(address, 3, 500), &Control::new(), &mut Silent).unwrap();
    let outcomes = result.summary.tally.outcomes();
    assert_eq!(outcomes.total(), 500);
    assert_eq!(outcomes.misses + outcomes.lost, 500);
    assert_eq!(outcomes.lost, result.summary.tally.connects.lost);
    assert!(outcomes.lost >= 48, "{outcomes:?}");
    let lost = result
        .rows
        .iter()
        .filter(|row| row.outcome == Outcome::ConnectionLost);
    assert_eq!(lost.count() as u64, outcomes.lost);
}

#[test]
fn a_server_that_vanishes_leaves_a_notice_and_the_numbers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        serve(stream, |n| if n < 50 { Some(b"+OK\r\n") } else { None });
    });
    let mut settings = settings(address, 1, 100);
    settings.backoff.attempts = 2;
    let result = run(&settings, &Control::new(), &mut Silent).unwrap();
    let outcomes = result.summary.tally.outcomes();
    assert_eq!((outcomes.hits, outcomes.lost), (50, 1));
    let losses = result.summary.notices.iter();
    let lost = losses
        .filter(|notice| matches!(notice, Notice::ServerLost(_)))
        .count();
    assert_eq!(lost, 1);
}
