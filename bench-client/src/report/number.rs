//! Numbers as the text reports print them.

use std::time::Duration;

use super::Support;

/// Milliseconds with three digits behind the point, rounded half up: `1.500`.
pub(super) fn ms(ns: u64) -> String {
    three_digits(ns, 1_000)
}

/// Seconds with three digits behind the point, rounded half up.
pub(super) fn seconds(ns: u64) -> String {
    three_digits(ns, 1_000_000)
}

/// `value` in units of a thousand times `thousandth`.
fn three_digits(value: u64, thousandth: u64) -> String {
    let rounded = value / thousandth + u64::from(value % thousandth >= thousandth / 2);
    format!("{}.{:03}", rounded / 1_000, rounded % 1_000)
}

/// As [`ms`]; `~` marks a weak quantile, `n/a` one without support.
pub(super) fn ms_or_na(support: Support) -> String {
    match support {
        Support::Firm(ns) => ms(ns),
        Support::Weak(ns) => format!("~{}", ms(ns)),
        Support::None => "n/a".to_owned(),
    }
}

/// Events per second.
pub(super) fn rate(count: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64();
    if seconds > 0.0 {
        float(count) / seconds
    } else {
        0.0
    }
}

/// Microseconds of `used` for each of `count`, which is not 0.
pub(super) fn micros_each(used: Duration, count: u64) -> f64 {
    used.as_secs_f64() * 1e6 / float(count)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers for people need no more than 52 bits"
)]
fn float(count: u64) -> f64 {
    count as f64
}

/// Bytes per second in the unit that suits.
pub(super) fn bytes_per_second(rate: f64) -> String {
    match rate {
        _ if rate >= 1e9 => format!("{:.2} GB/s", rate / 1e9),
        _ if rate >= 1e6 => format!("{:.2} MB/s", rate / 1e6),
        _ if rate >= 1e3 => format!("{:.2} kB/s", rate / 1e3),
        _ => format!("{rate:.0} B/s"),
    }
}

/// A share as a percentage with one digit behind the point.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `1 thread`, `2 threads`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_rounded_to_the_microsecond() {
        for (ns, text) in [
            (0, "0.000"),
            (499, "0.000"),
            (500, "0.001"),
            (1_000_000, "1.000"),
            (1_234_499, "1.234"),
            (1_234_500, "1.235"),
            (3_600_000_000_000, "3600000.000"),
            (u64::MAX, "18446744073709.552"),
        ] {
            assert_eq!(ms(ns), text, "{ns}");
        }
        assert_eq!(ms_or_na(Support::Weak(1_000)), "~0.001");
        assert_eq!(ms_or_na(Support::None), "n/a");
    }

    #[test]
    fn seconds_are_rounded_to_the_millisecond() {
        for (ns, text) in [
            (499_999, "0.000"),
            (500_000, "0.001"),
            (61_234_000_000, "61.234"),
        ] {
            assert_eq!(seconds(ns), text, "{ns}");
        }
    }

    #[test]
    fn rates_are_counts_over_time() {
        assert!((rate(500, Duration::from_millis(250)) - 2_000.0).abs() < 1e-9);
        assert!(rate(500, Duration::ZERO).abs() < f64::EPSILON);
        assert_eq!(bytes_per_second(999.0), "999 B/s");
        assert_eq!(bytes_per_second(12_345.0), "12.35 kB/s");
        assert_eq!(bytes_per_second(3_200_000.0), "3.20 MB/s");
        assert_eq!(bytes_per_second(1.5e9), "1.50 GB/s");
    }

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!(counted(1, "thread"), "1 thread");
        assert_eq!(counted(0, "thread"), "0 threads");
    }
}
