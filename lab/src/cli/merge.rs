//! `kvlab merge FILE…`: adds the histogram logs of several clients.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use kvlab_bench_client::frontend::ExitStatus;

use super::output;
use crate::merge::{Log, LogError, Merged, merge};

/// Options of `kvlab merge`.
#[derive(Args, Clone, Debug)]
pub struct MergeArgs {
    /// Histogram logs, as --hdr-log writes them
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Write the sums as a histogram log
    #[arg(long, value_name = "FILE")]
    pub hdr_log: Option<PathBuf>,

    /// Write the figures as JSON to FILE; - is stdout, and the text then goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// What a value of 1 in the histograms means; kvlab's logs count nanoseconds
    #[arg(long, value_enum, default_value_t = Unit::Ns)]
    pub unit: Unit,
}

/// The unit of the histograms' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
}

impl Unit {
    fn nanos(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
        }
    }
}

/// Merges; results go to `out`, everything else to `err`.
pub fn run(args: &MergeArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitStatus {
    let merged = match read(args) {
        Ok(merged) => merged,
        Err(error) => {
            // Nobody is left to be told when stderr is closed.
            let _ = writeln!(err, "error: {error}");
            return ExitStatus::Usage;
        }
    };
    let text = merged.to_string();
    // The log first: it is what cannot be made again from the rest.
    let log = args
        .hdr_log
        .as_deref()
        .map_or(Ok(()), |file| write_log(&merged, file));
    let shown = output::write(&text, || merged.to_json(), args.json.as_deref(), out, err);
    match log.and(shown) {
        Ok(()) => ExitStatus::Done,
        Err(error) => {
            let _ = writeln!(err, "error: {error:#}");
            ExitStatus::Failed
        }
    }
}

fn read(args: &MergeArgs) -> Result<Merged, LogError> {
    let logs = args.files.iter().map(|file| Log::load(file));
    merge(logs.collect::<Result<_, _>>()?, args.unit.nanos())
}

fn write_log(merged: &Merged, file: &Path) -> anyhow::Result<()> {
    let wrong = || format!("cannot write {}", file.display());
    let mut out = BufWriter::new(fs::File::create(file).with_context(wrong)?);
    merged.write_log(&mut out).with_context(wrong)
}
