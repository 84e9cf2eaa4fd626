//! What was to be injected, and whether it was drawn and kept.

use kvlab_mock_server::latency::{Distribution, Selector};

use crate::runner::Evidence;
use crate::scenario::{Expect, Limit, Limits};
use crate::truth::join::is_timed;
use crate::truth::{Pair, Quantile, Sorted};
use crate::verdict::Finding;

/// What was to be injected.
pub(super) struct Injected {
    law: Option<Distribution>,
    wanted: Sorted,
}

impl Injected {
    pub(super) fn new(evidence: &Evidence) -> Self {
        let pairs = evidence
            .joined
            .pairs
            .iter()
            .filter(|pair| pair.is_measured());
        Self {
            law: single_law(evidence),
            wanted: pairs.map(|pair| pair.server.wanted_ns).collect(),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "laws give finite times from 0 up; rounded to the nanosecond"
    )]
    pub(super) fn at(&self, q: Quantile) -> u64 {
        match &self.law {
            Some(law) => law.quantile_ns(q.as_f64()).round() as u64,
            None => self.wanted.quantile(q).unwrap_or(0),
        }
    }
}

/// The law of all requests, where there is but one.
fn single_law(evidence: &Evidence) -> Option<Distribution> {
    match evidence.server.latency.rules() {
        [] => Some(Distribution::None),
        [rule] if rule.selector == Selector::DATA => Some(rule.law.clone()),
        _ => None,
    }
}

/// The delays that were drawn follow the law: the law's quantile lies within the order-statistic
/// interval of the sample, five deviations wide.
pub(super) fn law(evidence: &Evidence) -> Option<Finding> {
    let injected = Injected::new(evidence);
    let law = injected.law.as_ref()?;
    // Beyond these the interval would reach over the end of the sample.
    let supported = |q: &Quantile| q.is_supported_by(injected.wanted.len());
    let wrong: Vec<String> = Quantile::JUDGED
        .into_iter()
        .filter(supported)
        .filter_map(|q| {
            let (low, high) = injected.wanted.interval(q, 5.0);
            let expected = injected.at(q);
            // Delays are whole nanoseconds, the law's quantile is rounded to one.
            let holds = (low.saturating_sub(1)..=high.saturating_add(1)).contains(&expected);
            (!holds).then(|| format!("{q}: law {expected} ns, drawn {low} to {high} ns"))
        })
        .collect();
    let text = if wrong.is_empty() {
        format!("the delays drawn follow {law}")
    } else {
        format!("the delays drawn do not follow {law}")
    };
    Some(Finding::proof("law", wrong.is_empty(), text).with_examples(wrong))
}

/// The true sojourn against the law, where the scenario asks for it.
pub(super) fn sojourn(evidence: &Evidence, expect: &Expect) -> Option<Finding> {
    if expect.sojourn == Limits::default() {
        return None;
    }
    let injected = Injected::new(evidence);
    let timed = evidence
        .joined
        .pairs
        .iter()
        .filter(|pair| is_timed(&pair.client));
    let sojourn: Sorted = timed.map(Pair::sojourn_ns).collect();
    let mut list = Vec::new();
    let mut holds = true;
    for q in Quantile::JUDGED {
        let Some(Limit::Within(tolerance)) = expect.sojourn.at(q) else {
            continue;
        };
        let (wanted, found) = (injected.at(q), sojourn.quantile(q).unwrap_or(0));
        let error = found.abs_diff(wanted);
        holds &= error <= tolerance.of_ns(wanted);
        list.push(format!(
            "{q} {found} ns, injected {wanted} ns, allowed +-{tolerance}"
        ));
    }
    Some(Finding::measurement("sojourn", holds, list.join("; ")))
}
