//! memtier_benchmark: a closed loop; with `--rate-limiting` each connection sends so many requests
//! a second, but starts its clock at the send, not when the request was due.
//!
//! It is read from the JSON file it writes (`ALL STATS`, `Totals`: count, rate, largest latency,
//! percentiles in milliseconds) and, for the mean, from the line `Totals` of the table on stdout,
//! because the mean of the file has whole milliseconds. Where there is no file the table has to do.
//! Times have steps of 8 us. Error replies count as operations; lost connections are counted.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::options::Options;
use super::process::Finished;
use super::report::milliseconds;
use super::{Kind, Load, OWN_REPORT, OWN_SERVER, Reading, Reported, Shape, Subject, refuse};
use crate::truth::Quantile;

/// memtier_benchmark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memtier;

impl Subject for Memtier {
    fn name(&self) -> &'static str {
        "memtier_benchmark"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["memtier"]
    }

    fn standard(&self, load: &Load) -> Result<Vec<String>, String> {
        let mut options = vec![
            "--threads=1".to_owned(),
            format!("--clients={}", load.connections),
            format!("--pipeline={}", load.depth),
            "--ratio=0:1".to_owned(),
        ];
        match load.rate {
            Some(rate) => {
                if !rate.is_multiple_of(load.connections) {
                    return Err("its rate is a whole number per connection".to_owned());
                }
                options.push(format!("--rate-limiting={}", rate / load.connections));
                options.push(format!("--test-time={}", load.duration.as_secs()));
            }
            None => options.push(format!("--requests={}", load.requests / load.connections)),
        }
        Ok(options)
    }

    fn shape(&self, arguments: &[OsString]) -> Result<Shape, String> {
        let options = Options::new(arguments);
        let address = [
            "-s",
            "--server",
            "-h",
            "--host",
            "-p",
            "--port",
            "-S",
            "--unix-socket",
            "-u",
            "--uri",
        ];
        refuse(&options, &address, OWN_SERVER)?;
        refuse(
            &options,
            &["--json-out-file", "-o", "--out-file"],
            OWN_REPORT,
        )?;
        refuse(
            &options,
            &["--cluster-mode"],
            "the grading's server is no cluster",
        )?;
        refuse(
            &options,
            &["-x", "--run-count"],
            "the grading reads one run",
        )?;
        let clients: u32 = options.parsed(&["-c", "--clients"])?.unwrap_or(50);
        let threads: u32 = options.parsed(&["-t", "--threads"])?.unwrap_or(4);
        let connections = clients.saturating_mul(threads);
        let rate: Option<f64> = options.parsed(&["--rate-limiting"])?;
        let seconds: Option<u64> = options.parsed(&["--test-time"])?;
        let each: Option<u64> = options.parsed(&["-n", "--requests"])?;
        Ok(Shape {
            connections,
            depth: options.parsed(&["--pipeline"])?.unwrap_or(1),
            batch: false,
            rate: rate.map(|rate| rate * f64::from(connections)),
            duration: seconds.map(Duration::from_secs),
            requests: match seconds {
                Some(_) => None,
                None => Some(each.unwrap_or(10_000) * u64::from(connections)),
            },
        })
    }

    fn command_line(&self, arguments: &[OsString], at: SocketAddr, folder: &Path) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec![
            format!("--server={}", at.ip()).into(),
            format!("--port={}", at.port()).into(),
            "--hide-histogram".into(),
            "--json-out-file".into(),
            folder.join(FILE).into(),
        ];
        if !Options::new(arguments).has(&["--print-percentiles"]) {
            line.push("--print-percentiles=50,90,99,99.9,100".into());
        }
        line.extend(arguments.iter().cloned());
        line
    }

    fn read(&self, finished: &Finished, folder: &Path) -> Result<Reported, String> {
        match fs::read_to_string(folder.join(FILE)) {
            Ok(json) => read(&json, &finished.stdout),
            Err(_) => table(&finished.stdout),
        }
    }
}

/// Reads the file, and the mean from the table.
fn read(json: &str, stdout: &str) -> Result<Reported, String> {
    // An empty run prints `-nan`, which is no JSON.
    let json = json.replace(": -nan", ": null").replace(": nan", ": null");
    let document: Value =
        serde_json::from_str(&json).map_err(|error| format!("its JSON file: {error}"))?;
    let totals = &document["ALL STATS"]["Totals"];
    let count = totals["Count"]
        .as_u64()
        .ok_or("its JSON file has no count of all operations")?;
    let table = table(stdout);
    let mut reported = Reported {
        count: Some(count),
        rate_per_second: totals["Ops/sec"].as_f64(),
        errors: totals["Connection Errors"].as_u64(),
        ..empty()
    };
    if count == 0 {
        // Its percentiles of nothing are 0.007.
        return Ok(reported);
    }
    reported.mean_ns = table.ok().and_then(|table| table.mean_ns);
    reported.max_ns = totals["Max Latency"].as_f64().and_then(from_ms);
    if let Some(percentiles) = totals["Percentile Latencies"].as_object() {
        for (name, value) in percentiles {
            let value = value.as_f64().and_then(from_ms);
            let Some((percentile, value)) = name.strip_prefix('p').zip(value) else {
                continue;
            };
            match percentile.parse() {
                Ok(100.0) => reported.max_ns = reported.max_ns.max(Some(value)),
                Ok(percentile) => {
                    if let Some(q) = judged(percentile) {
                        reported.quantiles.insert(q, Reading::exact(value));
                    }
                }
                Err(_) => {}
            }
        }
    }
    Ok(reported)
}

/// Reads the line of all operations in the table on stdout. Columns are found by their titles, of
/// which those of latencies have two words.
fn table(stdout: &str) -> Result<Reported, String> {
    let mut lines = stdout.lines().skip_while(|line| !line.starts_with("Type "));
    let head = lines.next().ok_or("its output has no table")?;
    let totals = lines
        .find(|line| line.starts_with("Totals"))
        .ok_or("its table has no line of all operations")?;
    let head = head.replace(" Latency", "_Latency");
    let mut columns: BTreeMap<&str, &str> = BTreeMap::new();
    columns.extend(head.split_whitespace().zip(totals.split_whitespace()));
    let mut reported = Reported {
        mean_ns: columns
            .get("Avg._Latency")
            .and_then(|text| text.parse().ok())
            .filter(|mean: &f64| mean.is_finite())
            .map(|mean: f64| mean * 1e6),
        rate_per_second: columns.get("Ops/sec").and_then(|text| text.parse().ok()),
        ..empty()
    };
    if reported.mean_ns.is_none() {
        return Ok(reported);
    }
    for (title, text) in &columns {
        let percentile = title
            .strip_prefix('p')
            .and_then(|title| title.strip_suffix("_Latency")?.parse().ok());
        match (percentile, milliseconds(text)) {
            (Some(100.0), Some(value)) => reported.max_ns = Some(value),
            (Some(percentile), Some(value)) => {
                if let Some(q) = judged(percentile) {
                    reported.quantiles.insert(q, Reading::exact(value));
                }
            }
            _ => {}
        }
    }
    Ok(reported)
}

/// The judged quantile of a percentile.
fn judged(percentile: f64) -> Option<Quantile> {
    Quantile::JUDGED
        .into_iter()
        .find(|q| (q.as_f64() * 100.0 - percentile).abs() < 1e-6)
}

fn from_ms(ms: f64) -> Option<u64> {
    milliseconds(&ms.to_string())
}

fn empty() -> Reported {
    Reported {
        kind: Kind::Service,
        resolution_ns: 8_000,
        ..Reported::default()
    }
}

const FILE: &str = "memtier.json";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    const PAUSE: (&str, &str) = (
        include_str!("../../tests/data/tools/memtier/pause.json"),
        include_str!("../../tests/data/tools/memtier/pause.stdout"),
    );
    const KILLED: (&str, &str) = (
        include_str!("../../tests/data/tools/memtier/killed.json"),
        include_str!("../../tests/data/tools/memtier/killed.stdout"),
    );

    #[test]
    fn file_and_table_are_read() {
        let reported = read(PAUSE.0, PAUSE.1).unwrap();
        assert_eq!(reported.count, Some(796));
        assert_eq!(reported.mean_ns, Some(2_800_580.0));
        assert_eq!(reported.max_ns, Some(2_072_575_000));
        assert_eq!(reported.rate_per_second, Some(79.56));
        assert_eq!(reported.errors, Some(0));
        let expected = [111_000, 431_000, 1_063_000, 6_687_000].map(Reading::exact);
        let expected = Quantile::JUDGED.into_iter().zip(expected).collect();
        assert_eq!(reported.quantiles, expected);
        // The table alone says the same, but for the count.
        let alone = table(PAUSE.1).unwrap();
        assert_eq!(alone.quantiles, reported.quantiles);
        assert_eq!((alone.max_ns, alone.count), (Some(2_072_575_000), None));
        assert_eq!(alone.mean_ns, reported.mean_ns);
    }

    #[test]
    fn a_run_that_lost_its_connections_reports_nothing() {
        let reported = read(KILLED.0, KILLED.1).unwrap();
        assert_eq!(reported.count, Some(0));
        assert_eq!((reported.mean_ns, reported.max_ns), (None, None));
        assert!(reported.quantiles.is_empty());
        let alone = table(KILLED.1).unwrap();
        assert!(alone.quantiles.is_empty());
    }

    #[test]
    fn garbage_is_refused() {
        for (json, stdout) in [("", ""), ("{}", ""), ("{\"ALL STATS\": 1}", "x")] {
            assert!(read(json, stdout).is_err(), "{json}");
        }
        assert!(table("Type  Ops/sec\n").is_err());
    }

    #[test]
    fn the_rate_is_per_connection() {
        let shape = |text: &str| Memtier.shape(&words(text));
        let found = shape("-t 2 -c 5 --rate-limiting=100 --test-time=3").unwrap();
        assert_eq!((found.connections, found.rate), (10, Some(1000.0)));
        assert_eq!(found.due(), Some(3000));
        let found = shape("--pipeline 4").unwrap();
        assert_eq!((found.connections, found.depth), (200, 4));
        assert_eq!(found.requests, Some(2_000_000));
        for text in ["-p 7001", "--json-out-file=x", "--cluster-mode", "-x 3"] {
            assert!(shape(text).is_err(), "{text}");
        }
        let load = Load {
            connections: 10,
            depth: 1,
            rate: Some(1001),
            requests: 5,
            duration: Duration::from_secs(2),
        };
        assert!(Memtier.standard(&load).is_err());
    }
}
