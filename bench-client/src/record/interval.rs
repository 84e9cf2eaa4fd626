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
    /// Requests sent and not answered at the end of the interval.
    pub in_flight: u64,
    /// Requests due and not sent at the end of the interval.
    pub backlog: u64,
}

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
