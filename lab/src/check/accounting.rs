//! Whether every request that was due ended in exactly one counted outcome.

use kvlab_bench_client::record::{Notice, Outcomes, RowKind};
use kvlab_bench_client::settings::{Arrivals, Load};
use kvlab_mock_server::stamp::FaultKind;
use kvlab_timing::Rate;
use serde::Serialize;

use crate::runner::Evidence;
use crate::scenario::Expect;
use crate::truth::Pair;
use crate::truth::join::is_measured;
use crate::verdict::Finding;

/// What became of the requests of the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accounting {
    /// Requests that were due.
    pub due: u64,
    /// Requests that were written, further attempts not counted.
    pub sent: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that ended in exactly one counted outcome.
    pub accounted: u64,
    /// Answered: done or found.
    pub hits: u64,
    /// Answered: nothing there.
    pub misses: u64,
    /// Answered with an error.
    pub errors: u64,
    /// Not answered in time.
    pub timeouts: u64,
    /// Lost with their connections.
    pub lost: u64,
    /// Never written.
    pub not_sent: u64,
    /// Attempts that were followed by another.
    pub retries: u64,
}

impl Accounting {
    /// Counts from the client's summary; the checks hold it against the rows.
    pub(super) fn new(evidence: &Evidence) -> Self {
        let summary = &evidence.summary;
        let outcomes = summary.tally.outcomes();
        Self {
            due: summary.due,
            sent: outcomes.total() - outcomes.not_sent,
            answered: outcomes.answered(),
            accounted: outcomes.total(),
            hits: outcomes.hits,
            misses: outcomes.misses,
            errors: outcomes.errors,
            timeouts: outcomes.timeouts,
            lost: outcomes.lost,
            not_sent: outcomes.not_sent,
            retries: summary
                .tally
                .classes
                .iter()
                .map(|class| class.retries)
                .sum(),
        }
    }

    pub(super) fn findings(&self, evidence: &Evidence, expect: &Expect) -> Vec<Finding> {
        let mut findings = vec![self.sums(evidence), self.failures(expect)];
        findings.extend(self.timetable(evidence));
        findings.extend(self.counts(evidence, expect));
        findings
    }

    /// The client's counts are those of the rows, and nothing is missing.
    fn sums(&self, evidence: &Evidence) -> Finding {
        let rows = counted(evidence);
        // What was never handed to a connection has no row.
        let without_row = self.not_sent.saturating_sub(rows.not_sent);
        let by_rows = Outcomes {
            not_sent: rows.not_sent + without_row,
            ..rows
        };
        let holds = self.accounted == self.due
            && by_rows == evidence.summary.tally.outcomes()
            && by_rows.total() == self.due;
        let text = format!(
            "{} due, {} sent, {} answered, {} accounted for; by rows {}",
            self.due,
            self.sent,
            self.answered,
            self.accounted,
            by_rows.total(),
        );
        Finding::proof("accounting", holds, text)
    }

    fn failures(&self, expect: &Expect) -> Finding {
        let failed = self.errors + self.timeouts + self.lost + self.not_sent;
        let text = format!(
            "{failed} of at most {} failed: {} errors, {} timed out, {} lost, {} not sent",
            expect.failed, self.errors, self.timeouts, self.lost, self.not_sent
        );
        Finding::proof("failures", failed <= expect.failed, text)
    }

    /// As many requests ended in certain ways as they are to, by the client's count and by the
    /// server's rows.
    fn counts(&self, evidence: &Evidence, expect: &Expect) -> Option<Finding> {
        let measured = |pair: &&Pair| pair.is_measured();
        let count = |counts: &dyn Fn(&Pair) -> bool| {
            let pairs = evidence.joined.pairs.iter().filter(measured);
            pairs.filter(|pair| counts(pair)).count() as u64
        };
        let with = |fault| count(&|pair| pair.server.fault == fault);
        let delayed = |pair: &Pair| {
            let server = &pair.server;
            let after = server.wait_ns + server.service_ns + server.wanted_ns;
            server.throttle_ns > 0 || server.reply_wait_ns > after
        };
        let wanted = &expect.counts;
        let all = [
            ("hits", wanted.hits, self.hits),
            ("misses", wanted.misses, self.misses),
            ("errors", wanted.errors, self.errors),
            ("time-outs", wanted.timeouts, self.timeouts),
            ("delayed", wanted.delayed, count(&delayed)),
            ("throttled", wanted.throttled, with(FaultKind::Throttled)),
            ("dropped", wanted.dropped, with(FaultKind::Dropped)),
            ("too large", wanted.too_large, with(FaultKind::TooLarge)),
            (
                "out of memory",
                wanted.out_of_memory,
                with(FaultKind::OutOfMemory),
            ),
            ("blocked", wanted.blocked, with(FaultKind::Blocked)),
        ];
        let judged = all
            .iter()
            .filter_map(|(name, wanted, found)| Some((name, (*wanted)?, found)));
        let wrong: Vec<String> = judged
            .clone()
            .filter(|(_, wanted, found)| wanted != *found)
            .map(|(name, wanted, found)| format!("{found} {name}, expected {wanted}"))
            .collect();
        let told: Vec<String> = judged
            .map(|(name, _, found)| format!("{found} {name}"))
            .collect();
        (!told.is_empty()).then(|| {
            Finding::proof("counts", wrong.is_empty(), told.join(", ")).with_examples(wrong)
        })
    }

    /// As many requests were due as the timetable has.
    fn timetable(&self, evidence: &Evidence) -> Option<Finding> {
        let Load::Open { rate, arrivals } = evidence.settings.load else {
            return None;
        };
        if evidence.summary.interrupted || !evidence.summary.notices.iter().all(is_harmless) {
            return None;
        }
        let stop = evidence.settings.stop;
        let duration = stop
            .duration
            .map(|length| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        let most = stop.requests.unwrap_or(u64::MAX);
        let in_time = duration.map_or(u64::MAX, |length| arrivals_before(rate, length));
        let threads = u64::from(evidence.settings.threads.get());
        let (least, largest, law) = match arrivals {
            Arrivals::Uniform => (in_time.min(most), in_time.min(most), "uniform"),
            Arrivals::Poisson => {
                let (least, largest) = poisson_due(in_time, most, threads);
                (least, largest, "poisson")
            }
        };
        let holds = (least..=largest).contains(&self.due);
        let expected = if least == largest {
            least.to_string()
        } else {
            format!("{least} to {largest}")
        };
        let text = format!("{} due of {expected} by the {law} timetable", self.due);
        Some(Finding::proof("due", holds, text))
    }
}

/// How the rows of the measured part ended.
fn counted(evidence: &Evidence) -> Outcomes {
    let joined = &evidence.joined;
    let mut outcomes = Outcomes::default();
    let paired = joined.pairs.iter().map(|pair| &pair.client);
    for row in paired.chain(&joined.client_only).chain(&joined.excused) {
        if is_measured(row) {
            outcomes.count(row.outcome);
        }
    }
    outcomes
}

/// The least and the largest number of Poisson arrivals when `in_time` are expected in the time and
/// the run ends with `most`: the number in the time has the variance of its mean, and five
/// deviations are granted. Each thread has its share of both, so where one ends by its time and
/// another by its number, the deviations of the threads add up.
fn poisson_due(in_time: u64, most: u64, threads: u64) -> (u64, u64) {
    if in_time == u64::MAX {
        return (most, most);
    }
    let slack = 5 * (in_time.saturating_mul(threads).isqrt() + threads);
    let least = in_time.saturating_sub(slack).min(most);
    (least, in_time.saturating_add(slack).min(most))
}

/// Arrivals of a uniform timetable at moments before `length_ns`: the number of `i` with
/// `floor(i * 10^9 * den / num) < length`.
fn arrivals_before(rate: Rate, length_ns: u64) -> u64 {
    // floor(x) < L for whole L is x < L: i < L * num / (10^9 * den).
    let product = u128::from(length_ns) * u128::from(rate.numerator());
    let count = product.div_ceil(u128::from(rate.denominator()) * 1_000_000_000);
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Whether a notice leaves the timetable whole.
pub(super) fn is_harmless(notice: &Notice) -> bool {
    !matches!(notice, Notice::ServerLost(_))
}

/// Whether a row of the load, warm-up included, got a reply.
pub(super) fn all_load_answered(evidence: &Evidence) -> bool {
    let joined = &evidence.joined;
    let load = |kind| matches!(kind, RowKind::Load | RowKind::Warmup);
    joined.client_only.is_empty()
        && joined.excused.is_empty()
        && joined
            .pairs
            .iter()
            .filter(|pair| load(pair.client.kind))
            .all(|pair| pair.client.outcome.is_answered() && !pair.client.retried)
        && evidence.summary.tally.outcomes().not_sent == 0
        && evidence.summary.warmup.not_sent == 0
        && evidence.summary.warmup.total() == evidence.summary.warmup.answered()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_arrivals_end_by_time_or_by_number() {
        // 10 000 in the time, give or take 5 x (100 + 1).
        assert_eq!(poisson_due(10_000, u64::MAX, 1), (9_495, 10_505));
        // The number ends it, unless chance leaves fewer in the time.
        assert_eq!(poisson_due(10_000, 9_000, 1), (9_000, 9_000));
        assert_eq!(poisson_due(10_000, 9_999, 1), (9_495, 9_999));
        assert_eq!(poisson_due(10_000, 10_001, 1), (9_495, 10_001));
        assert_eq!(poisson_due(u64::MAX, 70, 1), (70, 70));
        // Four threads of 2 500 deviate by 50 each.
        assert_eq!(poisson_due(10_000, 10_001, 4), (8_980, 10_001));
    }

    #[test]
    fn arrivals_are_counted_up_to_the_end() {
        let second = 1_000_000_000;
        let rate = |text: &str| text.parse::<Rate>().unwrap();
        assert_eq!(arrivals_before(rate("1000"), 20 * second), 20_000);
        assert_eq!(arrivals_before(rate("3"), second), 3);
        // 0, 333333333, 666666666 ns lie before 666666667 ns, and the last not before itself.
        assert_eq!(arrivals_before(rate("3"), 666_666_667), 3);
        assert_eq!(arrivals_before(rate("3"), 666_666_666), 2);
        assert_eq!(arrivals_before(rate("0.1"), 1), 1);
    }
}
