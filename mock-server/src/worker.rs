//! What one worker owns and shares with nobody: its statistics, its rows, its place in the server.

use std::sync::Arc;

use kvlab_timing::Stamp;

use crate::dialect;
use crate::exchange::Protocol;
use crate::shared::Shared;
use crate::stamp::{ServerRow, Stats, Truth};

/// The state of one worker that its sessions write to.
#[derive(Debug)]
pub struct Worker {
    /// Number of the worker, from 0.
    pub index: usize,
    /// What all workers share.
    pub shared: Arc<Shared>,
    pub(crate) stats: Stats,
    /// One row per request, if they were asked for.
    pub(crate) rows: Option<Vec<ServerRow>>,
    /// Calls by command ordinal, for each protocol.
    redis_calls: Vec<u64>,
    aerospike_calls: Vec<u64>,
}

impl Worker {
    /// Worker `index` of the server described by `shared`.
    #[must_use]
    pub fn new(index: usize, shared: Arc<Shared>) -> Self {
        let rows = shared.config.record_rows.then(Vec::new);
        let [redis_calls, aerospike_calls] = [Protocol::Redis, Protocol::Aerospike]
            .map(|protocol| vec![0; dialect::command_names(protocol).len()]);
        Self {
            index,
            shared,
            stats: Stats::default(),
            rows,
            redis_calls,
            aerospike_calls,
        }
    }

    pub(crate) fn count_call(&mut self, protocol: Protocol, ordinal: u16) {
        let calls = match protocol {
            Protocol::Redis => &mut self.redis_calls,
            Protocol::Aerospike => &mut self.aerospike_calls,
        };
        if let Some(count) = calls.get_mut(usize::from(ordinal)) {
            *count += 1;
        }
    }

    /// A copy of what was recorded so far.
    #[must_use]
    pub fn truth(&self) -> Truth {
        let mut stats = self.stats.clone();
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
        Truth {
            stats,
            rows: self.rows.clone().unwrap_or_default(),
        }
    }

    /// What was recorded, leaving the worker without its rows.
    pub(crate) fn take_truth(&mut self) -> Truth {
        let rows = self.rows.as_mut().map(std::mem::take).unwrap_or_default();
        Truth {
            rows,
            ..self.truth()
        }
    }

    /// Forgets what was recorded so far, for a run that starts at `_now`.
    pub fn reset(&mut self, _now: Stamp) {
        self.stats = Stats::default();
        self.redis_calls.fill(0);
        self.aerospike_calls.fill(0);
        if let Some(rows) = &mut self.rows {
            rows.clear();
        }
    }
}
