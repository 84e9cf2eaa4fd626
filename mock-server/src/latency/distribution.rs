//! What a delay is drawn from.

use std::fmt;
use std::time::Duration;

use kvlab_timing::duration::Human;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::law::{Empirical, Exponential, Lognormal, Mixture, Normal, Pareto, Replay, Uniform};
use crate::stamp::LONGEST_NS;

/// A law that delays follow. It prints in the form that [`FromStr`](std::str::FromStr) reads:
///
/// ```
/// use kvlab_mock_server::latency::Distribution;
///
/// let law: Distribution = "mixture(99%:constant(1ms),1%:exponential(mean=20ms))".parse()?;
/// assert_eq!(law.to_string(), "mixture(99%:constant(1ms),1%:exponential(mean=20ms))");
/// assert_eq!(law.mean_ns(), 1_190_000.0);
/// assert_eq!(law.quantile_ns(0.5), 1_000_000.0);
/// # Ok::<(), kvlab_mock_server::latency::ParseError>(())
/// ```
///
/// No law gives more than an hour ([`LONGEST_NS`]); what it would give beyond counts as one hour, in
/// samples, mean and quantiles alike.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Distribution {
    /// No delay.
    #[default]
    None,
    /// Always the same delay.
    Constant {
        /// The delay in nanoseconds, at most [`LONGEST_NS`].
        delay_ns: u64,
    },
    /// Any delay between two bounds.
    Uniform(Uniform),
    /// The bell curve, cut off at zero.
    Normal(Normal),
    /// A bell curve of the logarithm.
    Lognormal(Lognormal),
    /// Memoryless.
    Exponential(Exponential),
    /// Heavy-tailed.
    Pareto(Pareto),
    /// One of several laws, drawn by share.
    Mixture(Mixture),
    /// As it was measured somewhere.
    Empirical(Empirical),
    /// A recorded list, one after the other.
    Replay(Replay),
}

impl Distribution {
    /// Always `delay`, at most one hour.
    #[must_use]
    pub fn constant(delay: Duration) -> Self {
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(LONGEST_NS);
        Self::Constant {
            delay_ns: delay_ns.min(LONGEST_NS),
        }
    }

    /// Draws a delay, in nanoseconds.
    #[inline]
    pub fn sample_ns(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Self::None => 0,
            Self::Constant { delay_ns } => *delay_ns,
            Self::Uniform(law) => whole(law.sample_ns(rng)),
            Self::Normal(law) => whole(law.sample_ns(rng)),
            Self::Lognormal(law) => whole(law.sample_ns(rng)),
            Self::Exponential(law) => whole(law.sample_ns(rng)),
            Self::Pareto(law) => whole(law.sample_ns(rng)),
            Self::Mixture(law) => law.sample(rng),
            Self::Empirical(law) => law.sample(rng),
            Self::Replay(law) => law.sample(),
        }
    }

    /// The mean delay, in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Constant { delay_ns } => *delay_ns as f64,
            Self::Uniform(law) => law.mean_ns(),
            Self::Normal(law) => law.mean_ns(LIMIT_NS),
            Self::Lognormal(law) => law.mean_ns(LIMIT_NS),
            Self::Exponential(law) => law.mean_ns(LIMIT_NS),
            Self::Pareto(law) => law.mean_ns(LIMIT_NS),
            Self::Mixture(law) => law.mean_ns(),
            Self::Empirical(law) => law.mean_ns(),
            Self::Replay(law) => law.mean_ns(),
        }
    }

    /// The smallest delay, in nanoseconds, that a share of at least `q` of all requests does not
    /// exceed; `q` is taken as lying in 0 to 1.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> f64 {
        let q = q.clamp(0.0, 1.0);
        let ns = match self {
            Self::None => 0.0,
            Self::Constant { delay_ns } => *delay_ns as f64,
            Self::Uniform(law) => law.quantile_ns(q),
            Self::Normal(law) => law.quantile_ns(q),
            Self::Lognormal(law) => law.quantile_ns(q),
            Self::Exponential(law) => law.quantile_ns(q),
            Self::Pareto(law) => law.quantile_ns(q),
            Self::Mixture(law) => law.quantile_ns(q),
            Self::Empirical(law) => law.quantile_ns(q),
            Self::Replay(law) => law.quantile_ns(q),
        };
        ns.min(LIMIT_NS)
    }

    /// The share of all requests, from 0 to 1, whose delay is at most `ns` nanoseconds.
    #[must_use]
    pub fn cdf(&self, ns: f64) -> f64 {
        if ns >= LIMIT_NS {
            return 1.0;
        }
        match self {
            Self::None => step(0.0, ns),
            Self::Constant { delay_ns } => step(*delay_ns as f64, ns),
            Self::Uniform(law) => law.cdf(ns),
            Self::Normal(law) => law.cdf(ns),
            Self::Lognormal(law) => law.cdf(ns),
            Self::Exponential(law) => law.cdf(ns),
            Self::Pareto(law) => law.cdf(ns),
            Self::Mixture(law) => law.cdf(ns),
            Self::Empirical(law) => law.cdf(ns),
            Self::Replay(law) => law.cdf(ns),
        }
    }

    /// The same law for a server that starts now: a list begins with its first delay.
    #[must_use]
    pub fn restarted(&self) -> Self {
        match self {
            Self::Replay(law) => Self::Replay(law.restarted()),
            Self::Mixture(law) => Self::Mixture(law.restarted()),
            other => other.clone(),
        }
    }

    /// Whether it delays nothing: no law, or a constant of zero.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None | Self::Constant { delay_ns: 0 })
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Constant { delay_ns } => {
                write!(f, "constant({})", Human(Duration::from_nanos(*delay_ns)))
            }
            Self::Uniform(law) => law.fmt(f),
            Self::Normal(law) => law.fmt(f),
            Self::Lognormal(law) => law.fmt(f),
            Self::Exponential(law) => law.fmt(f),
            Self::Pareto(law) => law.fmt(f),
            Self::Mixture(law) => law.fmt(f),
            Self::Empirical(law) => law.fmt(f),
            Self::Replay(law) => law.fmt(f),
        }
    }
}

/// Cumulative probability of a constant.
fn step(constant: f64, ns: f64) -> f64 {
    if ns < constant { 0.0 } else { 1.0 }
}

/// A drawn delay in whole nanoseconds, within bounds.
#[expect(
    clippy::cast_possible_truncation,
    reason = "rounded and clamped to 0..=LONGEST_NS, which is below 2^53"
)]
pub(super) fn whole(ns: f64) -> u64 {
    ns.clamp(0.0, LIMIT_NS).round() as u64
}

const LIMIT_NS: f64 = LONGEST_NS as f64;

#[cfg(test)]
#[path = "distribution_tests.rs"]
mod tests;
