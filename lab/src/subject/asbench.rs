//! asbench: a closed loop of threads with one request each; with `-g` each thread sleeps between its
//! requests so that their number comes out, and starts its clock at the call.
//!
//! With `-L` it prints after every second, for reads and writes apart, the latencies since its start
//! in microseconds, and a line of counts:
//!
//! ```text
//! … INFO write(tps=…) read(tps=… (hit=… miss=…) timeouts=0 errors=0) total(tps=2003 (hit=2003 miss=0) timeouts=0 errors=0)
//! hdr: read  2026-11-30T11:26:06Z 3, 3002, 13, 8143, 98, 268, 679, 2615
//! ```
//!
//! The numbers after the kind are time, seconds, count, least, largest, and the percentiles asked
//! for. The histograms at the end (`--hdr-hist`, HdrHistogram log format) give the mean, and all
//! quantiles where there are several kinds. Misses and failures have no latency.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use kvlab_mock_server::exchange::Protocol;

use super::options::Options;
use super::process::Finished;
use super::{
    Kind, Load, OWN_REPORT, OWN_SERVER, Reading, Records, Reported, Shape, Subject, refuse,
};
use crate::truth::Quantile;

/// asbench.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asbench;

impl Subject for Asbench {
    fn name(&self) -> &'static str {
        "asbench"
    }

    fn protocol(&self) -> Protocol {
        Protocol::Aerospike
    }

    fn standard(&self, load: &Load) -> Result<Vec<String>, String> {
        if load.depth > 1 {
            return Err("it has no pipelines".to_owned());
        }
        let seconds = load.duration.as_secs().max(1);
        let mut options = vec![
            "-k".to_owned(),
            "1000".to_owned(),
            "-w".to_owned(),
            "RU,100".to_owned(),
            "-z".to_owned(),
            load.connections.to_string(),
            // Longer than any freeze.
            "-T".to_owned(),
            "30000".to_owned(),
        ];
        if let Some(rate) = load.rate {
            options.extend(["-g".to_owned(), rate.to_string()]);
        }
        options.extend(["-t".to_owned(), seconds.to_string()]);
        Ok(options)
    }

    fn shape(&self, arguments: &[OsString]) -> Result<Shape, String> {
        let options = Options::new(arguments);
        refuse(&options, &["-h", "--hosts", "-p", "--port"], OWN_SERVER)?;
        refuse(&options, &["--hdr-hist", "-L", "--latency"], OWN_REPORT)?;
        refuse(&options, &["--percentiles"], OWN_REPORT)?;
        refuse(
            &options,
            &["--workload-stages"],
            "the grading reads one stage",
        )?;
        let threads: u32 = options.parsed(&["-z", "--threads"])?.unwrap_or(16);
        let commands: u32 = options
            .parsed(&["-c", "--async-max-commands"])?
            .unwrap_or(50);
        let seconds: Option<u64> = options.parsed(&["-t", "--duration"])?;
        let rate: Option<f64> = options.parsed(&["-g", "--throughput"])?;
        Ok(Shape {
            connections: match options.has(&["-a", "--async"]) {
                true => commands,
                false => threads,
            },
            depth: 1,
            batch: false,
            rate: rate.filter(|rate| *rate > 0.0),
            duration: Some(Duration::from_secs(seconds.unwrap_or(10))),
            requests: None,
        })
    }

    fn command_line(&self, arguments: &[OsString], at: SocketAddr, folder: &Path) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec![
            "-h".into(),
            at.ip().to_string().into(),
            "-p".into(),
            at.port().to_string().into(),
            "-L".into(),
            "--percentiles".into(),
            "50,90,99,99.9".into(),
            "--hdr-hist".into(),
            folder.into(),
        ];
        line.extend(arguments.iter().cloned());
        line
    }

    fn read(&self, finished: &Finished, folder: &Path) -> Result<Reported, String> {
        let logs = logs(folder).map_err(|error| format!("its histograms: {error}"))?;
        read(&finished.stdout, &logs)
    }

    fn records(&self, arguments: &[OsString]) -> Option<Records> {
        let options = Options::new(arguments);
        let number = |names: &[&str], usual| {
            let value = options.value(names).and_then(|text| text.parse().ok());
            value.unwrap_or(usual)
        };
        let text = |names: &[&str], usual: &str| {
            let value = options.value(names).unwrap_or(usual);
            value.to_owned()
        };
        Some(Records {
            namespace: text(&["-n", "--namespace"], "test"),
            set: text(&["-s", "--set"], "testset"),
            first: number(&["-K", "--start-key"], 1),
            count: number(&["-k", "--keys"], 1_000_000).clamp(0, Records::MOST),
        })
    }
}

/// The texts of the histogram logs in a folder.
fn logs(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "hdrhist") {
            logs.push(fs::read_to_string(path)?);
        }
    }
    Ok(logs)
}

fn read(stdout: &str, logs: &[String]) -> Result<Reported, String> {
    // The last line of each kind covers the whole run.
    let mut kinds: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut operations = None;
    let mut errors = 0;
    for line in stdout.lines() {
        if let Some(rest) = line.strip_prefix("hdr: ") {
            let (kind, numbers) =
                latencies(rest).ok_or_else(|| format!("'{line}' is no line of latencies"))?;
            kinds.insert(kind, numbers);
        } else if let Some((_, total)) = line.split_once(" total(tps=") {
            let (done, failed) =
                counts(total).ok_or_else(|| format!("'{line}' is no line of counts"))?;
            operations = Some(operations.unwrap_or(0) + done);
            errors += failed;
        }
    }
    if kinds.is_empty() {
        return Err("it printed no latencies".to_owned());
    }
    kinds.retain(|_, numbers| numbers.first().is_some_and(|count| *count > 0));
    let histogram = merged(logs)?;
    let mut reported = Reported {
        kind: Kind::Service,
        count: Some(kinds.values().filter_map(|numbers| numbers.first()).sum()),
        operations,
        mean_ns: histogram
            .as_ref()
            .filter(|histogram| !histogram.is_empty())
            .map(|histogram| histogram.mean() * MICROSECOND_F64),
        max_ns: kinds
            .values()
            .filter_map(|numbers| numbers.get(2))
            .max()
            .map(|max| max * MICROSECOND),
        errors: Some(errors),
        resolution_ns: MICROSECOND,
        ..Reported::default()
    };
    let mut single = kinds.values();
    match (single.next(), single.next(), &histogram) {
        (Some(numbers), None, _) => {
            let values = numbers.iter().skip(3);
            let readings = values.map(|value| Reading::exact(value * MICROSECOND));
            reported.quantiles = Quantile::JUDGED.into_iter().zip(readings).collect();
        }
        (Some(_), Some(_), Some(histogram)) => {
            let at = |q: Quantile| {
                let value = histogram.value_at_quantile(q.as_f64());
                (q, Reading::exact(value * MICROSECOND))
            };
            reported.quantiles = Quantile::JUDGED.into_iter().map(at).collect();
        }
        _ => {}
    }
    Ok(reported)
}

/// `read  2026-11-30T11:26:06Z 3, 3002, 13, 8143, 98, …`: the kind, and the numbers from the count on.
fn latencies(text: &str) -> Option<(&str, Vec<u64>)> {
    let mut words = text.split_whitespace();
    let kind = words.next()?;
    let _time = words.next()?;
    let numbers: Vec<u64> = words
        .map(|word| word.trim_end_matches(',').parse())
        .collect::<Result<_, _>>()
        .ok()?;
    // Seconds, count, least, largest.
    (numbers.len() >= 4).then(|| (kind, numbers.into_iter().skip(1).collect()))
}

/// `2003 (hit=2003 miss=0) timeouts=0 errors=0)`: operations in about a second, and failures.
fn counts(text: &str) -> Option<(u64, u64)> {
    let done = text.split(' ').next()?.parse().ok()?;
    let number = |name: &str| -> Option<u64> {
        let (_, rest) = text.split_once(name)?;
        rest.split([' ', ')']).next()?.parse().ok()
    };
    Some((done, number("timeouts=")? + number("errors=")?))
}

/// All histograms of the logs together, in microseconds.
fn merged(logs: &[String]) -> Result<Option<Histogram<u64>>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("its histogram log: {error}");
    let mut all: Option<Histogram<u64>> = None;
    for log in logs {
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            let LogEntry::Interval(interval) = entry.map_err(|_| wrong(&"not of the format"))?
            else {
                continue;
            };
            let bytes = BASE64
                .decode(interval.encoded_histogram())
                .map_err(|error| wrong(&error))?;
            let histogram: Histogram<u64> = Deserializer::new()
                .deserialize(&mut bytes.as_slice())
                .map_err(|error| wrong(&error))?;
            match &mut all {
                Some(all) => all.add(&histogram).map_err(|error| wrong(&error))?,
                None => all = Some(histogram),
            }
        }
    }
    Ok(all)
}

const MICROSECOND: u64 = 1_000;
const MICROSECOND_F64: f64 = 1e3;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    const THROTTLED: &str = include_str!("../../tests/data/tools/asbench/throttled.txt");
    const MISSES: &str = include_str!("../../tests/data/tools/asbench/read-miss.txt");
    const BOTH: &str = include_str!("../../tests/data/tools/asbench/hdr.txt");
    const READ_LOG: &str = include_str!("../../tests/data/tools/asbench/hdr.read.hdrhist");
    const WRITE_LOG: &str = include_str!("../../tests/data/tools/asbench/hdr.write.hdrhist");

    #[test]
    fn two_kinds_are_merged_from_their_histograms() {
        let logs = [READ_LOG.to_owned(), WRITE_LOG.to_owned()];
        let reported = read(BOTH, &logs).unwrap();
        // 3002 reads and 3001 writes; the lines of counts add up to 1999 + 1999 + 2003 + 2.
        assert_eq!(reported.count, Some(6_003));
        assert_eq!(reported.operations, Some(6_003));
        assert_eq!(reported.errors, Some(0));
        assert_eq!(reported.max_ns, Some(8_143_000));
        // p50 98 us of reads and 104 us of writes as printed.
        let p50 = reported.quantiles[&Quantile::P50].high_ns;
        assert!((98_000..=104_000).contains(&p50), "{p50}");
        let p99_9 = reported.quantiles[&Quantile::P99_9].high_ns;
        assert!((2_615_000..=3_139_000).contains(&p99_9), "{p99_9}");
    }

    #[test]
    fn one_kind_is_read_as_printed_and_its_histogram_says_the_same() {
        let reads: Vec<&str> = BOTH
            .lines()
            .filter(|line| !line.starts_with("hdr: write"))
            .collect();
        let reported = read(&reads.join("\n"), &[READ_LOG.to_owned()]).unwrap();
        let printed = [98_000, 268_000, 679_000, 2_615_000].map(Reading::exact);
        let printed = Quantile::JUDGED.into_iter().zip(printed).collect();
        assert_eq!(reported.quantiles, printed);
        assert_eq!(reported.count, Some(3_002));
        // The footer of its percentile table says 139.550.
        let mean = reported.mean_ns.unwrap();
        assert!((mean - 139_550.0).abs() < 0.001 * mean, "{mean}");
        let histogram = merged(&[READ_LOG.to_owned()]).unwrap().unwrap();
        assert_eq!(histogram.len(), 3_002);
        assert_eq!(histogram.value_at_quantile(0.5), 98);
    }

    #[test]
    fn percentiles_in_other_places_are_not_mistaken() {
        // 50, 95, 99, 99.9 were asked for here, which the grading never does.
        let lines: Vec<&str> = THROTTLED.lines().collect();
        let reported = read(&lines.join("\n"), &[]).unwrap();
        assert_eq!(reported.count, Some(1_283 + 11_239));
        assert_eq!(reported.quantiles, BTreeMap::new());
    }

    #[test]
    fn misses_have_no_latency() {
        let reported = read(MISSES, &[]).unwrap();
        assert_eq!(reported.count, Some(0));
        assert_eq!(reported.operations, Some(1008 + 994));
        assert_eq!((reported.mean_ns, reported.max_ns), (None, None));
        assert!(reported.quantiles.is_empty());
    }

    #[test]
    fn garbage_is_refused() {
        for text in ["", "hello", "hdr: read x", "hdr: read 2026Z 1, x, 3, 4"] {
            assert!(read(text, &[]).is_err(), "{text}");
        }
        assert!(read(MISSES, &["1,2,3,nothing".to_owned()]).is_err());
    }

    #[test]
    fn the_load_and_the_records_are_read_from_the_options() {
        let found = Asbench.shape(&words("-z 10 -g 1000 -t 3")).unwrap();
        assert_eq!((found.connections, found.rate), (10, Some(1000.0)));
        assert_eq!(found.due(), Some(3000));
        let found = Asbench.shape(&words("-a -c 7")).unwrap();
        assert_eq!((found.connections, found.rate), (7, None));
        assert!(Asbench.shape(&words("-p 3000")).is_err());
        let records = Asbench.records(&words("-k 500 -s gold")).unwrap();
        let expected = Records {
            namespace: "test".to_owned(),
            set: "gold".to_owned(),
            first: 1,
            count: 500,
        };
        assert_eq!(records, expected);
        let all = Asbench.records(&words("-z 1")).unwrap();
        assert_eq!(all.count, Records::MOST);
    }
}
