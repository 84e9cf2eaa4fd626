//! Several laws side by side, each for its share of the requests: the usual way to have "mostly
//! fast, sometimes slow".

use std::fmt;

use rand_xoshiro::Xoshiro256PlusPlus;

use super::{LawError, number_parameter, unit};
use crate::latency::Distribution;

/// `mixture(share%:law, ...)`: each request follows one of the laws, drawn by share.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
struct Part {
    percent: f64,
    /// Sum of the shares up to and with this one, of 1.
    up_to: f64,
    /// Share, of 1.
    share: f64,
    law: Distribution,
}

impl Mixture {
    /// More parts are refused.
    pub const MAX_PARTS: usize = 16;

    /// Laws with their shares in percent, which add up to 100.
    ///
    /// # Errors
    /// When there are no parts or more than [`Mixture::MAX_PARTS`], when one is a mixture itself,
    /// when a share is not above zero, or when their sum is not 100.
    pub fn new(parts: Vec<(f64, Distribution)>) -> Result<Self, LawError> {
        if parts.is_empty() || parts.len() > Self::MAX_PARTS {
            return Err(LawError::Parts { found: parts.len() });
        }
        let sum: f64 = parts.iter().map(|(percent, _)| percent).sum();
        let mut up_to = 0.0;
        let mut mixed = Vec::with_capacity(parts.len());
        for (percent, law) in parts {
            let percent = number_parameter("share", percent, 100.0, "above 0% and up to 100%")?;
            if matches!(law, Distribution::Mixture(_)) {
                return Err(LawError::NestedMixture);
            }
            let share = percent / sum;
            up_to += share;
            mixed.push(Part {
                percent,
                up_to,
                share,
                law,
            });
        }
        if (sum - 100.0).abs() > SUM_TOLERANCE {
            return Err(LawError::Shares {
                found: sum.to_string(),
            });
        }
        Ok(Self { parts: mixed })
    }

    /// The laws with their shares, of 1.
    pub fn parts(&self) -> impl Iterator<Item = (f64, &Distribution)> {
        self.parts.iter().map(|part| (part.share, &part.law))
    }

    pub(in crate::latency) fn restarted(&self) -> Self {
        let mut same = self.clone();
        for part in &mut same.parts {
            part.law = part.law.restarted();
        }
        same
    }

    pub(in crate::latency) fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let draw = unit(rng);
        // The last sum may miss 1 by rounding: what is left belongs to the last part.
        let part = self
            .parts
            .iter()
            .find(|part| draw < part.up_to)
            .or(self.parts.last());
        part.map_or(0, |part| part.law.sample_ns(rng))
    }

    pub(in crate::latency) fn mean_ns(&self) -> f64 {
        self.parts().map(|(share, law)| share * law.mean_ns()).sum()
    }

    /// Halves the interval between the lowest and the highest quantile of the parts, which holds the
    /// quantile of the mixture, down to neighbouring numbers.
    pub(in crate::latency) fn quantile_ns(&self, q: f64) -> f64 {
        let quantiles = || self.parts().map(|(_, law)| law.quantile_ns(q));
        let mut low = quantiles().fold(f64::INFINITY, f64::min);
        let mut high = quantiles().fold(0.0, f64::max);
        if self.cdf(low) >= q {
            return low;
        }
        while high - low > RESOLUTION_NS {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if self.cdf(middle) < q {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    pub(in crate::latency) fn cdf(&self, ns: f64) -> f64 {
        self.parts().map(|(share, law)| share * law.cdf(ns)).sum()
    }
}

impl fmt::Display for Mixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, part) in self.parts.iter().enumerate() {
            let before = if place == 0 { "mixture(" } else { "," };
            write!(f, "{before}{}%:{}", part.percent, part.law)?;
        }
        f.write_str(")")
    }
}

/// Shares are decimal fractions, whose sum is rarely 100 to the last bit.
const SUM_TOLERANCE: f64 = 1e-9;

const RESOLUTION_NS: f64 = 1e-6;
