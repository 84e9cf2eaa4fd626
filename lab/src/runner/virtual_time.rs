//! Server and client in one thread under a clock that jumps.
//!
//! Bytes travel through in-memory pipes; every message (connect, data, close) takes the same time
//! from one side to the other. Everything pending stands in one heap. Events at the same moment run
//! in the order (connection, sequence), where connections are numbered as they are made; then the
//! server's timers of that moment run, then the client's. Nothing depends on the machine, its number
//! of cores or the date, so a run is the same bit for bit wherever it runs.
//!
//! A client is connected a leg after the server accepted its connection, which in the backlog form of a
//! limit may be later than its arrival, or never.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use kvlab_bench_client::engine::{Observer, Silent};
use kvlab_bench_client::record::SocketEnd;
use kvlab_bench_client::settings::Target;
use kvlab_bench_client::virtual_shell::{ClientAction, ClientConnId, VirtualClient};
use kvlab_bench_client::{Control, RunResult, Settings};
use kvlab_mock_server::dialect::Listener;
use kvlab_mock_server::event::ConnId;
use kvlab_mock_server::exchange::Protocol;
use kvlab_mock_server::virtual_shell::VirtualServer;
use kvlab_mock_server::{ServerConfig, Truth};
use kvlab_timing::{Stamp, VirtualClock};

use super::client::{Client, Own};
use super::{Evidence, PartError, Pools, ServerFacts, Tier, aim, connections_by_thread};
use crate::truth::accept::AcceptRule;
use crate::truth::join::{Network, join};
use crate::truth::lives::Lives;

/// Runs one client against a server of its own under virtual time.
///
/// # Errors
/// When the client has no result, or waits for something that never comes.
pub fn run(config: ServerConfig, settings: Settings, leg_ns: u64) -> Result<Evidence, PartError> {
    run_by(&Own, config, settings, leg_ns, &Control::new())
}

/// The same with another client, until its end or until `control` stops it. A run that is stopped
/// has no evidence: what it would hold depends on the moment of the stop.
///
/// # Errors
/// As [`run`], and when it is stopped.
pub fn run_by(
    client: &dyn Client,
    config: ServerConfig,
    settings: Settings,
    leg_ns: u64,
    control: &Control,
) -> Result<Evidence, PartError> {
    run_watched(client, config, settings, leg_ns, control, Box::new(Silent))
}

/// The same, with somebody who watches the intervals.
///
/// # Errors
/// As [`run_by`].
pub fn run_watched(
    client: &dyn Client,
    config: ServerConfig,
    mut settings: Settings,
    leg_ns: u64,
    control: &Control,
    observer: Box<dyn Observer>,
) -> Result<Evidence, PartError> {
    // Without any delay a closed loop would never leave its first moment.
    let leg_ns = leg_ns.max(1);
    if config.speaks_tls() {
        return Err(PartError::NoTls);
    }
    let facts = ServerFacts::new(&config, START);
    let server = VirtualServer::new(config, START);
    let (listener, protocol) = match settings.target {
        Target::Redis(_) => (Listener::Redis, Protocol::Redis),
        Target::Aerospike(_) => (Listener::Aerospike, Protocol::Aerospike),
    };
    let address = server.address(listener).ok_or(PartError::NoPort)?;
    aim(&mut settings, address);
    let world = World::new(
        server,
        VirtualClient::with_observer(&settings, START, observer)?,
        listener,
        leg_ns,
    );
    let (result, truth) = world.run(control)?;
    let result = client.hand_over(result);
    let pools = Pools::from_rows(&result.rows, &connections_by_thread(&result.summary));
    let mut joined = join(result.rows, truth.rows, Network::Exact);
    facts.cuts().excuse(&mut joined, leg_ns);
    let rule = AcceptRule::new(&facts.connections, protocol, START.as_nanos());
    let lives = Lives::new(&rule, result.connects, &joined, leg_ns);
    lives.excuse(&mut joined);
    lives.note_holds(&mut joined);
    Ok(Evidence {
        tier: Tier::Virtual { leg_ns },
        pools,
        machine: None,
        joined,
        counts: truth.stats.counts,
        lives: Some(lives),
        summary: result.summary,
        settings,
        server: facts,
    })
}

/// Where the virtual clock begins: late enough that no subtraction meets its end.
pub const START: Stamp = Stamp::from_nanos(1_000_000_000);

struct World {
    clock: VirtualClock,
    server: VirtualServer,
    client: VirtualClient,
    listener: Listener,
    leg_ns: u64,
    pipes: Vec<Pipe>,
    by_client: BTreeMap<ClientConnId, usize>,
    by_server: BTreeMap<ConnId, usize>,
    pending: BinaryHeap<Reverse<Pending>>,
    sequence: u64,
    ordinals: HashMap<SocketAddr, u32>,
}

/// One connection.
struct Pipe {
    client: ClientConnId,
    server: Option<ConnId>,
    local: SocketAddr,
    ordinal: u32,
}

/// An event with its place in the order; nothing but the place is compared.
struct Pending {
    place: (Stamp, usize, u64),
    event: Event,
}

enum Event {
    /// The server learns of a connection.
    Accept,
    /// The client learns that it is connected.
    Connected,
    /// Bytes reach the server.
    ToServer(Bytes),
    /// Bytes reach the client.
    ToClient(Bytes),
    /// The server learns that the client closed.
    ClosedByClient,
    /// The client learns that the server ended the connection, and how.
    ClosedByServer(SocketEnd),
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.place.cmp(&other.place)
    }
}

impl World {
    fn new(server: VirtualServer, client: VirtualClient, listener: Listener, leg_ns: u64) -> Self {
        Self {
            clock: VirtualClock::new(START),
            server,
            client,
            listener,
            leg_ns,
            pipes: Vec::new(),
            by_client: BTreeMap::new(),
            by_server: BTreeMap::new(),
            pending: BinaryHeap::new(),
            sequence: 0,
            ordinals: HashMap::new(),
        }
    }

    fn run(mut self, control: &Control) -> Result<(RunResult, Truth), PartError> {
        self.take_actions();
        let mut turns = Turns::default();
        while !self.client.is_finished() {
            turns.next(self.clock.now(), control)?;
            let timer = self.client.poll_timeout();
            let Some(next) = [self.next_of_server(), timer].into_iter().flatten().min() else {
                return Err(PartError::Stuck {
                    at: self.clock.now(),
                });
            };
            self.step(next);
            if self
                .client
                .poll_timeout()
                .is_some_and(|moment| moment <= next)
            {
                self.client.handle_timeout(next);
                self.take_actions();
            }
        }
        let end = self.clock.now();
        // What is still on its way reaches the server, and what it still owes comes due.
        while let Some(next) = self.next_of_server() {
            turns.next(self.clock.now(), control)?;
            self.step(next);
        }
        let result = self.client.finish(end)?;
        Ok((result, self.server.finish(self.clock.now())))
    }

    /// The next moment at which anything but the client's timers happens.
    fn next_of_server(&self) -> Option<Stamp> {
        let event = self.pending.peek().map(|Reverse(pending)| pending.place.0);
        [event, self.server.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Moves the clock to `now` and runs the events and the server's timers of that moment.
    fn step(&mut self, now: Stamp) {
        // A timer may lie in the past when it was set by the event just handled; it runs at once.
        let now = now.max(self.clock.now());
        // Never back: `now` is the later of the two.
        let _ = self.clock.advance_to(now);
        while let Some(Reverse(next)) = self.pending.peek()
            && next.place.0 <= now
        {
            if let Some(Reverse(pending)) = self.pending.pop() {
                self.handle(now, pending.place.1, pending.event);
            }
        }
        if self
            .server
            .poll_timeout()
            .is_some_and(|moment| moment <= now)
        {
            self.server.handle_timeout(now);
            self.take_outputs();
        }
    }

    fn handle(&mut self, now: Stamp, connection: usize, event: Event) {
        let Some(pipe) = self.pipes.get_mut(connection) else {
            return;
        };
        let (client, server) = (pipe.client, pipe.server);
        match (event, server) {
            (Event::Accept, _) => {
                let id = self.server.accept(now, self.listener, pipe.local);
                pipe.server = Some(id);
                self.by_server.insert(id, connection);
                self.take_outputs();
            }
            (Event::ToServer(bytes), Some(server)) => {
                self.server.handle_bytes(now, server, &bytes);
                self.take_outputs();
            }
            (Event::ClosedByClient, Some(server)) => {
                self.server.handle_eof(now, server);
                self.take_outputs();
            }
            (Event::ToServer(_) | Event::ClosedByClient, None) => {}
            (Event::Connected, _) => {
                let (local, ordinal) = (pipe.local, pipe.ordinal);
                self.client.handle_connected(now, client, local, ordinal);
                self.take_actions();
            }
            (Event::ToClient(bytes), _) => {
                self.client.handle_bytes(now, client, &bytes);
                self.take_actions();
            }
            (Event::ClosedByServer(end), _) => {
                self.client.handle_closed(now, client, end);
                self.take_actions();
            }
        }
    }

    fn take_actions(&mut self) {
        while let Some(action) = self.client.poll_action() {
            match action {
                ClientAction::Connect { conn, .. } => self.connect(conn),
                ClientAction::Send { conn, bytes } => {
                    if let Some(connection) = self.by_client.get(&conn) {
                        self.after_a_leg(*connection, Event::ToServer(bytes));
                    }
                }
                ClientAction::Close { conn } => {
                    if let Some(connection) = self.by_client.get(&conn) {
                        self.after_a_leg(*connection, Event::ClosedByClient);
                    }
                }
            }
        }
    }

    fn connect(&mut self, client: ClientConnId) {
        let number = self.pipes.len();
        // Addresses come round again after 20 000 connections, as ephemeral ports do.
        let port = FIRST_PORT + u16::try_from(number % PORTS).unwrap_or(0);
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let count = self.ordinals.entry(local).or_default();
        self.pipes.push(Pipe {
            client,
            server: None,
            local,
            ordinal: *count,
        });
        *count += 1;
        self.by_client.insert(client, number);
        self.after_a_leg(number, Event::Accept);
    }

    fn take_outputs(&mut self) {
        while let Some(output) = self.server.poll_output() {
            let Some(connection) = self.by_server.get(&output.connection).copied() else {
                continue;
            };
            if output.accepted {
                self.after_a_leg(connection, Event::Connected);
            }
            if !output.bytes.is_empty() {
                self.after_a_leg(connection, Event::ToClient(output.bytes));
            }
            if output.close {
                let end = if output.reset {
                    SocketEnd::Reset
                } else {
                    SocketEnd::Closed
                };
                self.after_a_leg(connection, Event::ClosedByServer(end));
            }
        }
    }

    fn after_a_leg(&mut self, connection: usize, event: Event) {
        let moment = self.clock.now().add_nanos(self.leg_ns);
        self.pending.push(Reverse(Pending {
            place: (moment, connection, self.sequence),
            event,
        }));
        self.sequence += 1;
    }
}

/// Watches that the clock goes on, and now and then whether the run is to stop.
#[derive(Debug, Default)]
struct Turns {
    at: Stamp,
    here: u64,
    all: u64,
}

impl Turns {
    /// One more turn of the loop, at `now`.
    fn next(&mut self, now: Stamp, control: &Control) -> Result<(), PartError> {
        if now > self.at {
            (self.at, self.here) = (now, 0);
        }
        self.here += 1;
        self.all += 1;
        if self.here > MOST_TURNS {
            return Err(PartError::Stuck { at: now });
        }
        if self.all % TURNS_BETWEEN_LOOKS == 1 && control.is_stopped() {
            return Err(PartError::Stopped);
        }
        Ok(())
    }
}

/// Turns without a step of the clock after which both sides are taken to run in circles.
const MOST_TURNS: u64 = 1_000_000;
/// A look at the control costs little and a turn less.
const TURNS_BETWEEN_LOOKS: u64 = 1_024;

const FIRST_PORT: u16 = 40_000;
const PORTS: usize = 20_000;
