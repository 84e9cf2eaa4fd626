//! Where a real-time run took place: machine, priority, versions. A virtual run depends on none of it
//! and reports none of it.

use std::fs;
use std::time::Duration;

use kvlab_bench_client::host::Host;
use kvlab_timing::{Clock, set_timer_slack_1ns};
use rustix::process::setpriority_process;
use serde::Serialize;

use crate::truth::{Quantile, Sorted};

/// The machine and how quickly it wakes a thread, for the head of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// Name of the processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Cores this process may use.
    pub cores: usize,
    /// Frequency governor of the first core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// What the kernel keeps time with.
    pub clock_source: String,
    /// Runnable threads over the last minute, as the kernel says.
    pub load: String,
    /// The priority that server and client run with.
    pub priority: Priority,
    /// Version of the program.
    pub version: &'static str,
    /// The compiler that built it.
    pub compiler: &'static str,
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
        let host = Host::read();
        let lateness = wake_up_lateness();
        let at = |q| lateness.quantile(q).unwrap_or(0);
        Self {
            kernel: host.kernel.unwrap_or_default(),
            processor: host.processor,
            cores: host.cores,
            governor: host.governor,
            clock_source: host.clock_source.unwrap_or_default(),
            load: host
                .load_1_minute
                .map_or_else(|| "?".to_owned(), |load| load.to_string()),
            priority: Priority::read(),
            version: env!("CARGO_PKG_VERSION"),
            compiler: env!("KVLAB_RUSTC"),
            wake_up_p50_ns: at(Quantile::P50),
            wake_up_p90_ns: at(Quantile::P90),
            wake_up_p99_ns: at(Quantile::P99),
        }
    }
}

/// How the kernel shares its cores out to a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Priority {
    /// Scheduling policy, such as `SCHED_OTHER`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Nice value, -20 to 19; lower gets more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Nice value of the group of the session, where the kernel shares out by session first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autogroup_nice: Option<i32>,
}

impl Priority {
    /// Asks for more processor time for the calling thread, and the threads it starts, where the
    /// system permits it. What came of it is told by [`Self::read`].
    pub fn raise() {
        let current = Self::read().nice.unwrap_or(0);
        if current > WANTED_NICE {
            // Without the permission everything stays as it is, and the report says so.
            let _ = setpriority_process(None, WANTED_NICE);
        }
    }

    /// Whether threads of other processes have to wait for this one.
    #[must_use]
    pub fn is_realtime(&self) -> bool {
        matches!(self.policy.as_deref(), Some("SCHED_FIFO" | "SCHED_RR"))
    }

    /// Reads the priority of the calling thread.
    #[must_use]
    pub fn read() -> Self {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
        let enabled = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
        let group = fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
        let mut priority = Self::parse(&stat).unwrap_or_default();
        if enabled.is_ok_and(|enabled| enabled.trim() == "1") {
            // "/autogroup-341 nice 0"
            priority.autogroup_nice = group
                .rsplit_once("nice ")
                .and_then(|(_, nice)| nice.trim().parse().ok());
        }
        priority
    }

    /// The line of `/proc/PID/stat`: after the name in brackets, from the third field on, stands the
    /// nice value in field 19 and the policy in field 41.
    fn parse(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let policy = match field(41)? {
            "0" => "SCHED_OTHER",
            "1" => "SCHED_FIFO",
            "2" => "SCHED_RR",
            "3" => "SCHED_BATCH",
            "5" => "SCHED_IDLE",
            "6" => "SCHED_DEADLINE",
            _ => "unknown",
        };
        Some(Self {
            policy: Some(policy.to_owned()),
            nice: field(19)?.parse().ok(),
            autogroup_nice: None,
        })
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

/// The nice value that a run asks for.
const WANTED_NICE: i32 = -10;
const WAKE_UPS: usize = 250;
const WAKE_UP_SLEEP: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_is_read_from_the_line_of_a_thread() {
        // A line of the kernel, with a name that has brackets and blanks of its own.
        let line = "1352 (a) b) R 1345 1345 21067 0 -1 4194304 106 0 0 0 0 0 0 0 20 -5 1 0 1184593 \
                    3133440 360 18446744073709551615 1 2 3 0 0 0 0 0 0 0 0 0 17 0 0 1 0 0 0 1 2 3 4 5 \
                    6 7 0\n";
        let priority = Priority::parse(line).unwrap();
        assert_eq!(priority.nice, Some(-5));
        assert_eq!(priority.policy.as_deref(), Some("SCHED_FIFO"));
        assert!(priority.is_realtime() && !Priority::default().is_realtime());
        assert_eq!(Priority::parse("1352 (cat"), None);
    }

    #[test]
    fn the_machine_at_hand_tells_its_priority() {
        let priority = Priority::read();
        assert!(priority.policy.is_some() && priority.nice.is_some());
    }
}
