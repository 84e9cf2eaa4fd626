//! Delays for the mock server, near a law that was seen.
//!
//! The delays are not drawn but listed: 4096 of them, the points of the quantile function each once, in
//! eight blocks that each hold one of every eight neighbours, and shuffled within a block. So even a short
//! run has its slow requests in their exact share; drawn at random, a mode of 1.5 % would in some runs
//! shrink to less than 1 % and p99 would be another mode's.

use kvlab_bench_client::random;
use kvlab_mock_server::latency::{Distribution, LawError, Replay};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::curve::Curve;

/// Delays whose quantiles are those of `curve`.
///
/// # Errors
/// When a quantile lies above the longest delay of the server.
pub fn near(curve: &Curve, seed: u64) -> Result<Distribution, LawError> {
    Replay::from_delays(delays(curve, seed)).map(Distribution::Replay)
}

/// The same, but one delay in a hundred is `long_ns`.
///
/// # Errors
/// As [`near`].
pub fn near_with(curve: &Curve, long_ns: u64, seed: u64) -> Result<Distribution, LawError> {
    let mut delays = delays(curve, seed);
    let hundredth = delays.iter_mut().skip(HUNDRED / 2).step_by(HUNDRED);
    hundredth.for_each(|delay| *delay = long_ns);
    Replay::from_delays(delays).map(Distribution::Replay)
}

/// What the delays are like, in words.
#[must_use]
pub fn outline(law: &Distribution) -> String {
    let ms = |share: f64| format!("{:.3}", law.quantile_ns(share) / 1e6);
    let (p50, p90, p99) = (ms(0.5), ms(0.9), ms(0.99));
    format!("delays with p50 {p50}, p90 {p90}, p99 {p99} ms")
}

/// A time in whole nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times within an hour; the cast saturates"
)]
pub(super) fn whole(ns: f64) -> u64 {
    ns.max(0.0).round() as u64
}

fn delays(curve: &Curve, seed: u64) -> Vec<u64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut delays = Vec::with_capacity(Curve::POINTS);
    for block in 0..BLOCKS {
        let begin = delays.len();
        let points = curve.points().iter().skip(block).step_by(BLOCKS);
        delays.extend(points.copied().map(whole));
        // Fisher and Yates.
        for place in (begin + 1..delays.len()).rev() {
            let choices = (place - begin + 1) as u64;
            let other = usize::try_from(random::below(&mut rng, choices)).unwrap_or(0);
            delays.swap(place, begin + other);
        }
    }
    delays
}

const BLOCKS: usize = 8;
const HUNDRED: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(law: &Distribution) -> &[u64] {
        match law {
            Distribution::Replay(list) => list.delays(),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn each_point_comes_once_and_every_block_has_its_share_of_the_slow() {
        // 1.5 % take fifty times as long: 61.44 of 4096 points, 7.68 of a block.
        let two = |i: u32| if i < 9_850 { f64::from(i) } else { 50e6 };
        let curve = Curve::of_samples((0..10_000).map(two).collect()).unwrap();
        let law = near(&curve, 7).unwrap();
        let mut sorted = list(&law).to_vec();
        sorted.sort_unstable();
        let points: Vec<u64> = curve.points().iter().copied().map(whole).collect();
        assert_eq!(sorted, points);
        for block in list(&law).chunks(512) {
            let slow = block.iter().filter(|ns| **ns == 50_000_000).count();
            assert!((7..=8).contains(&slow), "{slow}");
            assert!(!block.is_sorted());
        }
        assert_eq!(list(&near(&curve, 7).unwrap()), list(&law));
        assert_ne!(list(&near(&curve, 8).unwrap()), list(&law));
    }

    #[test]
    fn one_delay_in_a_hundred_may_be_long() {
        let curve = Curve::of_samples(vec![1e6; 10]).unwrap();
        let law = near_with(&curve, 1_000_000_000, 1).unwrap();
        let long = list(&law).iter().filter(|ns| **ns == 1_000_000_000);
        assert_eq!(long.count(), 41);
        assert_eq!(law.quantile_ns(0.5), 1e6);
    }

    #[test]
    fn a_server_that_takes_no_time_has_a_law() {
        let law = near(&Curve::of_samples(vec![0.0; 10]).unwrap(), 1).unwrap();
        assert_eq!(law.quantile_ns(0.99), 0.0);
        assert_eq!(
            outline(&law),
            "delays with p50 0.000, p90 0.000, p99 0.000 ms"
        );
    }
}
