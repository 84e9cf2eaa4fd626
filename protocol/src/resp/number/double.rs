//! Doubles in text.

use std::fmt::Write as _;

use bytes::BufMut;

use super::binary::parse_hex;
use super::grisu::shortest_digits;
use super::text::NumberText;

/// How a server prints a double in a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DoubleStyle {
    /// Up to 7.0: C's `%.17g`, so 1.1 becomes `1.1000000000000001`.
    SeventeenDigits,
    /// From 7.2 on: few digits that read back to the same double, so 1.1 stays `1.1`.
    #[default]
    Shortest,
}

/// Appends `value` to `out` in the given style.
pub fn format_double(value: f64, style: DoubleStyle, out: &mut impl BufMut) {
    out.put_slice(&double_text(value, style));
}

/// `value` in the given style: `inf`, `-inf`, `nan`, whole numbers without a point.
///
/// ```
/// use kvlab_protocol::resp::number::{DoubleStyle, double_text};
///
/// assert_eq!(&*double_text(1.1, DoubleStyle::SeventeenDigits), b"1.1000000000000001");
/// assert_eq!(&*double_text(1.1, DoubleStyle::Shortest), b"1.1");
/// ```
#[must_use]
pub fn double_text(value: f64, style: DoubleStyle) -> NumberText {
    let mut text = NumberText::new();
    if value.is_nan() {
        text.push(b"nan");
    } else if value.is_infinite() {
        text.push(if value < 0.0 { b"-inf" } else { b"inf" });
    } else {
        match style {
            DoubleStyle::SeventeenDigits => seventeen_digits(value, &mut text),
            DoubleStyle::Shortest => shortest(value, &mut text),
        }
    }
    text
}

/// C's `%.17g`: 17 significant digits without trailing zeros, scientific when the exponent is below -4
/// or above 16.
fn seventeen_digits(value: f64, text: &mut NumberText) {
    let (digits, exponent) = exact_digits(value.abs());
    let digits = trim_zeros(&digits);
    if value.is_sign_negative() {
        text.push(b"-");
    }
    if (-4..17).contains(&exponent) {
        push_plain(digits, exponent, text);
    } else {
        push_scientific(digits, exponent, 2, text);
    }
}

/// The form of servers from 7.2 on: whole numbers up to half the 64-bit range in full, other values by
/// few digits, where their number decides between plain and scientific form.
fn shortest(value: f64, text: &mut NumberText) {
    if value == 0.0 {
        return text.push(if value.is_sign_negative() {
            b"-0"
        } else {
            b"0"
        });
    }
    if value.abs() <= WHOLE_MAX && value.fract() == 0.0 {
        // The range is checked on the line above.
        #[allow(clippy::cast_possible_truncation)]
        let whole = value as i64;
        return text.push(itoa::Buffer::new().format(whole).as_bytes());
    }
    if value < 0.0 {
        text.push(b"-");
    }
    // The value is the digits, read as a whole number, times ten to the power of `scale`.
    let (digits, scale) = shortest_digits(value.abs());
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let exponent = scale + count - 1;
    let plain = if scale >= 0 {
        exponent < count + 7
    } else {
        scale > -7 || exponent.abs() < 4
    };
    if plain {
        push_plain(&digits, exponent, text);
    } else {
        push_scientific(&digits, exponent, 1, text);
    }
}

/// Half of the largest 64-bit integer, as a double: 2^62.
const WHOLE_MAX: f64 = 4_611_686_018_427_387_904.0;

/// The 17 digits nearest to a finite double, and the power of ten of the first one.
fn exact_digits(value: f64) -> (NumberText, i32) {
    // `d.ddddddddddddddddde-308` at most, so it always fits.
    let mut printed = NumberText::new();
    let fits = write!(printed, "{value:.16e}");
    debug_assert!(fits.is_ok());
    let mut parts = printed.split(|&byte| byte == b'e');
    let mut digits = NumberText::new();
    for part in parts.next().unwrap_or_default().split(|&byte| byte == b'.') {
        digits.push(part);
    }
    let exponent = parts
        .next()
        .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    (digits, exponent.unwrap_or(0))
}

/// Without the zeros at the end, but never without any digit.
fn trim_zeros(digits: &[u8]) -> &[u8] {
    let kept = digits
        .iter()
        .rposition(|&digit| digit != b'0')
        .map_or(1, |last| last + 1);
    digits.get(..kept).unwrap_or(digits)
}

fn push_plain(digits: &[u8], exponent: i32, text: &mut NumberText) {
    if exponent < 0 {
        text.push(b"0.");
        for _ in 1..exponent.unsigned_abs() {
            text.push(b"0");
        }
        return text.push(digits);
    }
    let whole = usize::try_from(exponent).unwrap_or(0) + 1;
    match digits.split_at_checked(whole) {
        Some((before, after)) => {
            text.push(before);
            if !after.is_empty() {
                text.push(b".");
                text.push(after);
            }
        }
        None => {
            text.push(digits);
            for _ in digits.len()..whole {
                text.push(b"0");
            }
        }
    }
}

fn push_scientific(
    digits: &[u8],
    exponent: i32,
    exponent_digits_min: usize,
    text: &mut NumberText,
) {
    let (first, others) = digits.split_at_checked(1).unwrap_or_default();
    text.push(first);
    if !others.is_empty() {
        text.push(b".");
        text.push(others);
    }
    text.push(if exponent < 0 { b"e-" } else { b"e+" });
    let mut buffer = itoa::Buffer::new();
    let power = buffer.format(exponent.unsigned_abs());
    if power.len() < exponent_digits_min {
        text.push(b"0");
    }
    text.push(power.as_bytes());
}

/// Reads a double as a server does: all of C's `strtod` (decimal, hexadecimal, `inf`, `infinity` in any
/// case, a leading `+`) without blanks around it.
///
/// Refused are `nan`, an empty text, and a finite number too large or too small for a double, where a
/// server says "value is not a valid float".
#[must_use]
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let (negative, magnitude) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let value = match magnitude {
        [b'0', b'x' | b'X', hex @ ..] => parse_hex(hex)?.to_f64()?,
        _ if magnitude.eq_ignore_ascii_case(b"inf") => f64::INFINITY,
        _ if magnitude.eq_ignore_ascii_case(b"infinity") => f64::INFINITY,
        [b'0'..=b'9' | b'.', ..] => decimal(magnitude)?,
        _ => return None,
    };
    Some(if negative { -value } else { value })
}

/// A decimal number whose first byte is a digit or a point.
fn decimal(text: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let mantissa = text
        .split(|byte| matches!(byte, b'e' | b'E'))
        .next()
        .unwrap_or_default();
    let underflow = value == 0.0 && mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9'));
    (value.is_finite() && !underflow).then_some(value)
}
