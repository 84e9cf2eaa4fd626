//! Metrics to a statsd server: one UDP packet for each metric and second.
//!
//! ```text
//! memtier.default.ops_sec:1007|g        gauges: ops_sec, ops_sec_avg, bytes_sec, bytes_sec_avg,
//!                                       connections, progress_pct, connection_errors (only when
//!                                       there are any), latency_p50, latency_p99_9 …
//! memtier.default.latency_ms:0.150|ms   timings: latency_ms, latency_avg_ms
//! ```
//!
//! Datagrams that nobody takes are no error: a run does not depend on who watches it.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use super::model::{LatencyFrom, quantile};
use super::progress::Progress;
use super::text::{ms, percentile_title};
use crate::record::{Latency, Tally};

/// Sends metrics under `prefix.label.`.
#[derive(Debug)]
pub struct Statsd {
    socket: UdpSocket,
    name: String,
}

impl Statsd {
    /// To a statsd server, resolved by the caller.
    ///
    /// # Errors
    /// No socket of the address's family can be made.
    pub fn new(server: SocketAddr, prefix: &str, label: &str) -> io::Result<Self> {
        let any: SocketAddr = if server.is_ipv4() {
            SocketAddr::from(([0, 0, 0, 0], 0))
        } else {
            SocketAddr::from(([0_u16; 8], 0))
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(server)?;
        // A full socket buffer must not hold up the run.
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            name: format!("{}.{}", clean(prefix), clean(label)),
        })
    }

    /// Sends the metrics of one second; returns how many packets were given to the network.
    pub fn send(&self, metrics: &[Metric]) -> usize {
        let sent = metrics.iter().filter(|metric| {
            let packet = format!("{}.{metric}", self.name);
            self.socket.send(packet.as_bytes()).is_ok()
        });
        sent.count()
    }
}

/// One metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name, without prefix and label.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Digits behind the point.
    pub digits: usize,
    /// Whether it is a timing; else a gauge.
    pub timing: bool,
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            name,
            value,
            digits,
            timing,
        } = self;
        let kind = if *timing { "ms" } else { "g" };
        write!(f, "{name}:{value:.digits$}|{kind}")
    }
}

/// The metrics of a second: its progress line, and the percentiles of its tally.
#[must_use]
pub fn metrics(
    line: &Progress,
    tally: &Tally,
    percentiles: &[f64],
    from: LatencyFrom,
) -> Vec<Metric> {
    let whole = |name: &str, value: f64| gauge(name, value, 0);
    let connections = f64::from(line.connections) * f64::from(line.threads);
    let mut metrics = vec![
        whole("ops_sec", line.rate.last),
        whole("ops_sec_avg", line.rate.average),
        whole("bytes_sec", line.bytes.last),
        whole("bytes_sec_avg", line.bytes.average),
        timing("latency_ms", line.latency_ms.last),
        timing("latency_avg_ms", line.latency_ms.average),
        whole("connections", connections),
        whole("progress_pct", line.percent),
    ];
    if line.connection_errors > 0 {
        let errors = super::model::float(line.connection_errors);
        metrics.push(whole("connection_errors", errors));
    }
    let latency = shown(tally, from);
    if !latency.is_empty() {
        for percentile in percentiles {
            let name = format!(
                "latency_{}",
                percentile_title(*percentile).replace('.', "_")
            );
            let value = ms(latency.quantile_ns(quantile(*percentile)));
            metrics.push(gauge(&name, value, 3));
        }
    }
    metrics
}

fn shown(tally: &Tally, from: LatencyFrom) -> Latency {
    match from {
        LatencyFrom::Schedule => tally.latency(),
        LatencyFrom::Send => tally.service(),
    }
}

fn gauge(name: &str, value: f64, digits: usize) -> Metric {
    Metric {
        name: name.to_owned(),
        value,
        digits,
        timing: false,
    }
}

fn timing(name: &str, value: f64) -> Metric {
    Metric {
        timing: true,
        ..gauge(name, value, 3)
    }
}

/// A part of a name: what would end a name or a packet becomes `_`.
fn clean(part: &str) -> String {
    let legal = |c: char| {
        if c.is_whitespace() || matches!(c, ':' | '|' | '@' | '/') {
            '_'
        } else {
            c
        }
    };
    part.chars().map(legal).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::progress::Pair;
    use super::*;

    fn line() -> Progress {
        Progress {
            percent: 50.0,
            threads: 2,
            connections: 5,
            rate: Pair {
                last: 1_007.0,
                average: 1_001.5,
            },
            latency_ms: Pair {
                last: 0.15,
                average: 0.14,
            },
            ..Progress::default()
        }
    }

    #[test]
    fn every_metric_is_a_packet_of_its_own_under_the_full_name() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let to = server.local_addr().unwrap();
        let statsd = Statsd::new(to, "memtier", "ci run:1").unwrap();
        let mut tally = Tally::new(1);
        tally.classes[0].service.record(1_000_000);
        let metrics = metrics(&line(), &tally, &[50.0, 99.9], LatencyFrom::Schedule);
        assert_eq!(statsd.send(&metrics), metrics.len());
        let received: Vec<String> = metrics
            .iter()
            .map(|_| {
                let mut buffer = [0; 256];
                let len = server.recv(&mut buffer).unwrap();
                String::from_utf8(buffer[..len].to_vec()).unwrap()
            })
            .collect();
        for expected in [
            "memtier.ci_run_1.ops_sec:1007|g",
            "memtier.ci_run_1.latency_ms:0.150|ms",
            "memtier.ci_run_1.connections:10|g",
            "memtier.ci_run_1.latency_p50:1.000|g",
            "memtier.ci_run_1.latency_p99_9:1.000|g",
        ] {
            assert!(
                received.iter().any(|packet| packet == expected),
                "{received:?}"
            );
        }
        assert!(
            !received
                .iter()
                .any(|packet| packet.contains("connection_errors"))
        );
    }

    #[test]
    fn connection_errors_are_sent_once_there_are_some() {
        let mut line = line();
        line.connection_errors = 3;
        let metrics = metrics(&line, &Tally::new(1), &[50.0], LatencyFrom::Send);
        let texts: Vec<_> = metrics.iter().map(Metric::to_string).collect();
        assert!(texts.contains(&"connection_errors:3|g".to_owned()));
        assert!(!texts.iter().any(|text| text.starts_with("latency_p50")));
    }
}
