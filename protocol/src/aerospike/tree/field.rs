//! Fields as trees.

use bytes::{BufMut, Bytes, BytesMut};

use super::message::Operation;
use super::{Sender, TreeError};
use crate::aerospike::BatchFlags;
use crate::aerospike::batch::{BatchView, BatchWriter, Row, RowHead};
use crate::aerospike::digest::Digest;
use crate::aerospike::message::{Field, FieldKind, ParticleType};
use crate::aerospike::msgpack;
use crate::aerospike::particle::Value;
use crate::aerospike::query::{IndexRange, bin_values, digests, partition_ids};

/// The data of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldData {
    /// Text, or bytes without a known structure.
    Bytes(Bytes),
    /// A user key.
    Key(Value),
    /// A digest.
    Digest(Digest),
    /// One byte.
    U8(u8),
    /// Four bytes, big-endian.
    U32(u32),
    /// Four bytes, little-endian.
    U32Le(u32),
    /// Eight bytes, big-endian.
    U64(u64),
    /// Eight bytes, little-endian.
    U64Le(u64),
    /// Partition ids.
    PartitionIds(Vec<u16>),
    /// Digests.
    Digests(Vec<Digest>),
    /// Bin values.
    BinValues(Vec<i64>),
    /// An index range.
    Range(RangeEnds),
    /// msgpack: an expression, a context, arguments.
    Msgpack(msgpack::Value),
    /// Rows of a batch.
    Batch(BatchFlags, Vec<BatchRow>),
}

/// An index range.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeEnds {
    /// The bin.
    pub bin: Bytes,
    /// The type of both ends.
    pub particle: ParticleType,
    /// The lower end.
    pub begin: Bytes,
    /// The upper end.
    pub end: Bytes,
}

/// A row of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchRow {
    /// The client's number.
    pub index: u32,
    /// Which record.
    pub digest: Digest,
    /// Everything else; `None` when it is as in the row before.
    pub body: Option<BatchRowBody>,
}

/// What a row says that does not repeat.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchRowBody {
    /// Flags, generation and ttl.
    pub head: RowHead,
    /// The fields.
    pub fields: Vec<(FieldKind, FieldData)>,
    /// The operations.
    pub ops: Vec<Operation>,
}

impl FieldData {
    pub(super) fn decode(field: &Field<'_>) -> Result<Self, TreeError> {
        let Field { kind, data } = *field;
        Ok(match kind {
            FieldKind::Key => match data.split_first() {
                Some((&particle, bytes)) => {
                    Self::Key(Value::decode(ParticleType::from_byte(particle), bytes)?)
                }
                None => return Err(TreeError::FieldSize { kind, found: 0 }),
            },
            FieldKind::Digest => Self::Digest(fixed(field)?),
            FieldKind::IndexType | FieldKind::UdfOp => {
                let [byte] = fixed(field)?;
                Self::U8(byte)
            }
            FieldKind::SocketTimeout | FieldKind::RecordsPerSecond => {
                Self::U32(u32::from_be_bytes(fixed(field)?))
            }
            FieldKind::MrtDeadline => Self::U32Le(u32::from_le_bytes(fixed(field)?)),
            FieldKind::TaskId | FieldKind::MaxRecords | FieldKind::LastUpdateTime => {
                Self::U64(u64::from_be_bytes(fixed(field)?))
            }
            FieldKind::MrtId => Self::U64Le(u64::from_le_bytes(fixed(field)?)),
            FieldKind::PartitionIds => Self::PartitionIds(partition_ids(data)?.collect()),
            FieldKind::DigestArray => Self::Digests(digests(data)?.copied().collect()),
            FieldKind::BinValueArray => Self::BinValues(bin_values(data)?.collect()),
            FieldKind::IndexRange => Self::Range(RangeEnds::decode(data)?),
            FieldKind::IndexContext
            | FieldKind::IndexExpression
            | FieldKind::UdfArguments
            | FieldKind::Filter => Self::Msgpack(
                msgpack::Value::decode(data)
                    .map_err(|error| TreeError::FieldMsgpack { kind, error })?,
            ),
            FieldKind::Batch | FieldKind::BatchWithSet => {
                let batch = BatchView::parse(data)?;
                let rows = batch.rows().map(|row| BatchRow::decode(&row?));
                Self::Batch(batch.flags(), rows.collect::<Result<_, _>>()?)
            }
            _ => Self::Bytes(Bytes::copy_from_slice(data)),
        })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Bytes(bytes) => out.put_slice(bytes),
            Self::Key(key) => {
                out.put_u8(key.particle_type().byte());
                key.encode(out);
            }
            Self::Digest(digest) => out.put_slice(digest),
            Self::U8(byte) => out.put_u8(*byte),
            Self::U32(number) => out.put_u32(*number),
            Self::U32Le(number) => out.put_u32_le(*number),
            Self::U64(number) => out.put_u64(*number),
            Self::U64Le(number) => out.put_u64_le(*number),
            Self::PartitionIds(ids) => ids.iter().for_each(|id| out.put_u16_le(*id)),
            Self::Digests(digests) => digests.iter().for_each(|digest| out.put_slice(digest)),
            Self::BinValues(values) => values.iter().for_each(|value| out.put_i64_le(*value)),
            Self::Range(range) => range.encode(out),
            Self::Msgpack(value) => value.encode(out),
            Self::Batch(flags, rows) => {
                let mut batch = BatchWriter::begin(out, *flags);
                rows.iter().for_each(|row| row.encode(&mut batch));
                batch.finish();
            }
        }
    }
}

/// The data of a field that has exactly `N` bytes.
fn fixed<const N: usize>(field: &Field<'_>) -> Result<[u8; N], TreeError> {
    let size = TreeError::FieldSize {
        kind: field.kind,
        found: field.data.len(),
    };
    field.data.try_into().map_err(|_| size)
}

impl RangeEnds {
    fn decode(data: &[u8]) -> Result<Self, TreeError> {
        let range = IndexRange::parse(data)?;
        Ok(Self {
            bin: Bytes::copy_from_slice(range.bin),
            particle: range.particle,
            begin: Bytes::copy_from_slice(range.begin),
            end: Bytes::copy_from_slice(range.end),
        })
    }

    fn encode(&self, out: &mut BytesMut) {
        let Self {
            bin,
            particle,
            begin,
            end,
        } = self;
        IndexRange {
            bin,
            particle: *particle,
            begin,
            end,
        }
        .put(out);
    }
}

impl BatchRow {
    fn decode(row: &Row<'_>) -> Result<Self, TreeError> {
        let body = if row.repeat {
            None
        } else {
            Some(BatchRowBody::decode(row)?)
        };
        Ok(Self {
            index: row.index,
            digest: *row.digest,
            body,
        })
    }

    fn encode(&self, batch: &mut BatchWriter<'_>) {
        let Some(body) = &self.body else {
            return batch.repeat(self.index, &self.digest);
        };
        batch.row(self.index, &self.digest, &body.head, |row| {
            for (kind, data) in &body.fields {
                let mut bytes = BytesMut::new();
                data.encode(&mut bytes);
                row.field(*kind, &bytes);
            }
            for op in &body.ops {
                row.op_with_flags(op.op, op.particle, op.flags, &op.name, &op.value_bytes());
            }
        });
    }
}

impl BatchRowBody {
    fn decode(row: &Row<'_>) -> Result<Self, TreeError> {
        let fields = row.fields().map(|field| {
            // Batches do not nest; the bytes of such a field mean nothing to a server.
            let nested = matches!(field.kind, FieldKind::Batch | FieldKind::BatchWithSet);
            let data = if nested {
                FieldData::Bytes(Bytes::copy_from_slice(field.data))
            } else {
                FieldData::decode(&field)?
            };
            Ok((field.kind, data))
        });
        let ops = row.ops().map(|op| Operation::decode(Sender::Client, &op));
        Ok(Self {
            head: *row.head(),
            fields: fields.collect::<Result<_, TreeError>>()?,
            ops: ops.collect::<Result<_, _>>()?,
        })
    }
}
