//! A comparison as text and as JSON.

use std::fmt;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::{Compared, Comparison, FEWEST_RUNS, Outcome, Unit};

/// Version of the document's form.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

impl Comparison {
    /// The comparison as one JSON document, pretty-printed.
    ///
    /// # Errors
    /// Never in practice: every value has a form in JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string_pretty(&Document {
            schema: "kvlab-compare",
            schema_version: SCHEMA_VERSION,
            comparison: self,
        })?;
        text.push('\n');
        Ok(text)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "A  {} ({} runs)", self.a.name, self.a.runs)?;
        writeln!(f, "B  {} ({} runs)", self.b.name, self.b.runs)?;
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        table.set_header(["figure", "A", "B", "B / A", "95 % interval", "p", "verdict"]);
        for figure in &self.figures {
            table.add_row(row(figure));
        }
        for place in 1..=5 {
            if let Some(column) = table.column_mut(place) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        writeln!(f, "{table}")?;
        writeln!(
            f,
            "values: medians over runs; interval: bootstrap over runs; p: Mann-Whitney, corrected \
             for the number of figures"
        )?;
        for notice in &self.notices {
            writeln!(f, "note: {notice}")?;
        }
        Ok(())
    }
}

fn row(figure: &Compared) -> [String; 7] {
    let value = |value: Option<f64>| match (value, figure.unit) {
        (Some(ns), Unit::Nanoseconds) => format!("{:.3} ms", ns / 1e6),
        (Some(rate), Unit::PerSecond) => format!("{rate:.1} /s"),
        (None, _) => "n/a".to_owned(),
    };
    let (ratio, interval) = match figure.ratio {
        Some(ratio) => (
            format!("{:.4}", ratio.value),
            format!("{:.4} to {:.4}", ratio.low, ratio.high),
        ),
        None => ("n/a".to_owned(), "n/a".to_owned()),
    };
    [
        figure.figure.clone(),
        value(figure.a_median),
        value(figure.b_median),
        ratio,
        interval,
        figure
            .p_corrected
            .map_or_else(|| "n/a".to_owned(), |p| format!("{p:.4}")),
        verdict(figure),
    ]
}

fn verdict(figure: &Compared) -> String {
    let percent = |direction: &str| {
        let ratio = figure.ratio.map_or(1.0, |ratio| ratio.value);
        format!("B {:.1} % {direction}", (ratio - 1.0).abs() * 100.0)
    };
    match figure.outcome {
        Outcome::Higher => percent("higher"),
        Outcome::Lower => percent("lower"),
        Outcome::NoDifference => "no difference shown".to_owned(),
        Outcome::TooFewRuns => format!("none: needs {FEWEST_RUNS} runs each"),
        Outcome::NotAvailable => "n/a: not in every run".to_owned(),
    }
}
