//! Options of the search for the largest rate that keeps an objective.

use std::time::Duration;

use clap::Args;
use kvlab_timing::Rate;

use super::quantity::{positive_time, share};
use super::{BenchArgs, UsageError};
use crate::search::{Objective, Plan};

/// The search for the largest rate.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
#[command(next_help_heading = "Finding the capacity")]
pub struct SearchArgs {
    /// Search for the largest rate that keeps every --slo; --rate is the rate to begin with
    /// [default: 1000]
    #[arg(long, requires = "slo", conflicts_with_all = ["duration", "requests"])]
    pub find_rate: bool,

    /// What has to be kept, as in 'p99<2ms' or 'service.p50<500us'; of the response time unless it
    /// says otherwise; may be repeated
    #[arg(long, value_name = "OBJECTIVE", requires = "find_rate")]
    pub slo: Vec<Objective>,

    /// Length of the measured part of a trial [default: 5s, longer where a quantile needs it]
    #[arg(long, value_name = "TIME", value_parser = positive_time, requires = "find_rate")]
    pub trial: Option<Duration>,

    /// Width of the answer, as a share of the rate [default: 5%]
    #[arg(long, value_name = "SHARE", value_parser = precision, requires = "find_rate")]
    pub precision: Option<f64>,

    /// No rate above this one is tried [default: 10M]
    #[arg(long, value_name = "PER_SECOND", requires = "find_rate")]
    pub most_rate: Option<Rate>,

    /// Bound of the trials in all [default: 40]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "find_rate")]
    pub most_trials: Option<u32>,
}

impl SearchArgs {
    /// The search that the options describe, from `first` on.
    pub(super) fn plan(&self, first: Rate) -> Result<Plan, UsageError> {
        let mut plan = Plan::new(self.slo.clone(), first);
        if let Some(most) = self.most_rate {
            if most.as_f64() < first.as_f64() {
                let expected = format!("at least the rate to begin with, {first}");
                return Err(UsageError::new("--most-rate", expected, most));
            }
            plan.most = most;
        }
        plan.precision = self.precision.unwrap_or(plan.precision);
        plan.most_trials = self.most_trials.unwrap_or(plan.most_trials);
        Ok(plan)
    }

    /// Length of a trial at `rate`: what was asked for, and long enough that 120 requests are
    /// expected beyond each quantile, within a bound.
    pub(super) fn trial(&self, rate: Rate) -> Duration {
        let needed = self.slo.iter().map(|objective| {
            let seconds = WANTED_BEYOND / objective.share_beyond() / rate.as_f64();
            Duration::from_secs_f64(seconds.min(LONGEST_TRIAL.as_secs_f64()))
        });
        let asked = self.trial.unwrap_or(DEFAULT_TRIAL);
        needed.max().unwrap_or_default().max(asked)
    }

    /// The options of an ordinary run at `rate`, with a warm-up of at least a tenth of the trial.
    pub(super) fn trial_args(&self, args: &BenchArgs, rate: Rate) -> BenchArgs {
        let mut args = args.clone();
        let trial = self.trial(rate);
        args.load.rate = Some(rate);
        args.load.duration = Some(trial);
        args.load.warmup = Some(args.load.warmup.unwrap_or_default().max(trial / 10));
        args
    }
}

fn precision(text: &str) -> Result<f64, String> {
    let share = share(text)?;
    if (0.005..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(format!(
            "expected a share from 0.5% to 100%, found {text:?}"
        ))
    }
}

const DEFAULT_TRIAL: Duration = Duration::from_secs(5);
/// Requests that are to be expected beyond a quantile.
const WANTED_BEYOND: f64 = 120.0;
/// Bound of what a trial is made longer to.
const LONGEST_TRIAL: Duration = Duration::from_secs(60);
