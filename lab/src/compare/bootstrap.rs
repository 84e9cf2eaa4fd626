//! The ratio of two medians over runs, with the interval that resampling the runs gives.

use kvlab_bench_client::random;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// A ratio and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Median of the second group over the median of the first.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The median of the second group over that of the first, with the percentile interval of
/// [`RESAMPLES`] draws, with replacement, of as many runs as each group has. `None` where a group is
/// empty or a median is not above 0.
#[must_use]
pub fn ratio_of_medians(first: &[f64], second: &[f64]) -> Option<Ratio> {
    let value = ratio(median(&mut first.to_vec())?, median(&mut second.to_vec())?)?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut ratios = Vec::with_capacity(RESAMPLES);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        draw(first, &mut a, &mut rng);
        draw(second, &mut b, &mut rng);
        ratios.extend(
            median(&mut a)
                .zip(median(&mut b))
                .and_then(|(a, b)| ratio(a, b)),
        );
    }
    ratios.sort_by(f64::total_cmp);
    // Ranks of the 2.5 % and 97.5 % quantiles, as (part, of).
    let at = |(part, of): (usize, usize)| {
        let rank = (ratios.len() * part).div_ceil(of).max(1);
        ratios.get(rank - 1).copied().unwrap_or(value)
    };
    Some(Ratio {
        value,
        low: at((25, 1000)),
        high: at((975, 1000)),
    })
}

/// The middle value, or the middle of the two middle ones; sorts the values.
#[must_use]
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*values.get(middle - 1)?, upper))
}

fn ratio(first: f64, second: f64) -> Option<f64> {
    (first > 0.0).then(|| second / first)
}

fn draw(from: &[f64], into: &mut Vec<f64>, rng: &mut Xoshiro256PlusPlus) {
    into.clear();
    for _ in 0..from.len() {
        let place = random::below(rng, from.len() as u64);
        into.extend(
            usize::try_from(place)
                .ok()
                .and_then(|place| from.get(place)),
        );
    }
}

/// Draws of the bootstrap.
pub const RESAMPLES: usize = 10_000;
/// Same results give the same interval.
const SEED: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_middles() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn groups_without_spread_have_an_interval_without_width() {
        let found = ratio_of_medians(&[2.0; 8], &[3.0; 8]).unwrap();
        assert_eq!((found.value, found.low, found.high), (1.5, 1.5, 1.5));
        assert_eq!(ratio_of_medians(&[0.0], &[1.0]), None);
        assert_eq!(ratio_of_medians(&[], &[1.0]), None);
    }

    #[test]
    fn the_interval_is_that_of_the_resampled_median() {
        // First group without spread, second {1, 2, 3}: the median of a draw of three is 1 or 3
        // with 7/27 each and 2 with 13/27, so the interval reaches from 1 to 3.
        let found = ratio_of_medians(&[1.0; 3], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((found.value, found.low, found.high), (2.0, 1.0, 3.0));
        // Nine values: the probability that the median of a draw is at most the third smallest is
        // P(Binomial(9, 3/9) >= 5) = 0.1448; at most the second, P(Binomial(9, 2/9) >= 5) = 0.0315;
        // at most the smallest, 0.0014. The 2.5 % point is the second smallest.
        let values: Vec<f64> = (1..=9).map(f64::from).collect();
        let found = ratio_of_medians(&[1.0; 9], &values).unwrap();
        assert_eq!((found.value, found.low, found.high), (5.0, 2.0, 8.0));
    }
}
