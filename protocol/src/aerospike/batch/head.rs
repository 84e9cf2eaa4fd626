//! What a batch row says before its fields: flags, generation, ttl.

use bytes::{BufMut, BytesMut};

use crate::aerospike::flags::{Info1, Info2, Info3, Info4};
use crate::cursor::Cursor;

bitflags::bitflags! {
    /// What follows a row's digest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct RowKind: u8 {
        /// Nothing: everything is as in the row before.
        const REPEAT = 0x01;
        /// Three flag bytes; without any bit it is one.
        const INFO = 0x02;
        /// A generation.
        const GENERATION = 0x04;
        /// A ttl.
        const TTL = 0x08;
        /// A fourth flag byte.
        const INFO4 = 0x10;
    }
}

/// What a row says before its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowHead {
    /// Which of the following are on the wire; those that are not are zero.
    pub kind: RowKind,
    /// First flag byte.
    pub info1: Info1,
    /// Second flag byte.
    pub info2: Info2,
    /// Third flag byte.
    pub info3: Info3,
    /// Fourth flag byte.
    pub info4: Info4,
    /// Expected generation.
    pub generation: u16,
    /// Ttl of a write, read-touch percentage of a read.
    pub ttl: u32,
}

impl RowHead {
    /// A read row as old clients write it: one flag byte.
    #[must_use]
    pub const fn old_read(info1: Info1) -> Self {
        Self {
            kind: RowKind::empty(),
            info1,
            info2: Info2::empty(),
            info3: Info3::empty(),
            info4: Info4::empty(),
            generation: 0,
            ttl: 0,
        }
    }

    /// A read row as today's clients write it: three flag bytes and a ttl.
    #[must_use]
    pub const fn read(info1: Info1) -> Self {
        Self {
            kind: RowKind::INFO.union(RowKind::TTL),
            ..Self::old_read(info1)
        }
    }

    /// A row that writes: three flag bytes, generation and ttl. [`Info2::WRITE`] is added.
    #[must_use]
    pub const fn write(info1: Info1, info2: Info2, generation: u16, ttl: u32) -> Self {
        Self {
            kind: RowKind::INFO.union(RowKind::GENERATION).union(RowKind::TTL),
            info2: info2.union(Info2::WRITE),
            generation,
            ttl,
            ..Self::old_read(info1)
        }
    }

    pub(super) fn decode(kind: RowKind, cursor: &mut Cursor<'_>) -> Option<Self> {
        let mut head = Self {
            kind,
            ..Self::old_read(Info1::empty())
        };
        if kind.is_empty() || kind.contains(RowKind::INFO) {
            head.info1 = Info1::from_bits_retain(cursor.u8()?);
        }
        if kind.contains(RowKind::INFO) {
            head.info2 = Info2::from_bits_retain(cursor.u8()?);
            head.info3 = Info3::from_bits_retain(cursor.u8()?);
        }
        if kind.contains(RowKind::INFO4) {
            head.info4 = Info4::from_bits_retain(cursor.u8()?);
        }
        if kind.contains(RowKind::GENERATION) {
            head.generation = cursor.u16()?;
        }
        if kind.contains(RowKind::TTL) {
            head.ttl = cursor.u32()?;
        }
        Some(head)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_u8(self.kind.bits());
        if self.kind.is_empty() || self.kind.contains(RowKind::INFO) {
            out.put_u8(self.info1.bits());
        }
        if self.kind.contains(RowKind::INFO) {
            out.put_u8(self.info2.bits());
            out.put_u8(self.info3.bits());
        }
        if self.kind.contains(RowKind::INFO4) {
            out.put_u8(self.info4.bits());
        }
        if self.kind.contains(RowKind::GENERATION) {
            out.put_u16(self.generation);
        }
        if self.kind.contains(RowKind::TTL) {
            out.put_u32(self.ttl);
        }
    }
}
