//! Which requests a latency rule is for.
//!
//! ```text
//! selector = [ protocol "." ] what [ "@" pattern ]  |  protocol [ "@" pattern ]  |  "@" pattern
//! what     = "read" | "write" | "admin" | "all" | command
//! ```
//!
//! Without `what` it selects reads and writes: handshakes and introspection touch no data, and a
//! client that is slow to connect measures something else. `admin`, `all` or the command's own name
//! reach those too. A command that both protocols have is selected in both, unless the protocol is
//! named. A pattern looks at the first key of a command.

use std::fmt;

use super::pattern::KeyPattern;
use super::text::{ParseError, Problem};
use crate::dialect::command_names;
use crate::exchange::{Class, Exchange, Protocol};

/// Which requests a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The protocol, `None` for both.
    pub protocol: Option<Protocol>,
    /// Which kind of request.
    pub what: What,
    /// What the first key has to look like.
    pub key: Option<KeyPattern>,
}

/// Which kind of request a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Every request.
    All,
    /// Reads and writes.
    Data,
    /// One class.
    Class(Class),
    /// One command or operation, by its name in [`command_names`].
    Command(&'static str),
}

impl Selector {
    /// Reads and writes of both protocols: the selector of a rule that names none.
    pub const DATA: Self = Self {
        protocol: None,
        what: What::Data,
        key: None,
    };

    /// Reads the selector that fills the first `len` bytes of `text`.
    pub(crate) fn parse(text: &str, len: usize) -> Result<Self, ParseError> {
        let whole = text.get(..len).unwrap_or(text);
        let (name, pattern) = match whole.split_once('@') {
            Some((name, pattern)) => (name, Some(pattern)),
            None => (whole, None),
        };
        let error = |at, problem: Problem| ParseError::new(text, at, problem);
        let lower = name.trim().to_ascii_lowercase();
        let name_at = name.len() - name.trim_start().len();
        let (protocol, what) = match (lower.as_str(), pattern) {
            ("", Some(_)) => (None, What::Data),
            ("", None) => {
                let (expected, found) = ("a selector before '='", "'='".to_owned());
                return Err(error(name_at, Problem::Unexpected { expected, found }));
            }
            (name, _) => match protocol_named(name) {
                Some(protocol) => (Some(protocol), What::Data),
                None => Self::parse_name(name).map_err(|problem| error(name_at, problem))?,
            },
        };
        let key = match pattern {
            None => None,
            Some("") => {
                let (expected, found) = ("a key pattern behind '@'", "nothing".to_owned());
                return Err(error(len, Problem::Unexpected { expected, found }));
            }
            Some(_) if !reaches_redis(protocol, what) => {
                return Err(error(name.len(), Problem::PatternForDigests));
            }
            Some(pattern) => Some(KeyPattern::new(pattern)),
        };
        Ok(Self {
            protocol,
            what,
            key,
        })
    }

    fn parse_name(name: &str) -> Result<(Option<Protocol>, What), Problem> {
        // No command has a dot in its name.
        let (protocol, what) = match name.split_once('.') {
            None => (None, name),
            Some((protocol, what)) => match protocol_named(protocol) {
                Some(protocol) => (Some(protocol), what),
                None => {
                    return Err(Problem::UnknownProtocol {
                        name: protocol.to_owned(),
                    });
                }
            },
        };
        let what = match what {
            "all" => What::All,
            "read" => What::Class(Class::Read),
            "write" => What::Class(Class::Write),
            "admin" => What::Class(Class::Admin),
            command => What::Command(find_command(protocol, command).ok_or_else(|| {
                Problem::UnknownSelector {
                    name: command.to_owned(),
                    protocol,
                }
            })?),
        };
        Ok((protocol, what))
    }

    /// Whether `exchange` is selected.
    #[must_use]
    pub fn selects(&self, exchange: &Exchange<'_>) -> bool {
        if self
            .protocol
            .is_some_and(|protocol| protocol != exchange.protocol)
        {
            return false;
        }
        let right_kind = match self.what {
            What::All => true,
            What::Data => exchange.class != Class::Admin,
            What::Class(class) => class == exchange.class,
            What::Command(command) => command == exchange.command,
        };
        right_kind
            && self.key.as_ref().is_none_or(|key| {
                exchange.protocol == Protocol::Redis
                    && !exchange.key.is_empty()
                    && key.matches(exchange.key)
            })
    }

    /// The more specific of two selectors compares greater: a key pattern counts most, then how
    /// narrow the kind of request is, then whether the protocol is named.
    pub(super) fn specificity(&self) -> impl Ord + use<> {
        let what = match self.what {
            What::All => 0,
            What::Data => 1,
            What::Class(_) => 2,
            What::Command(_) => 3,
        };
        (self.key.is_some(), what, self.protocol.is_some())
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            What::All => Some("all".to_owned()),
            What::Data => None,
            What::Class(class) => Some(class.to_string()),
            What::Command(command) => Some(command.to_owned()),
        };
        match (self.protocol, what) {
            (Some(protocol), Some(what)) => write!(f, "{protocol}.{what}")?,
            (Some(protocol), None) => write!(f, "{protocol}")?,
            (None, Some(what)) => f.write_str(&what)?,
            (None, None) => {}
        }
        match &self.key {
            Some(key) => write!(f, "@{key}"),
            None => Ok(()),
        }
    }
}

const PROTOCOLS: [Protocol; 2] = [Protocol::Redis, Protocol::Aerospike];

fn protocol_named(name: &str) -> Option<Protocol> {
    PROTOCOLS
        .into_iter()
        .find(|protocol| protocol.to_string() == name)
}

fn find_command(protocol: Option<Protocol>, name: &str) -> Option<&'static str> {
    PROTOCOLS
        .into_iter()
        .filter(|candidate| protocol.is_none_or(|protocol| protocol == *candidate))
        .find_map(|protocol| {
            let mut names = command_names(protocol).iter();
            names.find(|command| **command == name).copied()
        })
}

/// Whether a selector reaches requests that carry their key as text.
fn reaches_redis(protocol: Option<Protocol>, what: What) -> bool {
    match (protocol, what) {
        (Some(Protocol::Aerospike), _) => false,
        (_, What::Command(command)) => find_command(Some(Protocol::Redis), command).is_some(),
        _ => true,
    }
}
