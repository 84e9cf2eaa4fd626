//! How quiet the machine is, measured before and while it carries a run.
//!
//! * The *floor* is what the machine adds to every request by itself: the client's time minus the
//!   server's, request by request, in a run with the same connections and a like rate against a
//!   server without delay. Its median is the floor; how far its higher quantiles lie above that is
//!   the floor's *spread*, which no client can undercut.
//! * *Steal* is the share of processor time that the hypervisor gave to somebody else.
//! * *Wake-up* is how late a sleeping thread gets its core back.

use std::fs;
use std::time::Duration;

use kvlab_timing::{Clock, set_timer_slack_1ns};
use serde::Serialize;

use crate::truth::{Pair, Quantile, Sorted};

/// What the machine adds to a request by itself, before and after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Floor {
    before: Sorted,
    after: Sorted,
}

impl Floor {
    /// The floor between two runs without delay.
    #[must_use]
    pub fn between(before: &[Pair], after: &[Pair]) -> Self {
        let differences = |pairs: &[Pair]| {
            let measured = pairs.iter().filter(|pair| pair.is_measured());
            measured.filter_map(difference).collect()
        };
        Self {
            before: differences(before),
            after: differences(after),
        }
    }

    /// The middle of both medians, in nanoseconds.
    #[must_use]
    pub fn median_ns(&self) -> u64 {
        let (before, after) = self.medians();
        before.midpoint(after)
    }

    /// How far each median lies from that middle: what the machine's own floor moved by.
    #[must_use]
    pub fn drift_ns(&self) -> u64 {
        let (before, after) = self.medians();
        before.abs_diff(after).div_ceil(2)
    }

    /// How far its quantile lies above the median, in nanoseconds: the larger of both runs.
    #[must_use]
    pub fn spread_ns(&self, q: Quantile) -> u64 {
        let (before, after) = self.medians();
        let above = |samples: &Sorted, median| {
            let at = samples.quantile(q).unwrap_or(0);
            at.saturating_sub(median)
        };
        above(&self.before, before).max(above(&self.after, after))
    }

    /// Requests it was measured with.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.before.len() + self.after.len()
    }

    fn medians(&self) -> (u64, u64) {
        let median = |samples: &Sorted| samples.quantile(Quantile::P50).unwrap_or(0);
        (median(&self.before), median(&self.after))
    }
}

/// The client's time of an answered request minus the server's.
#[must_use]
pub fn difference(pair: &Pair) -> Option<u64> {
    Some(pair.service_ns()?.saturating_sub(pair.sojourn_ns()))
}

/// What the machine did while a run was on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineUse {
    /// Share of all processor time that the hypervisor took, 0 to 1.
    pub steal_share: f64,
    /// Share of all processor time that was used by anybody, 0 to 1.
    pub busy_share: f64,
}

/// Processor time since the machine started, in ticks, summed over all cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTime {
    all: u64,
    idle: u64,
    steal: u64,
}

impl ProcessorTime {
    /// Reads `/proc/stat`; `None` where there is none.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`. Guest
    /// time is part of user time already.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.lines().next()?.split_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let ticks: Vec<u64> = words
            .take(8)
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let [_, _, _, idle, iowait, _, _, steal] = <[u64; 8]>::try_from(ticks).ok()?;
        let all = text.lines().next()?.split_whitespace().skip(1).take(8);
        Some(Self {
            all: all.filter_map(|word| word.parse::<u64>().ok()).sum(),
            idle: idle + iowait,
            steal,
        })
    }

    /// What the machine did since an earlier reading.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shares for a report")]
    pub fn since(&self, before: &Self) -> MachineUse {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let idle = self.idle.saturating_sub(before.idle) as f64;
        MachineUse {
            steal_share: self.steal.saturating_sub(before.steal) as f64 / all,
            busy_share: 1.0 - idle / all,
        }
    }
}

/// The machine and how quickly it wakes a thread, for the head of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// Cores this process may use.
    pub cores: usize,
    /// What the kernel keeps time with.
    pub clock_source: String,
    /// Runnable threads over the last minute, as the kernel says.
    pub load: String,
    /// Median lateness of a sleep of one millisecond, in nanoseconds.
    pub wake_up_p50_ns: u64,
    /// Its 90th percentile.
    pub wake_up_p90_ns: u64,
    /// Its 99th percentile.
    pub wake_up_p99_ns: u64,
}

impl Machine {
    /// Looks at the machine; takes about a third of a second.
    #[must_use]
    pub fn measure() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let lateness = wake_up_lateness();
        let at = |q| lateness.quantile(q).unwrap_or(0);
        Self {
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .trim()
                .to_owned(),
            load: read("/proc/loadavg")
                .split_whitespace()
                .next()
                .unwrap_or("?")
                .to_owned(),
            wake_up_p50_ns: at(Quantile::P50),
            wake_up_p90_ns: at(Quantile::P90),
            wake_up_p99_ns: at(Quantile::P99),
        }
    }
}

/// How late a thread wakes from sleeps of one millisecond.
fn wake_up_lateness() -> Sorted {
    let measuring = std::thread::spawn(|| {
        // The slack belongs to the thread, so the program's own threads keep theirs.
        let _ = set_timer_slack_1ns();
        let clock = Clock::real();
        (0..WAKE_UPS)
            .map(|_| {
                let due = clock.now() + WAKE_UP_SLEEP;
                std::thread::sleep(WAKE_UP_SLEEP);
                clock.now().saturating_since(due)
            })
            .collect()
    });
    measuring.join().unwrap_or_default()
}

const WAKE_UPS: usize = 250;
const WAKE_UP_SLEEP: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::join::tests::pair;

    #[test]
    fn processor_time_is_read_from_the_first_line() {
        let before = ProcessorTime::parse("cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 1 2 3\n").unwrap();
        let after = ProcessorTime::parse("cpu  30 0 20 120 20 0 0 10 25 0\n").unwrap();
        // 100 ticks in between: 60 idle or waiting, 10 stolen.
        let used = after.since(&before);
        assert!((used.steal_share - 0.1).abs() < 1e-12, "{used:?}");
        assert!((used.busy_share - 0.4).abs() < 1e-12, "{used:?}");
        for text in ["", "intr 1 2", "cpu 1 2 3", "cpu a b c d e f g h"] {
            assert_eq!(ProcessorTime::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn floor_is_the_median_of_what_the_client_sees_beyond_the_server() {
        // The sample pair has 10 ns of network each way.
        let mut pairs: Vec<Pair> = (0..1_000).map(|n| pair(1, n, n * 5_000)).collect();
        for late in pairs.iter_mut().take(11) {
            late.client.received = late.client.received.map(|at| at.add_nanos(500));
        }
        let quiet = &pairs[500..];
        let floor = Floor::between(quiet, &pairs);
        assert_eq!((floor.samples(), floor.median_ns()), (1_500, 20));
        assert_eq!(floor.spread_ns(Quantile::P90), 0);
        assert_eq!(floor.spread_ns(Quantile::P99), 500);
        assert_eq!(floor.drift_ns(), 0);
    }

    #[test]
    fn a_floor_that_moved_lies_in_the_middle_and_says_how_far() {
        let pairs: Vec<Pair> = (0..100).map(|n| pair(1, n, n * 5_000)).collect();
        let mut later = pairs.clone();
        for pair in &mut later {
            pair.client.received = pair.client.received.map(|at| at.add_nanos(40));
        }
        let floor = Floor::between(&pairs, &later);
        // 20 ns before, 60 ns after.
        assert_eq!((floor.median_ns(), floor.drift_ns()), (40, 20));
    }
}
