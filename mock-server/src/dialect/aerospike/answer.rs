//! Answers: a header in front of operations, as one frame or as a row of a batch.

use bytes::{BufMut, BytesMut};
use kvlab_protocol::aerospike::message::{
    Info3, MESSAGE_HEADER_LEN, MessageHeader, OpCode, ParticleType, put_op_head,
};
use kvlab_protocol::aerospike::proto::{Kind, begin_frame, finish_frame};
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::record::Meta;

/// How a record operation ended. Its answer's operations were appended to the output by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) result: ResultCode,
    /// The record's generation and void-time; zeros where an answer must not show them.
    pub(super) meta: Meta,
    /// Operations appended.
    pub(super) n_ops: u16,
}

impl Outcome {
    /// An outcome that knows no record.
    pub(super) const fn bare(result: ResultCode) -> Self {
        Self {
            result,
            meta: Meta {
                generation: 0,
                void_time: 0,
            },
            n_ops: 0,
        }
    }

    /// An outcome of an operation that found a record.
    pub(super) const fn found(result: ResultCode, meta: Meta) -> Self {
        Self {
            result,
            meta,
            n_ops: 0,
        }
    }
}

/// Writes a frame with one message, whose operations `run` appends.
#[inline]
pub(super) fn put_frame(out: &mut BytesMut, run: impl FnOnce(&mut BytesMut) -> Outcome) {
    let frame = begin_frame(Kind::Message, out);
    put_message(0, out, run);
    finish_frame(frame, out);
}

/// Writes one message, whose operations `run` appends; `index` is the row of a batch.
#[inline]
pub(super) fn put_message(
    index: u32,
    out: &mut BytesMut,
    run: impl FnOnce(&mut BytesMut) -> Outcome,
) -> ResultCode {
    let at = out.len();
    out.put_bytes(0, MESSAGE_HEADER_LEN);
    let outcome = run(out);
    let header = MessageHeader {
        result: outcome.result,
        generation: outcome.meta.generation.into(),
        record_ttl: outcome.meta.void_time,
        transaction_ttl: index,
        n_ops: outcome.n_ops,
        ..MessageHeader::EMPTY
    };
    if let Some(place) = out.get_mut(at..at + MESSAGE_HEADER_LEN) {
        place.copy_from_slice(&header.encode());
    }
    outcome.result
}

/// The header that ends an answer of several messages.
pub(super) const fn last(result: ResultCode) -> MessageHeader {
    MessageHeader {
        info3: Info3::LAST,
        result,
        ..MessageHeader::EMPTY
    }
}

/// Appends an operation.
#[inline]
pub(super) fn put_value(
    op: OpCode,
    particle: ParticleType,
    name: &[u8],
    value: &[u8],
    out: &mut BytesMut,
) {
    put_op_head(op, particle, name, value.len(), out);
    out.put_slice(value);
}
