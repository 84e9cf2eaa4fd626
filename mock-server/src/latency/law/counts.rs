//! A law known by counts: so many requests of each of so many times. Draws are whole numbers alone, so
//! they are the same on every machine.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// Times with the number of requests up to and with each, both rising.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Counts {
    up_to: Vec<(u64, u64)>,
    total: u64,
}

impl Counts {
    /// Counts (time in nanoseconds, number) in any order.
    pub(super) fn new(mut counts: Vec<(u64, u64)>) -> Self {
        counts.sort_unstable();
        let mut law = Self::default();
        for (ns, count) in counts {
            law.total = law.total.saturating_add(count);
            match law.up_to.last_mut() {
                Some((last, up_to)) if *last == ns => *up_to = law.total,
                _ => law.up_to.push((ns, law.total)),
            }
        }
        law
    }

    /// How many requests were counted.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        // Below the total, evenly: the upper half of a product of 128 bits.
        let place = (u128::from(rng.next_u64()) * u128::from(self.total)) >> 64;
        let first = self
            .up_to
            .partition_point(|(_, up_to)| u128::from(*up_to) <= place);
        self.up_to.get(first).map_or(0, |(ns, _)| *ns)
    }

    pub(super) fn mean_ns(&self) -> f64 {
        let mut before = 0;
        let mut sum = 0.0;
        for (ns, up_to) in &self.up_to {
            sum += *ns as f64 * (up_to - before) as f64;
            before = *up_to;
        }
        sum / self.total.max(1) as f64
    }

    pub(super) fn quantile_ns(&self, q: f64) -> f64 {
        // A product that is a whole number but for its last bit is that number.
        let rank = (q * self.total as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil();
        let found = self
            .up_to
            .partition_point(|(_, up_to)| (*up_to as f64) < rank);
        let entry = self.up_to.get(found).or(self.up_to.last());
        entry.map_or(0.0, |(ns, _)| *ns as f64)
    }

    pub(super) fn cdf(&self, ns: f64) -> f64 {
        let beyond = self.up_to.partition_point(|(value, _)| *value as f64 <= ns);
        let up_to = beyond.checked_sub(1).and_then(|last| self.up_to.get(last));
        up_to.map_or(0.0, |(_, up_to)| *up_to as f64 / self.total.max(1) as f64)
    }
}
