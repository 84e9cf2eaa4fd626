//! What happened to connections, in words: for the summary and for the page.

use super::number::{counted, ms, ms_or_na};
use super::quantile::{P50, QUANTILES};
use super::{Support, nanos};
use crate::limits::Limits;
use crate::record::{Latency, Summary};

/// Facts by name, those without anything to say left out.
pub(super) fn facts(summary: &Summary) -> Vec<(&'static str, String)> {
    let connects = &summary.tally.connects;
    let mut facts = vec![("connections", overview(summary))];
    for (name, latency) in [
        ("TCP connect", &connects.tcp),
        ("TLS handshake", &connects.tls),
        ("login", &connects.login),
        ("first reply", &connects.first_reply),
    ] {
        if !latency.is_empty() {
            facts.push((name, spread(latency)));
        }
    }
    let causes: Vec<String> = connects
        .causes
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {count}", name.replace('_', " ")))
        .collect();
    if !causes.is_empty() {
        facts.push(("ended", causes.join(", ")));
    }
    for (text, count) in &connects.texts {
        facts.push(("server said", format!("{text:?} ({count})")));
    }
    if connects.unsolicited_bytes > 0 {
        facts.push(("unsolicited", counted(connects.unsolicited_bytes, "byte")));
    }
    facts.extend(limits(&summary.limits));
    facts
}

/// The line that marks a run without all of its connections.
pub(super) fn mark(summary: &Summary) -> Option<String> {
    let (up, wanted) = (summary.connections_at_start, summary.connections_wanted);
    (up < wanted).then(|| format!("ran with {up} of {wanted} connections"))
}

fn overview(summary: &Summary) -> String {
    let connects = &summary.tally.connects;
    let setup = match P50.of(&connects.setup) {
        _ if connects.setup.is_empty() => "n/a".to_owned(),
        Support::None => format!("at most {} ms", ms(connects.setup.max_ns())),
        median => format!("p50 {} ms", ms_or_na(median)),
    };
    let all_up = summary
        .setup
        .all_up
        .map(|after| format!(", all up after {} ms", ms(nanos(after))));
    format!(
        "{} of {} up at the start, {} lost, {} failed; set-up {setup}{}",
        summary.connections_at_start,
        summary.connections_wanted,
        connects.lost,
        connects.failed,
        all_up.unwrap_or_default(),
    )
}

/// The limits found.
fn limits(limits: &Limits) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(bucket) = &limits.bucket {
        let form = bucket.form.sentence();
        facts.push(("limit", format!("connection limit found: {bucket}, {form}")));
    }
    if let Some(cap) = &limits.cap {
        let form = cap.form.sentence();
        facts.push(("limit", format!("connection limit found: {cap}, {form}")));
    }
    let retries: Vec<String> = limits
        .retries
        .iter()
        .filter(|(_, connects)| *connects > 0)
        .map(|(seconds, connects)| format!("{connects} for {seconds} s"))
        .collect();
    if !retries.is_empty() {
        let text = format!(
            "connects waited for the SYN to be repeated: {}",
            retries.join(", ")
        );
        facts.push(("SYN repeats", text));
    }
    if limits.hung > 0 {
        let attempts = counted(limits.hung, "connect");
        facts.push((
            "hung",
            format!("{attempts} without any answer until the time-out"),
        ));
    }
    facts
}

/// The quantiles that the samples support, with the largest.
pub(super) fn spread(latency: &Latency) -> String {
    let mut parts: Vec<_> = QUANTILES
        .iter()
        .take(3)
        .map(|quantile| format!("{} {}", quantile.title, ms_or_na(quantile.of(latency))))
        .collect();
    parts.push(format!("max {} ms", ms(latency.max_ns())));
    parts.join(", ")
}
