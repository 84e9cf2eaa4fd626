//! How much the values of a series follow each other, and what they are worth for a mean.

/// Correlation of neighbours in a series; 0 where all are alike or there are fewer than two.
///
/// ```
/// use kvlab::statistics::autocorrelation::lag_1;
///
/// // Deviations -1, 1, -1, 1: the products of neighbours sum to -3, the squares to 4.
/// assert_eq!(lag_1(&[0.0, 2.0, 0.0, 2.0]), -0.75);
/// ```
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "a series has far fewer than 2^53 values"
)]
pub fn lag_1(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    let mean = series.iter().sum::<f64>() / n;
    let squares: f64 = series.iter().map(|x| (x - mean) * (x - mean)).sum();
    if series.len() < 2 || squares == 0.0 {
        return 0.0;
    }
    let products: f64 = series
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    products / squares
}

/// Independent values that would give a mean as sure as this series does: `n (1 - r) / (1 + r)`,
/// never more than there are and never less than one.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "a series has far fewer than 2^53 values"
)]
pub fn effective_size(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    let r = lag_1(series).clamp(0.0, 1.0);
    (n * (1.0 - r) / (1.0 + r)).clamp(n.min(1.0), n)
}

/// The mean of a series and half the width of its 95 % interval, with its effective size.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "a series has far fewer than 2^53 values"
)]
pub fn mean_and_half_width(series: &[f64]) -> Option<(f64, f64)> {
    if series.len() < 2 {
        return None;
    }
    let n = series.len() as f64;
    let mean = series.iter().sum::<f64>() / n;
    let variance = series.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    Some((mean, 1.96 * (variance / effective_size(series)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_like_values_are_worth_less_than_their_number() {
        // Ten blocks of 100: neighbours differ only at the nine borders where the level changes.
        let series: Vec<f64> = (0..1_000).map(|i| f64::from(i / 100 % 2)).collect();
        let r = lag_1(&series);
        // Deviations are +-1/2; of 999 neighbours 990 are alike and 9 are not: 981 / 1000.
        assert!((r - 0.981).abs() < 1e-9, "{r}");
        let expected = 1_000.0 * 0.019 / 1.981;
        assert!((effective_size(&series) - expected).abs() < 1e-6);
    }

    #[test]
    fn independent_values_count_whole() {
        assert_eq!(effective_size(&[0.0, 2.0, 0.0, 2.0]), 4.0);
        assert_eq!(effective_size(&[5.0; 8]), 8.0);
        assert_eq!(effective_size(&[]), 0.0);
        // Mean 1, variance 4/3, four values: 1.96 * sqrt(1/3).
        let (mean, half) = mean_and_half_width(&[0.0, 2.0, 0.0, 2.0]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12 && (half - 1.96 / 3.0_f64.sqrt()).abs() < 1e-12);
    }
}
