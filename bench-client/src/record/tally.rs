//! Counts and latencies over some stretch of time, of one thread or of all.

use std::collections::BTreeMap;

use kvlab_timing::Stamp;

use super::{Cause, CauseCounts, ConnectRow, ErrorKind, Latency, OpClass, Outcome, Outcomes};

/// What happened in some stretch of time.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By class, in the order of [`crate::settings::Target::classes`].
    pub classes: Vec<ClassTally>,
    /// Send minus intended start of each request sent; empty in a closed loop. What a request
    /// waited for a free slot is part of it.
    pub lag: Latency,
    /// Send minus the earliest moment at which the request was due *and* a slot was free: the
    /// client's own delay. Empty in a closed loop.
    pub lateness: Latency,
    /// Just after the read minus the kernel's receive stamp of each hit and miss that has one: how
    /// long a reply lay in the socket, which is the client's own share of its latency.
    pub read_delay: Latency,
    /// Kernel stamps that lay before the send or after the read by more than their conversion can
    /// be off ([`STAMP_TOLERANCE_NS`]), as after a step of the calendar clock. They count as the
    /// nearer of the two moments.
    pub stamps_astray: u64,
    /// How long the turns of the workers' loops took, from one look at the sockets to the next, the
    /// time asleep left out. Empty under virtual time.
    pub turns: Latency,
    /// Requests written to sockets, retries included, handshake and tend not.
    pub sent: u64,
    /// Bytes written, everything included.
    pub bytes_out: u64,
    /// Bytes read, everything included.
    pub bytes_in: u64,
    /// Handshake and tend requests answered.
    pub control: u64,
    /// Replies nobody asked for: pushes and the like.
    pub pushes: u64,
    /// What happened to connections.
    pub connects: ConnectTally,
}

/// Counts and latencies of one class.
#[derive(Clone, Debug, Default)]
pub struct ClassTally {
    /// How the requests ended.
    pub outcomes: Outcomes,
    /// Error replies by kind.
    pub errors: ErrorCounts,
    /// Keys found by requests on several keys, where they are counted.
    pub keys_found: u64,
    /// Keys that such requests did not find.
    pub keys_missing: u64,
    /// Attempts that were followed by another.
    pub retries: u64,
    /// `MOVED` replies of a cluster; the request went on to the node they name.
    pub moved: u64,
    /// `ASK` replies, in the same way.
    pub asked: u64,
    /// Bytes of the requests that were answered, by whatever reply.
    pub bytes_out: u64,
    /// Bytes of their replies.
    pub bytes_in: u64,
    /// Reply minus send of hits and misses.
    pub service: Latency,
    /// Reply minus intended start of hits and misses; empty in a closed loop.
    pub response: Latency,
    /// Kernel's receive stamp minus send of those hits and misses that have one.
    pub network: Latency,
    /// Reply minus send of error replies.
    pub failed: Latency,
}

/// What happened to connections.
#[derive(Clone, Debug, Default)]
pub struct ConnectTally {
    /// Connections established and through their handshake.
    pub established: u64,
    /// Connection attempts refused, unreachable or timed out, and handshakes that failed.
    pub failed: u64,
    /// Established connections that ended before the run did.
    pub lost: u64,
    /// From the start of connecting to the end of the handshake.
    pub setup: Latency,
    /// From the start of connecting to the connected socket.
    pub tcp: Latency,
    /// The TLS handshake, where there is one.
    pub tls: Latency,
    /// The conversation at the beginning (login, version, database, probe), where there is one.
    pub login: Latency,
    /// From the first request of a load connection to the first reply: where a server that delays
    /// new connections shows it.
    pub first_reply: Latency,
    /// Attempts and connections that ended, by cause.
    pub causes: CauseCounts,
    /// Words with which servers turned connections away, at most [`MAX_CONNECT_TEXTS`] of them.
    pub texts: BTreeMap<String, u64>,
    /// Bytes that nobody had asked for and that were no push.
    pub unsolicited_bytes: u64,
}

/// How far a kernel stamp may be off by its conversion from the calendar clock.
pub const STAMP_TOLERANCE_NS: u64 = 2_000;

/// Words of servers kept apart; further ones are counted as `other words`.
pub const MAX_CONNECT_TEXTS: usize = 16;

/// Error replies by kind.
pub type ErrorCounts = BTreeMap<ErrorKind, u64>;

/// Kinds of errors counted apart in one class; further ones are counted as `other kinds`.
pub const MAX_ERROR_KINDS: usize = 64;

impl Tally {
    /// An empty tally for this many classes.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self {
            classes: vec![ClassTally::default(); classes],
            ..Self::default()
        }
    }

    /// Adds everything of another.
    pub fn merge(&mut self, other: &Self) {
        if self.classes.len() < other.classes.len() {
            self.classes
                .resize_with(other.classes.len(), ClassTally::default);
        }
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.merge(theirs);
        }
        self.lag.merge(&other.lag);
        self.lateness.merge(&other.lateness);
        self.read_delay.merge(&other.read_delay);
        self.turns.merge(&other.turns);
        self.stamps_astray += other.stamps_astray;
        self.sent += other.sent;
        self.bytes_out += other.bytes_out;
        self.bytes_in += other.bytes_in;
        self.control += other.control;
        self.pushes += other.pushes;
        self.connects.merge(&other.connects);
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        for class in &mut self.classes {
            class.clear();
        }
        self.lag.clear();
        self.lateness.clear();
        self.read_delay.clear();
        self.turns.clear();
        self.stamps_astray = 0;
        self.sent = 0;
        self.bytes_out = 0;
        self.bytes_in = 0;
        self.control = 0;
        self.pushes = 0;
        self.connects.clear();
    }

    /// Outcomes of all classes together.
    #[must_use]
    pub fn outcomes(&self) -> Outcomes {
        let mut all = Outcomes::default();
        for class in &self.classes {
            all += class.outcomes;
        }
        all
    }

    /// Error replies of all classes together.
    #[must_use]
    pub fn errors(&self) -> ErrorCounts {
        let mut all = ErrorCounts::new();
        for (kind, count) in self.classes.iter().flat_map(|class| &class.errors) {
            *all.entry(*kind).or_default() += count;
        }
        all
    }

    /// Service time of all classes together.
    #[must_use]
    pub fn service(&self) -> Latency {
        self.together(|class| &class.service)
    }

    /// Response time of all classes together; empty in a closed loop.
    #[must_use]
    pub fn response(&self) -> Latency {
        self.together(|class| &class.response)
    }

    /// Network latency of all classes together; empty without kernel stamps.
    #[must_use]
    pub fn network(&self) -> Latency {
        self.together(|class| &class.network)
    }

    /// The latency a reader means by default: response time in an open loop, else service time.
    #[must_use]
    pub fn latency(&self) -> Latency {
        let response = self.response();
        if response.is_empty() {
            self.service()
        } else {
            response
        }
    }

    /// Samples above one hour in any latency of hits and misses.
    #[must_use]
    pub fn clamped(&self) -> u64 {
        self.classes
            .iter()
            .map(|class| class.service.clamped() + class.response.clamped())
            .sum()
    }

    fn together(&self, pick: impl Fn(&ClassTally) -> &Latency) -> Latency {
        let mut all = Latency::default();
        for class in &self.classes {
            all.merge(pick(class));
        }
        all
    }

    /// Records the kernel stamp of a reply, moved between the send and the read.
    #[inline]
    pub(crate) fn stamped(
        &mut self,
        class: OpClass,
        kernel: Stamp,
        (sent, received): (Stamp, Stamp),
    ) {
        let inside = kernel.min(received).max(sent);
        let moved = inside.since(kernel).unsigned_abs();
        self.stamps_astray += u64::from(moved > STAMP_TOLERANCE_NS);
        self.read_delay.record(received.saturating_since(inside));
        if let Some(class) = self.class_mut(class) {
            class.network.record(inside.saturating_since(sent));
        }
    }

    /// The tally of a class; one that is not in the mix has none.
    pub(crate) fn class_mut(&mut self, class: OpClass) -> Option<&mut ClassTally> {
        self.classes.get_mut(class.index())
    }
}

impl ClassTally {
    /// Counts how a request ended, with the kind of its error.
    pub(crate) fn count(&mut self, outcome: Outcome) {
        self.outcomes.count(outcome);
        if let Outcome::Error(kind) = outcome {
            self.count_error(kind);
        }
    }

    fn count_error(&mut self, kind: ErrorKind) {
        let full = self.errors.len() >= MAX_ERROR_KINDS && !self.errors.contains_key(&kind);
        let kind = if full {
            ErrorKind::new(b"other kinds")
        } else {
            kind
        };
        *self.errors.entry(kind).or_default() += 1;
    }

    fn merge(&mut self, other: &Self) {
        self.outcomes += other.outcomes;
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
        self.keys_found += other.keys_found;
        self.keys_missing += other.keys_missing;
        self.retries += other.retries;
        self.moved += other.moved;
        self.asked += other.asked;
        self.bytes_out += other.bytes_out;
        self.bytes_in += other.bytes_in;
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.network.merge(&other.network);
        self.failed.merge(&other.failed);
    }

    fn clear(&mut self) {
        self.outcomes = Outcomes::default();
        self.errors.clear();
        (self.keys_found, self.keys_missing) = (0, 0);
        self.retries = 0;
        (self.moved, self.asked) = (0, 0);
        self.bytes_out = 0;
        self.bytes_in = 0;
        self.service.clear();
        self.response.clear();
        self.network.clear();
        self.failed.clear();
    }
}

impl ConnectTally {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.established += other.established;
        self.failed += other.failed;
        self.lost += other.lost;
        self.setup.merge(&other.setup);
        self.tcp.merge(&other.tcp);
        self.tls.merge(&other.tls);
        self.login.merge(&other.login);
        self.first_reply.merge(&other.first_reply);
        self.causes += other.causes;
        for (text, count) in &other.texts {
            *self.text_mut(text) += count;
        }
        self.unsolicited_bytes += other.unsolicited_bytes;
    }

    /// Counts the end of an attempt or connection, with the server's words where it said some.
    pub(crate) fn ended(&mut self, cause: Cause, words: Option<&str>) {
        self.causes.count(cause);
        if let Some(words) = words {
            *self.text_mut(words) += 1;
        }
    }

    /// Records how long the steps to a usable connection took; `talked` says whether there was a
    /// conversation.
    pub(crate) fn set_up(&mut self, row: &ConnectRow, talked: bool) {
        self.established += 1;
        let login = row.login_ns().filter(|_| talked);
        for (latency, took) in [(&mut self.setup, row.setup_ns()), (&mut self.login, login)] {
            if let Some(ns) = took {
                latency.record(ns);
            }
        }
    }

    fn text_mut(&mut self, text: &str) -> &mut u64 {
        let full = self.texts.len() >= MAX_CONNECT_TEXTS && !self.texts.contains_key(text);
        let text = if full { "other words" } else { text };
        self.texts.entry(text.to_owned()).or_default()
    }

    fn clear(&mut self) {
        self.established = 0;
        self.failed = 0;
        self.lost = 0;
        self.setup.clear();
        self.tcp.clear();
        self.tls.clear();
        self.login.clear();
        self.first_reply.clear();
        self.causes = CauseCounts::default();
        self.texts.clear();
        self.unsolicited_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_stamp_parts_the_service_time_in_two() {
        let stamp = Stamp::from_nanos;
        let mut tally = Tally::new(1);
        tally.stamped(OpClass(0), stamp(1_900), (stamp(1_000), stamp(2_000)));
        assert_eq!(tally.classes[0].network.sum_ns(), 900);
        assert_eq!(tally.read_delay.sum_ns(), 100);
        assert_eq!(tally.stamps_astray, 0);
    }

    #[test]
    fn a_stamp_outside_of_send_and_read_is_moved_and_counted_beyond_its_tolerance() {
        let stamp = Stamp::from_nanos;
        let (sent, received) = (10_000, 20_000);
        // Kernel stamp, network latency, read delay, counted.
        for (kernel, network, delay, astray) in [
            (sent - STAMP_TOLERANCE_NS, 0, 10_000, 0),
            (sent - STAMP_TOLERANCE_NS - 1, 0, 10_000, 1),
            (received + STAMP_TOLERANCE_NS, 10_000, 0, 0),
            (received + STAMP_TOLERANCE_NS + 1, 10_000, 0, 1),
        ] {
            let mut tally = Tally::new(1);
            tally.stamped(OpClass(0), stamp(kernel), (stamp(sent), stamp(received)));
            let found = (tally.classes[0].network.sum_ns(), tally.read_delay.sum_ns());
            assert_eq!(found, (network, delay), "{kernel}");
            assert_eq!(tally.stamps_astray, astray, "{kernel}");
        }
    }
}
