//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.

use kvlab_protocol::resp::ReplyWriter;

use crate::dialect::Flow;
use crate::dialect::redis::acl;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::dispatch;
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::row::category::TRANSACTION;
use crate::dialect::redis::row::flag::{
    ALLOW_BUSY, FAST, LOADING, NEVER_QUEUED, NOSCRIPT, RUNS_OTHERS, SKIP_SLOWLOG, STALE,
    WHOLE_KEYSPACE,
};
use crate::dialect::redis::row::{Family, KeySpec, Row};
use crate::dialect::redis::view::View;

/// The commands of transactions.
pub(crate) const FAMILY: Family = Family {
    group: "transactions",
    rows: &[
        Row::new("discard", 1, discard)
            .flags(ALWAYS | FAST | ALLOW_BUSY)
            .categories(TRANSACTION)
            .since(2, 0, 0)
            .doc("", "Drops the open transaction."),
        Row::new("exec", 1, exec)
            .flags(ALWAYS | SKIP_SLOWLOG | WHOLE_KEYSPACE | RUNS_OTHERS)
            .categories(TRANSACTION)
            .since(1, 2, 0)
            .doc(
                "",
                "Runs the commands of the open transaction at one moment.",
            ),
        Row::new("multi", 1, multi)
            .flags(ALWAYS | FAST | ALLOW_BUSY)
            .categories(TRANSACTION)
            .since(1, 2, 0)
            .doc("", "Opens a transaction."),
        Row::new("unwatch", 1, unwatch)
            .flags(NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY)
            .categories(TRANSACTION)
            .since(2, 2, 0)
            .doc("", "Forgets the watched keys."),
        Row::new("watch", -2, watch)
            .flags(ALWAYS | FAST | ALLOW_BUSY | WHOLE_KEYSPACE)
            .categories(TRANSACTION)
            .keys(&[KeySpec::all(1, 1, &["RO"])])
            .since(2, 2, 0)
            .doc(
                "key ...",
                "Lets the next EXEC fail if one of the keys changes.",
            ),
    ],
};

const ALWAYS: u32 = NOSCRIPT | LOADING | STALE | NEVER_QUEUED;

fn multi(call: &mut Call<'_, '_>) -> Outcome {
    if call.peer.transaction.is_some() {
        return Err(Fault::new("ERR MULTI calls can not be nested"));
    }
    call.peer.transaction = Some(Box::default());
    call.context.client.details().multi = Some(0);
    call.ok()
}

fn discard(call: &mut Call<'_, '_>) -> Outcome {
    if call.peer.transaction.is_none() {
        return Err(Fault::new("ERR DISCARD without MULTI"));
    }
    end(call);
    call.ok()
}

fn watch(call: &mut Call<'_, '_>) -> Outcome {
    if call.peer.transaction.is_some() {
        return Err(Fault::new("ERR WATCH inside MULTI is not allowed"));
    }
    let (view, state) = (call.view(), call.state());
    for key in call.args.from(1) {
        // A key that has expired counts as absent from the start, so it goes now: its removal later
        // would look like a change.
        view.purge(key);
        call.peer.watching.add(&state.watches, view.number(), key);
    }
    call.context.client.details().watching = call.peer.watching.len();
    call.ok()
}

fn unwatch(call: &mut Call<'_, '_>) -> Outcome {
    call.peer.watching.clear(&call.state().watches);
    call.context.client.details().watching = 0;
    call.ok()
}

fn exec(call: &mut Call<'_, '_>) -> Outcome {
    let Some(transaction) = call.peer.transaction.take() else {
        return Err(Fault::new("ERR EXEC without MULTI"));
    };
    for (number, key) in call.peer.watching.keys() {
        // A watched key that expired meanwhile is a change; its removal marks it as one.
        if let Some(view) = View::new(call.context, number) {
            view.purge(key);
        }
    }
    let changed = call.peer.watching.is_dirty();
    end(call);
    if transaction.broken {
        return Err(Fault::new(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    if changed {
        call.reply.null_array();
        return Ok(Flow::Done);
    }
    call.reply.array(transaction.queued.len());
    let mut flow = Flow::Done;
    let style = call.state().double_style();
    for (command, args) in &transaction.queued {
        // Not the version of the EXEC itself: a HELLO among the commands changes it on the way.
        let version = call.peer.version;
        let mut inner = Call {
            command,
            args: args.as_args(),
            reply: ReplyWriter::new(call.reply.out(), version, style),
            context: &mut *call.context,
            peer: &mut *call.peer,
            may_park: false,
        };
        // What a user may do may have changed since the command was queued.
        let permitted = if inner.peer.user.is_unrestricted() {
            Ok(())
        } else {
            acl::permit(&inner)
        };
        let outcome = match permitted {
            Ok(()) => dispatch::run(&mut inner),
            Err(denial) => {
                let fault = Fault::denied_at_last(denial);
                inner.state().counters.count_error(fault.code());
                Err(fault)
            }
        };
        match outcome {
            Ok(Flow::Close) => flow = Flow::Close,
            Ok(_) => {}
            Err(fault) => {
                let version = call.peer.version;
                ReplyWriter::new(call.reply.out(), version, style).error_bytes(fault.text());
            }
        }
    }
    Ok(flow)
}

/// The transaction is over, whatever became of it.
fn end(call: &mut Call<'_, '_>) {
    call.peer.discard(call.state());
    let mut details = call.context.client.details();
    details.multi = None;
    details.watching = 0;
}
