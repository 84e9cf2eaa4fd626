//! The bell curve, without its part below zero.

use std::fmt;
use std::time::Duration;

use kvlab_timing::duration::Human;
use rand_distr::{Distribution as _, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{LawError, positive_time_parameter, time_parameter};
use crate::latency::gauss;

/// `normal(mean, sd)`: draws below zero are drawn again, so with a mean of less than three standard
/// deviations the true mean lies above the parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Normal {
    mean: Duration,
    deviation: Duration,
    mean_ns: f64,
    deviation_ns: f64,
    /// Probability that a draw is kept, at least one half.
    kept: f64,
}

impl Normal {
    /// The bell around `mean` with standard deviation `deviation`, cut off at zero.
    ///
    /// # Errors
    /// When `deviation` is zero or one of them is above one hour.
    pub fn new(mean: Duration, deviation: Duration) -> Result<Self, LawError> {
        let mean_ns = time_parameter("mean", mean)?;
        let deviation_ns = positive_time_parameter("sd", deviation)?;
        Ok(Self {
            mean,
            deviation,
            mean_ns,
            deviation_ns,
            kept: gauss::below(mean_ns / deviation_ns),
        })
    }

    pub(in crate::latency) fn sample_ns(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        loop {
            let z: f64 = StandardNormal.sample(rng);
            let ns = self.mean_ns + self.deviation_ns * z;
            // At least every second draw is kept, because the mean is not below zero.
            if ns >= 0.0 {
                return ns;
            }
        }
    }

    /// Mean of what is drawn, with everything above `limit_ns` counted as `limit_ns`.
    pub(in crate::latency) fn mean_ns(&self, limit_ns: f64) -> f64 {
        let (zero, limit) = (self.standard(0.0), self.standard(limit_ns));
        let inside = self.mean_ns * (gauss::above(zero) - gauss::above(limit))
            + self.deviation_ns * (gauss::density(zero) - gauss::density(limit));
        (inside + limit_ns * gauss::above(limit)) / self.kept
    }

    pub(in crate::latency) fn quantile_ns(&self, q: f64) -> f64 {
        let z = gauss::above_inverse((1.0 - q) * self.kept);
        (self.mean_ns + self.deviation_ns * z).max(0.0)
    }

    pub(in crate::latency) fn cdf(&self, ns: f64) -> f64 {
        if ns < 0.0 {
            return 0.0;
        }
        1.0 - gauss::above(self.standard(ns)) / self.kept
    }

    fn standard(&self, ns: f64) -> f64 {
        (ns - self.mean_ns) / self.deviation_ns
    }
}

impl fmt::Display for Normal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "normal(mean={},sd={})",
            Human(self.mean),
            Human(self.deviation)
        )
    }
}
