//! Reading a record: header, all bins, some bins.
//!
//! Checks, in order: the record exists and has not expired (2), its set (4), the filter (27), the
//! user key (19), the read-touch percentage (4), then the operations one by one.

use bytes::BytesMut;
use kvlab_protocol::aerospike::message::{Info1, Op, OpCode};
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::answer::Outcome;
use super::bins::Bins;
use super::cdt;
use super::filter;
use super::namespace::Namespace;
use super::record::{Moment, Record};
use super::replies::Replies;
use super::request::Request;

/// Answers a read.
#[inline]
pub(super) fn read(
    namespace: &Namespace,
    request: &Request<'_>,
    now: Moment,
    out: &mut BytesMut,
) -> Outcome {
    let mut touch = false;
    let outcome = namespace.records().read(request.digest, |record| {
        let Some(record) = record else {
            return Outcome::bare(ResultCode::NotFound);
        };
        let at = out.len();
        match run(record, request, now, out) {
            Ok(n_ops) => {
                touch = wants_touch(record, request.ttl, now);
                Outcome {
                    n_ops,
                    ..Outcome::found(ResultCode::Ok, record.meta)
                }
            }
            Err(code) => {
                out.truncate(at);
                Outcome::found(code, record.meta)
            }
        }
    });
    if touch {
        read_touch(namespace, request, now);
    }
    outcome
}

#[inline]
fn run(
    record: &Record,
    request: &Request<'_>,
    now: Moment,
    out: &mut BytesMut,
) -> Result<u16, ResultCode> {
    if record.meta.is_expired(now) {
        return Err(ResultCode::NotFound);
    }
    if !request.set.is_empty() && !record.is_in(request.set) {
        return Err(ResultCode::Parameter);
    }
    check_filter_and_key(record, request)?;
    if record.meta.void_time != 0 && request.ttl > 100 && request.ttl != READ_TOUCH_NEVER {
        return Err(ResultCode::Parameter);
    }
    if request.info1.contains(Info1::NO_BINS) {
        return Ok(0);
    }
    let mut replies = Replies::new(request, out);
    if request.info1.contains(Info1::GET_ALL) {
        replies.all_bins(&record.bins);
    } else if request.n_ops == 0 {
        return Err(ResultCode::Parameter);
    } else {
        for op in request.ops.clone() {
            read_op(&record.bins, &op, &mut replies)?;
            replies.count()?;
        }
    }
    replies.count()
}

/// The filter and the user key of a request against a record that exists.
#[inline]
pub(super) fn check_filter_and_key(
    record: &Record,
    request: &Request<'_>,
) -> Result<(), ResultCode> {
    if let Some(expression) = request.filter
        && !filter::passes(expression)?
    {
        return Err(ResultCode::FilteredOut);
    }
    match (&record.key, request.key) {
        (Some(stored), Some(sent)) if **stored != *sent => Err(ResultCode::KeyMismatch),
        _ => Ok(()),
    }
}

/// Runs an operation that changes nothing.
#[inline]
pub(super) fn read_op(
    bins: &Bins,
    op: &Op<'_>,
    replies: &mut Replies<'_>,
) -> Result<(), ResultCode> {
    let bin = bins.get(op.name);
    match (op.op, bin) {
        (OpCode::Read, Some(bin)) => replies.bin(&bin),
        (OpCode::Read | OpCode::CdtRead | OpCode::BitRead | OpCode::HllRead, None) => {
            replies.nothing(op);
        }
        (OpCode::CdtRead, Some(bin)) => match cdt::read(&bin, op.value)? {
            Some(value) => replies.value(op, &value),
            None => replies.no_value(op),
        },
        (OpCode::BitRead | OpCode::HllRead, Some(_)) | (OpCode::ExpressionRead, _) => {
            return Err(ResultCode::Unsupported);
        }
        _ => return Err(ResultCode::Parameter),
    }
    Ok(())
}

/// The read-touch percentage "never".
const READ_TOUCH_NEVER: u32 = u32::MAX;

/// Whether a read with this percentage renews the record: less than that share of its life is left.
fn wants_touch(record: &Record, percent: u32, now: Moment) -> bool {
    let void_time = record.meta.void_time;
    if void_time == 0 || !(1..=100).contains(&percent) {
        return false;
    }
    let life = void_time.saturating_sub(Moment::new(record.updated_ns).seconds);
    let left = void_time.saturating_sub(now.seconds);
    u64::from(left) * 100 < u64::from(life) * u64::from(percent)
}

/// Gives the record another life as long as its last one. The answer that caused it shows the state
/// before.
fn read_touch(namespace: &Namespace, request: &Request<'_>, now: Moment) {
    namespace.records().modify(request.digest, |place| {
        if let Some(record) = place
            && wants_touch(record, request.ttl, now)
        {
            let written = Moment::new(record.updated_ns).seconds;
            let life = record.meta.void_time.saturating_sub(written);
            record.meta.void_time = now.seconds.saturating_add(life);
            record.meta.generation = record.meta.next_generation();
            record.updated_ns = now.unix_ns;
        }
    });
}
