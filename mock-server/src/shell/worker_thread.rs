//! One worker: a thread, its runtime, its hub, and the orders it takes from the server.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::Poll;
use std::thread::{self, JoinHandle};

use kvlab_timing::wait::{Waiter, WaiterConfig, set_timer_slack_1ns};
use kvlab_timing::{Clock, Stamp};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;

use super::connection::serve;
use super::hub::{Connection, Hub};
use super::transport::Transport;
use crate::clients::ClientInfo;
use crate::dialect::{Dialect, Listener};
use crate::event::{Mail, Recipient};
use crate::limit::Admission;
use crate::session::Session;
use crate::truth::{RunId, Truth};
use crate::worker::Worker;

/// What the server tells a worker to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Serve a connection.
    Accept {
        socket: std::net::TcpStream,
        listener: Listener,
        client: Arc<ClientInfo>,
        admission: Admission,
    },
    /// Send a copy of what was recorded so far.
    Snapshot(Sender<Truth>),
    /// Begin a run and send what was recorded of the one before.
    Begin(RunId, Sender<Truth>),
    /// Do something between the requests of clients.
    Run(Errand),
    /// End all connections and return what was recorded.
    Stop,
}

/// Something to be done on a worker's thread, at the moment it is given.
pub(crate) struct Errand(pub(crate) Box<Work>);

type Work = dyn FnOnce(Stamp, &mut Worker) + Send;

impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Errand")
    }
}

/// A running worker thread.
#[derive(Debug)]
pub(crate) struct WorkerThread {
    orders: Sender<Order>,
    notify: Arc<Notify>,
    thread: Option<JoinHandle<Truth>>,
}

impl WorkerThread {
    /// Starts a worker; `notify` is also rung when it has mail.
    pub(crate) fn start(worker: Worker, clock: Clock, notify: Arc<Notify>) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let bell = Arc::clone(&notify);
        let (ready, started) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(format!("kvlab-server-{}", worker.index))
            .spawn(move || run(worker, clock, &bell, inbox, &ready))?;
        match started.recv() {
            Ok(Ok(())) => Ok(Self {
                orders,
                notify,
                thread: Some(thread),
            }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("the worker thread ended while starting")),
        }
    }

    /// Gives the worker an order; false if it has ended.
    pub(crate) fn order(&self, order: Order) -> bool {
        let sent = self.orders.send(order).is_ok();
        self.notify.notify_one();
        sent
    }

    /// A second handle for giving orders.
    pub(crate) fn orders(&self) -> (Sender<Order>, Arc<Notify>) {
        (self.orders.clone(), Arc::clone(&self.notify))
    }

    /// Stops the worker and returns what it recorded; empty the second time.
    pub(crate) fn stop(&mut self) -> Truth {
        self.order(Order::Stop);
        self.thread
            .take()
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

fn run(
    worker: Worker,
    clock: Clock,
    notify: &Notify,
    inbox: Receiver<Order>,
    ready: &Sender<io::Result<()>>,
) -> Truth {
    // Timer slack does not touch the timerfd the waiter uses, only sleeps; a refusal is harmless.
    let _ = set_timer_slack_1ns();
    let spin = worker.shared.config.spin;
    let hub = Rc::new(Hub::new(clock, worker));
    let runtime = match Builder::new_current_thread()
        .enable_io()
        .build_local(LocalOptions::default())
    {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = ready.send(Err(error));
            return Truth::default();
        }
    };
    runtime.block_on(async {
        let config = if spin {
            WaiterConfig::default()
        } else {
            WaiterConfig::cheap()
        };
        match Waiter::new(clock, config) {
            Ok(waiter) => {
                tokio::task::spawn_local(pace(Rc::clone(&hub), waiter));
                let _ = ready.send(Ok(()));
                take_orders(&hub, notify, &inbox).await;
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        }
    });
    drop(runtime);
    let now = clock.now();
    for connection in hub.connections.borrow().values() {
        connection
            .session
            .borrow_mut()
            .close(now, &mut hub.worker.borrow_mut());
        connection.transport.end();
    }
    hub.worker.borrow_mut().take_truth(now)
}

/// Releases replies and starts held requests at their moments.
async fn pace(hub: Rc<Hub>, mut waiter: Waiter) {
    poll_fn(|context| {
        hub.set_pacer(context.waker());
        while waiter.poll_wait(context, hub.next_due()).is_ready() {
            hub.run_due();
        }
        Poll::<()>::Pending
    })
    .await;
}

async fn take_orders(hub: &Rc<Hub>, notify: &Notify, inbox: &Receiver<Order>) {
    loop {
        notify.notified().await;
        while let Ok(order) = inbox.try_recv() {
            match order {
                Order::Accept {
                    socket,
                    listener,
                    client,
                    admission,
                } => accept(hub, socket, listener, client, admission),
                Order::Snapshot(reply) => {
                    let _ = reply.send(hub.worker.borrow().truth(hub.clock.now()));
                }
                Order::Begin(run, reply) => {
                    let truth = hub.worker.borrow_mut().begin_run(run, hub.clock.now());
                    let _ = reply.send(truth);
                }
                Order::Run(Errand(errand)) => errand(hub.clock.now(), &mut hub.worker.borrow_mut()),
                Order::Stop => return,
            }
        }
        deliver_mail(hub);
    }
}

fn deliver_mail(hub: &Hub) {
    let (post, index) = {
        let worker = hub.worker.borrow();
        (Arc::clone(&worker.shared), worker.index)
    };
    for Mail { to, event, .. } in post.post.take(index) {
        match to {
            Recipient::Connection(id) => hub.handle_event(id, event),
            Recipient::All => {
                let all: Vec<_> = hub.connections.borrow().keys().copied().collect();
                for id in all {
                    hub.handle_event(id, event);
                }
            }
        }
    }
}

fn accept(
    hub: &Rc<Hub>,
    socket: std::net::TcpStream,
    listener: Listener,
    client: Arc<ClientInfo>,
    admission: Admission,
) {
    let id = client.id;
    let tls = {
        let worker = hub.worker.borrow();
        worker.shared.tls_of(client.local).cloned()
    };
    let transport = match Transport::new(socket, tls) {
        Ok(transport) => transport,
        Err(error) => {
            tracing::warn!(%error, peer = %client.peer, "a connection could not be registered");
            let shared = &hub.worker.borrow().shared;
            shared.clients.remove(id);
            shared.gatekeeper.leave(admission.side, client.peer.ip());
            return;
        }
    };
    let session = {
        let mut worker = hub.worker.borrow_mut();
        let dialect = Dialect::new(listener, &worker.shared);
        Session::new(client, dialect, admission, &mut worker)
    };
    let connection = Rc::new(Connection::new(id, session, transport));
    hub.connections
        .borrow_mut()
        .insert(id, Rc::clone(&connection));
    // Schedules what is to happen by itself: the moment before which it is not read, its end.
    hub.flush(&connection);
    tokio::task::spawn_local(serve(Rc::clone(hub), connection));
}
