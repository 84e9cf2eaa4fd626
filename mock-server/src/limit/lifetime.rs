//! What ends a connection by itself beside its age: silence, and replies that are not taken.
//!
//! A connection is idle from its last input or output on, as long as nothing is under way on it. Unsent
//! are all bytes of replies that have not been handed to the kernel, those that are not due yet too.
//! Beyond the hard limit a connection ends with the reply that passes it, beyond the soft one when it has
//! been so, without a break, for the time that belongs to it.

use std::time::Duration;

use kvlab_timing::Stamp;

use super::OutputLimit;

/// What one connection is watched for.
#[derive(Debug)]
pub(crate) struct Lifetime {
    idle_ns: Option<u64>,
    /// The last input or output.
    last: Stamp,
    output: Option<OutputLimit>,
    /// Since when more is unsent than the soft limit.
    soft_since: Option<Stamp>,
}

/// What ends a connection by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    /// It was silent for too long.
    Idle,
    /// Its client did not take its replies.
    Output,
}

impl Lifetime {
    /// What a connection that is read from `opened` on is watched for, if for anything.
    pub(crate) fn new(
        idle: Option<Duration>,
        output: Option<OutputLimit>,
        opened: Stamp,
    ) -> Option<Box<Self>> {
        (idle.is_some() || output.is_some()).then(|| {
            Box::new(Self {
                idle_ns: idle.map(nanos),
                last: opened,
                output,
                soft_since: None,
            })
        })
    }

    /// The limits are others from now on; the silence so far counts.
    pub(crate) fn change(&mut self, idle: Option<Duration>, output: Option<OutputLimit>) {
        (self.idle_ns, self.output) = (idle.map(nanos), output);
        if output.is_none_or(|limit| limit.soft.is_none()) {
            self.soft_since = None;
        }
    }

    /// Something was read or written at `now`.
    pub(crate) fn note(&mut self, now: Stamp) {
        self.last = self.last.max(now);
    }

    /// So many bytes are unsent at `now`; whether they pass the hard limit.
    pub(crate) fn is_too_much(&mut self, now: Stamp, unsent: usize) -> bool {
        let Some(limit) = self.output else {
            return false;
        };
        let unsent = unsent as u64;
        match limit.soft {
            Some((soft, _)) if unsent > soft.0 => {
                self.soft_since.get_or_insert(now);
            }
            _ => self.soft_since = None,
        }
        limit.hard.is_some_and(|hard| unsent > hard.0)
    }

    /// When the connection ends, and why, if nothing happens until then; `is_busy` says that something
    /// is under way on it.
    pub(crate) fn next(&self, is_busy: bool) -> Option<(Stamp, Death)> {
        let idle = self.idle_ns.filter(|_| !is_busy);
        let idle = idle.map(|idle_ns| (self.last.add_nanos(idle_ns), Death::Idle));
        let soft = self.output.and_then(|limit| limit.soft);
        let soft = soft.and_then(|(_, time)| {
            let since = self.soft_since?;
            Some((since.add_nanos(nanos(time)), Death::Output))
        });
        [soft, idle].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Stamp {
        Stamp::from_nanos(nanos)
    }

    #[test]
    fn silence_counts_from_the_last_word_and_only_with_nothing_under_way() {
        let idle = Some(Duration::from_nanos(100));
        let mut lifetime = Lifetime::new(idle, None, at(1_000)).unwrap();
        assert_eq!(lifetime.next(false), Some((at(1_100), Death::Idle)));
        lifetime.note(at(1_050));
        assert_eq!(lifetime.next(true), None);
        assert_eq!(lifetime.next(false), Some((at(1_150), Death::Idle)));
        lifetime.change(Some(Duration::from_nanos(10)), None);
        assert_eq!(lifetime.next(false), Some((at(1_060), Death::Idle)));
        lifetime.change(None, None);
        assert_eq!(lifetime.next(false), None);
        assert!(Lifetime::new(None, None, at(0)).is_none());
    }

    #[test]
    fn the_soft_limit_counts_without_a_break() {
        let output = "hard=100,soft=50,for=10ns".parse().ok();
        let mut lifetime = Lifetime::new(None, output, at(0)).unwrap();
        assert!(!lifetime.is_too_much(at(1), 50));
        assert_eq!(lifetime.next(false), None);
        assert!(!lifetime.is_too_much(at(2), 51));
        assert!(!lifetime.is_too_much(at(5), 100));
        assert_eq!(lifetime.next(true), Some((at(12), Death::Output)));
        assert!(!lifetime.is_too_much(at(6), 50));
        assert_eq!(lifetime.next(true), None);
        assert!(lifetime.is_too_much(at(7), 101));
    }
}
