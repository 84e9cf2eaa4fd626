//! Scores: the accuracy figures by which a client is judged, whoever wrote it. `docs/accuracy.md`
//! defines them.

use std::fmt;

use serde::Serialize;

use crate::truth::Quantile;
use crate::verdict::Verdict;

/// One accuracy figure of a run.
///
/// ```
/// use kvlab::check::score::{Score, ScoreName, Unit};
/// use kvlab::truth::Quantile;
/// use kvlab::verdict::Verdict;
///
/// let score = Score::new(ScoreName::ServErr, Unit::Share)
///     .at(Quantile::P99)
///     .value(-0.79)
///     .within(0.05);
/// assert_eq!(score.to_string(), "ServErr(p99)");
/// assert_eq!(score.verdict, Some(Verdict::Fail));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Which figure.
    pub name: ScoreName,
    /// The quantile it is about, for figures that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantile: Option<Quantile>,
    /// What else it is about, for figures of several kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<Aspect>,
    /// Its value in `unit`; `None` where it cannot be told, for which `reason` says why.
    pub value: Option<f64>,
    /// The unit of value, interval and limit.
    pub unit: Unit,
    /// The 95 % interval of the value, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// The largest absolute value that passes, where it is judged; of [`ScoreName::Clamp`] the
    /// least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// How it came out; `None` when it is not judged.
    pub verdict: Option<Verdict>,
    /// Why it is not told or not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum ScoreName {
    /// (reported service time - true sojourn - floor) / true sojourn.
    ServErr,
    /// (reported response time - the timetable's) / the timetable's.
    RespErr,
    /// (service time up to the kernel's receive stamp - true sojourn) / true sojourn; no floor is
    /// taken off.
    NetErr,
    /// 1 - requests recorded / requests due.
    Omission,
    /// Client's time minus server's, request by request.
    PairErr,
    /// Mean distance between the quantile functions of reported and true times, less the floor.
    W1,
    /// 99th percentile of send - intended.
    LagP99,
    /// |sent per second - wanted| / wanted, over the run and over windows of 100 ms.
    RateErr,
    /// Anderson-Darling statistic of the arrivals against the wanted law; for evenly spaced ones
    /// the largest distance from the timetable.
    ArrivalAD,
    /// What the server itself was late by: write - due.
    InjErr,
    /// Largest over least value of a quantile over repeated runs, less 1.
    Repro,
    /// The largest latency the client can represent.
    Clamp,
}

/// What a figure without a quantile is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Aspect {
    /// The mean.
    Mean,
    /// The largest value.
    Max,
    /// The whole run.
    Run,
    /// The worst window of 100 ms.
    Window,
    /// The intended moments.
    Intended,
    /// The moments of the sends.
    Sent,
    /// The service time.
    Service,
    /// The response time.
    Response,
    /// What lay beyond the representable.
    Saturated,
    /// The sequence of operations.
    Sequence,
}

/// What a value is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A share of the true value: 0.03 is 3 %.
    Share,
    /// Nanoseconds.
    Nanoseconds,
    /// A plain number.
    Number,
}

impl Score {
    /// A score that is not told yet.
    #[must_use]
    pub fn new(name: ScoreName, unit: Unit) -> Self {
        Self {
            name,
            quantile: None,
            of: None,
            value: None,
            unit,
            interval: None,
            limit: None,
            verdict: None,
            reason: None,
        }
    }

    /// The quantile it is about.
    #[must_use]
    pub fn at(mut self, quantile: Quantile) -> Self {
        self.quantile = Some(quantile);
        self
    }

    /// What it is about.
    #[must_use]
    pub fn of(mut self, aspect: Aspect) -> Self {
        self.of = Some(aspect);
        self
    }

    /// Its value.
    #[must_use]
    pub fn value(mut self, value: f64) -> Self {
        self.value = Some(value);
        self
    }

    /// The 95 % interval of the value.
    #[must_use]
    pub fn interval(mut self, low: f64, high: f64) -> Self {
        self.interval = Some((low, high));
        self
    }

    /// Judges the value: it passes when it is not farther from 0 than `limit`. Without a value
    /// there is no verdict.
    #[must_use]
    pub fn within(mut self, limit: f64) -> Self {
        self.limit = Some(limit);
        self.verdict = self
            .value
            .map(|value| Verdict::from_holds(value.abs() <= limit));
        self
    }

    /// Why it is not told or not judged.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

impl Score {
    /// Whether the value may lie to either side of 0.
    #[must_use]
    pub fn has_sign(&self) -> bool {
        matches!(
            self.name,
            ScoreName::ServErr | ScoreName::RespErr | ScoreName::NetErr | ScoreName::W1
        )
    }

    /// Whether the limit is the least that passes, and not the largest.
    #[must_use]
    pub fn limit_is_least(&self) -> bool {
        self.name == ScoreName::Clamp && self.of.is_none()
    }
}

/// `ServErr(p99)`, `RespErr(mean)`, `Omission`.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)?;
        match (self.quantile, self.of) {
            (Some(quantile), _) => write!(f, "({quantile})"),
            (None, Some(aspect)) => write!(f, "({aspect})"),
            (None, None) => Ok(()),
        }
    }
}

/// As in JSON: `mean`, `window`.
impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// A time in nanoseconds, or a count, as a value of a score.
#[expect(
    clippy::cast_precision_loss,
    reason = "times and counts are far below 2^53"
)]
pub(super) fn precise(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_passes_up_to_its_limit_on_either_side() {
        let judge = |value| {
            Score::new(ScoreName::W1, Unit::Nanoseconds)
                .value(value)
                .within(3.0)
                .verdict
        };
        assert_eq!(judge(-3.0), Some(Verdict::Pass));
        assert_eq!(judge(3.1), Some(Verdict::Fail));
        assert_eq!(judge(f64::NAN), Some(Verdict::Fail));
        let untold = Score::new(ScoreName::W1, Unit::Nanoseconds).within(3.0);
        assert_eq!(untold.verdict, None);
    }
}
