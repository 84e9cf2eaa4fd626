//! Scenarios as texts, run under virtual time.

use kvlab::check::{Judgement, judge};
use kvlab::runner::{Evidence, virtual_time};
use kvlab::scenario::Scenario;
use kvlab::verdict::Verdict;

/// Reads a scenario that is meant to be legal.
pub(crate) fn scenario(text: &str) -> Scenario {
    Scenario::parse("test", text).unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
}

/// Runs one part under virtual time.
pub(crate) fn run(scenario: &Scenario, part: usize) -> (Evidence, Judgement) {
    let part = &scenario.parts[part];
    let config = scenario.server_for(part);
    let evidence = virtual_time::run(config, part.settings.clone(), scenario.network_ns)
        .unwrap_or_else(|error| panic!("{}: {error}", part.name));
    let judgement = judge(&evidence, &part.expect, None);
    (evidence, judgement)
}

/// Demands that every finding holds.
pub(crate) fn assert_passes(judgement: &Judgement, text: &str) {
    let broken: Vec<_> = judgement
        .findings
        .iter()
        .filter(|finding| finding.verdict != Verdict::Pass)
        .collect();
    assert!(broken.is_empty(), "{broken:#?}\nin\n{text}");
    assert_eq!(judgement.verdict, Verdict::Pass);
}

/// The finding of a name.
pub(crate) fn finding<'a>(judgement: &'a Judgement, name: &str) -> &'a kvlab::verdict::Finding {
    judgement
        .findings
        .iter()
        .find(|finding| finding.name == name)
        .unwrap_or_else(|| panic!("no finding {name} in {:#?}", judgement.findings))
}
