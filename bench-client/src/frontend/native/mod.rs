//! The native front end: `kvlab bench URL …` and the program `kvlab-bench`.
//!
//! Options as typed ([`BenchArgs`]) become [`Settings`]; [`run`] opens the outputs, runs the load
//! with a line each second on stderr and a summary at the end, and says how it ended. Results go
//! to stdout, everything else to stderr; where one of the machine-readable outputs takes stdout
//! (`-`), the summary for people goes to stderr.

mod addresses;
mod connect;
mod data;
mod find_rate;
mod load;
mod login;
mod measure;
mod moment;
mod operations;
mod output;
mod quantity;
mod search;
mod session;
mod sinks;
mod tls;
mod url;
mod usage;

pub use addresses::Addresses;
pub use connect::{BackoffArg, ConnectArgs, WhenDownArg};
pub use data::{ContentArg, DataArgs, KeyRange};
pub use load::{ArrivalsArg, LoadArgs, PipelineModeArg};
pub use login::LoginArgs;
pub use measure::{KernelStampsArg, MeasureArgs, PollArg};
pub use moment::Moment;
pub use operations::{MixArg, OperationArgs, Ratio};
pub use output::{ErrorLimit, OutputArgs};
pub use search::SearchArgs;
pub use session::{run, run_beside};
pub use tls::TlsArgs;
pub use url::{Place, TargetUrl};
pub use usage::UsageError;

use clap::Args;

use crate::settings::Settings;

/// Options of `kvlab bench`, as typed.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// The server.
    #[arg(value_name = "URL", help = URL_HELP)]
    pub url: TargetUrl,

    /// Who logs in.
    #[command(flatten)]
    pub login: LoginArgs,

    /// How hard, and for how long.
    #[command(flatten)]
    pub load: LoadArgs,

    /// How connections are made and kept.
    #[command(flatten)]
    pub connect: ConnectArgs,

    /// TLS.
    #[command(flatten)]
    pub tls: TlsArgs,

    /// What is sent.
    #[command(flatten)]
    pub operations: OperationArgs,

    /// Keys and values.
    #[command(flatten)]
    pub data: DataArgs,

    /// How the client measures.
    #[command(flatten)]
    pub measure: MeasureArgs,

    /// Outputs.
    #[command(flatten)]
    pub output: OutputArgs,

    /// The search for the largest rate.
    #[command(flatten)]
    pub search: SearchArgs,
}

impl BenchArgs {
    /// The settings that the options describe, for a host with these addresses.
    ///
    /// # Errors
    /// Names the option, or the pair of options, that makes no sense.
    pub fn settings(&self, addresses: &Addresses) -> Result<Settings, UsageError> {
        let mut target = self.operations.target(&self.url, addresses)?;
        self.login.apply(&self.url, &mut target)?;
        let mut settings = Settings::new(target);
        settings.tls = self.tls.settings(&self.url)?;
        self.load.apply(&mut settings)?;
        self.connect.apply(&mut settings)?;
        self.operations.apply(&mut settings);
        self.data.apply(&mut settings);
        self.measure.apply(&mut settings)?;
        settings.check()?;
        Ok(settings)
    }
}

const URL_HELP: &str = "Server: redis://[user:password@]host[:port][/database] or \
                        aerospike://[user:password@]host[:port][/namespace[/set]]; rediss:// and aerospikes:// with \
                        TLS";

#[cfg(test)]
mod tests;
