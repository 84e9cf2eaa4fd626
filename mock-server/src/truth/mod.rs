//! The truth of a run: what a server knows of it when it ends.
//!
//! A server can serve several runs, one after the other. A request belongs to the run in which it was
//! read; the reply to one that was read before its run began is late and counted apart.

mod row_file;
mod rows;
mod statistics;

use std::collections::BTreeMap;

use kvlab_timing::Stamp;

use crate::stamp::ServerRow;

pub use row_file::RowsLost;
pub(crate) use row_file::{RowFile, RowSender};
pub(crate) use rows::Rows;
pub use statistics::{Counts, Kind, LONGEST_NS, Stall, Stats, Timings};
pub(crate) use statistics::{Recorder, Times};

/// Names a run; 0 is the time outside of named runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

impl From<u64> for RunId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

/// Everything a server recorded of a run: distributions always, rows when they were asked for.
#[derive(Debug, Clone, Default)]
pub struct Truth {
    /// The run.
    pub run: RunId,
    /// When it began; what was read before does not belong to it.
    pub begun: Stamp,
    /// When this was taken.
    pub taken: Stamp,
    /// Distributions and counters of all workers together.
    pub stats: Stats,
    /// The freezes that touched the time of the run, by their beginnings.
    pub stalls: Vec<Stall>,
    /// Every request, in no particular order; empty unless rows were asked for.
    pub rows: Vec<ServerRow>,
    /// Rows that were dropped because only the last were to be kept.
    pub rows_dropped: u64,
}

impl Truth {
    /// Adds what another worker recorded of the same run.
    pub fn merge(&mut self, other: Self) {
        self.run = other.run;
        self.begun = self.begun.max(other.begun);
        self.taken = self.taken.max(other.taken);
        self.stats.merge(&other.stats);
        self.rows.extend(other.rows);
        self.rows_dropped += other.rows_dropped;
        let mut stalls: BTreeMap<(Stamp, usize), Stall> = BTreeMap::new();
        for stall in self.stalls.drain(..).chain(other.stalls) {
            let known = stalls.entry((stall.begin, stall.freeze));
            known
                .and_modify(|known| known.moved += stall.moved)
                .or_insert(stall);
        }
        self.stalls = stalls.into_values().collect();
    }

    /// Drops the oldest of more than `most` rows.
    pub(crate) fn keep_last(&mut self, most: usize) {
        let Some(surplus) = self.rows.len().checked_sub(most) else {
            return;
        };
        self.rows.sort_by_key(|row| row.written);
        self.rows.drain(..surplus);
        self.rows_dropped += surplus as u64;
    }
}
