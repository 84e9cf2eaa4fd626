//! A RESP target: address, login and the commands of the mix.

use std::net::SocketAddr;

use super::{ClassSpec, KeyPattern, SettingsError};

/// A RESP server and the commands to send to it.
#[derive(Clone, Debug)]
pub struct RedisTarget {
    /// Address, resolved by the front end.
    pub address: SocketAddr,
    /// User for `AUTH` or `HELLO`; only with a password.
    pub user: Option<String>,
    /// Password; `None` sends no login.
    pub password: Option<String>,
    /// Database for `SELECT`; 0 sends none.
    pub database: u32,
    /// Version of the protocol; 3 sends `HELLO 3`.
    pub version: RespVersion,
    /// The mix; each is a class of its own in the report.
    pub operations: Vec<RedisOperation>,
}

/// Version of RESP that connections ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RespVersion {
    /// RESP2: no `HELLO`.
    #[default]
    Two,
    /// RESP3: each connection begins with `HELLO 3`.
    Three,
}

/// One command of the mix. The arguments may hold the placeholders `__key__` and `__data__`.
#[derive(Clone, Debug, PartialEq)]
pub struct RedisOperation {
    /// Name in reports; by default the command's first word in capitals.
    pub name: String,
    /// Share among the operations.
    pub weight: u32,
    /// Command and arguments, with the placeholders still in them.
    pub arguments: Vec<Vec<u8>>,
    /// Key pattern of its own.
    pub pattern: Option<KeyPattern>,
}

impl RedisTarget {
    /// A server without login, database 0, RESP2, and `SET` and `GET` with the given weights.
    #[must_use]
    pub fn new(address: SocketAddr, set: u32, get: u32) -> Self {
        let mut operations = vec![RedisOperation::set(set), RedisOperation::get(get)];
        operations.retain(|operation| operation.weight > 0);
        Self {
            address,
            user: None,
            password: None,
            database: 0,
            version: RespVersion::Two,
            operations,
        }
    }
}

impl RedisOperation {
    /// `SET key value`.
    #[must_use]
    pub fn set(weight: u32) -> Self {
        Self::from_arguments(vec![b"SET".to_vec(), KEY.to_vec(), DATA.to_vec()], weight)
    }

    /// `GET key`.
    #[must_use]
    pub fn get(weight: u32) -> Self {
        Self::from_arguments(vec![b"GET".to_vec(), KEY.to_vec()], weight)
    }

    /// A command as typed, for example `HSET __key__ field __data__`; quotes as in `redis-cli`.
    ///
    /// # Errors
    /// An empty command, or quotes that do not match.
    pub fn parse(command: &str, weight: u32) -> Result<Self, SettingsError> {
        let wrong = |why: &str| SettingsError::Command {
            command: command.to_owned(),
            why: why.to_owned(),
        };
        let arguments = split(command).ok_or_else(|| wrong("unbalanced quotes"))?;
        if arguments.is_empty() {
            return Err(wrong("no command"));
        }
        Ok(Self::from_arguments(arguments, weight))
    }

    fn from_arguments(arguments: Vec<Vec<u8>>, weight: u32) -> Self {
        let name = arguments.first().map_or_else(String::new, |word| {
            String::from_utf8_lossy(word).to_ascii_uppercase()
        });
        Self {
            name,
            weight,
            arguments,
            pattern: None,
        }
    }

    pub(super) fn class(&self) -> ClassSpec {
        let writes = self
            .arguments
            .iter()
            .any(|argument| argument.windows(DATA.len()).any(|window| window == DATA));
        ClassSpec {
            name: self.name.clone(),
            weight: self.weight,
            writes,
            pattern: self.pattern,
        }
    }
}

/// Placeholder of the key in a command.
pub(super) const KEY: &[u8] = b"__key__";
/// Placeholder of the value in a command.
pub(super) const DATA: &[u8] = b"__data__";

/// Splits a command line: blanks separate, single or double quotes hold a word together and a
/// backslash inside double quotes takes the next character as it is.
fn split(line: &str) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = line.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' => words.extend(word.take()),
            b'"' | b'\'' => {
                let open = word.get_or_insert_with(Vec::new);
                loop {
                    match bytes.next()? {
                        end if end == byte => break,
                        b'\\' if byte == b'"' => open.push(bytes.next()?),
                        other => open.push(other),
                    }
                }
            }
            other => word.get_or_insert_with(Vec::new).push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_split_at_blanks_outside_quotes() {
        let operation = RedisOperation::parse(r#"hset __key__ "a b" 'c"d' "x\"y""#, 1).unwrap();
        let words: Vec<&[u8]> = operation.arguments.iter().map(Vec::as_slice).collect();
        assert_eq!(words, [&b"hset"[..], b"__key__", b"a b", b"c\"d", b"x\"y"]);
        assert_eq!(operation.name, "HSET");
    }

    #[test]
    fn open_quote_is_an_error() {
        assert!(RedisOperation::parse("GET \"x", 1).is_err());
        assert!(RedisOperation::parse("   ", 1).is_err());
    }

    #[test]
    fn a_class_writes_only_with_the_data_placeholder() {
        assert!(RedisOperation::set(1).class().writes);
        assert!(!RedisOperation::get(1).class().writes);
    }
}
