//! A delay whose logarithm follows the bell curve: the usual shape of service times, with a longer
//! tail above than below.

use std::fmt;
use std::time::Duration;

use kvlab_timing::duration::Human;
use rand_distr::{Distribution as _, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{LawError, number_parameter, positive_time_parameter};
use crate::latency::gauss;

/// `lognormal(p50, p99)`, `lognormal(p50, sigma)` or `lognormal(mean, sigma)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Lognormal {
    given: Given,
    /// Median, in nanoseconds.
    median_ns: f64,
    /// Standard deviation of the logarithm.
    sigma: f64,
}

/// The parameters as they were given, for printing.
#[derive(Debug, Clone, PartialEq)]
enum Given {
    Percentiles { p50: Duration, p99: Duration },
    Median { p50: Duration, sigma: f64 },
    Mean { mean: Duration, sigma: f64 },
}

impl Lognormal {
    /// By its median and its 99th percentile.
    ///
    /// # Errors
    /// When `p50` is zero, or `p99` is not above it or above one hour.
    pub fn from_percentiles(p50: Duration, p99: Duration) -> Result<Self, LawError> {
        let median_ns = positive_time_parameter("p50", p50)?;
        let p99_ns = positive_time_parameter("p99", p99)?;
        if p99 <= p50 {
            return Err(LawError::Parameter {
                parameter: "p99",
                found: Human(p99).to_string(),
                expected: "a time above p50",
            });
        }
        Ok(Self {
            given: Given::Percentiles { p50, p99 },
            median_ns,
            sigma: (p99_ns / median_ns).ln() / Z_99,
        })
    }

    /// By its median and the standard deviation of its logarithm.
    ///
    /// # Errors
    /// When `p50` is zero or above one hour, or `sigma` is not above zero.
    pub fn from_median(p50: Duration, sigma: f64) -> Result<Self, LawError> {
        Ok(Self {
            given: Given::Median { p50, sigma },
            median_ns: positive_time_parameter("p50", p50)?,
            sigma: sigma_parameter(sigma)?,
        })
    }

    /// By its own mean and the standard deviation of its logarithm.
    ///
    /// # Errors
    /// When `mean` is zero or above one hour, or `sigma` is not above zero.
    pub fn from_mean(mean: Duration, sigma: f64) -> Result<Self, LawError> {
        let mean_ns = positive_time_parameter("mean", mean)?;
        let sigma = sigma_parameter(sigma)?;
        Ok(Self {
            given: Given::Mean { mean, sigma },
            median_ns: mean_ns * (-0.5 * sigma * sigma).exp(),
            sigma,
        })
    }

    pub(in crate::latency) fn sample_ns(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        let z: f64 = StandardNormal.sample(rng);
        self.median_ns * (self.sigma * z).exp()
    }

    /// Mean of what is drawn, with everything above `limit_ns` counted as `limit_ns`.
    pub(in crate::latency) fn mean_ns(&self, limit_ns: f64) -> f64 {
        let limit = self.standard(limit_ns);
        let inside = (0.5 * self.sigma * self.sigma).exp() * gauss::below(limit - self.sigma);
        // The product is 0 times infinity where nearly everything is above the limit.
        let inside = if inside.is_nan() {
            0.0
        } else {
            self.median_ns * inside
        };
        inside + limit_ns * gauss::above(limit)
    }

    pub(in crate::latency) fn quantile_ns(&self, q: f64) -> f64 {
        let z = gauss::above_inverse(1.0 - q);
        self.median_ns * (self.sigma * z).exp()
    }

    pub(in crate::latency) fn cdf(&self, ns: f64) -> f64 {
        if ns <= 0.0 {
            return 0.0;
        }
        gauss::below(self.standard(ns))
    }

    fn standard(&self, ns: f64) -> f64 {
        (ns / self.median_ns).ln() / self.sigma
    }
}

impl fmt::Display for Lognormal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.given {
            Given::Percentiles { p50, p99 } => {
                write!(f, "lognormal(p50={},p99={})", Human(*p50), Human(*p99))
            }
            Given::Median { p50, sigma } => {
                write!(f, "lognormal(p50={},sigma={sigma})", Human(*p50))
            }
            Given::Mean { mean, sigma } => {
                write!(f, "lognormal(mean={},sigma={sigma})", Human(*mean))
            }
        }
    }
}

fn sigma_parameter(sigma: f64) -> Result<f64, LawError> {
    number_parameter("sigma", sigma, 10.0, "a number above 0 and up to 10")
}

/// 99th percentile of the standard normal distribution.
const Z_99: f64 = 2.326_347_874_040_840_8;
