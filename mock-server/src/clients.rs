//! The register of connected clients, which any connection may look into (CLIENT LIST) or reach
//! through (CLIENT KILL).

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvlab_timing::Stamp;

use crate::event::ConnId;
use crate::exchange::Protocol;

/// One connected client, as other connections may see it.
#[derive(Debug)]
pub struct ClientInfo {
    /// Its number, which is the CLIENT ID of Redis too.
    pub id: ConnId,
    /// The worker that serves it.
    pub worker: usize,
    /// The client's address.
    pub peer: SocketAddr,
    /// The address it connected to.
    pub local: SocketAddr,
    /// How many times `peer` had been accepted before on this port.
    pub ordinal: u32,
    /// When it was accepted.
    pub connected: Stamp,
    /// What the client told about itself and what it chose; locked briefly and seldom.
    details: Mutex<Details>,
    last_active: AtomicU64,
    last_command: AtomicU16,
}

/// What a client told about itself and what it chose.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// The protocol it speaks, once known.
    pub protocol: Option<Protocol>,
    /// CLIENT SETNAME.
    pub name: Vec<u8>,
    /// CLIENT SETINFO LIB-NAME.
    pub lib_name: Vec<u8>,
    /// CLIENT SETINFO LIB-VER.
    pub lib_ver: Vec<u8>,
    /// The user it is logged in as.
    pub user: Vec<u8>,
    /// The selected database.
    pub db: usize,
    /// 2 or 3.
    pub resp: u8,
    /// Queued commands of a transaction, if one is open.
    pub multi: Option<usize>,
    /// Number of watched keys.
    pub watching: usize,
    /// CLIENT NO-EVICT and NO-TOUCH.
    pub no_evict: bool,
    /// CLIENT NO-TOUCH.
    pub no_touch: bool,
}

impl ClientInfo {
    /// A client that is no connection: commands that come from inside the process. Not registered,
    /// so no other client sees it; its number 0 is nobody else's.
    #[must_use]
    pub(crate) fn inside(worker: usize, now: Stamp) -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self::new(ConnId(0), worker, nowhere, nowhere, 0, now)
    }

    fn new(
        id: ConnId,
        worker: usize,
        peer: SocketAddr,
        local: SocketAddr,
        ordinal: u32,
        now: Stamp,
    ) -> Self {
        Self {
            id,
            worker,
            peer,
            local,
            ordinal,
            connected: now,
            details: Mutex::new(Details {
                resp: 2,
                user: b"default".to_vec(),
                ..Details::default()
            }),
            last_active: AtomicU64::new(now.as_nanos()),
            last_command: AtomicU16::new(0),
        }
    }

    /// Locks the details. Never hold two clients' details at once.
    pub fn details(&self) -> MutexGuard<'_, Details> {
        self.details.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the client was heard at `now`, last with the command of that ordinal.
    pub fn note(&self, now: Stamp, command: u16) {
        self.last_active.store(now.as_nanos(), Ordering::Relaxed);
        self.last_command.store(command, Ordering::Relaxed);
    }

    /// Ordinal of the client's last command in its protocol's table.
    #[must_use]
    pub fn last_command(&self) -> u16 {
        self.last_command.load(Ordering::Relaxed)
    }

    /// When the client was last heard.
    #[must_use]
    pub fn last_active(&self) -> Stamp {
        Stamp::from_nanos(self.last_active.load(Ordering::Relaxed))
    }
}

/// All connected clients, and how often each address was accepted.
#[derive(Debug, Default)]
pub struct Clients {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last_id: u64,
    connected: BTreeMap<ConnId, Arc<ClientInfo>>,
    /// Acceptances by (local port, peer). Bounded by the number of client addresses, which is at
    /// most 64 Ki per client host and port.
    accepted: HashMap<(u16, SocketAddr), u32>,
}

/// A connection that is there, served or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number.
    pub id: ConnId,
    /// The client's address.
    pub peer: SocketAddr,
    /// The address it connected to.
    pub local: SocketAddr,
    /// How many times `peer` had come before to this port.
    pub ordinal: u32,
}

impl Inner {
    fn arrive(&mut self, peer: SocketAddr, local: SocketAddr) -> (ConnId, u32) {
        self.last_id += 1;
        let count = self.accepted.entry((local.port(), peer)).or_default();
        let ordinal = *count;
        *count += 1;
        (ConnId(self.last_id), ordinal)
    }
}

impl Clients {
    /// Registers a connection accepted at `now` and gives it its number and ordinal.
    pub fn accept(
        &self,
        now: Stamp,
        worker: usize,
        peer: SocketAddr,
        local: SocketAddr,
    ) -> Arc<ClientInfo> {
        let mut inner = self.lock();
        let (id, ordinal) = inner.arrive(peer, local);
        let client = Arc::new(ClientInfo::new(id, worker, peer, local, ordinal, now));
        inner.connected.insert(id, Arc::clone(&client));
        client
    }

    /// Numbers a connection that is there and not served, or not yet: its number is no other's, and
    /// its address was accepted once more.
    pub fn arrive(&self, peer: SocketAddr, local: SocketAddr) -> Arrival {
        let (id, ordinal) = self.lock().arrive(peer, local);
        Arrival {
            id,
            peer,
            local,
            ordinal,
        }
    }

    /// Registers a connection that arrived before, accepted at `now`.
    pub fn register(&self, now: Stamp, worker: usize, arrival: &Arrival) -> Arc<ClientInfo> {
        let Arrival {
            id,
            peer,
            local,
            ordinal,
        } = *arrival;
        let client = Arc::new(ClientInfo::new(id, worker, peer, local, ordinal, now));
        self.lock().connected.insert(id, Arc::clone(&client));
        client
    }

    /// Forgets a connection.
    pub fn remove(&self, id: ConnId) {
        self.lock().connected.remove(&id);
    }

    /// The client numbered `id`.
    #[must_use]
    pub fn find(&self, id: ConnId) -> Option<Arc<ClientInfo>> {
        self.lock().connected.get(&id).cloned()
    }

    /// All clients, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<ClientInfo>> {
        self.lock().connected.values().cloned().collect()
    }

    /// How many clients are connected.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().connected.len()
    }

    /// Whether no client is connected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
