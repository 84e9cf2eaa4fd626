//! The shell of one worker: it owns the sockets and the clock and does what the worker asks.
//!
//! ```text
//!  one task per connection:  readiness -> one read -> t4 -> worker.handle_bytes
//!  one pumping task:         after the reads of a turn -> pump
//!  one pacing task:          due moment -> worker.handle_timeout -> pump
//!  pump:                     connect and close as asked; each flush: t1 -> one write
//! ```
//!
//! A turn reads before it writes: a write takes several times as long as a read, because on the way
//! it runs the network stack, and replies that came together would each wait for the writes that
//! answer the ones before, in the client and unseen by the server. Reads that go on for more than
//! [`READS_NS`] are interrupted by a pump, so that a server is not left without work.
//!
//! Threads that spin have no timer: the pacing task looks at the clock at every turn of the loop.
//!
//! All of it runs on one thread, so the worker lives in a cell and is borrowed for the length of a
//! call. Tasks live as long as their connection; a request creates none.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender};
use std::task::{Context, Poll, Waker};

use kvlab_timing::{Clock, Stamp, Waiter};
use tokio::task::{AbortHandle, spawn_local, yield_now};

use super::Message;
use super::cpu::CpuMeter;
use super::kernel::StampedReader;
use super::tls::fault_in;
use super::transport::{Connector, Reader, Writer};
use super::turns::Turns;
use crate::driver::Driver;
use crate::engine::Control;
use crate::engine::worker::{Action, ConnId, Worker};
use crate::record::{SocketEnd, Tally};
use crate::settings::Address;

/// The shell of one worker.
pub(super) struct Shell<D: Driver> {
    worker: RefCell<Worker<D>>,
    links: RefCell<Vec<Link>>,
    scratch: RefCell<Box<[u8]>>,
    connector: Connector,
    /// Where kernel stamps are taken.
    stamped: RefCell<Option<StampedReader>>,
    clock: Clock,
    control: Control,
    thread: usize,
    messages: Sender<Message>,
    returned: Receiver<Tally>,
    pub(super) cpu: RefCell<CpuMeter>,
    turns: Turns,
    /// Counts reads and due moments, to tell turns with work from empty ones.
    work: Cell<u64>,
    /// Whether the pacing task gave way to the others without sleeping.
    yielded: Cell<bool>,
    /// The moment the pacing task waits for.
    armed: Cell<Stamp>,
    pacer: Waiting,
    pumper: Waiting,
    /// When the first of the reads took place that no pump followed yet.
    unpumped: Cell<Option<Stamp>>,
    milestone: Waiting,
}

/// The socket of one of the worker's places.
#[derive(Debug, Default)]
struct Link {
    conn: Option<ConnId>,
    writer: Option<Rc<Writer>>,
    task: Option<AbortHandle>,
    /// The socket took less than it was given; the connection's task waits until it takes more.
    blocked: bool,
    /// The other side is gone, as a write found out. What it sent before is still read.
    broken: Option<io::Error>,
    waker: Option<Waker>,
}

impl<D: Driver + 'static> Shell<D> {
    pub(super) fn new(
        worker: Worker<D>,
        control: Control,
        thread: usize,
        messages: Sender<Message>,
        returned: Receiver<Tally>,
        connector: Connector,
        turns: Turns,
    ) -> Rc<Self> {
        let stamped = connector.is_stamped();
        Rc::new(Self {
            worker: RefCell::new(worker),
            links: RefCell::default(),
            connector,
            scratch: RefCell::new(vec![0; SCRATCH].into()),
            stamped: RefCell::new(stamped.then(|| StampedReader::new(Clock::real()))),
            clock: Clock::real(),
            control,
            thread,
            messages,
            returned,
            cpu: RefCell::default(),
            turns,
            work: Cell::new(0),
            yielded: Cell::new(false),
            armed: Cell::new(Stamp::MAX),
            pacer: Waiting::default(),
            pumper: Waiting::default(),
            unpumped: Cell::new(None),
            milestone: Waiting::default(),
        })
    }

    /// Gives the worker back once all tasks are gone.
    pub(super) fn into_worker(self: Rc<Self>) -> Option<Worker<D>> {
        Rc::into_inner(self).map(|shell| shell.worker.into_inner())
    }

    /// Waits until the worker is ready to begin, or finished.
    pub(super) async fn set_up(&self) {
        self.reached(|worker| worker.is_ready() || worker.is_finished())
            .await;
    }

    /// Waits until the worker is finished.
    pub(super) async fn finished(&self) {
        self.reached(Worker::is_finished).await;
    }

    async fn reached(&self, done: impl Fn(&Worker<D>) -> bool) {
        poll_fn(|cx| {
            if done(&self.worker.borrow()) {
                return Poll::Ready(());
            }
            self.milestone.register(cx);
            Poll::Pending
        })
        .await;
    }

    /// Calls the worker and does what it asks for then.
    pub(super) fn with<T>(self: &Rc<Self>, act: impl FnOnce(&mut Worker<D>, Stamp) -> T) -> T {
        let now = self.clock.now();
        let result = act(&mut self.worker.borrow_mut(), now);
        self.pump();
        result
    }

    /// Does what the worker asks for, once the connections that are ready have been read.
    fn pump_later(self: &Rc<Self>, read: Stamp) {
        match self.unpumped.get() {
            None => {
                self.unpumped.set(Some(read));
                self.pumper.wake();
            }
            Some(first) if read.saturating_since(first) >= READS_NS => self.pump(),
            Some(_) => {}
        }
    }

    /// The pumping task: acts on what the reads before it brought.
    pub(super) async fn pump_on_demand(self: Rc<Self>) {
        poll_fn(|cx| {
            self.pumper.register(cx);
            if self.unpumped.get().is_some() {
                self.pump();
            }
            if self.worker.borrow().is_finished() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Does what the worker asks for.
    pub(super) fn pump(self: &Rc<Self>) {
        self.unpumped.set(None);
        loop {
            let action = self.worker.borrow_mut().poll_action();
            match action {
                Some(Action::Flush { conn }) => {
                    self.flush(conn);
                }
                Some(Action::Connect { conn, address }) => self.connect(conn, address),
                Some(Action::Close { conn }) => self.close(conn),
                None => break,
            }
        }
        self.hand_over();
        let worker = self.worker.borrow();
        if worker
            .poll_timeout()
            .is_some_and(|next| next < self.armed.get())
        {
            self.pacer.wake();
        }
        if worker.is_finished() || worker.is_ready() {
            self.milestone.wake();
            if worker.is_finished() {
                self.pacer.wake();
                self.pumper.wake();
            }
        }
    }

    /// Sends finished intervals to the reporter. When the run is cut short nobody may listen any
    /// more; that is fine.
    fn hand_over(&self) {
        let mut worker = self.worker.borrow_mut();
        while let Some(mut part) = worker.poll_part() {
            self.turns.take(&mut part.tally.turns);
            part.cpu = self.cpu.borrow_mut().passed(&part);
            let part = Box::new(part);
            let _ = self.messages.send(Message::Part {
                thread: self.thread,
                part,
            });
            if let Ok(tally) = self.returned.try_recv() {
                worker.recycle(tally);
            }
        }
    }

    /// Writes the connection's output as far as the socket takes it.
    fn flush(&self, conn: ConnId) {
        let mut links = self.links.borrow_mut();
        let Some(link) = link_of(&mut links, conn) else {
            return;
        };
        let Some(writer) = link
            .writer
            .as_ref()
            .filter(|_| !link.blocked && link.broken.is_none())
        else {
            return;
        };
        let mut worker = self.worker.borrow_mut();
        loop {
            let output = worker.output(conn);
            if output.is_empty() && writer.has_sent_all() {
                return;
            }
            let t1 = self.clock.now();
            match writer.try_write(output) {
                Ok(0) => {
                    link.blocked = true;
                    if let Some(waker) = &link.waker {
                        waker.wake_by_ref();
                    }
                    return;
                }
                Ok(n) => worker.written(conn, n, t1),
                // The server may have said why: whoever reads finds it, or the end.
                Err(_) if writer.is_secure() => {
                    link.writer = None;
                    if let Some(waker) = &link.waker {
                        waker.wake_by_ref();
                    }
                    return;
                }
                Err(error) if SocketEnd::of(&error) == SocketEnd::Reset => {
                    link.broken = Some(error);
                    if let Some(waker) = &link.waker {
                        waker.wake_by_ref();
                    }
                    return;
                }
                Err(error) => {
                    *link = take_down(link);
                    worker.handle_closed(t1, conn, SocketEnd::of(&error), &error.to_string());
                    return;
                }
            }
        }
    }

    fn close(&self, conn: ConnId) {
        if let Some(link) = link_of(&mut self.links.borrow_mut(), conn) {
            if let Some(writer) = &link.writer {
                writer.end();
            }
            *link = take_down(link);
        }
    }

    fn connect(self: &Rc<Self>, conn: ConnId, address: Address) {
        let mut links = self.links.borrow_mut();
        let place = conn.place as usize;
        if links.len() <= place {
            links.resize_with(place + 1, Link::default);
        }
        let shell = Rc::clone(self);
        let task = spawn_local(async move {
            if let Err(error) = shell.serve(conn, address).await {
                let error = shell.broken(conn).unwrap_or(error);
                shell.close(conn);
                if let Some(fault) = fault_in(&error) {
                    shell.with(|worker, now| worker.handle_tls_fault(now, conn, fault));
                    return;
                }
                let (end, text) = (SocketEnd::of(&error), error.to_string());
                shell.with(|worker, now| worker.handle_closed(now, conn, end, &text));
            }
        });
        links[place] = Link {
            conn: Some(conn),
            task: Some(task.abort_handle()),
            ..Link::default()
        };
    }

    /// The error of a write on a connection whose end a read has seen by now.
    fn broken(&self, conn: ConnId) -> Option<io::Error> {
        link_of(&mut self.links.borrow_mut(), conn)?.broken.take()
    }

    /// Connects, and serves the connection until it ends.
    async fn serve(self: &Rc<Self>, conn: ConnId, address: Address) -> io::Result<()> {
        let now = self.clock.now();
        self.worker.borrow_mut().handle_connecting(now, conn);
        let (mut reader, mut writer, local) = self.connector.connect(address).await?;
        let ordinal = self.control.next_ordinal(local);
        let secured = self.connector.is_securing();
        if secured {
            self.with(|worker, now| worker.handle_reached(now, conn, local, ordinal));
            let name = self.worker.borrow().server_name(conn);
            self.connector.begin_tls(&mut reader, &mut writer, name)?;
            poll_fn(|cx| {
                let mut scratch = self.scratch.borrow_mut();
                let mut stamped = self.stamped.borrow_mut();
                reader.poll_handshake(cx, &mut scratch, stamped.as_mut())
            })
            .await?;
        }
        let writer = Rc::new(writer);
        if let Some(link) = link_of(&mut self.links.borrow_mut(), conn) {
            link.writer = Some(Rc::clone(&writer));
        }
        self.with(|worker, now| {
            if secured {
                worker.handle_secured(now, conn);
            } else {
                worker.handle_connected(now, conn, local, ordinal);
            }
        });
        poll_fn(|cx| self.poll_connection(cx, conn, &mut reader, &writer)).await
    }

    /// Reads while there is something to read, and writes on where a write was blocked.
    fn poll_connection(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        conn: ConnId,
        reader: &mut Reader,
        writer: &Writer,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.attend(cx, conn) {
                Some(false) => {}
                Some(true) => {
                    if writer.poll_writable(cx)?.is_ready() {
                        self.write_on(conn);
                        // If that was blocked again, the next turn waits for it.
                        continue;
                    }
                }
                None => return Poll::Ready(Ok(())),
            }
            let mut scratch = self.scratch.borrow_mut();
            let mut stamped = self.stamped.borrow_mut();
            match reader.poll_read(cx, &mut scratch, stamped.as_mut())? {
                Poll::Ready((n, arrival)) => {
                    let bytes = scratch.get(..n).unwrap_or_default();
                    self.worker.borrow_mut().handle_bytes(arrival, conn, bytes);
                    self.work.set(self.work.get() + 1);
                    drop((scratch, stamped));
                    self.pump_later(arrival.received);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Notes whom to wake for the connection and says whether a write is blocked on it; `None`
    /// when it was closed.
    fn attend(&self, cx: &Context<'_>, conn: ConnId) -> Option<bool> {
        let mut links = self.links.borrow_mut();
        let link = link_of(&mut links, conn)?;
        if !link
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            link.waker = Some(cx.waker().clone());
        }
        Some(link.blocked)
    }

    /// Tries again to write what was blocked.
    fn write_on(self: &Rc<Self>, conn: ConnId) {
        if let Some(link) = link_of(&mut self.links.borrow_mut(), conn) {
            link.blocked = false;
        }
        self.flush(conn);
        self.pump();
    }

    /// The pacing task: wakes the worker when something is due, and looks whether the run is to be
    /// stopped.
    pub(super) async fn pace(self: Rc<Self>, mut waiter: Waiter) {
        let mut look = self.clock.now().add_nanos(LOOK_NS);
        poll_fn(|cx| self.poll_pace(cx, &mut waiter, &mut look)).await;
    }

    /// The pacing task of a thread that spins.
    pub(super) async fn pace_spinning(self: Rc<Self>) {
        let mut look = self.clock.now().add_nanos(LOOK_NS);
        let mut seen = self.work.get();
        // Nobody needs to wake a task that never sleeps.
        self.armed.set(Stamp::ZERO);
        loop {
            let now = self.clock.now();
            let work = self.work.get() != std::mem::replace(&mut seen, self.work.get());
            if let Some(idle_ns) = self.turns.lap(now, work) {
                self.cpu.borrow_mut().spun_ns += idle_ns;
            }
            let due = {
                let worker = self.worker.borrow();
                if worker.is_finished() {
                    return;
                }
                worker.poll_timeout()
            };
            self.look_for_stop(now, &mut look);
            if due.is_some_and(|due| due <= now) {
                self.worker.borrow_mut().handle_timeout(now);
                self.work.set(self.work.get() + 1);
            }
            if due.is_some_and(|due| due <= now) || self.control.is_stopped() {
                self.pump();
            }
            yield_now().await;
        }
    }

    /// Ends the load when the run is to be stopped.
    fn look_for_stop(&self, now: Stamp, look: &mut Stamp) {
        if now >= *look {
            *look = now.add_nanos(LOOK_NS);
            if self.control.is_stopped() {
                self.worker.borrow_mut().stop(now);
            }
        }
    }

    fn poll_pace(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        waiter: &mut Waiter,
        look: &mut Stamp,
    ) -> Poll<()> {
        self.pacer.register(cx);
        if self.yielded.take() {
            self.turns.lap(self.clock.now(), true);
        }
        let mut turns = 0;
        loop {
            let due = {
                let worker = self.worker.borrow();
                if worker.is_finished() {
                    return Poll::Ready(());
                }
                worker.poll_timeout()
            };
            let wait = due.unwrap_or(Stamp::MAX).min(*look);
            self.armed.set(wait);
            if turns > 0 && wait <= self.clock.now() {
                // Work without pause: let the connections read between two turns.
                let yielded = pin!(yield_now()).poll(cx);
                debug_assert!(yielded.is_pending());
                self.yielded.set(true);
                return Poll::Pending;
            }
            let Poll::Ready(now) = waiter.poll_wait(cx, Some(wait)) else {
                self.yielded.set(waiter.is_in_lead());
                return Poll::Pending;
            };
            self.cpu.borrow_mut().spun_ns = waiter.stats().lead_ns;
            // Nobody needs to wake a task that is running.
            self.armed.set(Stamp::ZERO);
            self.look_for_stop(now, look);
            if due.is_some_and(|due| due <= now) {
                self.worker.borrow_mut().handle_timeout(now);
            }
            self.pump();
            turns += 1;
        }
    }
}

/// The link of a connection, unless its place has another socket by now.
fn link_of(links: &mut [Link], conn: ConnId) -> Option<&mut Link> {
    links
        .get_mut(conn.place as usize)
        .filter(|link| link.conn == Some(conn))
}

/// Closes the socket and ends its task; leaves an empty link.
fn take_down(link: &mut Link) -> Link {
    if let Some(task) = &link.task {
        task.abort();
    }
    Link::default()
}

/// A task that waits to be told.
#[derive(Debug, Default)]
struct Waiting(RefCell<Option<Waker>>);

impl Waiting {
    fn register(&self, cx: &Context<'_>) {
        let mut waker = self.0.borrow_mut();
        if !waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            *waker = Some(cx.waker().clone());
        }
    }

    fn wake(&self) {
        if let Some(waker) = &*self.0.borrow() {
            waker.wake_by_ref();
        }
    }
}

/// How long reads go on before a pump comes between.
const READS_NS: u64 = 50_000;
/// Bytes read at once at most.
const SCRATCH: usize = 64 * 1024;
/// Time between two looks at the stop flag.
const LOOK_NS: u64 = 100_000_000;
