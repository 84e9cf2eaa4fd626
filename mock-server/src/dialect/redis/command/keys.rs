//! Keys of any type: remove, find, rename, copy, move, walk.

use super::scan::scan;
use crate::dialect::Flow;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::glob;
use crate::dialect::redis::row::category::{CONNECTION, DANGEROUS, KEYSPACE};
use crate::dialect::redis::row::flag::{
    ANY_KEY, DENYOOM, FAST, NOSCRIPT, READONLY, WHOLE_KEYSPACE, WRITE,
};
use crate::dialect::redis::row::{Family, KeySpec, Row};
use crate::dialect::redis::view::View;

/// The commands on keys of any type.
pub(crate) const FAMILY: Family = Family {
    group: "generic",
    rows: &[
        Row::new("copy", -3, copy)
            .flags(WRITE | DENYOOM)
            .categories(KEYSPACE)
            .keys(&[
                KeySpec::one(1, &["RO", "access"]),
                KeySpec::one(2, &["OW", "update"]),
            ])
            .since(6, 2, 0)
            .doc(
                "source destination [DB destination-db] [REPLACE]",
                "Copies a value to another key.",
            ),
        Row::new("del", -2, del)
            .flags(WRITE)
            .categories(KEYSPACE)
            .keys(&[KeySpec::all(1, 1, &["RM", "delete"])])
            .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
            .doc("key ...", "Removes keys."),
        Row::new("exists", -2, exists)
            .flags(READONLY | FAST)
            .categories(KEYSPACE)
            .keys(&[KeySpec::all(1, 1, &["RO"])])
            .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
            .doc("key ...", "Counts the keys that exist."),
        Row::new("keys", 2, keys)
            .flags(READONLY | WHOLE_KEYSPACE)
            .categories(KEYSPACE | DANGEROUS)
            .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
            .doc("pattern", "Lists the keys that match a pattern."),
        Row::new("move", 3, move_key)
            .flags(WRITE | FAST | WHOLE_KEYSPACE)
            .categories(KEYSPACE)
            .keys(&[KeySpec::one(1, &["RW", "access", "update"])])
            .doc("key db", "Moves a key to another database."),
        Row::new("randomkey", 1, randomkey)
            .flags(READONLY | ANY_KEY)
            .categories(KEYSPACE)
            .tips(&["request_policy:all_shards", "nondeterministic_output"])
            .doc("", "Picks a key at random."),
        Row::new("rename", 3, rename)
            .flags(WRITE)
            .categories(KEYSPACE)
            .keys(&[
                KeySpec::one(1, &["RW", "access", "delete"]),
                KeySpec::one(2, &["OW", "update"]),
            ])
            .doc(
                "key newkey",
                "Renames a key, replacing what has the new name.",
            ),
        Row::new("renamenx", 3, renamenx)
            .flags(WRITE | FAST)
            .categories(KEYSPACE)
            .keys(&[
                KeySpec::one(1, &["RW", "access", "delete"]),
                KeySpec::one(2, &["OW", "insert"]),
            ])
            .doc("key newkey", "Renames a key if nothing has the new name."),
        Row::new("scan", -2, scan)
            .flags(READONLY | ANY_KEY)
            .categories(KEYSPACE)
            .tips(&["nondeterministic_output", "request_policy:special"])
            .since(2, 8, 0)
            .doc(
                "cursor [MATCH pattern] [COUNT count] [TYPE type]",
                "Walks over the keys, some at a time.",
            ),
        Row::new("touch", -2, touch)
            .flags(READONLY | FAST)
            .categories(KEYSPACE)
            .keys(&[KeySpec::all(1, 1, &["RO"])])
            .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
            .since(3, 2, 1)
            .doc(
                "key ...",
                "Notes an access to keys and counts those that exist.",
            ),
        Row::new("type", 2, type_of)
            .flags(READONLY | FAST)
            .categories(KEYSPACE)
            .keys(&[KeySpec::one(1, &["RO"])])
            .doc("key", "Tells the type of a value."),
        Row::new("unlink", -2, del)
            .flags(WRITE | FAST)
            .categories(KEYSPACE)
            .keys(&[KeySpec::all(1, 1, &["RM", "delete"])])
            .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
            .since(4, 0, 0)
            .doc(
                "key ...",
                "Removes keys; memory is freed later on a real server.",
            ),
        Row::new("wait", 3, wait)
            .flags(NOSCRIPT)
            .categories(CONNECTION)
            .tips(&["request_policy:all_shards", "response_policy:agg_min"])
            .since(3, 0, 0)
            .doc(
                "numreplicas timeout",
                "Waits until replicas have the writes so far; there are none.",
            ),
        Row::new("waitaof", 4, waitaof)
            .flags(NOSCRIPT)
            .categories(CONNECTION)
            .tips(&["request_policy:all_shards", "response_policy:agg_min"])
            .since(7, 2, 0)
            .doc(
                "numlocal numreplicas timeout",
                "Waits until writes are in append-only files; there are none.",
            ),
    ],
};

fn del(call: &mut Call<'_, '_>) -> Outcome {
    let view = call.view();
    let mut removed = 0;
    for key in call.args.from(1) {
        if view.remove(key).is_some() {
            view.touch(key);
            removed += 1;
        }
    }
    call.count(removed)
}

fn exists(call: &mut Call<'_, '_>) -> Outcome {
    let view = call.view();
    let keys = call.args.from(1).iter();
    let found = keys
        .filter(|key| view.peek(key, |entry| entry.is_some()))
        .count();
    call.count(found)
}

fn touch(call: &mut Call<'_, '_>) -> Outcome {
    let view = call.view().untraced(false);
    let keys = call.args.from(1).iter();
    let found = keys
        .filter(|key| view.read(key, |entry| entry.is_some()))
        .count();
    call.count(found)
}

fn type_of(call: &mut Call<'_, '_>) -> Outcome {
    let name = call.view().peek(call.args.arg(1), |entry| {
        entry.map_or("none", |entry| entry.value.type_name())
    });
    call.simple(name)
}

fn keys(call: &mut Call<'_, '_>) -> Outcome {
    let view = call.view();
    let pattern = call.args.arg(1);
    let mut found = Vec::new();
    view.database().keys.scan(0, usize::MAX, |key| {
        if glob::matches(pattern, key) {
            found.push(key.to_vec());
        }
    });
    found.retain(|key| !view.purge(key) && view.exists(key));
    call.reply.array(found.len());
    for key in found {
        call.reply.bulk(&key);
    }
    Ok(Flow::Done)
}

fn randomkey(call: &mut Call<'_, '_>) -> Outcome {
    let view = call.view();
    let (seed, connection) = (call.context.shared.config.seed, call.context.client.id.0);
    // A key that expired is not an answer. Removing it makes room for the next try, except in a
    // pause, when nothing is removed: then the tries run out.
    for _ in 0..RANDOM_TRIES {
        let pick = call.peer.draw(seed, connection);
        let Some(key) = view.database().keys.choose(pick) else {
            break;
        };
        view.purge(&key);
        if view.exists(&key) {
            return call.bulk_or_null(Some(&key));
        }
    }
    call.bulk_or_null(None)
}

const RANDOM_TRIES: usize = 100;

fn rename(call: &mut Call<'_, '_>) -> Outcome {
    let (view, from, to) = (call.view(), call.args.arg(1), call.args.arg(2));
    if !view.exists(from) {
        view.purge(from);
        return Err(Fault::NO_SUCH_KEY);
    }
    if from != to {
        carry(view, from, view, to);
    }
    call.ok()
}

fn renamenx(call: &mut Call<'_, '_>) -> Outcome {
    let (view, from, to) = (call.view(), call.args.arg(1), call.args.arg(2));
    if !view.exists(from) {
        view.purge(from);
        return Err(Fault::NO_SUCH_KEY);
    }
    if from == to || view.exists(to) {
        return call.number(0);
    }
    carry(view, from, view, to);
    call.number(1)
}

fn move_key(call: &mut Call<'_, '_>) -> Outcome {
    let (view, key) = (call.view(), call.args.arg(1));
    let target = call.view_of(call.int(2)?)?;
    if target.number() == view.number() {
        return Err(Fault::SAME_OBJECT);
    }
    if !view.exists(key) || target.exists(key) {
        return call.number(0);
    }
    carry(view, key, target, key);
    call.number(1)
}

/// Takes the entry of one key, with its expiry, to another. Both stand still meanwhile.
fn carry(from: View<'_>, key: &[u8], to: View<'_>, new_key: &[u8]) {
    if let Some(entry) = from.remove(key) {
        to.update(new_key, |place| *place = Some(entry));
        from.touch(key);
        to.touch(new_key);
    }
}

fn copy(call: &mut Call<'_, '_>) -> Outcome {
    let (view, from, to) = (call.view(), call.args.arg(1), call.args.arg(2));
    let (mut target, mut replace) = (view, false);
    let mut position = 3;
    while position < call.args.len() {
        if call.is_word(position, "REPLACE") {
            replace = true;
        } else if call.is_word(position, "DB") && position + 1 < call.args.len() {
            position += 1;
            target = call.view_of(call.int(position)?)?;
        } else {
            return Err(Fault::SYNTAX);
        }
        position += 1;
    }
    if target.number() == view.number() && from == to {
        return Err(Fault::SAME_OBJECT);
    }
    let Some(entry) = view.read(from, |entry| entry.cloned()) else {
        return call.number(0);
    };
    if !replace && target.exists(to) {
        return call.number(0);
    }
    target.update(to, |place| *place = Some(entry));
    target.touch(to);
    call.number(1)
}

fn wait(call: &mut Call<'_, '_>) -> Outcome {
    let replicas = call.integer(1)?;
    let timeout = super::waiting::timeout(call, 2)?;
    match super::waiting::wait_until(call, replicas <= 0, timeout) {
        Some(flow) => Ok(flow),
        None => call.number(0),
    }
}

fn waitaof(call: &mut Call<'_, '_>) -> Outcome {
    let range = |position, most: i64| {
        let number = call.integer(position)?;
        if (0..=most).contains(&number) {
            return Ok(number);
        }
        Err(Fault::from_text(format!(
            "ERR value is out of range, must {}",
            if most == i64::MAX {
                "be positive".to_owned()
            } else {
                format!("between 0 and {most}")
            }
        )))
    };
    let (local, replicas) = (range(1, 1)?, range(2, i64::MAX)?);
    let timeout = super::waiting::timeout(call, 3)?;
    if local > 0 {
        return Err(Fault::new(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ));
    }
    match super::waiting::wait_until(call, replicas == 0, timeout) {
        Some(flow) => Ok(flow),
        None => {
            call.reply.array(2);
            call.number(0)?;
            call.number(0)
        }
    }
}
