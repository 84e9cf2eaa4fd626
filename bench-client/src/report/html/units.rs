//! Numbers as the pages print them: few digits, and a unit that suits.

/// A time: `850 ns`, `12.3 µs`, `1.234 ms`, `4.001 s`. Integer arithmetic, so that the same number
/// prints alike everywhere.
#[must_use]
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..100_000 => decimal(ns, 100, 1, "µs"),
        100_000..1_000_000_000 => decimal(ns, 1_000, 3, "ms"),
        _ => decimal(ns, 1_000_000, 3, "s"),
    }
}

/// A difference of times, with its sign: `+12.3 µs`, `0 ns`.
#[must_use]
pub fn difference(ns: i64) -> String {
    let sign = match ns {
        0 => "",
        ..0 => "\u{2212}",
        _ => "+",
    };
    format!("{sign}{}", time(ns.unsigned_abs()))
}

/// A time on an axis, where it is a round number: `50 µs`, `1.5 s`.
pub(super) fn round_time(ns: f64) -> String {
    let (value, unit) = match ns {
        0.0 => return "0".to_owned(),
        _ if ns < 1e3 => (ns, "ns"),
        _ if ns < 1e6 => (ns / 1e3, "µs"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", short(value))
}

/// A time that is a round number: `200 ms`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a number for people")]
pub fn round_time_of(ns: u64) -> String {
    round_time(ns as f64)
}

/// A rate on an axis: `800`, `12 k`, `1.5 M`.
pub(super) fn round_rate(rate: f64) -> String {
    match rate {
        _ if rate < 1e3 => short(rate),
        _ if rate < 1e6 => format!("{} k", short(rate / 1e3)),
        _ => format!("{} M", short(rate / 1e6)),
    }
}

/// A count with thin spaces between the thousands: `1 234 567`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A share as a percentage: `12.5 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// At most three digits behind the point and no zeros at the end.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `value` in units of `10^digits` times `least`, rounded half up.
fn decimal(value: u64, least: u64, digits: u32, unit: &str) -> String {
    let rounded = value / least + u64::from(value % least >= least / 2);
    let whole = 10_u64.pow(digits);
    let width = usize::try_from(digits).unwrap_or(0);
    format!("{}.{:0width$} {unit}", rounded / whole, rounded % whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_that_suits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_049, "1.0 µs"),
            (12_350, "12.4 µs"),
            (100_000, "0.100 ms"),
            (1_234_500, "1.235 ms"),
            (4_000_900_000, "4.001 s"),
        ] {
            assert_eq!(time(ns), text);
        }
        assert_eq!(difference(-1_500), "\u{2212}1.5 µs");
        assert_eq!(
            (difference(0), difference(2_000_000)),
            ("0 ns".into(), "+2.000 ms".into())
        );
    }

    #[test]
    fn round_numbers_are_short() {
        assert_eq!(round_time(50_000.0), "50 µs");
        assert_eq!(round_time(1.5e9), "1.5 s");
        assert_eq!(round_time(2e5), "200 µs");
        assert_eq!(round_rate(1_500_000.0), "1.5 M");
        assert_eq!(round_rate(20.0), "20");
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(percent(0.125), "12.5 %");
    }
}
