//! One table of the results: a run, or all runs together.
//!
//! ```text
//! one run asked for:   ALL STATS
//! several:             [RUN #i RESULTS, …]  BEST RUN RESULTS  WORST RUN RESULTS
//!                      AGGREGATED AVERAGE RESULTS (N runs)
//! ```
//!
//! The best run is the one with the highest rate of good operations over its own measured
//! duration, the worst the one with the lowest. The average is the mean of the runs' rates, and its
//! latencies are those of all runs in one histogram. Runs that were interrupted or failed take no
//! part while there is a whole one, since a rate of a part is no measure of the whole.

use std::time::Duration;

use super::model::{ActiveClients, Results, Row, Run, Second, float, per_second};

/// What is printed under one title.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// `ALL STATS`, `BEST RUN RESULTS`, …
    pub title: String,
    /// The numbers of the runs that went in.
    pub runs: Vec<u32>,
    /// Milliseconds since 1970 of the beginning; 0 where there are several runs.
    pub started_unix_ms: u64,
    /// Milliseconds since 1970 of the end; 0 where there are several runs.
    pub finished_unix_ms: u64,
    /// First send to last reply; of several runs the sum.
    pub duration: Duration,
    /// Whether a run in it was ended from outside.
    pub interrupted: bool,
    /// The rows.
    pub lines: Vec<Line>,
    /// All rows together.
    pub totals: Line,
    /// Clients by second; empty without a staircase.
    pub active_clients: Vec<ActiveClients>,
    /// How far the runs lie apart; only with at least two.
    pub spread: Option<Spread>,
}

/// One row with its rates.
#[derive(Clone, Debug)]
pub struct Line {
    /// Counts and latencies.
    pub row: Row,
    /// The rates.
    pub rates: Rates,
    /// Connections that failed or were lost; only in the totals.
    pub connection_errors: u64,
}

/// Events and bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "each field is the rate of that name")]
pub struct Rates {
    pub ops: f64,
    pub hits: f64,
    pub misses: f64,
    pub errors: f64,
    pub moved: f64,
    pub asked: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
    pub connection_errors: f64,
}

/// How far the rates of several runs lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean of the rates of good operations.
    pub mean: f64,
    /// Their standard deviation (of a sample: n - 1).
    pub deviation: f64,
    /// Lowest rate.
    pub low: f64,
    /// Highest rate.
    pub high: f64,
    /// Half the width of the interval that holds the true mean with 95 % confidence, as Student's
    /// t says for independent runs.
    pub reach: f64,
}

impl Results {
    /// The tables, in the order in which they are printed.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        if self.config.verify_only {
            return Vec::new();
        }
        if self.config.run_count <= 1 {
            let run = self.runs.first().cloned().unwrap_or_else(|| Run::new(1));
            return vec![Sheet::of("ALL STATS".to_owned(), &run)];
        }
        let mut sheets = Vec::new();
        if self.layout.all_runs {
            for run in &self.runs {
                sheets.push(Sheet::of(format!("RUN #{} RESULTS", run.number), run));
            }
        }
        let counted = self.counted();
        let (Some(best), Some(worst)) = (best(&counted), worst(&counted)) else {
            return sheets;
        };
        sheets.push(Sheet::of("BEST RUN RESULTS".to_owned(), best));
        sheets.push(Sheet::of("WORST RUN RESULTS".to_owned(), worst));
        sheets.push(Sheet::average(&counted));
        sheets
    }

    /// The runs that are compared: the whole ones, or all if there is none.
    #[must_use]
    pub fn counted(&self) -> Vec<&Run> {
        let whole: Vec<&Run> = self.runs.iter().filter(|run| run.is_whole()).collect();
        if whole.is_empty() {
            self.runs.iter().collect()
        } else {
            whole
        }
    }
}

impl Sheet {
    /// The table of one run.
    #[must_use]
    pub fn of(title: String, run: &Run) -> Self {
        let millis = |ns: u64| ns / 1_000_000;
        let rows = run.rows.iter().cloned();
        let lines: Vec<Line> = rows.map(|row| Line::of(row, run.duration, 0)).collect();
        Self {
            title,
            runs: vec![run.number],
            started_unix_ms: millis(run.started_unix_ns),
            finished_unix_ms: millis(run.finished_unix_ns()),
            duration: run.duration,
            interrupted: run.interrupted,
            totals: Line::totals(run, &lines),
            lines,
            active_clients: run.active_clients.clone(),
            spread: None,
        }
    }

    /// The table of the average of several runs.
    #[must_use]
    fn average(runs: &[&Run]) -> Self {
        let mut sheets = runs.iter().map(|run| Self::of(String::new(), run));
        let mut sum = sheets
            .next()
            .unwrap_or_else(|| Self::of(String::new(), &Run::new(1)));
        sum.totals.row.seconds.clear();
        for line in &mut sum.lines {
            line.row.seconds.clear();
        }
        for sheet in sheets {
            sum.runs.extend(&sheet.runs);
            sum.duration += sheet.duration;
            sum.interrupted |= sheet.interrupted;
            for (line, other) in sum.lines.iter_mut().zip(&sheet.lines) {
                line.add(other);
            }
            sum.totals.add(&sheet.totals);
        }
        let count = float(runs.len() as u64).max(1.0);
        for line in sum.lines.iter_mut().chain([&mut sum.totals]) {
            line.rates.divide(count);
        }
        sum.title = format!("AGGREGATED AVERAGE RESULTS ({} runs)", runs.len());
        // Several runs have no one beginning and no seconds in common.
        (sum.started_unix_ms, sum.finished_unix_ms) = (0, 0);
        sum.active_clients.clear();
        let rates: Vec<f64> = runs.iter().map(|run| run.rate()).collect();
        sum.spread = Spread::of(&rates);
        sum
    }

    /// Whether any request ended otherwise than with a good reply.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        self.totals.row.outcomes.failed() > 0 || self.totals.connection_errors > 0
    }
}

impl Line {
    /// The row with its rates over `duration`.
    #[must_use]
    pub fn of(row: Row, duration: Duration, connection_errors: u64) -> Self {
        let rate = |count| per_second(count, duration);
        let (hits, misses) = if row.kind.has_hits() {
            row.hits_and_misses()
        } else {
            (0, 0)
        };
        let rates = Rates {
            ops: rate(row.good()),
            hits: rate(hits),
            misses: rate(misses),
            errors: rate(row.outcomes.errors),
            moved: rate(row.moved),
            asked: rate(row.asked),
            bytes_in: rate(row.bytes_in),
            bytes_out: rate(row.bytes_out),
            connection_errors: rate(connection_errors),
        };
        Self {
            row,
            rates,
            connection_errors,
        }
    }

    /// All rows of a run. Its hits and misses are those of the rows that tell them apart: a write
    /// that is done is no hit.
    fn totals(run: &Run, lines: &[Self]) -> Self {
        let mut totals = Self::of(run.totals(), run.duration, run.connection_errors);
        totals.rates.hits = lines.iter().map(|line| line.rates.hits).sum();
        totals.rates.misses = lines.iter().map(|line| line.rates.misses).sum();
        totals
    }

    fn add(&mut self, other: &Self) {
        self.row.merge(&other.row);
        self.rates.add(&other.rates);
        self.connection_errors += other.connection_errors;
    }

    /// The seconds of the row.
    #[must_use]
    pub fn seconds(&self) -> &[Second] {
        &self.row.seconds
    }
}

impl Rates {
    fn each(&mut self) -> [&mut f64; 9] {
        let Self {
            ops,
            hits,
            misses,
            errors,
            moved,
            asked,
            bytes_in,
            bytes_out,
            connection_errors,
        } = self;
        [
            ops,
            hits,
            misses,
            errors,
            moved,
            asked,
            bytes_in,
            bytes_out,
            connection_errors,
        ]
    }

    fn add(&mut self, other: &Self) {
        let mut other = *other;
        for (mine, theirs) in self.each().into_iter().zip(other.each()) {
            *mine += *theirs;
        }
    }

    fn divide(&mut self, by: f64) {
        for rate in self.each() {
            *rate /= by;
        }
    }
}

impl Spread {
    /// Lower end of the interval of the mean; a rate is never below 0.
    #[must_use]
    pub fn lower(&self) -> f64 {
        (self.mean - self.reach).max(0.0)
    }

    /// Of the rates of at least two runs.
    #[must_use]
    pub fn of(rates: &[f64]) -> Option<Self> {
        if rates.len() < 2 {
            return None;
        }
        let count = float(rates.len() as u64);
        let mean = rates.iter().sum::<f64>() / count;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        Some(Self {
            mean,
            deviation,
            low: rates.iter().copied().fold(f64::INFINITY, f64::min),
            high: rates.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            reach: student_t_95(rates.len() - 1) * deviation / count.sqrt(),
        })
    }
}

fn best<'a>(runs: &[&'a Run]) -> Option<&'a Run> {
    runs.iter()
        .copied()
        .max_by(|one, other| one.rate().total_cmp(&other.rate()))
}

fn worst<'a>(runs: &[&'a Run]) -> Option<&'a Run> {
    runs.iter()
        .copied()
        .min_by(|one, other| one.rate().total_cmp(&other.rate()))
}

/// Two-sided 95 % point of Student's t (any table of it; rounded up between rows).
fn student_t_95(freedom: usize) -> f64 {
    let row = T_95.iter().rev().find(|(least, _)| *least <= freedom);
    row.map_or(f64::INFINITY, |(_, t)| *t)
}

const T_95: [(usize, f64); 18] = [
    (1, 12.706),
    (2, 4.303),
    (3, 3.182),
    (4, 2.776),
    (5, 2.571),
    (6, 2.447),
    (7, 2.365),
    (8, 2.306),
    (9, 2.262),
    (10, 2.228),
    (12, 2.179),
    (14, 2.145),
    (16, 2.120),
    (19, 2.093),
    (24, 2.064),
    (29, 2.045),
    (40, 2.021),
    (60, 2.000),
];

#[cfg(test)]
#[path = "sheet_tests.rs"]
mod tests;
