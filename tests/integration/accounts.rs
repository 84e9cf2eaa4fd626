//! Users from both ends: the load generator logs in to the mock and to a real redis-server, and a
//! refused login ends it with its exit code, on sockets and under virtual time.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use kvlab::cli::run::{RunArgs, run as run_scenario};
use kvlab::runner::virtual_time;
use kvlab_bench_client::frontend::ExitStatus;
use kvlab_bench_client::frontend::native::{Addresses, BenchArgs, run};
use kvlab_mock_server::MockServer;

use crate::resp_wire::{Client, RealServer};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    bench: BenchArgs,
}

/// Status, stdout and stderr of `kvlab bench`.
fn bench(words: &[&str]) -> (ExitStatus, String, String) {
    let usual = ["bench", "--quiet", "--requests=200", "--connections=3"];
    let words = usual.iter().chain(words);
    let line = Line::try_parse_from(words).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run(&line.bench, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status, text(out), text(err))
}

#[track_caller]
fn logs_in(words: &[&str]) {
    let (status, out, err) = bench(words);
    assert_eq!(status, ExitStatus::Done, "{out}{err}");
    assert!(!format!("{out}{err}").contains("s3:cret"), "{out}{err}");
}

#[track_caller]
fn is_refused(words: &[&str], text: &str) {
    let (status, _, err) = bench(words);
    assert_eq!(status, ExitStatus::LoginRefused, "{err}");
    assert_eq!(status.code(), 5);
    assert!(err.contains(text), "{err}");
    assert!(!err.contains("s3:cret"), "{err}");
}

fn mock() -> MockServer {
    let server = MockServer::builder().user("app", "s3:cret");
    server.start().unwrap()
}

const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";

fn redis_logins(address: SocketAddr) {
    logs_in(&[&format!("redis://app:s3%3Acret@{address}")]);
    logs_in(&[&format!("redis://app:s3%3Acret@{address}"), "--resp=3"]);
    logs_in(&[
        &format!("redis://{address}"),
        "--user=app",
        "--password=s3:cret",
        "--threads=2",
    ]);
    is_refused(
        &[&format!("redis://app:s3%3Acret@{address}"), "--user=bob"],
        &format!("login refused by {address}: {WRONG}"),
    );
    is_refused(&[&format!("redis://app:x@{address}"), "--resp=3"], WRONG);
    is_refused(&[&format!("redis://:s3%3Acret@{address}")], WRONG);
}

#[test]
fn a_client_logs_in_to_the_mock_by_redis() {
    redis_logins(mock().redis_addr().unwrap());
}

#[test]
fn a_client_logs_in_to_a_real_server_with_access_lists() {
    let Some(server) = RealServer::start() else {
        println!("skipped: redis-server 7.0 is not installed");
        return;
    };
    let mut admin = Client::connect(server.address, false);
    let rules = [b"on", &b">s3:cret"[..], b"~*", b"+@all"];
    let words = [&[b"ACL", &b"SETUSER"[..], b"app"], &rules[..]].concat();
    assert_eq!(admin.ask(&words).unwrap(), b"+OK\r\n");
    assert_eq!(
        admin.ask(&[b"ACL", b"SETUSER", b"default", b"off", b"resetpass"]),
        Ok(b"+OK\r\n".to_vec())
    );
    redis_logins(server.address);
    // A user who may not do what the load asks for is let in, and every refusal is counted.
    let may_read = [b"ACL", &b"SETUSER"[..], b"app", b"-set"];
    assert_eq!(admin.ask(&may_read).unwrap(), b"+OK\r\n");
    let url = format!("redis://app:s3%3Acret@{}", server.address);
    let (status, out, _) = bench(&[&url, "--ratio=1:0"]);
    assert_eq!(status, ExitStatus::TooManyErrors, "{out}");
    assert!(out.contains("errors        NOPERM 200\n"), "{out}");
}

#[test]
fn a_client_logs_in_to_the_mock_by_aerospike() {
    let server = mock();
    let address = server.aerospike_addr().unwrap();
    logs_in(&[&format!("aerospike://app:s3%3Acret@{address}")]);
    logs_in(&[
        &format!("aerospike://{address}"),
        "--user=app",
        "--password=s3:cret",
        "--threads=2",
    ]);
    is_refused(
        &[&format!("aerospike://app:x@{address}")],
        &format!("login refused by {address}: invalid credential (65)"),
    );
    is_refused(
        &[&format!("aerospike://bob:s3%3Acret@{address}")],
        &format!("login refused by {address}: unknown user (60)"),
    );
    is_refused(
        &[&format!("aerospike://{address}")],
        &format!("login refused by {address}: not authenticated (80)"),
    );
}

#[test]
fn a_server_without_users_refuses_every_aerospike_login() {
    let server = MockServer::builder().start().unwrap();
    let address = server.aerospike_addr().unwrap();
    is_refused(
        &[&format!("aerospike://app:x@{address}")],
        "security not supported (51)",
    );
}

/// The verdict on a scenario of one client that logs in as app with `password`.
fn scenario(target: &str, password: &str, r#virtual: bool) -> (ExitStatus, String) {
    let text = format!(
        "[server]\nuser = \"app:s3:cret\"\n\n[[client]]\ntarget = \"{target}\"\nuser = \"app\"\n\
         password = \"{password}\"\nconnections = 3\nrequests = 100\n"
    );
    let right = password == "s3:cret";
    let name = format!(
        "kvlab-accounts-{}-{target}-{right}-{virtual}.toml",
        std::process::id()
    );
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    let args = RunArgs {
        files: vec![PathBuf::from(&path)],
        r#virtual,
        quiet: true,
        ..RunArgs::default()
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run_scenario(&args, &mut out, &mut err);
    let _ = std::fs::remove_file(&path);
    (status, String::from_utf8([out, err].concat()).unwrap())
}

#[test]
fn a_wrong_password_ends_a_scenario_with_its_exit_code() {
    for (target, words) in [("redis", WRONG), ("aerospike", "invalid credential (65)")] {
        for r#virtual in [true, false] {
            let (status, text) = scenario(target, "s3:cre", r#virtual);
            assert_eq!(status, ExitStatus::LoginRefused, "{target}: {text}");
            assert!(text.contains(words), "{text}");
            assert!(!text.contains("s3:cre"), "{text}");
        }
        let (status, text) = scenario(target, "s3:cret", true);
        assert_eq!(status, ExitStatus::Done, "{target}: {text}");
    }
}

#[test]
fn a_session_that_has_ended_is_begun_anew_when_connections_come_back() {
    // Every two seconds all connections end, and tokens are good for one.
    let server = MockServer::builder().user("app", "s3:cret").cut("every=2s");
    let mut config = server.record_rows(true).into_config().unwrap();
    config.aerospike.session_ttl_s = 1;
    let words = [
        "bench",
        "aerospike://app:s3%3Acret@127.0.0.1",
        "--connections=4",
        "--rate=400",
        "--duration=9s",
    ];
    let line = Line::try_parse_from(words).unwrap();
    let anywhere = Addresses::one(([127, 0, 0, 1], 3000).into());
    let mut settings = line.bench.settings(&anywhere).unwrap();
    settings.record_rows = true;
    let evidence = virtual_time::run(config, settings, 50_000).unwrap();
    let joined = &evidence.joined;
    assert!(joined.client_only.is_empty() && joined.server_only.is_empty());
    // Whoever shows an old token is refused and logs in behind it, on the same connection.
    let second_attempts = joined
        .pairs
        .iter()
        .filter(|pair| pair.server.command == "security" && pair.client.sequence == 1);
    assert!(second_attempts.count() >= 4);
    let tally = &evidence.summary.tally;
    assert!(tally.connects.lost >= 16, "{:?}", tally.connects);
    assert_eq!(tally.connects.failed, 0);
    assert_eq!(tally.outcomes().errors, 0);
}
