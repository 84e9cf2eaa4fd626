//! Waiting for a moment, precisely, inside a current-thread tokio runtime.
//!
//! The runtime's own timer counts whole milliseconds and doubles a delay of 1 ms, so it is not even
//! compiled in. A [`Waiter`] owns one Linux timerfd, registered with the runtime like a socket:
//!
//! ```text
//!   asleep in epoll                      lead: other tasks run between looks     spin
//! |------------------------------------|---------------------------------------|------| due
//!                                      timer fires                        FINAL_SPIN
//! ```
//!
//! * The timer is armed `lead` before the due moment, in absolute `CLOCK_MONOTONIC` time, and only
//!   when the deadline changes. Waking an idle virtual core costs about 50 us; the lead absorbs it.
//! * In the lead the waiter never blocks the thread: it asks the runtime to poll it again after the
//!   ready tasks and the sockets had their turn. With nothing else to do that is a spin, bounded by
//!   the lead; only the last few microseconds are a plain spin.
//! * The lead follows the 75th percentile of the observed wake-up lateness, within bounds.
//!
//! Cheap mode (`spin: false`) sleeps to the due moment itself: no spinning, and about 55 us late at
//! the median.

use std::future::poll_fn;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::thread::set_current_timer_slack;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::task::yield_now;

use crate::clock::{Clock, Stamp};

/// How a [`Waiter`] trades processor time for precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterConfig {
    /// Wake early and spin the rest. `false` is the cheap mode: no lead, no spin.
    pub spin: bool,
    /// The shortest lead.
    pub lead_min: Duration,
    /// The lead until lateness was observed.
    pub lead_start: Duration,
    /// The longest lead, and with it the longest spin per deadline.
    pub lead_max: Duration,
}

impl WaiterConfig {
    /// Sleep to the due moment itself and accept to be late.
    pub fn cheap() -> WaiterConfig {
        WaiterConfig {
            spin: false,
            ..WaiterConfig::default()
        }
    }
}

/// Spinning, with a lead of 60 us to start with and between 20 and 150 us later.
impl Default for WaiterConfig {
    fn default() -> WaiterConfig {
        WaiterConfig {
            spin: true,
            lead_min: Duration::from_micros(20),
            lead_start: Duration::from_micros(60),
            lead_max: Duration::from_micros(150),
        }
    }
}

/// What a [`Waiter`] did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaiterStats {
    /// Deadlines that came while being waited for; ones already past when first asked for count.
    pub completed: u64,
    /// System calls that set or cleared the timer.
    pub timer_calls: u64,
    /// Time spent within lead windows, in nanoseconds: the upper bound of what spinning cost (other
    /// tasks may have used it).
    pub lead_ns: u64,
}

/// Waits for moments, one at a time, for one task.
///
/// ```
/// use std::time::Duration;
/// use kvlab_timing::{Clock, Waiter, WaiterConfig};
///
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
/// let late_ns = runtime.block_on(async {
///     let clock = Clock::real();
///     let mut waiter = Waiter::new(clock, WaiterConfig::default())?;
///     let due = clock.now() + Duration::from_micros(300);
///     let woken = waiter.wait_until(due).await;
///     std::io::Result::Ok(woken.since(due))
/// })?;
/// assert!(late_ns >= 0);
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Waiter {
    clock: Clock,
    timer: AsyncFd<OwnedFd>,
    spin: bool,
    lead: Lead,
    /// What the timer is set to; `None` when it is clear or has fired.
    armed: Option<Armed>,
    /// The deadline whose lead has begun.
    in_lead: Option<InLead>,
    stats: WaiterStats,
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    due: Stamp,
    wake: Stamp,
}

#[derive(Clone, Copy, Debug)]
struct InLead {
    due: Stamp,
    since: Stamp,
}

impl Waiter {
    /// Makes the timer and registers it with the runtime it is called in.
    ///
    /// # Errors
    ///
    /// Outside of a runtime, and when the process has no file descriptor left.
    ///
    /// # Panics
    ///
    /// When the runtime was built without `enable_io`.
    pub fn new(clock: Clock, config: WaiterConfig) -> io::Result<Waiter> {
        Handle::try_current().map_err(io::Error::other)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "the successor is unsafe; an OwnedFd keeps what it demands"
        )]
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        Ok(Waiter {
            clock,
            timer,
            spin: config.spin,
            lead: Lead::new(&config),
            armed: None,
            in_lead: None,
            stats: WaiterStats::default(),
        })
    }

    /// Completes at `due` or as soon as possible after it, never before, and returns the moment of
    /// completion. A past moment completes at once without a system call.
    ///
    /// The future may be dropped at any time; the next call, with this or another deadline, starts
    /// afresh.
    pub async fn wait_until(&mut self, due: Stamp) -> Stamp {
        poll_fn(|cx| self.poll_wait(cx, Some(due))).await
    }

    /// The same for hand-written futures: ready with the present moment once `due` has come. The
    /// deadline may differ from call to call; `None` disarms the timer and is never ready.
    ///
    /// Until it is ready the task is woken when it has to call again; an early wake-up by something
    /// else does no harm.
    pub fn poll_wait(&mut self, cx: &mut Context<'_>, due: Option<Stamp>) -> Poll<Stamp> {
        let mut now = self.clock.now();
        self.observe_wake(now);
        let Some(due) = due else {
            self.leave_lead(now);
            self.disarm();
            return Poll::Pending;
        };
        loop {
            if now >= due {
                return Poll::Ready(self.complete(now));
            }
            let wake = self.wake_moment(due);
            if now >= wake {
                return self.poll_lead(cx, due, now);
            }
            self.leave_lead(now);
            if self.arm(due, wake).is_err() {
                // Not known to happen with a valid timer. Looking again and again is correct.
                return yield_to_runtime(cx);
            }
            match ready!(self.timer.poll_read_ready(cx)) {
                // The echo of an earlier setting, or the timer has fired just now. Its count need
                // not be read: the readiness is edge-triggered and setting the timer clears it.
                Ok(mut guard) => guard.clear_ready(),
                // The runtime is shutting down.
                Err(_) => return yield_to_runtime(cx),
            }
            now = self.clock.now();
            self.observe_wake(now);
            if wake.saturating_since(now) < CLOCK_SLOP_NS {
                // Should timer and clock ever disagree on whether it fired, set it again.
                self.armed = None;
            }
        }
    }

    /// How late the operating system wakes this task: the tracked 75th percentile, at most
    /// `lead_max`.
    pub fn lateness(&self) -> Duration {
        Duration::from_nanos(self.lead.lateness_ns)
    }

    /// How early the timer is armed at present; zero in cheap mode.
    pub fn lead(&self) -> Duration {
        Duration::from_nanos(if self.spin { self.lead.lead_ns() } else { 0 })
    }

    /// Whether the lead of a deadline has begun, so that the last call gave way to the other tasks
    /// instead of sleeping.
    pub fn is_in_lead(&self) -> bool {
        self.in_lead.is_some()
    }

    /// Counts of what was done since the start.
    pub fn stats(&self) -> WaiterStats {
        self.stats
    }

    /// While the timer is set for `due`, or its lead has begun, a changed lead does not matter.
    fn wake_moment(&self, due: Stamp) -> Stamp {
        match (self.armed, self.in_lead) {
            (Some(armed), _) if armed.due == due => armed.wake,
            (_, Some(lead)) if lead.due == due => lead.since,
            _ if self.spin => due.sub_nanos(self.lead.lead_ns()),
            _ => due,
        }
    }

    fn arm(&mut self, due: Stamp, wake: Stamp) -> io::Result<()> {
        if self.armed.is_some_and(|armed| armed.due == due) {
            return Ok(());
        }
        self.armed = None;
        self.stats.timer_calls += 1;
        set_timer(&self.timer, wake)?;
        self.armed = Some(Armed { due, wake });
        Ok(())
    }

    fn disarm(&mut self) {
        if self.armed.take().is_some() {
            self.stats.timer_calls += 1;
            // If this failed the task would be woken once more than needed.
            let _ = set_timer(&self.timer, Stamp::ZERO);
        }
    }

    fn poll_lead(&mut self, cx: &mut Context<'_>, due: Stamp, now: Stamp) -> Poll<Stamp> {
        if self.in_lead.is_none_or(|lead| lead.due != due) {
            self.leave_lead(now);
            self.in_lead = Some(InLead { due, since: now });
        }
        if due.saturating_since(now) > FINAL_SPIN_NS {
            return yield_to_runtime(cx);
        }
        loop {
            std::hint::spin_loop();
            let now = self.clock.now();
            if now >= due {
                return Poll::Ready(self.complete(now));
            }
        }
    }

    fn complete(&mut self, now: Stamp) -> Stamp {
        self.leave_lead(now);
        self.stats.completed += 1;
        now
    }

    fn leave_lead(&mut self, now: Stamp) {
        if let Some(lead) = self.in_lead.take() {
            self.stats.lead_ns += now.saturating_since(lead.since);
        }
    }

    /// At the first look after the timer's moment, learns how late that look is.
    fn observe_wake(&mut self, now: Stamp) {
        if let Some(armed) = self.armed
            && now >= armed.wake
        {
            self.armed = None;
            self.lead.observe(now.saturating_since(armed.wake));
        }
    }
}

/// Pending, to be polled again after the ready tasks and the sockets had their turn.
///
/// Waking the task directly would put it in front of the sockets, which the runtime looks at only
/// every few dozen polls. `yield_now` hands the waker to the scheduler for later; that happens in
/// its first poll, so the future itself need not be kept.
fn yield_to_runtime(cx: &mut Context<'_>) -> Poll<Stamp> {
    let first_poll = pin!(yield_now()).poll(cx);
    debug_assert!(first_poll.is_pending());
    Poll::Pending
}

/// Sets the timer to fire once at `moment`; [`Stamp::ZERO`] clears it.
fn set_timer(timer: &AsyncFd<OwnedFd>, moment: Stamp) -> io::Result<()> {
    let once = Itimerspec {
        it_interval: Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        it_value: moment.to_timespec(),
    };
    timerfd_settime(timer.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
    Ok(())
}

/// Follows the 75th percentile of wake-up lateness by steps: three up when a wake-up was later, one
/// down when it was not; the two balance where a quarter of the wake-ups are later.
#[derive(Debug)]
struct Lead {
    lateness_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Lead {
    fn new(config: &WaiterConfig) -> Lead {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let max_ns = nanos(config.lead_max);
        Lead {
            lateness_ns: nanos(config.lead_start).min(max_ns),
            min_ns: nanos(config.lead_min).min(max_ns),
            max_ns,
        }
    }

    fn observe(&mut self, late_ns: u64) {
        self.lateness_ns = if late_ns > self.lateness_ns {
            // Bounded, so that a long stall does not make the estimate slow to come back.
            self.lateness_ns
                .saturating_add(3 * LEAD_STEP_NS)
                .min(self.max_ns)
        } else {
            self.lateness_ns.saturating_sub(LEAD_STEP_NS)
        };
    }

    fn lead_ns(&self) -> u64 {
        self.lateness_ns.max(self.min_ns)
    }
}

/// Sets the calling thread's timer slack to 1 ns. The default of 50 us delays sleeps and poll
/// timeouts; a timerfd is not affected. Threads started later inherit the setting.
///
/// # Errors
///
/// When the kernel refuses, as some sandboxes do; ignoring it is fine.
pub fn set_timer_slack_1ns() -> io::Result<()> {
    Ok(set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

/// Clock and timer agree to the nanosecond as far as known; this is what would be forgiven.
const CLOCK_SLOP_NS: u64 = 1_000;

const LEAD_STEP_NS: u64 = 1_000;

/// The last part of the lead is spun without yielding: about the cost of one turn of the runtime,
/// which would otherwise end after the due moment.
const FINAL_SPIN_NS: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Latenesses of 1, 2, ... 100 us in a mixed order, over and over: the 75th percentile is 75.
    #[test]
    fn the_lead_settles_at_the_75th_percentile() {
        for lead_start in [20, 60, 150].map(Duration::from_micros) {
            let mut lead = Lead::new(&WaiterConfig {
                lead_start,
                ..WaiterConfig::default()
            });
            let (mut sum, rounds) = (0, 50);
            for round in 0..100 {
                for step in 0..100 {
                    // 37 and 100 have no common factor: each value comes once per round.
                    lead.observe(1_000 * (step * 37 % 100 + 1));
                    sum += if round >= rounds { lead.lateness_ns } else { 0 };
                }
            }
            let mean_us = sum / (rounds * 100 * 1_000);
            assert!((70..=80).contains(&mean_us), "settled at {mean_us} us");
        }
    }

    #[test]
    fn the_lead_is_bounded_but_a_small_lateness_is_reported() {
        let mut lead = Lead::new(&WaiterConfig::default());
        for _ in 0..1_000 {
            lead.observe(0);
        }
        assert_eq!((lead.lateness_ns, lead.lead_ns()), (0, 20_000));
        for _ in 0..1_000 {
            lead.observe(u64::MAX);
        }
        assert_eq!((lead.lateness_ns, lead.lead_ns()), (150_000, 150_000));
        // Back within a hundred good wake-ups, however long the bad time was.
        for _ in 0..100 {
            lead.observe(30_000);
        }
        assert_eq!(lead.lead_ns(), 50_000);
    }

    #[test]
    fn the_longest_lead_rules_when_the_bounds_disagree() {
        let [min, start, max] = [90, 80, 70].map(Duration::from_micros);
        let config = WaiterConfig {
            spin: true,
            lead_min: min,
            lead_start: start,
            lead_max: max,
        };
        let mut lead = Lead::new(&config);
        assert_eq!(lead.lead_ns(), 70_000);
        lead.observe(0);
        assert_eq!(lead.lead_ns(), 70_000);
    }
}
