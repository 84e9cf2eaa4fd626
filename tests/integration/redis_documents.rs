//! docs/commands-redis.md lists what the command table holds: no more, no less, in its words.
//!
//! After a change of the table, `UPDATE_DOCS=1 cargo test -p kvlab-tests redis_documents` writes it anew.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use kvlab_mock_server::dialect::redis::table::{Command, top_level};

const INTRODUCTION: &str = "\
# Redis commands of the mock server

Made from the command table; a test keeps the two alike. A command is known when the version that the
server pretends to be (`--redis-version`, 7.2.4 unless told otherwise) is not older than the one in the
table. Everything else is answered as a real server answers a command that it does not know.

Differences from a real server that are meant:

- `used_memory` is an estimate from the data, and what is evicted when it passes `maxmemory` is drawn by
  the server's seed: see [limits.md](limits.md#memory).
- `CLIENT TRACKING ON` is refused, as no invalidations are sent.
- There are no replicas, no files and no modules: WAIT and WAITAOF count none, and parameters that
  concern them can be set and do nothing.
- ACL LIST and ACL GETUSER show rules about commands in the order in which they were given, as 7.2 does,
  where 7.0 computes a shorter form. Rules can name only the commands listed here. There is no file of
  users, so ACL LOAD and ACL SAVE answer what a server without one answers. See [accounts](accounts.md).
- HELP and COMMAND DOCS describe commands in words of their own.
- KEYS, SCAN and CONFIG GET list in another order, and cursors are other numbers.
";

#[test]
fn the_list_of_commands_is_that_of_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/commands-redis.md");
    let expected = document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/commands-redis.md is out of date: run this test with UPDATE_DOCS=1"
    );
}

fn document() -> String {
    let mut groups: BTreeMap<&str, Vec<&Command>> = BTreeMap::new();
    for command in top_level() {
        groups.entry(command.group).or_default().push(command);
    }
    let mut text = INTRODUCTION.to_owned();
    for (group, mut commands) in groups {
        commands.sort_by_key(|command| command.name);
        let _ = write!(
            text,
            "\n## {group}\n\n| command | since | what it does |\n|---|---|---|\n"
        );
        for command in commands {
            line(&mut text, command);
            for subcommand in command.subcommands() {
                line(&mut text, subcommand);
            }
        }
    }
    text
}

fn line(text: &mut String, command: &Command) {
    let name = command.name.replace('|', " ").to_ascii_uppercase();
    let syntax = format!("{name} {}", command.row.syntax);
    let syntax = syntax.trim_end().replace('|', "\\|");
    let row = command.row;
    let _ = writeln!(text, "| `{syntax}` | {} | {} |", row.since, row.summary);
}
