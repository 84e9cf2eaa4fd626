//! The virtual shell: the same sessions without sockets, threads or a clock.
//!
//! Whoever drives it carries bytes and time. Every call names the moment it happens at; what a call
//! makes due at that moment is put into the outbox at once, so replies are written exactly when they
//! are due. Timeouts that fall on one moment run in (time, connection) order, and mail between
//! connections is delivered in its global order before the call returns. With more than one worker
//! the sessions are spread as in the real shell, though all run on the caller's thread.
//!
//! The gatekeeper is asked as in the real shell. What is held keeps its bytes here until its moment. In
//! the backlog form a connection that finds no room waits here without being connected, in order of
//! arrival, until there is room or its client gives up: there is no kernel that would connect one or
//! two more, and nobody tries again after 1, 3, 7 s.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use kvlab_timing::Stamp;
use kvlab_timing::wall::WallClock;

use crate::clients::Arrival;
use crate::config::ServerConfig;
use crate::dialect::{Dialect, Listener};
use crate::event::{ConnId, Mail, PostOffice, Recipient};
use crate::exchange::Protocol;
use crate::limit::gatekeeper::Room;
use crate::limit::{Admission, Gatekeeper, Turned, Verdict};
use crate::session::Session;
use crate::shared::{Addresses, Shared};
use crate::truth::{RunId, Truth};
use crate::worker::Worker;

/// A server under virtual time. See the module documentation.
#[derive(Debug)]
pub struct VirtualServer {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    places: BTreeMap<ConnId, Place>,
    timers: BTreeSet<(Stamp, ConnId)>,
    outbox: VecDeque<ServerOutput>,
    next_worker: usize,
    /// Who is in the backlog, by side.
    backlog: [VecDeque<Waiting>; 2],
    /// When the backlog is looked at next, if it is by itself.
    let_in_at: Option<Stamp>,
}

/// A connection in the backlog.
#[derive(Debug)]
struct Waiting {
    arrival: Arrival,
    listener: Listener,
}

/// What arrived on a connection that is not read yet.
#[derive(Debug)]
enum Arrived {
    Bytes(Vec<u8>),
    End,
}

#[derive(Debug)]
struct Place {
    session: Session,
    worker: usize,
    timer: Option<Stamp>,
    /// What arrived before the session is read.
    kept: Vec<Arrived>,
}

/// What leaves the server for one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOutput {
    /// The connection they belong to.
    pub connection: ConnId,
    /// The bytes; may be empty when the server only closes.
    pub bytes: Bytes,
    /// Whether the connection has just been accepted; it is the first that is said of one.
    pub accepted: bool,
    /// Whether the server closes the connection behind them.
    pub close: bool,
    /// Whether it closes by a reset.
    pub reset: bool,
}

impl ServerOutput {
    /// Nothing yet of a connection.
    fn of(connection: ConnId) -> Self {
        Self {
            connection,
            bytes: Bytes::new(),
            accepted: false,
            close: false,
            reset: false,
        }
    }
}

impl VirtualServer {
    /// A server that starts at `started`. Its calendar begins at a fixed date, so that nothing
    /// depends on the day of the run; ports 0 are given as 6379 and 3000.
    #[must_use]
    pub fn new(config: ServerConfig, started: Stamp) -> Self {
        let wall = WallClock::fixed(started, WallClock::VIRTUAL_EPOCH_NS);
        let count = config.workers.max(1);
        let wakes = (0..count)
            .map(|_| Box::new(|| ()) as Box<dyn Fn() + Send + Sync>)
            .collect();
        let address = |port: Option<u16>, usual: u16| {
            port.map(|port| SocketAddr::new(config.bind, if port == 0 { usual } else { port }))
        };
        let addresses = Addresses {
            redis: address(config.redis_port, 6379),
            aerospike: address(config.aerospike_port, 3000),
            shared: address(config.shared_port, 4000),
            ..Addresses::default()
        };
        let shared = Arc::new(Shared::new(config, started, wall, PostOffice::new(wakes)));
        // The cell is new, so setting it cannot fail.
        let _ = shared.addresses.set(addresses);
        let workers = (0..count)
            .map(|index| Worker::new(index, Arc::clone(&shared)))
            .collect();
        Self {
            shared,
            workers,
            places: BTreeMap::new(),
            timers: BTreeSet::new(),
            outbox: VecDeque::new(),
            next_worker: 0,
            backlog: Default::default(),
            let_in_at: None,
        }
    }

    /// What all sessions share: settings, data, the calendar.
    #[must_use]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The address `listener` stands for, if that port is open.
    #[must_use]
    pub fn address(&self, listener: Listener) -> Option<SocketAddr> {
        let addresses = self.shared.addresses.get()?;
        match listener {
            Listener::Redis => addresses.redis,
            Listener::Aerospike => addresses.aerospike,
            Listener::Shared => addresses.shared,
        }
    }

    /// A client at `peer` connects to the port of `listener`. What becomes of it is put out: first
    /// that it is accepted, at once or, in the backlog form, later.
    pub fn accept(&mut self, now: Stamp, listener: Listener, peer: SocketAddr) -> ConnId {
        let local = self.address(listener).unwrap_or(peer);
        let arrival = self.shared.clients.arrive(peer, local);
        let side = Gatekeeper::side_of(listener);
        let keeper = &self.shared.gatekeeper;
        let is_shut = || matches!(keeper.room(now, side, None), Room::None { .. });
        if keeper.stops_accepting() && (!self.backlog[side as usize].is_empty() || is_shut()) {
            self.backlog[side as usize].push_back(Waiting { arrival, listener });
            self.let_in(now);
        } else {
            self.admit(now, listener, &arrival, false);
        }
        arrival.id
    }

    /// Has the gatekeeper decide about a connection.
    fn admit(&mut self, now: Stamp, listener: Listener, arrival: &Arrival, waited: bool) {
        let side = Gatekeeper::side_of(listener);
        let keeper = &self.shared.gatekeeper;
        let verdict = keeper.admit(now, side, arrival.peer.ip(), waited);
        self.outbox.push_back(ServerOutput {
            accepted: true,
            ..ServerOutput::of(arrival.id)
        });
        let held_until = match verdict {
            Verdict::Serve => None,
            Verdict::Hold(until) => Some(until),
            Verdict::Refuse(how) => {
                self.outbox.push_back(ServerOutput {
                    bytes: match &how {
                        Turned::Told(text) => text.clone(),
                        Turned::Closed | Turned::Reset => Bytes::new(),
                    },
                    close: true,
                    reset: how == Turned::Reset,
                    ..ServerOutput::of(arrival.id)
                });
                return;
            }
        };
        let index = self.next_worker;
        self.next_worker = (index + 1) % self.workers.len();
        let client = self.shared.clients.register(now, index, arrival);
        let id = client.id;
        let dialect = Dialect::new(listener, &self.shared);
        if let Some(worker) = self.workers.get_mut(index) {
            let session = Session::new(client, dialect, Admission { side, held_until }, worker);
            let place = Place {
                session,
                worker: index,
                timer: None,
                kept: Vec::new(),
            };
            self.places.insert(id, place);
            // Asks for the moments at which something happens by itself.
            self.step(now, id, |_, _| ());
        }
    }

    /// Lets in whom there is room for, those who came first before the others.
    fn let_in(&mut self, now: Stamp) {
        self.let_in_at = None;
        loop {
            let mut first: Option<(ConnId, Protocol)> = None;
            let mut next = None;
            for side in [Protocol::Redis, Protocol::Aerospike] {
                let Some(waiting) = self.backlog[side as usize].front() else {
                    continue;
                };
                match self.shared.gatekeeper.room(now, side, None) {
                    Room::None { until } => next = [next, until].into_iter().flatten().min(),
                    Room::Unbounded | Room::Some { .. } => {
                        let here = (waiting.arrival.id, side);
                        first = Some(first.map_or(here, |other| other.min(here)));
                    }
                }
            }
            let Some((_, side)) = first else {
                self.let_in_at = next;
                return;
            };
            if let Some(Waiting { arrival, listener }) = self.backlog[side as usize].pop_front() {
                self.admit(now, listener, &arrival, true);
            }
        }
    }

    /// `data` arrives from the client.
    pub fn handle_bytes(&mut self, now: Stamp, connection: ConnId, data: &[u8]) {
        if let Some(place) = self.places.get_mut(&connection)
            && place.session.is_held()
        {
            return place.kept.push(Arrived::Bytes(data.to_vec()));
        }
        self.step(now, connection, |session, worker| {
            session.handle_bytes(now, data, worker)
        });
        self.after_step(now);
    }

    /// The client closed its side, or gave up waiting.
    pub fn handle_eof(&mut self, now: Stamp, connection: ConnId) {
        if let Some(place) = self.places.get_mut(&connection)
            && place.session.is_held()
        {
            return place.kept.push(Arrived::End);
        }
        for backlog in &mut self.backlog {
            backlog.retain(|waiting| waiting.arrival.id != connection);
        }
        self.step(now, connection, |session, worker| {
            session.handle_eof(now, worker)
        });
        self.after_step(now);
    }

    /// The earliest moment at which [`VirtualServer::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Stamp> {
        let timer = self.timers.first().map(|(moment, _)| *moment);
        [timer, self.let_in_at].into_iter().flatten().min()
    }

    /// Runs every timeout due by `now`.
    pub fn handle_timeout(&mut self, now: Stamp) {
        while let Some((moment, connection)) = self.timers.first().copied()
            && moment <= now
        {
            self.timers.remove(&(moment, connection));
            if let Some(place) = self.places.get_mut(&connection) {
                place.timer = None;
            }
            self.step(now, connection, |session, worker| {
                session.handle_timeout(now, worker)
            });
            self.hand_over_kept(now, connection);
            self.after_step(now);
        }
        if self.let_in_at.is_some_and(|moment| moment <= now) {
            self.let_in(now);
        }
    }

    /// A session that is read from now on gets what has arrived.
    fn hand_over_kept(&mut self, now: Stamp, connection: ConnId) {
        let Some(place) = self.places.get_mut(&connection) else {
            return;
        };
        if place.kept.is_empty() || place.session.is_held() {
            return;
        }
        for arrived in std::mem::take(&mut place.kept) {
            self.step(now, connection, |session, worker| match &arrived {
                Arrived::Bytes(data) => session.handle_bytes(now, data, worker),
                Arrived::End => session.handle_eof(now, worker),
            });
        }
    }

    /// What one session did may concern others.
    fn after_step(&mut self, now: Stamp) {
        self.deliver_mail(now);
        if self.backlog.iter().any(|backlog| !backlog.is_empty()) {
            self.let_in(now);
        }
    }

    /// The next output, until there is none; to be emptied after every call that takes `now`.
    pub fn poll_output(&mut self) -> Option<ServerOutput> {
        self.outbox.pop_front()
    }

    /// Begins a run at `now` and returns the truth of the one before; see
    /// [`MockServer::begin_run`](crate::MockServer::begin_run).
    pub fn begin_run(&mut self, now: Stamp, run: impl Into<RunId>) -> Truth {
        let run = run.into();
        let mut truth = Truth::default();
        for worker in &mut self.workers {
            truth.merge(worker.begin_run(run, now));
        }
        let accepting = self.shared.gatekeeper.take_counts();
        truth.stats.counts.accepting.merge(&accepting);
        truth
    }

    /// Ends every connection and returns all that was recorded.
    #[must_use]
    pub fn finish(mut self, now: Stamp) -> Truth {
        for place in self.places.values_mut() {
            if let Some(worker) = self.workers.get_mut(place.worker) {
                place.session.close(now, worker);
            }
        }
        let mut truth = Truth::default();
        for worker in &self.workers {
            truth.merge(worker.truth(now));
        }
        let accepting = self.shared.gatekeeper.counts();
        truth.stats.counts.accepting.merge(&accepting);
        truth
    }

    fn step(
        &mut self,
        now: Stamp,
        connection: ConnId,
        action: impl FnOnce(&mut Session, &mut Worker),
    ) {
        let Some(place) = self.places.get_mut(&connection) else {
            return;
        };
        let Some(worker) = self.workers.get_mut(place.worker) else {
            return;
        };
        action(&mut place.session, worker);
        loop {
            let due = place.session.poll_output(now, worker);
            if due.is_empty() {
                break;
            }
            let bytes = Bytes::copy_from_slice(due);
            place.session.wrote(bytes.len(), now, now, worker);
            self.outbox.push_back(ServerOutput {
                bytes,
                ..ServerOutput::of(connection)
            });
        }
        if place.session.is_finished() {
            let reset = place.session.ends_by_reset();
            place.session.close(now, worker);
            self.outbox.push_back(ServerOutput {
                close: true,
                reset,
                ..ServerOutput::of(connection)
            });
            if let Some(timer) = place.timer {
                self.timers.remove(&(timer, connection));
            }
            self.places.remove(&connection);
            return;
        }
        let timer = place.session.poll_timeout();
        if timer != place.timer {
            if let Some(old) = place.timer {
                self.timers.remove(&(old, connection));
            }
            if let Some(new) = timer {
                self.timers.insert((new, connection));
            }
            place.timer = timer;
        }
    }

    fn deliver_mail(&mut self, now: Stamp) {
        loop {
            let mut mail: Vec<(usize, Mail)> = Vec::new();
            for worker in 0..self.workers.len() {
                mail.extend(
                    self.shared
                        .post
                        .take(worker)
                        .into_iter()
                        .map(|mail| (worker, mail)),
                );
            }
            if mail.is_empty() {
                return;
            }
            mail.sort_by_key(|(_, mail)| mail.order);
            for (worker, Mail { to, event, .. }) in mail {
                let recipients: Vec<ConnId> = match to {
                    Recipient::Connection(id) => vec![id],
                    Recipient::All => self
                        .places
                        .iter()
                        .filter(|(_, place)| place.worker == worker)
                        .map(|(id, _)| *id)
                        .collect(),
                };
                for id in recipients {
                    self.step(now, id, |session, state| {
                        session.handle_event(now, event, state)
                    });
                }
            }
        }
    }
}
