//! A scripted RESP server and a network in virtual time, independent of the mock server.
//!
//! The server reads at once, starts a request when it is read (or at the end of a freeze), answers
//! it a constant time later, not within a freeze, and in order on each connection. The network
//! takes the same time in both directions. Everything is integer arithmetic.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::net::SocketAddr;

use bytes::Bytes;
use kvlab_bench_client::record::SocketEnd;
use kvlab_bench_client::virtual_shell::{ClientAction, ClientConnId, VirtualClient};
use kvlab_bench_client::{RunError, RunResult, Settings};
use kvlab_timing::Stamp;

/// What the server does with the n-th request that it reads, counted from 0 over all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    /// Answer with these bytes.
    Reply(&'static str),
    /// Never answer it, nor anything after it on the connection.
    Silence,
    /// Close the connection instead.
    Close,
    /// Answer with these bytes, cut into pieces of one byte that arrive one nanosecond apart.
    Dribble(&'static str),
}

/// What becomes of an attempt to connect. Moments count from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// It is connected and served.
    Serve,
    /// It is connected and not read before this moment.
    Hold(u64),
    /// It is connected, and reset at once.
    Reset,
    /// It is connected, and closed at once.
    Close,
    /// It is connected, gets this line at once and is closed.
    Line(&'static str),
    /// Nothing ever happens.
    Hang,
}

/// A server and a network.
pub(crate) struct World {
    pub(crate) delay_ns: u64,
    pub(crate) network_ns: u64,
    /// (first, every, length) of a freeze of the whole server.
    pub(crate) freeze: Option<(u64, u64, u64)>,
    pub(crate) script: Box<dyn FnMut(u64) -> Script>,
    /// Connection attempts that are refused, counted from 0.
    pub(crate) refuse: Box<dyn FnMut(u64) -> bool>,
    /// How the n-th attempt to connect is taken, which came at that moment since the start.
    pub(crate) gate: Box<dyn FnMut(u64, u64) -> Gate>,
    /// Everything the server read, by connection in the order of their making.
    pub(crate) read: Vec<Vec<u8>>,
    requests: u64,
    attempts: u64,
    now: u64,
    order: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: HashMap<u64, Event>,
    links: HashMap<ClientConnId, Link>,
    closed: HashSet<ClientConnId>,
}

struct Link {
    number: usize,
    pending: Vec<u8>,
    last_due: u64,
    silent: bool,
    /// Not read before.
    open_at: u64,
}

enum Event {
    Connected(ClientConnId, Gate),
    Refused(ClientConnId),
    ResetByServer(ClientConnId),
    AtServer(ClientConnId, Bytes),
    AtClient(ClientConnId, Vec<u8>),
    ClosedByServer(ClientConnId),
}

impl World {
    pub(crate) fn new(delay_ns: u64, network_ns: u64) -> Self {
        Self {
            delay_ns,
            network_ns,
            freeze: None,
            script: Box::new(|_| Script::Reply("+OK\r\n")),
            refuse: Box::new(|_| false),
            gate: Box::new(|_, _| Gate::Serve),
            read: Vec::new(),
            requests: 0,
            attempts: 0,
            now: START,
            order: 0,
            queue: BinaryHeap::new(),
            events: HashMap::new(),
            links: HashMap::new(),
            closed: HashSet::new(),
        }
    }

    /// Runs the client to its end.
    pub(crate) fn run(&mut self, settings: &Settings) -> Result<RunResult, RunError> {
        let mut client = VirtualClient::new(settings, Stamp::from_nanos(START))?;
        self.take_actions(&mut client);
        while !client.is_finished() {
            let timeout = client.poll_timeout().map(Stamp::as_nanos);
            let event = self.queue.peek().map(|Reverse((at, _))| *at);
            let next = match (timeout, event) {
                (Some(timeout), Some(event)) => timeout.min(event),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => panic!("nothing will ever happen: {client:?}"),
            };
            assert!(next >= self.now || timeout == Some(next), "time goes back");
            self.now = self.now.max(next);
            assert!(self.now < START + 100_000 * SECOND, "the run has no end");
            if event == Some(next) {
                self.happen(&mut client);
            } else {
                client.handle_timeout(Stamp::from_nanos(self.now));
            }
            self.take_actions(&mut client);
        }
        client.finish(Stamp::from_nanos(self.now))
    }

    /// Time from the start to the last event.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.now - START
    }

    fn happen(&mut self, client: &mut VirtualClient) {
        let Some(Reverse((_, order))) = self.queue.pop() else {
            return;
        };
        let now = Stamp::from_nanos(self.now);
        match self.events.remove(&order).unwrap() {
            Event::Connected(conn, gate) if !self.closed.contains(&conn) => {
                let number = self.read.len();
                self.read.push(Vec::new());
                let link = Link {
                    number,
                    pending: Vec::new(),
                    last_due: 0,
                    silent: !matches!(gate, Gate::Serve | Gate::Hold(_)),
                    open_at: match gate {
                        Gate::Hold(moment) => START + moment,
                        _ => 0,
                    },
                };
                let soon = self.now + self.network_ns;
                match gate {
                    Gate::Reset => self.at(soon, Event::ResetByServer(conn)),
                    Gate::Close => self.at(soon, Event::ClosedByServer(conn)),
                    Gate::Line(text) => {
                        self.at(soon, Event::AtClient(conn, text.into()));
                        self.at(soon, Event::ClosedByServer(conn));
                    }
                    _ => {}
                }
                self.links.insert(conn, link);
                let port = 10_000 + u16::try_from(number % 50_000).unwrap();
                client.handle_connected(now, conn, SocketAddr::from(([127, 0, 0, 1], port)), 0);
            }
            Event::Refused(conn) if !self.closed.contains(&conn) => {
                client.handle_closed(now, conn, SocketEnd::Refused);
            }
            Event::ResetByServer(conn) if !self.closed.contains(&conn) => {
                client.handle_closed(now, conn, SocketEnd::Reset);
            }
            Event::AtClient(conn, bytes) if !self.closed.contains(&conn) => {
                client.handle_bytes(now, conn, &bytes);
            }
            Event::ClosedByServer(conn) if !self.closed.contains(&conn) => {
                client.handle_closed(now, conn, SocketEnd::Closed);
            }
            Event::AtServer(conn, bytes) => self.serve(conn, &bytes),
            _ => {}
        }
    }

    fn serve(&mut self, conn: ClientConnId, bytes: &Bytes) {
        let mut link = self.links.remove(&conn).unwrap();
        if self.now < link.open_at {
            self.at(link.open_at, Event::AtServer(conn, bytes.clone()));
            self.links.insert(conn, link);
            return;
        }
        self.read[link.number].extend_from_slice(bytes);
        link.pending.extend_from_slice(bytes);
        while let Some(len) = request_len(&link.pending) {
            link.pending.drain(..len);
            let script = (self.script)(self.requests);
            self.requests += 1;
            if link.silent {
                continue;
            }
            let start = self.thaw(self.now);
            let due = self.thaw((start + self.delay_ns).max(link.last_due));
            link.last_due = due;
            let arrival = due + self.network_ns;
            match script {
                Script::Reply(text) => {
                    self.at(arrival, Event::AtClient(conn, text.into()));
                }
                Script::Dribble(text) => {
                    for (place, byte) in (0..).zip(text.bytes()) {
                        self.at(arrival + place, Event::AtClient(conn, vec![byte]));
                    }
                    link.last_due += text.len() as u64;
                }
                Script::Silence => link.silent = true,
                Script::Close => {
                    link.silent = true;
                    self.at(arrival, Event::ClosedByServer(conn));
                }
            }
        }
        self.links.insert(conn, link);
    }

    /// The moment itself, or the end of the freeze it lies in.
    pub(crate) fn thaw(&self, at: u64) -> u64 {
        let Some((first, every, length)) = self.freeze else {
            return at;
        };
        let Some(since) = at.checked_sub(START + first) else {
            return at;
        };
        if since % every < length {
            at - since % every + length
        } else {
            at
        }
    }

    fn take_actions(&mut self, client: &mut VirtualClient) {
        while let Some(action) = client.poll_action() {
            match action {
                ClientAction::Connect { conn, .. } => {
                    let refused = (self.refuse)(self.attempts);
                    self.attempts += 1;
                    let since = self.now - START;
                    let gate = (self.gate)(self.attempts - 1, since);
                    match gate {
                        _ if refused => self.at(self.now, Event::Refused(conn)),
                        Gate::Hang => {}
                        _ => self.at(self.now, Event::Connected(conn, gate)),
                    }
                }
                ClientAction::Send { conn, bytes } => {
                    self.at(self.now + self.network_ns, Event::AtServer(conn, bytes));
                }
                ClientAction::Close { conn } => {
                    self.closed.insert(conn);
                }
            }
        }
    }

    fn at(&mut self, moment: u64, event: Event) {
        self.queue.push(Reverse((moment, self.order)));
        self.events.insert(self.order, event);
        self.order += 1;
    }
}

/// Length of the request at the beginning, if it is whole.
fn request_len(bytes: &[u8]) -> Option<usize> {
    let line = |at: usize| {
        let end = at
            + bytes
                .get(at..)?
                .windows(2)
                .position(|pair| pair == b"\r\n")?;
        let number = std::str::from_utf8(&bytes[at + 1..end])
            .ok()?
            .parse::<usize>()
            .ok()?;
        Some((number, end + 2))
    };
    let (arguments, mut at) = line(0)?;
    for _ in 0..arguments {
        let (len, start) = line(at)?;
        at = start + len + 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// Virtual runs do not begin at 0, so that a forgotten stamp shows.
pub(crate) const START: u64 = 1_000_000_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MILLI: u64 = 1_000_000;
