//! Waiting for something that happens at any moment with the same probability.

use std::fmt;
use std::time::Duration;

use kvlab_timing::duration::Human;
use rand_distr::{Distribution as _, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{LawError, positive_time_parameter};

/// `exponential(mean)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Exponential {
    mean: Duration,
    mean_ns: f64,
}

impl Exponential {
    /// Delays that are `mean` long on average.
    ///
    /// # Errors
    /// When `mean` is zero or above one hour.
    pub fn new(mean: Duration) -> Result<Self, LawError> {
        Ok(Self {
            mean,
            mean_ns: positive_time_parameter("mean", mean)?,
        })
    }

    pub(in crate::latency) fn sample_ns(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        let draw: f64 = Exp1.sample(rng);
        self.mean_ns * draw
    }

    /// Mean of what is drawn, with everything above `limit_ns` counted as `limit_ns`.
    pub(in crate::latency) fn mean_ns(&self, limit_ns: f64) -> f64 {
        -self.mean_ns * (-limit_ns / self.mean_ns).exp_m1()
    }

    pub(in crate::latency) fn quantile_ns(&self, q: f64) -> f64 {
        -self.mean_ns * (-q).ln_1p()
    }

    pub(in crate::latency) fn cdf(&self, ns: f64) -> f64 {
        if ns <= 0.0 {
            return 0.0;
        }
        -(-ns / self.mean_ns).exp_m1()
    }
}

impl fmt::Display for Exponential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exponential(mean={})", Human(self.mean))
    }
}
