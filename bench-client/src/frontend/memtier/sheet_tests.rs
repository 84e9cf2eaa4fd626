//! Tables of several runs, with rates that can be worked out by hand.

use super::super::config::Config;
use super::super::model::{Bound, Heading, Layout, RowKind};
use super::*;

/// A run of 10 s with this many reads.
fn run(number: u32, gets: u64) -> Run {
    let mut row = Row::new(RowKind::Get);
    row.outcomes.hits = gets;
    row.service.record(u64::from(number) * 1_000_000);
    let mut run = Run::new(number);
    run.started_unix_ns = 1_000_000_000_000;
    run.duration = Duration::from_secs(10);
    run.rows = vec![row];
    run
}

fn results(runs: Vec<Run>) -> Results {
    Results {
        config: Config {
            run_count: 3,
            ..Config::default()
        },
        heading: Heading {
            threads: 1,
            connections_per_thread: 1,
            bound: Bound::Seconds(10),
        },
        layout: Layout::default(),
        runs,
        verification: None,
    }
}

/// The rates of golden case 03, where the original calls run 1 both the best and the worst.
#[test]
fn best_and_worst_are_the_fastest_and_the_slowest_run() {
    let results = results(vec![run(1, 63_840), run(2, 720_820), run(3, 1_181_960)]);
    let sheets = results.sheets();
    let seen: Vec<_> = sheets
        .iter()
        .map(|sheet| (sheet.title.as_str(), sheet.runs.clone()))
        .collect();
    let expected = [
        ("BEST RUN RESULTS", vec![3]),
        ("WORST RUN RESULTS", vec![1]),
        ("AGGREGATED AVERAGE RESULTS (3 runs)", vec![1, 2, 3]),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn the_rate_decides_and_not_the_count() {
    let mut short = run(2, 1_000);
    short.duration = Duration::from_secs(1);
    let results = results(vec![run(1, 5_000), short]);
    assert_eq!(results.sheets()[0].runs, [2], "1000/s against 500/s");
}

#[test]
fn the_average_is_the_mean_of_the_rates_over_all_latencies() {
    let results = results(vec![run(1, 1_000), run(2, 2_000), run(3, 6_000)]);
    let average = results.sheets().pop().unwrap();
    assert!((average.totals.rates.ops - 300.0).abs() < 1e-9);
    assert!((average.lines[0].rates.hits - 300.0).abs() < 1e-9);
    assert_eq!(average.totals.row.good(), 9_000);
    let latency = &average.totals.row.service;
    assert_eq!((latency.min_ns(), latency.max_ns()), (1_000_000, 3_000_000));
    assert_eq!(average.started_unix_ms, 0);
}

#[test]
fn a_cut_run_is_not_compared_while_there_is_a_whole_one() {
    let mut cut = run(3, 10);
    cut.interrupted = true;
    let mut failed = run(2, 0);
    failed.failure = Some("no connection".to_owned());
    let mut several = results(vec![run(1, 5_000), failed, cut]);
    for sheet in several.sheets() {
        assert_eq!(sheet.runs, [1], "{}", sheet.title);
    }
    several.runs.remove(0);
    assert_eq!(several.sheets()[0].runs, [3], "10 are more than 0");
}

/// Rates 1 to 5: mean 3, variance 10 / 4; t for 4 degrees of freedom is 2.776.
#[test]
fn the_spread_is_that_of_students_t() {
    let spread = Spread::of(&[5.0, 3.0, 1.0, 2.0, 4.0]).unwrap();
    assert!((spread.mean - 3.0).abs() < 1e-12);
    assert!((spread.deviation - 2.5_f64.sqrt()).abs() < 1e-12);
    assert!((spread.low - 1.0).abs() + (spread.high - 5.0).abs() < 1e-12);
    let reach = 2.776 * (2.5_f64 / 5.0).sqrt();
    assert!((spread.reach - reach).abs() < 1e-9);
    assert!((spread.lower() - (3.0 - reach)).abs() < 1e-9);
    let wide = Spread::of(&[1.0, 9.0]).unwrap();
    assert!(wide.reach > wide.mean && wide.lower().abs() < f64::EPSILON);
    assert_eq!(Spread::of(&[1.0]), None);
}

#[test]
fn one_run_is_all_and_none_is_an_empty_one() {
    let mut one = results(vec![run(1, 100)]);
    one.config.run_count = 1;
    assert_eq!(one.sheets()[0].title, "ALL STATS");
    one.runs.clear();
    assert_eq!(one.sheets()[0].totals.row.good(), 0);
    one.config.run_count = 3;
    assert!(one.sheets().is_empty());
}

#[test]
fn all_runs_come_first_when_asked_for() {
    let mut several = results(vec![run(1, 1), run(2, 2)]);
    several.layout.all_runs = true;
    let titles: Vec<_> = several
        .sheets()
        .into_iter()
        .map(|sheet| sheet.title)
        .collect();
    assert_eq!(titles[..2], ["RUN #1 RESULTS", "RUN #2 RESULTS"]);
    assert_eq!(titles.len(), 5);
}
