//! A heavy tail: the longer the delay has lasted, the longer it is likely to last yet.

use std::fmt;
use std::time::Duration;

use kvlab_timing::duration::Human;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{LawError, number_parameter, positive_time_parameter, time_parameter, unit};

/// `pareto(min, shape[, max])`: the probability of more than x is (min / x)^shape. Draws above `max`
/// count as `max`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pareto {
    min: Duration,
    max: Option<Duration>,
    min_ns: f64,
    max_ns: f64,
    shape: f64,
}

impl Pareto {
    /// Delays of at least `min` with tail index `shape`; the smaller, the heavier.
    ///
    /// # Errors
    /// When `min` is zero, `max` is below `min` or above one hour, or `shape` is not above zero.
    pub fn new(min: Duration, shape: f64, max: Option<Duration>) -> Result<Self, LawError> {
        let min_ns = positive_time_parameter("min", min)?;
        let shape = number_parameter("shape", shape, 1000.0, "a number above 0 and up to 1000")?;
        let max_ns = match max {
            Some(max) if max < min => {
                return Err(LawError::Parameter {
                    parameter: "max",
                    found: Human(max).to_string(),
                    expected: "at least min",
                });
            }
            Some(max) => time_parameter("max", max)?,
            None => f64::INFINITY,
        };
        Ok(Self {
            min,
            max,
            min_ns,
            max_ns,
            shape,
        })
    }

    pub(in crate::latency) fn sample_ns(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        // From 0 (excluded) to 1.
        let tail = 1.0 - unit(rng);
        self.with_tail(tail)
    }

    /// Mean of what is drawn, with everything above `limit_ns` counted as `limit_ns`.
    pub(in crate::latency) fn mean_ns(&self, limit_ns: f64) -> f64 {
        let max_ns = self.max_ns.min(limit_ns);
        // The integral of the tail from min to max: min / (shape - 1) * (1 - (min/max)^(shape - 1)),
        // written so that it holds near and at shape 1 too.
        let (log, excess) = ((max_ns / self.min_ns).ln(), self.shape - 1.0);
        let beyond = if (excess * log).abs() < f64::EPSILON {
            log
        } else {
            -(-excess * log).exp_m1() / excess
        };
        self.min_ns + self.min_ns * beyond
    }

    pub(in crate::latency) fn quantile_ns(&self, q: f64) -> f64 {
        self.with_tail(1.0 - q)
    }

    pub(in crate::latency) fn cdf(&self, ns: f64) -> f64 {
        if ns < self.min_ns {
            0.0
        } else if ns >= self.max_ns {
            1.0
        } else {
            1.0 - (self.min_ns / ns).powf(self.shape)
        }
    }

    /// The delay that is exceeded with probability `tail`.
    fn with_tail(&self, tail: f64) -> f64 {
        (self.min_ns * tail.powf(-1.0 / self.shape)).min(self.max_ns)
    }
}

impl fmt::Display for Pareto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pareto(min={},shape={}", Human(self.min), self.shape)?;
        if let Some(max) = self.max {
            write!(f, ",max={}", Human(max))?;
        }
        f.write_str(")")
    }
}
