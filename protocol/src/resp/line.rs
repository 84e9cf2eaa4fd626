//! The lines that open every element, and the numbers on them.

use memchr::memchr2;

use super::decode_error::DecodeError;
use super::number;

/// Value and size of a line like `$12\r\n` at the front of `buf`, whatever its type byte, with one to nine digits
/// and no leading zero; `None` if it is not such a line, complete. The byte behind the CR is not looked at.
///
/// Such short lines are nearly all there are; a plain loop reads them faster than a search for their end.
#[inline]
pub(super) fn short_length(buf: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0;
    for (at, &byte) in buf.iter().enumerate().skip(1).take(10) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let canonical = at == 2 || (at > 2 && buf.get(1) != Some(&b'0'));
            return (byte == b'\r' && canonical && at + 1 < buf.len()).then_some((value, at + 2));
        }
        value = value * 10 + usize::from(digit);
    }
    None
}

/// Place of the CR that ends the line, if CR LF has arrived; no other CR or LF may come first.
pub(super) fn line_end(buf: &[u8], from: usize) -> Result<Option<usize>, DecodeError> {
    let Some(at) = memchr2(b'\r', b'\n', buf.get(from..).unwrap_or_default()) else {
        return Ok(None);
    };
    let at = from + at;
    match (buf.get(at), buf.get(at + 1)) {
        (Some(b'\r'), Some(b'\n')) => Ok(Some(at)),
        (Some(b'\r'), None) => Ok(None),
        _ => Err(DecodeError::MissingLineEnd),
    }
}

/// A length: digits without sign or leading zeros.
pub(super) fn length(kind: u8, text: &[u8]) -> Result<u64, DecodeError> {
    number::parse_i64(text)
        .and_then(|len| u64::try_from(len).ok())
        .ok_or(DecodeError::InvalidLength(kind))
}

/// Checks the text of an integer, double, boolean or big number.
pub(super) fn check_scalar(kind: u8, text: &[u8]) -> Result<(), DecodeError> {
    let valid = match kind {
        b':' => reply_integer(text).is_some(),
        b',' => reply_double(text).is_some(),
        b'#' => matches!(text, b"t" | b"f"),
        _ => {
            let digits = text
                .strip_prefix(b"-")
                .or(text.strip_prefix(b"+"))
                .unwrap_or(text);
            !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
        }
    };
    if valid {
        Ok(())
    } else {
        Err(DecodeError::InvalidValue(kind))
    }
}

/// An integer in a reply: the specification allows a `+` and does not forbid leading zeros.
pub(super) fn reply_integer(text: &[u8]) -> Option<i64> {
    number::parse_i64(text).or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
}

/// A double in a reply: decimal or scientific, `inf`, `-inf`, or `nan` with any sign.
pub(super) fn reply_double(text: &[u8]) -> Option<f64> {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    if unsigned.eq_ignore_ascii_case(b"nan") {
        return Some(f64::NAN);
    }
    if unsigned.eq_ignore_ascii_case(b"inf") {
        return Some(if text.len() == unsigned.len() {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        });
    }
    let text = std::str::from_utf8(text).ok()?;
    let finite = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    text.parse().ok().filter(|_| finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lengths_are_canonical_and_complete() {
        for (line, found) in [
            (&b"$0\r\n"[..], Some((0, 4))),
            (b"$7\r\n", Some((7, 4))),
            (b"*10\r\nrest", Some((10, 5))),
            (b"$1024\r\n", Some((1024, 7))),
            (b"$999999999\r\n", Some((999_999_999, 12))),
            (b"$1000000000\r\n", None),
            (b"$\r\n", None),
            (b"$00\r\n", None),
            (b"$01\r\n", None),
            (b"$-1\r\n", None),
            (b"$1x\r\n", None),
            (b"$1\r", None),
            (b"$1", None),
            (b"$", None),
            (b"", None),
        ] {
            assert_eq!(short_length(line), found, "{}", line.escape_ascii());
        }
    }
}
