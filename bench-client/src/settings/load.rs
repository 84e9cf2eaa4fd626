//! How hard and for how long: load model, arrivals, pipelining and the end of the run.

use std::num::NonZeroU32;
use std::time::Duration;

use kvlab_timing::Rate;

/// The load model; a report names it, because the two are different experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// The next request is sent when a reply frees a slot. Response time equals service time.
    Closed,
    /// Requests are due by a timetable that does not depend on the replies.
    Open {
        /// Arrivals per second, all threads together.
        rate: Rate,
        /// The law of the arrivals.
        arrivals: Arrivals,
    },
}

impl Load {
    /// Whether requests have an intended start apart from their send.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// With so many times the rate, as far as it can be counted.
    #[must_use]
    pub fn times(self, factor: u64) -> Self {
        match self {
            Self::Closed => Self::Closed,
            Self::Open { rate, arrivals } => {
                let numerator = rate.numerator().saturating_mul(factor);
                Self::Open {
                    rate: Rate::new(numerator, rate.denominator()).unwrap_or(rate),
                    arrivals,
                }
            }
        }
    }
}

/// The law by which an open loop's requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Arrivals {
    /// Evenly spaced: arrival i is due i/rate after the start.
    #[default]
    Uniform,
    /// Independent exponential gaps with the mean 1/rate.
    Poisson,
}

/// Requests in flight on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The most requests in flight on one connection.
    pub depth: NonZeroU32,
    /// How freed slots are filled again.
    pub mode: PipelineMode,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            depth: NonZeroU32::MIN,
            mode: PipelineMode::Window,
        }
    }
}

/// How the slots of a connection are filled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PipelineMode {
    /// Sliding window: each reply frees a slot at once.
    #[default]
    Window,
    /// Send up to `depth` requests, then wait for all their replies.
    Batch,
}

/// When a run ends: at the first of the given bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Length of the measured part.
    pub duration: Option<Duration>,
    /// Requests of the measured part, all threads together.
    pub requests: Option<u64>,
}

/// In which order weighted operations follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MixOrder {
    /// Drawn independently by weight from the seeded stream.
    #[default]
    Random,
    /// In a fixed cycle: each operation as often in a row as its weight says.
    Cycle,
}

/// Whose the mix and the keys of the connections are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Clients {
    /// The connections of a thread share one sequence of operations: each takes the next one when
    /// it has a free slot.
    #[default]
    Pooled,
    /// Each connection is a client of its own, with its own place in the mix and in its keys.
    /// Sequential keys then begin at the first key on each of them.
    Separate,
    /// As [`Self::Separate`], and chance is the same for all: each connection draws what the others
    /// draw, in the same order.
    Alike,
}
