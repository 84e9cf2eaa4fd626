//! Values: how long they are and what is in them.

use super::{Records, SettingsError};

/// Bound of one value: the largest a RESP server takes.
pub const MAX_VALUE_SIZE: u32 = 512 * 1024 * 1024;

/// Sizes and content of written values.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueSettings {
    /// The law of the sizes, in bytes.
    pub size: SizeDistribution,
    /// What the bytes are.
    pub content: Content,
}

impl Default for ValueSettings {
    fn default() -> Self {
        Self {
            size: SizeDistribution::Fixed(32),
            content: Content::Random,
        }
    }
}

/// The law of the value sizes, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeDistribution {
    /// Always the same.
    Fixed(u32),
    /// Each size of the range, both ends included, with the same probability.
    Uniform {
        /// Smallest.
        least: u32,
        /// Largest.
        most: u32,
    },
    /// One of a list of (size, weight).
    Weighted(Vec<(u32, u32)>),
    /// The sizes of a list of (size, times), each as often in a row as it says, and so on.
    Rotation(Vec<(u32, u32)>),
    /// Growing evenly with the key, from the first to the last key of the key space.
    ByKey {
        /// Of the first key.
        least: u32,
        /// Of the last key.
        most: u32,
    },
    /// The values of records: that of the key's number, counted from the first key.
    Records(Records),
    /// Lognormal by its median and the sigma of the logarithm, cut off at `most`.
    Lognormal {
        /// Median size.
        median: f64,
        /// Standard deviation of the natural logarithm of the size.
        sigma: f64,
        /// Upper bound; larger draws become this size.
        most: u32,
    },
}

/// What the bytes of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Content {
    /// Slices of one seeded random block; do not compress.
    #[default]
    Random,
    /// Slices of one seeded block of lower-case letters and digits.
    Text,
    /// One byte repeated.
    Fill(u8),
}

impl SizeDistribution {
    /// The largest size that can be drawn.
    #[must_use]
    pub fn most(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Uniform { most, .. }
            | Self::ByKey { most, .. }
            | Self::Lognormal { most, .. } => *most,
            Self::Records(records) => records.longest(),
            Self::Weighted(list) | Self::Rotation(list) => {
                list.iter().map(|(size, _)| *size).max().unwrap_or(0)
            }
        }
    }
}

impl ValueSettings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.size.most() > MAX_VALUE_SIZE {
            return Err(SettingsError::Values("larger than 512 MiB"));
        }
        match &self.size {
            SizeDistribution::Uniform { least, most } | SizeDistribution::ByKey { least, most }
                if least > most =>
            {
                Err(SettingsError::Values(
                    "the smallest size is above the largest",
                ))
            }
            SizeDistribution::Weighted(list) | SizeDistribution::Rotation(list)
                if list.iter().all(|(_, weight)| *weight == 0) =>
            {
                Err(SettingsError::Values("no size with a weight above 0"))
            }
            SizeDistribution::Lognormal { median, sigma, .. }
                if !(*median >= 1.0 && *sigma >= 0.0 && sigma.is_finite()) =>
            {
                Err(SettingsError::Values(
                    "lognormal needs a median from 1 and a sigma from 0",
                ))
            }
            _ => Ok(()),
        }
    }
}
