//! Scores: the accuracy figures by which a client is judged, whoever wrote it. `docs/accuracy.md`
//! defines them.

use std::fmt;

use serde::Serialize;

use crate::truth::Quantile;
use crate::verdict::Verdict;

/// One accuracy figure of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Which figure.
    pub name: ScoreName,
    /// The quantile it is about, for figures that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantile: Option<Quantile>,
    /// Its value in `unit`; `None` where it cannot be told, for which `reason` says why.
    pub value: Option<f64>,
    /// The unit of value, interval and limit.
    pub unit: Unit,
    /// The 95 % interval of the value, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// The largest absolute value that passes, where it is judged.
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
    /// 1 - requests recorded / requests due.
    Omission,
    /// Client's time minus server's, request by request.
    PairErr,
    /// Mean distance between the quantile functions of reported and true times, less the floor.
    W1,
    /// 99th percentile of send - intended.
    LagP99,
    /// |sent per second - wanted| / wanted, over the run.
    RateErr,
    /// Anderson-Darling statistic of the arrivals against the wanted law.
    ArrivalAD,
    /// What the server itself was late by: write - due.
    InjErr,
    /// Largest over least value of a quantile over repeated runs, less 1.
    Repro,
    /// The largest latency the client can represent.
    Clamp,
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

/// `ServErr(p99)`, `Omission`.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)?;
        match self.quantile {
            Some(quantile) => write!(f, "({quantile})"),
            None => Ok(()),
        }
    }
}
