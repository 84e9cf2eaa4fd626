//! Whether every row has its partner and no stamp contradicts another.

use std::collections::BTreeMap;

use kvlab_bench_client::record::{ClientRow, RowKind};

use crate::runner::Evidence;
use crate::truth::join::Key;
use crate::truth::timing::{Fault, faults};
use crate::verdict::Finding;

/// Every request that either side knows is known to the other.
pub(super) fn partners(evidence: &Evidence) -> Finding {
    let joined = &evidence.joined;
    let (client, server) = (joined.client_only.len(), joined.server_only.len());
    let pairs = joined.pairs.len();
    let control = joined
        .pairs
        .iter()
        .filter(|pair| is_control(&pair.client))
        .count();
    let mut text = format!("{pairs} requests paired, {control} of them handshake and tend");
    if !joined.excused.is_empty() {
        text += &format!(
            ", {} never sent or lost with their connections",
            joined.excused.len()
        );
    }
    if client + server > 0 {
        text += &format!("; {client} only the client knows, {server} only the server");
    }
    let mine = joined.client_only.iter().map(|row| {
        format!(
            "client only: {} {:?} sent at {}",
            Key::from(row),
            row.outcome,
            row.sent
        )
    });
    let theirs = joined.server_only.iter().map(|row| {
        format!(
            "server only: {} {} read at {}",
            Key::from(row),
            row.command,
            row.read
        )
    });
    Finding::proof("rows", client + server == 0, text).with_examples(mine.chain(theirs))
}

fn is_control(row: &ClientRow) -> bool {
    matches!(row.kind, RowKind::Handshake | RowKind::Tend)
}

/// Stamps follow each other as causes and effects do, and replies were due as the rule says.
pub(super) fn stamps(evidence: &Evidence) -> Finding {
    let found = faults(&evidence.joined.pairs, &evidence.rule());
    let mut counts: BTreeMap<Fault, u64> = BTreeMap::new();
    for (_, fault) in &found {
        *counts.entry(*fault).or_default() += 1;
    }
    let text = if counts.is_empty() {
        "every stamp in its order, every due moment as the rule gives it".to_owned()
    } else {
        let list: Vec<String> = counts
            .iter()
            .map(|(fault, count)| format!("{count} {}", fault.text()))
            .collect();
        list.join("; ")
    };
    let examples = found
        .iter()
        .map(|(key, fault)| format!("{key}: {}", fault.text()));
    Finding::proof("stamps", found.is_empty(), text).with_examples(examples)
}
