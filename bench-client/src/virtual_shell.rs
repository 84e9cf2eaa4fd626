//! The same workers without socket and clock, for runs under virtual time.
//!
//! All workers of a run live in one [`VirtualClient`]. Whoever drives it owns the time: it calls a
//! `handle_*` method at a moment of its choice and then takes actions until there are none left.
//! Nothing here depends on anything but the settings and those calls, so a run is reproducible bit
//! by bit.

use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;
use kvlab_timing::Stamp;

use crate::driver::Driver;
use crate::driver::aerospike::AerospikeDriver;
use crate::driver::redis::RedisDriver;
use crate::driver::redis_cluster::RedisClusterDriver;
use crate::engine::collector::{Collector, Leftover};
use crate::engine::worker::{Action, ConnId, Remains, Worker};
use crate::engine::{Observer, RunError, RunResult, Silent, shares};
use crate::keyspace::{KeySpace, Share};
use crate::record::SocketEnd;
use crate::settings::{Address, Settings, Target};
use crate::values::ValueBlock;

/// A connection of the virtual client; a reconnect is a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientConnId {
    /// Worker, from 0.
    pub thread: u32,
    /// Place among the worker's connections.
    pub place: u32,
    /// How many connections this place had before.
    pub epoch: u32,
}

/// What the virtual client wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAction {
    /// Connect; answer with `handle_connected` or `handle_closed`.
    Connect {
        /// The connection to make.
        conn: ClientConnId,
        /// Where to.
        address: Address,
    },
    /// Send; the bytes count as sent at the moment of the call that produced them.
    Send {
        /// On which connection.
        conn: ClientConnId,
        /// What.
        bytes: Bytes,
    },
    /// Close; nothing is to be told about this connection any more.
    Close {
        /// Which.
        conn: ClientConnId,
    },
}

/// All workers of a run in one place.
pub struct VirtualClient {
    settings: Settings,
    workers: Vec<Box<dyn VirtualWorker>>,
    collector: Collector,
    observer: Box<dyn Observer>,
    now: Stamp,
    begun: bool,
    /// The worker whose actions are taken.
    turn: usize,
}

impl VirtualClient {
    /// The workers of these settings, setting up from `start` on.
    ///
    /// # Errors
    /// Settings that are not legal.
    pub fn new(settings: &Settings, start: Stamp) -> Result<Self, RunError> {
        Self::with_observer(settings, start, Box::new(Silent))
    }

    /// The same, with somebody who watches the intervals.
    ///
    /// # Errors
    /// Settings that are not legal.
    pub fn with_observer(
        settings: &Settings,
        start: Stamp,
        observer: Box<dyn Observer>,
    ) -> Result<Self, RunError> {
        settings.check()?;
        if settings.tls.is_some() {
            let text = "there is no TLS under virtual time, where no byte leaves the process";
            return Err(RunError::NoTls(text.to_owned()));
        }
        let block = ValueBlock::new(&settings.values, settings.seed);
        settings.target.rewind();
        let workers = shares(settings)
            .into_iter()
            .map(|share| worker(settings, share, block.clone(), start))
            .collect::<Result<_, _>>()?;
        let mut client = Self {
            settings: settings.clone(),
            workers,
            collector: Collector::new(settings),
            observer,
            now: start,
            begun: false,
            turn: 0,
        };
        client.settle();
        Ok(client)
    }

    /// The next thing to do; call until `None` after `new` and each `handle_*`.
    pub fn poll_action(&mut self) -> Option<ClientAction> {
        while let Some(worker) = self.workers.get_mut(self.turn) {
            let thread = u32::try_from(self.turn).unwrap_or(u32::MAX);
            let named = |conn: ConnId| ClientConnId {
                thread,
                place: conn.place,
                epoch: conn.epoch,
            };
            match worker.poll_action() {
                Some(Action::Connect { conn, address }) => {
                    return Some(ClientAction::Connect {
                        conn: named(conn),
                        address,
                    });
                }
                Some(Action::Close { conn }) => {
                    return Some(ClientAction::Close { conn: named(conn) });
                }
                Some(Action::Flush { conn }) => {
                    let bytes = worker.send(self.now, conn);
                    if !bytes.is_empty() {
                        return Some(ClientAction::Send {
                            conn: named(conn),
                            bytes,
                        });
                    }
                }
                None => self.turn += 1,
            }
        }
        self.turn = 0;
        None
    }

    /// The connection is made, from this local address, which had connected `ordinal` times before.
    pub fn handle_connected(
        &mut self,
        now: Stamp,
        conn: ClientConnId,
        local: SocketAddr,
        ordinal: u32,
    ) {
        self.with_worker(now, conn, |worker, conn| {
            worker.handle_connected(now, conn, local, ordinal);
        });
    }

    /// Bytes arrived.
    pub fn handle_bytes(&mut self, now: Stamp, conn: ClientConnId, bytes: &[u8]) {
        self.with_worker(now, conn, |worker, conn| {
            worker.handle_bytes(now, conn, bytes)
        });
    }

    /// The connection could not be made, or the server ended it, in this way.
    pub fn handle_closed(&mut self, now: Stamp, conn: ClientConnId, end: SocketEnd) {
        self.with_worker(now, conn, |worker, conn| {
            worker.handle_closed(now, conn, end, end.text());
        });
    }

    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Stamp> {
        self.workers
            .iter()
            .filter_map(|worker| worker.poll_timeout())
            .min()
    }

    /// The moment given by [`Self::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Stamp) {
        self.now = now;
        for worker in &mut self.workers {
            if worker.poll_timeout().is_some_and(|moment| moment <= now) {
                worker.handle_timeout(now);
            }
        }
        self.settle();
    }

    /// Ends the load early, as an interrupt does.
    pub fn stop(&mut self, now: Stamp) {
        self.now = now;
        for worker in &mut self.workers {
            worker.stop(now);
        }
        self.settle();
    }

    /// Whether the run is over.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.workers.iter().all(|worker| worker.is_finished())
    }

    /// The result, with everything unfinished counted as it stands at `now`.
    ///
    /// # Errors
    /// As [`crate::run`].
    pub fn finish(mut self, now: Stamp) -> Result<RunResult, RunError> {
        self.now = now;
        for worker in &mut self.workers {
            worker.finish(now);
        }
        self.settle();
        for thread in 0..self.workers.len() {
            self.collector.finished(thread, self.observer.as_mut());
        }
        let leftovers = self
            .workers
            .into_iter()
            .map(|worker| Leftover {
                remains: worker.into_remains(),
                cpu: None,
            })
            .collect();
        self.collector.finish(&self.settings, leftovers)
    }

    fn with_worker(
        &mut self,
        now: Stamp,
        conn: ClientConnId,
        act: impl FnOnce(&mut dyn VirtualWorker, ConnId),
    ) {
        self.now = now;
        if let Some(worker) = self.workers.get_mut(conn.thread as usize) {
            act(
                worker.as_mut(),
                ConnId {
                    place: conn.place,
                    epoch: conn.epoch,
                },
            );
        }
        self.settle();
    }

    /// Begins the load when all workers are ready, ends all when one failed to set up, and takes
    /// finished intervals.
    fn settle(&mut self) {
        let now = self.now;
        if !self.begun && self.workers.iter().any(|worker| worker.is_finished()) {
            for worker in &mut self.workers {
                worker.stop(now);
            }
        }
        if !self.begun && self.workers.iter().all(|worker| worker.is_ready()) {
            self.begun = true;
            let connections = self.workers.iter().map(|worker| worker.connections()).sum();
            if connections == 0 {
                for worker in &mut self.workers {
                    worker.stop(now);
                }
                return;
            }
            self.observer.started(connections);
            for worker in &mut self.workers {
                worker.begin(now, now);
            }
        }
        for (thread, worker) in self.workers.iter_mut().enumerate() {
            worker.hand_over(thread, &mut self.collector, self.observer.as_mut());
        }
    }
}

impl fmt::Debug for VirtualClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualClient")
            .field("workers", &self.workers.len())
            .field("now", &self.now)
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

/// A worker of any protocol. Dynamic dispatch costs nothing that matters under virtual time.
trait VirtualWorker {
    fn poll_action(&mut self) -> Option<Action>;
    fn send(&mut self, now: Stamp, conn: ConnId) -> Bytes;
    fn handle_connected(&mut self, now: Stamp, conn: ConnId, local: SocketAddr, ordinal: u32);
    fn handle_bytes(&mut self, now: Stamp, conn: ConnId, bytes: &[u8]);
    fn handle_closed(&mut self, now: Stamp, conn: ConnId, end: SocketEnd, text: &str);
    fn poll_timeout(&self) -> Option<Stamp>;
    fn handle_timeout(&mut self, now: Stamp);
    fn begin(&mut self, now: Stamp, start: Stamp);
    fn stop(&mut self, now: Stamp);
    fn finish(&mut self, now: Stamp);
    fn is_ready(&self) -> bool;
    fn is_finished(&self) -> bool;
    fn connections(&self) -> u64;
    fn hand_over(&mut self, thread: usize, collector: &mut Collector, observer: &mut dyn Observer);
    fn into_remains(self: Box<Self>) -> Remains;
}

impl<D: Driver> VirtualWorker for Worker<D> {
    fn poll_action(&mut self) -> Option<Action> {
        self.poll_action()
    }

    fn send(&mut self, now: Stamp, conn: ConnId) -> Bytes {
        let bytes = Bytes::copy_from_slice(self.output(conn));
        if !bytes.is_empty() {
            self.written(conn, bytes.len(), now);
        }
        bytes
    }

    fn handle_connected(&mut self, now: Stamp, conn: ConnId, local: SocketAddr, ordinal: u32) {
        self.handle_connected(now, conn, local, ordinal);
    }

    fn handle_bytes(&mut self, now: Stamp, conn: ConnId, bytes: &[u8]) {
        self.handle_bytes(now.into(), conn, bytes);
    }

    fn handle_closed(&mut self, now: Stamp, conn: ConnId, end: SocketEnd, text: &str) {
        self.handle_closed(now, conn, end, text);
    }

    fn poll_timeout(&self) -> Option<Stamp> {
        self.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Stamp) {
        self.handle_timeout(now);
    }

    fn begin(&mut self, now: Stamp, start: Stamp) {
        self.begin(now, start);
    }

    fn stop(&mut self, now: Stamp) {
        self.stop(now);
    }

    fn finish(&mut self, now: Stamp) {
        self.finish(now);
    }

    fn is_ready(&self) -> bool {
        self.is_ready()
    }

    fn is_finished(&self) -> bool {
        self.is_finished()
    }

    fn connections(&self) -> u64 {
        self.connections()
    }

    fn hand_over(&mut self, thread: usize, collector: &mut Collector, observer: &mut dyn Observer) {
        while let Some(part) = self.poll_part() {
            let tally = collector.add(thread, part, observer);
            self.recycle(tally);
        }
        if self.is_finished() {
            collector.finished(thread, observer);
        }
    }

    fn into_remains(self: Box<Self>) -> Remains {
        (*self).into_remains()
    }
}

/// The worker of the target's protocol.
fn worker(
    settings: &Settings,
    share: Share,
    block: ValueBlock,
    start: Stamp,
) -> Result<Box<dyn VirtualWorker>, RunError> {
    let keys = KeySpace::new(&settings.keys);
    match &settings.target {
        Target::Redis(target) => {
            if target.cluster {
                let driver = RedisClusterDriver::new(target, &keys, &settings.values);
                return Ok(Box::new(Worker::new(settings, driver, share, block, start)));
            }
            let driver = RedisDriver::new(target, &keys, &settings.values);
            Ok(Box::new(Worker::new(settings, driver, share, block, start)))
        }
        Target::Aerospike(target) => {
            let driver = AerospikeDriver::new(target, settings.timeout);
            Ok(Box::new(Worker::new(settings, driver, share, block, start)))
        }
    }
}
