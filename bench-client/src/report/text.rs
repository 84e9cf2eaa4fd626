//! The summary for people.
//!
//! Three parts: what was run, two tables (how the requests of each class ended, and how long the
//! answered ones took), and a list of facts that say how far the tables can be trusted.

use std::fmt;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use super::connections::spread;
use super::number::{bytes_per_second, counted, micros_each, ms, ms_or_na, percent, rate, seconds};
use super::quantile::QUANTILES;
use super::table::Table;
use super::{Head, Report, all_classes, certificate, connections, nanos, notice};
use crate::record::{ClassTally, ErrorCounts, Interval, Summary};
use crate::settings::{Arrivals, Load, PipelineMode};

/// Writes the summary at the end of a run.
pub struct Text<'a> {
    out: &'a mut dyn Write,
    head: Head,
}

impl<'a> Text<'a> {
    /// Writes to `out`.
    pub fn new(out: &'a mut dyn Write, head: Head) -> Self {
        Self { out, head }
    }
}

impl Report for Text<'_> {
    fn interval(&mut self, _interval: &Interval) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, summary: &Summary) -> io::Result<()> {
        let text = render(&self.head, summary);
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").finish_non_exhaustive()
    }
}

fn render(head: &Head, summary: &Summary) -> String {
    let mut text = String::new();
    for part in [
        run_part(head, summary),
        outcome_table(summary).to_string(),
        latency_part(summary),
        certificate::page(summary.certificate.as_ref()),
        facts(head, summary),
        notes(head, summary),
    ] {
        if !part.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&part);
        }
    }
    text
}

/// What was run.
fn run_part(head: &Head, summary: &Summary) -> String {
    let model = match summary.load {
        Load::Closed => "closed loop: a reply frees the slot of the next request".to_owned(),
        Load::Open { rate, .. } => format!(
            "open loop: {rate} requests due per second, {} arrivals",
            arrivals(&summary.load)
        ),
    };
    let mode = match summary.pipeline.mode {
        PipelineMode::Window => "window",
        PipelineMode::Batch => "batch",
    };
    let mut mark = connections::mark(summary).map_or_else(String::new, |short| {
        format!(
            "{}: the others were not up when the load began\n",
            short.to_uppercase()
        )
    });
    if summary.is_saturated() {
        mark += "CLIENT SATURATED: the figures below are partly its own, see the notes\n";
    }
    let mut text = format!("{}\n{model}\n", head.target);
    let _ = writeln!(
        text,
        "{}, {}, pipeline {} ({mode}), seed {}",
        counted(u64::from(head.settings.threads.get()), "thread"),
        counted(summary.connections_wanted, "connection"),
        summary.pipeline.depth,
        head.settings.seed,
    );
    let how = if summary.interrupted {
        "interrupted after"
    } else {
        "measured"
    };
    let _ = write!(text, "{how} {} s", seconds(nanos(summary.elapsed())));
    match summary.warmup.total() {
        0 => text.push('\n'),
        warmup => {
            let _ = writeln!(text, ", after a warm-up of {}", counted(warmup, "request"));
        }
    }
    text + &mark
}

/// The law of the arrivals.
pub(super) fn arrivals(load: &Load) -> &'static str {
    match load {
        Load::Closed => "no",
        Load::Open {
            arrivals: Arrivals::Uniform,
            ..
        } => "uniform",
        Load::Open {
            arrivals: Arrivals::Poisson,
            ..
        } => "Poisson",
    }
}

/// The classes of a summary by name, and all together at the end.
fn rows(summary: &Summary) -> Vec<(&str, ClassTally)> {
    let tallies = summary.tally.classes.iter().cloned();
    let names = summary.classes.iter().map(String::as_str);
    let mut rows: Vec<_> = names.zip(tallies).collect();
    rows.push(("total", all_classes(&summary.tally)));
    rows
}

fn outcome_table(summary: &Summary) -> Table {
    let heading = [
        "class", "due", "rate/s", "hits", "misses", "errors", "timeouts", "lost", "not sent",
    ];
    let mut table = Table::new(1, &heading);
    let elapsed = summary.elapsed();
    for (name, class) in rows(summary) {
        let outcomes = class.outcomes;
        let mut row = vec![
            name.to_owned(),
            outcomes.total().to_string(),
            format!("{:.1}", rate(outcomes.answered(), elapsed)),
        ];
        row.extend(
            [
                outcomes.hits,
                outcomes.misses,
                outcomes.errors,
                outcomes.timeouts,
                outcomes.lost,
                outcomes.not_sent,
            ]
            .map(|count| count.to_string()),
        );
        table.row(row);
    }
    table
}

fn latency_part(summary: &Summary) -> String {
    let shown = QUANTILES.split_last().map_or(&[][..], |(_, shown)| shown);
    let mut heading = vec!["latency, ms", "", "samples", "mean"];
    heading.extend(shown.iter().map(|quantile| quantile.title));
    heading.push("max");
    let mut table = Table::new(2, &heading);
    for (name, class) in rows(summary) {
        let kinds = [
            ("service", &class.service, true),
            ("response", &class.response, summary.load.is_open()),
            ("network", &class.network, has_stamps(summary)),
        ];
        for (kind, latency, _) in kinds.into_iter().filter(|(_, _, shown)| *shown) {
            let mut row = vec![
                name.to_owned(),
                kind.to_owned(),
                latency.count().to_string(),
            ];
            if latency.is_empty() {
                row.resize(heading.len(), "n/a".to_owned());
            } else {
                row.push(format!("{:.3}", latency.mean_ns() / 1e6));
                let quantiles = shown.iter().map(|quantile| ms_or_na(quantile.of(latency)));
                row.extend(quantiles);
                row.push(ms(latency.max_ns()));
            }
            table.row(row);
        }
    }
    let response = if summary.load.is_open() {
        "; response: from the intended start to the reply"
    } else {
        ""
    };
    let network = if has_stamps(summary) {
        "\nnetwork: from the send to the arrival of the reply in the kernel"
    } else {
        ""
    };
    format!(
        "{table}service: from the send to the reply{response}{network}\n\
         ~ marks a quantile with fewer than 100 samples beyond it, n/a one with fewer than 10\n"
    )
}

/// What says how far the tables can be trusted.
fn facts(head: &Head, summary: &Summary) -> String {
    let tally = &summary.tally;
    let elapsed = summary.elapsed();
    let mut text = String::new();
    fact(&mut text, "requests", &accounting(summary));
    let errors = tally.errors();
    if !errors.is_empty() {
        fact(&mut text, "errors", &error_kinds(&errors));
    }
    let retries: u64 = tally.classes.iter().map(|class| class.retries).sum();
    if retries > 0 {
        fact(&mut text, "retries", &retries.to_string());
    }
    let traffic = format!(
        "{} out, {} in",
        bytes_per_second(rate(tally.bytes_out, elapsed)),
        bytes_per_second(rate(tally.bytes_in, elapsed))
    );
    fact(&mut text, "traffic", &traffic);
    if summary.load.is_open() {
        let lag = format!(
            "{}, from the intended start to the send",
            spread(&tally.lag)
        );
        fact(&mut text, "schedule lag", &lag);
        let late = format!(
            "{}, the part that is the client's own",
            spread(&tally.lateness)
        );
        fact(&mut text, "lateness", &late);
    }
    if has_stamps(summary) {
        let delay = format!(
            "{}, from the arrival in the kernel to the read",
            spread(&tally.read_delay)
        );
        fact(&mut text, "read delay", &delay);
    }
    for (name, value) in connections::facts(summary) {
        fact(&mut text, name, &value);
    }
    if let Some(cpu) = cpu(summary) {
        fact(&mut text, "client CPU", &cpu);
    }
    if !tally.turns.is_empty() {
        fact(&mut text, "loop turns", &spread(&tally.turns));
    }
    fact(&mut text, "host", &host(head));
    fact(
        &mut text,
        "sequence",
        &format!("{:016x}", summary.sequence_hash),
    );
    text
}

/// Whether there are kernel stamps.
fn has_stamps(summary: &Summary) -> bool {
    !summary.tally.read_delay.is_empty()
}

fn fact(text: &mut String, name: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name:<14}{value}");
}

/// Every request due, by the way it ended; says so if the sum does not come out.
fn accounting(summary: &Summary) -> String {
    let outcomes = summary.tally.outcomes();
    let parts = [
        ("hits", outcomes.hits),
        ("misses", outcomes.misses),
        ("errors", outcomes.errors),
        ("timeouts", outcomes.timeouts),
        ("lost", outcomes.lost),
        ("not sent", outcomes.not_sent),
    ]
    .map(|(name, count)| format!("{count} {name}"));
    let sum = parts.join(" + ");
    if outcomes.total() == summary.due {
        format!("{} due = {sum}", summary.due)
    } else {
        format!(
            "{} due, but {} accounted for = {sum}",
            summary.due,
            outcomes.total()
        )
    }
}

/// The kinds of errors, the most frequent first.
fn error_kinds(errors: &ErrorCounts) -> String {
    let mut kinds: Vec<_> = errors.iter().collect();
    kinds.sort_by(|left, right| right.1.cmp(left.1).then(left.0.cmp(right.0)));
    let kinds: Vec<_> = kinds
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    kinds.join(", ")
}

/// Share of a core per thread, and processor time per request; nothing under virtual time.
fn cpu(summary: &Summary) -> Option<String> {
    let shares: Vec<String> = (0..)
        .zip(&summary.threads)
        .filter_map(|(number, thread): (u32, _)| {
            let share = thread.cpu_share?;
            let mut text = format!("thread {number} {}", percent(share));
            if let (Some(cpu), Some(spun)) = (thread.cpu, thread.spun) {
                let spun = share * spun.as_secs_f64() / cpu.as_secs_f64();
                // NaN, when no time was used, is not shown either.
                if spun >= SHOWN_SHARE {
                    let _ = write!(text, " ({} of it waiting)", percent(spun));
                }
            }
            Some(text)
        })
        .collect();
    let used: Duration = summary.threads.iter().filter_map(|thread| thread.cpu).sum();
    let answered = summary.tally.outcomes().answered();
    if shares.is_empty() {
        return None;
    }
    let mut text = shares.join(", ");
    if answered > 0 {
        let _ = write!(text, "; {:.2} us per request", micros_each(used, answered));
    }
    Some(text)
}

fn host(head: &Head) -> String {
    let host = &head.host;
    let cores = u64::try_from(host.cores).unwrap_or(u64::MAX);
    let mut parts = vec![counted(cores, "core")];
    parts.extend(host.processor.clone());
    parts.extend(host.kernel.clone());
    let named = [("clock", &host.clock_source), ("governor", &host.governor)];
    for (name, value) in named {
        parts.extend(value.as_ref().map(|value| format!("{name} {value}")));
    }
    parts.join(", ")
}

fn notes(head: &Head, summary: &Summary) -> String {
    let mut text = String::new();
    let notices = summary.notices.iter().map(notice::sentence);
    for note in notices.chain(head.host.warnings(&head.settings)) {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// Share of a core spent in waiting from which on it is shown.
const SHOWN_SHARE: f64 = 0.005;

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::record::Tally;

    fn finished(head: Head, summary: &Summary) -> String {
        let mut out = Vec::new();
        Text::new(&mut out, head).finish(summary).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn open_loop_is_as_in_the_golden_file() {
        let text = finished(sample::head(), &sample::open_loop());
        assert_eq!(text, include_str!("golden/open_loop.txt"));
    }

    #[test]
    fn closed_loop_is_as_in_the_golden_file() {
        let text = finished(sample::closed_head(), &sample::closed_loop());
        assert_eq!(text, include_str!("golden/closed_loop.txt"));
    }

    #[test]
    fn a_request_that_is_not_accounted_for_shows() {
        let mut summary = sample::open_loop();
        summary.due += 1;
        let text = finished(sample::head(), &summary);
        assert!(
            text.contains("21001 due, but 21000 accounted for = "),
            "{text}"
        );
    }

    #[test]
    fn a_run_without_a_single_answer_has_no_latencies() {
        let mut summary = sample::closed_loop();
        summary.tally = Tally::new(1);
        (summary.first, summary.last, summary.due) = (None, None, 0);
        let text = finished(sample::closed_head(), &summary);
        let line = text.lines().find(|line| line.contains(" service "));
        assert_eq!(
            line.unwrap().split_whitespace().skip(2).collect::<Vec<_>>(),
            ["0", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a"]
        );
    }
}
