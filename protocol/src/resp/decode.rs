//! Replies as values.
//!
//! The skimmer finds the end of the reply and checks it; then one pass over the complete frame builds the
//! value. So a reply that arrives in pieces is built once, and nothing is allocated before the bytes that
//! justify it have arrived.

use bytes::Bytes;

use super::decode_error::{DecodeError, DecodeLimits};
use super::line::{length, reply_double, reply_integer};
use super::skim::ReplySkimmer;
use super::value::Value;

/// Builds the replies of one connection.
///
/// ```
/// use kvlab_protocol::resp::{ReplyDecoder, Value};
///
/// let mut decoder = ReplyDecoder::new();
/// let (value, len) = decoder.decode(b"*2\r\n:1\r\n_\r\n")?.unwrap();
/// assert_eq!(value, Value::Array(vec![Value::Integer(1), Value::Null]));
/// assert_eq!(len, 11);
/// # Ok::<(), kvlab_protocol::resp::DecodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct ReplyDecoder {
    skimmer: ReplySkimmer,
}

impl ReplyDecoder {
    /// A decoder with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder with the given limits.
    #[must_use]
    pub fn with_limits(limits: DecodeLimits) -> Self {
        Self {
            skimmer: ReplySkimmer::with_limits(limits),
        }
    }

    /// Looks for one reply at the front of `buf`, all the unconsumed bytes of the connection.
    ///
    /// `Ok(Some((value, n)))`: the reply of `n` bytes is complete, which the caller drops. `Ok(None)`: call again
    /// with the same bytes and more behind them. Streamed strings and aggregates come out as whole ones.
    ///
    /// # Errors
    ///
    /// The reply is malformed or above a limit; nothing behind it can be read.
    pub fn decode(&mut self, buf: &[u8]) -> Result<Option<(Value, usize)>, DecodeError> {
        let Some(skim) = self.skimmer.skim(buf)? else {
            return Ok(None);
        };
        let mut reader = Reader {
            rest: buf.get(..skim.len).unwrap_or_default(),
        };
        Ok(Some((reader.value()?, skim.len)))
    }
}

/// The reply behind any attributes at the front of a complete frame.
pub(super) fn without_attributes(frame: &[u8]) -> &[u8] {
    let mut reader = Reader { rest: frame };
    while reader.rest.first() == Some(&b'|') {
        if reader.skip_attribute().is_err() {
            return &[];
        }
    }
    reader.rest
}

/// Reads a frame that the skimmer found complete and well formed.
///
/// Errors cannot happen then; they are passed on all the same rather than asserted. Recursion is bounded by
/// the depth limit of the skimmer.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Result<Value, DecodeError> {
        let mut attributes = Vec::new();
        let mut attributed = false;
        loop {
            let (kind, text) = self.line()?;
            if kind == b'|' {
                attributed = true;
                attributes.extend(self.pairs(kind, text)?);
                continue;
            }
            let value = self.value_of(kind, text)?;
            return Ok(if attributed {
                Value::Attribute {
                    attributes,
                    value: Box::new(value),
                }
            } else {
                value
            });
        }
    }

    fn value_of(&mut self, kind: u8, text: &'a [u8]) -> Result<Value, DecodeError> {
        let invalid = DecodeError::InvalidValue(kind);
        Ok(match kind {
            b'+' => Value::Simple(Bytes::copy_from_slice(text)),
            b'-' => Value::Error(Bytes::copy_from_slice(text)),
            b':' => Value::Integer(reply_integer(text).ok_or(invalid)?),
            b',' => Value::Double(reply_double(text).ok_or(invalid)?),
            b'#' => Value::Boolean(text == b"t"),
            b'(' => Value::BigNumber(Bytes::copy_from_slice(text)),
            b'_' => Value::Null,
            b'$' if text == b"-1" => Value::Null,
            b'*' if text == b"-1" => Value::NullArray,
            b'$' if text == b"?" => Value::Bulk(self.chunks()?),
            b'$' => Value::Bulk(Bytes::copy_from_slice(self.string(kind, text)?)),
            b'!' => Value::BulkError(Bytes::copy_from_slice(self.string(kind, text)?)),
            b'=' => match self.string(kind, text)? {
                [a, b, c, b':', data @ ..] => Value::Verbatim {
                    format: [*a, *b, *c],
                    data: Bytes::copy_from_slice(data),
                },
                _ => return Err(invalid),
            },
            b'*' => Value::Array(self.elements(kind, text)?),
            b'~' => Value::Set(self.elements(kind, text)?),
            b'>' => Value::Push(self.elements(kind, text)?),
            b'%' => Value::Map(self.pairs(kind, text)?),
            other => return Err(DecodeError::UnknownType(other)),
        })
    }

    fn elements(&mut self, kind: u8, text: &[u8]) -> Result<Vec<Value>, DecodeError> {
        let mut elements = Vec::new();
        if text == b"?" {
            while !self.at_end_mark() {
                elements.push(self.value()?);
            }
        } else {
            let len = self.count(kind, text, 1)?;
            elements.reserve_exact(len);
            for _ in 0..len {
                elements.push(self.value()?);
            }
        }
        Ok(elements)
    }

    fn pairs(&mut self, kind: u8, text: &[u8]) -> Result<Vec<(Value, Value)>, DecodeError> {
        let mut pairs = Vec::new();
        if text == b"?" {
            while !self.at_end_mark() {
                pairs.push((self.value()?, self.value()?));
            }
        } else {
            let len = self.count(kind, text, 2)?;
            pairs.reserve_exact(len);
            for _ in 0..len {
                pairs.push((self.value()?, self.value()?));
            }
        }
        Ok(pairs)
    }

    /// An announced number of items, which must be possible with the bytes that are here.
    fn count(&self, kind: u8, text: &[u8], parts: usize) -> Result<usize, DecodeError> {
        let len = usize::try_from(length(kind, text)?);
        // The shortest element is `_\r\n`.
        let possible = self.rest.len() / (3 * parts);
        len.ok()
            .filter(|len| *len <= possible)
            .ok_or(DecodeError::InvalidLength(kind))
    }

    /// The chunks of a streamed string, joined.
    fn chunks(&mut self) -> Result<Bytes, DecodeError> {
        let mut joined = Vec::new();
        loop {
            let (kind, text) = self.line()?;
            if text == b"0" {
                return Ok(joined.into());
            }
            joined.extend_from_slice(self.string(kind, text)?);
        }
    }

    /// Passes the end mark of a streamed aggregate, if it is next.
    fn at_end_mark(&mut self) -> bool {
        match self.rest {
            [b'.', b'\r', b'\n', rest @ ..] => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn string(&mut self, kind: u8, text: &[u8]) -> Result<&'a [u8], DecodeError> {
        let len = usize::try_from(length(kind, text)?).ok();
        let (string, rest) = len
            .and_then(|len| self.rest.split_at_checked(len))
            .ok_or(DecodeError::InvalidLength(kind))?;
        self.rest = rest
            .strip_prefix(b"\r\n")
            .ok_or(DecodeError::MissingLineEnd)?;
        Ok(string)
    }

    /// Type byte and text of the next line.
    fn line(&mut self) -> Result<(u8, &'a [u8]), DecodeError> {
        let end = memchr::memchr(b'\r', self.rest).ok_or(DecodeError::MissingLineEnd)?;
        let (line, rest) = self
            .rest
            .split_at_checked(end)
            .ok_or(DecodeError::MissingLineEnd)?;
        self.rest = rest.get(2..).ok_or(DecodeError::MissingLineEnd)?;
        let (&kind, text) = line.split_first().ok_or(DecodeError::UnknownType(b'\r'))?;
        Ok((kind, text))
    }

    fn skip_attribute(&mut self) -> Result<(), DecodeError> {
        let (kind, text) = self.line()?;
        self.pairs(kind, text).map(drop)
    }
}
