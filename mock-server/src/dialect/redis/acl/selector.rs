//! A set of permissions: which commands, on which keys, on which channels.
//!
//! | rule | effect |
//! |---|---|
//! | `+name`, `-name`, `+name\|sub`, `-name\|sub` | one command or subcommand |
//! | `+name\|word` | a command without subcommands, if its first argument is this word |
//! | `+@category`, `-@category` | a category of commands |
//! | `+@all`, `allcommands`; `-@all`, `nocommands` | every command, future ones too; none |
//! | `~pattern`, `%R~pattern`, `%W~pattern`, `%RW~pattern` | keys for both, to read, to write |
//! | `allkeys`, `resetkeys` | every key, none |
//! | `&pattern`, `allchannels`, `resetchannels` | channels likewise |

use std::collections::BTreeMap;

use kvlab_protocol::resp::Args;

use crate::dialect::redis::glob;
use crate::dialect::redis::named_keys::named_keys;
use crate::dialect::redis::row::{category, flag};
use crate::dialect::redis::table::{self, Command};

/// What a user was denied, from the least to the most telling; a place among the arguments says which
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// The command.
    Command,
    /// The key at this place.
    Key(usize),
    /// The channel at this place.
    Channel(usize),
}

/// A rule that cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Nobody knows the command or category.
    #[error("Unknown command or category name in ACL")]
    Unknown,
    /// It is no rule.
    #[error("Syntax error")]
    Syntax,
    /// A pattern of keys when all keys are allowed.
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not \
         have any effect. Try 'resetkeys' to start with an empty list of patterns"
    )]
    AllKeys,
    /// A pattern of channels when all channels are allowed.
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does \
         not have any effect. Try 'resetchannels' to start with an empty list of channels"
    )]
    AllChannels,
    /// A password to be removed that the user does not have.
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    /// Not the hash of a password.
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
         characters"
    )]
    BadHash,
    /// A first argument of a subcommand.
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgument,
    /// A list of the user is full. A real server has no such bound.
    #[error("Too many rules of one kind for one user")]
    TooMany,
}

/// Keys that match a pattern, and what may be done with them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyPattern {
    pattern: Vec<u8>,
    read: bool,
    write: bool,
}

/// A set of permissions.
#[derive(Debug, Clone)]
pub struct Selector {
    /// Whether commands that are not mentioned are allowed.
    allows_rest: bool,
    /// One bit for each command, by ordinal.
    commands: Vec<u64>,
    /// Commands that are allowed with these first arguments alone, by ordinal.
    first_arguments: BTreeMap<u16, Vec<Vec<u8>>>,
    /// The rules about commands behind the last about all of them, as they were given.
    rules: Vec<Vec<u8>>,
    all_keys: bool,
    keys: Vec<KeyPattern>,
    all_channels: bool,
    channels: Vec<Vec<u8>>,
}

impl Default for Selector {
    /// Nothing is allowed.
    fn default() -> Self {
        Self {
            allows_rest: false,
            commands: vec![0; table::command_names().len().div_ceil(64)],
            first_arguments: BTreeMap::new(),
            rules: Vec::new(),
            all_keys: false,
            keys: Vec::new(),
            all_channels: false,
            channels: Vec::new(),
        }
    }
}

impl Selector {
    /// Everything is allowed.
    #[must_use]
    pub fn everything() -> Self {
        let mut selector = Self {
            all_keys: true,
            all_channels: true,
            ..Self::default()
        };
        selector.set_all(true);
        selector
    }

    /// Whether everything is allowed.
    #[must_use]
    pub fn is_unrestricted(&self) -> bool {
        let all_commands = self.allows_rest && self.commands.iter().all(|bits| *bits == u64::MAX);
        all_commands && self.all_keys && self.all_channels
    }

    /// Applies one rule.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"allkeys" | b"~*" => (self.all_keys, self.keys) = (true, Vec::new()),
            b"resetkeys" => (self.all_keys, self.keys) = (false, Vec::new()),
            b"allchannels" | b"&*" => (self.all_channels, self.channels) = (true, Vec::new()),
            b"resetchannels" => (self.all_channels, self.channels) = (false, Vec::new()),
            b"allcommands" | b"+@all" => self.set_all(true),
            b"nocommands" | b"-@all" => self.set_all(false),
            lower => return self.apply_to_one(rule, lower),
        }
        Ok(())
    }

    fn apply_to_one(&mut self, rule: &[u8], lower: &[u8]) -> Result<(), RuleError> {
        match (rule, lower) {
            ([b'~', pattern @ ..], _) => self.add_keys(pattern, true, true),
            ([b'%', rest @ ..], _) => {
                // Without a tilde the pattern is empty, as on a real server.
                let tilde = rest.iter().position(|byte| *byte == b'~');
                let (letters, pattern) = rest.split_at(tilde.unwrap_or(rest.len()));
                let (read, write) = match letters.to_ascii_uppercase().as_slice() {
                    b"R" => (true, false),
                    b"W" => (false, true),
                    b"RW" | b"WR" => (true, true),
                    _ => return Err(RuleError::Syntax),
                };
                self.add_keys(pattern.get(1..).unwrap_or_default(), read, write)
            }
            ([b'&', pattern @ ..], _) => self.add_channels(pattern),
            (_, [sign @ (b'+' | b'-'), b'@', name @ ..]) => self.set_category(name, *sign == b'+'),
            (_, [b'+', name @ ..]) => self.allow(name),
            (_, [b'-', name @ ..]) => {
                let command = table::find_full(name).ok_or(RuleError::Unknown)?;
                self.set(command, false, name)
            }
            _ => Err(RuleError::Syntax),
        }
    }

    fn add_keys(&mut self, pattern: &[u8], read: bool, write: bool) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::AllKeys);
        }
        if has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        if let Some(known) = self.keys.iter_mut().find(|known| known.pattern == pattern) {
            known.read |= read;
            known.write |= write;
            return Ok(());
        }
        let pattern = KeyPattern {
            pattern: pattern.to_vec(),
            read,
            write,
        };
        push(&mut self.keys, pattern)
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.all_channels {
            return Err(RuleError::AllChannels);
        }
        if has_blanks(pattern) {
            return Err(RuleError::Syntax);
        }
        if self.channels.iter().any(|known| known == pattern) {
            return Ok(());
        }
        push(&mut self.channels, pattern.to_vec())
    }

    fn set_all(&mut self, allowed: bool) {
        self.allows_rest = allowed;
        self.commands.fill(if allowed { u64::MAX } else { 0 });
        self.first_arguments.clear();
        self.rules.clear();
    }

    fn set_category(&mut self, name: &[u8], allowed: bool) -> Result<(), RuleError> {
        let bit = category::NAMES
            .iter()
            .position(|known| known.as_bytes() == name)
            .ok_or(RuleError::Unknown)?;
        for command in table::all() {
            if command.row.all_categories() >> bit & 1 == 1 {
                self.set_bits(command, allowed);
            }
        }
        self.note(&[b"@", name].concat(), allowed)
    }

    /// `+name`, `+name|sub` and `+name|word`.
    fn allow(&mut self, name: &[u8]) -> Result<(), RuleError> {
        let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
            let command = table::find_full(name).ok_or(RuleError::Unknown)?;
            return self.set(command, true, name);
        };
        let (before, word) = name.split_at(bar);
        let word = word.get(1..).unwrap_or_default();
        let command = table::find_full(before).ok_or(RuleError::Unknown)?;
        if command.is_subcommand {
            return Err(RuleError::FirstArgument);
        }
        if word.is_empty() {
            return Err(RuleError::Syntax);
        }
        if command.is_container() {
            let subcommand = command.subcommand(word).ok_or(RuleError::Unknown)?;
            return self.set(subcommand, true, name);
        }
        let words = self.first_arguments.entry(command.ordinal).or_default();
        if !words.iter().any(|known| known == word) {
            push(words, word.to_vec())?;
        }
        self.note(name, true)
    }

    fn set(
        &mut self,
        command: &'static Command,
        allowed: bool,
        name: &[u8],
    ) -> Result<(), RuleError> {
        self.set_bits(command, allowed);
        self.note(name, allowed)
    }

    /// Allows or denies a command with all its subcommands.
    fn set_bits(&mut self, command: &'static Command, allowed: bool) {
        for command in std::iter::once(command).chain(command.subcommands()) {
            let (word, bit) = bit_of(command);
            if let Some(word) = self.commands.get_mut(word) {
                *word = if allowed { *word | bit } else { *word & !bit };
            }
            self.first_arguments.remove(&command.ordinal);
        }
    }

    /// Remembers a rule about a command or category, and forgets those that it replaces: about the
    /// same, or about a part of it.
    fn note(&mut self, name: &[u8], allowed: bool) -> Result<(), RuleError> {
        self.rules.retain(|rule| {
            let behind = rule.get(1..).and_then(|known| known.strip_prefix(name));
            !behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(b"|"))
        });
        let sign: &[u8] = if allowed { b"+" } else { b"-" };
        push(&mut self.rules, [sign, name].concat())
    }

    /// Whether `command` may be run with these arguments.
    ///
    /// # Errors
    /// What is denied first: the command, then the keys in order.
    pub fn check(&self, command: &'static Command, args: Args<'_>) -> Result<(), Denial> {
        // Logging in is never forbidden.
        let always = command.row.flags & flag::NO_AUTH != 0;
        if !always && !self.allows_command(command, args) {
            return Err(Denial::Command);
        }
        if self.all_keys || command.row.keys.is_empty() {
            return Ok(());
        }
        for named in named_keys(command, args) {
            if !self.allows_key(named.key, named.flags) {
                return Err(Denial::Key(named.position));
            }
        }
        Ok(())
    }

    fn allows_command(&self, command: &'static Command, args: Args<'_>) -> bool {
        let (word, bit) = bit_of(command);
        if self.commands.get(word).is_some_and(|word| word & bit != 0) {
            return true;
        }
        let words = self.first_arguments.get(&command.ordinal);
        words.is_some_and(|words| {
            let argument = args.get(1).unwrap_or_default();
            words.iter().any(|word| word.eq_ignore_ascii_case(argument))
        })
    }

    fn allows_key(&self, key: &[u8], flags: &[&str]) -> bool {
        let has = |names: &[&str]| flags.iter().any(|flag| names.contains(flag));
        let (reads, writes) = (has(&["access"]), has(&["insert", "delete", "update"]));
        self.keys.iter().any(|known| {
            (known.read || !reads) && (known.write || !writes) && glob::matches(&known.pattern, key)
        })
    }

    /// Whether messages may be sent to or received from `channel`.
    #[must_use]
    pub fn allows_channel(&self, channel: &[u8]) -> bool {
        let mut patterns = self.channels.iter();
        self.all_channels || patterns.any(|pattern| glob::matches(pattern, channel))
    }

    /// The rules about commands, as ACL GETUSER writes them.
    #[must_use]
    pub fn command_rules(&self) -> Vec<u8> {
        let all: &[u8] = if self.allows_rest { b"+@all" } else { b"-@all" };
        let mut text = all.to_vec();
        for rule in &self.rules {
            text.push(b' ');
            text.extend_from_slice(rule);
        }
        text
    }

    /// The patterns of keys, as ACL GETUSER writes them.
    #[must_use]
    pub fn key_rules(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let pattern = |known: &KeyPattern| {
            let sign: &[u8] = match (known.read, known.write) {
                (true, false) => b"%R~",
                (false, true) => b"%W~",
                _ => b"~",
            };
            [sign, &known.pattern].concat()
        };
        let patterns: Vec<_> = self.keys.iter().map(pattern).collect();
        patterns.join(&b' ')
    }

    /// The patterns of channels, as ACL GETUSER writes them.
    #[must_use]
    pub fn channel_rules(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let patterns = self.channels.iter();
        let patterns: Vec<_> = patterns
            .map(|pattern| [b"&", pattern.as_slice()].concat())
            .collect();
        patterns.join(&b' ')
    }

    /// All rules, as ACL LIST writes them.
    #[must_use]
    pub fn rules(&self) -> Vec<u8> {
        let reset: &[u8] = if self.all_channels {
            b""
        } else {
            b"resetchannels"
        };
        let parts = [
            &self.key_rules(),
            reset,
            &self.channel_rules(),
            &self.command_rules(),
        ];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(&b' ')
    }
}

/// Most entries of one list.
const LIST_MAX: usize = 1000;

fn push<T>(list: &mut Vec<T>, value: T) -> Result<(), RuleError> {
    if list.len() >= LIST_MAX {
        return Err(RuleError::TooMany);
    }
    list.push(value);
    Ok(())
}

fn bit_of(command: &Command) -> (usize, u64) {
    let place = usize::from(command.ordinal);
    (place / 64, 1 << (place % 64))
}

/// Whether there is a blank or a NUL, which names and patterns of users must not hold.
#[must_use]
pub fn has_blanks(text: &[u8]) -> bool {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b);
    text.iter().any(is_blank)
}

#[cfg(test)]
mod tests {
    use kvlab_protocol::resp::OwnedArgs;

    use super::*;

    fn selector(rules: &str) -> Selector {
        let mut selector = Selector::default();
        for rule in rules.split(' ') {
            selector.apply(rule.as_bytes()).unwrap();
        }
        selector
    }

    fn check(selector: &Selector, command: &str) -> Result<(), Denial> {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let args = OwnedArgs::new(&words);
        let mut found = table::find(words[0]).unwrap();
        if found.is_container() {
            found = found.subcommand(words[1]).unwrap();
        }
        selector.check(found, args.as_args())
    }

    #[test]
    fn commands_categories_and_subcommands() {
        let some = selector("~* +@read +config|get -mget +select|0");
        for (command, expected) in [
            ("GET a", Ok(())),
            ("SET a 1", Err(Denial::Command)),
            ("MGET a", Err(Denial::Command)),
            ("CONFIG GET x", Ok(())),
            ("CONFIG SET x y", Err(Denial::Command)),
            ("SELECT 0", Ok(())),
            ("SELECT 1", Err(Denial::Command)),
            ("AUTH x", Ok(())),
        ] {
            assert_eq!(check(&some, command), expected, "{command}");
        }
        assert_eq!(
            some.command_rules(),
            b"-@all +@read +config|get -mget +select|0"
        );
    }

    #[test]
    fn keys_to_read_and_to_write() {
        let some = selector("+@all %R~r:* %W~w:* ~b:*");
        for (command, expected) in [
            ("GET r:1", Ok(())),
            ("SET r:1 x", Err(Denial::Key(1))),
            ("SET w:1 x", Ok(())),
            ("SET w:1 x GET", Err(Denial::Key(1))),
            ("GETSET b:1 x", Ok(())),
            ("MGET r:1 r:2 x", Err(Denial::Key(3))),
            ("COPY r:1 w:1", Ok(())),
            ("RENAME b:1 r:1", Err(Denial::Key(2))),
            ("EXISTS w:1", Ok(())),
            ("DBSIZE", Ok(())),
        ] {
            assert_eq!(check(&some, command), expected, "{command}");
        }
        assert_eq!(some.rules(), b"%R~r:* %W~w:* ~b:* resetchannels +@all");
    }

    #[test]
    fn a_rule_replaces_those_about_the_same_or_a_part_of_it() {
        let some = selector("+config|get +get -config|get +config -get");
        assert_eq!(some.command_rules(), b"-@all +config -get");
        assert_eq!(selector("+get allcommands").command_rules(), b"+@all");
        assert!(selector("+@all ~* &*").is_unrestricted());
        assert!(!selector("+@all -get ~* &*").is_unrestricted());
    }

    #[test]
    fn channels_match_patterns() {
        let some = selector("&news:* &x");
        assert!(some.allows_channel(b"news:1") && some.allows_channel(b"x"));
        assert!(!some.allows_channel(b"y"));
        assert_eq!(some.channel_rules(), b"&news:* &x");
    }

    #[test]
    fn what_is_no_rule_says_why() {
        for (rules, error) in [
            ("+nosuch", RuleError::Unknown),
            ("-get|x", RuleError::Unknown),
            ("+@nosuch", RuleError::Unknown),
            ("+config|nosuch", RuleError::Unknown),
            ("+config|set|x", RuleError::FirstArgument),
            ("+get|", RuleError::Syntax),
            ("%~x", RuleError::Syntax),
            ("%X~x", RuleError::Syntax),
            ("%", RuleError::Syntax),
            ("what", RuleError::Syntax),
        ] {
            let mut selector = Selector::default();
            assert_eq!(selector.apply(rules.as_bytes()), Err(error), "{rules}");
        }
        let mut all = Selector::everything();
        assert_eq!(all.apply(b"~x"), Err(RuleError::AllKeys));
        assert_eq!(all.apply(b"&x"), Err(RuleError::AllChannels));
    }
}
