//! What `kvlab memtier` says where the original is wrong, over real sockets: pauses, silence,
//! garbage, names, files. Expected values are arithmetic on the schedule; the same in virtual time
//! stands with the load generator.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use kvlab_bench_client::frontend::ExitStatus;
use kvlab_mock_server::MockServer;
use kvlab_timing::{Clock, Stamp};

use super::memtier_cases::{Case, Ran, at_once};
use super::resp_wire::mock;

/// Runs a command line, with JSON.
fn memtier(line: &str, server: SocketAddr) -> Ran {
    Case::of(&format!("{line} -s HOST -p PORT --json-out-file JSON")).run(server)
}

/// A server that answers each piece it reads with these bytes, or never.
fn answering(reply: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The threads end with their connections and the process; nothing waits for them.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let mut chunk = [0; 4_096];
                while let Ok(1..) = stream.read(&mut chunk) {
                    if stream.write_all(reply).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn seconds_since(began: Stamp) -> f64 {
    Clock::real().now().saturating_since(began) as f64 / 1e9
}

/// Response times in ms of a client with one connection that sends every 10 ms for five seconds, at
/// a server that takes 2 ms for each and stands still for two seconds.
fn response_times_ms() -> Vec<f64> {
    let (service, pause_begin, pause_end) = (2.0, 1_505.0, 3_505.0);
    let thaw = |at: f64| {
        if (pause_begin..pause_end).contains(&at) {
            pause_end
        } else {
            at
        }
    };
    let mut free = 0.0;
    let mut times: Vec<f64> = (0..500)
        .map(|number| {
            let intended = 10.0 * f64::from(number);
            free = thaw(thaw(intended.max(free)) + service);
            free - intended
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The original prints a p99 of 1.06 ms for this pause, and forfeits the requests that were due.
#[test]
fn a_pause_of_two_seconds_is_in_p90_p95_and_p99() {
    let exact = response_times_ms();
    // The lowest sample that so many percent do not exceed.
    let ranks = [("p90.00", 450), ("p95.00", 475), ("p99.00", 495)];
    let run = |more: &str| {
        let server = MockServer::builder()
            .redis_port(0)
            .aerospike_port(None)
            .latency("constant(2ms)")
            .freeze("at=1.5s,for=2s")
            .start()
            .unwrap();
        let line = "-t 1 -c 1 --rate-limiting 100 --test-time 5 --hide-histogram \
                    --print-percentiles 50,90,95,99";
        let ran = memtier(&format!("{line} {more}"), server.redis_addr().unwrap());
        server.stop();
        assert_eq!(ran.status, ExitStatus::Done, "{}", ran.stderr);
        assert!((ran.total("Count") - 500.0).abs() <= 1.0, "no turn is lost");
        let value = ran.value()["ALL STATS"].clone();
        // Both are in the JSON, whichever is printed.
        for (key, rank) in ranks {
            let response = value["kvlab"]["Totals"]["response_time_ms"][key].as_f64();
            let (found, exact) = (response.unwrap(), exact[rank - 1]);
            assert!(
                (found - exact).abs() <= 0.03 * exact,
                "{key}: {found} for {exact}"
            );
            let service = value["kvlab"]["Totals"]["service_time_ms"][key].as_f64();
            assert!(service.unwrap() < 100.0, "{key}: {service:?}");
        }
        value["Totals"]["Percentile Latencies"].clone()
    };
    let (intended, sent) = thread::scope(|scope| {
        let sent = scope.spawn(|| run("--latency-from send"));
        (run(""), sent.join().unwrap())
    });
    for (key, rank) in ranks {
        let (found, exact) = (intended[key].as_f64().unwrap(), exact[rank - 1]);
        assert!(
            (found - exact).abs() <= 0.03 * exact,
            "{key}: {found} for {exact}"
        );
    }
    assert!(sent["p99.00"].as_f64().unwrap() < 100.0, "{sent}");
}

/// The original calls the first run the best and the worst.
#[test]
fn best_and_worst_are_the_runs_with_the_highest_and_the_lowest_rate() {
    let server = MockServer::builder()
        .redis_port(0)
        .aerospike_port(None)
        .latency("constant(5ms)")
        .shape("step(at=300ms,factor=0.1)")
        .start()
        .unwrap();
    let line = "-t 1 -c 1 -n 100 -x 3 --print-all-runs --hide-histogram";
    let ran = memtier(line, server.redis_addr().unwrap());
    server.stop();
    let value = ran.value();
    let rate = |table: &str| value[table]["Totals"]["Ops/sec"].as_f64().unwrap();
    let runs = [1, 2, 3].map(|number| rate(&format!("RUN #{number} RESULTS")));
    assert!(runs[0] < runs[1] && runs[0] < runs[2], "{runs:?}");
    assert_eq!(rate("WORST RUN RESULTS"), runs[0]);
    assert_eq!(rate("BEST RUN RESULTS"), runs[1].max(runs[2]));
    let mean = runs.iter().sum::<f64>() / 3.0;
    let average = rate("AGGREGATED AVERAGE RESULTS (3 runs)");
    assert!((average - mean).abs() < 0.02, "{average} {mean}");
    assert!(ran.stdout.contains("95 % confidence"), "{}", ran.stdout);
}

/// Rows and totals of every table: with `--command` the original adds the bytes twice.
#[test]
fn totals_are_the_sum_of_their_rows() {
    let server = mock(1);
    let commands = "--command 'SET __key__ __data__' --command 'GET __key__' --command PING";
    for line in ["--ratio 1:3", commands] {
        let line = format!("-t 2 -c 2 -n 200 -x 2 --hide-histogram {line}");
        let ran = memtier(&line, server.redis_addr().unwrap());
        assert_eq!(ran.status, ExitStatus::Done, "{}", ran.stderr);
        let value = ran.value();
        let tables = value.as_object().unwrap().values();
        let tables: Vec<_> = tables.filter(|table| table["Totals"].is_object()).collect();
        assert_eq!(tables.len(), 3, "best, worst and average");
        for table in tables {
            for key in ["Count", "Ops/sec", "KB/sec", "KB/sec RX", "KB/sec TX"] {
                let rows = table.as_object().unwrap().iter();
                let rows = rows.filter(|(name, _)| name.ends_with('s') && *name != "Totals");
                let sum: f64 = rows.filter_map(|(_, row)| row[key].as_f64()).sum();
                let total = table["Totals"][key].as_f64().unwrap();
                assert!(
                    total > 0.0 && (sum - total).abs() <= 0.03,
                    "{key}: {sum} {total}"
                );
            }
        }
    }
    server.stop();
}

/// A login, a database and a version each wait for a reply; the original waits for good.
#[test]
fn a_silent_server_ends_set_up_after_its_time_and_the_test_after_its_own() {
    at_once(&["-a secret", "--select-db 2", "-P resp3"], |step| {
        let line = format!("-t 1 -c 2 -n 10 --connection-stage-timeout 1 {step}");
        let began = Clock::real().now();
        let ran = memtier(&line, answering(b""));
        assert_eq!(
            ran.status,
            ExitStatus::NoConnection,
            "{step}: {}",
            ran.stderr
        );
        assert!(seconds_since(began) < 3.0, "{step}");
        assert!(ran.value()["ALL STATS"].is_object(), "{step}");
    });
    let began = Clock::real().now();
    let ran = memtier("-t 1 -c 2 --test-time 1", answering(b""));
    assert_eq!(ran.status, ExitStatus::TooManyErrors, "{}", ran.stderr);
    assert!(seconds_since(began) < 8.0, "{:?}", seconds_since(began));
    assert_eq!(ran.total("Count"), 0.0);
}

/// What is no reply ends the run at once, in set-up and later.
#[test]
fn garbage_ends_the_run_with_an_error() {
    at_once(&["-a secret", "-n 10", "--test-time 60"], |more| {
        let began = Clock::real().now();
        let address = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let ran = memtier(&format!("-t 1 -c 2 {more}"), address);
        assert_ne!(ran.status, ExitStatus::Done, "{more}: {}", ran.stderr);
        assert!(ran.stderr.contains("error: "), "{more}: {}", ran.stderr);
        assert!(
            seconds_since(began) < 10.0,
            "{more}: {:?}",
            seconds_since(began)
        );
        assert_eq!(ran.total("Count"), 0.0, "{more}");
    });
}

/// The original has 200 good operations in all three; its own test suite sends the first of them and
/// expects exit code 0.
#[test]
fn refused_commands_are_errors_and_fail_the_test_alone_or_by_a_limit() {
    let server = mock(1);
    let refused = "--command 'SET k v none' --hide-histogram -t 1 -c 2 -n 100";
    for (more, status, count) in [
        ("--command 'GET k'", ExitStatus::Done, 100.0),
        ("", ExitStatus::TooManyErrors, 0.0),
        (
            "--command 'GET k' --max-errors 1%",
            ExitStatus::TooManyErrors,
            100.0,
        ),
    ] {
        let ran = memtier(&format!("{refused} {more}"), server.redis_addr().unwrap());
        assert_eq!(ran.status, status, "{more}: {}", ran.stderr);
        assert_eq!(ran.total("Count"), count, "{more}");
        assert!(
            ran.stdout.contains("! SET            ERR"),
            "{}",
            ran.stdout
        );
        let warned = ran
            .stderr
            .contains("warning: 100 of 200 requests were refused");
        assert_eq!(warned, status == ExitStatus::Done, "{}", ran.stderr);
    }
    server.stop();
}

/// The original crashes (139).
#[test]
fn what_cannot_be_written_is_an_error_before_anything_is_sent() {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    for option in [
        "-o",
        "--json-out-file",
        "--client-stats",
        "--hdr-file-prefix",
    ] {
        let line = format!("-n 10 -s HOST -p PORT {option} /nonexistent/folder/file");
        let ran = Case::of(&line).run(nowhere);
        assert_eq!(ran.status, ExitStatus::Failed, "{option}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("/nonexistent/folder/file"),
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("RUN #1"), "{option}: {}", ran.stderr);
    }
}

/// The original accepts any name if the authority is right.
#[test]
fn a_certificate_of_another_host_is_refused_unless_told_otherwise() {
    let folder = std::env::temp_dir().join(format!("kvlab-truth-tls-{}", std::process::id()));
    let server = MockServer::builder()
        .redis_port(None)
        .aerospike_port(None)
        .redis_tls_port(0)
        .tls_self_signed(&folder)
        .start()
        .unwrap();
    let address = server.redis_tls_addr().unwrap();
    let authority = folder.join("ca.pem").display().to_string();
    let with = |more: &str| {
        let line = format!("-t 1 -c 1 -n 10 --tls --cacert {authority} {more}");
        memtier(&line, address)
    };
    assert_eq!(with("").status, ExitStatus::Done);
    let ran = with("--sni cache.example.com");
    assert_eq!(ran.status, ExitStatus::NoConnection, "{}", ran.stderr);
    assert!(ran.stderr.contains("--sni"), "{}", ran.stderr);
    let ran = with("--sni cache.example.com --tls-skip-verify");
    assert_eq!(ran.status, ExitStatus::Done, "{}", ran.stderr);
    server.stop();
    std::fs::remove_dir_all(&folder).unwrap();
}
