//! Fields: the addressed part of a message.
//!
//! | bytes | meaning |
//! |---|---|
//! | 4 | size of type and data, big-endian |
//! | 1 | type, see [`FieldKind`] |
//! | rest | data |
//!
//! The order of fields is free; a server ignores types it does not know and takes the first of two
//! of the same type.

use crate::cursor::Cursor;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// Namespace name; required, in a batch per row (0).
    Namespace,
    /// Set name; empty means none (1).
    Set,
    /// User key: a type byte and the key bytes (2).
    Key,
    /// Record version of a transaction, 7 bytes little-endian (3).
    RecordVersion,
    /// Digest, 20 bytes (4).
    Digest,
    /// Transaction id, 8 bytes little-endian (5).
    MrtId,
    /// Transaction deadline, 4 bytes little-endian (6).
    MrtDeadline,
    /// Task id of a query, 8 bytes (7).
    TaskId,
    /// Socket timeout in milliseconds, 4 bytes (9).
    SocketTimeout,
    /// Records per second, 4 bytes (10).
    RecordsPerSecond,
    /// Partition ids, 2 bytes little-endian each (11).
    PartitionIds,
    /// Digests to resume after, 20 bytes each (12).
    DigestArray,
    /// Most records wanted, 8 bytes (13).
    MaxRecords,
    /// Last-update time (XDR), 8 bytes (14).
    LastUpdateTime,
    /// Bin values of an index query, 8 bytes little-endian each (15).
    BinValueArray,
    /// Index name (21).
    IndexName,
    /// Range of an index query (22).
    IndexRange,
    /// Context of an index, msgpack (23).
    IndexContext,
    /// Expression of an index, msgpack (24).
    IndexExpression,
    /// Collection type of an index, 1 byte (26).
    IndexType,
    /// UDF module name (30).
    UdfPackage,
    /// UDF function name (31).
    UdfFunction,
    /// UDF arguments, a msgpack list (32).
    UdfArguments,
    /// How a UDF runs, 1 byte: record, aggregate, background (33).
    UdfOp,
    /// Bin list of an old client's query (40).
    QueryBins,
    /// Rows of a batch (41).
    Batch,
    /// Rows of a batch, the same layout (42).
    BatchWithSet,
    /// Filter expression, msgpack (43).
    Filter,
    /// A type without a name here; servers ignore it.
    Other(u8),
}

impl FieldKind {
    /// The meaning of a byte; an unknown one is kept.
    #[must_use]
    #[inline]
    pub const fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Namespace,
            1 => Self::Set,
            2 => Self::Key,
            3 => Self::RecordVersion,
            4 => Self::Digest,
            5 => Self::MrtId,
            6 => Self::MrtDeadline,
            7 => Self::TaskId,
            9 => Self::SocketTimeout,
            10 => Self::RecordsPerSecond,
            11 => Self::PartitionIds,
            12 => Self::DigestArray,
            13 => Self::MaxRecords,
            14 => Self::LastUpdateTime,
            15 => Self::BinValueArray,
            21 => Self::IndexName,
            22 => Self::IndexRange,
            23 => Self::IndexContext,
            24 => Self::IndexExpression,
            26 => Self::IndexType,
            30 => Self::UdfPackage,
            31 => Self::UdfFunction,
            32 => Self::UdfArguments,
            33 => Self::UdfOp,
            40 => Self::QueryBins,
            41 => Self::Batch,
            42 => Self::BatchWithSet,
            43 => Self::Filter,
            other => Self::Other(other),
        }
    }

    /// The byte on the wire.
    #[must_use]
    #[inline]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Namespace => 0,
            Self::Set => 1,
            Self::Key => 2,
            Self::RecordVersion => 3,
            Self::Digest => 4,
            Self::MrtId => 5,
            Self::MrtDeadline => 6,
            Self::TaskId => 7,
            Self::SocketTimeout => 9,
            Self::RecordsPerSecond => 10,
            Self::PartitionIds => 11,
            Self::DigestArray => 12,
            Self::MaxRecords => 13,
            Self::LastUpdateTime => 14,
            Self::BinValueArray => 15,
            Self::IndexName => 21,
            Self::IndexRange => 22,
            Self::IndexContext => 23,
            Self::IndexExpression => 24,
            Self::IndexType => 26,
            Self::UdfPackage => 30,
            Self::UdfFunction => 31,
            Self::UdfArguments => 32,
            Self::UdfOp => 33,
            Self::QueryBins => 40,
            Self::Batch => 41,
            Self::BatchWithSet => 42,
            Self::Filter => 43,
            Self::Other(other) => other,
        }
    }
}

/// One field, borrowed from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// What the data is.
    pub kind: FieldKind,
    /// The data, without size and type.
    pub data: &'a [u8],
}

/// The fields of a message or batch row, in wire order.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Fields<'a> {
    /// Fields over bytes that hold nothing else.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            cursor: Cursor::new(bytes),
        }
    }

    /// The data of the first field of a kind.
    #[inline]
    pub(crate) fn find_kind(mut self, kind: FieldKind) -> Option<&'a [u8]> {
        self.find(|field| field.kind == kind)
            .map(|field| field.data)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        let (&kind, data) = self.cursor.sized_u32()?.split_first()?;
        Some(Field {
            kind: FieldKind::from_byte(kind),
            data,
        })
    }
}

/// Cuts `count` fields off the cursor; `None` when a size is zero or overruns the bytes.
#[inline]
pub(crate) fn take_fields<'a>(cursor: &mut Cursor<'a>, count: u16) -> Option<&'a [u8]> {
    let before = cursor.rest();
    let mut len = 0;
    for _ in 0..count {
        let field = cursor.sized_u32()?;
        if field.is_empty() {
            return None;
        }
        len += 4 + field.len();
    }
    before.get(..len)
}

#[cfg(test)]
mod tests {
    use super::FieldKind;

    #[test]
    fn every_byte_survives() {
        for byte in 0..=u8::MAX {
            assert_eq!(FieldKind::from_byte(byte).byte(), byte);
        }
    }
}
