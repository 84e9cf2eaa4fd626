//! The Mann-Whitney test: do the values of one group tend to be larger than those of another?
//!
//! `U` counts the pairs (a, b) with a > b, ties as half. Without ties and with up to
//! [`EXACT_UP_TO`] values a side, the p-value is exact: the share of all ways to deal the ranks out
//! that give a `U` at least as far from its middle. Otherwise it is the normal approximation with
//! the correction for ties and for continuity (Mann and Whitney 1947; Lehmann, Nonparametrics).

/// What the test says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the first group has the larger value, ties as half.
    pub u: f64,
    /// Two-sided probability of so large a difference between groups that do not differ.
    pub p: f64,
}

/// Tests two groups; `None` when one is empty.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of runs are small")]
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitney> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let mut u = 0.0;
    let mut tied = false;
    for a in first {
        for b in second {
            match a.total_cmp(b) {
                std::cmp::Ordering::Greater => u += 1.0,
                std::cmp::Ordering::Equal => {
                    u += 0.5;
                    tied = true;
                }
                std::cmp::Ordering::Less => {}
            }
        }
    }
    let (n, m) = (first.len(), second.len());
    let p = if !tied && n <= EXACT_UP_TO && m <= EXACT_UP_TO {
        exact(u, n, m)
    } else {
        approximate(u, (n as f64, m as f64), &ties(first, second))
    };
    Some(MannWhitney { u, p })
}

/// Values a side up to which the exact distribution is computed.
pub const EXACT_UP_TO: usize = 50;

/// The share of all dealings whose `U` lies at least as far from the middle. Without ties `u` is whole.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number from 0 to n * m"
)]
fn exact(u: f64, n: usize, m: usize) -> f64 {
    let counts = dealings(n, m);
    let all: f64 = counts.iter().sum();
    let u = u as usize;
    let low = u.min(n * m - u);
    let tail: f64 = counts.iter().take(low + 1).sum();
    (2.0 * tail / all).min(1.0)
}

/// How many ways to deal n + m ranks out give each `U` from 0 to n * m, by the recursion
/// `f(n, m, u) = f(n - 1, m, u - m) + f(n, m - 1, u)`.
fn dealings(n: usize, m: usize) -> Vec<f64> {
    // ways[k] for the current number of first-group values and each number of second-group values.
    let mut ways: Vec<Vec<f64>> = (0..=m).map(|_| vec![1.0]).collect();
    for i in 1..=n {
        let mut next: Vec<Vec<f64>> = Vec::with_capacity(m + 1);
        next.push(vec![1.0]);
        for j in 1..=m {
            let mut counts = vec![0.0; i * j + 1];
            for (u, count) in ways[j].iter().enumerate() {
                counts[u + j] += count;
            }
            for (u, count) in next[j - 1].iter().enumerate() {
                counts[u] += count;
            }
            next.push(counts);
        }
        ways = next;
    }
    ways.swap_remove(m)
}

/// Sizes of the groups of equal values among all.
fn ties(first: &[f64], second: &[f64]) -> Vec<usize> {
    let mut all: Vec<f64> = first.iter().chain(second).copied().collect();
    all.sort_by(f64::total_cmp);
    all.chunk_by(|a, b| a.total_cmp(b).is_eq())
        .map(<[f64]>::len)
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of runs are small")]
fn approximate(u: f64, (n, m): (f64, f64), ties: &[usize]) -> f64 {
    let all = n + m;
    let correction: f64 = ties
        .iter()
        .map(|&size| size as f64)
        .map(|size| size * size * size - size)
        .sum();
    let variance = n * m / 12.0 * (all + 1.0 - correction / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    (2.0 * upper_normal(distance / variance.sqrt())).min(1.0)
}

/// The probability that a standard normal value exceeds `z`, from 0 up: the rational approximation
/// 26.2.17 of Abramowitz and Stegun, absolute error below 7.5e-8.
fn upper_normal(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let coefficients = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let polynomial = coefficients
        .iter()
        .rev()
        .fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    density * polynomial
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(first: &[f64], second: &[f64]) -> f64 {
        mann_whitney(first, second).unwrap().p
    }

    #[test]
    fn small_groups_have_their_exact_probability() {
        // 3 against 3 apart: 2 of the 20 dealings are as extreme; 4 against 4: 2 of 70.
        assert!((p(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]) - 0.1).abs() < 1e-12);
        let four = p(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0]);
        assert!((four - 2.0 / 70.0).abs() < 1e-12);
        // 8 against 8 apart: 2 of 12870.
        let low: Vec<f64> = (0..8).map(f64::from).collect();
        let high: Vec<f64> = (8..16).map(f64::from).collect();
        assert!((p(&low, &high) - 2.0 / 12_870.0).abs() < 1e-15);
        // One against two: never unlikely.
        assert!((p(&[1.0], &[2.0, 3.0]) - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_critical_values_of_the_published_tables_hold() {
        // Two-sided 5 % critical values of U (Mann and Whitney's table): 8 x 8: 13, 10 x 10: 23.
        for (n, critical) in [(8_usize, 13_usize), (10, 23)] {
            let at = |u: usize| {
                let counts = dealings(n, n);
                let all: f64 = counts.iter().sum();
                2.0 * counts.iter().take(u + 1).sum::<f64>() / all
            };
            assert!(at(critical) <= 0.05 && at(critical + 1) > 0.05, "{n}");
        }
    }

    #[test]
    fn every_dealing_is_counted_once() {
        // C(12, 5) = 792.
        let counts = dealings(5, 7);
        assert_eq!(counts.len(), 36);
        assert!((counts.iter().sum::<f64>() - 792.0).abs() < 1e-9);
        let mirrored: Vec<f64> = counts.iter().rev().copied().collect();
        assert_eq!(counts, mirrored);
    }

    #[test]
    fn ties_count_half_and_equal_groups_do_not_differ() {
        let result = mann_whitney(&[1.0, 2.0], &[2.0, 3.0]).unwrap();
        assert!((result.u - 0.5).abs() < 1e-12);
        assert!((p(&[4.0; 9], &[4.0; 9]) - 1.0).abs() < 1e-12);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    #[test]
    fn large_groups_use_the_normal_law() {
        assert!((upper_normal(1.959_964) - 0.025).abs() < 1e-6);
        assert!((upper_normal(0.0) - 0.5).abs() < 1e-6);
        let low: Vec<f64> = (0..60).map(f64::from).collect();
        let shifted: Vec<f64> = (0..60).map(|n| f64::from(n) + 0.5).collect();
        assert!(p(&low, &shifted) > 0.5);
        let high: Vec<f64> = (60..120).map(f64::from).collect();
        assert!(p(&low, &high) < 1e-15);
    }
}
