//! Replies to bytes, in the form the connection negotiated.
//!
//! One call per reply element; the protocol version decides the bytes. RESP2 has no maps, sets, doubles
//! and so on: there a server sends the nearest older form (measured on redis-server 7.0.15):
//!
//! | call        | RESP3             | RESP2                            |
//! |-------------|-------------------|----------------------------------|
//! | `null`      | `_`               | `$-1`                            |
//! | `null_array`| `_`               | `*-1`                            |
//! | `map(n)`    | `%n`              | `*2n`                            |
//! | `set(n)`    | `~n`              | `*n`                             |
//! | `push(n)`   | `>n`              | `*n`                             |
//! | `double`    | `,1.5`            | bulk string                      |
//! | `boolean`   | `#t`, `#f`        | `:1`, `:0`                       |
//! | `big_number`| `(123`            | bulk string                      |
//! | `verbatim`  | `=5` `txt:a`      | bulk string of the text alone    |
//! | `attribute` | `|n`              | nothing                          |

use bytes::BytesMut;

use super::Version;
use super::number::{DoubleStyle, double_text};

/// Appends replies to a connection's output buffer.
///
/// ```
/// use bytes::BytesMut;
/// use kvlab_protocol::resp::{DoubleStyle, ReplyWriter, Version};
///
/// let mut out = BytesMut::new();
/// let mut reply = ReplyWriter::new(&mut out, Version::Resp2, DoubleStyle::Shortest);
/// reply.map(1);
/// reply.bulk(b"score");
/// reply.double(1.5);
/// assert_eq!(&out[..], b"*2\r\n$5\r\nscore\r\n$3\r\n1.5\r\n");
/// ```
#[derive(Debug)]
pub struct ReplyWriter<'a> {
    out: &'a mut BytesMut,
    version: Version,
    double_style: DoubleStyle,
}

impl<'a> ReplyWriter<'a> {
    /// A writer behind what `out` already holds.
    pub fn new(out: &'a mut BytesMut, version: Version, double_style: DoubleStyle) -> Self {
        Self {
            out,
            version,
            double_style,
        }
    }

    /// The protocol version this writer speaks.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The buffer itself.
    pub fn out(&mut self) -> &mut BytesMut {
        self.out
    }

    /// A simple string such as `OK`. Line ends in it become blanks.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// As [`ReplyWriter::simple`], for a text that need not be UTF-8.
    #[inline]
    pub fn simple_bytes(&mut self, text: &[u8]) {
        self.line(b'+', text);
    }

    /// An error; `text` starts with its code word (`ERR`, `WRONGTYPE`) and has no leading `-`. Line ends in
    /// it become blanks.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text.as_bytes());
    }

    /// As [`ReplyWriter::error`], for a text that quotes bytes of the request.
    pub fn error_bytes(&mut self, text: &[u8]) {
        self.line(b'-', text);
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        number_line(self.out, b':', value);
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, data: &[u8]) {
        bulk(self.out, b'$', data);
    }

    /// The absence of a value.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Resp2 => b"$-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// The absence of an array, such as a blocking pop that timed out.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Resp2 => b"*-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// Opens an array; `len` elements follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        length_line(self.out, b'*', len);
    }

    /// Opens a map; `pairs` times a key and a value follow.
    pub fn map(&mut self, pairs: usize) {
        match self.version {
            Version::Resp2 => length_line(self.out, b'*', pairs.saturating_mul(2)),
            Version::Resp3 => length_line(self.out, b'%', pairs),
        }
    }

    /// Opens a set; `len` elements follow.
    pub fn set(&mut self, len: usize) {
        self.typed(b'~', len);
    }

    /// Opens an out-of-band message; `len` elements follow.
    pub fn push(&mut self, len: usize) {
        self.typed(b'>', len);
    }

    /// A double, printed in the style of this writer.
    pub fn double(&mut self, value: f64) {
        let text = double_text(value, self.double_style);
        match self.version {
            Version::Resp2 => bulk(self.out, b'$', &text),
            Version::Resp3 => self.line(b',', &text),
        }
    }

    /// A truth value.
    pub fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(match (self.version, value) {
            (Version::Resp2, true) => b":1\r\n",
            (Version::Resp2, false) => b":0\r\n",
            (Version::Resp3, true) => b"#t\r\n",
            (Version::Resp3, false) => b"#f\r\n",
        });
    }

    /// An integer of any length, given as its decimal digits.
    pub fn big_number(&mut self, digits: &str) {
        self.big_number_bytes(digits.as_bytes());
    }

    /// As [`ReplyWriter::big_number`].
    pub fn big_number_bytes(&mut self, digits: &[u8]) {
        match self.version {
            Version::Resp2 => bulk(self.out, b'$', digits),
            Version::Resp3 => self.line(b'(', digits),
        }
    }

    /// A text with its format, `txt` or `mkd`.
    pub fn verbatim(&mut self, format: &[u8; 3], data: &[u8]) {
        match self.version {
            Version::Resp2 => bulk(self.out, b'$', data),
            Version::Resp3 => verbatim(self.out, format, data),
        }
    }

    /// Attributes of the reply that follows: `write` writes `pairs` keys and values. RESP2 cannot carry them:
    /// there nothing is written and `write` is not called.
    pub fn attribute(&mut self, pairs: usize, write: impl FnOnce(&mut ReplyWriter<'_>)) {
        if self.version == Version::Resp3 {
            length_line(self.out, b'|', pairs);
            write(self);
        }
    }

    /// Bytes that are already in wire form.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// An aggregate that RESP2 sends as an array.
    fn typed(&mut self, kind: u8, len: usize) {
        length_line(
            self.out,
            if self.version == Version::Resp2 {
                b'*'
            } else {
                kind
            },
            len,
        );
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        text_line(self.out, kind, text);
    }
}

/// `kind`, the text with line ends replaced by blanks, CR LF.
pub(super) fn text_line(out: &mut BytesMut, kind: u8, text: &[u8]) {
    out.reserve(text.len() + 3);
    out.extend_from_slice(&[kind]);
    if memchr::memchr2(b'\r', b'\n', text).is_none() {
        out.extend_from_slice(text);
    } else {
        out.extend(text.iter().map(|byte| {
            if matches!(byte, b'\r' | b'\n') {
                b' '
            } else {
                *byte
            }
        }));
    }
    out.extend_from_slice(b"\r\n");
}

/// A length-prefixed string of the given type.
#[inline]
pub(super) fn bulk(out: &mut BytesMut, kind: u8, data: &[u8]) {
    out.reserve(data.len() + LINE_MAX + 2);
    length_line(out, kind, data.len());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// A verbatim string.
pub(super) fn verbatim(out: &mut BytesMut, format: &[u8; 3], data: &[u8]) {
    length_line(out, b'=', data.len().saturating_add(4));
    out.extend_from_slice(format);
    out.extend_from_slice(b":");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// The opening line of a string or an aggregate.
#[inline]
pub(super) fn length_line(out: &mut BytesMut, kind: u8, len: usize) {
    match u8::try_from(len) {
        Ok(len @ 0..=9) => out.extend_from_slice(&[kind, b'0' + len, b'\r', b'\n']),
        Ok(len @ 10..=99) => {
            out.extend_from_slice(&[kind, b'0' + len / 10, b'0' + len % 10, b'\r', b'\n']);
        }
        _ => number_line(out, kind, len),
    }
}

/// `kind`, the decimal number, CR LF.
#[inline]
pub(super) fn number_line(out: &mut BytesMut, kind: u8, value: impl itoa::Integer) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value);
    out.reserve(LINE_MAX);
    out.extend_from_slice(&[kind]);
    out.extend_from_slice(digits.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Type byte, sign, 20 digits, CR LF.
const LINE_MAX: usize = 24;
