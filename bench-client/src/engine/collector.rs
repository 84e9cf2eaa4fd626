//! Adding up what the workers hand over: intervals for the observer, totals for the summary.

use std::collections::VecDeque;
use std::time::Duration;

use kvlab_timing::Stamp;

use super::control::Observer;
use super::real::CpuTime;
use super::recorder::Part;
use super::setup::SetupOfAll;
use super::worker::Remains;
use super::{RunError, RunResult};
use crate::limits::{LimitForm, Limits};
use crate::random;
use crate::record::{
    BUSY, Interval, Notice, Outcomes, Phase, Summary, Tally, ThreadLoad, ThreadSummary, is_behind,
};
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
    /// Median lag of each interval of the measured part.
    lags: Vec<u64>,
    /// How much later than asked the load began.
    late: Option<Duration>,
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
            lags: Vec::new(),
            late: None,
            stamped: false,
            no_stamps: None,
        }
    }

    /// Says that the load began this much later than it was to.
    pub(crate) fn started_late(&mut self, by: Duration) {
        self.late = Some(by);
    }

    /// Says whether kernel stamps are taken, and why not where they were wanted.
    pub(crate) fn kernel_stamps(&mut self, taken: bool, missing: Option<&str>) {
        self.stamped = taken;
        self.no_stamps = missing.map(str::to_owned);
    }

    /// Takes a part of a thread and gives its emptied tally back.
    pub(crate) fn add(&mut self, thread: usize, part: Part, observer: &mut dyn Observer) -> Tally {
        self.merge(thread, &part);
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

    fn merge(&mut self, thread: usize, part: &Part) {
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
                connecting: 0,
                in_flight: 0,
                backlog: 0,
                threads: Vec::new(),
            });
        }
        let place = usize::try_from(part.index - self.oldest).unwrap_or(usize::MAX);
        if let Some(interval) = self.open.get_mut(place) {
            interval.end = interval.end.max(part.end);
            interval.tally.merge(&part.tally);
            interval.connections += part.connections;
            interval.connecting += part.connecting;
            interval.in_flight += part.in_flight;
            interval.backlog += part.backlog;
            if let Some(load) = part.cpu.as_ref().and_then(CpuTime::load) {
                let threads = self.reached.len();
                interval.threads.resize(threads, ThreadLoad::default());
                interval.threads[thread] = load;
            }
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
        let lag = &interval.tally.lag;
        if interval.phase == Phase::Measured && !lag.is_empty() && self.lags.len() < MAX_LAGS {
            self.lags.push(lag.quantile_ns(0.5));
        }
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
        let (mut rows, mut connects) = (Vec::new(), Vec::new());
        let mut setup = SetupOfAll::default();
        let mut threads = Vec::new();
        let mut notices = Vec::new();
        let (mut first, mut last): (Option<Stamp>, Option<Stamp>) = (None, None);
        let (mut due, mut wanted, mut at_start, mut hash) = (0, 0, 0, 0);
        let (mut started, mut interrupted) = (Stamp::ZERO, false);
        for (number, Leftover { remains, cpu }) in (0..).zip(leftovers) {
            started = remains.started;
            interrupted |= remains.interrupted;
            due += remains.due;
            wanted += remains.connections_wanted;
            at_start += remains.connections_at_start;
            hash = random::mix(hash ^ remains.sequence_hash);
            first = [first, remains.first].into_iter().flatten().min();
            last = last.max(remains.last);
            self.warmup += remains.late_warmup;
            setup.add(remains.setup);
            connects.extend(remains.connects);
            if rows.is_empty() {
                rows = remains.rows;
            } else {
                rows.extend(remains.rows);
            }
            let load = cpu.as_ref().and_then(CpuTime::load);
            let working = load.map(|load| load.cpu_share - load.spun_share);
            if let Some(cpu_share) = working.filter(|share| *share > BUSY) {
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
                cpu_share: load.map(|load| load.cpu_share),
                cpu: cpu.map(|cpu| cpu.used),
                spun: cpu.map(|cpu| cpu.spun),
            });
        }
        let load = started.sub_nanos(settings.warmup.as_nanos().try_into().unwrap_or(u64::MAX));
        let setup = setup.finish(&connects, load);
        let limits = Limits::find(&connects);
        self.notices_of_totals(&mut notices, wanted, at_start);
        let delayed = limits
            .bucket
            .is_some_and(|found| found.form == LimitForm::Delay);
        if delayed && self.total.connects.login.is_empty() {
            notices.push(Notice::LimitInLatencies);
        }
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
            setup,
            limits,
            threads,
            sequence_hash: hash,
            interrupted,
            notices,
            certificate: None,
        };
        if !settings.record_rows {
            connects.clear();
        }
        Ok(RunResult {
            summary,
            rows,
            connects,
        })
    }

    /// Under virtual time there are no stamps, wanted or not.
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

    fn notices_of_totals(&self, notices: &mut Vec<Notice>, wanted: u64, up: u64) {
        if is_behind(&self.total) {
            let lateness = &self.total.lateness;
            notices.push(Notice::FellBehind {
                late_p50: lateness.quantile(0.5),
                late_p99: lateness.quantile(0.99),
                late_max: Duration::from_nanos(lateness.max_ns()),
                response_p99: self.total.response().quantile(0.99),
            });
        }
        notices.extend(growth(&self.lags));
        if let Some(by) = self.late {
            notices.push(Notice::StartedLate { by });
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

/// The failure that says most about the cause: one thread's refusal stops the others.
fn worst_failure(leftovers: &mut [Leftover]) -> Option<RunError> {
    let weight = |error: &RunError| match error {
        RunError::LoginRefused { .. } => 3,
        RunError::Tls { .. } => 2,
        RunError::HandshakeRefused { .. } => 2,
        RunError::Stopped => 0,
        _ => 1,
    };
    leftovers
        .iter_mut()
        .filter_map(|leftover| leftover.remains.failure.take())
        .max_by_key(weight)
}

/// Whether the median lags of the intervals grow from each quarter of the run to the next, to more
/// than double and a millisecond in all. What a freeze leaves behind goes back again.
fn growth(lags: &[u64]) -> Option<Notice> {
    if lags.len() < 8 {
        return None;
    }
    let median = |quarter: usize| {
        let part = lags.len() * quarter / 4..lags.len() * (quarter + 1) / 4;
        let mut lags = lags.get(part).unwrap_or_default().to_vec();
        lags.sort_unstable();
        lags.get(lags.len() / 2).copied().unwrap_or(0)
    };
    let quarters = [0, 1, 2, 3].map(median);
    let [first, .., last] = quarters;
    let grows = quarters.windows(2).all(|pair| pair[0] < pair[1]);
    (grows && last > 2 * first + GROWTH_NS).then(|| Notice::LagGrew {
        first: Duration::from_nanos(first),
        last: Duration::from_nanos(last),
    })
}

/// Growth of the lag that is no matter of concern.
const GROWTH_NS: u64 = 1_000_000;
/// Intervals whose lag is looked at.
const MAX_LAGS: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_that_grows_throughout_is_told_from_one_that_comes_and_goes() {
        let ms = |list: &[u64]| list.iter().map(|ms| ms * 1_000_000).collect::<Vec<_>>();
        let grew = growth(&ms(&[0, 1, 2, 3, 4, 5, 6, 7]));
        let Some(Notice::LagGrew { first, last }) = grew else {
            panic!("{grew:?}");
        };
        assert_eq!((first.as_millis(), last.as_millis()), (1, 7));
        for quiet in [
            &[0, 1, 2, 3, 4, 5, 6][..],
            &[5, 5, 5, 5, 5, 5, 5, 5],
            &[0, 0, 0, 150, 0, 0, 0, 150],
            &[7, 6, 5, 4, 3, 2, 1, 0],
            &[10, 10, 11, 11, 12, 12, 13, 13],
            &[0; 8],
        ] {
            assert_eq!(growth(&ms(quiet)), None, "{quiet:?}");
        }
    }
}
