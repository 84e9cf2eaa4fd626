//! The 80-bit extended precision of x86-64, which servers use for `INCRBYFLOAT` and `HINCRBYFLOAT`.
//!
//! A number is `mantissa * 2^exponent` with 64 bits of mantissa. Doubles would give other digits: 10.5 + 0.1
//! is `10.6` on a real server and `10.59999999999999964` in double precision printed alike. Reading,
//! adding and printing are correctly rounded, half to even, as the C library does them.

use super::big::{Big, TEN_STEP};

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
            [b'0', b'x' | b'X', hex @ ..] => parse_hex(hex)?.into_extended()?,
            _ if magnitude.eq_ignore_ascii_case(b"inf") => Magnitude::Infinite,
            _ if magnitude.eq_ignore_ascii_case(b"infinity") => Magnitude::Infinite,
            _ => parse_decimal(magnitude)?.into_extended()?,
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

/// A binary number that may have more bits than the target keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unrounded {
    bits: u128,
    exponent: i32,
    /// Some bits below the lowest one were not zero.
    lost: bool,
}

/// A mantissa and exponent that fit their format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rounded {
    mantissa: u64,
    exponent: i32,
}

impl Rounded {
    const ZERO: Self = Self {
        mantissa: 0,
        exponent: EXTENDED.exponent_min,
    };
}

/// What a binary format can keep: `mantissa * 2^exponent`.
#[derive(Clone, Copy)]
struct Format {
    mantissa_bits: u32,
    exponent_min: i32,
    exponent_max: i32,
}

const EXTENDED: Format = Format {
    mantissa_bits: 64,
    exponent_min: -16_445,
    exponent_max: 16_320,
};
const DOUBLE: Format = Format {
    mantissa_bits: 53,
    exponent_min: -1074,
    exponent_max: 971,
};

impl Unrounded {
    /// The nearest number of the format, ties to even; `None` above its range.
    ///
    /// Mantissas are full unless the exponent is the smallest, so that larger exponents are larger numbers.
    fn round(self, format: Format) -> Option<Rounded> {
        let width = (128 - self.bits.leading_zeros()).cast_signed();
        let excess = width - format.mantissa_bits.cast_signed();
        let excess = excess.max(format.exponent_min - self.exponent);
        let mut exponent = self.exponent + excess;
        let mut mantissa = match u32::try_from(excess) {
            Err(_) => self.bits << excess.unsigned_abs(),
            Ok(0) => self.bits,
            Ok(drop) => {
                let kept = self.bits.unbounded_shr(drop);
                let rest = self.bits - kept.unbounded_shl(drop);
                let half = 1u128.unbounded_shl(drop - 1);
                let tie = rest == half && !self.lost;
                let up = drop <= 128 && rest >= half && (!tie || kept & 1 == 1);
                kept + u128::from(up)
            }
        };
        if mantissa >> format.mantissa_bits != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
        let fits = exponent <= format.exponent_max;
        u64::try_from(mantissa)
            .ok()
            .filter(|_| fits)
            .map(|mantissa| Rounded { mantissa, exponent })
    }

    /// As a long double; `None` when it overflows, or vanishes without being zero.
    fn into_extended(self) -> Option<Magnitude> {
        let rounded = self.round(EXTENDED)?;
        (rounded.mantissa != 0 || self.is_zero()).then_some(Magnitude::Finite(rounded))
    }

    /// As a double; `None` when it overflows, or vanishes without being zero.
    pub(super) fn to_f64(self) -> Option<f64> {
        let Rounded { mantissa, exponent } = self.round(DOUBLE)?;
        if mantissa == 0 {
            return self.is_zero().then_some(0.0);
        }
        let field = u64::try_from(exponent + 1023)
            .ok()
            .filter(|field| *field > 0);
        let power = match field {
            Some(field) => f64::from_bits(field << 52),
            None => f64::from_bits(1 << (exponent + 1074)),
        };
        // The mantissa has at most 53 bits and the product is representable: both steps are exact.
        #[allow(clippy::cast_precision_loss)]
        let mantissa = mantissa as f64;
        Some(mantissa * power)
    }

    fn is_zero(self) -> bool {
        self.bits == 0 && !self.lost
    }
}

/// Reads the part of a hexadecimal number behind `0x`, such as `1.8p-3`.
pub(super) fn parse_hex(text: &[u8]) -> Option<Unrounded> {
    let (mantissa, exponent) = split_exponent(text, b'p')?;
    let (mut bits, mut lost) = (0u128, false);
    let mut shift: i64 = 0;
    let (mut point, mut digits) = (false, 0usize);
    for &byte in mantissa {
        if byte == b'.' && !point {
            point = true;
            continue;
        }
        let digit = char::from(byte).to_digit(16)?;
        digits += 1;
        if bits >> 120 == 0 {
            bits = bits << 4 | u128::from(digit);
            shift -= if point { 4 } else { 0 };
        } else {
            lost |= digit != 0;
            shift += if point { 0 } else { 4 };
        }
    }
    let exponent = i32::try_from(
        exponent
            .saturating_add(shift)
            .clamp(-EXPONENT_CAP, EXPONENT_CAP),
    );
    (digits > 0).then_some(Unrounded {
        bits,
        exponent: exponent.ok()?,
        lost,
    })
}

/// Beyond this every format has long ended, and sums still fit.
const EXPONENT_CAP: i64 = 1 << 24;

/// Reads an unsigned decimal number such as `12.5e-3`.
fn parse_decimal(text: &[u8]) -> Option<Unrounded> {
    let (mantissa, exponent) = split_exponent(text, b'e')?;
    let mut scale: i64 = 0;
    let (mut point, mut digits) = (false, 0usize);
    let mut value = Big::new(0);
    let (mut group, mut group_size) = (0u64, 0u32);
    for &byte in mantissa {
        if byte == b'.' && !point {
            point = true;
            continue;
        }
        if !byte.is_ascii_digit() {
            return None;
        }
        digits += 1;
        scale -= i64::from(point);
        group = group * 10 + u64::from(byte - b'0');
        group_size += 1;
        if group_size == TEN_STEP {
            value.multiply_add(10u64.pow(TEN_STEP), group);
            (group, group_size) = (0, 0);
        }
    }
    value.multiply_add(10u64.pow(group_size), group);
    if digits == 0 {
        return None;
    }
    if value.is_zero() {
        return Some(Unrounded {
            bits: 0,
            exponent: 0,
            lost: false,
        });
    }
    // A text has at most 5119 digits, so beyond this the number is out of range whatever they are.
    let power = exponent
        .saturating_add(scale)
        .clamp(-DECIMAL_CAP, DECIMAL_CAP);
    let power = i32::try_from(power).ok()?;
    Some(if power >= 0 {
        value.multiply_power_of_ten(power.unsigned_abs());
        let (bits, below, lost) = value.top_bits();
        Unrounded {
            bits,
            exponent: i32::try_from(below).ok()?,
            lost,
        }
    } else {
        quotient(value, power.unsigned_abs())?
    })
}

/// Larger than 4966 (largest and smallest power of ten of the format) plus 5119 digits.
const DECIMAL_CAP: i64 = 10_200;

/// `value / 10^power` to 68 bits and a note of what is left.
fn quotient(mut value: Big, power: u32) -> Option<Unrounded> {
    let mut divisor = Big::new(1);
    divisor.multiply_power_of_ten(power);
    // Bring the two to the same length: the first bit of the quotient is then bit 0 or 1.
    let distance = value.bit_len().cast_signed() - divisor.bit_len().cast_signed();
    match usize::try_from(distance) {
        Ok(longer) => divisor.shift_left(longer),
        Err(_) => value.shift_left(distance.unsigned_abs()),
    }
    let mut bits: u128 = 0;
    for _ in 0..QUOTIENT_BITS {
        bits = bits << 1 | u128::from(value.subtract_if_not_larger(&divisor));
        value.shift_left(1);
    }
    let exponent = i32::try_from(distance).ok()? - (QUOTIENT_BITS - 1);
    Some(Unrounded {
        bits,
        exponent,
        lost: !value.is_zero(),
    })
}

/// 64 bits of mantissa, one to round by, and room for a first bit that is zero.
const QUOTIENT_BITS: i32 = 68;

/// Splits off an exponent opened by `marker` (in either case); zero if there is none.
fn split_exponent(text: &[u8], marker: u8) -> Option<(&[u8], i64)> {
    let Some(at) = text
        .iter()
        .position(|byte| byte.to_ascii_lowercase() == marker)
    else {
        return Some((text, 0));
    };
    let (mantissa, tail) = text.split_at_checked(at)?;
    let (negative, digits) = match tail.get(1..)? {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut exponent: i64 = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        exponent = exponent
            .saturating_mul(10)
            .saturating_add(i64::from(byte - b'0'));
    }
    Some((mantissa, if negative { -exponent } else { exponent }))
}
