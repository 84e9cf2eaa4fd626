//! The statistics that `--stats` prints: distributions as a table of quantiles, then counters.

use std::fmt;

use hdrhistogram::Histogram;

use crate::stamp::Stats;

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
        for (name, histogram) in [
            ("wanted", &stats.wanted),
            ("sojourn", &stats.sojourn),
            ("injection error", &stats.injection_error),
            ("order delay", &stats.order_delay),
            ("queue", &stats.queue),
        ] {
            if name == "queue" && histogram.is_empty() {
                continue;
            }
            write!(f, "{name:<16}")?;
            row(f, histogram)?;
        }
        writeln!(f)?;
        for ((protocol, command), count) in &stats.calls {
            writeln!(
                f,
                "{:<40}{count:>12}",
                format!("calls {protocol} {command}")
            )?;
        }
        for (name, count) in [
            ("requests refused", stats.refused),
            ("connections accepted", stats.accepted),
            ("connections cut", stats.closed),
            ("connections reset", stats.reset),
            ("bytes read", stats.bytes_in),
            ("bytes written", stats.bytes_out),
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
    use crate::exchange::Protocol;
    use crate::stamp::Times;

    #[test]
    fn tables_show_every_distribution_and_counter() {
        let mut stats = Stats::default();
        for (count, late_ns) in [(99, 20_000), (1, 2_000_000)] {
            let read = Stamp::from_nanos(5_000);
            let due = read.add_nanos(1_500_000);
            let times = Times {
                read,
                wanted_ns: 1_000_000,
                queue_ns: 0,
                in_queue: false,
                due,
                written: due.add_nanos(late_ns),
            };
            stats.record(count, &times);
        }
        stats.calls.insert((Protocol::Redis, "get"), 100);
        (stats.accepted, stats.bytes_in, stats.bytes_out) = (2, 2_200, 500);
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
                words("requests refused 0"),
                words("connections accepted 2"),
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
