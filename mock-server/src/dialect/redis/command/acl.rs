//! ACL: users, and what they may do.

use super::client::kill_other;
use super::{help, without_subcommand};
use crate::config::RedisVersion;
use crate::dialect::Flow;
use crate::dialect::redis::acl::selector::{Denial, Selector, has_blanks};
use crate::dialect::redis::acl::{DEFAULT_USER, Definition};
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::row::flag::{ADMIN, LOADING, NOSCRIPT, STALE};
use crate::dialect::redis::row::{Family, Row, category};
use crate::dialect::redis::table;

/// ACL with its subcommands.
pub(crate) const FAMILY: Family = Family {
    group: "server",
    rows: &[Row::new("acl", -2, without_subcommand)
        .subcommands(SUBCOMMANDS)
        .since(6, 0, 0)
        .doc("", "Looks at and changes users and their permissions.")],
};

const OPEN: u32 = NOSCRIPT | LOADING | STALE;
const CLOSED: u32 = ADMIN | OPEN;

const SUBCOMMANDS: &[Row] = &[
    row("cat", -2, cat, OPEN).doc(
        "[category]",
        "Lists the categories, or the commands of one.",
    ),
    row("deluser", -3, deluser, CLOSED)
        .doc("username ...", "Forgets users and ends their connections."),
    row("dryrun", -4, dryrun, CLOSED).since(7, 0, 0).doc(
        "username command [arg ...]",
        "Tells whether a user may run a command, without running it.",
    ),
    row("genpass", -2, genpass, OPEN).doc("[bits]", "Draws a password."),
    row("getuser", 3, getuser, CLOSED).doc("username", "Describes a user."),
    row("help", 2, help, LOADING | STALE).doc("", "Lists the subcommands."),
    row("list", 2, list, CLOSED).doc("", "Lists the rules that make all users."),
    row("load", 2, without_file, CLOSED).doc("", "Reads the users from a file; there is none."),
    row("log", -2, log, CLOSED).doc(
        "[count | RESET]",
        "Lists what was denied lately, or forgets it.",
    ),
    row("save", 2, without_file, CLOSED).doc("", "Writes the users to a file; there is none."),
    row("setuser", -3, setuser, CLOSED).doc(
        "username [rule ...]",
        "Makes or changes a user, by all rules or none.",
    ),
    row("users", 2, users, CLOSED).doc("", "Lists the names of all users."),
    row("whoami", 2, whoami, OPEN).doc("", "Tells the user of this connection."),
];

const fn row(
    name: &'static str,
    arity: i32,
    run: fn(&mut Call<'_, '_>) -> Outcome,
    flags: u32,
) -> Row {
    Row::new(name, arity, run).flags(flags).since(6, 0, 0)
}

fn whoami(call: &mut Call<'_, '_>) -> Outcome {
    let user = call.peer.user.clone();
    call.bulk_or_null(Some(user.name()))
}

fn users(call: &mut Call<'_, '_>) -> Outcome {
    let users = call.state().users.list();
    call.reply.array(users.len());
    for user in users {
        call.reply.bulk(user.name());
    }
    Ok(Flow::Done)
}

fn list(call: &mut Call<'_, '_>) -> Outcome {
    let users = call.state().users.list();
    let version = call.state().version;
    call.reply.array(users.len());
    for user in users {
        let rules = user.definition().rules(version);
        let line = [b"user ", user.name(), b" ", &rules].concat();
        call.reply.bulk(&line);
    }
    Ok(Flow::Done)
}

fn getuser(call: &mut Call<'_, '_>) -> Outcome {
    let Some(user) = call.state().users.find(call.args.arg(2)) else {
        call.reply.null();
        return Ok(Flow::Done);
    };
    let definition = user.definition();
    let flags = definition.flags(call.state().version);
    let reply = &mut call.reply;
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(flags.len());
    for flag in flags {
        reply.bulk(flag.as_bytes());
    }
    reply.bulk(b"passwords");
    reply.array(definition.passwords().len());
    for hash in definition.passwords() {
        reply.bulk(hash.as_bytes());
    }
    describe(call, definition.root());
    call.reply.bulk(b"selectors");
    call.reply.array(definition.others().len());
    for selector in definition.others() {
        call.reply.map(3);
        describe(call, selector);
    }
    Ok(Flow::Done)
}

/// The three pairs of a selector.
fn describe(call: &mut Call<'_, '_>, selector: &Selector) {
    for (name, rules) in [
        ("commands", selector.command_rules()),
        ("keys", selector.key_rules()),
        ("channels", selector.channel_rules()),
    ] {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(&rules);
    }
}

fn setuser(call: &mut Call<'_, '_>) -> Outcome {
    let name = call.args.arg(2);
    if has_blanks(name) {
        return Err(Fault::new(
            "ERR Usernames can't contain spaces or null characters",
        ));
    }
    let users = &call.state().users;
    let mut definition = users
        .find(name)
        .map(|user| Definition::clone(&user.definition()))
        .unwrap_or_default();
    for rule in joined_selectors(call)? {
        definition.apply(&rule).map_err(|error| {
            let after = format!("': {error}");
            Fault::quoting("ERR Error in ACL SETUSER modifier '", &rule, &after)
        })?;
    }
    if !users.define(name, definition) {
        return Err(Fault::new("ERR there are too many users"));
    }
    call.ok()
}

/// The rules of SETUSER. A selector in brackets may come in several arguments; it is one rule.
fn joined_selectors(call: &Call<'_, '_>) -> Result<Vec<Vec<u8>>, Fault> {
    let mut rules = Vec::new();
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for argument in call.args.from(3) {
        let closes = argument.ends_with(b")");
        match open.take() {
            None if argument.starts_with(b"(") && !closes => {
                open = Some((argument, argument.to_vec()));
            }
            None => rules.push(argument.to_vec()),
            Some((first, so_far)) => {
                let joined = [so_far.as_slice(), b" ", argument].concat();
                if closes {
                    rules.push(joined);
                } else {
                    open = Some((first, joined));
                }
            }
        }
    }
    match open {
        None => Ok(rules),
        Some((first, _)) => {
            let before = "ERR Unmatched parenthesis in acl selector starting at '";
            Err(Fault::quoting(before, first, "'."))
        }
    }
}

fn deluser(call: &mut Call<'_, '_>) -> Outcome {
    let names = call.args.from(2);
    if names.iter().any(|name| name == DEFAULT_USER) {
        return Err(Fault::new("ERR The 'default' user cannot be removed"));
    }
    let mut removed = 0;
    let mut flow = Flow::Done;
    for name in names {
        if !call.state().users.remove(name) {
            continue;
        }
        removed += 1;
        for client in super::client_filter::connected(call) {
            if client.details().user != name {
                continue;
            }
            if client.id == call.context.client.id {
                flow = Flow::Close;
            } else {
                kill_other(call, &client);
            }
        }
    }
    call.count(removed)?;
    Ok(flow)
}

fn cat(call: &mut Call<'_, '_>) -> Outcome {
    match call.args.len() {
        2 => {
            call.reply.array(category::NAMES.len());
            for name in category::NAMES {
                call.reply.bulk(name.as_bytes());
            }
            Ok(Flow::Done)
        }
        3 => {
            let wanted = call.args.arg(2);
            let mut names = category::NAMES.iter();
            let bit = names
                .position(|name| name.as_bytes().eq_ignore_ascii_case(wanted))
                .ok_or_else(|| {
                    let shown = wanted.get(..QUOTE_MAX).unwrap_or(wanted);
                    Fault::quoting("ERR Unknown category '", shown, "'")
                })?;
            let version = call.state().version;
            let commands: Vec<_> = table::all()
                .iter()
                .filter(|command| command.row.since <= version)
                .filter(|command| command.row.all_categories() >> bit & 1 == 1)
                .collect();
            call.reply.array(commands.len());
            for command in commands {
                call.reply.bulk(command.name.as_bytes());
            }
            Ok(Flow::Done)
        }
        _ => Err(Fault::subcommand_syntax("ACL", call.args.arg(1))),
    }
}

fn genpass(call: &mut Call<'_, '_>) -> Outcome {
    let bits = match call.args.len() {
        2 => GENPASS_BITS,
        3 => call.integer(2)?,
        _ => return Err(Fault::subcommand_syntax("ACL", call.args.arg(1))),
    };
    let Some(bits) = usize::try_from(bits)
        .ok()
        .filter(|bits| (1..=GENPASS_BITS_MAX).contains(bits))
    else {
        return Err(Fault::from_text(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to {GENPASS_BITS_MAX}"
        )));
    };
    let digits = bits.div_ceil(4);
    let (seed, connection) = (call.context.shared.config.seed, call.context.client.id.0);
    let mut password = String::new();
    while password.len() < digits {
        password.push_str(&format!("{:016x}", call.peer.draw(seed, connection)));
    }
    password.truncate(digits);
    call.bulk_or_null(Some(password.as_bytes()))
}

fn dryrun(call: &mut Call<'_, '_>) -> Outcome {
    let name = call.args.arg(2);
    let Some(user) = call.state().users.find(name) else {
        return Err(Fault::quoting("ERR User '", name, "' not found"));
    };
    let args = call.args.from(3);
    let version = call.state().version;
    let found = table::find(args.name()).and_then(|command| {
        if command.is_container() && args.len() > 1 {
            command.subcommand(args.arg(1))
        } else {
            Some(command)
        }
    });
    let Some(command) = found.filter(|command| command.row.since <= version) else {
        return Err(Fault::quoting("ERR Command '", args.name(), "' not found"));
    };
    if !command.row.accepts(args.len()) {
        return Err(Fault::wrong_arity(command.name));
    }
    let Err(denial) = user.definition().check(command, args) else {
        return call.ok();
    };
    let who: Vec<u8> = if version >= RedisVersion::V7_2 {
        [b"User ", user.name()].concat()
    } else {
        b"This user".to_vec()
    };
    let what: [&[u8]; 3] = match denial {
        Denial::Command => [b"run the '", command.name.as_bytes(), b"' command"],
        Denial::Key(place) => [b"access the '", args.arg(place), b"' key"],
        Denial::Channel(place) => [b"access the '", args.arg(place), b"' channel"],
    };
    let text = [&who, &b" has no permissions to "[..], &what.concat()].concat();
    call.bulk_or_null(Some(&text))
}

fn log(call: &mut Call<'_, '_>) -> Outcome {
    let count = match call.args.len() {
        2 => LOG_LINES,
        3 if call.is_word(2, "RESET") => {
            call.state().users.log.clear();
            return call.ok();
        }
        3 => call.integer(2)?,
        _ => return Err(Fault::subcommand_syntax("ACL", call.args.arg(1))),
    };
    let lines = call
        .state()
        .users
        .log
        .newest(usize::try_from(count).unwrap_or(0));
    let now = call.context.unix_millis();
    let is_new = call.state().version >= RedisVersion::V7_2;
    let reply = &mut call.reply;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    reply.array(lines.len());
    for line in lines {
        reply.map(if is_new { 10 } else { 7 });
        reply.bulk(b"count");
        reply.integer(number(line.count));
        for (name, value) in [
            ("reason", line.entry.reason.as_bytes()),
            ("context", line.entry.context.as_bytes()),
            ("object", &line.entry.object),
            ("username", &line.entry.user),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(value);
        }
        reply.bulk(b"age-seconds");
        reply.double(seconds(now.saturating_sub(line.updated_ms)));
        reply.bulk(b"client-info");
        reply.bulk(&line.entry.client);
        if is_new {
            for (name, value) in [
                ("entry-id", line.id),
                ("timestamp-created", line.created_ms),
                ("timestamp-last-updated", line.updated_ms),
            ] {
                reply.bulk(name.as_bytes());
                reply.integer(number(value));
            }
        }
    }
    Ok(Flow::Done)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an age of more than 2^53 milliseconds does not occur"
)]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

fn without_file(_call: &mut Call<'_, '_>) -> Outcome {
    Err(Fault::new(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify \
         users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a \
         Redis configuration file set) in order to store users in the Redis configuration.",
    ))
}

/// Longest part of a category's name that an error quotes.
const QUOTE_MAX: usize = 128;
/// Bits of a password when nothing is said.
const GENPASS_BITS: i64 = 256;
const GENPASS_BITS_MAX: usize = 4096;
/// Lines of the log when nothing is said.
const LOG_LINES: i64 = 10;
