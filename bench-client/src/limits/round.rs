//! The roundest number of an interval: what somebody who set a limit is likely to have typed.

/// The number with the fewest digits between two positive ones; among several the nearest to the
/// middle. Halves of a digit count as rounder than further digits.
pub(super) fn roundest(low: f64, high: f64) -> f64 {
    let middle = f64::midpoint(low, high);
    let positive = low > 0.0 && high >= low && high.is_finite();
    if !positive {
        return middle;
    }
    let mut step = 10_f64.powf(high.log10().ceil());
    for _ in 0..DIGITS {
        for part in [step, step / 2.0] {
            let candidate = (middle / part).round() * part;
            if candidate >= low && candidate <= high {
                return candidate;
            }
        }
        step /= 10.0;
    }
    middle
}

/// The same among whole numbers; if there is none, the one next to the number measured.
pub(super) fn roundest_count(low: f64, high: f64, measured: f64) -> u64 {
    let round = roundest(low, high);
    let whole = (round - round.round()).abs() < 1e-9 && round >= 1.0;
    let number = if whole {
        round
    } else {
        measured.round().max(1.0)
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and whole; the cast saturates"
    )]
    let number = number as u64;
    number
}

/// Digits tried.
const DIGITS: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_digits_within_the_interval_win() {
        for (low, high, round) in [
            (390.7, 406.7, 400.0),
            (196.1, 204.0, 200.0),
            (245.0, 255.0, 250.0),
            (332.9, 333.9, 333.0),
            (0.098, 0.103, 0.1),
            (9_900.0, 10_300.0, 10_000.0),
        ] {
            let found = roundest(low, high);
            assert!((found - round).abs() < 1e-9, "{low}..{high}: {found}");
        }
        assert_eq!(roundest_count(196.1, 204.0, 200.7), 200);
        assert_eq!(roundest_count(6.99, 7.01, 7.0), 7);
        assert_eq!(roundest_count(7.2, 7.3, 7.25), 7);
    }
}
