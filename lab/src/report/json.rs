//! The report as one JSON document. Times are whole nanoseconds and say so in their names; keys are
//! added, never renamed, within one schema version.

use serde::Serialize;

use super::{LoadReport, PartReport, Report, ServerReport};
use crate::check::{Accounting, Figure, Score, Validity, WarmUp};
use crate::noise::Machine;
use crate::runner::Tier;
use crate::verdict::{Finding, Verdict};

/// Version of the document's form.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    scenario: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    verdict: Verdict,
    tier: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_delay_ns: Option<u64>,
    server: Server<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<&'a Machine>,
    clients: Vec<Client<'a>>,
}

#[derive(Serialize)]
struct Server<'a> {
    latency: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    freeze: Option<&'a str>,
    seed: u64,
}

#[derive(Serialize)]
struct Client<'a> {
    name: &'a str,
    verdict: Verdict,
    attempts: u32,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    runs: &'a [Verdict],
    load: &'a LoadReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a ServerReport>,
    rate_per_second: f64,
    requests: &'a Accounting,
    figures: &'a [Figure],
    scores: &'a [Score],
    measured: &'a Validity,
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_up: Option<&'a WarmUp>,
    findings: &'a [Finding],
    sequence_hash: String,
    delays_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_hash: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notices: &'a [String],
}

/// The reports of several scenarios: one document for one, else an array.
///
/// # Errors
/// Never in practice: every value has a form in JSON.
pub fn render(reports: &[Report]) -> serde_json::Result<String> {
    let documents: Vec<Document<'_>> = reports.iter().map(document).collect();
    let mut text = match &documents[..] {
        [one] => serde_json::to_string_pretty(one)?,
        several => serde_json::to_string_pretty(several)?,
    };
    text.push('\n');
    Ok(text)
}

fn document(report: &Report) -> Document<'_> {
    let (tier, network_delay_ns) = match report.tier {
        Tier::Real => ("real", None),
        Tier::Virtual { leg_ns } => ("virtual", Some(leg_ns)),
    };
    Document {
        schema_version: SCHEMA_VERSION,
        scenario: &report.name,
        description: &report.description,
        verdict: report.verdict,
        tier,
        network_delay_ns,
        server: Server {
            latency: &report.latency,
            freeze: report.freeze.as_deref(),
            seed: report.seed,
        },
        machine: report.machine.as_ref(),
        clients: report.parts.iter().map(client).collect(),
    }
}

fn client(part: &PartReport) -> Client<'_> {
    Client {
        name: &part.name,
        verdict: part.judgement.verdict,
        attempts: part.attempts,
        runs: &part.runs,
        load: &part.load,
        server: part.server.as_ref(),
        rate_per_second: part.rate_per_second,
        requests: &part.judgement.accounting,
        figures: &part.judgement.figures,
        scores: &part.judgement.scores,
        measured: &part.judgement.validity,
        warm_up: part.judgement.warm_up.as_ref(),
        findings: &part.judgement.findings,
        sequence_hash: format!("{:016x}", part.sequence_hash),
        delays_hash: format!("{:016x}", part.delays_hash),
        rows_hash: part.rows_hash.map(|hash| format!("{hash:016x}")),
        notices: &part.notices,
    }
}
