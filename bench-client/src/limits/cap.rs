//! A bound of connections at once: from how many were up when others were turned away.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kvlab_timing::Stamp;

use super::{Attempt, FoundCap, LimitForm, Verdict};

/// The bound that explains who was turned away: always the same number was up then, nobody was let
/// in beyond it, and it went on for longer than a bucket takes to have a token again.
pub(super) fn find(attempts: &[Attempt]) -> Option<FoundCap> {
    // When each served connection ended.
    let mut ends: BinaryHeap<Reverse<Stamp>> = BinaryHeap::new();
    let mut up = 0_u64;
    let mut most = 0;
    // (how many were up, when, how).
    let mut away: Vec<(u64, Stamp, LimitForm)> = Vec::new();
    for attempt in attempts {
        while ends.peek().is_some_and(|Reverse(end)| *end < attempt.at) {
            ends.pop();
            up -= 1;
        }
        match attempt.verdict {
            Verdict::Served { .. } => {
                up += 1;
                most = most.max(up);
                ends.push(Reverse(attempt.ended.unwrap_or(Stamp::MAX)));
            }
            Verdict::Away { form } => away.push((up, attempt.at, form)),
            Verdict::Unknown => {}
        }
    }
    let (first, last) = (away.first()?, away.last()?);
    let agreeing = away.iter().filter(|(up, ..)| *up == most).count();
    let lasting = last.1.saturating_since(first.1) >= LASTING_NS;
    let supported = away.len() >= LEAST_AWAY && most > 0 && lasting;
    // A connection whose end the server had not seen yet still counted there.
    (supported && agreeing * 50 >= away.len() * 49).then_some(FoundCap {
        connections: most,
        form: last.2,
        evidence: agreeing as u64,
    })
}

/// Connections turned away that it takes.
const LEAST_AWAY: usize = 5;
/// Time over which they must be spread. A bucket that lets nobody in for so long has a refill below
/// one in half a second, which no service is known to have.
const LASTING_NS: u64 = 500_000_000;
