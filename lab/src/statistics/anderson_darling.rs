//! The Anderson-Darling test of a law that is wholly given: nothing of it is estimated from the
//! sample.
//!
//! With `u(1) <= ... <= u(n)` the law's probabilities of the ordered samples,
//!
//! ```text
//! A2 = -n - 1/n * sum over i of (2i - 1) * (ln u(i) + ln(1 - u(n + 1 - i)))
//! ```
//!
//! (Anderson and Darling 1954). The limiting law of A2 is that of Marsaglia and Marsaglia,
//! "Evaluating the Anderson-Darling distribution", J. Stat. Soft. 9 (2004).

use crate::truth::Sorted;

/// The value that A2 exceeds in one of a hundred samples of the law.
pub const ONE_PERCENT: f64 = 3.878_125;
/// The value that A2 exceeds in less than one of a hundred thousand samples of the law.
pub const NEVER: f64 = 10.0;

/// A2 of gaps, in whole units rounded down, against the exponential law of this mean; `None` when
/// there are no gaps or the mean is not above 0.
#[must_use]
pub fn exponential(gaps: &Sorted, mean: f64) -> Option<f64> {
    if gaps.is_empty() || mean.is_nan() || mean <= 0.0 {
        return None;
    }
    // Half a unit is what rounding down takes on average, and keeps the logarithm from 0.
    #[expect(clippy::cast_precision_loss, reason = "gaps are far below 2^53")]
    let scaled = |gap: &u64| (*gap as f64 + 0.5) / mean;
    let logarithms: Vec<(f64, f64)> = gaps
        .samples()
        .iter()
        .map(scaled)
        // ln u with u = 1 - exp(-x), and ln(1 - u) = -x.
        .map(|x| ((-(-x).exp_m1()).ln(), -x))
        .collect();
    statistic(&logarithms)
}

/// A2 from `(ln u, ln(1 - u))` of the samples in ascending order.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub fn statistic(logarithms: &[(f64, f64)]) -> Option<f64> {
    if logarithms.is_empty() {
        return None;
    }
    let n = logarithms.len() as f64;
    let pairs = logarithms.iter().zip(logarithms.iter().rev());
    let sum: f64 = pairs
        .enumerate()
        .map(|(place, ((below, _), (_, above)))| (2.0 * place as f64 + 1.0) * (below + above))
        .sum();
    Some(-n - sum / n)
}

/// The probability that A2 of a large sample of the law is below `a2`, to six digits for `a2` up to
/// [`NEVER`].
#[must_use]
pub fn probability_below(a2: f64) -> f64 {
    let polynomial = |factors: &[f64]| factors.iter().rev().fold(0.0, |sum, c| sum * a2 + c);
    if a2 <= 0.0 {
        0.0
    } else if a2 < 2.0 {
        let factors = [
            2.000_12,
            0.247_105,
            -0.064_982_1,
            0.034_796_2,
            -0.011_672,
            0.001_686_91,
        ];
        (-1.233_714_1 / a2).exp() / a2.sqrt() * polynomial(&factors)
    } else if a2 <= NEVER {
        let factors = [
            1.0776,
            -2.306_95,
            0.434_24,
            -0.082_433,
            0.008_056,
            -0.000_314_6,
        ];
        (-polynomial(&factors).exp()).exp()
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(probabilities: &[f64]) -> f64 {
        let logarithms: Vec<(f64, f64)> = probabilities
            .iter()
            .map(|u: &f64| (u.ln(), (1.0 - u).ln()))
            .collect();
        statistic(&logarithms).unwrap()
    }

    #[test]
    fn statistic_is_the_sum_worked_out_by_hand() {
        let (ln2, ln3) = (2.0_f64.ln(), 3.0_f64.ln());
        // One sample at the median: -1 - 2 ln(1/2).
        assert!((of(&[0.5]) - (2.0 * ln2 - 1.0)).abs() < 1e-12);
        // Two at the quartiles: -2 - ln(1/4) - 3 ln(3/4).
        let expected = -2.0 + 2.0 * ln2 - 3.0 * (ln3 - 2.0 * ln2);
        assert!((of(&[0.25, 0.75]) - expected).abs() < 1e-12);
    }

    #[test]
    fn limiting_law_has_the_published_critical_values() {
        for (a2, probability) in [
            (1.932_957_8, 0.90),
            (2.492_367_2, 0.95),
            (3.070, 0.975),
            (ONE_PERCENT, 0.99),
        ] {
            let found = probability_below(a2);
            assert!((found - probability).abs() < 3e-4, "{a2}: {found}");
        }
        assert!(probability_below(NEVER) > 0.99999 && probability_below(0.0) == 0.0);
    }

    /// Gaps at the middle of equal shares of the exponential law.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounded down to whole units"
    )]
    fn ideal(count: u64, mean: f64) -> Sorted {
        (0..count)
            .map(|i| {
                let share = (i as f64 + 0.5) / count as f64;
                (-mean * (-share).ln_1p()) as u64
            })
            .collect()
    }

    #[test]
    fn exponential_gaps_pass_and_others_do_not() {
        let gaps = ideal(2_000, 1e6);
        assert!(exponential(&gaps, 1e6).unwrap() < 0.1);
        // A mean that is 10 % off, and gaps that are all alike.
        assert!(exponential(&gaps, 1.1e6).unwrap() > ONE_PERCENT);
        let even = Sorted::new(vec![1_000_000; 2_000]);
        assert!(exponential(&even, 1e6).unwrap() > NEVER);
        // Gaps of 0 are finite.
        assert!(
            exponential(&Sorted::new(vec![0; 10]), 1e6)
                .unwrap()
                .is_finite()
        );
        assert_eq!(exponential(&Sorted::default(), 1e6), None);
    }
}
