//! Batch requests: many rows in one field.
//!
//! A batch is a message with [`Info1::BATCH`] and one field of kind
//! [`FieldKind::Batch`] (or `BatchWithSet`, the same layout):
//!
//! | bytes | meaning |
//! |---|---|
//! | 4 | number of rows |
//! | 1 | [`BatchFlags`] |
//! | rest | rows |
//!
//! A row is 4 bytes of index (echoed in the answer), 20 bytes of digest and a byte of [`RowKind`].
//! Bit 01 repeats everything of the row before. Otherwise follow: info1 (kind 00), or info1 to
//! info3 (bit 02), info4 (bit 10), a generation of 2 bytes (bit 04), a ttl of 4 bytes (bit 08);
//! then 2 bytes of field count, 2 bytes of operation count, fields and operations.
//!
//! The answer is one or more frames of row messages, whose
//! [`transaction_ttl`](super::message::MessageHeader::transaction_ttl) is the row index, and a last
//! message with [`Info3::LAST`] and the outcome of the whole batch.
//!
//! [`FieldKind::Batch`]: super::message::FieldKind::Batch

use bytes::{BufMut, BytesMut};

use super::digest::{DIGEST_LEN, Digest};
use super::field::{FieldKind, Fields, take_fields};
use super::flags::{BatchFlags, Info1, Info2, Info3, Info4};
use super::op::{OpCode, Ops, ParticleType, take_ops};
use super::result_code::ResultCode;
use super::writer::{put_op_head, wire_len};
use crate::cursor::Cursor;

/// Bytes of the smallest row: index, digest and kind of a repeat.
const ROW_LEN_MIN: usize = 4 + DIGEST_LEN + 1;

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

    fn decode(kind: RowKind, cursor: &mut Cursor<'_>) -> Option<Self> {
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

    fn encode(&self, out: &mut BytesMut) {
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

/// A batch field that does not hold together. A server answers with a single last message and no
/// rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The field is shorter than count and flags.
    #[error("batch field of {found} bytes has no room for count and flags")]
    Short {
        /// Bytes found.
        found: usize,
    },
    /// No rows are announced.
    #[error("batch of zero rows")]
    NoRows,
    /// More rows are announced than can follow, or a row ends early.
    #[error("batch row {row} of {announced} does not fit the field")]
    Row {
        /// Position of the row, from 0.
        row: u32,
        /// How many rows were announced.
        announced: u32,
    },
    /// The first row repeats.
    #[error("first batch row repeats the row before")]
    RepeatFirst,
}

impl BatchError {
    /// What a server answers.
    #[must_use]
    pub const fn result_code(self) -> ResultCode {
        ResultCode::Parameter
    }
}

/// One row; a repeated one shows what it repeats.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The client's number for the row; answers carry it.
    pub index: u32,
    /// Which record.
    pub digest: &'a Digest,
    /// Whether everything else was taken from an earlier row.
    pub repeat: bool,
    body: RowBody<'a>,
}

#[derive(Debug, Clone, Copy)]
struct RowBody<'a> {
    head: RowHead,
    n_fields: u16,
    n_ops: u16,
    fields: &'a [u8],
    ops: &'a [u8],
}

impl<'a> Row<'a> {
    /// Flags, generation and ttl.
    #[must_use]
    pub const fn head(&self) -> &RowHead {
        &self.body.head
    }

    /// How many fields the row has.
    #[must_use]
    pub const fn n_fields(&self) -> u16 {
        self.body.n_fields
    }

    /// How many operations the row has.
    #[must_use]
    pub const fn n_ops(&self) -> u16 {
        self.body.n_ops
    }

    /// The fields in wire order.
    pub const fn fields(&self) -> Fields<'a> {
        Fields::new(self.body.fields)
    }

    /// The data of the first field of this kind.
    #[must_use]
    pub fn field(&self, kind: FieldKind) -> Option<&'a [u8]> {
        self.fields().find_kind(kind)
    }

    /// The operations in wire order.
    pub const fn ops(&self) -> Ops<'a> {
        Ops::new(self.body.ops)
    }
}

/// The rows of a batch field.
#[derive(Debug, Clone)]
pub struct BatchView<'a> {
    count: u32,
    flags: BatchFlags,
    rows: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// Reads count and flags; the rows are read by [`rows`](Self::rows).
    ///
    /// # Errors
    /// [`BatchError`] when there are no rows, or so many that they cannot fit.
    pub fn parse(data: &'a [u8]) -> Result<Self, BatchError> {
        let short = BatchError::Short { found: data.len() };
        let mut cursor = Cursor::new(data);
        let count = cursor.u32().ok_or(short)?;
        let flags = BatchFlags::from_bits_retain(cursor.u8().ok_or(short)?);
        let rows = cursor.rest();
        if count == 0 {
            return Err(BatchError::NoRows);
        }
        let fitting = u32::try_from(rows.len() / ROW_LEN_MIN).unwrap_or(u32::MAX);
        if count > fitting {
            return Err(BatchError::Row {
                row: fitting,
                announced: count,
            });
        }
        Ok(Self { count, flags, rows })
    }

    /// How many rows are announced; at most one for 25 bytes of the field.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// Whether there are no rows; never true for a parsed field.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The flag byte.
    #[must_use]
    pub const fn flags(&self) -> BatchFlags {
        self.flags
    }

    /// The rows in wire order; after an error the iterator ends.
    pub const fn rows(&self) -> Rows<'a> {
        Rows {
            cursor: Cursor::new(self.rows),
            row: 0,
            announced: self.count,
            before: None,
        }
    }

    /// Reads all rows once: a server answers no row at all when one of them is malformed.
    ///
    /// # Errors
    /// The first error of [`rows`](Self::rows).
    pub fn check(&self) -> Result<(), BatchError> {
        self.rows().try_for_each(|row| row.map(drop))
    }
}

/// The rows of a batch, see [`BatchView::rows`].
#[derive(Debug, Clone)]
pub struct Rows<'a> {
    cursor: Cursor<'a>,
    row: u32,
    announced: u32,
    before: Option<RowBody<'a>>,
}

impl<'a> Rows<'a> {
    /// Bytes behind the rows read so far.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    fn read(&mut self) -> Result<Row<'a>, BatchError> {
        let short = BatchError::Row {
            row: self.row,
            announced: self.announced,
        };
        let index = self.cursor.u32().ok_or(short)?;
        let digest = self.cursor.array::<DIGEST_LEN>().ok_or(short)?;
        let kind = RowKind::from_bits_retain(self.cursor.u8().ok_or(short)?);
        let repeat = kind.contains(RowKind::REPEAT);
        let body = if repeat {
            self.before.ok_or(BatchError::RepeatFirst)?
        } else {
            row_body(kind, &mut self.cursor).ok_or(short)?
        };
        self.before = Some(body);
        Ok(Row {
            index,
            digest,
            repeat,
            body,
        })
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.row >= self.announced {
            return None;
        }
        let row = self.read();
        self.row = if row.is_ok() {
            self.row + 1
        } else {
            self.announced
        };
        Some(row)
    }
}

fn row_body<'a>(kind: RowKind, cursor: &mut Cursor<'a>) -> Option<RowBody<'a>> {
    let head = RowHead::decode(kind, cursor)?;
    let n_fields = cursor.u16()?;
    let n_ops = cursor.u16()?;
    let fields = take_fields(cursor, n_fields)?;
    let ops = take_ops(cursor, n_ops)?;
    Some(RowBody {
        head,
        n_fields,
        n_ops,
        fields,
        ops,
    })
}

/// Writes the data of a batch field; use it inside
/// [`MessageWriter::field_with`](super::message::MessageWriter::field_with).
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
        put_op_head(op, particle, name, value.len(), self.out);
        self.out.put_slice(value);
        self.n_ops = self.n_ops.checked_add(1).expect("at most 65535 operations");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST_A: Digest = [0xaa; DIGEST_LEN];
    const DIGEST_B: Digest = [0xbb; DIGEST_LEN];

    fn example() -> BytesMut {
        let mut out = BytesMut::new();
        let mut batch = BatchWriter::begin(&mut out, BatchFlags::INLINE | BatchFlags::RESPOND_ALL);
        batch.row(
            7,
            &DIGEST_A,
            &RowHead::read(Info1::READ | Info1::NO_BINS),
            |row| {
                row.field(FieldKind::Namespace, b"test");
                row.field(FieldKind::Set, b"bs");
            },
        );
        batch.repeat(3, &DIGEST_B);
        batch.finish();
        out
    }

    #[test]
    fn rows_are_laid_out_as_a_real_client_does() {
        let mut expected = vec![0, 0, 0, 2, 5, 0, 0, 0, 7];
        expected.extend(DIGEST_A);
        expected.extend([0x0a, 0x21, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0]);
        expected.extend(b"\0\0\0\x05\0test\0\0\0\x03\x01bs\0\0\0\x03");
        expected.extend(DIGEST_B);
        expected.push(1);
        assert_eq!(example(), expected);
    }

    #[test]
    fn repeated_rows_show_what_they_repeat() {
        let data = example();
        let batch = BatchView::parse(&data).unwrap();
        assert_eq!((batch.len(), batch.check()), (2, Ok(())));
        let rows: Vec<_> = batch.rows().map(Result::unwrap).collect();
        assert_eq!((rows[0].index, rows[1].index), (7, 3));
        assert_eq!((rows[0].digest, rows[1].digest), (&DIGEST_A, &DIGEST_B));
        assert_eq!((rows[0].repeat, rows[1].repeat), (false, true));
        assert_eq!(rows[1].field(FieldKind::Set), Some(&b"bs"[..]));
        assert_eq!(rows[1].head(), rows[0].head());
    }

    #[test]
    fn every_row_kind_round_trips() {
        for bits in (0..=0xff).filter(|bits| bits & 1 == 0) {
            let mut head = RowHead::old_read(Info1::READ);
            head.kind = RowKind::from_bits_retain(bits);
            if bits != 0 && !head.kind.contains(RowKind::INFO) {
                head.info1 = Info1::empty();
            }
            let mut out = BytesMut::new();
            let mut batch = BatchWriter::begin(&mut out, BatchFlags::empty());
            batch.row(1, &DIGEST_A, &head, |row| {
                row.op(OpCode::Read, ParticleType::Nil, b"a", b"");
            });
            batch.finish();
            let batch = BatchView::parse(&out).unwrap();
            let row = batch.rows().next().unwrap().unwrap();
            assert_eq!(row.head(), &head);
            assert_eq!((row.n_fields(), row.n_ops()), (0, 1));
            assert_eq!(row.ops().next().unwrap().name, b"a");
        }
    }

    #[test]
    fn broken_batches_are_errors() {
        let error = |data: &[u8]| match BatchView::parse(data) {
            Ok(batch) => batch.check().unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error(&[0, 0, 0]), BatchError::Short { found: 3 });
        assert_eq!(error(&[0, 0, 0, 0, 13]), BatchError::NoRows);
        assert_eq!(
            error(&[0xff; 50]),
            BatchError::Row {
                row: 1,
                announced: u32::MAX
            }
        );
        let mut first_repeats = vec![0, 0, 0, 1, 13];
        first_repeats.extend([0; 24]);
        first_repeats.push(1);
        assert_eq!(error(&first_repeats), BatchError::RepeatFirst);
        let mut data = example();
        data.truncate(data.len() - 1);
        assert_eq!(
            error(&data),
            BatchError::Row {
                row: 1,
                announced: 2
            }
        );
        assert_eq!(error(&data).result_code(), ResultCode::Parameter);
    }
}
