//! What was to be injected, and whether it was drawn and kept.

use kvlab_bench_client::record::RowKind;
use kvlab_mock_server::ServerRow;
use kvlab_mock_server::exchange::Class;
use kvlab_mock_server::latency::{Distribution, Replay, Selector};

use crate::runner::{Evidence, Tier};
use crate::scenario::{Expect, Limit, Limits};
use crate::truth::join::is_timed;
use crate::truth::replay;
use crate::truth::{Pair, Quantile, Sorted};
use crate::verdict::Finding;

/// What was to be injected.
pub(super) struct Injected {
    law: Option<Distribution>,
    /// What the law gave for each read and write that was executed.
    drawn: Sorted,
    /// Whether delays change over time, so that their law is not that of what was drawn.
    is_changed: bool,
    /// What was wanted in the end.
    wanted: Sorted,
}

impl Injected {
    pub(super) fn new(evidence: &Evidence) -> Self {
        let executed = executed(evidence);
        Self {
            law: single_law(evidence),
            drawn: executed.clone().map(|row| row.drawn_ns).collect(),
            is_changed: !evidence.server.shapes.is_empty(),
            wanted: executed.map(|row| row.wanted_ns).collect(),
        }
    }

    pub(super) fn at(&self, q: Quantile) -> u64 {
        match &self.law {
            Some(law) if !self.is_changed => at(law, q),
            _ => self.wanted.quantile(q).unwrap_or(0),
        }
    }
}

/// The reads and writes of the measured part that the server executed. Attempts that were followed by
/// another are among them: those that timed out had the longest delays, and what is left without
/// them has another law.
fn executed(evidence: &Evidence) -> impl Iterator<Item = &ServerRow> + Clone {
    let pairs = evidence.joined.pairs.iter();
    pairs
        .filter(|pair| pair.client.kind == RowKind::Load)
        .map(|pair| &pair.server)
        .filter(is_executed)
}

/// Whether a law without selector gave a delay.
fn is_executed(row: &&ServerRow) -> bool {
    row.started && row.class != Class::Admin && !row.fault.prevents_execution()
}

/// The law of all requests, where there is but one.
fn single_law(evidence: &Evidence) -> Option<Distribution> {
    match evidence.server.latency.rules() {
        [] => Some(Distribution::None),
        [rule] if rule.selector == Selector::DATA => Some(rule.law.clone()),
        _ => None,
    }
}

/// The delays that were drawn follow the law, and the service times of a queue follow theirs.
pub(super) fn law(evidence: &Evidence) -> Vec<Finding> {
    let injected = Injected::new(evidence);
    let delays = injected.law.as_ref();
    let delays = delays.map(|law| match law {
        Distribution::Replay(list) => replayed(evidence, list),
        law => follows("law", "delays", law, &injected.drawn),
    });
    let service = evidence.server.queue.as_ref().map(|queue| {
        let drawn = executed(evidence).map(|row| row.service_ns).collect();
        follows("service law", "service times", &queue.service, &drawn)
    });
    delays.into_iter().chain(service).collect()
}

/// Whether each recorded delay had its turn, in the warm-up too. Under virtual time the order of
/// starts is that of the list as well; on several threads two may take their turns otherwise.
fn replayed(evidence: &Evidence, list: &Replay) -> Finding {
    let joined = &evidence.joined;
    let paired = joined.pairs.iter().map(|pair| &pair.server);
    let rows: Vec<&ServerRow> = paired
        .chain(&joined.server_only)
        .filter(is_executed)
        .collect();
    let holds = replay::follows(list.delays(), &rows, evidence.tier != Tier::Real);
    let text = if holds {
        format!("each delay of {list} had its turn")
    } else {
        format!("the delays drawn are not those of {list} in turn")
    };
    Finding::proof("law", holds, text)
}

/// Whether the law's quantile lies within the order-statistic interval of the sample, five deviations
/// wide.
fn follows(name: &'static str, what: &str, law: &Distribution, drawn: &Sorted) -> Finding {
    // Beyond these the interval would reach over the end of the sample.
    let supported = |q: &Quantile| q.is_supported_by(drawn.len());
    let wrong: Vec<String> = Quantile::JUDGED
        .into_iter()
        .filter(supported)
        .filter_map(|q| {
            let (low, high) = drawn.interval(q, 5.0);
            let expected = at(law, q);
            // Delays are whole nanoseconds, the law's quantile is rounded to one.
            let holds = (low.saturating_sub(1)..=high.saturating_add(1)).contains(&expected);
            (!holds).then(|| format!("{q}: law {expected} ns, drawn {low} to {high} ns"))
        })
        .collect();
    let text = if wrong.is_empty() {
        format!("the {what} drawn follow {law}")
    } else {
        format!("the {what} drawn do not follow {law}")
    };
    Finding::proof(name, wrong.is_empty(), text).with_examples(wrong)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "laws give finite times from 0 up; rounded to the nanosecond"
)]
fn at(law: &Distribution, q: Quantile) -> u64 {
    law.quantile_ns(q.as_f64()).round() as u64
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
