//! How late a reply is meant to be: latency rules, the distributions they draw from, and freezes.

mod freeze;

pub use freeze::Freeze;

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::exchange::Exchange;

/// The latency rules of a server, ready to be asked for each request.
#[derive(Debug, Clone, Default)]
pub struct LatencyRules {
    constant_ns: u64,
}

impl LatencyRules {
    /// The same delay for every request, in nanoseconds.
    #[must_use]
    pub fn constant(constant_ns: u64) -> Self {
        Self { constant_ns }
    }

    /// Whether no rule delays anything.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.constant_ns == 0
    }

    /// The delay wanted for `exchange`, in nanoseconds.
    pub fn wanted_ns(&self, _exchange: &Exchange<'_>, _rng: &mut Xoshiro256PlusPlus) -> u64 {
        self.constant_ns
    }
}
