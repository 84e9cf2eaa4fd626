//! String values, in the three forms a real server keeps them in: a number, a string that is
//! replaced as a whole, and a buffer that APPEND and SETRANGE change in place. OBJECT ENCODING tells
//! them apart.

use kvlab_protocol::resp::number::parse_i64;

/// A string value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// A text that is exactly the decimal form of this number.
    Number(i64),
    /// Bytes as they were set.
    Plain(Box<[u8]>),
    /// Bytes that were changed in place.
    Buffer(Vec<u8>),
}

impl Text {
    /// A string as SET stores it.
    #[must_use]
    pub fn encode(bytes: &[u8]) -> Self {
        match as_number(bytes) {
            Some(number) => Self::Number(number),
            None => Self::plain(bytes),
        }
    }

    /// A string that stays text even if it looks like a number.
    #[must_use]
    pub fn plain(bytes: &[u8]) -> Self {
        Self::Plain(Box::from(bytes))
    }

    /// Replaces the string as SET does, reusing its memory where it fits.
    #[inline]
    pub fn assign(&mut self, bytes: &[u8]) {
        if let Some(number) = as_number(bytes) {
            *self = Self::Number(number);
            return;
        }
        match self {
            Self::Plain(old) if old.len() == bytes.len() => old.copy_from_slice(bytes),
            _ => *self = Self::plain(bytes),
        }
    }

    /// Calls `read` with the bytes of the string.
    #[inline]
    pub fn with<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Number(number) => read(itoa::Buffer::new().format(*number).as_bytes()),
            Self::Plain(bytes) => read(bytes),
            Self::Buffer(bytes) => read(bytes),
        }
    }

    /// A copy of the bytes of the string.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.with(<[u8]>::to_vec)
    }

    /// Length in bytes.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "no command asks whether a string is empty"
    )]
    pub fn len(&self) -> usize {
        self.with(<[u8]>::len)
    }

    /// Bytes it takes beside the entry itself.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        match self {
            Self::Number(_) => 0,
            Self::Plain(bytes) => bytes.len(),
            Self::Buffer(bytes) => bytes.len(),
        }
    }

    /// The string as a number, if it is exactly one.
    #[must_use]
    #[inline]
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Plain(bytes) => parse_i64(bytes),
            Self::Buffer(bytes) => parse_i64(bytes),
        }
    }

    /// The string as a buffer to be changed in place, which it stays.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if !matches!(self, Self::Buffer(_)) {
            *self = Self::Buffer(self.to_vec());
        }
        match self {
            Self::Buffer(bytes) => bytes,
            // It has just become one.
            _ => unreachable!(),
        }
    }

    /// The name that OBJECT ENCODING gives to the form.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        match self {
            Self::Number(_) => "int",
            Self::Plain(bytes) if bytes.len() <= EMBEDDED_MAX => "embstr",
            Self::Plain(_) | Self::Buffer(_) => "raw",
        }
    }

    /// Whether a real server would keep one object for all keys with this value.
    #[must_use]
    pub fn is_shared_number(&self) -> bool {
        matches!(self, Self::Number(0..SHARED_NUMBERS))
    }
}

/// The number whose decimal form `bytes` are; most strings are not, and leave at the first test.
#[inline]
fn as_number(bytes: &[u8]) -> Option<i64> {
    if bytes.len() > NUMBER_MAX || !matches!(bytes.first(), Some(b'0'..=b'9' | b'-')) {
        return None;
    }
    parse_i64(bytes)
}

/// Longest string that is embedded in its object.
const EMBEDDED_MAX: usize = 44;
/// Longest decimal form of a number, sign included.
const NUMBER_MAX: usize = 20;
/// Numbers from 0 up to here, exclusive, are shared.
const SHARED_NUMBERS: i64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    // Encodings as OBJECT ENCODING of redis-server 7.0.15 tells them.
    #[test]
    fn strings_take_the_form_a_server_gives_them() {
        assert_eq!(Text::encode(b"123").encoding(), "int");
        assert_eq!(Text::encode(b"-9223372036854775808").encoding(), "int");
        assert_eq!(Text::encode(b"9223372036854775808").encoding(), "embstr");
        assert_eq!(Text::encode(b"0123").encoding(), "embstr");
        assert_eq!(Text::encode(b"+1").encoding(), "embstr");
        assert_eq!(Text::encode(b"").encoding(), "embstr");
        assert_eq!(Text::encode(&[b'x'; 44]).encoding(), "embstr");
        assert_eq!(Text::encode(&[b'x'; 45]).encoding(), "raw");
        let mut text = Text::encode(b"12");
        text.buffer().push(b'3');
        assert_eq!(text.encoding(), "raw");
        assert_eq!(text.number(), Some(123));
    }

    #[test]
    fn assigning_keeps_nothing_of_the_old_string() {
        let mut text = Text::encode(b"abc");
        text.assign(b"xyz");
        assert_eq!(text.to_vec(), b"xyz");
        text.assign(b"longer");
        assert_eq!(text.to_vec(), b"longer");
        text.assign(b"17");
        assert_eq!(text, Text::Number(17));
    }
}
