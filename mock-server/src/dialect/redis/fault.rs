//! Error replies in the words of a real server (measured on redis-server 7.0.15).

use std::borrow::Cow;

use super::acl::selector::Denial;
use crate::config::RedisVersion;

/// An error reply, without the leading `-`: a code word, a blank, a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(Cow<'static, [u8]>);

impl Fault {
    /// The value has another type than the command works on.
    pub const WRONG_TYPE: Self =
        Self::new("WRONGTYPE Operation against a key holding the wrong kind of value");
    /// The options make no sense.
    pub const SYNTAX: Self = Self::new("ERR syntax error");
    /// Not an integer of 64 bits.
    pub const NOT_AN_INTEGER: Self = Self::new("ERR value is not an integer or out of range");
    /// Not an integer of 32 bits, though one of 64.
    pub const OUT_OF_INT: Self =
        Self::new("ERR value is out of range, value must between -2147483648 and 2147483647");
    /// Not a float.
    pub const NOT_A_FLOAT: Self = Self::new("ERR value is not a valid float");
    /// No such key, where one is needed.
    pub const NO_SUCH_KEY: Self = Self::new("ERR no such key");
    /// No such database.
    pub const NO_SUCH_DATABASE: Self = Self::new("ERR DB index is out of range");
    /// Source and destination are one.
    pub const SAME_OBJECT: Self = Self::new("ERR source and destination objects are the same");
    /// A string would grow too long.
    pub const STRING_TOO_LONG: Self =
        Self::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    /// Credentials are wrong.
    pub const WRONG_PASSWORD: Self =
        Self::new("WRONGPASS invalid username-password pair or user is disabled.");
    /// Nothing may be done before authentication.
    pub const NO_AUTH: Self = Self::new("NOAUTH Authentication required.");
    /// A command of cluster mode, which is off.
    pub const CLUSTER_OFF: Self = Self::new("ERR This instance has cluster support disabled");

    /// There is no memory for what is to be written.
    pub const OUT_OF_MEMORY: Self =
        Self::new("OOM command not allowed when used memory > 'maxmemory'.");

    /// A fixed text.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }

    /// A text made up for the occasion; it may quote bytes of the request.
    #[must_use]
    pub fn from_bytes(text: Vec<u8>) -> Self {
        Self(Cow::Owned(text))
    }

    /// As [`Fault::from_bytes`], from a text.
    #[must_use]
    pub fn from_text(text: String) -> Self {
        Self::from_bytes(text.into_bytes())
    }

    /// A text that quotes a part of the request, which a server prints as far as its first NUL.
    #[must_use]
    pub fn quoting(before: &str, quoted: &[u8], after: &str) -> Self {
        Self::from_bytes([before.as_bytes(), until_nul(quoted), after.as_bytes()].concat())
    }

    /// The wrong number of arguments for the command with this full name.
    #[must_use]
    pub fn wrong_arity(name: &str) -> Self {
        Self::from_text(format!(
            "ERR wrong number of arguments for '{name}' command"
        ))
    }

    /// A time to live that is not positive or too large, for the command with this full name.
    #[must_use]
    pub fn invalid_expire(name: &str) -> Self {
        Self::from_text(format!("ERR invalid expire time in '{name}' command"))
    }

    /// A command nobody knows, with its arguments.
    #[must_use]
    pub fn unknown_command<'a>(name: &[u8], args: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut listed = Vec::new();
        for arg in args {
            let Some(room) = QUOTE_MAX.checked_sub(listed.len()).filter(|room| *room > 0) else {
                break;
            };
            listed.push(b'\'');
            let shown = until_nul(arg);
            listed.extend_from_slice(shown.get(..room).unwrap_or(shown));
            listed.extend_from_slice(b"' ");
        }
        let mut text = b"ERR unknown command '".to_vec();
        text.extend_from_slice(cut(until_nul(name)));
        text.extend_from_slice(b"', with args beginning with: ");
        text.extend_from_slice(&listed);
        Self::from_bytes(text)
    }

    /// A subcommand nobody knows.
    #[must_use]
    pub fn unknown_subcommand(container: &str, name: &[u8]) -> Self {
        let after = format!("'. Try {} HELP.", container.to_ascii_uppercase());
        Self::quoting("ERR unknown subcommand '", cut(name), &after)
    }

    /// A subcommand that has arguments nobody knows, as the older commands word it.
    #[must_use]
    pub fn subcommand_syntax(container: &str, name: &[u8]) -> Self {
        let before = "ERR unknown subcommand or wrong number of arguments for '";
        let after = format!("'. Try {container} HELP.");
        Self::quoting(before, cut(name), &after)
    }

    /// The user may not run the command with this full name. Before 7.2 a server did not name the
    /// user.
    #[must_use]
    pub fn no_permission(version: RedisVersion, user: &[u8], command: &str) -> Self {
        if version >= RedisVersion::V7_2 {
            let after = format!(" has no permissions to run the '{command}' command");
            return Self::quoting("NOPERM User ", user, &after);
        }
        let before = "NOPERM this user has no permissions to run the '";
        let after = if version.major < 7 {
            "' command or its subcommand"
        } else {
            "' command"
        };
        Self::quoting(before, command.as_bytes(), after)
    }

    /// What a user is denied, in the words of `version`.
    #[must_use]
    pub fn denied(version: RedisVersion, user: &[u8], command: &str, denial: Denial) -> Self {
        let is_new = version >= RedisVersion::V7_2;
        Self::new(match denial {
            Denial::Command => return Self::no_permission(version, user, command),
            Denial::Key(_) if is_new => "NOPERM No permissions to access a key",
            Denial::Key(_) => {
                "NOPERM this user has no permissions to access one of the keys used as arguments"
            }
            Denial::Channel(_) if is_new => "NOPERM No permissions to access a channel",
            Denial::Channel(_) => {
                "NOPERM this user has no permissions to access one of the channels used as \
                 arguments"
            }
        })
    }

    /// A command of a transaction that its user may not run any more.
    #[must_use]
    pub fn denied_at_last(denial: Denial) -> Self {
        let reason = match denial {
            Denial::Command => "no permission to execute the command or subcommand",
            Denial::Key(_) => "no permission to touch the specified keys",
            Denial::Channel(_) => {
                "no permission to access one of the channels used as arguments to the command"
            }
        };
        Self::from_text(format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
             EXEC call. This command is no longer allowed for the following reason: {reason}"
        ))
    }

    /// Nobody may run the command with this full name, in the server's own words.
    #[must_use]
    pub fn blocked(text: &str, command: &str) -> Self {
        Self::from_text(text.replace("{command}", command))
    }

    /// The text, without the leading `-`.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.0
    }

    /// The code word.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        self.0
            .split(|byte| *byte == b' ')
            .next()
            .unwrap_or_default()
    }
}

/// Longest part of a request that an error quotes.
const QUOTE_MAX: usize = 128;

fn cut(bytes: &[u8]) -> &[u8] {
    bytes.get(..QUOTE_MAX).unwrap_or(bytes)
}

/// A server prints these as C strings.
fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
