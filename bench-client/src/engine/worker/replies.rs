//! Taking bytes in and ending requests.

use bytes::{Buf, BytesMut};
use kvlab_timing::Stamp;

use super::connection::{End, Flight};
use super::links::Failure;
use super::retry::status_of;
use super::{Arrival, ConnId, Driver, Pending, Worker};
use crate::driver::{Answer, ProtocolError, Redirection};
use crate::engine::recorder::Answered;
use crate::record::{Cause, Outcome};

impl<D: Driver> Worker<D> {
    /// Bytes arrived; the present moment is the one just after the read.
    pub fn handle_bytes(&mut self, arrival: Arrival, conn: ConnId, bytes: &[u8]) {
        let now = arrival.received;
        let Some(place) = self.place(conn) else {
            return;
        };
        self.advance(now);
        self.heard = true;
        self.recorder.tally.bytes_in += bytes.len() as u64;
        let taken = if self.conns[place].partial.is_empty() {
            self.take_frames(arrival, place, bytes).map(|used| {
                if used < bytes.len() && self.conns[place].id == conn {
                    self.conns[place].partial.extend_from_slice(&bytes[used..]);
                }
            })
        } else {
            let mut joined = std::mem::take(&mut self.conns[place].partial);
            joined.extend_from_slice(bytes);
            self.take_frames(arrival, place, &joined).map(|used| {
                joined.advance(used);
                if self.conns[place].id == conn {
                    self.conns[place].partial = tidy(joined);
                }
            })
        };
        if let Err(broken) = taken {
            self.lose(now, place, broken.failure(), true);
        }
        self.dispatch(now);
    }

    /// Takes all whole replies at the beginning of `bytes` and says how many bytes they were.
    #[inline]
    fn take_frames(
        &mut self,
        arrival: Arrival,
        place: usize,
        bytes: &[u8],
    ) -> Result<usize, Broken> {
        let now = arrival.received;
        let mut used = 0;
        while used < bytes.len() {
            let conn = &mut self.conns[place];
            // Closed by the reply before.
            let Some(session) = conn.session.as_mut() else {
                return Ok(bytes.len());
            };
            let rest = &bytes[used..];
            let Some(frame) = self
                .driver
                .frame(session, rest)
                .map_err(Broken::malformed)?
            else {
                break;
            };
            let whole = rest.get(..frame.len).unwrap_or(rest);
            used += frame.len;
            let mut redirection = None;
            let mut keys = None;
            let outcome = match frame.answer {
                Answer::Redirected { kind, to } => {
                    redirection = Some(to);
                    Outcome::Error(kind)
                }
                Answer::Hit => Outcome::Hit,
                Answer::Miss => Outcome::Miss,
                Answer::Keys { found, missing } => {
                    keys = Some((found, missing));
                    if found > 0 {
                        Outcome::Hit
                    } else {
                        Outcome::Miss
                    }
                }
                Answer::Error(kind) => Outcome::Error(kind),
                Answer::Push => {
                    self.recorder.tally.pushes += 1;
                    continue;
                }
            };
            let sequence = conn.answered;
            let Some(flight) = conn.take_front() else {
                return Err(self.unasked(now, place, outcome, whole));
            };
            if sequence == 0 {
                let error = match outcome {
                    Outcome::Error(kind) => Some(kind),
                    _ => None,
                };
                self.first_reply(now, place, Some(flight.sent), error);
            }
            if flight.is_load() {
                self.conns[place].failures = 0;
                if let Some((found, missing)) = keys {
                    let class = flight.plan.class;
                    self.recorder.keys(flight.kind, class, found, missing);
                }
                let outcome = self.driver.judge(&flight.plan, outcome, whole);
                let reply = Some((arrival, frame.len));
                match redirection.filter(|_| self.may_redirect(&flight)) {
                    None => self.end_flight(now, place, flight, sequence, (outcome, reply)),
                    Some(to) => {
                        self.follow(now, place, (flight, sequence), (outcome, reply), to);
                    }
                }
                let conn = &self.conns[place];
                if conn.left == 0 && conn.ring.is_empty() && conn.is_ready() {
                    self.renew(now, place);
                } else {
                    self.offer(now, place);
                }
            } else {
                let reply = Some((arrival, frame.len));
                self.note_control(place, &flight, sequence, (outcome, reply));
                self.converse_on(now, place, whole);
            }
        }
        Ok(used)
    }

    /// A reply that answers nothing, for example the line with which a full server turns a
    /// connection away.
    fn unasked(&mut self, now: Stamp, place: usize, outcome: Outcome, frame: &[u8]) -> Broken {
        let line = line_of(frame);
        self.recorder.tally.connects.unsolicited_bytes += frame.len() as u64;
        let cause = match outcome {
            Outcome::Error(kind) => {
                self.first_reply(now, place, None, Some(kind));
                Cause::ErrorLine(kind)
            }
            _ => Cause::Unsolicited,
        };
        Broken {
            cause,
            text: format!("unasked: {line}"),
            words: matches!(cause, Cause::ErrorLine(_)).then(|| words_of(&line)),
        }
    }

    /// Ends an attempt of a load request: for good, or to be tried again.
    #[inline]
    pub(super) fn end_flight(
        &mut self,
        now: Stamp,
        place: usize,
        flight: Flight,
        sequence: u64,
        (outcome, reply): (Outcome, Option<(Arrival, usize)>),
    ) {
        let class = flight.plan.class;
        let failed = !matches!(outcome, Outcome::Hit | Outcome::Miss);
        let again = if failed {
            self.sent_again(now, &flight, outcome)
        } else {
            None
        };
        let retried = again.is_some();
        let end = End {
            outcome,
            reply,
            retried,
        };
        self.note_row(place, &flight, sequence, end);
        if let Some(at) = again {
            self.recorder.retried(flight.kind, class);
            self.conns[place].give_back(&flight);
            let pending = Pending {
                attempt: flight.attempt.saturating_add(1),
                ..Pending::again(&flight, at, self.config.retry.is_some())
            };
            if at > now {
                self.delay(at, pending, outcome);
            } else {
                self.queue_again(now, pending);
            }
            return;
        }
        self.in_play -= 1;
        if failed && self.config.failures.is_some() {
            let status = match outcome {
                Outcome::Error(_) if !self.driver.words().is_empty() => {
                    self.driver.words().to_owned()
                }
                _ => status_of(outcome),
            };
            self.tell_failure(now, &flight.plan, status, flight.attempt);
        }
        let answered = reply.map(|(Arrival { received, kernel }, len)| Answered {
            intended: flight.intended,
            begun: flight.first_sent(self.config.retry.is_some()),
            sent: flight.sent,
            received,
            kernel,
            bytes_out: u64::from(flight.len),
            bytes_in: len as u64,
        });
        self.recorder.ended(flight.kind, class, outcome, answered);
    }

    /// Whether a request may go where a redirection sends it. Nodes that send it back and forth
    /// must not keep it for ever.
    fn may_redirect(&self, flight: &Flight) -> bool {
        flight.redirects < MAX_REDIRECTS && !self.closing
    }

    /// Sends a request where its reply says that it has to go.
    #[cold]
    fn follow(
        &mut self,
        now: Stamp,
        place: usize,
        (flight, sequence): (Flight, u64),
        (outcome, reply): (Outcome, Option<(Arrival, usize)>),
        to: Redirection,
    ) {
        let end = End {
            outcome,
            reply,
            retried: true,
        };
        self.note_row(place, &flight, sequence, end);
        let ask = match to {
            Redirection::Moved => None,
            Redirection::Ask(group) => Some(group),
        };
        self.recorder
            .redirected(flight.kind, flight.plan.class, ask.is_some());
        self.conns[place].give_back(&flight);
        // Connections to a node that was not known.
        self.apply_topology(now);
        if ask.is_none() {
            self.hasten_tend(now);
        }
        let pending = Pending {
            redirects: flight.redirects + 1,
            ask,
            ..Pending::again(&flight, now, self.config.retry.is_some())
        };
        self.redirect(now, pending);
    }

    /// Keeps the row of an attempt, where rows are kept.
    #[inline]
    fn note_row(&mut self, place: usize, flight: &Flight, sequence: u64, end: End) {
        if let Some(rows) = &mut self.recorder.rows {
            rows.push(self.conns[place].row(flight, sequence, end));
        }
    }

    /// Notes the end of a request of a conversation.
    pub(super) fn note_control(
        &mut self,
        place: usize,
        flight: &Flight,
        sequence: u64,
        (outcome, reply): (Outcome, Option<(Arrival, usize)>),
    ) {
        self.recorder.tally.control += u64::from(reply.is_some());
        let end = End {
            outcome,
            reply,
            retried: false,
        };
        self.note_row(place, flight, sequence, end);
    }

    /// Ends everything that is in flight on a connection that is about to be forgotten. Requests
    /// that were not written wait for another connection.
    pub(super) fn end_flights(&mut self, now: Stamp, place: usize, cut_off: bool) {
        let mut unwritten = Vec::new();
        loop {
            let conn = &mut self.conns[place];
            let sequence = conn.answered;
            let Some(flight) = conn.take_front() else {
                break;
            };
            let expired = flight.sent.add_nanos(self.config.timeout_ns) <= now;
            let outcome = if expired || cut_off {
                Outcome::Timeout
            } else {
                Outcome::ConnectionLost
            };
            if flight.is_load() {
                self.end_flight(now, place, flight, sequence, (outcome, None));
            } else {
                self.note_control(place, &flight, sequence, (outcome, None));
            }
        }
        let conn = &mut self.conns[place];
        unwritten.extend(conn.ring.drain(..).filter(Flight::is_load));
        conn.unsent = 0;
        for flight in unwritten {
            let pending = Pending::again(&flight, now, self.config.retry.is_some());
            if self.closing || cut_off {
                self.end_unsent(now, pending);
            } else {
                self.conns[place].give_back(&flight);
                self.queue_again(now, pending);
            }
        }
    }
}

/// Times that a request is sent on by redirections.
const MAX_REDIRECTS: u8 = 16;

/// Why what arrived on a connection is its end.
struct Broken {
    cause: Cause,
    text: String,
    words: Option<String>,
}

impl Broken {
    fn malformed(error: ProtocolError) -> Self {
        Self {
            cause: Cause::Malformed,
            text: error.to_string(),
            words: None,
        }
    }

    fn failure(&self) -> Failure<'_> {
        Failure {
            cause: self.cause,
            text: &self.text,
            words: self.words.as_deref(),
        }
    }
}

/// The words of an error line, without the mark that makes it one.
fn words_of(line: &str) -> String {
    line.strip_prefix('-').unwrap_or(line).to_owned()
}

/// An emptied buffer gives the room of what was taken back.
fn tidy(buffer: BytesMut) -> BytesMut {
    if buffer.is_empty() {
        BytesMut::new()
    } else {
        buffer
    }
}

/// The first line of a reply, for messages.
fn line_of(frame: &[u8]) -> String {
    let line = frame
        .split(|byte| *byte == b'\r')
        .next()
        .unwrap_or_default();
    String::from_utf8_lossy(line.get(..line.len().min(200)).unwrap_or_default()).into_owned()
}
