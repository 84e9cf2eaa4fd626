//! The JSON documents against the schemas of `schema/`: what the programs write is what the schemas
//! say, and a field that they do not say fails.

use std::path::PathBuf;
use std::{env, fs, process};

use jsonschema::Validator;
use kvlab::ExitStatus;
use kvlab_mock_server::MockServer;
use serde_json::{Map, Value, json};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn schema(name: &str) -> Value {
    let path = root().join(format!("schema/{name}.schema.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn validator(name: &str) -> Validator {
    jsonschema::validator_for(&schema(name)).unwrap()
}

/// Runs `kvlab` with `--json -` and reads what it writes.
fn document(args: &[&str], good: &[ExitStatus]) -> Value {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["kvlab"].iter().chain(args).chain(&["--json", "-"]);
    let status = kvlab::run(args, &mut out, &mut err);
    let err = String::from_utf8(err).unwrap();
    assert!(good.contains(&status), "{status:?}: {err}");
    serde_json::from_slice(&out).unwrap()
}

fn assert_valid(validator: &Validator, document: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\nin\n{document:#}");
}

#[test]
fn reports_of_virtual_runs_are_as_their_schema_says() {
    let validator = validator("run");
    let freeze = root().join("scenarios/freeze.toml");
    let freeze = freeze.to_str().unwrap();
    let one = document(&["run", "--virtual", freeze, "-q"], &[ExitStatus::Done]);
    assert!(one.is_object());
    assert_valid(&validator, &one);
    let quickstart = document(&["run", "--virtual", "-q"], &[ExitStatus::Done]);
    assert_valid(&validator, &quickstart);
    assert_valid(&validator, &json!([one, quickstart]));
}

#[test]
fn report_of_a_real_run_is_as_its_schema_says() {
    let file = env::temp_dir().join(format!("kvlab-schema-{}.toml", process::id()));
    let text = "[server]\nlatency = 'constant(1ms)'\n[[client]]\ntarget = 'redis'\n\
                connections = 2\nrate = 500\nwarmup = '50ms'\nduration = '300ms'\n";
    fs::write(&file, text).unwrap();
    // What the verdict is depends on the machine; the form does not.
    let any = [ExitStatus::Done, ExitStatus::Failed, ExitStatus::Void];
    let report = document(&["run", file.to_str().unwrap(), "-q"], &any);
    fs::remove_file(&file).unwrap();
    assert_eq!(report["tier"], "real");
    assert!(report["machine"].is_object());
    assert_valid(&validator("run"), &report);
}

#[test]
fn results_of_the_load_generator_are_as_their_schema_says() {
    let validator = validator("bench");
    let golden = include_str!("../../../bench-client/src/report/golden/open_loop.json");
    assert_valid(&validator, &serde_json::from_str(golden).unwrap());

    let server = MockServer::builder().start().unwrap();
    let url = format!("redis://{}", server.redis_addr().unwrap());
    let bench = ["bench", &url, "-q", "--requests", "200"];
    let shapes: [&[&str]; 6] = [
        &[],
        &["--rate", "2000", "--arrivals", "poisson"],
        &["--key-pattern", "zipf(0.9)", "--value-size", "10-20"],
        &["--key-pattern", "gaussian", "--value-size", "10:3,20:1"],
        &[
            "--key-pattern",
            "hot",
            "--value-size",
            "lognormal(median=100,sigma=1)",
        ],
        &["--key-pattern", "parallel"],
    ];
    for shape in shapes {
        let args = [&bench[..], shape].concat();
        let result = document(&args, &[ExitStatus::Done]);
        assert_eq!(result["result"]["due"], 200, "{shape:?}");
        assert_valid(&validator, &result);
    }
    server.stop();
}

#[test]
fn answers_of_a_search_are_as_their_schema_says() {
    let server = MockServer::builder().start().unwrap();
    let url = format!("redis://{}", server.redis_addr().unwrap());
    let search = [
        "bench",
        &url,
        "-q",
        "--find-rate",
        "--slo",
        "service.p50<4s",
        "--rate",
        "500",
        "--most-rate",
        "500",
        "--trial",
        "200ms",
    ];
    // Whether the client was quick enough depends on the machine; the form does not.
    let any = [ExitStatus::Done, ExitStatus::Failed, ExitStatus::Void];
    let answer = document(&search, &any);
    assert_eq!(answer["schema"], "kvlab-find-rate");
    assert_valid(&validator("find-rate"), &answer);
    server.stop();
}

#[test]
fn comparisons_and_merged_logs_are_as_their_schemas_say() {
    let server = MockServer::builder().start().unwrap();
    let url = format!("redis://{}", server.redis_addr().unwrap());
    let file = |end: &str| {
        let name = format!("kvlab-schema-{}-{end}", process::id());
        env::temp_dir().join(name).to_str().unwrap().to_owned()
    };
    let (log, a, b) = (file("log.hlog"), file("a.json"), file("b.json"));
    for result in [&a, &b] {
        let bench = ["bench", &url, "-q", "--requests", "200", "--hdr-log", &log];
        let result_of = document(&bench, &[ExitStatus::Done]);
        fs::write(result, result_of.to_string()).unwrap();
    }
    let merged = document(&["merge", &log, &log], &[ExitStatus::Done]);
    assert_valid(&validator("merge"), &merged);
    let compared = document(&["compare", &a, &b], &[ExitStatus::Done]);
    assert_eq!(compared["figures"][0]["outcome"], "too-few-runs");
    assert_valid(&validator("compare"), &compared);
    for file in [log, a, b] {
        fs::remove_file(file).unwrap();
    }
    server.stop();
}

#[test]
fn a_field_that_no_schema_knows_fails_wherever_it_stands() {
    let run = document(&["run", "--virtual", "-q"], &[ExitStatus::Done]);
    let golden = include_str!("../../../bench-client/src/report/golden/open_loop.json");
    let bench: Value = serde_json::from_str(golden).unwrap();
    for (name, document) in [("run", run), ("bench", bench)] {
        let validator = validator(name);
        let mut objects = Vec::new();
        collect(&document, String::new(), &mut objects);
        assert!(objects.len() > 10, "{objects:?}");
        for pointer in objects {
            let mut changed = document.clone();
            let object = changed.pointer_mut(&pointer).unwrap();
            object["undocumented"] = json!("new");
            assert!(!validator.is_valid(&changed), "{name}{pointer}");
        }
    }
}

/// Pointers to all objects of a document but those whose keys are data.
fn collect(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                collect(value, format!("{pointer}/{key}"), found);
            }
            if !pointer.ends_with("/errors") {
                found.push(pointer);
            }
        }
        Value::Array(items) => {
            // The first and the last stand for all, or this would take long.
            let last = items.len().saturating_sub(1);
            for (place, item) in items.iter().enumerate() {
                if place == 0 || place == last {
                    collect(item, format!("{pointer}/{place}"), found);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_is_described() {
    for name in ["run", "bench", "compare", "merge", "find-rate"] {
        let schema = schema(name);
        let mut missing = Vec::new();
        undescribed(&schema, name, &mut missing);
        assert_eq!(missing, Vec::<String>::new());
    }
}

fn undescribed(value: &Value, place: &str, missing: &mut Vec<String>) {
    if let Some(properties) = value.get("properties").and_then(Value::as_object) {
        missing.extend(without_description(properties, place));
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                undescribed(value, &format!("{place}/{key}"), missing);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                undescribed(item, &format!("{place}/{index}"), missing);
            }
        }
        _ => {}
    }
}

fn without_description(properties: &Map<String, Value>, place: &str) -> Vec<String> {
    properties
        .iter()
        .filter(|(_, schema)| schema["description"].as_str().is_none_or(str::is_empty))
        .map(|(key, _)| format!("{place}/{key}"))
        .collect()
}
