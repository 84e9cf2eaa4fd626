//! COMMAND: the command table, as clients may read it.

use super::help;
use crate::dialect::Flow;
use crate::dialect::redis::blocked::BlockList;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::glob;
use crate::dialect::redis::named_keys::{NamedKey, named_keys};
use crate::dialect::redis::row::category::CONNECTION;
use crate::dialect::redis::row::flag::{self, LOADING, STALE};
use crate::dialect::redis::row::{Family, KeySpec, Row, category};
use crate::dialect::redis::syntax::{self, Argument};
use crate::dialect::redis::table::{self, Command};
use kvlab_protocol::resp::ReplyWriter;

/// COMMAND with its subcommands.
pub(crate) const FAMILY: Family = Family {
    group: "server",
    rows: &[Row::new("command", -1, command)
        .flags(LOADING | STALE)
        .categories(CONNECTION)
        .tips(&["nondeterministic_output_order"])
        .subcommands(SUBCOMMANDS)
        .since(2, 8, 13)
        .doc("", "Describes all commands.")],
};

const SUBCOMMANDS: &[Row] = &[
    row("count", 2, count)
        .since(2, 8, 13)
        .doc("", "Counts the commands."),
    row("docs", -2, docs)
        .tips(&["nondeterministic_output_order"])
        .since(7, 0, 0)
        .doc("[command-name ...]", "Documents commands."),
    row("getkeys", -4, getkeys)
        .since(2, 8, 13)
        .doc("command [arg ...]", "Finds the keys in a command."),
    row("getkeysandflags", -4, getkeysandflags)
        .since(7, 0, 0)
        .doc(
            "command [arg ...]",
            "Finds the keys in a command, and what it does to them.",
        ),
    row("help", 2, help)
        .since(5, 0, 0)
        .doc("", "Lists the subcommands."),
    row("info", -2, info)
        .tips(&["nondeterministic_output_order"])
        .since(2, 8, 13)
        .doc("[command-name ...]", "Describes commands."),
    row("list", -2, list)
        .tips(&["nondeterministic_output_order"])
        .since(7, 0, 0)
        .doc(
            "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
            "Lists the names of commands.",
        ),
];

const fn row(name: &'static str, arity: i32, run: fn(&mut Call<'_, '_>) -> Outcome) -> Row {
    Row::new(name, arity, run)
        .flags(LOADING | STALE)
        .categories(CONNECTION)
}

/// Whether a server of this version has the command.
fn exists(call: &Call<'_, '_>, command: &Command) -> bool {
    let state = call.state();
    let hides = |blocked: &BlockList| blocked.hides(command);
    command.row.since <= state.version && !state.blocked.as_ref().is_some_and(hides)
}

fn known<'a, 'b, 'c>(
    call: &'a Call<'b, 'c>,
) -> impl Iterator<Item = &'static Command> + use<'a, 'b, 'c> {
    table::top_level().filter(move |command| exists(call, command))
}

fn named(call: &Call<'_, '_>, name: &[u8]) -> Option<&'static Command> {
    table::find_full(name).filter(|command| exists(call, command))
}

fn count(call: &mut Call<'_, '_>) -> Outcome {
    let count = known(call).count();
    call.count(count)
}

fn command(call: &mut Call<'_, '_>) -> Outcome {
    let commands: Vec<_> = known(call).collect();
    call.reply.array(commands.len());
    for command in commands {
        describe(call, command);
    }
    Ok(Flow::Done)
}

fn info(call: &mut Call<'_, '_>) -> Outcome {
    if call.args.len() == 2 {
        return command(call);
    }
    let names = call.args.from(2);
    call.reply.array(names.len());
    for name in names {
        match named(call, name) {
            Some(command) => describe(call, command),
            None => call.reply.null(),
        }
    }
    Ok(Flow::Done)
}

/// One command as COMMAND INFO describes it.
fn describe(call: &mut Call<'_, '_>, command: &'static Command) {
    let row = command.row;
    let (first, last, step) = key_range(row.keys);
    call.reply.array(10);
    call.reply.bulk(command.name.as_bytes());
    call.reply.integer(i64::from(row.arity));
    words(&mut call.reply, row.flags, &flag::NAMES, "");
    call.reply.integer(first);
    call.reply.integer(last);
    call.reply.integer(step);
    words(&mut call.reply, row.all_categories(), &category::NAMES, "@");
    call.reply.set(row.tips.len());
    for tip in row.tips {
        call.reply.bulk(tip.as_bytes());
    }
    call.reply.set(row.keys.len());
    for spec in row.keys {
        describe_keys(&mut call.reply, spec);
    }
    let subcommands: Vec<_> = command
        .subcommands()
        .iter()
        .filter(|sub| exists(call, sub))
        .collect();
    call.reply.set(subcommands.len());
    for sub in subcommands {
        describe(call, sub);
    }
}

/// First key, last key and step as they were told before key specifications existed.
fn key_range(keys: &[KeySpec]) -> (i64, i64, i64) {
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
        return (0, 0, 0);
    };
    let end = if last.last < 0 {
        i64::from(last.last)
    } else {
        i64::from(last.first) + i64::from(last.last)
    };
    (i64::from(first.first), end, i64::from(first.step))
}

/// The set bits of `bits` by name, as a set of simple strings.
fn words(reply: &mut ReplyWriter<'_>, bits: u32, names: &[&str], prefix: &str) {
    let set = names
        .iter()
        .enumerate()
        .filter(|(bit, _)| bits >> bit & 1 == 1);
    reply.set(set.clone().count());
    for (_, name) in set {
        reply.simple(&format!("{prefix}{name}"));
    }
}

fn describe_keys(reply: &mut ReplyWriter<'_>, spec: &KeySpec) {
    reply.map(3 + usize::from(spec.notes.is_some()));
    if let Some(notes) = spec.notes {
        reply.bulk(b"notes");
        reply.bulk(notes.as_bytes());
    }
    reply.bulk(b"flags");
    reply.set(spec.flags.len());
    for flag in spec.flags {
        reply.simple(flag);
    }
    reply.bulk(b"begin_search");
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(b"index");
    reply.bulk(b"spec");
    reply.map(1);
    reply.bulk(b"index");
    reply.integer(i64::from(spec.first));
    reply.bulk(b"find_keys");
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(b"range");
    reply.bulk(b"spec");
    reply.map(3);
    reply.bulk(b"lastkey");
    reply.integer(i64::from(spec.last));
    reply.bulk(b"keystep");
    reply.integer(i64::from(spec.step));
    reply.bulk(b"limit");
    reply.integer(0);
}

fn docs(call: &mut Call<'_, '_>) -> Outcome {
    let commands: Vec<_> = if call.args.len() == 2 {
        known(call).collect()
    } else {
        let names = call.args.from(2).iter();
        names.filter_map(|name| named(call, name)).collect()
    };
    call.reply.map(commands.len());
    for command in commands {
        document(call, command);
    }
    Ok(Flow::Done)
}

/// One command as COMMAND DOCS documents it, behind its name.
fn document(call: &mut Call<'_, '_>, command: &'static Command) {
    let row = command.row;
    let arguments = syntax::parse(row.syntax);
    let subcommands: Vec<_> = command
        .subcommands()
        .iter()
        .filter(|sub| exists(call, sub))
        .collect();
    call.reply.bulk(command.name.as_bytes());
    let pairs = 3 + usize::from(!arguments.is_empty()) + usize::from(!subcommands.is_empty());
    call.reply.map(pairs);
    for (name, value) in [
        ("summary", row.summary),
        ("since", &*row.since.to_string()),
        ("group", command.group),
    ] {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    if !arguments.is_empty() {
        call.reply.bulk(b"arguments");
        let mut keys_seen = 0;
        document_arguments(&mut call.reply, &arguments, &mut keys_seen);
    }
    if !subcommands.is_empty() {
        call.reply.bulk(b"subcommands");
        call.reply.map(subcommands.len());
        for sub in subcommands {
            document(call, sub);
        }
    }
}

fn document_arguments(reply: &mut ReplyWriter<'_>, arguments: &[Argument], keys_seen: &mut i64) {
    reply.array(arguments.len());
    for argument in arguments {
        let is_key = argument.kind == "key";
        let flags = usize::from(argument.optional) + usize::from(argument.multiple);
        let pairs = 2
            + usize::from(is_key)
            + usize::from(argument.token.is_some())
            + usize::from(flags > 0)
            + usize::from(!argument.arguments.is_empty());
        reply.map(pairs);
        reply.bulk(b"name");
        reply.bulk(argument.name.as_bytes());
        reply.bulk(b"type");
        reply.bulk(argument.kind.as_bytes());
        if is_key {
            reply.bulk(b"key_spec_index");
            reply.integer(*keys_seen);
            *keys_seen += 1;
        }
        if let Some(token) = &argument.token {
            reply.bulk(b"token");
            reply.bulk(token.as_bytes());
        }
        if flags > 0 {
            reply.bulk(b"flags");
            reply.set(flags);
            if argument.optional {
                reply.simple("optional");
            }
            if argument.multiple {
                reply.simple("multiple");
            }
        }
        if !argument.arguments.is_empty() {
            reply.bulk(b"arguments");
            document_arguments(reply, &argument.arguments, keys_seen);
        }
    }
}

fn list(call: &mut Call<'_, '_>) -> Outcome {
    let all = |call: &Call<'_, '_>| {
        table::all()
            .iter()
            .filter(|command| exists(call, command))
            .collect::<Vec<_>>()
    };
    let commands: Vec<_> = match call.args.len() {
        // Without a filter subcommands are left out.
        2 => known(call).collect(),
        5 if call.is_word(2, "FILTERBY") => {
            let wanted = call.args.arg(4);
            if call.is_word(3, "MODULE") {
                Vec::new()
            } else if call.is_word(3, "ACLCAT") {
                let bit = category::NAMES
                    .iter()
                    .position(|name| name.as_bytes().eq_ignore_ascii_case(wanted));
                let mut commands = all(call);
                commands.retain(|command| {
                    bit.is_some_and(|bit| command.row.all_categories() >> bit & 1 == 1)
                });
                commands
            } else if call.is_word(3, "PATTERN") {
                let mut commands = all(call);
                commands.retain(|command| glob::matches_any_case(wanted, command.name.as_bytes()));
                commands
            } else {
                return Err(Fault::SYNTAX);
            }
        }
        _ => return Err(Fault::SYNTAX),
    };
    call.reply.array(commands.len());
    for command in commands {
        call.reply.bulk(command.name.as_bytes());
    }
    Ok(Flow::Done)
}

fn getkeys(call: &mut Call<'_, '_>) -> Outcome {
    let (_, keys) = keys_of(call)?;
    call.reply.array(keys.len());
    for named in keys {
        call.reply.bulk(named.key);
    }
    Ok(Flow::Done)
}

fn getkeysandflags(call: &mut Call<'_, '_>) -> Outcome {
    let (_, keys) = keys_of(call)?;
    call.reply.array(keys.len());
    for named in keys {
        call.reply.array(2);
        call.reply.bulk(named.key);
        call.reply.set(named.flags.len());
        for flag in named.flags {
            call.reply.simple(flag);
        }
    }
    Ok(Flow::Done)
}

/// The command that the arguments from the third on are, and its keys.
fn keys_of<'a>(call: &Call<'a, '_>) -> Result<(&'static Command, Vec<NamedKey<'a>>), Fault> {
    let args = call.args.from(2);
    let mut command =
        table::find(args.name()).ok_or(Fault::new("ERR Invalid command specified"))?;
    if command.is_container() {
        command = command
            .subcommand(args.arg(1))
            .ok_or(Fault::new("ERR Invalid command specified"))?;
    }
    if !exists(call, command) {
        return Err(Fault::new("ERR Invalid command specified"));
    }
    if command.row.keys.is_empty() {
        return Err(Fault::new("ERR The command has no key arguments"));
    }
    if !command.row.accepts(args.len()) {
        return Err(Fault::new(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    Ok((command, named_keys(command, args)))
}
