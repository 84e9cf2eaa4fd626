//! The tables of a grading, apart from how they are drawn: one per scenario with the tools as rows,
//! and one over all scenarios with the figure that each scenario is about.

use super::truth::Source;
use super::{Graded, Sheet, words};
use crate::check::score::{Aspect, Score, ScoreName};
use crate::subject::process::End;
use crate::truth::Quantile;
use crate::verdict::Verdict;

/// A table of texts; its first column names the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The titles of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

/// The tools of one scenario: errors of the reported figures, and the verdict.
#[must_use]
pub fn of_sheet(sheet: &Sheet) -> Table {
    let mut head = vec!["tool".to_owned()];
    head.extend(Quantile::JUDGED.iter().map(ToString::to_string));
    head.extend(["mean", "max", "omission", "verdict"].map(str::to_owned));
    let rows = sheet
        .rows
        .iter()
        .map(|graded| {
            let mut row = vec![graded.tool.to_owned()];
            row.extend(Quantile::JUDGED.map(|q| cell(graded.error(q))));
            row.extend([Aspect::Mean, Aspect::Max].map(|of| cell(graded.error_of(of))));
            row.push(cell(graded.score(ScoreName::Omission)));
            row.push(verdict(graded));
            row
        })
        .collect();
    Table { head, rows }
}

/// One row per tool and one column per scenario, with the figure that the scenario is about.
#[must_use]
pub fn of_all(sheets: &[Sheet]) -> Table {
    let mut head = vec!["tool".to_owned()];
    head.extend(sheets.iter().map(|sheet| {
        let title = headline(&sheet.name).1;
        format!("{}: {title}", sheet.name)
    }));
    let mut tools: Vec<&str> = Vec::new();
    for graded in sheets.iter().flat_map(|sheet| &sheet.rows) {
        if !tools.contains(&graded.tool) {
            tools.push(graded.tool);
        }
    }
    let rows = tools.into_iter().map(|tool| {
        let mut row = vec![tool.to_owned()];
        row.extend(sheets.iter().map(|sheet| {
            let graded = sheet.rows.iter().find(|graded| graded.tool == tool);
            graded.map_or_else(String::new, |graded| {
                let figure = cell(headline(&sheet.name).0.of(graded));
                format!("{figure} ({})", verdict(graded))
            })
        }));
        row
    });
    Table {
        rows: rows.collect(),
        head,
    }
}

/// A figure of a tool.
enum Headline {
    At(Quantile),
    Of(Aspect),
    Named(ScoreName),
}

impl Headline {
    fn of(self, graded: &Graded) -> Option<&Score> {
        match self {
            Self::At(q) => graded.error(q),
            Self::Of(aspect) => graded.error_of(aspect),
            Self::Named(name) => graded.score(name),
        }
    }
}

/// The figure that a scenario is about.
fn headline(scenario: &str) -> (Headline, &'static str) {
    match scenario {
        "freeze" => (Headline::At(Quantile::P99), "p99"),
        "bimodal" => (Headline::Of(Aspect::Mean), "mean"),
        "long-freeze" => (Headline::Of(Aspect::Max), "max"),
        "connection-loss" => (Headline::Named(ScoreName::Omission), "omission"),
        _ => (Headline::At(Quantile::P50), "p50"),
    }
}

/// A verdict table of one tool: what is true, what it reports, the error and what is allowed.
#[must_use]
pub fn of_tool(graded: &Graded) -> Table {
    let titles = match graded.facts.as_ref().map(|facts| facts.source) {
        Some(Source::Timetable) => [
            "",
            "timetable",
            "no limits",
            "server",
            "reported",
            "error",
            "allowed",
            "verdict",
        ],
        _ => [
            "", "", "", "server", "reported", "error", "allowed", "verdict",
        ],
    };
    let mut rows = Vec::new();
    for score in &graded.scores {
        rows.push(tool_row(graded, score));
    }
    // Columns that say nothing here are left out.
    let kept = |place: usize| {
        !titles
            .get(place)
            .is_some_and(|title| title.is_empty() && place > 0)
    };
    let pick = |cells: Vec<String>| -> Vec<String> {
        let cells = cells.into_iter().enumerate();
        cells
            .filter_map(|(place, cell)| kept(place).then_some(cell))
            .collect()
    };
    Table {
        head: pick(titles.map(str::to_owned).to_vec()),
        rows: rows.into_iter().map(pick).collect(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean of times, rounded for people"
)]
fn tool_row(graded: &Graded, score: &Score) -> Vec<String> {
    let facts = graded.facts.as_ref();
    let reported = graded.reported.as_ref();
    let ms = |ns: Option<u64>| ns.map_or_else(String::new, |ns| words::milliseconds(ns) + " ms");
    let [truth, unlimited, server, found] = match (score.name, score.quantile, score.of) {
        (ScoreName::ServErr | ScoreName::RespErr, Some(q), _) => [
            ms(facts.and_then(|facts| facts.quantile(q))),
            ms(facts.and_then(|facts| facts.unlimited.as_ref()?.quantile(q))),
            ms(facts.and_then(|facts| facts.seen.sojourn.quantile(q))),
            reported
                .and_then(|reported| reported.quantiles.get(&q))
                .map_or_else(String::new, |reading| {
                    match reading.low_ns == reading.high_ns {
                        true => ms(Some(reading.high_ns)),
                        false => format!(
                            "{} to {} ms",
                            words::milliseconds(reading.low_ns),
                            words::milliseconds(reading.high_ns)
                        ),
                    }
                }),
        ],
        (ScoreName::ServErr | ScoreName::RespErr, None, Some(Aspect::Mean)) => [
            ms(facts.and_then(|facts| facts.mean()).map(|ns| ns as u64)),
            String::new(),
            String::new(),
            ms(reported
                .and_then(|reported| reported.mean_ns)
                .map(|ns| ns as u64)),
        ],
        (ScoreName::ServErr | ScoreName::RespErr, None, Some(Aspect::Max)) => [
            ms(facts.map(|facts| facts.times.max())),
            ms(facts.and_then(|facts| Some(facts.unlimited.as_ref()?.max()))),
            ms(facts.map(|facts| facts.seen.sojourn.max())),
            ms(reported.and_then(|reported| reported.max_ns)),
        ],
        (ScoreName::Omission, ..) => [
            facts.map_or_else(String::new, |facts| facts.due.to_string()),
            String::new(),
            facts.map_or_else(String::new, |facts| facts.seen.read.to_string()),
            reported
                .and_then(|reported| reported.count)
                .map_or_else(String::new, |count| count.to_string()),
        ],
        (ScoreName::RateErr, ..) => {
            let rate =
                |rate: Option<f64>| rate.map_or_else(String::new, |rate| format!("{rate:.1}/s"));
            [
                rate(graded.shape.and_then(|shape| shape.rate)),
                String::new(),
                rate(facts.and_then(|facts| facts.seen.rate())),
                rate(reported.and_then(|reported| reported.rate_per_second)),
            ]
        }
        _ => Default::default(),
    };
    let mark = match (score.verdict, &score.reason) {
        (Some(verdict), _) => verdict.to_string(),
        (None, Some(reason)) => reason.clone(),
        (None, None) => String::new(),
    };
    vec![
        score.to_string(),
        truth,
        unlimited,
        server,
        found,
        cell(Some(score)),
        score.limit.map_or_else(String::new, words::percent),
        mark,
    ]
}

/// The value of a figure, or `n/a`.
fn cell(score: Option<&Score>) -> String {
    let value = score.and_then(|score| Some((score, score.value?)));
    match value {
        Some((score, value)) if score.name == ScoreName::Omission => words::percent(value),
        Some((_, value)) if value > 0.0 => format!("+{}", words::percent(value)),
        Some((_, value)) => words::percent(value),
        None => "n/a".to_owned(),
    }
}

/// The verdict, or how a process ended that has no other.
fn verdict(graded: &Graded) -> String {
    match (graded.end, graded.verdict) {
        (Some(End::Hung), _) => "hung".to_owned(),
        (Some(End::Exited(code)), Some(Verdict::Fail)) if code != 0 => format!("died ({code})"),
        (Some(End::Signalled(signal)), _) => format!("died (signal {signal})"),
        (Some(End::Interrupted), _) => "interrupted".to_owned(),
        (_, Some(verdict)) => verdict.to_string(),
        (_, None) => "not run".to_owned(),
    }
}
