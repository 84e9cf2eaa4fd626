//! Under virtual time: every recorded time is the injected one, to the nanosecond.

use crate::runner::Evidence;
use crate::truth::Pair;
use crate::truth::digest::of_pairs;
use crate::verdict::Finding;

/// Service time is (due - read), both ways through the network and what its connection was held;
/// response time is that and what the request waited in the client.
pub(super) fn rows(evidence: &Evidence, leg_ns: u64) -> Finding {
    let pairs = &evidence.joined.pairs;
    let answered = pairs.iter().filter(|pair| pair.client.received.is_some());
    let count = answered.clone().count();
    let wrong: Vec<String> = answered
        .filter_map(|pair| difference(pair, leg_ns))
        .collect();
    let text = if wrong.is_empty() {
        format!(
            "{count} requests exact to the nanosecond, hash of the rows {:016x}",
            of_pairs(pairs)
        )
    } else {
        format!("{} of {count} requests differ", wrong.len())
    };
    Finding::proof("exact", wrong.is_empty(), text).with_examples(wrong)
}

fn difference(pair: &Pair, leg_ns: u64) -> Option<String> {
    let (client, server) = (&pair.client, &pair.server);
    // What arrives on a connection that is held is read when the hold ends.
    let injected = server.due.saturating_since(server.read) + pair.held_ns + 2 * leg_ns;
    let waited = client.sent.saturating_since(client.intended);
    let (service, response) = (pair.service_ns()?, pair.response_ns()?);
    let holds = service == injected
        && response == injected + waited
        && server.read == client.sent.add_nanos(leg_ns + pair.held_ns)
        && server.written == server.due;
    (!holds).then(|| {
        format!(
            "{}: {service} ns recorded, {injected} injected; response {response}, waited {waited}",
            pair.key()
        )
    })
}
