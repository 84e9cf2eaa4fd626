//! The core of a connection: a state machine without socket, clock or sleep.
//!
//! A shell hands it what was read ([`Session::handle_bytes`]), the moments it asked to be woken at
//! ([`Session::handle_timeout`], [`Session::poll_timeout`]) and events from other connections
//! ([`Session::handle_event`]); it takes the bytes that are due ([`Session::poll_output`]) and tells
//! what it wrote ([`Session::wrote`]). The real and the virtual shell drive the same code.
//!
//! When is a reply due? `due = max(start + wanted, previous due of the connection, end of a
//! freeze)`, and where there is a queue, `wanted` begins when the request has passed it. On RESP a
//! request starts when it was read, so pipelined requests wait side by side; on Aerospike a message
//! starts only after the reply before it was written, as the real server does.
//! Commands execute at their start. A request that cannot start yet is held: its bytes stay in the
//! input buffer, stamped with the moment they were complete.
//!
//! Where there are throttles, a request asks them once, when it would start otherwise, which is not
//! before the one ahead of it on its connection, and starts when its turn has come. One that a throttle
//! drops is never answered; as replies keep their order, nor is any behind it: the connection stays
//! open and what comes in is counted and forgotten.
//!
//! A connection may be held when it is accepted: nothing of it is read before its moment, and the shell
//! keeps what comes until then.
//!
//! A connection may have a cut coming: the moment at which the server ends it. Up to that moment
//! everything goes on as usual, and what starts, becomes due or is read after it does so no more.
//!
//! Replies lie in one buffer in request order, because due moments of a connection never decrease;
//! the queue beside it says how many bytes belong to which moment. Consecutive requests that share
//! every stamp share one queue entry, unless each must have a row of its own.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use kvlab_protocol::aerospike::result_code::ResultCode;
use kvlab_timing::Stamp;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::clients::ClientInfo;
use crate::dialect::{Context, Decline, Dialect, Flow, Frame, Limited, Refusal};
use crate::event::Event;
use crate::exchange::{Class, Exchange, Protocol};
use crate::latency::{Cut, CutKind, Freezes, Passage, Shape};
use crate::limit::lifetime::{Death, Lifetime};
use crate::limit::size::{Excess, Sizes};
use crate::limit::throttle::{Answer, Asking, Throttles};
use crate::limit::{Admission, AtLimit, OutputLimit, Quantity, SizeKind, Throttle};
use crate::shared::Shared;
use crate::stamp::{FaultKind, ServerRow};
use crate::truth::{Kind, Times};
use crate::worker::Worker;

/// One connection. See the module documentation.
#[derive(Debug)]
pub struct Session {
    client: Arc<ClientInfo>,
    dialect: Dialect,
    /// Bytes of held frames, then bytes that complete no frame yet.
    input: BytesMut,
    held: VecDeque<Held>,
    /// Bytes of `input` that belong to held frames.
    held_len: usize,
    /// The front held request may not start before this; it is waiting for this moment if set.
    wake_at: Option<Stamp>,
    /// What the throttles told the request that starts next, once it has asked.
    told: Option<(Stamp, Option<Answer>)>,
    /// A throttle dropped a request: nothing is answered any more.
    is_silent: bool,
    /// Requests in `queue`.
    unanswered: u64,
    /// A command parked until a moment, an event, or whichever comes first.
    parked: Option<Parked>,
    /// No request of this connection starts before this moment.
    not_before: Stamp,
    out: BytesMut,
    queue: VecDeque<Queued>,
    /// Entries of `queue`, from its front, whose bytes may be written.
    released: usize,
    /// Bytes at the front of `out` that may be written.
    ready: usize,
    /// Bytes of the front entry that have been written already.
    partial: usize,
    last_due: Stamp,
    sequence: u64,
    rng: Xoshiro256PlusPlus,
    freezes: Freezes,
    /// When and why the server ends this connection, if it is to: the first cut, or its age.
    cut: Option<(Stamp, End)>,
    /// What else ends this connection by itself, if anything may.
    lifetime: Option<Box<Lifetime>>,
    /// The side on which the gatekeeper counts it.
    side: Protocol,
    phase: Phase,
}

#[derive(Debug)]
struct Held {
    read: Stamp,
    frame: Frame,
    /// Input that breaks the protocol ends the connection, but in its turn.
    refusal: Option<Refusal>,
}

#[derive(Debug, Clone, Copy)]
struct Parked {
    until: Option<Stamp>,
}

/// Replies that share every stamp: `len` bytes of `out`.
#[derive(Debug, Clone, Copy)]
struct Queued {
    read: Stamp,
    start: Stamp,
    due: Stamp,
    drawn_ns: u64,
    wanted_ns: u64,
    passage: Option<Passage>,
    len: usize,
    count: u64,
    protocol: Protocol,
    command: &'static str,
    class: Class,
    fault: FaultKind,
    started: bool,
    request_bytes: u64,
    toll: Toll,
}

/// What throttles did to a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Toll {
    place: Option<u64>,
    waited_ns: u64,
    reply_place: Option<u64>,
    reply_wait_ns: u64,
}

/// When a request starts.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// The moment itself.
    at: Stamp,
    /// The earliest that its connection allows.
    earliest: Stamp,
    /// When it asked the throttles: the same, or the end of a freeze.
    asked: Stamp,
    /// What they told it, if one selects it.
    told: Option<Answer>,
}

impl Start {
    /// A request that nothing keeps from starting.
    fn at_once(at: Stamp) -> Self {
        Self {
            at,
            earliest: at,
            asked: at,
            told: None,
        }
    }

    /// Its turn by the throttles.
    fn turn(&self) -> Stamp {
        self.told
            .map_or(self.asked, |told| told.turn.max(self.asked))
    }
}

impl Queued {
    /// A request that was read and started, of which nothing more is known yet.
    fn new(read: Stamp, start: &Start, request_bytes: usize) -> Self {
        let told = start.told;
        Self {
            read,
            start: start.at,
            due: start.at,
            drawn_ns: 0,
            wanted_ns: 0,
            passage: None,
            len: 0,
            count: 1,
            protocol: Protocol::Redis,
            command: "",
            class: Class::Admin,
            fault: FaultKind::None,
            started: true,
            request_bytes: request_bytes as u64,
            toll: Toll {
                place: told.map(|told| told.place),
                waited_ns: start.turn().saturating_since(start.asked),
                ..Toll::default()
            },
        }
    }

    /// Fills in what rules and statistics know of the request.
    fn is_of(&mut self, exchange: &Exchange<'_>) {
        (self.protocol, self.command) = (exchange.protocol, exchange.command);
        self.class = exchange.class;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Accepted, and not to be read before this moment.
    Held(Stamp),
    Open,
    /// Nothing more is read; the connection closes when the last reply is written.
    AfterReplies,
    /// As before, and requests that were read but not started are forgotten.
    AfterThis,
    AtOnce,
    /// As at once, because the server has a reason of its own.
    Ended(End),
}

/// Why a server ends a connection by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Cut(CutKind),
    /// It is as old as it may become.
    Age,
    /// It was silent for too long.
    Idle,
    /// Its client did not take its replies.
    Output,
    /// It found no place on the side that it turned out to belong to.
    NoPlace,
}

/// Above this many bytes of unsent replies or unexecuted requests, the shell stops reading until the
/// client has taken some.
pub const BACKLOG_LIMIT: usize = 64 * 1024 * 1024;

/// As many requests may wait on one connection, for their start or for their reply to be written,
/// before the shell stops reading.
pub const REQUEST_LIMIT: usize = 1 << 20;

/// Buffers that grew beyond this are given back once they are empty.
const KEEP_BUFFER: usize = 64 * 1024;

impl Session {
    /// A session for a connection that was just accepted.
    #[must_use]
    ///
    /// It belongs to `side` and is not read before `held_until`, if there is such a moment.
    pub fn new(
        client: Arc<ClientInfo>,
        dialect: Dialect,
        admission: Admission,
        worker: &mut Worker,
    ) -> Self {
        worker.counts.accepted += 1;
        // A stream of its own for every connection: what one draws does not depend on the others.
        let stream = worker.shared.config.seed ^ client.id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let now = client.connected;
        let (config, started) = (&worker.shared.config, worker.shared.started);
        let number = client.id.number();
        let freezes = Freezes::of_connection(&config.freezes, started, number);
        let cut = Cut::first_of(&config.cuts, started, number, now);
        let cut = cut.map(|(moment, how)| (moment, End::Cut(how)));
        let age = config.connections.max_age;
        let age = age.map(|age| (now + age, End::Age));
        // A cut goes before an age of the same moment.
        let cut = [cut, age].into_iter().flatten().min_by_key(|(at, _)| *at);
        let Admission { side, held_until } = admission;
        let opened = held_until.unwrap_or(now);
        let (idle, output) = watched_for(side, &worker.shared);
        Self {
            client,
            dialect,
            input: BytesMut::new(),
            held: VecDeque::new(),
            held_len: 0,
            wake_at: None,
            told: None,
            is_silent: false,
            unanswered: 0,
            parked: None,
            not_before: Stamp::ZERO,
            out: BytesMut::new(),
            queue: VecDeque::new(),
            released: 0,
            ready: 0,
            partial: 0,
            last_due: Stamp::ZERO,
            sequence: 0,
            rng: Xoshiro256PlusPlus::seed_from_u64(stream),
            freezes,
            cut,
            lifetime: Lifetime::new(idle, output, opened),
            side,
            phase: held_until.map_or(Phase::Open, Phase::Held),
        }
    }

    /// The client this session serves.
    #[must_use]
    pub fn client(&self) -> &ClientInfo {
        &self.client
    }

    /// Takes in `data`, which a read returned at `now`.
    pub fn handle_bytes(&mut self, now: Stamp, data: &[u8], worker: &mut Worker) {
        worker.counts.bytes_in += data.len() as u64;
        self.cut_off(now);
        if self.phase != Phase::Open {
            return;
        }
        if let Some(lifetime) = &mut self.lifetime {
            lifetime.note(now);
        }
        if let Some(first) = data.first()
            && self.dialect.is_undecided()
        {
            self.decide(*first, worker);
        }
        let mut data = data;
        if self.input.is_empty() && self.held.is_empty() {
            let used = self.run_directly(now, data, worker);
            data = data.get(used..).unwrap_or_default();
        }
        if !data.is_empty() && self.phase == Phase::Open {
            self.input.extend_from_slice(data);
            self.sort_in(now, worker);
            self.drain(now, worker);
        }
        self.client.note(now, self.dialect.ordinal());
    }

    /// The first byte tells what a client of the port for both protocols speaks.
    fn decide(&mut self, first: u8, worker: &Worker) {
        let shared = &worker.shared;
        self.dialect.decide(first, shared);
        let side = self.dialect.protocol();
        let address = self.client.peer.ip();
        if !shared.gatekeeper.change_side(self.side, side, address) {
            self.phase = Phase::Ended(End::NoPlace);
        }
        if side != self.side {
            self.side = side;
            self.watch_anew(shared);
        }
    }

    /// What connections are limited to may have changed.
    fn watch_anew(&mut self, shared: &Shared) {
        let (idle, output) = watched_for(self.side, shared);
        match &mut self.lifetime {
            Some(lifetime) => lifetime.change(idle, output),
            None => self.lifetime = Lifetime::new(idle, output, self.client.last_active()),
        }
    }

    /// The client will send nothing more. Replies already under way still go out.
    pub fn handle_eof(&mut self, now: Stamp, worker: &mut Worker) {
        if self.parked.is_some() {
            // What waits will never be asked for again: a real server forgets such a client at once.
            self.phase = Phase::AtOnce;
        }
        if self.phase == Phase::Open {
            self.phase = Phase::AfterReplies;
            self.drain(now, worker);
        }
    }

    /// A moment asked for by [`Session::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Stamp, worker: &mut Worker) {
        if let Phase::Held(until) = self.phase
            && until <= now
        {
            self.phase = Phase::Open;
        }
        if let Some(until) = self.parked.and_then(|parked| parked.until)
            && until <= now
        {
            self.resume(until);
        }
        self.drain(now, worker);
        self.cut_off(now);
        self.die(now);
    }

    /// Ends the connection if it was silent or its replies were left for too long.
    fn die(&mut self, now: Stamp) {
        if let Some(lifetime) = &self.lifetime
            && !matches!(self.phase, Phase::Held(_) | Phase::Ended(_))
            && let Some((moment, death)) = lifetime.next(self.is_busy())
            && moment <= now
        {
            self.phase = Phase::Ended(match death {
                Death::Idle => End::Idle,
                Death::Output => End::Output,
            });
        }
    }

    /// Whether something is under way.
    fn is_busy(&self) -> bool {
        !self.queue.is_empty() || !self.held.is_empty() || self.parked.is_some()
    }

    /// Something happened elsewhere that concerns this connection.
    pub fn handle_event(&mut self, now: Stamp, event: Event, worker: &mut Worker) {
        match event {
            Event::Kill => self.phase = Phase::AtOnce,
            Event::PauseEnd => {
                if self.parked.is_some() {
                    self.resume(now);
                    self.drain(now, worker);
                }
            }
            Event::NewLimits => {
                self.watch_anew(&worker.shared);
                self.die(now);
            }
        }
    }

    /// When [`Session::handle_timeout`] wants to be called next, if nothing else happens.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Stamp> {
        [self.poll_due(), self.poll_end()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next moment at which a reply is due, a request starts or the connection opens.
    #[must_use]
    pub fn poll_due(&self) -> Option<Stamp> {
        match self.phase {
            Phase::Ended(_) => return None,
            Phase::Held(until) => return Some(until),
            _ => {}
        }
        let reply = self.queue.get(self.released).map(|queued| queued.due);
        let start = match self.parked {
            Some(parked) => parked.until,
            None => self.wake_at,
        };
        [reply, start].into_iter().flatten().min()
    }

    /// The moment at which the server ends the connection if nothing happens until then; to be asked
    /// for even while the client takes no replies. It may become a later one at any time.
    #[must_use]
    pub fn poll_end(&self) -> Option<Stamp> {
        if matches!(self.phase, Phase::Ended(_)) {
            return None;
        }
        let cut = self.cut.map(|(moment, _)| moment);
        match &self.lifetime {
            None => cut,
            Some(_) if matches!(self.phase, Phase::Held(_)) => cut,
            Some(lifetime) => {
                let death = lifetime.next(self.is_busy()).map(|(moment, _)| moment);
                [cut, death].into_iter().flatten().min()
            }
        }
    }

    /// Whether any reply waits to become due or to be written: without one there is no need to ask
    /// the clock.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The bytes that may be written at `now`.
    pub fn poll_output(&mut self, now: Stamp, worker: &mut Worker) -> &[u8] {
        if self.phase == Phase::Ended(End::Output) {
            return &[];
        }
        let last = self.not_after(now);
        while let Some(next) = self.queue.get(self.released)
            && next.due <= last
        {
            self.ready += next.len;
            self.released += 1;
        }
        if self.ready == 0 && self.released > 0 {
            // Requests that get no reply by design leave the queue here.
            self.retire(now, now, worker);
        }
        self.out.get(..self.ready).unwrap_or_default()
    }

    /// `len` of the bytes last polled were handed over by a write call that was made at `before` and
    /// returned at `after`.
    pub fn wrote(&mut self, len: usize, before: Stamp, after: Stamp, worker: &mut Worker) {
        worker.counts.bytes_out += len as u64;
        self.out.advance(len);
        self.ready -= len;
        self.partial += len;
        self.retire(before, after, worker);
        if let Some(lifetime) = &mut self.lifetime {
            lifetime.note(after);
            // Less than before: it can only fall below the soft limit.
            lifetime.is_too_much(after, self.out.len());
        }
        if self.out.is_empty() && self.out.capacity() > KEEP_BUFFER {
            self.out = BytesMut::new();
        }
        if !self.held.is_empty() && !self.waits_for_writes() {
            if self.dialect.is_serial() {
                self.not_before = self.not_before.max(after);
            }
            self.drain(after, worker);
        }
    }

    /// Whether requests have to wait until replies have been written: the one before on a serial
    /// protocol; on any, so many bytes that a client which does not read would fill the memory.
    fn waits_for_writes(&self) -> bool {
        (self.dialect.is_serial() && !self.queue.is_empty()) || self.out.len() >= BACKLOG_LIMIT
    }

    /// Whether the shell should go on reading.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.phase == Phase::Open
            && self.out.len() < BACKLOG_LIMIT
            && self.held_len < BACKLOG_LIMIT
            && self.held.len() + self.queue.len() < REQUEST_LIMIT
    }

    /// Whether it is not to be read yet.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Held(_))
    }

    /// Whether the connection is to be closed now.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self.phase {
            Phase::Held(_) | Phase::Open => false,
            Phase::AfterReplies => self.queue.is_empty() && self.held.is_empty(),
            Phase::AfterThis => self.queue.is_empty(),
            Phase::AtOnce | Phase::Ended(_) => true,
        }
    }

    /// Whether the connection ends without regard to what is still on its way to the client.
    #[must_use]
    pub fn ends_at_once(&self) -> bool {
        matches!(self.phase, Phase::AtOnce | Phase::Ended(_))
    }

    /// Whether the client is to see a reset in place of an orderly end.
    #[must_use]
    pub fn ends_by_reset(&self) -> bool {
        self.phase == Phase::Ended(End::Cut(CutKind::Reset))
    }

    /// Ends the connection if its cut has come.
    fn cut_off(&mut self, now: Stamp) {
        if let Some((moment, how)) = self.cut
            && moment <= now
        {
            self.phase = Phase::Ended(how);
        }
    }

    /// `now`, but no moment after the cut: what happens there happens no more, however late the
    /// shell comes to it.
    fn not_after(&self, now: Stamp) -> Stamp {
        self.cut.map_or(now, |(moment, _)| moment.min(now))
    }

    /// The connection is gone: accounts for the requests that will never be answered.
    pub fn close(&mut self, now: Stamp, worker: &mut Worker) {
        let counts = &mut worker.counts;
        let (count, fault) = match self.phase {
            Phase::Ended(End::Cut(CutKind::Close)) => (Some(&mut counts.closed), true),
            Phase::Ended(End::Cut(CutKind::Reset)) => (Some(&mut counts.reset), true),
            Phase::Ended(End::Age) => (Some(&mut counts.aged), true),
            Phase::Ended(End::Output) => (Some(&mut counts.output), true),
            Phase::Ended(End::Idle) => (Some(&mut counts.idle), false),
            _ => (None, false),
        };
        if let Some(count) = count {
            *count += 1;
        }
        if self.phase == Phase::Ended(End::Output) && self.side == Protocol::Redis {
            let ended = &worker.shared.redis.counters.output_limit;
            ended.fetch_add(1, Ordering::Relaxed);
        }
        let fault = fault.then_some(FaultKind::Cut);
        while let Some(mut queued) = self.queue.pop_front() {
            if !queued.fault.is_by_limit() {
                queued.fault = fault.unwrap_or(queued.fault);
            }
            self.record(&queued, now, now, false, worker);
        }
        self.give_up_held(now, fault.unwrap_or_default(), worker);
        self.dialect.close(&worker.shared, &self.client);
        worker.shared.clients.remove(self.client.id);
        let address = self.client.peer.ip();
        worker.shared.gatekeeper.leave(self.side, address);
    }

    /// Accounts for the requests that were read but never started.
    fn give_up_held(&mut self, now: Stamp, fault: FaultKind, worker: &mut Worker) {
        let mut input = mem::take(&mut self.input);
        // The first of them may have asked the throttles.
        let mut told = self.told.take();
        for held in mem::take(&mut self.held) {
            let frame = input.split_to(held.frame.len);
            if held.refusal.is_some() || held.frame.empty || self.dialect.recall(&frame).empty {
                continue;
            }
            let mut start = Start::at_once(now);
            if let Some((asked, told)) = told.take() {
                (start.asked, start.told) = (asked, told);
            }
            let mut never = Queued {
                fault,
                started: false,
                ..Queued::new(held.read, &start, frame.len())
            };
            never.is_of(&self.dialect.foresee(&frame));
            self.record(&never, now, now, false, worker);
        }
        self.held_len = 0;
    }

    /// The usual path: nothing is waiting, so frames are run right out of the read buffer. Returns
    /// how many bytes were used.
    fn run_directly(&mut self, now: Stamp, data: &[u8], worker: &mut Worker) -> usize {
        let mut used = 0;
        while self.phase == Phase::Open && !self.is_silent {
            let rest = data.get(used..).unwrap_or_default();
            match self.dialect.decode(rest) {
                Ok(None) => return used,
                Ok(Some(mut frame)) => {
                    if !frame.empty {
                        let bytes = rest.get(..frame.len).unwrap_or_default();
                        if let Some(sizes) = &worker.shared.sizes {
                            self.measure(&mut frame, sizes);
                        }
                        let started = self
                            .may_start(now, now, bytes, &frame, worker)
                            .is_some_and(|start| self.run(bytes, &frame, now, &start, worker));
                        if !started && frame.excess.is_some() {
                            // The decoder is behind its front already and does not find it again.
                            self.hold(now, bytes, frame);
                            return used + frame.len;
                        }
                        if !started {
                            return used;
                        }
                    }
                    used += frame.len;
                }
                Err(refusal) => {
                    self.refuse(&refusal, now, worker);
                    return data.len();
                }
            }
        }
        if self.is_silent { used } else { data.len() }
    }

    /// Notes that a request comes while too many are under way.
    fn measure(&self, frame: &mut Frame, sizes: &Sizes) {
        if frame.excess.is_none() && sizes.most(SizeKind::Pipeline).is_some() {
            let before = usize::try_from(self.unanswered).unwrap_or(usize::MAX);
            let with_it = before.saturating_add(self.held.len()).saturating_add(1);
            frame.excess = sizes.exceeded(SizeKind::Pipeline, with_it);
        }
    }

    /// Puts a request behind those that are held.
    fn hold(&mut self, now: Stamp, bytes: &[u8], frame: Frame) {
        self.input.extend_from_slice(bytes);
        self.held_len += frame.len;
        self.held.push_back(Held {
            read: now,
            frame,
            refusal: None,
        });
    }

    /// Finds the complete frames among the newly arrived bytes and stamps them.
    fn sort_in(&mut self, now: Stamp, worker: &Worker) {
        let sizes = worker.shared.sizes.as_ref();
        loop {
            let skips = sizes.is_some() && self.dialect.is_skipping();
            let rest = self.input.get(self.held_len..).unwrap_or_default();
            let held = match self.dialect.decode(rest) {
                Ok(None) => return,
                Ok(Some(frame)) if skips && frame.empty => {
                    // The rest of a request that was refused for its size: nobody needs it.
                    let behind = self.input.split_off(self.held_len + frame.len);
                    self.input.truncate(self.held_len);
                    self.input.unsplit(behind);
                    continue;
                }
                Ok(Some(mut frame)) => {
                    if let Some(sizes) = sizes.filter(|_| !frame.empty) {
                        self.measure(&mut frame, sizes);
                    }
                    Held {
                        read: now,
                        frame,
                        refusal: None,
                    }
                }
                Err(refusal) => {
                    // Nothing behind the fault is looked at.
                    self.input.truncate(self.held_len);
                    self.held.push_back(Held {
                        read: now,
                        frame: Frame {
                            len: 0,
                            empty: false,
                            excess: None,
                        },
                        refusal: Some(refusal),
                    });
                    return;
                }
            };
            self.held_len += held.frame.len;
            self.held.push_back(held);
        }
    }

    /// Starts held requests, in order, for as long as they may start.
    fn drain(&mut self, now: Stamp, worker: &mut Worker) {
        self.wake_at = None;
        if self.is_silent {
            self.swallow(now, worker);
            return;
        }
        let mut input = mem::take(&mut self.input);
        while self.parked.is_none()
            && matches!(self.phase, Phase::Open | Phase::AfterReplies)
            && let Some(front) = self.held.front()
        {
            let (read, frame) = (front.read, front.frame);
            let bytes = input.get(..frame.len).unwrap_or_default();
            let asks = worker.shared.throttles.is_some() && front.refusal.is_none();
            if asks && !frame.empty {
                self.dialect.recall(bytes);
            }
            let Some(start) = self.may_start(read, now, bytes, &frame, worker) else {
                break;
            };
            if let Some(refusal) = self.held.front_mut().and_then(|held| held.refusal.take()) {
                self.refuse(&refusal, now, worker);
                self.held.clear();
                break;
            }
            let is_empty = frame.empty || self.dialect.recall(bytes).empty;
            if !is_empty && !self.run(bytes, &frame, read, &start, worker) {
                break;
            }
            self.held.pop_front();
            self.held_len -= frame.len;
            input.advance(frame.len);
            if self.is_silent {
                break;
            }
        }
        if input.is_empty() && input.capacity() > KEEP_BUFFER {
            input = BytesMut::new();
        }
        self.input = input;
        if self.is_silent {
            self.swallow(now, worker);
        }
    }

    /// The moment at which a request read at `read` starts, if that moment has come; otherwise
    /// remembers when to try again.
    fn may_start(
        &mut self,
        read: Stamp,
        now: Stamp,
        bytes: &[u8],
        frame: &Frame,
        worker: &mut Worker,
    ) -> Option<Start> {
        if self.waits_for_writes() {
            return None;
        }
        let earliest = read.max(self.not_before);
        let at = self.freezes.leave(earliest);
        if at > self.not_after(now) {
            self.wake_at = Some(at);
            return None;
        }
        let mut start = Start {
            at,
            earliest,
            asked: at,
            told: None,
        };
        if let Some(throttles) = &worker.shared.throttles
            && !frame.empty
            && frame.excess.is_none()
        {
            let (asked, told) = match self.told {
                Some(told) => told,
                None => {
                    let answer = self.ask(at, bytes, throttles);
                    *self.told.insert((at, answer))
                }
            };
            (start.asked, start.told) = (asked.max(at), told);
            start.at = self.freezes.leave(start.turn());
            if start.at > self.not_after(now) {
                self.wake_at = Some(start.at);
                return None;
            }
        }
        Some(start)
    }

    /// What the throttles tell the request in `bytes`, which was decoded or recalled last and would
    /// start at `asked`.
    fn ask(&mut self, asked: Stamp, bytes: &[u8], throttles: &Mutex<Throttles>) -> Option<Answer> {
        let asking = Asking {
            client: self.client.peer.ip(),
            bytes: bytes.len() as u64,
            exchange: self.dialect.foresee(bytes),
        };
        lock(throttles).ask(asked, &asking)
    }

    /// Executes one request; false if the command parked itself instead.
    fn run(
        &mut self,
        frame: &[u8],
        found: &Frame,
        read: Stamp,
        start: &Start,
        worker: &mut Worker,
    ) -> bool {
        if let Some(excess) = found.excess {
            self.refuse_size(frame, excess, read, start, worker);
            return true;
        }
        if start.told.is_some_and(|told| told.refused_by.is_some()) {
            self.refuse_throttled(frame, read, start, worker);
            return true;
        }
        // A count of references that all workers share is touched only where there is a queue.
        let queue = (worker.shared.station.is_some()
            && self.dialect.foresee(frame).class != Class::Admin)
            .then(|| Arc::clone(&worker.shared));
        // Held until the request has passed, so that requests pass one after the other.
        let station = queue.as_ref().and_then(|shared| shared.station.as_ref());
        let mut station = station.map(lock);
        let before = self.out.len();
        let mut reply = Queued::new(read, start, frame.len());
        if let Some(place) = station
            .as_mut()
            .and_then(|station| station.refuses(start.at))
        {
            self.dialect.refuse_overloaded(&mut self.out);
            worker.counts.refused += u64::from(!worker.is_late(read));
            reply.fault = FaultKind::Refused;
            reply.passage = Some(Passage {
                place,
                ..Passage::default()
            });
            reply.is_of(&self.dialect.describe(frame));
            self.answer(reply, start, before, worker);
            return true;
        }
        let mut context = Context {
            limited: Limited::default(),
            now: start.at,
            worker: worker.index,
            shared: &worker.shared,
            client: &self.client,
        };
        match self.dialect.execute(frame, &mut context, &mut self.out) {
            Flow::Done => {}
            Flow::Close => self.phase = Phase::AfterThis,
            Flow::Park { until } => {
                self.parked = Some(Parked { until });
                return false;
            }
        }
        let limited = context.limited;
        let config = &worker.shared.config;
        let exchange = self.dialect.describe(frame);
        reply.is_of(&exchange);
        if let Some(station) = &mut station {
            let service = config.queue.as_ref().map(|queue| &queue.service);
            let service_ns = service.map_or(0, |law| law.sample_ns(&mut self.rng));
            reply.passage = Some(station.serve(start.at, service_ns));
        }
        if !config.latency.is_none() {
            reply.drawn_ns = config.latency.wanted_ns(&exchange, &mut self.rng);
            reply.wanted_ns = reply.drawn_ns;
        }
        if !config.shapes.is_empty() && reply.class != Class::Admin {
            let since_start = start.at.saturating_since(worker.shared.started);
            reply.wanted_ns = Shape::apply_all(&config.shapes, reply.drawn_ns, since_start);
        }
        if let Some(throttles) = &worker.shared.throttles {
            let asking = Asking {
                client: self.client.peer.ip(),
                bytes: frame.len() as u64,
                exchange,
            };
            let bytes = (self.out.len() - before) as u64;
            if let Some((turn, place)) = lock(throttles).reply(start.at, &asking, bytes) {
                reply.toll.reply_place = Some(place);
                reply.toll.reply_wait_ns = turn.saturating_since(start.at);
            }
        }
        worker.count_call(read, reply.protocol, self.dialect.ordinal());
        if limited != Limited::default() {
            note_limited(&mut reply, limited, worker);
        }
        self.answer(reply, start, before, worker);
        true
    }

    /// Answers a request that is larger than it may be.
    #[cold]
    fn refuse_size(
        &mut self,
        frame: &[u8],
        excess: Excess,
        read: Stamp,
        start: &Start,
        worker: &mut Worker,
    ) {
        let sizes = worker.shared.sizes.as_ref();
        let why = Decline {
            text: sizes.map(|sizes| sizes.text(excess)).unwrap_or_default(),
            code: excess.kind.code(),
        };
        worker.counts.too_large += u64::from(!worker.is_late(read));
        self.decline(frame, &why, FaultKind::TooLarge, (read, start), worker);
    }

    /// Answers a request that a throttle refuses, or forgets it.
    #[cold]
    fn refuse_throttled(&mut self, frame: &[u8], read: Stamp, start: &Start, worker: &mut Worker) {
        let throttles = worker.shared.throttles.as_ref().map(lock);
        let number = start.told.and_then(|told| told.refused_by);
        let rule = throttles
            .as_ref()
            .zip(number)
            .and_then(|(throttles, number)| throttles.rule(number));
        let Some(rule) = rule else { return };
        let (then, quantity) = (rule.then, rule.quantity);
        let text = rule.text.as_deref().unwrap_or(Throttle::TEXT).to_owned();
        drop(throttles);
        if then == AtLimit::Drop {
            self.is_silent = true;
            self.told = None;
            self.forget(frame, read, start, worker);
            return;
        }
        let code = match quantity {
            Quantity::Operations => ResultCode::QuotaExceeded,
            Quantity::BytesIn | Quantity::BytesOut => ResultCode::DeviceOverload,
        };
        worker.counts.throttled += u64::from(!worker.is_late(read));
        let why = Decline { text, code };
        self.decline(frame, &why, FaultKind::Throttled, (read, start), worker);
    }

    /// Answers a request with an error in place of executing it.
    fn decline(
        &mut self,
        frame: &[u8],
        why: &Decline,
        fault: FaultKind,
        (read, start): (Stamp, &Start),
        worker: &mut Worker,
    ) {
        let before = self.out.len();
        let context = Context {
            limited: Limited::default(),
            now: start.at,
            worker: worker.index,
            shared: &worker.shared,
            client: &self.client,
        };
        self.dialect.decline(frame, why, &context, &mut self.out);
        let mut reply = Queued {
            fault,
            ..Queued::new(read, start, frame.len())
        };
        reply.is_of(&self.dialect.describe(frame));
        self.answer(reply, start, before, worker);
    }

    /// Accounts for a request that is dropped: it leaves the queue behind the replies before it.
    fn forget(&mut self, frame: &[u8], read: Stamp, start: &Start, worker: &mut Worker) {
        worker.counts.dropped += u64::from(!worker.is_late(read));
        let mut never = Queued {
            fault: FaultKind::Dropped,
            started: false,
            due: start.at.max(self.last_due),
            ..Queued::new(read, start, frame.len())
        };
        never.is_of(&self.dialect.foresee(frame));
        self.enqueue(never, true);
    }

    /// Forgets all requests that are held, since a throttle dropped one before them.
    #[cold]
    fn swallow(&mut self, now: Stamp, worker: &mut Worker) {
        let mut input = mem::take(&mut self.input);
        for held in mem::take(&mut self.held) {
            let bytes = input.split_to(held.frame.len);
            if held.refusal.is_some() {
                self.phase = Phase::AfterReplies;
            } else if !held.frame.empty && !self.dialect.recall(&bytes).empty {
                self.forget(&bytes, held.read, &Start::at_once(now), worker);
            }
        }
        self.held_len = 0;
        self.input = input;
    }

    /// Puts the reply that was written behind the first `before` bytes in its place, due as the rule
    /// says.
    fn answer(&mut self, mut reply: Queued, start: &Start, before: usize, worker: &mut Worker) {
        self.told = None;
        if start.told.is_some() {
            // What comes behind it asks when it has started.
            self.not_before = self.not_before.max(start.at);
        }
        let queue_ns = reply.passage.map_or(0, Passage::total_ns);
        let ready = reply.start.add_nanos(queue_ns + reply.wanted_ns);
        let written = reply.start.add_nanos(reply.toll.reply_wait_ns);
        let unfrozen = ready.max(written).max(self.last_due);
        reply.due = self.freezes.leave(unfrozen);
        let turn = start.turn();
        let is_frozen = start.asked > start.earliest || reply.start > turn;
        if is_frozen || reply.due > unfrozen {
            if reply.fault == FaultKind::None {
                reply.fault = FaultKind::Frozen;
            }
            if !worker.is_late(reply.read) {
                let mut note = |freeze, begin| worker.note_moved(freeze, begin);
                self.freezes
                    .each_around(start.earliest, start.asked, &mut note);
                self.freezes.each_around(turn, reply.start, &mut note);
                self.freezes.each_around(unfrozen, reply.due, &mut note);
            }
        }
        if reply.toll.waited_ns > 0 || written > ready {
            worker.counts.delayed += u64::from(!worker.is_late(reply.read));
        }
        reply.len = self.out.len() - before;
        let start = reply.start;
        self.enqueue(reply, worker.rows.is_some());
        if let Some(lifetime) = &mut self.lifetime
            && lifetime.is_too_much(start, self.out.len())
        {
            self.phase = Phase::Ended(End::Output);
        }
    }

    fn enqueue(&mut self, reply: Queued, own_row: bool) {
        self.last_due = reply.due;
        self.unanswered += reply.count;
        if !own_row
            && self.queue.len() > self.released
            && let Some(last) = self.queue.back_mut()
            && (last.read, last.due, last.wanted_ns) == (reply.read, reply.due, reply.wanted_ns)
            && (last.class, last.fault, last.passage) == (reply.class, reply.fault, None)
            && (last.toll, reply.toll) == (Toll::default(), Toll::default())
        {
            last.len += reply.len;
            last.count += 1;
            return;
        }
        self.queue.push_back(reply);
    }

    /// Answers input that breaks the protocol, where the protocol has an answer, and ends.
    fn refuse(&mut self, refusal: &Refusal, now: Stamp, worker: &mut Worker) {
        let before = self.out.len();
        self.dialect.refuse(refusal, &mut self.out);
        self.phase = Phase::AfterReplies;
        let len = self.out.len() - before;
        if len > 0 {
            let start = Start::at_once(now);
            let reply = Queued {
                protocol: self.dialect.protocol(),
                command: "protocol-error",
                ..Queued::new(now, &start, 0)
            };
            self.answer(reply, &start, before, worker);
        }
    }

    fn resume(&mut self, at: Stamp) {
        self.parked = None;
        self.not_before = self.not_before.max(at);
    }

    /// Takes entries whose bytes are all written off the queue.
    fn retire(&mut self, before: Stamp, after: Stamp, worker: &mut Worker) {
        while self.released > 0
            && let Some(front) = self.queue.front()
            && front.len <= self.partial
        {
            let queued = *front;
            self.partial -= queued.len;
            self.released -= 1;
            self.unanswered -= queued.count;
            self.queue.pop_front();
            self.record(&queued, before, after, queued.len > 0, worker);
        }
    }

    fn record(
        &mut self,
        queued: &Queued,
        before: Stamp,
        after: Stamp,
        answered: bool,
        worker: &mut Worker,
    ) {
        let first = self.sequence;
        self.sequence += queued.count;
        if worker.is_late(queued.read) {
            worker.counts.late += queued.count;
            return;
        }
        if answered {
            let times = Times {
                read: queued.read,
                wanted_ns: queued.wanted_ns,
                queue_ns: queued.passage.map(Passage::total_ns),
                throttle_ns: queued.toll.waited_ns,
                due: queued.due,
                written: before,
            };
            let kind = Kind {
                class: queued.class,
                fault: queued.fault,
            };
            worker.counts.answered += queued.count;
            worker.recorder.record(kind, queued.count, &times);
        } else {
            worker.counts.unanswered += queued.count;
        }
        if let Some(rows) = &mut worker.rows {
            rows.push(ServerRow {
                peer: self.client.peer,
                ordinal: self.client.ordinal,
                connection: self.client.id.number(),
                sequence: first,
                protocol: queued.protocol,
                command: queued.command,
                class: queued.class,
                read: queued.read,
                started: queued.started,
                start: queued.start,
                request_bytes: queued.request_bytes,
                reply_bytes: queued.len as u64,
                throttle_place: queued.toll.place,
                throttle_ns: queued.toll.waited_ns,
                reply_place: queued.toll.reply_place,
                reply_wait_ns: queued.toll.reply_wait_ns,
                drawn_ns: queued.drawn_ns,
                wanted_ns: queued.wanted_ns,
                queue_place: queued.passage.map(|passage| passage.place),
                wait_ns: queued.passage.map_or(0, |passage| passage.wait_ns),
                service_ns: queued.passage.map_or(0, |passage| passage.service_ns),
                due: queued.due,
                written: before,
                written_after: after,
                answered,
                fault: queued.fault,
            });
        }
    }
}

/// Notes what the limits did to a command while it was executed.
#[cold]
fn note_limited(reply: &mut Queued, limited: Limited, worker: &mut Worker) {
    worker.counts.evicted += limited.evicted;
    let counted = u64::from(!worker.is_late(reply.read));
    worker.counts.out_of_memory += counted * limited.out_of_memory;
    worker.counts.blocked += counted * u64::from(limited.blocked);
    if limited.blocked {
        reply.fault = FaultKind::Blocked;
    } else if limited.out_of_memory > 0 {
        reply.fault = FaultKind::OutOfMemory;
    }
}

/// How long a connection of `side` may be silent, and how much may be unsent on it.
fn watched_for(side: Protocol, shared: &Shared) -> (Option<Duration>, Option<OutputLimit>) {
    match side {
        Protocol::Redis => {
            let limits = shared.redis.settings.live().of_connections();
            (limits.idle(), limits.output)
        }
        Protocol::Aerospike => {
            let limits = &shared.config.connections;
            (limits.idle, limits.output)
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
