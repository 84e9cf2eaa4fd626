//! A Redis cluster under virtual time: redirections are followed, counted, and part of the latency.
//!
//! The nodes are scripted: each serves the slots it owns by the truth, says `MOVED` or `ASK` for the
//! others, and tells a map that may be out of date. The network takes the same time in both
//! directions, the nodes none. Which key is in which slot was asked of redis-server 7.0.15.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use kvlab_bench_client::record::{ErrorKind, Notice, Outcome, RowKind, SocketEnd};
use kvlab_bench_client::settings::{Arrivals, KeyPattern, KeySettings, Load, RedisTarget, Stop};
use kvlab_bench_client::settings::{MixOrder, Target, WhenDown};
use kvlab_bench_client::virtual_shell::{ClientAction, ClientConnId, VirtualClient};
use kvlab_bench_client::{RunError, RunResult, Settings};
use kvlab_timing::{Rate, Stamp};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const START: u64 = 1_000 * SECOND;
/// There and back.
const TRIP: u64 = 2 * MILLI;

/// `CLUSTER KEYSLOT k-0` … `k-7`.
const SLOTS: [u16; 8] = [11_635, 15_698, 3_377, 7_440, 11_767, 15_830, 3_509, 7_572];
/// How many of them are in the upper half.
const UPPER: u64 = 4;

/// What a node says to a request for a key in this slot; it is told whether `ASKING` came before.
type Serve = Box<dyn FnMut(&Moment, u16) -> String>;

/// First slot, last slot and port of the primary of each range.
type Map = Vec<(u16, u16, u16)>;

/// A request for a key, seen from a node.
struct Moment {
    /// Since the start.
    at: u64,
    port: u16,
    asking: bool,
}

struct World {
    serve: Serve,
    /// As told at a moment since the start.
    map: Box<dyn Fn(u64) -> Map>,
    /// Nodes that die, and when.
    deaths: BTreeMap<u64, u16>,
    dead: HashSet<u16>,
    now: u64,
    order: u64,
    events: BTreeMap<(u64, u64), Event>,
    links: HashMap<ClientConnId, Link>,
    /// Questions for the map.
    asked: u64,
}

struct Link {
    port: u16,
    asking: bool,
}

enum Event {
    Connected(ClientConnId, u16),
    AtNode(ClientConnId, Bytes),
    AtClient(ClientConnId, String),
}

impl World {
    fn new(serve: impl FnMut(&Moment, u16) -> String + 'static) -> Self {
        Self {
            serve: Box::new(serve),
            map: Box::new(|_| vec![(0, 8_191, 1), (8_192, 16_383, 2)]),
            deaths: BTreeMap::new(),
            dead: HashSet::new(),
            now: START,
            order: 0,
            events: BTreeMap::new(),
            links: HashMap::new(),
            asked: 0,
        }
    }

    fn run(&mut self, settings: &Settings) -> Result<RunResult, RunError> {
        let mut client = VirtualClient::new(settings, Stamp::from_nanos(START))?;
        self.act(&mut client);
        while !client.is_finished() {
            let timeout = client.poll_timeout().map(Stamp::as_nanos);
            let event = self.events.keys().next().map(|(at, _)| *at);
            let death = self.deaths.keys().next().map(|at| START + at);
            let next = [timeout, event, death].into_iter().flatten().min().unwrap();
            self.now = self.now.max(next);
            assert!(self.now < START + 1_000 * SECOND, "the run has no end");
            let now = Stamp::from_nanos(self.now);
            if death == Some(next) {
                let (_, port) = self.deaths.pop_first().unwrap();
                self.dead.insert(port);
                let links = self.links.iter().filter(|(_, link)| link.port == port);
                let mut lost: Vec<ClientConnId> = links.map(|(conn, _)| *conn).collect();
                lost.sort_unstable();
                for conn in lost {
                    self.links.remove(&conn);
                    client.handle_closed(now, conn, SocketEnd::Reset);
                    self.act(&mut client);
                }
            } else if event == Some(next) {
                let (_, event) = self.events.pop_first().unwrap();
                self.happen(&mut client, event);
            } else {
                client.handle_timeout(now);
            }
            self.act(&mut client);
        }
        client.finish(Stamp::from_nanos(self.now))
    }

    fn happen(&mut self, client: &mut VirtualClient, event: Event) {
        let now = Stamp::from_nanos(self.now);
        match event {
            Event::Connected(conn, port) if self.dead.contains(&port) => {
                client.handle_closed(now, conn, SocketEnd::Refused);
            }
            Event::Connected(conn, port) => {
                let asking = false;
                self.links.insert(conn, Link { port, asking });
                let local = u16::try_from(10_000 + self.order % 50_000).unwrap();
                client.handle_connected(now, conn, SocketAddr::from(([127, 0, 0, 1], local)), 0);
            }
            Event::AtNode(conn, bytes) if self.links.contains_key(&conn) => {
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                let mut words = text.split("\r\n").filter(|word| !word.is_empty());
                // One request after the other: "*2", "$3", "GET", "$3", "k-1".
                while let Some(count) = words.next() {
                    let count: usize = count.strip_prefix('*').unwrap().parse().unwrap();
                    let arguments: Vec<&str> = words.by_ref().take(2 * count).collect();
                    let arguments: Vec<&str> = arguments.into_iter().skip(1).step_by(2).collect();
                    let reply = self.reply(conn, &arguments);
                    self.at(TRIP / 2, Event::AtClient(conn, reply));
                }
            }
            Event::AtClient(conn, reply) if self.links.contains_key(&conn) => {
                client.handle_bytes(now, conn, reply.as_bytes());
            }
            _ => {}
        }
    }

    fn reply(&mut self, conn: ClientConnId, arguments: &[&str]) -> String {
        let since = self.now - START;
        let link = self.links.get_mut(&conn).unwrap();
        match arguments {
            ["CLUSTER", "SLOTS"] => {
                self.asked += 1;
                let map = (self.map)(since);
                let ranges = map.iter().map(|(first, last, port)| {
                    format!("*3\r\n:{first}\r\n:{last}\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
                });
                format!("*{}\r\n{}", map.len(), ranges.collect::<String>())
            }
            ["ASKING"] => {
                link.asking = true;
                "+OK\r\n".to_owned()
            }
            [_, key, ..] => {
                let number: usize = key.strip_prefix("k-").unwrap().parse().unwrap();
                let moment = Moment {
                    at: since,
                    port: link.port,
                    asking: std::mem::take(&mut link.asking),
                };
                (self.serve)(&moment, SLOTS[number])
            }
            _ => panic!("{arguments:?}"),
        }
    }

    fn act(&mut self, client: &mut VirtualClient) {
        while let Some(action) = client.poll_action() {
            match action {
                ClientAction::Connect { conn, address } => {
                    self.at(0, Event::Connected(conn, address.tcp().unwrap().port()));
                }
                ClientAction::Send { conn, bytes } => self.at(TRIP / 2, Event::AtNode(conn, bytes)),
                ClientAction::Close { conn } => {
                    self.links.remove(&conn);
                }
            }
        }
    }

    fn at(&mut self, wait: u64, event: Event) {
        self.events.insert((self.now + wait, self.order), event);
        self.order += 1;
    }
}

/// Keys `k-0` to `k-7` in turn, from one connection to each node.
fn settings(load: Load, requests: Option<u64>, duration: Option<Duration>) -> Settings {
    let mut target = RedisTarget::new("127.0.0.1:1".parse::<SocketAddr>().unwrap(), 0, 1);
    target.cluster = true;
    Settings {
        load,
        stop: Stop { duration, requests },
        keys: KeySettings {
            prefix: "k-".to_owned(),
            width: 0,
            first: 0,
            count: NonZeroU64::new(8).unwrap(),
            pattern: KeyPattern::Sequential,
        },
        mix: MixOrder::Cycle,
        timeout: Duration::from_secs(2),
        record_rows: true,
        ..Settings::new(Target::Redis(target))
    }
}

fn open(rate: u64) -> Load {
    Load::Open {
        rate: Rate::per_second(rate).unwrap(),
        arrivals: Arrivals::Uniform,
    }
}

/// The port of the slot's owner, and the reply to a request that reached it.
fn owner(slot: u16) -> u16 {
    1 + u16::from(slot > 8_191)
}

fn moved(slot: u16, port: u16) -> String {
    format!("-MOVED {slot} 127.0.0.1:{port}\r\n")
}

const VALUE: &str = "$2\r\nhi\r\n";

/// Every request ended in one way, and what was answered was recorded once.
fn assert_accounted(result: &RunResult) {
    let (summary, outcomes) = (&result.summary, result.summary.tally.outcomes());
    assert_eq!(summary.due, outcomes.total(), "{outcomes:?}");
    let recorded = summary.tally.service().count();
    assert_eq!(recorded, outcomes.hits + outcomes.misses);
    let ends = result
        .rows
        .iter()
        .filter(|row| row.kind == RowKind::Load && !row.retried);
    assert_eq!(ends.count() as u64 + outcomes.not_sent, summary.due);
}

#[test]
fn a_moved_request_is_sent_on_and_its_latency_counts_from_the_first_send() {
    let mut world = World::new(|moment, slot| {
        if moment.port == owner(slot) {
            VALUE.to_owned()
        } else {
            moved(slot, owner(slot))
        }
    });
    // All the slots are said to be node 1's; for 20 ms nobody asks again.
    world.map = Box::new(|_| vec![(0, 16_383, 1)]);
    let result = world.run(&settings(Load::Closed, Some(8), None)).unwrap();
    assert_accounted(&result);
    let tally = &result.summary.tally.classes[0];
    assert_eq!(tally.outcomes.hits, 8);
    assert_eq!((tally.moved, tally.asked, tally.retries), (UPPER, 0, 0));
    let mut latencies = BTreeMap::new();
    for row in result.rows.iter().filter(|row| row.kind == RowKind::Load) {
        let latency = row.received.unwrap().saturating_since(row.intended);
        match row.outcome {
            Outcome::Hit => *latencies.entry(latency).or_insert(0) += 1,
            Outcome::Error(kind) => {
                assert_eq!((kind, row.retried), (ErrorKind::new(b"MOVED"), true));
            }
            other => panic!("{other:?}"),
        }
    }
    // Four were sent at once; four had a whole trip in vain first, and what they waited for the
    // connection to the second node, which is one at a time.
    assert_eq!(latencies.get(&TRIP), Some(&4), "{latencies:?}");
    assert!(latencies.keys().all(|latency| latency % TRIP == 0));
    assert!(
        latencies
            .keys()
            .filter(|latency| **latency >= 2 * TRIP)
            .count()
            >= 1
    );
    assert_eq!(tally.service.min_ns(), TRIP);
    assert_eq!(tally.service.max_ns(), *latencies.keys().max().unwrap());
}

#[test]
fn in_an_open_loop_it_counts_from_the_intended_moment_and_from_the_first_send() {
    let mut world = World::new(|moment, slot| {
        if moment.port == owner(slot) {
            VALUE.to_owned()
        } else {
            moved(slot, owner(slot))
        }
    });
    world.map = Box::new(|_| vec![(0, 16_383, 1)]);
    // One every 100 ms: the second node's connection is up and idle, and by then the map is asked
    // for again, in vain.
    let result = world.run(&settings(open(10), Some(8), None)).unwrap();
    assert_accounted(&result);
    let tally = &result.summary.tally.classes[0];
    assert_eq!((tally.outcomes.hits, tally.moved), (8, UPPER));
    for latency in [&tally.response, &tally.service] {
        assert_eq!((latency.min_ns(), latency.max_ns()), (TRIP, 2 * TRIP));
        assert_eq!(latency.sum_ns(), u128::from(4 * TRIP + 4 * 2 * TRIP));
    }
    assert!(world.asked > 2, "{}", world.asked);
}

#[test]
fn nodes_that_send_a_request_round_are_given_up_after_sixteen_redirections() {
    let mut world = World::new(|moment, slot| moved(slot, 3 - moment.port));
    let result = world.run(&settings(Load::Closed, Some(3), None)).unwrap();
    assert_accounted(&result);
    let tally = &result.summary.tally.classes[0];
    assert_eq!((tally.outcomes.hits, tally.outcomes.errors), (0, 3));
    assert_eq!(tally.errors[&ErrorKind::new(b"MOVED")], 3);
    assert_eq!(tally.moved, 3 * 16);
    // The wait for an error is not a latency, but it is recorded from the first send, too.
    assert!(tally.failed.min_ns() >= 17 * TRIP);
}

#[test]
fn an_ask_is_for_one_request_and_the_slot_stays_where_it_was() {
    // The slot of k-2 is on its way from node 1 to node 3, which serves it only behind an ASKING.
    let travelling = SLOTS[2];
    let mut world = World::new(move |moment, slot| match moment.port {
        1 if slot == travelling => format!("-ASK {slot} 127.0.0.1:3\r\n"),
        3 if slot == travelling && !moment.asking => moved(slot, 1),
        3 => VALUE.to_owned(),
        port if port == owner(slot) => VALUE.to_owned(),
        _ => panic!("slot {slot} at {}", moment.port),
    });
    // Six seconds: node 3 must not be taken for one that is gone.
    let result = world.run(&settings(open(10), Some(64), None)).unwrap();
    assert_accounted(&result);
    let tally = &result.summary.tally.classes[0];
    assert_eq!((tally.outcomes.hits, tally.moved, tally.asked), (64, 0, 8));
    assert_eq!(tally.service.max_ns(), 2 * TRIP);
    assert_eq!(result.summary.tally.connects.lost, 0);
}

#[test]
fn a_lost_node_is_waited_for_until_another_takes_over() {
    let mut world = World::new(|moment, slot| {
        let home = match owner(slot) {
            2 if moment.at > 700 * MILLI => 3,
            owner => owner,
        };
        if moment.port == home {
            VALUE.to_owned()
        } else {
            moved(slot, home)
        }
    });
    world.map = Box::new(|at| {
        let upper = if at > 700 * MILLI { 3 } else { 2 };
        vec![(0, 8_191, 1), (8_192, 16_383, upper)]
    });
    world.deaths = BTreeMap::from([(200 * MILLI, 2)]);
    let settings = settings(open(100), Some(200), None);
    assert_eq!(settings.connects.when_down, WhenDown::Wait);
    let result = world.run(&settings).unwrap();
    assert_accounted(&result);
    let outcomes = result.summary.tally.outcomes();
    // What was on its way when the node died is lost; all else was answered, late.
    assert!(outcomes.lost <= 1, "{outcomes:?}");
    assert_eq!(outcomes.hits + outcomes.lost, 200, "{outcomes:?}");
    assert!(!result.summary.notices.iter().any(is_loss));
    let longest = result.summary.tally.response().max_ns();
    assert!(longest >= 500 * MILLI, "{longest}");
}

fn is_loss(notice: &Notice) -> bool {
    matches!(notice, Notice::ServerLost(_))
}

#[test]
fn a_part_of_the_keys_that_nobody_serves_any_more_ends_the_run() {
    for load in [Load::Closed, open(100)] {
        let mut world = World::new(|moment, slot| {
            assert_eq!(moment.port, owner(slot));
            VALUE.to_owned()
        });
        world.deaths = BTreeMap::from([(200 * MILLI, 2)]);
        let result = world.run(&settings(load, Some(1_000_000), None)).unwrap();
        assert_accounted(&result);
        let loss = result
            .summary
            .notices
            .iter()
            .find_map(|notice| match notice {
                Notice::ServerLost(loss) => Some(loss),
                _ => None,
            });
        let loss = loss.unwrap_or_else(|| panic!("{:?}", result.summary.notices));
        assert_eq!(loss.address.tcp().unwrap().port(), 2);
        // Some seconds of attempts, and then the time-out of a request.
        assert!(world.now - START < 20 * SECOND, "{}", world.now - START);
        assert!(result.summary.tally.outcomes().hits >= 10);
    }
}

/// Requests are drawn ahead so that no node is idle for want of a key; those that were not sent when
/// the time was over were never due.
#[test]
fn a_closed_loop_ends_with_its_time_and_leaves_nothing_unsent() {
    let mut world = World::new(|moment, slot| {
        assert_eq!(moment.port, owner(slot));
        VALUE.to_owned()
    });
    let second = Some(Duration::from_secs(1));
    let result = world.run(&settings(Load::Closed, None, second)).unwrap();
    assert_accounted(&result);
    let outcomes = result.summary.tally.outcomes();
    // Both connections send one request after the other for the whole second.
    assert_eq!(outcomes.hits, 2 * SECOND / TRIP);
    assert_eq!(outcomes.total(), outcomes.hits);
}

#[test]
fn the_rate_of_each_node_is_that_of_the_run_times_the_nodes() {
    let mut world = World::new(|moment, slot| {
        assert_eq!(moment.port, owner(slot));
        VALUE.to_owned()
    });
    let mut settings = settings(open(50), None, Some(Duration::from_secs(2)));
    settings.rate_of_each_node = true;
    let result = world.run(&settings).unwrap();
    assert_accounted(&result);
    assert_eq!(result.summary.due, 2 * 2 * 50);
    assert_eq!(result.summary.connections_wanted, 2);
}

#[test]
fn a_server_without_a_cluster_ends_the_set_up_with_its_words() {
    let mut world = World::new(|_, _| panic!("no request is due"));
    world.map = Box::new(|_| Vec::new());
    let error = world
        .run(&settings(Load::Closed, Some(1), None))
        .unwrap_err();
    let RunError::HandshakeRefused { text, .. } = error else {
        panic!("{error}");
    };
    assert!(text.contains("0 of 16384 slots"), "{text}");
    assert!(world.now - START < SECOND);
}
