//! Options of how the client measures.

use std::time::Duration;

use clap::{Args, ValueEnum};
use kvlab_timing::{Clock, WallClock};

use super::{Moment, UsageError};
use crate::settings::{KernelStamps, Polling, Settings};

/// How the client measures.
#[derive(Args, Clone, Debug)]
#[group(skip)]
#[command(next_help_heading = "Measurement")]
pub struct MeasureArgs {
    /// Take the kernel's receive stamps, which part the network and the server from the client's
    /// own delay [default: off]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub kernel_stamps: Option<KernelStampsArg>,

    /// What a thread does while it waits; spin needs a core per thread and one for the rest
    /// [default: sleep]
    #[arg(long, value_name = "HOW", value_enum)]
    pub poll: Option<PollArg>,

    /// Calendar time at which the load begins, for runs on several machines: RFC 3339, HH:MM:SS in
    /// UTC, seconds since 1970, or +TIME from now [default: once all connections are up]
    #[arg(long, value_name = "TIME")]
    pub start_at: Option<Moment>,
}

/// Whether the kernel's receive stamps are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KernelStampsArg {
    /// No
    Off,
    /// Where the kernel gives them; else the result says why not
    Auto,
    /// Yes; a kernel that gives none is an error
    On,
}

/// What a thread does while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PollArg {
    /// Sleep until the kernel wakes it
    Sleep,
    /// Look again and again
    Spin,
}

impl MeasureArgs {
    /// Writes what the options say into the settings.
    pub(super) fn apply(&self, settings: &mut Settings) -> Result<(), UsageError> {
        settings.start_at_unix_ns = self.start()?;
        settings.kernel_stamps = match self.kernel_stamps {
            None | Some(KernelStampsArg::Off) => KernelStamps::Off,
            Some(KernelStampsArg::Auto) => KernelStamps::Auto,
            Some(KernelStampsArg::On) => KernelStamps::On,
        };
        settings.polling = match self.poll {
            None | Some(PollArg::Sleep) => Polling::Sleep,
            Some(PollArg::Spin) => Polling::Spin,
        };
        Ok(())
    }

    fn start(&self) -> Result<Option<u64>, UsageError> {
        let Some(moment) = self.start_at else {
            return Ok(None);
        };
        let clock = Clock::real();
        let now = WallClock::real(clock).unix_nanos(clock.now());
        let start = moment.unix_ns(now);
        if (now..=now.saturating_add(LONGEST_WAIT_NS)).contains(&start) {
            return Ok(Some(start));
        }
        let far = Duration::from_nanos(start.abs_diff(now)).as_secs_f64();
        let side = if start < now { "ago" } else { "ahead" };
        Err(UsageError::new(
            "--start-at",
            "a moment within the next 24 hours",
            format_args!("one {far:.3} s {side}"),
        ))
    }
}

/// How far ahead a start may lie; more is a slip of the hand.
const LONGEST_WAIT_NS: u64 = 86_400 * 1_000_000_000;
