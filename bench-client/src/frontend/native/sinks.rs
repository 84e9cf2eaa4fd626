//! The outputs of a run: opened before it begins, fed while it goes on, each on its own.
//!
//! A disk that fills up in the middle of a run must cost neither the run nor the other outputs: an
//! output that fails is left alone from then on and its error is reported at the end. A reader of
//! stdout that goes away ends the run quietly.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};

use super::UsageError;
use super::output::{Destination, OutputArgs};
use crate::engine::{Control, Observer};
use crate::record::{Interval, Summary};
use crate::report::{Csv, HdrLog, Head, Html, Json, Live, Report, Text};

/// The opened files of the machine-readable outputs.
#[derive(Debug)]
pub(super) struct Opened {
    /// In the order JSON, CSV, HDR log, HTML.
    places: [Option<(Destination, Option<File>)>; 4],
}

impl Opened {
    /// Creates the files, so that a path that cannot be written is known before the run.
    pub(super) fn create(args: &OutputArgs) -> Result<Self, OpenError> {
        let mut places = [None, None, None, None];
        for (place, destination) in places.iter_mut().zip(args.destinations()?) {
            *place = match destination {
                Some(Destination::File(path)) => {
                    let file = File::create(&path).map_err(|error| OpenError::File {
                        path: path.display().to_string(),
                        error,
                    })?;
                    Some((Destination::File(path), Some(file)))
                }
                Some(Destination::Stdout) => Some((Destination::Stdout, None)),
                None => None,
            };
        }
        Ok(Self { places })
    }

    /// Whether one of them takes stdout, so that the text for people must go elsewhere.
    pub(super) fn takes_stdout(&self) -> bool {
        let mut places = self.places.iter().flatten();
        places.any(|(destination, _)| *destination == Destination::Stdout)
    }
}

/// Why an output could not be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error("cannot write {path}: {error}")]
    File { path: String, error: io::Error },
}

/// All outputs of a run.
pub(super) struct Sinks<'a> {
    sinks: Vec<Sink<'a>>,
    control: Control,
}

struct Sink<'a> {
    /// Name in messages: a path, `stdout` or `stderr`.
    name: String,
    report: Box<dyn Report + 'a>,
    failed: Option<io::Error>,
}

impl<'a> Sinks<'a> {
    /// The machine-readable outputs; one of them may take `stdout`.
    pub(super) fn machine(
        opened: Opened,
        stdout: &'a mut dyn Write,
        head: &Head,
        control: &Control,
    ) -> Self {
        let mut sinks = Self {
            sinks: Vec::new(),
            control: control.clone(),
        };
        let [json, csv, hdr_log, html] = opened.places;
        let mut stdout = Some(stdout);
        let mut writer =
            |place: Option<(Destination, Option<File>)>| -> Option<(String, Writer<'a>)> {
                match place? {
                    (Destination::File(path), Some(file)) => {
                        Some((path.display().to_string(), Box::new(file)))
                    }
                    _ => Some(("stdout".to_owned(), Box::new(stdout.take()?))),
                }
            };
        if let Some((name, out)) = writer(json) {
            let report = Json::new(BufWriter::new(out), head.clone());
            sinks.push(name, Box::new(report));
        }
        if let Some((name, out)) = writer(csv) {
            let report = Csv::new(BufWriter::new(out), head);
            sinks.push(name, Box::new(report));
        }
        if let Some((name, out)) = writer(hdr_log) {
            let report = HdrLog::new(BufWriter::new(out), head.clone());
            sinks.push(name, Box::new(report));
        }
        if let Some((name, out)) = writer(html) {
            let report = Html::new(BufWriter::new(out), head.clone());
            sinks.push(name, Box::new(report));
        }
        sinks
    }

    /// Adds the line per interval.
    pub(super) fn live(&mut self, stderr: &'a mut dyn Write, terminal: bool) {
        self.push("stderr".to_owned(), Box::new(Live::new(stderr, terminal)));
    }

    fn push(&mut self, name: String, report: Box<dyn Report + 'a>) {
        self.sinks.push(Sink {
            name,
            report,
            failed: None,
        });
    }

    /// Ends all outputs and says which of them failed.
    pub(super) fn finish(mut self, summary: &Summary) -> Failures {
        for sink in &mut self.sinks {
            sink.feed(|report| report.finish(summary));
        }
        let mut failures = Failures::default();
        for sink in self.sinks {
            if let Some(error) = sink.failed {
                failures.add(&sink.name, &error);
            }
        }
        failures
    }
}

type Writer<'a> = Box<dyn Write + 'a>;

impl Sink<'_> {
    /// Feeds the report, unless it has failed before. Says whether it failed just now.
    fn feed(&mut self, feed: impl FnOnce(&mut dyn Report) -> io::Result<()>) -> bool {
        if self.failed.is_none() {
            self.failed = feed(self.report.as_mut()).err();
            return self.failed.is_some();
        }
        false
    }
}

impl Observer for Sinks<'_> {
    fn interval(&mut self, interval: &Interval) {
        for sink in &mut self.sinks {
            let failed_now = sink.feed(|report| report.interval(interval));
            if failed_now && is_gone(&sink.name, sink.failed.as_ref()) {
                // Nobody reads any more what the run is for.
                self.control.stop();
            }
        }
    }
}

/// The outputs that could not be written.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// One message each.
    pub(super) messages: Vec<String>,
    /// Whether the reader of stdout went away.
    pub(super) reader_gone: bool,
}

impl Failures {
    pub(super) fn add(&mut self, name: &str, error: &io::Error) {
        if is_gone(name, Some(error)) {
            self.reader_gone = true;
        } else if name != "stderr" {
            // A line per second that cannot be shown is no reason to call a run failed.
            self.messages.push(format!("cannot write {name}: {error}"));
        }
    }

    /// Writes the summary for people, and remembers if that fails.
    pub(super) fn print(&mut self, name: &str, out: &mut dyn Write, head: Head, summary: &Summary) {
        if let Err(error) = Text::new(out, head).finish(summary) {
            self.add(name, &error);
        }
    }
}

fn is_gone(name: &str, error: Option<&io::Error>) -> bool {
    name == "stdout" && error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
