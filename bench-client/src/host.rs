//! The machine a run took place on: recorded with each result, because a number without its
//! machine says little, and warned about where the machine is known to spoil numbers.

use std::fs;
use std::num::{NonZeroU32, NonZeroUsize};
use std::thread::available_parallelism;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;

use crate::settings::{Polling, Settings};

/// What is known of the machine. Facts that cannot be read are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// Operating system and release of its kernel.
    pub kernel: Option<String>,
    /// Name of the processor.
    pub processor: Option<String>,
    /// Cores this process may use.
    pub cores: usize,
    /// Frequency governor of the first core.
    pub governor: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Runnable tasks on average over the minute before the run.
    pub load_1_minute: Option<f64>,
}

impl Host {
    /// Reads the facts from the kernel's files.
    #[must_use]
    pub fn read() -> Self {
        let load = line("/proc/loadavg");
        Self {
            kernel: line("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}")),
            processor: processor(),
            cores: available_parallelism().map_or(1, NonZeroUsize::get),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load_1_minute: load.and_then(|load| load.split(' ').next()?.parse().ok()),
        }
    }

    /// What may spoil the numbers of a client with these settings on this machine.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a machine has far fewer cores than 2^52"
    )]
    pub fn warnings(&self, settings: &Settings) -> Vec<String> {
        let mut warnings = Vec::new();
        let threads = settings.threads.get();
        let more_than = |cores: usize| usize::try_from(threads).is_ok_and(|n| n > cores);
        if settings.polling == Polling::Spin && more_than(self.cores.saturating_sub(1)) {
            warnings.push(format!(
                "{threads} spinning {} leave no core of {} to anything else: they take the \
                 processor from whatever they measure on this machine",
                if threads == 1 { "thread" } else { "threads" },
                self.cores
            ));
        }
        if more_than(self.cores) {
            warnings.push(format!(
                "{threads} threads share {} cores: they measure each other's waits",
                self.cores
            ));
        }
        if let Some(load) = self.load_1_minute.filter(|load| *load > self.cores as f64) {
            warnings.push(format!(
                "the machine was busy before the run: {load} runnable tasks on {} cores",
                self.cores
            ));
        }
        if self.governor.as_deref() == Some("powersave") {
            warnings.push("the frequency governor is powersave: latencies vary with load".into());
        }
        if let Some(slow @ ("hpet" | "acpi_pm")) = self.clock_source.as_deref() {
            warnings.push(format!(
                "the clock source is {slow}: reading the clock takes microseconds"
            ));
        }
        warnings
    }
}

/// Open files that a run needs: its connections, what each thread opens beside them, and what the
/// process has open.
#[must_use]
pub fn files_of(threads: NonZeroU32, connections: NonZeroU32) -> u64 {
    u64::from(connections.get())
        .saturating_add(u64::from(threads.get()) * FILES_PER_THREAD)
        .saturating_add(FILES_OF_PROCESS)
}

/// Makes room for this many open files, within the hard limit.
///
/// # Errors
/// The limit that stands in the way.
pub fn make_room_for_files(wanted: u64) -> Result<(), u64> {
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|current| *current < wanted) else {
        return Ok(());
    };
    if let Some(maximum) = limit.maximum.filter(|maximum| *maximum < wanted) {
        return Err(maximum);
    }
    let raised = Rlimit {
        current: Some(wanted),
        ..limit
    };
    setrlimit(Resource::Nofile, raised).map_err(|_| current)
}

/// Makes room for up to this many open files, as far as the hard limit lets it: for those that need
/// an unknown number of them.
pub fn make_room_up_to(wanted: u64) {
    if let Err(maximum) = make_room_for_files(wanted) {
        // What cannot be had is said by the first connection that is missed.
        let _ = make_room_for_files(maximum);
    }
}

/// The first line of a file.
fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

/// Open files of a thread beside its connections: runtime, timer, wake-up.
const FILES_PER_THREAD: u64 = 8;
/// Open files of the process: the standard streams, the outputs, the signals.
const FILES_OF_PROCESS: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{RedisTarget, Target};

    fn settings(threads: u32) -> Settings {
        let address = ([127, 0, 0, 1], 1).into();
        let mut settings = Settings::new(Target::Redis(RedisTarget::new(address, 1, 1)));
        settings.threads = threads.try_into().unwrap();
        settings
    }

    #[test]
    fn spinning_needs_a_core_beside_the_threads() {
        let host = Host {
            cores: 3,
            ..Host::default()
        };
        for (threads, warnings) in [(1, 0), (2, 0), (3, 1), (4, 2)] {
            let mut settings = settings(threads);
            settings.polling = Polling::Spin;
            assert_eq!(host.warnings(&settings).len(), warnings, "{threads}");
            settings.polling = Polling::Sleep;
            let asleep = usize::from(threads > 3);
            assert_eq!(host.warnings(&settings).len(), asleep, "{threads}");
        }
    }

    #[test]
    fn a_quiet_machine_gives_no_warning() {
        let host = Host {
            cores: 2,
            governor: Some("performance".into()),
            clock_source: Some("tsc".into()),
            load_1_minute: Some(2.0),
            ..Host::default()
        };
        assert_eq!(host.warnings(&settings(2)), Vec::<String>::new());
    }

    #[test]
    fn each_fault_of_a_machine_is_named() {
        let host = Host {
            cores: 2,
            governor: Some("powersave".into()),
            clock_source: Some("hpet".into()),
            load_1_minute: Some(2.5),
            ..Host::default()
        };
        let warnings = host.warnings(&settings(3));
        assert_eq!(warnings.len(), 4);
        for (warning, word) in warnings
            .iter()
            .zip(["threads", "busy", "powersave", "hpet"])
        {
            assert!(warning.contains(word), "{warning}");
        }
    }

    #[test]
    fn limit_of_files_is_kept_when_it_suffices_and_named_when_it_cannot() {
        assert_eq!(make_room_for_files(1), Ok(()));
        if let Some(maximum) = getrlimit(Resource::Nofile).maximum {
            assert_eq!(make_room_for_files(maximum + 1), Err(maximum));
        }
    }
}
