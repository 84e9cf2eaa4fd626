//! Templates of single-record requests.

use bytes::{BufMut, BytesMut};

use super::{Target, WritePolicy, read_header};
use crate::aerospike::digest::{DIGEST_LEN, Digest, Key};
use crate::aerospike::flags::{Info1, Info2};
use crate::aerospike::message::{FieldKind, MessageHeader, MessageWriter, OpCode, ParticleType};
use crate::aerospike::proto::{FrameStart, Kind, begin_frame, finish_frame};
use crate::aerospike::writer::wire_len;

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

const fn is_read(op: OpCode) -> bool {
    matches!(
        op,
        OpCode::Read | OpCode::CdtRead | OpCode::ExpressionRead | OpCode::BitRead | OpCode::HllRead
    )
}
