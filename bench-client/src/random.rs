//! Seeded random streams.
//!
//! Every use of chance in a run has a stream of its own, derived from the run's seed, the use and
//! the thread, so adding a use leaves the other streams as they were. The generator is
//! xoshiro256++, seeded through splitmix64.

use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// What a random stream is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Which operation of the mix.
    Mix,
    /// Keys of the key stream of this number.
    Keys(u16),
    /// Numbers in the request of this number.
    Numbers(u16),
    /// What the further keys of the request of this number follow from.
    FurtherKeys(u16),
    /// Which request of a replay.
    Replay,
    /// Sizes and places of values.
    Values,
    /// Gaps between Poisson arrivals.
    Arrivals,
    /// The block of bytes that values are cut from.
    Block,
}

/// The stream of one use on one thread. `part` tells the measured part from the warm-up.
#[must_use]
pub fn stream(seed: u64, part: u64, thread: u32, usage: Use) -> Xoshiro256PlusPlus {
    let code = match usage {
        Use::Mix => 1,
        Use::Values => 2,
        Use::Arrivals => 3,
        Use::Block => 4,
        Use::Replay => 5,
        Use::Keys(number) => 0x100 + u64::from(number),
        Use::Numbers(number) => 0x2_0000 + u64::from(number),
        Use::FurtherKeys(number) => 0x4_0000 + u64::from(number),
    };
    let place = code << 40 | part << 32 | u64::from(thread);
    Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ mix(place)))
}

/// One step of splitmix64: a bijection that scatters neighbouring numbers.
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Maps 64 random bits to `0..count` by multiplication; the bias is below count / 2^64.
#[must_use]
pub fn scale(bits: u64, count: u64) -> u64 {
    let product = u128::from(bits) * u128::from(count);
    // The upper half of a 128-bit product is below 2^64.
    u64::try_from(product >> 64).unwrap_or(0)
}

/// A number of `0..count`, each with the same probability.
pub fn below(rng: &mut Xoshiro256PlusPlus, count: u64) -> u64 {
    scale(rng.next_u64(), count)
}

/// A number of 0 (included) to 1 (excluded), in steps of 2^-53.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
pub fn unit(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// A number from the exponential law with this mean, by the random bits.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a random number to the nearest, never negative; the cast saturates"
)]
pub fn exponential(mean: u64, bits: u64) -> u64 {
    let unit: f64 = Exp1.sample(&mut Xoshiro256PlusPlus::seed_from_u64(bits));
    (unit * mean as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_matches_its_published_sequence() {
        // First outputs of splitmix64 for the seed 1234567, from the reference program.
        let mut state = 1_234_567_u64;
        let mut next = || {
            let value = mix(state);
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            value
        };
        assert_eq!(next(), 6_457_827_717_110_365_317);
        assert_eq!(next(), 3_203_168_211_198_807_973);
        assert_eq!(next(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn streams_differ_by_use_thread_and_part_and_repeat_by_seed() {
        let first = |seed, part, thread, usage| stream(seed, part, thread, usage).next_u64();
        let all = [
            first(1, 0, 0, Use::Mix),
            first(1, 0, 1, Use::Mix),
            first(1, 1, 0, Use::Mix),
            first(2, 0, 0, Use::Mix),
            first(1, 0, 0, Use::Values),
            first(1, 0, 0, Use::Keys(0)),
            first(1, 0, 0, Use::Keys(1)),
            first(1, 0, 0, Use::Numbers(0)),
            first(1, 0, 0, Use::FurtherKeys(0)),
            first(1, 0, 0, Use::Replay),
        ];
        for (place, value) in all.iter().enumerate() {
            assert!(!all[..place].contains(value));
        }
        assert_eq!(first(1, 0, 0, Use::Mix), all[0]);
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "small numbers are exact")]
    fn exponential_numbers_have_their_mean_and_tail() {
        let all: Vec<u64> = (0..20_000)
            .map(|bits| exponential(1_000_000, mix(bits)))
            .collect();
        let mean = all.iter().sum::<u64>() as f64 / 20_000.0;
        // One sigma of the mean of 20,000 is 0.7 %.
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
        let above = all.iter().filter(|number| **number > 1_000_000).count() as f64 / 20_000.0;
        assert!((above - (-1.0_f64).exp()).abs() < 0.015, "{above}");
    }

    #[test]
    fn scale_covers_the_range_evenly() {
        assert_eq!(scale(0, 10), 0);
        assert_eq!(scale(u64::MAX, 10), 9);
        assert_eq!(scale(u64::MAX / 2 + 1, 10), 5);
        assert_eq!(scale(u64::MAX, u64::MAX), u64::MAX - 1);
    }
}
