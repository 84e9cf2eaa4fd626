//! Splitting of a line into arguments, as servers do for inline commands and redis-cli for its input.
//!
//! ```text
//! set key "two words\r\n\x41"   double quotes: \n \r \t \b \a \xHH, a backslash keeps any other byte
//! set key 'it\'s'               single quotes: only \' is an escape
//! set ke"y"                     a quote may open inside a word, but must close at its end
//! ```
//!
//! Measured on redis-server 7.0.15: a vertical tab or form feed separates words only where a new word
//! is looked for; inside an unquoted word it is an ordinary byte. A NUL ends the line.

use super::args::Span;

/// A quote that is never closed, or is followed by something other than a blank.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnbalancedQuotes;

/// Appends the unescaped arguments of `line` to `bytes` and their places to `spans`.
pub(super) fn split_line(
    line: &[u8],
    bytes: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<(), UnbalancedQuotes> {
    let mut rest = line.split(|&byte| byte == 0).next().unwrap_or_default();
    loop {
        while let Some((&first, tail)) = rest.split_first()
            && is_space(first)
        {
            rest = tail;
        }
        if rest.is_empty() {
            return Ok(());
        }
        let start = bytes.len();
        rest = take_word(rest, bytes)?;
        spans.push(Span {
            start,
            end: bytes.len(),
        });
    }
}

/// Unescapes one word and gives what follows it.
fn take_word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    while let Some((&first, tail)) = rest.split_first() {
        match first {
            b' ' | b'\n' | b'\r' | b'\t' => return Ok(tail),
            b'"' => return after_quote(take_double_quoted(tail, out)?),
            b'\'' => return after_quote(take_single_quoted(tail, out)?),
            byte => out.push(byte),
        }
        rest = tail;
    }
    Ok(rest)
}

/// A closing quote must end the word.
fn after_quote(rest: &[u8]) -> Result<&[u8], UnbalancedQuotes> {
    match rest.first() {
        Some(&byte) if !is_space(byte) => Err(UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn take_double_quoted<'a>(
    mut rest: &'a [u8],
    out: &mut Vec<u8>,
) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        match rest {
            [] => return Err(UnbalancedQuotes),
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                out.push(hex_value(*high) << 4 | hex_value(*low));
                rest = tail;
            }
            [b'\\', byte, tail @ ..] => {
                out.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                rest = tail;
            }
            [b'"', tail @ ..] => return Ok(tail),
            [byte, tail @ ..] => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
}

fn take_single_quoted<'a>(
    mut rest: &'a [u8],
    out: &mut Vec<u8>,
) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        match rest {
            [] => return Err(UnbalancedQuotes),
            [b'\\', b'\'', tail @ ..] => {
                out.push(b'\'');
                rest = tail;
            }
            [b'\'', tail @ ..] => return Ok(tail),
            [byte, tail @ ..] => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
}

/// The blanks of C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Value of a byte already known to be a hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        split_line(line, &mut bytes, &mut spans)?;
        Ok(spans
            .iter()
            .map(|span| bytes[span.start..span.end].to_vec())
            .collect())
    }

    #[test]
    fn blanks_separate_words() {
        assert_eq!(words(b"  get \t k  ").unwrap(), [&b"get"[..], b"k"]);
        assert!(words(b" \r ").unwrap().is_empty());
    }

    #[test]
    fn double_quotes_unescape() {
        assert_eq!(
            words(br#"a "b c\n\x41\xzz\q" """#).unwrap(),
            [&b"a"[..], b"b c\nAxzzq", b""]
        );
    }

    #[test]
    fn single_quotes_keep_backslashes() {
        assert_eq!(words(br"'a\n\'b' c").unwrap(), [&br"a\n'b"[..], b"c"]);
    }

    #[test]
    fn quote_may_open_inside_a_word_but_must_close_at_its_end() {
        assert_eq!(words(br#"fo"o b""#).unwrap(), [b"foo b"]);
        assert_eq!(words(br#""a"b"#), Err(UnbalancedQuotes));
        assert_eq!(words(br#""a\""#), Err(UnbalancedQuotes));
        assert_eq!(words(b"'a"), Err(UnbalancedQuotes));
    }

    #[test]
    fn vertical_tab_separates_only_between_words() {
        assert_eq!(words(b"a \x0bb\x0bc").unwrap(), [&b"a"[..], b"b\x0bc"]);
    }

    #[test]
    fn nul_ends_the_line() {
        assert_eq!(words(b"a b\0c d").unwrap(), [&b"a"[..], b"b"]);
    }
}
