//! What a server measured of itself during a run: distributions by kind of request, counters, stalls.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use kvlab_timing::Stamp;

use crate::exchange::{Class, Protocol};
use crate::latency::Freeze;
use crate::limit::AcceptCounts;
use crate::stamp::FaultKind;

/// The longest delay a histogram represents: one hour; longer ones are counted as one hour.
pub const LONGEST_NS: u64 = 3_600_000_000_000;

/// Distributions of what was wanted and what was done, in nanoseconds.
#[derive(Debug, Clone)]
pub struct Timings {
    /// The delay that was wanted, per request.
    pub wanted: Histogram<u64>,
    /// `due - read`: all that the rules gave.
    pub given: Histogram<u64>,
    /// `written - read`: the true sojourn.
    pub sojourn: Histogram<u64>,
    /// `written - due`: the injection error.
    pub injection_error: Histogram<u64>,
    /// `(due - read) - (wanted, queue and throttle)`: time spent waiting for order or for the end of a
    /// freeze.
    pub order_delay: Histogram<u64>,
    /// What requests spent in the queue, waiting and being served; empty without a queue.
    pub queue: Histogram<u64>,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            wanted: histogram(),
            given: histogram(),
            sojourn: histogram(),
            injection_error: histogram(),
            order_delay: histogram(),
            queue: histogram(),
        }
    }
}

fn histogram() -> Histogram<u64> {
    // The bounds are legal constants, so this cannot fail.
    Histogram::new_with_bounds(1, LONGEST_NS, 3).unwrap_or_else(|_| unreachable!())
}

/// The moments of a request that are being turned into statistics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) read: Stamp,
    pub(crate) wanted_ns: u64,
    /// What it spent in the queue, if it passed one.
    pub(crate) queue_ns: Option<u64>,
    /// What throttles made it wait.
    pub(crate) throttle_ns: u64,
    pub(crate) due: Stamp,
    pub(crate) written: Stamp,
}

impl Timings {
    /// Records `count` requests that share their stamps.
    pub(crate) fn record(&mut self, count: u64, times: &Times) {
        let given = times.due.saturating_since(times.read);
        let asked = times.wanted_ns + times.queue_ns.unwrap_or(0) + times.throttle_ns;
        self.wanted.saturating_record_n(times.wanted_ns, count);
        self.given.saturating_record_n(given, count);
        self.sojourn
            .saturating_record_n(times.written.saturating_since(times.read), count);
        self.injection_error
            .saturating_record_n(times.written.saturating_since(times.due), count);
        self.order_delay
            .saturating_record_n(given.saturating_sub(asked), count);
        if let Some(queue_ns) = times.queue_ns {
            self.queue.saturating_record_n(queue_ns, count);
        }
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.wanted, &other.wanted),
            (&mut self.given, &other.given),
            (&mut self.sojourn, &other.sojourn),
            (&mut self.injection_error, &other.injection_error),
            (&mut self.order_delay, &other.order_delay),
            (&mut self.queue, &other.queue),
        ] {
            // Same bounds on both sides: adding cannot fail.
            let _ = mine.add(theirs);
        }
    }

    fn reset(&mut self) {
        self.wanted.reset();
        self.given.reset();
        self.sojourn.reset();
        self.injection_error.reset();
        self.order_delay.reset();
        self.queue.reset();
    }
}

/// What kind of request a distribution is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Read, write or neither.
    pub class: Class,
    /// What happened to it beside its delay.
    pub fault: FaultKind,
}

/// Distributions of all answered requests, together and by kind, and counters.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// All answered requests.
    pub all: Timings,
    /// The same by kind; kinds that did not occur are left out.
    pub kinds: BTreeMap<Kind, Timings>,
    /// Requests executed, by command.
    pub calls: BTreeMap<(Protocol, &'static str), u64>,
    /// Counters.
    pub counts: Counts,
}

/// Counters of a run. Requests are counted in the run in which they were read, everything else when
/// it happens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that were not: their connection ended, or they have no reply by design.
    pub unanswered: u64,
    /// Requests that a full queue refused; they are answered.
    pub refused: u64,
    /// Requests whose start or reply a throttle delayed.
    pub delayed: u64,
    /// Requests that a throttle refused; they are answered.
    pub throttled: u64,
    /// Requests that a throttle dropped, and those behind them; they are never answered.
    pub dropped: u64,
    /// Requests that were too large; they are answered.
    pub too_large: u64,
    /// Writes for which there was no memory; they are answered.
    pub out_of_memory: u64,
    /// Requests for commands that nobody may run; they are answered.
    pub blocked: u64,
    /// Keys that were evicted.
    pub evicted: u64,
    /// Replies to requests that were read before the run began; they are counted nowhere else.
    pub late: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// What was done with connections when they came.
    pub accepting: AcceptCounts,
    /// Connections that ended because they were silent for too long.
    pub idle: u64,
    /// Connections that ended because of their age.
    pub aged: u64,
    /// Connections that ended because their client did not take their replies.
    pub output: u64,
    /// Connections that a cut ended in an orderly way.
    pub closed: u64,
    /// Connections that a cut reset.
    pub reset: u64,
    /// Bytes read from clients.
    pub bytes_in: u64,
    /// Bytes written to clients.
    pub bytes_out: u64,
}

impl Counts {
    fn merge(&mut self, other: &Self) {
        self.answered += other.answered;
        self.unanswered += other.unanswered;
        self.refused += other.refused;
        self.delayed += other.delayed;
        self.throttled += other.throttled;
        self.dropped += other.dropped;
        self.too_large += other.too_large;
        self.out_of_memory += other.out_of_memory;
        self.blocked += other.blocked;
        self.evicted += other.evicted;
        self.late += other.late;
        self.accepted += other.accepted;
        self.accepting.merge(&other.accepting);
        self.idle += other.idle;
        self.aged += other.aged;
        self.output += other.output;
        self.closed += other.closed;
        self.reset += other.reset;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

impl Stats {
    /// Adds what another worker recorded.
    pub fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        for (kind, timings) in &other.kinds {
            self.kinds.entry(*kind).or_default().merge(timings);
        }
        for (name, count) in &other.calls {
            *self.calls.entry(*name).or_default() += count;
        }
        self.counts.merge(&other.counts);
    }
}

/// The distributions of one worker as it writes them: a place for each kind, made when the first
/// request of the kind is answered.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    kinds: [[Option<Box<Timings>>; FaultKind::ALL.len()]; Class::ALL.len()],
}

impl Recorder {
    /// Records `count` answered requests of one kind that share their stamps.
    #[inline]
    pub(crate) fn record(&mut self, kind: Kind, count: u64, times: &Times) {
        let of_class = &mut self.kinds[kind.class as usize];
        let timings = of_class[kind.fault as usize].get_or_insert_with(Box::default);
        timings.record(count, times);
    }

    /// Forgets all; the memory stays for the next run.
    pub(crate) fn reset(&mut self) {
        let all = self.kinds.iter_mut().flatten().flatten();
        all.for_each(|timings| timings.reset());
    }

    /// What was recorded, by kind.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (Kind, &Timings)> {
        Class::ALL.into_iter().flat_map(move |class| {
            FaultKind::ALL.into_iter().filter_map(move |fault| {
                let timings = self.kinds[class as usize][fault as usize].as_deref()?;
                (!timings.wanted.is_empty()).then_some((Kind { class, fault }, timings))
            })
        })
    }

    /// Distributions together and by kind.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for (kind, timings) in self.kinds() {
            stats.all.merge(timings);
            stats.kinds.insert(kind, timings.clone());
        }
        stats
    }
}

/// A freeze that fell into a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stall {
    /// Its first nanosecond.
    pub begin: Stamp,
    /// The first nanosecond after it.
    pub end: Stamp,
    /// The only connection it held, by its number in the order of acceptance; `None` when it held all.
    pub connection: Option<u64>,
    /// Which of the server's freezes it belongs to, in the order in which they were given.
    pub freeze: usize,
    /// How often it moved the start of a request or the moment its reply was due.
    pub moved: u64,
}

impl Stall {
    /// At most so many are listed; of more, the first.
    pub const MOST: usize = 100_000;

    /// The stalls of `freezes` that touch the time from `begun` to before `ended`, by their beginnings.
    pub(crate) fn between(
        freezes: &[Freeze],
        started: Stamp,
        begun: Stamp,
        ended: Stamp,
        moved: &BTreeMap<(usize, u64), u64>,
    ) -> Vec<Self> {
        let mut stalls = Vec::new();
        let (from, to) = (
            begun.saturating_since(started),
            ended.saturating_since(started),
        );
        for (place, freeze) in freezes.iter().enumerate() {
            let around = freeze.around(from).map(|(begin, _)| begin);
            let mut next = around.or_else(|| freeze.when.next(from));
            while let Some(begin) = next.filter(|begin| *begin < to)
                && stalls.len() < Self::MOST
            {
                stalls.push(Self {
                    begin: started.add_nanos(begin),
                    end: started.add_nanos(begin).add_nanos(freeze.length_ns),
                    connection: freeze.connection,
                    freeze: place,
                    moved: moved.get(&(place, begin)).copied().unwrap_or(0),
                });
                next = freeze.when.next(begin);
            }
        }
        stalls.sort_unstable();
        stalls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_add_up_to_all() {
        let mut recorder = Recorder::default();
        let read = Stamp::from_nanos(1_000);
        for (class, fault, count, wanted_ns) in [
            (Class::Read, FaultKind::None, 3, 100),
            (Class::Read, FaultKind::Frozen, 1, 200),
            (Class::Admin, FaultKind::None, 2, 0),
        ] {
            let times = Times {
                read,
                wanted_ns,
                queue_ns: None,
                throttle_ns: 0,
                due: read.add_nanos(wanted_ns + 50),
                written: read.add_nanos(wanted_ns + 57),
            };
            recorder.record(Kind { class, fault }, count, &times);
        }
        let stats = recorder.stats();
        assert_eq!(stats.all.wanted.len(), 6);
        assert_eq!(stats.kinds.len(), 3);
        let frozen = Kind {
            class: Class::Read,
            fault: FaultKind::Frozen,
        };
        let frozen = &stats.kinds[&frozen];
        assert_eq!((frozen.given.len(), frozen.given.max()), (1, 250));
        assert_eq!(frozen.order_delay.max(), 50);
        assert_eq!(
            (frozen.injection_error.max(), frozen.sojourn.max()),
            (7, 257)
        );
        assert!(stats.all.queue.is_empty());
        recorder.reset();
        assert!(recorder.stats().kinds.is_empty());
    }

    #[test]
    fn stalls_are_the_freezes_that_touch_the_run() {
        let freezes: Vec<Freeze> = [
            "every=100ns,for=10ns,first=30ns",
            "at=40ns,for=20ns,connection=3",
        ]
        .map(|text| text.parse().unwrap())
        .to_vec();
        let started = Stamp::from_nanos(1_000);
        let moved = BTreeMap::from([((0, 130), 7), ((0, 230), 9)]);
        let between = |from: u64, to: u64| -> Vec<(u64, u64, u64)> {
            let (from, to) = (started.add_nanos(from), started.add_nanos(to));
            Stall::between(&freezes, started, from, to, &moved)
                .into_iter()
                .map(|stall| (stall.begin.as_nanos(), stall.end.as_nanos(), stall.moved))
                .collect()
        };
        assert_eq!(
            between(39, 131),
            [(1_030, 1_040, 0), (1_040, 1_060, 0), (1_130, 1_140, 7)]
        );
        assert_eq!(between(60, 130), []);
        assert_eq!(between(0, 30), []);
    }
}
