//! Which operations of a request appear in its answer.
//!
//! | operation | contributes |
//! |---|---|
//! | read | the bin if it is there |
//! | read of a collection, bit field, HyperLogLog or expression that finds no bin | nothing |
//! | the same, without a value | an empty operation if the message writes, else nothing |
//! | modification of a collection | its value if it has one |
//! | any other write | nothing |
//! | touch | never anything |
//!
//! With the flag that asks for an answer to every operation, "nothing" becomes an empty operation.

use bytes::BytesMut;
use kvlab_protocol::aerospike::message::{Op, OpCode, ParticleType};
use kvlab_protocol::aerospike::particle::Value;
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::answer::put_value;
use super::bins::{Bin, Bins};
use super::request::Request;

/// The longest answer to one record operation: as long as a request may be. A limit of
/// this server, so that a small message cannot ask for all memory.
const ANSWER_MAX: usize = 128 * 1024 * 1024;

/// Collects the operations of one answer.
#[derive(Debug)]
pub(super) struct Replies<'o> {
    out: &'o mut BytesMut,
    start: usize,
    count: u32,
    to_all: bool,
    writes: bool,
    plain: bool,
}

impl<'o> Replies<'o> {
    pub(super) fn new(request: &Request<'_>, out: &'o mut BytesMut) -> Self {
        Self {
            start: out.len(),
            out,
            count: 0,
            to_all: request.responds_to_all(),
            writes: request.writes(),
            plain: request.plain_reads,
        }
    }

    /// How many operations were appended; an error when they are more than one answer can hold, as
    /// a message of many reads of a large bin may make them.
    #[inline]
    pub(super) fn count(&self) -> Result<u16, ResultCode> {
        if self.out.len() - self.start > ANSWER_MAX {
            return Err(ResultCode::RecordTooBig);
        }
        u16::try_from(self.count).map_err(|_| ResultCode::Parameter)
    }

    /// The bin that a read found.
    #[inline]
    pub(super) fn bin(&mut self, bin: &Bin<'_>) {
        put_value(OpCode::Read, bin.particle, bin.name, bin.value, self.out);
        self.count += 1;
    }

    /// Every bin there is.
    #[inline]
    pub(super) fn all_bins(&mut self, bins: &Bins) {
        self.out.extend_from_slice(bins.as_ops());
        self.count += u32::from(bins.count());
    }

    /// The value that an operation produced.
    pub(super) fn value(&mut self, op: &Op<'_>, value: &Value) {
        let mut bytes = BytesMut::new();
        value.encode(&mut bytes);
        let code = self.code(op);
        put_value(code, value.particle_type(), op.name, &bytes, self.out);
        self.count += 1;
    }

    /// An operation that has nothing to say.
    pub(super) fn nothing(&mut self, op: &Op<'_>) {
        if self.to_all {
            self.empty(op);
        }
    }

    /// A read that found its bin and yet has no value.
    pub(super) fn no_value(&mut self, op: &Op<'_>) {
        if self.to_all || self.writes {
            self.empty(op);
        }
    }

    fn empty(&mut self, op: &Op<'_>) {
        let code = self.code(op);
        put_value(code, ParticleType::Nil, op.name, &[], self.out);
        self.count += 1;
    }

    /// Rows of a batch that only read answer with the code of a plain read.
    fn code(&self, op: &Op<'_>) -> OpCode {
        if self.plain { OpCode::Read } else { op.op }
    }
}
