//! CLIENT: what connections are, called and allowed.

use std::time::Duration;

use super::client_filter::{Filter, client_type};
use super::client_text::line;
use super::connection::set_name;
use super::waiting::timeout;
use super::{help, without_subcommand};
use crate::clients::ClientInfo;
use crate::dialect::Flow;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::peer::Replies;
use crate::dialect::redis::row::category::CONNECTION;
use crate::dialect::redis::row::flag::{ADMIN, LOADING, NOSCRIPT, STALE};
use crate::dialect::redis::row::{Family, Row};
use crate::event::Event;
use kvlab_protocol::resp::number::parse_i64;

/// CLIENT with its subcommands.
pub(crate) const FAMILY: Family = Family {
    group: "connection",
    rows: &[Row::new("client", -2, without_subcommand)
        .subcommands(SUBCOMMANDS)
        .since(2, 4, 0)
        .doc("", "Looks at and changes connections.")],
};

const USUAL: u32 = NOSCRIPT | LOADING | STALE;

const SUBCOMMANDS: &[Row] = &[
    row("caching", 3, caching, USUAL).since(6, 0, 0).doc(
        "<YES | NO>",
        "Says whether the keys of the next command are tracked.",
    ),
    row("getname", 2, getname, USUAL)
        .since(2, 6, 9)
        .doc("", "Tells the name of this connection."),
    row("getredir", 2, getredir, USUAL).since(6, 0, 0).doc(
        "",
        "Tells which connection is sent the invalidations of this one.",
    ),
    row("help", 2, help, LOADING | STALE)
        .since(5, 0, 0)
        .doc("", "Lists the subcommands."),
    row("id", 2, id, USUAL)
        .since(5, 0, 0)
        .doc("", "Tells the number of this connection."),
    row("info", 2, info, USUAL)
        .tips(&["nondeterministic_output"])
        .since(6, 2, 0)
        .doc("", "Describes this connection."),
    row("kill", -3, kill, ADMIN | USUAL).since(2, 4, 0).doc(
        "<ip:port | <[ID client-id] [TYPE type] [USER username] [ADDR ip:port] [LADDR ip:port] \
         [SKIPME yes/no]> ...>",
        "Ends connections.",
    ),
    row("list", -2, list, ADMIN | USUAL)
        .tips(&["nondeterministic_output"])
        .since(2, 4, 0)
        .doc(
            "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id ...]",
            "Describes connections.",
        ),
    row("no-evict", 3, no_evict, ADMIN | USUAL)
        .since(7, 0, 0)
        .doc(
            "<ON | OFF>",
            "Keeps this connection when memory for clients is short.",
        ),
    row("no-touch", 3, no_touch, USUAL).since(7, 2, 0).doc(
        "<ON | OFF>",
        "Lets commands of this connection not count as uses of keys.",
    ),
    row("pause", -3, pause, ADMIN | USUAL).since(2, 9, 50).doc(
        "timeout [WRITE | ALL]",
        "Holds commands for some milliseconds.",
    ),
    row("reply", 3, reply, USUAL)
        .since(3, 2, 0)
        .doc("<ON | OFF | SKIP>", "Says which replies are sent."),
    row("setinfo", 4, setinfo, USUAL).since(7, 2, 0).doc(
        "<LIB-NAME libname | LIB-VER libver>",
        "Tells what library the client uses.",
    ),
    row("setname", 3, setname, USUAL)
        .since(2, 6, 9)
        .doc("connection-name", "Gives this connection a name."),
    row("tracking", -3, tracking, USUAL).since(6, 0, 0).doc(
        "<ON | OFF> [REDIRECT client-id] [PREFIX prefix]... [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
        "Asks for invalidations; this server sends none, so ON is refused.",
    ),
    row("trackinginfo", 2, trackinginfo, USUAL)
        .since(6, 2, 0)
        .doc("", "Tells how this connection tracks keys."),
    row("unblock", -3, unblock, ADMIN | USUAL)
        .since(5, 0, 0)
        .doc(
            "client-id [TIMEOUT | ERROR]",
            "Ends the wait of a blocked connection.",
        ),
    row("unpause", 2, unpause, ADMIN | USUAL)
        .since(6, 2, 0)
        .doc("", "Ends a pause."),
];

const fn row(
    name: &'static str,
    arity: i32,
    run: fn(&mut Call<'_, '_>) -> Outcome,
    flags: u32,
) -> Row {
    Row::new(name, arity, run)
        .flags(flags)
        .categories(CONNECTION)
}

fn id(call: &mut Call<'_, '_>) -> Outcome {
    let id = call.context.client.id.0;
    call.number(i64::try_from(id).unwrap_or(i64::MAX))
}

fn getname(call: &mut Call<'_, '_>) -> Outcome {
    let name = call.context.client.details().name.clone();
    call.bulk_or_null((!name.is_empty()).then_some(&name))
}

fn setname(call: &mut Call<'_, '_>) -> Outcome {
    set_name(call, call.args.arg(2))?;
    call.ok()
}

fn setinfo(call: &mut Call<'_, '_>) -> Outcome {
    let (option, value) = (call.args.arg(2), call.args.arg(3));
    let (is_name, is_version) = (call.is_word(2, "LIB-NAME"), call.is_word(2, "LIB-VER"));
    if !is_name && !is_version {
        return Err(Fault::quoting("ERR Unrecognized option '", option, "'"));
    }
    if !value.iter().all(u8::is_ascii_graphic) {
        let after = " cannot contain spaces, newlines or special characters.";
        return Err(Fault::quoting("ERR ", option, after));
    }
    {
        let mut details = call.context.client.details();
        if is_name {
            details.lib_name = value.to_vec();
        } else {
            details.lib_ver = value.to_vec();
        }
    }
    call.ok()
}

fn info(call: &mut Call<'_, '_>) -> Outcome {
    note(call);
    let mut text = line(call, call.context.client);
    text.push(b'\n');
    call.reply.verbatim(b"txt", &text);
    Ok(Flow::Done)
}

fn list(call: &mut Call<'_, '_>) -> Outcome {
    let mut ids = None;
    let mut kind = None;
    match call.args.len() {
        2 => {}
        4 if call.is_word(2, "TYPE") => kind = Some(client_type(call.args.arg(3))?),
        4.. if call.is_word(2, "ID") => {
            let mut wanted = Vec::new();
            for id in call.args.from(3) {
                let id = parse_i64(id).ok_or(Fault::new("ERR Invalid client ID"))?;
                wanted.push(id);
            }
            ids = Some(wanted);
        }
        _ => return Err(Fault::SYNTAX),
    }
    note(call);
    let mut text = Vec::new();
    for client in super::client_filter::connected(call) {
        let id = i64::try_from(client.id.0).unwrap_or(i64::MAX);
        if kind.is_some_and(|kind| !kind.includes(&client))
            || ids.as_ref().is_some_and(|ids| !ids.contains(&id))
        {
            continue;
        }
        text.extend_from_slice(&line(call, &client));
        text.push(b'\n');
    }
    call.reply.verbatim(b"txt", &text);
    Ok(Flow::Done)
}

/// Lets the listing show the listing itself as this connection's last command.
fn note(call: &Call<'_, '_>) {
    call.context
        .client
        .note(call.context.now, call.command.ordinal);
}

fn kill(call: &mut Call<'_, '_>) -> Outcome {
    let old_form = call.args.len() == 3;
    let filter = Filter::parse(call)?;
    let mut killed = 0;
    let mut flow = Flow::Done;
    for client in super::client_filter::connected(call) {
        if !filter.matches(call, &client) {
            continue;
        }
        killed += 1;
        if client.id == call.context.client.id {
            flow = Flow::Close;
        } else {
            kill_other(call, &client);
        }
    }
    if !old_form {
        call.count(killed)?;
    } else if killed == 0 {
        return Err(Fault::new("ERR No such client"));
    } else {
        call.ok()?;
    }
    Ok(flow)
}

pub(super) fn kill_other(call: &Call<'_, '_>, client: &ClientInfo) {
    let shared = call.context.shared;
    shared.post.send(client.worker, client.id, Event::Kill);
    // It is no longer listed, though its worker has yet to close it.
    shared.clients.remove(client.id);
}

fn pause(call: &mut Call<'_, '_>) -> Outcome {
    let writes_only = match call.args.len() {
        3 => false,
        4 if call.is_word(3, "WRITE") => true,
        4 if call.is_word(3, "ALL") => false,
        4 => return Err(Fault::new("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(Fault::subcommand_syntax("CLIENT", call.args.arg(1))),
    };
    let length = timeout(call, 2)?.unwrap_or(Duration::ZERO);
    let now = call.context.now;
    let until = now.add_nanos(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    call.state().pause.begin(now, until, writes_only);
    call.ok()
}

fn unpause(call: &mut Call<'_, '_>) -> Outcome {
    call.state().pause.end();
    call.context.shared.post.broadcast(Event::PauseEnd);
    call.ok()
}

fn reply(call: &mut Call<'_, '_>) -> Outcome {
    if call.is_word(2, "ON") {
        call.peer.replies = Replies::On;
        return call.ok();
    }
    if call.is_word(2, "OFF") {
        call.peer.replies = Replies::Off;
    } else if call.is_word(2, "SKIP") {
        if call.peer.replies != Replies::Off {
            call.peer.replies = Replies::SkipNext;
        }
    } else {
        return Err(Fault::SYNTAX);
    }
    Ok(Flow::Done)
}

fn no_evict(call: &mut Call<'_, '_>) -> Outcome {
    let on = on_or_off(call)?;
    call.context.client.details().no_evict = on;
    call.ok()
}

fn no_touch(call: &mut Call<'_, '_>) -> Outcome {
    let on = on_or_off(call)?;
    call.peer.no_touch = on;
    call.context.client.details().no_touch = on;
    call.ok()
}

fn on_or_off(call: &Call<'_, '_>) -> Result<bool, Fault> {
    match (call.is_word(2, "ON"), call.is_word(2, "OFF")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(Fault::SYNTAX),
    }
}

fn unblock(call: &mut Call<'_, '_>) -> Outcome {
    if call.args.len() > 4 {
        return Err(Fault::subcommand_syntax("CLIENT", call.args.arg(1)));
    }
    if call.args.len() == 4 && !call.is_word(3, "TIMEOUT") && !call.is_word(3, "ERROR") {
        return Err(Fault::new(
            "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
        ));
    }
    call.integer(2)?;
    // No command of this server blocks on a key.
    call.number(0)
}

fn caching(call: &mut Call<'_, '_>) -> Outcome {
    let _ = call;
    Err(Fault::new(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
         OPTOUT mode enabled",
    ))
}

fn getredir(call: &mut Call<'_, '_>) -> Outcome {
    call.number(-1)
}

fn tracking(call: &mut Call<'_, '_>) -> Outcome {
    let mut position = 3;
    while position < call.args.len() {
        let takes_value = call.is_word(position, "REDIRECT") || call.is_word(position, "PREFIX");
        let known = ["BCAST", "OPTIN", "OPTOUT", "NOLOOP"]
            .iter()
            .any(|word| call.is_word(position, word));
        if takes_value && position + 1 < call.args.len() {
            if call.is_word(position, "REDIRECT") {
                call.integer(position + 1)?;
            }
            position += 2;
        } else if known {
            position += 1;
        } else {
            return Err(Fault::SYNTAX);
        }
    }
    if on_or_off(call)? {
        return Err(Fault::new(
            "ERR CLIENT TRACKING is not supported: this server sends no invalidations",
        ));
    }
    call.ok()
}

fn trackinginfo(call: &mut Call<'_, '_>) -> Outcome {
    call.reply.map(3);
    call.reply.bulk(b"flags");
    call.reply.set(1);
    call.reply.bulk(b"off");
    call.reply.bulk(b"redirect");
    call.reply.integer(-1);
    call.reply.bulk(b"prefixes");
    call.reply.array(0);
    Ok(Flow::Done)
}
