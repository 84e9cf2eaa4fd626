//! What the memtier front end prints, against recorded outputs of the original.
//!
//! The model is built from the numbers of a recorded case and printed; every word has to stand at
//! the same place as in the recording, and every number that the recording has right has to come
//! out again. Where the original is wrong, the test says what is printed instead.

use std::time::Duration;

use super::memtier::{Case, PLAIN, TEXT_ONLY, Table};
use kvlab_bench_client::frontend::memtier::config::Config;
use kvlab_bench_client::frontend::memtier::model::{Results, Row, RowKind, Run};
use kvlab_bench_client::frontend::memtier::progress::{Pair, Progress};
use kvlab_bench_client::frontend::memtier::staircase::StaircasePlan;
use kvlab_bench_client::frontend::memtier::{hdr_files, json, show_config, text};
use kvlab_bench_client::record::ErrorKind;
use serde_json::Value;

/// A word and the column at which it ends.
type Token = (usize, String);

fn tokens(line: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut begin = None;
    for (place, c) in line.char_indices().chain([(line.len(), ' ')]) {
        match (begin, c == ' ') {
            (None, false) => begin = Some(place),
            (Some(start), true) => {
                tokens.push((place, line[start..place].to_owned()));
                begin = None;
            }
            _ => {}
        }
    }
    tokens
}

fn number(word: &str) -> Option<f64> {
    let digits = word.chars().all(|c| c.is_ascii_digit() || c == '.');
    digits.then(|| word.parse().ok()).flatten()
}

fn decimals(word: &str) -> usize {
    word.split_once('.').map_or(0, |(_, digits)| digits.len())
}

/// Whether a number we print stands for the recorded one. Our histograms have three digits, theirs
/// have two, and their mean is that of the middles of buckets whose ends we recorded.
fn agrees(ours: f64, theirs: f64, decimals: usize) -> bool {
    let slack = match decimals {
        5 => 0.0045 + theirs * 0.006,
        3 => 0.0005 + theirs * 0.001,
        _ => 0.011 + theirs * 1e-6,
    };
    (ours - theirs).abs() <= slack
}

/// Ours without the lines the original has no place for, and the two empty lines above them.
fn without_remarks(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        if line.starts_with("# ") || line.starts_with("! ") {
            while lines.last() == Some(&"") {
                lines.pop();
            }
        } else {
            lines.push(line);
        }
    }
    lines
}

/// What of a line is compared.
#[derive(Clone, Copy, PartialEq)]
enum Compare {
    Numbers,
    Shape,
}

#[track_caller]
fn assert_line(case: &str, ours: &str, theirs: &str, compare: Compare) {
    let said = || format!("{case}\n ours   {ours:?}\n theirs {theirs:?}");
    assert_eq!(ours.ends_with(' '), theirs.ends_with(' '), "{}", said());
    let (mine, recorded) = (tokens(ours), tokens(theirs));
    assert_eq!(mine.len(), recorded.len(), "{}", said());
    for ((my_end, my_word), (end, word)) in mine.iter().zip(&recorded) {
        match (number(my_word), number(word)) {
            (Some(mine), Some(recorded)) => {
                assert_eq!(decimals(my_word), decimals(word), "{}", said());
                // The first number of a line stands on the left.
                let left = *end == word.len();
                assert!(left || my_end == end, "{}", said());
                if compare == Compare::Numbers {
                    let same = agrees(mine, recorded, decimals(word));
                    assert!(same, "{my_word} for {word}: {}", said());
                }
            }
            _ => assert_eq!((my_end, my_word), (end, word), "{}", said()),
        }
    }
}

/// The lines of a recording, with what it has wrong replaced by what is right.
///
/// * Nothing measured reads `---`, not `-nan` and the width of a bucket.
/// * The bytes of arbitrary commands are in the totals once, not twice.
/// * A percentile is the lowest sample that so many percent do not exceed: p99 of 190 samples is
///   the 189th. The original rounds the rank and takes the 188th, which 98.9 % do not exceed.
fn expected(case: &Case) -> Vec<String> {
    let mut histograms = case.histograms().into_iter();
    let percentiles = case.layout().percentiles;
    let lines = case.stdout.lines().filter(|line| !line.contains(" = "));
    let mut in_table = false;
    lines
        .filter(|line| !line.starts_with("setting requests"))
        .map(|line| {
            in_table = (in_table || line.starts_with("-----")) && !line.is_empty();
            if !in_table || line.starts_with("---") || line.starts_with("Request") {
                return line.to_owned();
            }
            if line.split_whitespace().count() <= 3 {
                in_table = false;
                return line.to_owned();
            }
            let mut line = line.to_owned();
            for wrong in ["           -nan", "        0.00700"] {
                line = line.replace(wrong, "            ---");
            }
            let histogram = histograms.next().unwrap_or_default();
            let mut cells: Vec<Token> = tokens(&line);
            let last = cells.len() - 1;
            if !histogram.is_empty() {
                for (place, percentile) in percentiles.iter().enumerate() {
                    let us = sample_of_rank(&histogram, *percentile);
                    cells[last - percentiles.len() + place].1 = format!("{:.5}", us / 1e3);
                }
            }
            if case.has("--command") && line.starts_with("Totals") {
                let bytes: f64 = cells[last].1.parse().unwrap();
                cells[last].1 = format!("{:.2}", bytes / 2.0);
            }
            let mut text = String::new();
            for (end, word) in cells {
                text = format!("{text}{word:>width$}", width = end - text.len());
            }
            text + " "
        })
        .collect()
}

/// The lowest value, in microseconds, that at least this share of the samples do not exceed.
fn sample_of_rank(histogram: &[(f64, f64)], percentile: f64) -> f64 {
    let total: f64 = histogram.iter().map(|(_, count)| count).sum();
    let mut below = 0.0;
    let reached = histogram.iter().find(|(_, count)| {
        below += count;
        below * 100.0 + 1e-6 >= percentile * total
    });
    reached.unwrap().0
}

#[track_caller]
fn assert_same(case: &Case, results: &Results, compare: Compare) {
    let text = text::render(results);
    let ours = without_remarks(&text);
    let theirs = expected(case);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_line(&case.name, ours, theirs, compare);
    }
    assert_eq!(ours.len(), theirs.len(), "{}", case.name);
    assert!(text.ends_with('\n') && case.stdout.ends_with('\n'));
}

#[test]
fn tables_are_those_of_the_recordings() {
    for number in PLAIN {
        let case = Case::load(number);
        if case.has("-x") {
            continue;
        }
        assert_same(&case, &case.results(&["ALL STATS"]), Compare::Numbers);
    }
}

/// Without JSON there are no histograms to build from: the places alone are compared.
#[test]
fn tables_without_json_have_the_same_shape() {
    for number in TEXT_ONLY {
        let case = Case::load(number);
        let mut results = case.frame();
        results.runs = vec![some_run()];
        assert_same(&case, &results, Compare::Shape);
    }
}

/// A second of sets and gets.
fn some_run() -> Run {
    let mut run = Run::new(1);
    run.duration = Duration::from_secs(1);
    for kind in [RowKind::Set, RowKind::Get, RowKind::Wait] {
        let mut row = Row::new(kind);
        if row.kind != RowKind::Wait {
            row.outcomes.hits = 100;
            (0..100).for_each(|n| row.service.record(1_000 * n));
        }
        run.rows.push(row);
    }
    run
}

/// Case 03 has all three runs: the best is run 3 and the worst run 1, which the original shows for
/// both; the average it has right.
#[test]
fn best_worst_and_average_come_from_the_runs() {
    let case = Case::load("03");
    let titles = ["RUN #1 RESULTS", "RUN #2 RESULTS", "RUN #3 RESULTS"];
    let results = case.results(&titles);
    let tables = Case {
        stdout: expected(&case).join("\n"),
        ..Case::load("03")
    }
    .tables();
    let text = text::render(&results);
    let ours = Case {
        stdout: text,
        ..Case::load("03")
    }
    .tables();
    let pairs = [(0, 0), (1, 1), (2, 2), (3, 2), (4, 0), (5, 5)];
    for (mine, theirs) in pairs {
        let (mine, theirs): (&Table, &Table) = (&ours[mine], &tables[theirs]);
        for (row, recorded) in mine.rows.iter().zip(&theirs.rows) {
            for (cell, value_text) in row.cells.iter().zip(&recorded.cells) {
                match (number(cell), number(value_text)) {
                    (Some(cell), Some(value)) => {
                        let same = agrees(cell, value, decimals(value_text));
                        assert!(same, "{} {}: {cell} {value}", mine.title, row.label);
                    }
                    _ => assert_eq!(cell, value_text),
                }
            }
        }
    }
    assert_eq!(ours[3].title, "BEST RUN RESULTS");
    assert_eq!(ours[3].rows[3].cells[0], "118196.32");
    assert_eq!(tables[3].rows[3].cells[0], "6384.60", "the original's best");
    let layout: Vec<_> = case.stdout.lines().map(str::len).collect();
    let text = text::render(&results);
    let mine: Vec<_> = without_remarks(&text)
        .iter()
        .map(|line| line.len())
        .collect();
    assert_eq!(mine, layout);
}

/// Case 02: of ten runs only the first is there in full; the places of everything but the
/// distributions, whose length depends on the numbers, are compared.
#[test]
fn ten_runs_have_the_shape_of_the_recording() {
    let case = Case::load("02");
    let mut results = case.results(&["BEST RUN RESULTS"]);
    let first = results.runs.remove(0);
    results.runs = (1..=10)
        .map(|number| Run {
            number,
            ..first.clone()
        })
        .collect();
    let text = text::render(&results);
    let rest = |lines: Vec<&str>| {
        let lines = lines.into_iter();
        let kept = lines.filter(|line| !["SET ", "GET "].iter().any(|name| line.starts_with(name)));
        kept.map(str::to_owned).collect::<Vec<_>>()
    };
    let ours = rest(without_remarks(&text));
    let theirs = rest(case.stdout.lines().collect());
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_line(&case.name, ours, theirs, Compare::Shape);
    }
    assert!(
        text.contains("ops/sec on average of 10 runs"),
        "the spread is there"
    );
}

/// Case 34 calls 2.98 s 3.979 s; its own progress line has 503 ops/s.
#[test]
fn rates_come_from_the_time_that_passed() {
    let case = Case::load("34");
    let mut results = case.results(&["ALL STATS"]);
    results.runs[0].duration = Duration::from_millis(2_980);
    let text = text::render(&results);
    let totals = text
        .lines()
        .find(|line| line.starts_with("Totals"))
        .unwrap();
    let ops: f64 = totals.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!((ops - 1_500.0 / 2.98).abs() < 0.01, "{ops}");
    assert!(case.stderr.contains("(avg:     503) ops/sec"));
}

/// Case 14 counts 40 NOAUTH replies as operations; cases 13, 16 and 24 print nothing at all.
#[test]
fn errors_are_no_operations_and_a_failed_run_has_its_table() {
    let case = Case::load("14");
    let mut results = case.results(&["ALL STATS"]);
    for row in &mut results.runs[0].rows {
        let errors = row.good();
        (row.outcomes.hits, row.outcomes.misses, row.outcomes.errors) = (0, 0, errors);
        row.failed = std::mem::take(&mut row.service);
        if errors > 0 {
            row.errors.insert(ErrorKind::new(b"NOAUTH"), errors);
        }
    }
    let text = text::render(&results);
    let table = without_remarks(&text);
    let totals = table
        .iter()
        .find(|line| line.starts_with("Totals"))
        .unwrap();
    let cells: Vec<_> = totals.split_whitespace().collect();
    assert_eq!(cells[1..5], ["0.00", "0.00", "0.00", "---"]);
    assert!(text.contains("! GET            NOAUTH"), "{text}");
    for number in ["13", "16", "24"] {
        let case = Case::load(number);
        assert_eq!(case.stdout, "");
        assert!(serde_json::from_str::<Value>(case.json.as_ref().unwrap()).is_err());
        let mut run = Run::new(1);
        run.failure = Some("no connection".to_owned());
        run.rows = [RowKind::Set, RowKind::Get, RowKind::Wait]
            .map(Row::new)
            .to_vec();
        let results = Results {
            runs: vec![run],
            verification: None,
            ..Case::load("01").frame()
        };
        assert!(text::render(&results).contains("ALL STATS"));
        assert!(serde_json::from_str::<Value>(&json::render(&results)).is_ok());
    }
}

/// Case 35 has a table of zeros because its end was never noted; the columns stay.
#[test]
fn a_cluster_run_that_was_cut_has_the_columns_and_the_measured_rates() {
    let case = Case::load("35");
    let mut results = case.frame();
    let mut run = some_run();
    run.duration = Duration::from_secs(1);
    results.runs = vec![run];
    assert_same(&case, &results, Compare::Shape);
    let text = text::render(&results);
    let totals = text
        .lines()
        .find(|line| line.starts_with("Totals"))
        .unwrap();
    assert_eq!(totals.split_whitespace().nth(1), Some("200.00"));
}

/// Keys by depth, with what depends on the numbers left out.
fn keys(text: &str) -> Vec<(usize, String)> {
    let mut skip = None;
    let mut keys = Vec::new();
    for line in text.lines() {
        let depth = line.len() - line.trim_start_matches('\t').len();
        if skip.is_some_and(|above| depth > above) {
            continue;
        }
        skip = None;
        let line = line.trim_start_matches('\t').trim_start_matches(',');
        let Some(key) = line
            .strip_prefix('"')
            .and_then(|rest| rest.split('"').next())
        else {
            continue;
        };
        if key == "Time-Serie" || line.ends_with('[') || key == "kvlab" {
            skip = Some(depth);
        }
        if key != "kvlab" {
            keys.push((depth, key.to_owned()));
        }
    }
    keys
}

#[test]
fn json_has_the_keys_of_the_recordings_in_their_order() {
    for number in PLAIN {
        let case = Case::load(number);
        let results = match number {
            "03" => case.results(&["RUN #1 RESULTS", "RUN #2 RESULTS", "RUN #3 RESULTS"]),
            _ => case.results(&["ALL STATS"]),
        };
        let ours = json::render(&results);
        assert!(serde_json::from_str::<Value>(&ours).is_ok(), "{number}");
        let mut theirs = keys(case.json.as_ref().unwrap());
        match number {
            // Two lines of the same command: keys of their own.
            "06" => {
                let again = theirs.iter().rposition(|(_, key)| key == "Sets").unwrap();
                theirs[again].1 = "Sets (2)".to_owned();
            }
            // The key of 99.999 is cut to that of 99.99.
            "07" => {
                for place in 1..theirs.len() {
                    if theirs[place].1 == "p99.99" && theirs[place - 1].1 == "p99.99" {
                        theirs[place].1 = "p99.999".to_owned();
                    }
                }
            }
            _ => {}
        }
        assert_eq!(keys(&ours), theirs, "{}", case.name);
    }
}

#[test]
fn configuration_is_printed_as_recorded_but_for_the_password() {
    for number in PLAIN {
        let case = Case::load(number);
        let mut recorded = case.value()["configuration"].clone();
        let ours: Value = serde_json::from_str(&json::render(&case.frame())).unwrap();
        if number == "12" {
            assert_eq!(recorded["authenticate"], "bob:bobpw");
            recorded["authenticate"] = "bob:***".into();
        }
        assert_eq!(ours["configuration"], recorded, "{}", case.name);
        let information = &case.value()["run information"];
        assert_eq!(&ours["run information"], information, "{}", case.name);
    }
}

#[test]
fn numbers_of_the_json_are_those_of_the_recordings() {
    let case = Case::load("01");
    let theirs = case.value();
    let ours: Value = serde_json::from_str(&json::render(&case.results(&["ALL STATS"]))).unwrap();
    for label in ["Sets", "Gets", "Waits", "Totals"] {
        let (ours, theirs) = (&ours["ALL STATS"][label], &theirs["ALL STATS"][label]);
        for key in [
            "Count",
            "Ops/sec",
            "Misses/sec",
            "KB/sec",
            "Connection Errors",
        ] {
            let (mine, recorded) = (ours[key].as_f64().unwrap(), theirs[key].as_f64().unwrap());
            assert!(
                agrees(mine, recorded, 2),
                "{label} {key}: {mine} {recorded}"
            );
        }
        if label == "Waits" {
            continue;
        }
        // The median alone: the ranks of the others are rounded in the original.
        let median = |value: &Value| value["Percentile Latencies"]["p50.00"].as_f64().unwrap();
        assert!(agrees(median(ours), median(theirs), 3), "{label}");
    }
    // The original keeps whole milliseconds: 0.000 for a mean of 0.165.
    assert_eq!(theirs["ALL STATS"]["Totals"]["Average Latency"], 0.0);
    let mean = ours["ALL STATS"]["Totals"]["Average Latency"]
        .as_f64()
        .unwrap();
    assert!((0.160..0.175).contains(&mean), "{mean}");
}

#[test]
fn show_config_prints_the_recorded_lines() {
    let case = Case::load("20");
    let config = Config {
        server: "127.0.0.1".to_owned(),
        port: 7001,
        requests: 10,
        clients: 1,
        threads: 1,
        ..Config::default()
    };
    let recorded: Vec<_> = case
        .stdout
        .lines()
        .filter(|line| line.contains(" = "))
        .collect();
    let ours = show_config::render(&config);
    assert_eq!(ours.lines().collect::<Vec<_>>(), recorded);
    let frame = format!("{}{}", show_config::FRAME_ABOVE, show_config::FRAME_BELOW);
    assert!(case.stderr.starts_with(&frame));
}

#[test]
fn the_plan_of_a_staircase_is_the_recorded_one() {
    let case = Case::load("19");
    let config = case.frame().config;
    let plan = StaircasePlan {
        staircase: config.staircase.unwrap(),
        clients: config.clients,
        threads: config.threads,
        test_time: config.test_time,
    };
    let text = plan.render(1);
    assert!(case.stderr.contains(&text), "{text}\n{}", case.stderr);
    let results = case.results(&["ALL STATS"]);
    for (second, clients) in (0..).zip(&results.runs[0].active_clients) {
        assert_eq!(plan.active(second), *clients, "second {second}");
    }
}

/// Every progress line of every case, but those with numbers that are none: read and printed again.
#[test]
fn progress_lines_are_those_of_the_recordings() {
    let mut compared = 0;
    for number in (1..=35).map(|number| format!("{number:02}")) {
        let case = Case::load(&number);
        let pieces = case.stderr.split(['\n', '\r']);
        let lines = pieces.filter(|line| line.ends_with("msec latency"));
        for line in lines.filter(|line| !line.contains("nan") && !line.contains("-0.00")) {
            let progress = read_progress(line);
            assert_eq!(progress.to_string(), line, "{}", case.name);
            compared += 1;
        }
        for line in case.stderr.match_indices("msec latency") {
            assert!(case.stderr[line.0 + line.1.len()..].starts_with('\r'));
        }
    }
    assert!(compared > 100, "{compared}");
}

fn read_progress(line: &str) -> Progress {
    let mut rest = line;
    let mut next = |end: &str| {
        let (word, after) = rest.split_once(end).unwrap();
        rest = after;
        word.trim().to_owned()
    };
    let run = next(" ").replace("[RUN", "") + &next(" ").replace('#', "");
    let percent = next("%,");
    let seconds = next(" secs]");
    let threads = next(" threads");
    let connections = next(" conns");
    let errors = next(":");
    let ops = next(" ops,");
    let pair = |last: String, average: String, read: fn(&str) -> f64| Pair {
        last: read(&last),
        average: read(&average),
    };
    let plain = |word: &str| word.parse().unwrap();
    let rate = pair(next("(avg:"), next(") ops/sec,"), plain);
    let bytes = pair(next("/sec (avg:"), next("/sec),"), read_size);
    let latency = pair(next("(avg:"), next(")"), plain);
    Progress {
        run: run.parse().unwrap(),
        percent: percent.parse().unwrap(),
        seconds: seconds.parse().unwrap(),
        threads: threads.parse().unwrap(),
        connections: connections.parse().unwrap(),
        connection_errors: errors.replace(" conn errors", "").parse().unwrap_or(0),
        ops: ops.parse().unwrap(),
        rate,
        bytes,
        latency_ms: latency,
    }
}

fn read_size(word: &str) -> f64 {
    let (value, unit) = word.split_at(word.len() - 2);
    let factor = match unit {
        "KB" => 1_024.0,
        "MB" => 1_024.0 * 1_024.0,
        unit => panic!("{unit}"),
    };
    value.parse::<f64>().unwrap() * factor
}

/// The percentile tables of case 07, from the histograms of its own logs: the same steps and
/// counts; its values have two digits, ours three.
#[test]
fn histogram_files_have_the_steps_of_the_recordings() {
    for name in ["FULL_RUN_1", "SET_command_run_1", "GET_command_run_1"] {
        let read = |extension: &str| {
            let name = format!("07-pipeline-percentiles-hdr.file.h_{name}.{extension}");
            std::fs::read_to_string(super::memtier::folder().join(name)).unwrap()
        };
        let log = read("hgrm");
        let compressed = log.lines().last().unwrap().rsplit(',').next().unwrap();
        let ours = hdr_files::percentile_table(&super::memtier::latency(compressed));
        let theirs = read("txt");
        assert_eq!(ours.lines().count(), theirs.lines().count(), "{name}");
        for (mine, recorded) in ours.lines().zip(theirs.lines()) {
            if recorded.starts_with("#[") || recorded.is_empty() {
                assert_eq!(mine.len(), recorded.len());
                assert_eq!(mine.get(..10), recorded.get(..10));
                continue;
            }
            assert_eq!(mine[12..], recorded[12..], "{name}");
            if let (Some(mine), Some(recorded)) =
                (number(mine[..12].trim()), number(recorded[..12].trim()))
            {
                assert!(
                    (mine - recorded).abs() < 0.0055 + recorded * 0.001,
                    "{mine} {recorded}"
                );
            }
        }
    }
}
