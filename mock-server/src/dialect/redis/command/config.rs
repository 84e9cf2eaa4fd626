//! CONFIG: the parameters of the server.

use super::{help, without_subcommand};
use crate::dialect::Flow;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::row::flag::{ADMIN, LOADING, NOSCRIPT, STALE};
use crate::dialect::redis::row::{Family, Row};
use crate::event::Event;
use crate::exchange::Protocol;

/// CONFIG with its subcommands.
pub(crate) const FAMILY: Family = Family {
    group: "server",
    rows: &[Row::new("config", -2, without_subcommand)
        .subcommands(SUBCOMMANDS)
        .since(2, 0, 0)
        .doc("", "Looks at and changes parameters of the server.")],
};

const USUAL: u32 = ADMIN | NOSCRIPT | LOADING | STALE;

const SUBCOMMANDS: &[Row] = &[
    Row::new("get", -3, get)
        .flags(USUAL)
        .since(2, 0, 0)
        .doc("parameter ...", "Lists the parameters that match patterns."),
    Row::new("help", 2, help)
        .flags(LOADING | STALE)
        .since(5, 0, 0)
        .doc("", "Lists the subcommands."),
    Row::new("resetstat", 2, resetstat)
        .flags(USUAL)
        .since(2, 0, 0)
        .doc("", "Starts the counters of INFO again."),
    Row::new("rewrite", 2, rewrite)
        .flags(USUAL)
        .since(2, 8, 0)
        .doc(
            "",
            "Writes the parameters to the configuration file; there is none.",
        ),
    Row::new("set", -4, set)
        .flags(USUAL)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .since(2, 0, 0)
        .doc("<parameter value> ...", "Sets parameters, all or none."),
];

fn get(call: &mut Call<'_, '_>) -> Outcome {
    let mut found = call.state().settings.matching(call.args.from(2).iter());
    let addresses = call.context.shared.addresses.get().copied();
    let addresses = addresses.unwrap_or_default();
    // A port that is not open is 0, as with a real server.
    for (parameter, open) in [
        ("port", addresses.redis.or(addresses.shared)),
        ("tls-port", addresses.redis_tls.or(addresses.shared_tls)),
    ] {
        if let Some(entry) = found
            .iter_mut()
            .find(|(name, _)| name.eq_ignore_ascii_case(parameter))
        {
            entry.1 = open.map_or(0, |address| address.port()).to_string();
        }
    }
    call.reply.map(found.len());
    for (name, value) in found {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    Ok(Flow::Done)
}

fn set(call: &mut Call<'_, '_>) -> Outcome {
    let given = call.args.from(2);
    if !given.len().is_multiple_of(2) {
        return Err(Fault::SYNTAX);
    }
    let mut rest = given.iter();
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (rest.next(), rest.next()) {
        pairs.push((name, value));
    }
    let settings = &call.state().settings;
    let before = settings.live().of_connections();
    settings.set(&pairs)?;
    let after = settings.live().of_connections();
    let shared = call.context.shared;
    if after.max != before.max {
        shared.gatekeeper.set_cap(Protocol::Redis, after.max);
    }
    if (after.idle_ns, after.output) != (before.idle_ns, before.output) {
        shared.post.broadcast(Event::NewLimits);
    }
    // The password for everybody is that of the default user.
    let password = pairs
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(b"requirepass"));
    if let Some((_, password)) = password {
        call.state().users.require_password(password);
    }
    call.ok()
}

fn resetstat(call: &mut Call<'_, '_>) -> Outcome {
    call.state().counters.reset();
    call.state().users.reset_counts();
    let gatekeeper = &call.context.shared.gatekeeper;
    gatekeeper.reset_statistics(Protocol::Redis);
    call.ok()
}

fn rewrite(_call: &mut Call<'_, '_>) -> Outcome {
    Err(Fault::new(
        "ERR The server is running without a config file",
    ))
}
