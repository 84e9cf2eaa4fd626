//! How much memory data may take, and what goes when it is reached.
//!
//! ```text
//! max-memory  = size
//! eviction    = "noeviction" | "allkeys-lru" | "allkeys-lfu" | "allkeys-random"
//!             | "volatile-lru" | "volatile-lfu" | "volatile-random" | "volatile-ttl"
//! stop-writes = share, as in "90%"
//! ```
//!
//! On RESP `max-memory` and `eviction` are the starting values of the parameters `maxmemory` and
//! `maxmemory-policy`, which CONFIG SET changes while the server runs: before each command keys are
//! evicted until `used_memory` is within the limit; where none is left to evict, commands that may need
//! memory are refused (`OOM`). On Aerospike `max-memory` is the size of each namespace's storage, and
//! writes are refused with 8 from the share of it on that `stop-writes` says; removals are not.

use std::fmt;
use std::str::FromStr;

use super::LimitError;

/// What is evicted from the RESP side: the policies of Redis, by its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eviction {
    /// Nothing.
    #[default]
    None,
    /// Of all keys, the one that was not used for longest.
    AllKeysLru,
    /// Of all keys, the one that is used least often.
    AllKeysLfu,
    /// Any key.
    AllKeysRandom,
    /// Of the keys that expire, the one that was not used for longest.
    VolatileLru,
    /// Of the keys that expire, the one that is used least often.
    VolatileLfu,
    /// Any key that expires.
    VolatileRandom,
    /// The key that expires next.
    VolatileTtl,
}

impl Eviction {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::AllKeysLru,
        Self::AllKeysLfu,
        Self::AllKeysRandom,
        Self::VolatileLru,
        Self::VolatileLfu,
        Self::VolatileRandom,
        Self::VolatileTtl,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "noeviction",
            Self::AllKeysLru => "allkeys-lru",
            Self::AllKeysLfu => "allkeys-lfu",
            Self::AllKeysRandom => "allkeys-random",
            Self::VolatileLru => "volatile-lru",
            Self::VolatileLfu => "volatile-lfu",
            Self::VolatileRandom => "volatile-random",
            Self::VolatileTtl => "volatile-ttl",
        }
    }

    /// Whether only keys that expire are evicted.
    #[must_use]
    pub fn is_volatile(self) -> bool {
        matches!(
            self,
            Self::VolatileLru | Self::VolatileLfu | Self::VolatileRandom | Self::VolatileTtl
        )
    }

    /// Whether it goes by how often keys are used.
    #[must_use]
    pub fn is_lfu(self) -> bool {
        matches!(self, Self::AllKeysLfu | Self::VolatileLfu)
    }

    /// Whether it takes any key.
    #[must_use]
    pub fn is_random(self) -> bool {
        matches!(self, Self::AllKeysRandom | Self::VolatileRandom)
    }
}

impl FromStr for Eviction {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let named = Self::ALL.into_iter().find(|policy| policy.name() == text);
        named.ok_or_else(|| LimitError::new("an eviction policy", text, POLICIES))
    }
}

const POLICIES: &str = "noeviction, allkeys-lru, allkeys-lfu, allkeys-random, volatile-lru, \
                        volatile-lfu, volatile-random or volatile-ttl";

impl fmt::Display for Eviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A share in whole percent, from 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u8);

impl Share {
    /// The share at which an Aerospike server of the default configuration stops writes.
    pub const USUAL_STOP_WRITES: Self = Self(70);

    /// In percent.
    #[must_use]
    pub fn percent(self) -> u8 {
        self.0
    }
}

impl FromStr for Share {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let percent = text
            .strip_suffix('%')
            .and_then(|digits| digits.parse().ok());
        percent
            .filter(|percent| (1..=100).contains(percent) && !text.starts_with('+'))
            .map(Self)
            .ok_or_else(|| LimitError::new("a share", text, "1% to 100%, in whole percent"))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_and_shares_are_read_and_print_as_they_are_read() {
        for policy in Eviction::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert!("lru".parse::<Eviction>().is_err());
        for text in ["1%", "90%", "100%"] {
            assert_eq!(text.parse::<Share>().unwrap().to_string(), text);
        }
        for text in ["", "90", "0%", "101%", "1.5%", "+9%"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
