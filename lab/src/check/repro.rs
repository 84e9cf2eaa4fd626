//! How far repeated runs of one seed lie apart.
//!
//! The unit is the run: what lies between runs cannot be told from the requests of one. Void runs
//! say nothing and are left out.

use super::Judgement;
use super::latency::FigureKind;
use super::score::{Aspect, Score, ScoreName, Unit, precise};
use crate::scenario::{Expect, Limit};
use crate::truth::Quantile;
use crate::verdict::{Finding, Verdict};

/// One of several runs of the same client.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What was found.
    pub judgement: &'a Judgement,
    /// Hash over the sequence of operations that it drew.
    pub sequence_hash: u64,
    /// Whether seed and settings alone say how many operations are drawn: an open loop, or a closed
    /// one that ends after a number of requests.
    pub has_fixed_number: bool,
}

/// The spread of p50 and p99 of what the client reports, and whether it drew the same operations.
#[must_use]
pub fn scores(runs: &[Run<'_>], expect: &Expect) -> Vec<Score> {
    let valid: Vec<&Run<'_>> = runs
        .iter()
        .filter(|run| run.judgement.verdict != Verdict::Void)
        .collect();
    let spread = |(q, usual): (Quantile, f64)| {
        let score = Score::new(ScoreName::Repro, Unit::Share).at(q);
        let reported: Vec<u64> = valid
            .iter()
            .filter_map(|run| reported(run.judgement, q))
            .collect();
        let (Some(least), Some(most)) = (reported.iter().min(), reported.iter().max()) else {
            return score.because("no valid run");
        };
        if reported.len() < 2 {
            return score.because("one valid run");
        }
        let score = score.value(precise(*most) / precise((*least).max(1)) - 1.0);
        match expect.repro.at(q) {
            None => score.within(usual),
            Some(Limit::Unjudged) => score.because("not judged here"),
            Some(Limit::Within(tolerance)) => score.within(tolerance.share),
        }
    };
    let mut scores = USUAL.map(spread).to_vec();
    scores.push(sequence(runs));
    scores
}

/// Whether the spread is within its limits; `None` when nothing of it is judged.
#[must_use]
pub fn finding(scores: &[Score]) -> Option<Finding> {
    let judged = scores.iter().filter(|score| score.verdict.is_some());
    let bad: Vec<String> = judged
        .clone()
        .filter(|score| score.verdict == Some(Verdict::Fail))
        .map(ToString::to_string)
        .collect();
    let count = judged.count();
    let text = format!(
        "{} of {count} figures the same in all runs, within their limits",
        count - bad.len()
    );
    let finding = Finding::measurement("repro", bad.is_empty(), text);
    (count > 0).then(|| finding.with_examples(bad))
}

/// The latency a reader means by default: response time where there is one.
fn reported(judgement: &Judgement, q: Quantile) -> Option<u64> {
    let of = |kind| {
        judgement
            .figures
            .iter()
            .find(|figure| figure.figure == kind)
    };
    let figure = of(FigureKind::Response).or_else(|| of(FigureKind::Service))?;
    let row = figure.quantiles.iter().find(|row| row.quantile == q)?;
    (figure.samples > 0).then_some(row.reported_ns)
}

/// Sequences of operations beyond the first one that were drawn.
fn sequence(runs: &[Run<'_>]) -> Score {
    let score = Score::new(ScoreName::Repro, Unit::Number).of(Aspect::Sequence);
    if runs.iter().any(|run| !run.has_fixed_number) {
        return score.because("a closed loop draws as many operations as it has time for");
    }
    let mut hashes: Vec<u64> = runs.iter().map(|run| run.sequence_hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    score.value(precise(hashes.len() as u64) - 1.0).within(0.0)
}

const USUAL: [(Quantile, f64); 2] = [(Quantile::P50, 0.03), (Quantile::P99, 0.15)];

#[cfg(test)]
mod tests {
    use super::super::latency::{Figure, QuantileRow, TruthSource};
    use super::*;

    fn judgement(p50: u64, p99: u64, verdict: Verdict) -> Judgement {
        let row = |(quantile, reported_ns)| QuantileRow {
            quantile,
            injected_ns: 0,
            true_ns: 0,
            reported_ns,
            interval_ns: (0, 0),
            error_ns: 0,
            tolerance_ns: None,
            verdict: None,
            reason: None,
        };
        Judgement {
            verdict,
            findings: Vec::new(),
            figures: vec![Figure {
                figure: FigureKind::Service,
                truth: TruthSource::Sojourn,
                samples: 1,
                quantiles: [(Quantile::P50, p50), (Quantile::P99, p99)]
                    .map(row)
                    .to_vec(),
                aspects: Vec::new(),
            }],
            accounting: super::super::Accounting::default(),
            validity: super::super::Validity::default(),
            scores: Vec::new(),
            warm_up: None,
        }
    }

    #[test]
    fn spread_is_the_largest_over_the_least_of_the_valid_runs() {
        let all = [
            judgement(1_000, 4_000, Verdict::Pass),
            judgement(1_020, 4_800, Verdict::Fail),
            judgement(9_000, 9_000, Verdict::Void),
        ];
        let runs: Vec<Run<'_>> = all
            .iter()
            .zip([7, 7, 8])
            .map(|(judgement, sequence_hash)| Run {
                judgement,
                sequence_hash,
                has_fixed_number: true,
            })
            .collect();
        let found = scores(&runs, &Expect::default());
        let value = |place: usize| found[place].value.unwrap();
        assert!((value(0) - 0.02).abs() < 1e-12 && (value(1) - 0.2).abs() < 1e-12);
        assert_eq!(value(2), 1.0);
        let verdicts: Vec<_> = found.iter().map(|score| score.verdict).collect();
        assert_eq!(
            verdicts,
            [
                Some(Verdict::Pass),
                Some(Verdict::Fail),
                Some(Verdict::Fail)
            ]
        );
        assert_eq!(finding(&found).unwrap().verdict, Verdict::Fail);
        // One run has no spread, and a closed loop with a duration no fixed sequence.
        let one = [Run {
            has_fixed_number: false,
            ..runs[0]
        }];
        let found = scores(&one, &Expect::default());
        assert!(found.iter().all(|score| score.value.is_none()));
        assert_eq!(finding(&found), None);
    }
}
