//! Keys: how their numbers are written and in which order they are drawn.

mod further;
mod stream;
mod zipf;

use bytes::BytesMut;

use crate::driver::Plan;
use crate::settings::{KeySettings, Records};

pub use further::FurtherKeys;
pub use stream::{KeyStream, Share};

/// How key numbers become keys.
#[derive(Clone, Debug)]
pub struct KeySpace {
    prefix: Box<[u8]>,
    width: usize,
    first: u64,
    count: u64,
    settings: KeySettings,
    names: Option<Records>,
}

impl KeySpace {
    /// The key space of checked settings.
    #[must_use]
    pub fn new(settings: &KeySettings) -> Self {
        Self {
            prefix: settings.prefix.as_bytes().into(),
            width: usize::from(settings.width),
            first: settings.first,
            count: settings.count.get(),
            settings: settings.clone(),
            names: None,
        }
    }

    /// The same numbers, written as the keys of these records.
    #[must_use]
    pub fn named(mut self, names: Option<Records>) -> Self {
        self.names = names;
        self
    }

    /// Text before the number.
    #[must_use]
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Digits of the number; `None` prints as many as the number has.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        (self.width > 0).then_some(self.width)
    }

    /// Appends the key of this number.
    pub fn write(&self, number: u64, out: &mut BytesMut) {
        if let Some(names) = &self.names {
            out.extend_from_slice(names.key(names.of_number(number, self.first)));
            return;
        }
        out.extend_from_slice(&self.prefix);
        let mut digits = [b'0'; MAX_DIGITS];
        let mut rest = number;
        let mut start = MAX_DIGITS;
        for (place, digit) in digits.iter_mut().enumerate().rev() {
            *digit = DECIMAL[usize::try_from(rest % 10).unwrap_or(0)];
            rest /= 10;
            start = place;
            if rest == 0 {
                break;
            }
        }
        let start = start.min(MAX_DIGITS - self.width.min(MAX_DIGITS));
        out.extend_from_slice(&digits[start..]);
    }

    /// The order in which keys are visited, and between which numbers.
    #[must_use]
    pub fn settings(&self) -> &KeySettings {
        &self.settings
    }

    /// The number of the `index`-th key of an operation on several keys. The first is the plan's
    /// own; the others follow it evenly over the key space and depend on the plan alone, so an
    /// operation that is tried again touches the same keys.
    #[must_use]
    pub fn key_of(&self, plan: &Plan, index: u64) -> u64 {
        if index == 0 {
            return plan.key;
        }
        let mixed = crate::random::mix(plan.key ^ plan.serial.rotate_left(32) ^ index);
        self.first + crate::random::scale(mixed, self.count)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "key spaces above 2^53 lose single keys only"
)]
fn to_f64(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates and cuts off the fraction, both on purpose"
)]
fn from_f64(value: f64) -> u64 {
    value as u64
}

/// Digits of the largest 64-bit number.
const MAX_DIGITS: usize = 20;
const DECIMAL: [u8; 10] = *b"0123456789";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::OpClass;

    fn written(width: u8, number: u64) -> String {
        let settings = KeySettings {
            prefix: "k-".into(),
            width,
            ..KeySettings::default()
        };
        let mut out = BytesMut::new();
        KeySpace::new(&settings).write(number, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn keys_are_padded_to_the_width_and_natural_without() {
        assert_eq!(written(4, 42), "k-0042");
        assert_eq!(written(4, 12345), "k-12345");
        assert_eq!(written(0, 0), "k-0");
        assert_eq!(written(0, 907), "k-907");
        assert_eq!(written(20, u64::MAX), "k-18446744073709551615");
        assert_eq!(written(20, 0), "k-00000000000000000000");
    }

    #[test]
    fn named_keys_are_those_of_the_records() {
        let item = |key: &str| (key.into(), Vec::new(), 0);
        let names = Records::new([item("one"), item("two")]).unwrap();
        let settings = KeySettings {
            first: 1,
            ..KeySettings::default()
        };
        let keys = KeySpace::new(&settings).named(Some(names));
        let mut out = BytesMut::new();
        keys.write(2, &mut out);
        keys.write(3, &mut out);
        assert_eq!(&out[..], b"twoone");
    }

    #[test]
    fn further_keys_of_a_plan_stay_in_the_key_space_and_repeat() {
        let settings = KeySettings {
            first: 100,
            ..KeySettings::default()
        };
        let keys = KeySpace::new(&settings);
        let plan = Plan {
            class: OpClass(0),
            request: 0,
            key: 105,
            value_start: 0,
            value_len: 0,
            drawn: [0; 2],
            serial: 9,
        };
        assert_eq!(keys.key_of(&plan, 0), 105);
        let further: Vec<u64> = (1..100).map(|index| keys.key_of(&plan, index)).collect();
        assert!(further.iter().all(|key| (100..10_100).contains(key)));
        assert_eq!(
            further,
            (1..100)
                .map(|index| keys.key_of(&plan, index))
                .collect::<Vec<_>>()
        );
        let mut distinct = further.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() > 90);
    }
}
