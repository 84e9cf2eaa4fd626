//! Processor time of a worker thread over the measured part.

use std::time::Duration;

use kvlab_timing::Stamp;
use rustix::time::{ClockId, clock_gettime};

use crate::engine::recorder::Part;
use crate::record::{Phase, ThreadLoad};

/// Measures the calling thread.
#[derive(Debug, Default)]
pub(super) struct CpuMeter {
    begin: Option<Reading>,
    end: Option<Reading>,
    /// At the end of the last interval.
    last: Option<Reading>,
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

impl Reading {
    fn since(&self, earlier: &Self) -> CpuTime {
        let used = self.used.saturating_sub(earlier.used);
        CpuTime {
            used,
            spun: Duration::from_nanos(self.spun_ns.saturating_sub(earlier.spun_ns)).min(used),
            elapsed: Duration::from_nanos(self.at.saturating_since(earlier.at)),
        }
    }
}

impl CpuTime {
    /// The same as shares of the elapsed time.
    pub(crate) fn load(&self) -> Option<ThreadLoad> {
        let elapsed = self.elapsed.as_secs_f64();
        (elapsed > 0.0).then(|| ThreadLoad {
            cpu_share: self.used.as_secs_f64() / elapsed,
            spun_share: self.spun.as_secs_f64() / elapsed,
        })
    }
}

impl CpuMeter {
    /// The load begins at `start`.
    pub(super) fn begin(&mut self, start: Stamp) {
        self.begin = Some(self.read(start));
        self.last = self.begin;
    }

    /// An interval is over; gives its processor time.
    pub(super) fn passed(&mut self, part: &Part) -> Option<CpuTime> {
        let reading = self.read(part.end);
        match part.phase {
            Phase::Warmup => self.begin = Some(reading),
            Phase::Measured => self.end = Some(reading),
            Phase::Drain => {}
        }
        let last = self.last.replace(reading)?;
        Some(reading.since(&last))
    }

    /// What the measured part took.
    pub(super) fn result(&self) -> Option<CpuTime> {
        let (begin, end) = (self.begin?, self.end?);
        Some(end.since(&begin))
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
