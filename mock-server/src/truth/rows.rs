//! Where the rows of a worker go: all or the last of them into memory, or to a file.

use std::collections::VecDeque;

use super::row_file::{CHUNK, RowSender};
use crate::stamp::ServerRow;

/// The rows of one worker.
#[derive(Debug)]
pub(crate) enum Rows {
    /// Every row.
    All(Vec<ServerRow>),
    /// The last rows.
    Last {
        rows: VecDeque<ServerRow>,
        most: usize,
        dropped: u64,
    },
    /// To a file, in chunks.
    File {
        chunk: Vec<ServerRow>,
        sender: RowSender,
    },
}

impl Rows {
    #[inline]
    pub(crate) fn push(&mut self, row: ServerRow) {
        match self {
            Self::All(rows) => rows.push(row),
            Self::Last {
                rows,
                most,
                dropped,
            } => {
                if rows.len() >= *most {
                    rows.pop_front();
                    *dropped += 1;
                }
                rows.push_back(row);
            }
            Self::File { chunk, sender } => {
                chunk.push(row);
                if chunk.len() >= CHUNK {
                    sender.send(std::mem::replace(chunk, Vec::with_capacity(CHUNK)));
                }
            }
        }
    }

    /// A copy of what is in memory, and how many rows were dropped.
    pub(crate) fn copy(&self) -> (Vec<ServerRow>, u64) {
        match self {
            Self::All(rows) => (rows.clone(), 0),
            Self::Last { rows, dropped, .. } => (rows.iter().cloned().collect(), *dropped),
            Self::File { .. } => (Vec::new(), 0),
        }
    }

    /// What is in memory, which is forgotten here; what is on its way to a file is sent on.
    pub(crate) fn take(&mut self) -> (Vec<ServerRow>, u64) {
        match self {
            Self::All(rows) => (std::mem::take(rows), 0),
            Self::Last { rows, dropped, .. } => {
                let rows = std::mem::take(rows).into();
                (rows, std::mem::take(dropped))
            }
            Self::File { chunk, sender } => {
                sender.send(std::mem::take(chunk));
                (Vec::new(), 0)
            }
        }
    }
}
