//! Walking over values without building them.

use super::{MAX_DEPTH, MsgpackError, ParticleType, WILDCARD_EXT};
use crate::cursor::Cursor;

/// The head of a value: what it is, with the payload of scalars.
#[derive(Debug, Clone, Copy)]
pub(super) enum Head<'a> {
    Nil,
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Double(f64),
    Bytes(&'a [u8]),
    /// A list of this many elements follows.
    List(u32),
    /// A map of this many pairs follows.
    Map(u32),
    /// An extension of length zero.
    Marker(u8),
    Ext {
        kind: u8,
        data: &'a [u8],
    },
}

/// Reads one head; counts are not checked against what is left.
#[inline]
pub(super) fn head<'a>(cursor: &mut Cursor<'a>) -> Result<Head<'a>, MsgpackError> {
    let byte = cursor.u8().ok_or(MsgpackError::Truncated)?;
    if byte == 0xc1 {
        return Err(MsgpackError::Head(byte));
    }
    payload(byte, cursor).ok_or(MsgpackError::Truncated)
}

#[inline]
fn payload<'a>(byte: u8, cursor: &mut Cursor<'a>) -> Option<Head<'a>> {
    Some(match byte {
        0x00..=0x7f => Head::Integer(byte.into()),
        0x80..=0x8f => Head::Map((byte & 0x0f).into()),
        0x90..=0x9f => Head::List((byte & 0x0f).into()),
        0xa0..=0xbf => Head::Bytes(cursor.take(usize::from(byte & 0x1f))?),
        0xc0 | 0xc1 => Head::Nil,
        0xc2 => Head::Bool(false),
        0xc3 => Head::Bool(true),
        0xc4 | 0xd9 => Head::Bytes(sized_u8(cursor)?),
        0xc5 | 0xda => Head::Bytes(sized_u16(cursor)?),
        0xc6 | 0xdb => Head::Bytes(cursor.sized_u32()?),
        0xc7 => {
            let len = cursor.u8()?;
            ext(cursor, len.into())?
        }
        0xc8 => {
            let len = cursor.u16()?;
            ext(cursor, len.into())?
        }
        0xc9 => {
            let len = cursor.u32()?;
            ext(cursor, usize::try_from(len).ok()?)?
        }
        0xca => Head::Double(f32::from_bits(cursor.u32()?).into()),
        0xcb => Head::Double(f64::from_bits(cursor.u64()?)),
        0xcc => Head::Integer(cursor.u8()?.into()),
        0xcd => Head::Integer(cursor.u16()?.into()),
        0xce => Head::Integer(cursor.u32()?.into()),
        0xcf => {
            let value = cursor.u64()?;
            i64::try_from(value).map_or(Head::Unsigned(value), Head::Integer)
        }
        0xd0 => Head::Integer(cursor.u8()?.cast_signed().into()),
        0xd1 => Head::Integer(cursor.u16()?.cast_signed().into()),
        0xd2 => Head::Integer(cursor.u32()?.cast_signed().into()),
        0xd3 => Head::Integer(cursor.u64()?.cast_signed()),
        0xd4..=0xd8 => ext(cursor, 1 << (byte - 0xd4))?,
        0xdc => Head::List(cursor.u16()?.into()),
        0xdd => Head::List(cursor.u32()?),
        0xde => Head::Map(cursor.u16()?.into()),
        0xdf => Head::Map(cursor.u32()?),
        0xe0..=0xff => Head::Integer(byte.cast_signed().into()),
    })
}

fn sized_u8<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = cursor.u8()?;
    cursor.take(len.into())
}

fn sized_u16<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = cursor.u16()?;
    cursor.take(len.into())
}

fn ext<'a>(cursor: &mut Cursor<'a>, len: usize) -> Option<Head<'a>> {
    let kind = cursor.u8()?;
    let data = cursor.take(len)?;
    Some(if len == 0 {
        Head::Marker(kind)
    } else {
        Head::Ext { kind, data }
    })
}

/// Whether an extension is the wildcard or infinity.
pub(super) fn special(kind: u8, data: &[u8]) -> Option<super::Value> {
    match (kind, data) {
        (WILDCARD_EXT, [0]) => Some(super::Value::Wildcard),
        (WILDCARD_EXT, [1]) => Some(super::Value::Infinity),
        _ => None,
    }
}

/// Whether a payload's first byte is a particle type that bytes may have.
pub(super) const fn is_bytes_type(kind: ParticleType) -> bool {
    !matches!(
        kind,
        ParticleType::Nil
            | ParticleType::Integer
            | ParticleType::Double
            | ParticleType::Bool
            | ParticleType::List
            | ParticleType::Map
            | ParticleType::Vector
            | ParticleType::Other(_)
    )
}

/// The length of the value at the front of `bytes`, without building it.
///
/// # Errors
/// [`MsgpackError`] when the bytes do not start with a whole value.
pub fn skip(bytes: &[u8]) -> Result<usize, MsgpackError> {
    let mut cursor = Cursor::new(bytes);
    walk(&mut cursor)?;
    Ok(bytes.len() - cursor.remaining())
}

/// Whether exactly one value is so plain that a server stores it as it came: it holds no order
/// marker and no map of two or more pairs, so there is nothing to check or sort.
///
/// # Errors
/// [`MsgpackError`] when the bytes are not exactly one value.
pub fn is_plain(bytes: &[u8]) -> Result<bool, MsgpackError> {
    let mut cursor = Cursor::new(bytes);
    let plain = walk(&mut cursor)?;
    match cursor.remaining() {
        0 => Ok(plain),
        left => Err(MsgpackError::Trailing(left)),
    }
}

/// Checks that `bytes` are exactly one value.
///
/// # Errors
/// [`MsgpackError`] when they are not.
pub fn validate(bytes: &[u8]) -> Result<(), MsgpackError> {
    match bytes.len() - skip(bytes)? {
        0 => Ok(()),
        left => Err(MsgpackError::Trailing(left)),
    }
}

/// What is still open at one depth: how many values, and whether the next may be an order marker.
#[derive(Clone, Copy)]
struct Open {
    values: u64,
    front: Front,
}

/// What may stand next in a container.
#[derive(Clone, Copy, PartialEq)]
enum Front {
    /// The first element of a list.
    List,
    /// The first key of a map.
    Map,
    /// The value of a map's order marker, which must be nil.
    MarkerValue,
    /// Anything else.
    Inside,
}

/// Walks over one value; whether it is plain, see [`is_plain`].
fn walk(cursor: &mut Cursor<'_>) -> Result<bool, MsgpackError> {
    const CLOSED: Open = Open {
        values: 0,
        front: Front::Inside,
    };
    // One more than the depth: the outermost entry stands for the value itself.
    let mut stack = [CLOSED; MAX_DEPTH + 1];
    let mut depth = 0;
    let mut plain = true;
    if let Some(outermost) = stack.first_mut() {
        outermost.values = 1;
    }
    loop {
        let open = stack.get_mut(depth).ok_or(MsgpackError::Depth)?;
        if open.values == 0 {
            if depth == 0 {
                return Ok(plain);
            }
            depth -= 1;
            continue;
        }
        let front = core::mem::replace(&mut open.front, Front::Inside);
        open.values -= 1;
        let head = head(cursor)?;
        if front == Front::MarkerValue && !matches!(head, Head::Nil) {
            return Err(MsgpackError::Marker);
        }
        let (values, next_front) = match head {
            Head::Marker(_) => {
                plain = false;
                match front {
                    Front::List => {}
                    Front::Map => open.front = Front::MarkerValue,
                    _ => return Err(MsgpackError::Marker),
                }
                continue;
            }
            Head::List(count) => (u64::from(count), Front::List),
            Head::Map(count) => {
                plain &= count < 2;
                (u64::from(count) * 2, Front::Map)
            }
            _ => continue,
        };
        // Each value takes at least one byte, so a larger count can never be satisfied.
        if values > cursor.remaining() as u64 {
            return Err(MsgpackError::Truncated);
        }
        depth += 1;
        *stack.get_mut(depth).ok_or(MsgpackError::Depth)? = Open {
            values,
            front: next_front,
        };
    }
}
