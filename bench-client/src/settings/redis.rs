//! A RESP target: address, login and the commands of the mix.

use std::net::SocketAddr;

use kvlab_protocol::resp::request::{DATA_PLACEHOLDER, KEY_PLACEHOLDER, parse_command_line};

use super::rotation::check_numbers;
use super::{
    Address, ClassSpec, KeyPattern, NumberLaw, Password, RecordSettings, RequestSpec, Rotation,
    SettingsError,
};
use crate::record::OpClass;

/// A RESP server and the commands to send to it.
#[derive(Clone, Debug)]
pub struct RedisTarget {
    /// Address, resolved by the front end.
    pub address: Address,
    /// User for `AUTH` or `HELLO`; only with a password.
    pub user: Option<String>,
    /// Password; `None` sends no login.
    pub password: Option<Password>,
    /// Database for `SELECT`; 0 sends none.
    pub database: u32,
    /// Version of the protocol; 3 sends `HELLO 3`.
    pub version: RespVersion,
    /// Whether each connection is asked with `PING` whether it is served, before it counts as up.
    pub probe: bool,
    /// Which errors are worth sending a request again for, where requests are sent again or
    /// somebody is told of failures; without it the words of errors are not kept.
    pub retry_on: Option<RetryOn>,
    /// What counts as a miss.
    pub misses: MissRule,
    /// The address is that of any node of a cluster: the connections of a thread are made to each
    /// primary, and the key decides which of them gets a request.
    pub cluster: bool,
    /// The mix is a SCAN that follows its cursor: class 0 begins one, class 1 goes on.
    pub scan: Option<ScanSettings>,
    /// The mix; each is a class of its own in the report.
    pub operations: Vec<RedisOperation>,
    /// What is sent instead of each operation's own command by weight.
    pub rotation: Option<Rotation>,
    /// Keys, times to live and expected values from a list.
    pub records: Option<RecordSettings>,
    /// Array replies are of requests on several keys: the keys that were found are counted.
    pub count_keys: bool,
}

/// Which errors are worth sending a request again for: those that may pass, and of them only those
/// that begin with one of the prefixes if there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryOn {
    /// Beginnings of errors, as in `LOADING`.
    pub prefixes: Vec<String>,
}

/// Which replies are misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissRule {
    /// Nil alone.
    #[default]
    Nil,
    /// Nil, and what means for the command that nothing was found: 0 of `EXISTS`, an empty list of
    /// `LRANGE`, nils alone of `MGET`.
    ByCommand,
}

/// How a SCAN goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanSettings {
    /// What stands behind the cursor.
    pub arguments: Vec<Vec<u8>>,
    /// Cursors to follow before a scan begins anew; 0 follows them to the end.
    pub most_cursors: u32,
}

/// Version of RESP that connections ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RespVersion {
    /// RESP2: no `HELLO`.
    #[default]
    Two,
    /// RESP2: each connection begins with `HELLO 2`.
    TwoByHello,
    /// RESP3: each connection begins with `HELLO 3`.
    Three,
}

/// One command of the mix. The arguments may hold the placeholders `__key__` and `__data__`, and
/// where it has numbers, whole arguments `__number__`.
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
    /// Laws of its numbers, one for each argument `__number__`.
    pub numbers: Vec<NumberLaw>,
}

impl RedisTarget {
    /// A server without login, database 0, RESP2, and `SET` and `GET` with the given weights.
    #[must_use]
    pub fn new(address: SocketAddr, set: u32, get: u32) -> Self {
        let mut operations = vec![RedisOperation::set(set), RedisOperation::get(get)];
        operations.retain(|operation| operation.weight > 0);
        Self {
            address: address.into(),
            user: None,
            password: None,
            database: 0,
            version: RespVersion::Two,
            probe: false,
            retry_on: None,
            misses: MissRule::default(),
            cluster: false,
            scan: None,
            operations,
            rotation: None,
            records: None,
            count_keys: false,
        }
    }

    /// What can be sent, in the order that [`crate::driver::Plan::request`] counts: the requests of
    /// the rotation, or else one for each operation.
    pub(crate) fn commands(&self) -> Vec<Command<'_>> {
        match &self.rotation {
            Some(rotation) => rotation
                .requests
                .iter()
                .map(|request| Command {
                    class: class(request.operation),
                    weight: 0,
                    arguments: &request.arguments,
                    pattern: request.pattern,
                    goes_on: request.goes_on,
                    numbers: &request.numbers,
                })
                .collect(),
            None => (0..)
                .zip(&self.operations)
                .map(|(place, operation)| Command {
                    class: class(place),
                    weight: operation.weight,
                    arguments: &operation.arguments,
                    pattern: operation.pattern,
                    goes_on: false,
                    numbers: &operation.numbers,
                })
                .collect(),
        }
    }
}

/// A command that can be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command<'a> {
    /// The operation that it is counted under.
    pub(crate) class: OpClass,
    weight: u32,
    /// The words, with the placeholders still in them.
    pub(crate) arguments: &'a [Vec<u8>],
    /// Key pattern of its own.
    pub(crate) pattern: Option<KeyPattern>,
    goes_on: bool,
    numbers: &'a [NumberLaw],
}

impl Command<'_> {
    /// How many keys it has.
    pub(crate) fn keys(&self) -> usize {
        let found = |argument: &&Vec<u8>| holds(argument, KEY_PLACEHOLDER);
        self.arguments.iter().filter(found).count()
    }

    /// How many numbers it has.
    pub(crate) fn numbers(&self) -> usize {
        self.numbers.len()
    }

    /// What the workload needs to know of it.
    pub(super) fn spec(&self) -> RequestSpec {
        RequestSpec {
            class: self.class,
            weight: self.weight,
            writes: writes(self.arguments),
            pattern: self.pattern,
            goes_on: self.goes_on,
            keys: self.keys(),
            numbers: self.numbers.to_vec(),
        }
    }
}

impl RedisOperation {
    /// `SET key value`.
    #[must_use]
    pub fn set(weight: u32) -> Self {
        Self::from_arguments(
            vec![
                b"SET".to_vec(),
                KEY_PLACEHOLDER.into(),
                DATA_PLACEHOLDER.into(),
            ],
            weight,
        )
    }

    /// `GET key`.
    #[must_use]
    pub fn get(weight: u32) -> Self {
        Self::from_arguments(vec![b"GET".to_vec(), KEY_PLACEHOLDER.into()], weight)
    }

    /// A command as typed, for example `HSET __key__ field __data__`; quotes as in `redis-cli`.
    ///
    /// # Errors
    /// An empty command, or quotes that do not match.
    pub fn parse(command: &str, weight: u32) -> Result<Self, SettingsError> {
        let arguments = parse_command_line(command).map_err(|error| SettingsError::Command {
            command: command.to_owned(),
            why: error.to_string(),
        })?;
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
            numbers: Vec::new(),
        }
    }

    pub(super) fn class(&self) -> ClassSpec {
        ClassSpec {
            name: self.name.clone(),
            weight: self.weight,
            writes: writes(&self.arguments),
            pattern: self.pattern,
        }
    }

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        check_numbers(&self.numbers)
    }
}

/// Whether there is a value in it.
fn writes(arguments: &[Vec<u8>]) -> bool {
    let found = |argument: &Vec<u8>| holds(argument, DATA_PLACEHOLDER);
    arguments.iter().any(found)
}

fn holds(argument: &[u8], placeholder: &str) -> bool {
    let placeholder = placeholder.as_bytes();
    argument
        .windows(placeholder.len())
        .any(|part| part == placeholder)
}

/// The class of this place; there are at most [`super::MAX_CLASSES`].
fn class(place: usize) -> OpClass {
    OpClass(u8::try_from(place).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_named_after_its_first_word() {
        let operation = RedisOperation::parse(r#"hset __key__ "a b" c"#, 1).unwrap();
        assert_eq!(operation.name, "HSET");
        assert_eq!(operation.arguments[2], b"a b");
    }

    #[test]
    fn open_quote_and_empty_command_are_errors() {
        assert!(RedisOperation::parse("GET \"x", 1).is_err());
        assert!(RedisOperation::parse("   ", 1).is_err());
    }

    #[test]
    fn a_class_writes_only_with_the_data_placeholder() {
        assert!(RedisOperation::set(1).class().writes);
        assert!(!RedisOperation::get(1).class().writes);
    }
}
