//! One connection inside a worker: its state, its output and the requests in flight on it.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use bytes::BytesMut;
use kvlab_timing::Stamp;

use crate::driver::{GroupId, Plan, Role};
use crate::record::{ClientRow, ConnectRow, ErrorKind, OpClass, Outcome, RowKind};
use crate::settings::Address;

/// A connection of a worker. A reconnect keeps the place and counts the epoch up, so what a shell
/// says late about an old socket is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    /// Place among the worker's connections.
    pub place: u32,
    /// How many sockets this place had before.
    pub epoch: u32,
}

/// A place for one connection.
pub(super) struct Conn<S> {
    pub(super) id: ConnId,
    pub(super) group: GroupId,
    pub(super) role: Role,
    pub(super) address: Address,
    pub(super) state: State,
    /// The driver's state; present while connected.
    pub(super) session: Option<S>,
    pub(super) local: SocketAddr,
    pub(super) ordinal: u32,
    /// Number of this load connection on the thread, for parallel key ranges.
    pub(super) lane: usize,
    /// Number among the load connections of all threads to the same node.
    pub(super) number: u32,
    /// Bytes to write, from `out_start` on.
    pub(super) out: BytesMut,
    pub(super) out_start: usize,
    /// Bytes of the output that belong to a request whose beginning was written.
    begun: usize,
    /// Requests awaiting their replies, in order. The last `unsent` are not yet written.
    pub(super) ring: VecDeque<Flight>,
    pub(super) unsent: usize,
    /// Sequence of the front of the ring.
    pub(super) answered: u64,
    /// Replies that the running step of the conversation still awaits.
    pub(super) awaited: u32,
    /// Beginning of a reply whose end has not arrived.
    pub(super) partial: BytesMut,
    /// Failures since the last reply to a load request.
    pub(super) failures: u32,
    /// Failures that do not count against the attempts, because they were before the load.
    pub(super) spared: u32,
    /// Attempts in set-up that failed; those that show more than one failure count for several.
    pub(super) strikes: u32,
    /// Requests of the load that may still be put on it.
    pub(super) left: u64,
    /// Requests of the measured part that are still its own, whatever socket it has;
    /// [`u64::MAX`] where connections share what is due.
    pub(super) quota: u64,
    /// What is known of the running attempt to connect, or of the connection it became.
    pub(super) log: Option<Box<ConnectRow>>,
    /// The error that was the first reply.
    pub(super) first_error: Option<ErrorKind>,
    /// Whether the conversation had a request.
    pub(super) talked: bool,
    /// Whether it belongs to a later step of a staircase and was never up.
    pub(super) is_late: bool,
    /// Whether a flush is queued.
    pub(super) flush_queued: bool,
    /// Whether the connection stands in its group's queue of free connections.
    pub(super) in_free: bool,
    /// Since when it has had a free slot.
    pub(super) free_since: Stamp,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not connected; `until` is when to try again, if ever.
    Down { until: Option<Stamp> },
    /// Asked the shell to connect at that moment.
    Connecting { since: Stamp },
    /// Connected, in its TLS handshake; connecting began at that moment.
    Securing { since: Stamp },
    /// Connected, in its conversation; connecting began at that moment.
    Talking { since: Stamp },
    /// Through its conversation. A tend connection talks again at `tend`.
    Ready { tend: Option<Stamp> },
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// [`Stamp::MAX`] until the send where a request is due when it can be sent.
    pub(super) intended: Stamp,
    pub(super) sent: Stamp,
    /// The earliest moment it could have been sent: it was due and a slot was free. Of one that a
    /// redirection sent here, and where the settings want requests sent again of any later attempt,
    /// the moment of its first send.
    pub(super) possible: Stamp,
    pub(super) plan: Plan,
    /// Bytes of the request.
    pub(super) len: u32,
    pub(super) kind: RowKind,
    pub(super) attempt: u16,
    pub(super) redirects: u8,
}

impl<S> Conn<S> {
    pub(super) fn new(
        place: u32,
        group: GroupId,
        role: Role,
        address: Address,
        depth: usize,
    ) -> Self {
        Self {
            id: ConnId { place, epoch: 0 },
            group,
            role,
            address,
            state: State::Down { until: None },
            session: None,
            local: address.tcp().unwrap_or(NAMELESS),
            ordinal: 0,
            lane: 0,
            number: 0,
            // Grows to what the pipeline needs; thousands of idle connections need nothing.
            out: BytesMut::new(),
            out_start: 0,
            begun: 0,
            ring: VecDeque::with_capacity(depth),
            unsent: 0,
            answered: 0,
            awaited: 0,
            partial: BytesMut::new(),
            failures: 0,
            spared: 0,
            strikes: 0,
            left: u64::MAX,
            quota: u64::MAX,
            log: None,
            first_error: None,
            talked: false,
            is_late: false,
            flush_queued: false,
            in_free: false,
            free_since: Stamp::ZERO,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready { .. })
    }

    /// Whether it is a load connection on its way up.
    pub(super) fn is_being_made(&self) -> bool {
        self.role == Role::Load
            && matches!(
                self.state,
                State::Connecting { .. } | State::Securing { .. } | State::Talking { .. }
            )
    }

    /// Whether another load request may be put on it. `batch` connections first await all replies.
    pub(super) fn has_slot(&self, depth: usize, batch: bool) -> bool {
        self.is_ready()
            && self.left > 0
            && self.quota > 0
            && if batch {
                self.ring.is_empty()
            } else {
                self.ring.len() < depth
            }
    }

    /// A load request that it had taken will be sent again, by it or by another: it may take one
    /// more, or the request would wait for a connection that has none left to send.
    pub(super) fn give_back(&mut self, flight: &Flight) {
        if flight.kind == RowKind::Load {
            self.quota = self.quota.saturating_add(1);
        }
    }

    /// Notes a request whose `len` bytes were just appended to the output.
    #[inline]
    pub(super) fn push(&mut self, flight: Flight) {
        self.ring.push_back(flight);
        self.unsent += 1;
    }

    /// Takes note that `n` more bytes of the output were written, and hands each request whose
    /// first byte is among them to `sent`.
    #[inline]
    pub(super) fn written(&mut self, n: usize, mut sent: impl FnMut(&mut Flight)) {
        let rest = n.min(self.begun);
        self.begun -= rest;
        let mut covered = n - rest;
        while covered > 0 && self.unsent > 0 {
            let index = self.ring.len() - self.unsent;
            let flight = &mut self.ring[index];
            sent(flight);
            self.unsent -= 1;
            let len = flight.len as usize;
            let taken = covered.min(len);
            covered -= taken;
            self.begun = len - taken;
        }
        self.out_start += n;
        if self.out_start >= self.out.len() {
            self.out.clear();
            self.out_start = 0;
        }
    }

    /// Takes the request that the next reply answers; `None` when no request was written.
    #[inline]
    pub(super) fn take_front(&mut self) -> Option<Flight> {
        if self.ring.len() == self.unsent {
            return None;
        }
        self.answered += 1;
        self.ring.pop_front()
    }

    /// The earliest moment at which this connection needs attention. Until it is set up the limit
    /// is that of connecting, then that of each request.
    pub(super) fn deadline(&self, timeout_ns: u64, connect_ns: u64) -> Option<Stamp> {
        let state = match self.state {
            // What is planned stands in the timetable.
            State::Down { .. } => None,
            State::Connecting { since } | State::Securing { since } | State::Talking { since } => {
                Some(since.add_nanos(connect_ns))
            }
            State::Ready { tend } => tend,
        };
        let front = (self.is_ready() && self.ring.len() > self.unsent)
            .then(|| {
                self.ring
                    .front()
                    .map(|flight| flight.sent.add_nanos(timeout_ns))
            })
            .flatten();
        [state, front].into_iter().flatten().min()
    }

    /// Forgets the socket and everything that went with it; the ring must be empty.
    pub(super) fn reset(&mut self) {
        debug_assert!(self.ring.is_empty());
        self.id.epoch = self.id.epoch.wrapping_add(1);
        self.session = None;
        self.out.clear();
        self.out_start = 0;
        self.begun = 0;
        self.unsent = 0;
        self.answered = 0;
        self.awaited = 0;
        self.partial.clear();
        self.first_error = None;
        self.talked = false;
        self.flush_queued = false;
    }

    /// The row of a request of this connection.
    pub(super) fn row(&self, flight: &Flight, sequence: u64, end: End) -> ClientRow {
        ClientRow {
            local: self.local,
            ordinal: self.ordinal,
            sequence,
            kind: flight.kind,
            class: flight.plan.class,
            intended: flight.intended,
            sent: flight.sent,
            received: end.reply.map(|(arrival, _)| arrival.received),
            kernel: end.reply.and_then(|(arrival, _)| arrival.kernel),
            connection: self.number,
            bytes_out: flight.len,
            bytes_in: end
                .reply
                .map_or(0, |(_, len)| u32::try_from(len).unwrap_or(u32::MAX)),
            outcome: end.outcome,
            attempt: u8::try_from(flight.attempt).unwrap_or(u8::MAX),
            retried: end.retried,
        }
    }
}

/// The moments of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Just after the read call.
    pub received: Stamp,
    /// When the kernel received the last segment that the read took, where it says so. A reply
    /// that an earlier segment of the same read completed has this stamp too.
    pub kernel: Option<Stamp>,
}

/// Without a stamp of the kernel.
impl From<Stamp> for Arrival {
    fn from(received: Stamp) -> Self {
        Self {
            received,
            kernel: None,
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    /// The read that completed the reply, and the length of the reply.
    pub(super) reply: Option<(Arrival, usize)>,
    pub(super) retried: bool,
}

impl Flight {
    /// A request of a conversation.
    pub(super) fn control(kind: RowKind, len: usize) -> Self {
        Self {
            intended: Stamp::MAX,
            sent: Stamp::ZERO,
            possible: Stamp::ZERO,
            plan: Plan {
                class: OpClass::CONTROL,
                request: 0,
                key: 0,
                value_start: 0,
                value_len: 0,
                drawn: [0; 2],
                serial: 0,
            },
            len: u32::try_from(len).unwrap_or(u32::MAX),
            kind,
            attempt: 0,
            redirects: 0,
        }
    }

    /// When it was first sent, on whatever connection; `again` says that the settings want requests
    /// sent again.
    pub(super) fn first_sent(&self, again: bool) -> Stamp {
        if self.redirects > 0 || (self.attempt > 0 && again) {
            self.possible
        } else {
            self.sent
        }
    }

    pub(super) fn is_load(&self) -> bool {
        matches!(self.kind, RowKind::Load | RowKind::Warmup)
    }
}

/// The client's end of a connection that has no address of the network.
pub(crate) const NAMELESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

#[cfg(test)]
mod tests {
    use super::*;

    fn conn() -> Conn<()> {
        let address = Address::Tcp("127.0.0.1:1".parse().unwrap());
        Conn::new(0, GroupId(0), Role::Load, address, 4)
    }

    #[test]
    fn a_request_is_sent_by_the_write_that_takes_its_first_byte() {
        let mut conn = conn();
        for _ in 0..3 {
            conn.out.extend_from_slice(&[0; 10]);
            conn.push(Flight::control(RowKind::Load, 10));
        }
        for (write, bytes) in [(1, 5), (2, 5), (3, 1), (4, 14), (5, 5)] {
            conn.written(bytes, |flight| flight.sent = Stamp::from_nanos(write));
        }
        let sent: Vec<u64> = conn
            .ring
            .iter()
            .map(|flight| flight.sent.as_nanos())
            .collect();
        // Bytes 0-9 begin in write 1, 10-19 in write 3, 20-29 in write 4.
        assert_eq!(sent, [1, 3, 4]);
        assert_eq!((conn.unsent, conn.begun, conn.out.len()), (0, 0, 0));
    }

    /// One lies in the ring for each request in flight.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_flight_is_no_larger_than_it_was_without_numbers() {
        assert_eq!(size_of::<Flight>(), 72);
    }

    #[test]
    fn no_reply_is_expected_before_a_request_is_written() {
        let mut conn = conn();
        conn.out.extend_from_slice(&[0; 10]);
        conn.push(Flight::control(RowKind::Load, 10));
        assert!(conn.take_front().is_none());
        conn.written(1, |_| {});
        assert!(conn.take_front().is_some());
        assert_eq!(conn.answered, 1);
    }
}
