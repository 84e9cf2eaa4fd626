//! Integers in text.

/// Reads a signed 64-bit integer in its one canonical form, or gives `None`.
///
/// Refused are an empty text, `+1`, `-0`, `01`, blanks anywhere, and values out of range: exactly what a
/// server answers with "value is not an integer or out of range".
///
/// ```
/// use kvlab_protocol::resp::number::parse_i64;
///
/// assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
/// assert_eq!(parse_i64(b"007"), None);
/// ```
#[must_use]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        b"0" => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !matches!(digits.first(), Some(b'1'..=b'9')) || digits.len() > MAX_DIGITS {
        return None;
    }
    let mut magnitude: u64 = 0;
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        // Nineteen nines fit in 64 unsigned bits, so nothing wraps.
        magnitude = magnitude * 10 + u64::from(value);
    }
    if negative {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// Digits of the largest magnitude, 9223372036854775808.
const MAX_DIGITS: usize = 19;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edges_of_the_range() {
        assert_eq!(parse_i64(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse_i64(b"9223372036854775808"), None);
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"-9223372036854775809"), None);
        assert_eq!(parse_i64(b"9999999999999999999"), None);
        assert_eq!(parse_i64(b"10000000000000000000"), None);
        assert_eq!(parse_i64(b"18446744073709551617"), None);
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in [
            "", "-", "+1", "-0", "00", "01", "-01", " 1", "1 ", "1.0", "0x1", "1\0", "1a",
        ] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn canonical_text_reads_back(value: i64) {
            prop_assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
        }

        #[test]
        fn agrees_with_the_standard_library_on_what_is_canonical(text in "[-+]?[0-9]{0,21}") {
            let expected = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), expected);
        }
    }
}
