//! The 80-bit extended precision of x86-64, which servers use for `INCRBYFLOAT` and `HINCRBYFLOAT`.
//!
//! A number is `mantissa * 2^exponent` with 64 bits of mantissa. Doubles would give other digits: 10.5 + 0.1
//! is `10.6` on a real server and `10.59999999999999964` in double precision printed alike. Reading,
//! adding and printing are correctly rounded, half to even, as the C library does them.

use super::big::{Big, TEN_STEP};
use super::binary::{EXTENDED, Rounded, Unrounded, parse_decimal, parse_hex};

/// A number in extended precision; not a NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongDouble {
    negative: bool,
    magnitude: Magnitude,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Magnitude {
    Finite(Rounded),
    Infinite,
}

impl LongDouble {
    /// Longest text that is read, in bytes; a server refuses longer ones.
    pub const TEXT_MAX: usize = 5 * 1024 - 1;

    /// Reads what C's `strtold` reads (decimal, hexadecimal, `inf`, a leading `+`) without blanks around it.
    ///
    /// `None` for anything else, for `nan`, and for a finite number too large or too small to be kept.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > Self::TEXT_MAX {
            return None;
        }
        let (negative, magnitude) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let magnitude = match magnitude {
            [b'0', b'x' | b'X', hex @ ..] => Magnitude::Finite(parse_hex(hex)?.to_extended()?),
            _ if magnitude.eq_ignore_ascii_case(b"inf") => Magnitude::Infinite,
            _ if magnitude.eq_ignore_ascii_case(b"infinity") => Magnitude::Infinite,
            _ => Magnitude::Finite(parse_decimal(magnitude)?.to_extended()?),
        };
        Some(Self {
            negative,
            magnitude,
        })
    }

    /// True unless the number is an infinity.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.magnitude != Magnitude::Infinite
    }

    /// The sum, rounded once; `None` when it is not a number (`inf` and `-inf`).
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let (a, b) = match (self.magnitude, other.magnitude) {
            (Magnitude::Finite(a), Magnitude::Finite(b)) => (a, b),
            (Magnitude::Infinite, Magnitude::Infinite) if self.negative != other.negative => {
                return None;
            }
            (Magnitude::Infinite, _) => return Some(self),
            (_, Magnitude::Infinite) => return Some(other),
        };
        let (large, large_negative, small) = if (a.exponent, a.mantissa) >= (b.exponent, b.mantissa)
        {
            (a, self.negative, b)
        } else {
            (b, other.negative, a)
        };
        // The larger one keeps 62 bits of room below and one above for a carry. What the smaller one loses
        // below those is remembered as one sticky bit, which is enough to round correctly.
        let distance = large.exponent.abs_diff(small.exponent);
        let wide = u128::from(small.mantissa) << GUARD;
        let shifted = wide.unbounded_shr(distance);
        let lost = shifted.unbounded_shl(distance) != wide || (distance > 127 && wide != 0);
        let (small, large) = (shifted, u128::from(large.mantissa) << GUARD);
        let exponent = a.exponent.max(b.exponent) - GUARD.cast_signed();
        let sum = if self.negative == other.negative {
            Unrounded {
                bits: large + small,
                exponent,
                lost,
            }
        } else {
            // Subtracting slightly more than `small` leaves slightly less: one below, and a rest.
            Unrounded {
                bits: large - small - u128::from(lost),
                exponent,
                lost,
            }
        };
        if sum.bits == 0 {
            let negative = self.negative && other.negative;
            return Some(Self {
                negative,
                magnitude: Magnitude::Finite(Rounded::ZERO),
            });
        }
        let magnitude = sum
            .round(EXTENDED)
            .map_or(Magnitude::Infinite, Magnitude::Finite);
        Some(Self {
            negative: large_negative,
            magnitude,
        })
    }

    /// The number as `INCRBYFLOAT` prints it: at most 17 decimals, never scientific, without zeros at the end.
    ///
    /// ```
    /// use kvlab_protocol::resp::number::LongDouble;
    ///
    /// let sum = LongDouble::parse(b"10.50").unwrap().checked_add(LongDouble::parse(b"0.1").unwrap());
    /// assert_eq!(sum.unwrap().human_text(), "10.6");
    /// ```
    #[must_use]
    pub fn human_text(&self) -> String {
        let Magnitude::Finite(Rounded { mantissa, exponent }) = self.magnitude else {
            return if self.negative { "-inf" } else { "inf" }.to_owned();
        };
        let mut text = match u32::try_from(exponent) {
            Ok(left) => whole_text(mantissa, left),
            Err(_) => fraction_text(mantissa, exponent.unsigned_abs()),
        };
        if text.contains('.') {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
        if self.negative && text != "0" {
            text.insert(0, '-');
        }
        text
    }
}

impl From<f64> for LongDouble {
    /// Exact; a NaN becomes an infinity.
    fn from(value: f64) -> Self {
        let negative = value.is_sign_negative();
        if !value.is_finite() {
            return Self {
                negative,
                magnitude: Magnitude::Infinite,
            };
        }
        let fraction = value.to_bits() & ((1 << 52) - 1);
        let field = i32::try_from(value.to_bits() >> 52 & 0x7ff).unwrap_or(0);
        let (bits, exponent) = match field {
            0 => (fraction, -1074),
            _ => (fraction | 1 << 52, field - 1075),
        };
        let exact = Unrounded {
            bits: bits.into(),
            exponent,
            lost: false,
        };
        let rounded = exact.round(EXTENDED).unwrap_or(Rounded::ZERO);
        Self {
            negative,
            magnitude: Magnitude::Finite(rounded),
        }
    }
}

/// A double as `INCRBYFLOAT` would print it, see [`LongDouble::human_text`].
#[must_use]
pub fn format_long_double_human(value: f64) -> String {
    LongDouble::from(value).human_text()
}

/// Bits of room below the mantissa of the larger summand.
const GUARD: u32 = 63;

/// `mantissa * 2^left`.
fn whole_text(mantissa: u64, left: u32) -> String {
    let mut rest = Big::new(mantissa);
    rest.shift_left(usize::try_from(left).unwrap_or(0));
    let mut groups = Vec::new();
    while !rest.is_zero() {
        groups.push(rest.divide(10u64.pow(TEN_STEP)));
    }
    let mut text = groups.pop().unwrap_or(0).to_string();
    for group in groups.iter().rev() {
        text.push_str(&format!("{group:019}"));
    }
    text
}

/// `mantissa / 2^right` with 17 decimals.
fn fraction_text(mantissa: u64, right: u32) -> String {
    // 64 bits times 10^17 stay below 2^121.
    let scaled = u128::from(mantissa) * 10u128.pow(DECIMALS);
    let unit = scaled.unbounded_shr(right);
    let rest = scaled - unit.unbounded_shl(right);
    let half = 1u128.unbounded_shl(right - 1);
    let up = right <= 127 && (rest > half || (rest == half && unit & 1 == 1));
    let unit = unit + u128::from(up);
    let one = 10u128.pow(DECIMALS);
    format!("{}.{:017}", unit / one, unit % one)
}

/// Decimals printed at most.
const DECIMALS: u32 = 17;
