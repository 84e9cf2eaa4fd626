//! The 8-byte header in front of every message, in both directions.
//!
//! | byte | meaning |
//! |---|---|
//! | 0 | version: 2 (0 is accepted too, with type 2 only) |
//! | 1 | type, see [`Kind`] |
//! | 2..7 | body length, 48-bit big-endian, this header not counted |
//!
//! A server meets a bad header with silence and closes the connection up to a second later; that
//! includes peers that speak TLS, HTTP or RESP. Source: behaviour of Community Edition 8.1.2.

use bytes::{BufMut, BytesMut};

/// Bytes of a header.
pub const HEADER_LEN: usize = 8;

/// The largest body a server accepts (128 MiB); one byte more closes the connection.
pub const MAX_BODY: u64 = 134_217_728;

/// The version every message carries.
pub const VERSION: u8 = 2;

/// What a body holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Text commands and their answers (1).
    Info,
    /// User management and login (2).
    Security,
    /// Record, batch, scan and query messages (3).
    Message,
    /// A deflated message, an Enterprise feature (4).
    Compressed,
    /// Cross-datacentre traffic, never from clients (5).
    Xdr,
}

impl Kind {
    /// The kind of a type byte, `None` when a server would hang up on it.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Info),
            2 => Some(Self::Security),
            3 => Some(Self::Message),
            4 => Some(Self::Compressed),
            5 => Some(Self::Xdr),
            _ => None,
        }
    }

    /// The type byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Info => 1,
            Self::Security => 2,
            Self::Message => 3,
            Self::Compressed => 4,
            Self::Xdr => 5,
        }
    }
}

/// A decoded header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// 2, or 0 in front of a security message.
    pub version: u8,
    /// What the body holds.
    pub kind: Kind,
    /// Bytes of the body, at most [`MAX_BODY`].
    pub len: u64,
}

/// A header at which a server closes the connection without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The bytes are the start of another protocol.
    #[error("the peer speaks {0}, not the Aerospike protocol")]
    Foreign(ForeignProtocol),
    /// The version byte is unknown, or does not go with the type.
    #[error("protocol version {version} with message type {kind}")]
    Version {
        /// The version found.
        version: u8,
        /// The type byte beside it.
        kind: u8,
    },
    /// The type byte is none of 1 to 5.
    #[error("unknown message type {0}, expected 1 to 5")]
    Kind(u8),
    /// The body is larger than [`MAX_BODY`].
    #[error("body of {0} bytes, at most {MAX_BODY} are accepted")]
    TooLarge(u64),
}

/// A protocol that was recognised by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignProtocol {
    /// A TLS handshake record.
    Tls,
    /// An HTTP request line.
    Http,
    /// A RESP array.
    Resp,
}

impl core::fmt::Display for ForeignProtocol {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Tls => "TLS",
            Self::Http => "HTTP",
            Self::Resp => "RESP",
        })
    }
}

/// Decodes the header at the front of `buf`; `Ok(None)` when it has fewer than 8 bytes.
///
/// # Errors
/// A [`FrameError`] where a server would close the connection without an answer.
#[inline]
pub fn decode_header(buf: &[u8]) -> Result<Option<Header>, FrameError> {
    let Some((&[version, kind, a, b, c, d, e, f], _)) = buf.split_first_chunk::<HEADER_LEN>()
    else {
        return Ok(None);
    };
    let known = Kind::from_byte(kind);
    match (version, known) {
        (VERSION, Some(_)) | (0, Some(Kind::Security)) => {}
        (VERSION, None) => return Err(FrameError::Kind(kind)),
        _ => return Err(foreign(buf).unwrap_or(FrameError::Version { version, kind })),
    }
    let Some(kind_known) = known else {
        return Err(FrameError::Kind(kind));
    };
    let len = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    if len > MAX_BODY {
        return Err(FrameError::TooLarge(len));
    }
    Ok(Some(Header {
        version,
        kind: kind_known,
        len,
    }))
}

/// Decodes the header at the front of `buf` once the whole message is there: the header and the
/// length of header and body together. `Ok(None)` means that more bytes are needed.
///
/// # Errors
/// As [`decode_header`].
#[inline]
pub fn decode_frame(buf: &[u8]) -> Result<Option<(Header, usize)>, FrameError> {
    let Some(header) = decode_header(buf)? else {
        return Ok(None);
    };
    // MAX_BODY was checked, so the sum fits a usize of 32 bits too; the fallback is never taken.
    let total = usize::try_from(header.len).map_or(usize::MAX, |len| len + HEADER_LEN);
    Ok((buf.len() >= total).then_some((header, total)))
}

/// A whole message and what follows it in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The header.
    pub header: Header,
    /// The body, as long as the header says.
    pub body: &'a [u8],
    /// What follows the body.
    pub rest: &'a [u8],
}

/// Splits the whole message off the front of `buf`. `Ok(None)` means that more bytes are needed.
///
/// # Errors
/// As [`decode_header`].
#[inline]
pub fn split_frame(buf: &[u8]) -> Result<Option<Frame<'_>>, FrameError> {
    let Some((header, total)) = decode_frame(buf)? else {
        return Ok(None);
    };
    Ok(buf.split_at_checked(total).and_then(|(frame, rest)| {
        let body = frame.get(HEADER_LEN..)?;
        Some(Frame { header, body, rest })
    }))
}

/// Writes a header for a body of `body_len` bytes, which must be at most 48 bits long (anything
/// above is cut off; the server's own limit is far lower).
#[inline]
pub fn put_header(kind: Kind, body_len: u64, out: &mut BytesMut) {
    out.put_u64(head_word(kind, body_len));
}

/// Where an open frame began in its buffer; see [`begin_frame`].
#[derive(Debug, Clone, Copy)]
#[must_use = "a frame must be finished, or its length stays zero"]
pub struct FrameStart {
    at: usize,
    kind: Kind,
}

impl FrameStart {
    /// The start of a frame whose header was copied from a template.
    pub(crate) const fn at(at: usize, kind: Kind) -> Self {
        Self { at, kind }
    }
}

/// Writes a header whose length is filled in by [`finish_frame`].
#[inline]
pub fn begin_frame(kind: Kind, out: &mut BytesMut) -> FrameStart {
    let at = out.len();
    put_header(kind, 0, out);
    FrameStart { at, kind }
}

/// Fills in the length of the frame begun at `start`: everything written since then.
#[inline]
pub fn finish_frame(start: FrameStart, out: &mut BytesMut) {
    let Some(frame) = out.get_mut(start.at..) else {
        return;
    };
    let body_len = frame.len().saturating_sub(HEADER_LEN);
    if let Some(head) = frame.first_chunk_mut::<HEADER_LEN>() {
        *head = head_word(start.kind, body_len as u64).to_be_bytes();
    }
}

/// The eight bytes of a header as one big-endian number.
const fn head_word(kind: Kind, body_len: u64) -> u64 {
    ((VERSION as u64) << 56) | ((kind.byte() as u64) << 48) | (body_len & 0xffff_ffff_ffff)
}

/// Whether the bytes open another protocol that is known to knock on this port.
fn foreign(buf: &[u8]) -> Option<FrameError> {
    const METHODS: [&[u8]; 6] = [b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE", b"OPTI"];
    let protocol = match buf {
        [0x16, 3, ..] => ForeignProtocol::Tls,
        [b'*', b'0'..=b'9', ..] => ForeignProtocol::Resp,
        _ if METHODS.iter().any(|method| buf.starts_with(method)) => ForeignProtocol::Http,
        _ => return None,
    };
    Some(FrameError::Foreign(protocol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_version_type_and_48_bit_length() {
        let header = decode_header(&[2, 3, 0, 0, 0, 0, 1, 2, 99]);
        assert_eq!(
            header,
            Ok(Some(Header {
                version: 2,
                kind: Kind::Message,
                len: 0x102
            }))
        );
        let mut out = BytesMut::new();
        put_header(Kind::Message, 0x102, &mut out);
        assert_eq!(&out[..], [2, 3, 0, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn fewer_than_eight_bytes_wait() {
        for cut in 0..HEADER_LEN {
            assert_eq!(decode_header(&[b'*'; 7][..cut.min(7)]), Ok(None));
        }
    }

    #[test]
    fn version_zero_goes_with_security_only() {
        assert!(decode_header(&[0, 2, 0, 0, 0, 0, 0, 16]).is_ok());
        for kind in [1, 3, 4, 5] {
            let error = FrameError::Version { version: 0, kind };
            assert_eq!(decode_header(&[0, kind, 0, 0, 0, 0, 0, 5]), Err(error));
        }
    }

    #[test]
    fn body_limit_is_128_mib_inclusive() {
        assert!(decode_header(&[2, 3, 0, 0, 8, 0, 0, 0]).is_ok());
        let error = FrameError::TooLarge(MAX_BODY + 1);
        assert_eq!(decode_header(&[2, 3, 0, 0, 8, 0, 0, 1]), Err(error));
    }

    #[test]
    fn other_protocols_are_named() {
        let cases = [
            (
                &b"\x16\x03\x01\x02\x00\x01\x00\x01"[..],
                ForeignProtocol::Tls,
            ),
            (b"GET / HTTP/1.1\r\n", ForeignProtocol::Http),
            (b"*1\r\n$4\r\nPING\r\n", ForeignProtocol::Resp),
        ];
        for (bytes, protocol) in cases {
            assert_eq!(decode_header(bytes), Err(FrameError::Foreign(protocol)));
        }
    }

    #[test]
    fn finish_patches_the_length_of_the_frame_only() {
        let mut out = BytesMut::from(&b"before"[..]);
        let start = begin_frame(Kind::Info, &mut out);
        out.extend_from_slice(b"node\n");
        finish_frame(start, &mut out);
        assert_eq!(&out[..], b"before\x02\x01\x00\x00\x00\x00\x00\x05node\n");
        let frame = split_frame(&out[6..]).unwrap().unwrap();
        assert_eq!(
            (frame.header.kind, frame.body, frame.rest),
            (Kind::Info, &b"node\n"[..], &b""[..])
        );
        assert_eq!(decode_frame(&out[6..18]), Ok(None));
    }
}
