//! Sending a request again that failed.
//!
//! ```text
//! sent   error              sent again   error                            sent again   reply
//!   |------|                    |----------|                                   |---------|
//!          |<------ wait ------>|          |<---------- wait x factor -------->|
//!   |<-------------------------------- latency ----------------------------------------->|
//! ```

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use crate::record::FailedRequest;

/// When, and how often, a request that failed is sent again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// So often at most; `None` is without end.
    pub most: Option<u32>,
    /// Wait before the first time.
    pub wait: Duration,
    /// Each further wait is so many times the one before; 0 is all alike.
    pub factor: f64,
    /// Requests that wait to be sent again, for each connection of a thread. While there are more
    /// in all, nothing new is sent.
    pub most_waiting: u32,
}

impl Retry {
    /// The wait in nanoseconds after so many attempts beyond the first; an hour at most.
    #[must_use]
    pub fn wait_ns(&self, attempts: u32) -> u64 {
        let wait = self.wait.min(LONGEST_WAIT);
        if self.factor <= 0.0 || attempts == 0 {
            return super::nanos(wait);
        }
        let power = i32::try_from(attempts).unwrap_or(i32::MAX);
        let grown = wait.as_secs_f64() * self.factor.powi(power);
        // What is no number, or above the bound, is the bound.
        let longest = LONGEST_WAIT.as_secs_f64();
        let seconds = if grown < longest { grown } else { longest };
        super::nanos(Duration::from_secs_f64(seconds))
    }
}

/// Where requests that failed for good are told, as they fail. What it has no room for is left out:
/// a worker does not wait.
#[derive(Clone, Debug)]
pub struct FailureLog(pub SyncSender<FailedRequest>);

const LONGEST_WAIT: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(wait_ms: u64, factor: f64) -> Retry {
        Retry {
            most: None,
            wait: Duration::from_millis(wait_ms),
            factor,
            most_waiting: 1,
        }
    }

    #[test]
    fn waits_grow_by_the_factor_up_to_an_hour() {
        let waits = |wait, factor| [0, 1, 2, 3].map(|n| retry(wait, factor).wait_ns(n) / 1_000_000);
        assert_eq!(waits(100, 0.0), [100, 100, 100, 100]);
        assert_eq!(waits(100, 1.0), [100, 100, 100, 100]);
        assert_eq!(waits(100, 2.0), [100, 200, 400, 800]);
        assert_eq!(waits(100, 1.5), [100, 150, 225, 337]);
        assert_eq!(waits(0, 2.0), [0; 4]);
        let hour = 3_600_000_000_000;
        assert_eq!(retry(1, 1000.0).wait_ns(u32::MAX), hour);
        assert_eq!(retry(u64::MAX / 1_000_000, 0.0).wait_ns(0), hour);
    }
}
