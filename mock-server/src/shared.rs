//! What all workers of a server share: settings, data, the register of clients, mail.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock};

use kvlab_timing::Stamp;
use kvlab_timing::wall::WallClock;

use crate::clients::Clients;
use crate::config::ServerConfig;
use crate::dialect::{aerospike, redis};
use crate::event::PostOffice;
use crate::latency::Station;
use crate::limit::Gatekeeper;
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
        let redis = redis::State::new(&config);
        let redis_max = redis.settings.live().clients_max();
        Self {
            started,
            gatekeeper: Gatekeeper::new(&config.connections, redis_max, started),
            station: config.queue.as_ref().map(Station::new).map(Mutex::new),
            gate: Gate::new(config.workers),
            clients: Clients::default(),
            post,
            redis,
            aerospike: aerospike::State::new(&config),
            addresses: OnceLock::new(),
            wall,
            wall_shift_ns: AtomicI64::new(0),
            config,
        }
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
