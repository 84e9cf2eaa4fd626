//! How far the truth may lie from a quantile that was corrected.
//!
//! Each calibration run is taken for the measured one in turn: its quantile is corrected by what the
//! other runs show ([`Blur`]) and compared with its own true quantile, which is known. What is corrected is
//! what the client's recorder holds, as in the measured run, so that a fault of the recorder shows too. With `K` such
//! differences `r`
//!
//! ```text
//! half width = |mean r| + t(K - 1) sd(r) sqrt(1 + 1/K) + resolution of the histogram
//! ```
//!
//! with Student's t for 99 %: the interval within which one more run is to be expected. (A certificate
//! has several quantiles, and all of them are to hold; 95 % for each would be less than that for all.) A
//! run is the unit, never a request: what differs from run to run (where threads wake, what else the
//! machine does) is in it, and so is whatever the correction itself gets wrong. The measured run is longer
//! than a calibration run, which errs on the safe side.

use kvlab_bench_client::record::{Bound, Latency};
use kvlab_bench_client::report::{Quantile, Support};

use super::Samples;
use super::curve::Curve;
use super::unfold::Blur;

/// What is known about one latency of a run.
#[derive(Clone, Debug)]
pub struct Judge {
    measured: Latency,
    /// The server's law behind it.
    law: Curve,
    /// For each calibration run its truth, ascending, and what was found by correction.
    tried: Vec<(Vec<f64>, Curve)>,
}

impl Judge {
    /// Corrects the measured latency by these runs, and each of them by the others. `None` where
    /// there is nothing to correct, or less than two runs.
    #[must_use]
    pub fn new(measured: &Latency, runs: Vec<&Samples>) -> Option<Self> {
        let seen = Curve::of_latency(measured)?;
        let law = Blur::of(runs.iter().copied())?.unfold(&seen);
        let mut tried = Vec::with_capacity(runs.len());
        for (place, run) in runs.iter().enumerate() {
            let others = runs.iter().enumerate();
            let others = others.filter(|(other, _)| *other != place);
            let blur = Blur::of(others.map(|(_, run)| *run))?;
            let mut truth = run.truth().to_vec();
            truth.sort_by(f64::total_cmp);
            tried.push((truth, blur.unfold(run.recorded())));
        }
        Some(Self {
            measured: measured.clone(),
            law,
            tried,
        })
    }

    /// The bound of a quantile.
    ///
    /// # Errors
    /// Says why there is none.
    pub fn bound(&self, quantile: &Quantile) -> Result<Bound, String> {
        if !matches!(quantile.of(&self.measured), Support::Firm(_)) {
            return Err("fewer than 100 requests beyond it".to_owned());
        }
        let least = self.tried.iter().map(|(truth, _)| truth.len()).min();
        let needed = usize::try_from(quantile.one_in).unwrap_or(usize::MAX) * BEYOND_EACH;
        if least.unwrap_or(0) < needed {
            return Err(format!(
                "it takes {needed} requests in each calibration run, and there were {}",
                least.unwrap_or(0)
            ));
        }
        let differences: Vec<f64> = self
            .tried
            .iter()
            .filter_map(|(truth, found)| Some(found.at(quantile.q) - at(truth, quantile)?))
            .collect();
        let reported = self.measured.quantile_ns(quantile.q);
        let reach = reach(&differences).ok_or("too few calibration runs")?;
        let half = whole(reach).saturating_add(reported / RESOLUTION);
        let limit = limit(quantile, reported);
        if half > limit {
            return Err(format!(
                "the machine was too noisy: calibration runs are off by up to {} us, the limit is {} us",
                half / 1000,
                limit / 1000
            ));
        }
        Ok(Bound {
            server_ns: whole(self.law.at(quantile.q)),
            half_width_ns: half,
        })
    }
}

/// The exact quantile of samples in ascending order: the sample of rank `ceil(q n)`.
fn at(samples: &[f64], quantile: &Quantile) -> Option<f64> {
    let beyond = samples.len() / usize::try_from(quantile.one_in).ok()?;
    samples
        .get((samples.len() - beyond).checked_sub(1)?)
        .copied()
}

/// `|mean| + t sd sqrt(1 + 1/K)`.
#[expect(
    clippy::cast_precision_loss,
    reason = "a handful of runs, which is far below 2^52"
)]
fn reach(differences: &[f64]) -> Option<f64> {
    let freedom = differences.len().checked_sub(1)?;
    let t = *STUDENT_T_99.get(freedom.checked_sub(1)?.min(STUDENT_T_99.len() - 1))?;
    let runs = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / runs;
    let squares: f64 = differences.iter().map(|r| (r - mean).powi(2)).sum();
    let deviation = (squares / freedom as f64).sqrt();
    Some(mean.abs() + t * deviation * (1.0 + 1.0 / runs).sqrt())
}

/// The widest bound that is still called one.
fn limit(quantile: &Quantile, reported_ns: u64) -> u64 {
    let row = LIMITS
        .iter()
        .find(|(one_in, ..)| *one_in == quantile.one_in);
    row.map_or(0, |(_, absolute_ns, percent)| {
        (*absolute_ns).max(reported_ns / 100 * percent)
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times within an hour; the cast saturates"
)]
fn whole(ns: f64) -> u64 {
    ns.max(0.0).ceil() as u64
}

/// For p50, p90, p99 and p99.9 (one request in this many lies beyond): the widest bound, in
/// nanoseconds or in percent of what is reported, whichever is more.
pub const LIMITS: [(u64, u64, u64); 4] = [
    (2, 60_000, 5),
    (10, 150_000, 10),
    (100, 400_000, 15),
    (1_000, 1_000_000, 20),
];
/// Requests beyond the quantile in each calibration run.
const BEYOND_EACH: usize = 10;
/// A histogram is good to one part in this many.
const RESOLUTION: u64 = 1_000;
/// Two-sided 99 % points of Student's t for 1, 2, … degrees of freedom (any table of it).
const STUDENT_T_99: [f64; 12] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: mean 2, deviations -1, 0, 1, so sd = 1; two degrees of freedom; sqrt(4/3).
    #[test]
    fn the_reach_is_that_of_one_more_run() {
        let reached = 2.0 + 9.925 * (4.0_f64 / 3.0).sqrt();
        assert!((reach(&[1.0, 2.0, 3.0]).unwrap() - reached).abs() < 1e-9);
        assert!((reach(&[-1.0, -2.0, -3.0]).unwrap() - reached).abs() < 1e-9);
        assert_eq!(reach(&[5.0]), None);
        assert_eq!(reach(&[]), None);
    }

    #[test]
    fn limits_are_absolute_for_short_times_and_relative_for_long_ones() {
        let quantile = |one_in| {
            kvlab_bench_client::report::QUANTILES
                .iter()
                .find(|quantile| quantile.one_in == one_in)
                .unwrap()
        };
        assert_eq!(limit(quantile(2), 1_000_000), 60_000);
        assert_eq!(limit(quantile(2), 2_000_000), 100_000);
        assert_eq!(limit(quantile(100), 2_000_000), 400_000);
        assert_eq!(limit(quantile(100), 4_000_000), 600_000);
    }

    #[test]
    fn the_exact_quantile_is_the_sample_of_its_rank() {
        let samples: Vec<f64> = (1..=1000).map(f64::from).collect();
        let found: Vec<f64> = kvlab_bench_client::report::QUANTILES
            .iter()
            .take(4)
            .map(|quantile| at(&samples, quantile).unwrap())
            .collect();
        assert_eq!(found, [500.0, 900.0, 990.0, 999.0]);
    }
}
