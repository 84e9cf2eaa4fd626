//! Values as they are written in a scenario.

use std::time::Duration;

use kvlab_timing::duration;
use serde::Deserialize;
use serde::de::{self, Deserializer};
use toml::Spanned;

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

/// One text or a list of texts.
#[derive(Debug, Default)]
pub(super) struct OneOrMore(pub(super) Vec<Spanned<String>>);

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a text or a list of texts")]
        enum Form {
            One(String),
            More(Vec<String>),
        }
        let form = Spanned::<Form>::deserialize(deserializer)?;
        let place = form.span();
        let texts = match form.into_inner() {
            Form::One(text) => vec![text],
            Form::More(texts) => texts,
        };
        Ok(Self(
            texts
                .into_iter()
                .map(|text| Spanned::new(place.clone(), text))
                .collect(),
        ))
    }
}
