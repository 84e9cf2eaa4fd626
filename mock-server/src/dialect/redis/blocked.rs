//! The commands that nobody may run here, as the dispatcher asks for them.
//!
//! A command blocked in the form `unknown`, or with a text of its own, is refused before anything else
//! is looked at, as one that does not exist; one in the form `noperm` where an ACL would refuse it: it
//! exists, and its arguments are counted first.

use kvlab_protocol::resp::Args;

use super::fault::Fault;
use super::table::{self, Command};
use crate::config::RedisVersion;
use crate::exchange::Protocol;
use crate::limit::{BlockForm, Blocked, RequestLimits};

/// The commands that nobody may run.
#[derive(Debug)]
pub struct BlockList {
    /// By ordinal, whether the command is blocked.
    commands: Box<[bool]>,
    names: Vec<Blocked>,
    form: BlockForm,
}

impl BlockList {
    /// The list for the RESP side, if it blocks anything.
    #[must_use]
    pub fn new(limits: &RequestLimits) -> Option<Self> {
        let names: Vec<Blocked> = limits
            .blocked
            .iter()
            .filter(|blocked| blocked.protocol != Some(Protocol::Aerospike))
            .cloned()
            .collect();
        let blocks = |name: &str| {
            let covers = |blocked: &Blocked| blocked.covers(Protocol::Redis, name);
            names.iter().any(covers)
        };
        if names.is_empty() {
            return None;
        }
        let commands = table::command_names()
            .iter()
            .map(|name| blocks(name))
            .collect();
        Some(Self {
            commands,
            form: limits.block_form.clone(),
            names,
        })
    }

    /// Whether nobody may run `command`.
    #[must_use]
    #[inline]
    pub fn blocks(&self, command: &Command) -> bool {
        let place = usize::from(command.ordinal);
        self.commands.get(place).copied().unwrap_or(false)
    }

    /// Whether COMMAND does not show it.
    #[must_use]
    pub fn hides(&self, command: &Command) -> bool {
        self.form == BlockForm::Unknown && self.blocks(command)
    }

    /// The error for a request that names `command`, where that is refused before anything else is
    /// looked at.
    #[must_use]
    pub fn refuses_at_once(&self, command: &Command, args: Args<'_>) -> Option<Fault> {
        if !self.blocks(command) {
            return None;
        }
        match &self.form {
            BlockForm::NoPermission => None,
            BlockForm::Text(text) => Some(Fault::blocked(text, command.name)),
            BlockForm::Unknown => Some(match command.name.split_once('|') {
                // A subcommand may be missing while its container is there.
                Some((container, _)) if !self.blocks_name(container) => {
                    Fault::unknown_subcommand(container, args.arg(1))
                }
                _ => Fault::unknown_command(args.name(), args.from(1).iter()),
            }),
        }
    }

    /// The error for a blocked command that the user would have permission for.
    #[must_use]
    pub fn refuses_permission(
        &self,
        command: &Command,
        (version, user): (RedisVersion, &[u8]),
    ) -> Option<Fault> {
        (self.form == BlockForm::NoPermission && self.blocks(command))
            .then(|| Fault::no_permission(version, user, command.name))
    }

    /// The error for a blocked command, or an unknown subcommand of one, that this server does not know.
    #[must_use]
    pub fn refuses_unknown(
        &self,
        args: Args<'_>,
        (version, user): (RedisVersion, &[u8]),
    ) -> Option<Fault> {
        let first = String::from_utf8_lossy(args.name()).to_ascii_lowercase();
        let second = String::from_utf8_lossy(args.arg(1)).to_ascii_lowercase();
        let name = [format!("{first}|{second}"), first]
            .into_iter()
            .find(|name| self.names.iter().any(|blocked| blocked.name == *name))?;
        match &self.form {
            // Where the container does not exist, its subcommands are no matter.
            BlockForm::Unknown if !name.contains('|') => {
                Some(Fault::unknown_command(args.name(), args.from(1).iter()))
            }
            BlockForm::Unknown => None,
            // A subcommand that does not exist is told from one that is forbidden.
            BlockForm::NoPermission if table::find(args.name()).is_some() => None,
            BlockForm::NoPermission => Some(Fault::no_permission(version, user, &name)),
            BlockForm::Text(text) => Some(Fault::blocked(text, &name)),
        }
    }

    fn blocks_name(&self, name: &str) -> bool {
        table::find(name.as_bytes()).is_some_and(|command| self.blocks(command))
    }
}
