//! A recorded list of delays, one after the other.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::counts::Counts;
use super::{LawError, files};

/// `replay(file=...)`: the delays of a list in the order in which requests start on the server, and
/// then from its beginning again. All workers share the list. A server begins with its first delay.
#[derive(Debug, Clone)]
pub struct Replay {
    path: String,
    delays: Arc<[u64]>,
    counts: Arc<Counts>,
    next: Arc<AtomicU64>,
}

impl Replay {
    /// More delays are refused.
    pub const MAX_DELAYS: usize = 10_000_000;

    /// The list in a file, which is read here and now: one time a line, `#` begins a comment.
    ///
    /// # Errors
    /// Tells the file, and the line where there is one, when it cannot be read.
    pub fn from_file(path: &str) -> Result<Self, LawError> {
        let delays = files::read_delays(Path::new(path))?;
        let mut counts = BTreeMap::new();
        for delay in &delays {
            *counts.entry(*delay).or_default() += 1;
        }
        Ok(Self {
            path: path.to_owned(),
            delays: delays.into(),
            counts: Arc::new(Counts::new(counts.into_iter().collect())),
            next: Arc::default(),
        })
    }

    /// The delays in nanoseconds, in their order.
    #[must_use]
    pub fn delays(&self) -> &[u64] {
        &self.delays
    }

    /// The same list from its beginning, whatever others have taken from it.
    pub(in crate::latency) fn restarted(&self) -> Self {
        Self {
            next: Arc::default(),
            ..self.clone()
        }
    }

    pub(in crate::latency) fn sample(&self) -> u64 {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        // A list has at least one delay.
        let place = count.checked_rem(self.delays.len() as u64).unwrap_or(0);
        let place = usize::try_from(place).unwrap_or(0);
        self.delays.get(place).copied().unwrap_or(0)
    }

    pub(in crate::latency) fn mean_ns(&self) -> f64 {
        self.counts.mean_ns()
    }

    pub(in crate::latency) fn quantile_ns(&self, q: f64) -> f64 {
        self.counts.quantile_ns(q)
    }

    pub(in crate::latency) fn cdf(&self, ns: f64) -> f64 {
        self.counts.cdf(ns)
    }
}

impl PartialEq for Replay {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, &self.delays) == (&other.path, &other.delays)
    }
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replay(file={})", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Replay {
        let path = format!("{}/tests/data/delays.txt", env!("CARGO_MANIFEST_DIR"));
        Replay::from_file(&path).unwrap()
    }

    #[test]
    fn delays_come_in_order_and_from_the_beginning_again() {
        let list = recorded();
        let drawn: Vec<u64> = (0..6).map(|_| list.sample()).collect();
        let expected = [1_000_000, 2_500_000, 900_000, 0, 1_000_000, 2_500_000];
        assert_eq!(drawn, expected);
        assert_eq!(list.delays(), &expected[..4]);
    }

    #[test]
    fn a_copy_goes_on_and_a_restarted_list_begins() {
        let list = recorded();
        list.sample();
        let (copy, again) = (list.clone(), list.restarted());
        assert_eq!(copy.sample(), 2_500_000);
        assert_eq!(list.sample(), 900_000);
        assert_eq!(again.sample(), 1_000_000);
    }

    #[test]
    fn mean_and_quantiles_are_those_of_the_list() {
        let list = recorded();
        assert_eq!(list.mean_ns(), 1_100_000.0);
        assert_eq!(list.quantile_ns(0.5), 900_000.0);
        assert_eq!(list.quantile_ns(0.51), 1_000_000.0);
        assert_eq!(list.cdf(999_999.0), 0.5);
    }
}
