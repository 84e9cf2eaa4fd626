//! The server as a whole: sizes, flushes, time.

use crate::dialect::Flow;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::row::category::{DANGEROUS, KEYSPACE};
use crate::dialect::redis::row::flag::{FAST, LOADING, READONLY, STALE, WHOLE_KEYSPACE, WRITE};
use crate::dialect::redis::row::{Family, Row};
use crate::dialect::redis::view::View;
use kvlab_protocol::resp::number::parse_i64;

/// The commands on the server as a whole, but for CONFIG, INFO and COMMAND.
pub(crate) const FAMILY: Family = Family {
    group: "server",
    rows: &[
        Row::new("dbsize", 1, dbsize)
            .flags(READONLY | FAST)
            .categories(KEYSPACE)
            .tips(&["request_policy:all_shards", "response_policy:agg_sum"])
            .doc("", "Counts the keys of the database."),
        Row::new("flushall", -1, flushall)
            .flags(WRITE | WHOLE_KEYSPACE)
            .categories(KEYSPACE | DANGEROUS)
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
            .doc("[ASYNC | SYNC]", "Removes every key of every database."),
        Row::new("flushdb", -1, flushdb)
            .flags(WRITE | WHOLE_KEYSPACE)
            .categories(KEYSPACE | DANGEROUS)
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
            .doc("[ASYNC | SYNC]", "Removes every key of the database."),
        Row::new("swapdb", 3, swapdb)
            .flags(WRITE | FAST | WHOLE_KEYSPACE)
            .categories(KEYSPACE | DANGEROUS)
            .since(4, 0, 0)
            .doc("index1 index2", "Lets two databases change places."),
        Row::new("time", 1, time)
            .flags(LOADING | STALE | FAST)
            .tips(&["nondeterministic_output"])
            .since(2, 6, 0)
            .doc("", "Tells the time: seconds, then microseconds."),
    ],
};

fn dbsize(call: &mut Call<'_, '_>) -> Outcome {
    let size = call.view().database().len();
    call.count(size)
}

fn flushdb(call: &mut Call<'_, '_>) -> Outcome {
    check_mode(call)?;
    flush(call.view());
    call.ok()
}

fn flushall(call: &mut Call<'_, '_>) -> Outcome {
    check_mode(call)?;
    for number in 0..call.state().databases.count() {
        if let Some(view) = View::new(call.context, number) {
            flush(view);
        }
    }
    call.ok()
}

fn check_mode(call: &Call<'_, '_>) -> Result<(), Fault> {
    match call.args.len() {
        1 => Ok(()),
        2 if call.is_word(1, "ASYNC") || call.is_word(1, "SYNC") => Ok(()),
        _ => Err(Fault::SYNTAX),
    }
}

fn flush(view: View<'_>) {
    let watches = &view.state().watches;
    if watches.any() {
        watches.touch_all(view.number(), |key| view.exists(key));
    }
    view.count_changes(view.database().len());
    view.clear();
}

fn swapdb(call: &mut Call<'_, '_>) -> Outcome {
    let number = |position, fault| {
        parse_i64(call.args.arg(position))
            .and_then(|number| i32::try_from(number).ok())
            .ok_or(fault)
    };
    let first = number(1, Fault::new("ERR invalid first DB index"))?;
    let second = number(2, Fault::new("ERR invalid second DB index"))?;
    let (first, second) = (call.view_of(first)?, call.view_of(second)?);
    if first.number() != second.number() {
        let watches = &call.state().watches;
        for view in [first, second] {
            watches.touch_all(view.number(), |key| first.exists(key) || second.exists(key));
        }
        call.state().databases.swap(first.number(), second.number());
        first.count_changes(1);
    }
    call.ok()
}

fn time(call: &mut Call<'_, '_>) -> Outcome {
    let micros = call.context.shared.unix_nanos(call.context.now) / 1000;
    call.reply.array(2);
    call.reply.bulk((micros / 1_000_000).to_string().as_bytes());
    call.reply.bulk((micros % 1_000_000).to_string().as_bytes());
    Ok(Flow::Done)
}
