//! The command table: every command as a row of data.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::{Call, command};
use crate::dialect::Flow;
use crate::exchange::Class;

/// One command.
#[derive(Debug)]
pub struct Spec {
    /// Position in the table, which is its ordinal in statistics; 0 is the unknown command.
    pub ordinal: u16,
    /// Name in lower case.
    pub name: &'static str,
    /// Read, write or neither.
    pub class: Class,
    /// Position of the first key among the arguments, 0 if there is none.
    pub first_key: usize,
    /// Runs it.
    pub run: fn(&mut Call<'_, '_>) -> Flow,
}

/// The command named `name`, in any case.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut lower = [0; LONGEST_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    INDEX.get(&*lower).copied()
}

/// The names by ordinal.
#[must_use]
pub fn command_names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        std::iter::once("unknown")
            .chain(TABLE.iter().map(|spec| spec.name))
            .collect()
    });
    &NAMES
}

const LONGEST_NAME: usize = 32;

static INDEX: LazyLock<HashMap<&'static [u8], &'static Spec, FixedState>> = LazyLock::new(|| {
    TABLE
        .iter()
        .map(|spec| (spec.name.as_bytes(), spec))
        .collect()
});

static TABLE: &[Spec] = &[
    Spec {
        ordinal: 1,
        name: "ping",
        class: Class::Admin,
        first_key: 0,
        run: command::ping,
    },
    Spec {
        ordinal: 2,
        name: "get",
        class: Class::Read,
        first_key: 1,
        run: command::get,
    },
    Spec {
        ordinal: 3,
        name: "set",
        class: Class::Write,
        first_key: 1,
        run: command::set,
    },
];
