//! The document in every case: valid, with memtier's keys, and with the numbers of the model.

use std::time::Duration;

use serde_json::Value;

use super::super::model::{ActiveClients, Second, Verification};
use super::*;
use crate::record::ErrorKind;

fn results() -> Results {
    let mut get = Row::new(RowKind::Get);
    (get.outcomes.hits, get.outcomes.misses) = (3, 1);
    (get.bytes_in, get.bytes_out) = (2_048, 4_096);
    for ns in [100_000, 200_000, 300_000, 1_000_000] {
        get.service.record(ns);
    }
    let glance = Glance::of(&get.service, &[50.0, 99.0, 99.9]);
    get.seconds = vec![
        Second {
            outcomes: get.outcomes,
            bytes_in: 2_048,
            bytes_out: 4_096,
            service: glance,
            ..Second::default()
        },
        Second::default(),
    ];
    let mut run = Run::new(1);
    run.started_unix_ns = 1_700_000_000_123_000_000;
    run.duration = Duration::from_micros(2_000_500);
    run.seconds = get.seconds.clone();
    run.rows = vec![Row::new(RowKind::Set), get, Row::new(RowKind::Wait)];
    Results {
        config: Config::default(),
        heading: Heading {
            threads: 1,
            connections_per_thread: 2,
            bound: Bound::Seconds(2),
        },
        layout: Layout::default(),
        runs: vec![run],
        verification: None,
    }
}

fn parsed(results: &Results) -> Value {
    let text = render(results);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn numbers_are_those_of_the_model() {
    let json = parsed(&results());
    let stats = &json["ALL STATS"];
    assert_eq!(stats["Runtime"]["Start time"], 1_700_000_000_123_u64);
    assert_eq!(stats["Runtime"]["Finish time"], 1_700_000_002_123_u64);
    assert_eq!(stats["Runtime"]["Total duration"], 2_000);
    let totals = &stats["Totals"];
    assert_eq!(totals["Count"], 4);
    // The original has whole milliseconds here.
    assert_eq!(totals["Average Latency"], 0.4);
    assert_eq!(totals["Accumulated Latency"], 2, "1.6 ms to the nearest");
    assert_eq!(totals["Min Latency"], 0.1);
    assert_eq!(totals["Percentile Latencies"]["p99.90"], 1.0);
    assert_eq!(totals["KB/sec RX"], 1.0);
    assert_eq!(totals["KB/sec TX"], 2.0);
    assert_eq!(totals["KB/sec"], 3.0);
    assert_eq!(stats["Gets"]["Hits/sec"], 1.5);
}

#[test]
fn a_second_without_operations_is_there_and_empty() {
    let json = parsed(&results());
    let series = &json["ALL STATS"]["Gets"]["Time-Serie"];
    assert_eq!(series["0"]["Average Latency"], 0.4);
    assert_eq!(series["0"]["p50.00"], 0.2);
    let empty = series["1"].as_object().unwrap();
    assert_eq!(empty.len(), 3);
    assert_eq!(empty["Count"], 0);
}

#[test]
fn no_samples_read_zero_and_not_the_width_of_a_bucket() {
    let json = parsed(&results());
    let waits = &json["ALL STATS"]["Waits"];
    assert_eq!(waits["Percentile Latencies"]["p50.00"], 0.0);
    assert_eq!(json["ALL STATS"]["WAIT"].as_array().unwrap().len(), 1);
    assert_eq!(json["ALL STATS"]["WAIT"][0]["percent"], 100.0);
}

#[test]
fn keys_of_percentiles_do_not_collide() {
    let mut results = results();
    results.layout.percentiles = vec![50.0, 99.9, 99.99, 99.999, 100.0, 50.0];
    let json = parsed(&results);
    let found = json["ALL STATS"]["Gets"]["Percentile Latencies"].as_object();
    let keys: Vec<_> = found.unwrap().keys().map(String::as_str).collect();
    for key in ["p50.00", "p99.90", "p99.99", "p99.999", "p100.0"] {
        assert!(keys.contains(&key), "{keys:?}");
    }
    assert_eq!(keys.len(), 6, "five, and the histogram: {keys:?}");
}

#[test]
fn two_lines_of_the_same_command_have_keys_of_their_own() {
    let mut results = results();
    let command = || Row::new(RowKind::of_command("SET __key__ x"));
    results.runs[0].rows = vec![command(), command(), Row::new(RowKind::of_command("TOTAL"))];
    results.layout.commands = true;
    let json = parsed(&results);
    let stats = json["ALL STATS"].as_object().unwrap();
    for key in ["Sets", "Sets (2)", "SET", "SET (2)", "Totals (command)"] {
        assert!(stats.contains_key(key), "{key}");
    }
    assert!(stats["Totals"]["Connection Errors"].is_u64());
}

#[test]
fn secrets_are_masked_and_strings_escaped() {
    let mut results = results();
    results.config.authenticate = "bob:sesame".to_owned();
    results.config.uri = "redis://bob:sesame@host:1".to_owned();
    results.config.key_prefix = Some("a\"b\\".to_owned());
    let text = render(&results);
    assert!(!text.contains("sesame"));
    let json = parsed(&results);
    assert_eq!(json["configuration"]["key_prefix"], "a\"b\\");
    assert_eq!(json["configuration"]["authenticate"], "bob:***");
}

#[test]
fn an_interrupted_and_a_failed_run_are_valid_too() {
    let mut results = results();
    results.runs[0].interrupted = true;
    assert_eq!(
        parsed(&results)["ALL STATS"]["Runtime"]["Interrupted"],
        "true"
    );
    let mut failed = Run::new(1);
    failed.failure = Some("refused: \"no\"".to_owned());
    results.runs = vec![failed];
    let json = parsed(&results);
    assert_eq!(json["ALL STATS"]["Totals"]["Ops/sec"], 0.0);
    assert_eq!(json["kvlab"]["runs"][0]["failure"], "refused: \"no\"");
    results.runs.clear();
    results.config.run_count = 3;
    assert!(parsed(&results)["run information"].is_object());
}

#[test]
fn additions_hold_both_latencies_errors_and_losses() {
    let mut results = results();
    let get = &mut results.runs[0].rows[1];
    get.outcomes.errors = 2;
    get.outcomes.lost = 5;
    get.errors.insert(ErrorKind::new(b"NOAUTH"), 2);
    for _ in 0..4 {
        get.response.record(1_900_000_000);
    }
    let json = parsed(&results);
    let stats = &json["ALL STATS"];
    assert_eq!(stats["Gets"]["Percentile Latencies"]["p99.00"], 1_900.0);
    let added = &stats["kvlab"]["Gets"];
    assert_eq!(added["errors_by_kind"]["NOAUTH"], 2);
    assert_eq!(added["lost"], 5);
    assert_eq!(added["service_time_ms"]["max"], 1.0);
    assert_eq!(added["response_time_ms"]["max"], 1_900.0);
    assert_eq!(stats["Gets"]["Count"], 4, "errors are no operations");
    results.layout.from = LatencyFrom::Send;
    let json = parsed(&results);
    assert_eq!(json["ALL STATS"]["Gets"]["Max Latency"], 1.0);
}

#[test]
fn staircase_and_verification_have_their_blocks() {
    let mut results = results();
    results.runs[0].active_clients = vec![ActiveClients {
        per_thread: 2,
        total: 4,
    }];
    results.verification = Some(Verification {
        verified: 7,
        failed: 1,
    });
    results.layout.histogram = false;
    let json = parsed(&results);
    assert_eq!(json["ALL STATS"]["Active Clients"]["0"]["Total clients"], 4);
    assert!(json["ALL STATS"].get("GET").is_none());
    let block = &json["client verifications results"];
    assert_eq!(block["keys verified successfuly"], 7);
}
