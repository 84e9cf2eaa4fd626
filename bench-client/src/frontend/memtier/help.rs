//! The texts of `--help` and `--version`, made from the table of the options.

use std::fmt::Write;

use super::table::{Group, Row, TABLE};

/// The help text.
#[must_use]
pub fn help() -> String {
    let mut text = String::from(HEAD);
    for (group, heading) in HEADINGS {
        let _ = write!(text, "\n{heading}:\n");
        for row in TABLE.iter().filter(|row| row.group == group) {
            entry(row, &mut text);
        }
    }
    text.push_str(EXIT_CODES);
    text
}

/// The version.
#[must_use]
pub fn version() -> String {
    format!(
        "kvlab {} (as memtier_benchmark)\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// An option in one column, its help in the other, broken between words.
fn entry(row: &Row, text: &mut String) {
    let short = row
        .short
        .map_or("    ".to_owned(), |short| format!("-{short}, "));
    let argument = row
        .argument
        .map_or(String::new(), |name| format!("={name}"));
    let option = format!("  {short}{}{argument}", row.spelled);
    let mut line = format!("{option:COLUMN$}");
    if option.chars().count() + 2 > COLUMN {
        let _ = writeln!(text, "{option}");
        line = " ".repeat(COLUMN);
    }
    for word in row.help.split(' ') {
        let filled = line.chars().count();
        if filled > COLUMN && filled + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(COLUMN);
        } else if filled > COLUMN {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

const HEAD: &str = "\
Load a Redis server with the command lines of memtier_benchmark, and tell the truth about it.

Usage: kvlab memtier [OPTIONS]
       memtier_benchmark [OPTIONS]        as a link to kvlab

Long options may be shortened as far as only one begins so. Requests, rate and pipeline are per
client; there are --threads times --clients of them.
";
const HEADINGS: [(Group, &str); 9] = [
    (Group::Connection, "Connection"),
    (Group::Output, "Output"),
    (Group::Test, "Test"),
    (Group::Commands, "Commands of one's own"),
    (Group::Objects, "Values"),
    (Group::Import, "Values from a file"),
    (Group::Keys, "Keys"),
    (Group::Wait, "WAIT"),
    (Group::Own, "What memtier_benchmark has not"),
];
const EXIT_CODES: &str = "
Exit codes:
  0    the test did what was asked for
  1    a result could not be written, or a value was not what was written
  2    the options, a file or an address cannot be used
  4    no connection to the server, or it was lost for good
  5    login refused
  6    more errors than --max-errors allows
  130  interrupted; what was measured is printed
";
/// Where the help of an option begins, and where its lines end.
const COLUMN: usize = 36;
const WIDTH: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_stands_in_the_help_within_its_width() {
        let text = help();
        for row in TABLE {
            let argument = row
                .argument
                .map_or(String::new(), |name| format!("={name}"));
            let option = format!("{}{argument}", row.spelled);
            assert!(
                text.split_whitespace().any(|word| word == option),
                "{option}"
            );
        }
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
            assert_eq!(line.trim_end(), line);
        }
    }
}
