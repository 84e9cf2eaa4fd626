//! The file of `--monitor-input`: what `MONITOR` printed.
//!
//! ```text
//! +1764031576.603223 [0 172.16.10.147:39564] "SET" "key1" "a\x00b"
//! ```
//!
//! A command begins with the first double quote of its line. Lines without one (`OK`, or what an
//! other tool wrote between them) are passed over.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::command::name_of;
use kvlab_protocol::resp::request::parse_command_line;

/// The commands of a capture; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Arguments of each command, as they were sent.
    pub commands: Arc<[Vec<Vec<u8>>]>,
    /// Lines of the file.
    pub lines: usize,
    /// Lines that hold a quote and cannot be read as a command.
    pub broken: usize,
}

/// Why a capture cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// The file cannot be read.
    #[error("--monitor-input: cannot read {path}: {error}")]
    File {
        /// Its path.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// There is no command in it.
    #[error("--monitor-input: no command in the {lines} lines of {path}")]
    Empty {
        /// Its path.
        path: String,
        /// Its lines.
        lines: usize,
    },
}

impl Monitor {
    /// Reads a capture.
    ///
    /// # Errors
    /// A file that cannot be read or that holds no command.
    pub fn read(path: &Path) -> Result<Self, MonitorError> {
        let shown = || path.display().to_string();
        let bytes = fs::read(path).map_err(|error| MonitorError::File {
            path: shown(),
            error,
        })?;
        let monitor = Self::of(&String::from_utf8_lossy(&bytes));
        if monitor.commands.is_empty() {
            return Err(MonitorError::Empty {
                path: shown(),
                lines: monitor.lines,
            });
        }
        Ok(monitor)
    }

    /// Reads the text of a capture.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut commands = Vec::new();
        let (mut lines, mut broken) = (0, 0);
        for line in text.lines() {
            lines += 1;
            let Some(quote) = line.find('"') else {
                continue;
            };
            // Bytes that are not printable stand in the capture as \xHH, so the text is ASCII.
            match parse_command_line(line.get(quote..).unwrap_or_default()) {
                Ok(arguments) if !name_of(&arguments).is_empty() => {
                    commands.push(arguments);
                }
                _ => broken += 1,
            }
        }
        Self {
            commands: commands.into(),
            lines,
            broken,
        }
    }

    /// The line that is printed once the file is read.
    #[must_use]
    pub fn summary(&self) -> String {
        format!(
            "Loaded {} monitor commands from {} total lines",
            self.commands.len(),
            self.lines
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTURE: &str = "OK\n\
        1764031576.604009 [0 127.0.0.1:1234] \"SET\" \"key1\" \"a\\x00\\\"b\"\n\
        [ proxy47 ] 1764031576.603223 [0 172.16.10.147:39564] \"get\" \"key1\"\r\n\
        \n\
        1764031576.604010 [0 127.0.0.1:1234] \"INCR\" \"open\n";

    #[test]
    fn commands_are_taken_from_the_lines_that_hold_one() {
        let monitor = Monitor::of(CAPTURE);
        assert_eq!(
            *monitor.commands,
            [
                vec![b"SET".to_vec(), b"key1".to_vec(), b"a\x00\"b".to_vec()],
                vec![b"get".to_vec(), b"key1".to_vec()],
            ]
        );
        assert_eq!((monitor.lines, monitor.broken), (5, 1));
        assert_eq!(
            monitor.summary(),
            "Loaded 2 monitor commands from 5 total lines"
        );
    }

    #[test]
    fn a_missing_and_an_empty_file_are_told_apart() {
        let folder = std::env::temp_dir().join(format!("kvlab-monitor-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("capture");
        assert!(matches!(
            Monitor::read(&path),
            Err(MonitorError::File { .. })
        ));
        fs::write(&path, "OK\nOK\n").unwrap();
        let error = Monitor::read(&path).unwrap_err();
        assert!(
            matches!(error, MonitorError::Empty { lines: 2, .. }),
            "{error}"
        );
        fs::write(&path, CAPTURE).unwrap();
        assert_eq!(Monitor::read(&path).unwrap(), Monitor::of(CAPTURE));
        fs::remove_dir_all(&folder).unwrap();
    }
}
