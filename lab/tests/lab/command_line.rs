//! `kvlab run` as a function: outputs and exit status.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kvlab::cli::run::{RunArgs, run};
use kvlab_bench_client::frontend::ExitStatus;
use rustix::process::{Pid, Signal, kill_process};

fn shipped(name: &str) -> PathBuf {
    PathBuf::from(format!(
        "{}/../scenarios/{name}.toml",
        env!("CARGO_MANIFEST_DIR")
    ))
}

/// Status, stdout and stderr.
fn outcome(args: &RunArgs) -> (ExitStatus, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run(args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status, text(out), text(err))
}

#[test]
fn quickstart_under_virtual_time_prints_the_same_bytes_twice() {
    let args = RunArgs {
        r#virtual: true,
        ..RunArgs::default()
    };
    let (status, out, err) = outcome(&args);
    assert_eq!(status, ExitStatus::Done, "{out}{err}");
    assert!(out.ends_with("\nverdict: pass\n"), "{out}");
    for name in [
        "redis closed loop",
        "redis open loop",
        "aerospike closed loop",
        "aerospike open loop",
    ] {
        assert!(out.contains(&format!("{name}: pass\n")), "{out}");
        assert!(err.contains(name), "{err}");
    }
    assert_eq!(outcome(&args).1, out);
    let other = outcome(&RunArgs {
        seed: Some(5),
        ..args
    });
    assert_ne!(other.1, out);
}

#[test]
fn json_on_stdout_moves_the_text_to_stderr() {
    let args = RunArgs {
        files: vec![shipped("fixed-hash")],
        r#virtual: true,
        json: Some("-".into()),
        quiet: true,
        ..RunArgs::default()
    };
    let (status, out, err) = outcome(&args);
    assert_eq!(status, ExitStatus::Done);
    assert!(err.contains("verdict: pass"), "{err}");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["schema_version"], 1);
    assert_eq!(document["verdict"], "pass");
    assert_eq!(document["tier"], "virtual");
    assert_eq!(document["clients"][0]["requests"]["due"], 6000);
    assert_eq!(
        document["clients"][0]["figures"][1]["quantiles"][2]["quantile"],
        "p99"
    );
    assert_eq!(
        document["clients"][0]["figures"][1]["quantiles"][2]["error_ns"],
        0
    );
}

#[test]
fn several_files_give_an_array_and_the_worst_verdict() {
    let folder = std::env::temp_dir().join(format!("kvlab-lab-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let bad = folder.join("bad.toml");
    // More than half of the requests time out, and none may fail.
    std::fs::write(
        &bad,
        "[server]\nlatency = 'uniform(1ms,9ms)'\n[[client]]\ntarget = 'redis'\n\
         connections = 3\ntimeout = '4ms'\nduration = '200ms'\n",
    )
    .unwrap();
    let json = folder.join("report.json");
    let args = RunArgs {
        files: vec![shipped("fixed-hash"), bad],
        r#virtual: true,
        json: Some(json.clone()),
        quiet: true,
        ..RunArgs::default()
    };
    let (status, out, _) = outcome(&args);
    assert_eq!(status, ExitStatus::Failed, "{out}");
    assert!(out.contains("fail: failures"), "{out}");
    let document: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(document[0]["verdict"], "pass");
    assert_eq!(document[1]["verdict"], "fail");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_that_is_not_there_or_wrong_is_a_usage_error() {
    let args = RunArgs {
        files: vec!["no/such/file.toml".into()],
        ..RunArgs::default()
    };
    let (status, out, err) = outcome(&args);
    assert_eq!((status, out.as_str()), (ExitStatus::Usage, ""));
    assert!(err.contains("no/such/file.toml"), "{err}");
}

#[test]
fn an_interrupted_run_reports_what_was_finished_and_ends_with_130() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kvlab"))
        .args(["run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.starts_with("1/4 "), "{line}");
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).unwrap();
    let status = child.wait().unwrap();
    let (mut rest, mut out) = (String::new(), String::new());
    err.read_to_string(&mut rest).unwrap();
    child.stdout.unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(status.code(), Some(130), "{rest}");
    assert!(rest.contains("interrupted"), "{rest}");
    assert!(out.starts_with("scenario quickstart"), "{out}");
}

#[test]
fn a_full_disk_under_one_output_keeps_the_others() {
    let folder = std::env::temp_dir().join(format!("kvlab-full-disk-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).into_os_string().into_string().unwrap();
    let (json, junit) = (file("report.json"), file("report.xml"));
    // Nothing can be written to the page and to stdout.
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kvlab"))
        .args([
            "run",
            "fixed-hash",
            "--virtual",
            "--quiet",
            "--html",
            "/dev/full",
        ])
        .args(["--json", &json, "--junit", &junit])
        .stdout(full)
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("/dev/full"), "{err}");
    let document = std::fs::read_to_string(&json).unwrap();
    assert!(document.contains("\"verdict\": \"pass\""));
    assert!(
        std::fs::read_to_string(&junit)
            .unwrap()
            .contains("<testsuites")
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
