//! A request encoded once and sent many times.
//!
//! ```text
//! *3\r\n$3\r\nSET\r\n$12\r\nkey-00000000\r\n$32\r\n ................ \r\n
//!                          ^^^^^^^^ digits patched ^ value copied
//! ```
//!
//! The frame is kept as a list of pieces. With a fixed key width and a fixed value length all that is
//! computed per request is the digits of the key.

use bytes::BytesMut;

use super::{DATA_PLACEHOLDER, KEY_PLACEHOLDER};
use crate::resp::reply_writer::{bulk, length_line};

/// A request with places for key numbers and values.
///
/// ```
/// use bytes::BytesMut;
/// use kvlab_protocol::resp::request::Template;
///
/// let set = Template::builder().literal(b"SET").key(b"key-", 4).value(2).build();
/// let mut out = BytesMut::new();
/// set.encode(42, b"hi", &mut out);
/// assert_eq!(&out[..], b"*3\r\n$3\r\nSET\r\n$8\r\nkey-0042\r\n$2\r\nhi\r\n");
/// ```
#[derive(Clone, Debug)]
pub struct Template {
    pieces: Vec<Piece>,
    /// Bytes of all pieces, those of variable parts at their largest known size.
    len_hint: usize,
    max_key: u64,
}

#[derive(Clone, Debug)]
enum Piece {
    /// Encoded bytes with decimal key numbers at (offset, width).
    Image {
        bytes: Vec<u8>,
        keys: Vec<(usize, usize)>,
    },
    /// An argument of varying length: text around a key number without padding.
    Key { before: Vec<u8>, after: Vec<u8> },
    /// The bytes of a value of this length, without its length line.
    Value { len: usize },
    /// A whole value argument, whatever its length, with text around it.
    AnyValue { before: Vec<u8>, after: Vec<u8> },
    /// An argument that is a decimal number.
    Number,
}

impl Template {
    /// Starts an empty template; add arguments in order.
    #[must_use]
    pub fn builder() -> TemplateBuilder {
        TemplateBuilder::default()
    }

    /// Appends one request for `key_number` and `value`.
    ///
    /// A key slot of fixed width prints the low digits of the number: see [`Template::max_key`]. A value slot of
    /// fixed length takes the first bytes of `value`, padded with `x` if there are not enough.
    #[inline]
    pub fn encode(&self, key_number: u64, value: &[u8], out: &mut BytesMut) {
        self.encode_each(|_| key_number, value, out);
    }

    /// As [`Template::encode`], with a key number for each key slot: `key_number(0)` is the first one. Number
    /// slots are 0.
    #[inline]
    pub fn encode_each(
        &self,
        key_number: impl FnMut(usize) -> u64,
        value: &[u8],
        out: &mut BytesMut,
    ) {
        self.encode_with(key_number, |_| 0, value, out);
    }

    /// As [`Template::encode_each`], with a number for each number slot too.
    ///
    /// ```
    /// use bytes::BytesMut;
    /// use kvlab_protocol::resp::request::Template;
    ///
    /// let wait = Template::builder().literal(b"WAIT").number().number().build();
    /// let mut out = BytesMut::new();
    /// wait.encode_with(|_| 0, |slot| [1, 250][slot], b"", &mut out);
    /// assert_eq!(&out[..], b"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$3\r\n250\r\n");
    /// ```
    #[inline]
    pub fn encode_with(
        &self,
        mut key_number: impl FnMut(usize) -> u64,
        mut number: impl FnMut(usize) -> u64,
        value: &[u8],
        out: &mut BytesMut,
    ) {
        out.reserve(self.len_hint.saturating_add(value.len()));
        let (mut slot, mut number_slot) = (0, 0);
        let mut next_key = || {
            slot += 1;
            key_number(slot - 1)
        };
        for piece in &self.pieces {
            match piece {
                Piece::Image { bytes, keys } => {
                    let base = out.len();
                    out.extend_from_slice(bytes);
                    for &(at, width) in keys {
                        if let Some(place) = out.get_mut(base + at..base + at + width) {
                            put_digits(next_key(), place);
                        }
                    }
                }
                Piece::Key { before, after } => {
                    let mut buffer = itoa::Buffer::new();
                    let digits = buffer.format(next_key());
                    surrounded(before, digits.as_bytes(), after, out);
                }
                Piece::Value { len } => {
                    let given = value.get(..*len).unwrap_or(value);
                    out.extend_from_slice(given);
                    out.resize(out.len() + (len - given.len()), PADDING);
                }
                Piece::AnyValue { before, after } => surrounded(before, value, after, out),
                Piece::Number => {
                    let mut buffer = itoa::Buffer::new();
                    let digits = buffer.format(number(number_slot));
                    number_slot += 1;
                    bulk(out, b'$', digits.as_bytes());
                }
            }
        }
    }

    /// The largest key number that every key slot can print in full.
    #[must_use]
    pub fn max_key(&self) -> u64 {
        self.max_key
    }

    /// Number of key slots in the request.
    #[must_use]
    pub fn key_slots(&self) -> usize {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Image { keys, .. } => keys.len(),
                Piece::Key { .. } => 1,
                Piece::Value { .. } | Piece::AnyValue { .. } | Piece::Number => 0,
            })
            .sum()
    }

    /// Number of number slots in the request.
    #[must_use]
    pub fn number_slots(&self) -> usize {
        let numbers = self.pieces.iter().filter(|p| matches!(p, Piece::Number));
        numbers.count()
    }

    /// True if the request carries a value.
    #[must_use]
    pub fn has_value(&self) -> bool {
        self.pieces
            .iter()
            .any(|p| matches!(p, Piece::Value { .. } | Piece::AnyValue { .. }))
    }
}

/// Fills values that are shorter than their slot.
const PADDING: u8 = b'x';

/// Writes the low digits of `number` over all of `place`.
#[inline]
fn put_digits(mut number: u64, place: &mut [u8]) {
    for digit in place.iter_mut().rev() {
        // The remainder is below ten.
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

/// Appends a bulk string of three parts.
fn surrounded(before: &[u8], middle: &[u8], after: &[u8], out: &mut BytesMut) {
    length_line(out, b'$', before.len() + middle.len() + after.len());
    out.extend_from_slice(before);
    out.extend_from_slice(middle);
    out.extend_from_slice(after);
    out.extend_from_slice(b"\r\n");
}

/// Collects the arguments of a [`Template`].
#[derive(Clone, Debug, Default)]
pub struct TemplateBuilder {
    args: Vec<Arg>,
}

#[derive(Clone, Debug)]
enum Arg {
    Literal(Vec<u8>),
    Key {
        before: Vec<u8>,
        width: Option<usize>,
        after: Vec<u8>,
    },
    Value {
        before: Vec<u8>,
        len: Option<usize>,
        after: Vec<u8>,
    },
    Number,
}

impl TemplateBuilder {
    /// Adds an argument that is always the same.
    #[must_use]
    pub fn literal(self, text: &[u8]) -> Self {
        self.push(Arg::Literal(text.to_vec()))
    }

    /// Adds a key: `prefix` and the key number in `width` digits, padded with zeros.
    #[must_use]
    pub fn key(self, prefix: &[u8], width: usize) -> Self {
        self.push(Arg::Key {
            before: prefix.to_vec(),
            width: Some(width),
            after: Vec::new(),
        })
    }

    /// Adds a key: `prefix` and the key number in as many digits as it has.
    #[must_use]
    pub fn key_unpadded(self, prefix: &[u8]) -> Self {
        self.push(Arg::Key {
            before: prefix.to_vec(),
            width: None,
            after: Vec::new(),
        })
    }

    /// Adds a value of exactly `len` bytes.
    #[must_use]
    pub fn value(self, len: usize) -> Self {
        self.push(Arg::Value {
            before: Vec::new(),
            len: Some(len),
            after: Vec::new(),
        })
    }

    /// Adds a value as long as the one given to [`Template::encode`].
    #[must_use]
    pub fn value_any(self) -> Self {
        self.push(Arg::Value {
            before: Vec::new(),
            len: None,
            after: Vec::new(),
        })
    }

    /// Adds an argument that is a number, in as many decimal digits as it has.
    #[must_use]
    pub fn number(self) -> Self {
        self.push(Arg::Number)
    }

    /// Adds one argument of a typed command: the first `__key__` in it becomes `key_prefix` and the key number
    /// (`key_width` digits, or as many as needed), else the first `__data__` becomes the value (`value_len`
    /// bytes, or as many as given), else it is literal.
    #[must_use]
    pub fn argument(
        self,
        text: &[u8],
        key_prefix: &[u8],
        key_width: Option<usize>,
        value_len: Option<usize>,
    ) -> Self {
        if let Some((before, after)) = split_once(text, KEY_PLACEHOLDER.as_bytes()) {
            let before = [before, key_prefix].concat();
            return self.push(Arg::Key {
                before,
                width: key_width,
                after: after.to_vec(),
            });
        }
        if let Some((before, after)) = split_once(text, DATA_PLACEHOLDER.as_bytes()) {
            let (before, after) = (before.to_vec(), after.to_vec());
            return self.push(Arg::Value {
                before,
                len: value_len,
                after,
            });
        }
        self.literal(text)
    }

    /// Encodes what does not change.
    #[must_use]
    pub fn build(self) -> Template {
        let mut pieces = Vec::new();
        let mut image = Image::default();
        let mut max_key = u64::MAX;
        let mut len_hint = 0;
        length_line(&mut image.bytes, b'*', self.args.len());
        for arg in self.args {
            match arg {
                Arg::Literal(text) => bulk(&mut image.bytes, b'$', &text),
                Arg::Key {
                    before,
                    width: Some(width),
                    after,
                } => {
                    length_line(&mut image.bytes, b'$', before.len() + width + after.len());
                    image.bytes.extend_from_slice(&before);
                    image.keys.push((image.bytes.len(), width));
                    image.bytes.resize(image.bytes.len() + width, b'0');
                    image.bytes.extend_from_slice(&after);
                    image.bytes.extend_from_slice(b"\r\n");
                    max_key = max_key.min(largest_of(width));
                }
                Arg::Key {
                    before,
                    width: None,
                    after,
                } => {
                    image.flush(&mut pieces);
                    len_hint += before.len() + after.len() + VARIABLE_EXTRA;
                    pieces.push(Piece::Key { before, after });
                }
                Arg::Value {
                    before,
                    len: Some(len),
                    after,
                } => {
                    length_line(&mut image.bytes, b'$', before.len() + len + after.len());
                    image.bytes.extend_from_slice(&before);
                    image.flush(&mut pieces);
                    len_hint += len;
                    pieces.push(Piece::Value { len });
                    image.bytes.extend_from_slice(&after);
                    image.bytes.extend_from_slice(b"\r\n");
                }
                Arg::Value {
                    before,
                    len: None,
                    after,
                } => {
                    image.flush(&mut pieces);
                    len_hint += before.len() + after.len() + VARIABLE_EXTRA;
                    pieces.push(Piece::AnyValue { before, after });
                }
                Arg::Number => {
                    image.flush(&mut pieces);
                    len_hint += VARIABLE_EXTRA;
                    pieces.push(Piece::Number);
                }
            }
        }
        image.flush(&mut pieces);
        len_hint += pieces
            .iter()
            .map(|piece| {
                if let Piece::Image { bytes, .. } = piece {
                    bytes.len()
                } else {
                    0
                }
            })
            .sum::<usize>();
        Template {
            pieces,
            len_hint,
            max_key,
        }
    }

    fn push(mut self, arg: Arg) -> Self {
        self.args.push(arg);
        self
    }
}

/// Length line, line end and up to 20 digits of an argument of varying length.
const VARIABLE_EXTRA: usize = 48;

/// The fixed piece that is being put together.
#[derive(Default)]
struct Image {
    bytes: BytesMut,
    keys: Vec<(usize, usize)>,
}

impl Image {
    fn flush(&mut self, pieces: &mut Vec<Piece>) {
        if !self.bytes.is_empty() {
            let Self { bytes, keys } = std::mem::take(self);
            pieces.push(Piece::Image {
                bytes: bytes.to_vec(),
                keys,
            });
        }
    }
}

/// The largest number of `width` decimal digits, as far as 64 bits go.
fn largest_of(width: usize) -> u64 {
    u32::try_from(width)
        .ok()
        .and_then(|w| 10u64.checked_pow(w))
        .map_or(u64::MAX, |n| n - 1)
}

fn split_once<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(text, mark)?;
    Some((text.get(..at)?, text.get(at + mark.len()..)?))
}
