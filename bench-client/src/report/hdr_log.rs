//! The interval log of HdrHistogram (format version 1.3), which its tools read and plot.
//!
//! ```text
//! #[Histogram log format version 1.3]
//! #[BaseTime: 1704067201.000 (seconds since epoch)]
//! #[StartTime: 1704067201.000 (seconds since epoch), 2024-…]
//! "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
//! Tag=GET.service,0.000,1.000,3.145,HISTFAAA…
//! ```
//!
//! One line per interval, class and kind of latency; the tag is `class.service` or
//! `class.response` (open loop) or `class.network` (with kernel stamps). Times are seconds since the base time, the maximum is in
//! milliseconds, and the histogram (V2, deflated, base64) counts nanoseconds. The warm-up is left
//! out, so that all lines of a tag together are the histogram of the summary.

use std::fmt;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use kvlab_timing::Stamp;

use super::number::{ms, seconds};
use super::{Head, Report};
use crate::record::{Interval, Latency, Phase, Summary};

/// Writes the lines of each interval.
pub struct HdrLog<W: Write> {
    out: W,
    head: Head,
    tags: Vec<String>,
    serializer: V2DeflateSerializer,
    /// Begin of the first measured interval, once the headings are written.
    base: Option<Stamp>,
}

impl<W: Write> HdrLog<W> {
    /// Writes to `out`.
    pub fn new(out: W, head: Head) -> Self {
        let tags = head.classes().iter().map(|name| tag(name)).collect();
        Self {
            out,
            head,
            tags,
            serializer: V2DeflateSerializer::new(),
            base: None,
        }
    }

    /// The base time; writes the headings when asked for the first time.
    fn base(&mut self, begin: Stamp) -> io::Result<Stamp> {
        if let Some(base) = self.base {
            return Ok(base);
        }
        self.base = Some(begin);
        let unix_ns = self.head.wall.unix_nanos(begin);
        let (seconds, millis) = (unix_ns / 1_000_000_000, unix_ns / 1_000_000 % 1_000);
        let lines = [
            format!("#[{}, {}]", self.head.program, self.head.target),
            "#[Histogram log format version 1.3]".to_owned(),
            format!("#[BaseTime: {seconds}.{millis:03} (seconds since epoch)]"),
            format!("#[StartTime: {seconds}.{millis:03} (seconds since epoch)]"),
            LEGEND.to_owned(),
        ];
        for line in lines {
            writeln!(self.out, "{line}")?;
        }
        Ok(begin)
    }

    fn line(&mut self, tag: &str, span: Span, latency: &Latency) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.serializer
            .serialize(latency.histogram(), &mut bytes)
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
        let Span { begin_ns, len_ns } = span;
        writeln!(
            self.out,
            "Tag={tag},{},{},{},{}",
            seconds(begin_ns),
            seconds(len_ns),
            ms(latency.max_ns()),
            STANDARD.encode(&bytes)
        )
    }
}

impl<W: Write> Report for HdrLog<W> {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        if interval.phase == Phase::Warmup {
            return Ok(());
        }
        let base = self.base(interval.begin)?;
        let span = Span {
            begin_ns: interval.begin.saturating_since(base),
            len_ns: interval.end.saturating_since(interval.begin),
        };
        let tags = std::mem::take(&mut self.tags);
        let open_loop = self.head.settings.load.is_open();
        let stamped = self.head.settings.kernel_stamps.is_wanted();
        for (tag, class) in tags.iter().zip(&interval.tally.classes) {
            self.line(&format!("{tag}.service"), span, &class.service)?;
            if open_loop {
                self.line(&format!("{tag}.response"), span, &class.response)?;
            }
            if stamped {
                self.line(&format!("{tag}.network"), span, &class.network)?;
            }
        }
        self.tags = tags;
        self.out.flush()
    }

    fn finish(&mut self, summary: &Summary) -> io::Result<()> {
        self.base(summary.started)?;
        self.out.flush()
    }
}

impl<W: Write> fmt::Debug for HdrLog<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("HdrLog");
        shown.field("tags", &self.tags);
        shown.finish_non_exhaustive()
    }
}

/// Where an interval lies, from the base time.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin_ns: u64,
    len_ns: u64,
}

/// A class name as a tag: blanks and commas, which end a tag, become `_`.
fn tag(name: &str) -> String {
    let legal = |c: char| {
        if c == ',' || c.is_whitespace() {
            '_'
        } else {
            c
        }
    };
    name.chars().map(legal).collect()
}

const LEGEND: &str = "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
                      \"Interval_Compressed_Histogram\"";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry, Tag};

    use super::super::sample;
    use super::*;

    fn log() -> String {
        let mut out = Vec::new();
        let mut log = HdrLog::new(&mut out, sample::head());
        for interval in sample::intervals() {
            log.interval(&interval).unwrap();
        }
        log.finish(&sample::open_loop()).unwrap();
        drop(log);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_librarys_reader_finds_the_same_histograms() {
        let log = log();
        let [_, measured] = sample::intervals();
        let get = &measured.tally.classes[1];
        let set = &measured.tally.classes[0];
        let expected = [
            ("SET.service", &set.service),
            ("SET.response", &set.response),
            ("GET.service", &get.service),
            ("GET.response", &get.response),
        ];
        let mut entries = Vec::new();
        let mut times = Vec::new();
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            match entry.unwrap() {
                LogEntry::Interval(interval) => {
                    let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
                    let histogram: Histogram<u64> = Deserializer::new()
                        .deserialize(&mut bytes.as_slice())
                        .unwrap();
                    let tag = interval.tag().map(|tag: Tag<'_>| tag.as_str().to_owned());
                    assert_eq!(interval.start_timestamp(), Duration::ZERO);
                    assert_eq!(interval.duration(), Duration::from_millis(500));
                    entries.push((tag.unwrap(), histogram));
                }
                LogEntry::BaseTime(time) | LogEntry::StartTime(time) => times.push(time),
            }
        }
        // The sample's measured part begins a second after 2024-01-01 00:00:00 UTC.
        assert_eq!(times, [Duration::from_secs(1_704_067_201); 2]);
        assert_eq!(entries.len(), expected.len());
        for ((tag, histogram), (name, latency)) in entries.iter().zip(expected) {
            assert_eq!(tag, name);
            assert_eq!(histogram, latency.histogram());
        }
    }

    #[test]
    fn lines_begin_with_tag_times_and_maximum() {
        let log = log();
        let lines: Vec<_> = log
            .lines()
            .filter(|line| line.starts_with("Tag="))
            .collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines[3].starts_with("Tag=GET.response,0.000,0.500,2.097,HIST"),
            "{log}"
        );
    }

    #[test]
    fn tags_hold_no_blank_and_no_comma() {
        assert_eq!(tag("A B,C"), "A_B_C");
    }

    #[test]
    fn a_run_without_intervals_still_has_its_headings() {
        let mut out = Vec::new();
        let mut log = HdrLog::new(&mut out, sample::head());
        log.finish(&sample::open_loop()).unwrap();
        drop(log);
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 5);
    }
}
