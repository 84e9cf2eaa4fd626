//! What one worker records. Written by the worker alone; handed over at interval boundaries.

use kvlab_timing::Stamp;

use super::real::CpuTime;
use crate::record::{
    Cause, ClientRow, ConnectKind, ConnectRow, OpClass, Outcome, Outcomes, Phase, RowKind, Tally,
};

/// The record of one worker.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// The running interval.
    pub(crate) tally: Tally,
    spare: Option<Tally>,
    classes: usize,
    open: bool,
    /// Whether the running interval lies in the warm-up.
    pub(crate) in_warmup: bool,
    /// Warm-up requests that ended after the warm-up.
    pub(crate) late_warmup: Outcomes,
    /// Requests of the measured part that were due.
    pub(crate) due: u64,
    /// First intended start (open loop) or send (closed loop) of the measured part.
    pub(crate) first: Option<Stamp>,
    /// Last reply of the measured part.
    pub(crate) last: Option<Stamp>,
    /// Rows, when they are kept.
    pub(crate) rows: Option<Vec<ClientRow>>,
    /// Attempts to connect that ended, in the order of their ends: all of them where rows are
    /// kept, else no more than `most_connects`.
    pub(crate) connects: Vec<ConnectRow>,
    most_connects: usize,
}

/// Stamps and bytes of a request that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) intended: Stamp,
    /// From when its service counts: its send, or that of its first attempt.
    pub(crate) begun: Stamp,
    pub(crate) sent: Stamp,
    pub(crate) received: Stamp,
    pub(crate) kernel: Option<Stamp>,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
}

/// A finished interval of one worker.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) index: u64,
    pub(crate) phase: Phase,
    pub(crate) begin: Stamp,
    pub(crate) end: Stamp,
    pub(crate) tally: Tally,
    pub(crate) connections: u64,
    pub(crate) connecting: u64,
    pub(crate) in_flight: u64,
    pub(crate) backlog: u64,
    /// Processor time of the thread; the shell knows it, and there is none under virtual time.
    pub(crate) cpu: Option<CpuTime>,
}

impl Recorder {
    pub(crate) fn new(classes: usize, open: bool, rows: Option<usize>, connections: usize) -> Self {
        Self {
            tally: Tally::new(classes),
            spare: Some(Tally::new(classes)),
            classes,
            open,
            in_warmup: false,
            late_warmup: Outcomes::default(),
            due: 0,
            first: None,
            last: None,
            rows: rows.map(Vec::with_capacity),
            connects: Vec::new(),
            most_connects: MAX_CONNECTS.max(2 * connections),
        }
    }

    /// A load request was taken from the schedule.
    #[inline]
    pub(crate) fn count_due(&mut self, kind: RowKind) {
        self.due += u64::from(kind == RowKind::Load);
    }

    /// A load request that was taken from the schedule is put back.
    pub(crate) fn withdraw(&mut self, kind: RowKind) {
        self.due -= u64::from(kind == RowKind::Load);
    }

    /// A load request was written by a call that began at `t1`; `possible` is the earliest moment
    /// at which it was due and a slot was free.
    #[inline]
    pub(crate) fn sent(&mut self, kind: RowKind, intended: Stamp, possible: Stamp, t1: Stamp) {
        let measured = kind == RowKind::Load;
        if measured && self.first.is_none() {
            self.first = Some(intended);
        }
        if measured || self.in_warmup {
            self.tally.sent += 1;
            if self.open {
                self.tally.lag.record(t1.saturating_since(intended));
                self.tally.lateness.record(t1.saturating_since(possible));
            }
        }
    }

    /// A request that failed before was written again. Its lag and lateness are those of its first
    /// attempt.
    pub(crate) fn sent_again(&mut self, kind: RowKind) {
        self.tally.sent += u64::from(kind == RowKind::Load || self.in_warmup);
    }

    /// A load request ended for good; `answered` is given when it was.
    #[inline]
    pub(crate) fn ended(
        &mut self,
        kind: RowKind,
        class: OpClass,
        outcome: Outcome,
        answered: Option<Answered>,
    ) {
        let measured = kind == RowKind::Load;
        if !measured && !self.in_warmup {
            self.late_warmup.count(outcome);
            return;
        }
        if measured && let Some(answered) = answered {
            self.last = Some(answered.received);
        }
        let Some(tally) = self.tally.class_mut(class) else {
            return;
        };
        tally.count(outcome);
        let Some(times) = answered else { return };
        tally.bytes_out += times.bytes_out;
        tally.bytes_in += times.bytes_in;
        let service = times.received.saturating_since(times.begun);
        if let Outcome::Error(_) = outcome {
            tally.failed.record(service);
            return;
        }
        tally.service.record(service);
        if self.open {
            tally
                .response
                .record(times.received.saturating_since(times.intended));
        }
        if let Some(kernel) = times.kernel {
            self.tally
                .stamped(class, kernel, (times.sent, times.received));
        }
    }

    /// An attempt ended and is followed by another.
    pub(crate) fn retried(&mut self, kind: RowKind, class: OpClass) {
        if (kind == RowKind::Load || self.in_warmup)
            && let Some(tally) = self.tally.class_mut(class)
        {
            tally.retries += 1;
        }
    }

    /// A reply told found keys from missing ones.
    #[cold]
    pub(crate) fn keys(&mut self, kind: RowKind, class: OpClass, found: u32, missing: u32) {
        if (kind == RowKind::Load || self.in_warmup)
            && let Some(tally) = self.tally.class_mut(class)
        {
            tally.keys_found += u64::from(found);
            tally.keys_missing += u64::from(missing);
        }
    }

    /// A request was sent on to another node: for good, or by an ASK for this time.
    pub(crate) fn redirected(&mut self, kind: RowKind, class: OpClass, asked: bool) {
        if (kind == RowKind::Load || self.in_warmup)
            && let Some(tally) = self.tally.class_mut(class)
        {
            *(if asked {
                &mut tally.asked
            } else {
                &mut tally.moved
            }) += 1;
        }
    }

    /// An attempt to connect, or the connection it became, ended; `words` are the server's where it
    /// said some.
    pub(crate) fn disconnected(&mut self, row: ConnectRow, words: Option<&str>) {
        if let Some(cause) = row.cause.filter(|cause| *cause != Cause::End) {
            self.tally.connects.ended(cause, words);
        }
        if self.rows.is_some() || self.connects.len() < self.most_connects {
            self.connects.push(row);
        }
    }

    /// The first reply of a connection came.
    pub(crate) fn first_reply(&mut self, row: &ConnectRow) {
        if row.kind == ConnectKind::Load
            && let Some(ns) = row.first_reply_ns()
        {
            self.tally.connects.first_reply.record(ns);
        }
    }

    /// Hands the running interval over and begins an empty one.
    pub(crate) fn cut(&mut self) -> Tally {
        let empty = self
            .spare
            .take()
            .unwrap_or_else(|| Tally::new(self.classes));
        std::mem::replace(&mut self.tally, empty)
    }

    /// Takes an emptied tally back, so that the next interval needs no allocation.
    pub(crate) fn recycle(&mut self, tally: Tally) {
        self.spare = Some(tally);
    }
}

/// Attempts to connect of one worker that are kept without rows; more where it has more connections.
pub(crate) const MAX_CONNECTS: usize = 65_536;
