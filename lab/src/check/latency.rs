//! The figures: what was injected, what truly happened, what the client reports.
//!
//! In real time a service time is judged against the server's true sojourn and the floor, a response
//! time against the timetable; under virtual time both have to be exact.

use serde::Serialize;

use super::score::Aspect;
use crate::truth::Quantile;
use crate::verdict::{Finding, Verdict};

/// One figure of the client, quantile by quantile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Which time.
    pub figure: FigureKind,
    /// What it is held against.
    pub truth: TruthSource,
    /// Requests it covers.
    pub samples: u64,
    /// The quantiles.
    pub quantiles: Vec<QuantileRow>,
    /// Mean and largest value.
    pub aspects: Vec<AspectRow>,
}

/// Which time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureKind {
    /// From the send to the reply.
    Service,
    /// From the intended moment to the reply.
    Response,
    /// From the send to the kernel's receive stamp of the reply.
    Network,
}

impl FigureKind {
    /// As in JSON: `service`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
            Self::Network => "network",
        }
    }
}

/// Where the true values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TruthSource {
    /// The server's stamps: written - read.
    Sojourn,
    /// The timetable, simulated.
    Timetable,
    /// The server's write minus the client's intended moment, where the timetable cannot be
    /// simulated.
    Stamps,
}

/// One quantile of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuantileRow {
    /// Which.
    pub quantile: Quantile,
    /// What the law that was to be injected has there; the sample's quantile where several laws
    /// apply.
    pub injected_ns: u64,
    /// What truly happened.
    pub true_ns: u64,
    /// What the client reports.
    pub reported_ns: u64,
    /// The 95 % order-statistic interval of what is reported.
    pub interval_ns: (u64, u64),
    /// Reported minus true, and minus the floor where it is a part of what is reported.
    pub error_ns: i64,
    /// The allowed error, where it is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance_ns: Option<u64>,
    /// How it came out; `None` when it is not judged.
    pub verdict: Option<Verdict>,
    /// Why it is not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The mean or the largest value of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AspectRow {
    /// Which.
    pub of: Aspect,
    /// What truly happened.
    pub true_ns: u64,
    /// What the client reports.
    pub reported_ns: u64,
    /// The 95 % interval of what is reported, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<(u64, u64)>,
    /// Reported minus true, and minus the floor where it is a part of what is reported.
    pub error_ns: i64,
    /// The allowed error, where it is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance_ns: Option<u64>,
    /// How it came out; `None` when it is not judged.
    pub verdict: Option<Verdict>,
    /// Why it is not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Figure {
    /// Whether every judged value is within its tolerance; `None` when none is judged.
    pub(super) fn finding(&self) -> Option<Finding> {
        let quantiles = self.quantiles.iter().map(|row| {
            let name = row.quantile.to_string();
            (name, row.error_ns, row.tolerance_ns, row.verdict)
        });
        let aspects = self.aspects.iter().map(|row| {
            let name = row.of.to_string();
            (name, row.error_ns, row.tolerance_ns, row.verdict)
        });
        let judged: Vec<_> = quantiles
            .chain(aspects)
            .filter(|(.., verdict)| verdict.is_some())
            .collect();
        if judged.is_empty() {
            return None;
        }
        let bad: Vec<String> = judged
            .iter()
            .filter(|(.., verdict)| *verdict == Some(Verdict::Fail))
            .map(|(name, error, tolerance, _)| {
                let allowed = tolerance.unwrap_or(0);
                format!("{name}: off by {error} ns, allowed {allowed}")
            })
            .collect();
        let text = format!(
            "{} of {} figures within tolerance",
            judged.len() - bad.len(),
            judged.len()
        );
        let finding = Finding::measurement(self.figure.as_str(), bad.is_empty(), text);
        Some(finding.with_examples(bad))
    }
}
