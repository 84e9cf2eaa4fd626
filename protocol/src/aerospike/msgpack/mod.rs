//! The msgpack dialect inside lists, maps, expressions and arguments.
//!
//! | bytes | meaning |
//! |---|---|
//! | `c0`, `c2`, `c3` | nil, false, true |
//! | `00`-`7f`, `cc`-`cf`, `e0`-`ff`, `d0`-`d3` | integers, written in the shortest form |
//! | `cb` (`ca` is read too) | double |
//! | `a0`-`bf`, `d9`-`db` (`c4`-`c6` are read too) | typed bytes: the first payload byte is the particle type, the rest the text or blob |
//! | `90`-`9f`, `dc`, `dd` | list |
//! | `80`-`8f`, `de`, `df` | map |
//! | `d4 ff 00`, `d4 ff 01` | wildcard and infinity, in arguments only |
//! | `c7 00 F` | order marker F: first element of a list (counted), or first key of a map with value nil |
//!
//! Names of bins, sets and variables inside expressions are bytes without the type byte; they are
//! read as [`Value::Raw`] (when their first byte is no known type) and come out the same.
//!
//! [`Value::decode`] builds a tree, [`skip`] and [`validate`] walk without allocating, and
//! [`normalise`] does what a server does when it stores a list or map. Depth is limited to
//! [`MAX_DEPTH`]. Source: the vectors in `golden/aerospike`.

mod decode;
mod encode;
mod normal;
mod skip;

use bytes::Bytes;

use super::message::ParticleType;
use super::result_code::ResultCode;

pub use encode::{
    put_array_header, put_double, put_integer, put_list_marker, put_map_header, put_map_marker,
    put_typed_bytes, put_unsigned,
};
pub use normal::normalise;
pub use skip::{is_plain, skip, validate};

/// How deep lists and maps may be nested.
pub const MAX_DEPTH: usize = 128;

/// The type of the extension that marks order, when its length is zero.
const WILDCARD_EXT: u8 = 0xff;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// An integer above `i64::MAX`.
    Unsigned(u64),
    /// A double.
    Double(f64),
    /// Text; not checked to be UTF-8.
    String(Bytes),
    /// Bytes.
    Blob(Bytes),
    /// GeoJSON text.
    GeoJson(Bytes),
    /// Bytes of another known particle type (language blobs, HyperLogLog).
    Typed(ParticleType, Bytes),
    /// Bytes without a known type byte: names inside expressions, or nothing at all.
    Raw(Bytes),
    /// A list.
    List(List),
    /// A map.
    Map(Map),
    /// Equal to everything (arguments only).
    Wildcard,
    /// Above everything (arguments only).
    Infinity,
    /// Another extension.
    Ext {
        /// The extension's type.
        kind: u8,
        /// Its data.
        data: Bytes,
    },
}

/// A list, with its order marker taken off.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct List {
    /// The order marker; `None` for a list without.
    pub order: Option<Order>,
    /// The elements.
    pub items: Vec<Value>,
}

/// A map, with its order marker taken off.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Map {
    /// The order marker; `None` for a map without.
    pub order: Option<Order>,
    /// The pairs, in wire order.
    pub entries: Vec<(Value, Value)>,
}

bitflags::bitflags! {
    /// An order marker: what a list or map promises about its order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Order: u8 {
        /// A list by value, a map by key.
        const ORDERED = 0x01;
        /// A map by key and also by value.
        const BY_VALUE = 0x02;
        /// A map that keeps the given order (in answers only).
        const PRESERVE = 0x08;
        /// The server keeps an index with the value.
        const PERSIST_INDEX = 0x10;
    }
}

/// Bytes that are not a value of this dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MsgpackError {
    /// The bytes end inside a value.
    #[error("msgpack ends inside a value")]
    Truncated,
    /// A byte that starts no value (`c1`).
    #[error("msgpack byte {0:#04x} starts no value")]
    Head(u8),
    /// Lists and maps are nested deeper than [`MAX_DEPTH`].
    #[error("msgpack nested deeper than {MAX_DEPTH}")]
    Depth,
    /// Bytes are left over behind the value.
    #[error("{0} bytes left over behind a msgpack value")]
    Trailing(usize),
    /// A list or map was expected and something else was found.
    #[error("msgpack value is no {expected}")]
    NotA {
        /// What was expected.
        expected: &'static str,
    },
    /// An order marker where none may stand.
    #[error("msgpack order marker outside the front of a list or map")]
    Marker,
    /// A map has the same key twice.
    #[error("msgpack map has a key twice")]
    DuplicateKey,
    /// Elements or keys are not in the order their marker promises.
    #[error("msgpack elements are not in the order their marker promises")]
    NotOrdered,
}

impl MsgpackError {
    /// What a server answers when such a value is written to a bin.
    #[must_use]
    pub const fn result_code(self) -> ResultCode {
        ResultCode::ServerError
    }
}

impl Value {
    /// Text.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self::String(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// The value as an integer, if it is one that fits.
    #[must_use]
    pub const fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The elements, if this is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) => Some(&list.items),
            _ => None,
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl FromIterator<Value> for List {
    fn from_iter<T: IntoIterator<Item = Value>>(items: T) -> Self {
        Self {
            order: None,
            items: items.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests;
