//! What is done while a run goes on: second by second to the model, to stderr, to the files and to
//! the metrics server.

use std::io::Write;

use super::files::Files;
use super::json_lines;
use super::model::{Layout, Run};
use super::progress::{Meter, Progress};
use super::realtime::Realtime;
use super::recorder::{Recorder, RowPlan};
use super::statsd::{self, Statsd};
use crate::engine::{Control, Observer};
use crate::record::Interval;
use crate::report::html::RunPart;

/// Watches one run.
pub(super) struct Watch<'a> {
    pub(super) number: u32,
    pub(super) recorder: Recorder,
    pub(super) meter: Meter,
    /// With `--realtime-latencies`.
    pub(super) realtime: Option<Realtime>,
    /// With `--html`.
    pub(super) page: Option<RunPart>,
    pub(super) rows: &'a RowPlan,
    pub(super) layout: &'a Layout,
    pub(super) files: &'a mut Files,
    pub(super) statsd: Option<&'a Statsd>,
    pub(super) control: &'a Control,
    pub(super) stdout: &'a mut dyn Write,
    pub(super) stderr: &'a mut dyn Write,
    /// What could not be written; each output is tried until it fails.
    pub(super) failures: Vec<String>,
}

impl Observer for Watch<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.recorder.interval(interval);
        if let Some(page) = &mut self.page {
            page.interval(interval);
        }
        let (percentiles, from) = (&self.layout.percentiles, self.layout.from);
        if self.failures.is_empty() {
            let line = json_lines::interval(self.number, interval, self.rows, percentiles, from);
            self.json_line(&line);
        }
        let lost = interval.tally.connects.lost;
        if lost > 0 {
            // On a line of its own: the progress line before it ends without a line feed.
            // Where stderr is closed nobody wants to know.
            let _ = writeln!(
                self.stderr,
                "\n{lost} connections were lost, reconnecting..."
            );
        }
        let Some(line) = self.meter.interval(interval) else {
            return;
        };
        if let Some(statsd) = self.statsd {
            statsd.send(&statsd::metrics(line, &interval.tally, percentiles, from));
        }
        match self
            .realtime
            .as_mut()
            .map(|block| block.interval(interval, line))
        {
            Some(block) => {
                // Where stderr is closed nobody wants to know.
                let _ = self.stderr.write_all(block.unwrap_or_default().as_bytes());
            }
            None => show(self.stderr, line),
        }
    }
}

impl Watch<'_> {
    fn json_line(&mut self, line: &str) {
        if let Err(error) = self.files.json_line(self.stdout, line) {
            self.failures.push(error.to_string());
            if self.files.places().json_lines.as_deref() == Some("-") {
                // Nobody reads any more what the run is for.
                self.control.stop();
            }
        }
    }

    /// The last lines of a run, and what could not be written.
    pub(super) fn finish(mut self, run: &Run) -> Vec<String> {
        if self.failures.is_empty() {
            self.json_line(&json_lines::run(run));
        }
        show(self.stderr, &self.meter.finish(run));
        // Where stderr is closed nobody wants to know.
        let _ = write!(self.stderr, "\n\n");
        self.failures
    }
}

/// A progress line, to be overwritten by the next.
fn show(stderr: &mut dyn Write, line: &Progress) {
    // Where stderr is closed nobody wants to know.
    let _ = write!(stderr, "{line}\r");
    let _ = stderr.flush();
}
