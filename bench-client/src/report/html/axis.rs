//! Axes: where a value lies between the ends of a chart, and the marks along it.

use super::tail::Share;
use super::units::{round_rate, round_time};

/// An axis. Places along it go from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    law: Law,
    low: f64,
    high: f64,
    unit: Unit,
    ticks: Vec<Tick>,
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) place: f64,
    pub(super) label: String,
    /// Whether the label may be left out where there is little room.
    pub(super) minor: bool,
}

/// How values spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Law {
    Linear,
    Log,
}

/// What an axis measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Events per second.
    Rate,
}

impl Axis {
    /// An axis for values of which these are the least (above 0) and the largest: logarithmic where
    /// they differ much, else linear from 0.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
    pub fn of_values(values: impl IntoIterator<Item = u64>, unit: Unit) -> Self {
        let (mut least, mut most) = (u64::MAX, 1);
        for value in values.into_iter().filter(|value| *value > 0) {
            least = least.min(value);
            most = most.max(value);
        }
        let (least, most) = (least.min(most) as f64, most as f64);
        if unit == Unit::Time && most >= LOG_FROM * least {
            Self::log(least, most, unit)
        } else {
            Self::linear(most, unit)
        }
    }

    /// Time since the beginning, up to `length_ns`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
    pub fn of_time(length_ns: u64) -> Self {
        let high = length_ns.max(1) as f64;
        let step = step(high / TIME_TICKS);
        let mut axis = Self::between(Law::Linear, 0.0, high, Unit::Time);
        let values: Vec<f64> = (0..)
            .map(|index| f64::from(index) * step)
            .take_while(|value| *value <= high * 1.000_001)
            .collect();
        let many = values.len() > 4;
        axis.ticks = values
            .into_iter()
            .enumerate()
            .map(|(index, value)| axis.tick(value, many && index % 2 == 1))
            .collect();
        axis
    }

    /// Percentiles, the largest of `samples` at the end.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
    pub fn of_percentiles(samples: u64) -> Self {
        let high = samples.max(2) as f64;
        let mut axis = Self::between(Law::Log, 1.0, high, Unit::Time);
        axis.ticks = Share::up_to(samples)
            .into_iter()
            .map(|share| (share.one_in(), share.label()))
            .filter(|(_, label)| label == "p50" || is_nines(label))
            .map(|(one_in, label)| Tick {
                place: axis.place(one_in),
                // The deepest percentiles have long names: every second one will do.
                minor: label.len() > 5 && label.len() % 2 == 1,
                label,
            })
            .collect();
        axis
    }

    fn linear(most: f64, unit: Unit) -> Self {
        let step = step(most / VALUE_TICKS);
        let high = (most * 1.02 / step).ceil() * step;
        let mut axis = Self::between(Law::Linear, 0.0, high, unit);
        axis.ticks = (0..)
            .map(|index| f64::from(index) * step)
            .take_while(|value| *value <= high * 1.000_001)
            .map(|value| axis.tick(value, false))
            .collect();
        axis
    }

    fn log(least: f64, most: f64, unit: Unit) -> Self {
        let rounds: Vec<f64> = decades(least, most).collect();
        let below = |value: &&f64| **value <= least;
        let above = |value: &&f64| **value >= most;
        let low = rounds.iter().rfind(below).copied().unwrap_or(least);
        let high = rounds.iter().find(above).copied().unwrap_or(most);
        let mut axis = Self::between(Law::Log, low, high, unit);
        let wide = high / low > 300.0;
        axis.ticks = rounds
            .into_iter()
            .filter(|value| (low..=high).contains(value))
            .map(|value| axis.tick(value, wide && !is_power(value)))
            .collect();
        axis
    }

    fn between(law: Law, low: f64, high: f64, unit: Unit) -> Self {
        let ticks = Vec::new();
        Self {
            law,
            low,
            high,
            unit,
            ticks,
        }
    }

    fn tick(&self, value: f64, minor: bool) -> Tick {
        Tick {
            place: self.place(value),
            label: match self.unit {
                Unit::Time => round_time(value),
                Unit::Rate => round_rate(value),
            },
            minor,
        }
    }

    /// Where `value` lies, from 0 to 1; what lies beyond an end is put there.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.law {
            Law::Linear => (value - self.low) / (self.high - self.low),
            Law::Log => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
        };
        place.clamp(0.0, 1.0)
    }

    pub(super) fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// What a script needs to find places itself.
    pub(super) fn facts(&self) -> (Law, f64, f64, Unit) {
        (self.law, self.low, self.high, self.unit)
    }
}

/// Ratio of largest to least from which on an axis is logarithmic.
const LOG_FROM: f64 = 8.0;
/// Marks on a linear axis of values, about.
const VALUE_TICKS: f64 = 5.0;
/// Marks on an axis of time, about.
const TIME_TICKS: f64 = 6.0;

/// The round number (1, 2 or 5 times a power of ten) at or above `rough`.
fn step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= rough * 0.999_999)
        .unwrap_or(power * 10.0)
}

/// 1, 2 and 5 times the powers of ten, from below `least` to above `most`.
fn decades(least: f64, most: f64) -> impl Iterator<Item = f64> {
    let first = power_of_ten(least);
    let digits = [1.0, 2.0, 5.0];
    (0..40)
        .flat_map(move |place| digits.map(|digit| digit * first * 10_f64.powi(place)))
        .take_while(move |value| *value < most * 10.0)
}

fn power_of_ten(value: f64) -> f64 {
    10_f64.powf(value.log10().floor())
}

fn is_power(value: f64) -> bool {
    (value / 10_f64.powf(value.log10().round()) - 1.0).abs() < 1e-9
}

/// `p90`, `p99`, `p99.9` and so on.
fn is_nines(label: &str) -> bool {
    label == "p90"
        || label
            .strip_prefix("p99")
            .is_some_and(|rest| rest.chars().all(|digit| matches!(digit, '9' | '.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks()
            .iter()
            .map(|tick| tick.label.as_str())
            .collect()
    }

    #[test]
    fn close_values_get_a_linear_axis_from_nought() {
        let axis = Axis::of_values([900_000, 2_000_000], Unit::Time);
        assert_eq!(
            labels(&axis),
            ["0", "500 µs", "1 ms", "1.5 ms", "2 ms", "2.5 ms"]
        );
        assert!((axis.place(1_250_000.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn values_far_apart_get_a_logarithmic_axis_between_round_numbers() {
        let axis = Axis::of_values([0, 120_000, 150_000_000], Unit::Time);
        assert_eq!(axis.facts().1, 100_000.0);
        assert_eq!(axis.facts().2, 200_000_000.0);
        let major: Vec<_> = axis.ticks().iter().filter(|tick| !tick.minor).collect();
        let major: Vec<_> = major.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(major, ["100 µs", "1 ms", "10 ms", "100 ms"]);
        assert!((axis.place(100_000.0)).abs() < 1e-12);
        assert!((axis.place(200_000_000.0) - 1.0).abs() < 1e-12);
        // 10 ms is two decades above the low end, of log10(2000) decades in all.
        assert!((axis.place(10_000_000.0) - 2.0 / 2_000_f64.log10()).abs() < 1e-12);
    }

    #[test]
    fn each_nine_has_the_same_width() {
        let axis = Axis::of_percentiles(20_000);
        assert_eq!(labels(&axis), ["p50", "p90", "p99", "p99.9", "p99.99"]);
        let at = |one_in: f64| axis.place(one_in);
        assert!((at(100.0) - 2.0 * at(10.0)).abs() < 1e-12);
        assert!((at(20_000.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn time_has_round_marks() {
        assert_eq!(
            labels(&Axis::of_time(20_000_000_000)),
            ["0", "5 s", "10 s", "15 s", "20 s"]
        );
        assert_eq!(labels(&Axis::of_time(700_000_000)).len(), 4);
    }

    #[test]
    fn every_second_of_many_marks_of_time_may_go_unnamed() {
        let minor = |length_ns| {
            let axis = Axis::of_time(length_ns);
            axis.ticks()
                .iter()
                .map(|tick| tick.minor)
                .collect::<Vec<_>>()
        };
        assert_eq!(minor(500_000_000), [false, true, false, true, false, true]);
        assert_eq!(minor(700_000_000), [false; 4]);
    }

    #[test]
    fn an_empty_axis_still_has_two_ends() {
        let axis = Axis::of_values([], Unit::Rate);
        assert!(axis.place(0.0) < axis.place(1.0));
        assert!(!labels(&axis).is_empty());
    }
}
