//! The conversation on a tend connection, as the C client leads it.
//!
//! | question | when | what follows |
//! |---|---|---|
//! | `node partition-generation build` | first | the name is checked, the pool is opened |
//! | `user-agent-set:value=…` | once, from build 8.1 on | |
//! | `node peers-generation partition-generation` | every tend | generations are compared |
//! | `peers-clear-std`, over TLS `peers-tls-std` | the peers generation changed | new peers are tended |
//! | `partition-generation replicas` | the partition generation changed | the table is updated |

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use kvlab_protocol::aerospike::info::{InfoError, Peers, Replicas, answers, put_request};
use kvlab_protocol::aerospike::proto::{Kind, split_frame};
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::cluster::Cluster;
use crate::driver::{GroupId, Refusal, Step};

/// One tend connection.
#[derive(Debug)]
pub(super) struct Tend {
    group: GroupId,
    asked: Question,
    greeted: bool,
    wants_user_agent: bool,
    /// Generations the node told last, not yet followed up.
    peers: Option<i64>,
    partitions: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    None,
    Greeting,
    UserAgent,
    Generations,
    Peers,
    Replicas,
}

impl Tend {
    /// A connection that was just made.
    pub(super) fn new(group: GroupId) -> Self {
        Self {
            group,
            asked: Question::None,
            greeted: false,
            wants_user_agent: false,
            peers: None,
            partitions: None,
        }
    }

    /// Asks the next question of this round.
    pub(super) fn ask(&mut self, cluster: &Cluster, out: &mut BytesMut) -> Step {
        let node = cluster.node(self.group);
        let peers_known = node.and_then(|node| node.peers_generation);
        let partitions_known = node.and_then(|node| node.partition_generation);
        let round_begins = self.asked == Question::None;
        self.asked = if !self.greeted {
            Question::Greeting
        } else if self.wants_user_agent {
            Question::UserAgent
        } else if round_begins || matches!(self.asked, Question::Greeting | Question::UserAgent) {
            Question::Generations
        } else if self.peers.is_some() && self.peers != peers_known {
            Question::Peers
        } else if self.partitions.is_some() && self.partitions != partitions_known {
            Question::Replicas
        } else {
            Question::None
        };
        let user_agent;
        let commands: &[&str] = match self.asked {
            Question::None => return Step::Done,
            Question::Greeting => &["node", "partition-generation", "build"],
            Question::UserAgent => {
                let name = concat!("1,kvlab-", env!("CARGO_PKG_VERSION"), ",not-set");
                user_agent = format!("user-agent-set:value={}", STANDARD.encode(name));
                &[&user_agent]
            }
            Question::Generations => &["node", "peers-generation", "partition-generation"],
            Question::Peers => &[cluster.peers_question()],
            Question::Replicas => &["partition-generation", "replicas"],
        };
        put_request(commands.iter().copied(), out);
        Step::Sent { requests: 1 }
    }

    /// Takes the answer to the question asked last.
    pub(super) fn take(&mut self, frame: &[u8], cluster: &mut Cluster) -> Result<(), Refusal> {
        let body = match split_frame(frame) {
            Ok(Some(frame)) if frame.header.kind == Kind::Info => frame.body,
            _ => {
                return Err(refusal(
                    "the node answered an info request with something else",
                ));
            }
        };
        if let Some(error) = InfoError::parse(body)
            && error.code == Some(ResultCode::NotAuthenticated)
        {
            // A server with users answers so to any request, whatever it asks.
            return Err(Refusal {
                login: true,
                text: format!("{}: it wants a user", ResultCode::NotAuthenticated),
            });
        }
        let value = |name: &str| -> Result<&str, Refusal> {
            let found = answers(body).find(|answer| answer.command == name.as_bytes());
            let answer =
                found.ok_or_else(|| refusal(&format!("the node did not answer {name}")))?;
            let value = answer
                .ok()
                .map_err(|error| refusal(&format!("{name}: {error}")))?;
            std::str::from_utf8(value).map_err(|_| refusal(&format!("{name}: not text")))
        };
        let generation = |name: &str| -> Result<i64, Refusal> {
            let text = value(name)?;
            text.parse()
                .map_err(|_| refusal(&format!("{name}: expected a number, found {text:?}")))
        };
        match self.asked {
            Question::None | Question::UserAgent => self.wants_user_agent = false,
            Question::Greeting => {
                if generation("partition-generation")? < 0 {
                    return Err(refusal("the node is not ready"));
                }
                self.wants_user_agent = build_at_least(value("build")?, (8, 1));
                self.greeted = true;
                if !cluster.named(self.group, value("node")?) {
                    return Err(refusal("the address belongs to another node"));
                }
            }
            Question::Generations => {
                if !cluster.named(self.group, value("node")?) {
                    return Err(refusal("the address belongs to another node now"));
                }
                self.peers = Some(generation("peers-generation")?);
                self.partitions = Some(generation("partition-generation")?);
            }
            Question::Peers => {
                let question = cluster.peers_question();
                let peers = Peers::parse(value(question)?.as_bytes())
                    .map_err(|error| refusal(&format!("{question}: {error}")))?;
                cluster.listed(self.group, peers.default_port, &peers.peers);
                if let Some(node) = cluster.node_mut(self.group) {
                    node.peers_generation = self.peers;
                }
            }
            Question::Replicas => {
                let generation = generation("partition-generation")?;
                let replicas = Replicas::parse(value("replicas")?.as_bytes())
                    .map_err(|error| refusal(&format!("replicas: {error}")))?;
                let ours = replicas
                    .namespaces
                    .iter()
                    .find(|n| n.namespace == cluster.namespace());
                let Some(ours) = ours else {
                    let namespace = cluster.namespace();
                    return Err(refusal(&format!("the node has no namespace {namespace:?}")));
                };
                if let Some(masters) = ours.columns.first() {
                    cluster.owns(self.group, masters);
                }
                self.partitions = Some(generation);
                if let Some(node) = cluster.node_mut(self.group) {
                    node.partition_generation = Some(generation);
                }
            }
        }
        Ok(())
    }
}

fn build_at_least(build: &str, least: (u32, u32)) -> bool {
    let mut numbers = build
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= least
}

fn refusal(text: &str) -> Refusal {
    Refusal {
        login: false,
        text: text.to_owned(),
    }
}
