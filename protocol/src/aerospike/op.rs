//! Operations: what a message does to single bins.
//!
//! | bytes | meaning |
//! |---|---|
//! | 4 | size of everything that follows: 4 + name + value, big-endian |
//! | 1 | operation, see [`OpCode`] |
//! | 1 | particle type, see [`ParticleType`] |
//! | 1 | flags: 0; bit 0 says that 8 bytes of last-update time lead the value (XDR only) |
//! | 1 | length of the name |
//! | n | bin name |
//! | rest | value |
//!
//! Answers use the same layout.

use crate::cursor::Cursor;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpCode {
    /// Read a bin, or all of them in a write message (1).
    Read,
    /// Write a bin; no value deletes it (2).
    Write,
    /// Read from a list or map (3).
    CdtRead,
    /// Change a list or map (4).
    CdtModify,
    /// Add to an integer or double (5).
    Increment,
    /// Evaluate an expression (7).
    ExpressionRead,
    /// Write what an expression yields (8).
    ExpressionModify,
    /// Append to a string or blob (9).
    Append,
    /// Prepend to a string or blob (10).
    Prepend,
    /// Restart the record's life (11).
    Touch,
    /// Read bits of a blob (12).
    BitRead,
    /// Change bits of a blob (13).
    BitModify,
    /// Drop all bins (14).
    DeleteAll,
    /// Read a HyperLogLog (15).
    HllRead,
    /// Change a HyperLogLog (16).
    HllModify,
    /// A code without a name here; servers answer it with a parameter error.
    Other(u8),
}

impl OpCode {
    /// The meaning of a byte; an unknown one is kept.
    #[must_use]
    #[inline]
    pub const fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Read,
            2 => Self::Write,
            3 => Self::CdtRead,
            4 => Self::CdtModify,
            5 => Self::Increment,
            7 => Self::ExpressionRead,
            8 => Self::ExpressionModify,
            9 => Self::Append,
            10 => Self::Prepend,
            11 => Self::Touch,
            12 => Self::BitRead,
            13 => Self::BitModify,
            14 => Self::DeleteAll,
            15 => Self::HllRead,
            16 => Self::HllModify,
            other => Self::Other(other),
        }
    }

    /// The byte on the wire.
    #[must_use]
    #[inline]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::CdtRead => 3,
            Self::CdtModify => 4,
            Self::Increment => 5,
            Self::ExpressionRead => 7,
            Self::ExpressionModify => 8,
            Self::Append => 9,
            Self::Prepend => 10,
            Self::Touch => 11,
            Self::BitRead => 12,
            Self::BitModify => 13,
            Self::DeleteAll => 14,
            Self::HllRead => 15,
            Self::HllModify => 16,
            Self::Other(other) => other,
        }
    }
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParticleType {
    /// No value (0).
    Nil,
    /// Signed integer, 8 bytes; 1, 2 and 4 are taken too (1).
    Integer,
    /// IEEE 754 double, 8 bytes (2).
    Double,
    /// Text, not checked to be UTF-8 (3).
    String,
    /// Bytes (4).
    Blob,
    /// Serialised by Java (7).
    JavaBlob,
    /// Serialised by C# (8).
    CSharpBlob,
    /// Serialised by Python (9).
    PythonBlob,
    /// Serialised by Ruby (10).
    RubyBlob,
    /// Serialised by PHP (11).
    PhpBlob,
    /// Serialised by Erlang (12).
    ErlangBlob,
    /// Reserved (16).
    Vector,
    /// Boolean, 1 byte (17).
    Bool,
    /// HyperLogLog (18).
    Hll,
    /// msgpack map (19).
    Map,
    /// msgpack list (20).
    List,
    /// GeoJSON with its cells (23).
    GeoJson,
    /// A type without a name here; servers answer it with a parameter error.
    Other(u8),
}

impl ParticleType {
    /// The meaning of a byte; an unknown one is kept.
    #[must_use]
    #[inline]
    pub const fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Nil,
            1 => Self::Integer,
            2 => Self::Double,
            3 => Self::String,
            4 => Self::Blob,
            7 => Self::JavaBlob,
            8 => Self::CSharpBlob,
            9 => Self::PythonBlob,
            10 => Self::RubyBlob,
            11 => Self::PhpBlob,
            12 => Self::ErlangBlob,
            16 => Self::Vector,
            17 => Self::Bool,
            18 => Self::Hll,
            19 => Self::Map,
            20 => Self::List,
            23 => Self::GeoJson,
            other => Self::Other(other),
        }
    }

    /// The byte on the wire.
    #[must_use]
    #[inline]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Nil => 0,
            Self::Integer => 1,
            Self::Double => 2,
            Self::String => 3,
            Self::Blob => 4,
            Self::JavaBlob => 7,
            Self::CSharpBlob => 8,
            Self::PythonBlob => 9,
            Self::RubyBlob => 10,
            Self::PhpBlob => 11,
            Self::ErlangBlob => 12,
            Self::Vector => 16,
            Self::Bool => 17,
            Self::Hll => 18,
            Self::Map => 19,
            Self::List => 20,
            Self::GeoJson => 23,
            Self::Other(other) => other,
        }
    }
}

/// One operation, borrowed from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op<'a> {
    /// What is done.
    pub op: OpCode,
    /// What the value is.
    pub particle: ParticleType,
    /// The flag byte, zero from clients.
    pub flags: u8,
    /// The bin name.
    pub name: &'a [u8],
    /// The value, empty for a read.
    pub value: &'a [u8],
}

/// The operations of a message or batch row, in wire order.
#[derive(Debug, Clone)]
pub struct Ops<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Ops<'a> {
    /// Operations over bytes that hold nothing else.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            cursor: Cursor::new(bytes),
        }
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Op<'a>;

    #[inline]
    fn next(&mut self) -> Option<Op<'a>> {
        let (&[op, particle, flags, name_len], rest) = self
            .cursor
            .sized_u32()?
            .split_first_chunk::<OP_HEAD_LEN>()?;
        let (name, value) = rest.split_at_checked(usize::from(name_len))?;
        Some(Op {
            op: OpCode::from_byte(op),
            particle: ParticleType::from_byte(particle),
            flags,
            name,
            value,
        })
    }
}

/// Bytes of an operation between its size and its name.
pub(crate) const OP_HEAD_LEN: usize = 4;

/// Cuts `count` operations off the cursor; `None` when a size is too small for its name or
/// overruns the bytes.
#[inline]
pub(crate) fn take_ops<'a>(cursor: &mut Cursor<'a>, count: u16) -> Option<&'a [u8]> {
    let before = cursor.rest();
    let mut len = 0;
    for _ in 0..count {
        let op = cursor.sized_u32()?;
        let (&[.., name_len], rest) = op.split_first_chunk::<OP_HEAD_LEN>()?;
        if rest.len() < usize::from(name_len) {
            return None;
        }
        len += 4 + op.len();
    }
    before.get(..len)
}

#[cfg(test)]
mod tests {
    use super::{OpCode, ParticleType};

    #[test]
    fn every_byte_survives() {
        for byte in 0..=u8::MAX {
            assert_eq!(OpCode::from_byte(byte).byte(), byte);
            assert_eq!(ParticleType::from_byte(byte).byte(), byte);
        }
    }
}
