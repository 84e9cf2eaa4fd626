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

use super::answer::put_value;
use super::bins::{Bin, Bins};
use super::request::Request;

/// Collects the operations of one answer.
#[derive(Debug)]
pub(super) struct Replies<'o> {
    out: &'o mut BytesMut,
    count: u16,
    to_all: bool,
    writes: bool,
    plain: bool,
}

impl<'o> Replies<'o> {
    pub(super) fn new(request: &Request<'_>, out: &'o mut BytesMut) -> Self {
        Self {
            out,
            count: 0,
            to_all: request.responds_to_all(),
            writes: request.writes(),
            plain: request.plain_reads,
        }
    }

    /// Operations appended so far.
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// The bin that a read found.
    #[inline]
    pub(super) fn bin(&mut self, bin: &Bin<'_>) {
        put_value(OpCode::Read, bin.particle, bin.name, bin.value, self.out);
        self.count = self.count.saturating_add(1);
    }

    /// Every bin there is.
    #[inline]
    pub(super) fn all_bins(&mut self, bins: &Bins) {
        self.out.extend_from_slice(bins.as_ops());
        self.count = self.count.saturating_add(bins.count());
    }

    /// The value that an operation produced.
    pub(super) fn value(&mut self, op: &Op<'_>, value: &Value) {
        let mut bytes = BytesMut::new();
        value.encode(&mut bytes);
        let code = self.code(op);
        put_value(code, value.particle_type(), op.name, &bytes, self.out);
        self.count = self.count.saturating_add(1);
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
        self.count = self.count.saturating_add(1);
    }

    /// Rows of a batch that only read answer with the code of a plain read.
    fn code(&self, op: &Op<'_>) -> OpCode {
        if self.plain { OpCode::Read } else { op.op }
    }
}
