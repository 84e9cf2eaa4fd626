//! The client's side: requests encoded once, patched for each record.
//!
//! A load generator sends the same request with another key a million times. A [`RecordTemplate`]
//! holds the finished bytes of one; [`RecordTemplate::emit`] copies them, writes the digest over the
//! 20 bytes reserved for it, puts the values in their slots and corrects the sizes around them. A
//! [`BatchTemplate`] does the same for a batch of reads. Neither allocates beyond the growth of the
//! output buffer.
//!
//! The layout is that of the C client: namespace, set, digest, \[user key\], operations.

use bytes::{BufMut, BytesMut};

use super::batch::{RowHead, put_repeat, put_row_body};
use super::digest::{DIGEST_LEN, Digest, Key};
use super::flags::{BatchFlags, Info1, Info2, Info3};
use super::message::{
    FieldKind, MESSAGE_HEADER_LEN, MessageHeader, MessageWriter, OpCode, ParticleType,
};
use super::proto::{FrameStart, HEADER_LEN, Kind, begin_frame, finish_frame};
use super::writer::wire_len;

/// Where requests go and what they all carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// Namespace name.
    pub namespace: &'a [u8],
    /// Set name; empty for none.
    pub set: &'a [u8],
    /// The server's time limit in milliseconds; 0 takes the server's default.
    pub timeout_ms: u32,
    /// Whether the user key is sent, so that the server stores it.
    pub send_key: bool,
}

/// What must be true of the record before a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exists {
    /// Anything: create or update.
    #[default]
    Any,
    /// It must exist.
    UpdateOnly,
    /// It must not exist.
    CreateOnly,
    /// Anything; old bins are dropped.
    CreateOrReplace,
    /// It must exist; old bins are dropped.
    ReplaceOnly,
}

/// How the stored generation is compared before a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Generation {
    /// Not at all.
    #[default]
    Any,
    /// It must be this.
    Equal(u32),
    /// It must be less than this.
    Below(u32),
}

/// The conditions and effects of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WritePolicy {
    /// Condition on existence.
    pub exists: Exists,
    /// Condition on the generation.
    pub generation: Generation,
    /// Ttl in seconds, or one of the `TTL_` values of [`limits`](super::limits).
    pub ttl: u32,
    /// Leave a tombstone (Enterprise).
    pub durable_delete: bool,
    /// Answer when the master has the write.
    pub commit_master: bool,
    /// An answer for every operation, if only an empty one.
    pub respond_all: bool,
}

impl WritePolicy {
    fn header(&self, info1: Info1, info2: Info2, timeout_ms: u32) -> MessageHeader {
        let mut header = MessageHeader {
            info1,
            info2: info2 | Info2::WRITE,
            record_ttl: self.ttl,
            transaction_ttl: timeout_ms,
            ..MessageHeader::EMPTY
        };
        match self.exists {
            Exists::Any => {}
            Exists::UpdateOnly => header.info3 |= Info3::UPDATE_ONLY,
            Exists::CreateOnly => header.info2 |= Info2::CREATE_ONLY,
            Exists::CreateOrReplace => header.info3 |= Info3::CREATE_OR_REPLACE,
            Exists::ReplaceOnly => header.info3 |= Info3::REPLACE_ONLY,
        }
        match self.generation {
            Generation::Any => {}
            Generation::Equal(generation) => {
                header.info2 |= Info2::GENERATION_EQUAL;
                header.generation = generation;
            }
            Generation::Below(generation) => {
                header.info2 |= Info2::GENERATION_GREATER;
                header.generation = generation;
            }
        }
        header.info2.set(Info2::DURABLE_DELETE, self.durable_delete);
        header.info2.set(Info2::RESPOND_ALL_OPS, self.respond_all);
        header
            .info3
            .set(Info3::COMMIT_LEVEL_MASTER, self.commit_master);
        header
    }
}

/// One operation of a template.
#[derive(Debug, Clone, Copy)]
pub struct TemplateOp<'a> {
    /// What is done.
    pub op: OpCode,
    /// What the value is.
    pub particle: ParticleType,
    /// The bin.
    pub name: &'a [u8],
    /// The value.
    pub value: OpValue<'a>,
}

/// The value of an operation in a template.
#[derive(Debug, Clone, Copy)]
pub enum OpValue<'a> {
    /// The same for every request; empty for a read.
    Fixed(&'a [u8]),
    /// Given with every request.
    Slot,
}

impl<'a> TemplateOp<'a> {
    /// Read a bin.
    #[must_use]
    pub const fn read(name: &'a [u8]) -> Self {
        let (op, particle) = (OpCode::Read, ParticleType::Nil);
        Self {
            op,
            particle,
            name,
            value: OpValue::Fixed(&[]),
        }
    }

    /// Write a bin, its value given with every request.
    #[must_use]
    pub const fn write(name: &'a [u8], particle: ParticleType) -> Self {
        Self {
            op: OpCode::Write,
            particle,
            name,
            value: OpValue::Slot,
        }
    }

    /// Touch the record.
    #[must_use]
    pub const fn touch() -> Self {
        let (op, particle) = (OpCode::Touch, ParticleType::Nil);
        Self {
            op,
            particle,
            name: &[],
            value: OpValue::Fixed(&[]),
        }
    }
}

/// The record a request is about.
#[derive(Debug, Clone, Copy)]
pub struct RecordKey<'a> {
    /// The digest of `key` in the target's set.
    pub digest: &'a Digest,
    /// The user key; looked at only by templates that send it.
    pub key: Key<'a>,
}

/// A single-record request with its digest, user key and some values left open.
///
/// ```
/// use bytes::BytesMut;
/// use kvlab_protocol::aerospike::digest::{Key, digest};
/// use kvlab_protocol::aerospike::message::ParticleType;
/// use kvlab_protocol::aerospike::request::*;
///
/// let target = Target { namespace: b"test", set: b"s1", timeout_ms: 1000, send_key: false };
/// let put = RecordTemplate::put(&target, &WritePolicy::default(), &[(b"a", ParticleType::Integer)]);
/// let key = Key::String(b"k1");
/// let mut out = BytesMut::new();
/// put.emit(&RecordKey { digest: &digest(b"s1", key), key }, &[&1_i64.to_be_bytes()], &mut out);
/// assert_eq!(out.len(), 8 + 0x50);
/// ```
#[derive(Debug, Clone)]
pub struct RecordTemplate {
    bytes: Box<[u8]>,
    digest_at: usize,
    key: Option<Slot>,
    values: Box<[Slot]>,
}

/// A place in a template's bytes where something is put in, and the size field that grows with it.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Where the data goes.
    at: usize,
    /// Where the four bytes of size are.
    size_at: usize,
    /// What the size is without the data.
    base: u32,
}

impl RecordTemplate {
    /// Read all bins.
    #[must_use]
    pub fn get(target: &Target<'_>) -> Self {
        Self::build(
            target,
            &read_header(target, Info1::READ | Info1::GET_ALL),
            &[],
        )
    }

    /// Read some bins.
    #[must_use]
    pub fn get_bins(target: &Target<'_>, names: &[&[u8]]) -> Self {
        let ops: Vec<_> = names.iter().map(|name| TemplateOp::read(name)).collect();
        Self::build(target, &read_header(target, Info1::READ), &ops)
    }

    /// Read generation and expiry only; the way to ask whether a record exists.
    #[must_use]
    pub fn exists(target: &Target<'_>) -> Self {
        Self::build(
            target,
            &read_header(target, Info1::READ | Info1::NO_BINS),
            &[],
        )
    }

    /// Delete the record.
    #[must_use]
    pub fn remove(target: &Target<'_>, policy: &WritePolicy) -> Self {
        let header = policy.header(Info1::empty(), Info2::DELETE, target.timeout_ms);
        Self::build(target, &header, &[])
    }

    /// Restart the record's life.
    #[must_use]
    pub fn touch(target: &Target<'_>, policy: &WritePolicy) -> Self {
        let header = policy.header(Info1::empty(), Info2::empty(), target.timeout_ms);
        Self::build(target, &header, &[TemplateOp::touch()])
    }

    /// Write bins; each has a slot for its value.
    #[must_use]
    pub fn put(target: &Target<'_>, policy: &WritePolicy, bins: &[(&[u8], ParticleType)]) -> Self {
        let ops: Vec<_> = bins
            .iter()
            .map(|&(name, particle)| TemplateOp::write(name, particle))
            .collect();
        let header = policy.header(Info1::empty(), Info2::empty(), target.timeout_ms);
        Self::build(target, &header, &ops)
    }

    /// Any operations. The read and write flags follow from them; reading all bins is a
    /// [`TemplateOp::read`] with an empty name.
    #[must_use]
    pub fn operate(target: &Target<'_>, policy: &WritePolicy, ops: &[TemplateOp<'_>]) -> Self {
        let mut info1 = Info1::empty();
        info1.set(Info1::READ, ops.iter().any(|op| is_read(op.op)));
        let all = |op: &TemplateOp<'_>| op.op == OpCode::Read && op.name.is_empty();
        info1.set(Info1::GET_ALL, ops.iter().any(all));
        let header = if ops.iter().all(|op| is_read(op.op)) {
            let mut header = read_header(target, info1);
            header.info2.set(Info2::RESPOND_ALL_OPS, policy.respond_all);
            header
        } else {
            policy.header(info1, Info2::empty(), target.timeout_ms)
        };
        Self::build(target, &header, ops)
    }

    fn build(target: &Target<'_>, header: &MessageHeader, ops: &[TemplateOp<'_>]) -> Self {
        let mut out = BytesMut::new();
        let frame = begin_frame(Kind::Message, &mut out);
        let mut message = MessageWriter::begin(&mut out, header);
        message.field(FieldKind::Namespace, target.namespace);
        if !target.set.is_empty() {
            message.field(FieldKind::Set, target.set);
        }
        message.field(FieldKind::Digest, &[0; DIGEST_LEN]);
        let digest_at = message.position() - DIGEST_LEN;
        let mut key = None;
        if target.send_key {
            message.field(FieldKind::Key, &[ParticleType::Nil.byte()]);
            key = Some(Slot::before(message.position(), 2));
        }
        let mut values = Vec::new();
        for op in ops {
            let fixed = match op.value {
                OpValue::Fixed(value) => value,
                OpValue::Slot => &[],
            };
            message.op(op.op, op.particle, op.name, fixed);
            if matches!(op.value, OpValue::Slot) {
                values.push(Slot::before(message.position(), 4 + op.name.len()));
            }
        }
        message.finish();
        finish_frame(frame, &mut out);
        Self {
            bytes: out[..].into(),
            digest_at,
            key,
            values: values.into(),
        }
    }

    /// How many values every request needs.
    #[must_use]
    pub const fn value_slots(&self) -> usize {
        self.values.len()
    }

    /// Appends a request for one record. Values without a slot are ignored, slots without a value
    /// stay empty.
    ///
    /// # Panics
    /// When a value is 4 GiB or larger.
    #[inline]
    pub fn emit(&self, record: &RecordKey<'_>, values: &[&[u8]], out: &mut BytesMut) {
        let start = out.len();
        let mut copy = Copy {
            template: &self.bytes,
            copied: 0,
            start,
        };
        if let Some(slot) = self.key {
            record.key.with_bytes(|bytes| copy.fill(slot, bytes, out));
            let type_at = start + slot.at - 1;
            if let Some(byte) = out.get_mut(type_at) {
                *byte = record.key.particle_type().byte();
            }
        }
        for (&slot, value) in self.values.iter().zip(values) {
            copy.fill(slot, value, out);
        }
        copy.rest(out);
        let digest_at = start + self.digest_at;
        if let Some(digest) = out.get_mut(digest_at..digest_at + DIGEST_LEN) {
            digest.copy_from_slice(record.digest);
        }
        if self.key.is_some() || !self.values.is_empty() {
            finish_frame(FrameStart::at(start, Kind::Message), out);
        }
    }
}

impl Slot {
    /// A slot at the end of what was written, inside a part of `base` bytes.
    fn before(at: usize, base: usize) -> Self {
        Self {
            at,
            size_at: at - base - 4,
            base: wire_len(base),
        }
    }
}

/// A template being copied.
struct Copy<'a> {
    template: &'a [u8],
    copied: usize,
    start: usize,
}

impl Copy<'_> {
    #[inline]
    fn fill(&mut self, slot: Slot, value: &[u8], out: &mut BytesMut) {
        let added = out.len() - self.start - self.copied;
        out.put_slice(self.template.get(self.copied..slot.at).unwrap_or_default());
        out.put_slice(value);
        self.copied = slot.at;
        let size_at = self.start + slot.size_at + added;
        let size = slot.base.saturating_add(wire_len(value.len()));
        if let Some(bytes) = out.get_mut(size_at..size_at + 4) {
            bytes.copy_from_slice(&size.to_be_bytes());
        }
    }

    #[inline]
    fn rest(self, out: &mut BytesMut) {
        out.put_slice(self.template.get(self.copied..).unwrap_or_default());
    }
}

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

const fn read_header(target: &Target<'_>, info1: Info1) -> MessageHeader {
    MessageHeader {
        info1,
        transaction_ttl: target.timeout_ms,
        ..MessageHeader::EMPTY
    }
}

const fn is_read(op: OpCode) -> bool {
    matches!(
        op,
        OpCode::Read | OpCode::CdtRead | OpCode::ExpressionRead | OpCode::BitRead | OpCode::HllRead
    )
}

#[cfg(test)]
mod tests {
    use super::super::digest::digest;
    use super::super::message::MessageView;
    use super::*;

    const TARGET: Target<'static> = Target {
        namespace: b"test",
        set: b"s1",
        timeout_ms: 1000,
        send_key: false,
    };

    #[track_caller]
    fn emitted(template: &RecordTemplate, key: Key<'_>, values: &[&[u8]]) -> Vec<u8> {
        let mut out = BytesMut::from(&b"before"[..]);
        template.emit(
            &RecordKey {
                digest: &digest(b"s1", key),
                key,
            },
            values,
            &mut out,
        );
        let frame = super::super::proto::split_frame(&out[6..])
            .unwrap()
            .unwrap();
        assert!(frame.rest.is_empty());
        MessageView::parse(frame.body).unwrap();
        frame.body.to_vec()
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks_exact(2);
        digits
            .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn put_and_get_are_those_of_a_real_client() {
        // kv-001 and kv-002: a=1 under "k1" in set s1, and reading it.
        const FIELDS: &str = "00000005007465737400000003017331\
            0000001504d9b956fc256f8de98a2473e4ce3547180a3fd778";
        let bins: [(&[u8], _); 1] = [(b"a", ParticleType::Integer)];
        let put = RecordTemplate::put(&TARGET, &WritePolicy::default(), &bins);
        let body = emitted(&put, Key::String(b"k1"), &[&1_i64.to_be_bytes()]);
        let header = "1600010000000000000000000000000003e800030001";
        let op = "0000000d02010001610000000000000001";
        assert_eq!(body, hex(&[header, FIELDS, op].concat()));
        let get = RecordTemplate::get(&TARGET);
        let body = emitted(&get, Key::String(b"k1"), &[]);
        let header = "1603000000000000000000000000000003e800030000";
        assert_eq!(body, hex(&[header, FIELDS].concat()));
    }

    #[test]
    fn values_of_any_length_keep_the_sizes_right() {
        let bins: [(&[u8], _); 2] = [(b"a", ParticleType::String), (b"bb", ParticleType::Blob)];
        let target = Target {
            send_key: true,
            ..TARGET
        };
        let put = RecordTemplate::put(&target, &WritePolicy::default(), &bins);
        assert_eq!(put.value_slots(), 2);
        for len in [0, 1, 7, 300] {
            let long = vec![b'x'; len];
            let body = emitted(&put, Key::Integer(5), &[&long, b"tail"]);
            let view = MessageView::parse(&body).unwrap();
            assert_eq!(
                view.field(FieldKind::Key),
                Some(&[1, 0, 0, 0, 0, 0, 0, 0, 5][..])
            );
            let ops: Vec<_> = view.ops().map(|op| (op.name, op.value.to_vec())).collect();
            assert_eq!(ops, [(&b"a"[..], long), (b"bb", b"tail".to_vec())]);
        }
    }

    #[test]
    fn user_key_has_its_type_byte() {
        let target = Target {
            send_key: true,
            ..TARGET
        };
        let get = RecordTemplate::exists(&target);
        let body = emitted(&get, Key::String(b"k2"), &[]);
        let view = MessageView::parse(&body).unwrap();
        assert_eq!(view.field(FieldKind::Key), Some(&b"\x03k2"[..]));
        assert_eq!(view.header().info1, Info1::READ | Info1::NO_BINS);
    }

    #[test]
    fn policies_set_their_bits() {
        let policy = WritePolicy {
            exists: Exists::CreateOnly,
            generation: Generation::Equal(9),
            ttl: 30,
            durable_delete: true,
            commit_master: true,
            respond_all: true,
        };
        let body = emitted(
            &RecordTemplate::remove(&TARGET, &policy),
            Key::Integer(1),
            &[],
        );
        let header = *MessageView::parse(&body).unwrap().header();
        assert_eq!(
            (header.info2.bits(), header.info3.bits()),
            (0x01 | 0x02 | 0x04 | 0xb0, 0x02)
        );
        assert_eq!((header.generation, header.record_ttl), (9, 30));
        let cases = [
            (Exists::UpdateOnly, 0x08),
            (Exists::CreateOrReplace, 0x10),
            (Exists::ReplaceOnly, 0x20),
        ];
        for (exists, info3) in cases {
            let policy = WritePolicy {
                exists,
                generation: Generation::Below(2),
                ..Default::default()
            };
            let body = emitted(
                &RecordTemplate::touch(&TARGET, &policy),
                Key::Integer(1),
                &[],
            );
            let header = *MessageView::parse(&body).unwrap().header();
            assert_eq!((header.info2.bits(), header.info3.bits()), (0x09, info3));
        }
    }

    #[test]
    fn operate_flags_follow_from_the_operations() {
        let ops = [
            TemplateOp::write(b"a", ParticleType::Integer),
            TemplateOp::read(b""),
            TemplateOp {
                op: OpCode::Increment,
                value: OpValue::Fixed(&[0; 8]),
                ..TemplateOp::write(b"b", ParticleType::Integer)
            },
        ];
        let template = RecordTemplate::operate(&TARGET, &WritePolicy::default(), &ops);
        let body = emitted(&template, Key::Integer(1), &[&[0; 8]]);
        let view = MessageView::parse(&body).unwrap();
        assert_eq!(
            (view.header().info1.bits(), view.header().info2.bits()),
            (3, 1)
        );
        assert_eq!(
            view.ops().map(|op| op.value.len()).collect::<Vec<_>>(),
            [8, 0, 8]
        );
        let reads = [TemplateOp::read(b"a")];
        let template = RecordTemplate::operate(&TARGET, &WritePolicy::default(), &reads);
        let body = emitted(&template, Key::Integer(1), &[]);
        let header = *MessageView::parse(&body).unwrap().header();
        assert_eq!((header.info1.bits(), header.info2.bits()), (1, 0));
    }

    #[test]
    fn batch_is_that_of_a_real_client() {
        // batch-006: header-only reads of keys 1 and 99 in set bs.
        let digests: Vec<Digest> = [
            "458809673212366d425fda44bed17e5bc0f9bec7",
            "bb97a163114fa0efc1f21c164d81c14362170455",
        ]
        .map(|text| hex(text).try_into().unwrap())
        .into();
        let target = Target {
            set: b"bs",
            ..TARGET
        };
        let template = BatchTemplate::read(&target, BatchRead::NoBins);
        let mut out = BytesMut::new();
        template.emit((0..).zip(&digests), &mut out);
        let expected = "020300000000006d1608000000000000000000000000000003e80001000000000053\
            29000000020d00000000458809673212366d425fda44bed17e5bc0f9bec70a210000000000000002\
            0000000000050074657374000000030162730000000\
            1bb97a163114fa0efc1f21c164d81c1436217045501";
        assert_eq!(out, hex(expected));
    }
}
