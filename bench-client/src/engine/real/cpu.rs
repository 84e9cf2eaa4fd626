//! Processor time of a worker thread over the measured part.

use std::time::Duration;

use kvlab_timing::Stamp;
use rustix::time::{ClockId, clock_gettime};

use crate::engine::recorder::Part;
use crate::record::Phase;

/// Measures the calling thread.
#[derive(Debug, Default)]
pub(super) struct CpuMeter {
    begin: Option<(Duration, Stamp)>,
    end: Option<(Duration, Stamp)>,
}

impl CpuMeter {
    /// The load begins at `start`.
    pub(super) fn begin(&mut self, start: Stamp) {
        self.begin = Some((thread_time(), start));
    }

    /// An interval is over.
    pub(super) fn passed(&mut self, part: &Part) {
        match part.phase {
            Phase::Warmup => self.begin(part.end),
            Phase::Measured => self.end = Some((thread_time(), part.end)),
            Phase::Drain => {}
        }
    }

    /// Processor time of the measured part, and its length.
    pub(super) fn result(&self) -> Option<(Duration, Duration)> {
        let ((used_before, begin), (used, end)) = (self.begin?, self.end?);
        let elapsed = Duration::from_nanos(end.saturating_since(begin));
        Some((used.saturating_sub(used_before), elapsed))
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
