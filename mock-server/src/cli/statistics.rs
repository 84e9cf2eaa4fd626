//! The statistics that `--stats` prints: distributions as a table of quantiles, then counters.

use std::fmt;

use hdrhistogram::Histogram;

use crate::stamp::FaultKind;
use crate::truth::{Kind, Stats};

/// Prints as tables for people; times to three decimals of their unit.
#[derive(Debug)]
pub struct Statistics<'a>(pub &'a Stats);

impl fmt::Display for Statistics<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(stats) = self;
        write!(f, "{:<16}{:>12}{:>12}", "", "replies", "mean")?;
        for (name, _) in QUANTILES {
            write!(f, "{name:>12}")?;
        }
        writeln!(f, "{:>12}", "max")?;
        let all = &stats.all;
        for (name, histogram) in [
            ("wanted", &all.wanted),
            ("sojourn", &all.sojourn),
            ("injection error", &all.injection_error),
            ("order delay", &all.order_delay),
            ("queue", &all.queue),
        ] {
            if name == "queue" && histogram.is_empty() {
                continue;
            }
            write!(f, "{name:<16}")?;
            row(f, histogram)?;
        }
        if stats.kinds.len() > 1 {
            writeln!(f)?;
            for (Kind { class, fault }, timings) in &stats.kinds {
                let name = match fault {
                    FaultKind::None => format!("sojourn {class}"),
                    fault => format!("{class} {fault}"),
                };
                write!(f, "{name:<16}")?;
                row(f, &timings.sojourn)?;
            }
        }
        writeln!(f)?;
        for ((protocol, command), count) in &stats.calls {
            writeln!(
                f,
                "{:<40}{count:>12}",
                format!("calls {protocol} {command}")
            )?;
        }
        let counts = &stats.counts;
        for (name, count) in [
            ("requests answered", counts.answered),
            ("requests not answered", counts.unanswered),
            ("requests refused", counts.refused),
            ("requests delayed by throttles", counts.delayed),
            ("requests refused by throttles", counts.throttled),
            ("requests dropped by throttles", counts.dropped),
            ("requests too large", counts.too_large),
            ("requests without memory", counts.out_of_memory),
            ("requests for blocked commands", counts.blocked),
            ("keys evicted", counts.evicted),
            ("connections accepted", counts.accepted),
            ("connections held", counts.accepting.held),
            ("connections from the backlog", counts.accepting.waited),
            ("connections turned away: told", counts.accepting.told),
            ("connections turned away: closed", counts.accepting.closed),
            ("connections turned away: reset", counts.accepting.reset),
            ("connections ended: idle", counts.idle),
            ("connections ended: age", counts.aged),
            ("connections ended: output", counts.output),
            ("connections cut", counts.closed),
            ("connections reset", counts.reset),
            ("bytes read", counts.bytes_in),
            ("bytes written", counts.bytes_out),
        ] {
            writeln!(f, "{name:<40}{count:>12}")?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, histogram: &Histogram<u64>) -> fmt::Result {
    write!(f, "{:>12}", histogram.len())?;
    if histogram.is_empty() {
        // No reply, no quantile.
        for _ in 0..QUANTILES.len() + 2 {
            write!(f, "{:>12}", "-")?;
        }
        return writeln!(f);
    }
    write!(f, "{:>12}", time(histogram.mean()))?;
    for (_, quantile) in QUANTILES {
        write!(
            f,
            "{:>12}",
            time(histogram.value_at_quantile(quantile) as f64)
        )?;
    }
    writeln!(f, "{:>12}", time(histogram.max() as f64))
}

fn time(ns: f64) -> String {
    let (unit, unit_ns) = match ns {
        1e9.. => ("s", 1e9),
        1e6.. => ("ms", 1e6),
        _ => ("us", 1e3),
    };
    format!("{:.3}{unit}", ns / unit_ns)
}

const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

#[cfg(test)]
mod tests {
    use kvlab_timing::Stamp;

    use super::*;
    use crate::exchange::Class;
    use crate::exchange::Protocol;
    use crate::limit::AcceptCounts;
    use crate::truth::{Recorder, Times};

    #[test]
    fn tables_show_every_distribution_and_counter() {
        let mut recorder = Recorder::default();
        for (count, late_ns) in [(99, 20_000), (1, 2_000_000)] {
            let read = Stamp::from_nanos(5_000);
            let due = read.add_nanos(1_500_000);
            let times = Times {
                read,
                wanted_ns: 1_000_000,
                queue_ns: None,
                throttle_ns: 0,
                due,
                written: due.add_nanos(late_ns),
            };
            let kind = Kind {
                class: Class::Read,
                fault: FaultKind::None,
            };
            recorder.record(kind, count, &times);
        }
        let mut stats = recorder.stats();
        stats.calls.insert((Protocol::Redis, "get"), 100);
        let counts = &mut stats.counts;
        (counts.accepted, counts.bytes_in, counts.bytes_out) = (2, 2_200, 500);
        counts.answered = 100;
        counts.accepting = AcceptCounts {
            held: 4,
            waited: 5,
            told: 6,
            closed: 7,
            reset: 8,
        };
        (counts.idle, counts.aged, counts.output) = (9, 10, 11);
        let text = Statistics(&stats).to_string();
        let (table, counters) = text.split_once("\n\n").unwrap();
        let head = "replies mean p50 p90 p99 p99.9 p99.99 max";
        assert_eq!(words(table.lines().next().unwrap()), words(head));
        // By hand; the histograms are good to one part in a thousand.
        for (line, name, exact_us) in [
            (1, "wanted", [1e3; 7]),
            (
                2,
                "sojourn",
                [1539.8, 1520.0, 1520.0, 1520.0, 3500.0, 3500.0, 3500.0],
            ),
            (
                3,
                "injection error",
                [39.8, 20.0, 20.0, 20.0, 2e3, 2e3, 2e3],
            ),
            (4, "order delay", [500.0; 7]),
        ] {
            let line = table.lines().nth(line).unwrap();
            let cells = words(line.strip_prefix(name).unwrap());
            assert_eq!(cells[0], "100");
            for (cell, exact_us) in cells[1..].iter().zip(exact_us) {
                let us = match cell.strip_suffix("ms") {
                    Some(ms) => ms.parse::<f64>().unwrap() * 1e3,
                    None => cell.strip_suffix("us").unwrap().parse::<f64>().unwrap(),
                };
                assert!((us / exact_us - 1.0).abs() < 1e-3, "{cell} in '{line}'");
            }
        }
        let counters: Vec<_> = counters.lines().map(words).collect();
        assert_eq!(
            counters,
            [
                words("calls redis get 100"),
                words("requests answered 100"),
                words("requests not answered 0"),
                words("requests refused 0"),
                words("requests delayed by throttles 0"),
                words("requests refused by throttles 0"),
                words("requests dropped by throttles 0"),
                words("requests too large 0"),
                words("requests without memory 0"),
                words("requests for blocked commands 0"),
                words("keys evicted 0"),
                words("connections accepted 2"),
                words("connections held 4"),
                words("connections from the backlog 5"),
                words("connections turned away: told 6"),
                words("connections turned away: closed 7"),
                words("connections turned away: reset 8"),
                words("connections ended: idle 9"),
                words("connections ended: age 10"),
                words("connections ended: output 11"),
                words("connections cut 0"),
                words("connections reset 0"),
                words("bytes read 2200"),
                words("bytes written 500"),
            ]
        );
    }

    fn words(line: &str) -> Vec<&str> {
        line.split_whitespace().collect()
    }

    #[test]
    fn times_print_to_three_decimals() {
        let printed = [0.0, 999.0, 999_999.0, 1_000_000.0, 1_234_567_890.0].map(time);
        assert_eq!(
            printed,
            ["0.000us", "0.999us", "999.999us", "1.000ms", "1.235s"]
        );
    }

    #[test]
    fn nothing_measured_shows_no_numbers() {
        let text = Statistics(&Stats::default()).to_string();
        let line = text.lines().nth(2).unwrap();
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>(),
            ["sojourn", "0", "-", "-", "-", "-", "-", "-", "-"]
        );
    }
}
