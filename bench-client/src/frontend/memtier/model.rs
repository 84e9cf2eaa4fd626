//! The results of one run and of several, in memtier's terms.
//!
//! ```text
//! Results                 everything that is printed
//!  ├─ Config, Heading     what was asked for
//!  └─ Run, Run, …         one for each of `--run-count`
//!      ├─ Row, Row, …     "Sets", "Gets", "Waits", or one per command or per `--command`
//!      │   └─ Second, …   what ended in each second of the run
//!      └─ Second, …       the same for all rows together
//! ```
//!
//! Latencies are nanoseconds of one monotonic clock and durations come from the same clock; the
//! calendar only dates a run. An operation is *good* when it was answered without an error: error
//! replies, time-outs and lost requests are counted apart and are in no rate and no latency.

use std::time::Duration;

use super::config::Config;
use crate::record::{Certificate, ErrorCounts, Latency, Outcomes};

/// What a row of the tables stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// The writes of `--ratio`.
    Set,
    /// The reads of `--ratio`.
    Get,
    /// The `WAIT`s of `--wait-ratio`.
    Wait,
    /// An arbitrary command by its name as it is shown: `HSET`, `SCAN 0`, `SCAN <cursor>`.
    Command(String),
    /// All of them together.
    Totals,
}

impl RowKind {
    /// The row of an arbitrary command given as typed: its first word in capitals.
    #[must_use]
    pub fn of_command(line: &str) -> Self {
        let word = line.split_whitespace().next().unwrap_or_default();
        Self::Command(word.to_ascii_uppercase())
    }

    /// Label in the tables and key in the JSON: `Sets`, `Hsets`, `Scan <cursor>s`.
    #[must_use]
    pub fn label(&self) -> String {
        let name = match self {
            Self::Set => return "Sets".to_owned(),
            Self::Get => return "Gets".to_owned(),
            Self::Wait => return "Waits".to_owned(),
            Self::Totals => return "Totals".to_owned(),
            Self::Command(name) => name,
        };
        let mut letters = name.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let rest = letters.map(|letter| letter.to_ascii_lowercase());
        first.into_iter().chain(rest).chain(['s']).collect()
    }

    /// Name in the latency distribution and in file names: `SET`, `HSET`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Set => "SET",
            Self::Get => "GET",
            Self::Wait => "WAIT",
            Self::Totals => "TOTALS",
            Self::Command(name) => name,
        }
    }

    /// Whether hits and misses are told apart in its row.
    #[must_use]
    pub fn has_hits(&self) -> bool {
        matches!(self, Self::Get | Self::Totals)
    }

    /// Whether its row belongs to an arbitrary command.
    #[must_use]
    pub fn is_command(&self) -> bool {
        matches!(self, Self::Command(_))
    }
}

/// Which latency the tables show where there are two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencyFrom {
    /// From the moment the schedule wanted the request sent. Without a rate there is no schedule,
    /// and it is the same as from the send.
    #[default]
    Schedule,
    /// From the moment the request was sent.
    Send,
}

/// Everything that is known of one row.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it stands for.
    pub kind: RowKind,
    /// How the requests ended. Redirections are not in it: the request that follows one is.
    pub outcomes: Outcomes,
    /// `MOVED` replies.
    pub moved: u64,
    /// `ASK` replies.
    pub asked: u64,
    /// Keys found by reads of several keys.
    pub keys_found: u64,
    /// Keys that such reads did not find.
    pub keys_missing: u64,
    /// Attempts that were followed by another.
    pub retries: u64,
    /// Error replies by kind.
    pub errors: ErrorCounts,
    /// Bytes of the replies.
    pub bytes_in: u64,
    /// Bytes of the requests that were answered.
    pub bytes_out: u64,
    /// Reply minus send of the good operations.
    pub service: Latency,
    /// Reply minus intended start of the good operations; empty without a schedule.
    pub response: Latency,
    /// Reply minus send of the error replies.
    pub failed: Latency,
    /// What ended in each second, from the start of the measured part; without gaps.
    pub seconds: Vec<Second>,
}

impl Row {
    /// A row in which nothing happened.
    #[must_use]
    pub fn new(kind: RowKind) -> Self {
        Self {
            kind,
            outcomes: Outcomes::default(),
            moved: 0,
            asked: 0,
            keys_found: 0,
            keys_missing: 0,
            retries: 0,
            errors: ErrorCounts::new(),
            bytes_in: 0,
            bytes_out: 0,
            service: Latency::default(),
            response: Latency::default(),
            failed: Latency::default(),
            seconds: Vec::new(),
        }
    }

    /// Operations that were answered without an error.
    #[must_use]
    pub fn good(&self) -> u64 {
        self.outcomes.hits + self.outcomes.misses
    }

    /// Hits and misses: of keys where a request reads several, else of requests.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        if self.keys_found + self.keys_missing > 0 {
            (self.keys_found, self.keys_missing)
        } else {
            (self.outcomes.hits, self.outcomes.misses)
        }
    }

    /// The latency that is shown.
    #[must_use]
    pub fn latency(&self, from: LatencyFrom) -> &Latency {
        if from == LatencyFrom::Send || self.response.is_empty() {
            &self.service
        } else {
            &self.response
        }
    }

    /// Adds counts and latencies of another; the seconds stay as they are.
    pub fn merge(&mut self, other: &Self) {
        self.outcomes += other.outcomes;
        self.moved += other.moved;
        self.asked += other.asked;
        self.keys_found += other.keys_found;
        self.keys_missing += other.keys_missing;
        self.retries += other.retries;
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.failed.merge(&other.failed);
    }
}

/// What ended in one second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// How the requests ended.
    pub outcomes: Outcomes,
    /// Bytes of the replies.
    pub bytes_in: u64,
    /// Bytes of the requests that were answered.
    pub bytes_out: u64,
    /// Reply minus send of the good operations.
    pub service: Glance,
    /// Reply minus intended start of the good operations; empty without a schedule.
    pub response: Glance,
}

impl Second {
    /// Operations that were answered without an error.
    #[must_use]
    pub fn good(&self) -> u64 {
        self.outcomes.hits + self.outcomes.misses
    }

    /// The latency that is shown.
    #[must_use]
    pub fn latency(&self, from: LatencyFrom) -> &Glance {
        if from == LatencyFrom::Send || self.response.count == 0 {
            &self.service
        } else {
            &self.response
        }
    }
}

/// What is kept of the latencies of a second: a histogram for each would take a quarter of a
/// megabyte.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Glance {
    /// Latencies.
    pub count: u64,
    /// Their exact sum in nanoseconds.
    pub sum_ns: u128,
    /// Exact minimum in nanoseconds; 0 without latencies.
    pub min_ns: u64,
    /// Exact maximum in nanoseconds.
    pub max_ns: u64,
    /// The percentiles of `--print-percentiles` in their order, in nanoseconds; empty without
    /// latencies.
    pub percentiles_ns: Vec<u64>,
}

impl Glance {
    /// Looks at a latency; the percentiles are given as 0 to 100.
    #[must_use]
    pub fn of(latency: &Latency, percentiles: &[f64]) -> Self {
        if latency.is_empty() {
            return Self::default();
        }
        Self {
            count: latency.count(),
            sum_ns: latency.sum_ns(),
            min_ns: latency.min_ns(),
            max_ns: latency.max_ns(),
            percentiles_ns: percentiles
                .iter()
                .map(|percentile| latency.quantile_ns(quantile(*percentile)))
                .collect(),
        }
    }
}

/// Clients that were active in a second of a staircase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveClients {
    /// In each thread.
    pub per_thread: u64,
    /// In all.
    pub total: u64,
}

/// One run of `--run-count`.
#[derive(Clone, Debug)]
pub struct Run {
    /// Number, from 1.
    pub number: u32,
    /// When the measured part began, in nanoseconds since 1970; 0 when it never did.
    pub started_unix_ns: u64,
    /// First send to last reply on the monotonic clock.
    pub duration: Duration,
    /// The rows, in the order in which they are printed.
    pub rows: Vec<Row>,
    /// All rows together, by second.
    pub seconds: Vec<Second>,
    /// Connections established, with their set-up.
    pub established: u64,
    /// Attempts to connect that failed, and connections that were lost.
    pub connection_errors: u64,
    /// Whether it was ended from outside.
    pub interrupted: bool,
    /// Why the run could not be done, in words for the user.
    pub failure: Option<String>,
    /// Clients by second; empty without a staircase.
    pub active_clients: Vec<ActiveClients>,
    /// What a reader must know before trusting the numbers.
    pub notices: Vec<String>,
    /// How far its latencies can be off; only with `--certify`.
    pub certificate: Option<Certificate>,
}

impl Run {
    /// A run of which nothing is known yet.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self {
            number,
            started_unix_ns: 0,
            duration: Duration::ZERO,
            rows: Vec::new(),
            seconds: Vec::new(),
            established: 0,
            connection_errors: 0,
            interrupted: false,
            failure: None,
            active_clients: Vec::new(),
            notices: Vec::new(),
            certificate: None,
        }
    }

    /// All rows together, with the seconds.
    #[must_use]
    pub fn totals(&self) -> Row {
        let mut totals = Row::new(RowKind::Totals);
        for row in &self.rows {
            totals.merge(row);
        }
        totals.seconds.clone_from(&self.seconds);
        totals
    }

    /// Good operations per second of the run's duration; 0 for a run without duration.
    #[must_use]
    pub fn rate(&self) -> f64 {
        per_second(self.rows.iter().map(Row::good).sum(), self.duration)
    }

    /// Whether it was done as asked for: neither interrupted nor failed.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.interrupted && self.failure.is_none()
    }

    /// Nanoseconds since 1970 of the last reply; 0 when the run never began.
    #[must_use]
    pub fn finished_unix_ns(&self) -> u64 {
        if self.started_unix_ns == 0 {
            return 0;
        }
        let length = u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX);
        self.started_unix_ns.saturating_add(length)
    }
}

/// What the three lines above the tables say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading {
    /// Threads.
    pub threads: u32,
    /// Connections of each thread.
    pub connections_per_thread: u32,
    /// What ends a run.
    pub bound: Bound,
}

/// What ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Requests of each client.
    Requests(u64),
    /// Seconds.
    Seconds(u64),
}

/// The outcome of `--data-verify`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Keys that held what was written.
    pub verified: u64,
    /// Keys that did not.
    pub failed: u64,
}

/// Which columns and blocks are printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// `--print-percentiles`, 0 to 100 each.
    pub percentiles: Vec<f64>,
    /// Whether the distribution of latencies is printed (not with `--hide-histogram`).
    pub histogram: bool,
    /// `--print-all-runs`.
    pub all_runs: bool,
    /// Whether there are columns for redirections (`--cluster-mode`).
    pub cluster: bool,
    /// Whether the rows are those of `--command`: there are no hits and misses then.
    pub commands: bool,
    /// Which latency is shown.
    pub from: LatencyFrom,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            percentiles: vec![50.0, 99.0, 99.9],
            histogram: true,
            all_runs: false,
            cluster: false,
            commands: false,
            from: LatencyFrom::default(),
        }
    }
}

/// Everything that is printed at the end.
#[derive(Clone, Debug)]
pub struct Results {
    /// The options as they were resolved.
    pub config: Config,
    /// The lines above the tables.
    pub heading: Heading,
    /// What is printed of the runs.
    pub layout: Layout,
    /// The runs that were begun. With more than one asked for there are always the tables of the
    /// best, the worst and the average run.
    pub runs: Vec<Run>,
    /// The outcome of `--data-verify`.
    pub verification: Option<Verification>,
}

/// `count` over `duration`; 0 over no time.
pub(super) fn per_second(count: u64, duration: Duration) -> f64 {
    let seconds = duration.as_secs_f64();
    if seconds > 0.0 {
        float(count) / seconds
    } else {
        0.0
    }
}

/// A percentile (0 to 100) as the nearest quantile (0 to 1). Dividing alone makes more than 0.999
/// of 99.9, and with it the 1000th of 1000 samples of the 999th.
pub(super) fn quantile(percentile: f64) -> f64 {
    (percentile * 1e6).round() / 1e8
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates and means need no more than 52 bits"
)]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_the_original() {
        for (line, label, name) in [
            ("hset __key__ f __data__", "Hsets", "HSET"),
            ("PING", "Pings", "PING"),
            ("SET __key__ x", "Sets", "SET"),
        ] {
            let kind = RowKind::of_command(line);
            assert_eq!((kind.label().as_str(), kind.name()), (label, name));
        }
        for (name, label) in [("SCAN 0", "Scan 0s"), ("SCAN <cursor>", "Scan <cursor>s")] {
            assert_eq!(RowKind::Command(name.to_owned()).label(), label);
        }
    }

    #[test]
    fn totals_are_the_sum_of_the_rows() {
        let mut run = Run::new(1);
        run.duration = Duration::from_millis(2_500);
        for (kind, hits, misses, latency) in [
            (RowKind::Set, 30, 0, 1_000_000),
            (RowKind::Get, 50, 20, 3_000_000),
        ] {
            let mut row = Row::new(kind);
            (row.outcomes.hits, row.outcomes.misses) = (hits, misses);
            (row.bytes_in, row.bytes_out) = (hits * 5, hits * 7);
            for _ in 0..hits + misses {
                row.service.record(latency);
            }
            run.rows.push(row);
        }
        let totals = run.totals();
        assert_eq!(totals.good(), 100);
        assert_eq!((totals.bytes_in, totals.bytes_out), (400, 560));
        assert_eq!(totals.service.count(), 100);
        assert_eq!(totals.service.sum_ns(), 30 * 1_000_000 + 70 * 3_000_000);
        assert!((run.rate() - 40.0).abs() < 1e-9, "100 in 2.5 s");
    }

    #[test]
    fn response_time_is_shown_where_there_is_a_schedule_unless_told_otherwise() {
        let mut row = Row::new(RowKind::Get);
        row.service.record(5);
        assert_eq!(row.latency(LatencyFrom::Schedule).max_ns(), 5);
        row.response.record(9);
        assert_eq!(row.latency(LatencyFrom::Schedule).max_ns(), 9);
        assert_eq!(row.latency(LatencyFrom::Send).max_ns(), 5);
    }

    #[test]
    fn percentiles_take_the_sample_of_their_rank() {
        let mut latency = Latency::default();
        (1..=1_000).for_each(|ns| latency.record(ns));
        for (percentile, rank) in [(50.0, 500), (90.0, 900), (99.9, 999), (99.99, 1_000)] {
            assert_eq!(latency.quantile_ns(quantile(percentile)), rank);
        }
    }

    #[test]
    fn a_run_without_duration_has_no_rate() {
        assert!(Run::new(1).rate().abs() < f64::EPSILON);
        assert_eq!(Run::new(1).finished_unix_ns(), 0);
    }
}
