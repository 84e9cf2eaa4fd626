//! The server's own record of what it did: the truth a client's numbers are judged by.
//!
//! A request is stamped when the read that completed it returned (`read`), when its reply was due
//! (`due`), just before the write call that handed over its last byte (`written`) and just after
//! that call (`written_after`). Every stamp is in nanoseconds of the one monotonic clock that a
//! client on the same machine reads too.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hdrhistogram::Histogram;
use kvlab_timing::Stamp;

use crate::exchange::{Class, Protocol};

/// One request as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    /// The client's address.
    pub peer: SocketAddr,
    /// How many times this address had been accepted before on the same port.
    pub ordinal: u32,
    /// Number of the connection in the order of acceptance on the whole server, from 0.
    pub connection: u64,
    /// Number of the request on its connection, from 0, handshake included.
    pub sequence: u64,
    /// The protocol of the connection.
    pub protocol: Protocol,
    /// Command or operation name.
    pub command: &'static str,
    /// What kind of work it was.
    pub class: Class,
    /// When the request was complete in the server's hands.
    pub read: Stamp,
    /// Whether it was started; a request whose connection ended before has no delay, and `start` and
    /// `due` are the moment of that end.
    pub started: bool,
    /// When it was executed.
    pub start: Stamp,
    /// The delay that its law gave, in nanoseconds, before any change over time.
    pub drawn_ns: u64,
    /// The delay that was wanted for it, in nanoseconds.
    pub wanted_ns: u64,
    /// Its place in the order in which requests came to the queue, from 0; `None` without a queue and
    /// for requests that pass none.
    pub queue_place: Option<u64>,
    /// What it waited for a server of the queue, in nanoseconds; 0 without a queue.
    pub wait_ns: u64,
    /// What a server of the queue took for it, in nanoseconds; 0 without a queue.
    pub service_ns: u64,
    /// When its reply was due.
    pub due: Stamp,
    /// Just before the write call that handed over the last byte of the reply.
    pub written: Stamp,
    /// Just after that call.
    pub written_after: Stamp,
    /// Whether a reply was handed over; false when it has none by design, or the connection ended.
    pub answered: bool,
    /// What happened to it beside its delay.
    pub fault: FaultKind,
}

/// What happened to a request beside its delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum FaultKind {
    /// Nothing.
    #[default]
    None,
    /// A freeze moved its start or the moment its reply was due.
    Frozen,
    /// The queue was full: it was answered with an error and not executed.
    Refused,
    /// Its connection was cut before its reply was due.
    Cut,
}

/// Distributions of what was wanted and what was done, in nanoseconds.
#[derive(Debug, Clone)]
pub struct Stats {
    /// The delay that was wanted, per request.
    pub wanted: Histogram<u64>,
    /// `written - read`: the true sojourn.
    pub sojourn: Histogram<u64>,
    /// `written - due`: the injection error.
    pub injection_error: Histogram<u64>,
    /// `(due - read) - (wanted and queue)`: time spent waiting for order or for the end of a freeze.
    pub order_delay: Histogram<u64>,
    /// What requests spent in the queue, waiting and being served; empty without a queue.
    pub queue: Histogram<u64>,
    /// Requests executed, by command.
    pub calls: BTreeMap<(Protocol, &'static str), u64>,
    /// Requests that a full queue refused.
    pub refused: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that a cut ended in an orderly way.
    pub closed: u64,
    /// Connections that a cut reset.
    pub reset: u64,
    /// Bytes read from and written to clients.
    pub bytes_in: u64,
    /// Bytes written to clients.
    pub bytes_out: u64,
}

/// The longest delay a histogram represents: one hour; longer ones are counted as one hour.
pub const LONGEST_NS: u64 = 3_600_000_000_000;

impl Default for Stats {
    fn default() -> Self {
        Self {
            wanted: histogram(),
            sojourn: histogram(),
            injection_error: histogram(),
            order_delay: histogram(),
            queue: histogram(),
            calls: BTreeMap::new(),
            refused: 0,
            accepted: 0,
            closed: 0,
            reset: 0,
            bytes_in: 0,
            bytes_out: 0,
        }
    }
}

fn histogram() -> Histogram<u64> {
    // The bounds are legal constants, so this cannot fail.
    Histogram::new_with_bounds(1, LONGEST_NS, 3).unwrap_or_else(|_| unreachable!())
}

impl Stats {
    /// Records `count` requests that share their stamps.
    pub(crate) fn record(&mut self, count: u64, times: &Times) {
        self.wanted.saturating_record_n(times.wanted_ns, count);
        self.sojourn
            .saturating_record_n(times.written.saturating_since(times.read), count);
        self.injection_error
            .saturating_record_n(times.written.saturating_since(times.due), count);
        let stayed = times.due.saturating_since(times.read);
        self.order_delay.saturating_record_n(
            stayed.saturating_sub(times.wanted_ns + times.queue_ns),
            count,
        );
        if times.in_queue {
            self.queue.saturating_record_n(times.queue_ns, count);
        }
    }

    /// Adds what another worker recorded.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.wanted, &other.wanted),
            (&mut self.sojourn, &other.sojourn),
            (&mut self.injection_error, &other.injection_error),
            (&mut self.order_delay, &other.order_delay),
            (&mut self.queue, &other.queue),
        ] {
            // Same bounds on both sides: adding cannot fail.
            let _ = mine.add(theirs);
        }
        for (name, count) in &other.calls {
            *self.calls.entry(*name).or_default() += count;
        }
        self.refused += other.refused;
        self.accepted += other.accepted;
        self.closed += other.closed;
        self.reset += other.reset;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

/// The moments of a request that are being turned into statistics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) read: Stamp,
    pub(crate) wanted_ns: u64,
    /// What it spent in the queue, if it passed one.
    pub(crate) queue_ns: u64,
    pub(crate) in_queue: bool,
    pub(crate) due: Stamp,
    pub(crate) written: Stamp,
}

/// Everything a server recorded: distributions always, rows when they were asked for.
#[derive(Debug, Clone, Default)]
pub struct Truth {
    /// Distributions and counters of all workers together.
    pub stats: Stats,
    /// Every request, in no particular order; empty unless rows were asked for.
    pub rows: Vec<ServerRow>,
}

impl Truth {
    /// Adds what another worker recorded.
    pub fn merge(&mut self, other: Self) {
        self.stats.merge(&other.stats);
        self.rows.extend(other.rows);
    }
}
