//! The commands of `--command`.
//!
//! ```text
//! HSET h:__key__ f __data__      __key__: the key, with what stands around it; one per argument
//!                                __data__: the value; a whole argument
//! SET k "a b\x00c"               words as in a shell line: "…" with \n \r \t \b \a \xHH, '…' with \'
//! __monitor_line3__              the third command of --monitor-input
//! __monitor_line@__              its next command, or one at random
//! ```

use kvlab_protocol::resp::request::{DATA_PLACEHOLDER, KEY_PLACEHOLDER, parse_command_line};

use super::pattern::Pattern;
use super::{Name, UsageError};

/// A command as given, with the options that follow it.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The text, as typed.
    pub text: String,
    /// What it stands for.
    pub what: What,
    /// How many times in a row it is sent.
    pub ratio: u32,
    /// Order of its keys.
    pub pattern: Pattern,
    /// Whether it may go to a replica.
    pub is_read: bool,
}

/// What a command stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Arguments, the placeholders still in them.
    Arguments(Vec<Vec<u8>>),
    /// The command of this line of the monitor file, from 1.
    MonitorLine(u64),
    /// The next command of the monitor file, or one at random.
    MonitorNext,
    /// A monitor placeholder that is none: an error with a monitor file, literal text without.
    Malformed,
}

impl Command {
    /// Reads a command.
    ///
    /// # Errors
    /// No word, quotes that do not match, `__data__` as a part of an argument, or a placeholder as
    /// the name of the command.
    pub fn parse(text: &str) -> Result<Self, UsageError> {
        let what = match monitor_placeholder(text) {
            Some(what) => what,
            None => What::Arguments(arguments(text)?),
        };
        Ok(Self {
            text: text.to_owned(),
            what,
            ratio: 1,
            pattern: Pattern::Random,
            is_read: false,
        })
    }

    /// The name in capitals: the first word of the arguments.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.what {
            What::Arguments(arguments) => name_of(arguments),
            _ => self.text.clone(),
        }
    }
}

/// The words of a command line, checked for what the placeholders may stand for.
pub(super) fn arguments(text: &str) -> Result<Vec<Vec<u8>>, UsageError> {
    let wrong = |expected: &str| {
        UsageError::new(Name::Command.spelled(), expected, format_args!("{text:?}"))
    };
    let arguments = parse_command_line(text).map_err(|error| {
        UsageError::new(
            Name::Command.spelled(),
            "a command",
            format_args!("{text:?} ({error})"),
        )
    })?;
    let data = DATA_PLACEHOLDER.as_bytes();
    if arguments
        .iter()
        .any(|argument| argument != data && contains(argument, data))
    {
        return Err(wrong("__data__ as a whole argument"));
    }
    let first = arguments.first().map(Vec::as_slice).unwrap_or_default();
    if first.is_empty() || first == data || contains(first, KEY_PLACEHOLDER.as_bytes()) {
        return Err(wrong("the name of a command as the first word"));
    }
    Ok(arguments)
}

/// The first argument in capitals.
pub(super) fn name_of(arguments: &[Vec<u8>]) -> String {
    arguments.first().map_or_else(String::new, |word| {
        String::from_utf8_lossy(word).to_ascii_uppercase()
    })
}

/// How many of the arguments hold a key.
#[must_use]
pub fn keys_in(arguments: &[Vec<u8>]) -> usize {
    let holds_key = |argument: &&Vec<u8>| contains(argument, KEY_PLACEHOLDER.as_bytes());
    arguments.iter().filter(holds_key).count()
}

fn monitor_placeholder(text: &str) -> Option<What> {
    let inside = text.strip_prefix("__monitor_line")?;
    let Some(line) = inside.strip_suffix("__") else {
        return Some(What::Malformed);
    };
    if line == "@" {
        return Some(What::MonitorNext);
    }
    let plain = line.bytes().all(|byte| byte.is_ascii_digit());
    match line.parse() {
        Ok(line) if plain && line > 0 => Some(What::MonitorLine(line)),
        _ => Some(What::Malformed),
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<u8>> {
        match Command::parse(text).unwrap().what {
            What::Arguments(arguments) => arguments,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn words_are_split_as_in_a_shell_line() {
        let table: &[(&str, &[&[u8]])] = &[
            ("SET k v", &[b"SET", b"k", b"v"]),
            ("  PING  ", &[b"PING"]),
            (r#"SET k "a b\x00c""#, &[b"SET", b"k", b"a b\x00c"]),
            (
                r#"SET k "\n\r\t\b\a\\\"""#,
                &[b"SET", b"k", b"\n\r\t\x08\x07\\\""],
            ),
            (r"SET k 'it\'s \n'", &[b"SET", b"k", br"it's \n"]),
            ("SET '' \"\"", &[b"SET", b"", b""]),
            (r#"SET "\xzz""#, &[b"SET", b"xzz"]),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), *expected, "{text}");
        }
    }

    #[test]
    fn placeholders_stay_in_the_arguments() {
        let arguments = words("HSET pfx:__key__:sfx f __data__ g __data__");
        assert_eq!(arguments[1], b"pfx:__key__:sfx");
        assert_eq!(keys_in(&arguments), 1);
        assert_eq!(keys_in(&words("MGET __key__ __key__")), 2);
        assert_eq!(keys_in(&words("PING")), 0);
        assert_eq!(Command::parse("hset k f v").unwrap().name(), "HSET");
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        for text in [
            "",
            "   ",
            "\"\"",
            "SET \"k",
            "SET 'k",
            "SET \"k\"x",
            "SET k x__data__",
            "SET k __data__x",
            "__key__",
            "__key__ x",
            "__data__",
        ] {
            let error = Command::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("--command: expected "), "{text}: {error}");
        }
    }

    #[test]
    fn monitor_placeholders_are_told_from_commands() {
        for (text, expected) in [
            ("__monitor_line1__", What::MonitorLine(1)),
            ("__monitor_line12__", What::MonitorLine(12)),
            ("__monitor_line@__", What::MonitorNext),
            ("__monitor_line0__", What::Malformed),
            ("__monitor_line__", What::Malformed),
            ("__monitor_line-1__", What::Malformed),
            ("__monitor_line+1__", What::Malformed),
            ("__monitor_line1", What::Malformed),
            ("__monitor_line1x__", What::Malformed),
        ] {
            assert_eq!(Command::parse(text).unwrap().what, expected, "{text}");
        }
    }
}
