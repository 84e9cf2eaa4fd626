//! Matching what is due with free slots.

use std::collections::VecDeque;

use kvlab_timing::Stamp;

use super::connection::Flight;
use super::{Driver, Pending, Stage, Worker};
use crate::driver::{GroupId, Operation, Plan, Route};
use crate::record::{Outcome, RowKind};
use crate::schedule::Due;
use crate::settings::WhenDown;

impl<D: Driver> Worker<D> {
    /// Sends what is due as far as slots are free, and finishes when nothing is left.
    #[inline]
    pub(super) fn dispatch(&mut self, now: Stamp) {
        if self.stage != Stage::Running {
            return;
        }
        if !self.closing {
            if D::SLOTS_OF_EACH_NODE && now >= self.timeline.end && !self.over {
                self.withdraw_drawn();
            }
            if self.waiting > 0 {
                self.serve_waiting();
            }
            self.serve_schedule(now);
            if self.config.batch {
                self.seal_batches();
            }
        }
        if self.in_play == 0 && (self.over || self.closing) {
            self.finish(now);
        }
    }

    fn serve_schedule(&mut self, now: Stamp) {
        self.next_due = Stamp::MAX;
        if self.over {
            return;
        }
        let open = self.schedule.is_open();
        // What waits for its moment needs no slot, until too much waits.
        let delayed = self.delayed.len();
        if delayed > 0 && self.is_held_up(delayed) {
            return;
        }
        loop {
            if !open && self.in_play >= self.config.tokens + delayed {
                return;
            }
            let place = match self.free_place() {
                Ok(place) => place,
                Err(NoSlot) if self.gives_up_now() => {
                    self.give_up(now);
                    return;
                }
                Err(NoSlot) => {
                    if self.config.separate {
                        self.notice_end(now);
                    }
                    return;
                }
            };
            let Some(intended) = self.due(now) else {
                return;
            };
            // Ranges of keys belong to connections; where the key decides the connection, the
            // ranges are visited in turn instead.
            let lane = match place {
                Some(place) => self.conns[place].lane,
                None => self.lane_in_turn(),
            };
            let plan = self.workload.next_plan(lane);
            self.schedule.take();
            self.in_play += 1;
            self.recorder.count_due(self.kind);
            let pending = Pending {
                plan,
                intended,
                kind: self.kind,
                attempt: 0,
                redirects: 0,
                ask: None,
                first_sent: Stamp::MAX,
                ready: intended,
                since: now,
            };
            match place {
                Some(place) => self.send(place, pending),
                None => self.send_routed(now, pending),
            }
        }
    }

    /// Where each connection has requests of its own, none has a free slot once all are done, and
    /// nobody asks the schedule any more.
    fn notice_end(&mut self, now: Stamp) {
        if matches!(self.schedule.look(now), Due::Over) {
            self.due(now);
        }
    }

    /// Whether what is due is given up because no connection is up.
    fn gives_up_now(&self) -> bool {
        self.config.connects.when_down == WhenDown::Drop
            && self.schedule.is_open()
            && self.ready_loads == 0
    }

    /// Counts what is due as not sent.
    fn give_up(&mut self, now: Stamp) {
        while self.due(now).is_some() {
            let lane = self.lane_in_turn();
            let plan = self.workload.next_plan(lane);
            self.schedule.take();
            self.recorder.count_due(self.kind);
            self.recorder
                .ended(self.kind, plan.class, Outcome::NotSent, None);
        }
    }

    /// A connection with a free slot, before the operation is drawn; `Ok(None)` where the key has
    /// to be known first.
    #[inline]
    fn free_place(&mut self) -> Result<Option<usize>, NoSlot> {
        if D::ROUTES_BY_KEY {
            return if self.waiting < MAX_WAITING {
                Ok(None)
            } else {
                Err(NoSlot)
            };
        }
        let group = self.groups.first().ok_or(NoSlot)?;
        group.free.front().copied().map(Some).ok_or(NoSlot)
    }

    /// The intended moment of a request that is due; [`Stamp::MAX`] where it is due when it can be
    /// sent. Goes over to the measured part when the warm-up is over.
    #[inline]
    fn due(&mut self, now: Stamp) -> Option<Stamp> {
        loop {
            match self.schedule.look(now) {
                Due::Since(moment) => return Some(moment),
                Due::AtOnce => return Some(Stamp::MAX),
                Due::NotBefore(moment) => {
                    self.next_due = moment;
                    return None;
                }
                Due::Over => match self.measured.take() {
                    Some((schedule, workload)) => {
                        self.schedule = schedule;
                        self.workload = workload;
                        self.kind = RowKind::Load;
                    }
                    None => {
                        self.over = true;
                        return None;
                    }
                },
            }
        }
    }

    fn lane_in_turn(&self) -> usize {
        let connections = u64::from(self.share.connections).max(1);
        usize::try_from(self.workload.drawn() % connections).unwrap_or(0)
    }

    /// Puts the operation on the connection, which has a free slot.
    #[inline]
    fn send(&mut self, place: usize, mut pending: Pending) {
        let conn = &mut self.conns[place];
        let Some(session) = conn.session.as_mut() else {
            // A connection in the queue of free ones has a session.
            debug_assert!(false, "free connection without a session");
            return;
        };
        pending.plan.class = self.driver.settle(pending.plan.class, session);
        let operation = Operation {
            plan: &pending.plan,
            value: self.block.value(&pending.plan),
            keys: &self.keys,
        };
        let before = conn.out.len();
        if pending.ask.is_some() {
            self.driver.ask(session, &mut conn.out);
        }
        self.driver.encode(&operation, session, &mut conn.out);
        conn.push(Flight {
            intended: pending.intended,
            sent: Stamp::ZERO,
            possible: if pending.redirects > 0
                || (pending.attempt > 0 && self.config.retry.is_some())
            {
                pending.first_sent
            } else if pending.intended == Stamp::MAX {
                pending.intended
            } else {
                pending.ready.max(conn.free_since)
            },
            plan: pending.plan,
            // Far below: a value has at most 512 MiB.
            len: u32::try_from(conn.out.len() - before).unwrap_or(u32::MAX),
            kind: pending.kind,
            attempt: pending.attempt,
            redirects: pending.redirects,
        });
        conn.left -= 1;
        if pending.kind == RowKind::Load {
            conn.quota = conn.quota.saturating_sub(1);
        }
        let full = conn.ring.len() >= self.config.depth || conn.left == 0 || conn.quota == 0;
        let free = &mut self.groups[usize::from(conn.group.0)].free;
        if full {
            conn.in_free = false;
            free.pop_front();
        } else if !self.config.batch && free.len() > 1 {
            free.rotate_left(1);
        }
        self.flush(place);
    }

    fn send_routed(&mut self, now: Stamp, pending: Pending) {
        let drops = self.drops();
        match self.route(&pending.plan) {
            Route::To(group) => {
                let group = usize::from(group.0);
                match self.groups.get_mut(group) {
                    Some(target) if target.ready == 0 && drops => self.end_unsent(now, pending),
                    Some(target) => match target.free.front() {
                        Some(place) if target.waiting.is_empty() => {
                            let place = *place;
                            self.send(place, pending);
                        }
                        _ => {
                            target.waiting.push_back(pending);
                            self.waiting += 1;
                            self.watch(now.add_nanos(self.config.timeout_ns));
                        }
                    },
                    None => self.shelter(now, pending),
                }
            }
            Route::Nowhere if drops => self.end_unsent(now, pending),
            Route::Nowhere => self.shelter(now, pending),
        }
    }

    /// Whether a request without a connection is given up.
    fn drops(&self) -> bool {
        self.config.connects.when_down == WhenDown::Drop && self.config.load.is_open()
    }

    fn route(&mut self, plan: &Plan) -> Route {
        if !D::ROUTES_BY_KEY {
            return Route::To(GroupId(0));
        }
        let operation = Operation {
            plan,
            value: self.block.value(plan),
            keys: &self.keys,
        };
        self.driver.route(&operation)
    }

    /// Keeps an operation until its route is known.
    fn shelter(&mut self, now: Stamp, pending: Pending) {
        self.homeless.push_back(pending);
        self.waiting += 1;
        self.watch(now.add_nanos(self.config.timeout_ns));
    }

    /// Queues an operation that was in flight or on its way to a connection.
    pub(super) fn queue_again(&mut self, now: Stamp, pending: Pending) {
        match self.route(&pending.plan) {
            Route::To(group) if usize::from(group.0) < self.groups.len() => {
                self.groups[usize::from(group.0)].waiting.push_back(pending);
                self.waiting += 1;
                self.watch(now.add_nanos(self.config.timeout_ns));
            }
            _ => self.shelter(now, pending),
        }
    }

    /// Sends an operation to the node that a redirection named.
    pub(super) fn redirect(&mut self, now: Stamp, pending: Pending) {
        match pending.ask {
            Some(group) if usize::from(group.0) < self.groups.len() => {
                self.groups[usize::from(group.0)].waiting.push_back(pending);
                self.waiting += 1;
                self.watch(now.add_nanos(self.config.timeout_ns));
            }
            _ => self.queue_again(now, pending),
        }
    }

    fn serve_waiting(&mut self) {
        for group in 0..self.groups.len() {
            while let Some(place) = self.groups[group].free.front().copied() {
                let Some(pending) = self.groups[group].waiting.pop_front() else {
                    break;
                };
                self.waiting -= 1;
                self.send(place, pending);
            }
        }
    }

    /// Operations that wait for a node without connections may have another one now.
    pub(super) fn reroute_stranded(&mut self, now: Stamp) {
        for group in self.groups.iter_mut().filter(|group| group.ready == 0) {
            let (named, others) = group.waiting.drain(..).partition(|one| one.ask.is_some());
            group.waiting = named;
            let others: VecDeque<Pending> = others;
            self.homeless.extend(others);
        }
        self.reroute(now);
    }

    /// Asks for the routes of the sheltered operations again.
    pub(super) fn reroute(&mut self, now: Stamp) {
        for _ in 0..self.homeless.len() {
            let Some(pending) = self.homeless.pop_front() else {
                break;
            };
            self.waiting -= 1;
            self.send_routed(now, pending);
        }
    }

    /// The time of a closed loop is over: what was drawn ahead and never sent was never due.
    pub(super) fn withdraw_drawn(&mut self) {
        if self.schedule.is_open() {
            return;
        }
        let queues = self.groups.iter_mut().map(|group| &mut group.waiting);
        for queue in queues.chain([&mut self.homeless]) {
            queue.retain(|pending| {
                let sent = pending.intended != Stamp::MAX;
                if !sent {
                    self.waiting -= 1;
                    self.in_play -= 1;
                    self.recorder.withdraw(pending.kind);
                }
                sent
            });
        }
    }

    /// In batch mode a connection that took requests takes no more until all are answered.
    fn seal_batches(&mut self) {
        for group in &mut self.groups {
            while let Some(place) = group.free.front().copied() {
                let conn = &mut self.conns[place];
                if conn.ring.is_empty() {
                    break;
                }
                conn.in_free = false;
                group.free.pop_front();
            }
        }
    }

    /// Puts the connection into its group's queue if it has a free slot and is not in it.
    #[inline]
    pub(super) fn offer(&mut self, now: Stamp, place: usize) {
        let conn = &mut self.conns[place];
        if !conn.in_free && conn.has_slot(self.config.depth, self.config.batch) {
            conn.in_free = true;
            conn.free_since = now;
            self.groups[usize::from(conn.group.0)].free.push_back(place);
        }
    }

    /// Takes the connection out of its group's queue.
    pub(super) fn withdraw(&mut self, place: usize) {
        let conn = &mut self.conns[place];
        if conn.in_free {
            conn.in_free = false;
            self.groups[usize::from(conn.group.0)]
                .free
                .retain(|free| *free != place);
        }
    }

    /// Ends operations that wait for a node without connections longer than the time-out.
    pub(super) fn expire_waiting(&mut self, now: Stamp) {
        let mut expired = Vec::new();
        let mut lost = None;
        let timeout_ns = self.config.timeout_ns;
        let old = |pending: &Pending| pending.since.add_nanos(timeout_ns) <= now;
        while self.homeless.front().is_some_and(old) {
            expired.extend(self.homeless.pop_front());
            lost = lost.or(self.conns.first().map(|conn| conn.address));
        }
        for (number, group) in self.groups.iter_mut().enumerate() {
            let hopeless = !self
                .conns
                .iter()
                .any(|conn| usize::from(conn.group.0) == number && conn.has_prospects());
            while hopeless && group.waiting.front().is_some_and(old) {
                expired.extend(group.waiting.pop_front());
                lost = group.pool.or(lost);
            }
        }
        for pending in expired {
            self.waiting -= 1;
            self.end_unsent(now, pending);
        }
        if D::SLOTS_OF_EACH_NODE
            && let Some(address) = lost
        {
            self.lose_part(now, address);
        }
    }

    /// Ends an operation that was due and is not going to be sent.
    pub(super) fn end_unsent(&mut self, now: Stamp, pending: Pending) {
        self.in_play -= 1;
        if pending.attempt > 0 {
            let status = "not sent again".to_owned();
            self.tell_failure(now, &pending.plan, status, pending.attempt - 1);
        }
        self.recorder
            .ended(pending.kind, pending.plan.class, Outcome::NotSent, None);
    }
}

/// No connection has a free slot.
struct NoSlot;

/// Operations that wait for their nodes at most; beyond that the schedule waits as a whole.
const MAX_WAITING: usize = 65_536;
