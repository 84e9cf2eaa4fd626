//! What one client came to.

use kvlab_bench_client::report::html::chart::Chart;
use kvlab_bench_client::report::html::deviation::{Deviation, Deviations};
use kvlab_bench_client::report::html::page::Tone;
use maud::{Markup, html};

use super::{curves, server, tables, tone, verdict};
use crate::check::Figure;
use crate::report::PartReport;
use crate::report::text::describe;
use crate::runner::Tier;
use crate::verdict::{Finding, Verdict};

/// The section of one client; `folded` leaves its title alone to be seen at first.
pub(super) fn section(part: &PartReport, tier: Tier, id: &str, folded: bool) -> Markup {
    html! {
        section.part id=(id) aria-labelledby={ (id) "-title" } {
            div.title {
                h2 id={ (id) "-title" } { (part.name) }
                (verdict(part.judgement.verdict))
            }
            p.lead {
                (describe(&part.load))
                @if part.attempts > 1 { "; after " (part.attempts - 1) " void runs" }
                @if !part.runs.is_empty() { (repeated(&part.runs)) }
            }
            @if folded {
                details {
                    summary { "Curves and tables" }
                    (body(part, tier, id))
                }
            } @else {
                (body(part, tier, id))
            }
        }
    }
}

fn repeated(runs: &[Verdict]) -> String {
    let verdicts: Vec<String> = runs.iter().map(ToString::to_string).collect();
    format!(
        "; {} runs: {}; the last of the worst is shown",
        runs.len(),
        verdicts.join(", ")
    )
}

fn body(part: &PartReport, tier: Tier, id: &str) -> Markup {
    let judgement = &part.judgement;
    let open = part.load.rate_per_second.is_some();
    html! {
        @if let Some(own) = &part.server {
            section.panel {
                h3 { "Server" }
                (server(&own.latency, own.freeze.as_deref(), own.seed, tier))
            }
        }
        @if !part.notices.is_empty() {
            ul.notices {
                @for notice in &part.notices { li { (notice) } }
            }
        }
        (findings(&judgement.findings, judgement.verdict))
        div.pair {
            (chart(curves::percentiles(&part.series.percentiles, id)))
            (chart(curves::over_time(&part.series, open, id)))
        }
        (errors(&judgement.figures))
        @for figure in &judgement.figures {
            (tables::figure(figure, tier))
        }
        (tables::scores(&judgement.scores))
        (tables::accounting(part))
        (tables::machine(part, tier))
    }
}

fn chart(chart: Option<Chart>) -> Markup {
    html! { @if let Some(chart) = chart { section.panel { (chart) } } }
}

/// What does not hold, in full; what holds, by name.
fn findings(all: &[Finding], whole: Verdict) -> Markup {
    let (good, bad): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|finding| finding.verdict == Verdict::Pass);
    let names: Vec<&str> = good.iter().map(|finding| finding.name).collect();
    html! {
        section.panel {
            h3 { "Checks" }
            @if whole == Verdict::Void {
                p.checks {
                    "Void: the machine was too noisy for the claim, and what is out of tolerance \
                     says nothing."
                }
            }
            @if !bad.is_empty() {
                ul.findings {
                    @for finding in bad {
                        li {
                            (verdict(finding.verdict))
                            div { b { (finding.name) } ": " (finding.text) }
                            @if !finding.examples.is_empty() {
                                ul { @for example in &finding.examples { li { (example) } } }
                            }
                        }
                    }
                }
            }
            @if !names.is_empty() {
                p.checks { (names.len()) " checks hold: " (names.join(", ")) "." }
            }
        }
    }
}

fn scale() -> Markup {
    html! {
        div.scale aria-hidden="true" {
            span {}
            svg width="100%" height="18" {
                text x="20%" y="13" text-anchor="middle" { "\u{2212}tolerance" }
                text x="50%" y="13" text-anchor="middle" { "0" }
                text x="80%" y="13" text-anchor="middle" { "+tolerance" }
            }
            span {}
            span {}
        }
    }
}

/// The errors that are judged.
fn errors(figures: &[Figure]) -> Markup {
    let deviations = deviations(figures);
    html! {
        @if !deviations.rows.is_empty() {
            section.panel {
                h3 { "Errors within their tolerances" }
                (scale())
                (deviations)
            }
        }
    }
}

fn deviations(figures: &[Figure]) -> Deviations {
    let rows = figures.iter().flat_map(|figure| {
        let name = figure.figure.as_str();
        let quantiles = figure.quantiles.iter().map(move |row| {
            let of = row.quantile.to_string();
            deviation(name, &of, row.error_ns, row.tolerance_ns, row.verdict)
        });
        let aspects = figure.aspects.iter().map(move |row| {
            let of = row.of.to_string();
            deviation(name, &of, row.error_ns, row.tolerance_ns, row.verdict)
        });
        quantiles.chain(aspects)
    });
    Deviations {
        rows: rows.filter(|row| row.tolerance_ns.is_some()).collect(),
    }
}

fn deviation(
    figure: &str,
    of: &str,
    error_ns: i64,
    tolerance_ns: Option<u64>,
    found: Option<Verdict>,
) -> Deviation {
    Deviation {
        name: format!("{figure} {of}"),
        error_ns,
        tolerance_ns,
        verdict: match found {
            Some(verdict) => (tone(verdict), verdict.to_string()),
            None => (Tone::Plain, "n/a".to_owned()),
        },
    }
}
