//! Sending again what failed, at once or at a moment of its own, and telling what failed for good.

use bytes::BytesMut;
use kvlab_timing::Stamp;

use super::connection::Flight;
use super::{Driver, Pending, Worker, usize_of};
use crate::driver::Plan;
use crate::record::{FailedRequest, Outcome};

/// An operation that waits for the moment to be sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delayed {
    pending: Pending,
    /// How its last attempt ended.
    outcome: Outcome,
}

impl<D: Driver> Worker<D> {
    /// When an attempt that failed is followed by another, if it is.
    pub(super) fn sent_again(
        &mut self,
        now: Stamp,
        flight: &Flight,
        outcome: Outcome,
    ) -> Option<Stamp> {
        if self.closing {
            return None;
        }
        let attempt = u8::try_from(flight.attempt).unwrap_or(u8::MAX);
        if self.driver.retries(flight.plan.class, outcome, attempt) {
            return Some(now);
        }
        let retry = self.config.retry?;
        let passes = match outcome {
            Outcome::Error(_) => self.driver.may_pass(),
            Outcome::Timeout | Outcome::ConnectionLost => true,
            Outcome::Hit | Outcome::Miss | Outcome::NotSent => false,
        };
        if !passes
            || retry
                .most
                .is_some_and(|most| u32::from(flight.attempt) >= most)
        {
            return None;
        }
        let at = now.add_nanos(retry.wait_ns(flight.attempt.into()));
        // After the end nothing is begun, and that would be a new attempt.
        (at < self.timeline.end).then_some(at)
    }

    /// Keeps an operation until its moment.
    pub(super) fn delay(&mut self, at: Stamp, pending: Pending, outcome: Outcome) {
        // Two of the same moment stay in their order: the last one of it counts on.
        let last = self.delayed.range((at, 0)..=(at, u64::MAX)).next_back();
        let order = last.map_or(0, |((_, order), _)| order + 1);
        self.delayed
            .insert((at, order), Delayed { pending, outcome });
        self.next_plan = self.next_plan.min(at);
    }

    /// The next moment at which something is sent again.
    pub(super) fn next_release(&self) -> Stamp {
        self.delayed
            .first_key_value()
            .map_or(Stamp::MAX, |((at, _), _)| *at)
    }

    /// Queues what is to be sent again by now.
    pub(super) fn release_delayed(&mut self, now: Stamp) {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                return;
            }
            let Delayed { pending, .. } = entry.remove();
            self.queue_again(now, pending);
        }
    }

    /// Whether so much waits to be sent again that nothing new is sent.
    pub(super) fn is_held_up(&self, delayed: usize) -> bool {
        self.config.retry.is_some_and(|retry| {
            let each = usize_of(retry.most_waiting);
            delayed >= each.saturating_mul(usize_of(self.lanes))
        })
    }

    /// Ends what waits to be sent again with the outcome that it had.
    pub(super) fn end_delayed(&mut self, now: Stamp) {
        for Delayed { pending, outcome } in std::mem::take(&mut self.delayed).into_values() {
            self.in_play -= 1;
            let (kind, class) = (pending.kind, pending.plan.class);
            self.recorder.ended(kind, class, outcome, None);
            self.tell_failure(now, &pending.plan, status_of(outcome), pending.attempt - 1);
        }
    }

    /// Tells who wants to know of a request that failed for good after so many retries.
    pub(super) fn tell_failure(&mut self, at: Stamp, plan: &Plan, status: String, retries: u16) {
        let Some(log) = &self.config.failures else {
            return;
        };
        let mut key = BytesMut::new();
        self.keys.write(plan.key, &mut key);
        // Where nobody reads fast enough, or at all, the load goes on.
        let _ = log.0.try_send(FailedRequest {
            at,
            class: plan.class,
            key: key.to_vec(),
            status,
            retries: retries.into(),
        });
    }
}

/// What became of a request that failed, in words.
pub(super) fn status_of(outcome: Outcome) -> String {
    match outcome {
        Outcome::Error(kind) => kind.to_string(),
        Outcome::Timeout => "timed out".to_owned(),
        Outcome::ConnectionLost => "connection lost".to_owned(),
        Outcome::NotSent => "not sent".to_owned(),
        Outcome::Hit | Outcome::Miss => "answered".to_owned(),
    }
}
