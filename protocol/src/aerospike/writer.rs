//! Writing messages: header first, then fields, then operations; counts are filled in at the end.

use bytes::{BufMut, BytesMut};

use super::message::{FieldKind, MESSAGE_HEADER_LEN, MessageHeader, OpCode, ParticleType};
use super::op::OP_HEAD_LEN;
use super::proto::{FrameStart, HEADER_LEN, Kind, begin_frame, finish_frame, put_header};

/// Offset of the two counts in a message.
const COUNTS_AT: usize = 18;

/// An open message inside a buffer; fields must be written before operations.
///
/// ```
/// use bytes::BytesMut;
/// use kvlab_protocol::aerospike::message::*;
///
/// let mut out = BytesMut::new();
/// put_message_frame(&mut out, &MessageHeader::EMPTY, |message| {
///     message.field(FieldKind::Namespace, b"test");
///     message.op(OpCode::Read, ParticleType::Nil, b"a", b"");
/// });
/// let view = MessageView::parse(&out[8..]).unwrap();
/// assert_eq!(view.field(FieldKind::Namespace), Some(&b"test"[..]));
/// assert_eq!(view.header().n_ops, 1);
/// ```
#[derive(Debug)]
#[must_use = "a message must be finished, or its counts stay zero"]
pub struct MessageWriter<'a> {
    out: &'a mut BytesMut,
    start: MessageStart,
}

/// Where an open message began in its buffer and what was counted so far. Use it in place of
/// [`MessageWriter`] where the buffer cannot stay borrowed.
#[derive(Debug, Clone, Copy)]
pub struct MessageStart {
    at: usize,
    /// Fields written so far.
    pub n_fields: u16,
    /// Operations written so far.
    pub n_ops: u16,
}

impl<'a> MessageWriter<'a> {
    /// Writes the header, its counts as zero, and leaves the message open.
    #[inline]
    pub fn begin(out: &'a mut BytesMut, header: &MessageHeader) -> Self {
        let start = begin_message(header, out);
        Self { out, start }
    }

    /// Adds a field.
    ///
    /// # Panics
    /// When the data is 4 GiB or more, or this is the 65536th field.
    #[inline]
    pub fn field(&mut self, kind: FieldKind, data: &[u8]) {
        self.out.put_u32(wire_len(data.len() + 1));
        self.out.put_u8(kind.byte());
        self.out.put_slice(data);
        self.count_field();
    }

    /// Adds a field whose data `write` appends to the buffer.
    ///
    /// # Panics
    /// As [`MessageWriter::field`].
    pub fn field_with(&mut self, kind: FieldKind, write: impl FnOnce(&mut BytesMut)) {
        let at = self.out.len();
        self.out.put_u32(0);
        self.out.put_u8(kind.byte());
        write(self.out);
        patch_u32_len(self.out, at);
        self.count_field();
    }

    /// Adds an operation with flags zero.
    ///
    /// # Panics
    /// When the name is longer than 255 bytes, the value 4 GiB or more, or this is the 65536th
    /// operation.
    #[inline]
    pub fn op(&mut self, op: OpCode, particle: ParticleType, name: &[u8], value: &[u8]) {
        self.op_with_flags(op, particle, 0, name, value);
    }

    /// Adds an operation.
    ///
    /// # Panics
    /// As [`MessageWriter::op`].
    #[inline]
    pub fn op_with_flags(
        &mut self,
        op: OpCode,
        particle: ParticleType,
        flags: u8,
        name: &[u8],
        value: &[u8],
    ) {
        self.out
            .put_u32(wire_len(OP_HEAD_LEN + name.len() + value.len()));
        self.out
            .put_slice(&[op.byte(), particle.byte(), flags, name_len(name)]);
        self.out.put_slice(name);
        self.out.put_slice(value);
        self.count_op();
    }

    /// Adds an operation whose value `write` appends to the buffer.
    ///
    /// # Panics
    /// As [`MessageWriter::op`].
    pub fn op_with(
        &mut self,
        op: OpCode,
        particle: ParticleType,
        name: &[u8],
        write: impl FnOnce(&mut BytesMut),
    ) {
        let at = self.out.len();
        self.out.put_u32(0);
        self.out
            .put_slice(&[op.byte(), particle.byte(), 0, name_len(name)]);
        self.out.put_slice(name);
        write(self.out);
        patch_u32_len(self.out, at);
        self.count_op();
    }

    /// How long the buffer is now, for templates that remember places in it.
    pub(crate) fn position(&self) -> usize {
        self.out.len()
    }

    /// Fills in the counts.
    #[inline]
    pub fn finish(self) {
        finish_message(self.start, self.out);
    }

    fn count_field(&mut self) {
        self.start.n_fields = self
            .start
            .n_fields
            .checked_add(1)
            .expect("at most 65535 fields");
    }

    fn count_op(&mut self) {
        self.start.n_ops = self
            .start
            .n_ops
            .checked_add(1)
            .expect("at most 65535 operations");
    }
}

/// Writes a header with zero counts; [`finish_message`] fills them in.
#[inline]
pub fn begin_message(header: &MessageHeader, out: &mut BytesMut) -> MessageStart {
    let at = out.len();
    out.put_slice(
        &MessageHeader {
            n_fields: 0,
            n_ops: 0,
            ..*header
        }
        .encode(),
    );
    MessageStart {
        at,
        n_fields: 0,
        n_ops: 0,
    }
}

/// Fills in the counts of the message begun at `start`.
#[inline]
pub fn finish_message(start: MessageStart, out: &mut BytesMut) {
    let [f0, f1] = start.n_fields.to_be_bytes();
    let [o0, o1] = start.n_ops.to_be_bytes();
    if let Some(counts) = out.get_mut(start.at + COUNTS_AT..start.at + MESSAGE_HEADER_LEN) {
        counts.copy_from_slice(&[f0, f1, o0, o1]);
    }
}

/// Writes a whole frame with one message; `write` adds its fields and operations.
#[inline]
pub fn put_message_frame(
    out: &mut BytesMut,
    header: &MessageHeader,
    write: impl FnOnce(&mut MessageWriter<'_>),
) {
    let frame: FrameStart = begin_frame(Kind::Message, out);
    let mut message = MessageWriter::begin(out, header);
    write(&mut message);
    message.finish();
    finish_frame(frame, out);
}

/// Writes a whole frame with a message that has neither fields nor operations: the answer of every
/// plain write and of every error.
#[inline]
pub fn put_header_only(out: &mut BytesMut, header: &MessageHeader) {
    out.reserve(HEADER_LEN + MESSAGE_HEADER_LEN);
    put_header(Kind::Message, MESSAGE_HEADER_LEN as u64, out);
    out.put_slice(
        &MessageHeader {
            n_fields: 0,
            n_ops: 0,
            ..*header
        }
        .encode(),
    );
}

/// Writes everything of an operation but its value, of which `value_len` bytes must follow. For
/// servers that stream stored values; the caller counts the operation in [`MessageStart::n_ops`].
///
/// # Panics
/// As [`MessageWriter::op`].
#[inline]
pub fn put_op_head(
    op: OpCode,
    particle: ParticleType,
    name: &[u8],
    value_len: usize,
    out: &mut BytesMut,
) {
    out.put_u32(wire_len(OP_HEAD_LEN + name.len() + value_len));
    out.put_slice(&[op.byte(), particle.byte(), 0, name_len(name)]);
    out.put_slice(name);
}

/// Writes a whole operation.
#[inline]
pub(crate) fn put_op(
    op: OpCode,
    particle: ParticleType,
    flags: u8,
    name: &[u8],
    value: &[u8],
    out: &mut BytesMut,
) {
    out.put_u32(wire_len(OP_HEAD_LEN + name.len() + value.len()));
    out.put_slice(&[op.byte(), particle.byte(), flags, name_len(name)]);
    out.put_slice(name);
    out.put_slice(value);
}

/// A length as four bytes; frames end far below the limit of that.
#[inline]
pub(crate) fn wire_len(len: usize) -> u32 {
    u32::try_from(len).expect("a message part is shorter than 4 GiB")
}

/// Writes at `at` how many bytes follow these four.
pub(crate) fn patch_u32_len(out: &mut BytesMut, at: usize) {
    if let Some((len, rest)) = out
        .get_mut(at..)
        .and_then(|part| part.split_first_chunk_mut())
    {
        *len = wire_len(rest.len()).to_be_bytes();
    }
}

#[inline]
fn name_len(name: &[u8]) -> u8 {
    u8::try_from(name.len()).expect("a bin name is shorter than 256 bytes")
}

#[cfg(test)]
mod tests {
    use super::super::message::{Info1, Info2, MessageView};
    use super::super::result_code::ResultCode;
    use super::*;

    #[test]
    fn put_example_of_the_protocol_description() {
        let header = MessageHeader {
            info2: Info2::WRITE,
            transaction_ttl: 1000,
            ..MessageHeader::EMPTY
        };
        let digest = [
            0xd9, 0xb9, 0x56, 0xfc, 0x25, 0x6f, 0x8d, 0xe9, 0x8a, 0x24, 0x73, 0xe4, 0xce, 0x35,
            0x47, 0x18, 0x0a, 0x3f, 0xd7, 0x78,
        ];
        let mut out = BytesMut::new();
        put_message_frame(&mut out, &header, |message| {
            message.field(FieldKind::Namespace, b"test");
            message.field(FieldKind::Set, b"s1");
            message.field(FieldKind::Digest, &digest);
            message.op(
                OpCode::Write,
                ParticleType::Integer,
                b"a",
                &1_u64.to_be_bytes(),
            );
        });
        let mut expected = vec![2, 3, 0, 0, 0, 0, 0, 0x50, 22, 0, 1, 0, 0, 0];
        expected.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0xe8, 0, 3, 0, 1]);
        expected.extend(b"\0\0\0\x05\0test\0\0\0\x03\x01s1\0\0\0\x15\x04");
        expected.extend(digest);
        expected.extend(b"\0\0\0\x0d\x02\x01\0\x01a\0\0\0\0\0\0\0\x01");
        assert_eq!(&out[..], expected);
    }

    #[test]
    fn parts_written_by_closure_have_the_same_bytes() {
        let header = MessageHeader {
            info1: Info1::READ,
            ..MessageHeader::EMPTY
        };
        let (mut plain, mut closure) = (BytesMut::new(), BytesMut::new());
        put_message_frame(&mut plain, &header, |message| {
            message.field(FieldKind::Filter, b"xy");
            message.op(OpCode::Write, ParticleType::String, b"name", b"value");
        });
        put_message_frame(&mut closure, &header, |message| {
            message.field_with(FieldKind::Filter, |out| out.put_slice(b"xy"));
            message.op_with(OpCode::Write, ParticleType::String, b"name", |out| {
                out.put_slice(b"value");
            });
        });
        assert_eq!(plain, closure);
    }

    #[test]
    fn op_head_and_value_make_an_op() {
        let mut out = BytesMut::new();
        let mut start = begin_message(&MessageHeader::EMPTY, &mut out);
        put_op_head(OpCode::Read, ParticleType::Blob, b"b", 2, &mut out);
        out.put_slice(&[8, 9]);
        start.n_ops += 1;
        finish_message(start, &mut out);
        let op = MessageView::parse(&out).unwrap().ops().next().unwrap();
        assert_eq!((op.name, op.value), (&b"b"[..], &[8, 9][..]));
    }

    #[test]
    fn header_only_answer_has_thirty_bytes() {
        let mut out = BytesMut::new();
        put_header_only(&mut out, &MessageHeader::answer(ResultCode::NotFound));
        assert_eq!(out.len(), 30);
        let view = MessageView::parse(&out[8..]).unwrap();
        assert_eq!(view.header().result, ResultCode::NotFound);
    }
}
