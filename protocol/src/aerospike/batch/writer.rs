//! Writing the rows of a batch field.

use bytes::{BufMut, BytesMut};

use super::{RowHead, RowKind};
use crate::aerospike::digest::Digest;
use crate::aerospike::field::FieldKind;
use crate::aerospike::flags::BatchFlags;
use crate::aerospike::op::{OpCode, ParticleType};
use crate::aerospike::writer::{put_op, wire_len};

/// Writes the data of a batch field; use it inside
/// [`MessageWriter::field_with`](crate::aerospike::message::MessageWriter::field_with).
#[derive(Debug)]
#[must_use = "a batch must be finished, or its count stays zero"]
pub struct BatchWriter<'a> {
    out: &'a mut BytesMut,
    at: usize,
    rows: u32,
}

impl<'a> BatchWriter<'a> {
    /// Begins with the flags.
    pub fn begin(out: &'a mut BytesMut, flags: BatchFlags) -> Self {
        let at = out.len();
        out.put_u32(0);
        out.put_u8(flags.bits());
        Self { out, at, rows: 0 }
    }

    /// Adds a row that repeats the one before.
    pub fn repeat(&mut self, index: u32, digest: &Digest) {
        self.rows += 1;
        put_repeat(index, digest, self.out);
    }

    /// Adds a row; `write` adds its fields and operations.
    pub fn row(
        &mut self,
        index: u32,
        digest: &Digest,
        head: &RowHead,
        write: impl FnOnce(&mut RowWriter<'_>),
    ) {
        self.rows += 1;
        self.out.put_u32(index);
        self.out.put_slice(digest);
        put_row_body(head, self.out, write);
    }

    /// Fills in the count.
    pub fn finish(self) {
        if let Some(count) = self
            .out
            .get_mut(self.at..)
            .and_then(<[u8]>::first_chunk_mut)
        {
            *count = self.rows.to_be_bytes();
        }
    }
}

/// Writes a row that repeats the one before.
pub(crate) fn put_repeat(index: u32, digest: &Digest, out: &mut BytesMut) {
    out.put_u32(index);
    out.put_slice(digest);
    out.put_u8(RowKind::REPEAT.bits());
}

/// Writes everything of a row behind its digest.
pub(crate) fn put_row_body(
    head: &RowHead,
    out: &mut BytesMut,
    write: impl FnOnce(&mut RowWriter<'_>),
) {
    head.encode(out);
    let at = out.len();
    out.put_u32(0);
    let mut row = RowWriter {
        out,
        n_fields: 0,
        n_ops: 0,
    };
    write(&mut row);
    let [f0, f1] = row.n_fields.to_be_bytes();
    let [o0, o1] = row.n_ops.to_be_bytes();
    if let Some(counts) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *counts = [f0, f1, o0, o1];
    }
}

/// Adds fields and then operations to a row.
#[derive(Debug)]
pub struct RowWriter<'a> {
    out: &'a mut BytesMut,
    n_fields: u16,
    n_ops: u16,
}

impl RowWriter<'_> {
    /// Adds a field.
    ///
    /// # Panics
    /// When this is the 65536th field.
    pub fn field(&mut self, kind: FieldKind, data: &[u8]) {
        self.out.put_u32(wire_len(data.len() + 1));
        self.out.put_u8(kind.byte());
        self.out.put_slice(data);
        self.n_fields = self.n_fields.checked_add(1).expect("at most 65535 fields");
    }

    /// Adds an operation.
    ///
    /// # Panics
    /// When the name is longer than 255 bytes, or this is the 65536th operation.
    pub fn op(&mut self, op: OpCode, particle: ParticleType, name: &[u8], value: &[u8]) {
        self.op_with_flags(op, particle, 0, name, value);
    }

    /// Adds an operation with its flag byte.
    ///
    /// # Panics
    /// As [`RowWriter::op`].
    pub fn op_with_flags(
        &mut self,
        op: OpCode,
        particle: ParticleType,
        flags: u8,
        name: &[u8],
        value: &[u8],
    ) {
        put_op(op, particle, flags, name, value, self.out);
        self.n_ops = self.n_ops.checked_add(1).expect("at most 65535 operations");
    }
}
