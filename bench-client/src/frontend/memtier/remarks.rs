//! What memtier has no place for: failed requests, the spread of the runs, the other latency.
//!
//! ```text
//!
//!
//! ! FAILED REQUESTS (not in the rates and latencies above)
//! ! Type      Reason                          Count    Per sec
//! ! GET       NOAUTH                            200     400.00
//! ! ALL       connections failed or lost          2       4.00
//!
//!
//! # 48658.24 ops/sec on average of 10 runs, between 46000.00 and 51316.48 with 95 % confidence
//! ```

use std::fmt::Write as _;
use std::time::Duration;

use super::model::{LatencyFrom, Layout, Run, per_second, quantile};
use super::sheet::{Line, Sheet};
use super::text::{mean_ms, ms, percentile_title};
use crate::report::certificate;

/// What is to be said about one table; empty when there is nothing.
#[must_use]
pub fn of_sheet(sheet: &Sheet, layout: &Layout) -> String {
    let mut text = String::new();
    if sheet.has_failures() {
        failures(&mut text, sheet);
    }
    let mut lines = Vec::new();
    lines.extend(sent_again(sheet));
    lines.extend(other_latency(sheet, layout));
    lines.extend(spread(sheet));
    if !lines.is_empty() {
        text.push_str("\n\n");
    }
    for line in lines {
        let _ = writeln!(text, "# {line}");
    }
    text
}

/// What is to be said about runs that were not done as asked for, or not at all.
#[must_use]
pub fn of_runs(runs: &[Run], asked_for: u32) -> String {
    let mut lines = Vec::new();
    for run in runs {
        if let Some(failure) = &run.failure {
            let failure = failure.replace('\n', " ");
            lines.push(format!("run {} failed: {failure}", run.number));
        } else if run.interrupted {
            lines.push(format!("run {} was interrupted", run.number));
        }
        let notices = run.notices.iter();
        lines.extend(notices.map(|notice| format!("run {}: {notice}", run.number)));
        let certificate = certificate::page(run.certificate.as_ref());
        if !certificate.is_empty() {
            lines.push(format!("run {}:", run.number));
            lines.extend(certificate.lines().map(str::to_owned));
        }
    }
    let done = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    if done < asked_for {
        lines.push(format!("{done} of {asked_for} runs were begun"));
    }
    if lines.is_empty() {
        return String::new();
    }
    let mut text = "\n\n".to_owned();
    for line in lines {
        let _ = writeln!(text, "# {line}");
    }
    text
}

fn failures(text: &mut String, sheet: &Sheet) {
    text.push_str("\n\n! FAILED REQUESTS (not in the rates and latencies above)\n");
    let _ = writeln!(
        text,
        "! {:<14} {:<27} {:>12} {:>12}",
        "Type", "Reason", "Count", "Per sec"
    );
    let mut row = |name: &str, reason: &str, count: u64| {
        if count > 0 {
            let rate = per_second(count, sheet.duration);
            let _ = writeln!(text, "! {name:<14} {reason:<27} {count:>12} {rate:>12.2}");
        }
    };
    for line in &sheet.lines {
        let name = line.row.kind.name();
        for (kind, count) in &line.row.errors {
            row(name, kind.as_str(), *count);
        }
        for (reason, count) in unanswered(line) {
            row(name, reason, count);
        }
    }
    row(
        "ALL",
        "connections failed or lost",
        sheet.totals.connection_errors,
    );
}

fn unanswered(line: &Line) -> [(&'static str, u64); 3] {
    let outcomes = &line.row.outcomes;
    [
        ("timed out", outcomes.timeouts),
        ("connection lost", outcomes.lost),
        ("never sent", outcomes.not_sent),
    ]
}

/// Attempts that were followed by another.
fn sent_again(sheet: &Sheet) -> Option<String> {
    let retries = sheet.totals.row.retries;
    (retries > 0).then(|| {
        format!(
            "{retries} times a request failed and was sent again; its latency counts from the \
             first send"
        )
    })
}

/// The latency that the table does not show, where there are two.
fn other_latency(sheet: &Sheet, layout: &Layout) -> Option<String> {
    let row = &sheet.totals.row;
    if row.response.is_empty() {
        return None;
    }
    let (shown, other, latency) = match layout.from {
        LatencyFrom::Schedule => ("intended start", "send", &row.service),
        LatencyFrom::Send => ("send", "intended start", &row.response),
    };
    let mut text = format!(
        "latency is from the {shown} of a request; from its {other} it is, in msec: avg {:.3}",
        mean_ms(latency)
    );
    for percentile in &layout.percentiles {
        let title = percentile_title(*percentile);
        let value = ms(latency.quantile_ns(quantile(*percentile)));
        let _ = write!(text, ", {title} {value:.3}");
    }
    let _ = write!(text, ", max {:.3}", ms(latency.max_ns()));
    Some(text)
}

/// How far the runs lie apart.
fn spread(sheet: &Sheet) -> Option<String> {
    let spread = sheet.spread?;
    Some(format!(
        "{:.2} ops/sec on average of {} runs, between {:.2} and {:.2} with 95 % confidence \
         (lowest {:.2}, highest {:.2}, standard deviation {:.2}; {:.3} s measured in all)",
        spread.mean,
        sheet.runs.len(),
        spread.lower(),
        spread.mean + spread.reach,
        spread.low,
        spread.high,
        spread.deviation,
        seconds(sheet.duration),
    ))
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
