//! Templates of batch reads.

use bytes::{BufMut, BytesMut};

use super::{Target, read_header};
use crate::aerospike::batch::{RowHead, put_repeat, put_row_body};
use crate::aerospike::digest::Digest;
use crate::aerospike::flags::{BatchFlags, Info1};
use crate::aerospike::message::{
    FieldKind, MESSAGE_HEADER_LEN, MessageWriter, OpCode, ParticleType,
};
use crate::aerospike::proto::{FrameStart, HEADER_LEN, Kind, begin_frame, finish_frame};
use crate::aerospike::writer::wire_len;

/// A batch of reads with its rows left open.
#[derive(Debug, Clone)]
pub struct BatchTemplate {
    /// Frame, message header and the batch field up to its flags.
    prefix: Box<[u8]>,
    /// What follows the digest of the first row.
    first_row: Box<[u8]>,
}

/// What a batch reads of every record.
#[derive(Debug, Clone, Copy)]
pub enum BatchRead<'a> {
    /// All bins.
    AllBins,
    /// These bins.
    Bins(&'a [&'a [u8]]),
    /// Generation and expiry only.
    NoBins,
}

impl BatchTemplate {
    /// A batch of reads, with the flags of a client that wants an answer to every row.
    #[must_use]
    pub fn read(target: &Target<'_>, what: BatchRead<'_>) -> Self {
        let flags = BatchFlags::INLINE | BatchFlags::RESPOND_ALL | BatchFlags::REPORT_ERROR_ROW;
        Self::read_with_flags(target, what, flags)
    }

    /// A batch of reads.
    #[must_use]
    pub fn read_with_flags(target: &Target<'_>, what: BatchRead<'_>, flags: BatchFlags) -> Self {
        let header = read_header(target, Info1::BATCH);
        let mut prefix = BytesMut::new();
        let frame = begin_frame(Kind::Message, &mut prefix);
        let mut message = MessageWriter::begin(&mut prefix, &header);
        message.field(FieldKind::Batch, &[0, 0, 0, 0, flags.bits()]);
        message.finish();
        finish_frame(frame, &mut prefix);

        let (info1, names) = match what {
            BatchRead::AllBins => (Info1::READ | Info1::GET_ALL, &[][..]),
            BatchRead::Bins(names) => (Info1::READ, names),
            BatchRead::NoBins => (Info1::READ | Info1::NO_BINS, &[][..]),
        };
        let mut first_row = BytesMut::new();
        put_row_body(&RowHead::read(info1), &mut first_row, |row| {
            row.field(FieldKind::Namespace, target.namespace);
            // The C client sends the set even when it is empty.
            row.field(FieldKind::Set, target.set);
            for name in names {
                row.op(OpCode::Read, ParticleType::Nil, name, &[]);
            }
        });
        Self {
            prefix: prefix[..].into(),
            first_row: first_row[..].into(),
        }
    }

    /// Appends a batch over these records; the first row is written in full, the others repeat it.
    /// The answer's rows carry the index given here.
    ///
    /// # Panics
    /// When the batch is 4 GiB or larger.
    pub fn emit<'d>(&self, rows: impl IntoIterator<Item = (u32, &'d Digest)>, out: &mut BytesMut) {
        let start = out.len();
        out.put_slice(&self.prefix);
        let mut count: u32 = 0;
        for (index, digest) in rows {
            if count == 0 {
                out.put_u32(index);
                out.put_slice(digest);
                out.put_slice(&self.first_row);
            } else {
                put_repeat(index, digest, out);
            }
            count += 1;
        }
        let field_at = start + HEADER_LEN + MESSAGE_HEADER_LEN;
        if let Some(field) = out.get_mut(field_at..) {
            let size = wire_len(field.len().saturating_sub(4));
            if let Some([s0, s1, s2, s3, _kind, c0, c1, c2, c3]) = field.first_chunk_mut::<9>() {
                [*s0, *s1, *s2, *s3] = size.to_be_bytes();
                [*c0, *c1, *c2, *c3] = count.to_be_bytes();
            }
        }
        finish_frame(FrameStart::at(start, Kind::Message), out);
    }
}
