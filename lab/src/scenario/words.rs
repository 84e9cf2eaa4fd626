//! Values as they are written in a scenario: times, rates, mixes, sizes and key patterns.

use std::fmt;
use std::time::Duration;

use kvlab_timing::{Rate, duration};
use serde::de::{self, Deserializer, Visitor};
use serde::Deserialize;

/// A time with its unit, as in `1.5ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub(super) Duration);

impl Time {
    pub(super) fn micros(micros: u64) -> Self {
        Self(Duration::from_micros(micros))
    }

    pub(super) fn nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        duration::parse(&text).map(Self).map_err(de::Error::custom)
    }
}

/// Requests per second: a number, or a text such as `2.5k`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PerSecond(pub(super) Rate);

impl<'de> Deserialize<'de> for PerSecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(number_text(deserializer)?.parse().map_err(de::Error::custom)?))
    }
}

/// A number or a text, as text.
fn number_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number or a text")
        }

        fn visit_i64<E: de::Error>(self, value: i64) -> Result<String, E> {
            Ok(value.to_string())
        }

        fn visit_u64<E: de::Error>(self, value: u64) -> Result<String, E> {
            Ok(value.to_string())
        }

        fn visit_f64<E: de::Error>(self, value: f64) -> Result<String, E> {
            Ok(value.to_string())
        }

        fn visit_str<E: de::Error>(self, value: &str) -> Result<String, E> {
            Ok(value.to_owned())
        }
    }
    deserializer.deserialize_any(Text)
}
