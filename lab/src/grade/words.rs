//! A sentence per tool, made from its figures, of what it got wrong.

use super::Graded;
use super::truth::Source;
use crate::check::score::{Score, ScoreName};
use crate::subject::process::End;
use crate::verdict::{Finding, Verdict};

/// What a tool got wrong.
#[must_use]
pub fn sentence(graded: &Graded) -> String {
    let mut parts = Vec::new();
    let broken = |name: &str| -> Option<&Finding> {
        let mut findings = graded.findings.iter();
        findings.find(|finding| finding.name == name && finding.verdict == Verdict::Fail)
    };
    if let Some(end) = broken("end") {
        parts.push(end.text.clone());
    }
    match broken("report") {
        Some(_) if graded.end != Some(End::Exited(0)) => {}
        Some(report) => parts.push(format!("its report cannot be read: {}", report.text)),
        None => {}
    }
    parts.extend(quantiles(graded));
    if let Some(max) = broken("max") {
        parts.push(max.text.clone());
    }
    if let Some(dropped) = broken("dropped") {
        parts.push(dropped.text.clone());
    }
    if let Some(count) = broken("count") {
        parts.push(format!("more samples than requests: {}", count.text));
    }
    parts.extend(left_out(graded));
    parts.extend(slowed(graded));
    if graded.facts.as_ref().is_some_and(|facts| facts.is_borrowed) && !parts.is_empty() {
        parts.push("it keeps no rate, so its closed loop is held against the timetable".to_owned());
    }
    let said = match parts.is_empty() {
        true => "within tolerance".to_owned(),
        false => parts.join("; "),
    };
    match graded.verdict {
        Some(Verdict::Void) => {
            let reasons = graded
                .findings
                .iter()
                .filter(|finding| finding.verdict == Verdict::Void);
            let reasons: Vec<&str> = reasons.map(|finding| finding.text.as_str()).collect();
            format!("{said} (void: {})", reasons.join("; "))
        }
        _ => said,
    }
}

/// `p90 and p99 too low, p99 by 92.1 % (13.8 ms for 181.3 ms)`.
fn quantiles(graded: &Graded) -> Vec<String> {
    let failed = |is_low: bool| -> Vec<&Score> {
        let wrong = graded.scores.iter().filter(|score| {
            score.verdict == Some(Verdict::Fail)
                && matches!(score.name, ScoreName::ServErr | ScoreName::RespErr)
                && score.value.is_some_and(|value| (value < 0.0) == is_low)
        });
        wrong.collect()
    };
    let mut said = Vec::new();
    for (is_low, word) in [(true, "low"), (false, "high")] {
        let failed = failed(is_low);
        let size = |score: &Score| score.value.unwrap_or(0.0).abs();
        let Some(worst) = failed
            .iter()
            .copied()
            .max_by(|a, b| size(a).total_cmp(&size(b)))
        else {
            continue;
        };
        let names: Vec<String> = failed.iter().map(|score| subject_of(score)).collect();
        let which = match names.as_slice() {
            [_] => String::new(),
            _ => format!(", {}", subject_of(worst)),
        };
        said.push(format!(
            "{} too {word}{which} by {}{}",
            list(&names),
            percent(size(worst)),
            values(graded, worst).unwrap_or_default()
        ));
    }
    said
}

/// `p99`, `mean`.
fn subject_of(score: &Score) -> String {
    match (score.quantile, score.of) {
        (Some(q), _) => q.to_string(),
        (None, Some(aspect)) => aspect.to_string(),
        (None, None) => format!("{:?}", score.name),
    }
}

/// ` (13.8 ms for 181.3 ms)`.
fn values(graded: &Graded, score: &Score) -> Option<String> {
    let (facts, reported) = (graded.facts.as_ref()?, graded.reported.as_ref()?);
    let (found, truth) = match score.quantile {
        Some(q) => (reported.quantiles.get(&q)?.high_ns, facts.quantile(q)?),
        None => (rounded(reported.mean_ns?), rounded(facts.mean()?)),
    };
    Some(format!(
        " ({} ms for {} ms)",
        milliseconds(found),
        milliseconds(truth)
    ))
}

fn left_out(graded: &Graded) -> Option<String> {
    let omission = graded.score(ScoreName::Omission)?;
    let facts = graded.facts.as_ref()?;
    if omission.verdict != Some(Verdict::Fail) {
        return None;
    }
    let what = match facts.source {
        Source::Sojourn => "that the server read",
        Source::Timetable if facts.is_borrowed => "that the server read",
        Source::Timetable => "that were due",
    };
    Some(format!(
        "left out {} of {} requests {what}",
        percent(omission.value?),
        facts.due
    ))
}

fn slowed(graded: &Graded) -> Option<String> {
    let score = graded.score(ScoreName::RateErr)?;
    if score.verdict != Some(Verdict::Fail) {
        return None;
    }
    let found = graded.facts.as_ref()?;
    let found = found.seen.rate_since(found.start)?;
    let asked = graded.shape?.rate?;
    Some(format!("sent {found:.0} a second of {asked:.0}"))
}

/// `p50, p90 and p99`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// A share as a percentage.
#[must_use]
pub fn percent(share: f64) -> String {
    match share.abs() * 100.0 {
        size if size >= 99.95 => format!("{:.0} %", share * 100.0),
        _ => format!("{:.1} %", share * 100.0),
    }
}

/// Nanoseconds as milliseconds with four figures or so.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "rounded for people")]
pub fn milliseconds(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms => format!("{ms:.3}"),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean of times is not negative"
)]
fn rounded(ns: f64) -> u64 {
    ns.round() as u64
}
