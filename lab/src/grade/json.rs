//! The grading as one JSON document. Times are nanoseconds and say so in their names; keys are
//! added, never renamed, within one schema version.

use serde::Serialize;

use super::text::Grading;
use super::truth::{Facts, Source};
use super::{Graded, Tool};
use crate::check::Spread;
use crate::check::score::Score;
use crate::noise::Machine;
use crate::subject::Reported;
use crate::subject::process::End;
use crate::truth::{Quantile, Sorted};
use crate::verdict::{Finding, Verdict};

use super::run::ToolFloor;

/// Version of the document's form.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    command: &'a str,
    machine: &'a Machine,
    tools: &'a [Tool],
    scenarios: Vec<Scenario<'a>>,
}

#[derive(Serialize)]
struct Scenario<'a> {
    name: &'a str,
    about: &'a str,
    server: &'a str,
    tools: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    tool: &'static str,
    verdict: Option<Verdict>,
    sentence: &'a str,
    command: &'a str,
    end: Option<Ending>,
    elapsed_ns: u64,
    attempts: u32,
    load: Option<Load>,
    floor: Option<ToolFloor>,
    truth: Option<Truth>,
    reported: Option<&'a Reported>,
    scores: &'a [Score],
    findings: &'a [Finding],
}

/// How a process ended.
#[derive(Serialize)]
struct Ending {
    how: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i32>,
}

#[derive(Serialize)]
struct Load {
    connections: u32,
    depth: u32,
    rate_per_second: Option<f64>,
}

#[derive(Serialize)]
struct Truth {
    source: Source,
    due: u64,
    read: u64,
    answered: u64,
    rate_per_second: Option<f64>,
    /// Whether a tool without a rate is held against a timetable.
    borrowed: bool,
    times: Quantiles,
    #[serde(skip_serializing_if = "Option::is_none")]
    times_without_limits: Option<Quantiles>,
    sojourn: Quantiles,
    injection_error: Spread,
}

#[derive(Serialize)]
struct Quantiles {
    samples: u64,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    max_ns: u64,
}

impl From<&Sorted> for Quantiles {
    fn from(sorted: &Sorted) -> Self {
        let [p50_ns, p90_ns, p99_ns, p999_ns] = Quantile::JUDGED.map(|q| sorted.quantile(q));
        Self {
            samples: sorted.len(),
            p50_ns,
            p90_ns,
            p99_ns,
            p999_ns,
            max_ns: sorted.max(),
        }
    }
}

/// The document.
///
/// # Errors
/// Never in practice: every value has a form in JSON.
pub fn render(grading: &Grading) -> serde_json::Result<String> {
    let document = Document {
        schema: "kvlab-grade",
        schema_version: SCHEMA_VERSION,
        command: &grading.command,
        machine: &grading.machine,
        tools: &grading.tools,
        scenarios: grading
            .sheets
            .iter()
            .map(|sheet| Scenario {
                name: &sheet.name,
                about: &sheet.about,
                server: &sheet.server,
                tools: sheet.rows.iter().map(row).collect(),
            })
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

fn row(graded: &Graded) -> Row<'_> {
    Row {
        tool: graded.tool,
        verdict: graded.verdict,
        sentence: &graded.sentence,
        command: &graded.command,
        end: graded.end.map(ending),
        elapsed_ns: graded.elapsed_ns,
        attempts: graded.attempts,
        load: graded.shape.map(|shape| Load {
            connections: shape.connections,
            depth: shape.depth,
            rate_per_second: shape.rate,
        }),
        floor: graded.floor,
        truth: graded.facts.as_ref().map(truth),
        reported: graded.reported.as_ref(),
        scores: &graded.scores,
        findings: &graded.findings,
    }
}

fn ending(end: End) -> Ending {
    let (how, code) = match end {
        End::Exited(code) => ("exited", Some(code)),
        End::Signalled(signal) => ("signal", Some(signal)),
        End::Hung => ("hung", None),
        End::Interrupted => ("interrupted", None),
    };
    Ending { how, code }
}

fn truth(facts: &Facts) -> Truth {
    let seen = &facts.seen;
    Truth {
        source: facts.source,
        due: facts.due,
        read: seen.read,
        answered: seen.answered,
        rate_per_second: seen.rate(),
        borrowed: facts.is_borrowed,
        times: Quantiles::from(&facts.times),
        times_without_limits: facts.unlimited.as_ref().map(Quantiles::from),
        sojourn: Quantiles::from(&seen.sojourn),
        injection_error: seen.injection,
    }
}
