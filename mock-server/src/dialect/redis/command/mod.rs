//! The commands, one file per family. A family is its rows, in `FAMILY`, and their handlers; adding
//! one is a file here and a line in [`super::table`].

pub(super) mod acl;
pub(super) mod client;
mod client_filter;
mod client_text;
pub(super) mod cluster;
pub(super) mod config;
pub(super) mod connection;
mod expire_option;
pub(super) mod expiry;
pub(super) mod info;
mod info_text;
pub(super) mod introspection;
pub(super) mod keys;
mod lcs;
pub(super) mod object;
mod scan;
pub(super) mod server;
pub(super) mod string;
mod string_number;
mod string_range;
pub(super) mod transaction;
mod waiting;

use super::call::{Call, Outcome};
use super::fault::Fault;

/// The line by which CLIENT LIST describes the connection of `call`.
pub(super) fn client_line(call: &Call<'_, '_>) -> Vec<u8> {
    client_text::line(call, call.context.client)
}

/// Runs a container that was named without a subcommand. Its arity asks for one, so this is reached
/// by no request.
pub(super) fn without_subcommand(call: &mut Call<'_, '_>) -> Outcome {
    Err(Fault::wrong_arity(call.command.name))
}

/// Answers HELP: how the subcommands are called and what they do, from their rows.
pub(super) fn help(call: &mut Call<'_, '_>) -> Outcome {
    let container = call.command.name.split('|').next().unwrap_or_default();
    let Some(container) = super::table::find(container.as_bytes()) else {
        return Err(Fault::SYNTAX);
    };
    let version = call.state().version;
    let subcommands = || {
        container
            .subcommands()
            .iter()
            .filter(|sub| sub.row.since <= version)
    };
    call.reply.array(1 + 2 * subcommands().count());
    call.reply.simple(&format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        container.name.to_ascii_uppercase()
    ));
    for sub in subcommands() {
        let head = format!("{} {}", sub.row.name.to_ascii_uppercase(), sub.row.syntax);
        call.reply.simple(head.trim_end());
        call.reply.simple(&format!("    {}", sub.row.summary));
    }
    Ok(crate::dialect::Flow::Done)
}
