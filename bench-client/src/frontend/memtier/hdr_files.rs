//! `--hdr-file-prefix`: the percentile table and the histogram log of each row and of the whole.
//!
//! | File | Content |
//! |---|---|
//! | `PREFIX_FULL_RUN_<run>.txt`, `.hgrm` | all rows together |
//! | `PREFIX_<COMMAND>_command_run_<run>.txt`, `.hgrm` | one row |
//!
//! The `.txt` is the table that HdrHistogram's plotter reads, in milliseconds; the `.hgrm` is an
//! interval log with one interval, the whole run, in microseconds. The original writes 10 µs steps
//! into the one, and the moment of the end where the log format has the length into the other.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::distribution::steps;
use super::micros;
use super::model::{Layout, Results, Row, RowKind, Run};
use super::text::{mean_ms, ms};
use crate::record::{LATENCY_MAX_NS, Latency};

/// One file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Its path.
    pub path: String,
    /// Its content.
    pub content: String,
}

/// All files of all runs.
#[must_use]
pub fn render(results: &Results, prefix: &str) -> Vec<NamedFile> {
    let runs = results.runs.iter();
    runs.flat_map(|run| of_run(run, prefix, &results.layout))
        .collect()
}

/// The first file of a run, to see before the run whether it can be written.
#[must_use]
pub fn first_path(prefix: &str) -> String {
    format!("{prefix}_FULL_RUN_1.txt")
}

fn of_run(run: &Run, prefix: &str, layout: &Layout) -> Vec<NamedFile> {
    let number = run.number;
    let mut files = pair(
        &format!("{prefix}_FULL_RUN_{number}"),
        "Full Run",
        run,
        &run.totals(),
        layout,
    );
    let mut names: Vec<String> = Vec::new();
    for row in &run.rows {
        // As in the original there is no file for waits that were not asked for.
        if row.kind == RowKind::Wait && row.good() == 0 {
            continue;
        }
        let name = file_name(row.kind.name());
        let same = names.iter().filter(|known| **known == name).count();
        names.push(name.clone());
        // The lines of `--command` may have the same first word.
        let again = match same {
            0 => String::new(),
            same => format!("_{}", same + 1),
        };
        let stem = format!("{prefix}_{name}{again}_command_run_{number}");
        files.extend(pair(&stem, row.kind.name(), run, row, layout));
    }
    files
}

fn pair(stem: &str, what: &str, run: &Run, row: &Row, layout: &Layout) -> Vec<NamedFile> {
    let latency = row.latency(layout.from);
    vec![
        NamedFile {
            path: format!("{stem}.txt"),
            content: percentile_table(latency),
        },
        NamedFile {
            path: format!("{stem}.hgrm"),
            content: log(what, run, latency),
        },
    ]
}

/// A name as part of a path: letters, digits and a few signs stay.
fn file_name(name: &str) -> String {
    let legal = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '<' | '>') {
            c
        } else {
            '_'
        }
    };
    name.chars().map(legal).collect()
}

/// The percentile table.
#[must_use]
pub fn percentile_table(latency: &Latency) -> String {
    let mut text = format!(
        "{:>12} {:>12} {:>12} {:>12}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for step in steps(latency) {
        let quantile = step.percentile / 100.0;
        let _ = writeln!(
            text,
            "{:12.3} {quantile:12.6} {:12} {:12.2}",
            ms(step.ns),
            step.count,
            1.0 / (1.0 - quantile),
        );
    }
    let deviation = latency.histogram().stdev() / 1e6;
    let _ = writeln!(
        text,
        "#[Mean    = {:12.3}, StdDeviation   = {deviation:12.3}]\n\
         #[Max     = {:12.3}, Total count    = {:12}]\n\
         #[Buckets = {BUCKETS:12}, SubBuckets     = {SUB_BUCKETS:12}]",
        mean_ms(latency),
        ms(latency.max_ns()),
        latency.count(),
    );
    text
}

/// The interval log of the whole run.
fn log(what: &str, run: &Run, latency: &Latency) -> String {
    let began = run.started_unix_ns;
    let (seconds, millis) = (began / 1_000_000_000, began / 1_000_000 % 1_000);
    let max_us = latency.max_ns() / 1_000;
    format!(
        "#[{what} command HDR latency histogram results]\n\
         #[Histogram log format version 1.2]\n\
         #[StartTime: {seconds}.{millis:03} (seconds since epoch), {}]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n\
         {seconds}.{millis:03},{:.3},{max_us}.0,{}\n",
        date(seconds),
        run.duration.as_secs_f64(),
        micros::compressed(latency)
    )
}

fn date(unix_seconds: u64) -> String {
    let seconds = i64::try_from(unix_seconds).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds)
        .map_or_else(|_| "beyond the calendar".to_owned(), |t| t.to_string())
}

/// Sub-buckets of a histogram with three digits.
const SUB_BUCKETS: u64 = 2_048;
/// Buckets of 1 ns to an hour: how often 2048 is doubled until it lies above.
const BUCKETS: u32 = (LATENCY_MAX_NS / SUB_BUCKETS).ilog2() + 2;

#[cfg(test)]
#[path = "hdr_files_tests.rs"]
mod tests;
