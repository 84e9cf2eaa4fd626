//! Zipf's law over any range of ranks, by rejection-inversion.
//!
//! ```text
//! ranks a .. a+n-1, rank a+k with a probability proportional to h(k) = (1 + k/a)^-s
//!
//!  u in (G(1/2) - 1, G(n - 1/2))          G(x): the integral of h from 0 to x
//!  k = round(G^-1(u))                     the rank whose unit interval u falls into
//!  taken if u >= G(k + 1/2) - h(k)        of that interval only a part of length h(k)
//! ```
//!
//! `h` is convex, so that its integral over the unit interval around k is never less than `h(k)`, and
//! the part of length `h(k)` exists; the first interval is cut to that length from the start. Each
//! rank therefore has exactly its share (W. Hörmann and G. Derflinger, Rejection-inversion to
//! generate variates from monotone discrete distributions, 1996). Ranks are counted from `a` and
//! powers are taken of their ratio to `a`, so that ranges far from 1 lose no digits.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random;

/// The law over some ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZipfRange {
    /// The first rank.
    first: f64,
    /// Ranks behind the first.
    more: u64,
    exponent: f64,
    lowest: f64,
    highest: f64,
    /// A rank is taken without further ado if it is above what it was rounded from by no more.
    sure: f64,
}

impl ZipfRange {
    /// The law over `count` ranks from `first` (at least 1) on.
    pub(super) fn new(first: u64, count: u64, exponent: f64) -> Self {
        let mut law = Self {
            first: super::to_f64(first.max(1)),
            more: count.saturating_sub(1),
            exponent,
            lowest: 0.0,
            highest: 0.0,
            sure: 0.0,
        };
        law.lowest = law.integral(0.5) - 1.0;
        law.highest = law.integral(super::to_f64(law.more) + 0.5);
        // What a rank may be rounded up by grows with the rank, so the second has the least.
        law.sure = 1.0 - law.inverse(law.integral(1.5) - law.weight(1.0));
        law
    }

    /// The next rank, counted from 0 for the first.
    pub(super) fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let unit = random::unit(rng);
            let drawn = self.lowest + unit * (self.highest - self.lowest);
            if let Some(rank) = self.rank(drawn) {
                return rank;
            }
        }
    }

    /// The rank of a number between `lowest` and `highest`, if it is taken.
    fn rank(&self, drawn: f64) -> Option<u64> {
        let x = self.inverse(drawn);
        let place = super::from_f64(x + 0.5).min(self.more);
        let rank = super::to_f64(place);
        let taken = place == 0
            || rank - x <= self.sure
            || drawn >= self.integral(rank + 0.5) - self.weight(rank);
        taken.then_some(place)
    }

    /// `h`: the weight of a rank, 1 for the first.
    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * (x / self.first).ln_1p()).exp()
    }

    /// `G`.
    fn integral(&self, x: f64) -> f64 {
        let log = (x / self.first).ln_1p();
        self.first
            * match self.power() {
                None => log,
                Some(power) => (power * log).exp_m1() / power,
            }
    }

    /// The inverse of `G`.
    fn inverse(&self, integral: f64) -> f64 {
        let scaled = integral / self.first;
        let log = match self.power() {
            None => scaled,
            Some(power) => (power * scaled).ln_1p() / power,
        };
        self.first * log.exp_m1()
    }

    /// One minus the exponent, unless it is too near to 0 to divide by: what is left out changes
    /// no weight by a millionth.
    fn power(&self) -> Option<f64> {
        let power = 1.0 - self.exponent;
        (power.abs() > 1e-9).then_some(power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Use;

    const RANGES: [(u64, u64, f64); 9] = [
        (1, 50, 1.0),
        (1, 50, 0.5),
        (1, 300, 2.0),
        (1, 1, 1.0),
        (1, 2, 4.99),
        (7, 40, 1.0),
        (950, 100, 1.2),
        (950_000, 200, 4.99),
        (1_000_000_000_000, 100, 0.99),
    ];

    /// Weights by the definition.
    fn weights((first, count, exponent): (u64, u64, f64)) -> Vec<f64> {
        (0..count)
            .map(|k| {
                let ratio = (first + k) as f64 / first as f64;
                ratio.powf(-exponent)
            })
            .collect()
    }

    /// Numbers evenly spaced over all that can be drawn: each rank takes as many of them as fit
    /// into its weight, give or take one.
    #[test]
    fn every_rank_takes_a_stretch_as_long_as_its_weight() {
        const STEPS: u32 = 400_000;
        for range in RANGES {
            let law = ZipfRange::new(range.0, range.1, range.2);
            let step = (law.highest - law.lowest) / f64::from(STEPS);
            let mut taken = vec![0_u32; usize::try_from(range.1).unwrap()];
            for place in 0..STEPS {
                let drawn = law.lowest + (f64::from(place) + 0.5) * step;
                if let Some(rank) = law.rank(drawn) {
                    taken[usize::try_from(rank).unwrap()] += 1;
                }
            }
            for (rank, (taken, weight)) in taken.iter().zip(weights(range)).enumerate() {
                let expected = weight / step;
                // The last digits of ranks far from 1 shift an end by a few steps.
                let slack = 1.01 + expected * 1e-3;
                let off = (f64::from(*taken) - expected).abs();
                assert!(off <= slack, "{range:?} {rank}: {taken} {expected}");
            }
        }
    }

    #[test]
    fn draws_pass_chi_square() {
        let draws = 200_000;
        // 99.9 % of chi-square with 49, 39 and 99 degrees of freedom.
        for (range, bound) in [(RANGES[0], 85.4), (RANGES[5], 72.1), (RANGES[6], 148.2)] {
            let law = ZipfRange::new(range.0, range.1, range.2);
            let mut rng = random::stream(3, 0, 0, Use::Keys(0));
            let mut seen = vec![0_u32; usize::try_from(range.1).unwrap()];
            for _ in 0..draws {
                seen[usize::try_from(law.sample(&mut rng)).unwrap()] += 1;
            }
            let weights = weights(range);
            let sum: f64 = weights.iter().sum();
            let chi: f64 = seen
                .iter()
                .zip(&weights)
                .map(|(n, weight)| {
                    let expected = weight / sum * f64::from(draws);
                    (f64::from(*n) - expected).powi(2) / expected
                })
                .sum();
            assert!(chi < bound, "{range:?}: {chi}");
        }
    }

    #[test]
    fn integral_and_inverse_undo_each_other() {
        for range in RANGES {
            let law = ZipfRange::new(range.0, range.1, range.2);
            for x in [-0.4, 0.0, 0.5, 1.5, (law.more as f64) + 0.5] {
                let back = law.inverse(law.integral(x));
                assert!(
                    (back - x).abs() <= 1e-6 * x.abs().max(1.0),
                    "{range:?}: {x} {back}"
                );
            }
        }
    }
}
