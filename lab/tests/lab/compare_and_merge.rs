//! `kvlab compare` and `kvlab merge` as their users call them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kvlab_mock_server::MockServer;
use serde_json::Value;

fn kvlab(args: &[&str]) -> Output {
    Command::new(BINARY).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

const BINARY: &str = env!("CARGO_BIN_EXE_kvlab");

#[test]
fn two_commands_run_in_turn_and_their_results_can_be_compared_again() {
    let fast = MockServer::builder()
        .latency("constant(200us)")
        .start()
        .unwrap();
    let slow = MockServer::builder()
        .latency("constant(3ms)")
        .start()
        .unwrap();
    let folder = folder("compare");
    let command = |server: &MockServer| {
        let address = server.redis_addr().unwrap();
        format!("'{BINARY}' bench redis://{address} --connections 2 --requests 40 --quiet")
    };
    let (a, b) = (command(&fast), command(&slow));
    let both = folder.join("both");
    let output = kvlab(&[
        "compare",
        "--runs",
        "8",
        "--save",
        both.to_str().unwrap(),
        "--json",
        "-",
        &a,
        &b,
        "--fail-if-worse",
    ]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    // 0.2 ms against 3 ms: shown to be worse, whatever the machine does meanwhile.
    assert_eq!(output.status.code(), Some(1), "{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["schema"], "kvlab-compare");
    let p50 = document["figures"]
        .as_array()
        .unwrap()
        .iter()
        .find(|figure| figure["figure"] == "service p50")
        .unwrap();
    assert_eq!(p50["outcome"], "higher");
    assert_eq!(p50["a"].as_array().unwrap().len(), 8);
    assert!(!err.contains("not interleaved"), "{err}");
    assert!(err.contains("run 8 of 8"), "{err}");

    // Stored, one group per folder.
    for letter in ["a", "b"] {
        let group = folder.join(letter);
        fs::create_dir(&group).unwrap();
        for number in 1..=8 {
            let name = format!("{letter}-{number:02}.json");
            fs::rename(both.join(&name), group.join(&name)).unwrap();
        }
    }
    let (a, b) = (folder.join("a"), folder.join("b"));
    let output = kvlab(&["compare", a.to_str().unwrap(), b.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text(&output.stdout).contains("% higher"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_command_that_hangs_or_fails_is_ended_and_named() {
    let folder = folder("hung");
    let save = folder.to_str().unwrap();
    let compare = |a: &str| {
        kvlab(&[
            "compare",
            "--runs",
            "1",
            "--time-limit",
            "300ms",
            "--save",
            save,
            a,
            "true",
        ])
    };
    for (command, part) in [
        (
            "sh -c 'exec sleep 30'",
            "did not end within 300ms and was killed",
        ),
        ("sh -c 'echo broken >&2; exit 7'", "exit status: 7: broken"),
        ("sh -c 'exit 0'", "cannot read"),
        ("kvlab-no-such-program", "cannot start"),
        ("sh -c 'echo {} > \"$1\"' sh", "no result of kvlab bench"),
        ("kvlab 'bench", "not a command"),
    ] {
        // `sh -c '…' sh --json FILE` has the file as its second parameter.
        let command = command.replace("$1", "$2");
        let output = compare(&command);
        let err = text(&output.stderr);
        assert!(err.contains(part), "{command}: {err}");
        assert!(matches!(output.status.code(), Some(1 | 2)), "{command}");
    }
}

#[test]
fn logs_of_two_clients_add_up() {
    let server = MockServer::builder()
        .latency("constant(500us)")
        .start()
        .unwrap();
    let address = format!("redis://{}", server.redis_addr().unwrap());
    let folder = folder("merge");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    for (name, requests) in [("a.hlog", "150"), ("b.hlog", "250")] {
        let log = path(name);
        let output = kvlab(&[
            "bench",
            &address,
            "--connections",
            "2",
            "--requests",
            requests,
            "--ratio",
            "0:1",
            "--quiet",
            "--hdr-log",
            &log,
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let (a, b, sum) = (path("a.hlog"), path("b.hlog"), path("sum.hlog"));
    let output = kvlab(&["merge", &a, &b, "--json", "-", "--hdr-log", &sum]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let tags = document["tags"].as_object().unwrap();
    let samples: u64 = tags
        .values()
        .map(|tag| tag["samples"].as_u64().unwrap())
        .sum();
    assert_eq!(samples, 400);
    // The log of the sums says the same.
    let output = kvlab(&["merge", &sum, "--json", "-"]);
    let again: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(again["tags"], document["tags"]);

    let output = kvlab(&["merge", &a, "Cargo.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("Cargo.toml, line 1"),
        "{}",
        text(&output.stderr)
    );
}
