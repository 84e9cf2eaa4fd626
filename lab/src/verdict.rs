//! Verdicts and what they rest on.
//!
//! A run is *void* when the machine was too noisy for the claim, and *failed* when a number is
//! wrong. Findings are of two kinds. A *proof* holds on any machine: every row has its partner, every
//! sum comes out, no stamp contradicts another. A *measurement* compares figures within a
//! tolerance and says nothing on a machine that could not carry it. So a broken proof fails a run in
//! any case, and a measurement out of tolerance only one that is not void.

use std::fmt;

use serde::Serialize;

/// How a run, or one finding, came out. The later outweighs the earlier when they are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All that was judged holds.
    #[default]
    Pass,
    /// The machine was too noisy for the claim.
    Void,
    /// Something does not hold.
    Fail,
}

impl Verdict {
    /// [`Self::Pass`] when it holds, else [`Self::Fail`].
    #[must_use]
    pub fn from_holds(holds: bool) -> Self {
        if holds { Self::Pass } else { Self::Fail }
    }

    /// The exit status of a program that ends with this verdict: 0, 3 or 1.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Void => 3,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Void => "void",
            Self::Fail => "fail",
        })
    }
}

/// What a finding rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Exact arithmetic: holds on any machine.
    Proof,
    /// A figure within a tolerance.
    Measurement,
    /// Whether the machine could carry the claim.
    Validity,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in a word.
    pub name: &'static str,
    /// What it rests on.
    pub kind: Kind,
    /// How it came out.
    pub verdict: Verdict,
    /// What was found.
    pub text: String,
    /// A few of the cases that do not hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

impl Finding {
    /// A proof that holds or does not.
    #[must_use]
    pub fn proof(name: &'static str, holds: bool, text: impl Into<String>) -> Self {
        Self {
            name,
            kind: Kind::Proof,
            verdict: Verdict::from_holds(holds),
            text: text.into(),
            examples: Vec::new(),
        }
    }

    /// A figure that is within its tolerance or not.
    #[must_use]
    pub fn measurement(name: &'static str, holds: bool, text: impl Into<String>) -> Self {
        Self {
            kind: Kind::Measurement,
            ..Self::proof(name, holds, text)
        }
    }

    /// A sign that the machine could carry the claim, or not.
    #[must_use]
    pub fn validity(name: &'static str, holds: bool, text: impl Into<String>) -> Self {
        Self {
            kind: Kind::Validity,
            verdict: if holds { Verdict::Pass } else { Verdict::Void },
            ..Self::proof(name, holds, text)
        }
    }

    /// Adds cases that do not hold; only the first few are kept.
    #[must_use]
    pub fn with_examples(mut self, examples: impl IntoIterator<Item = String>) -> Self {
        self.examples
            .extend(examples.into_iter().take(MAX_EXAMPLES));
        self
    }
}

/// Cases kept of one finding.
pub const MAX_EXAMPLES: usize = 5;

/// The verdict over all findings of a run.
#[must_use]
pub fn overall<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Verdict {
    let (mut proofs, mut validity, mut measurements) =
        (Verdict::Pass, Verdict::Pass, Verdict::Pass);
    for finding in findings {
        let kind = match finding.kind {
            Kind::Proof => &mut proofs,
            Kind::Measurement => &mut measurements,
            Kind::Validity => &mut validity,
        };
        *kind = (*kind).max(finding.verdict);
    }
    if proofs == Verdict::Fail {
        return Verdict::Fail;
    }
    if validity == Verdict::Void {
        return Verdict::Void;
    }
    measurements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_proof_fails_any_run_and_a_measurement_only_a_valid_one() {
        let proof = |holds| Finding::proof("rows", holds, "");
        let measurement = |holds| Finding::measurement("p50", holds, "");
        let validity = |holds| Finding::validity("steal", holds, "");
        for (findings, verdict) in [
            (
                [proof(true), measurement(true), validity(true)],
                Verdict::Pass,
            ),
            (
                [proof(true), measurement(false), validity(true)],
                Verdict::Fail,
            ),
            (
                [proof(true), measurement(true), validity(false)],
                Verdict::Void,
            ),
            (
                [proof(true), measurement(false), validity(false)],
                Verdict::Void,
            ),
            (
                [proof(false), measurement(true), validity(false)],
                Verdict::Fail,
            ),
        ] {
            assert_eq!(overall(&findings), verdict);
        }
        assert_eq!(overall([]), Verdict::Pass);
    }

    #[test]
    fn of_several_runs_the_worst_counts() {
        let worst = [Verdict::Pass, Verdict::Fail, Verdict::Void]
            .into_iter()
            .max();
        assert_eq!(worst, Some(Verdict::Fail));
        assert_eq!(Verdict::Void.exit_code(), 3);
    }
}
