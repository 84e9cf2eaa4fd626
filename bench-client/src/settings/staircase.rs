//! Connections that come step by step.
//!
//! ```text
//! connections of a thread
//!     all ─                       ┌───────────
//!                         ┌───────┘
//!   start ────────────────┘
//!         0             length  2 length          after the start of the measured part
//! ```

use std::num::NonZeroU32;
use std::time::Duration;

use kvlab_timing::{Rate, RateError};

use super::Load;

/// Load that begins with a part of the connections; each step adds more, until all are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staircase {
    /// Connections of each thread at the begin.
    pub start: NonZeroU32,
    /// Connections of each thread that come with each step.
    pub step: NonZeroU32,
    /// Time from one step to the next.
    pub length: Duration,
}

impl Staircase {
    /// Connections of a thread after so many steps, which in the end has `all`.
    #[must_use]
    pub fn connections(&self, steps: u64, all: u32) -> u32 {
        let more = u64::from(self.step.get()).saturating_mul(steps);
        let wanted = more.saturating_add(u64::from(self.start.get()));
        u32::try_from(wanted).unwrap_or(u32::MAX).min(all)
    }

    /// Connections of all threads after so many steps. Where `all` does not come out even, the
    /// first threads have one more.
    #[must_use]
    pub fn connections_of_all(&self, steps: u64, all: u32, threads: u32) -> u64 {
        let (each, more) = (all / threads, all % threads);
        let large = u64::from(self.connections(steps, each + 1));
        let small = u64::from(self.connections(steps, each));
        u64::from(more) * large + u64::from(threads - more) * small
    }

    /// Steps until a thread has all its connections.
    #[must_use]
    pub fn steps(&self, all: u32) -> u64 {
        u64::from(
            all.saturating_sub(self.start.get())
                .div_ceil(self.step.get()),
        )
    }

    /// The load after so many steps. The rate is that of all connections: each has its part of it
    /// from the begin, so that those that are there have as much of it as they are of all.
    ///
    /// # Errors
    /// The fraction does not fit.
    pub fn load(&self, load: Load, steps: u64, all: u32, threads: u32) -> Result<Load, RateError> {
        let Load::Open { rate, arrivals } = load else {
            return Ok(load);
        };
        let there = self.connections_of_all(steps, all, threads);
        let common = gcd(there, u64::from(all).max(1));
        let num = rate.numerator().checked_mul(there / common);
        let den = rate.denominator().checked_mul(u64::from(all) / common);
        let rate = match (num, den) {
            (Some(num), Some(den)) => Rate::new(num, den)?,
            _ => return Err(RateError::TooFine),
        };
        Ok(Load::Open { rate, arrivals })
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Arrivals;

    fn stairs(start: u32, step: u32) -> Staircase {
        Staircase {
            start: NonZeroU32::new(start).unwrap(),
            step: NonZeroU32::new(step).unwrap(),
            length: Duration::from_secs(1),
        }
    }

    #[test]
    fn the_last_step_ends_with_all_connections() {
        // 3, 7 and then 10, not 11.
        let stairs = stairs(3, 4);
        let each: Vec<u32> = (0..5).map(|steps| stairs.connections(steps, 10)).collect();
        assert_eq!(each, [3, 7, 10, 10, 10]);
        assert_eq!(stairs.steps(10), 2);
        assert_eq!(stairs.steps(11), 2);
        assert_eq!((stairs.steps(3), stairs.steps(2)), (0, 0));
        assert_eq!(stairs.connections(u64::MAX, u32::MAX), u32::MAX);
        // 11 on two threads are 6 and 5.
        let all: Vec<u64> = (0..3)
            .map(|steps| stairs.connections_of_all(steps, 11, 2))
            .collect();
        assert_eq!(all, [6, 11, 11]);
    }

    #[test]
    fn each_connection_has_its_part_of_the_rate() {
        let load = Load::Open {
            rate: Rate::per_second(100).unwrap(),
            arrivals: Arrivals::Uniform,
        };
        let rate = |steps| match stairs(2, 4).load(load, steps, 14, 2).unwrap() {
            Load::Open { rate, .. } => (rate.numerator(), rate.denominator()),
            Load::Closed => panic!("an open loop stays one"),
        };
        // 4, 12 and 14 of 14 connections.
        assert_eq!([rate(0), rate(1), rate(2)], [(200, 7), (600, 7), (100, 1)]);
        let closed = stairs(2, 4).load(Load::Closed, 0, 14, 2);
        assert_eq!(closed, Ok(Load::Closed));
    }
}
