//! `kvlab bench`: the load generator's own front end, and certificates for its results.

use std::io::Write;

use clap::Args;
use kvlab_bench_client::engine::Silent;
use kvlab_bench_client::frontend::Companion;
use kvlab_bench_client::frontend::native::{self, BenchArgs};
use kvlab_bench_client::record::Summary;
use kvlab_bench_client::settings::KernelStamps;
use kvlab_bench_client::{Control, Settings};

use crate::ExitStatus;
use crate::certify::{self, Certifier};
use crate::noise::ProcessorTime;
use crate::runner::client::Own;
use crate::runner::real;

/// Options of `kvlab bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchCommand {
    /// The load.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Say how far the latencies can be off: runs the same load against a built-in server whose every
    /// answer time is known, before and after, and prints a bound beside each quantile
    #[arg(long, conflicts_with = "find_rate", help_heading = "Output")]
    pub certify: bool,
}

pub(super) fn run(
    args: &BenchCommand,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> ExitStatus {
    if !args.certify {
        return native::run(&args.bench, stdout, stderr);
    }
    let mut companion = Certifying {
        stamps_are_chosen: args.bench.measure.kernel_stamps.is_some(),
        quiet: args.bench.output.quiet,
        begun: None,
    };
    native::run_beside(&args.bench, &mut companion, stdout, stderr)
}

/// Calibrates before and after each run.
#[derive(Default)]
pub(super) struct Certifying {
    stamps_are_chosen: bool,
    quiet: bool,
    begun: Option<(Certifier<'static>, Option<ProcessorTime>)>,
}

impl Companion for Certifying {
    fn before(&mut self, settings: &mut Settings, control: &Control, stderr: &mut dyn Write) {
        if !self.stamps_are_chosen {
            // They leave less of the machine in the figures, so that the bound is narrower.
            settings.kernel_stamps = KernelStamps::Auto;
        }
        if !self.quiet {
            // Where stderr is closed nobody wants to know.
            let _ = writeln!(
                stderr,
                "certify: a pilot, then runs against a known server before and after the measured run"
            );
        }
        let of_runs = control.clone();
        let drive = Box::new(move |config, filling, settings| {
            real::run_filled(&Own, config, filling, settings, &of_runs)
        });
        let mut certifier = Certifier::new(settings, drive);
        let control = control.for_another_server();
        match kvlab_bench_client::run(&certify::pilot(settings), &control, &mut Silent) {
            Ok(pilot) => certifier.before(&pilot.summary),
            // The run itself will meet the same and say so.
            Err(error) => certifier.refuse(format!("the pilot failed: {error}")),
        }
        self.begun = Some((certifier, ProcessorTime::now()));
    }

    fn after(&mut self, summary: &mut Summary, _control: &Control) {
        let Some((certifier, before)) = self.begun.take() else {
            return;
        };
        let machine = before
            .zip(ProcessorTime::now())
            .map(|(before, after)| after.since(&before));
        summary.certificate = Some(certifier.after(summary, machine));
    }
}
