//! Aerospike clusters: learn the nodes, route every record to the master of its partition, send
//! requests encoded once.
//!
//! As real clients do, the driver keeps one connection to each node for tending: it asks the node
//! for its name, watches two generations, and fetches the peers list and the partition map when
//! they change (see `tend`). A key is hashed to its digest, the digest names a partition, and the
//! partition's master names the group of connections the request goes to.
//!
//! A batch goes whole to the node of its first key: any node answers for any record. Where there is a
//! user, each connection begins with a login or with the token of an earlier one (see `login`).

mod cluster;
mod login;
mod tend;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use kvlab_protocol::aerospike::digest::{Digest, Key, digest, partition_id};
use kvlab_protocol::aerospike::message::ParticleType;
use kvlab_protocol::aerospike::proto::Kind;
use kvlab_protocol::aerospike::reply::{MultiReply, skim};
use kvlab_protocol::aerospike::request::{
    BatchRead, BatchTemplate, RecordKey, RecordTemplate, Target, TemplateOp, WritePolicy,
};
use kvlab_protocol::aerospike::result_code::ResultCode;

use self::cluster::Cluster;
use self::login::{Entry, Logins};
use self::tend::Tend;
use super::{
    Answer, Driver, Frame, GroupId, Operation, ProtocolError, Refusal, Role, Route, Step, Topology,
};
use crate::keyspace::KeySpace;
use crate::record::{ErrorKind, OpClass, Outcome};
use crate::settings::{AerospikeTarget, AerospikeVerb};

/// The driver for one Aerospike cluster.
#[derive(Debug)]
pub struct AerospikeDriver {
    cluster: Cluster,
    logins: Logins,
    requests: Vec<Request>,
    set: Box<[u8]>,
    tend_interval: Duration,
    most_retries: u8,
    send_key: bool,
    /// The key hashed last, which is nearly always the one that is encoded next.
    hashed: Option<(u64, Digest)>,
    /// Scratch space for the text of a key and the digests of a batch.
    key: BytesMut,
    digests: Vec<Digest>,
}

#[derive(Debug)]
enum Request {
    Record(RecordTemplate),
    Batch { template: BatchTemplate, keys: u32 },
}

/// State of one connection.
#[derive(Debug)]
pub struct AerospikeSession {
    entry: Entry,
    purpose: Purpose,
}

/// What a connection is for, once it is logged in.
#[derive(Debug)]
enum Purpose {
    /// It carries load.
    Load(LoadSession),
    /// It learns the cluster.
    Tend(Tend),
}

/// What answers a load connection waits for.
#[derive(Debug, Default)]
struct LoadSession {
    /// For each request under way, whether its answer comes in several frames.
    awaited: VecDeque<bool>,
    /// The answer of several frames that is coming in, and its bytes so far.
    batch: MultiReply,
    taken: usize,
}

impl AerospikeDriver {
    /// The driver of a target; `timeout` is told to the server as the limit of each request.
    #[must_use]
    pub fn new(target: &AerospikeTarget, timeout: Duration) -> Self {
        let wire = Target {
            namespace: target.namespace.as_bytes(),
            set: target.set.as_bytes(),
            timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
            send_key: target.send_key,
        };
        let policy = WritePolicy {
            ttl: target.ttl,
            ..WritePolicy::default()
        };
        let bin = target.bin.as_bytes();
        let requests = target
            .operations
            .iter()
            .map(|operation| match operation.verb {
                AerospikeVerb::Put => {
                    Request::Record(RecordTemplate::put(&wire, &policy, &[(bin, VALUE)]))
                }
                AerospikeVerb::Get => Request::Record(RecordTemplate::get(&wire)),
                AerospikeVerb::Exists => Request::Record(RecordTemplate::exists(&wire)),
                AerospikeVerb::Remove => {
                    // A removal has no time to live.
                    let policy = WritePolicy::default();
                    Request::Record(RecordTemplate::remove(&wire, &policy))
                }
                AerospikeVerb::Touch => Request::Record(RecordTemplate::touch(&wire, &policy)),
                AerospikeVerb::Operate => {
                    let ops = [TemplateOp::write(bin, VALUE), TemplateOp::read(bin)];
                    Request::Record(RecordTemplate::operate(&wire, &policy, &ops))
                }
                AerospikeVerb::BatchRead(keys) => Request::Batch {
                    template: BatchTemplate::read(&wire, BatchRead::AllBins),
                    keys: keys.get(),
                },
            });
        Self {
            requests: requests.collect(),
            cluster: Cluster::new(&target.namespace, &target.seeds),
            logins: Logins::new(target.login.as_ref()),
            set: target.set.as_bytes().into(),
            tend_interval: target.tend_interval,
            most_retries: target.retries.most,
            send_key: target.send_key,
            hashed: None,
            key: BytesMut::new(),
            digests: Vec::new(),
        }
    }

    /// The same for a cluster that is reached over TLS: nodes are asked for the addresses, and the
    /// names, that their peers have there.
    #[must_use]
    pub fn over_tls(mut self) -> Self {
        self.cluster.use_tls();
        self
    }

    /// The digest of the key of this number.
    fn digest_of(&mut self, number: u64, keys: &KeySpace) -> Digest {
        if let Some((known, digest)) = self.hashed
            && known == number
        {
            return digest;
        }
        self.key.clear();
        keys.write(number, &mut self.key);
        let hashed = digest(&self.set, Key::String(&self.key));
        self.hashed = Some((number, hashed));
        hashed
    }
}

impl Driver for AerospikeDriver {
    type Session = AerospikeSession;

    const ROUTES_BY_KEY: bool = true;

    fn poll_topology(&mut self) -> Option<Topology> {
        self.cluster.poll_change()
    }

    fn is_settled(&self) -> bool {
        self.cluster.is_complete()
    }

    fn server_name(&self, group: GroupId) -> Option<&str> {
        self.cluster.node(group)?.tls_name()
    }

    fn tend_interval(&self) -> Option<Duration> {
        Some(self.tend_interval)
    }

    fn tend_failed(&mut self, group: GroupId) {
        self.cluster.failed(group);
    }

    fn open(&mut self, group: GroupId, role: Role) -> AerospikeSession {
        AerospikeSession {
            entry: self.logins.enter(group),
            purpose: match role {
                Role::Load => Purpose::Load(LoadSession::default()),
                Role::Tend => Purpose::Tend(Tend::new(group)),
            },
        }
    }

    fn converse(&mut self, session: &mut AerospikeSession, out: &mut BytesMut) -> Step {
        if self.logins.ask(&mut session.entry, out) {
            return Step::Sent { requests: 1 };
        }
        match &mut session.purpose {
            Purpose::Load(_) => Step::Done,
            Purpose::Tend(tend) => tend.ask(&self.cluster, out),
        }
    }

    fn take_reply(&mut self, session: &mut AerospikeSession, frame: &[u8]) -> Result<(), Refusal> {
        if session.entry.is_open() {
            return self.logins.take(&mut session.entry, frame);
        }
        match &mut session.purpose {
            // A load connection says nothing more before its load.
            Purpose::Load(_) => Ok(()),
            Purpose::Tend(tend) => tend.take(frame, &mut self.cluster),
        }
    }

    fn frame(
        &mut self,
        session: &mut AerospikeSession,
        bytes: &[u8],
    ) -> Result<Option<Frame>, ProtocolError> {
        let load = match &mut session.purpose {
            Purpose::Load(load) if !session.entry.is_open() => load,
            _ => {
                return Ok(whole(bytes)?.map(|(len, ..)| Frame {
                    len,
                    answer: Answer::Hit,
                }));
            }
        };
        if load.awaited.front() == Some(&true) {
            return load.batch_frame(bytes);
        }
        let Some((len, kind, result)) = whole(bytes)? else {
            return Ok(None);
        };
        if kind != Kind::Message {
            return Err(ProtocolError(format!(
                "an answer of kind {kind:?} to a record request"
            )));
        }
        load.awaited.pop_front();
        Ok(Some(Frame {
            len,
            answer: answer(result),
        }))
    }

    fn route(&mut self, operation: &Operation<'_>) -> Route {
        let digest = self.digest_of(operation.plan.key, operation.keys);
        self.cluster
            .master(partition_id(&digest))
            .map_or(Route::Nowhere, Route::To)
    }

    fn encode(
        &mut self,
        operation: &Operation<'_>,
        session: &mut AerospikeSession,
        out: &mut BytesMut,
    ) {
        let plan = operation.plan;
        let first = self.digest_of(plan.key, operation.keys);
        let Purpose::Load(load) = &mut session.purpose else {
            return;
        };
        if let Some(&Request::Batch { keys, .. }) = self.requests.get(plan.class.index()) {
            self.digests.clear();
            for index in 0..u64::from(keys) {
                let number = operation.keys.key_of(plan, index);
                let digest = self.digest_of(number, operation.keys);
                self.digests.push(digest);
            }
        }
        match self.requests.get(plan.class.index()) {
            Some(Request::Record(template)) => {
                if self.send_key {
                    self.key.clear();
                    operation.keys.write(plan.key, &mut self.key);
                }
                let record = RecordKey {
                    digest: &first,
                    key: Key::String(&self.key),
                };
                // An operate writes and reads the same bin; only the write has a slot.
                template.emit(&record, &[operation.value], out);
                load.awaited.push_back(false);
            }
            Some(Request::Batch { template, .. }) => {
                template.emit((0..).zip(&self.digests), out);
                load.awaited.push_back(true);
            }
            // The workload draws only classes of the mix.
            None => debug_assert!(false, "no request for {:?}", plan.class),
        }
    }

    fn retries(&mut self, _class: OpClass, outcome: Outcome, attempt: u8) -> bool {
        let worth_it = match outcome {
            Outcome::Timeout | Outcome::ConnectionLost => true,
            Outcome::Error(kind) => [
                ResultCode::Timeout,
                ResultCode::DeviceOverload,
                ResultCode::KeyBusy,
            ]
            .iter()
            .any(|code| kind == error_kind(*code)),
            _ => false,
        };
        worth_it && attempt < self.most_retries
    }
}

impl LoadSession {
    /// The answer to a batch: frames up to the one whose last message ends it.
    fn batch_frame(&mut self, bytes: &[u8]) -> Result<Option<Frame>, ProtocolError> {
        let result = loop {
            if let Some(result) = self.batch.result() {
                break result;
            }
            let rest = bytes.get(self.taken..).unwrap_or_default();
            let fed = self
                .batch
                .feed(rest, |_| ())
                .map_err(|e| ProtocolError(e.to_string()))?;
            match fed {
                Some(len) => self.taken += len,
                None => return Ok(None),
            }
        };
        let batch = std::mem::take(&mut self.batch);
        let len = std::mem::take(&mut self.taken);
        self.awaited.pop_front();
        let answer = match result {
            ResultCode::Ok if batch.failed > 0 => {
                Answer::Error(ErrorKind::new(b"batch rows failed"))
            }
            ResultCode::Ok if batch.found == 0 => Answer::Miss,
            ResultCode::Ok => Answer::Hit,
            other => answer(other),
        };
        Ok(Some(Frame { len, answer }))
    }
}

/// Length, kind and outcome of the whole answer at the beginning of `bytes`.
fn whole(bytes: &[u8]) -> Result<Option<(usize, Kind, ResultCode)>, ProtocolError> {
    let skimmed = skim(bytes).map_err(|error| ProtocolError(error.to_string()))?;
    Ok(skimmed.map(|skim| (skim.len, skim.kind, skim.result)))
}

fn answer(result: ResultCode) -> Answer {
    match result {
        ResultCode::Ok => Answer::Hit,
        ResultCode::NotFound => Answer::Miss,
        other => Answer::Error(error_kind(other)),
    }
}

fn error_kind(result: ResultCode) -> ErrorKind {
    ErrorKind::new(result.name().as_bytes())
}

/// Values are written as blobs: any bytes will do.
const VALUE: ParticleType = ParticleType::Blob;

#[cfg(test)]
mod tests;
