//! The files of a run: opened or tried before it begins, written when it is over.
//!
//! A path that cannot be written is known before the first request is sent, as a clear error; a
//! disk that fills up later costs neither the other files nor what stands on stdout.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use super::client_csv;
use super::hdr_files::{self, NamedFile};
use super::json;
use super::model::Results;
use super::text;

/// Where the results go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// `--out-file`; stdout without it.
    pub out_file: Option<String>,
    /// `--json-out-file`.
    pub json_out_file: Option<String>,
    /// `--hdr-file-prefix`.
    pub hdr_file_prefix: Option<String>,
    /// `--client-stats`.
    pub client_stats: Option<String>,
    /// `--json-lines`; `-` is stdout.
    pub json_lines: Option<String>,
    /// `--html`.
    pub html: Option<String>,
}

/// The opened files.
#[derive(Debug)]
pub struct Files {
    places: Places,
    out: Option<File>,
    json: Option<File>,
    json_lines: Option<File>,
    html: Option<File>,
}

/// A file that cannot be opened or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {error}")]
pub struct FileError {
    /// Which file.
    pub path: String,
    /// Why.
    #[source]
    pub error: io::Error,
}

impl Files {
    /// Opens all files that are written at the end in one piece, and tries the first of those
    /// whose names depend on the runs.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub fn create(places: Places) -> Result<Self, FileError> {
        let create = |path: &Option<String>| path.as_deref().map(create).transpose();
        let out = create(&places.out_file)?;
        let json = create(&places.json_out_file)?;
        let json_lines = match places.json_lines.as_deref() {
            Some("-") | None => None,
            Some(_) => create(&places.json_lines)?,
        };
        let html = create(&places.html)?;
        let first = [
            places.hdr_file_prefix.as_deref().map(hdr_files::first_path),
            places.client_stats.as_deref().map(client_csv::first_path),
        ];
        for path in first.into_iter().flatten() {
            try_to_write(&path)?;
        }
        Ok(Self {
            places,
            out,
            json,
            json_lines,
            html,
        })
    }

    /// Where the results go.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Whether the tables go to stdout.
    #[must_use]
    pub fn takes_stdout(&self) -> bool {
        self.out.is_none()
    }

    /// Appends to the tables' output, which is a file or `stdout`.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn print(&mut self, stdout: &mut dyn Write, text: &str) -> Result<(), FileError> {
        let (out, path): (&mut dyn Write, _) = match &mut self.out {
            Some(file) => (file, self.places.out_file.as_deref()),
            None => (stdout, None),
        };
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(|error| FileError {
            path: path.unwrap_or("stdout").to_owned(),
            error,
        })
    }

    /// Appends a line to `--json-lines`; nothing without it.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn json_line(&mut self, stdout: &mut dyn Write, line: &str) -> Result<(), FileError> {
        let Some(path) = &self.places.json_lines else {
            return Ok(());
        };
        let out: &mut dyn Write = match &mut self.json_lines {
            Some(file) => file,
            None => stdout,
        };
        let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        written.map_err(|error| FileError {
            path: path.clone(),
            error,
        })
    }

    /// Writes the page of `--html`; nothing without it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn page(&mut self, page: &str) -> Result<(), FileError> {
        let (Some(file), Some(path)) = (&mut self.html, &self.places.html) else {
            return Ok(());
        };
        file.write_all(page.as_bytes()).map_err(|error| FileError {
            path: path.clone(),
            error,
        })
    }

    /// Writes tables, JSON and histogram files. Every one of them is tried; what could not be
    /// written is given back.
    pub fn finish(&mut self, results: &Results, stdout: &mut dyn Write) -> Vec<FileError> {
        let mut errors = Vec::new();
        errors.extend(self.print(stdout, &text::render(results)).err());
        if let (Some(file), Some(path)) = (&mut self.json, &self.places.json_out_file) {
            let written = file.write_all(json::render(results).as_bytes());
            errors.extend(written.err().map(|error| FileError {
                path: path.clone(),
                error,
            }));
        }
        if let Some(prefix) = &self.places.hdr_file_prefix {
            errors.extend(write_all(&hdr_files::render(results, prefix)));
        }
        errors
    }
}

/// Writes files of names that were made up at the end; gives back what could not be written.
pub fn write_all(files: &[NamedFile]) -> Vec<FileError> {
    let written = files.iter().map(|NamedFile { path, content }| {
        std::fs::write(path, content).map_err(|error| FileError {
            path: path.clone(),
            error,
        })
    });
    written.filter_map(Result::err).collect()
}

fn create(path: &str) -> Result<File, FileError> {
    File::create(path).map_err(|error| FileError {
        path: path.to_owned(),
        error,
    })
}

/// Opens for writing and leaves what is there, if anything, as it is.
fn try_to_write(path: &str) -> Result<(), FileError> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| FileError {
        path: path.to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::config::Config;
    use super::super::model::{Bound, Heading, Layout, Row, RowKind, Run};
    use super::*;

    fn results() -> Results {
        let mut run = Run::new(1);
        run.duration = Duration::from_secs(1);
        run.rows = vec![Row::new(RowKind::Set), Row::new(RowKind::Get)];
        Results {
            config: Config::default(),
            heading: Heading {
                threads: 1,
                connections_per_thread: 1,
                bound: Bound::Seconds(1),
            },
            layout: Layout::default(),
            runs: vec![run],
            verification: None,
        }
    }

    /// A folder of its own, removed in the end.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let id = std::process::id();
            let path = std::env::temp_dir().join(format!("kvlab-memtier-{name}-{id}"));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn path(&self, name: &str) -> String {
            self.0.join(name).display().to_string()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn every_unwritable_path_is_an_error_before_the_run() {
        let bad = || Some("/nonexistent/folder/file".to_owned());
        let places = [
            Places {
                out_file: bad(),
                ..Places::default()
            },
            Places {
                json_out_file: bad(),
                ..Places::default()
            },
            Places {
                hdr_file_prefix: bad(),
                ..Places::default()
            },
            Places {
                client_stats: bad(),
                ..Places::default()
            },
            Places {
                json_lines: bad(),
                ..Places::default()
            },
            Places {
                html: bad(),
                ..Places::default()
            },
        ];
        for places in places {
            let error = Files::create(places).unwrap_err().to_string();
            let expected = "cannot write /nonexistent/folder/file";
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn results_go_to_their_files_and_nothing_to_stdout() {
        let folder = Folder::new("files");
        let places = Places {
            out_file: Some(folder.path("out")),
            json_out_file: Some(folder.path("json")),
            hdr_file_prefix: Some(folder.path("h")),
            client_stats: None,
            json_lines: Some(folder.path("lines")),
            html: Some(folder.path("page")),
        };
        let mut files = Files::create(places).unwrap();
        let mut stdout = Vec::new();
        files.json_line(&mut stdout, "{}\n").unwrap();
        files.page("<!DOCTYPE html>").unwrap();
        let errors = files.finish(&results(), &mut stdout);
        assert!(errors.is_empty(), "{errors:?}");
        assert!(stdout.is_empty());
        let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
        assert!(read("out").starts_with("1         Threads\n"));
        assert!(serde_json::from_str::<serde_json::Value>(&read("json")).is_ok());
        assert!(read("h_FULL_RUN_1.txt").contains("Percentile"));
        assert!(read("h_GET_command_run_1.hgrm").contains("Histogram log"));
        assert_eq!(read("lines"), "{}\n");
        assert_eq!(read("page"), "<!DOCTYPE html>");
    }

    #[test]
    fn without_a_file_the_tables_go_to_stdout() {
        let mut files = Files::create(Places::default()).unwrap();
        let mut stdout = Vec::new();
        assert!(files.finish(&results(), &mut stdout).is_empty());
        assert!(String::from_utf8(stdout).unwrap().contains("ALL STATS"));
    }
}
