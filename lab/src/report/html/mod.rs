//! The report as one self-contained HTML page: for each client the verdict and what speaks against
//! it, percentile curves, latency over time, errors within their tolerances, and every table of the
//! text. The page of a virtual run holds nothing of the machine or the moment.

mod curves;
mod part;
mod tables;

use kvlab_bench_client::report::html::page::{Tone, badge, facts, page};
use kvlab_bench_client::report::html::units;
use maud::{Markup, html};

use super::{PartReport, Report};
use crate::noise::Machine;
use crate::runner::Tier;
use crate::verdict::Verdict;

/// Clients of a page up to which all are shown in full; of more, those that passed are folded away.
const MOST_UNFOLDED: usize = 8;

/// The page of several scenarios.
#[must_use]
pub fn render(reports: &[Report]) -> String {
    let title = match reports {
        [one] => one.name.clone(),
        several => format!("{} scenarios", several.len()),
    };
    let worst = reports.iter().map(|report| report.verdict).max();
    let worst = worst.unwrap_or_default();
    let body = html! {
        header {
            p.kind { "kvlab run" }
            div.title {
                h1 { (title) }
                (verdict(worst))
            }
            @if let [one] = reports {
                @if !one.description.is_empty() {
                    p.lead { (one.description) }
                }
            }
        }
        main {
            @if reports.len() > 1 || reports.iter().any(|report| report.parts.len() > 1) {
                (overview(reports))
            }
            @for (place, report) in reports.iter().enumerate() {
                (scenario(report, place, reports))
            }
        }
        footer {
            p { "Made by kvlab " (env!("CARGO_PKG_VERSION")) ". docs/reports.md says what each part means." }
        }
    };
    page(&format!("{title}: {worst}"), &body)
}

/// A verdict as a badge.
fn verdict(verdict: Verdict) -> Markup {
    badge(tone(verdict), &verdict.to_string())
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Pass => Tone::Good,
        Verdict::Void => Tone::Doubtful,
        Verdict::Fail => Tone::Bad,
    }
}

/// Every client with its verdict, as links.
fn overview(reports: &[Report]) -> Markup {
    html! {
        nav.panel aria-label="Clients" {
            h3 { "Verdicts" }
            ul.findings {
                @for (place, report) in reports.iter().enumerate() {
                    @for (number, part) in report.parts.iter().enumerate() {
                        li {
                            (verdict(part.judgement.verdict))
                            div {
                                a href={ "#" (part_id(place, number)) } {
                                    @if reports.len() > 1 { (report.name) ": " }
                                    (part.name)
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn part_id(scenario: usize, part: usize) -> String {
    format!("s{}-c{}", scenario + 1, part + 1)
}

fn scenario(report: &Report, place: usize, all: &[Report]) -> Markup {
    let parts: usize = all.iter().map(|report| report.parts.len()).sum();
    let folds =
        |part: &PartReport| parts > MOST_UNFOLDED && part.judgement.verdict == Verdict::Pass;
    html! {
        @if all.len() > 1 {
            div.title {
                h2 { (report.name) }
                (verdict(report.verdict))
            }
            @if !report.description.is_empty() {
                p.lead { (report.description) }
            }
        }
        section.panel {
            h3 { "Server" }
            // Where a sweep varies the server, each client names its own.
            @if report.parts.iter().all(|part| part.server.is_none()) {
                (server(&report.latency, report.freeze.as_deref(), report.seed, report.tier))
            } @else {
                (facts([("clock", clock(report.tier))]))
            }
        }
        @for (number, part) in report.parts.iter().enumerate() {
            (part::section(part, report.tier, &part_id(place, number), folds(part)))
        }
        @if let Some(machine) = &report.machine {
            section.panel {
                h3 { "Environment" }
                (environment(machine))
            }
        }
    }
}

fn server(latency: &[String], freeze: Option<&str>, seed: u64, tier: Tier) -> Markup {
    let latency = if latency.is_empty() {
        "none".to_owned()
    } else {
        latency.join(", ")
    };
    let mut list = vec![("injected latency", html! { code { (latency) } })];
    if let Some(freeze) = freeze {
        list.push(("freeze", html! { code { (freeze) } }));
    }
    list.push(("seed", html! { (seed) }));
    list.push(("clock", clock(tier)));
    facts(list)
}

fn clock(tier: Tier) -> Markup {
    match tier {
        Tier::Real => html! { "real time" },
        Tier::Virtual { leg_ns } => {
            html! { "virtual time, " (units::time(leg_ns)) " each way through the network" }
        }
    }
}

fn environment(machine: &Machine) -> Markup {
    let mut list = vec![("kernel", html! { (machine.kernel) })];
    if let Some(processor) = &machine.processor {
        list.push(("processor", html! { (processor) }));
    }
    list.push(("cores", html! { (machine.cores) }));
    list.push(("clock source", html! { (machine.clock_source) }));
    if let Some(governor) = &machine.governor {
        list.push(("frequency governor", html! { (governor) }));
    }
    list.push(("load before the run", html! { (machine.load) }));
    list.push((
        "a sleeping thread wakes late by",
        html! {
            "p50 " (units::time(machine.wake_up_p50_ns))
            ", p90 " (units::time(machine.wake_up_p90_ns))
            ", p99 " (units::time(machine.wake_up_p99_ns))
        },
    ));
    let priority = &machine.priority;
    list.push((
        "priority",
        html! {
            (priority.policy.as_deref().unwrap_or("?"))
            @if let Some(nice) = priority.nice { ", nice " (nice) }
            @if let Some(nice) = priority.autogroup_nice { ", of the session " (nice) }
        },
    ));
    list.push((
        "built from",
        html! { "kvlab " (machine.version) ", " (machine.compiler) },
    ));
    facts(list)
}
