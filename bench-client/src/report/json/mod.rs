//! The whole result for programs: one JSON object, pretty-printed.
//!
//! ```text
//! { "schema": "kvlab-bench", "schema_version": 1, "program": …,
//!   "host": {…}, "settings": {…}, "result": {…}, "intervals": […] }
//! ```
//!
//! Times are whole nanoseconds in fields that end in `_ns` (means have a fraction), rates are per
//! second in fields that end in `_per_second`, shares are between 0 and 1. A quantile that fewer
//! than ten samples lie beyond is `null`. Within one `schema_version` fields are added, never
//! renamed or removed, and none changes its meaning. `docs/metrics.md` says what each means.

mod connections;
mod interval;
mod result;
mod settings;

pub(super) use self::settings::Settings;

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

use super::{Head, Report};
use crate::host::Host;
use crate::record::{Interval, Summary};

/// Intervals that are kept: a day of seconds. The CSV output has all of them.
const MAX_INTERVALS: usize = 86_400;

/// Version of the form of the JSON output.
pub const SCHEMA_VERSION: u32 = 1;

/// Writes the result at the end of a run.
pub struct Json<W: Write> {
    out: W,
    head: Head,
    intervals: Vec<interval::Interval>,
}

impl<W: Write> Json<W> {
    /// Writes to `out`.
    pub fn new(out: W, head: Head) -> Self {
        Self {
            out,
            head,
            intervals: Vec::new(),
        }
    }
}

impl<W: Write> Report for Json<W> {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        if self.intervals.len() < MAX_INTERVALS {
            let open_loop = self.head.settings.load.is_open();
            self.intervals
                .push(interval::Interval::of(interval, open_loop));
        }
        Ok(())
    }

    fn finish(&mut self, summary: &Summary) -> io::Result<()> {
        let document = Document {
            schema: "kvlab-bench",
            schema_version: SCHEMA_VERSION,
            program: &self.head.program,
            host: &self.head.host,
            host_warnings: self.head.host.warnings(&self.head.settings),
            settings: Settings::of(&self.head),
            result: result::RunResult::of(&self.head, summary),
            intervals: &self.intervals,
        };
        serde_json::to_writer_pretty(&mut self.out, &document)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

impl<W: Write> fmt::Debug for Json<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Json").finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    program: &'a str,
    host: &'a Host,
    host_warnings: Vec<String>,
    settings: Settings<'a>,
    result: result::RunResult,
    intervals: &'a [interval::Interval],
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;

    fn json(head: Head, summary: &Summary) -> String {
        let mut out = Vec::new();
        let mut json = Json::new(&mut out, head);
        for interval in sample::intervals() {
            json.interval(&interval).unwrap();
        }
        json.finish(summary).unwrap();
        drop(json);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn open_loop_is_as_in_the_golden_file() {
        let text = json(sample::head(), &sample::open_loop());
        assert_eq!(text, include_str!("../golden/open_loop.json"));
    }

    #[test]
    fn closed_loop_has_no_response_time_and_no_lag() {
        let text = json(sample::closed_head(), &sample::closed_loop());
        let value: Value = serde_json::from_str(&text).unwrap();
        let result = &value["result"];
        assert_eq!(result["load_model"], "closed");
        assert_eq!(result["interrupted"], true);
        assert_eq!(result["total"]["response"], Value::Null);
        assert_eq!(result["lag"], Value::Null);
        assert_eq!(result["total"]["service"]["samples"], 150);
        assert_eq!(result["total"]["service"]["p50_ns"], sample::A);
        assert_eq!(result["total"]["service"]["p99_ns"], Value::Null);
        assert_eq!(result["threads"][0]["cpu_share"], Value::Null);
        assert_eq!(value["settings"]["rate_per_second"], Value::Null);
    }
}
