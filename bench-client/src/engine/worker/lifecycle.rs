//! Stages and moments of a run: set-up, begin, interval boundaries, end.

use kvlab_timing::Stamp;

use super::connection::NAMELESS;
use super::{Driver, RowKind, Stage, Timeline, Worker};
use crate::engine::RunError;
use crate::engine::recorder::Part;
use crate::record::{Cause, Phase};
use crate::schedule::Due;
use crate::settings::Address;

impl<D: Driver> Worker<D> {
    /// Begins the load: the warm-up starts at `start`, the measured part after it. Workers of one
    /// run get the same start.
    pub fn begin(&mut self, now: Stamp, start: Stamp) {
        if self.stage != Stage::Ready {
            return;
        }
        if self.config.rate_of_each_node {
            self.config.load = self.config.load.times(self.nodes() as u64);
        }
        let config = &self.config;
        let measure = start.add_nanos(config.warmup_ns);
        let end = config
            .duration_ns
            .map_or(Stamp::MAX, |length| measure.add_nanos(length));
        let measured = config.schedule(self.share, (measure, end), 0);
        if let Some((schedule, _)) = &mut self.measured {
            *schedule = measured;
            self.schedule = config.schedule(self.share, (start, measure), 1);
            self.kind = RowKind::Warmup;
        } else {
            self.schedule = measured;
        }
        self.timeline.begin_run(start, measure, end);
        self.recorder.in_warmup = start < measure;
        self.connections_at_start = self.ready_loads;
        self.count_wanted();
        self.stage = Stage::Running;
        self.plan_step();
        for conn in &mut self.conns {
            conn.spared = conn.failures;
        }
        self.dispatch(now);
    }

    /// Load connections that the load is to have by now.
    fn count_wanted(&mut self) {
        self.connections_wanted = if D::SLOTS_OF_EACH_NODE {
            self.loads
        } else {
            self.lanes.into()
        };
    }

    /// Nodes that carry load.
    pub(super) fn nodes(&self) -> usize {
        let pools = self.groups.iter().filter(|group| group.pool.is_some());
        pools.count().max(1)
    }

    /// Plans the next step of the staircase, unless the load is over by then or all is there.
    fn plan_step(&mut self) {
        let due = self.config.step_due(self.timeline.measure, self.steps + 1);
        let wanted = self.lanes < self.share.connections && due < self.timeline.end;
        self.next_step = if wanted { due } else { Stamp::MAX };
        self.next_plan = self.next_plan.min(self.next_step);
    }

    /// Takes the steps that are due: their connections are begun.
    pub(super) fn take_steps(&mut self, now: Stamp) {
        while now >= self.next_step && !self.closing {
            self.steps += 1;
            let before = self.lanes;
            self.lanes = self.config.lanes(self.share, self.steps);
            self.add_lanes(now, before);
            self.count_tokens();
            self.count_wanted();
            self.plan_step();
        }
    }

    /// The moment given by [`Self::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Stamp) {
        self.advance(now);
        if now >= self.next_plan {
            self.follow_timetable(now);
        }
        if now >= self.next_check {
            self.check_connections(now);
        }
        match self.stage {
            Stage::Setup { deadline } if now >= deadline => self.setup_over(),
            Stage::Running if now >= self.cut_off => self.finish(now),
            Stage::Running if now >= self.drain_end() => self.close(now),
            _ => {}
        }
        self.dispatch(now);
    }

    /// Ends the load before its time: what is due and not sent is given up, what is in flight is
    /// awaited for a second at most.
    pub fn stop(&mut self, now: Stamp) {
        self.interrupted = true;
        match self.stage {
            Stage::Setup { .. } | Stage::Ready => {
                let reason = self.hopeless.take().unwrap_or(RunError::Stopped);
                self.failure.get_or_insert(reason);
                self.finish(now);
            }
            Stage::Running => {
                self.advance(now);
                self.schedule.end_at(now);
                if let Some((measured, _)) = &mut self.measured {
                    measured.end_at(now);
                }
                self.timeline.end = self.timeline.end.min(now);
                self.cut_off = now.add_nanos(self.config.timeout_ns.min(STOP_GRACE_NS));
                self.close(now);
                self.dispatch(now);
            }
            Stage::Finished => {}
        }
    }

    /// Ends the worker as it stands: what is in flight counts as timed out.
    pub fn finish(&mut self, now: Stamp) {
        if self.stage == Stage::Finished {
            return;
        }
        let ran = self.stage == Stage::Running;
        self.close(now);
        self.stage = Stage::Finished;
        for place in 0..self.conns.len() {
            self.drop_link(now, place, true, true);
            self.end_log(now, place, Cause::End, None);
        }
        if ran {
            self.cut(now);
        }
    }

    /// Sends nothing more: all that waits or is still due ends as not sent.
    fn close(&mut self, now: Stamp) {
        if self.closing {
            return;
        }
        self.closing = true;
        self.next_due = Stamp::MAX;
        self.next_step = Stamp::MAX;
        if D::SLOTS_OF_EACH_NODE {
            self.withdraw_drawn();
        }
        self.end_delayed(now);
        let mut waiting: Vec<_> = self.homeless.drain(..).collect();
        for group in &mut self.groups {
            waiting.extend(group.waiting.drain(..));
        }
        self.waiting = 0;
        for pending in waiting {
            self.end_unsent(now, pending);
        }
        // Requests that were put on a connection and not yet written stay: they are on their way.
        if self.stage == Stage::Running {
            self.give_up_due(now);
        }
    }

    /// Counts what the schedule made due before `now` and nobody sent.
    fn give_up_due(&mut self, now: Stamp) {
        loop {
            if self.schedule.is_open() {
                self.schedule.end_at(now);
                while let Due::Since(_) = self.schedule.look(now) {
                    self.schedule.take();
                    let plan = self.workload.next_plan(0);
                    self.recorder.count_due(self.kind);
                    self.recorder.ended(
                        self.kind,
                        plan.class,
                        crate::record::Outcome::NotSent,
                        None,
                    );
                }
            }
            match self.measured.take() {
                Some((schedule, workload)) if now >= self.timeline.measure => {
                    self.schedule = schedule;
                    self.workload = workload;
                    self.kind = RowKind::Load;
                }
                measured => {
                    self.measured = measured;
                    return;
                }
            }
        }
    }

    /// Whether set-up is complete, or hopeless.
    pub(super) fn check_setup(&mut self, now: Stamp) {
        if !matches!(self.stage, Stage::Setup { .. }) {
            return;
        }
        if self.loads > 0 && self.ready_loads == self.loads && self.driver.is_settled() {
            self.setup.all_up = Some(now);
            self.stage = Stage::Ready;
            return;
        }
        // Nothing ever was up, and what was tried has failed often enough.
        let never = self.recorder.tally.connects.established == 0;
        if never && self.is_hopeless() {
            self.lose_hope();
        }
    }

    fn is_hopeless(&self) -> bool {
        let mut tried = false;
        for conn in &self.conns {
            match conn.is_hopeless() {
                Some(true) => tried = true,
                Some(false) => return false,
                None => {}
            }
        }
        tried
    }

    /// The time for set-up is over: go on with what is up, if anything is.
    fn setup_over(&mut self) {
        if self.ready_loads > 0 && self.driver.is_settled() {
            self.stage = Stage::Ready;
        } else {
            self.lose_hope();
        }
    }

    /// Set-up ends without a connection of this thread. Whether that ends the run depends on the
    /// other threads: see [`Self::is_ready`].
    fn lose_hope(&mut self) {
        let last = self.last_error.take();
        self.hopeless = Some(match (self.refusal.take(), last) {
            (Some((address, text)), _) => RunError::HandshakeRefused { address, text },
            (None, Some((address, error))) => RunError::NoConnection { address, error },
            (None, None) => RunError::NoConnection {
                address: self.conns.first().map_or(NOWHERE, |conn| conn.address),
                error: "timed out".to_owned(),
            },
        });
        self.stage = Stage::Ready;
    }

    /// Passes the interval boundaries up to `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Stamp) {
        while now >= self.timeline.next_cut && self.stage == Stage::Running {
            let boundary = self.timeline.next_cut;
            self.cut(boundary);
            self.recorder.in_warmup = boundary < self.timeline.measure;
        }
    }

    fn cut(&mut self, end: Stamp) {
        let waiting = self.waiting + self.delayed.len();
        let backlog = waiting as u64 + self.schedule_backlog(end);
        let (index, phase, begin) = self.timeline.cut(end);
        self.parts.push_back(Part {
            index,
            phase,
            begin,
            end,
            tally: self.recorder.cut(),
            connections: self.ready_loads,
            connecting: self.connecting(),
            in_flight: self.in_play.saturating_sub(waiting) as u64,
            backlog,
            cpu: None,
        });
    }

    /// Load connections that are being made.
    fn connecting(&self) -> u64 {
        if self.ready_loads == self.loads {
            return 0;
        }
        let made = self.conns.iter().filter(|conn| conn.is_being_made());
        made.count() as u64
    }

    fn schedule_backlog(&self, now: Stamp) -> u64 {
        if self.closing {
            0
        } else {
            self.schedule.backlog(now)
        }
    }
}

impl Timeline {
    /// Before the begin there are no boundaries.
    pub(super) fn new(now: Stamp, interval_ns: u64) -> Self {
        Self {
            start: now,
            measure: now,
            end: Stamp::MAX,
            interval_ns,
            index: 0,
            begin: now,
            next_cut: Stamp::MAX,
        }
    }

    fn begin_run(&mut self, start: Stamp, measure: Stamp, end: Stamp) {
        (self.start, self.measure, self.end, self.begin) = (start, measure, end, start);
        self.next_cut = self.boundary_after(start);
    }

    /// Ends the running interval at `end` and says its number, phase and begin.
    fn cut(&mut self, end: Stamp) -> (u64, Phase, Stamp) {
        let (index, begin) = (self.index, self.begin);
        let phase = if begin < self.measure {
            Phase::Warmup
        } else if begin < self.end {
            Phase::Measured
        } else {
            Phase::Drain
        };
        self.index += 1;
        self.begin = end;
        self.next_cut = self.boundary_after(end);
        (index, phase, begin)
    }

    /// The first boundary after `moment`: multiples of the interval, counted anew from the start of
    /// the measured part, and the start and end of the measured part themselves.
    fn boundary_after(&self, moment: Stamp) -> Stamp {
        let base = if moment < self.measure {
            self.start
        } else {
            self.measure
        };
        let passed = moment.saturating_since(base) / self.interval_ns;
        let next = base.add_nanos((passed + 1).saturating_mul(self.interval_ns));
        [self.measure, self.end]
            .into_iter()
            .filter(|mark| *mark > moment)
            .fold(next, Stamp::min)
    }
}

/// Stands for the address where a driver wants no connection at all.
const NOWHERE: Address = Address::Tcp(NAMELESS);
/// How long an interrupted run waits for what is in flight.
const STOP_GRACE_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_begin_anew_at_the_measured_part_and_stop_at_its_end() {
        let stamp = Stamp::from_nanos;
        let mut timeline = Timeline::new(stamp(0), 100);
        timeline.begin_run(stamp(1000), stamp(1250), stamp(1500));
        let mut cuts = Vec::new();
        for _ in 0..8 {
            let end = timeline.next_cut;
            let (index, phase, begin) = timeline.cut(end);
            cuts.push((index, phase, begin.as_nanos(), end.as_nanos()));
        }
        assert_eq!(
            cuts,
            [
                (0, Phase::Warmup, 1000, 1100),
                (1, Phase::Warmup, 1100, 1200),
                (2, Phase::Warmup, 1200, 1250),
                (3, Phase::Measured, 1250, 1350),
                (4, Phase::Measured, 1350, 1450),
                (5, Phase::Measured, 1450, 1500),
                (6, Phase::Drain, 1500, 1550),
                (7, Phase::Drain, 1550, 1650),
            ]
        );
    }
}
