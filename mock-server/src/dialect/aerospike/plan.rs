//! What a write message says before its record is looked at: bin names, illegal combinations of
//! operations and flags, whether the record must exist.

use kvlab_protocol::aerospike::limits::BIN_NAME_MAX;
use kvlab_protocol::aerospike::message::{Info1, Info3, Op, OpCode, ParticleType};
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::request::Request;

/// What follows from a write's flags and operations alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Plan {
    /// The record must exist: update only, replace only, or a touch among the operations.
    pub(super) must_exist: bool,
    /// The old bins are dropped first.
    pub(super) replaces: bool,
}

impl Plan {
    /// Checks the operations of a write.
    ///
    /// # Errors
    /// [`ResultCode::BinName`] for a bin name that is too long, [`ResultCode::Parameter`] for a
    /// write without operations or with operations that do not go together.
    #[inline]
    pub(super) fn of(request: &Request<'_>) -> Result<Self, ResultCode> {
        if request.n_ops == 0 {
            return Err(ResultCode::Parameter);
        }
        let replaces = request
            .info3
            .intersects(Info3::CREATE_OR_REPLACE | Info3::REPLACE_ONLY);
        let mut plan = Self {
            must_exist: request
                .info3
                .intersects(Info3::UPDATE_ONLY | Info3::REPLACE_ONLY),
            replaces,
        };
        let (mut reads, mut reads_all) = (false, false);
        for op in request.ops.clone() {
            if op.name.len() > BIN_NAME_MAX {
                return Err(ResultCode::BinName);
            }
            match op.op {
                OpCode::Touch => plan.must_exist = true,
                _ if is_read_all(&op, request.info1) => reads_all = true,
                code if is_read(code) => reads = true,
                OpCode::CdtModify | OpCode::HllModify => reads = true,
                _ => {}
            }
            if replaces && needs_old_bins(&op) {
                return Err(ResultCode::Parameter);
            }
            if is_read(op.op) && !request.info1.contains(Info1::READ) {
                return Err(ResultCode::Parameter);
            }
        }
        if reads_all && (reads || request.responds_to_all()) {
            return Err(ResultCode::Parameter);
        }
        Ok(plan)
    }
}

/// Whether the operation, inside a write, reads all bins.
pub(super) fn is_read_all(op: &Op<'_>, info1: Info1) -> bool {
    op.op == OpCode::Read && op.name.is_empty() && info1.contains(Info1::GET_ALL)
}

fn is_read(code: OpCode) -> bool {
    matches!(
        code,
        OpCode::Read | OpCode::CdtRead | OpCode::ExpressionRead | OpCode::BitRead | OpCode::HllRead
    )
}

/// Whether the operation makes no sense on a record whose bins were just dropped; an expression may.
fn needs_old_bins(op: &Op<'_>) -> bool {
    match op.op {
        OpCode::Write => op.particle == ParticleType::Nil,
        OpCode::Touch
        | OpCode::Increment
        | OpCode::Append
        | OpCode::Prepend
        | OpCode::CdtModify
        | OpCode::BitModify
        | OpCode::HllModify
        | OpCode::DeleteAll => true,
        _ => false,
    }
}
