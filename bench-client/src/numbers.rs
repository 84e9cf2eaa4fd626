//! Numbers in requests: times to live, replicas to wait for and the like.
//!
//! Each request with numbers has a seeded stream of its own, so that its numbers depend on the seed
//! alone.

use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random;
use crate::settings::NumberLaw;

/// The numbers of one request.
#[derive(Clone, Debug)]
pub(crate) struct NumberStream {
    laws: Vec<NumberLaw>,
    rng: Xoshiro256PlusPlus,
}

impl NumberStream {
    pub(crate) fn new(laws: &[NumberLaw], rng: Xoshiro256PlusPlus) -> Self {
        Self {
            laws: laws.to_vec(),
            rng,
        }
    }

    /// The numbers of the next request; 0 where there is no law.
    pub(crate) fn next(&mut self) -> [u32; 2] {
        let mut drawn = [0; 2];
        for (number, law) in drawn.iter_mut().zip(&self.laws) {
            *number = match *law {
                NumberLaw::Uniform { least, most } => uniform(&mut self.rng, least, most),
                NumberLaw::Bell { least, most } => bell(&mut self.rng, least, most),
            };
        }
        drawn
    }
}

fn uniform(rng: &mut Xoshiro256PlusPlus, least: u32, most: u32) -> u32 {
    let above = random::below(rng, u64::from(most - least) + 1);
    // At most `most - least`.
    least + u32::try_from(above).unwrap_or(0)
}

/// Three standard deviations reach from the middle to either end, so that few draws are repeated.
fn bell(rng: &mut Xoshiro256PlusPlus, least: u32, most: u32) -> u32 {
    if least == most {
        return least;
    }
    let width = f64::from(most - least);
    let (middle, deviation) = (f64::from(least) + width / 2.0, width / 6.0);
    loop {
        let normal: f64 = StandardNormal.sample(rng);
        let drawn = middle + deviation * normal;
        if (f64::from(least)..f64::from(most) + 1.0).contains(&drawn) {
            return whole(drawn);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between two numbers of 32 bits; the cast cuts off the fraction, on purpose"
)]
fn whole(drawn: f64) -> u32 {
    drawn as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Use;

    const DRAWS: usize = 60_000;

    fn drawn(law: NumberLaw) -> Vec<u32> {
        let rng = random::stream(1, 0, 0, Use::Numbers(0));
        let mut stream = NumberStream::new(&[law], rng);
        (0..DRAWS)
            .map(|_| {
                let [number, none] = stream.next();
                assert_eq!(none, 0);
                number
            })
            .collect()
    }

    /// Chi-square of the numbers from `least` on against their shares.
    fn chi(drawn: &[u32], least: u32, shares: &[f64]) -> f64 {
        let mut seen = vec![0.0; shares.len()];
        for number in drawn {
            seen[(number - least) as usize] += 1.0;
        }
        let expected = shares.iter().map(|share| share * DRAWS as f64);
        seen.iter()
            .zip(expected)
            .map(|(n, expected): (&f64, f64)| (n - expected).powi(2) / expected)
            .sum()
    }

    #[test]
    fn uniform_numbers_are_all_alike_likely_from_end_to_end() {
        let drawn = drawn(NumberLaw::Uniform {
            least: 11,
            most: 20,
        });
        // 99.9 % of chi-square with 9 degrees of freedom.
        let chi = chi(&drawn, 11, &[0.1; 10]);
        assert!(chi < 27.9, "{chi}");
        let whole = NumberLaw::Uniform {
            least: 0,
            most: u32::MAX,
        };
        let mut stream =
            NumberStream::new(&[whole, whole], random::stream(1, 0, 0, Use::Numbers(1)));
        let highest = (0..1000).map(|_| stream.next()[1]).max().unwrap();
        // A thousand draws all below nine tenths: a chance of 1e-46.
        assert!(highest > u32::MAX / 10 * 9, "{highest}");
    }

    /// The normal law over one number, by Simpson's rule over a hundred pieces of it.
    fn share(middle: f64, deviation: f64, number: u32) -> f64 {
        let density = |x: f64| (-((x - middle) / deviation).powi(2) / 2.0).exp();
        let piece = 0.01;
        (0..100)
            .map(|place| {
                let begin = f64::from(number) + f64::from(place) * piece;
                let inner = 4.0 * density(begin + piece / 2.0);
                (density(begin) + inner + density(begin + piece)) * piece / 6.0
            })
            .sum()
    }

    #[test]
    fn a_bell_has_its_middle_and_width_and_stays_inside() {
        let drawn = drawn(NumberLaw::Bell {
            least: 100,
            most: 112,
        });
        let shares: Vec<f64> = (100..=112).map(|n| share(106.0, 2.0, n)).collect();
        let sum: f64 = shares.iter().sum();
        let shares: Vec<f64> = shares.iter().map(|share| share / sum).collect();
        // 99.9 % of chi-square with 12 degrees of freedom.
        let chi = chi(&drawn, 100, &shares);
        assert!(chi < 32.9, "{chi}");
    }

    #[test]
    fn a_range_of_one_number_is_that_number() {
        for law in [
            NumberLaw::Bell { least: 7, most: 7 },
            NumberLaw::Uniform { least: 7, most: 7 },
        ] {
            assert_eq!(drawn(law), [7; DRAWS]);
        }
    }
}
