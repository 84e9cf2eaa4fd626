//! A periodic freeze: for a while in each period the server executes nothing and answers nothing,
//! though it goes on reading and stamping. This is what a stop-the-world collection, a fork or a
//! failover looks like from outside.

use kvlab_timing::Stamp;

/// Freezes of `length_ns` that begin `first_ns` after the server's start and then every `every_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    /// From the beginning of one freeze to the beginning of the next, in nanoseconds.
    pub every_ns: u64,
    /// How long each lasts, in nanoseconds; shorter than `every_ns`.
    pub length_ns: u64,
    /// From the server's start to the beginning of the first, in nanoseconds.
    pub first_ns: u64,
}

impl Freeze {
    /// If `now` lies in a freeze, the moment at which it ends.
    #[must_use]
    pub fn end(&self, started: Stamp, now: Stamp) -> Option<Stamp> {
        let since_first = now
            .as_nanos()
            .checked_sub(started.as_nanos())?
            .checked_sub(self.first_ns)?;
        let into = since_first % self.every_ns;
        (into < self.length_ns).then(|| now.add_nanos(self.length_ns - into))
    }

    /// `moment`, or the end of the freeze it lies in.
    #[must_use]
    pub fn after(&self, started: Stamp, moment: Stamp) -> Stamp {
        self.end(started, moment).unwrap_or(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_in_a_freeze_move_to_its_end() {
        let freeze = Freeze {
            every_ns: 2000,
            length_ns: 150,
            first_ns: 1000,
        };
        let started = Stamp::from_nanos(50);
        let at = |ns| freeze.after(started, Stamp::from_nanos(50 + ns)).as_nanos() - 50;
        assert_eq!(at(0), 0);
        assert_eq!(at(999), 999);
        assert_eq!(at(1000), 1150);
        assert_eq!(at(1149), 1150);
        assert_eq!(at(1150), 1150);
        assert_eq!(at(3100), 3150);
        assert_eq!(freeze.after(started, Stamp::from_nanos(10)).as_nanos(), 10);
    }
}
