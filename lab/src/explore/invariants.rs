//! What holds for every run under virtual time beyond what the lab demands of any run.
//!
//! The checks of [`crate::check`] judge runs on sockets too and leave room for what sockets do.
//! Here nothing is lost, nobody is late, and every count can be made twice.

use kvlab_bench_client::record::{ClassTally, ClientRow, Outcome, Outcomes, RowKind};
use kvlab_timing::Stamp;

use crate::runner::Evidence;
use crate::truth::Sorted;
use crate::truth::join::{Key, is_timed};

/// The first invariant that does not hold, by its name, and what was found in its place.
#[must_use]
pub fn broken(evidence: &Evidence) -> Option<(&'static str, String)> {
    let all: [(&'static str, Check); 6] = [
        ("omission", omission),
        ("lateness", lateness),
        ("time-outs", time_outs),
        ("classes", classes),
        ("attempts", attempts),
        ("threads", threads),
    ];
    all.into_iter()
        .find_map(|(name, check)| Some((name, check(evidence)?)))
}

/// Tells what is wrong, if anything is.
type Check = fn(&Evidence) -> Option<String>;

/// Every request that was due has a row or was never handed to a connection, and each has one end.
fn omission(evidence: &Evidence) -> Option<String> {
    let outcomes = evidence.summary.tally.outcomes();
    let rows = load_rows(evidence).filter(|row| !row.retried).count() as u64;
    let without_row = outcomes.not_sent.saturating_sub(
        load_rows(evidence)
            .filter(|row| row.outcome == Outcome::NotSent)
            .count() as u64,
    );
    let due = evidence.summary.due;
    (rows + without_row != due || outcomes.total() != due).then(|| {
        format!(
            "{due} due, {} ended, {rows} in rows and {without_row} never sent",
            outcomes.total()
        )
    })
}

/// The client takes no time, so it sends what is due as soon as there is a slot.
fn lateness(evidence: &Evidence) -> Option<String> {
    let most = evidence.summary.tally.lateness.max_ns();
    (most > 0).then(|| format!("the client was late by {most} ns"))
}

/// A reply counts exactly when it is there before its time is over.
fn time_outs(evidence: &Evidence) -> Option<String> {
    let timeout = u64::try_from(evidence.settings.timeout.as_nanos()).unwrap_or(u64::MAX);
    let leg = evidence.tier.leg_ns();
    let load = |kind| matches!(kind, RowKind::Load | RowKind::Warmup);
    evidence
        .joined
        .pairs
        .iter()
        .filter(|pair| load(pair.client.kind))
        .find_map(|pair| {
            let over = pair.client.sent.as_nanos().saturating_add(timeout);
            let wrong = match (pair.client.outcome, pair.client.received) {
                (_, Some(received)) => received.as_nanos() > over,
                (Outcome::Timeout, None) => {
                    // A reply that comes with the end of its time may be read before or after it.
                    pair.server.answered && pair.server.written.as_nanos() + leg < over
                }
                _ => false,
            };
            wrong.then(|| {
                format!(
                    "{}: {:?}, sent at {}, written at {}, time-out {timeout} ns",
                    pair.key(),
                    pair.client.outcome,
                    pair.client.sent,
                    pair.server.written
                )
            })
        })
}

/// Each class counts and times what its rows say.
fn classes(evidence: &Evidence) -> Option<String> {
    let tally = &evidence.summary.tally;
    for (place, class) in tally.classes.iter().enumerate() {
        let rows: Vec<&ClientRow> = load_rows(evidence)
            .filter(|row| row.class.index() == place)
            .collect();
        let mut outcomes = Outcomes::default();
        rows.iter()
            .filter(|row| !row.retried)
            .for_each(|row| outcomes.count(row.outcome));
        // Requests that were never handed to a connection have no row.
        outcomes.not_sent = outcomes.not_sent.max(class.outcomes.not_sent);
        if outcomes != class.outcomes {
            return Some(format!(
                "class {place}: {:?} counted, {outcomes:?} by the rows",
                class.outcomes
            ));
        }
        if let Some(wrong) = times(evidence, class, &rows) {
            return Some(format!("class {place}: {wrong}"));
        }
    }
    let stray = load_rows(evidence).find(|row| row.class.index() >= tally.classes.len());
    stray.map(|row| format!("{}: a class that is not in the mix", Key::from(row)))
}

fn times(evidence: &Evidence, class: &ClassTally, rows: &[&ClientRow]) -> Option<String> {
    let from = |start: fn(&ClientRow) -> Stamp, counts: fn(&ClientRow) -> bool| -> Sorted {
        let timed = rows.iter().filter(|row| counts(row));
        timed
            .filter_map(|row| Some(row.received?.saturating_since(start(row))))
            .collect()
    };
    let failed = |row: &ClientRow| matches!(row.outcome, Outcome::Error(_)) && !row.retried;
    let mut all = vec![
        ("service", &class.service, from(|row| row.sent, is_timed)),
        ("failed", &class.failed, from(|row| row.sent, failed)),
    ];
    if evidence.settings.load.is_open() {
        all.push((
            "response",
            &class.response,
            from(|row| row.intended, is_timed),
        ));
    }
    all.into_iter().find_map(|(name, told, exact)| {
        let told = (told.count(), told.min_ns(), told.max_ns(), told.sum_ns());
        let exact = (exact.len(), exact.min(), exact.max(), exact.sum());
        (told != exact).then(|| {
            format!("{name}: count, least, largest, sum {told:?} recorded, {exact:?} by the rows")
        })
    })
}

/// No operation is tried more often than it may be, and each attempt but the last is told as such.
fn attempts(evidence: &Evidence) -> Option<String> {
    use kvlab_bench_client::settings::Target;
    let most = match &evidence.settings.target {
        Target::Redis(_) => 0,
        Target::Aerospike(target) => target.retries.most,
    };
    if let Some(row) = load_rows(evidence).find(|row| row.attempt > most) {
        return Some(format!(
            "{}: attempt {} of {most}",
            Key::from(row),
            row.attempt
        ));
    }
    let retried = load_rows(evidence).filter(|row| row.retried).count() as u64;
    let classes = evidence.summary.tally.classes.iter();
    let told: u64 = classes.map(|class| class.retries).sum();
    (retried != told).then(|| format!("{told} attempts retried, {retried} by the rows"))
}

/// What the threads were given to do is what was due.
fn threads(evidence: &Evidence) -> Option<String> {
    let summary = &evidence.summary;
    let due: u64 = summary.threads.iter().map(|thread| thread.due).sum();
    (due != summary.due).then(|| format!("{} due, {due} in the threads", summary.due))
}

/// All rows of the measured part, matched or not.
fn load_rows(evidence: &Evidence) -> impl Iterator<Item = &ClientRow> {
    let joined = &evidence.joined;
    let paired = joined.pairs.iter().map(|pair| &pair.client);
    paired
        .chain(&joined.client_only)
        .chain(&joined.excused)
        .filter(|row| row.kind == RowKind::Load)
}
