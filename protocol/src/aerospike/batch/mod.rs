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
//! [`BatchFlags`]: super::BatchFlags
//! [`Info1::BATCH`]: super::message::Info1::BATCH
//! [`Info3::LAST`]: super::message::Info3::LAST

mod head;
mod view;
mod writer;

pub use head::{RowHead, RowKind};
pub use view::{BatchError, BatchView, Row, Rows};
pub use writer::{BatchWriter, RowWriter};
pub(crate) use writer::{put_repeat, put_row_body};

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::super::digest::{DIGEST_LEN, Digest};
    use super::super::flags::{BatchFlags, Info1};
    use super::super::message::{FieldKind, OpCode, ParticleType};
    use super::super::result_code::ResultCode;
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
