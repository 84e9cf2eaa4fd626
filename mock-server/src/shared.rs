//! What all workers of a server share: settings, data, the register of clients, mail.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use kvlab_timing::Stamp;
use kvlab_timing::wall::WallClock;

use crate::clients::Clients;
use crate::config::ServerConfig;
use crate::dialect::{aerospike, redis};
use crate::event::PostOffice;
use crate::latency::Station;
use crate::limit::Gatekeeper;
use crate::limit::size::Sizes;
use crate::limit::throttle::Throttles;
use crate::store::Gate;

/// What all workers of a server share.
#[derive(Debug)]
pub struct Shared {
    /// The settings it was started with.
    pub config: ServerConfig,
    /// When it started; freezes count from here.
    pub started: Stamp,
    /// The queue that reads and writes pass, if there is one.
    pub(crate) station: Option<Mutex<Station>>,
    /// The throttles that requests ask, if there are any.
    pub(crate) throttles: Option<Mutex<Throttles>>,
    /// How large requests may be, if that is limited.
    pub(crate) sizes: Option<Arc<Sizes>>,
    /// Makes commands over several keys atomic.
    pub gate: Gate,
    /// Decides who is let in.
    pub gatekeeper: Gatekeeper,
    /// The connected clients.
    pub clients: Clients,
    /// Carries events between connections.
    pub post: PostOffice,
    /// Databases and state of the RESP side.
    pub redis: redis::State,
    /// Namespaces and state of the Aerospike side.
    pub aerospike: aerospike::State,
    /// The addresses listened on, once known.
    pub addresses: OnceLock<Addresses>,
    /// What the TLS ports are served with, if there are any.
    pub(crate) tls: OnceLock<Arc<rustls::ServerConfig>>,
    wall: WallClock,
    /// How far a test has moved the calendar, in nanoseconds.
    wall_shift_ns: AtomicI64,
}

/// The addresses a server listens on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Addresses {
    /// RESP.
    pub redis: Option<SocketAddr>,
    /// Aerospike.
    pub aerospike: Option<SocketAddr>,
    /// Both, told apart by the first byte.
    pub shared: Option<SocketAddr>,
    /// RESP over TLS.
    pub redis_tls: Option<SocketAddr>,
    /// Aerospike over TLS.
    pub aerospike_tls: Option<SocketAddr>,
    /// Both over TLS, where TLS is required.
    pub shared_tls: Option<SocketAddr>,
}

impl Addresses {
    /// Whether `local`, the server's end of a connection, is a TLS port.
    #[must_use]
    pub fn is_tls(&self, local: SocketAddr) -> bool {
        [self.redis_tls, self.aerospike_tls, self.shared_tls]
            .into_iter()
            .flatten()
            .any(|address| address.port() == local.port())
    }
}

impl Shared {
    /// The state of a server that starts at `started`.
    #[must_use]
    pub fn new(
        mut config: ServerConfig,
        started: Stamp,
        wall: WallClock,
        post: PostOffice,
    ) -> Self {
        config.latency = config.latency.restarted();
        if let Some(queue) = &mut config.queue {
            queue.service = queue.service.restarted();
        }
        let requests = &config.requests;
        let throttles = (!requests.throttles.is_empty())
            .then(|| Mutex::new(Throttles::new(&requests.throttles, started)));
        let sizes = (!requests.sizes.is_empty()).then(|| Arc::new(Sizes::new(&requests.sizes)));
        let redis = redis::State::new(&config);
        let redis_max = redis.settings.live().clients_max();
        Self {
            started,
            throttles,
            sizes,
            gatekeeper: Gatekeeper::new(&config.connections, redis_max, started),
            station: config.queue.as_ref().map(Station::new).map(Mutex::new),
            gate: Gate::new(config.workers),
            clients: Clients::default(),
            post,
            redis,
            aerospike: aerospike::State::new(&config),
            addresses: OnceLock::new(),
            tls: OnceLock::new(),
            wall,
            wall_shift_ns: AtomicI64::new(0),
            config,
        }
    }

    /// The TLS of a connection whose end here is `local`; `None` on plain ports.
    pub(crate) fn tls_of(&self, local: SocketAddr) -> Option<&Arc<rustls::ServerConfig>> {
        let tls = self.tls.get()?;
        self.addresses.get()?.is_tls(local).then_some(tls)
    }

    /// The calendar time of `moment`, in nanoseconds since 1970.
    #[must_use]
    pub fn unix_nanos(&self, moment: Stamp) -> u64 {
        let shift = self.wall_shift_ns.load(Ordering::Relaxed);
        self.wall.unix_nanos(moment).saturating_add_signed(shift)
    }

    /// The calendar time of `moment`, in milliseconds since 1970.
    #[must_use]
    pub fn unix_millis(&self, moment: Stamp) -> u64 {
        self.unix_nanos(moment) / 1_000_000
    }

    /// Moves the calendar by `by_ns` nanoseconds: expiry sees the new time, latency does not.
    pub fn shift_wall(&self, by_ns: i64) {
        self.wall_shift_ns.fetch_add(by_ns, Ordering::Relaxed);
    }
}
