//! Times to live: EXPIRE and TTL with their units, PERSIST.

use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::row::category::KEYSPACE;
use crate::dialect::redis::row::flag::{FAST, READONLY, WRITE};
use crate::dialect::redis::row::{Family, KeySpec, Row};

/// The expiry commands.
pub(crate) const FAMILY: Family = Family {
    group: "generic",
    rows: &[
        Row::new("expire", -3, expire)
            .flags(WRITE | FAST)
            .categories(KEYSPACE)
            .keys(UPDATED)
            .doc(
                "key seconds [NX | XX | GT | LT]",
                "Lets a key expire after some seconds.",
            ),
        Row::new("pexpire", -3, pexpire)
            .flags(WRITE | FAST)
            .categories(KEYSPACE)
            .keys(UPDATED)
            .since(2, 6, 0)
            .doc(
                "key milliseconds [NX | XX | GT | LT]",
                "Lets a key expire after some milliseconds.",
            ),
        Row::new("expireat", -3, expireat)
            .flags(WRITE | FAST)
            .categories(KEYSPACE)
            .keys(UPDATED)
            .since(1, 2, 0)
            .doc(
                "key unix-time-seconds [NX | XX | GT | LT]",
                "Lets a key expire in a second of the calendar.",
            ),
        Row::new("pexpireat", -3, pexpireat)
            .flags(WRITE | FAST)
            .categories(KEYSPACE)
            .keys(UPDATED)
            .since(2, 6, 0)
            .doc(
                "key unix-time-milliseconds [NX | XX | GT | LT]",
                "Lets a key expire in a millisecond of the calendar.",
            ),
        Row::new("ttl", 2, ttl)
            .flags(READONLY | FAST)
            .categories(KEYSPACE)
            .keys(READ)
            .tips(&["nondeterministic_output"])
            .doc("key", "Tells in how many seconds a key expires."),
        Row::new("pttl", 2, pttl)
            .flags(READONLY | FAST)
            .categories(KEYSPACE)
            .keys(READ)
            .tips(&["nondeterministic_output"])
            .since(2, 6, 0)
            .doc("key", "Tells in how many milliseconds a key expires."),
        Row::new("expiretime", 2, expiretime)
            .flags(READONLY | FAST)
            .categories(KEYSPACE)
            .keys(READ)
            .since(7, 0, 0)
            .doc(
                "key",
                "Tells the second of the calendar in which a key expires.",
            ),
        Row::new("pexpiretime", 2, pexpiretime)
            .flags(READONLY | FAST)
            .categories(KEYSPACE)
            .keys(READ)
            .since(7, 0, 0)
            .doc(
                "key",
                "Tells the millisecond of the calendar in which a key expires.",
            ),
        Row::new("persist", 2, persist)
            .flags(WRITE | FAST)
            .categories(KEYSPACE)
            .keys(UPDATED)
            .since(2, 2, 0)
            .doc("key", "Takes away the time to live of a key."),
    ],
};

const UPDATED: &[KeySpec] = &[KeySpec::one(1, &["RW", "update"])];
const READ: &[KeySpec] = &[KeySpec::one(1, &["RO", "access"])];

fn expire(call: &mut Call<'_, '_>) -> Outcome {
    let now = now_millis(call);
    set_expiry(call, 1000, now)
}

fn pexpire(call: &mut Call<'_, '_>) -> Outcome {
    let now = now_millis(call);
    set_expiry(call, 1, now)
}

fn expireat(call: &mut Call<'_, '_>) -> Outcome {
    set_expiry(call, 1000, 0)
}

fn pexpireat(call: &mut Call<'_, '_>) -> Outcome {
    set_expiry(call, 1, 0)
}

/// Sets the expiry of a key to argument 2, in units of `millis`, counted from `base`.
fn set_expiry(call: &mut Call<'_, '_>, millis: i64, base: i64) -> Outcome {
    let condition = Condition::parse(call)?;
    let invalid = || Fault::invalid_expire(call.command.name);
    let when = call
        .integer(2)?
        .checked_mul(millis)
        .and_then(|when| when.checked_add(base))
        .ok_or_else(invalid)?;
    let (view, key) = (call.view(), call.args.arg(1));
    let now = now_millis(call);
    let changed = view.update(key, |place| {
        let Some(entry) = place else { return false };
        if !condition.allows(entry.expires_at, when) {
            return false;
        }
        match u64::try_from(when) {
            Ok(at) if when > now => entry.expires_at = Some(at),
            _ => *place = None,
        }
        true
    });
    if changed {
        view.touch(key);
    }
    call.number(i64::from(changed))
}

/// Under which condition an expiry is set.
#[derive(Debug, Clone, Copy, Default)]
struct Condition {
    if_none: bool,
    if_any: bool,
    if_later: bool,
    if_earlier: bool,
}

impl Condition {
    fn parse(call: &Call<'_, '_>) -> Result<Self, Fault> {
        let mut condition = Self::default();
        for option in call.args.from(3) {
            match option.to_ascii_uppercase().as_slice() {
                b"NX" => condition.if_none = true,
                b"XX" => condition.if_any = true,
                b"GT" => condition.if_later = true,
                b"LT" => condition.if_earlier = true,
                _ => {
                    return Err(Fault::quoting("ERR Unsupported option ", option, ""));
                }
            }
        }
        if condition.if_none && (condition.if_any || condition.if_later || condition.if_earlier) {
            return Err(Fault::new(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if condition.if_later && condition.if_earlier {
            return Err(Fault::new(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(condition)
    }

    /// Whether `when` may replace `current`; a key without expiry counts as one that expires after
    /// all others.
    fn allows(self, current: Option<u64>, when: i64) -> bool {
        let current = current.map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        (!self.if_none || current.is_none())
            && (!self.if_any || current.is_some())
            && (!self.if_later || current.is_some_and(|current| when > current))
            && (!self.if_earlier || current.is_none_or(|current| when < current))
    }
}

fn ttl(call: &mut Call<'_, '_>) -> Outcome {
    let now = now_millis(call);
    tell_expiry(call, |at| (at.saturating_sub(now).max(0) + 500) / 1000)
}

fn pttl(call: &mut Call<'_, '_>) -> Outcome {
    let now = now_millis(call);
    tell_expiry(call, |at| at.saturating_sub(now).max(0))
}

fn expiretime(call: &mut Call<'_, '_>) -> Outcome {
    tell_expiry(call, |at| at.saturating_add(500) / 1000)
}

fn pexpiretime(call: &mut Call<'_, '_>) -> Outcome {
    tell_expiry(call, |at| at)
}

fn tell_expiry(call: &mut Call<'_, '_>, form: impl FnOnce(i64) -> i64) -> Outcome {
    let answer = call.view().peek(call.args.arg(1), |entry| match entry {
        None => -2,
        Some(entry) => match entry.expires_at {
            None => -1,
            Some(at) => form(i64::try_from(at).unwrap_or(i64::MAX)),
        },
    });
    call.number(answer)
}

fn persist(call: &mut Call<'_, '_>) -> Outcome {
    let (view, key) = (call.view(), call.args.arg(1));
    let changed = view.modify(key, |entry| entry.expires_at.take().is_some()) == Some(true);
    if changed {
        view.touch(key);
    }
    call.number(i64::from(changed))
}

fn now_millis(call: &Call<'_, '_>) -> i64 {
    i64::try_from(call.context.unix_millis()).unwrap_or(i64::MAX)
}
