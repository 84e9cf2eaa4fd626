//! Commands as a person types them.

use thiserror::Error;

use crate::resp::inline::split_line;

/// Stands for the key of a request in a typed command.
pub const KEY_PLACEHOLDER: &str = "__key__";

/// Stands for the value of a request in a typed command.
pub const DATA_PLACEHOLDER: &str = "__data__";

/// Stands for a number of a request, as a whole argument, where the request has numbers
/// ([`TemplateBuilder::number`](super::TemplateBuilder::number)).
pub const NUMBER_PLACEHOLDER: &str = "__number__";

/// A typed command that cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandLineError {
    /// A quote does not close, or something stands right behind a closing quote.
    #[error("unbalanced quotes")]
    UnbalancedQuotes,
    /// There is no word at all.
    #[error("empty command")]
    Empty,
}

/// Splits a typed command into arguments, quoted as in redis-cli: `"a\n\x00"` with escapes, `'a'` without.
///
/// Placeholders ([`KEY_PLACEHOLDER`], [`DATA_PLACEHOLDER`]) are left in place for
/// [`TemplateBuilder::argument`](super::TemplateBuilder::argument).
///
/// # Errors
///
/// Unbalanced quotes, or no word.
///
/// ```
/// use kvlab_protocol::resp::request::parse_command_line;
///
/// let args = parse_command_line(r#"SET __key__ "two words" EX 10"#)?;
/// assert_eq!(args[2], b"two words");
/// # Ok::<(), kvlab_protocol::resp::request::CommandLineError>(())
/// ```
pub fn parse_command_line(line: &str) -> Result<Vec<Vec<u8>>, CommandLineError> {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    split_line(line.as_bytes(), &mut bytes, &mut spans)
        .map_err(|_| CommandLineError::UnbalancedQuotes)?;
    if spans.is_empty() {
        return Err(CommandLineError::Empty);
    }
    Ok(spans
        .iter()
        .map(|span| bytes.get(span.start..span.end).unwrap_or_default().to_vec())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_survive_quoting() {
        let args = parse_command_line(r#"set "__key__" __data__ 'it''s'"#);
        assert_eq!(args, Err(CommandLineError::UnbalancedQuotes));
        let args = parse_command_line(r#"set "__key__" __data__ 'it\'s'"#).unwrap();
        assert_eq!(args, [&b"set"[..], b"__key__", b"__data__", b"it's"]);
    }

    #[test]
    fn a_line_without_words_is_an_error() {
        assert_eq!(parse_command_line("  "), Err(CommandLineError::Empty));
    }
}
