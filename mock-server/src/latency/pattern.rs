//! Patterns that the key of a request is held against.

use std::fmt;

use crate::dialect::redis::glob;

/// A key pattern as KEYS takes it. The usual forms, one key or all keys with a prefix, are recognised
/// once and compared as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern {
    text: String,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One key.
    Key,
    /// All keys that begin with the text, but for the `*` at its end.
    Prefix,
    /// Anything else.
    Glob,
}

impl KeyPattern {
    /// Every text is a pattern.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let shape = match text.find(['*', '?', '[', '\\']) {
            None => Shape::Key,
            Some(at) if text.get(at..) == Some("*") => Shape::Prefix,
            Some(_) => Shape::Glob,
        };
        Self {
            text: text.to_owned(),
            shape,
        }
    }

    /// Whether `key` fits.
    #[must_use]
    pub fn matches(&self, key: &[u8]) -> bool {
        let text = self.text.as_bytes();
        match self.shape {
            Shape::Key => key == text,
            Shape::Prefix => key.starts_with(text.strip_suffix(b"*").unwrap_or(text)),
            Shape::Glob => glob::matches(text, key),
        }
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_shapes_select_what_the_pattern_says() {
        for (pattern, shape, fits, fits_not) in [
            ("user:1", Shape::Key, "user:1", "user:12"),
            ("user:*", Shape::Prefix, "user:", "users"),
            ("*", Shape::Prefix, "anything", "\0"),
            ("*:1", Shape::Glob, "user:1", "user:2"),
            ("user:?", Shape::Glob, "user:1", "user:12"),
            ("user:[1-3]*", Shape::Glob, "user:21", "user:4"),
            ("a\\*", Shape::Glob, "a*", "ab"),
            ("a**", Shape::Glob, "ab", "b"),
        ] {
            let compiled = KeyPattern::new(pattern);
            assert_eq!(compiled.shape, shape, "{pattern}");
            assert!(compiled.matches(fits.as_bytes()), "{pattern}");
            let matches_all = pattern == "*";
            assert_eq!(
                compiled.matches(fits_not.as_bytes()),
                matches_all,
                "{pattern}"
            );
            assert_eq!(compiled.to_string(), pattern);
        }
    }
}
