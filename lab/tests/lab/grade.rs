//! `kvlab grade` as a process: real tools where they are installed, and tools that misbehave.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A folder for programs, gone when dropped.
struct Tools(PathBuf);

impl Tools {
    /// A folder that holds a shell script named redis-benchmark.
    fn with_script(name: &str, body: &str) -> Self {
        let folder = format!("kvlab-grade-test-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("redis-benchmark");
        fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `kvlab grade` with a folder in front of the PATH.
fn grade(tools: Option<&Path>, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvlab"));
    command.arg("grade").args(args);
    if let Some(tools) = tools {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(tools.to_owned()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).unwrap());
    }
    command.output().unwrap()
}

/// The only tool of the only scenario of a report on stdout.
fn row(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let document: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text} {}", said(output)));
    let errors: Vec<String> = schema()
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\nin\n{document:#}");
    document["scenarios"][0]["tools"][0].clone()
}

/// The form of a report, in which a field that is not described is an error.
fn schema() -> jsonschema::Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../schema/grade.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Names of the proofs that do not hold.
fn broken_proofs(row: &Value) -> Vec<String> {
    let findings = row["findings"].as_array().unwrap().iter();
    findings
        .filter(|finding| finding["kind"] == "proof" && finding["verdict"] == "fail")
        .map(|finding| format!("{}: {}", finding["name"], finding["text"]))
        .collect()
}

/// A fake tool is run twice, for its floor and for its report.
fn fake(name: &str, body: &str, limit: &str) -> (Value, Output, Duration) {
    let tools = Tools::with_script(name, body);
    let begun = Instant::now();
    let args = [
        "--quiet",
        "--time-limit",
        limit,
        "--retries",
        "0",
        "--json",
        "-",
    ];
    let args = [&args[..], &["redis-benchmark", "-t", "get", "-n", "10"]].concat();
    let output = grade(Some(&tools.0), &args);
    (row(&output), output, begun.elapsed())
}

#[test]
fn a_tool_that_hangs_is_killed_and_said_to() {
    let (row, output, elapsed) = fake("hangs", "echo begun; sleep 600 & sleep 600", "2s");
    assert_eq!(row["end"]["how"], "hung");
    assert_eq!(row["verdict"], "fail");
    let sentence = row["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("hung: killed after "), "{sentence}");
    assert!(sentence.contains("it said: begun"), "{sentence}");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
}

#[test]
fn a_tool_that_dies_is_said_to_with_its_own_words() {
    let (row, output, _) = fake("dies", "echo 'no such luck' >&2; exit 7", "30s");
    assert_eq!(row["end"]["how"], "exited");
    assert_eq!(row["end"]["code"], 7);
    let sentence = row["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("died with exit code 7"), "{sentence}");
    assert!(sentence.contains("it said: no such luck"), "{sentence}");
    assert_eq!(output.status.code(), Some(1));
    let (row, ..) = fake("killed", "kill -9 $$", "30s");
    assert_eq!(
        (&row["end"]["how"], &row["end"]["code"]),
        (&"signal".into(), &9.into())
    );
}

#[test]
fn a_tool_that_prints_garbage_has_no_report() {
    let (row, output, _) = fake("garbage", "echo '====== GET ======'; echo nonsense", "30s");
    assert_eq!(row["verdict"], "fail");
    let sentence = row["sentence"].as_str().unwrap();
    assert!(sentence.contains("its report cannot be read"), "{sentence}");
    assert_eq!(output.status.code(), Some(1));
    // Without end, and more than is kept.
    let (row, ..) = fake(
        "talks",
        "while true; do echo 0123456789012345678901234567890; done",
        "2s",
    );
    assert_eq!(row["end"]["how"], "hung");
}

#[test]
fn addresses_and_unknown_names_are_refused() {
    let tools = Tools::with_script("unused", "exit 0");
    for (args, message) in [
        (
            &["redis-benchmark", "-p", "6379"][..],
            "-p: the tool is run against a server",
        ),
        (
            &["redis-benchmark", "-h", "example.org"],
            "-h: the tool is run against a server",
        ),
        (&["wrk", "-c", "5"], "unknown tool 'wrk'"),
        (&["--scenario", "none", "kvlab"], "unknown scenario 'none'"),
        (&["--latency", "constant(1)", "kvlab"], "lacks a unit"),
        (&["--all", "kvlab"], "cannot be used with"),
        (&[], "required"),
    ] {
        let output = grade(Some(&tools.0), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            said(&output).contains(message),
            "{args:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn our_own_tool_is_judged_as_a_process() {
    let args = [
        "--quiet",
        "--latency",
        "constant(1ms)",
        "--retries",
        "0",
        "--json",
        "-",
    ];
    let own = ["kvlab", "--connections", "4", "--requests", "2000"];
    let output = grade(None, &[&args[..], &own].concat());
    let row = row(&output);
    assert_eq!(broken_proofs(&row), Vec::<String>::new());
    assert_eq!(row["end"]["code"], 0);
    assert_eq!(row["truth"]["read"], 2000);
    assert_eq!(row["reported"]["count"], 2000);
    assert_eq!(row["truth"]["source"], "sojourn");
    let omission = &row["scores"].as_array().unwrap()[6];
    assert_eq!(
        (&omission["name"], &omission["value"]),
        (&"Omission".into(), &0.0.into())
    );
}

#[test]
fn an_open_loop_on_either_protocol_is_held_against_its_timetable() {
    for tool in ["kvlab", "kvlab-aerospike"] {
        let args = [
            "--quiet",
            "--freeze",
            "every=400ms,for=60ms",
            "--retries",
            "0",
        ];
        let own = [
            tool,
            "--connections",
            "4",
            "--rate",
            "500",
            "--duration",
            "1s",
        ];
        let output = grade(None, &[&args[..], &["--json", "-"], &own].concat());
        let row = row(&output);
        assert_eq!(broken_proofs(&row), Vec::<String>::new(), "{tool}");
        assert_eq!(row["truth"]["source"], "timetable");
        assert_eq!(
            (&row["truth"]["due"], &row["truth"]["read"]),
            (&500.into(), &500.into())
        );
        assert_eq!(row["reported"]["kind"], "response");
        assert_eq!(row["reported"]["count"], 500);
    }
}

#[test]
fn redis_benchmark_is_read_to_the_last_sample() {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join("redis-benchmark").is_file())
    });
    if !found {
        assert!(
            std::env::var_os("CI").is_none(),
            "redis-benchmark is missing, and continuous integration has to have it"
        );
        eprintln!("skipped: redis-benchmark is not installed");
        return;
    }
    let args = [
        "--quiet",
        "--latency",
        "constant(500us)",
        "--retries",
        "0",
        "--json",
        "-",
    ];
    let options = [
        "redis-benchmark",
        "-t",
        "get",
        "-n",
        "4000",
        "-c",
        "5",
        "-P",
        "4",
    ];
    let output = grade(None, &[&args[..], &options].concat());
    let row = row(&output);
    assert_eq!(row["end"]["code"], 0, "{row}");
    assert_eq!(row["reported"]["count"], 4000);
    assert_eq!(row["truth"]["read"], 4000);
    assert_eq!(row["load"]["connections"], 5);
    let findings = row["findings"].as_array().unwrap().iter();
    let count = findings.clone().find(|finding| finding["name"] == "count");
    assert_eq!(count.unwrap()["verdict"], "pass");
    for q in ["p50", "p90", "p99", "p99.9"] {
        let reading = &row["reported"]["quantiles"][q];
        assert!(
            reading["high_ns"].as_u64() >= Some(500_000),
            "{q}: {reading}"
        );
    }
}
