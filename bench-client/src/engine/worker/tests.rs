//! The worker with a cluster of pretend nodes: routing, retries, tends and lost nodes.
//!
//! The pretend protocol has requests and replies of one byte. Load goes to node (key mod 2). A
//! node answers after a constant time; the network takes none.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};

use bytes::BytesMut;
use kvlab_timing::Rate;

use super::*;
use crate::driver::{
    Answer, Frame, GroupId, Operation, ProtocolError, Refusal, Role, Route, Step, Topology,
};
use crate::record::{ErrorKind, OpClass, Outcome, SocketEnd};
use crate::settings::{Arrivals, KeyPattern, KeySettings, RedisTarget, Stop, Target};

struct Cluster {
    topology: VecDeque<Topology>,
    /// Where the keys of each remainder go.
    routes: [Option<GroupId>; 2],
    retries: u8,
    tended: u32,
}

struct Session {
    role: Role,
    asked: bool,
}

fn address(port: u16) -> Address {
    SocketAddr::from(([127, 0, 0, 1], port)).into()
}

const NODES: [GroupId; 2] = [GroupId(0), GroupId(1)];

impl Cluster {
    fn new(retries: u8) -> Self {
        let seed = Topology::Tend {
            group: NODES[0],
            address: address(1),
        };
        Self {
            topology: VecDeque::from([seed]),
            routes: [None; 2],
            retries,
            tended: 0,
        }
    }
}

impl Driver for Cluster {
    type Session = Session;
    const ROUTES_BY_KEY: bool = true;

    fn poll_topology(&mut self) -> Option<Topology> {
        self.topology.pop_front()
    }

    fn is_settled(&self) -> bool {
        self.tended > 0
    }

    fn tend_interval(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    fn tend_failed(&mut self, group: GroupId) {
        // The other node takes over.
        self.topology.push_back(Topology::Remove { group });
        self.routes = [Some(NODES[1 - usize::from(group.0)]); 2];
    }

    fn open(&mut self, _group: GroupId, role: Role) -> Session {
        Session { role, asked: false }
    }

    fn converse(&mut self, session: &mut Session, out: &mut BytesMut) -> Step {
        if session.role == Role::Load || std::mem::take(&mut session.asked) {
            return Step::Done;
        }
        session.asked = true;
        out.extend_from_slice(b"t");
        Step::Sent { requests: 1 }
    }

    fn take_reply(&mut self, _session: &mut Session, frame: &[u8]) -> Result<(), Refusal> {
        assert_eq!(frame, b"r");
        self.tended += 1;
        if self.tended == 1 {
            self.routes = [Some(NODES[0]), Some(NODES[1])];
            self.topology.extend([
                Topology::Pool {
                    group: NODES[0],
                    address: address(1),
                },
                Topology::Pool {
                    group: NODES[1],
                    address: address(2),
                },
                Topology::Tend {
                    group: NODES[1],
                    address: address(2),
                },
            ]);
        }
        Ok(())
    }

    fn frame(
        &mut self,
        _session: &mut Session,
        bytes: &[u8],
    ) -> Result<Option<Frame>, ProtocolError> {
        let answer = match bytes[0] {
            b'h' | b'r' => Answer::Hit,
            b'e' => Answer::Error(ErrorKind::new(b"BUSY")),
            other => return Err(ProtocolError(format!("byte {other}"))),
        };
        Ok(Some(Frame { len: 1, answer }))
    }

    fn route(&mut self, operation: &Operation<'_>) -> Route {
        let place = usize::try_from(operation.plan.key % 2).unwrap();
        self.routes[place].map_or(Route::Nowhere, Route::To)
    }

    fn encode(&mut self, operation: &Operation<'_>, _session: &mut Session, out: &mut BytesMut) {
        out.extend_from_slice(if operation.plan.key.is_multiple_of(2) {
            b"0"
        } else {
            b"1"
        });
    }

    fn retries(&mut self, _class: OpClass, outcome: Outcome, attempt: u8) -> bool {
        matches!(outcome, Outcome::Error(_) | Outcome::ConnectionLost) && attempt < self.retries
    }
}

/// What a node does with a load request: its n-th attempt overall.
type Node = Box<dyn FnMut(u64) -> Option<u8>>;

/// Drives one worker against two nodes.
struct Bench {
    worker: Worker<Cluster>,
    nodes: [Node; 2],
    seen: u64,
    /// By moment and order.
    replies: BTreeMap<(u64, u64), (ConnId, u8)>,
    order: u64,
    addresses: BTreeMap<u32, u16>,
    delay_ns: u64,
    now: u64,
    /// Node 1 closes everything at this moment and then refuses.
    death: Option<u64>,
}

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

impl Bench {
    fn new(settings: &Settings, retries: u8, nodes: [Node; 2]) -> Self {
        let share = crate::engine::shares(settings)[0];
        let block = ValueBlock::new(&settings.values, 1);
        let worker = Worker::new(settings, Cluster::new(retries), share, block, Stamp::ZERO);
        Self {
            worker,
            nodes,
            seen: 0,
            replies: BTreeMap::new(),
            order: 0,
            addresses: BTreeMap::new(),
            delay_ns: MS,
            now: 0,
            death: None,
        }
    }

    fn run(mut self) -> (Tally, Remains) {
        let mut total = Tally::new(1);
        loop {
            self.act();
            if self.worker.is_ready() {
                let now = Stamp::from_nanos(self.now);
                self.worker.begin(now, now);
                continue;
            }
            while let Some(part) = self.worker.poll_part() {
                total.merge(&part.tally);
            }
            if self.worker.is_finished() {
                return (total, self.worker.into_remains());
            }
            let timeout = self.worker.poll_timeout().map(Stamp::as_nanos);
            let reply = self.replies.first_key_value().map(|((at, _), _)| *at);
            let next = [timeout, reply, self.death]
                .into_iter()
                .flatten()
                .min()
                .unwrap();
            self.now = self.now.max(next);
            let now = Stamp::from_nanos(self.now);
            if self.death == Some(next) {
                self.kill(now);
            } else if reply == Some(next) {
                let (_, (conn, byte)) = self.replies.pop_first().unwrap();
                self.worker.handle_bytes(now.into(), conn, &[byte]);
            } else {
                self.worker.handle_timeout(now);
            }
        }
    }

    fn kill(&mut self, now: Stamp) {
        self.death = None;
        let dead: Vec<u32> = self
            .addresses
            .iter()
            .filter(|(_, port)| **port == 2)
            .map(|(p, _)| *p)
            .collect();
        for place in dead {
            self.addresses.insert(place, 0);
            let id = self.worker.conns[usize_of(place)].id;
            self.worker
                .handle_closed(now, id, SocketEnd::Reset, "killed");
        }
    }

    fn act(&mut self) {
        let now = Stamp::from_nanos(self.now);
        while let Some(action) = self.worker.poll_action() {
            match action {
                Action::Connect {
                    conn,
                    address: node,
                } => {
                    self.addresses
                        .insert(conn.place, node.tcp().unwrap().port());
                    let port = 1000 + u16::try_from(self.order).unwrap();
                    let local = SocketAddr::from(([127, 0, 0, 1], port));
                    self.order += 1;
                    self.worker.handle_connected(now, conn, local, 0);
                }
                Action::Close { .. } => {}
                Action::Flush { conn } => {
                    let bytes = self.worker.output(conn).to_vec();
                    self.worker.written(conn, bytes.len(), now);
                    for byte in bytes {
                        self.receive(conn, byte);
                    }
                }
            }
        }
    }

    fn receive(&mut self, conn: ConnId, byte: u8) {
        let reply = match (byte, self.addresses[&conn.place]) {
            (b't', _) => Some(b'r'),
            (_, port @ (1 | 2)) => {
                self.seen += 1;
                self.nodes[usize::from(port - 1)](self.seen - 1)
            }
            _ => None,
        };
        if let Some(reply) = reply {
            self.replies
                .insert((self.now + self.delay_ns, self.order), (conn, reply));
            self.order += 1;
        }
    }
}

fn settings(load: Load, requests: u64) -> Settings {
    Settings {
        connections: NonZeroU32::new(2).unwrap(),
        load,
        stop: Stop {
            duration: None,
            requests: Some(requests),
        },
        keys: KeySettings {
            count: NonZeroU64::new(1000).unwrap(),
            pattern: KeyPattern::Sequential,
            ..KeySettings::default()
        },
        timeout: Duration::from_millis(300),
        record_rows: true,
        ..Settings::new(Target::Redis(RedisTarget::new(
            address(1).tcp().unwrap(),
            0,
            1,
        )))
    }
}

fn every_10_ms() -> Load {
    Load::Open {
        rate: Rate::per_second(100).unwrap(),
        arrivals: Arrivals::Uniform,
    }
}

fn load_rows(remains: &Remains) -> Vec<ClientRow> {
    let mut rows = remains.rows.clone();
    rows.retain(|row| row.kind == RowKind::Load);
    rows.sort_by_key(|row| (row.intended, row.attempt));
    rows
}

fn healthy() -> Node {
    Box::new(|_| Some(b'h'))
}

#[test]
fn a_silent_node_does_not_hold_up_the_other() {
    let settings = settings(every_10_ms(), 100);
    let bench = Bench::new(&settings, 0, [healthy(), Box::new(|_| None)]);
    let (tally, remains) = bench.run();
    let outcomes = tally.outcomes();
    // Even keys go to the healthy node, each answered after exactly one millisecond.
    assert_eq!(outcomes.hits, 50);
    assert_eq!(outcomes.total(), remains.due);
    assert_eq!(outcomes.timeouts + outcomes.not_sent + outcomes.lost, 50);
    assert!(outcomes.timeouts > 0);
    assert_eq!(
        (tally.response().min_ns(), tally.response().max_ns()),
        (MS, MS)
    );
}

#[test]
fn a_step_adds_connections_to_each_node() {
    let mut settings = settings(Load::Closed, 1);
    settings.connections = NonZeroU32::new(3).unwrap();
    settings.staircase = Some(Staircase {
        start: NonZeroU32::MIN,
        step: NonZeroU32::MIN,
        length: Duration::from_millis(100),
    });
    settings.stop = Stop {
        duration: Some(Duration::from_millis(300)),
        requests: None,
    };
    let (tally, remains) = Bench::new(&settings, 0, [healthy(), healthy()]).run();
    // As many requests are in play as a node has connections: 1, 2 and 3, each for a millisecond.
    let mut sent = [0_u64; 3];
    let mut first = BTreeMap::new();
    for row in load_rows(&remains) {
        let since = row.sent.saturating_since(remains.started);
        sent[usize::try_from(since / (100 * MS)).unwrap()] += 1;
        first.entry(row.local).or_insert(since);
    }
    assert_eq!(sent, [100, 200, 300]);
    assert_eq!(tally.outcomes().hits, 600);
    // Each node got its second connection at 100 ms and its third at 200 ms.
    let mut first: Vec<u64> = first
        .into_values()
        .map(|since| since / (100 * MS))
        .collect();
    first.sort_unstable();
    assert_eq!(first, [0, 0, 1, 1, 2, 2]);
    assert_eq!(
        (remains.connections_wanted, remains.connections_at_start),
        (3, 6)
    );
}

#[test]
fn retries_have_counts_of_their_own_and_one_outcome() {
    // Every third attempt seen by the cluster fails.
    let flaky = || -> Node { Box::new(|n| Some(if n % 3 == 0 { b'e' } else { b'h' })) };
    let bench = Bench::new(&settings(Load::Closed, 100), 1, [flaky(), flaky()]);
    let (tally, remains) = bench.run();
    let rows = load_rows(&remains);
    let first_failed = rows
        .iter()
        .filter(|row| row.attempt == 0 && row.retried)
        .count();
    let errors = rows
        .iter()
        .filter(|row| !row.retried && row.outcome != Outcome::Hit)
        .count();
    assert!(first_failed > 20, "{first_failed}");
    assert_eq!(tally.classes[0].retries, first_failed as u64);
    assert_eq!(tally.outcomes().total(), 100);
    assert_eq!(tally.outcomes().errors, errors as u64);
    assert_eq!(rows.len(), 100 + first_failed);
    assert!(
        rows.iter()
            .all(|row| row.attempt <= 1 && (row.attempt == 0 || !row.retried))
    );
}

#[test]
fn a_retry_keeps_the_intended_moment() {
    let mut failed = false;
    let once = move |_| {
        Some(if std::mem::replace(&mut failed, true) {
            b'h'
        } else {
            b'e'
        })
    };
    let bench = Bench::new(&settings(every_10_ms(), 10), 1, [Box::new(once), healthy()]);
    let (tally, remains) = bench.run();
    let rows = load_rows(&remains);
    assert_eq!(rows[0].outcome, Outcome::Error(ErrorKind::new(b"BUSY")));
    assert_eq!(
        (rows[1].intended, rows[1].outcome),
        (rows[0].intended, Outcome::Hit)
    );
    assert_eq!(tally.response().max_ns(), 2 * MS);
    assert_eq!(tally.service().max_ns(), MS);
    // The second attempt was sent 1 ms after that moment, and at once when it could be.
    assert_eq!(tally.lag.max_ns(), MS);
    assert_eq!(tally.lateness.max_ns(), 0);
}

#[test]
fn tends_come_once_a_second_on_each_node_and_count_in_sequence() {
    let bench = Bench::new(&settings(every_10_ms(), 350), 0, [healthy(), healthy()]);
    let (tally, remains) = bench.run();
    let tends: Vec<&ClientRow> = remains
        .rows
        .iter()
        .filter(|row| row.kind == RowKind::Tend)
        .collect();
    // At the start, then a second after the end of the tend before, which takes 1 ms.
    let of_one: Vec<(u64, u64)> = tends
        .iter()
        .filter(|row| row.local == tends[0].local)
        .map(|row| (row.sequence, row.sent.as_nanos()))
        .collect();
    let again = SECOND + MS;
    assert_eq!(of_one, [(0, 0), (1, again), (2, 2 * again), (3, 3 * again)]);
    assert_eq!(tally.control, tends.len() as u64);
    assert_eq!(tally.outcomes().hits, 350);
}

#[test]
fn operations_of_a_lost_node_go_to_the_one_that_takes_over() {
    let mut bench = Bench::new(&settings(every_10_ms(), 100), 2, [healthy(), healthy()]);
    // In the middle of request 51, which goes to node 1: set-up takes 1 ms, arrival i comes
    // i x 10 ms later and is answered after 1 ms.
    bench.death = Some(511 * MS + MS / 2);
    let (tally, remains) = bench.run();
    assert_eq!(tally.outcomes().hits, 100);
    assert_eq!(remains.due, 100);
    assert!(remains.loss.is_none());
    let rows = load_rows(&remains);
    let lost: Vec<&ClientRow> = rows
        .iter()
        .filter(|row| row.outcome == Outcome::ConnectionLost)
        .collect();
    assert_eq!(lost.len(), 1);
    assert!(lost[0].retried && lost[0].intended == Stamp::from_nanos(511 * MS));
}

#[test]
fn operations_without_a_route_end_as_not_sent() {
    let settings = settings(every_10_ms(), 100);
    let mut bench = Bench::new(&settings, 0, [healthy(), healthy()]);
    while !bench.worker.is_ready() {
        bench.act();
        if let Some(((at, _), (conn, byte))) = bench.replies.pop_first() {
            bench.now = at;
            bench
                .worker
                .handle_bytes(Stamp::from_nanos(at).into(), conn, &[byte]);
        }
    }
    bench.worker.driver.routes[1] = None;
    let (tally, remains) = bench.run();
    let outcomes = tally.outcomes();
    assert_eq!(
        (outcomes.hits, outcomes.not_sent, remains.due),
        (50, 50, 100)
    );
}
