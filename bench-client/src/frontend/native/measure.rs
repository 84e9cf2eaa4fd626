//! Options of how the client measures.

use clap::{Args, ValueEnum};

use crate::settings::{KernelStamps, Settings};

/// How the client measures.
#[derive(Args, Clone, Debug)]
#[group(skip)]
#[command(next_help_heading = "Measurement")]
pub struct MeasureArgs {
    /// Take the kernel's receive stamps, which part the network and the server from the client's
    /// own delay [default: off]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub kernel_stamps: Option<KernelStampsArg>,
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

impl MeasureArgs {
    /// Writes what the options say into the settings.
    pub(super) fn apply(&self, settings: &mut Settings) {
        settings.kernel_stamps = match self.kernel_stamps {
            None | Some(KernelStampsArg::Off) => KernelStamps::Off,
            Some(KernelStampsArg::Auto) => KernelStamps::Auto,
            Some(KernelStampsArg::On) => KernelStamps::On,
        };
    }
}
