//! Requests about records: keys and times to live of a list, and replies compared with it.
//!
//! ```text
//! SET __key__ __data__    SET k1 v1, or SETEX k2 60 v2 for a record that is to live 60 s
//! GET __key__             GET k1; where replies are compared: $2 v1, nothing, or an error
//! ```
//!
//! A request is put together from its words each time, since its key has no fixed form.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use bytes::BytesMut;
use kvlab_protocol::resp::request::{
    DATA_PLACEHOLDER, KEY_PLACEHOLDER, NUMBER_PLACEHOLDER, encode_argument, encode_head,
};

use super::{Answer, Operation, found};
use crate::keyspace::FurtherKeys;
use crate::record::ErrorKind;
use crate::settings::{Command, RecordSettings};

/// Requests about records.
#[derive(Debug)]
pub(super) struct RecordRequests {
    settings: RecordSettings,
    requests: Vec<Vec<Word>>,
    /// Where replies are compared: the places of records that share their key with others.
    twins: HashMap<Vec<u8>, Vec<usize>>,
    /// Room for a key or a number.
    text: BytesMut,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Literal(Vec<u8>),
    Key,
    Value,
    Number,
}

/// The records whose values are awaited on a connection, in the order of the requests.
pub(super) type Expected = VecDeque<usize>;

impl RecordRequests {
    pub(super) fn new(settings: &RecordSettings, commands: &[Command<'_>]) -> Self {
        let mut twins: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        if settings.compare && settings.own_keys {
            let records = &settings.records;
            for place in 0..records.count() {
                let places = twins.entry(records.key(place).to_vec()).or_default();
                places.push(place);
            }
            twins.retain(|_, places| places.len() > 1);
        }
        Self {
            settings: settings.clone(),
            requests: commands
                .iter()
                .map(|command| {
                    command
                        .arguments
                        .iter()
                        .map(|word| Word::of(word))
                        .collect()
                })
                .collect(),
            twins,
            text: BytesMut::new(),
        }
    }

    /// Appends the request of an operation.
    pub(super) fn encode(
        &mut self,
        operation: &Operation<'_>,
        further: Option<&FurtherKeys>,
        expected: &mut Expected,
        out: &mut BytesMut,
    ) {
        let plan = operation.plan;
        let Self {
            settings,
            requests,
            text,
            ..
        } = self;
        let Some(words) = requests.get(plan.request as usize) else {
            debug_assert!(false, "no request for {plan:?}");
            return;
        };
        let first = operation.keys.settings().first;
        let place = settings.records.of_number(plan.key, first);
        if settings.compare {
            expected.push_back(place);
        }
        let seconds = settings.records.expiry(place);
        if settings.own_expiry && seconds > 0 && is_set(words) {
            encode_head(4, out);
            encode_argument(b"SETEX", out);
            write_key(operation, plan.key, text, out);
            write_number(seconds, text, out);
            encode_argument(operation.value, out);
            return;
        }
        encode_head(words.len(), out);
        let (mut keys, mut numbers) = (0, 0);
        for word in words {
            match word {
                Word::Literal(word) => encode_argument(word, out),
                Word::Value => encode_argument(operation.value, out),
                Word::Number => {
                    let number = plan.drawn.get(numbers).copied().unwrap_or(0);
                    write_number(number, text, out);
                    numbers += 1;
                }
                Word::Key => {
                    let number = further.map_or(plan.key, |further| further.key(plan, keys));
                    write_key(operation, number, text, out);
                    keys += 1;
                }
            }
        }
    }

    /// What a reply says, compared with the record that was asked for.
    pub(super) fn look(&self, expected: &mut Expected, frame: &[u8], answer: Answer) -> Answer {
        if !self.settings.compare {
            return found::keys_of(frame).unwrap_or(answer);
        }
        if answer == Answer::Push {
            return answer;
        }
        // Replies of the conversation at the beginning come before any request about a record.
        let Some(place) = expected.pop_front() else {
            return answer;
        };
        if answer != Answer::Hit || self.holds(place, frame) {
            answer
        } else {
            Answer::Error(ErrorKind::new(DIFFERENT))
        }
    }

    /// Whether the reply is the value of this record, or of another one with the same key: which of
    /// them was written last is not known.
    fn holds(&self, place: usize, frame: &[u8]) -> bool {
        let records = &self.settings.records;
        let Some(value) = bulk(frame) else {
            return false;
        };
        records.value(place) == value
            || self
                .twins
                .get(records.key(place))
                .is_some_and(|places| places.iter().any(|twin| records.value(*twin) == value))
    }
}

impl Word {
    fn of(argument: &[u8]) -> Self {
        for (placeholder, word) in [
            (KEY_PLACEHOLDER, Self::Key),
            (DATA_PLACEHOLDER, Self::Value),
            (NUMBER_PLACEHOLDER, Self::Number),
        ] {
            if argument == placeholder.as_bytes() {
                return word;
            }
        }
        Self::Literal(argument.to_vec())
    }
}

/// Appends a key as an argument; `text` is room for one.
fn write_key(operation: &Operation<'_>, number: u64, text: &mut BytesMut, out: &mut BytesMut) {
    text.clear();
    operation.keys.write(number, text);
    encode_argument(text, out);
}

/// Appends a number as an argument; `text` is room for one.
fn write_number(number: u32, text: &mut BytesMut, out: &mut BytesMut) {
    text.clear();
    // Writing to memory does not fail.
    let _ = write!(text, "{number}");
    encode_argument(text, out);
}

fn is_set(words: &[Word]) -> bool {
    matches!(words, [Word::Literal(name), Word::Key, Word::Value] if name == b"SET")
}

/// The bytes of a bulk string.
fn bulk(frame: &[u8]) -> Option<&[u8]> {
    let rest = frame.strip_prefix(b"$")?;
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    rest.get(end + 2..)?.strip_suffix(b"\r\n")
}

/// The kind of error of a reply that is not the value that was written.
const DIFFERENT: &[u8] = b"DIFFERENT";

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::driver::redis::RedisDriver;
    use crate::driver::{Driver, GroupId, Plan, Role};
    use crate::keyspace::KeySpace;
    use crate::record::OpClass;
    use crate::settings::{
        KeySettings, Records, RedisOperation, RedisTarget, SizeDistribution, ValueSettings,
    };

    fn records() -> Records {
        let item = |key: &str, value: &str, expiry| (key.into(), value.into(), expiry);
        Records::new([
            item("a", "one", 0),
            item("b b", "two", 60),
            item("a", "three", 0),
        ])
        .unwrap()
    }

    fn driver(records: Records, own_keys: bool, compare: bool) -> (RedisDriver, KeySpace) {
        let mut target = RedisTarget::new("127.0.0.1:1".parse().unwrap(), 1, 1);
        let mget = RedisOperation::parse("MGET __key__ __key__", 1).unwrap();
        target.operations.push(mget);
        target.records = Some(RecordSettings {
            records: records.clone(),
            own_keys,
            own_expiry: true,
            compare,
        });
        let keys = KeySpace::new(&KeySettings {
            prefix: "k-".into(),
            width: 0,
            first: 1,
            count: NonZeroU64::new(3).unwrap(),
            pattern: crate::settings::KeyPattern::Sequential,
        })
        .named(own_keys.then(|| records.clone()));
        let values = ValueSettings {
            size: SizeDistribution::Records(records),
            ..ValueSettings::default()
        };
        (RedisDriver::new(&target, &keys, &values), keys)
    }

    fn encoded(driver: &mut RedisDriver, keys: &KeySpace, request: u8, key: u64) -> String {
        let mut session = driver.open(GroupId(0), Role::Load);
        let mut out = BytesMut::new();
        let plan = Plan {
            class: OpClass(request),
            request: u32::from(request),
            key,
            value_start: 0,
            value_len: 3,
            drawn: [1, 0],
            serial: 0,
        };
        let operation = Operation {
            plan: &plan,
            value: b"val",
            keys,
        };
        driver.encode(&operation, &mut session, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn keys_and_times_to_live_are_those_of_the_records() {
        let (mut driver, keys) = driver(records(), true, false);
        let set = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\nval\r\n";
        assert_eq!(encoded(&mut driver, &keys, 0, 1), set);
        let setex = "*4\r\n$5\r\nSETEX\r\n$3\r\nb b\r\n$2\r\n60\r\n$3\r\nval\r\n";
        assert_eq!(encoded(&mut driver, &keys, 0, 2), setex);
        assert_eq!(
            encoded(&mut driver, &keys, 1, 2),
            "*2\r\n$3\r\nGET\r\n$3\r\nb b\r\n"
        );
        let mget = "*3\r\n$4\r\nMGET\r\n$3\r\nb b\r\n$1\r\na\r\n";
        assert_eq!(encoded(&mut driver, &keys, 2, 2), mget);
    }

    #[test]
    fn numbered_keys_still_have_the_times_to_live_of_their_records() {
        let (mut driver, keys) = driver(records(), false, false);
        let setex = "*4\r\n$5\r\nSETEX\r\n$3\r\nk-2\r\n$2\r\n60\r\n$3\r\nval\r\n";
        assert_eq!(encoded(&mut driver, &keys, 0, 2), setex);
        assert_eq!(
            encoded(&mut driver, &keys, 1, 3),
            "*2\r\n$3\r\nGET\r\n$3\r\nk-3\r\n"
        );
    }

    #[test]
    fn replies_are_compared_with_the_record_that_was_asked_for() {
        let (mut driver, keys) = driver(records(), true, true);
        let different = Answer::Error(ErrorKind::new(b"DIFFERENT"));
        for (key, reply, answer) in [
            (1, "$3\r\none\r\n", Answer::Hit),
            // Written under the same key by another record.
            (1, "$5\r\nthree\r\n", Answer::Hit),
            (1, "$3\r\ntwo\r\n", different),
            (2, "$3\r\none\r\n", different),
            (2, "$-1\r\n", Answer::Miss),
            (2, "+two\r\n", different),
            (2, "-ERR two\r\n", Answer::Error(ErrorKind::new(b"ERR"))),
        ] {
            let mut session = driver.open(GroupId(0), Role::Load);
            // A reply to the login is not compared with anything.
            let frame = driver.frame(&mut session, b"+OK\r\n").unwrap().unwrap();
            assert_eq!(frame.answer, Answer::Hit);
            let plan = Plan {
                class: OpClass(1),
                request: 1,
                key,
                value_start: 0,
                value_len: 0,
                drawn: [0; 2],
                serial: 0,
            };
            let operation = Operation {
                plan: &plan,
                value: b"",
                keys: &keys,
            };
            let mut out = BytesMut::new();
            driver.encode(&operation, &mut session, &mut out);
            // Asked with a part of the reply first.
            assert_eq!(
                driver.frame(&mut session, &reply.as_bytes()[..2]).unwrap(),
                None
            );
            let frame = driver.frame(&mut session, reply.as_bytes());
            assert_eq!(frame.unwrap().unwrap().answer, answer, "{key} {reply:?}");
        }
    }
}
