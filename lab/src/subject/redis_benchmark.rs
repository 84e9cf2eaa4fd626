//! redis-benchmark: a closed loop at full speed, with batches where `-P` asks for a pipeline.
//!
//! Its report of a test, as `redis-benchmark` 7.0 and `valkey-benchmark` print it on stdout:
//!
//! ```text
//! ====== GET ======
//!   1000 requests completed in 0.02 seconds
//! Latency by percentile distribution:
//! 50.000% <= 0.071 milliseconds (cumulative count 553)
//! Cumulative distribution of latencies:
//! 75.000% <= 0.103 milliseconds (cumulative count 750)
//! Summary:
//!   throughput summary: 50000.00 requests per second
//!   latency summary (msec):
//!           avg       min       p50       p95       p99       max
//!         0.142     0.016     0.071     0.311     1.831     2.823
//! ```
//!
//! p50 and p99 are printed; p90 and p99.9 lie between two lines of the tables. With `--csv` or `-q`
//! there is less. Times have steps of 8 us. There is no count of errors.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use super::options::Options;
use super::process::Finished;
use super::report::{Cumulative, milliseconds, nanoseconds};
use super::{Kind, Load, OWN_SERVER, Reading, Reported, Shape, Subject, refuse};
use crate::truth::Quantile;

/// redis-benchmark.
#[derive(Clone, Copy, Debug)]
pub(super) struct RedisBenchmark;

impl Subject for RedisBenchmark {
    fn name(&self) -> &'static str {
        "redis-benchmark"
    }

    fn standard(&self, load: &Load) -> Result<Vec<String>, String> {
        Ok(standard(load))
    }

    fn shape(&self, arguments: &[OsString]) -> Result<Shape, String> {
        shape(arguments)
    }

    fn command_line(&self, arguments: &[OsString], at: SocketAddr, _: &Path) -> Vec<OsString> {
        command_line(arguments, at)
    }

    fn read(&self, finished: &Finished, _: &Path) -> Result<Reported, String> {
        read(&finished.stdout)
    }
}

pub(super) fn standard(load: &Load) -> Vec<String> {
    let options = [
        ("-t", "get".to_owned()),
        ("-n", load.requests.to_string()),
        ("-c", load.connections.to_string()),
        ("-P", load.depth.to_string()),
    ];
    options
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
}

pub(super) fn shape(arguments: &[OsString]) -> Result<Shape, String> {
    let options = Options::new(arguments);
    refuse(&options, &["-h", "-p", "-s", "-u"], OWN_SERVER)?;
    refuse(
        &options,
        &["--cluster"],
        "the grading's server is no cluster",
    )?;
    refuse(&options, &["-l", "-I"], "the tool would never end")?;
    Ok(Shape {
        connections: options.parsed(&["-c"])?.unwrap_or(50),
        depth: options.parsed(&["-P"])?.unwrap_or(1),
        batch: true,
        rate: options.parsed(&["--rps"])?,
        duration: None,
        requests: Some(options.parsed(&["-n"])?.unwrap_or(100_000)),
    })
}

/// The address comes first: what follows the options is the command to send.
pub(super) fn command_line(arguments: &[OsString], at: SocketAddr) -> Vec<OsString> {
    let (host, port) = (at.ip().to_string(), at.port().to_string());
    let address = ["-h".to_owned(), host, "-p".to_owned(), port];
    let address = address.into_iter().map(OsString::from);
    address.chain(arguments.iter().cloned()).collect()
}

/// Reads the report, which has to be of one test.
pub(super) fn read(stdout: &str) -> Result<Reported, String> {
    if stdout.starts_with("\"test\"") {
        return one(stdout.lines().skip(1), "CSV rows").and_then(csv);
    }
    let sections: Vec<&str> = stdout.split("====== ").skip(1).collect();
    if sections.is_empty() {
        let lines = stdout.split(['\r', '\n']);
        return one(lines.filter(|line| line.contains(QUIET)), "tests").and_then(quiet);
    }
    one(sections.into_iter(), "tests").and_then(full)
}

/// The only one of several things.
fn one<'a>(mut of: impl Iterator<Item = &'a str>, what: &str) -> Result<&'a str, String> {
    let first = of
        .next()
        .ok_or_else(|| format!("there are no {what} in its report"))?;
    match of.count() {
        0 => Ok(first),
        more => Err(format!(
            "its report has {} {what}, and the grading reads one: name one test with -t",
            more + 1
        )),
    }
}

fn full(section: &str) -> Result<Reported, String> {
    let mut table = Cumulative::default();
    for line in section.lines() {
        if let Some((value, count)) = row(line) {
            table.push(value, count);
        }
    }
    let mut lines = section.lines().map(str::trim);
    let throughput = lines
        .find_map(|line| line.strip_prefix("throughput summary: "))
        .and_then(|rest| rest.split(' ').next()?.parse().ok());
    let summary: Vec<&str> = lines
        .skip_while(|line| !line.starts_with("avg"))
        .nth(1)
        .ok_or("its report has no latency summary")?
        .split_whitespace()
        .collect();
    let [avg, min, p50, _, p99, max] = summary[..] else {
        return Err("its latency summary has not six values".to_owned());
    };
    let minimum = milliseconds(min).unwrap_or(0);
    let between = [Quantile::P90, Quantile::P99_9]
        .into_iter()
        .filter_map(|q| Some((q, table.quantile(q, minimum)?)));
    let printed = [(Quantile::P50, p50), (Quantile::P99, p99)]
        .into_iter()
        .filter_map(|(q, text)| Some((q, Reading::exact(milliseconds(text)?))));
    Ok(Reported {
        count: table.total(),
        operations: completed(section),
        mean_ns: avg.parse::<f64>().ok().map(|ms| ms * 1e6),
        quantiles: printed.chain(between).collect(),
        max_ns: milliseconds(max),
        rate_per_second: throughput,
        ..empty()
    })
}

/// `50.000% <= 0.071 milliseconds (cumulative count 553)`
fn row(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.split_once("% <= ")?;
    let (value, rest) = rest.split_once(" milliseconds (cumulative count ")?;
    let count = rest.strip_suffix(')')?.parse().ok()?;
    Some((milliseconds(value)?, count))
}

/// `  1000 requests completed in 0.02 seconds`
fn completed(section: &str) -> Option<u64> {
    let line = section
        .lines()
        .find(|line| line.contains(" requests completed in "))?;
    line.split_whitespace().next()?.parse().ok()
}

/// `"GET","62500.00","0.084","0.016","0.063","0.255","0.463","0.559"`
fn csv(row: &str) -> Result<Reported, String> {
    // A name may hold commas, numbers never do.
    let mut cells = row.rsplit(',').map(|cell| cell.trim_matches('"'));
    let mut next = || cells.next().ok_or("a CSV row has too few cells");
    let (max, p99, _, p50, _, avg, rps) = (
        next()?,
        next()?,
        next()?,
        next()?,
        next()?,
        next()?,
        next()?,
    );
    let mut quantiles = BTreeMap::new();
    for (q, text) in [(Quantile::P50, p50), (Quantile::P99, p99)] {
        let value = milliseconds(text).ok_or_else(|| format!("'{text}' is no latency"))?;
        quantiles.insert(q, Reading::exact(value));
    }
    Ok(Reported {
        mean_ns: avg.parse::<f64>().ok().map(|ms| ms * 1e6),
        quantiles,
        max_ns: milliseconds(max),
        rate_per_second: rps.parse().ok(),
        ..empty()
    })
}

/// `GET: 71428.57 requests per second, p50=0.063 msec`
fn quiet(line: &str) -> Result<Reported, String> {
    let wrong = || format!("'{line}' is no result");
    let (before, after) = line.split_once(QUIET).ok_or_else(wrong)?;
    let rate = before.rsplit(' ').next().and_then(|text| text.parse().ok());
    let p50 = after
        .split(' ')
        .next()
        .and_then(|text| nanoseconds(text, 1e6));
    let p50 = Reading::exact(p50.ok_or_else(wrong)?);
    Ok(Reported {
        quantiles: BTreeMap::from([(Quantile::P50, p50)]),
        rate_per_second: rate,
        ..empty()
    })
}

fn empty() -> Reported {
    Reported {
        kind: Kind::Service,
        resolution_ns: 8_000,
        ..Reported::default()
    }
}

/// What the only line of a quiet report holds.
const QUIET: &str = " requests per second, p50=";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    const CUSTOM: &str = include_str!("../../tests/data/tools/redis-benchmark/custom.stdout");
    const CSV: &str = include_str!("../../tests/data/tools/redis-benchmark/csv-all.stdout");
    const QUIET_ALL: &str = include_str!("../../tests/data/tools/redis-benchmark/quiet.stdout");
    const SEVERAL: &str = include_str!("../../tests/data/tools/redis-benchmark/set-get.stdout");

    #[test]
    fn the_full_report_is_read() {
        let reported = read(CUSTOM).unwrap();
        assert_eq!(reported.count, Some(500));
        assert_eq!(reported.operations, Some(500));
        assert_eq!(reported.mean_ns, Some(127_000.0));
        assert_eq!(reported.max_ns, Some(1_127_000));
        assert_eq!(reported.rate_per_second, Some(124_999.99));
        assert_eq!(reported.errors, None);
        let reading = |low_ns, high_ns| Reading { low_ns, high_ns };
        // Rank 450 lies between 448 samples up to 0.303 ms and 464 up to 0.407 ms; rank 500 between
        // 496 up to 1.119 ms and 500 up to 1.127 ms.
        assert_eq!(
            reported.quantiles,
            BTreeMap::from([
                (Quantile::P50, Reading::exact(63_000)),
                (Quantile::P90, reading(303_000, 407_000)),
                (Quantile::P99, Reading::exact(1_119_000)),
                (Quantile::P99_9, reading(1_119_000, 1_127_000)),
            ])
        );
    }

    #[test]
    fn csv_and_quiet_reports_of_one_test_are_read() {
        let header_and_one: Vec<&str> = CSV.lines().take(2).collect();
        let reported = read(&header_and_one.join("\n")).unwrap();
        assert_eq!(reported.rate_per_second, Some(21_739.13));
        assert_eq!(reported.mean_ns, Some(349_000.0));
        let p99 = reported.quantiles[&Quantile::P99];
        assert_eq!(p99, Reading::exact(2_119_000));
        assert_eq!(reported.max_ns, Some(2_159_000));
        let first = QUIET_ALL.lines().next().unwrap();
        let reported = read(first).unwrap();
        let p50 = reported.quantiles[&Quantile::P50];
        assert_eq!(p50, Reading::exact(71_000));
        assert_eq!(reported.rate_per_second, Some(71_428.57));
    }

    #[test]
    fn several_tests_and_none_are_refused() {
        for (report, message) in [
            (SEVERAL, "its report has 2 tests"),
            (CSV, "its report has 20 CSV rows"),
            (QUIET_ALL, "its report has 3 tests"),
            ("", "there are no tests in its report"),
            ("Could not connect", "there are no tests in its report"),
            (
                "====== GET ======\ngarbage",
                "its report has no latency summary",
            ),
        ] {
            let error = read(report).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn the_load_is_read_from_the_options() {
        let found = shape(&words("-t get -n 20000 -c 10 -P 16")).unwrap();
        assert_eq!((found.connections, found.depth), (10, 16));
        assert_eq!((found.requests, found.rate), (Some(20_000), None));
        assert!(found.batch);
        let found = shape(&words("-t get")).unwrap();
        assert_eq!((found.connections, found.depth), (50, 1));
        for text in [
            "-h 127.0.0.1",
            "-p 6379",
            "-p6379",
            "-s /tmp/s",
            "-l",
            "-c x",
        ] {
            assert!(shape(&words(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn the_address_comes_before_the_command() {
        let line = command_line(&words("-n 5 get key"), "127.0.0.1:4000".parse().unwrap());
        assert_eq!(line, words("-h 127.0.0.1 -p 4000 -n 5 get key"));
    }
}
