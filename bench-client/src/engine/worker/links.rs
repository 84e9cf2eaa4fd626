//! Making, losing and watching connections, and the conversations at their beginning.

use std::net::SocketAddr;
use std::ops::Range;

use kvlab_timing::Stamp;

use super::connection::{Conn, Flight, State};
use super::{Action, ConnId, Driver, Group, Stage, Worker, nanos};
use crate::driver::{GroupId, Refusal, Role, Step, Topology};
use crate::engine::RunError;
use crate::random;
use crate::record::{
    Cause, ConnectKind, ConnectRow, ConnectionLoss, ErrorKind, RowKind, SocketEnd,
};
use crate::settings::Address;

impl<D: Driver> Worker<D> {
    /// The socket is connected, from this local address, which had connected `ordinal` times
    /// before, and nothing more is needed to talk.
    pub fn handle_connected(&mut self, now: Stamp, conn: ConnId, local: SocketAddr, ordinal: u32) {
        self.connected(now, conn, local, ordinal);
        self.open_session(now, conn);
    }

    /// The same where a TLS handshake follows; [`Self::handle_secured`] says when it is over.
    pub fn handle_reached(&mut self, now: Stamp, conn: ConnId, local: SocketAddr, ordinal: u32) {
        self.connected(now, conn, local, ordinal);
    }

    /// The connect call of an attempt is about to be made, which may be later than it was asked for:
    /// a shell with many of them makes one after the other.
    pub fn handle_connecting(&mut self, now: Stamp, conn: ConnId) {
        if let Some(place) = self.place(conn)
            && let Some(log) = &mut self.conns[place].log
        {
            log.begun = now;
        }
    }

    /// The TLS handshake of a connection that [`Self::handle_reached`] told of is over.
    pub fn handle_secured(&mut self, now: Stamp, conn: ConnId) {
        let Some(place) = self.place(conn) else {
            return;
        };
        if let Some(log) = &mut self.conns[place].log {
            log.secured = Some(now);
            if let Some(ns) = log.tls_ns() {
                self.recorder.tally.connects.tls.record(ns);
            }
        }
        self.open_session(now, conn);
    }

    fn connected(&mut self, now: Stamp, conn: ConnId, local: SocketAddr, ordinal: u32) {
        let Some(place) = self.place(conn) else {
            return;
        };
        self.advance(now);
        let conn = &mut self.conns[place];
        let State::Connecting { since } = conn.state else {
            return;
        };
        conn.state = State::Securing { since };
        conn.local = local;
        conn.ordinal = ordinal;
        if let Some(log) = &mut conn.log {
            (log.local, log.ordinal, log.connected) = (Some(local), ordinal, Some(now));
            if let Some(ns) = log.tcp_ns() {
                self.recorder.tally.connects.tcp.record(ns);
            }
        }
    }

    /// Begins the conversation.
    fn open_session(&mut self, now: Stamp, conn: ConnId) {
        let Some(place) = self.place(conn) else {
            return;
        };
        self.advance(now);
        let conn = &mut self.conns[place];
        let State::Securing { since } = conn.state else {
            return;
        };
        conn.state = State::Talking { since };
        conn.session = Some(self.driver.open(conn.group, conn.role));
        self.converse(now, place);
        self.dispatch(now);
    }

    /// The socket could not be connected, or the other side ended it; `text` says it in words.
    pub fn handle_closed(&mut self, now: Stamp, conn: ConnId, end: SocketEnd, text: &str) {
        let Some(place) = self.place(conn) else {
            return;
        };
        self.advance(now);
        let conn = &self.conns[place];
        let cause = match conn.first_error {
            // It said why, and nothing else.
            Some(kind)
                if conn.answered == 1 && matches!(end, SocketEnd::Closed | SocketEnd::Reset) =>
            {
                Cause::ErrorLine(kind)
            }
            _ => Cause::of(end, conn.answered > 0),
        };
        self.lose(now, place, Failure::of(cause, text), false);
        self.dispatch(now);
    }

    /// The first reply on a connection: the answer to `sent`, or a line that nobody asked for.
    pub(super) fn first_reply(
        &mut self,
        now: Stamp,
        place: usize,
        sent: Option<Stamp>,
        error: Option<ErrorKind>,
    ) {
        let conn = &mut self.conns[place];
        conn.first_error = error;
        if let Some(log) = &mut conn.log
            && log.first_reply.is_none()
        {
            log.first_sent = sent;
            log.first_reply = Some(now);
            self.recorder.first_reply(log);
        }
    }

    /// Makes and ends connections as the driver wants them.
    pub(super) fn apply_topology(&mut self, now: Stamp) {
        let mut changed = false;
        while let Some(change) = self.driver.poll_topology() {
            changed = true;
            match change {
                Topology::Tend { group, address } => {
                    let place = self.add(group, Role::Tend, address);
                    self.connect(now, place, now);
                }
                Topology::Pool { group, address } => {
                    self.add_pool(now, group, address);
                }
                Topology::Remove { group } => self.remove(now, group),
            }
        }
        if changed {
            self.count_tokens();
            self.reroute(now);
        }
    }

    /// How many requests are in play at most, in a closed loop.
    pub(super) fn count_tokens(&mut self) {
        let depth = self.config.depth;
        self.config.tokens = if D::SLOTS_OF_EACH_NODE {
            let loads = usize::try_from(self.loads).unwrap_or(usize::MAX);
            let drawn = LOOK_AHEAD.saturating_mul(self.nodes());
            depth.saturating_mul(loads).saturating_add(drawn)
        } else {
            depth.saturating_mul(super::usize_of(self.lanes))
        };
    }

    /// A redirection or a loss says that the cluster is not as it was: it is looked at soon.
    #[cold]
    pub(super) fn hasten_tend(&mut self, now: Stamp) {
        let Some(soon) = self.driver.tend_soon() else {
            return;
        };
        if now < self.tend_wanted {
            return;
        }
        self.tend_wanted = now.add_nanos(nanos(soon));
        for conn in &mut self.conns {
            if let State::Ready { tend: Some(tend) } = &mut conn.state {
                *tend = self.tend_wanted.min(*tend);
            }
        }
        self.watch(self.tend_wanted);
    }

    /// Plans the load connections of a group. Those of all threads are begun in turn, at the pace of
    /// the ramp-up; the pool of a further node follows the one before.
    fn add_pool(&mut self, now: Stamp, group: GroupId, address: Address) {
        self.begin_lanes(now, (group, address), 0..self.lanes);
        self.groups[usize::from(group.0)].pool = Some(address);
    }

    /// Adds the load connections of a step to all groups: those from this one on.
    pub(super) fn add_lanes(&mut self, now: Stamp, first: u32) {
        for number in 0..self.groups.len() {
            let (Ok(group), Some(address)) = (u16::try_from(number), self.groups[number].pool)
            else {
                continue;
            };
            self.begin_lanes(now, (GroupId(group), address), first..self.lanes);
        }
    }

    fn begin_lanes(&mut self, now: Stamp, to: (GroupId, Address), lanes: Range<u32>) {
        let (group, address) = to;
        let start = self.ramp_end.max(now);
        let threads = u64::from(self.share.threads);
        for lane in lanes.clone() {
            let place = self.add(group, Role::Load, address);
            self.conns[place].lane = super::usize_of(lane);
            self.conns[place].quota = self.config.quota(self.share, lane);
            self.conns[place].number = self.share.first_connection.saturating_add(lane);
            self.conns[place].is_late = lanes.start > 0;
            self.loads += 1;
            // The first threads have one more where it does not come out even, so these numbers
            // are all different and have no gap.
            let number = u64::from(lane - lanes.start) * threads + u64::from(self.share.thread);
            let wanted = self.config.connects.wanted(start, number, self.config.seed);
            if wanted <= now {
                self.connect(now, place, wanted);
            } else {
                self.conns[place].state = State::Down {
                    until: Some(wanted),
                };
                self.plan(wanted, place);
            }
        }
        if self.config.connects.rate.is_some() {
            let all = if lanes == (0..self.share.connections) {
                self.share.all_connections
            } else {
                let more = lanes.end.saturating_sub(lanes.start);
                more.saturating_mul(self.share.threads)
            };
            let ramp = self.config.connects.ramp(all);
            self.ramp_end = start.add_nanos(nanos(ramp));
        }
    }

    /// Plans something for a connection.
    fn plan(&mut self, at: Stamp, place: usize) {
        self.timetable.add(at, self.conns[place].id);
        self.next_plan = self.next_plan.min(at);
    }

    /// Does what was planned for this moment: takes a step, sends again, connects, or ends a
    /// lifetime.
    pub(super) fn follow_timetable(&mut self, now: Stamp) {
        self.take_steps(now);
        self.release_delayed(now);
        while let Some((at, conn)) = self.timetable.take(now) {
            let Some(place) = self.place(conn) else {
                continue;
            };
            match self.conns[place].state {
                State::Down { until: Some(until) } if until == at => {
                    if self.closing {
                        self.conns[place].state = State::Down { until: None };
                    } else {
                        self.connect(now, place, at);
                    }
                }
                State::Ready { .. } if !self.closing => {
                    self.withdraw(place);
                    let conn = &mut self.conns[place];
                    conn.left = 0;
                    if conn.ring.is_empty() {
                        self.renew(now, place);
                    }
                }
                _ => {}
            }
        }
        let planned = self.timetable.next().min(self.next_step);
        self.next_plan = planned.min(self.next_release());
    }

    /// Closes a connection that has nothing in flight, and makes it anew.
    pub(super) fn renew(&mut self, now: Stamp, place: usize) {
        self.drop_link(now, place, true, false);
        self.end_log(now, place, Cause::Retired, None);
        if self.closing {
            return;
        }
        self.connect(now, place, now);
    }

    fn add(&mut self, group: GroupId, role: Role, address: Address) -> usize {
        let number = usize::from(group.0);
        if self.groups.len() <= number {
            self.groups.resize_with(number + 1, Group::default);
        }
        let depth = self.config.depth;
        match self.vacant.pop() {
            Some(place) => {
                let id = self.conns[place].id;
                self.conns[place] = Conn::new(id.place, group, role, address, depth);
                self.conns[place].id = id;
                place
            }
            None => {
                // Bounded by the nodes of a cluster times the connections of a thread.
                let place = self.conns.len();
                let number = u32::try_from(place).unwrap_or(u32::MAX);
                self.conns
                    .push(Conn::new(number, group, role, address, depth));
                place
            }
        }
    }

    fn remove(&mut self, now: Stamp, group: GroupId) {
        for place in 0..self.conns.len() {
            if self.conns[place].group == group && !self.vacant.contains(&place) {
                self.drop_link(now, place, true, false);
                self.end_log(now, place, Cause::NodeGone, None);
                self.loads -= u64::from(self.conns[place].role == Role::Load);
                self.conns[place].state = State::Down { until: None };
                self.vacant.push(place);
            }
        }
        if let Some(group) = self.groups.get_mut(usize::from(group.0)) {
            group.pool = None;
            self.homeless.extend(group.waiting.drain(..));
        }
    }

    /// Begins an attempt that was wanted at that moment.
    fn connect(&mut self, now: Stamp, place: usize, wanted: Stamp) {
        let thread = self.share.thread;
        let conn = &mut self.conns[place];
        let kind = match conn.role {
            Role::Load => ConnectKind::Load,
            Role::Tend => ConnectKind::Tend,
        };
        conn.log = Some(Box::new(ConnectRow {
            thread,
            place: conn.id.place,
            attempt: conn.failures,
            wanted,
            begun: now,
            ..ConnectRow::begin(kind, conn.address)
        }));
        conn.state = State::Connecting { since: now };
        self.actions.push_back(Action::Connect {
            conn: conn.id,
            address: conn.address,
        });
        self.watch(now.add_nanos(self.config.connect_ns));
    }

    /// A reply of the conversation came.
    pub(super) fn converse_on(&mut self, now: Stamp, place: usize, frame: &[u8]) {
        let conn = &mut self.conns[place];
        let Some(session) = conn.session.as_mut() else {
            return;
        };
        match self.driver.take_reply(session, frame) {
            Ok(()) => {
                conn.awaited = conn.awaited.saturating_sub(1);
                if conn.awaited == 0 {
                    self.converse(now, place);
                }
            }
            Err(refusal) => self.refused(now, place, &refusal),
        }
    }

    /// Takes the next step of the conversation.
    fn converse(&mut self, now: Stamp, place: usize) {
        let conn = &mut self.conns[place];
        let Some(session) = conn.session.as_mut() else {
            return;
        };
        let before = conn.out.len();
        let step = self.driver.converse(session, &mut conn.out);
        match step {
            Step::Sent { requests } => {
                let kind = match conn.role {
                    Role::Load => RowKind::Handshake,
                    Role::Tend => RowKind::Tend,
                };
                conn.awaited = requests;
                conn.talked = true;
                // The driver does not tell the requests apart: the last one stands for all bytes.
                let len = conn.out.len() - before;
                for left in (0..requests).rev() {
                    conn.push(Flight::control(kind, if left == 0 { len } else { 0 }));
                }
                self.flush(place);
            }
            Step::Done => self.conversation_done(now, place),
        }
    }

    fn conversation_done(&mut self, now: Stamp, place: usize) {
        let conn = &mut self.conns[place];
        if let (State::Talking { .. }, Some(log)) = (conn.state, &mut conn.log) {
            log.logged_in = Some(now);
            self.recorder.tally.connects.set_up(log, conn.talked);
        }
        (conn.spared, conn.strikes) = (0, 0);
        let role = conn.role;
        match role {
            Role::Load => {
                if !conn.is_ready() {
                    // What was up when the load began is counted already.
                    let came = std::mem::take(&mut conn.is_late);
                    self.connections_at_start += u64::from(came);
                    self.ready_loads += 1;
                    self.groups[usize::from(conn.group.0)].ready += 1;
                }
                conn.state = State::Ready { tend: None };
                conn.left = self.config.connects.renew.requests();
                self.plan_end_of_life(now, place);
                self.offer(now, place);
            }
            Role::Tend => {
                conn.failures = 0;
                let tend = self
                    .driver
                    .tend_interval()
                    .map(|wait| now.add_nanos(nanos(wait)));
                conn.state = State::Ready { tend };
                if let Some(tend) = tend {
                    self.watch(tend);
                }
            }
        }
        self.apply_topology(now);
        if D::SLOTS_OF_EACH_NODE && role == Role::Tend && self.waiting > 0 {
            self.reroute_stranded(now);
        }
        self.check_setup(now);
    }

    fn plan_end_of_life(&mut self, now: Stamp, place: usize) {
        let bits = self.bits(place);
        if let Some(ns) = self.config.connects.renew.lifetime_ns(bits) {
            self.plan(now.add_nanos(ns), place);
        }
    }

    /// Random bits that belong to this socket alone.
    fn bits(&self, place: usize) -> u64 {
        let conn = self.conns[place].id;
        let thread = u64::from(self.share.thread) << 48;
        let socket = u64::from(conn.place) << 32 | u64::from(conn.epoch);
        random::mix(self.config.seed ^ random::mix(thread ^ socket))
    }

    /// The server said no. While setting up that ends the run, if it was about the login; any other
    /// refusal may be a limit, so that it does where nobody is let in.
    fn refused(&mut self, now: Stamp, place: usize, refusal: &Refusal) {
        let address = self.conns[place].address;
        if matches!(self.stage, Stage::Setup { .. }) {
            let text = refusal.text.clone();
            if refusal.login {
                self.failure = Some(RunError::LoginRefused { address, text });
                self.finish(now);
                return;
            }
            self.refusal = Some((address, text));
        }
        let kind = ErrorKind::first_word(refusal.text.as_bytes());
        let failure = Failure {
            cause: Cause::ErrorLine(kind),
            text: &refusal.text,
            words: Some(&refusal.text),
        };
        self.lose(now, place, failure, true);
    }

    /// Ends a connection that failed, and plans the next attempt. `close` says that the shell
    /// still has its socket.
    pub(super) fn lose(&mut self, now: Stamp, place: usize, failure: Failure<'_>, close: bool) {
        let conn = &self.conns[place];
        let (role, group, address) = (conn.role, conn.group, conn.address);
        if matches!(conn.state, State::Ready { .. }) {
            self.recorder.tally.connects.lost += 1;
        } else {
            self.recorder.tally.connects.failed += 1;
        }
        self.drop_link(now, place, close, false);
        self.end_log(now, place, failure.cause, failure.words);
        self.last_error = Some((address, failure.text.to_owned()));
        let bits = self.bits(place);
        let running = self.stage == Stage::Running;
        let conn = &mut self.conns[place];
        conn.failures = conn.failures.saturating_add(1);
        conn.strikes += match failure.cause {
            // A time-out was waited for, and what the server says it means.
            Cause::TimedOut | Cause::ErrorLine(_) => STRIKES,
            _ => 1,
        };
        let counted = conn.failures.saturating_sub(conn.spared);
        let again = counted <= self.config.backoff.attempts || role == Role::Tend || !running;
        let wait_ns = self.config.backoff.wait_ns(conn.failures, bits);
        let until = (again && !self.closing).then(|| now.add_nanos(wait_ns));
        conn.state = State::Down { until };
        if let Some(until) = until {
            self.plan(until, place);
        } else if self.config.separate {
            self.share_quota(now, place);
        }
        if role == Role::Tend {
            self.driver.tend_failed(group);
            self.apply_topology(now);
        } else {
            self.hasten_tend(now);
        }
        self.check_setup(now);
        self.check_loss(now, address, failure.text);
    }

    /// What a connection that was given up still had to do is up to the others: the number of
    /// requests asked for is that of the run.
    fn share_quota(&mut self, now: Stamp, place: usize) {
        if self.conns[place].quota == 0 {
            return;
        }
        for other in 0..self.conns.len() {
            self.conns[other].quota = u64::MAX;
            self.offer(now, other);
        }
    }

    /// Files what is known of a connection that ended.
    pub(super) fn end_log(&mut self, now: Stamp, place: usize, cause: Cause, words: Option<&str>) {
        if let Some(mut log) = self.conns[place].log.take() {
            log.ended = Some(now);
            log.cause = Some(cause);
            self.recorder.disconnected(*log, words);
        }
    }

    /// Forgets the socket: its requests end, its id becomes void.
    pub(super) fn drop_link(&mut self, now: Stamp, place: usize, close: bool, cut_off: bool) {
        self.withdraw(place);
        let conn = &self.conns[place];
        if conn.role == Role::Load && conn.is_ready() {
            self.ready_loads -= 1;
            self.groups[usize::from(conn.group.0)].ready -= 1;
        }
        if close && !matches!(conn.state, State::Down { .. }) {
            self.actions.push_back(Action::Close { conn: conn.id });
        }
        // Out of the ready state, so that nothing is put on it again.
        self.conns[place].state = State::Down { until: None };
        self.end_flights(now, place, cut_off);
        self.conns[place].reset();
    }

    /// Without any connection left that could come back, the load ends here.
    fn check_loss(&mut self, now: Stamp, address: Address, error: &str) {
        if self.stage != Stage::Running || self.conns.iter().any(Conn::has_prospects) {
            return;
        }
        self.loss = Some(ConnectionLoss {
            address,
            at: now,
            error: error.to_owned(),
        });
        self.finish(now);
    }

    /// Where each node has keys of its own, a load that cannot reach one of them ends: it would wait
    /// for that node with every request that it draws.
    pub(super) fn lose_part(&mut self, now: Stamp, address: Address) {
        if self.stage != Stage::Running {
            return;
        }
        let error = match &self.last_error {
            Some((_, error)) => format!("nobody answers for its part of the keys ({error})"),
            None => "nobody answers for its part of the keys".to_owned(),
        };
        self.loss = Some(ConnectionLoss {
            address,
            at: now,
            error,
        });
        self.finish(now);
    }

    /// Looks through all connections for what is due: time-outs, reconnects, tends.
    pub(super) fn check_connections(&mut self, now: Stamp) {
        self.next_check = Stamp::MAX;
        let (timeout_ns, connect_ns) = (self.config.timeout_ns, self.config.connect_ns);
        for place in 0..self.conns.len() {
            let Some(deadline) = self.conns[place].deadline(timeout_ns, connect_ns) else {
                continue;
            };
            if deadline > now {
                self.watch(deadline);
                continue;
            }
            match self.conns[place].state {
                State::Down { .. } => {}
                State::Ready { tend: Some(tend) } if tend <= now => {
                    self.conns[place].state = State::Ready { tend: None };
                    self.converse(now, place);
                    if let Some(next) = self.conns[place].deadline(timeout_ns, connect_ns) {
                        self.watch(next);
                    }
                }
                State::Securing { .. } => {
                    self.lose(now, place, Failure::of(Cause::TimedOut, STALLED), true);
                }
                State::Connecting { .. } | State::Talking { .. } | State::Ready { .. } => {
                    self.lose(now, place, Failure::of(Cause::TimedOut, "timed out"), true);
                }
            }
        }
        if self.waiting > 0 {
            self.expire_waiting(now);
            if self.waiting > 0 {
                self.watch(now.add_nanos(timeout_ns));
            }
        }
    }
}

/// How a connection failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure<'a> {
    pub(super) cause: Cause,
    /// For people.
    pub(super) text: &'a str,
    /// The server's own words, where it said some.
    pub(super) words: Option<&'a str>,
}

impl<'a> Failure<'a> {
    /// One without words of the server.
    pub(super) fn of(cause: Cause, text: &'a str) -> Self {
        Self {
            cause,
            text,
            words: None,
        }
    }
}

impl<S> Conn<S> {
    /// Whether it has failed so often that set-up need not wait for it; `None` while it is untried.
    pub(super) fn is_hopeless(&self) -> Option<bool> {
        match self.state {
            State::Down { until: None } => Some(true),
            State::Down { .. } if self.strikes == 0 => None,
            _ => Some(self.strikes >= STRIKES),
        }
    }

    /// Whether it carries load, or may carry it again.
    pub(super) fn has_prospects(&self) -> bool {
        self.role == Role::Load && self.state != State::Down { until: None }
    }
}

/// Attempts of a place that have to fail before a server that never let anybody in is given up.
pub(super) const STRIKES: u32 = 3;

/// Requests of a closed loop that are drawn ahead for each node, so that a node whose keys did not
/// come up for a while has work all the same.
const LOOK_AHEAD: usize = 32;

/// What a RESP server that speaks no TLS looks like: it waits for the rest of a command.
const STALLED: &str = "timed out in the TLS handshake; the server may speak no TLS on this port";
