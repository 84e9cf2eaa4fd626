//! Building a tree of values.

use bytes::Bytes;

use super::skip::{Head, head, is_bytes_type, special};
use super::{List, MAX_DEPTH, Map, MsgpackError, Order, ParticleType, Value};
use crate::cursor::Cursor;

/// How many elements of a nested list or map room is made for before any was read: counts inside
/// counts must not allocate much more than the input is long.
const NESTED_ROOM: usize = 16;

impl Value {
    /// Decodes exactly one value.
    ///
    /// # Errors
    /// [`MsgpackError`] when the bytes are not exactly one value.
    pub fn decode(bytes: &[u8]) -> Result<Self, MsgpackError> {
        match Self::decode_prefix(bytes)? {
            (value, []) => Ok(value),
            (_, rest) => Err(MsgpackError::Trailing(rest.len())),
        }
    }

    /// Decodes the value at the front of `bytes` and returns what follows it.
    ///
    /// # Errors
    /// [`MsgpackError`] when the bytes do not start with a whole value.
    pub fn decode_prefix(bytes: &[u8]) -> Result<(Self, &[u8]), MsgpackError> {
        let mut cursor = Cursor::new(bytes);
        let head = head(&mut cursor)?;
        let value = value(head, &mut cursor, 0)?;
        Ok((value, cursor.rest()))
    }
}

impl List {
    /// Decodes exactly one list.
    ///
    /// # Errors
    /// [`MsgpackError`] when the bytes are not exactly one list.
    pub fn decode(bytes: &[u8]) -> Result<Self, MsgpackError> {
        match Value::decode(bytes)? {
            Value::List(list) => Ok(list),
            _ => Err(MsgpackError::NotA { expected: "list" }),
        }
    }
}

impl Map {
    /// Decodes exactly one map.
    ///
    /// # Errors
    /// [`MsgpackError`] when the bytes are not exactly one map.
    pub fn decode(bytes: &[u8]) -> Result<Self, MsgpackError> {
        match Value::decode(bytes)? {
            Value::Map(map) => Ok(map),
            _ => Err(MsgpackError::NotA { expected: "map" }),
        }
    }
}

fn value(head: Head<'_>, cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, MsgpackError> {
    Ok(match head {
        Head::Nil => Value::Nil,
        Head::Bool(value) => Value::Bool(value),
        Head::Integer(value) => Value::Integer(value),
        Head::Unsigned(value) => Value::Unsigned(value),
        Head::Double(value) => Value::Double(value),
        Head::Bytes(payload) => typed_bytes(payload),
        Head::List(count) => Value::List(list(count, cursor, depth)?),
        Head::Map(count) => Value::Map(map(count, cursor, depth)?),
        Head::Marker(_) => return Err(MsgpackError::Marker),
        Head::Ext { kind, data } => special(kind, data).unwrap_or_else(|| Value::Ext {
            kind,
            data: Bytes::copy_from_slice(data),
        }),
    })
}

fn typed_bytes(payload: &[u8]) -> Value {
    let typed = payload
        .split_first()
        .map(|(&kind, data)| (ParticleType::from_byte(kind), data));
    match typed {
        Some((kind, data)) if is_bytes_type(kind) => {
            let data = Bytes::copy_from_slice(data);
            match kind {
                ParticleType::String => Value::String(data),
                ParticleType::Blob => Value::Blob(data),
                ParticleType::GeoJson => Value::GeoJson(data),
                other => Value::Typed(other, data),
            }
        }
        _ => Value::Raw(Bytes::copy_from_slice(payload)),
    }
}

fn list(count: u32, cursor: &mut Cursor<'_>, depth: usize) -> Result<List, MsgpackError> {
    let count = checked_count(count, 1, cursor, depth)?;
    let mut list = List {
        order: None,
        items: Vec::with_capacity(room(count, depth)),
    };
    for index in 0..count {
        match head(cursor)? {
            Head::Marker(flags) if index == 0 => {
                list.order = Some(Order::from_bits_retain(flags));
            }
            head => list.items.push(value(head, cursor, depth + 1)?),
        }
    }
    Ok(list)
}

fn map(count: u32, cursor: &mut Cursor<'_>, depth: usize) -> Result<Map, MsgpackError> {
    let count = checked_count(count, 2, cursor, depth)?;
    let mut map = Map {
        order: None,
        entries: Vec::with_capacity(room(count, depth)),
    };
    for index in 0..count {
        let key = match head(cursor)? {
            Head::Marker(flags) if index == 0 => {
                map.order = Some(Order::from_bits_retain(flags));
                match head(cursor)? {
                    Head::Nil => continue,
                    _ => return Err(MsgpackError::Marker),
                }
            }
            head => value(head, cursor, depth + 1)?,
        };
        let head = head(cursor)?;
        map.entries.push((key, value(head, cursor, depth + 1)?));
    }
    Ok(map)
}

/// How many elements to make room for. The count of the outermost level was checked against the
/// length of the input, so it may be believed.
fn room(count: usize, depth: usize) -> usize {
    if depth == 0 {
        count
    } else {
        count.min(NESTED_ROOM)
    }
}

/// The count as a size, if that many elements of `least` bytes can still follow.
fn checked_count(
    count: u32,
    least: usize,
    cursor: &Cursor<'_>,
    depth: usize,
) -> Result<usize, MsgpackError> {
    let count = usize::try_from(count).map_err(|_| MsgpackError::Truncated)?;
    if count > cursor.remaining() / least {
        return Err(MsgpackError::Truncated);
    }
    if depth >= MAX_DEPTH {
        return Err(MsgpackError::Depth);
    }
    Ok(count)
}
