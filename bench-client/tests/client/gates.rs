//! Limits of connections on real sockets: a tiny RESP server takes each connection as a gate says.
//! Wall-clock tests: counts and causes are exact, moments are bounds.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::{NonZeroU32, NonZeroU64};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use kvlab_bench_client::engine::Silent;
use kvlab_bench_client::limits::LimitForm;
use kvlab_bench_client::record::{Cause, ErrorKind, Notice};
use kvlab_bench_client::settings::{ConnectSettings, RedisTarget, Renew, Stop, Target};
use kvlab_bench_client::{Control, RunResult, Settings, run};
use kvlab_timing::{Clock, Rate, Stamp, TokenBucket};

/// How a connection is taken.
#[derive(Clone, Copy)]
enum Gate {
    Serve,
    /// Not read before this moment.
    Hold(Stamp),
    /// Closed with its first request unread, which the kernel tells by a reset.
    Reset,
    /// This line, and closed in order.
    Line(&'static str),
}

/// Serves connection n, from 0, as the gate says. The threads end with their connections and the
/// process.
fn server(gate: impl FnMut(u64) -> Gate + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let gate = Arc::new(Mutex::new(gate));
    thread::spawn(move || {
        for (number, stream) in (0..).zip(listener.incoming()) {
            let Ok(stream) = stream else { return };
            let gate = (gate.lock().unwrap())(number);
            thread::spawn(move || take(&stream, gate));
        }
    });
    address
}

fn take(stream: &TcpStream, gate: Gate) {
    stream.set_nodelay(true).unwrap();
    match gate {
        Gate::Serve => {}
        Gate::Hold(until) => {
            let wait = until.saturating_since(Clock::real().now());
            thread::sleep(Duration::from_nanos(wait));
        }
        Gate::Reset => {
            // Waits for the request and leaves it unread.
            let _ = stream.peek(&mut [0]);
            return;
        }
        Gate::Line(text) => {
            let mut output = stream;
            let _ = output.write_all(text.as_bytes());
            let _ = stream.shutdown(Shutdown::Write);
            let mut rest = BufReader::new(stream);
            while rest.fill_buf().is_ok_and(|bytes| !bytes.is_empty()) {
                let read = rest.buffer().len();
                rest.consume(read);
            }
            return;
        }
    }
    let (mut input, mut output) = (BufReader::new(stream), stream);
    let mut line = String::new();
    // A request is its count of words and two lines for each.
    while input.read_line(&mut line).is_ok_and(|read| read > 0) {
        let words: usize = line[1..].trim().parse().unwrap();
        for _ in 0..2 * words {
            let mut part = Vec::new();
            if input.read_until(b'\n', &mut part).is_err() {
                return;
            }
        }
        line.clear();
        if output.write_all(b"+OK\r\n").is_err() {
            return;
        }
    }
}

fn settings(address: SocketAddr, connections: u32, requests: u64) -> Settings {
    let mut target = RedisTarget::new(address, 0, 1);
    target.probe = true;
    Settings {
        connections: NonZeroU32::new(connections).unwrap(),
        stop: Stop {
            duration: None,
            requests: Some(requests),
        },
        record_rows: true,
        ..Settings::new(Target::Redis(target))
    }
}

fn ran(settings: &Settings) -> RunResult {
    run(settings, &Control::new(), &mut Silent).unwrap()
}

fn count(result: &RunResult, cause: Cause) -> u64 {
    let rows = result.connects.iter();
    let rows = rows.filter(|row| row.cause == Some(cause)).count() as u64;
    assert_eq!(rows, result.summary.tally.connects.causes.of(cause));
    rows
}

#[test]
fn resets_and_lines_at_accept_are_told_apart_and_the_connections_come_up_all_the_same() {
    let address = server(|n| match n {
        0..5 => Gate::Reset,
        5..8 => Gate::Line("-ERR max number of clients reached\r\n"),
        _ => Gate::Serve,
    });
    let result = ran(&settings(address, 10, 200));
    assert_eq!(result.summary.connections_at_start, 10);
    assert_eq!(count(&result, Cause::ResetBeforeReply), 5);
    assert_eq!(count(&result, Cause::ErrorLine(ErrorKind::new(b"ERR"))), 3);
    let outcomes = result.summary.tally.outcomes();
    assert_eq!((outcomes.hits, outcomes.failed()), (200, 0));
    let texts = &result.summary.tally.connects.texts;
    assert_eq!(texts.get("ERR max number of clients reached"), Some(&3));
}

#[test]
fn a_bucket_that_delays_is_found() {
    // 60 at once against a burst of 10 and 100 per second: the last waits half a second. A busy
    // machine may spoil an attempt, but not three.
    let found = |_| {
        let mut bucket = None;
        let address = server(move |_| {
            let now = Clock::real().now();
            let refill = Rate::per_second(100).unwrap();
            let bucket = bucket.get_or_insert_with(|| TokenBucket::new(now, 10, refill));
            Gate::Hold(bucket.reserve(now, 1))
        });
        let result = ran(&settings(address, 60, 600));
        assert_eq!(result.summary.connections_at_start, 60);
        let first_replies = &result.summary.tally.connects.first_reply;
        assert_eq!(first_replies.count(), 60);
        // The last token comes half a second after the first connection.
        assert!(result.summary.setup.all_up.unwrap() >= Duration::from_millis(500));
        let bucket = result.summary.limits.bucket?;
        assert_eq!(bucket.form, LimitForm::Delay);
        Some(bucket.to_string())
    };
    let all: Vec<_> = (0..3).map(found).collect();
    let right = Some("10 per 100 ms (burst 10, 100/s)".to_owned());
    assert!(all.contains(&right), "{all:?}");
}

#[test]
fn a_ramp_takes_its_time_and_its_connections_are_not_early() {
    let mut settings = settings(server(|_| Gate::Serve), 25, 100);
    settings.threads = NonZeroU32::new(2).unwrap();
    settings.connects = ConnectSettings {
        rate: Some(Rate::per_second(200).unwrap()),
        burst: NonZeroU32::new(5).unwrap(),
        ..ConnectSettings::default()
    };
    let result = ran(&settings);
    // The last of 25 is begun 20 / 200 s after the burst of 5.
    assert!(result.summary.setup.all_up.unwrap() >= Duration::from_millis(100));
    assert!(result.connects.iter().all(|row| row.begun >= row.wanted));
    let mut wanted: Vec<u64> = result
        .connects
        .iter()
        .map(|row| row.wanted.saturating_since(result.summary.setup.begun))
        .collect();
    wanted.sort_unstable();
    let rest = (1..=20).map(|n| n * 5_000_000);
    assert_eq!(wanted, [0; 5].into_iter().chain(rest).collect::<Vec<_>>());
    assert_eq!(result.summary.limits.bucket, None);
}

#[test]
fn churn_loses_no_request() {
    let mut settings = settings(server(|_| Gate::Serve), 4, 1_000);
    settings.connects.renew = Renew::Requests(NonZeroU64::new(20).unwrap());
    let result = ran(&settings);
    let outcomes = result.summary.tally.outcomes();
    assert_eq!((outcomes.hits, outcomes.failed()), (1_000, 0));
    // 1,000 requests fill 50 connections but for the last ones of four places.
    let retired = count(&result, Cause::Retired);
    assert!((46..=50).contains(&retired), "{retired}");
    assert_eq!(result.summary.tally.connects.lost, 0);
}

#[test]
fn a_cap_is_found_and_the_run_says_with_how_many_it_ran() {
    let address = server(|n| match n {
        0..6 => Gate::Serve,
        _ => Gate::Line("-ERR max number of clients reached\r\n"),
    });
    let mut settings = settings(address, 10, 300);
    settings.connects.setup_timeout = Some(Duration::from_millis(1_500));
    settings.backoff.most = Duration::from_millis(100);
    let result = ran(&settings);
    assert_eq!(result.summary.connections_at_start, 6);
    let missing = Notice::ConnectionsMissing { wanted: 10, up: 6 };
    assert!(result.summary.notices.contains(&missing));
    let cap = result.summary.limits.cap.unwrap();
    assert_eq!((cap.connections, cap.form), (6, LimitForm::ErrorLine));
    assert_eq!(result.summary.tally.outcomes().failed(), 0);
}

#[test]
fn required_connections_decide_the_exit_status() {
    let address = server(|n| match n {
        0 => Gate::Serve,
        _ => Gate::Line("-ERR max number of clients reached\r\n"),
    });
    let bench = |options: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_kvlab-bench"))
            .arg(format!("redis://{address}"))
            .args(["--connections=2", "--requests=20", "--connect-probe", "-q"])
            .arg("--setup-timeout=300ms")
            .args(options)
            .output()
            .unwrap()
    };
    let output = bench(&["--require-connections"]);
    let (out, err) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    let out = String::from_utf8(out).unwrap();
    assert_eq!(output.status.code(), Some(7), "{err}");
    assert!(out.contains("RAN WITH 1 OF 2 CONNECTIONS"), "{out}");
    assert!(err.contains("ran with 1 of 2 connections"), "{err}");
}
