//! Options of the load: how many connections, how hard, and for how long.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kvlab_timing::Rate;

use super::UsageError;
use super::quantity::{count, positive_time, time};
use crate::settings::{Arrivals, Load, Pipeline, PipelineMode, Settings, Stop};

/// How many connections, how hard, and for how long.
#[derive(Args, Clone, Debug)]
#[group(skip)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Worker threads; each owns its share of the connections [default: 1]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroU32>,

    /// Connections in all, spread over the threads [default: 50, or one per thread if more]
    #[arg(long, value_name = "N")]
    pub connections: Option<NonZeroU32>,

    /// Requests in flight on one connection (RESP only) [default: 1]
    #[arg(long, value_name = "N")]
    pub pipeline: Option<NonZeroU32>,

    /// How the slots of a pipeline are filled again [default: window]
    #[arg(long, value_name = "MODE", value_enum)]
    pub pipeline_mode: Option<PipelineModeArg>,

    /// Open loop: requests due per second in all, 0.1 to 10M; without it the loop is closed
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<Rate>,

    /// Law of the arrivals of an open loop [default: uniform]
    #[arg(long, value_name = "LAW", value_enum)]
    pub arrivals: Option<ArrivalsArg>,

    /// Length of the measured part, as in 500ms, 30s, 5m [default: 10s, unless --requests is given]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub duration: Option<Duration>,

    /// Requests of the measured part in all, as in 5000, 100k, 2M; the run ends at the first of
    /// --duration and --requests
    #[arg(long, value_name = "COUNT", value_parser = count)]
    pub requests: Option<u64>,

    /// Load before the measured part, which the results leave out [default: 0]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub warmup: Option<Duration>,

    /// Time from the send of a request until it counts as timed out [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub timeout: Option<Duration>,

    /// Time after the end for what is due and on its way; what is left then counts as lost or never
    /// sent [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub drain: Option<Duration>,
}

/// How the slots of a pipeline are filled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PipelineModeArg {
    /// Sliding window: each reply frees a slot at once
    Window,
    /// Send a whole pipeline, then wait for all its replies
    Batch,
}

/// The law of the arrivals of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsArg {
    /// Evenly spaced
    Uniform,
    /// Independent exponential gaps
    Poisson,
}

impl LoadArgs {
    /// Writes what the options say into the settings.
    pub(super) fn apply(&self, settings: &mut Settings) -> Result<(), UsageError> {
        settings.threads = self.threads.unwrap_or(NonZeroU32::MIN);
        settings.connections = self
            .connections
            .unwrap_or_else(|| DEFAULT_CONNECTIONS.max(settings.threads));
        settings.pipeline = self.pipeline()?;
        settings.load = self.load()?;
        settings.stop = self.stop()?;
        settings.warmup = self.warmup.unwrap_or_default();
        if let Some(timeout) = self.timeout {
            settings.timeout = timeout;
        }
        if let Some(drain) = self.drain {
            settings.drain = drain;
        }
        Ok(())
    }

    fn pipeline(&self) -> Result<Pipeline, UsageError> {
        let depth = self.pipeline.unwrap_or(NonZeroU32::MIN);
        if depth.get() > MAX_PIPELINE {
            return Err(UsageError::new(
                "--pipeline",
                format!("at most {MAX_PIPELINE}"),
                depth,
            ));
        }
        let mode = match self.pipeline_mode {
            None | Some(PipelineModeArg::Window) => PipelineMode::Window,
            Some(PipelineModeArg::Batch) => PipelineMode::Batch,
        };
        Ok(Pipeline { depth, mode })
    }

    fn load(&self) -> Result<Load, UsageError> {
        let Some(rate) = self.rate else {
            if self.arrivals.is_some() {
                return Err(UsageError::new(
                    "--arrivals",
                    "a --rate beside it, because only an open loop has arrivals",
                    "no --rate",
                ));
            }
            return Ok(Load::Closed);
        };
        let arrivals = match self.arrivals {
            None | Some(ArrivalsArg::Uniform) => Arrivals::Uniform,
            Some(ArrivalsArg::Poisson) => Arrivals::Poisson,
        };
        Ok(Load::Open { rate, arrivals })
    }

    fn stop(&self) -> Result<Stop, UsageError> {
        if self.requests == Some(0) {
            return Err(UsageError::new("--requests", "at least 1", 0));
        }
        let duration = match (self.duration, self.requests) {
            (None, None) => Some(DEFAULT_DURATION),
            (duration, _) => duration,
        };
        Ok(Stop {
            duration,
            requests: self.requests,
        })
    }
}

/// Connections without `--connections`, as with other load generators.
const DEFAULT_CONNECTIONS: NonZeroU32 = match NonZeroU32::new(50) {
    Some(connections) => connections,
    None => NonZeroU32::MIN,
};
/// Length of a run without `--duration` and `--requests`.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
/// Bound of the requests in flight on one connection.
const MAX_PIPELINE: u32 = 65_536;
