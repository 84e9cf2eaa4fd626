//! What a namespace counts about the operations on it, shown by `namespace/N`.
//!
//! Each worker counts in cache lines of its own and is the only one to write them, so counting needs
//! no atomic addition; readers add the workers up.

use std::sync::atomic::{AtomicU64, Ordering};

use kvlab_protocol::aerospike::result_code::ResultCode;

/// Where an operation came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A message of its own.
    Client,
    /// A row of a batch.
    BatchRow,
}

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Read,
    Write,
    Delete,
    Udf,
}

/// Names of what is counted, by place; the words of the server's statistics.
const NAMES: [&str; COUNTERS] = [
    "client_read_success",
    "client_read_error",
    "client_read_not_found",
    "client_read_filtered_out",
    "client_write_success",
    "client_write_error",
    "client_write_not_found",
    "client_write_filtered_out",
    "client_delete_success",
    "client_delete_error",
    "client_delete_not_found",
    "client_delete_filtered_out",
    "client_udf_complete",
    "client_udf_error",
    "client_udf_not_found",
    "client_udf_filtered_out",
    "batch_sub_read_success",
    "batch_sub_read_error",
    "batch_sub_read_not_found",
    "batch_sub_read_filtered_out",
    "batch_sub_write_success",
    "batch_sub_write_error",
    "batch_sub_write_not_found",
    "batch_sub_write_filtered_out",
    "batch_sub_delete_success",
    "batch_sub_delete_error",
    "batch_sub_delete_not_found",
    "batch_sub_delete_filtered_out",
    "batch_sub_udf_complete",
    "batch_sub_udf_error",
    "batch_sub_udf_not_found",
    "batch_sub_udf_filtered_out",
    "fail_generation",
    "fail_record_too_big",
];

const COUNTERS: usize = 34;

/// Places of the two counters that go by the result alone.
const FAIL_GENERATION: usize = 32;
const FAIL_TOO_BIG: usize = 33;

/// The counters of one worker.
#[derive(Debug)]
#[repr(align(128))]
struct OfWorker([AtomicU64; COUNTERS]);

/// The counters of all workers.
#[derive(Debug)]
pub(super) struct Tally {
    workers: Box<[OfWorker]>,
}

impl Tally {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers.max(1))
                .map(|_| OfWorker([const { AtomicU64::new(0) }; COUNTERS]))
                .collect(),
        }
    }

    /// Counts one operation. Only the thread of `worker` may call this with its number.
    #[inline]
    pub(super) fn count(&self, worker: usize, source: Source, work: Work, result: ResultCode) {
        let Some(OfWorker(counters)) = self.workers.get(worker) else {
            return;
        };
        let outcome = match (result, work) {
            (ResultCode::Ok, _) => 0,
            (ResultCode::NotFound, Work::Read | Work::Delete) => 2,
            (ResultCode::FilteredOut, _) => 3,
            _ => 1,
        };
        let add = |place: usize| {
            if let Some(counter) = counters.get(place) {
                counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        };
        add(source as usize * 16 + work as usize * 4 + outcome);
        match result {
            ResultCode::Generation => add(FAIL_GENERATION),
            ResultCode::RecordTooBig => add(FAIL_TOO_BIG),
            _ => {}
        }
    }

    /// The count called `name`, if there is one.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        let place = NAMES.iter().position(|known| *known == name)?;
        let counts = self.workers.iter().filter_map(|worker| worker.0.get(place));
        Some(counts.map(|count| count.load(Ordering::Relaxed)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_name() {
        let tally = Tally::new(2);
        tally.count(0, Source::Client, Work::Read, ResultCode::Ok);
        tally.count(1, Source::Client, Work::Read, ResultCode::Ok);
        tally.count(1, Source::Client, Work::Delete, ResultCode::NotFound);
        tally.count(0, Source::Client, Work::Write, ResultCode::NotFound);
        tally.count(0, Source::BatchRow, Work::Write, ResultCode::Generation);
        tally.count(0, Source::BatchRow, Work::Udf, ResultCode::Udf);
        let counts = [
            ("client_read_success", 2),
            ("client_delete_not_found", 1),
            ("client_write_error", 1),
            ("batch_sub_write_error", 1),
            ("fail_generation", 1),
            ("batch_sub_udf_error", 1),
            ("batch_sub_read_success", 0),
        ];
        for (name, count) in counts {
            assert_eq!(tally.get(name), Some(count), "{name}");
        }
        assert_eq!(tally.get("nope"), None);
    }
}
