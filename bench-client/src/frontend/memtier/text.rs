//! The tables for people, laid out as memtier lays them out, so that scripts read them unchanged.
//!
//! ```text
//! 4         Threads
//! 25        Connections per thread
//! 10000     Requests per client
//!
//!
//! ALL STATS
//! ================…
//! Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency … KB/sec
//! ----------------…
//! Sets         3817.02          ---          ---         0.15817         0.05500 … 293.50
//!
//!
//! Request Latency Distribution
//! Type     <= msec         Percent
//! ----------------…
//! SET       0.023        0.000
//! ```
//!
//! Every cell is followed by one blank; the label is as wide as the longest command name plus one,
//! at least 7. What memtier has no place for stands in lines of its own that begin with `!` (what
//! did not end well) or `#` (remarks); nothing that looks for a label at the beginning of a line
//! takes them for one of its own.

use std::fmt::Write as _;

use super::distribution::steps;
use super::model::{
    Bound, Heading, LatencyFrom, Layout, Results, RowKind, Verification, float, quantile,
};
use super::remarks;
use super::sheet::{Line, Sheet};
use crate::record::Latency;

/// Everything that goes to stdout or `--out-file` at the end.
#[must_use]
pub fn render(results: &Results) -> String {
    let mut text = String::new();
    if !results.config.verify_only {
        text.push_str(&heading(&results.heading));
    }
    for sheet in results.sheets() {
        text.push_str(&table(&sheet, &results.layout));
        if results.layout.histogram {
            text.push_str(&distribution(&sheet, &results.layout));
        }
        text.push_str(&remarks::of_sheet(&sheet, &results.layout));
    }
    text.push_str(&remarks::of_runs(&results.runs, results.config.run_count));
    if let Some(verification) = &results.verification {
        text.push_str(&verified(verification));
    }
    text
}

/// The three lines above the tables.
#[must_use]
pub fn heading(heading: &Heading) -> String {
    let (bound, of) = match heading.bound {
        Bound::Requests(count) => (count, "Requests per client"),
        Bound::Seconds(count) => (count, "Seconds"),
    };
    let Heading {
        threads,
        connections_per_thread,
        ..
    } = heading;
    format!(
        "{threads:<9} Threads\n\
         {connections_per_thread:<9} Connections per thread\n\
         {bound:<9} {of}\n"
    )
}

/// What `-n allkeys` says when it is worked out.
#[must_use]
pub fn requests_set(requests: u64) -> String {
    format!("setting requests to {requests}\n")
}

/// One table, with the two empty lines above it.
#[must_use]
pub fn table(sheet: &Sheet, layout: &Layout) -> String {
    let columns = Columns::of(sheet, layout);
    let mut text = format!("\n\n{}\n", sheet.title);
    let _ = writeln!(text, "{}", "=".repeat(columns.width()));
    columns.header(&mut text);
    let _ = writeln!(text, "{}", "-".repeat(columns.width()));
    for line in sheet.lines.iter().chain([&sheet.totals]) {
        columns.line(&mut text, line, layout);
    }
    text
}

/// The distribution of a sheet's latencies, with the two empty lines above it.
#[must_use]
pub fn distribution(sheet: &Sheet, layout: &Layout) -> String {
    let mut text =
        "\n\nRequest Latency Distribution\nType     <= msec         Percent\n".to_owned();
    let _ = writeln!(text, "{}", "-".repeat(DISTRIBUTION_WIDTH));
    let last = sheet.lines.len();
    for (place, line) in (1..).zip(&sheet.lines) {
        let name = line.row.kind.name();
        for step in steps(line.row.latency(layout.from)) {
            let Step { ms, percentile } = Step::of(step.ns, step.percentile);
            let _ = writeln!(text, "{name:<6} {ms:8.3} {percentile:12.3}");
        }
        // Commands are each closed by a line, sets, gets and waits are parted by one.
        if place < last || layout.commands {
            text.push_str("---\n");
        }
    }
    text
}

/// The outcome of `--data-verify`, with the two empty lines above it.
#[must_use]
pub fn verified(verification: &Verification) -> String {
    let Verification { verified, failed } = verification;
    // The second word of the first count is spelled as scripts look for it.
    format!(
        "\n\nPerforming data verification...\nData verification completed:\n\
         {verified:<10} keys verified successfuly.\n{failed:<10} keys failed.\n"
    )
}

/// Nanoseconds as milliseconds.
#[must_use]
pub(super) fn ms(ns: u64) -> f64 {
    float(ns) / 1e6
}

/// The mean in milliseconds.
#[must_use]
pub(super) fn mean_ms(latency: &Latency) -> f64 {
    latency.mean_ns() / 1e6
}

/// A percentile in a title: `p50`, `p99.9`, `p99.990`.
#[must_use]
pub fn percentile_title(percentile: f64) -> String {
    let whole = |factor: f64| (percentile * factor - (percentile * factor).round()).abs() < 1e-9;
    if whole(1.0) {
        format!("p{percentile:.0}")
    } else if whole(10.0) {
        format!("p{percentile:.1}")
    } else {
        format!("p{percentile:.3}")
    }
}

struct Step {
    ms: f64,
    percentile: f64,
}

impl Step {
    fn of(ns: u64, percentile: f64) -> Self {
        Self {
            ms: ms(ns),
            percentile,
        }
    }
}

/// Which columns a table has, and how wide.
struct Columns {
    label: usize,
    columns: Vec<Column>,
}

#[derive(Clone, Copy, PartialEq)]
enum Column {
    Ops,
    Hits,
    Misses,
    Moved,
    Asked,
    Average,
    Percentile(f64),
    Bytes,
}

impl Columns {
    fn of(sheet: &Sheet, layout: &Layout) -> Self {
        let names = sheet.lines.iter().map(|line| match &line.row.kind {
            RowKind::Command(name) => name.chars().count(),
            _ => 0,
        });
        let mut columns = vec![Column::Ops];
        if !layout.commands {
            columns.extend([Column::Hits, Column::Misses]);
        }
        if layout.cluster {
            columns.extend([Column::Moved, Column::Asked]);
        }
        columns.push(Column::Average);
        columns.extend(layout.percentiles.iter().copied().map(Column::Percentile));
        columns.push(Column::Bytes);
        Self {
            label: names.fold(SHORTEST_LABEL, usize::max) + 1,
            columns,
        }
    }

    /// Of a rule: each cell is followed by a blank.
    fn width(&self) -> usize {
        let cells = self.columns.iter().map(|column| column.width() + 1);
        self.label + 1 + cells.sum::<usize>()
    }

    fn header(&self, text: &mut String) {
        let _ = write!(text, "{:<width$} ", "Type", width = self.label);
        for column in &self.columns {
            let (title, width) = (column.title(), column.width());
            let _ = write!(text, "{title:>width$} ");
        }
        text.push('\n');
    }

    fn line(&self, text: &mut String, line: &Line, layout: &Layout) {
        let label = line.row.kind.label();
        let _ = write!(text, "{label:<width$} ", width = self.label);
        for column in &self.columns {
            let width = column.width();
            match column.value(line, layout.from) {
                Some(value) => {
                    let digits = column.digits();
                    let _ = write!(text, "{value:width$.digits$} ");
                }
                None => {
                    let _ = write!(text, "{NONE:>width$} ");
                }
            }
        }
        text.push('\n');
    }
}

impl Column {
    fn width(self) -> usize {
        match self {
            Self::Average | Self::Percentile(_) => 15,
            _ => 12,
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Average | Self::Percentile(_) => 5,
            _ => 2,
        }
    }

    fn title(self) -> String {
        let title = match self {
            Self::Ops => "Ops/sec",
            Self::Hits => "Hits/sec",
            Self::Misses => "Misses/sec",
            Self::Moved => "MOVED/sec",
            Self::Asked => "ASK/sec",
            Self::Average => "Avg. Latency",
            Self::Percentile(percentile) => {
                return format!("{} Latency", percentile_title(percentile));
            }
            Self::Bytes => "KB/sec",
        };
        title.to_owned()
    }

    /// What stands in the cell; `None` where there is nothing to say.
    fn value(self, line: &Line, from: LatencyFrom) -> Option<f64> {
        let (kind, rates) = (&line.row.kind, &line.rates);
        let waits = *kind == RowKind::Wait;
        let latency = line.row.latency(from);
        match self {
            Self::Ops => Some(rates.ops),
            Self::Hits => kind.has_hits().then_some(rates.hits),
            Self::Misses => kind.has_hits().then_some(rates.misses),
            Self::Moved => (!waits).then_some(rates.moved),
            Self::Asked => (!waits).then_some(rates.asked),
            Self::Average => (!latency.is_empty()).then(|| mean_ms(latency)),
            Self::Percentile(percentile) => {
                (!latency.is_empty()).then(|| ms(latency.quantile_ns(quantile(percentile))))
            }
            Self::Bytes => (!waits).then_some((rates.bytes_in + rates.bytes_out) / 1024.0),
        }
    }
}

const NONE: &str = "---";
const SHORTEST_LABEL: usize = 6;
const DISTRIBUTION_WIDTH: usize = 72;

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
