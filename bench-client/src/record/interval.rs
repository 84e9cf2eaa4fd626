//! What the observer of a run sees once per interval.

use std::time::Duration;

use kvlab_timing::Stamp;

use super::Tally;

/// One interval of a run, all threads together.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Place in the run, from 0; counts warm-up and drain intervals too.
    pub index: u64,
    /// Part of the run the interval belongs to.
    pub phase: Phase,
    /// Begin, from the start of the measured part; the warm-up lies before it.
    pub begin: Stamp,
    /// End.
    pub end: Stamp,
    /// Time from the start of the measured part to the end of the interval; 0 in the warm-up.
    pub elapsed: Duration,
    /// What ended in the interval. In the warm-up this is warm-up load, which the summary leaves
    /// out.
    pub tally: Tally,
    /// Everything measured so far, this interval included.
    pub ended: u64,
    /// Share of the run that is done, 0 to 1.
    pub progress: f64,
    /// Load connections that are up at the end of the interval.
    pub connections: u64,
    /// Load connections that are being made at the end of the interval.
    pub connecting: u64,
    /// Requests sent and not answered at the end of the interval.
    pub in_flight: u64,
    /// Requests due and not sent at the end of the interval.
    pub backlog: u64,
    /// One entry per thread; empty under virtual time.
    pub threads: Vec<ThreadLoad>,
}

/// How busy a thread was in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadLoad {
    /// Processor time over elapsed time, 0 to 1.
    pub cpu_share: f64,
    /// The part of it, at most, that waited for the next due moment or reply.
    pub spun_share: f64,
}

impl Interval {
    /// Whether the client itself may have been the limit: a thread worked for more than 70 % of
    /// the interval, or the client fell behind its schedule with most of its requests.
    #[must_use]
    pub fn is_saturated(&self) -> bool {
        let busy = |thread: &ThreadLoad| thread.cpu_share - thread.spun_share > BUSY;
        let late = self.tally.lateness.quantile(0.5);
        self.threads.iter().any(busy) || (is_behind(&self.tally) && late > LATE)
    }
}

/// Whether the client's own lateness is a part of the response times that one should know of.
pub(crate) fn is_behind(tally: &Tally) -> bool {
    tally.lateness.quantile(0.99) * BEHIND > tally.response().quantile(0.99)
}

/// Share of a core above which a thread may be the limit itself.
pub(crate) const BUSY: f64 = 0.7;
/// Median lateness above which a client that fell behind is called saturated: twice what waking an
/// idle core takes. A late tail alone says that the machine was busy for moments.
pub(crate) const LATE: Duration = Duration::from_micros(100);
/// Lateness above one in this many parts of the response time is falling behind.
const BEHIND: u32 = 10;

/// Parts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Load before the measured part.
    Warmup,
    /// The measured part.
    Measured,
    /// After the end: what was due is still sent and what was sent still awaited.
    Drain,
}
