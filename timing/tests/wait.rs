//! The waiter on the real clock: never early, whatever is asked in whatever order. Bounds on
//! lateness are loose, for the machine may be busy.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use kvlab_timing::{Clock, Stamp, Waiter, WaiterConfig, set_timer_slack_1ns};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

const CLOCK: Clock = Clock::real();

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_io().build().unwrap()
}

fn waiter(config: WaiterConfig) -> Waiter {
    Waiter::new(CLOCK, config).unwrap()
}

fn both_modes() -> [WaiterConfig; 2] {
    [WaiterConfig::default(), WaiterConfig::cheap()]
}

/// Far above what a busy two-core machine does, far below a lost wake-up.
const PATIENCE_NS: u64 = 2_000_000_000;

#[test]
fn no_deadline_completes_early_and_all_complete() {
    for config in both_modes() {
        runtime().block_on(async {
            let mut waiter = waiter(config);
            for step in 0..400 {
                // From below the final spin to well above the longest lead.
                let due = CLOCK.now().add_nanos(step * 2_003);
                let woken = waiter.wait_until(due).await;
                let after = CLOCK.now();
                assert!(
                    due <= woken && woken <= after,
                    "{due} {woken} {after} at {config:?}"
                );
                assert!(woken.saturating_since(due) < PATIENCE_NS);
            }
            assert_eq!(waiter.stats().completed, 400);
        });
    }
}

#[test]
fn a_waiter_also_works_from_a_spawned_task() {
    let runtime = runtime();
    let local = LocalSet::new();
    for config in both_modes() {
        local.block_on(&runtime, async {
            let task = tokio::task::spawn_local(async move {
                let mut waiter = waiter(config);
                let due = CLOCK.now() + Duration::from_millis(1);
                assert!(waiter.wait_until(due).await >= due);
            });
            task.await.unwrap();
        });
    }
}

#[test]
fn past_moments_complete_without_a_system_call() {
    runtime().block_on(async {
        let mut waiter = waiter(WaiterConfig::default());
        for due in [Stamp::ZERO, CLOCK.now().sub_nanos(1), CLOCK.now()] {
            assert!(waiter.wait_until(due).await >= due);
        }
        assert_eq!(waiter.stats().timer_calls, 0);
    });
}

/// Polls once with `due` and reports whether it was ready.
async fn poll_once(waiter: &mut Waiter, due: Option<Stamp>) -> Poll<Stamp> {
    poll_fn(|cx| Poll::Ready(waiter.poll_wait(cx, due))).await
}

#[test]
fn the_timer_is_set_only_when_the_deadline_changes() {
    runtime().block_on(async {
        let mut waiter = waiter(WaiterConfig::default());
        let far = CLOCK.now() + Duration::from_secs(3600);
        for _ in 0..10 {
            assert!(poll_once(&mut waiter, Some(far)).await.is_pending());
        }
        assert_eq!(waiter.stats().timer_calls, 1);
        assert!(
            poll_once(&mut waiter, Some(far.add_nanos(1)))
                .await
                .is_pending()
        );
        assert_eq!(waiter.stats().timer_calls, 2);
        // Nothing to wait for: cleared once, then nothing more to do.
        for _ in 0..10 {
            assert!(poll_once(&mut waiter, None).await.is_pending());
        }
        assert_eq!(waiter.stats().timer_calls, 3);
    });
}

#[test]
fn a_deadline_can_move_earlier_and_later() {
    for config in both_modes() {
        runtime().block_on(async {
            let mut waiter = waiter(config);
            for _ in 0..20 {
                let now = CLOCK.now();
                let (near, far) = (
                    now + Duration::from_millis(2),
                    now + Duration::from_secs(60),
                );
                assert!(poll_once(&mut waiter, Some(far)).await.is_pending());
                let woken = waiter.wait_until(near).await;
                assert!(woken >= near && woken.saturating_since(near) < PATIENCE_NS);

                let now = CLOCK.now();
                let (near, far) = (
                    now + Duration::from_millis(1),
                    now + Duration::from_millis(3),
                );
                let _ = poll_once(&mut waiter, Some(near)).await;
                assert!(waiter.wait_until(far).await >= far);
            }
        });
    }
}

#[test]
fn a_dropped_wait_leaves_nothing_behind() {
    for config in both_modes() {
        runtime().block_on(async {
            let mut waiter = waiter(config);
            for _ in 0..20 {
                let abandoned = CLOCK.now() + Duration::from_millis(1);
                tokio::select! {
                    biased;
                    _ = waiter.wait_until(abandoned) => {}
                    () = tokio::task::yield_now() => {}
                }
                // The abandoned timer fires during this wait and must not end it.
                let due = abandoned + Duration::from_millis(1);
                let woken = waiter.wait_until(due).await;
                assert!(woken >= due && woken.saturating_since(due) < PATIENCE_NS);
            }
        });
    }
}

#[test]
fn the_end_of_time_can_be_waited_for() {
    runtime().block_on(async {
        let mut waiter = waiter(WaiterConfig::default());
        let other = CLOCK.now() + Duration::from_millis(2);
        assert!(poll_once(&mut waiter, Some(Stamp::MAX)).await.is_pending());
        assert!(waiter.wait_until(other).await >= other);
    });
}

/// Within the lead other tasks and the sockets get their turn: a peer's answer that needs the
/// runtime to look at a socket arrives while the waiter is in a lead of minutes.
#[test]
fn sockets_are_served_within_the_lead() {
    let minutes = Duration::from_secs(300);
    let config = WaiterConfig {
        spin: true,
        lead_min: minutes,
        lead_start: minutes,
        lead_max: minutes,
    };
    runtime().block_on(async {
        let (mut peer, ours) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = UnixStream::from_std(ours).unwrap();
        let echo = std::thread::spawn(move || {
            let mut byte = [0];
            for _ in 0..10 {
                peer.read_exact(&mut byte).unwrap();
                peer.write_all(&byte).unwrap();
            }
        });
        let mut waiter = waiter(config);
        let due = CLOCK.now() + minutes;
        let exchanges = async {
            for byte in 0..10 {
                ours.writable().await.unwrap();
                ours.try_write(&[byte]).unwrap();
                let mut answer = [0xff];
                loop {
                    ours.readable().await.unwrap();
                    match ours.try_read(&mut answer) {
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                        read => break assert_eq!(read.unwrap(), 1),
                    }
                }
                assert_eq!(answer, [byte]);
            }
        };
        tokio::select! {
            _ = waiter.wait_until(due) => panic!("five minutes early, or the sockets starved"),
            () = exchanges => {}
        }
        echo.join().unwrap();
        assert_eq!(waiter.stats().timer_calls, 0);
    });
}

#[test]
fn tasks_run_within_the_lead() {
    let lead = Duration::from_secs(300);
    let config = WaiterConfig {
        spin: true,
        lead_min: lead,
        lead_start: lead,
        lead_max: lead,
    };
    let runtime = runtime();
    LocalSet::new().block_on(&runtime, async {
        let turns = Rc::new(Cell::new(0));
        let counted = Rc::clone(&turns);
        let counter = tokio::task::spawn_local(async move {
            loop {
                counted.set(counted.get() + 1);
                tokio::task::yield_now().await;
            }
        });
        let mut waiter = waiter(config);
        let due = CLOCK.now() + Duration::from_millis(20);
        assert!(waiter.wait_until(due).await >= due);
        counter.abort();
        assert!(turns.get() > 100, "only {} turns in 20 ms", turns.get());
    });
}

#[test]
fn the_lead_stays_within_its_bounds() {
    runtime().block_on(async {
        let mut waiter = waiter(WaiterConfig::default());
        assert_eq!(waiter.lead(), Duration::from_micros(60));
        for _ in 0..100 {
            waiter
                .wait_until(CLOCK.now() + Duration::from_micros(400))
                .await;
            let lead = waiter.lead();
            assert!(Duration::from_micros(20) <= lead && lead <= Duration::from_micros(150));
            assert!(waiter.lateness() <= Duration::from_micros(150));
        }
        assert!(waiter.stats().lead_ns > 0);
    });
}

#[test]
fn cheap_mode_has_no_lead() {
    runtime().block_on(async {
        let mut waiter = waiter(WaiterConfig::cheap());
        waiter
            .wait_until(CLOCK.now() + Duration::from_micros(400))
            .await;
        assert_eq!(waiter.lead(), Duration::ZERO);
        assert_eq!(waiter.stats().lead_ns, 0);
    });
}

#[test]
fn a_waiter_needs_a_runtime() {
    assert!(Waiter::new(CLOCK, WaiterConfig::default()).is_err());
}

#[test]
fn timer_slack_is_set_for_the_thread() {
    std::thread::spawn(|| {
        set_timer_slack_1ns().unwrap();
        assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
    })
    .join()
    .unwrap();
}
