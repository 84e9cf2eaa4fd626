//! What one worker owns and shares with nobody: its statistics, its rows, its place in the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use kvlab_timing::Stamp;

use crate::dialect;
use crate::exchange::Protocol;
use crate::shared::Shared;
use crate::truth::{Counts, Recorder, RowSender, Rows, RunId, Stall, Truth};

/// The state of one worker that its sessions write to.
#[derive(Debug)]
pub struct Worker {
    /// Number of the worker, from 0.
    pub index: usize,
    /// What all workers share.
    pub shared: Arc<Shared>,
    pub(crate) counts: Counts,
    pub(crate) recorder: Recorder,
    /// One row per request, if they were asked for.
    pub(crate) rows: Option<Rows>,
    run: RunId,
    /// When the run began. What was read before is no part of it.
    begun: Stamp,
    /// How many moments each freeze moved, by its place in the list and its beginning.
    moved: BTreeMap<(usize, u64), u64>,
    /// Calls by command ordinal, for each protocol.
    redis_calls: Vec<u64>,
    aerospike_calls: Vec<u64>,
}

impl Worker {
    /// Worker `index` of the server described by `shared`.
    #[must_use]
    pub fn new(index: usize, shared: Arc<Shared>) -> Self {
        let config = &shared.config;
        let rows = config.record_rows.then(|| match config.row_limit {
            None => Rows::All(Vec::new()),
            Some(most) => Rows::Last {
                rows: Default::default(),
                most,
                dropped: 0,
            },
        });
        let [redis_calls, aerospike_calls] = [Protocol::Redis, Protocol::Aerospike]
            .map(|protocol| vec![0; dialect::command_names(protocol).len()]);
        Self {
            index,
            counts: Counts::default(),
            recorder: Recorder::default(),
            rows,
            run: RunId::default(),
            begun: shared.started,
            moved: BTreeMap::new(),
            redis_calls,
            aerospike_calls,
            shared,
        }
    }

    /// The same worker with its rows going to a file.
    #[must_use]
    pub(crate) fn with_rows_to(self, sender: Option<RowSender>) -> Self {
        let to_file = sender.map(|sender| Rows::File {
            chunk: Vec::new(),
            sender,
        });
        Self {
            rows: to_file.or(self.rows),
            ..self
        }
    }

    /// Whether a request read at `read` belongs to an earlier run.
    #[inline]
    pub(crate) fn is_late(&self, read: Stamp) -> bool {
        read < self.begun
    }

    /// Counts the execution of a request that was read at `read`.
    pub(crate) fn count_call(&mut self, read: Stamp, protocol: Protocol, ordinal: u16) {
        if self.is_late(read) {
            return;
        }
        let calls = match protocol {
            Protocol::Redis => &mut self.redis_calls,
            Protocol::Aerospike => &mut self.aerospike_calls,
        };
        if let Some(count) = calls.get_mut(usize::from(ordinal)) {
            *count += 1;
        }
    }

    /// Notes that a freeze, by its place and beginning, moved a moment of a request.
    pub(crate) fn note_moved(&mut self, freeze: usize, begin: u64) {
        *self.moved.entry((freeze, begin)).or_default() += 1;
    }

    /// A copy of what was recorded of the run up to `now`.
    #[must_use]
    pub fn truth(&self, now: Stamp) -> Truth {
        let (rows, rows_dropped) = self.rows.as_ref().map(Rows::copy).unwrap_or_default();
        self.truth_with(rows, rows_dropped, now)
    }

    fn truth_with(&self, rows: Vec<crate::ServerRow>, rows_dropped: u64, now: Stamp) -> Truth {
        let mut stats = self.recorder.stats();
        stats.counts = self.counts;
        for (protocol, calls) in [
            (Protocol::Redis, &self.redis_calls),
            (Protocol::Aerospike, &self.aerospike_calls),
        ] {
            let names = dialect::command_names(protocol);
            stats.calls.extend(
                names
                    .iter()
                    .zip(calls)
                    .filter(|(_, n)| **n > 0)
                    .map(|(name, n)| ((protocol, *name), *n)),
            );
        }
        let (freezes, started) = (&self.shared.config.freezes, self.shared.started);
        Truth {
            run: self.run,
            begun: self.begun,
            taken: now,
            stats,
            stalls: Stall::between(freezes, started, self.begun, now, &self.moved),
            rows,
            rows_dropped,
        }
    }

    /// What was recorded of the run, leaving the worker without its rows.
    pub(crate) fn take_truth(&mut self, now: Stamp) -> Truth {
        let (rows, dropped) = self.rows.as_mut().map(Rows::take).unwrap_or_default();
        self.truth_with(rows, dropped, now)
    }

    /// Ends the run, whose truth it returns, and begins the run called `run` at `now`.
    pub fn begin_run(&mut self, run: RunId, now: Stamp) -> Truth {
        let truth = self.take_truth(now);
        self.counts = Counts::default();
        self.recorder.reset();
        self.moved.clear();
        self.redis_calls.fill(0);
        self.aerospike_calls.fill(0);
        (self.run, self.begun) = (run, now);
        truth
    }
}
