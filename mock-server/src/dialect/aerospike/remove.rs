//! Removing a record, and the calls of user-defined functions that cannot be made.
//!
//! Answers to removals never show generation and void-time.

use bytes::BytesMut;
use kvlab_protocol::aerospike::message::{Info2, OpCode, ParticleType};
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::answer::{Outcome, put_value};
use super::namespace::Namespace;
use super::read::check_filter_and_key;
use super::record::{Meta, Moment, Record};
use super::request::{Request, Udf};
use super::write::check_generation;

/// Executes a removal; operations in the message are ignored.
pub(super) fn remove(namespace: &Namespace, request: &Request<'_>, now: Moment) -> Outcome {
    if request.info2.contains(Info2::DURABLE_DELETE) {
        return Outcome::bare(ResultCode::EnterpriseOnly);
    }
    let removed = namespace.records().modify(request.digest, |place| {
        let Some(record) = place else {
            return Err(ResultCode::NotFound);
        };
        check(record, request, now)?;
        namespace.discard(place);
        Ok(())
    });
    Outcome::bare(match removed {
        Some(Ok(())) => ResultCode::Ok,
        Some(Err(code)) => code,
        None => ResultCode::NotFound,
    })
}

fn check(record: &Record, request: &Request<'_>, now: Moment) -> Result<(), ResultCode> {
    if record.meta.is_expired(now) {
        return Err(ResultCode::NotFound);
    }
    check_generation(request, record.meta)?;
    if !request.set.is_empty() && !record.is_in(request.set) {
        return Err(ResultCode::Parameter);
    }
    check_filter_and_key(record, request)
}

/// Answers the call of a user-defined function: there is no Lua here, so no module can be loaded,
/// and a real server that cannot load one says this.
pub(super) fn call_function(
    namespace: &Namespace,
    request: &Request<'_>,
    udf: Udf<'_>,
    now: Moment,
    out: &mut BytesMut,
) -> Outcome {
    if udf.arguments.is_none() {
        return Outcome::bare(ResultCode::Parameter);
    }
    let meta = namespace.records().read(request.digest, |record| {
        let live = record.filter(|record| !record.meta.is_expired(now));
        live.map_or(Meta::default(), |record| record.meta)
    });
    let text = b"UDF: Execution Error 1";
    put_value(OpCode::Read, ParticleType::String, b"FAILURE", text, out);
    Outcome {
        n_ops: 1,
        ..Outcome::found(ResultCode::Udf, meta)
    }
}
