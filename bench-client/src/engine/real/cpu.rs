//! Processor time of a worker thread over the measured part.

use std::time::Duration;

use kvlab_timing::Stamp;
use rustix::time::{ClockId, clock_gettime};

use crate::engine::recorder::Part;
use crate::record::Phase;

/// Measures the calling thread.
#[derive(Debug, Default)]
pub(super) struct CpuMeter {
    begin: Option<Reading>,
    end: Option<Reading>,
    /// Time spent in spinning so far, kept up by the pacing task.
    pub(super) spun_ns: u64,
}

/// Processor time of the measured part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime {
    /// All of it.
    pub(crate) used: Duration,
    /// At most this much was spinning.
    pub(crate) spun: Duration,
    /// Length of the measured part.
    pub(crate) elapsed: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Stamp,
    used: Duration,
    spun_ns: u64,
}

impl CpuMeter {
    /// The load begins at `start`.
    pub(super) fn begin(&mut self, start: Stamp) {
        self.begin = Some(self.read(start));
    }

    /// An interval is over.
    pub(super) fn passed(&mut self, part: &Part) {
        match part.phase {
            Phase::Warmup => self.begin(part.end),
            Phase::Measured => self.end = Some(self.read(part.end)),
            Phase::Drain => {}
        }
    }

    /// What the measured part took.
    pub(super) fn result(&self) -> Option<CpuTime> {
        let (begin, end) = (self.begin?, self.end?);
        let used = end.used.saturating_sub(begin.used);
        Some(CpuTime {
            used,
            spun: Duration::from_nanos(end.spun_ns - begin.spun_ns).min(used),
            elapsed: Duration::from_nanos(end.at.saturating_since(begin.at)),
        })
    }

    fn read(&self, at: Stamp) -> Reading {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let used = Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0));
        Reading {
            at,
            used,
            spun_ns: self.spun_ns,
        }
    }
}
