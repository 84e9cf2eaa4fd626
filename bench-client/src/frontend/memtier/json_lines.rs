//! `--json-lines`: one JSON object per interval and one at the end of each run, for programs that
//! watch a run.
//!
//! ```text
//! {"type":"interval","run":1,"second":1.000,"ops":1007,"errors":0,…,"rows":{"Sets":{…},…}}
//! {"type":"run","run":1,"duration_seconds":3.001,"ops_per_second":1003.2,…}
//! ```

use serde_json::{Map, Value, json};

use super::json::percentile_key;
use super::model::{LatencyFrom, Row, Run, float, quantile};
use super::recorder::RowPlan;
use crate::record::{Interval, Latency, Phase};

/// The line of an interval, with its line feed.
#[must_use]
pub fn interval(
    run: u32,
    interval: &Interval,
    plan: &RowPlan,
    percentiles: &[f64],
    from: LatencyFrom,
) -> String {
    let phase = match interval.phase {
        Phase::Warmup => "warmup",
        Phase::Measured => "measured",
        Phase::Drain => "drain",
    };
    let outcomes = interval.tally.outcomes();
    let mut rows = Map::new();
    for row in plan.rows_of(&interval.tally) {
        let key = unused(&rows, &row.kind.label());
        rows.insert(key, row_value(&row, percentiles, from));
    }
    let connects = &interval.tally.connects;
    let line = json!({
        "type": "interval",
        "run": run,
        "phase": phase,
        "second": interval.elapsed.as_secs_f64(),
        "length_seconds": float(interval.end.saturating_since(interval.begin)) / 1e9,
        "progress": interval.progress,
        "ops": outcomes.hits + outcomes.misses,
        "errors": outcomes.errors,
        "timeouts": outcomes.timeouts,
        "lost": outcomes.lost,
        "not_sent": outcomes.not_sent,
        "connections": interval.connections,
        "connection_errors": connects.failed + connects.lost,
        "in_flight": interval.in_flight,
        "backlog": interval.backlog,
        "rows": rows,
    });
    format!("{line}\n")
}

/// The line at the end of a run, with its line feed.
#[must_use]
pub fn run(run: &Run) -> String {
    let totals = run.totals();
    let line = json!({
        "type": "run",
        "run": run.number,
        "duration_seconds": run.duration.as_secs_f64(),
        "ops": totals.good(),
        "ops_per_second": run.rate(),
        "errors": totals.outcomes.errors,
        "timeouts": totals.outcomes.timeouts,
        "lost": totals.outcomes.lost,
        "not_sent": totals.outcomes.not_sent,
        "connection_errors": run.connection_errors,
        "interrupted": run.interrupted,
        "failure": run.failure,
        "notices": run.notices,
    });
    format!("{line}\n")
}

fn row_value(row: &Row, percentiles: &[f64], from: LatencyFrom) -> Value {
    json!({
        "ops": row.good(),
        "hits": row.outcomes.hits,
        "misses": row.outcomes.misses,
        "errors": row.outcomes.errors,
        "moved": row.moved,
        "asked": row.asked,
        "bytes_in": row.bytes_in,
        "bytes_out": row.bytes_out,
        "latency_ms": latency_value(row.latency(from), percentiles),
        "service_time_ms": latency_value(&row.service, percentiles),
    })
}

/// `null` without samples.
fn latency_value(latency: &Latency, percentiles: &[f64]) -> Value {
    if latency.is_empty() {
        return Value::Null;
    }
    let mut value = Map::new();
    value.insert("mean".to_owned(), json!(latency.mean_ns() / 1e6));
    value.insert("min".to_owned(), json!(float(latency.min_ns()) / 1e6));
    for percentile in percentiles {
        let ns = latency.quantile_ns(quantile(*percentile));
        value.insert(percentile_key(*percentile), json!(float(ns) / 1e6));
    }
    value.insert("max".to_owned(), json!(float(latency.max_ns()) / 1e6));
    Value::Object(value)
}

fn unused(rows: &Map<String, Value>, label: &str) -> String {
    let mut key = label.to_owned();
    let mut number = 1;
    while rows.contains_key(&key) {
        number += 1;
        key = format!("{label} ({number})");
    }
    key
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kvlab_timing::Stamp;

    use super::super::model::RowKind;
    use super::*;
    use crate::record::Tally;

    #[test]
    fn an_interval_is_one_line_of_valid_json() {
        let mut tally = Tally::new(2);
        tally.classes[0].outcomes.hits = 2;
        tally.classes[1].outcomes.errors = 1;
        for ns in [1_000_000, 3_000_000] {
            tally.classes[0].service.record(ns);
        }
        let seen = Interval {
            index: 4,
            phase: Phase::Measured,
            begin: Stamp::from_nanos(4_000_000_000),
            end: Stamp::from_nanos(5_000_000_000),
            elapsed: Duration::from_secs(5),
            tally,
            ended: 3,
            progress: 0.5,
            connections: 2,
            connecting: 0,
            in_flight: 0,
            backlog: 0,
            threads: Vec::new(),
        };
        let plan = RowPlan::by_line(&["SET a", "SET b"].map(RowKind::of_command));
        let line = interval(1, &seen, &plan, &[50.0], LatencyFrom::Schedule);
        assert_eq!(line.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&value["ops"], &value["errors"]), (&json!(2), &json!(1)));
        assert_eq!(value["rows"]["Sets"]["latency_ms"]["mean"], 2.0);
        assert!(value["rows"]["Sets (2)"]["latency_ms"].is_null());
    }

    #[test]
    fn a_run_that_failed_has_a_line_too() {
        let mut failed = Run::new(3);
        failed.failure = Some("no \"connection\"".to_owned());
        let value: Value = serde_json::from_str(&run(&failed)).unwrap();
        assert_eq!(value["failure"], "no \"connection\"");
        assert_eq!(value["ops_per_second"], 0.0);
    }
}
