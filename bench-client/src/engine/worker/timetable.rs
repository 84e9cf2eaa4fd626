//! When connections are to be made or renewed: the ramp-up, back-off, lifetimes.
//!
//! A heap by moment and place. An entry whose connection has another epoch by then is void.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kvlab_timing::Stamp;

use super::ConnId;

/// What is planned.
#[derive(Debug, Default)]
pub(super) struct Timetable {
    heap: BinaryHeap<Reverse<(Stamp, ConnId)>>,
}

impl Timetable {
    /// Plans something for a connection.
    pub(super) fn add(&mut self, at: Stamp, conn: ConnId) {
        self.heap.push(Reverse((at, conn)));
    }

    /// The first moment, or [`Stamp::MAX`].
    pub(super) fn next(&self) -> Stamp {
        self.heap.peek().map_or(Stamp::MAX, |Reverse((at, _))| *at)
    }

    /// Takes the first entry if its moment has come.
    pub(super) fn take(&mut self, now: Stamp) -> Option<(Stamp, ConnId)> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
