//! Whether the client's histograms say what its rows say.
//!
//! Count, least, largest and sum have to be equal. A quantile of a histogram is the upper end of the
//! bucket the sample lies in; with three digits that is at most a thousandth above the sample.

use kvlab_bench_client::record::{ClientRow, Latency};

use super::figures::network_ns;
use crate::runner::Evidence;
use crate::truth::join::is_timed;
use crate::truth::{Quantile, Sorted};
use crate::verdict::Finding;

/// Compares the histograms of the measured part with exact statistics of the rows.
pub(super) fn histograms(evidence: &Evidence) -> Finding {
    let rows = || {
        evidence
            .joined
            .pairs
            .iter()
            .map(|pair| &pair.client)
            .filter(|row| is_timed(row))
    };
    let tally = &evidence.summary.tally;
    let mut wrong = compare(
        "service",
        &tally.service(),
        &samples(rows(), |row| row.sent),
    );
    if evidence.settings.load.is_open() {
        let response = samples(rows(), |row| row.intended);
        wrong.extend(compare("response", &tally.response(), &response));
        // What was sent and given up counts in the lag too, so only sent attempts are compared.
        wrong.extend(compare_lag(evidence));
    }
    let network = tally.network();
    if !network.is_empty() {
        let pairs = evidence.joined.pairs.iter();
        let timed = pairs.filter(|pair| is_timed(&pair.client));
        let samples: Sorted = timed.filter_map(network_ns).collect();
        wrong.extend(compare("network", &network, &samples));
    }
    let text = if wrong.is_empty() {
        "histograms agree with the rows: count, least, largest, sum, quantiles".to_owned()
    } else {
        format!(
            "{} figures of the client differ from its own rows",
            wrong.len()
        )
    };
    Finding::proof("recorder", wrong.is_empty(), text).with_examples(wrong)
}

fn samples<'a>(
    rows: impl Iterator<Item = &'a ClientRow>,
    from: impl Fn(&ClientRow) -> kvlab_timing::Stamp,
) -> Sorted {
    rows.filter_map(|row| Some(row.received?.saturating_since(from(row))))
        .collect()
}

/// The lag of every request that was sent.
fn compare_lag(evidence: &Evidence) -> Vec<String> {
    let joined = &evidence.joined;
    let paired = joined.pairs.iter().map(|pair| &pair.client);
    let lag: Sorted = paired
        .chain(&joined.client_only)
        .chain(&joined.excused)
        .filter(|row| row.kind == kvlab_bench_client::record::RowKind::Load)
        .filter(|row| row.outcome != kvlab_bench_client::record::Outcome::NotSent)
        .map(|row| row.sent.saturating_since(row.intended))
        .collect();
    compare("lag", &evidence.summary.tally.lag, &lag)
}

fn compare(name: &str, reported: &Latency, exact: &Sorted) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, reported: u128, exact: u128, allowed: u128| {
        if reported.abs_diff(exact) > allowed {
            wrong.push(format!(
                "{name} {what}: {reported} reported, {exact} by the rows"
            ));
        }
    };
    check("count", reported.count().into(), exact.len().into(), 0);
    check("least", reported.min_ns().into(), exact.min().into(), 0);
    check("largest", reported.max_ns().into(), exact.max().into(), 0);
    check("sum", reported.sum_ns(), exact.sum(), 0);
    for q in Quantile::JUDGED {
        let sample = u128::from(exact.quantile(q).unwrap_or(0));
        // A latency of 0 stands in the histogram as 1.
        let width = sample / 1000 + 1;
        check(
            &q.to_string(),
            reported.quantile_ns(q.as_f64()).into(),
            sample,
            width,
        );
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(count: u64) -> (Latency, Sorted) {
        let draws = (0..count).map(|i| (i * 7_919) % 10_007 * (1 + i % 13) * 100);
        let mut latency = Latency::default();
        draws.clone().for_each(|ns| latency.record(ns));
        (latency, draws.collect())
    }

    #[test]
    fn an_honest_histogram_agrees_whatever_the_number_of_samples() {
        for count in [0, 1, 2, 10, 99, 100, 101, 1_000, 20_000] {
            let (latency, exact) = both(count);
            assert_eq!(
                compare("x", &latency, &exact),
                Vec::<String>::new(),
                "{count}"
            );
        }
    }

    #[test]
    fn a_dropped_a_clamped_and_a_shifted_sample_are_found() {
        let (latency, exact) = both(2_000);
        let mut samples = exact.samples().to_vec();
        samples.remove(1_000);
        assert!(!compare("x", &latency, &Sorted::new(samples)).is_empty());

        let mut samples = exact.samples().to_vec();
        samples[1_999] *= 2;
        assert!(!compare("x", &latency, &Sorted::new(samples)).is_empty());

        let samples = exact.samples().iter().map(|ns| ns + 1).collect();
        assert!(!compare("x", &latency, &Sorted::new(samples)).is_empty());
    }
}
