//! Writing values, always in the shortest form.

use bytes::{BufMut, BytesMut};

use super::super::writer::wire_len;
use super::{List, Map, Order, ParticleType, Value, WILDCARD_EXT};

impl Value {
    /// Appends the value.
    ///
    /// # Panics
    /// When a list, map or text has 4 Gi elements or more.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Nil => out.put_u8(0xc0),
            Self::Bool(value) => out.put_u8(if *value { 0xc3 } else { 0xc2 }),
            Self::Integer(value) => put_integer(*value, out),
            Self::Unsigned(value) => put_unsigned(*value, out),
            Self::Double(value) => put_double(*value, out),
            Self::String(data) => put_typed_bytes(ParticleType::String, data, out),
            Self::Blob(data) => put_typed_bytes(ParticleType::Blob, data, out),
            Self::GeoJson(data) => put_typed_bytes(ParticleType::GeoJson, data, out),
            Self::Typed(kind, data) => put_typed_bytes(*kind, data, out),
            Self::Raw(data) => {
                put_bytes_header(wire_len(data.len()), out);
                out.put_slice(data);
            }
            Self::List(list) => list.encode(out),
            Self::Map(map) => map.encode(out),
            Self::Wildcard => put_ext(WILDCARD_EXT, &[0], out),
            Self::Infinity => put_ext(WILDCARD_EXT, &[1], out),
            Self::Ext { kind, data } => put_ext(*kind, data, out),
        }
    }
}

impl List {
    /// Appends the list, its order marker first.
    ///
    /// # Panics
    /// As [`Value::encode`].
    pub fn encode(&self, out: &mut BytesMut) {
        put_array_header(
            wire_len(self.items.len() + usize::from(self.order.is_some())),
            out,
        );
        if let Some(order) = self.order {
            put_list_marker(order, out);
        }
        for item in &self.items {
            item.encode(out);
        }
    }
}

impl Map {
    /// Appends the map, its order marker first.
    ///
    /// # Panics
    /// As [`Value::encode`].
    pub fn encode(&self, out: &mut BytesMut) {
        put_map_header(
            wire_len(self.entries.len() + usize::from(self.order.is_some())),
            out,
        );
        if let Some(order) = self.order {
            put_map_marker(order, out);
        }
        for (key, value) in &self.entries {
            key.encode(out);
            value.encode(out);
        }
    }
}

/// Writes an integer in its shortest form.
#[inline]
pub fn put_integer(value: i64, out: &mut BytesMut) {
    if let Ok(value) = u64::try_from(value) {
        put_unsigned(value, out);
    } else if value >= -32 {
        out.put_i8(i8::try_from(value).unwrap_or(-1));
    } else if let Ok(value) = i8::try_from(value) {
        out.put_u8(0xd0);
        out.put_i8(value);
    } else if let Ok(value) = i16::try_from(value) {
        out.put_u8(0xd1);
        out.put_i16(value);
    } else if let Ok(value) = i32::try_from(value) {
        out.put_u8(0xd2);
        out.put_i32(value);
    } else {
        out.put_u8(0xd3);
        out.put_i64(value);
    }
}

/// Writes an integer that is not negative in its shortest form.
#[inline]
pub fn put_unsigned(value: u64, out: &mut BytesMut) {
    if let Ok(byte) = u8::try_from(value) {
        if byte > 0x7f {
            out.put_u8(0xcc);
        }
        out.put_u8(byte);
    } else if let Ok(value) = u16::try_from(value) {
        out.put_u8(0xcd);
        out.put_u16(value);
    } else if let Ok(value) = u32::try_from(value) {
        out.put_u8(0xce);
        out.put_u32(value);
    } else {
        out.put_u8(0xcf);
        out.put_u64(value);
    }
}

/// Writes a double.
#[inline]
pub fn put_double(value: f64, out: &mut BytesMut) {
    out.put_u8(0xcb);
    out.put_f64(value);
}

/// Writes text, a blob or other typed bytes: type byte first, then the data.
///
/// # Panics
/// When the data is 4 GiB or more.
#[inline]
pub fn put_typed_bytes(kind: ParticleType, data: &[u8], out: &mut BytesMut) {
    put_bytes_header(wire_len(data.len() + 1), out);
    out.put_u8(kind.byte());
    out.put_slice(data);
}

/// Writes the head of a list of `count` elements, an order marker counted.
#[inline]
pub fn put_array_header(count: u32, out: &mut BytesMut) {
    put_count(count, [0x90, 0x0f, 0xdc, 0xdd], out);
}

/// Writes the head of a map of `count` pairs, an order marker counted.
#[inline]
pub fn put_map_header(count: u32, out: &mut BytesMut) {
    put_count(count, [0x80, 0x0f, 0xde, 0xdf], out);
}

/// Writes the order marker of a list: an extra first element.
#[inline]
pub fn put_list_marker(order: Order, out: &mut BytesMut) {
    put_ext(order.bits(), &[], out);
}

/// Writes the order marker of a map: an extra first pair.
#[inline]
pub fn put_map_marker(order: Order, out: &mut BytesMut) {
    put_ext(order.bits(), &[], out);
    out.put_u8(0xc0);
}

fn put_bytes_header(len: u32, out: &mut BytesMut) {
    match u8::try_from(len) {
        Ok(len) if len > 0x1f => out.put_slice(&[0xd9, len]),
        _ => put_count(len, [0xa0, 0x1f, 0xda, 0xdb], out),
    }
}

/// Writes a count inside the head byte, in two bytes or in four.
fn put_count(count: u32, [fix, fix_max, two, four]: [u8; 4], out: &mut BytesMut) {
    match (u8::try_from(count), u16::try_from(count)) {
        (Ok(count), _) if count <= fix_max => out.put_u8(fix | count),
        (_, Ok(count)) => {
            out.put_u8(two);
            out.put_u16(count);
        }
        _ => {
            out.put_u8(four);
            out.put_u32(count);
        }
    }
}

fn put_ext(kind: u8, data: &[u8], out: &mut BytesMut) {
    match data.len() {
        1 => out.put_u8(0xd4),
        2 => out.put_u8(0xd5),
        4 => out.put_u8(0xd6),
        8 => out.put_u8(0xd7),
        16 => out.put_u8(0xd8),
        len => match (u8::try_from(len), u16::try_from(len)) {
            (Ok(len), _) => out.put_slice(&[0xc7, len]),
            (_, Ok(len)) => {
                out.put_u8(0xc8);
                out.put_u16(len);
            }
            _ => {
                out.put_u8(0xc9);
                out.put_u32(wire_len(len));
            }
        },
    }
    out.put_u8(kind);
    out.put_slice(data);
}
