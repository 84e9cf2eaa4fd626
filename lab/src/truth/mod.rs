//! The truth of a run, computed from raw rows.
//!
//! Nothing here uses the load generator's recorder or the server's latency code: quantiles come
//! from sorted samples ([`exact`]), rows are matched by their key ([`join`]), moments are recomputed
//! from the written rules ([`timing`], [`arrivals`], [`accept`]), an open loop is simulated from its timetable
//! ([`schedule`]), a queue of known laws has its formula ([`queue`]).

pub mod accept;
pub mod arrivals;
pub mod cuts;
pub mod digest;
pub mod exact;
pub mod join;
pub mod line;
pub mod lives;
pub mod queue;
pub mod replay;
pub mod schedule;
pub mod shapes;
pub mod throttle;
pub mod timing;

pub use exact::{Quantile, Sorted};
pub use join::{Joined, Pair};
