//! RESP servers: login, protocol version and database, then commands by template.
//!
//! ```text
//! HELLO 2|3 [AUTH user password]    when a version is asked for
//! AUTH [user] password              else, when there is a password
//! SELECT database                   when it is not 0
//! PING                              as a probe, when it is asked for
//! ```
//!
//! Each step of the handshake waits for its reply. After that every command of the mix is a frame
//! encoded once, in which only the digits of the key and the value change. Replies are skimmed: a
//! nil is a miss, an error is counted under its first word, anything else is a hit.

use std::collections::VecDeque;

use bytes::BytesMut;
use kvlab_protocol::resp::request::{NUMBER_PLACEHOLDER, Template, encode_command};
use kvlab_protocol::resp::{ReplyKind, ReplySkimmer, error_prefix};

use super::found;
use super::misses::Misses;
use super::passing::Passing;
use super::records::{Expected, RecordRequests};
use super::scan::{Scan, ScanState};
use super::{
    Answer, Driver, Frame, GroupId, Operation, Plan, ProtocolError, Refusal, Role, Step, Topology,
};
use crate::keyspace::{FurtherKeys, KeySpace};
use crate::record::{ErrorKind, OpClass, Outcome};
use crate::settings::{
    Address, Command, MissRule, RedisTarget, RespVersion, SizeDistribution, ValueSettings,
};

/// The driver for one RESP server.
#[derive(Debug)]
pub struct RedisDriver {
    requests: Vec<Request>,
    /// Requests of the handshake, encoded, with whether they carry the login.
    handshake: Vec<(BytesMut, bool)>,
    topology: VecDeque<Topology>,
    special: Option<Special>,
    /// What is known of errors, where requests are sent again or failures are told.
    passing: Option<Passing>,
    /// Where nil is not all that means that nothing was found.
    misses: Option<Misses>,
}

/// What is not sent by template alone.
#[derive(Debug)]
enum Special {
    /// The mix is a SCAN that follows its cursor.
    Scan(Scan),
    /// Keys or values are those of records.
    Records(Box<RecordRequests>),
    /// Requests are on several keys, and those found are counted.
    Keys,
}

/// A request that can be sent.
#[derive(Debug)]
struct Request {
    template: Template,
    /// Its further keys; most requests have none.
    further: Option<Box<FurtherKeys>>,
}

/// State of one connection.
#[derive(Debug, Default)]
pub struct RedisSession {
    skimmer: ReplySkimmer,
    /// Steps of the handshake that were sent.
    step: usize,
    scan: ScanState,
    expected: Expected,
}

impl RedisDriver {
    /// The driver of a target, for these keys and values.
    #[must_use]
    pub fn new(target: &RedisTarget, keys: &KeySpace, values: &ValueSettings) -> Self {
        let fixed = match values.size {
            SizeDistribution::Fixed(size) => usize::try_from(size).ok(),
            _ => None,
        };
        let commands = target.commands();
        let special = match (&target.scan, &target.records) {
            (Some(scan), _) => Some(Special::Scan(Scan::new(scan))),
            (None, Some(records)) => {
                let requests = RecordRequests::new(records, &commands);
                Some(Special::Records(Box::new(requests)))
            }
            (None, None) => target.count_keys.then_some(Special::Keys),
        };
        Self {
            requests: commands
                .iter()
                .map(|command| Request::new(command, keys, fixed))
                .collect(),
            handshake: handshake(target),
            topology: pool(target.address),
            special,
            passing: target.retry_on.as_ref().map(Passing::new),
            misses: match target.misses {
                MissRule::ByCommand => Misses::new(&commands),
                MissRule::Nil => None,
            },
        }
    }
}

impl Driver for RedisDriver {
    type Session = RedisSession;

    const ROUTES_BY_KEY: bool = false;

    fn poll_topology(&mut self) -> Option<Topology> {
        self.topology.pop_front()
    }

    fn open(&mut self, _group: GroupId, _role: Role) -> RedisSession {
        RedisSession::default()
    }

    fn converse(&mut self, session: &mut RedisSession, out: &mut BytesMut) -> Step {
        let Some((request, _)) = self.handshake.get(session.step) else {
            return Step::Done;
        };
        out.extend_from_slice(request);
        session.step += 1;
        Step::Sent { requests: 1 }
    }

    fn take_reply(&mut self, session: &mut RedisSession, frame: &[u8]) -> Result<(), Refusal> {
        let prefix = error_prefix(frame);
        if prefix.is_empty() {
            return Ok(());
        }
        let with_login = session
            .step
            .checked_sub(1)
            .and_then(|step| self.handshake.get(step));
        let login = with_login.is_some_and(|(_, login)| *login) || LOGIN_ERRORS.contains(&prefix);
        Err(Refusal {
            login,
            text: error_text(frame),
        })
    }

    #[inline]
    fn frame(
        &mut self,
        session: &mut RedisSession,
        bytes: &[u8],
    ) -> Result<Option<Frame>, ProtocolError> {
        let skim = session
            .skimmer
            .skim(bytes)
            .map_err(|error| ProtocolError(error.to_string()))?;
        Ok(skim.map(|skim| {
            let mut frame = Frame {
                len: skim.len,
                answer: match skim.kind {
                    ReplyKind::Ok => Answer::Hit,
                    ReplyKind::Nil => Answer::Miss,
                    ReplyKind::Error => {
                        let frame = bytes.get(..skim.len).unwrap_or_default();
                        if let Some(passing) = &mut self.passing {
                            passing.note(error_text(frame));
                        }
                        Answer::Error(ErrorKind::new(error_prefix(frame)))
                    }
                    ReplyKind::Push => Answer::Push,
                },
            };
            if let Some(special) = &self.special {
                let whole = bytes.get(..skim.len).unwrap_or_default();
                frame.answer = special.look(session, whole, frame.answer);
            }
            frame
        }))
    }

    #[inline]
    fn judge(&self, plan: &Plan, outcome: Outcome, frame: &[u8]) -> Outcome {
        match &self.misses {
            None => outcome,
            Some(misses) => misses.judge(plan.request, outcome, frame),
        }
    }

    fn may_pass(&self) -> bool {
        self.passing.as_ref().is_none_or(Passing::may_pass)
    }

    fn words(&self) -> &str {
        self.passing.as_ref().map_or("", Passing::words)
    }

    #[inline]
    fn settle(&mut self, class: OpClass, session: &RedisSession) -> OpClass {
        match &self.special {
            Some(Special::Scan(scan)) => scan.class(&session.scan),
            _ => class,
        }
    }

    #[inline]
    fn encode(
        &mut self,
        operation: &Operation<'_>,
        session: &mut RedisSession,
        out: &mut BytesMut,
    ) {
        let plan = operation.plan;
        let sent = match &mut self.special {
            None | Some(Special::Keys) => false,
            Some(Special::Scan(scan)) => scan.encode(plan.class, &mut session.scan, out),
            Some(Special::Records(records)) => {
                let request = self.requests.get(plan.request as usize);
                let further = request.and_then(|request| request.further.as_deref());
                records.encode(operation, further, &mut session.expected, out);
                true
            }
        };
        if sent {
            return;
        }
        let Some(request) = self.requests.get(plan.request as usize) else {
            // The workload draws only what the target has.
            debug_assert!(false, "no request for {plan:?}");
            return;
        };
        let key = |slot: usize| match &request.further {
            Some(further) => further.key(plan, slot as u64),
            None => plan.key,
        };
        let number = |slot: usize| plan.drawn.get(slot).copied().map_or(0, u64::from);
        request
            .template
            .encode_with(key, number, operation.value, out);
    }
}

impl Special {
    /// Looks at a whole reply, and says what it says.
    fn look(&self, session: &mut RedisSession, frame: &[u8], answer: Answer) -> Answer {
        match self {
            Self::Scan(_) => {
                session.scan.take(frame);
                answer
            }
            Self::Records(records) => records.look(&mut session.expected, frame, answer),
            Self::Keys => found::keys_of(frame).unwrap_or(answer),
        }
    }
}

impl Request {
    fn new(command: &Command<'_>, keys: &KeySpace, fixed: Option<usize>) -> Self {
        let mut template = Template::builder();
        let mut numbers = command.numbers();
        for argument in command.arguments {
            let number = numbers > 0 && argument == NUMBER_PLACEHOLDER.as_bytes();
            numbers -= usize::from(number);
            template = if number {
                template.number()
            } else {
                template.argument(argument, keys.prefix(), keys.width(), fixed)
            };
        }
        let pattern = command.pattern.unwrap_or(keys.settings().pattern);
        Self {
            template: template.build(),
            further: (command.keys() > 1)
                .then(|| Box::new(FurtherKeys::new(keys.settings(), pattern))),
        }
    }
}

fn pool(address: Address) -> VecDeque<Topology> {
    VecDeque::from([Topology::Pool {
        group: GroupId(0),
        address,
    }])
}

fn handshake(target: &RedisTarget) -> Vec<(BytesMut, bool)> {
    let mut steps = Vec::new();
    let mut step = |arguments: &[&[u8]], login: bool| {
        let mut request = BytesMut::new();
        encode_command(arguments, &mut request);
        steps.push((request, login));
    };
    let password = target.password.as_ref();
    let password = password.map(|password| password.reveal().as_bytes());
    let user = target.user.as_deref().map(str::as_bytes);
    let version: Option<&[u8]> = match target.version {
        RespVersion::Two => None,
        RespVersion::TwoByHello => Some(b"2"),
        RespVersion::Three => Some(b"3"),
    };
    match (version, password) {
        (Some(version), Some(password)) => {
            let user = user.unwrap_or(b"default");
            step(&[b"HELLO", version, b"AUTH", user, password], true);
        }
        (Some(version), None) => step(&[b"HELLO", version], false),
        (None, Some(password)) => match user {
            Some(user) => step(&[b"AUTH", user, password], true),
            None => step(&[b"AUTH", password], true),
        },
        (None, None) => {}
    }
    if target.database > 0 {
        step(&[b"SELECT", target.database.to_string().as_bytes()], false);
    }
    if target.probe {
        step(&[b"PING"], false);
    }
    steps
}

/// The server's words: the first line of text of an error reply.
fn error_text(frame: &[u8]) -> String {
    let text = match frame {
        [b'!', rest @ ..] => rest
            .splitn(2, |byte| *byte == b'\n')
            .nth(1)
            .unwrap_or_default(),
        [_, rest @ ..] => rest,
        [] => frame,
    };
    let line = text.split(|byte| *byte == b'\r').next().unwrap_or_default();
    String::from_utf8_lossy(line.get(..line.len().min(MAX_TEXT)).unwrap_or_default()).into_owned()
}

/// Error words that mean a login is missing or wrong.
const LOGIN_ERRORS: [&[u8]; 3] = [b"NOAUTH", b"WRONGPASS", b"NOPERM"];
/// Bytes of a refusal that are kept.
const MAX_TEXT: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Plan;
    use crate::settings::KeySettings;

    fn target() -> RedisTarget {
        RedisTarget::new("127.0.0.1:6379".parse().unwrap(), 1, 1)
    }

    fn driver(target: &RedisTarget) -> RedisDriver {
        let keys = KeySpace::new(&KeySettings::default());
        let values = ValueSettings {
            size: SizeDistribution::Fixed(3),
            ..Default::default()
        };
        RedisDriver::new(target, &keys, &values)
    }

    fn conversation(target: &RedisTarget) -> Vec<String> {
        let mut driver = driver(target);
        let mut session = driver.open(GroupId(0), Role::Load);
        let mut all = Vec::new();
        let mut out = BytesMut::new();
        while driver.converse(&mut session, &mut out) != Step::Done {
            all.push(String::from_utf8(out.to_vec()).unwrap());
            out.clear();
            driver.take_reply(&mut session, b"+OK\r\n").unwrap();
        }
        all
    }

    #[test]
    fn plain_connection_says_nothing_first() {
        assert!(conversation(&target()).is_empty());
    }

    #[test]
    fn login_version_and_database_are_sent_in_their_order() {
        let mut target = RedisTarget {
            password: Some("pw".into()),
            database: 5,
            ..target()
        };
        assert_eq!(
            conversation(&target),
            [
                "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n",
                "*2\r\n$6\r\nSELECT\r\n$1\r\n5\r\n"
            ]
        );
        target.user = Some("me".into());
        assert_eq!(
            conversation(&target)[0],
            "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n"
        );
        target.version = RespVersion::Three;
        target.user = None;
        assert_eq!(
            conversation(&target)[0],
            "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$2\r\npw\r\n"
        );
        target.version = RespVersion::TwoByHello;
        assert_eq!(
            conversation(&target)[0],
            "*5\r\n$5\r\nHELLO\r\n$1\r\n2\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$2\r\npw\r\n"
        );
        target.password = None;
        assert_eq!(conversation(&target)[0], "*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n");
    }

    #[test]
    fn refusals_tell_the_login_from_the_rest() {
        let target = RedisTarget {
            password: Some("pw".into()),
            database: 99,
            ..target()
        };
        let mut driver = driver(&target);
        let mut session = driver.open(GroupId(0), Role::Load);
        let mut out = BytesMut::new();
        driver.converse(&mut session, &mut out);
        let refusal = driver
            .take_reply(
                &mut session,
                b"-WRONGPASS invalid username-password pair\r\n",
            )
            .unwrap_err();
        assert_eq!(
            refusal,
            Refusal {
                login: true,
                text: "WRONGPASS invalid username-password pair".into()
            }
        );
        driver.converse(&mut session, &mut out);
        let refusal = driver
            .take_reply(&mut session, b"-ERR DB index is out of range\r\n")
            .unwrap_err();
        assert_eq!(
            refusal,
            Refusal {
                login: false,
                text: "ERR DB index is out of range".into()
            }
        );
    }

    #[test]
    fn requests_and_replies_are_those_of_the_wire() {
        let mut driver = driver(&target());
        let mut session = driver.open(GroupId(0), Role::Load);
        let keys = KeySpace::new(&KeySettings::default());
        let plan = |class| Plan {
            class: OpClass(class),
            request: u32::from(class),
            key: 42,
            value_start: 0,
            value_len: 3,
            drawn: [0; 2],
            serial: 0,
        };
        let mut out = BytesMut::new();
        for class in [0, 1] {
            let plan = plan(class);
            let operation = Operation {
                plan: &plan,
                value: b"abc",
                keys: &keys,
            };
            driver.encode(&operation, &mut session, &mut out);
        }
        assert_eq!(
            &out[..],
            b"*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000042\r\n$3\r\nabc\r\n\
              *2\r\n$3\r\nGET\r\n$16\r\nkey:000000000042\r\n"
        );
        let error = ErrorKind::new(b"LOADING");
        for (bytes, len, answer) in [
            (&b"+OK\r\n$3"[..], 5, Answer::Hit),
            // A value of no bytes was found.
            (b"$0\r\n\r\n", 6, Answer::Hit),
            (b"$-1\r\n", 5, Answer::Miss),
            (b"_\r\n", 3, Answer::Miss),
            (b"-LOADING Redis is loading\r\n", 27, Answer::Error(error)),
            (b">2\r\n+a\r\n+b\r\n", 12, Answer::Push),
        ] {
            assert_eq!(
                driver.frame(&mut session, bytes).unwrap(),
                Some(Frame { len, answer })
            );
        }
        assert_eq!(driver.frame(&mut session, b"$5\r\nab").unwrap(), None);
        assert!(
            driver
                .frame(&mut RedisSession::default(), b"?\r\n")
                .is_err()
        );
    }
}
