//! Names, tables and logs of the histogram files.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::*;

fn run() -> Run {
    let mut get = Row::new(RowKind::Get);
    get.outcomes.hits = 3;
    for ns in [100_000, 200_000, 400_000] {
        get.service.record(ns);
    }
    let mut run = Run::new(2);
    run.started_unix_ns = 1_796_036_959_406_000_000;
    run.duration = Duration::from_millis(30);
    run.rows = vec![Row::new(RowKind::Set), get, Row::new(RowKind::Wait)];
    run
}

fn paths(run: &Run) -> Vec<String> {
    let files = of_run(run, "h", &Layout::default());
    files.into_iter().map(|file| file.path).collect()
}

/// The names of golden case 07.
#[test]
fn names_are_those_of_the_original() {
    let expected = [
        "h_FULL_RUN_2.txt",
        "h_FULL_RUN_2.hgrm",
        "h_SET_command_run_2.txt",
        "h_SET_command_run_2.hgrm",
        "h_GET_command_run_2.txt",
        "h_GET_command_run_2.hgrm",
    ];
    assert_eq!(paths(&run()), expected);
}

#[test]
fn names_of_commands_are_unique_and_stay_in_their_folder() {
    let mut run = run();
    run.rows = ["SET a", "SET b", "../EVIL x"]
        .map(|line| Row::new(RowKind::of_command(line)))
        .to_vec();
    let paths = paths(&run);
    assert_eq!(paths[2], "h_SET_command_run_2.txt");
    assert_eq!(paths[4], "h_SET_2_command_run_2.txt");
    assert_eq!(paths[6], "h_.._EVIL_command_run_2.txt");
}

/// Three samples: each is a third; the doublings of 2048 ns pass an hour at the 31st.
#[test]
fn the_table_has_the_columns_of_the_plotter() {
    let run = run();
    let text = percentile_table(&run.rows[1].service);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "       Value   Percentile   TotalCount 1/(1-Percentile)"
    );
    assert_eq!(lines[1], "");
    assert_eq!(
        lines[2],
        "       0.100     0.000000            1         1.00"
    );
    let last = lines.len() - 4;
    assert_eq!(
        lines[last],
        "       0.400     1.000000            3          inf"
    );
    assert_eq!(lines[last + 1][..23], *"#[Mean    =        0.23");
    assert_eq!(
        lines[last + 2],
        "#[Max     =        0.400, Total count    =            3]"
    );
    assert_eq!(
        lines[last + 3],
        "#[Buckets =           32, SubBuckets     =         2048]"
    );
}

#[test]
fn the_log_is_one_interval_of_the_length_of_the_run() {
    let run = run();
    let files = of_run(&run, "h", &Layout::default());
    let log = &files[1].content;
    let mut intervals = 0;
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        match entry.unwrap() {
            LogEntry::Interval(interval) => {
                intervals += 1;
                assert_eq!(interval.duration(), Duration::from_millis(30));
                let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
                let read: Histogram<u64> = Deserializer::new()
                    .deserialize(&mut bytes.as_slice())
                    .unwrap();
                let counts = [100, 200, 400].map(|us| read.count_at(us));
                assert_eq!((read.len(), counts), (3, [1; 3]));
                assert!((interval.max() - 400.0).abs() < f64::EPSILON);
            }
            LogEntry::StartTime(time) => {
                assert_eq!(time, Duration::from_millis(1_796_036_959_406));
            }
            LogEntry::BaseTime(_) => panic!("no base time"),
        }
    }
    assert_eq!(intervals, 1);
    assert!(log.contains("2026-11-30T11:09:19Z"), "{log}");
}
