//! The acceptors: one per port, all on one thread, handing sockets to the workers in turn.
//!
//! One acceptor per port decides about every connection of that port, so that acceptance order,
//! ordinals and (later) connection limits are exact.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::{Poll, ready};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kvlab_timing::Clock;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;

use super::worker_thread::Order;
use crate::dialect::Listener;
use crate::shared::Shared;

/// The thread on which all ports are accepted.
#[derive(Debug)]
pub(crate) struct Acceptors {
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

/// Where accepted sockets go: the orders of each worker.
pub(crate) type Desks = Vec<(Sender<Order>, Arc<Notify>)>;

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

/// Deals sockets to the workers in turn.
struct Turn {
    desks: Desks,
    next: std::cell::Cell<usize>,
    shared: Arc<Shared>,
    clock: Clock,
}

impl Turn {
    fn deal(&self, socket: TcpStream, peer: SocketAddr, listener: Listener) {
        let index = self.next.get();
        self.next.set((index + 1) % self.desks.len().max(1));
        let Some((orders, notify)) = self.desks.get(index) else {
            return;
        };
        let prepared = socket
            .set_nonblocking(true)
            .and_then(|()| socket.set_nodelay(true))
            .and_then(|()| socket.local_addr());
        // A client that is gone already makes these fail; there is nobody to tell.
        let Ok(local) = prepared else { return };
        let client = self
            .shared
            .clients
            .accept(self.clock.now(), index, peer, local);
        if orders
            .send(Order::Accept {
                socket,
                listener,
                client,
            })
            .is_ok()
        {
            notify.notify_one();
        }
    }
}

#[expect(
    deprecated,
    reason = "the replacement is unsafe; the socket is owned and kept open"
)]
async fn accept(socket: TcpListener, listener: Listener, turn: Rc<Turn>) {
    let socket = match AsyncFd::new(socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, "a listening socket could not be registered");
            return;
        }
    };
    let mut failing = false;
    poll_fn(move |context| -> Poll<()> {
        loop {
            let Ok(mut guard) = ready!(socket.poll_read_ready(context)) else {
                return Poll::Ready(());
            };
            match socket.get_ref().accept() {
                Ok((stream, peer)) => {
                    failing = false;
                    turn.deal(stream, peer, listener);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
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
