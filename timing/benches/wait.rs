//! How late each way to wait is: `cargo bench -p kvlab-timing --bench wait [-- SAMPLES]`.
//!
//! Prints the lateness (present moment minus due moment) as quantiles in microseconds, and the
//! processor time used as a share of the time passed. tokio's own timer is missing because its
//! feature is not compiled in; it is known to be late by a millisecond at the median.
#![allow(clippy::unwrap_used, reason = "a bench may stop at the first surprise")]

use std::io::{Read, Write};
use std::time::Duration;

use hdrhistogram::Histogram;
use kvlab_timing::{Clock, Stamp, Waiter, WaiterConfig, set_timer_slack_1ns};
use rustix::time::{ClockId, clock_gettime};
use tokio::net::UnixStream;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

const CLOCK: Clock = Clock::real();
const SPIN_TAIL_NS: u64 = 100_000;

fn main() {
    let samples = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(500);
    println!(
        "lateness in us, {samples} samples per row; load average {}",
        load_average()
    );
    println!("one reading of the clock takes {:.0} ns", clock_cost_ns());
    println!(
        "{:<34} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6}",
        "way to wait", "wanted", "min", "p50", "p75", "p90", "p99", "cpu"
    );
    for wanted in [Duration::from_micros(250), Duration::from_millis(1)] {
        let bench = Bench { samples, wanted };
        bench.thread("thread sleep, default slack", thread_sleep);
        bench.with_slack("thread sleep, slack 1 ns", thread_sleep);
        bench.with_slack("thread sleep to -100 us, then spin", thread_sleep_then_spin);
        bench.waiter("waiter, cheap (timerfd, lead 0)", WaiterConfig::cheap());
        bench.waiter("waiter, adaptive lead", WaiterConfig::default());
        bench.waiter("waiter, lead 60 us", fixed_lead(60));
        bench.waiter("waiter, lead 120 us", fixed_lead(120));
        bench.waiter_beside_traffic("waiter, adaptive lead, busy socket");
        bench.thread("busy spin", spin);
    }
}

struct Bench {
    samples: u32,
    wanted: Duration,
}

impl Bench {
    fn thread(&self, name: &str, wait: fn(Stamp)) {
        let mut row = Row::new();
        for _ in 0..self.samples {
            let due = CLOCK.now() + self.wanted;
            wait(due);
            row.record(due);
        }
        row.print(name, self.wanted);
    }

    /// On a thread of its own, so that the setting does not leak into other rows.
    fn with_slack(&self, name: &str, wait: fn(Stamp)) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                set_timer_slack_1ns().unwrap();
                self.thread(name, wait);
            });
        });
    }

    fn waiter(&self, name: &str, config: WaiterConfig) {
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        runtime
            .block_on(self.waits(config))
            .print(name, self.wanted);
    }

    /// The same runtime also answers a peer that sends a byte, waits for it to come back and sends
    /// the next at once, as a server's connection would be driven.
    fn waiter_beside_traffic(&self, name: &str) {
        let (mut peer, ours) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let peer = std::thread::spawn(move || {
            let mut byte = [0];
            while peer.write_all(&byte).is_ok() && peer.read_exact(&mut byte).is_ok() {}
        });
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        let local = LocalSet::new();
        let row = local.block_on(&runtime, async {
            let ours = UnixStream::from_std(ours).unwrap();
            let echo = tokio::task::spawn_local(async move {
                let mut bytes = [0; 64];
                loop {
                    ours.readable().await.unwrap();
                    if let Ok(count) = ours.try_read(&mut bytes) {
                        ours.try_write(&bytes[..count]).unwrap();
                    }
                }
            });
            let row = self.waits(WaiterConfig::default()).await;
            echo.abort();
            row
        });
        row.print(name, self.wanted);
        // Drops the echo task and with it the socket, which ends the peer.
        drop(local);
        peer.join().unwrap();
    }

    async fn waits(&self, config: WaiterConfig) -> Row {
        let mut waiter = Waiter::new(CLOCK, config).unwrap();
        let mut row = Row::new();
        for _ in 0..self.samples {
            let due = CLOCK.now() + self.wanted;
            waiter.wait_until(due).await;
            row.record(due);
        }
        row
    }
}

fn thread_sleep(due: Stamp) {
    std::thread::sleep(Duration::from_nanos(due.saturating_since(CLOCK.now())));
}

fn thread_sleep_then_spin(due: Stamp) {
    thread_sleep(due.sub_nanos(SPIN_TAIL_NS));
    spin(due);
}

fn spin(due: Stamp) {
    while CLOCK.now() < due {
        std::hint::spin_loop();
    }
}

fn fixed_lead(micros: u64) -> WaiterConfig {
    let lead = Duration::from_micros(micros);
    WaiterConfig {
        spin: true,
        lead_min: lead,
        lead_start: lead,
        lead_max: lead,
    }
}

struct Row {
    lateness_ns: Histogram<u64>,
    started: Stamp,
    cpu_started: Duration,
}

impl Row {
    fn new() -> Row {
        Row {
            lateness_ns: Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap(),
            started: CLOCK.now(),
            cpu_started: cpu_time(),
        }
    }

    fn record(&mut self, due: Stamp) {
        let late_ns = u64::try_from(CLOCK.now().since(due)).expect("no way to wait is early");
        self.lateness_ns.record(late_ns).unwrap();
    }

    #[expect(clippy::cast_precision_loss, reason = "printed with one decimal")]
    fn print(&self, name: &str, wanted: Duration) {
        let elapsed = Duration::from_nanos(CLOCK.now().saturating_since(self.started));
        let cpu = (cpu_time() - self.cpu_started).as_secs_f64() / elapsed.as_secs_f64();
        let micros = |quantile| self.lateness_ns.value_at_quantile(quantile) as f64 / 1_000.0;
        let mut out = std::io::stdout().lock();
        write!(
            out,
            "{name:<34} {:>8}",
            kvlab_timing::duration::format(wanted)
        )
        .unwrap();
        for quantile in [0.0, 0.5, 0.75, 0.9, 0.99] {
            write!(out, " {:>7.1}", micros(quantile)).unwrap();
        }
        writeln!(out, " {:>5.0}%", cpu * 100.0).unwrap();
    }
}

fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

#[expect(clippy::cast_precision_loss, reason = "printed as whole nanoseconds")]
fn clock_cost_ns() -> f64 {
    let readings = 1_000_000;
    let started = CLOCK.now();
    for _ in 1..readings {
        std::hint::black_box(CLOCK.now());
    }
    CLOCK.now().saturating_since(started) as f64 / f64::from(readings)
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}
