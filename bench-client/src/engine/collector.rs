//! Adding up what the workers hand over: intervals for the observer, totals for the summary.

use std::collections::VecDeque;
use std::time::Duration;

use kvlab_timing::Stamp;

use super::control::Observer;
use super::real::CpuTime;
use super::recorder::Part;
use super::worker::Remains;
use super::{RunError, RunResult};
use crate::random;
use crate::record::{Interval, Notice, Outcomes, Phase, Summary, Tally, ThreadSummary};
use crate::settings::{Settings, Stop};

/// Collects the parts of all threads.
#[derive(Debug)]
pub(crate) struct Collector {
    stop: Stop,
    /// Intervals that not all threads have reached the end of, oldest first.
    open: VecDeque<Interval>,
    /// Number of the oldest of them.
    oldest: u64,
    /// For each thread how many parts it has handed over; [`u64::MAX`] when it is finished.
    reached: Vec<u64>,
    spare: Vec<Tally>,
    classes: Vec<String>,
    total: Tally,
    warmup: Outcomes,
    ended: u64,
    measure: Option<Stamp>,
    /// Whether kernel stamps are taken.
    stamped: bool,
    /// Why there are no kernel stamps though they were wanted.
    no_stamps: Option<String>,
}

/// What a worker leaves behind, with the processor time of its thread.
#[derive(Debug)]
pub(crate) struct Leftover {
    pub(crate) remains: Remains,
    /// Processor time of the measured part; `None` under virtual time.
    pub(crate) cpu: Option<CpuTime>,
}

impl Collector {
    pub(crate) fn new(settings: &Settings) -> Self {
        let classes: Vec<String> = settings
            .target
            .classes()
            .into_iter()
            .map(|class| class.name)
            .collect();
        Self {
            stop: settings.stop,
            open: VecDeque::new(),
            oldest: 0,
            reached: vec![0; settings.threads.get() as usize],
            spare: Vec::new(),
            total: Tally::new(classes.len()),
            classes,
            warmup: Outcomes::default(),
            ended: 0,
            measure: None,
            stamped: false,
            no_stamps: None,
        }
    }

    /// Says whether kernel stamps are taken, and why not where they were wanted.
    pub(crate) fn kernel_stamps(&mut self, taken: bool, missing: Option<&str>) {
        self.stamped = taken;
        self.no_stamps = missing.map(str::to_owned);
    }

    /// Takes a part of a thread and gives its emptied tally back.
    pub(crate) fn add(&mut self, thread: usize, part: Part, observer: &mut dyn Observer) -> Tally {
        self.merge(&part);
        let reached = &mut self.reached[thread];
        *reached = (*reached).max(part.index + 1);
        self.show(observer);
        let mut tally = part.tally;
        tally.clear();
        tally
    }

    /// The thread hands nothing over any more.
    pub(crate) fn finished(&mut self, thread: usize, observer: &mut dyn Observer) {
        self.reached[thread] = u64::MAX;
        self.show(observer);
    }

    fn merge(&mut self, part: &Part) {
        while self.oldest + (self.open.len() as u64) <= part.index {
            let tally = self
                .spare
                .pop()
                .unwrap_or_else(|| Tally::new(self.classes.len()));
            self.open.push_back(Interval {
                index: self.oldest + self.open.len() as u64,
                phase: part.phase,
                begin: part.begin,
                end: part.end,
                elapsed: Duration::ZERO,
                tally,
                ended: 0,
                progress: 0.0,
                connections: 0,
                in_flight: 0,
                backlog: 0,
            });
        }
        let place = usize::try_from(part.index - self.oldest).unwrap_or(usize::MAX);
        if let Some(interval) = self.open.get_mut(place) {
            interval.end = interval.end.max(part.end);
            interval.tally.merge(&part.tally);
            interval.connections += part.connections;
            interval.in_flight += part.in_flight;
            interval.backlog += part.backlog;
        }
    }

    /// Shows the intervals that all threads have passed.
    fn show(&mut self, observer: &mut dyn Observer) {
        let all = self.reached.iter().copied().min().unwrap_or(0);
        while self.oldest < all {
            let Some(mut interval) = self.open.pop_front() else {
                break;
            };
            self.oldest += 1;
            self.account(&mut interval);
            observer.interval(&interval);
            let mut tally = interval.tally;
            tally.clear();
            self.spare.push(tally);
        }
    }

    fn account(&mut self, interval: &mut Interval) {
        let outcomes = interval.tally.outcomes();
        if interval.phase == Phase::Warmup {
            self.warmup += outcomes;
            // Connections are made before the measured part, and count all the same.
            self.total.connects.merge(&interval.tally.connects);
            self.total.control += interval.tally.control;
            return;
        }
        let measure = *self.measure.get_or_insert(interval.begin);
        self.total.merge(&interval.tally);
        self.ended += outcomes.total();
        interval.ended = self.ended;
        interval.elapsed = Duration::from_nanos(interval.end.saturating_since(measure));
        interval.progress = self.progress(interval.elapsed);
    }

    #[expect(clippy::cast_precision_loss, reason = "a share for people to read")]
    fn progress(&self, elapsed: Duration) -> f64 {
        let time = self
            .stop
            .duration
            .map_or(0.0, |all| elapsed.as_secs_f64() / all.as_secs_f64());
        let count = self
            .stop
            .requests
            .map_or(0.0, |all| self.ended as f64 / all as f64);
        let share = time.max(count);
        if share.is_finite() {
            share.min(1.0)
        } else {
            1.0
        }
    }

    /// The result of the run.
    pub(crate) fn finish(
        mut self,
        settings: &Settings,
        mut leftovers: Vec<Leftover>,
    ) -> Result<RunResult, RunError> {
        if let Some(failure) = worst_failure(&mut leftovers) {
            return Err(failure);
        }
        debug_assert!(self.open.is_empty(), "all threads are finished");
        let mut rows = Vec::new();
        let mut threads = Vec::new();
        let mut notices = Vec::new();
        let (mut first, mut last): (Option<Stamp>, Option<Stamp>) = (None, None);
        let (mut due, mut at_start, mut hash) = (0, 0, 0);
        let (mut started, mut interrupted) = (Stamp::ZERO, false);
        for (number, Leftover { remains, cpu }) in (0..).zip(leftovers) {
            started = remains.started;
            interrupted |= remains.interrupted;
            due += remains.due;
            at_start += remains.connections_at_start;
            hash = random::mix(hash ^ remains.sequence_hash);
            first = [first, remains.first].into_iter().flatten().min();
            last = last.max(remains.last);
            self.warmup += remains.late_warmup;
            if rows.is_empty() {
                rows = remains.rows;
            } else {
                rows.extend(remains.rows);
            }
            if let Some(cpu_share) = cpu.and_then(working_share).filter(|share| *share > BUSY) {
                notices.push(Notice::Busy {
                    thread: number,
                    cpu_share,
                });
            }
            if let Some(loss) = remains.loss {
                notices.push(Notice::ServerLost(loss));
            }
            threads.push(ThreadSummary {
                connections: remains.share.connections,
                due: remains.due,
                cpu_share: cpu.and_then(|cpu| share(cpu.used, cpu.elapsed)),
                cpu: cpu.map(|cpu| cpu.used),
                spun: cpu.map(|cpu| cpu.spun),
            });
        }
        let wanted = u64::from(settings.connections.get());
        self.notices_of_totals(&mut notices, wanted, at_start);
        let summary = Summary {
            load: settings.load,
            pipeline: settings.pipeline,
            classes: self.classes,
            started,
            first,
            last,
            due,
            tally: self.total,
            warmup: self.warmup,
            connections_wanted: wanted,
            connections_at_start: at_start,
            threads,
            sequence_hash: hash,
            interrupted,
            notices,
        };
        Ok(RunResult { summary, rows })
    }

    fn notices_of_totals(&self, notices: &mut Vec<Notice>, wanted: u64, up: u64) {
        let lateness = &self.total.lateness;
        let response_p99 = self.total.response().quantile(0.99);
        let late_p99 = lateness.quantile(0.99);
        if late_p99 * BEHIND > response_p99 {
            notices.push(Notice::FellBehind {
                late_p50: lateness.quantile(0.5),
                late_p99,
                late_max: Duration::from_nanos(lateness.max_ns()),
                response_p99,
            });
        }
        let timeouts = self.total.outcomes().timeouts;
        if timeouts > 0 {
            notices.push(Notice::TimeoutsExcluded { count: timeouts });
        }
        if up < wanted {
            notices.push(Notice::ConnectionsMissing { wanted, up });
        }
        self.notices_of_stamps(notices);
        let clamped = self.total.clamped();
        if clamped > 0 {
            notices.push(Notice::Clamped { count: clamped });
        }
    }
}

/// Notices of the kernel's stamps. Under virtual time there are none.
impl Collector {
    fn notices_of_stamps(&self, notices: &mut Vec<Notice>) {
        if let Some(reason) = self.no_stamps.clone() {
            notices.push(Notice::NoKernelStamps { reason });
            return;
        }
        let of = self.total.service().count();
        let count = of - self.total.read_delay.count().min(of);
        if self.stamped && count > 0 {
            notices.push(Notice::StampsMissing { count, of });
        }
        let count = self.total.stamps_astray;
        if count > 0 {
            notices.push(Notice::StampsAstray { count });
        }
    }
}

/// The failure that says most about the cause: one thread's refusal stops the others.
fn worst_failure(leftovers: &mut [Leftover]) -> Option<RunError> {
    let weight = |error: &RunError| match error {
        RunError::LoginRefused { .. } => 3,
        RunError::HandshakeRefused { .. } => 2,
        RunError::Stopped => 0,
        _ => 1,
    };
    leftovers
        .iter_mut()
        .filter_map(|leftover| leftover.remains.failure.take())
        .max_by_key(weight)
}

/// Processor time over elapsed time, without what may have been spinning.
fn working_share(cpu: CpuTime) -> Option<f64> {
    share(cpu.used - cpu.spun, cpu.elapsed)
}

fn share(part: Duration, whole: Duration) -> Option<f64> {
    (!whole.is_zero()).then(|| part.as_secs_f64() / whole.as_secs_f64())
}

/// Share of a core above which a thread may be the limit itself.
const BUSY: f64 = 0.7;
/// Lateness above one in this many parts of the response time is falling behind.
const BEHIND: u32 = 10;
