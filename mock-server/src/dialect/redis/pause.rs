//! CLIENT PAUSE: until when commands wait, and which.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kvlab_timing::Stamp;

/// The pause of a server, if there is one.
#[derive(Debug, Default)]
pub struct Pause {
    /// End of the pause in nanoseconds of the clock; 0 when there is none.
    until: AtomicU64,
    writes_only: AtomicBool,
}

impl Pause {
    /// Whether a pause was begun and not ended; it may have run out.
    #[must_use]
    #[inline]
    pub fn is_set(&self) -> bool {
        self.until.load(Ordering::Relaxed) != 0
    }

    /// The end of the pause that a command at `now` runs into.
    #[must_use]
    #[inline]
    pub fn until(&self, now: Stamp, may_write: bool) -> Option<Stamp> {
        let until = self.until.load(Ordering::Relaxed);
        if until == 0 || until <= now.as_nanos() {
            return None;
        }
        (may_write || !self.writes_only.load(Ordering::Relaxed)).then(|| Stamp::from_nanos(until))
    }

    /// Whether a pause holds writes, and expiry with them, at `now`.
    #[must_use]
    #[inline]
    pub fn is_active(&self, now: Stamp) -> bool {
        self.until(now, true).is_some()
    }

    /// Pauses until `until`. A pause under way is never shortened, and one of all commands is not
    /// narrowed to writes.
    pub fn begin(&self, now: Stamp, until: Stamp, writes_only: bool) {
        let running = self.is_active(now);
        let narrow = writes_only && (!running || self.writes_only.load(Ordering::Relaxed));
        self.writes_only.store(narrow, Ordering::Relaxed);
        let kept = if running {
            self.until.load(Ordering::Relaxed)
        } else {
            0
        };
        self.until
            .store(kept.max(until.as_nanos()), Ordering::Relaxed);
    }

    /// Ends the pause.
    pub fn end(&self) {
        self.until.store(0, Ordering::Relaxed);
    }
}
