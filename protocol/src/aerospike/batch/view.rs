//! Reading the rows of a batch field, without copying.

use super::{RowHead, RowKind};
use crate::aerospike::digest::{DIGEST_LEN, Digest};
use crate::aerospike::field::{FieldKind, Fields, take_fields};
use crate::aerospike::flags::BatchFlags;
use crate::aerospike::op::{Ops, take_ops};
use crate::aerospike::result_code::ResultCode;
use crate::cursor::Cursor;

/// Bytes of the smallest row: index, digest and kind of a repeat.
const ROW_LEN_MIN: usize = 4 + DIGEST_LEN + 1;

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
