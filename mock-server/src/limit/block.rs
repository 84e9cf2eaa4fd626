//! Commands that a server does not let anybody run, and how it says so.
//!
//! ```text
//! block      = [ protocol "." ] name              config, client|kill, aerospike.truncate
//! block-form = "unknown" | "noperm" | text with {command}
//! ```
//!
//! On RESP a name is a command, with all its subcommands, or a subcommand behind its container and a
//! bar; it need not be one that this server knows. The forms are
//!
//! * `unknown`: as after `rename-command`: the command does not exist, COMMAND does not show it;
//! * `noperm`: as an ACL without the command refuses it;
//! * any other text, with the command's full name in the place of `{command}`.
//!
//! On Aerospike a name is an operation of this server (`put`, `get`, `batch`, `udf`, ...) or an info
//! command (`truncate`, `udf-put`, ...); both are refused with 22, whatever the form. A name without
//! protocol blocks on both.

use std::fmt;
use std::str::FromStr;

use super::LimitError;
use crate::exchange::Protocol;

/// A command that nobody may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The protocol, `None` for both.
    pub protocol: Option<Protocol>,
    /// The command, in lower case.
    pub name: String,
}

impl Blocked {
    /// A server takes no more names.
    pub const MAX: usize = 1024;

    /// Whether it is about this command of this protocol, which is `name` or lies in it.
    #[must_use]
    pub fn covers(&self, protocol: Protocol, name: &str) -> bool {
        let rest = name.strip_prefix(self.name.as_str());
        self.protocol.is_none_or(|own| own == protocol)
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
    }
}

impl FromStr for Blocked {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let lower = text.trim().to_ascii_lowercase();
        let protocols = [Protocol::Redis, Protocol::Aerospike];
        let (protocol, name) = protocols
            .into_iter()
            .find_map(|protocol| {
                let name = lower.strip_prefix(&format!("{protocol}."))?;
                Some((Some(protocol), name))
            })
            .unwrap_or((None, &lower));
        let parts = name.split('|');
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let legal = |part: &str| (1..=64).contains(&part.len()) && part.bytes().all(allowed);
        if parts.clone().count() > 2 || !parts.into_iter().all(legal) {
            return Err(LimitError::new("a command to block", text, NAME));
        }
        Ok(Self {
            protocol,
            name: name.to_owned(),
        })
    }
}

const NAME: &str = "a command or container|subcommand, with or without a protocol in front, as in \
                    config, client|kill or aerospike.truncate";

impl TryFrom<&str> for Blocked {
    type Error = LimitError;

    fn try_from(text: &str) -> Result<Self, LimitError> {
        text.parse()
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(protocol) = self.protocol {
            write!(f, "{protocol}.")?;
        }
        f.write_str(&self.name)
    }
}

/// How a RESP client is told that a command is blocked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BlockForm {
    /// As a command that does not exist.
    #[default]
    Unknown,
    /// As a command that the user has no permission for.
    NoPermission,
    /// With this text, in which `{command}` stands for the command's full name.
    Text(String),
}

impl FromStr for BlockForm {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        match text {
            "unknown" => Ok(Self::Unknown),
            "noperm" => Ok(Self::NoPermission),
            // A text has a code word and a sentence; a single word is a mistyped form.
            _ if text.trim().contains(' ') && !text.contains(['\r', '\n']) => {
                Ok(Self::Text(text.to_owned()))
            }
            _ => Err(LimitError::new("a form of refusal", text, FORM)),
        }
    }
}

const FORM: &str = "unknown, noperm, or a line such as 'ERR the command {command} is disabled'";

impl fmt::Display for BlockForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::NoPermission => f.write_str("noperm"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_forms_are_read_and_print_as_they_are_read() {
        for text in [
            "config",
            "client|kill",
            "redis.get",
            "aerospike.truncate-namespace",
        ] {
            assert_eq!(text.parse::<Blocked>().unwrap().to_string(), text);
        }
        assert_eq!("CONFIG".parse::<Blocked>().unwrap().name, "config");
        for text in ["", "a b", "client|", "a|b|c", "redis."] {
            assert!(text.parse::<Blocked>().is_err(), "{text}");
        }
        for text in ["unknown", "noperm", "ERR '{command}' is disabled"] {
            assert_eq!(text.parse::<BlockForm>().unwrap().to_string(), text);
        }
        for text in ["", "unknwon", "ERR a\r\nb"] {
            assert!(text.parse::<BlockForm>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_container_covers_its_subcommands_and_no_other_command() {
        let covers = |text: &str, protocol, name| {
            let blocked: Blocked = text.parse().unwrap();
            blocked.covers(protocol, name)
        };
        assert!(covers("config", Protocol::Redis, "config"));
        assert!(covers("config", Protocol::Redis, "config|get"));
        assert!(!covers("client|kill", Protocol::Redis, "client|list"));
        assert!(!covers("client|kill", Protocol::Redis, "client"));
        assert!(!covers("get", Protocol::Redis, "getex"));
        assert!(covers("get", Protocol::Aerospike, "get"));
        assert!(!covers("redis.get", Protocol::Aerospike, "get"));
    }
}
