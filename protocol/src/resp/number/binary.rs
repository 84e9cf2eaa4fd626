//! From text to binary, with every bit needed to round correctly.

use super::big::{Big, TEN_STEP};

/// A binary number that may have more bits than the target keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unrounded {
    pub(super) bits: u128,
    pub(super) exponent: i32,
    /// Some bits below the lowest one were not zero.
    pub(super) lost: bool,
}

/// A mantissa and exponent that fit their format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rounded {
    pub(super) mantissa: u64,
    pub(super) exponent: i32,
}

impl Rounded {
    pub(super) const ZERO: Self = Self {
        mantissa: 0,
        exponent: EXTENDED.exponent_min,
    };
}

/// What a binary format can keep: `mantissa * 2^exponent`.
#[derive(Clone, Copy)]
pub(super) struct Format {
    mantissa_bits: u32,
    exponent_min: i32,
    exponent_max: i32,
}

/// 64 bits of mantissa, as the x87 registers.
pub(super) const EXTENDED: Format = Format {
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
    pub(super) fn round(self, format: Format) -> Option<Rounded> {
        if self.bits == 0 {
            return Some(Rounded {
                mantissa: 0,
                exponent: format.exponent_min,
            });
        }
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
    pub(super) fn to_extended(self) -> Option<Rounded> {
        let rounded = self.round(EXTENDED)?;
        (rounded.mantissa != 0 || self.is_zero()).then_some(rounded)
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
pub(super) fn parse_decimal(text: &[u8]) -> Option<Unrounded> {
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
