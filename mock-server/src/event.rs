//! Events that reach a connection from elsewhere, and the mailboxes that carry them.
//!
//! Whatever one connection does to another (a kill, the end of a pause, later the wake of a blocked
//! command or a pushed message) travels as an [`Event`] with a global order number. Each worker has
//! one mailbox and one wake-up; the virtual shell empties the mailboxes in order.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Names a connection: the ordinal of its acceptance in the whole server, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

impl ConnId {
    /// Its number as rules count connections: in the order of acceptance, from 0.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0.saturating_sub(1)
    }
}

/// Something that happens to a connection from outside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Close the connection; replies already due are still sent.
    Kill,
    /// Parked requests may try again: a pause ended.
    PauseEnd,
    /// What RESP connections are limited to has changed.
    NewLimits,
}

/// Whom an event is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipient {
    /// One connection of the worker.
    Connection(ConnId),
    /// Every connection of the worker.
    All,
}

/// An event on its way.
#[derive(Debug, Clone, Copy)]
pub struct Mail {
    /// Position in the order of all events of the server.
    pub order: u64,
    /// Whom it is for.
    pub to: Recipient,
    /// What happens.
    pub event: Event,
}

/// The mailboxes of all workers.
pub struct PostOffice {
    order: AtomicU64,
    boxes: Vec<Mailbox>,
}

struct Mailbox {
    mail: Mutex<Vec<Mail>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl PostOffice {
    /// One mailbox per element of `wakes`; each function tells its worker that mail has come.
    #[must_use]
    pub fn new(wakes: Vec<Box<dyn Fn() + Send + Sync>>) -> Self {
        let boxes = wakes.into_iter().map(|wake| Mailbox {
            mail: Mutex::default(),
            wake,
        });
        Self {
            order: AtomicU64::new(0),
            boxes: boxes.collect(),
        }
    }

    /// Sends `event` to one connection of `worker`.
    pub fn send(&self, worker: usize, to: ConnId, event: Event) {
        self.post(worker, Recipient::Connection(to), event);
    }

    /// Sends `event` to every connection of every worker.
    pub fn broadcast(&self, event: Event) {
        for worker in 0..self.boxes.len() {
            self.post(worker, Recipient::All, event);
        }
    }

    /// Takes all mail of `worker`, in order.
    #[must_use]
    pub fn take(&self, worker: usize) -> Vec<Mail> {
        match self.boxes.get(worker) {
            Some(mailbox) => {
                std::mem::take(&mut *mailbox.mail.lock().unwrap_or_else(PoisonError::into_inner))
            }
            None => Vec::new(),
        }
    }

    fn post(&self, worker: usize, to: Recipient, event: Event) {
        let Some(mailbox) = self.boxes.get(worker) else {
            return;
        };
        {
            let mut mail = mailbox.mail.lock().unwrap_or_else(PoisonError::into_inner);
            // Numbered under the lock, so that a mailbox is always in order.
            let order = self.order.fetch_add(1, Ordering::Relaxed);
            mail.push(Mail { order, to, event });
        }
        (mailbox.wake)();
    }
}

impl fmt::Debug for PostOffice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostOffice")
            .field("workers", &self.boxes.len())
            .finish_non_exhaustive()
    }
}
