//! Reading an interval log of HdrHistogram (format 1.2 and 1.3).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry, Tag};

/// One log.
#[derive(Clone, Debug)]
pub struct Log {
    /// Its file.
    pub file: String,
    /// When it began, since 1970, if it says so.
    pub start: Option<Duration>,
    /// Its lines.
    pub entries: Vec<Entry>,
    /// What is odd about it.
    pub notice: Option<String>,
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Begin, from the log's base time, or from its first line where it has none.
    pub begin: Duration,
    /// Length.
    pub length: Duration,
    /// Its tag; empty without one.
    pub tag: String,
    /// What was counted.
    pub histogram: Histogram<u64>,
}

/// Why logs cannot be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is none of a log.
    #[error("{file}, line {line}: {message}")]
    Line {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// The file holds no histogram.
    #[error("{file}: no histogram")]
    Empty {
        /// The file.
        file: String,
    },
    /// A histogram cannot be added to the others.
    #[error("{file}, tag '{tag}': {message}")]
    Add {
        /// The file.
        file: String,
        /// The tag.
        tag: String,
        /// What is wrong.
        message: String,
    },
}

impl LogError {
    pub(super) fn add(file: &str, tag: &str, message: &str) -> Self {
        Self::Add {
            file: file.to_owned(),
            tag: tag.to_owned(),
            message: message.to_owned(),
        }
    }
}

impl Log {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is no log.
    pub fn load(path: &Path) -> Result<Self, LogError> {
        let text = fs::read_to_string(path).map_err(|source| LogError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Reads a text. A last line without its end was cut off and is left out, with a notice.
    ///
    /// # Errors
    /// When a line is none of a log, or there is no histogram.
    pub fn parse(file: &str, text: &str) -> Result<Self, LogError> {
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let cut = text.len() > whole;
        let mut log = Self {
            file: file.to_owned(),
            start: None,
            entries: Vec::new(),
            notice: cut.then(|| format!("{file}: its last line was cut off and is left out")),
        };
        let mut based = false;
        for (number, line) in text[..whole].lines().enumerate() {
            let wrong = |message: String| LogError::Line {
                file: file.to_owned(),
                line: number + 1,
                message,
            };
            based |= line.starts_with("#[BaseTime:");
            log.line(line).map_err(wrong)?;
        }
        let begins = log.entries.iter().map(|entry| entry.begin);
        let first = begins.min().ok_or_else(|| LogError::Empty {
            file: file.to_owned(),
        })?;
        if !based {
            // The times are those of the calendar.
            log.start.get_or_insert(first);
            log.entries
                .iter_mut()
                .for_each(|entry| entry.begin -= first);
        }
        Ok(log)
    }

    /// Lines are read one by one, so that a message can name the line.
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.trim().is_empty() || line.starts_with('"') {
            return Ok(());
        }
        // The reader wants the end of each line.
        let text = format!("{line}\n");
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            match entry.map_err(|_| "not a line of an interval log".to_owned())? {
                LogEntry::StartTime(time) | LogEntry::BaseTime(time) => {
                    self.start.get_or_insert(time);
                }
                LogEntry::Interval(interval) => {
                    let bytes = STANDARD
                        .decode(interval.encoded_histogram())
                        .map_err(|error| format!("the histogram is not base64: {error}"))?;
                    let histogram = Deserializer::new()
                        .deserialize(&mut bytes.as_slice())
                        .map_err(|error| format!("not a histogram: {error}"))?;
                    let tag = interval.tag().map(|tag: Tag<'_>| tag.as_str().to_owned());
                    self.entries.push(Entry {
                        begin: interval.start_timestamp(),
                        length: interval.duration(),
                        tag: tag.unwrap_or_default(),
                        histogram,
                    });
                }
            }
        }
        Ok(())
    }
}
