//! Strings: GET and SET with their variants, ranges, and many keys at once.

use super::expire_option::Unit;
use super::lcs::lcs;
use super::string_number::{decr, decrby, incr, incrby, incrbyfloat};
use super::string_range::{append, getrange, setrange, strlen};
use crate::dialect::Flow;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::entry::{Entry, Value};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::row::category::STRING;
use crate::dialect::redis::row::flag::{DENYOOM, FAST, READONLY, WRITE};
use crate::dialect::redis::row::{Family, KeySpec, Row};

/// The string commands.
pub(crate) const FAMILY: Family = Family {
    group: "string",
    rows: &[
        Row::new("append", 3, append)
            .flags(WRITE | DENYOOM | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RW", "insert"])])
            .since(2, 0, 0)
            .doc("key value", "Adds text to the end of a string."),
        Row::new("decr", 2, decr)
            .flags(WRITE | DENYOOM | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RW", "access", "update"])])
            .doc("key", "Takes one from a number."),
        Row::new("decrby", 3, decrby)
            .flags(WRITE | DENYOOM | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RW", "access", "update"])])
            .doc("key decrement", "Takes an integer from a number."),
        Row::new("get", 2, get)
            .flags(READONLY | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RO", "access"])])
            .doc("key", "Reads a string."),
        Row::new("getdel", 2, getdel)
            .flags(WRITE | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RW", "access", "delete"])])
            .since(6, 2, 0)
            .doc("key", "Reads a string and removes its key."),
        Row::new("getex", -2, getex)
            .flags(WRITE | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RW", "access", "update"])
                .notes("RW and UPDATE because it changes the TTL")])
            .since(6, 2, 0)
            .doc(
                "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
                 PXAT unix-time-milliseconds | PERSIST]",
                "Reads a string and changes its time to live.",
            ),
        Row::new("getrange", 4, getrange)
            .flags(READONLY)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RO", "access"])])
            .since(2, 4, 0)
            .doc("key start end", "Reads a part of a string."),
        Row::new("getset", 3, getset)
            .flags(WRITE | DENYOOM | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RW", "access", "update"])])
            .doc("key value", "Sets a string and answers with the old one."),
        Row::new("incr", 2, incr)
            .flags(WRITE | DENYOOM | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RW", "access", "update"])])
            .doc("key", "Adds one to a number."),
        Row::new("incrby", 3, incrby)
            .flags(WRITE | DENYOOM | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RW", "access", "update"])])
            .doc("key increment", "Adds an integer to a number."),
        Row::new("incrbyfloat", 3, incrbyfloat)
            .flags(WRITE | DENYOOM | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RW", "access", "update"])])
            .since(2, 6, 0)
            .doc("key increment", "Adds a float to a number."),
        Row::new("lcs", -3, lcs)
            .flags(READONLY)
            .categories(STRING)
            .keys(&[KeySpec::range(1, 1, 1, &["RO", "access"])])
            .since(7, 0, 0)
            .doc(
                "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
                "Finds the longest common subsequence of two strings.",
            ),
        Row::new("mget", -2, mget)
            .flags(READONLY | FAST)
            .categories(STRING)
            .keys(&[KeySpec::all(1, 1, &["RO", "access"])])
            .tips(&["request_policy:multi_shard"])
            .doc("key ...", "Reads several strings at one moment."),
        Row::new("mset", -3, mset)
            .flags(WRITE | DENYOOM)
            .categories(STRING)
            .keys(&[KeySpec::all(1, 2, &["OW", "update"])])
            .tips(&[
                "request_policy:multi_shard",
                "response_policy:all_succeeded",
            ])
            .since(1, 0, 1)
            .doc("<key value> ...", "Sets several strings at one moment."),
        Row::new("msetnx", -3, msetnx)
            .flags(WRITE | DENYOOM)
            .categories(STRING)
            .keys(&[KeySpec::all(1, 2, &["OW", "insert"])])
            .tips(&["request_policy:multi_shard", "response_policy:agg_min"])
            .since(1, 0, 1)
            .doc(
                "<key value> ...",
                "Sets several strings at one moment if none of the keys exists.",
            ),
        Row::new("psetex", 4, psetex)
            .flags(WRITE | DENYOOM)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["OW", "update"])])
            .since(2, 6, 0)
            .doc(
                "key milliseconds value",
                "Sets a string that expires after some milliseconds.",
            ),
        Row::new("set", -3, set)
            .flags(WRITE | DENYOOM)
            .categories(STRING)
            .keys(&[
                KeySpec::one(1, &["RW", "access", "update", "variable_flags"])
                    .notes("RW and ACCESS due to the optional `GET` argument"),
            ])
            .doc(
                "key value [NX | XX] [GET] [EX seconds | PX milliseconds | \
                 EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
                "Sets a string, whatever the key held before.",
            ),
        Row::new("setex", 4, setex)
            .flags(WRITE | DENYOOM)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["OW", "update"])])
            .since(2, 0, 0)
            .doc(
                "key seconds value",
                "Sets a string that expires after some seconds.",
            ),
        Row::new("setnx", 3, setnx)
            .flags(WRITE | DENYOOM | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["OW", "insert"])])
            .doc("key value", "Sets a string if the key does not exist."),
        Row::new("setrange", 4, setrange)
            .flags(WRITE | DENYOOM)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RW", "update"])])
            .since(2, 2, 0)
            .doc("key offset value", "Overwrites a part of a string."),
        Row::new("strlen", 2, strlen)
            .flags(READONLY | FAST)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RO"])])
            .since(2, 2, 0)
            .doc("key", "Tells the length of a string."),
        Row::new("substr", 4, getrange)
            .flags(READONLY)
            .categories(STRING)
            .keys(&[KeySpec::one(1, &["RO", "access"])])
            .doc(
                "key start end",
                "Reads a part of a string; the old name of GETRANGE.",
            ),
    ],
};

fn get(call: &mut Call<'_, '_>) -> Outcome {
    let key = call.args.arg(1);
    call.view().read(key, |entry| {
        match entry {
            Some(entry) => entry.value.text()?.with(|bytes| call.reply.bulk(bytes)),
            None => call.reply.null(),
        }
        Ok(Flow::Done)
    })
}

fn getdel(call: &mut Call<'_, '_>) -> Outcome {
    let (view, key) = (call.view(), call.args.arg(1));
    let removed = view.try_update(key, |place| {
        let Some(entry) = place else {
            call.reply.null();
            return Ok(false);
        };
        entry.value.text()?.with(|bytes| call.reply.bulk(bytes));
        *place = None;
        Ok(true)
    })?;
    if removed {
        view.touch(key);
    }
    Ok(Flow::Done)
}

fn getset(call: &mut Call<'_, '_>) -> Outcome {
    let (view, key, value) = (call.view(), call.args.arg(1), call.args.arg(2));
    view.try_update(key, |place| {
        reply_old(call, place.as_ref())?;
        put(place, value, Expiry::Clear);
        Ok(())
    })?;
    view.touch(key);
    Ok(Flow::Done)
}

fn getex(call: &mut Call<'_, '_>) -> Outcome {
    let mut change = None;
    let mut position = 2;
    while let Some(option) = call.args.get(position) {
        if change.is_some() {
            return Err(Fault::SYNTAX);
        }
        if option.eq_ignore_ascii_case(b"PERSIST") {
            change = Some((None, position));
        } else if let Some(unit) = Unit::from_option(option)
            && position + 1 < call.args.len()
        {
            position += 1;
            change = Some((Some(unit), position));
        } else {
            return Err(Fault::SYNTAX);
        }
        position += 1;
    }
    let (view, key) = (call.view(), call.args.arg(1));
    let now = view.unix_millis();
    let changed = view.try_update(key, |place| {
        let Some(entry) = place else {
            call.reply.null();
            return Ok(false);
        };
        let text = entry.value.text()?;
        let expires_at = match change {
            Some((Some(unit), position)) => Some(unit.expiry(call, position)?),
            _ => None,
        };
        text.with(|bytes| call.reply.bulk(bytes));
        match change {
            None => return Ok(false),
            Some((None, _)) => return Ok(entry.expires_at.take().is_some()),
            Some((Some(unit), _)) if !unit.is_relative() && expires_at <= Some(now) => {
                *place = None;
            }
            Some(_) => entry.expires_at = expires_at,
        }
        Ok(true)
    })?;
    if changed {
        view.touch(key);
    }
    Ok(Flow::Done)
}

/// What setting a value does to the expiry of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry {
    Clear,
    Keep,
    At(u64),
}

#[derive(Debug, Clone, Copy)]
struct SetOptions {
    if_exists: bool,
    if_missing: bool,
    answer_old: bool,
    expiry: Expiry,
}

fn set(call: &mut Call<'_, '_>) -> Outcome {
    let options = if call.args.len() == 3 {
        SetOptions {
            if_exists: false,
            if_missing: false,
            answer_old: false,
            expiry: Expiry::Clear,
        }
    } else {
        set_options(call)?
    };
    let (view, key, value) = (call.view(), call.args.arg(1), call.args.arg(2));
    let done = view.try_update(key, |place| {
        if options.answer_old {
            reply_old(call, place.as_ref())?;
        }
        let exists = place.is_some();
        if (options.if_missing && exists) || (options.if_exists && !exists) {
            if !options.answer_old {
                call.reply.null();
            }
            return Ok(false);
        }
        put(place, value, options.expiry);
        Ok(true)
    })?;
    if done {
        view.touch(key);
        if !options.answer_old {
            return call.ok();
        }
    }
    Ok(Flow::Done)
}

fn set_options(call: &Call<'_, '_>) -> Result<SetOptions, Fault> {
    let mut options = SetOptions {
        if_exists: false,
        if_missing: false,
        answer_old: false,
        expiry: Expiry::Clear,
    };
    let mut ttl = None;
    let mut position = 3;
    while let Some(option) = call.args.get(position) {
        let has_ttl = ttl.is_some() || options.expiry == Expiry::Keep;
        if option.eq_ignore_ascii_case(b"NX") && !options.if_exists {
            options.if_missing = true;
        } else if option.eq_ignore_ascii_case(b"XX") && !options.if_missing {
            options.if_exists = true;
        } else if option.eq_ignore_ascii_case(b"GET") {
            options.answer_old = true;
        } else if option.eq_ignore_ascii_case(b"KEEPTTL") && ttl.is_none() {
            options.expiry = Expiry::Keep;
        } else if let Some(unit) = Unit::from_option(option)
            && !has_ttl
            && position + 1 < call.args.len()
        {
            position += 1;
            ttl = Some((unit, position));
        } else {
            return Err(Fault::SYNTAX);
        }
        position += 1;
    }
    if let Some((unit, position)) = ttl {
        options.expiry = Expiry::At(unit.expiry(call, position)?);
    }
    Ok(options)
}

fn setnx(call: &mut Call<'_, '_>) -> Outcome {
    let (view, key, value) = (call.view(), call.args.arg(1), call.args.arg(2));
    let done = view.update(key, |place| {
        let vacant = place.is_none();
        if vacant {
            put(place, value, Expiry::Clear);
        }
        vacant
    });
    if done {
        view.touch(key);
    }
    call.number(i64::from(done))
}

fn setex(call: &mut Call<'_, '_>) -> Outcome {
    set_with_ttl(call, Unit::Seconds)
}

fn psetex(call: &mut Call<'_, '_>) -> Outcome {
    set_with_ttl(call, Unit::Millis)
}

fn set_with_ttl(call: &mut Call<'_, '_>, unit: Unit) -> Outcome {
    let expires_at = unit.expiry(call, 2)?;
    let (view, key, value) = (call.view(), call.args.arg(1), call.args.arg(3));
    view.update(key, |place| put(place, value, Expiry::At(expires_at)));
    view.touch(key);
    call.ok()
}

fn mget(call: &mut Call<'_, '_>) -> Outcome {
    let (view, keys) = (call.view(), call.args.from(1));
    call.reply.array(keys.len());
    for key in keys {
        view.read(key, |entry| {
            match entry.and_then(|entry| entry.value.text().ok()) {
                Some(text) => text.with(|bytes| call.reply.bulk(bytes)),
                None => call.reply.null(),
            }
        });
    }
    Ok(Flow::Done)
}

fn mset(call: &mut Call<'_, '_>) -> Outcome {
    set_pairs(call)?;
    call.ok()
}

fn msetnx(call: &mut Call<'_, '_>) -> Outcome {
    let view = call.view();
    if call.args.len().is_multiple_of(2) {
        return Err(Fault::wrong_arity(call.command.name));
    }
    if call
        .args
        .from(1)
        .iter()
        .step_by(2)
        .any(|key| view.exists(key))
    {
        return call.number(0);
    }
    set_pairs(call)?;
    call.number(1)
}

fn set_pairs(call: &Call<'_, '_>) -> Result<(), Fault> {
    if call.args.len().is_multiple_of(2) {
        return Err(Fault::wrong_arity(call.command.name));
    }
    let view = call.view();
    let mut rest = call.args.from(1).iter();
    while let (Some(key), Some(value)) = (rest.next(), rest.next()) {
        view.update(key, |place| put(place, value, Expiry::Clear));
        view.touch(key);
    }
    Ok(())
}

/// Answers with the string that a key holds, or null.
fn reply_old(call: &mut Call<'_, '_>, entry: Option<&Entry>) -> Result<(), Fault> {
    match entry {
        Some(entry) => entry.value.text()?.with(|bytes| call.reply.bulk(bytes)),
        None => call.reply.null(),
    }
    Ok(())
}

/// Sets the value of a key, reusing what is there.
#[inline]
fn put(place: &mut Option<Entry>, value: &[u8], expiry: Expiry) {
    match place {
        Some(entry) => {
            match &mut entry.value {
                Value::String(text) => text.assign(value),
            }
            match expiry {
                Expiry::Clear => entry.expires_at = None,
                Expiry::Keep => {}
                Expiry::At(at) => entry.expires_at = Some(at),
            }
        }
        None => {
            let expires_at = match expiry {
                Expiry::At(at) => Some(at),
                Expiry::Clear | Expiry::Keep => None,
            };
            *place = Some(Entry::string(value).expiring(expires_at));
        }
    }
}
