//! Judging a run by its rows.
//!
//! Each file holds one kind of check; a check takes the [`Evidence`] of a run and gives findings.
//! [`judge`] runs them all.

mod accounting;
mod arrivals;
mod connections;
mod exactness;
mod figures;
mod latency;
mod law;
mod recorder;
pub mod repro;
mod rows;
pub mod score;
mod scores;
mod steady;
mod timetable;
mod validity;

pub use accounting::Accounting;
pub use latency::{AspectRow, Figure, FigureKind, QuantileRow, TruthSource};
pub use score::{Aspect, Score, ScoreName, Unit};
pub use steady::WarmUp;
pub use timetable::{Timetable, timetable};
pub use validity::{Spread, Validity};
pub(crate) use {figures::network_ns, steady::steady_from, timetable::timetable_from};

use self::figures::Basis;
use self::steady::Sample;
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
    /// The named accuracy figures.
    pub scores: Vec<Score>,
    /// When the load was warm, where that can be told.
    pub warm_up: Option<WarmUp>,
}

/// Judges a run. `floor` is what the machine adds to a request by itself, measured before; a virtual
/// run has none.
#[must_use]
pub fn judge(evidence: &Evidence, expect: &Expect, floor: Option<&Floor>) -> Judgement {
    let accounting = Accounting::new(evidence);
    let warm_up = WarmUp::detect(evidence);
    let from = steady_from(evidence, warm_up.as_ref());
    let timetable = timetable_from(evidence, from);
    let mut findings = vec![rows::partners(evidence), rows::stamps(evidence)];
    findings.extend(accounting.findings(evidence, expect));
    findings.extend(timetable.findings(evidence));
    findings.push(recorder::histograms(evidence));
    if let Tier::Virtual { leg_ns } = evidence.tier {
        findings.push(exactness::rows(evidence, leg_ns));
    }
    findings.extend(connections::findings(evidence, expect));
    let basis = Basis {
        evidence,
        expect,
        floor,
        sample: &Sample::new(evidence, from),
        timetable: &timetable,
    };
    let figures = figures::figures(&basis);
    findings.extend(figures.iter().filter_map(Figure::finding));
    findings.extend(law::law(evidence));
    findings.extend(law::sojourn(evidence, expect));
    let validity = Validity::new(evidence, floor);
    let scores = scores::scores(&basis, &figures, &accounting, &validity);
    findings.extend(scores::findings(&scores));
    if evidence.tier == Tier::Real {
        findings.extend(validity.findings(expect));
    }
    Judgement {
        verdict: overall(&findings),
        findings,
        figures,
        accounting,
        validity,
        scores,
        warm_up,
    }
}
