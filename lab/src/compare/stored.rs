//! Stored results: the JSON documents that `kvlab bench --json` writes.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// The results of several runs of one thing.
#[derive(Clone, Debug)]
pub struct Group {
    /// Where they come from: a path or a command.
    pub name: String,
    /// One per run.
    pub runs: Vec<Stored>,
}

/// One stored result.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its file, for messages.
    pub origin: String,
    /// What would have to be typed to repeat it.
    pub settings: Value,
    /// The numbers.
    pub numbers: Numbers,
}

#[derive(Deserialize)]
struct Document {
    schema: String,
    schema_version: u32,
    settings: Value,
    result: Numbers,
}

/// The numbers of one run that are compared.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Numbers {
    /// `open` or `closed`.
    pub load_model: String,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// Calendar time of the start, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Answered requests per second.
    pub rate_per_second: f64,
    /// All classes together.
    pub total: Total,
    /// What a reader must know.
    #[serde(default)]
    pub notices: Vec<Said>,
}

/// Latencies and outcomes of all classes together.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Total {
    /// Requests by end.
    pub outcomes: Outcomes,
    /// From the send.
    pub service: Times,
    /// From the intended moment; only in an open loop.
    pub response: Option<Times>,
}

/// Requests by end, as far as they matter here.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Outcomes {
    /// Error replies.
    pub errors: u64,
    /// No reply in time.
    pub timeouts: u64,
    /// The connection was lost.
    pub connection_lost: u64,
    /// Never sent.
    pub not_sent: u64,
}

impl Outcomes {
    /// Requests that did not get what they asked for.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors + self.timeouts + self.connection_lost + self.not_sent
    }
}

/// One kind of latency; a quantile is missing where too few samples support it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct Times {
    /// Mean, nanoseconds.
    pub mean_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
}

/// A notice of the client.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Said {
    /// What it is about, in a word.
    pub kind: String,
}

/// Why results cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoredError {
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file holds something else.
    #[error("{origin}: {message}")]
    Form {
        /// The file.
        origin: String,
        /// What is wrong.
        message: String,
    },
    /// A folder holds no result.
    #[error("{}: no result: expected files that end in .json", path.display())]
    Empty {
        /// Which.
        path: PathBuf,
    },
}

impl Group {
    /// Reads a file, which holds one result, an array of them or one after the other, or all
    /// `.json` files of a folder in the order of their names.
    ///
    /// # Errors
    /// When something cannot be read, is no result, or there is none.
    pub fn load(path: &Path) -> Result<Self, StoredError> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|source| StoredError::Read {
                path: path.to_owned(),
                source,
            })
        };
        let mut runs = Vec::new();
        if path.is_dir() {
            for file in files(path)? {
                runs.extend(parse(&file.display().to_string(), &read(&file)?)?);
            }
        } else {
            runs = parse(&path.display().to_string(), &read(path)?)?;
        }
        if runs.is_empty() {
            return Err(StoredError::Empty {
                path: path.to_owned(),
            });
        }
        let name = path.display().to_string();
        Ok(Self { name, runs })
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, StoredError> {
    let wrong = |source| StoredError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The results in a text: one, an array, or one after the other.
///
/// # Errors
/// When it holds something else.
pub fn parse(origin: &str, text: &str) -> Result<Vec<Stored>, StoredError> {
    let wrong = |message: String| StoredError::Form {
        origin: origin.to_owned(),
        message,
    };
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value.map_err(|error| wrong(error.to_string()))? {
            Value::Array(several) => values.extend(several),
            one => values.push(one),
        }
    }
    if values.is_empty() {
        return Err(wrong("no result".to_owned()));
    }
    values
        .into_iter()
        .map(|value| {
            let document: Document = serde_json::from_value(value)
                .map_err(|error| wrong(format!("no result of kvlab bench: {error}")))?;
            if document.schema != SCHEMA || document.schema_version != SCHEMA_VERSION {
                return Err(wrong(format!(
                    "expected {SCHEMA} version {SCHEMA_VERSION}, found {} version {}",
                    document.schema, document.schema_version
                )));
            }
            if document.result.interrupted {
                return Err(wrong(
                    "the run was interrupted: its numbers stand for a part".to_owned(),
                ));
            }
            Ok(Stored {
                origin: origin.to_owned(),
                settings: document.settings,
                numbers: document.result,
            })
        })
        .collect()
}

const SCHEMA: &str = "kvlab-bench";
const SCHEMA_VERSION: u32 = 1;
