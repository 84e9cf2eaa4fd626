//! Judging a run by its rows.
//!
//! Each file holds one kind of check; a check takes the [`Evidence`] of a run and gives findings.
//! [`judge`] runs them all.

mod accounting;
mod exactness;
mod latency;
mod recorder;
mod rows;
pub mod score;
mod timetable;
mod validity;

pub use accounting::Accounting;
pub use latency::{Figure, FigureKind, QuantileRow, TruthSource};
pub use timetable::{Timetable, timetable};
pub use validity::{Spread, Validity};

use crate::noise::Floor;
use crate::runner::{Evidence, Tier};
use crate::scenario::Expect;
use crate::verdict::{Finding, Verdict, overall};

/// What came out for one run.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Over all findings.
    pub verdict: Verdict,
    /// All that was looked at.
    pub findings: Vec<Finding>,
    /// Quantile by quantile.
    pub figures: Vec<Figure>,
    /// What became of the requests.
    pub accounting: Accounting,
    /// How well the machine carried the run.
    pub validity: Validity,
}

/// Judges a run. `floor` is what the machine adds to a request by itself, measured before; a virtual
/// run has none.
#[must_use]
pub fn judge(evidence: &Evidence, expect: &Expect, floor: Option<&Floor>) -> Judgement {
    let accounting = Accounting::new(evidence);
    let timetable = timetable(evidence);
    let mut findings = vec![rows::partners(evidence), rows::stamps(evidence)];
    findings.extend(accounting.findings(evidence, expect));
    findings.extend(timetable.findings(evidence));
    findings.push(recorder::histograms(evidence));
    if let Tier::Virtual { leg_ns } = evidence.tier {
        findings.push(exactness::rows(evidence, leg_ns));
    }
    let figures = latency::figures(evidence, &timetable, expect, floor);
    findings.extend(figures.iter().filter_map(Figure::finding));
    findings.extend(latency::law(evidence));
    findings.extend(latency::sojourn(evidence, expect));
    let validity = Validity::new(evidence, floor);
    if evidence.tier == Tier::Real {
        findings.extend(validity.findings());
    }
    Judgement {
        verdict: overall(&findings),
        findings,
        figures,
        accounting,
        validity,
    }
}
