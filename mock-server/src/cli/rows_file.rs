//! The file of rows: one line for each request, written at the end of a run.
//!
//! ```text
//! peer,ordinal,sequence,command,read_unix_ns,wanted_ns,due_ns,written_ns,answered
//! 127.0.0.1:40000,0,1,get,1700000000123456789,1000000,1000000,1012345,true
//! ```
//!
//! `read` is calendar time, the other moments count from it. Whoever knows when a load ran can pick its
//! rows, and with address, ordinal and sequence join them with its own.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kvlab_timing::{Clock, WallClock};

use crate::stamp::ServerRow;

#[derive(Debug)]
pub(super) struct RowsFile {
    path: PathBuf,
    file: File,
}

impl RowsFile {
    /// Creates the file, so that a path that cannot be written is known before anything is served.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path)
            .with_context(|| format!("cannot write the file of rows {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Writes all rows.
    pub(super) fn write(self, rows: &[ServerRow]) -> Result<()> {
        write(&mut BufWriter::new(self.file), rows)
            .with_context(|| format!("cannot write the file of rows {}", self.path.display()))
    }
}

fn write(out: &mut dyn Write, rows: &[ServerRow]) -> io::Result<()> {
    let wall = WallClock::real(Clock::real());
    writeln!(
        out,
        "peer,ordinal,sequence,command,read_unix_ns,wanted_ns,due_ns,written_ns,answered"
    )?;
    for row in rows {
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{}",
            row.peer,
            row.ordinal,
            row.sequence,
            row.command,
            wall.unix_nanos(row.read),
            row.wanted_ns,
            row.due.saturating_since(row.read),
            row.written.saturating_since(row.read),
            row.answered,
        )?;
    }
    out.flush()
}
