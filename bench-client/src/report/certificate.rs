//! The certificate of a run: a table for people, an object for programs.

use serde::Serialize;

use super::number::{counted, ms};
use super::table::Table;
use crate::record::{CalibrationRun, Certificate, CertifiedQuantile};

/// The table for people, or the reason why there is none; empty without a certificate.
pub(crate) fn page(certificate: Option<&Certificate>) -> String {
    let Some(certificate) = certificate else {
        return String::new();
    };
    if let Some(reason) = &certificate.refused {
        return format!("no certificate: {reason}\n");
    }
    let heading = [
        "certified, ms",
        "",
        "reported",
        "machine's",
        "server's",
        "bound",
    ];
    let mut table = Table::new(2, &heading);
    let mut refused = String::new();
    for quantile in &certificate.quantiles {
        match &quantile.bound {
            Ok(bound) => table.row(vec![
                quantile.latency.name().to_owned(),
                quantile.title.to_owned(),
                ms(quantile.reported_ns),
                signed_ms(added_ns(quantile.reported_ns, bound.server_ns)),
                ms(bound.server_ns),
                format!("\u{b1}{}", ms(bound.half_width_ns)),
            ]),
            Err(reason) => refused.push_str(&format!(
                "{} {} has no bound: {reason}\n",
                quantile.latency.name(),
                quantile.title
            )),
        }
    }
    format!("{table}{refused}{}", ground(&certificate.runs))
}

/// What it rests on.
fn ground(runs: &[CalibrationRun]) -> String {
    let requests: u64 = runs.iter().map(|run| run.requests).sum();
    format!(
        "the server's own time lies within the bound in 95 of 100 cases, by {} of {} in all\n\
         against a known server on this machine, half before and half after; the network is no part of it\n",
        counted(runs.len() as u64, "run"),
        counted(requests, "request"),
    )
}

/// What client and machine added, which may come out below zero.
fn added_ns(reported_ns: u64, server_ns: u64) -> i64 {
    let added = i128::from(reported_ns) - i128::from(server_ns);
    i64::try_from(added).unwrap_or(i64::MAX)
}

fn signed_ms(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", ms(ns.unsigned_abs()))
}

/// The object for programs.
#[derive(Serialize)]
pub(crate) struct Entry {
    /// Why there is no certificate at all.
    refused: Option<String>,
    quantiles: Vec<QuantileEntry>,
    runs: Vec<RunEntry>,
}

#[derive(Serialize)]
struct QuantileEntry {
    latency: &'static str,
    quantile: f64,
    title: &'static str,
    reported_ns: u64,
    /// The server's own time.
    certified_ns: Option<u64>,
    half_width_ns: Option<u64>,
    low_ns: Option<u64>,
    high_ns: Option<u64>,
    refused: Option<String>,
}

#[derive(Serialize)]
struct RunEntry {
    when: &'static str,
    law: String,
    requests: u64,
    rate_per_second: f64,
    added_p50_ns: u64,
    added_p90_ns: u64,
    added_p99_ns: u64,
}

impl Entry {
    pub(crate) fn of(certificate: &Certificate) -> Self {
        Self {
            refused: certificate.refused.clone(),
            quantiles: certificate
                .quantiles
                .iter()
                .map(QuantileEntry::of)
                .collect(),
            runs: certificate.runs.iter().map(RunEntry::of).collect(),
        }
    }
}

impl QuantileEntry {
    fn of(quantile: &CertifiedQuantile) -> Self {
        let bound = quantile.bound.as_ref().ok();
        Self {
            latency: quantile.latency.name(),
            quantile: quantile.q,
            title: quantile.title,
            reported_ns: quantile.reported_ns,
            certified_ns: bound.map(|bound| bound.server_ns),
            half_width_ns: bound.map(|bound| bound.half_width_ns),
            low_ns: bound.map(|bound| bound.low_ns()),
            high_ns: bound.map(|bound| bound.high_ns()),
            refused: quantile.bound.as_ref().err().cloned(),
        }
    }
}

impl RunEntry {
    fn of(run: &CalibrationRun) -> Self {
        let [added_p50_ns, added_p90_ns, added_p99_ns] = run.added_ns;
        Self {
            when: if run.before { "before" } else { "after" },
            law: run.law.clone(),
            requests: run.requests,
            rate_per_second: run.per_second,
            added_p50_ns,
            added_p90_ns,
            added_p99_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Bound, CertifiedLatency};

    fn certificate() -> Certificate {
        let quantile = |q, title, bound| CertifiedQuantile {
            latency: CertifiedLatency::Service,
            q,
            title,
            reported_ns: 1_840_000,
            bound,
        };
        Certificate {
            quantiles: vec![
                quantile(
                    0.5,
                    "p50",
                    Ok(Bound {
                        server_ns: 1_730_000,
                        half_width_ns: 60_000,
                    }),
                ),
                quantile(0.99, "p99", Err("too noisy".to_owned())),
            ],
            refused: None,
            runs: vec![CalibrationRun {
                before: true,
                law: "constant(1ms)".to_owned(),
                requests: 2_500,
                per_second: 1_000.0,
                added_ns: [100_000, 120_000, 300_000],
            }],
        }
    }

    #[test]
    fn the_bound_stands_beside_its_quantile() {
        let text = page(Some(&certificate()));
        let row = text.lines().find(|line| line.contains("p50")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(
            cells,
            ["service", "p50", "1.840", "0.110", "1.730", "\u{b1}0.060"]
        );
        assert!(
            text.contains("service p99 has no bound: too noisy\n"),
            "{text}"
        );
        assert!(text.contains("by 1 run of 2500 requests"), "{text}");
    }

    #[test]
    fn a_refusal_is_a_sentence() {
        let certificate = Certificate {
            refused: Some("the run was interrupted".to_owned()),
            ..Certificate::default()
        };
        assert_eq!(
            page(Some(&certificate)),
            "no certificate: the run was interrupted\n"
        );
        assert_eq!(page(None), "");
    }

    #[test]
    fn programs_get_both_ends() {
        let value = serde_json::to_value(Entry::of(&certificate())).unwrap();
        let first = &value["quantiles"][0];
        assert_eq!(first["low_ns"], 1_670_000);
        assert_eq!(first["high_ns"], 1_790_000);
        assert_eq!(value["quantiles"][1]["refused"], "too noisy");
        assert_eq!(value["runs"][0]["when"], "before");
    }
}
