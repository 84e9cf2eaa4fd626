//! A running server: its ports, its threads, and the handle that owns them.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use kvlab_timing::wall::WallClock;
use kvlab_timing::{Clock, Stamp};
use socket2::{Domain, Protocol as IpProtocol, Socket, Type};
use tokio::sync::Notify;

use crate::builder::ServerBuilder;
use crate::config::{ConfigError, ServerConfig};
use crate::dialect::Listener;
use crate::direct::{AerospikeDirect, RedisDirect};
use crate::event::PostOffice;
use crate::latency::{ParseError, TooManyRules};
use crate::limit::{AcceptCounts, AcceptLimit, ConnectionLimit, ConnectionLimits, LimitError};
use crate::shared::{Addresses, Shared};
use crate::shell::{Acceptors, BACKLOG, Errand, Order, WorkerThread};
use crate::tls::{Material, TlsError};
use crate::truth::{RowFile, RowsLost, RunId, Truth};
use crate::worker::Worker;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// No port was asked for.
    #[error("no port to listen on: every port is off")]
    NoPort,
    /// A setting is out of its bounds.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A latency rule or a freeze cannot be read.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The file that rows are to be written to cannot be written.
    #[error("cannot write rows to {}: {source}", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The certificate for TLS cannot be had.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A limit cannot be read.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// Too many latency rules.
    #[error(transparent)]
    Rules(#[from] TooManyRules),
    /// A thread or a runtime could not be started.
    #[error("cannot start a server thread: {0}")]
    Thread(#[from] io::Error),
}

/// A running mock server; it stops when it is dropped.
#[derive(Debug)]
pub struct MockServer {
    shared: Arc<Shared>,
    addresses: Addresses,
    clock: Clock,
    acceptors: Acceptors,
    workers: Vec<WorkerThread>,
    truth: Option<Truth>,
    /// The file that rows are written to, once the workers are gone complete.
    row_file: Option<RowFile>,
    ca_pem: Option<String>,
}

impl MockServer {
    /// Settings to choose and start a server with; without any, it has a free port of the loopback
    /// address for each protocol and delays nothing.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Starts a server with `config`.
    ///
    /// # Errors
    /// When a setting is out of its bounds, a certificate cannot be had, a port is taken or not
    /// allowed, or the system gives no thread.
    pub fn start(config: ServerConfig) -> Result<Self, StartError> {
        config.check()?;
        let clock = Clock::real();
        let tls = &config.tls;
        let (redis, redis_tls) = tls.ports(config.redis_port, tls.redis_port);
        let (aerospike, aerospike_tls) = tls.ports(config.aerospike_port, tls.aerospike_port);
        let (both, both_tls) = tls.ports(config.shared_port, None);
        let mut addresses = Addresses::default();
        let asked = [
            (redis, Listener::Redis, &mut addresses.redis),
            (aerospike, Listener::Aerospike, &mut addresses.aerospike),
            (both, Listener::Shared, &mut addresses.shared),
            (redis_tls, Listener::Redis, &mut addresses.redis_tls),
            (
                aerospike_tls,
                Listener::Aerospike,
                &mut addresses.aerospike_tls,
            ),
            (both_tls, Listener::Shared, &mut addresses.shared_tls),
        ];
        let backlog = first_backlog(&config.connections, clock.now());
        let mut ports = Vec::new();
        for (port, listener, place) in asked {
            let Some(port) = port else { continue };
            let wanted = SocketAddr::new(config.bind, port);
            let bound = listen(wanted, backlog)
                .and_then(|socket| Ok((socket.local_addr()?, socket)))
                .map_err(|source| StartError::Bind {
                    address: wanted,
                    source,
                })?;
            let (address, socket) = bound;
            *place = Some(address);
            ports.push((socket, listener));
        }
        if ports.is_empty() {
            return Err(StartError::NoPort);
        }
        let wall = WallClock::real(clock);
        let material = config
            .speaks_tls()
            .then(|| Material::prepare(&config.tls, config.bind, wall.unix_seconds(clock.now())))
            .transpose()?;
        let rows = config.rows_file.as_deref().map(|path| {
            RowFile::create(path, WallClock::real(clock)).map_err(|source| StartError::Rows {
                path: path.to_owned(),
                source,
            })
        });
        let (row_file, row_sender) = rows.transpose()?.unzip();
        let count = config.workers;
        let bells: Vec<_> = (0..count).map(|_| Arc::new(Notify::new())).collect();
        let wakes = bells.iter().map(|bell| {
            let bell = Arc::clone(bell);
            Box::new(move || bell.notify_one()) as Box<dyn Fn() + Send + Sync>
        });
        let post = PostOffice::new(wakes.collect());
        let shared = Arc::new(Shared::new(
            config,
            clock.now(),
            WallClock::real(clock),
            post,
        ));
        if addresses.aerospike.or(addresses.shared).is_some() {
            shared.aerospike.prepare_logins();
        }
        // The cell is new, so setting it cannot fail.
        let _ = shared.addresses.set(addresses);
        let (tls, ca_pem) = match material {
            Some(material) => (Some(material.server), material.ca_pem),
            None => (None, None),
        };
        if let Some(tls) = tls {
            let _ = shared.tls.set(tls);
        }
        let workers = bells
            .into_iter()
            .enumerate()
            .map(|(index, bell)| {
                let worker = Worker::new(index, Arc::clone(&shared));
                WorkerThread::start(worker.with_rows_to(row_sender.clone()), clock, bell)
            })
            .collect::<io::Result<Vec<_>>>()?;
        // The workers have senders of their own; the file ends when they have gone.
        drop(row_sender);
        let desks = workers.iter().map(WorkerThread::orders).collect();
        let acceptors = Acceptors::start(ports, desks, Arc::clone(&shared), clock)?;
        Ok(Self {
            shared,
            addresses,
            clock,
            acceptors,
            workers,
            truth: None,
            row_file,
            ca_pem,
        })
    }

    /// The address of the RESP port.
    #[must_use]
    pub fn redis_addr(&self) -> Option<SocketAddr> {
        self.addresses.redis
    }

    /// The address of the Aerospike port.
    #[must_use]
    pub fn aerospike_addr(&self) -> Option<SocketAddr> {
        self.addresses.aerospike
    }

    /// The address of the port that serves both protocols.
    #[must_use]
    pub fn addr(&self) -> Option<SocketAddr> {
        self.addresses.shared
    }

    /// The address of the port for RESP over TLS.
    #[must_use]
    pub fn redis_tls_addr(&self) -> Option<SocketAddr> {
        self.addresses.redis_tls
    }

    /// The address of the port for Aerospike over TLS.
    #[must_use]
    pub fn aerospike_tls_addr(&self) -> Option<SocketAddr> {
        self.addresses.aerospike_tls
    }

    /// The address of the port that serves both protocols over TLS.
    #[must_use]
    pub fn tls_addr(&self) -> Option<SocketAddr> {
        self.addresses.shared_tls
    }

    /// The authority that signed the server's certificate, in PEM form, for clients to trust; `None`
    /// when the certificate was given, or there is no TLS.
    #[must_use]
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// All addresses listened on.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// What the workers share: settings, data, the register of clients.
    #[must_use]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The clock all stamps are taken from.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// A copy of what was recorded of the run so far, or of everything once the server has stopped.
    #[must_use]
    pub fn truth(&self) -> Truth {
        if let Some(truth) = &self.truth {
            return truth.clone();
        }
        let (reply, answers) = mpsc::channel();
        for worker in &self.workers {
            worker.order(Order::Snapshot(reply.clone()));
        }
        drop(reply);
        self.merged(answers, self.shared.gatekeeper.counts())
    }

    fn merged(&self, truths: impl IntoIterator<Item = Truth>, accepting: AcceptCounts) -> Truth {
        let mut all = Truth::default();
        for truth in truths {
            all.merge(truth);
        }
        all.stats.counts.accepting.merge(&accepting);
        if let Some(most) = self.shared.config.row_limit {
            all.keep_last(most);
        }
        all
    }

    /// Begins a run and returns the truth of the one before. What clients send once this has returned
    /// belongs to the new run; what was read before it was called, to the old one, and where its reply
    /// is written later, it is only counted as late. Each worker changes over between two requests.
    pub fn begin_run(&self, run: impl Into<RunId>) -> Truth {
        let run = run.into();
        let (reply, answers) = mpsc::channel();
        for worker in &self.workers {
            worker.order(Order::Begin(run, reply.clone()));
        }
        drop(reply);
        self.merged(answers, self.shared.gatekeeper.take_counts())
    }

    /// Ends the run and returns its truth; what comes then belongs to no run, or run 0.
    pub fn finish_run(&self) -> Truth {
        self.begin_run(RunId::default())
    }

    /// Moves the calendar forward by `by`: keys and records expire accordingly, delays and stamps go
    /// on as before.
    pub fn advance_clock(&self, by: Duration) {
        self.shared
            .shift_wall(i64::try_from(by.as_nanos()).unwrap_or(i64::MAX));
    }

    /// The data of the RESP side, without the wire.
    #[must_use]
    pub fn redis(&self) -> RedisDirect<'_> {
        RedisDirect::new(self)
    }

    /// The data of one namespace of the Aerospike side, without the wire.
    #[must_use]
    pub fn aerospike(&self, namespace: &str) -> Option<AerospikeDirect<'_>> {
        let namespace = self.shared.aerospike.namespace(namespace.as_bytes())?;
        Some(AerospikeDirect::new(self, namespace))
    }

    /// Runs `work` on a worker's thread, between the requests of clients, and returns its result.
    pub(crate) fn on_worker<R: Send + 'static>(
        &self,
        work: impl FnOnce(Stamp, &mut Worker) -> R + Send + 'static,
    ) -> R {
        let (reply, answer) = mpsc::channel();
        let errand = Errand(Box::new(move |now, worker| {
            // The receiver waits just below.
            let _ = reply.send(work(now, worker));
        }));
        if let Some(worker) = self.workers.first() {
            worker.order(Order::Run(errand));
        }
        let result = answer.recv();
        result.unwrap_or_else(|_| panic!("a worker thread of the server has panicked"))
    }

    /// Forgets what was recorded so far.
    pub fn reset_truth(&self) {
        self.finish_run();
    }

    /// Closes the ports, ends all connections and returns what was recorded.
    pub fn stop(self) -> Truth {
        self.stop_all().0
    }

    /// The same, and whether all rows are in the file they were to be written to.
    pub fn stop_all(mut self) -> (Truth, Result<(), RowsLost>) {
        self.shut_down();
        let rows = match self.row_file.take() {
            Some(file) => file.finish().map(drop),
            None => Ok(()),
        };
        (self.truth.take().unwrap_or_default(), rows)
    }

    fn shut_down(&mut self) {
        if self.truth.is_some() {
            return;
        }
        self.acceptors.stop();
        let truths: Vec<Truth> = self.workers.iter_mut().map(WorkerThread::stop).collect();
        self.truth = Some(self.merged(truths, self.shared.gatekeeper.counts()));
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// The backlog that ports are opened with: in the backlog form, one less than may be let in.
fn first_backlog(limits: &ConnectionLimits, now: Stamp) -> i32 {
    let mut room = u64::MAX;
    if limits.at_rate == AcceptLimit::Backlog
        && let Some(bucket) = limits.bucket(now)
    {
        room = bucket.capacity();
    }
    if limits.at_cap == Some(ConnectionLimit::Backlog) {
        room = room.min(limits.max.unwrap_or(u64::MAX));
    }
    i32::try_from(room.saturating_sub(1)).map_or(BACKLOG, |room| room.min(BACKLOG))
}

fn listen(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(IpProtocol::TCP),
    )?;
    // Lets a server start again while connections of its predecessor linger; a port that somebody
    // listens on stays refused.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    // Without any connection there is room for as many as may be let in.
    socket.listen(backlog)?;
    Ok(socket.into())
}
