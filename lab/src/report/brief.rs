//! The short report for people, for scenarios with many clients: a line for each, and in full only
//! those that did not pass.

use std::fmt::{self, Write};

use super::{PartReport, Report, text};
use crate::runner::Tier;
use crate::truth::Quantile;
use crate::verdict::Verdict;

/// The text of a report in a line for each client.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(report, &mut out);
    out
}

fn write_report(report: &Report, out: &mut String) -> fmt::Result {
    let not_passed: Vec<PartReport> = report
        .parts
        .iter()
        .filter(|part| part.judgement.verdict != Verdict::Pass)
        .cloned()
        .collect();
    if !not_passed.is_empty() {
        let full = Report {
            parts: not_passed,
            ..report.clone()
        };
        writeln!(out, "{}", text::render(&full))?;
    }
    write!(out, "scenario {}", report.name)?;
    if !report.description.is_empty() {
        write!(out, ": {}", report.description)?;
    }
    writeln!(out)?;
    for part in &report.parts {
        write_part(part, report.tier, out)?;
    }
    let passed = report.parts.len() - report.parts.iter().filter(is_not_passed).count();
    writeln!(
        out,
        "{}: {}, {passed} of {} clients passed",
        report.name,
        report.verdict,
        report.parts.len()
    )
}

fn is_not_passed(part: &&PartReport) -> bool {
    part.judgement.verdict != Verdict::Pass
}

fn write_part(part: &PartReport, tier: Tier, out: &mut String) -> fmt::Result {
    let requests = &part.judgement.accounting;
    write!(
        out,
        "  {:<4}  {}; {} due, {} answered",
        part.judgement.verdict, part.name, requests.due, requests.answered
    )?;
    match (tier, part.rows_hash) {
        (Tier::Virtual { .. }, Some(hash)) => write!(out, ", rows {hash:016x}")?,
        _ => write_errors(part, out)?,
    }
    if part.attempts > 1 {
        write!(out, "; after {} void runs", part.attempts - 1)?;
    }
    writeln!(out)
}

/// The errors at the quantiles people look at first.
fn write_errors(part: &PartReport, out: &mut String) -> fmt::Result {
    for figure in &part.judgement.figures {
        let name = figure.figure.as_str();
        write!(out, "; {name}")?;
        for row in &figure.quantiles {
            if [Quantile::P50, Quantile::P99].contains(&row.quantile) {
                let micros = row.error_ns / 1_000;
                write!(out, " {} {micros:+} us", row.quantile)?;
            }
        }
    }
    Ok(())
}
