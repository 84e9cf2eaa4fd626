//! What a run records: outcomes, latencies, intervals, raw rows and the summary.
//!
//! Each worker records into a [`Tally`] of its own, alone; at interval boundaries it hands the
//! tally over and goes on with an empty one. The reporter adds the tallies of all threads up.
//! All times are nanoseconds of one monotonic clock.

mod certificate;
mod connect;
mod failed;
mod interval;
mod latency;
mod outcome;
mod row;
mod summary;
mod tally;

pub use certificate::{Bound, CalibrationRun, Certificate, CertifiedLatency, CertifiedQuantile};
pub use connect::{Cause, CauseCounts, ConnectKind, ConnectRow, SocketEnd};
pub use failed::FailedRequest;
pub(crate) use interval::{BUSY, LATE, is_behind};
pub use interval::{Interval, Phase, ThreadLoad};
pub use latency::{LATENCY_MAX_NS, Latency};
pub use outcome::{ErrorKind, OpClass, Outcome, Outcomes};
pub use row::{ClientRow, RowKind};
pub use summary::{
    ConnectionLoss, CurvePoint, MAX_CURVE, Notice, SetupSummary, Summary, ThreadSummary,
};
pub use tally::{
    ClassTally, ConnectTally, ErrorCounts, MAX_CONNECT_TEXTS, MAX_ERROR_KINDS, STAMP_TOLERANCE_NS,
    Tally,
};
