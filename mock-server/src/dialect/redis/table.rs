//! The command table: every family's rows, numbered and indexed by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::command;
use super::row::{Family, Row, flag};
use crate::exchange::Class;

/// The families. Each is a file in [`super::command`].
const FAMILIES: &[Family] = &[
    command::connection::FAMILY,
    command::client::FAMILY,
    command::acl::FAMILY,
    command::server::FAMILY,
    command::config::FAMILY,
    command::info::FAMILY,
    command::introspection::FAMILY,
    command::keys::FAMILY,
    command::object::FAMILY,
    command::expiry::FAMILY,
    command::string::FAMILY,
    command::transaction::FAMILY,
    command::cluster::FAMILY,
];

/// A command or subcommand with its place in the table.
#[derive(Debug)]
pub struct Command {
    /// Its number in statistics; 0 is the unknown command.
    pub ordinal: u16,
    /// Full name in lower case: `get`, `client|list`.
    pub name: &'static str,
    /// What is known about it.
    pub row: &'static Row,
    /// The group it is documented in.
    pub group: &'static str,
    /// Read, write or neither.
    pub class: Class,
    /// Position of the first key, 0 if there is none.
    pub first_key: usize,
    /// How it passes the gate between workers.
    pub passage: Passage,
    /// Whether it is a subcommand.
    pub is_subcommand: bool,
    /// The numbers of its subcommands.
    subcommands: std::ops::Range<usize>,
}

/// How a command passes the gate that makes commands over several keys atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// It touches no key.
    Free,
    /// It touches one key.
    Shared,
    /// It touches one key if it has no more arguments than this, else several.
    SharedUpTo(usize),
    /// It touches several keys.
    Exclusive,
}

impl Command {
    /// Its subcommands.
    pub fn subcommands(&self) -> &'static [Command] {
        TABLE
            .commands
            .get(self.subcommands.clone())
            .unwrap_or_default()
    }

    /// Whether it has subcommands.
    #[must_use]
    pub fn is_container(&self) -> bool {
        !self.subcommands.is_empty()
    }

    /// The subcommand named `name`, in any case.
    #[must_use]
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Command> {
        self.subcommands()
            .iter()
            .find(|command| command.row.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// The command named `name`, in any case; containers, not subcommands.
#[must_use]
#[inline]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; LONGEST_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let table = &*TABLE;
    table.commands.get(*table.index.get(&*lower)?)
}

/// The command with a full name such as `get` or `client|list`, in any case.
#[must_use]
pub fn find_full(name: &[u8]) -> Option<&'static Command> {
    match name.iter().position(|byte| *byte == b'|') {
        None => find(name),
        Some(bar) => {
            let (container, sub) = name.split_at(bar);
            find(container)?.subcommand(sub.get(1..)?)
        }
    }
}

/// All commands without their subcommands.
pub fn top_level() -> impl Iterator<Item = &'static Command> {
    TABLE
        .commands
        .iter()
        .filter(|command| !command.is_subcommand)
}

/// All commands and subcommands.
#[must_use]
pub fn all() -> &'static [Command] {
    &TABLE.commands
}

/// The full names by ordinal.
#[must_use]
pub fn command_names() -> &'static [&'static str] {
    &TABLE.names
}

#[derive(Debug)]
struct Table {
    commands: Vec<Command>,
    names: Vec<&'static str>,
    index: HashMap<&'static [u8], usize, FixedState>,
}

const LONGEST_NAME: usize = 32;

static TABLE: LazyLock<Table> = LazyLock::new(build);

fn build() -> Table {
    let mut commands = Vec::new();
    let mut index = HashMap::default();
    for family in FAMILIES {
        for row in family.rows {
            let place = commands.len();
            index.insert(row.name.as_bytes(), place);
            let from = place + 1;
            let to = from + row.subcommands.len();
            commands.push(place_row(row, row.name, family.group, place, from..to));
            for sub in row.subcommands {
                // Names live as long as the table, which is as long as the program.
                let name: &'static str = Box::leak(format!("{}|{}", row.name, sub.name).into());
                let place = commands.len();
                let mut command = place_row(sub, name, family.group, place, 0..0);
                command.is_subcommand = true;
                commands.push(command);
            }
        }
    }
    let names = std::iter::once("unknown")
        .chain(commands.iter().map(|command| command.name))
        .collect();
    Table {
        commands,
        names,
        index,
    }
}

fn place_row(
    row: &'static Row,
    name: &'static str,
    group: &'static str,
    place: usize,
    subcommands: std::ops::Range<usize>,
) -> Command {
    let class = if row.flags & (flag::WRITE | flag::RUNS_OTHERS) != 0 {
        Class::Write
    } else if row.flags & flag::READONLY != 0 {
        Class::Read
    } else {
        Class::Admin
    };
    Command {
        ordinal: u16::try_from(place + 1).unwrap_or(u16::MAX),
        name,
        row,
        group,
        class,
        first_key: row.keys.first().map_or(0, |spec| usize::from(spec.first)),
        passage: passage(row),
        is_subcommand: false,
        subcommands,
    }
}

fn passage(row: &Row) -> Passage {
    if row.flags & flag::WHOLE_KEYSPACE != 0 {
        return Passage::Exclusive;
    }
    match row.keys {
        [] if row.flags & flag::ANY_KEY != 0 => Passage::Shared,
        [] => Passage::Free,
        [only] if only.last == 0 => Passage::Shared,
        [only] if only.last < 0 => Passage::SharedUpTo(usize::from(only.first + only.step)),
        _ => Passage::Exclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_lower_case_and_short_enough_to_be_found() {
        for command in all() {
            assert_eq!(command.name, command.name.to_ascii_lowercase());
            let found = find_full(command.name.to_ascii_uppercase().as_bytes());
            assert!(found.is_some_and(|found| found.ordinal == command.ordinal));
            assert_eq!(command_names()[usize::from(command.ordinal)], command.name);
        }
        assert!(find(b"no such command").is_none());
        assert!(find(&[b'x'; 100]).is_none());
    }

    #[test]
    fn every_command_is_described() {
        for command in all() {
            assert!(!command.row.summary.is_empty(), "{}", command.name);
            assert_ne!(command.row.arity, 0, "{}", command.name);
        }
    }
}
