//! The laws of chance a delay can follow, one file each.
//!
//! A law draws, and it knows what it draws: mean, quantile and cumulative probability come from
//! closed forms (a mixture inverts numerically), independent of the generator, so that a lab can
//! judge samples by them. All speak of nanoseconds as real numbers; what a request gets is rounded
//! to whole ones and ends at [`LONGEST_NS`].

mod counts;
mod curve;
mod empirical;
mod exponential;
mod files;
mod lognormal;
mod mixture;
mod normal;
mod pareto;
mod replay;
mod uniform;

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

pub use empirical::{Empirical, Unit};
pub use exponential::Exponential;
pub use lognormal::Lognormal;
pub use mixture::Mixture;
pub use normal::Normal;
pub use pareto::Pareto;
pub use replay::Replay;
pub use uniform::Uniform;

use crate::stamp::LONGEST_NS;

/// Why parameters make no law.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LawError {
    /// A parameter outside of its range.
    #[error("{parameter} is {found}; expected {expected}")]
    Parameter {
        /// Its name.
        parameter: &'static str,
        /// What was given.
        found: String,
        /// The range.
        expected: &'static str,
    },
    /// Quantiles that make no law.
    #[error("{found}; expected {expected}")]
    Points {
        /// What was given.
        found: String,
        /// What has to be there.
        expected: &'static str,
    },
    /// A file that no law can be read from.
    #[error("{place}: {message}")]
    File {
        /// The file, and the line if it is about one.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// A mixture within a mixture.
    #[error("a mixture holds no mixtures; expected their parts instead")]
    NestedMixture,
    /// Too few or too many parts.
    #[error("a mixture of {found} parts; expected 1 to {}", Mixture::MAX_PARTS)]
    Parts {
        /// How many were given.
        found: usize,
    },
    /// Shares that do not make a whole.
    #[error("the shares add up to {found}%; expected 100%")]
    Shares {
        /// Their sum.
        found: String,
    },
}

/// A parameter that is a time: in nanoseconds, at most an hour.
fn time_parameter(parameter: &'static str, given: Duration) -> Result<f64, LawError> {
    let nanos = u64::try_from(given.as_nanos()).unwrap_or(u64::MAX);
    if nanos > LONGEST_NS {
        return Err(LawError::Parameter {
            parameter,
            found: kvlab_timing::duration::format(given),
            expected: "at most 1h",
        });
    }
    Ok(nanos as f64)
}

/// A parameter that is a time above zero.
fn positive_time_parameter(parameter: &'static str, given: Duration) -> Result<f64, LawError> {
    if given.is_zero() {
        return Err(LawError::Parameter {
            parameter,
            found: "0".to_owned(),
            expected: "a time above 0",
        });
    }
    time_parameter(parameter, given)
}

/// A parameter that is a number above zero and at most `largest`.
fn number_parameter(
    parameter: &'static str,
    given: f64,
    largest: f64,
    expected: &'static str,
) -> Result<f64, LawError> {
    if given > 0.0 && given <= largest {
        return Ok(given);
    }
    Err(LawError::Parameter {
        parameter,
        found: given.to_string(),
        expected,
    })
}

/// A number of 0 (included) to 1 (excluded), in steps of 2^-53.
fn unit(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}
