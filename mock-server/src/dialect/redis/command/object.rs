//! OBJECT: how a value is kept and when it was used.

use super::help;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::row::category::KEYSPACE;
use crate::dialect::redis::row::flag::{LOADING, READONLY, STALE};
use crate::dialect::redis::row::{Family, KeySpec, Row};

/// OBJECT with its subcommands.
pub(crate) const FAMILY: Family = Family {
    group: "generic",
    rows: &[Row::container("object", SUBCOMMANDS)
        .since(2, 2, 3)
        .doc("", "Looks at how values are kept.")],
};

const SUBCOMMANDS: &[Row] = &[
    Row::new("encoding", 3, encoding)
        .flags(READONLY)
        .categories(KEYSPACE)
        .keys(KEY)
        .tips(&["nondeterministic_output"])
        .since(2, 2, 3)
        .doc("key", "Tells the internal form of a value."),
    Row::new("freq", 3, freq)
        .flags(READONLY)
        .categories(KEYSPACE)
        .keys(KEY)
        .tips(&["nondeterministic_output"])
        .since(4, 0, 0)
        .doc("key", "Tells how often a key is used, if that is counted."),
    Row::new("idletime", 3, idletime)
        .flags(READONLY)
        .categories(KEYSPACE)
        .keys(KEY)
        .tips(&["nondeterministic_output"])
        .since(2, 2, 3)
        .doc("key", "Tells for how many seconds a key was not used."),
    Row::new("refcount", 3, refcount)
        .flags(READONLY)
        .categories(KEYSPACE)
        .keys(KEY)
        .tips(&["nondeterministic_output"])
        .since(2, 2, 3)
        .doc("key", "Tells how many references a value has."),
    Row::new("help", 2, help)
        .flags(LOADING | STALE)
        .categories(KEYSPACE)
        .since(6, 2, 0)
        .doc("", "Lists the subcommands."),
];

const KEY: &[KeySpec] = &[KeySpec::one(2, &["RO"])];

fn encoding(call: &mut Call<'_, '_>) -> Outcome {
    let encoding = call
        .view()
        .peek(call.args.arg(2), |entry| Some(entry?.value.encoding()));
    call.bulk_or_null(encoding.map(str::as_bytes))
}

fn refcount(call: &mut Call<'_, '_>) -> Outcome {
    let count = call
        .view()
        .peek(call.args.arg(2), |entry| Some(entry?.value.refcount()));
    number_or_null(call, count)
}

fn idletime(call: &mut Call<'_, '_>) -> Outcome {
    let view = call.view();
    let idle = view.peek(call.args.arg(2), |entry| {
        Some(view.second().saturating_sub(entry?.accessed()))
    });
    if idle.is_some() && counts_frequency(call) {
        return Err(Fault::new(
            "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when \
             switching between policies at runtime LRU and LFU data will take some time to adjust.",
        ));
    }
    number_or_null(call, idle.map(i64::from))
}

fn freq(call: &mut Call<'_, '_>) -> Outcome {
    let view = call.view();
    let frequency = view.peek(call.args.arg(2), |entry| Some(view.frequency(entry?)));
    if frequency.is_some() && !counts_frequency(call) {
        return Err(Fault::new(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please \
             note that when switching between policies at runtime LRU and LFU data will take some \
             time to adjust.",
        ));
    }
    number_or_null(call, frequency.map(i64::from))
}

fn counts_frequency(call: &Call<'_, '_>) -> bool {
    call.state().settings.live().counts_frequency()
}

fn number_or_null(call: &mut Call<'_, '_>, number: Option<i64>) -> Outcome {
    match number {
        Some(number) => call.number(number),
        None => call.bulk_or_null(None),
    }
}
