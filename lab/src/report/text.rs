//! The report for people: for each client a verdict table per figure, what became of the requests,
//! how well the machine carried it, and every finding that does not hold.

use std::fmt::{self, Write};

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};

use super::{LoadReport, PartReport, Report, scores};
use crate::check::{AspectRow, Figure, FigureKind, QuantileRow, Spread, TruthSource, WarmUp};
use crate::environment::Machine;
use crate::runner::Tier;
use crate::verdict::Verdict;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render(self))
    }
}

/// The text of a report.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(report, &mut out);
    out
}

fn write_report(report: &Report, out: &mut String) -> fmt::Result {
    write!(out, "scenario {}", report.name)?;
    if !report.description.is_empty() {
        write!(out, ": {}", report.description)?;
    }
    writeln!(out)?;
    // Where a sweep varies the server, each client names its own.
    if report.parts.iter().all(|part| part.server.is_none()) {
        write_server(&report.latency, report.freeze.as_deref(), report.seed, out)?;
    }
    if let Tier::Virtual { leg_ns } = report.tier {
        writeln!(
            out,
            "virtual time: {} each way through the network, no machine in between",
            time(leg_ns)
        )?;
    }
    if let Some(machine) = &report.machine {
        write_environment(machine, out)?;
    }
    for part in &report.parts {
        writeln!(out)?;
        write_part(part, report.tier, out)?;
    }
    writeln!(out, "\nverdict: {}", report.verdict)
}

fn write_environment(machine: &Machine, out: &mut String) -> fmt::Result {
    let optional = |fact: &Option<String>| {
        fact.as_ref()
            .map_or_else(String::new, |fact| format!(", {fact}"))
    };
    writeln!(
        out,
        "machine: {} cores{}, {}, clock {}, load {}{}",
        machine.cores,
        optional(&machine.processor),
        machine.kernel,
        machine.clock_source,
        machine.load,
        machine
            .governor
            .as_ref()
            .map_or_else(String::new, |governor| format!(", governor {governor}")),
    )?;
    writeln!(
        out,
        "         a sleeping thread wakes {} late (p90 {}, p99 {})",
        time(machine.wake_up_p50_ns),
        time(machine.wake_up_p90_ns),
        time(machine.wake_up_p99_ns),
    )?;
    let priority = &machine.priority;
    let nice = |nice: Option<i32>| nice.map_or_else(|| "?".to_owned(), |nice| nice.to_string());
    write!(
        out,
        "priority: {}, nice {}",
        priority.policy.as_deref().unwrap_or("?"),
        nice(priority.nice)
    )?;
    if let Some(group) = priority.autogroup_nice {
        write!(out, ", of the session {group}")?;
    }
    writeln!(out, "; kvlab {}, {}", machine.version, machine.compiler)
}

fn write_server(
    latency: &[String],
    freeze: Option<&str>,
    seed: u64,
    out: &mut String,
) -> fmt::Result {
    let latency = if latency.is_empty() {
        "none".to_owned()
    } else {
        latency.join(", ")
    };
    write!(out, "server: latency {latency}")?;
    if let Some(freeze) = freeze {
        write!(out, ", freeze {freeze}")?;
    }
    writeln!(out, ", seed {seed}")
}

fn write_part(part: &PartReport, tier: Tier, out: &mut String) -> fmt::Result {
    writeln!(out, "== {}: {}", part.name, describe(&part.load))?;
    if let Some(server) = &part.server {
        write_server(&server.latency, server.freeze.as_deref(), server.seed, out)?;
    }
    for figure in &part.judgement.figures {
        write_figure(figure, tier, out)?;
    }
    scores::write(&part.judgement.scores, out)?;
    let requests = &part.judgement.accounting;
    writeln!(
        out,
        "requests: {} due, {} sent, {} answered, {} accounted for ({} hits, {} misses, {} errors, \
         {} timed out, {} lost, {} not sent)",
        requests.due,
        requests.sent,
        requests.answered,
        requests.accounted,
        requests.hits,
        requests.misses,
        requests.errors,
        requests.timeouts,
        requests.lost,
        requests.not_sent,
    )?;
    write_machine(part, tier, out)?;
    if let Some(warm_up) = &part.judgement.warm_up {
        write_warm_up(warm_up, out)?;
    }
    for notice in &part.notices {
        writeln!(out, "notice: {notice}")?;
    }
    for finding in &part.judgement.findings {
        if finding.verdict == Verdict::Pass {
            continue;
        }
        writeln!(
            out,
            "{}: {}: {}",
            finding.verdict, finding.name, finding.text
        )?;
        for example in &finding.examples {
            writeln!(out, "    {example}")?;
        }
    }
    let passed = part
        .judgement
        .findings
        .iter()
        .filter(|found| found.verdict == Verdict::Pass);
    let names: Vec<&str> = passed.map(|finding| finding.name).collect();
    writeln!(out, "checks passed: {}", names.join(", "))?;
    write!(
        out,
        "hashes: operations {:016x}, delays {:016x}",
        part.sequence_hash, part.delays_hash
    )?;
    if let Some(hash) = part.rows_hash {
        write!(out, ", rows {hash:016x}")?;
    }
    writeln!(out)?;
    if !part.runs.is_empty() {
        let verdicts: Vec<String> = part.runs.iter().map(ToString::to_string).collect();
        writeln!(
            out,
            "{} runs: {}; the last of the worst is shown",
            part.runs.len(),
            verdicts.join(", ")
        )?;
    }
    write!(out, "{}: {}", part.name, part.judgement.verdict)?;
    if part.attempts > 1 {
        write!(out, ", after {} void runs", part.attempts - 1)?;
    }
    writeln!(out)
}

fn write_machine(part: &PartReport, tier: Tier, out: &mut String) -> fmt::Result {
    let measured = &part.judgement.validity;
    if let Some(lag) = &measured.lag {
        writeln!(out, "lag (send - intended): {}", spread(lag))?;
    }
    if measured.order_delay.max_ns > 0 {
        writeln!(
            out,
            "order delay and freezes: {}",
            spread(&measured.order_delay)
        )?;
    }
    if tier != Tier::Real {
        return Ok(());
    }
    writeln!(
        out,
        "injection error: {} before the write; p50 {}, p90 {} after it",
        spread(&measured.injection_error),
        time(measured.injection_error_after.p50_ns),
        time(measured.injection_error_after.p90_ns),
    )?;
    if let Some(lateness) = &measured.lateness {
        writeln!(out, "lateness of the sends: {}", spread(lateness))?;
    }
    write!(
        out,
        "client - server per request: {}",
        spread(&measured.pair_error)
    )?;
    if let Some(floor) = measured.floor_ns {
        write!(
            out,
            "; floor {} +-{} (its p90 {}, p99 {} above)",
            time(floor),
            time(measured.floor_drift_ns.unwrap_or(0)),
            time(measured.floor_spread_p90_ns.unwrap_or(0)),
            time(measured.floor_spread_p99_ns.unwrap_or(0)),
        )?;
    }
    if let Some(floor) = measured.floor_in_step_ns {
        write!(out, "; {} in step", time(floor))?;
    }
    writeln!(out)?;
    let shares: Vec<String> = measured
        .cpu_share
        .iter()
        .map(|share| format!("{:.0} %", share * 100.0))
        .collect();
    write!(out, "processor: client threads {}", shares.join(", "))?;
    writeln!(out, "; {:.0} answers per second", part.rate_per_second)?;
    if let (Some(busy), Some(steal)) = (measured.busy_share, measured.steal_share) {
        write!(
            out,
            "machine {:.0} % busy, {:.0} % by others, {:.1} % stolen, {:.0} context switches per second",
            busy * 100.0,
            measured.others_share.unwrap_or(0.0) * 100.0,
            steal * 100.0,
            measured.switches_per_second.unwrap_or(0.0),
        )?;
        if let Some(pressure) = measured.pressure_share {
            write!(
                out,
                ", a thread waited for a core {:.0} % of the time",
                pressure * 100.0
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_warm_up(warm_up: &WarmUp, out: &mut String) -> fmt::Result {
    write!(
        out,
        "warm-up: {} by the scenario; steady after {} by the mean, {} by p99 of 100 ms windows (MSER-5)",
        time(warm_up.configured_ns),
        time(warm_up.steady_mean_ns),
        time(warm_up.steady_p99_ns),
    )?;
    if !warm_up.is_steady {
        write!(out, "; not settled in the first half of the run")?;
    }
    if warm_up.left_out_ns > 0 {
        write!(
            out,
            "; {} more left out of the figures",
            time(warm_up.left_out_ns)
        )?;
    }
    writeln!(out)
}

pub(super) fn describe(load: &LoadReport) -> String {
    let model = match (load.rate_per_second, load.arrivals) {
        (Some(rate), Some(arrivals)) => {
            format!("open loop, {rate} per second, {arrivals} arrivals")
        }
        _ => "closed loop".to_owned(),
    };
    format!(
        "{}, {model}, {} connections x {} ({}), {} thread{}, seed {}",
        load.protocol,
        load.connections,
        load.pipeline,
        load.pipeline_mode,
        load.threads,
        if load.threads == 1 { "" } else { "s" },
        load.seed,
    )
}

fn write_figure(figure: &Figure, tier: Tier, out: &mut String) -> fmt::Result {
    let (name, truth) = match (figure.figure, figure.truth) {
        (FigureKind::Service, _) => ("service time (from the send)", "true sojourn"),
        (FigureKind::Response, TruthSource::Timetable) => (
            "response time (from the intended moment)",
            "by the timetable",
        ),
        (FigureKind::Response, _) => ("response time (from the intended moment)", "by the stamps"),
        (FigureKind::Network, _) => (
            "network time (from the send to the kernel's stamp)",
            "true sojourn",
        ),
    };
    let beyond = match (figure.figure, tier) {
        (FigureKind::Service, Tier::Real) => "; the error is reported - true - floor",
        (FigureKind::Service, Tier::Virtual { .. }) => "; the error is reported - true - network",
        (FigureKind::Response, Tier::Real) => {
            "; the error is reported - true, - floor outside of a queue or freeze"
        }
        (FigureKind::Response | FigureKind::Network, _) => "; the error is reported - true",
    };
    writeln!(out, "{name}, {} requests{beyond}", figure.samples)?;
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header([
        "quantile",
        "injected",
        truth,
        "reported",
        "error",
        "tolerance",
        "verdict",
    ]);
    for row in &figure.quantiles {
        table.add_row(cells(row));
    }
    for row in &figure.aspects {
        table.add_row(aspect_cells(row));
    }
    for column in table.column_iter_mut().skip(1).take(5) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{table}")
}

fn aspect_cells(row: &AspectRow) -> [String; 7] {
    [
        row.of.to_string(),
        "-".to_owned(),
        time(row.true_ns),
        time(row.reported_ns),
        signed(row.error_ns),
        tolerance(row.tolerance_ns),
        verdict(row.verdict, row.reason.as_deref()),
    ]
}

fn tolerance(tolerance_ns: Option<u64>) -> String {
    tolerance_ns.map_or_else(|| "-".to_owned(), |ns| format!("+-{}", time(ns)))
}

fn verdict(verdict: Option<Verdict>, reason: Option<&str>) -> String {
    match (verdict, reason) {
        (Some(verdict), _) => verdict.to_string(),
        (None, Some(reason)) => format!("n/a: {reason}"),
        (None, None) => "n/a".to_owned(),
    }
}

fn cells(row: &QuantileRow) -> [String; 7] {
    [
        row.quantile.to_string(),
        time(row.injected_ns),
        time(row.true_ns),
        time(row.reported_ns),
        signed(row.error_ns),
        tolerance(row.tolerance_ns),
        verdict(row.verdict, row.reason.as_deref()),
    ]
}

fn spread(spread: &Spread) -> String {
    format!(
        "p50 {}, p90 {}, p99 {}, max {}",
        time(spread.p50_ns),
        time(spread.p90_ns),
        time(spread.p99_ns),
        time(spread.max_ns)
    )
}

/// Milliseconds with three decimals from a tenth of a millisecond on, else microseconds with one.
pub(super) fn time(ns: u64) -> String {
    let mut text = String::new();
    // Integer arithmetic, so that the same number prints alike everywhere.
    let _ = if ns >= 100_000 {
        let micros = ns.saturating_add(500) / 1000;
        write!(text, "{}.{:03} ms", micros / 1000, micros % 1000)
    } else {
        let tenths = ns.saturating_add(50) / 100;
        write!(text, "{}.{} us", tenths / 10, tenths % 10)
    };
    text
}

fn signed(ns: i64) -> String {
    let sign = match ns {
        0 => return "0".to_owned(),
        ..0 => '-',
        _ => '+',
    };
    format!("{sign}{}", time(ns.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable_and_rounded() {
        for (ns, text) in [
            (0, "0.0 us"),
            (40, "0.0 us"),
            (12_340, "12.3 us"),
            (99_949, "99.9 us"),
            (100_000, "0.100 ms"),
            (1_000_499, "1.000 ms"),
            (131_925_500, "131.926 ms"),
        ] {
            assert_eq!(time(ns), text);
        }
        assert_eq!(
            (signed(0), signed(-1_500)),
            ("0".to_owned(), "-1.5 us".to_owned())
        );
        assert_eq!(signed(2_000_000), "+2.000 ms");
    }
}
