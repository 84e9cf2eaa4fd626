//! Values of bins: what an operation carries, by particle type.
//!
//! | type | bytes |
//! |---|---|
//! | 1 integer | 8, signed; 1, 2 and 4 are taken too and filled with zeros |
//! | 2 double | 8, IEEE 754 |
//! | 3 string, 4 blob, 7-12 language blobs, 18 HyperLogLog | as they are |
//! | 17 boolean | 1: zero or one |
//! | 19 map, 20 list | msgpack, see [`msgpack`] |
//! | 23 GeoJSON | 1 flags, 2 cell count, 8 per cell, JSON text |
//!
//! [`Value`] is the owned form; [`stored_form`] is the short way of a server that keeps bins as
//! bytes: it checks what a real server checks on a write and copies only what must change.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};

use super::message::ParticleType;
use super::msgpack::{self, List, Map, MsgpackError};
use super::result_code::ResultCode;
use crate::cursor::Cursor;

/// The value of a bin.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value: an absent bin, or the deletion of one.
    Nil,
    /// An integer.
    Integer(i64),
    /// A double.
    Float(f64),
    /// Text; not checked to be UTF-8.
    String(Bytes),
    /// Bytes.
    Blob(Bytes),
    /// A boolean.
    Bool(bool),
    /// A HyperLogLog, opaque.
    Hll(Bytes),
    /// A map.
    Map(Map),
    /// A list.
    List(List),
    /// A GeoJSON region or point.
    GeoJson(GeoJson),
    /// Any other type, with its bytes: language blobs and types without a name.
    Other(ParticleType, Bytes),
}

/// A GeoJSON value with the cells a server adds to it; clients send none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeoJson {
    /// The flag byte: 0 from clients, 1 on a region with cells of a server.
    pub flags: u8,
    /// The cells that cover the region.
    pub cells: Vec<u64>,
    /// The JSON text.
    pub json: Bytes,
}

/// Bytes that are no value of their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParticleError {
    /// The type has a fixed size and the bytes have another.
    #[error("{found} bytes are no value of particle type {}", .particle.byte())]
    Size {
        /// The type.
        particle: ParticleType,
        /// Bytes found.
        found: usize,
    },
    /// A boolean that is neither zero nor one.
    #[error("boolean {0}, expected 0 or 1")]
    Bool(u8),
    /// The type is unknown or may not be stored.
    #[error("particle type {0} is not supported")]
    Kind(u8),
    /// A list or map that is malformed, or holds duplicate keys or elements out of order.
    #[error(transparent)]
    Msgpack(#[from] MsgpackError),
    /// A GeoJSON value shorter than its header and cells.
    #[error("GeoJSON value of {found} bytes is shorter than its cells")]
    GeoJson {
        /// Bytes found.
        found: usize,
    },
}

impl ParticleError {
    /// What a server answers when such a value is written.
    #[must_use]
    pub const fn result_code(self) -> ResultCode {
        match self {
            Self::Size { .. } | Self::Bool(_) | Self::Kind(_) => ResultCode::Parameter,
            Self::Msgpack(error) => error.result_code(),
            Self::GeoJson { .. } => ResultCode::GeoJson,
        }
    }
}

impl Value {
    /// Decodes the bytes of a value.
    ///
    /// # Errors
    /// [`ParticleError`] when the bytes are no value of their type; unknown types are kept.
    pub fn decode(particle: ParticleType, bytes: &[u8]) -> Result<Self, ParticleError> {
        let copy = || Bytes::copy_from_slice(bytes);
        let size = ParticleError::Size {
            particle,
            found: bytes.len(),
        };
        Ok(match particle {
            ParticleType::Nil if bytes.is_empty() => Self::Nil,
            ParticleType::Nil => return Err(size),
            ParticleType::Integer => Self::Integer(integer(bytes).ok_or(size)?),
            ParticleType::Double => {
                let bits = bytes.try_into().map_err(|_| size)?;
                Self::Float(f64::from_be_bytes(bits))
            }
            ParticleType::String => Self::String(copy()),
            ParticleType::Blob => Self::Blob(copy()),
            ParticleType::Bool => Self::Bool(boolean(bytes, size)?),
            ParticleType::Hll => Self::Hll(copy()),
            ParticleType::Map => Self::Map(Map::decode(bytes)?),
            ParticleType::List => Self::List(List::decode(bytes)?),
            ParticleType::GeoJson => Self::GeoJson(GeoJson::decode(bytes)?),
            other => Self::Other(other, copy()),
        })
    }

    /// The particle type.
    #[must_use]
    pub const fn particle_type(&self) -> ParticleType {
        match self {
            Self::Nil => ParticleType::Nil,
            Self::Integer(_) => ParticleType::Integer,
            Self::Float(_) => ParticleType::Double,
            Self::String(_) => ParticleType::String,
            Self::Blob(_) => ParticleType::Blob,
            Self::Bool(_) => ParticleType::Bool,
            Self::Hll(_) => ParticleType::Hll,
            Self::Map(_) => ParticleType::Map,
            Self::List(_) => ParticleType::List,
            Self::GeoJson(_) => ParticleType::GeoJson,
            Self::Other(other, _) => *other,
        }
    }

    /// Appends the bytes of the value.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Nil => {}
            Self::Integer(value) => out.put_i64(*value),
            Self::Float(value) => out.put_f64(*value),
            Self::String(bytes) | Self::Blob(bytes) | Self::Hll(bytes) | Self::Other(_, bytes) => {
                out.put_slice(bytes);
            }
            Self::Bool(value) => out.put_u8((*value).into()),
            Self::Map(map) => map.encode(out),
            Self::List(list) => list.encode(out),
            Self::GeoJson(geo) => geo.encode(out),
        }
    }
}

impl GeoJson {
    /// Decodes header, cells and text; the text is not checked to be JSON.
    ///
    /// # Errors
    /// [`ParticleError::GeoJson`] when the bytes are shorter than the header and its cells.
    pub fn decode(bytes: &[u8]) -> Result<Self, ParticleError> {
        let error = ParticleError::GeoJson { found: bytes.len() };
        let mut cursor = Cursor::new(bytes);
        let flags = cursor.u8().ok_or(error)?;
        let count = cursor.u16().ok_or(error)?;
        if usize::from(count) > cursor.remaining() / 8 {
            return Err(error);
        }
        let cells = (0..count)
            .map(|_| cursor.u64().ok_or(error))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            flags,
            cells,
            json: Bytes::copy_from_slice(cursor.rest()),
        })
    }

    /// Appends header, cells and text.
    ///
    /// # Panics
    /// When there are more than 65535 cells.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(self.flags);
        out.put_u16(u16::try_from(self.cells.len()).expect("at most 65535 cells"));
        for cell in &self.cells {
            out.put_u64(*cell);
        }
        out.put_slice(&self.json);
    }
}

/// The bytes a server keeps when a client writes `bytes` to a bin: integers of 8 bytes, unordered
/// maps sorted by key; everything else as it came. Borrowed unless something had to change.
///
/// The text of GeoJSON is not looked at: whether it is a region, and its cells, are the server's
/// business.
///
/// # Errors
/// [`ParticleError`] with the result code of a real server.
///
/// ```
/// use kvlab_protocol::aerospike::message::ParticleType;
/// use kvlab_protocol::aerospike::particle::stored_form;
///
/// let stored = stored_form(ParticleType::Integer, &[1, 0]).unwrap();
/// assert_eq!(stored[..], 256_i64.to_be_bytes());
/// ```
pub fn stored_form(particle: ParticleType, bytes: &[u8]) -> Result<Cow<'_, [u8]>, ParticleError> {
    let size = ParticleError::Size {
        particle,
        found: bytes.len(),
    };
    match particle {
        ParticleType::Integer if bytes.len() != 8 => {
            let value = integer(bytes).ok_or(size)?;
            Ok(Cow::Owned(value.to_be_bytes().to_vec()))
        }
        ParticleType::Double if bytes.len() != 8 => Err(size),
        ParticleType::Nil if !bytes.is_empty() => Err(size),
        ParticleType::Bool => boolean(bytes, size).map(|_| Cow::Borrowed(bytes)),
        ParticleType::List | ParticleType::Map => stored_collection(particle, bytes),
        ParticleType::GeoJson => GeoJson::decode(bytes).map(|_| Cow::Borrowed(bytes)),
        ParticleType::Vector => Err(ParticleError::Kind(particle.byte())),
        ParticleType::Other(kind) => Err(ParticleError::Kind(kind)),
        _ => Ok(Cow::Borrowed(bytes)),
    }
}

fn stored_collection(particle: ParticleType, bytes: &[u8]) -> Result<Cow<'_, [u8]>, ParticleError> {
    let first = bytes.first().copied().unwrap_or_default();
    let (is_kind, expected) = match particle {
        ParticleType::List => (matches!(first, 0x90..=0x9f | 0xdc | 0xdd), "list"),
        _ => (matches!(first, 0x80..=0x8f | 0xde | 0xdf), "map"),
    };
    if !is_kind {
        return Err(MsgpackError::NotA { expected }.into());
    }
    if msgpack::is_plain(bytes)? {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut value = msgpack::Value::decode(bytes)?;
    msgpack::normalise(&mut value)?;
    let mut out = BytesMut::with_capacity(bytes.len());
    value.encode(&mut out);
    Ok(Cow::Owned(out.into()))
}

/// An integer of 1, 2, 4 or 8 bytes; the short ones are filled with zeros, not with their sign.
fn integer(bytes: &[u8]) -> Option<i64> {
    let value = match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_be_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
        _ => u64::from_be_bytes(bytes.try_into().ok()?),
    };
    Some(value.cast_signed())
}

fn boolean(bytes: &[u8], size: ParticleError) -> Result<bool, ParticleError> {
    match bytes {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(ParticleError::Bool(*other)),
        _ => Err(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(particle: ParticleType, bytes: &[u8]) -> Value {
        let value = Value::decode(particle, bytes).unwrap();
        assert_eq!(value.particle_type(), particle);
        let mut out = BytesMut::new();
        value.encode(&mut out);
        assert_eq!(out, bytes);
        value
    }

    #[test]
    fn every_type_round_trips() {
        assert_eq!(round_trip(ParticleType::Nil, b""), Value::Nil);
        assert_eq!(
            round_trip(ParticleType::Integer, &[0xff; 8]),
            Value::Integer(-1)
        );
        let pi = 3.5_f64.to_be_bytes();
        assert_eq!(round_trip(ParticleType::Double, &pi), Value::Float(3.5));
        round_trip(ParticleType::String, b"text");
        round_trip(ParticleType::Blob, b"");
        round_trip(ParticleType::JavaBlob, &[0xac, 0xed]);
        assert_eq!(round_trip(ParticleType::Bool, &[1]), Value::Bool(true));
        round_trip(ParticleType::Hll, &[0, 6, 0]);
        round_trip(ParticleType::List, &[0x92, 1, 2]);
        round_trip(ParticleType::Map, &[0x81, 1, 2]);
        round_trip(ParticleType::Other(99), &[1]);
    }

    #[test]
    fn geojson_carries_the_cells_of_the_server() {
        let mut bytes = vec![1, 0, 1, 0x88, 0xe0, 0xba, 0x39, 0x50, 0xf4, 0xa7, 0xe5];
        bytes.extend_from_slice(b"{}");
        let Value::GeoJson(geo) = round_trip(ParticleType::GeoJson, &bytes) else {
            panic!()
        };
        assert_eq!(geo.cells, [0x88e0_ba39_50f4_a7e5]);
        assert_eq!(geo.json, "{}");
        let error = Value::decode(ParticleType::GeoJson, &[0, 0, 1, 0]).unwrap_err();
        assert_eq!(error.result_code(), ResultCode::GeoJson);
    }

    #[test]
    fn short_integers_are_filled_with_zeros() {
        let cases: [(&[u8], i64); 3] = [(&[0xff], 255), (&[1, 0], 256), (&[0xff; 4], 0xffff_ffff)];
        for (bytes, value) in cases {
            assert_eq!(
                Value::decode(ParticleType::Integer, bytes),
                Ok(Value::Integer(value))
            );
            assert_eq!(
                stored_form(ParticleType::Integer, bytes).unwrap(),
                &value.to_be_bytes()[..]
            );
        }
    }

    #[test]
    fn wrong_sizes_and_types_have_the_code_of_a_real_server() {
        let cases: [(ParticleType, &[u8], ResultCode); 8] = [
            (ParticleType::Other(99), b"x", ResultCode::Parameter),
            (ParticleType::Other(5), b"x", ResultCode::Parameter),
            (ParticleType::Integer, b"abc", ResultCode::Parameter),
            (ParticleType::Double, &[0; 4], ResultCode::Parameter),
            (ParticleType::Bool, &[2], ResultCode::Parameter),
            (ParticleType::List, &[0x93, 1], ResultCode::ServerError),
            (ParticleType::List, &[0x80], ResultCode::ServerError),
            (
                ParticleType::Map,
                &[0x82, 1, 1, 1, 2],
                ResultCode::ServerError,
            ),
        ];
        for (particle, bytes, code) in cases {
            assert_eq!(
                stored_form(particle, bytes).unwrap_err().result_code(),
                code
            );
        }
    }

    #[test]
    fn only_what_must_change_is_copied() {
        let plain = [0x93, 1, 0xa2, 3, b'a', 0x91, 0xc0];
        assert!(matches!(
            stored_form(ParticleType::List, &plain),
            Ok(Cow::Borrowed(_))
        ));
        let one_pair = [0x81, 1, 2];
        assert!(matches!(
            stored_form(ParticleType::Map, &one_pair),
            Ok(Cow::Borrowed(_))
        ));
        let nested = [0x91, 0x82, 2, 0, 1, 0];
        assert_eq!(
            stored_form(ParticleType::List, &nested).unwrap(),
            &[0x91, 0x82, 1, 0, 2, 0][..]
        );
    }
}
