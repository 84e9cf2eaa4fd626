//! Stopping a run from outside and watching it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::record::Interval;

/// The handle by which a run is stopped early; clones share it.
///
/// It also counts how often each local address was connected, which is part of the join key of
/// rows: runs against one and the same server process should share one control.
#[derive(Clone, Debug, Default)]
pub struct Control {
    stop: Arc<AtomicBool>,
    ordinals: Arc<Mutex<HashMap<SocketAddr, u32>>>,
}

impl Control {
    /// A control that lets the run go on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A control for a run against another server process: it is stopped together with this one,
    /// and counts connections anew.
    #[must_use]
    pub fn for_another_server(&self) -> Self {
        Self {
            stop: Arc::clone(&self.stop),
            ordinals: Arc::default(),
        }
    }

    /// Ends the load: what is in flight is still awaited for up to a second, what is due and not
    /// sent is counted as not sent, and the summary is made. Safe from any thread.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::stop`] was called.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How many times this local address was connected before; counts the call.
    pub(crate) fn next_ordinal(&self, local: SocketAddr) -> u32 {
        let mut ordinals = self.ordinals.lock().unwrap_or_else(PoisonError::into_inner);
        let count = ordinals.entry(local).or_default();
        let ordinal = *count;
        *count += 1;
        ordinal
    }
}

/// Watches a run.
pub trait Observer {
    /// All connections that will be are up; the load begins.
    fn started(&mut self, _connections: u64) {}

    /// One interval is over.
    fn interval(&mut self, interval: &Interval);
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn interval(&mut self, _interval: &Interval) {}
}
