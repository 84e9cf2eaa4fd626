//! Any delay between two bounds, each as likely as any other.

use std::fmt;
use std::time::Duration;

use kvlab_timing::duration::Human;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{LawError, time_parameter, unit};

/// `uniform(min, max)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Uniform {
    min: Duration,
    max: Duration,
    min_ns: f64,
    span_ns: f64,
}

impl Uniform {
    /// Delays from `min` to `max`.
    ///
    /// # Errors
    /// When `max` is below `min` or above one hour.
    pub fn new(min: Duration, max: Duration) -> Result<Self, LawError> {
        let (min_ns, max_ns) = (time_parameter("min", min)?, time_parameter("max", max)?);
        if max < min {
            return Err(LawError::Parameter {
                parameter: "max",
                found: Human(max).to_string(),
                expected: "at least min",
            });
        }
        Ok(Self {
            min,
            max,
            min_ns,
            span_ns: max_ns - min_ns,
        })
    }

    pub(in crate::latency) fn sample_ns(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        self.min_ns + self.span_ns * unit(rng)
    }

    pub(in crate::latency) fn mean_ns(&self) -> f64 {
        self.min_ns + 0.5 * self.span_ns
    }

    pub(in crate::latency) fn quantile_ns(&self, q: f64) -> f64 {
        self.min_ns + self.span_ns * q
    }

    pub(in crate::latency) fn cdf(&self, ns: f64) -> f64 {
        if ns < self.min_ns {
            0.0
        } else if ns >= self.min_ns + self.span_ns {
            1.0
        } else {
            (ns - self.min_ns) / self.span_ns
        }
    }
}

impl fmt::Display for Uniform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uniform({},{})", Human(self.min), Human(self.max))
    }
}
