//! How quiet the machine is, measured before and while it carries a run.
//!
//! * The *floor* is what the machine adds to every request by itself: the client's time minus the
//!   server's, request by request, in a run with the same connections and a like rate against a
//!   server without delay. Its median is the floor; how far its higher quantiles lie above that is
//!   the floor's *spread*, which no client can undercut.
//! * *Steal* is the share of processor time that the hypervisor gave to somebody else, *others* the
//!   share that other processes of the machine used, *pressure* the share of the time in which some
//!   thread of the machine waited for a core.

use std::fs;

use kvlab_timing::{Clock, Stamp};

pub use crate::environment::Machine;
use crate::environment::Priority;
use crate::truth::{Pair, Quantile, Sorted};

/// What the machine adds to a request by itself, before and after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Floor {
    before: Sorted,
    after: Sorted,
    in_step: Option<Box<Floor>>,
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
            in_step: None,
        }
    }

    /// With the floor of a closed loop whose connections march in step.
    #[must_use]
    pub fn with_step(self, in_step: Self) -> Self {
        Self {
            in_step: Some(Box::new(in_step)),
            ..self
        }
    }

    /// Whether the run's connections march in step, so that its requests come in bursts.
    #[must_use]
    pub fn is_in_step(&self) -> bool {
        self.in_step.is_some()
    }

    /// The floor in step, where there is one.
    #[must_use]
    pub fn in_step(&self) -> Option<&Self> {
        self.in_step.as_deref()
    }

    /// Between what and what the floor of a service time lies, in nanoseconds. Where connections
    /// march in step, requests come in bursts, but how many meet depends on the delay: it lies
    /// between the floor of requests that come one by one and that of requests that all meet.
    #[must_use]
    pub fn service_range_ns(&self) -> (u64, u64) {
        let median = self.median_ns();
        let in_step = self.in_step().map_or(median, Self::median_ns);
        (median.min(in_step), median.max(in_step))
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

    /// How far the value that a share of the requests does not exceed lies above the median, in
    /// nanoseconds: the larger of both runs.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a rank: rounded up and held within the samples"
    )]
    pub fn spread_at(&self, share: f64) -> u64 {
        let (before, after) = self.medians();
        let above = |samples: &Sorted, median: u64| {
            let rank = (samples.len() as f64 * share.clamp(0.0, 1.0)).ceil() as u64;
            samples.at_rank(rank).unwrap_or(0).saturating_sub(median)
        };
        above(&self.before, before).max(above(&self.after, after))
    }

    /// How far the mean lies above the median, in nanoseconds: the larger of both runs.
    #[must_use]
    pub fn mean_above_ns(&self) -> u64 {
        let (before, after) = self.medians();
        let above = |samples: &Sorted, median| samples.rounded_mean().saturating_sub(median);
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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineUse {
    /// Share of all processor time that the hypervisor took, 0 to 1.
    pub steal_share: f64,
    /// Share of all processor time that was used by anybody, 0 to 1.
    pub busy_share: f64,
    /// Share of all processor time that other processes used, 0 to 1.
    pub others_share: f64,
    /// Context switches of the whole machine per second.
    pub switches_per_second: f64,
    /// Share of the time in which some thread of the machine waited for a core, 0 to 1; `None` where
    /// the kernel does not tell.
    pub pressure_share: Option<f64>,
    /// Whether the run had a real-time priority, so that what others do hardly matters.
    pub is_realtime: bool,
}

/// A reading of what the machine has done since it started. Times are in ticks, summed over all
/// cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTime {
    at: Stamp,
    all: u64,
    idle: u64,
    steal: u64,
    /// Used by this process.
    own: u64,
    switches: u64,
    pressure_us: Option<u64>,
}

impl ProcessorTime {
    /// Reads the kernel's files; `None` where there are none.
    #[must_use]
    pub fn now() -> Option<Self> {
        let reading = Self::parse(
            &fs::read_to_string("/proc/stat").ok()?,
            &fs::read_to_string("/proc/self/stat").unwrap_or_default(),
            &fs::read_to_string("/proc/pressure/cpu").unwrap_or_default(),
        )?;
        Some(Self {
            at: Clock::real().now(),
            ..reading
        })
    }

    /// `/proc/stat` begins with `cpu user nice system idle iowait irq softirq steal guest
    /// guest_nice`, where guest time is part of user time, and has a line `ctxt SWITCHES`.
    /// `/proc/self/stat` has user and system time of all threads of the process in its fields 14 and
    /// 15. `/proc/pressure/cpu` has a line `some ... total=MICROSECONDS`.
    fn parse(stat: &str, own: &str, pressure: &str) -> Option<Self> {
        let mut words = stat.lines().next()?.split_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let ticks: Vec<u64> = words
            .take(8)
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let [_, _, _, idle, iowait, _, _, steal] = <[u64; 8]>::try_from(ticks.as_slice()).ok()?;
        let switches = stat
            .lines()
            .find_map(|line| line.strip_prefix("ctxt "))
            .and_then(|count| count.trim().parse().ok());
        let own = own.rsplit_once(')').map_or(0, |(_, rest)| {
            let fields = rest.split_whitespace().skip(11).take(2);
            fields.filter_map(|field| field.parse::<u64>().ok()).sum()
        });
        let pressure_us = pressure
            .lines()
            .find(|line| line.starts_with("some"))
            .and_then(|line| line.rsplit_once("total="))
            .and_then(|(_, total)| total.trim().parse().ok());
        Some(Self {
            at: Stamp::ZERO,
            all: ticks.iter().sum(),
            idle: idle + iowait,
            steal,
            own,
            switches: switches.unwrap_or(0),
            pressure_us,
        })
    }

    /// What the machine did since an earlier reading.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shares for a report")]
    pub fn since(&self, before: &Self) -> MachineUse {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let idle = self.idle.saturating_sub(before.idle) as f64;
        let stolen = self.steal.saturating_sub(before.steal) as f64;
        let own = self.own.saturating_sub(before.own) as f64;
        let elapsed_ns = self.at.saturating_since(before.at).max(1) as f64;
        let switches = self.switches.saturating_sub(before.switches) as f64;
        let pressure = self.pressure_us.zip(before.pressure_us);
        MachineUse {
            steal_share: stolen / all,
            busy_share: 1.0 - idle / all,
            others_share: ((all - idle - stolen - own) / all).max(0.0),
            switches_per_second: switches * 1e9 / elapsed_ns,
            pressure_share: pressure.map(|(after, before)| {
                let waited_us = after.saturating_sub(before) as f64;
                (waited_us * 1e3 / elapsed_ns).min(1.0)
            }),
            is_realtime: Priority::read().is_realtime(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::join::tests::pair;

    #[test]
    fn use_of_the_machine_is_the_difference_of_two_readings() {
        let own = |user: u64| format!("7 (a) b) R 1 2 3 4 5 6 7 8 9 10 {user} 5 0 0");
        let mut before = ProcessorTime::parse(
            "cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 1 2 3\nctxt 100\n",
            &own(1),
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 total=9\n",
        )
        .unwrap();
        let mut after = ProcessorTime::parse(
            "cpu  30 0 20 120 20 0 0 10 25 0\nctxt 5100\n",
            &own(11),
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=501000\n",
        )
        .unwrap();
        (before.at, after.at) = (Stamp::from_nanos(5), Stamp::from_nanos(1_000_000_005));
        // 100 ticks in between: 60 idle or waiting, 10 stolen, 10 of this process, so 20 of others.
        let used = after.since(&before);
        assert!((used.steal_share - 0.1).abs() < 1e-12, "{used:?}");
        assert!((used.busy_share - 0.4).abs() < 1e-12, "{used:?}");
        assert!((used.others_share - 0.2).abs() < 1e-12, "{used:?}");
        assert!((used.switches_per_second - 5_000.0).abs() < 1e-6);
        assert!((used.pressure_share.unwrap() - 0.5).abs() < 1e-12);
        for text in ["", "intr 1 2", "cpu 1 2 3", "cpu a b c d e f g h"] {
            assert_eq!(ProcessorTime::parse(text, "", ""), None, "{text:?}");
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
        assert_eq!((floor.spread_at(0.985), floor.spread_at(1.0)), (0, 500));
        // 11 of 1000 are 500 ns late: 5.5 ns in the mean.
        assert_eq!(floor.mean_above_ns(), 6);
        assert_eq!(floor.service_range_ns(), (20, 20));
    }

    #[test]
    fn in_step_the_floor_lies_between_both() {
        let alone: Vec<Pair> = (0..100).map(|n| pair(1, n, n * 5_000)).collect();
        let mut together = alone.clone();
        for pair in &mut together {
            pair.client.received = pair.client.received.map(|at| at.add_nanos(300));
        }
        let floor = Floor::between(&alone, &alone);
        assert!(!floor.is_in_step());
        let floor = floor.with_step(Floor::between(&together, &together));
        assert!(floor.is_in_step());
        assert_eq!(floor.service_range_ns(), (20, 320));
        assert_eq!(floor.median_ns(), 20);
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
