//! A Redis cluster: requests go to the primary of their key's slot, redirections are followed.
//!
//! ```text
//! handshake of the single server, then on the connections that learn the cluster
//! CLUSTER SLOTS, or else CLUSTER SHARDS      who serves which slots; again every second, and soon
//!                                            after a redirection or a lost connection
//! -MOVED 3999 127.0.0.1:6381                 the slot's new home: remembered, the request sent there
//! -ASK 3999 127.0.0.1:6381                   this request alone: ASKING and the request sent there
//! ```
//!
//! The slot is the CRC16 of the key, or of the part of it in braces. A command that names a fixed
//! key has the slot of its first argument, until a redirection says which it is; one without
//! arguments goes to the primaries in turn. Replicas carry no load.
//!
//! Source: the Redis cluster specification.

mod map;
mod nodes;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use kvlab_protocol::resp::request::{KEY_PLACEHOLDER, encode_command};
use kvlab_protocol::resp::{ReplyDecoder, ReplyKind, ReplySkimmer, slot};

use self::nodes::{Nodes, read_redirection};
use super::redis::{RedisDriver, RedisSession};
use super::{
    Answer, Driver, Frame, GroupId, Operation, Plan, ProtocolError, Redirection, Refusal, Role,
    Route, Step, Topology,
};
use crate::keyspace::KeySpace;
use crate::record::{OpClass, Outcome};
use crate::settings::{RedisTarget, ValueSettings};

/// The driver for one Redis cluster.
#[derive(Debug)]
pub struct RedisClusterDriver {
    single: RedisDriver,
    nodes: Nodes,
    /// The servers know `CLUSTER SHARDS` only.
    by_shards: bool,
    /// By the number of the request.
    places: Vec<Place>,
    /// Scratch space for the text of a key.
    key: BytesMut,
}

/// Where a request goes.
#[derive(Debug)]
enum Place {
    /// To the slot of its key, which stands between these texts.
    Key { before: Vec<u8>, after: Vec<u8> },
    /// Always to this slot.
    Slot(u16),
    /// Anywhere.
    Any,
}

/// State of one connection.
#[derive(Debug)]
pub struct ClusterSession {
    single: RedisSession,
    group: GroupId,
    role: Role,
    /// What a tend connection asked, until it is told that this is all.
    asked: Question,
    /// Requests under way, in order.
    awaited: VecDeque<Awaited>,
    /// Whether the next request stands behind an `ASKING`.
    asking: bool,
    /// Looks for the end of the reply to an `ASKING`, and where that was found.
    asking_reply: ReplySkimmer,
    asking_len: Option<usize>,
}

/// A question for the map of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    None,
    Slots,
    Shards,
}

#[derive(Clone, Copy, Debug)]
struct Awaited {
    request: u32,
    asking: bool,
}

impl RedisClusterDriver {
    /// The driver of a target, for these keys and values.
    #[must_use]
    pub fn new(target: &RedisTarget, keys: &KeySpace, values: &ValueSettings) -> Self {
        Self {
            single: RedisDriver::new(target, keys, values),
            nodes: Nodes::new(target.address),
            by_shards: false,
            places: target
                .commands()
                .iter()
                .map(|command| Place::of(command.arguments))
                .collect(),
            key: BytesMut::new(),
        }
    }

    /// Takes note of a redirection; `None` where it cannot be followed.
    fn redirection(&mut self, session: &ClusterSession, frame: &[u8]) -> Option<Redirection> {
        let line = frame.split(|byte| *byte == b'\r').next()?;
        let line = std::str::from_utf8(line.get(1..)?).ok()?;
        let own = self.nodes.address(session.group)?;
        let (slot, address) = read_redirection(line, own)?;
        if line.starts_with("ASK ") {
            return self.nodes.asked(address).map(Redirection::Ask);
        }
        let request = session.awaited.front()?.request;
        if let Some(Place::Slot(fixed)) = self.places.get_mut(request as usize) {
            *fixed = slot;
        }
        self.nodes
            .moved(slot, address)
            .then_some(Redirection::Moved)
    }
}

impl Driver for RedisClusterDriver {
    type Session = ClusterSession;

    const ROUTES_BY_KEY: bool = true;
    const SLOTS_OF_EACH_NODE: bool = true;

    fn poll_topology(&mut self) -> Option<Topology> {
        self.nodes.poll_change()
    }

    fn is_settled(&self) -> bool {
        self.nodes.is_complete()
    }

    fn tend_interval(&self) -> Option<Duration> {
        Some(TEND_INTERVAL)
    }

    fn tend_soon(&self) -> Option<Duration> {
        Some(TEND_SOON)
    }

    fn tend_failed(&mut self, group: GroupId) {
        self.nodes.failed(group);
    }

    fn open(&mut self, group: GroupId, role: Role) -> ClusterSession {
        ClusterSession {
            single: self.single.open(group, role),
            group,
            role,
            asked: Question::None,
            awaited: VecDeque::new(),
            asking: false,
            asking_reply: ReplySkimmer::new(),
            asking_len: None,
        }
    }

    fn converse(&mut self, session: &mut ClusterSession, out: &mut BytesMut) -> Step {
        if let sent @ Step::Sent { .. } = self.single.converse(&mut session.single, out) {
            return sent;
        }
        session.asked = match session.asked {
            _ if session.role != Role::Tend => Question::None,
            Question::None if self.by_shards => Question::Shards,
            Question::None => Question::Slots,
            // The server does not know the one, so it is asked the other.
            Question::Slots if self.by_shards => Question::Shards,
            Question::Slots | Question::Shards => Question::None,
        };
        let question: &[u8] = match session.asked {
            Question::None => return Step::Done,
            Question::Slots => b"SLOTS",
            Question::Shards => b"SHARDS",
        };
        encode_command(&[b"CLUSTER", question], out);
        Step::Sent { requests: 1 }
    }

    fn take_reply(&mut self, session: &mut ClusterSession, frame: &[u8]) -> Result<(), Refusal> {
        if session.asked == Question::Slots && is_unknown(frame) {
            self.by_shards = true;
            return Ok(());
        }
        self.single.take_reply(&mut session.single, frame)?;
        if session.asked == Question::None {
            return Ok(());
        }
        let refusal = |text: String| Refusal { login: false, text };
        let decoded = ReplyDecoder::new()
            .decode(frame)
            .map_err(|error| refusal(error.to_string()))?;
        let Some((answer, _)) = decoded else {
            return Err(refusal("half a map of the cluster".to_owned()));
        };
        self.nodes.listed(session.group, &answer).map_err(refusal)
    }

    #[inline]
    fn frame(
        &mut self,
        session: &mut ClusterSession,
        bytes: &[u8],
    ) -> Result<Option<Frame>, ProtocolError> {
        let mut before = 0;
        if session.awaited.front().is_some_and(|front| front.asking) {
            before = match session.asking_len {
                Some(len) => len,
                None => {
                    let skim = session.asking_reply.skim(bytes);
                    let skim = skim.map_err(|error| ProtocolError(error.to_string()))?;
                    match skim {
                        // Pushes may stand between replies.
                        Some(skim) if skim.kind == ReplyKind::Push => {
                            return Ok(Some(Frame {
                                len: skim.len,
                                answer: Answer::Push,
                            }));
                        }
                        Some(skim) => *session.asking_len.insert(skim.len),
                        None => return Ok(None),
                    }
                }
            };
        }
        let rest = bytes.get(before..).unwrap_or_default();
        let Some(frame) = self.single.frame(&mut session.single, rest)? else {
            return Ok(None);
        };
        let answer = match frame.answer {
            Answer::Push if before > 0 => {
                return Err(ProtocolError(
                    "a push behind the reply to ASKING".to_owned(),
                ));
            }
            Answer::Error(kind) if matches!(kind.as_str(), "MOVED" | "ASK") => {
                let reply = rest.get(..frame.len).unwrap_or_default();
                match self.redirection(session, reply) {
                    Some(to) => Answer::Redirected { kind, to },
                    None => frame.answer,
                }
            }
            answer => answer,
        };
        if answer != Answer::Push {
            session.awaited.pop_front();
            session.asking_len = None;
        }
        Ok(Some(Frame {
            len: before + frame.len,
            answer,
        }))
    }

    fn route(&mut self, operation: &Operation<'_>) -> Route {
        let plan = operation.plan;
        let group = match self.places.get(plan.request as usize) {
            Some(Place::Key { before, after }) => {
                self.key.clear();
                self.key.extend_from_slice(before);
                operation.keys.write(plan.key, &mut self.key);
                self.key.extend_from_slice(after);
                self.nodes.owner(slot::of_key(&self.key))
            }
            Some(Place::Slot(slot)) => self.nodes.owner(*slot),
            Some(Place::Any) | None => self.nodes.any(),
        };
        group.map_or(Route::Nowhere, Route::To)
    }

    #[inline]
    fn settle(&mut self, class: OpClass, session: &ClusterSession) -> OpClass {
        self.single.settle(class, &session.single)
    }

    #[inline]
    fn judge(&self, plan: &Plan, outcome: Outcome, frame: &[u8]) -> Outcome {
        self.single.judge(plan, outcome, frame)
    }

    fn may_pass(&self) -> bool {
        self.single.may_pass()
    }

    fn words(&self) -> &str {
        self.single.words()
    }

    fn ask(&mut self, session: &mut ClusterSession, out: &mut BytesMut) {
        encode_command(&[b"ASKING"], out);
        session.asking = true;
    }

    fn encode(
        &mut self,
        operation: &Operation<'_>,
        session: &mut ClusterSession,
        out: &mut BytesMut,
    ) {
        session.awaited.push_back(Awaited {
            request: operation.plan.request,
            asking: std::mem::take(&mut session.asking),
        });
        self.single.encode(operation, &mut session.single, out);
    }
}

impl Place {
    fn of(arguments: &[Vec<u8>]) -> Self {
        let placeholder = KEY_PLACEHOLDER.as_bytes();
        let key = arguments.iter().find_map(|argument| {
            let at = argument
                .windows(placeholder.len())
                .position(|part| part == placeholder)?;
            Some((argument.get(..at)?, argument.get(at + placeholder.len()..)?))
        });
        match (key, arguments.get(1)) {
            (Some((before, after)), _) => Self::Key {
                before: before.to_vec(),
                after: after.to_vec(),
            },
            (None, Some(fixed)) => Self::Slot(slot::of_key(fixed)),
            (None, None) => Self::Any,
        }
    }
}

/// Whether a server says that it does not know the question.
fn is_unknown(reply: &[u8]) -> bool {
    let line = reply.split(|byte| *byte == b'\r').next();
    let line = line.unwrap_or_default().to_ascii_lowercase();
    line.starts_with(b"-err unknown")
}

/// How often a node is asked for the slots.
const TEND_INTERVAL: Duration = Duration::from_secs(1);
/// How soon it is asked after a redirection or a loss.
const TEND_SOON: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;
