//! The key space: how keys are written and in which order they are visited.

use std::num::NonZeroU64;

use super::SettingsError;

/// The keys of a run: `prefix` followed by a decimal number.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySettings {
    /// Text before the number.
    pub prefix: String,
    /// Digits of the number, padded with zeros; 0 prints as many as the number has.
    pub width: u8,
    /// Smallest number.
    pub first: u64,
    /// Size of the key space.
    pub count: NonZeroU64,
    /// The order in which the key space is visited.
    pub pattern: KeyPattern,
}

impl Default for KeySettings {
    fn default() -> Self {
        Self {
            prefix: "key:".into(),
            width: 12,
            first: 0,
            count: NonZeroU64::new(10_000).unwrap_or(NonZeroU64::MIN),
            pattern: KeyPattern::Uniform,
        }
    }
}

/// The order in which keys are visited. Fractions are of the key space, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyPattern {
    /// One after the other; thread k of T takes the keys k, k+T, … of the key space.
    Sequential,
    /// Each key with the same probability.
    Uniform,
    /// Rank r with a probability proportional to 1/r^exponent; rank 1 is the first key.
    Zipf {
        /// Skew, above 0; 0.99 is customary.
        exponent: f64,
    },
    /// Number n with a probability proportional to 1/n^exponent: the number of a key is its rank.
    /// Number 0 has no rank and is never drawn, unless it is the only one.
    ZipfByNumber {
        /// Skew, above 0.
        exponent: f64,
    },
    /// A bell around `mean`; draws outside the key space are drawn again.
    Gaussian {
        /// Centre, as a fraction of the key space.
        mean: f64,
        /// Standard deviation, as a fraction of the key space; above 0.
        deviation: f64,
    },
    /// A hot set: `operations` of the requests go to the first `keys` of the key space.
    HotSet {
        /// Size of the hot set, as a fraction of the key space.
        keys: f64,
        /// Share of the requests that go to the hot set.
        operations: f64,
    },
    /// The key space is cut into one range per connection, each visited one after the other.
    Parallel,
}

impl KeySettings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.width > 20 {
            return Err(SettingsError::Keys("a number has at most 20 digits"));
        }
        let Some(last) = self.first.checked_add(self.count.get() - 1) else {
            return Err(SettingsError::Keys(
                "the last key number does not fit in 64 bits",
            ));
        };
        if self.width > 0 && last.to_string().len() > usize::from(self.width) {
            return Err(SettingsError::Keys(
                "the last key number has more digits than the width",
            ));
        }
        self.pattern.check()
    }
}

impl KeyPattern {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let fraction = |value: f64| (0.0..=1.0).contains(&value);
        match *self {
            Self::Zipf { exponent } | Self::ZipfByNumber { exponent }
                if !(exponent > 0.0 && exponent.is_finite()) =>
            {
                Err(SettingsError::Keys("the exponent of zipf must be above 0"))
            }
            Self::Gaussian { mean, .. } if !fraction(mean) => Err(SettingsError::Keys(
                "the mean of gaussian is a fraction, 0 to 1",
            )),
            Self::Gaussian { deviation, .. } if !(deviation > 0.0 && deviation <= 10.0) => Err(
                SettingsError::Keys("the deviation of gaussian must be above 0, at most 10"),
            ),
            Self::HotSet { keys, operations } if !(fraction(keys) && fraction(operations)) => Err(
                SettingsError::Keys("both parts of a hot set are fractions, 0 to 1"),
            ),
            _ => Ok(()),
        }
    }
}
