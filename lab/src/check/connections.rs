//! Under virtual time: every attempt to connect met what the rule gives, at its nanosecond.

use std::collections::HashMap;

use kvlab_bench_client::record::{Cause, ConnectRow};
use kvlab_timing::Stamp;

use crate::runner::{Evidence, Tier};
use crate::scenario::Expect;
use crate::truth::accept::{Fate, Turn};
use crate::truth::lives::{Lives, Met};
use crate::verdict::Finding;

/// All that is said of connections.
pub(super) fn findings(evidence: &Evidence, expect: &Expect) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let (Some(lives), Tier::Virtual { leg_ns }) = (&evidence.lives, evidence.tier) {
        findings.push(attempts(lives, leg_ns));
        findings.push(ends(evidence, lives, leg_ns));
        findings.push(counts(evidence, &lives.met()));
    }
    findings.extend(expected(evidence, expect));
    findings
}

/// Each attempt against what was to become of it.
fn attempts(lives: &Lives, leg_ns: u64) -> Finding {
    let all = lives.rows.iter().zip(&lives.fates);
    let wrong: Vec<String> = all
        .filter_map(|(row, fate)| difference(row, *fate, leg_ns))
        .collect();
    let count = lives.rows.len();
    let text = if wrong.is_empty() {
        let Met {
            accepted,
            held,
            waited,
            told,
            closed,
            reset,
        } = lives.met();
        format!(
            "{count} attempts exact to the nanosecond: {accepted} let in, {held} of them held and \
             {waited} from the backlog; {told} told, {closed} closed, {reset} reset"
        )
    } else {
        format!("{} of {count} attempts met something else", wrong.len())
    };
    Finding::proof("connections", wrong.is_empty(), text).with_examples(wrong)
}

fn difference(row: &ConnectRow, fate: Fate, leg_ns: u64) -> Option<String> {
    let connected = row.connected.map(Stamp::as_nanos);
    let ended = row.ended.map(Stamp::as_nanos);
    let holds = match fate {
        Fate::In {
            accepted, opened, ..
        } => {
            let heard = accepted + leg_ns;
            // Who gave up on the way to being connected has seen nothing of it.
            let gave_up = connected.is_none() && ended.is_some_and(|ended| ended <= heard);
            let answered = row
                .first_reply
                .is_none_or(|at| at.as_nanos() >= opened + leg_ns);
            (connected == Some(heard) || gave_up) && answered
        }
        Fate::Away { at, how } => {
            let heard = Some(at + leg_ns);
            let cause = match how {
                Turn::Told => matches!(row.cause, Some(Cause::ErrorLine(_))),
                Turn::Closed => row.cause == Some(Cause::ClosedBeforeReply),
                Turn::Reset => row.cause == Some(Cause::ResetBeforeReply),
            };
            connected == heard && ended == heard && cause
        }
        Fate::Outside => connected.is_none(),
    };
    (!holds).then(|| {
        format!(
            "thread {} place {}, begun at {}: connected {connected:?}, ended {ended:?} ({:?}); to be \
             {fate:?}",
            row.thread, row.place, row.begun, row.cause
        )
    })
}

/// Connections that the server ended by itself ended when they were idle for as long as it allows, or
/// as old.
fn ends(evidence: &Evidence, lives: &Lives, leg_ns: u64) -> Finding {
    let limits = &evidence.server.connections;
    let mut heard: HashMap<_, u64> = HashMap::new();
    let servers = evidence.joined.pairs.iter().map(|pair| &pair.server);
    for row in servers.chain(&evidence.joined.server_only) {
        let last = heard.entry((row.peer, row.ordinal)).or_default();
        *last = (*last).max(row.read.as_nanos());
        // With a request under way nobody is idle.
        let until = if row.answered {
            row.written.as_nanos()
        } else {
            NEVER
        };
        *last = (*last).max(until);
    }
    let ends: HashMap<_, _> = lives.ends().collect();
    let cuts = evidence.server.cuts();
    let (mut idle, mut aged, mut other) = (0, 0, 0);
    let mut wrong = Vec::new();
    for (row, fate) in lives.rows.iter().zip(&lives.fates) {
        let (
            Some(local),
            Fate::In {
                accepted, opened, ..
            },
        ) = (row.local, fate)
        else {
            continue;
        };
        let key = (local, row.ordinal);
        let last = heard.get(&key).copied().unwrap_or(0).max(*opened);
        let idle_at = limits
            .idle
            .filter(|_| last < NEVER)
            .map(|time| (Stamp::from_nanos(last) + time).as_nanos());
        let old_at = limits
            .max_age
            .map(|time| (Stamp::from_nanos(*accepted) + time).as_nanos());
        match ends.get(&key).copied() {
            Some(end) if Some(end) == old_at => aged += 1,
            Some(end) if Some(end) == idle_at => idle += 1,
            Some(_) if limits.output.is_some() || !cuts.is_empty() => other += 1,
            Some(end) => wrong.push(format!("{local}: ended at {end} without a reason")),
            None => {
                // It may not have outlived either; what the client ends, it hears of first.
                let gone = row.ended.map_or(0, |ended| ended.as_nanos() + leg_ns);
                if [idle_at, old_at]
                    .into_iter()
                    .flatten()
                    .any(|end| end + 2 * leg_ns < gone)
                {
                    wrong.push(format!("{local}: outlived its end"));
                }
            }
        }
    }
    let text = format!("the server ended {idle} idle, {aged} old and {other} other connections");
    Finding::proof("ends", wrong.is_empty(), text).with_examples(wrong)
}

/// The server counted what it did.
fn counts(evidence: &Evidence, met: &Met) -> Finding {
    let counts = &evidence.counts;
    let accepting = &counts.accepting;
    let found = Met {
        accepted: counts.accepted,
        held: accepting.held,
        waited: accepting.waited,
        told: accepting.told,
        closed: accepting.closed,
        reset: accepting.reset,
    };
    let holds = found == *met;
    let text = if holds {
        "the server counted what the rule gives".to_owned()
    } else {
        format!("the server counted {found:?}, the rule gives {met:?}")
    };
    Finding::proof("accepting", holds, text)
}

/// The numbers that the scenario names.
fn expected(evidence: &Evidence, expect: &Expect) -> Option<Finding> {
    let counts = &evidence.counts;
    let accepting = &counts.accepting;
    let wanted = &expect.connections;
    let figures = [
        ("accepted", wanted.accepted, counts.accepted),
        ("held", wanted.held, accepting.held),
        ("waited", wanted.waited, accepting.waited),
        ("told", wanted.told, accepting.told),
        ("closed", wanted.closed, accepting.closed),
        ("reset", wanted.reset, accepting.reset),
        ("idle", wanted.idle, counts.idle),
        ("aged", wanted.aged, counts.aged),
        ("output", wanted.output, counts.output),
    ];
    let named: Vec<_> = figures
        .into_iter()
        .filter_map(|(name, wanted, found)| Some((name, wanted?, found)))
        .collect();
    if named.is_empty() {
        return None;
    }
    let wrong = named.iter().filter(|(_, wanted, found)| wanted != found);
    let wrong: Vec<String> = wrong
        .map(|(name, wanted, found)| format!("{name}: {found}, expected {wanted}"))
        .collect();
    let list: Vec<String> = named
        .iter()
        .map(|(name, _, found)| format!("{found} {name}"))
        .collect();
    let text = format!("connections by the server's count: {}", list.join(", "));
    Some(Finding::proof("numbers", wrong.is_empty(), text).with_examples(wrong))
}

/// Later than any moment of a run.
const NEVER: u64 = u64::MAX;
