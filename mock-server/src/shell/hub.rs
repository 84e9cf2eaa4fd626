//! What the tasks of one worker thread share: the worker's state, its connections, and the heap of
//! moments at which one of them has something due.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::io;
use std::rc::Rc;
use std::task::Waker;

use kvlab_timing::{Clock, Stamp};

use super::transport::Transport;
use crate::event::{ConnId, Event};
use crate::session::Session;
use crate::worker::Worker;

/// The shared state of one worker thread.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) clock: Clock,
    pub(super) worker: RefCell<Worker>,
    pub(super) connections: RefCell<BTreeMap<ConnId, Rc<Connection>>>,
    /// Where every read of the worker lands first.
    pub(super) scratch: RefCell<Vec<u8>>,
    due: RefCell<BinaryHeap<Reverse<(Stamp, ConnId)>>>,
    pacer: RefCell<Option<Waker>>,
    precise_after: bool,
    /// Faults in the TLS of clients that were told of.
    tls_faults: Cell<u32>,
}

/// One connection of the worker.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnId,
    pub(super) session: RefCell<Session>,
    pub(super) transport: Transport,
    /// The earliest moment in the heap at which something of this connection is due.
    scheduled: Cell<Option<Stamp>>,
    /// The moment in the heap at which its end is looked at. Kept apart, since it is far off and each
    /// reply would leave another entry behind.
    end_scheduled: Cell<Option<Stamp>>,
    /// A write found the socket full.
    pub(super) write_blocked: Cell<bool>,
    /// The task does not wait for input, because the session wanted none.
    pub(super) input_paused: Cell<bool>,
    pub(super) gone: Cell<bool>,
    /// When a TLS handshake that was begun has to be complete.
    handshake_until: Cell<Option<Stamp>>,
    pub(super) task: RefCell<Option<Waker>>,
}

/// Size of the buffer that reads land in.
const SCRATCH: usize = 64 * 1024;

/// Faults in TLS that a worker tells of as warnings.
const TLS_FAULTS_TOLD: u32 = 20;

/// Time for a TLS handshake, from the moment the connection is first read.
const HANDSHAKE_NS: u64 = 10_000_000_000;

impl Hub {
    pub(super) fn new(clock: Clock, worker: Worker) -> Self {
        let precise_after = worker.rows.is_some();
        Self {
            clock,
            worker: RefCell::new(worker),
            connections: RefCell::default(),
            scratch: RefCell::new(vec![0; SCRATCH]),
            due: RefCell::default(),
            pacer: RefCell::default(),
            precise_after,
            tls_faults: Cell::new(0),
        }
    }

    /// The earliest moment anything is due.
    pub(super) fn next_due(&self) -> Option<Stamp> {
        self.due.borrow().peek().map(|Reverse((moment, _))| *moment)
    }

    /// Remembers the pacer's waker, to be told when something is due earlier than it knows.
    pub(super) fn set_pacer(&self, waker: &Waker) {
        let mut pacer = self.pacer.borrow_mut();
        if !pacer.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *pacer = Some(waker.clone());
        }
    }

    /// Runs everything that is due.
    pub(super) fn run_due(&self) {
        let mut now = self.clock.now();
        while let Some(connection) = self.pop_due(now) {
            self.end_late_handshake(&connection, now);
            connection
                .session
                .borrow_mut()
                .handle_timeout(now, &mut self.worker.borrow_mut());
            self.flush(&connection);
            now = self.clock.now();
        }
    }

    /// Hands an event to a connection.
    pub(super) fn handle_event(&self, id: ConnId, event: Event) {
        let connection = self.connections.borrow().get(&id).cloned();
        if let Some(connection) = connection {
            let now = self.clock.now();
            connection
                .session
                .borrow_mut()
                .handle_event(now, event, &mut self.worker.borrow_mut());
            self.flush(&connection);
            connection.wake();
        }
    }

    /// Writes what is due on `connection` and notes when the next thing will be.
    pub(super) fn flush(&self, connection: &Connection) {
        let mut session = connection.session.borrow_mut();
        let mut worker = self.worker.borrow_mut();
        while session.has_output() && !connection.write_blocked.get() && !connection.gone.get() {
            let before = self.clock.now();
            let due = session.poll_output(before, &mut worker);
            if due.is_empty() {
                break;
            }
            match connection.transport.try_write(due) {
                Ok(written) => {
                    // The second stamp is for rows alone; without them its cost is saved.
                    let after = if self.precise_after {
                        self.clock.now()
                    } else {
                        before
                    };
                    session.wrote(written, before, after, &mut worker);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.write_blocked.set(true);
                    connection.wake();
                }
                Err(_) => {
                    connection.gone.set(true);
                    connection.wake();
                }
            }
        }
        if connection.transport.keeps_output() && !connection.write_blocked.replace(true) {
            connection.wake();
        }
        if session.is_finished() || (connection.input_paused.get() && session.wants_input()) {
            connection.input_paused.set(false);
            connection.wake();
        }
        if !connection.write_blocked.get()
            && let Some(moment) = session.poll_due()
        {
            self.schedule(connection.id, &connection.scheduled, moment);
        }
        if let Some(moment) = session.poll_end() {
            self.schedule(connection.id, &connection.end_scheduled, moment);
        }
        if let Some(moment) = connection.handshake_until.get() {
            if connection.transport.is_handshaking() {
                self.schedule(connection.id, &connection.end_scheduled, moment);
            } else {
                connection.handshake_until.set(None);
            }
        }
    }

    /// Begins the time for a connection's TLS handshake, unless it has begun: when the connection is
    /// read for the first time, which may be long after it was accepted.
    pub(super) fn time_handshake(&self, connection: &Connection) {
        if connection.handshake_until.get().is_none() {
            let until = self.clock.now().add_nanos(HANDSHAKE_NS);
            connection.handshake_until.set(Some(until));
            self.schedule(connection.id, &connection.end_scheduled, until);
        }
    }

    /// Says in the log what a client did wrong with TLS, if that is what ends the connection. One that
    /// speaks none sees a reset: anything else would be taken for a reply.
    pub(super) fn note_tls_fault(&self, connection: &Connection, error: &io::Error) {
        match error.kind() {
            io::ErrorKind::Unsupported => {
                connection.transport.reset_when_closed();
                self.tell_tls_fault(connection, &"no TLS on a TLS port: reset");
            }
            io::ErrorKind::InvalidData => self.tell_tls_fault(connection, error),
            _ => {}
        }
    }

    /// Says it of the first clients; what all do wrong would flood the log.
    fn tell_tls_fault(&self, connection: &Connection, fault: &dyn fmt::Display) {
        let peer = connection.session.borrow().client().peer;
        let told = self.tls_faults.get();
        if told < TLS_FAULTS_TOLD {
            self.tls_faults.set(told + 1);
            tracing::warn!(%peer, %fault, "TLS failed");
        } else {
            tracing::debug!(%peer, %fault, "TLS failed");
        }
    }

    /// Gives up a handshake that takes too long.
    fn end_late_handshake(&self, connection: &Connection, now: Stamp) {
        let until = connection.handshake_until.get();
        if until.is_some_and(|until| until <= now) && connection.transport.is_handshaking() {
            self.tell_tls_fault(connection, &"the handshake took too long");
            connection.handshake_until.set(None);
            connection.gone.set(true);
            connection.wake();
        }
    }

    fn schedule(&self, id: ConnId, scheduled: &Cell<Option<Stamp>>, moment: Stamp) {
        if scheduled.get().is_some_and(|known| known <= moment) {
            return;
        }
        scheduled.set(Some(moment));
        let earliest = self.next_due().is_none_or(|first| moment < first);
        self.due.borrow_mut().push(Reverse((moment, id)));
        if earliest && let Some(pacer) = &*self.pacer.borrow() {
            pacer.wake_by_ref();
        }
    }

    /// Takes the first connection whose moment has come; stale entries are dropped on the way.
    fn pop_due(&self, now: Stamp) -> Option<Rc<Connection>> {
        loop {
            let (moment, id) = {
                let mut due = self.due.borrow_mut();
                let Reverse((moment, id)) = *due.peek()?;
                if moment > now {
                    return None;
                }
                due.pop();
                (moment, id)
            };
            if let Some(connection) = self.connections.borrow().get(&id) {
                let mut is_known = false;
                for scheduled in [&connection.scheduled, &connection.end_scheduled] {
                    if scheduled.get() == Some(moment) {
                        scheduled.set(None);
                        is_known = true;
                    }
                }
                if is_known {
                    return Some(Rc::clone(connection));
                }
            }
        }
    }
}

impl Connection {
    pub(super) fn new(id: ConnId, session: Session, transport: Transport) -> Self {
        Self {
            id,
            session: RefCell::new(session),
            transport,
            scheduled: Cell::new(None),
            end_scheduled: Cell::new(None),
            write_blocked: Cell::new(false),
            input_paused: Cell::new(false),
            gone: Cell::new(false),
            handshake_until: Cell::new(None),
            task: RefCell::new(None),
        }
    }

    /// Whether it is to be closed now. What TLS took and the socket did not goes before, unless the
    /// end comes at once.
    pub(super) fn is_over(&self) -> bool {
        let session = self.session.borrow();
        self.gone.get()
            || session.is_finished() && (session.ends_at_once() || !self.transport.keeps_output())
    }

    /// Has the connection's task look at its state again.
    pub(super) fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }
}
