//! The moments of an open loop's timetable, derived anew from rate, law and seed.
//!
//! *Uniform*: arrival i is due `floor(i * 10^9 / rate)` ns after the start.
//!
//! *Poisson*: with T threads, thread t has a stream of its own of a T-th of the rate. Its gaps are
//! `mean * E`, where E is exponential with mean 1; they are summed in units of 2^-64 ns and the sums
//! rounded down. The random numbers of thread t are those of xoshiro256++ seeded by
//!
//! ```text
//! splitmix64(mix(seed ^ mix(3 << 40 | part << 32 | t)))        part: 0 measured, 1 warm-up
//! ```
//!
//! where `mix` is one step of splitmix64; four more steps give the state. E is drawn by the ziggurat
//! of Marsaglia and Tsang with 256 layers in Doornik's form: one draw gives layer (lowest 8 bits)
//! and place (highest 52). The layers are computed here from their recursion, so a moment may
//! differ from the client's by what the last digit of a logarithm is worth: far below a nanosecond,
//! which [`SLACK_NS`] grants.
//!
//! Nothing of the client's code, and none of the crates it draws with, is used.

use kvlab_timing::{Rate, Stamp};

/// How far a derived moment of a Poisson timetable may lie from the client's: the rounding to whole
/// nanoseconds can fall to either side.
pub const SLACK_NS: u64 = 1;

/// What a timetable is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Arrivals per second, all threads together.
    pub rate: Rate,
    /// Client threads.
    pub threads: u32,
    /// The first moment.
    pub start: Stamp,
    /// No arrival is due at or after this moment.
    pub end: Stamp,
    /// Arrivals at most, all threads together.
    pub most: u64,
}

/// The Poisson moments of the measured part of a run, in order.
#[must_use]
pub fn poisson(timing: &Timing, seed: u64) -> Vec<u64> {
    let ziggurat = Ziggurat::new();
    let mean_ns = mean_gap_ns(timing.rate) * f64::from(timing.threads);
    let mut moments = Vec::new();
    for thread in 0..timing.threads {
        let threads = u64::from(timing.threads);
        let share = timing.most / threads + u64::from(u64::from(thread) < timing.most % threads);
        let mut random = Xoshiro::of_arrivals(seed, thread);
        // Sum of the gaps in units of 2^-64 ns.
        let mut sum = 0_u128;
        for _ in 0..share {
            sum = sum.saturating_add(fixed_point(ziggurat.draw(&mut random) * mean_ns));
            let after = u64::try_from(sum >> 64).unwrap_or(u64::MAX);
            let moment = timing.start.add_nanos(after);
            if moment >= timing.end {
                break;
            }
            moments.push(moment.as_nanos());
        }
    }
    moments.sort_unstable();
    moments
}

/// The uniform moments of a timetable, in order.
#[must_use]
pub fn uniform(timing: &Timing) -> Vec<u64> {
    let (num, den) = (
        u128::from(timing.rate.numerator()),
        u128::from(timing.rate.denominator()),
    );
    (0..u128::from(timing.most))
        .map(|index| {
            let after = index * 1_000_000_000 * den / num;
            timing
                .start
                .add_nanos(u64::try_from(after).unwrap_or(u64::MAX))
        })
        .take_while(|moment| *moment < timing.end)
        .map(Stamp::as_nanos)
        .collect()
}

/// Mean gap of a rate, in nanoseconds.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "the nearest value is what is wanted"
)]
pub fn mean_gap_ns(rate: Rate) -> f64 {
    1e9 * rate.denominator() as f64 / rate.numerator() as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; rounded down on purpose, and the cast saturates"
)]
fn fixed_point(ns: f64) -> u128 {
    (ns * 2_f64.powi(64)) as u128
}

/// xoshiro256++ 1.0 (Blackman and Vigna 2019).
struct Xoshiro([u64; 4]);

impl Xoshiro {
    /// The generator of a thread's arrivals in the measured part.
    fn of_arrivals(seed: u64, thread: u32) -> Self {
        let place = ARRIVALS << 40 | u64::from(thread);
        let mut state = split_mix(seed ^ split_mix(place));
        Self([(); 4].map(|()| {
            let word = split_mix(state);
            state = state.wrapping_add(GOLDEN);
            word
        }))
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.0 = [a ^ d, b ^ c, c ^ b << 17, d.rotate_left(45)];
        result
    }
}

/// One step of splitmix64 from this state (Steele, Lea and Flood 2014).
fn split_mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(GOLDEN);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// The number of the stream of arrivals among a thread's streams.
const ARRIVALS: u64 = 3;

/// The exponential law of mean 1 cut into 256 layers of equal area.
struct Ziggurat {
    /// Right ends of the layers, falling to 0; the first one is widened by the tail's area.
    ends: [f64; 257],
}

impl Ziggurat {
    fn new() -> Self {
        let height = |x: f64| (-x).exp();
        let mut ends = [0.0; 257];
        // The bottom layer is a box up to R and the tail beyond: area (R + 1) e^-R.
        let area = (TAIL + 1.0) * height(TAIL);
        ends[0] = TAIL + 1.0;
        ends[1] = TAIL;
        for layer in 2..256 {
            let below: f64 = ends[layer - 1];
            ends[layer] = -(area / below + height(below)).ln();
        }
        Self { ends }
    }

    fn draw(&self, random: &mut Xoshiro) -> f64 {
        loop {
            let bits = random.next();
            let layer = usize::from(bits.to_le_bytes()[0]);
            // 52 bits to the middle of one of 2^52 steps between 0 and 1.
            let place = (fraction(bits >> 12) + 0.5) / 2_f64.powi(52);
            let (outer, inner) = (self.ends[layer], self.ends[layer + 1]);
            let x = place * outer;
            if x < inner {
                return x;
            }
            let share = fraction(random.next() >> 11) / 2_f64.powi(53);
            if layer == 0 {
                return TAIL - share.ln();
            }
            let (low, high) = ((-outer).exp(), (-inner).exp());
            if high + (low - high) * share < (-x).exp() {
                return x;
            }
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "at most 53 bits, which are exact"
)]
fn fraction(bits: u64) -> f64 {
    bits as f64
}

/// Where the tail begins: the R at which 256 layers have equal areas.
const TAIL: f64 = 7.697_117_470_131_05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_gives_the_numbers_of_its_reference_program() {
        let mut random = Xoshiro([1, 2, 3, 4]);
        for expected in [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
        ] {
            assert_eq!(random.next(), expected);
        }
    }

    #[test]
    fn layers_have_equal_areas() {
        let ends = Ziggurat::new().ends;
        let area = (TAIL + 1.0) * (-TAIL).exp();
        for layer in 1..255 {
            let height = (-ends[layer + 1]).exp() - (-ends[layer]).exp();
            assert!((ends[layer] * height - area).abs() < 1e-12, "{layer}");
        }
        // The uppermost layer ends at the top of the law, e^0 = 1, if R is right.
        let top = 1.0 - (-ends[255]).exp();
        assert!((ends[255] * top - area).abs() < 1e-9, "{}", ends[255] * top);
    }

    #[test]
    fn draws_are_exponential() {
        let (ziggurat, mut random) = (Ziggurat::new(), Xoshiro::of_arrivals(7, 0));
        let draws: Vec<f64> = (0..100_000).map(|_| ziggurat.draw(&mut random)).collect();
        let share = |above: f64| draws.iter().filter(|x| **x > above).count() as f64 / 1e5;
        // Five standard errors of a share p at n = 100 000.
        for above in [0.1_f64, 1.0, 3.0, 7.0] {
            let p = (-above).exp();
            let error = 5.0 * (p * (1.0 - p) / 1e5).sqrt();
            assert!(
                (share(above) - p).abs() < error,
                "{above}: {}",
                share(above)
            );
        }
    }

    #[test]
    fn uniform_moments_are_rounded_down_and_end_before_the_end() {
        let timing = Timing {
            rate: Rate::per_second(3).unwrap(),
            threads: 2,
            start: Stamp::from_nanos(7),
            end: Stamp::from_nanos(1_000_000_007),
            most: u64::MAX,
        };
        assert_eq!(uniform(&timing), [7, 333_333_340, 666_666_673]);
        let most = 2;
        assert_eq!(uniform(&Timing { most, ..timing }).len(), 2);
        assert_eq!(mean_gap_ns(timing.rate), 1e9 / 3.0);
    }
}
