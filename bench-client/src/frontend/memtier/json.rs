//! `--json-out-file`: the same keys and the same nesting as memtier's, and what it lacks in `kvlab`.
//!
//! ```text
//! configuration, run information,
//! "ALL STATS" | "BEST RUN RESULTS" …: Runtime, Sets, Gets, Waits, Totals | <Command>s, Totals,
//!                                     [Active Clients], SET: [{<=msec, percent}, …], …, kvlab
//! [client verifications results], kvlab
//! ```
//!
//! The document is made at the end in one go, whatever became of the run, so it is valid in every
//! case. Latencies are milliseconds; the compressed histograms count microseconds.

use serde_json::json;

use super::config::{AddressFamily, Config, masked, masked_uri};
use super::distribution::steps;
use super::json_writer::JsonWriter;
use super::micros;
use super::model::{
    Bound, Glance, Heading, LatencyFrom, Layout, Results, Row, RowKind, Run, float, quantile,
};
use super::sheet::{Line, Sheet};
use super::text::{mean_ms, ms};
use crate::record::Latency;
use crate::report::certificate::Entry;

/// The document.
#[must_use]
pub fn render(results: &Results) -> String {
    let mut json = JsonWriter::default();
    configuration(&mut json, &results.config);
    if !results.config.verify_only {
        run_information(&mut json, &results.heading);
    }
    for sheet in results.sheets() {
        json.object(&sheet.title);
        sheet_body(&mut json, &sheet, &results.layout);
        json.close();
    }
    if let Some(verification) = &results.verification {
        json.object("client verifications results");
        // The spelling that readers know.
        json.value("keys verified successfuly", verification.verified);
        json.value("keys failed", verification.failed);
        json.close();
    }
    additions(&mut json, results);
    json.finish()
}

fn configuration(json: &mut JsonWriter, config: &Config) {
    let switch = |on: bool| if on { "true" } else { "false" };
    let pair = |(low, high): (u64, u64)| format!("{low}:{high}");
    json.object("configuration");
    json.value("server", config.server.as_str());
    json.value("port", config.port);
    json.value("uri", masked_uri(&config.uri));
    json.value("unix socket", config.unix_socket.clone());
    json.value(
        "address family",
        AddressFamily::as_str(config.address_family),
    );
    json.value("protocol", config.protocol.as_str());
    json.value("out_file", config.out_file.clone());
    json.value("tls", switch(config.tls));
    json.value("cert", config.cert.clone());
    json.value("key", config.key.clone());
    json.value("cacert", config.cacert.clone());
    json.value("tls_skip_verify", switch(config.tls_skip_verify));
    json.value("sni", config.sni.clone());
    json.value("client_stats", config.client_stats.clone());
    json.value("run_count", config.run_count);
    json.value("debug", config.debug);
    json.value("requests", config.requests);
    json.value("rate_limit", config.rate_limit);
    json.value("clients", config.clients);
    json.value("threads", config.threads);
    json.value("test_time", config.test_time);
    json.value("ratio", pair(config.ratio));
    json.value("pipeline", config.pipeline);
    json.value("data_size", config.data_size);
    json.value("data_offset", config.data_offset);
    json.value("random_data", switch(config.random_data));
    json.value("data_size_range", pair(config.data_size_range));
    json.value("data_size_list", config.data_size_list.as_str());
    json.value("data_size_pattern", config.data_size_pattern.as_str());
    json.value("expiry_range", pair(config.expiry_range));
    json.value("data_import", config.data_import.clone());
    json.value("data_verify", switch(config.data_verify));
    json.value("verify_only", switch(config.verify_only));
    json.value("generate_keys", switch(config.generate_keys));
    json.value("key_prefix", config.key_prefix.clone());
    json.value("key_minimum", config.key_minimum);
    json.value("key_maximum", config.key_maximum);
    json.value("key_pattern", config.key_pattern.as_str());
    json.number("key_stddev", config.key_stddev, 6);
    json.number("key_median", config.key_median, 6);
    json.number("key_zipf_exp", config.key_zipf_exp, 6);
    json.value("reconnect_interval", config.reconnect_interval);
    json.value("connection_timeout", config.connection_timeout);
    json.value(
        "thread_conn_start_min_jitter_micros",
        config.thread_conn_start_min_jitter_micros,
    );
    json.value(
        "thread_conn_start_max_jitter_micros",
        config.thread_conn_start_max_jitter_micros,
    );
    json.value("multi_key_get", config.multi_key_get);
    json.value("authenticate", masked(&config.authenticate));
    json.value("select-db", config.select_db);
    json.value("no-expiry", switch(config.no_expiry));
    json.value("wait-ratio", pair(config.wait_ratio));
    json.value("num-slaves", pair(config.num_slaves));
    let (low, high) = config.wait_timeout;
    json.value("wait-timeout", format!("{low}-{high}"));
    json.value("print-all-runs", switch(config.print_all_runs));
    if let Some(staircase) = &config.staircase {
        json.value("clients_start", staircase.start);
        json.value("clients_step", staircase.step);
        json.value("step_duration", staircase.duration);
    }
    json.close();
}

fn run_information(json: &mut JsonWriter, heading: &Heading) {
    json.object("run information");
    json.value("Threads", heading.threads);
    json.value("Connections per thread", heading.connections_per_thread);
    match heading.bound {
        Bound::Requests(count) => json.value("Requests per client", count),
        Bound::Seconds(count) => json.value("Seconds", count),
    }
    json.value("Format version", 2);
    json.close();
}

fn sheet_body(json: &mut JsonWriter, sheet: &Sheet, layout: &Layout) {
    json.object("Runtime");
    json.value("Start time", sheet.started_unix_ms);
    json.value("Finish time", sheet.finished_unix_ms);
    let millis = u64::try_from(sheet.duration.as_millis()).unwrap_or(u64::MAX);
    json.value("Total duration", millis);
    json.value("Time unit", "MILLISECONDS");
    let interrupted = if sheet.interrupted { "true" } else { "false" };
    json.value("Interrupted", interrupted);
    json.close();
    for line in sheet.lines.iter().chain([&sheet.totals]) {
        json.object(&line_key(&line.row.kind));
        line_body(json, line, layout);
        json.close();
    }
    if !sheet.active_clients.is_empty() {
        json.object("Active Clients");
        for (second, clients) in sheet.active_clients.iter().enumerate() {
            json.object(&second.to_string());
            json.value("Clients per thread", clients.per_thread);
            json.value("Total clients", clients.total);
            json.close();
        }
        json.close();
    }
    if layout.histogram {
        for line in &sheet.lines {
            json.list(line.row.kind.name());
            for step in steps(line.row.latency(layout.from)) {
                json.element();
                json.number("<=msec", ms(step.ns), 3);
                json.number("percent", step.percentile, 3);
                json.close();
            }
            json.close();
        }
    }
    sheet_additions(json, sheet, layout);
}

/// The label, unless a command takes the name of another block: a command `total` must not be
/// read as the totals.
fn line_key(kind: &RowKind) -> String {
    let label = kind.label();
    if kind.is_command() && RESERVED.contains(&label.as_str()) {
        format!("{label} (command)")
    } else {
        label
    }
}

fn line_body(json: &mut JsonWriter, line: &Line, layout: &Layout) {
    let (row, rates) = (&line.row, &line.rates);
    let latency = row.latency(layout.from);
    json.value("Count", row.good());
    json.number("Ops/sec", rates.ops, 2);
    json.number("Hits/sec", rates.hits, 2);
    json.number("Misses/sec", rates.misses, 2);
    if layout.cluster {
        json.number("MOVED/sec", rates.moved, 2);
        json.number("ASK/sec", rates.asked, 2);
    }
    json.number("Connection Errors/sec", rates.connection_errors, 2);
    json.value("Connection Errors", line.connection_errors);
    json.number("Latency", mean_ms(latency), 3);
    json.number("Average Latency", mean_ms(latency), 3);
    json.value("Accumulated Latency", whole_ms(latency.sum_ns()));
    json.number("Min Latency", ms(latency.min_ns()), 3);
    json.number("Max Latency", ms(latency.max_ns()), 3);
    let (received, sent) = (rates.bytes_in / 1024.0, rates.bytes_out / 1024.0);
    json.number("KB/sec", received + sent, 2);
    json.number("KB/sec RX/TX", received + sent, 2);
    json.number("KB/sec RX", received, 2);
    json.number("KB/sec TX", sent, 2);
    time_series(json, row, layout);
    json.object("Percentile Latencies");
    percentiles(json, &layout.percentiles, |place| {
        let percentile = layout.percentiles.get(place).copied().unwrap_or_default();
        latency.quantile_ns(quantile(percentile))
    });
    json.object("Histogram log format");
    json.value("Compressed Histogram", micros::compressed(latency));
    json.close();
    json.close();
}

fn time_series(json: &mut JsonWriter, row: &Row, layout: &Layout) {
    json.object("Time-Serie");
    for (number, second) in row.seconds.iter().enumerate() {
        json.object(&number.to_string());
        json.value("Bytes RX", second.bytes_in);
        json.value("Bytes TX", second.bytes_out);
        json.value("Count", second.good());
        let glance = second.latency(layout.from);
        if glance.count > 0 {
            glimpse(json, glance, layout);
        }
        json.close();
    }
    json.close();
}

fn glimpse(json: &mut JsonWriter, glance: &Glance, layout: &Layout) {
    let mean_ns = as_float(glance.sum_ns) / float(glance.count);
    json.number("Average Latency", mean_ns / 1e6, 3);
    json.value("Accumulated Latency", whole_ms(glance.sum_ns));
    json.number("Min Latency", ms(glance.min_ns), 3);
    json.number("Max Latency", ms(glance.max_ns), 3);
    percentiles(json, &layout.percentiles, |place| {
        glance
            .percentiles_ns
            .get(place)
            .copied()
            .unwrap_or_default()
    });
}

/// One key for each percentile; one that is asked for twice stands once.
fn percentiles(json: &mut JsonWriter, percentiles: &[f64], ns: impl Fn(usize) -> u64) {
    let mut keys: Vec<String> = Vec::with_capacity(percentiles.len());
    for (place, percentile) in percentiles.iter().enumerate() {
        let key = percentile_key(*percentile);
        if !keys.contains(&key) {
            json.number(&key, ms(ns(place)), 3);
            keys.push(key);
        }
    }
}

/// `p50.00`, `p99.90`, `p99.999`, `p100.0`: memtier's key where that one is unambiguous, and all
/// digits where it cuts them off.
#[must_use]
pub fn percentile_key(percentile: f64) -> String {
    if (percentile - 100.0).abs() < f64::EPSILON {
        return "p100.0".to_owned();
    }
    let all = percentile.to_string();
    match all.split_once('.') {
        Some((_, digits)) if digits.len() > 2 => format!("p{all}"),
        _ => format!("p{percentile:.2}"),
    }
}

/// What memtier lacks of one table.
fn sheet_additions(json: &mut JsonWriter, sheet: &Sheet, layout: &Layout) {
    json.object("kvlab");
    json.numbers("runs", &sheet.runs);
    json.number("duration_seconds", sheet.duration.as_secs_f64(), 6);
    if let Some(spread) = &sheet.spread {
        json.object("spread");
        json.number("mean_ops_per_second", spread.mean, 3);
        json.number("low_95", spread.lower(), 3);
        json.number("high_95", spread.mean + spread.reach, 3);
        json.number("standard_deviation", spread.deviation, 3);
        json.number("lowest", spread.low, 3);
        json.number("highest", spread.high, 3);
        json.close();
    }
    for line in sheet.lines.iter().chain([&sheet.totals]) {
        json.object(&line_key(&line.row.kind));
        line_additions(json, line, layout);
        json.close();
    }
    json.close();
}

fn line_additions(json: &mut JsonWriter, line: &Line, layout: &Layout) {
    let row = &line.row;
    let outcomes = &row.outcomes;
    json.value("hits", outcomes.hits);
    json.value("misses", outcomes.misses);
    if row.keys_found + row.keys_missing > 0 {
        json.value("keys_found", row.keys_found);
        json.value("keys_missing", row.keys_missing);
    }
    json.value("errors", outcomes.errors);
    json.number("errors_per_second", line.rates.errors, 2);
    json.value("timeouts", outcomes.timeouts);
    json.value("lost", outcomes.lost);
    json.value("not_sent", outcomes.not_sent);
    json.value("moved", row.moved);
    json.value("asked", row.asked);
    json.value("retries", row.retries);
    json.value("bytes_in", row.bytes_in);
    json.value("bytes_out", row.bytes_out);
    json.object("errors_by_kind");
    for (kind, count) in &row.errors {
        json.value(kind.as_str(), *count);
    }
    json.close();
    latency_ms(json, "service_time_ms", &row.service, layout);
    latency_ms(json, "response_time_ms", &row.response, layout);
    latency_ms(json, "error_time_ms", &row.failed, layout);
}

/// A latency with all its numbers, `null` without samples.
fn latency_ms(json: &mut JsonWriter, key: &str, latency: &Latency, layout: &Layout) {
    if latency.is_empty() {
        json.value(key, None::<u64>);
        return;
    }
    json.object(key);
    json.value("count", latency.count());
    json.number("mean", mean_ms(latency), 6);
    json.number("min", ms(latency.min_ns()), 6);
    for percentile in &layout.percentiles {
        let ns = latency.quantile_ns(quantile(*percentile));
        let key = percentile_key(*percentile);
        json.number(&key, ms(ns), 6);
    }
    json.number("max", ms(latency.max_ns()), 6);
    json.close();
}

/// What memtier lacks of the whole.
fn additions(json: &mut JsonWriter, results: &Results) {
    json.object("kvlab");
    json.value("version", env!("CARGO_PKG_VERSION"));
    json.value("seed", results.config.seed);
    let from = match results.layout.from {
        LatencyFrom::Schedule => "schedule",
        LatencyFrom::Send => "send",
    };
    json.value("latency_from", from);
    json.list("runs");
    for run in &results.runs {
        json.element();
        run_additions(json, run);
        json.close();
    }
    json.close();
    json.close();
}

fn run_additions(json: &mut JsonWriter, run: &Run) {
    json.value("number", run.number);
    json.number("duration_seconds", run.duration.as_secs_f64(), 6);
    json.number("ops_per_second", run.rate(), 3);
    json.value("connections_established", run.established);
    json.value("connection_errors", run.connection_errors);
    json.value("interrupted", run.interrupted);
    json.value("failure", run.failure.clone());
    json.value("notices", run.notices.clone());
    if let Some(certificate) = &run.certificate {
        json.value("certificate", json!(Entry::of(certificate)));
    }
}

/// Nanoseconds as whole milliseconds, to the nearest.
fn whole_ms(ns: u128) -> u64 {
    u64::try_from((ns + 500_000) / 1_000_000).unwrap_or(u64::MAX)
}

const RESERVED: [&str; 4] = ["Runtime", "Totals", "Active Clients", "kvlab"];

#[expect(
    clippy::cast_precision_loss,
    reason = "a mean needs no more than 52 bits"
)]
fn as_float(value: u128) -> f64 {
    value as f64
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
