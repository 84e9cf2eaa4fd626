//! All that requests are limited to, as one group of settings.

use super::{BlockForm, Blocked, ByteSize, Eviction, Share, SizeLimit, Throttle};

/// The limits on requests. [`RequestLimits::default`] has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestLimits {
    /// How much passes in a time.
    pub throttles: Vec<Throttle>,
    /// How large requests may be; of each kind at most one.
    pub sizes: Vec<SizeLimit>,
    /// How much memory the data of the RESP side, and that of each namespace, may take.
    pub max_memory: Option<ByteSize>,
    /// What the RESP side evicts; `None` for nothing.
    pub eviction: Option<Eviction>,
    /// From which share of `max_memory` on a namespace takes no writes.
    pub stop_writes: Option<Share>,
    /// Commands that nobody may run.
    pub blocked: Vec<Blocked>,
    /// How a RESP client is told that a command is blocked.
    pub block_form: BlockForm,
}
