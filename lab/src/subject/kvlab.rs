//! Our own load generator, as a process like all others: this program with `bench`, read from the
//! JSON document that it writes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kvlab_mock_server::exchange::Protocol;
use kvlab_timing::duration;
use serde_json::Value;

use super::options::Options;
use super::process::Finished;
use super::{Kind, Load, OWN_REPORT, Reading, Reported, Shape, Subject, refuse, version_line};
use crate::truth::Quantile;

/// `kvlab bench` against one of the protocols.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kvlab {
    pub(super) protocol: Protocol,
}

impl Subject for Kvlab {
    fn name(&self) -> &'static str {
        match self.protocol {
            Protocol::Redis => "kvlab",
            Protocol::Aerospike => "kvlab-aerospike",
        }
    }

    fn aliases(&self) -> &'static [&'static str] {
        match self.protocol {
            Protocol::Redis => &["kvlab-redis"],
            Protocol::Aerospike => &[],
        }
    }

    fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn find(&self) -> Option<PathBuf> {
        std::env::current_exe().ok()
    }

    fn version(&self, program: &Path) -> String {
        version_line(program, &["--version"])
    }

    fn standard(&self, load: &Load) -> Result<Vec<String>, String> {
        if load.depth > 1 && self.protocol == Protocol::Aerospike {
            return Err("the protocol has no pipelines".to_owned());
        }
        let mut options = vec![
            "--connections".to_owned(),
            load.connections.to_string(),
            "--pipeline".to_owned(),
            load.depth.to_string(),
        ];
        match load.rate {
            Some(rate) => {
                let length = duration::format(load.duration);
                options.extend(["--rate".to_owned(), rate.to_string()]);
                options.extend(["--duration".to_owned(), length]);
            }
            None => options.extend(["--requests".to_owned(), load.requests.to_string()]),
        }
        // Longer than any freeze; what times out is counted, but has no latency.
        options.extend(["--timeout".to_owned(), "30s".to_owned()]);
        Ok(options)
    }

    fn shape(&self, arguments: &[OsString]) -> Result<Shape, String> {
        let options = Options::new(arguments);
        refuse(&options, &["--json"], OWN_REPORT)?;
        refuse(
            &options,
            &["--warmup"],
            "the report would leave out requests",
        )?;
        let length = options.value(&["--duration"]);
        let length = length.map(duration::parse).transpose();
        let length = length.map_err(|error| format!("--duration: {error}"))?;
        let requests: Option<u64> = options.parsed(&["--requests"])?;
        Ok(Shape {
            connections: options.parsed(&["--connections"])?.unwrap_or(50),
            depth: options.parsed(&["--pipeline"])?.unwrap_or(1),
            batch: options.value(&["--pipeline-mode"]) == Some("batch"),
            rate: options.parsed(&["--rate"])?,
            duration: match (length, requests) {
                (None, None) => Some(std::time::Duration::from_secs(10)),
                (length, _) => length,
            },
            requests,
        })
    }

    fn command_line(&self, arguments: &[OsString], at: SocketAddr, folder: &Path) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec![
            "bench".into(),
            format!("{}://{at}", self.protocol).into(),
            "--quiet".into(),
            "--json".into(),
            folder.join(FILE).into(),
        ];
        line.extend(arguments.iter().cloned());
        line
    }

    fn read(&self, _: &Finished, folder: &Path) -> Result<Reported, String> {
        let text = fs::read_to_string(folder.join(FILE))
            .map_err(|error| format!("its JSON file: {error}"))?;
        read(&text)
    }
}

fn read(text: &str) -> Result<Reported, String> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("its JSON file: {error}"))?;
    let result = &document["result"];
    let total = &result["total"];
    let outcomes = total["outcomes"]
        .as_object()
        .ok_or("its JSON file has no outcomes")?;
    let kind = match result["load_model"].as_str() {
        Some("open") => Kind::Response,
        _ => Kind::Service,
    };
    let times = match kind {
        Kind::Response => &total["response"],
        Kind::Service => &total["service"],
    };
    let failed = ["errors", "timeouts", "connection_lost", "not_sent"];
    let names = ["p50_ns", "p90_ns", "p99_ns", "p999_ns"];
    let quantiles: BTreeMap<Quantile, Reading> = Quantile::JUDGED
        .into_iter()
        .zip(names)
        .filter_map(|(q, name)| Some((q, Reading::exact(times[name].as_u64()?))))
        .collect();
    Ok(Reported {
        kind,
        count: times["samples"].as_u64(),
        operations: None,
        mean_ns: times["mean_ns"].as_f64(),
        quantiles,
        max_ns: times["max_ns"].as_u64(),
        rate_per_second: total["rate_per_second"].as_f64(),
        errors: Some(
            failed
                .iter()
                .filter_map(|name| outcomes.get(*name)?.as_u64())
                .sum(),
        ),
        // A thousandth of a millisecond.
        resolution_ns: 1_000,
        clamped: times["clamped"].as_u64(),
    })
}

const FILE: &str = "kvlab.json";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    const REDIS: Kvlab = Kvlab {
        protocol: Protocol::Redis,
    };

    #[test]
    fn an_open_loop_reports_response_times() {
        // Golden output of the load generator's own tests, with made-up numbers.
        let text = include_str!("../../../bench-client/src/report/golden/open_loop.json");
        let reported = read(text).unwrap();
        assert_eq!(reported.kind, Kind::Response);
        assert_eq!(reported.count, Some(20_000));
        assert_eq!(reported.errors, Some(1_000));
        assert_eq!(reported.max_ns, Some(4_194_303));
        let expected = [1_048_575, 1_048_575, 1_048_575, 4_194_303].map(Reading::exact);
        let expected = Quantile::JUDGED.into_iter().zip(expected).collect();
        assert_eq!(reported.quantiles, expected);
        assert_eq!(reported.rate_per_second, Some(2060.0));
    }

    #[test]
    fn garbage_is_refused() {
        for text in ["", "{}", "[1]", "{\"result\": {\"total\": 3}}"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_load_is_read_from_the_options() {
        let shape = |text: &str| REDIS.shape(&words(text));
        let found = shape("--connections=8 --pipeline 4 --rate 500 --duration 2s").unwrap();
        assert_eq!((found.connections, found.depth), (8, 4));
        assert_eq!((found.rate, found.due()), (Some(500.0), Some(1000)));
        let found = shape("--pipeline-mode batch").unwrap();
        assert!(found.batch && found.connections == 50);
        assert!(shape("--json x").is_err() && shape("--warmup 1s").is_err());
    }

    #[test]
    fn the_server_is_named_by_protocol() {
        let at = "127.0.0.1:4000".parse().unwrap();
        let line = REDIS.command_line(&words("--rate 5"), at, Path::new("/x"));
        let expected = "bench redis://127.0.0.1:4000 --quiet --json /x/kvlab.json --rate 5";
        assert_eq!(line, words(expected));
    }
}
