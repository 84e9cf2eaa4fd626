//! Where a warm-up ends: the marginal standard error rule.
//!
//! Of a series of k values, leave out the first d: the rule takes the d for which
//!
//! ```text
//! MSER(d) = 1 / (k - d)^2 * sum over i > d of (x(i) - mean of the rest)^2
//! ```
//!
//! is least, which is the squared standard error of the rest's mean, up to a factor. MSER-5 works on
//! the means of five values each (White, "An effective truncation heuristic for bias reduction in
//! simulation output", 1997; White, Cobb and Spratt 2000). At most half of the series is left out;
//! a least value at that end says that no steady part was found.

/// Values that are put together before the rule is applied.
pub const BATCH: usize = 5;

/// What the rule says of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truncation {
    /// Values to leave out; a multiple of [`BATCH`].
    pub cut: usize,
    /// MSER of the rest.
    pub rest: f64,
    /// MSER of the whole series.
    pub whole: f64,
    /// Whether the least value lies before the middle of the series.
    pub is_steady: bool,
}

/// Applies MSER-5; `None` for a series of fewer than [`LEAST_BATCHES`] batches.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "a series has far fewer than 2^53 values"
)]
pub fn truncation(series: &[f64]) -> Option<Truncation> {
    let means: Vec<f64> = series
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    if means.len() < LEAST_BATCHES {
        return None;
    }
    let most = means.len() / 2;
    let mut best = (0, mser(&means));
    let whole = best.1;
    for cut in 1..=most {
        let value = mser(means.get(cut..).unwrap_or_default());
        if value < best.1 {
            best = (cut, value);
        }
    }
    Some(Truncation {
        cut: best.0 * BATCH,
        rest: best.1,
        whole,
        is_steady: best.0 < most,
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a series has far fewer than 2^53 values"
)]
fn mser(rest: &[f64]) -> f64 {
    let n = rest.len() as f64;
    let mean = rest.iter().sum::<f64>() / n;
    rest.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n * n)
}

/// Batches that a series has to have: with fewer the rule has nothing to choose from.
pub const LEAST_BATCHES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(means: &[f64]) -> Vec<f64> {
        means.iter().flat_map(|mean| [*mean; BATCH]).collect()
    }

    #[test]
    fn a_high_start_is_left_out() {
        // Means 9, 5, then 1 and 3 in turn: without the first two the rest has mean 2 and a squared
        // deviation of 1 each, so MSER is 8 / 64.
        let series = batches(&[9.0, 5.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0]);
        let found = truncation(&series).unwrap();
        assert_eq!((found.cut, found.is_steady), (10, true));
        assert!((found.rest - 0.125).abs() < 1e-12, "{found:?}");
        // The whole: mean 3, squares 36 + 4 + 4 * 4 + 0 = 56 over 100.
        assert!((found.whole - 0.56).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_steady_series_stays_whole() {
        let found = truncation(&batches(&[1.0, 3.0, 1.0, 3.0, 1.0, 3.0])).unwrap();
        assert_eq!((found.cut, found.is_steady), (0, true));
        assert_eq!(truncation(&[7.0; 40]).unwrap().cut, 0);
    }

    #[test]
    fn a_series_that_never_settles_says_so() {
        let series: Vec<f64> = (0..50).map(f64::from).collect();
        let found = truncation(&series).unwrap();
        assert_eq!((found.cut, found.is_steady), (25, false));
        assert_eq!(truncation(&[1.0; 19]), None);
    }
}
