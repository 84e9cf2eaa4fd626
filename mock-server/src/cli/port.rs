//! A port as people write it: a number, 0 for a free one, or `off`.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// A port of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// Opens none.
    Off,
    /// Opens this one; 0 picks a free one.
    Number(u16),
}

impl Port {
    /// The number, `None` when it is off.
    #[must_use]
    pub fn number(self) -> Option<u16> {
        match self {
            Self::Off => None,
            Self::Number(number) => Some(number),
        }
    }
}

impl From<Option<u16>> for Port {
    fn from(number: Option<u16>) -> Self {
        number.map_or(Self::Off, Self::Number)
    }
}

/// A text that is no port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is no port: expected a number from 0 to 65535 or 'off'")]
pub struct PortError {
    found: String,
}

impl FromStr for Port {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        match text {
            "off" => Ok(Self::Off),
            _ => text.parse().map(Self::Number).map_err(|_| PortError {
                found: text.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl Serialize for Port {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str("off"),
            Self::Number(number) => serializer.serialize_u16(*number),
        }
    }
}

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Port;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 to 65535 or \"off\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Port, E> {
                let unexpected = de::Unexpected::Signed(number);
                let number = u16::try_from(number);
                number
                    .map(Port::Number)
                    .map_err(|_| E::invalid_value(unexpected, &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Port, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
