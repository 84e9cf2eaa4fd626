//! The schedule of a thread: when its next request is due.
//!
//! Pure arithmetic on stamps. A closed loop has no due moments: a request is due whenever a slot is
//! free. The measured part has a schedule of its own that begins at its start, so the warm-up
//! does not move it. Where connections come step by step, each step has a rate of its own from its
//! moment on.

use std::collections::VecDeque;

use kvlab_timing::{GapPacer, Pacer, Rate, Stamp};
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::keyspace::Share;
use crate::random::{self, Use};
use crate::settings::{Arrivals, Load};

/// The due moments of one thread in one part of a run.
#[derive(Clone, Debug)]
pub struct Schedule {
    law: Law,
    /// No request of the law is due at or after this moment.
    end: Stamp,
    /// Requests that may still become due.
    left: u64,
    /// This thread among all.
    thread: u64,
    /// Arrivals from one of this thread to its next.
    stride: u64,
    /// What comes after `end`; empty where the rate never changes.
    later: VecDeque<Step>,
}

/// A part of a schedule with a rate of its own.
#[derive(Clone, Copy, Debug)]
struct Step {
    start: Stamp,
    end: Stamp,
    rate: Rate,
}

#[derive(Clone, Debug)]
enum Law {
    Closed {
        start: Stamp,
    },
    Uniform(Pacer),
    Poisson {
        pacer: GapPacer,
        mean_ns: f64,
        rng: Xoshiro256PlusPlus,
    },
}

/// What the schedule says of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Due since this moment.
    Since(Stamp),
    /// A closed loop: due as soon as it can be sent.
    AtOnce,
    /// Not before this moment.
    NotBefore(Stamp),
    /// Nothing more will be due.
    Over,
}

impl Schedule {
    /// The schedule from `start` to `end` (not included), with at most `requests` requests for
    /// this thread. Uniform arrivals are dealt out in turn: thread k of T takes the arrivals k,
    /// k+T, ...; Poisson arrivals are T independent streams of a T-th of the rate.
    #[must_use]
    pub fn new(
        load: Load,
        share: Share,
        (start, end): (Stamp, Stamp),
        requests: Option<u64>,
        (seed, part): (u64, u64),
    ) -> Self {
        let (thread, threads) = (u64::from(share.thread), u64::from(share.threads));
        let law = match load {
            Load::Closed => Law::Closed { start },
            Load::Open {
                rate,
                arrivals: Arrivals::Uniform,
            } => Law::Uniform(Pacer::uniform(rate, start, thread, threads)),
            Load::Open {
                rate,
                arrivals: Arrivals::Poisson,
            } => {
                let rng = random::stream(seed, part, share.thread, Use::Arrivals);
                let mean_ns = rate.mean_gap_ns() * f64::from(share.threads);
                Law::poisson(start, mean_ns, rng)
            }
        };
        let left = requests.map_or(u64::MAX, |all| share_of(all, thread, threads));
        Self {
            law,
            end,
            left,
            thread,
            stride: threads,
            later: VecDeque::new(),
        }
    }

    /// The same with other rates from these moments on, which lie in order and after the start.
    /// Without effect on a closed loop.
    #[must_use]
    pub fn with_steps(mut self, steps: impl IntoIterator<Item = (Stamp, Rate)>) -> Self {
        if !self.is_open() {
            return self;
        }
        let end = self.end;
        for (start, rate) in steps {
            if start >= end {
                break;
            }
            match self.later.back_mut() {
                Some(before) => before.end = start,
                None => self.end = start,
            }
            self.later.push_back(Step { start, end, rate });
        }
        self.settle();
        self
    }

    /// Whether a request is due at `now`, or when one will be.
    #[inline]
    #[must_use]
    pub fn look(&self, now: Stamp) -> Due {
        if self.left == 0 {
            return Due::Over;
        }
        let due = match &self.law {
            Law::Closed { .. } if now >= self.end => return Due::Over,
            Law::Closed { start } if now >= *start => return Due::AtOnce,
            Law::Closed { start } => *start,
            Law::Uniform(pacer) => pacer.peek(),
            Law::Poisson { pacer, .. } => pacer.last(),
        };
        if due >= self.end {
            Due::Over
        } else if due <= now {
            Due::Since(due)
        } else {
            Due::NotBefore(due)
        }
    }

    /// Takes the request that [`Self::look`] found.
    #[inline]
    pub fn take(&mut self) {
        self.left -= 1;
        match &mut self.law {
            Law::Closed { .. } => {}
            Law::Uniform(pacer) => {
                pacer.next();
            }
            Law::Poisson {
                pacer,
                mean_ns,
                rng,
            } => {
                let gap: f64 = Exp1.sample(rng);
                pacer.after(gap * *mean_ns);
            }
        }
        if !self.later.is_empty() {
            self.settle();
        }
    }

    /// Goes over to the step in which the next request is due.
    fn settle(&mut self) {
        while self.law.next_due() >= self.end {
            let Some(step) = self.later.pop_front() else {
                return;
            };
            (self.law, self.end) = (self.law_of(&step), step.end);
        }
    }

    fn law_of(&self, step: &Step) -> Law {
        match &self.law {
            Law::Closed { .. } => Law::Closed { start: step.start },
            Law::Uniform(_) => Law::Uniform(Pacer::uniform(
                step.rate,
                step.start,
                self.thread,
                self.stride,
            )),
            Law::Poisson { rng, .. } => {
                let mean_ns = step.rate.mean_gap_ns() * threads_as_float(self.stride);
                Law::poisson(step.start, mean_ns, rng.clone())
            }
        }
    }

    /// Ends the schedule at `end` if that is earlier than its end.
    pub fn end_at(&mut self, end: Stamp) {
        self.end = self.end.min(end);
        self.later.retain(|step| step.start < end);
        if let Some(last) = self.later.back_mut() {
            last.end = last.end.min(end);
        }
    }

    /// Requests that are due at `now` and were not taken; for Poisson arrivals, whose moments are
    /// drawn one by one, the number to be expected.
    #[must_use]
    pub fn backlog(&self, now: Stamp) -> u64 {
        let mut count = self
            .law
            .backlog(now.min(self.end.sub_nanos(1)), self.stride);
        for step in self.later.iter().filter(|step| step.start <= now) {
            let latest = now.min(step.end.sub_nanos(1));
            count = count.saturating_add(self.law_of(step).backlog(latest, self.stride));
        }
        count.min(self.left)
    }

    /// Whether requests have due moments of their own.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.law, Law::Closed { .. })
    }
}

impl Law {
    /// Independent gaps from `start` on; the first is drawn.
    fn poisson(start: Stamp, mean_ns: f64, mut rng: Xoshiro256PlusPlus) -> Self {
        let mut pacer = GapPacer::new(start);
        let gap: f64 = Exp1.sample(&mut rng);
        pacer.after(gap * mean_ns);
        Self::Poisson {
            pacer,
            mean_ns,
            rng,
        }
    }

    /// When the next request is due at the earliest.
    fn next_due(&self) -> Stamp {
        match self {
            Self::Closed { start } => *start,
            Self::Uniform(pacer) => pacer.peek(),
            Self::Poisson { pacer, .. } => pacer.last(),
        }
    }

    /// Requests due up to `latest`.
    fn backlog(&self, latest: Stamp, stride: u64) -> u64 {
        match self {
            Self::Closed { .. } => 0,
            Self::Uniform(pacer) => backlog_of(pacer, latest, stride),
            Self::Poisson { pacer, mean_ns, .. } => match latest.since(pacer.last()) {
                ..0 => 0,
                since => 1 + estimate(since, *mean_ns),
            },
        }
    }
}

/// The share of thread `k` of `threads` in `all` requests dealt out in turn.
pub(crate) fn share_of(all: u64, k: u64, threads: u64) -> u64 {
    all / threads + u64::from(k < all % threads)
}

/// How many of the thread's arrivals lie at or before `latest`: doubling, then halving.
fn backlog_of(pacer: &Pacer, latest: Stamp, stride: u64) -> u64 {
    let due = |ahead: u64| {
        let index = stride
            .checked_mul(ahead)
            .and_then(|ahead| pacer.index().checked_add(ahead));
        index.is_some_and(|index| pacer.intended(index) <= latest)
    };
    if !due(0) {
        return 0;
    }
    let mut beyond = 1;
    while due(beyond) {
        beyond *= 2;
    }
    let mut within = beyond / 2;
    while beyond - within > 1 {
        let middle = within + (beyond - within) / 2;
        if due(middle) {
            within = middle
        } else {
            beyond = middle
        }
    }
    within + 1
}

#[expect(clippy::cast_precision_loss, reason = "threads are few")]
fn threads_as_float(threads: u64) -> f64 {
    threads as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an estimate; the cast saturates"
)]
fn estimate(since_ns: i64, mean_ns: f64) -> u64 {
    (since_ns as f64 / mean_ns) as u64
}

#[cfg(test)]
mod tests {
    use kvlab_timing::Rate;
    use proptest::prelude::*;

    use super::*;

    fn share(thread: u32, threads: u32) -> Share {
        Share {
            thread,
            threads,
            first_connection: 0,
            connections: 1,
            all_connections: threads,
        }
    }

    fn all(mut schedule: Schedule) -> Vec<u64> {
        let mut dues = Vec::new();
        while let Due::Since(due) = schedule.look(Stamp::MAX) {
            dues.push(due.as_nanos());
            schedule.take();
        }
        dues
    }

    const SECOND: u64 = 1_000_000_000;

    fn span(start: u64, length: u64) -> (Stamp, Stamp) {
        (Stamp::from_nanos(start), Stamp::from_nanos(start + length))
    }

    proptest! {
        #[test]
        fn threads_together_have_every_arrival_once(
            rate in 1_u64..5000, threads in 1_u32..5, length in 1_u64..SECOND,
        ) {
            let load = Load::Open {
                rate: Rate::per_second(rate).unwrap(),
                arrivals: Arrivals::Uniform,
            };
            let mut found: Vec<u64> = (0..threads)
                .flat_map(|k| all(Schedule::new(load, share(k, threads), span(7, length), None, (1, 0))))
                .collect();
            found.sort_unstable();
            // Arrival i at 7 + floor(i * 10^9 / rate), as long as that lies before the end.
            let expected: Vec<u64> = (0..)
                .map(|i: u64| i * SECOND / rate)
                .take_while(|due| *due < length)
                .map(|due| due + 7)
                .collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_number_of_requests_is_dealt_out_completely(requests in 0_u64..1000, threads in 1_u32..6) {
            let taken: u64 = (0..threads)
                .map(|k| share_of(requests, u64::from(k), u64::from(threads)))
                .sum();
            prop_assert_eq!(taken, requests);
        }
    }

    #[test]
    fn backlog_counts_what_is_due_and_not_taken() {
        let load = Load::Open {
            rate: Rate::per_second(3).unwrap(),
            arrivals: Arrivals::Uniform,
        };
        // Arrivals 1, 3, 5, 7 of thread 1 of 2: 0.333, 1.0, 1.666, 2.333 s.
        let mut schedule = Schedule::new(load, share(1, 2), span(0, 2 * SECOND), None, (1, 0));
        let mut counts = Vec::new();
        for now in [0, 333_333_332, 333_333_333, SECOND, 10 * SECOND] {
            counts.push(schedule.backlog(Stamp::from_nanos(now)));
        }
        assert_eq!(counts, [0, 0, 1, 2, 3]);
        schedule.take();
        assert_eq!(schedule.backlog(Stamp::from_nanos(SECOND)), 1);
    }

    #[test]
    fn each_step_begins_at_its_moment_with_its_rate() {
        let rate = |rate| Rate::per_second(rate).unwrap();
        let load = Load::Open {
            rate: rate(2),
            arrivals: Arrivals::Uniform,
        };
        let steps = [(1, 3), (2, 1), (5, 9)];
        let schedule = |k| {
            let steps = steps.map(|(at, each)| (Stamp::from_nanos(at * SECOND), rate(each)));
            Schedule::new(load, share(k, 2), span(0, 4 * SECOND), None, (1, 0)).with_steps(steps)
        };
        let mut found = [all(schedule(0)), all(schedule(1))].concat();
        found.sort_unstable();
        // 2 in the first second, 3 in the next, 1 in each of the two after it; the step at the
        // end of the schedule or after it never comes.
        let expected = [
            0,
            SECOND / 2,
            SECOND,
            SECOND + SECOND / 3,
            SECOND + 2 * SECOND / 3,
            2 * SECOND,
            3 * SECOND,
        ];
        assert_eq!(found, expected);
        // Those of thread 0 are the even ones of each step.
        let own = [0, SECOND, SECOND + 2 * SECOND / 3, 2 * SECOND];
        assert_eq!(all(schedule(0)), own);
        let backlogs = [0, SECOND - 1, SECOND, 2 * SECOND, 9 * SECOND]
            .map(|now| schedule(0).backlog(Stamp::from_nanos(now)));
        assert_eq!(backlogs, [1, 1, 2, 4, 4]);
        let mut cut = schedule(0);
        cut.end_at(Stamp::from_nanos(SECOND + 1));
        assert_eq!(all(cut), [0, SECOND]);
    }

    #[test]
    fn poisson_gaps_have_mean_and_spread_of_the_exponential_law() {
        let load = Load::Open {
            rate: Rate::per_second(1000).unwrap(),
            arrivals: Arrivals::Poisson,
        };
        let dues = all(Schedule::new(
            load,
            share(0, 1),
            span(0, 100 * SECOND),
            None,
            (5, 0),
        ));
        let gaps: Vec<f64> = dues
            .windows(2)
            .map(|pair| {
                (Stamp::from_nanos(pair[1]).saturating_since(Stamp::from_nanos(pair[0]))) as f64
            })
            .collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n).sqrt();
        // Five standard errors at n = 100 000: 1.6 % of the mean, 2.3 % of the deviation.
        assert!((mean - 1e6).abs() < 0.016e6, "{mean}");
        assert!((deviation - 1e6).abs() < 0.023e6, "{deviation}");
        // A third of e^-1 of the gaps is above the mean.
        let above = gaps.iter().filter(|gap| **gap > 1e6).count() as f64 / n;
        assert!((above - 0.3679).abs() < 0.008, "{above}");
    }

    #[test]
    fn closed_loop_is_due_at_once_until_its_end_or_number() {
        let mut schedule = Schedule::new(Load::Closed, share(0, 1), span(0, 10), Some(1), (1, 0));
        assert_eq!(schedule.look(Stamp::from_nanos(9)), Due::AtOnce);
        assert_eq!(schedule.look(Stamp::from_nanos(10)), Due::Over);
        schedule.take();
        assert_eq!(schedule.look(Stamp::ZERO), Due::Over);
    }
}
