//! What merged logs say: text, JSON, and a log again.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use super::Merged;

/// Version of the document's form.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    files: &'a [String],
    tags: BTreeMap<&'a str, Figures>,
    notices: &'a [String],
}

/// The figures of one histogram, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figures {
    samples: u64,
    mean_ns: f64,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    p9999_ns: Option<u64>,
    max_ns: u64,
}

impl Figures {
    fn of(histogram: &Histogram<u64>, unit_ns: u64) -> Self {
        // As in every report: a quantile that fewer than ten samples lie beyond is none.
        let at = |q: f64, one_in: u64| {
            let supported = histogram.len() / one_in >= 10;
            supported.then(|| histogram.value_at_quantile(q).saturating_mul(unit_ns))
        };
        #[expect(clippy::cast_precision_loss, reason = "a thousand or a million")]
        let unit = unit_ns as f64;
        Self {
            samples: histogram.len(),
            mean_ns: histogram.mean() * unit,
            p50_ns: at(0.5, 2),
            p90_ns: at(0.9, 10),
            p99_ns: at(0.99, 100),
            p999_ns: at(0.999, 1_000),
            p9999_ns: at(0.9999, 10_000),
            max_ns: histogram.max().saturating_mul(unit_ns),
        }
    }
}

impl Merged {
    fn figures(&self) -> impl Iterator<Item = (&str, Figures)> {
        let tags = self.tags.iter();
        tags.map(|(tag, histogram)| (tag.as_str(), Figures::of(histogram, self.unit_ns)))
    }

    /// The sums as one JSON document, pretty-printed.
    ///
    /// # Errors
    /// Never in practice: every value has a form in JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string_pretty(&Document {
            schema: "kvlab-merge",
            schema_version: SCHEMA_VERSION,
            files: &self.files,
            tags: self.figures().collect(),
            notices: &self.notices,
        })?;
        text.push('\n');
        Ok(text)
    }

    /// Writes the sums as an interval log: one line for each tag, begin and length. It has no start
    /// time, for the logs had several.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write_log(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "#[kvlab merge of {}]", self.files.join(" "))?;
        writeln!(out, "#[Histogram log format version 1.3]")?;
        writeln!(out, "#[BaseTime: 0.000 (seconds since epoch)]")?;
        writeln!(
            out,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
             \"Interval_Compressed_Histogram\""
        )?;
        let mut serializer = V2DeflateSerializer::new();
        for entry in &self.entries {
            let mut bytes = Vec::new();
            serializer
                .serialize(&entry.histogram, &mut bytes)
                .map_err(|error| io::Error::other(format!("{error:?}")))?;
            if !entry.tag.is_empty() {
                write!(out, "Tag={},", entry.tag)?;
            }
            let max_ns = entry.histogram.max().saturating_mul(self.unit_ns);
            writeln!(
                out,
                "{:.3},{:.3},{:.3},{}",
                entry.begin.as_secs_f64(),
                entry.length.as_secs_f64(),
                std::time::Duration::from_nanos(max_ns).as_secs_f64() * 1e3,
                STANDARD.encode(&bytes)
            )?;
        }
        out.flush()
    }
}

impl fmt::Display for Merged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let logs = match self.files.len() {
            1 => "1 log".to_owned(),
            several => format!("{several} logs"),
        };
        writeln!(f, "{logs}, histograms added; latency in ms")?;
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        table.set_header([
            "tag", "samples", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max",
        ]);
        for (tag, figures) in self.figures() {
            table.add_row(row(tag, &figures));
        }
        for place in 1..9 {
            if let Some(column) = table.column_mut(place) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        writeln!(f, "{table}")?;
        for notice in &self.notices {
            writeln!(f, "note: {notice}")?;
        }
        Ok(())
    }
}

fn row(tag: &str, figures: &Figures) -> [String; 9] {
    let ms = |ns: u64| {
        format!(
            "{:.3}",
            std::time::Duration::from_nanos(ns).as_secs_f64() * 1e3
        )
    };
    let quantile = |ns: Option<u64>| ns.map_or_else(|| "n/a".to_owned(), ms);
    [
        if tag.is_empty() { "-" } else { tag }.to_owned(),
        figures.samples.to_string(),
        format!("{:.3}", figures.mean_ns / 1e6),
        quantile(figures.p50_ns),
        quantile(figures.p90_ns),
        quantile(figures.p99_ns),
        quantile(figures.p999_ns),
        quantile(figures.p9999_ns),
        ms(figures.max_ns),
    ]
}
