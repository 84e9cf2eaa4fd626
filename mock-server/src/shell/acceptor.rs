//! The acceptors: one per port, all on one thread, handing sockets to the workers in turn.
//!
//! One thread asks the gatekeeper about every connection of every port, so that acceptance order,
//! ordinals and connection limits are exact.
//!
//! In the backlog form of a limit no socket is accepted before there is room for it. The backlog of the
//! listening socket is set anew whenever the room changes, to one less than there is room for: Linux
//! keeps one connection more than that in its queue and leaves later ones without an answer, so that
//! they try again after 1, 3, 7 s. Without any room it still keeps one, which its client believes to be
//! connected.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll, ready};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kvlab_timing::wait::{Waiter, WaiterConfig};
use kvlab_timing::{Clock, Stamp};
use socket2::SockRef;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;

use super::worker_thread::Order;
use crate::dialect::Listener;
use crate::exchange::Protocol;
use crate::limit::gatekeeper::Room;
use crate::limit::{Admission, Gatekeeper, Turned, Verdict};
use crate::shared::Shared;

/// The thread on which all ports are accepted.
#[derive(Debug)]
pub(crate) struct Acceptors {
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

/// Where accepted sockets go: the orders of each worker.
pub(crate) type Desks = Vec<(Sender<Order>, Arc<Notify>)>;

/// Connections that may wait to be accepted, where nothing limits them.
pub(crate) const BACKLOG: i32 = 1024;

impl Acceptors {
    /// Starts accepting on `ports`.
    pub(crate) fn start(
        ports: Vec<(TcpListener, Listener)>,
        desks: Desks,
        shared: Arc<Shared>,
        clock: Clock,
    ) -> io::Result<Self> {
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("kvlab-accept".to_owned())
            .spawn(move || {
                let turn = Rc::new(Turn {
                    desks,
                    next: std::cell::Cell::new(0),
                    shared,
                    clock,
                });
                let runtime = Builder::new_current_thread()
                    .enable_io()
                    .build_local(LocalOptions::default());
                match runtime {
                    Ok(runtime) => runtime.block_on(async {
                        for (socket, listener) in ports {
                            tokio::task::spawn_local(accept(socket, listener, Rc::clone(&turn)));
                        }
                        stopped.notified().await;
                    }),
                    Err(error) => tracing::error!(%error, "no runtime for the acceptors"),
                }
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Closes the ports.
    pub(crate) fn stop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been printed already.
            let _ = thread.join();
        }
    }
}

/// Asks the gatekeeper and deals sockets to the workers in turn.
struct Turn {
    desks: Desks,
    next: std::cell::Cell<usize>,
    shared: Arc<Shared>,
    clock: Clock,
}

impl Turn {
    fn decide(&self, socket: TcpStream, peer: SocketAddr, listener: Listener, waited: bool) {
        let side = Gatekeeper::side_of(listener);
        let now = self.clock.now();
        let keeper = &self.shared.gatekeeper;
        let held_until = match keeper.admit(now, side, peer.ip(), waited) {
            Verdict::Serve => None,
            Verdict::Hold(until) => Some(until),
            Verdict::Refuse(how) => {
                let mut secure = false;
                if let Ok(local) = socket.local_addr() {
                    // It is not served, but its address was accepted once more.
                    self.shared.clients.arrive(peer, local);
                    secure = self.shared.tls_of(local).is_some();
                }
                // Before a TLS handshake there is no way to say anything, as on a real server.
                let told = matches!(how, Turned::Told(_));
                return turn_away(
                    socket,
                    if secure && told {
                        &Turned::Closed
                    } else {
                        &how
                    },
                );
            }
        };
        let admission = Admission { side, held_until };
        if !self.deal(now, socket, peer, listener, admission) {
            keeper.leave(side, peer.ip());
        }
    }

    /// Hands a socket to a worker; false if there is nobody to serve or nobody to serve it.
    fn deal(
        &self,
        now: Stamp,
        socket: TcpStream,
        peer: SocketAddr,
        listener: Listener,
        admission: Admission,
    ) -> bool {
        let index = self.next.get();
        self.next.set((index + 1) % self.desks.len().max(1));
        let Some((orders, notify)) = self.desks.get(index) else {
            return false;
        };
        let prepared = socket
            .set_nonblocking(true)
            .and_then(|()| socket.set_nodelay(true))
            .and_then(|()| socket.local_addr());
        // A client that is gone already makes these fail; there is nobody to tell.
        let Ok(local) = prepared else { return false };
        let client = self.shared.clients.accept(now, index, peer, local);
        let order = Order::Accept {
            socket,
            listener,
            client,
            admission,
        };
        let sent = orders.send(order).is_ok();
        if sent {
            notify.notify_one();
        }
        sent
    }
}

/// Ends a connection that is not served.
fn turn_away(mut socket: TcpStream, how: &Turned) {
    // Whatever fails here: the client has gone already, and that is what was wanted.
    let _ = match how {
        Turned::Reset => SockRef::from(&socket).set_linger(Some(Duration::ZERO)),
        Turned::Told(text) => socket
            .set_nonblocking(true)
            // A new connection has room for a line.
            .and_then(|()| socket.write(text).map(drop)),
        Turned::Closed => socket.set_nonblocking(true),
    };
    if *how != Turned::Reset {
        // Closing a socket with unread bytes resets it and may destroy what was just written.
        let mut scratch = [0; 4096];
        while matches!(socket.read(&mut scratch), Ok(read) if read == scratch.len()) {}
    }
}

/// The door of one port in the backlog form: shut while there is no room.
struct Door {
    side: Protocol,
    waiter: Waiter,
    /// The backlog that the socket has now.
    backlog: i32,
    /// Whether it was shut since the socket last ran out of connections: those that are there then
    /// have waited.
    was_shut: bool,
}

impl Door {
    fn new(listener: Listener, clock: Clock) -> io::Result<Self> {
        Ok(Self {
            side: Gatekeeper::side_of(listener),
            waiter: Waiter::new(clock, WaiterConfig::cheap())?,
            backlog: BACKLOG,
            was_shut: false,
        })
    }

    /// Completes when there is room for a connection.
    fn poll_open(
        &mut self,
        context: &mut Context<'_>,
        turn: &Turn,
        socket: &TcpListener,
    ) -> Poll<()> {
        loop {
            let now = turn.clock.now();
            let keeper = &turn.shared.gatekeeper;
            let room = keeper.room(now, self.side, Some(context.waker()));
            let (count, next) = match room {
                Room::Unbounded => (u64::MAX, None),
                // More room by itself is told to the kernel now and then, not token by token.
                Room::Some { count, more_at } => {
                    let seldom = now.add_nanos(BETWEEN_LOOKS_NS);
                    (count, more_at.map(|moment| moment.max(seldom)))
                }
                Room::None { until } => (0, until),
            };
            let backlog = i32::try_from(count.saturating_sub(1)).unwrap_or(BACKLOG);
            let backlog = backlog.min(BACKLOG);
            if backlog != self.backlog && SockRef::from(socket).listen(backlog).is_ok() {
                self.backlog = backlog;
            }
            self.was_shut |= count == 0;
            if self.waiter.poll_wait(context, next).is_ready() {
                continue;
            }
            return if count > 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            };
        }
    }
}

/// As often the kernel is told of more room for connections that it has not seen yet.
const BETWEEN_LOOKS_NS: u64 = 1_000_000;

#[expect(
    deprecated,
    reason = "the replacement is unsafe; the socket is owned and kept open"
)]
async fn accept(socket: TcpListener, listener: Listener, turn: Rc<Turn>) {
    let door = turn.shared.gatekeeper.stops_accepting();
    let door = door.then(|| Door::new(listener, turn.clock)).transpose();
    let (socket, mut door) = match AsyncFd::new(socket).and_then(|socket| Ok((socket, door?))) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, "a listening socket could not be registered");
            return;
        }
    };
    let mut failing = false;
    poll_fn(move |context| -> Poll<()> {
        loop {
            if let Some(door) = &mut door {
                ready!(door.poll_open(context, &turn, socket.get_ref()));
            }
            let Ok(mut guard) = ready!(socket.poll_read_ready(context)) else {
                return Poll::Ready(());
            };
            match socket.get_ref().accept() {
                Ok((stream, peer)) => {
                    failing = false;
                    let waited = door.as_ref().is_some_and(|door| door.was_shut);
                    turn.decide(stream, peer, listener, waited);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    guard.clear_ready();
                    if let Some(door) = &mut door {
                        door.was_shut = false;
                    }
                }
                Err(error) => {
                    // Out of descriptors, or a client that gave up: the others must not suffer,
                    // and the accept loop must not spin. The thread does nothing but accept.
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "connections wait: accept fails");
                    }
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
    })
    .await;
}
