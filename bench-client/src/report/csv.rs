//! One row per interval and class, for spreadsheets and plots.
//!
//! The rows of class `total` add the classes up and carry what belongs to no class: lag, bytes,
//! connections. A quantile that fewer than ten samples lie beyond is left empty.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use ::csv::Writer;

use super::number::rate;
use super::quantile::{P50, P99, QUANTILES};
use super::{Head, Report, Support, all_classes};
use crate::record::{ClassTally, Interval, Latency, Phase, Summary, ThreadLoad};

/// Writes a heading and the rows of each interval.
pub struct Csv<W: Write> {
    out: Writer<W>,
    classes: Vec<String>,
    open_loop: bool,
    stamped: bool,
    headed: bool,
}

impl<W: Write> Csv<W> {
    /// Writes to `out`; the head says whether there are response times and kernel stamps.
    pub fn new(out: W, head: &Head) -> Self {
        Self {
            out: Writer::from_writer(out),
            classes: head.classes(),
            open_loop: head.settings.load.is_open(),
            stamped: head.settings.kernel_stamps.is_wanted(),
            headed: false,
        }
    }

    fn heading(&mut self) -> io::Result<()> {
        if self.headed {
            return Ok(());
        }
        self.headed = true;
        let mut names: Vec<String> = COLUMNS.map(str::to_owned).into();
        let kinds = [
            ("service", true),
            ("response", self.open_loop),
            ("network", self.stamped),
        ];
        for (kind, _) in kinds.into_iter().filter(|(_, shown)| *shown) {
            names.push(format!("{kind}_samples"));
            names.push(format!("{kind}_min_ns"));
            names.push(format!("{kind}_mean_ns"));
            let fields = QUANTILES.iter().map(|quantile| quantile.field);
            names.extend(fields.map(|field| format!("{kind}_{field}_ns")));
            names.push(format!("{kind}_max_ns"));
        }
        names.extend(TOTAL_COLUMNS.map(str::to_owned));
        self.record(&names)
    }

    fn record(&mut self, cells: &[String]) -> io::Result<()> {
        self.out.write_record(cells).map_err(io::Error::from)
    }

    fn class_cells(&self, interval: &Interval, name: &str, class: &ClassTally) -> Vec<String> {
        let outcomes = class.outcomes;
        let length = Duration::from_nanos(interval.end.saturating_since(interval.begin));
        let mut cells = vec![
            interval.index.to_string(),
            phase(interval.phase).to_owned(),
            interval.begin.as_nanos().to_string(),
            interval.end.as_nanos().to_string(),
            interval.elapsed.as_nanos().to_string(),
            name.to_owned(),
        ];
        let counts = [
            outcomes.hits,
            outcomes.misses,
            outcomes.errors,
            outcomes.timeouts,
            outcomes.lost,
            outcomes.not_sent,
            class.retries,
        ];
        cells.extend(counts.map(|count| count.to_string()));
        cells.push(format!("{:.3}", rate(outcomes.answered(), length)));
        latency_cells(&class.service, &mut cells);
        if self.open_loop {
            latency_cells(&class.response, &mut cells);
        }
        if self.stamped {
            latency_cells(&class.network, &mut cells);
        }
        cells
    }
}

fn latency_cells(latency: &Latency, cells: &mut Vec<String>) {
    cells.push(latency.count().to_string());
    if latency.is_empty() {
        cells.extend(vec![String::new(); QUANTILES.len() + 3]);
        return;
    }
    cells.push(latency.min_ns().to_string());
    cells.push(format!("{:.1}", latency.mean_ns()));
    cells.extend(QUANTILES.iter().map(|quantile| cell(quantile.of(latency))));
    cells.push(latency.max_ns().to_string());
}

fn cell(support: Support) -> String {
    support.ns().map_or_else(String::new, |ns| ns.to_string())
}

fn total_cells(interval: &Interval) -> [String; TOTAL_COLUMNS.len()] {
    let tally = &interval.tally;
    [
        cell(P50.of(&tally.lag)),
        cell(P99.of(&tally.lag)),
        tally.lag.max_ns().to_string(),
        tally.bytes_out.to_string(),
        tally.bytes_in.to_string(),
        interval.connections.to_string(),
        interval.in_flight.to_string(),
        interval.backlog.to_string(),
        cell(P99.of(&tally.lateness)),
        tally.lateness.max_ns().to_string(),
        cell(P50.of(&tally.read_delay)),
        cell(P99.of(&tally.read_delay)),
        tally.read_delay.max_ns().to_string(),
        cell(P99.of(&tally.turns)),
        tally.turns.max_ns().to_string(),
        shares(interval, |thread| thread.cpu_share),
        shares(interval, |thread| thread.spun_share),
        interval.connecting.to_string(),
    ]
}

/// A number for each thread, parted by semicolons.
fn shares(interval: &Interval, of: impl Fn(&ThreadLoad) -> f64) -> String {
    let shares: Vec<String> = interval
        .threads
        .iter()
        .map(|thread| format!("{:.3}", of(thread)))
        .collect();
    shares.join(";")
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measured => "measured",
        Phase::Drain => "drain",
    }
}

impl<W: Write> Report for Csv<W> {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        self.heading()?;
        let mut rows = Vec::new();
        for (name, class) in self.classes.iter().zip(&interval.tally.classes) {
            let mut cells = self.class_cells(interval, name, class);
            cells.extend(vec![String::new(); TOTAL_COLUMNS.len()]);
            rows.push(cells);
        }
        let mut total = self.class_cells(interval, "total", &all_classes(&interval.tally));
        total.extend(total_cells(interval));
        rows.push(total);
        for row in &rows {
            self.record(row)?;
        }
        self.out.flush()
    }

    fn finish(&mut self, _summary: &Summary) -> io::Result<()> {
        self.heading()?;
        self.out.flush()
    }
}

impl<W: Write> fmt::Debug for Csv<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Csv");
        shown.field("classes", &self.classes);
        shown.finish_non_exhaustive()
    }
}

/// Columns of every row, before the latencies.
const COLUMNS: [&str; 14] = [
    "interval",
    "phase",
    "begin_ns",
    "end_ns",
    "elapsed_ns",
    "class",
    "hits",
    "misses",
    "errors",
    "timeouts",
    "connection_lost",
    "not_sent",
    "retries",
    "rate_per_second",
];

/// Columns of the rows of class `total`, after the latencies.
const TOTAL_COLUMNS: [&str; 18] = [
    "lag_p50_ns",
    "lag_p99_ns",
    "lag_max_ns",
    "bytes_out",
    "bytes_in",
    "connections",
    "in_flight",
    "backlog",
    "lateness_p99_ns",
    "lateness_max_ns",
    "read_delay_p50_ns",
    "read_delay_p99_ns",
    "read_delay_max_ns",
    "loop_turn_p99_ns",
    "loop_turn_max_ns",
    "cpu_shares",
    "spun_shares",
    "connecting",
];

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::settings::KernelStamps;

    #[test]
    fn rows_are_as_in_the_golden_file() {
        let mut out = Vec::new();
        let mut csv = Csv::new(&mut out, &sample::head());
        for interval in sample::intervals() {
            csv.interval(&interval).unwrap();
        }
        csv.finish(&sample::open_loop()).unwrap();
        drop(csv);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, include_str!("golden/intervals.csv"));
    }

    #[test]
    fn every_row_has_as_many_cells_as_the_heading() {
        let mut stamped = sample::head();
        stamped.settings.kernel_stamps = KernelStamps::Auto;
        for head in [sample::closed_head(), sample::head(), stamped] {
            let mut out = Vec::new();
            let mut csv = Csv::new(&mut out, &head);
            for interval in sample::intervals() {
                csv.interval(&interval).unwrap();
            }
            drop(csv);
            // The reader refuses rows of another length than the heading's.
            let mut reader = ::csv::Reader::from_reader(out.as_slice());
            let rows = reader.records().collect::<Result<Vec<_>, _>>().unwrap();
            assert_eq!(rows.len(), 2 * (head.classes().len() + 1));
        }
    }

    #[test]
    fn a_run_without_intervals_still_has_a_heading() {
        let mut out = Vec::new();
        let mut csv = Csv::new(&mut out, &sample::closed_head());
        csv.finish(&sample::closed_loop()).unwrap();
        drop(csv);
        assert!(
            String::from_utf8(out)
                .unwrap()
                .starts_with("interval,phase,begin_ns,")
        );
    }
}
