//! The program as a process: exit statuses, streams, files and signals, against a tiny responder.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use super::responder::{Answer, Responder};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn bench(url: &str, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvlab-bench"));
    command
        .arg(url)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn output(url: &str, options: &[&str]) -> Output {
    bench(url, options).output().unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A path for a file of one test.
fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

/// Answers SET with OK, odd GETs with a value and even ones with nothing.
fn ok() -> Responder {
    Responder::start(|number, words| match words[0].as_slice() {
        b"GET" if number % 2 == 0 => Answer::Reply(b"$-1\r\n"),
        b"GET" => Answer::Reply(b"$2\r\nhi\r\n"),
        _ => Answer::Reply(b"+OK\r\n"),
    })
}

#[test]
fn closed_loop_prints_its_summary_and_ends_with_0() {
    let server = ok();
    let options = ["--requests=1000", "--connections=4", "--pipeline=2"];
    let output = output(&server.url(), &options);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let summary = text(&output.stdout);
    assert!(summary.contains("\nclosed loop: "), "{summary}");
    assert!(
        summary.contains("1 thread, 4 connections, pipeline 2 (window), seed 1"),
        "{summary}"
    );
    assert!(summary.contains("1000 due = "), "{summary}");
    assert!(!summary.contains("response"), "{summary}");
    assert_eq!(server.requests(), 1000);
}

#[test]
fn open_loop_shows_both_times_and_a_plain_line_per_second() {
    let server = ok();
    let options = ["--rate=500", "--duration=1100ms", "--connections=2"];
    let output = output(&server.url(), &options);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let summary = text(&output.stdout);
    assert!(
        summary.contains("\nopen loop: 500 requests due per second"),
        "{summary}"
    );
    assert!(summary.contains("550 due = "), "{summary}");
    for row in [
        "total        service",
        "total        response",
        "schedule lag",
        "lateness",
    ] {
        assert!(summary.contains(row), "{row}: {summary}");
    }
    let live = text(&output.stderr);
    let first = live.lines().next().unwrap();
    assert!(
        first.contains("/s  p50 ") && first.contains("errors 0"),
        "{live}"
    );
    assert!(!live.contains('\r'), "{live}");
}

#[test]
fn json_csv_and_hdr_log_agree() {
    let server = ok();
    let (csv, hdr_log) = (scratch("agree.csv"), scratch("agree.hlog"));
    let (csv_option, log_option) = (
        format!("--csv={}", csv.display()),
        format!("--hdr-log={}", hdr_log.display()),
    );
    let options = [
        "--rate=400",
        "--duration=1300ms",
        "--warmup=200ms",
        "--connections=3",
        "--ratio=1:1",
        "--json=-",
        &csv_option,
        &log_option,
    ];
    let output = output(&server.url(), &options);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));

    // Stdout holds the JSON alone; the summary for people is on stderr.
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(text(&output.stderr).contains("\nopen loop: "));
    let result = &json["result"];
    assert_eq!(
        (&json["schema"], &json["schema_version"]),
        (&"kvlab-bench".into(), &1.into())
    );
    assert_eq!(result["due"], 520);
    let counts = result["total"]["outcomes"].as_object().unwrap();
    let ended: u64 = counts.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(ended, 520);

    // The rows of the measured part add up to the counts of the whole.
    let mut reader = csv::Reader::from_path(&csv).unwrap();
    let heading = reader.headers().unwrap().clone();
    let column = |name: &str| heading.iter().position(|column| column == name).unwrap();
    let (phase, class, hits) = (column("phase"), column("class"), column("hits"));
    let mut sum = 0;
    for row in reader.records() {
        let row = row.unwrap();
        if &row[phase] != "warmup" && &row[class] == "total" {
            sum += row[hits].parse::<u64>().unwrap();
        }
    }
    assert_eq!(result["total"]["outcomes"]["hits"], sum);

    // The histograms of a tag add up to the latencies of the whole.
    let log = fs::read(&hdr_log).unwrap();
    for class in result["classes"].as_array().unwrap() {
        for kind in ["service", "response"] {
            let tag = format!("{}.{kind}", class["name"].as_str().unwrap());
            let all = added_up(&log, &tag);
            let expected = &class[kind];
            assert_eq!(expected["samples"], all.len(), "{tag}");
            let median = expected["p50_ns"].as_u64().unwrap();
            // The summary cuts the width of a bucket off where the exact maximum lies in it.
            let logged = all.value_at_quantile(0.5);
            assert!(
                median <= logged && (logged - median) * 1000 <= logged,
                "{tag}"
            );
        }
    }
    for path in [csv, hdr_log] {
        fs::remove_file(path).unwrap();
    }
}

fn added_up(log: &[u8], tag: &str) -> Histogram<u64> {
    let mut all = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    for entry in IntervalLogIterator::new(log) {
        let LogEntry::Interval(interval) = entry.unwrap() else {
            continue;
        };
        if interval.tag().is_some_and(|found| found.as_str() == tag) {
            let bytes = base64(interval.encoded_histogram());
            let one: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
            all.add(&one).unwrap();
        }
    }
    all
}

fn base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap()
}

#[test]
fn refused_connection_is_an_error_and_no_zeros() {
    // Bound and dropped: nobody listens there.
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let output = output(
        &format!("redis://{address}"),
        &["--duration=1s", "--connect-timeout=1s"],
    );
    assert_eq!(status(&output), 4);
    assert_eq!(text(&output.stdout), "");
    let error = text(&output.stderr);
    assert!(
        error.starts_with(&format!("error: no connection to {address}: ")),
        "{error}"
    );
}

#[test]
fn unknown_host_is_no_connection() {
    let output = output("redis://no-such-host.invalid", &[]);
    assert_eq!(status(&output), 4);
    assert!(text(&output.stderr).contains("no-such-host.invalid"));
}

#[test]
fn refused_login_ends_with_5() {
    let server = Responder::start(|_, words| match words[0].as_slice() {
        b"AUTH" => Answer::Reply(b"-WRONGPASS invalid username-password pair\r\n"),
        _ => Answer::Reply(b"-NOAUTH Authentication required.\r\n"),
    });
    let url = server.url().replace("redis://", "redis://joe:wrong@");
    let output = output(&url, &["--requests=10"]);
    let error = text(&output.stderr);
    assert_eq!(status(&output), 5, "{error}");
    assert!(
        error.contains("WRONGPASS") && !error.contains("joe:wrong"),
        "{error}"
    );
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn lost_server_is_named_after_the_summary_of_what_was_measured() {
    let server = Responder::start(|number, _| {
        if number < 200 {
            Answer::Reply(b"+OK\r\n")
        } else {
            Answer::Vanish
        }
    });
    let options = [
        "--ratio=1:0",
        "--connections=1",
        "--duration=20s",
        "--timeout=1s",
    ];
    let output = output(&server.url(), &options);
    let error = text(&output.stderr);
    assert_eq!(status(&output), 4, "{error}");
    assert!(error.contains("was lost"), "{error}");
    let summary = text(&output.stdout);
    assert!(summary.contains("200 hits"), "{summary}");
}

#[test]
fn errors_above_the_limit_end_with_6() {
    let server = Responder::start(|number, _| {
        if number % 10 == 0 {
            Answer::Reply(b"-BUSY later\r\n")
        } else {
            Answer::Reply(b"+OK\r\n")
        }
    });
    let table: [(&[&str], i32); 4] = [
        (&["--requests=100"], 6),
        (&["--requests=100", "--max-errors=10"], 0),
        (&["--requests=100", "--max-errors=9"], 6),
        (&["--requests=100", "--max-errors=none"], 0),
    ];
    for (options, expected) in table {
        let mut options = options.to_vec();
        options.extend(["--connections=1", "--command=PING"]);
        let output = output(&server.url(), &options);
        assert_eq!(
            status(&output),
            expected,
            "{options:?}: {}",
            text(&output.stderr)
        );
        assert!(text(&output.stdout).contains("\nerrors        BUSY 10\n"));
    }
}

#[test]
fn a_start_in_the_past_or_the_far_future_is_a_usage_error() {
    for (moment, words) in [
        ("2024-01-01T00:00:00Z", "ago"),
        ("1700000000", "ago"),
        ("2500-01-01T00:00:00Z", "ahead"),
        ("+25h", "ahead"),
    ] {
        let output = output("redis://127.0.0.1:1", &["--start-at", moment]);
        assert_eq!(status(&output), 2, "{moment}");
        let message = text(&output.stderr);
        assert!(
            message.contains("--start-at: expected a moment"),
            "{message}"
        );
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn the_result_says_when_the_load_began() {
    let server = ok();
    let options = [
        "--requests=10",
        "--connections=1",
        "--json=-",
        "--start-at=+300ms",
    ];
    let output = output(&server.url(), &options);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    assert!(text(&output.stderr).starts_with("the load begins at 2"));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let wanted = value["settings"]["start_at_unix_ns"].as_u64().unwrap();
    let began = value["result"]["load_started_unix_ns"].as_u64().unwrap();
    // Three conversions of the calendar, each known to well under a microsecond.
    assert!(wanted.abs_diff(began) < 10_000, "{wanted} {began}");
    let intervals = value["intervals"].as_array().unwrap();
    assert_eq!(intervals.last().unwrap()["phase"], "measured");
}

#[test]
fn usage_errors_end_with_2_before_anything_is_sent() {
    let server = ok();
    for options in [
        &["--rate=0"][..],
        &["--arrivals=poisson"],
        &["--json=-", "--csv=-"],
    ] {
        let output = output(&server.url(), options);
        assert_eq!(status(&output), 2, "{options:?}");
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).contains("--"), "{options:?}");
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn unwritable_file_is_known_before_the_run() {
    let server = ok();
    let output = output(
        &server.url(),
        &["--requests=10", "--json=/no/such/folder/x.json"],
    );
    assert_eq!(status(&output), 1);
    let error = text(&output.stderr);
    assert!(
        error.starts_with("error: cannot write /no/such/folder/x.json: "),
        "{error}"
    );
    assert_eq!(server.requests(), 0);
}

#[test]
fn full_disk_costs_only_its_own_output() {
    let server = ok();
    let csv = scratch("full.csv");
    let option = format!("--csv={}", csv.display());
    let options = ["--requests=100", "--json=/dev/full", &option];
    let output = output(&server.url(), &options);
    assert_eq!(status(&output), 1);
    let error = text(&output.stderr);
    assert!(error.contains("error: cannot write /dev/full: "), "{error}");
    assert!(text(&output.stdout).contains("100 due = "));
    let rows = fs::read_to_string(&csv).unwrap();
    assert!(rows.lines().count() > 1, "{rows}");
    fs::remove_file(csv).unwrap();
}

#[test]
fn closed_stdout_ends_quietly() {
    let server = ok();
    // Without an option it is the summary that nobody reads.
    for outputs in [&[][..], &["--json=-"], &["--csv=-"]] {
        let mut command = bench(&server.url(), &["--requests=100", "--quiet"]);
        let mut child = command.args(outputs).spawn().unwrap();
        drop(child.stdout.take());
        let mut error = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut error)
            .unwrap();
        assert_eq!(
            child.wait().unwrap().code(),
            Some(0),
            "{outputs:?}: {error}"
        );
        assert_eq!(error, "", "{outputs:?}");
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn first_interrupt_prints_the_summary() {
    let server = ok();
    let mut child = bench(
        &server.url(),
        &["--duration=60s", "--rate=200", "--connections=2"],
    )
    .spawn()
    .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("p50"), "{line}");
    send(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let summary = text(&output.stdout);
    assert!(summary.contains("\ninterrupted after "), "{summary}");
    assert!(summary.contains(" due = "), "{summary}");
}

#[test]
fn second_interrupt_ends_at_once() {
    // Never answers: the first interrupt waits for what is in flight.
    let server = Responder::start(|_, _| Answer::Silence);
    let mut child = bench(
        &server.url(),
        &[
            "--duration=60s",
            "--timeout=60s",
            "--connections=2",
            "--quiet",
        ],
    )
    .spawn()
    .unwrap();
    server.wait_for_requests(2);
    // Two of one kind could be taken for one.
    send(&child, Signal::INT);
    send(&child, Signal::TERM);
    let mut summary = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut summary)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(summary, "");
}
