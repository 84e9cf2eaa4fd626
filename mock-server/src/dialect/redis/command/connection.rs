//! The connection itself: handshake, login, database, end.

use kvlab_protocol::resp::Version;
use kvlab_protocol::resp::number::parse_i64;

use crate::dialect::Flow;
use crate::dialect::redis::acl;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::peer::Replies;
use crate::dialect::redis::row::category::CONNECTION;
use crate::dialect::redis::row::flag::{
    ALLOW_BUSY, FAST, LOADING, NEVER_QUEUED, NO_AUTH, NOSCRIPT, STALE,
};
use crate::dialect::redis::row::{Family, Row};

/// The commands of the connection, but for CLIENT.
pub(crate) const FAMILY: Family = Family {
    group: "connection",
    rows: &[
        Row::new("auth", -2, auth)
            .flags(BEFORE_LOGIN)
            .categories(CONNECTION)
            .doc("[username] password", "Logs in."),
        Row::new("echo", 2, echo)
            .flags(LOADING | STALE | FAST)
            .categories(CONNECTION)
            .doc("message", "Answers with its argument."),
        Row::new("hello", -1, hello)
            .flags(BEFORE_LOGIN)
            .categories(CONNECTION)
            .since(6, 0, 0)
            .doc(
                "[protover [AUTH <username password>] [SETNAME clientname]]",
                "Chooses the protocol and logs in.",
            ),
        Row::new("ping", -1, ping)
            .flags(FAST)
            .categories(CONNECTION)
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
            .doc("[message]", "Answers that the server is alive."),
        Row::new("quit", -1, quit)
            .flags(BEFORE_LOGIN | NEVER_QUEUED)
            .categories(CONNECTION)
            .doc("", "Ends the connection."),
        Row::new("reset", 1, reset)
            .flags(BEFORE_LOGIN | NEVER_QUEUED)
            .categories(CONNECTION)
            .since(6, 2, 0)
            .doc("", "Takes the connection back to its beginning."),
        Row::new("select", 2, select)
            .flags(LOADING | STALE | FAST)
            .categories(CONNECTION)
            .doc("index", "Selects a database."),
    ],
};

const BEFORE_LOGIN: u32 = NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY;

fn ping(call: &mut Call<'_, '_>) -> Outcome {
    match call.args.len() {
        1 => {
            call.reply.raw(b"+PONG\r\n");
            Ok(Flow::Done)
        }
        2 => call.bulk_or_null(call.args.get(1)),
        _ => Err(Fault::wrong_arity(call.command.name)),
    }
}

fn echo(call: &mut Call<'_, '_>) -> Outcome {
    call.bulk_or_null(call.args.get(1))
}

fn quit(call: &mut Call<'_, '_>) -> Outcome {
    call.ok()?;
    Ok(Flow::Close)
}

fn select(call: &mut Call<'_, '_>) -> Outcome {
    let number = call.int(1)?;
    let number = call.view_of(number)?.number();
    call.peer.database = number;
    call.context.client.details().db = number;
    call.ok()
}

fn auth(call: &mut Call<'_, '_>) -> Outcome {
    let (user, password) = match call.args.len() {
        2 => {
            let default = call.state().users.default_user().definition();
            if default.is_password_free() {
                return Err(Fault::new(
                    "ERR AUTH <password> called without any password configured for the default \
                     user. Are you sure your configuration is correct?",
                ));
            }
            (&b"default"[..], call.args.arg(1))
        }
        3 => (call.args.arg(1), call.args.arg(2)),
        _ => return Err(Fault::SYNTAX),
    };
    log_in(call, user, password)?;
    call.ok()
}

/// Makes the connection one of `user`, if this is a password of theirs.
fn log_in(call: &mut Call<'_, '_>, user: &[u8], password: &[u8]) -> Result<(), Fault> {
    let users = &call.state().users;
    let Some(user) = users.log_in(user, password) else {
        acl::note_failed_login(call, user);
        return Err(Fault::WRONG_PASSWORD);
    };
    call.context.client.details().user = user.name().to_vec();
    call.peer.log_in(user);
    Ok(())
}

fn hello(call: &mut Call<'_, '_>) -> Outcome {
    let version = match call.args.get(1).map(parse_i64) {
        None => None,
        Some(Some(2)) => Some(Version::Resp2),
        Some(Some(3)) => Some(Version::Resp3),
        Some(Some(_)) => return Err(Fault::new("NOPROTO unsupported protocol version")),
        Some(None) => {
            return Err(Fault::new(
                "ERR Protocol version is not an integer or out of range",
            ));
        }
    };
    let mut position = 2;
    while let Some(option) = call.args.get(position) {
        let behind = call.args.len() - 1 - position;
        if call.is_word(position, "AUTH") && behind >= 2 {
            log_in(
                call,
                call.args.arg(position + 1),
                call.args.arg(position + 2),
            )?;
            position += 3;
        } else if call.is_word(position, "SETNAME") && behind >= 1 {
            set_name(call, call.args.arg(position + 1))?;
            position += 2;
        } else {
            let before = "ERR Syntax error in HELLO option '";
            return Err(Fault::quoting(before, option, "'"));
        }
    }
    if !call.peer.authenticated {
        return Err(Fault::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(version) = version {
        call.peer.version = version;
        call.context.client.details().resp = protocol_number(version);
    }
    introduce(call)
}

/// Who this server is, in the protocol that was just chosen.
fn introduce(call: &mut Call<'_, '_>) -> Outcome {
    let (version, style) = (call.peer.version, call.state().double_style());
    let server_version = call.state().version.to_string();
    let id = call.context.client.id.0;
    let mut reply = kvlab_protocol::resp::ReplyWriter::new(call.reply.out(), version, style);
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(server_version.as_bytes());
    reply.bulk(b"proto");
    reply.integer(i64::from(protocol_number(version)));
    reply.bulk(b"id");
    reply.integer(i64::try_from(id).unwrap_or(i64::MAX));
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
    Ok(Flow::Done)
}

fn protocol_number(version: Version) -> u8 {
    match version {
        Version::Resp2 => 2,
        Version::Resp3 => 3,
    }
}

/// Gives the connection a name; an empty one takes it away.
pub(super) fn set_name(call: &Call<'_, '_>, name: &[u8]) -> Result<(), Fault> {
    if !name.iter().all(u8::is_ascii_graphic) {
        return Err(Fault::new(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    call.context.client.details().name = name.to_vec();
    Ok(())
}

fn reset(call: &mut Call<'_, '_>) -> Outcome {
    let state = call.state();
    call.peer.discard(state);
    call.peer.database = 0;
    call.peer.version = Version::Resp2;
    call.peer.replies = Replies::On;
    call.peer.no_touch = false;
    call.peer.log_out();
    {
        let mut details = call.context.client.details();
        details.db = 0;
        details.resp = 2;
        details.name.clear();
        details.user = call.peer.user.name().to_vec();
        details.multi = None;
        details.watching = 0;
        details.no_evict = false;
        details.no_touch = false;
    }
    call.simple("RESET")
}
