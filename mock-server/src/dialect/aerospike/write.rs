//! Writing a record: put, operate, touch.
//!
//! Checks, in order: operations and flags ([`Plan`]: 4, 21), the record's existence (2, 5), its
//! generation (3), its set (4), the filter (27), the user key (19), the ttl (4, 22), the operations
//! one by one, then the size (13). All or nothing: operations run on a copy of the bins, which
//! replaces them at the end. A record left without bins is removed.

use bytes::BytesMut;
use kvlab_protocol::aerospike::limits::{BINS_MAX, SET_NAME_MAX};
use kvlab_protocol::aerospike::message::{Info2, Op, OpCode};
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::answer::Outcome;
use super::bins::Bins;
use super::cdt;
use super::modify::{self, End};
use super::namespace::{Namespace, stored_len_of};
use super::plan::{Plan, is_read_all};
use super::read::{check_filter_and_key, read_op};
use super::record::{Meta, Moment, Record};
use super::replies::Replies;
use super::request::Request;

/// Executes a write. `scratch` is room for the bins while operations run on them.
#[inline]
pub(super) fn write(
    namespace: &Namespace,
    request: &Request<'_>,
    now: Moment,
    scratch: &mut Bins,
    out: &mut BytesMut,
) -> Outcome {
    let plan = match Plan::of(request) {
        Ok(plan) => plan,
        Err(code) => return Outcome::bare(code),
    };
    let at = out.len();
    namespace.records().update(request.digest, |place| {
        let meta = place.as_ref().map_or(Meta::default(), |record| record.meta);
        if meta.generation != 0 && meta.is_expired(now) {
            // Gone for every write that may create it; the others still see what it was.
            if plan.must_exist {
                return Outcome::found(ResultCode::NotFound, meta);
            }
            namespace.discard(place);
        }
        let found = place.as_ref().map_or(Meta::default(), |record| record.meta);
        let write = Write {
            namespace,
            request,
            plan,
            now,
        };
        match write.run(place, scratch, out) {
            Ok(outcome) => outcome,
            Err(code) => {
                out.truncate(at);
                Outcome::found(code, found)
            }
        }
    })
}

struct Write<'a> {
    namespace: &'a Namespace,
    request: &'a Request<'a>,
    plan: Plan,
    now: Moment,
}

impl Write<'_> {
    fn run(
        &self,
        place: &mut Option<Record>,
        scratch: &mut Bins,
        out: &mut BytesMut,
    ) -> Result<Outcome, ResultCode> {
        let request = self.request;
        self.check(place.as_ref())?;
        let current = place.as_ref().map(|record| record.meta.void_time);
        let ttl = self.namespace.ttl();
        let void_time = ttl.void_time(request.ttl, current, self.now)?;
        scratch.clear();
        if let Some(record) = place
            && !self.plan.replaces
        {
            scratch.assign(&record.bins);
        }
        let mut replies = Replies::new(request, out);
        for op in request.ops.clone() {
            self.apply(&op, scratch, &mut replies)?;
            replies.count()?;
        }
        let n_ops = replies.count()?;
        if scratch.is_empty() {
            return self.remove(place, n_ops);
        }
        self.check_size(place.as_ref(), scratch)?;
        let meta = self.store(place, scratch, void_time);
        Ok(Outcome {
            n_ops,
            ..Outcome::found(ResultCode::Ok, meta)
        })
    }

    /// What the record that is there, or its absence, has to say against the write.
    #[inline]
    fn check(&self, record: Option<&Record>) -> Result<(), ResultCode> {
        let request = self.request;
        let Some(record) = record else {
            if self.plan.must_exist {
                return Err(ResultCode::NotFound);
            }
            check_generation(request, Meta::default())?;
            if request.set.len() > SET_NAME_MAX {
                return Err(ResultCode::Parameter);
            }
            return Ok(());
        };
        if request.info2.contains(Info2::CREATE_ONLY) {
            return Err(ResultCode::RecordExists);
        }
        check_generation(request, record.meta)?;
        if !record.is_in(request.set) {
            return Err(ResultCode::Parameter);
        }
        check_filter_and_key(record, request)
    }

    #[inline]
    fn apply(
        &self,
        op: &Op<'_>,
        bins: &mut Bins,
        replies: &mut Replies<'_>,
    ) -> Result<(), ResultCode> {
        match op.op {
            OpCode::Write => modify::write(bins, op)?,
            OpCode::Increment => modify::increment(bins, op)?,
            OpCode::Append => modify::join(bins, op, End::Back)?,
            OpCode::Prepend => modify::join(bins, op, End::Front)?,
            OpCode::DeleteAll => bins.clear(),
            OpCode::Touch => return Ok(()),
            OpCode::CdtModify => {
                if let Some(value) = cdt::modify(bins, op.name, op.value)? {
                    replies.value(op, &value);
                    return Ok(());
                }
            }
            OpCode::ExpressionModify | OpCode::BitModify | OpCode::HllModify => {
                return Err(ResultCode::Unsupported);
            }
            OpCode::Read if is_read_all(op, self.request.info1) => {
                replies.all_bins(bins);
                return Ok(());
            }
            _ => return read_op(bins, op, replies),
        }
        replies.nothing(op);
        Ok(())
    }

    /// The operations left no bin.
    fn remove(&self, place: &mut Option<Record>, n_ops: u16) -> Result<Outcome, ResultCode> {
        if place.is_none() {
            return Err(ResultCode::NotFound);
        }
        if self.request.info2.contains(Info2::DURABLE_DELETE) {
            return Err(ResultCode::EnterpriseOnly);
        }
        self.namespace.discard(place);
        Ok(Outcome {
            n_ops,
            ..Outcome::bare(ResultCode::Ok)
        })
    }

    fn check_size(&self, record: Option<&Record>, bins: &Bins) -> Result<(), ResultCode> {
        let stored_key = record.and_then(|record| record.key.as_ref().map(|key| key.len()));
        let key = stored_key.or(self.request.key.map(<[u8]>::len));
        let around = 1 + self.request.set.len() + key.map_or(0, |len| 4 + len);
        let most = self.namespace.room().record_max;
        if usize::from(bins.count()) > BINS_MAX || stored_len_of(around, bins) > most {
            return Err(ResultCode::RecordTooBig);
        }
        Ok(())
    }

    fn store(&self, place: &mut Option<Record>, bins: &Bins, void_time: u32) -> Meta {
        if void_time != 0 {
            self.namespace.note_expiry();
        }
        let updated_ns = self.now.unix_ns;
        if let Some(record) = place {
            record.meta = Meta {
                generation: record.meta.next_generation(),
                void_time,
            };
            record.updated_ns = updated_ns;
            self.namespace.store_bins(record, bins);
            if record.key.is_none() && self.request.key.is_some() {
                record.key = self.request.key.map(Box::from);
            }
            return record.meta;
        }
        let meta = Meta {
            generation: 1,
            void_time,
        };
        let record = Record {
            meta,
            updated_ns,
            set: self.namespace.sets().intern(self.request.set),
            key: self.request.key.map(Box::from),
            bins: bins.clone(),
        };
        self.namespace.create(place, record);
        meta
    }
}

/// The generation a request expects against the one there is; a missing record has 0.
#[inline]
pub(super) fn check_generation(request: &Request<'_>, meta: Meta) -> Result<(), ResultCode> {
    let stored = u32::from(meta.generation);
    let equal = request.info2.contains(Info2::GENERATION_EQUAL);
    let greater = request.info2.contains(Info2::GENERATION_GREATER);
    if (equal && request.generation != stored) || (greater && request.generation <= stored) {
        return Err(ResultCode::Generation);
    }
    Ok(())
}
