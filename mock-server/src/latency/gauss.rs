//! The standard normal distribution: density, both tails, and their inverse.
//!
//! Used to know what a law promises, never to draw from it, so it is made to be right and plain
//! rather than fast: a power series near the middle and a continued fraction in the tail
//! (Abramowitz and Stegun 26.2.11 and 26.2.14), good to about 1e-14 relative; the inverse halves an
//! interval.

use std::f64::consts::PI;

/// Density at `z`.
pub(super) fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// Probability of a value of at most `z`.
pub(super) fn below(z: f64) -> f64 {
    above(-z)
}

/// Probability of a value above `z`; keeps its relative precision far out.
pub(super) fn above(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - above(-z);
    }
    if z < SERIES_END {
        // 1/2 - density * (z + z^3/3 + z^5/(3*5) + ...): every term is positive.
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term > sum * f64::EPSILON {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        return 0.5 - density(z) * sum;
    }
    // density / (z + 1/(z + 2/(z + 3/(z + ...)))), from the inside out.
    let fraction = (1..=FRACTION_DEPTH)
        .rev()
        .fold(z, |inner, step| z + f64::from(step) / inner);
    density(z) / fraction
}

/// The `z` above which lies the probability `tail`; infinite at 0 and 1.
pub(super) fn above_inverse(tail: f64) -> f64 {
    if tail <= 0.0 {
        return f64::INFINITY;
    }
    if tail > 0.5 {
        // The difference is exact from one half on.
        return -above_inverse(1.0 - tail);
    }
    let (mut low, mut high) = (0.0, FARTHEST);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if above(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Where the fraction converges faster than the series and loses nothing.
const SERIES_END: f64 = 2.5;
const FRACTION_DEPTH: u32 = 120;

/// Beyond this the tail is below the smallest number.
const FARTHEST: f64 = 40.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, relative: f64) {
        let error = (found - expected).abs();
        assert!(
            error <= relative * expected.abs(),
            "{found} is not {expected}"
        );
    }

    /// From tables with 15 and more digits (Abramowitz and Stegun 26.1; the last by 26.2.12).
    #[test]
    fn tails_match_the_tables() {
        for (z, tail) in [
            (0.0, 0.5),
            (0.5, 0.308_537_538_725_986_9),
            (1.0, 0.158_655_253_931_457_05),
            (2.0, 0.022_750_131_948_179_21),
            (2.5, 0.006_209_665_325_776_132),
            (3.0, 0.001_349_898_031_630_094_6),
            (6.0, 9.865_876_450_376_98e-10),
            (10.0, 7.619_853_024_160_527e-24),
        ] {
            close(above(z), tail, 1e-13);
            close(below(-z), tail, 1e-13);
            close(below(z), 1.0 - tail, 1e-15);
        }
    }

    #[test]
    fn the_inverse_matches_the_tables() {
        for (tail, z) in [
            (0.1, 1.281_551_565_544_600_4),
            (0.05, 1.644_853_626_951_472_2),
            (0.01, 2.326_347_874_040_840_8),
            (0.001, 3.090_232_306_167_813_5),
            (1e-9, 5.997_807_015_007_686),
        ] {
            close(above_inverse(tail), z, 1e-13);
        }
        close(above_inverse(0.9), -1.281_551_565_544_600_4, 1e-13);
        assert_eq!(above_inverse(0.5), 0.0);
        assert_eq!(above_inverse(0.0), f64::INFINITY);
        assert_eq!(above_inverse(1.0), f64::NEG_INFINITY);
    }
}
