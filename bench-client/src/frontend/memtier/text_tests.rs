//! Layout of the text, by the column. The comparison with recorded outputs is a test of its own.

use std::time::Duration;

use super::super::config::Config;
use super::super::model::{Row, Run};
use super::*;
use crate::record::ErrorKind;

/// A row with this many hits and misses, each of 1.5 ms.
fn row(kind: RowKind, hits: u64, misses: u64) -> Row {
    let mut row = Row::new(kind);
    (row.outcomes.hits, row.outcomes.misses) = (hits, misses);
    (row.bytes_in, row.bytes_out) = (1024 * hits, 1024 * misses);
    for _ in 0..hits + misses {
        row.service.record(1_500_000);
    }
    row
}

fn results(rows: Vec<Row>) -> Results {
    let mut run = Run::new(1);
    run.duration = Duration::from_secs(2);
    run.rows = rows;
    Results {
        config: Config::default(),
        heading: Heading {
            threads: 4,
            connections_per_thread: 25,
            bound: Bound::Requests(10_000),
        },
        layout: Layout::default(),
        runs: vec![run],
        verification: None,
    }
}

fn standard() -> Results {
    results(vec![
        row(RowKind::Set, 10, 0),
        row(RowKind::Get, 6, 4),
        row(RowKind::Wait, 0, 0),
    ])
}

#[test]
fn a_table_is_laid_out_by_the_column() {
    let mut results = standard();
    results.layout.histogram = false;
    let rule = |c: &str| c.repeat(124);
    let expected = [
        "4         Threads",
        "25        Connections per thread",
        "10000     Requests per client",
        "",
        "",
        "ALL STATS",
        &rule("="),
        "Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     \
         p99 Latency   p99.9 Latency       KB/sec ",
        &rule("-"),
        "Sets            5.00          ---          ---         1.50000         1.50000         \
         1.50000         1.50000         5.00 ",
        "Gets            5.00         3.00         2.00         1.50000         1.50000         \
         1.50000         1.50000         5.00 ",
        "Waits           0.00          ---          ---             ---             ---             \
         ---             ---          --- ",
        "Totals         10.00         3.00         2.00         1.50000         1.50000         \
         1.50000         1.50000        10.00 ",
    ];
    let text = render(&results);
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn commands_widen_the_label_and_have_no_hits() {
    let mut results = results(vec![row(
        RowKind::Command("SCAN <cursor>".to_owned()),
        4,
        0,
    )]);
    results.layout.commands = true;
    results.layout.histogram = false;
    let text = render(&results);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[6].len(), 105);
    assert!(lines[7].starts_with("Type                Ops/sec    Avg. Latency "));
    assert!(lines[9].starts_with("Scan <cursor>s         2.00         1.50000 "));
}

#[test]
fn a_cluster_adds_its_two_columns() {
    let mut results = standard();
    results.layout.cluster = true;
    results.runs[0].rows[1].moved = 3;
    let text = render(&results);
    let line = |label: &str| {
        let line = text.lines().find(|line| line.starts_with(label)).unwrap();
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(line("Type")[4..6], ["MOVED/sec", "ASK/sec"]);
    assert_eq!(line("Gets")[4..6], ["1.50", "0.00"]);
    assert_eq!(line("Waits")[4..6], ["---", "---"]);
}

#[test]
fn percentiles_have_as_many_digits_in_their_titles_as_the_original() {
    let titles = [
        (50.0, "p50"),
        (100.0, "p100"),
        (99.9, "p99.9"),
        (99.99, "p99.990"),
        (99.999, "p99.999"),
    ];
    for (percentile, title) in titles {
        assert_eq!(percentile_title(percentile), title);
    }
}

#[test]
fn nothing_measured_prints_no_number_instead_of_a_wrong_one() {
    let mut results = results(vec![row(RowKind::Set, 0, 0)]);
    results.runs[0].duration = Duration::ZERO;
    let text = render(&results);
    assert!(
        !text.to_lowercase().contains("nan") && !text.contains("inf"),
        "{text}"
    );
    let totals = text
        .lines()
        .find(|line| line.starts_with("Totals"))
        .unwrap();
    let cells: Vec<_> = totals.split_whitespace().collect();
    assert_eq!(cells[1..4], ["0.00", "0.00", "0.00"]);
    assert_eq!(cells[4..8], ["---"; 4]);
}

/// The error count of golden case 14, which the original counts as operations.
#[test]
fn failures_stand_in_lines_that_no_label_begins() {
    let mut results = standard();
    results.layout.histogram = false;
    let get = &mut results.runs[0].rows[1];
    get.outcomes.errors = 40;
    get.errors.insert(ErrorKind::new(b"NOAUTH"), 40);
    get.outcomes.lost = 2;
    results.runs[0].connection_errors = 1;
    let text = render(&results);
    let added: Vec<_> = text.lines().skip(13).collect();
    assert_eq!(added[..2], ["", ""]);
    assert!(
        added[2..].iter().all(|line| line.starts_with("! ")),
        "{text}"
    );
    let cells = |place: usize| added[place].split_whitespace().collect::<Vec<_>>();
    assert_eq!(cells(4), ["!", "GET", "NOAUTH", "40", "20.00"]);
    assert_eq!(cells(5), ["!", "GET", "connection", "lost", "2", "1.00"]);
    assert_eq!(added.len(), 7);
    // The rates of the table are those of good operations.
    assert!(text.contains("Gets            5.00         3.00"), "{text}");
}

#[test]
fn the_other_latency_is_named_where_there_are_two() {
    let mut results = standard();
    for row in &mut results.runs[0].rows {
        for _ in 0..row.good() {
            row.response.record(2_500_000_000);
        }
    }
    let text = render(&results);
    assert!(text.contains("Totals         10.00         3.00         2.00      2500.00000 "));
    assert!(
        text.contains("from its send it is, in msec: avg 1.500, p50 1.500"),
        "{text}"
    );
    results.layout.from = LatencyFrom::Send;
    let text = render(&results);
    assert!(
        text.contains("from its intended start it is, in msec: avg 2500.000"),
        "{text}"
    );
}

#[test]
fn a_failed_run_says_why_below_its_table() {
    let mut results = standard();
    results.runs[0].failure = Some("the server refused\nthe login".to_owned());
    results.config.run_count = 3;
    let text = render(&results);
    assert!(text.contains("BEST RUN RESULTS"));
    assert!(text.contains("\n# run 1 failed: the server refused the login\n"));
    assert!(text.ends_with("# 1 of 3 runs were begun\n"), "{text}");
}
