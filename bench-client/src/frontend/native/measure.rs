//! Options of how the client measures.

use clap::{Args, ValueEnum};

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
    pub(super) fn apply(&self, settings: &mut Settings) {
        settings.kernel_stamps = match self.kernel_stamps {
            None | Some(KernelStampsArg::Off) => KernelStamps::Off,
            Some(KernelStampsArg::Auto) => KernelStamps::Auto,
            Some(KernelStampsArg::On) => KernelStamps::On,
        };
        settings.polling = match self.poll {
            None | Some(PollArg::Sleep) => Polling::Sleep,
            Some(PollArg::Spin) => Polling::Spin,
        };
    }
}
