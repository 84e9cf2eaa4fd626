//! `--client-stats`: one file per client with its seconds and its latencies.
//!
//! ```text
//! Per-Second Benchmark Data
//! Second,SET Requests,SET Average Latency,SET Total Bytes,…TX,…RX,GET Requests,…,GET Misses,
//!     GET Hits,WAIT Requests,WAIT Average Latency                            (in one line)
//! 0,182,0.000130,14342,13432,910,1818,0.000145,75585,63435,12150,1728,90,0,0.000000
//!
//! Full-Test GET Latency
//! Latency (<= msec),Percent
//!    0.023,0.000
//! ```
//!
//! The average latencies are seconds, as in the original. With `--command` each row has the five
//! columns of a SET; in a cluster two columns for redirections follow each of them. The files are
//! made from the rows of all requests, which [`crate::Settings::record_rows`] asks for; a client
//! is one connection of a thread, and stays the same when it reconnects.

use std::fmt::Write as _;

use kvlab_timing::Stamp;

use super::distribution::steps;
use super::hdr_files::NamedFile;
use super::model::{LatencyFrom, Layout, RowKind, float};
use super::recorder::RowPlan;
use super::text::ms;
use crate::record::{ClientRow, ErrorKind, Latency, Outcome, RowKind as Purpose};

/// What the files are made from.
#[derive(Clone, Copy, Debug)]
pub struct ClientStats<'a> {
    /// Number of the run, from 1.
    pub run: u32,
    /// All requests of the run.
    pub rows: &'a [ClientRow],
    /// Which row each class belongs to.
    pub plan: &'a RowPlan,
    /// Columns and latency.
    pub layout: &'a Layout,
    /// Begin of the measured part.
    pub begin: Stamp,
    /// Threads.
    pub threads: u32,
    /// Clients of each thread.
    pub clients: u32,
}

/// The first file, to see before the run whether it can be written.
#[must_use]
pub fn first_path(prefix: &str) -> String {
    path(prefix, 1, 0, 0)
}

impl ClientStats<'_> {
    /// One file for each client, whether or not it did anything.
    #[must_use]
    pub fn render(&self, prefix: &str) -> Vec<NamedFile> {
        let count = u64::from(self.threads) * u64::from(self.clients);
        let mut clients: Vec<Client> = (0..count)
            .map(|_| Client::new(self.plan.rows().len()))
            .collect();
        for row in self.rows {
            let client = clients.get_mut(row.connection as usize);
            if let Some(client) = client
                && row.kind == Purpose::Load
            {
                self.add(client, row);
            }
        }
        (0..self.threads)
            .flat_map(|thread| (0..self.clients).map(move |client| (thread, client)))
            .zip(&clients)
            .map(|((thread, client), seen)| NamedFile {
                path: path(prefix, self.run, thread, client),
                content: self.text(seen),
            })
            .collect()
    }

    fn add(&self, client: &mut Client, row: &ClientRow) {
        let (Some(place), Some(received)) = (self.plan.row_of(row.class.index()), row.received)
        else {
            return;
        };
        let second = received.saturating_since(self.begin) / 1_000_000_000;
        let second = usize::try_from(second)
            .unwrap_or(usize::MAX)
            .min(MAX_SECONDS);
        while client.seconds.len() <= second {
            let empty = vec![Cell::default(); self.plan.rows().len()];
            client.seconds.push(empty);
        }
        let cells = client.seconds.get_mut(second);
        let cell = cells.and_then(|cells| cells.get_mut(place));
        let (Some(cell), Some(latency)) = (cell, client.latencies.get_mut(place)) else {
            return;
        };
        match row.outcome {
            Outcome::Hit => cell.hits += 1,
            Outcome::Miss => cell.misses += 1,
            Outcome::Error(kind) if kind == ErrorKind::new(b"MOVED") => {
                cell.moved += 1;
                return;
            }
            Outcome::Error(kind) if kind == ErrorKind::new(b"ASK") => {
                cell.asked += 1;
                return;
            }
            _ => return,
        }
        let from = match self.layout.from {
            LatencyFrom::Schedule => row.intended,
            LatencyFrom::Send => row.sent,
        };
        let ns = received.saturating_since(from);
        cell.latency_ns += u128::from(ns);
        cell.bytes_out += u64::from(row.bytes_out);
        cell.bytes_in += u64::from(row.bytes_in);
        latency.record(ns);
    }

    fn text(&self, client: &Client) -> String {
        let rows = self.plan.rows();
        let mut text = "Per-Second Benchmark Data\nSecond".to_owned();
        for kind in rows {
            self.titles(&mut text, kind);
        }
        text.push('\n');
        for (number, cells) in client.seconds.iter().enumerate() {
            let _ = write!(text, "{number}");
            for (kind, cell) in rows.iter().zip(cells) {
                self.cells(&mut text, kind, cell);
            }
            text.push('\n');
        }
        for place in self.order() {
            let (Some(kind), Some(latency)) = (rows.get(place), client.latencies.get(place)) else {
                continue;
            };
            let name = kind.name();
            let _ = write!(
                text,
                "\nFull-Test {name} Latency\nLatency (<= msec),Percent\n"
            );
            for step in steps(latency) {
                let _ = writeln!(text, "{:8.3},{:.3}", ms(step.ns), step.percentile);
            }
        }
        text
    }

    /// Reads stand before writes among the latencies, but not among the seconds.
    fn order(&self) -> Vec<usize> {
        let rows = self.plan.rows();
        if rows.first() == Some(&RowKind::Set) && rows.get(1) == Some(&RowKind::Get) {
            let mut order: Vec<usize> = (0..rows.len()).collect();
            order.swap(0, 1);
            order
        } else {
            (0..rows.len()).collect()
        }
    }

    fn titles(&self, text: &mut String, kind: &RowKind) {
        let name = kind.name();
        let _ = write!(text, ",{name} Requests,{name} Average Latency");
        if *kind == RowKind::Wait {
            return;
        }
        let _ = write!(
            text,
            ",{name} Total Bytes,{name} Total Bytes TX,{name} Total Bytes RX"
        );
        if *kind == RowKind::Get {
            let _ = write!(text, ",{name} Misses,{name} Hits");
        }
        if self.layout.cluster {
            let _ = write!(text, ",{name} Moved,{name} Ask");
        }
    }

    fn cells(&self, text: &mut String, kind: &RowKind, cell: &Cell) {
        let requests = cell.hits + cell.misses;
        let _ = write!(text, ",{requests},{:.6}", cell.mean_seconds());
        if *kind == RowKind::Wait {
            return;
        }
        let Cell {
            bytes_in,
            bytes_out,
            ..
        } = cell;
        let _ = write!(text, ",{},{bytes_out},{bytes_in}", bytes_in + bytes_out);
        if *kind == RowKind::Get {
            let _ = write!(text, ",{},{}", cell.misses, cell.hits);
        }
        if self.layout.cluster {
            let _ = write!(text, ",{},{}", cell.moved, cell.asked);
        }
    }
}

fn path(prefix: &str, run: u32, thread: u32, client: u32) -> String {
    format!("{prefix}-{run}-{thread}-{client}.csv")
}

/// What one client did.
struct Client {
    /// By second and row.
    seconds: Vec<Vec<Cell>>,
    /// By row.
    latencies: Vec<Latency>,
}

impl Client {
    fn new(rows: usize) -> Self {
        Self {
            seconds: Vec::new(),
            latencies: vec![Latency::default(); rows],
        }
    }
}

/// One row in one second.
#[derive(Clone, Debug, Default)]
struct Cell {
    hits: u64,
    misses: u64,
    moved: u64,
    asked: u64,
    latency_ns: u128,
    bytes_in: u64,
    bytes_out: u64,
}

impl Cell {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a mean needs no more than 52 bits"
    )]
    fn mean_seconds(&self) -> f64 {
        match self.hits + self.misses {
            0 => 0.0,
            count => self.latency_ns as f64 / float(count) / 1e9,
        }
    }
}

/// Seconds that are kept at most: a week. What comes later is added to the last.
const MAX_SECONDS: usize = 7 * 24 * 3600;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::OpClass;

    fn request(connection: u32, class: u8, end_ms: u64, outcome: Outcome) -> ClientRow {
        let stamp = |ms: u64| Stamp::from_nanos(ms * 1_000_000);
        ClientRow {
            local: "127.0.0.1:4000".parse().unwrap(),
            ordinal: 0,
            sequence: 0,
            kind: Purpose::Load,
            class: OpClass(class),
            intended: stamp(end_ms - 2),
            sent: stamp(end_ms - 2),
            received: Some(stamp(end_ms)),
            kernel: None,
            connection,
            bytes_out: 40,
            bytes_in: 5,
            outcome,
            attempt: 0,
            retried: false,
        }
    }

    fn files(rows: &[ClientRow], layout: &Layout) -> Vec<NamedFile> {
        let plan = RowPlan::standard(&[RowKind::Set, RowKind::Get]);
        let stats = ClientStats {
            run: 1,
            rows,
            plan: &plan,
            layout,
            begin: Stamp::from_nanos(10_000_000_000),
            threads: 2,
            clients: 2,
        };
        stats.render("cs")
    }

    #[test]
    fn each_client_has_a_file_with_its_own_seconds() {
        let rows = [
            request(3, 0, 10_500, Outcome::Hit),
            request(3, 1, 12_100, Outcome::Miss),
            request(3, 1, 12_200, Outcome::Hit),
            request(3, 1, 12_300, Outcome::Error(ErrorKind::new(b"ERR"))),
            request(0, 0, 10_100, Outcome::Hit),
        ];
        let files = files(&rows, &Layout::default());
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        let expected = [
            "cs-1-0-0.csv",
            "cs-1-0-1.csv",
            "cs-1-1-0.csv",
            "cs-1-1-1.csv",
        ];
        assert_eq!(paths, expected);
        let lines: Vec<_> = files[3].content.lines().take(6).collect();
        let expected = [
            "Per-Second Benchmark Data",
            "Second,SET Requests,SET Average Latency,SET Total Bytes,SET Total Bytes TX,\
             SET Total Bytes RX,GET Requests,GET Average Latency,GET Total Bytes,\
             GET Total Bytes TX,GET Total Bytes RX,GET Misses,GET Hits,WAIT Requests,\
             WAIT Average Latency",
            "0,1,0.002000,45,40,5,0,0.000000,0,0,0,0,0,0,0.000000",
            "1,0,0.000000,0,0,0,0,0.000000,0,0,0,0,0,0,0.000000",
            "2,0,0.000000,0,0,0,2,0.002000,90,80,10,1,1,0,0.000000",
            "",
        ];
        assert_eq!(lines, expected);
        let titles: Vec<_> = files[3]
            .content
            .lines()
            .filter(|line| line.starts_with("Full-Test"))
            .collect();
        let expected = ["GET", "SET", "WAIT"].map(|name| format!("Full-Test {name} Latency"));
        assert_eq!(titles, expected);
        assert!(files[3].content.ends_with("   0.000,100.000\n"));
    }

    #[test]
    fn a_cluster_adds_redirections() {
        let layout = Layout {
            cluster: true,
            ..Layout::default()
        };
        let moved = Outcome::Error(ErrorKind::new(b"MOVED"));
        let files = files(&[request(0, 0, 10_100, moved)], &layout);
        let lines: Vec<_> = files[0].content.lines().collect();
        assert!(lines[1].contains("SET Total Bytes RX,SET Moved,SET Ask,GET Requests"));
        assert!(
            lines[2].starts_with("0,0,0.000000,0,0,0,1,0,0,"),
            "{}",
            lines[2]
        );
    }
}
