//! How well an open loop kept its timetable: lag, rate, and the law of the arrivals.

use kvlab_bench_client::record::{ClientRow, Outcome, RowKind};
use kvlab_bench_client::settings::{Arrivals, Load};

use super::score::{Aspect, Score, ScoreName, Unit, precise};
use super::timetable::{derived_moments, intended_moments};
use super::validity::Validity;
use crate::runner::{Evidence, Tier};
use crate::scenario::{Expect, Limit, Threshold};
use crate::statistics::anderson_darling as ad;
use crate::truth::Sorted;
use crate::truth::arrivals::mean_gap_ns;
use crate::verdict::Verdict;

/// The scores of the timetable; none for a closed loop.
pub(super) fn scores(evidence: &Evidence, expect: &Expect, validity: &Validity) -> Vec<Score> {
    let Load::Open { rate, arrivals } = evidence.settings.load else {
        return Vec::new();
    };
    let mut scores = vec![lag(evidence, expect, validity)];
    let (Some(intended), Some(sent)) = (intended_moments(evidence), sends(evidence)) else {
        let why = "some requests were never handed to a connection";
        for (name, unit) in [
            (ScoreName::RateErr, Unit::Share),
            (ScoreName::ArrivalAD, Unit::Number),
        ] {
            scores.push(Score::new(name, unit).because(why));
        }
        return scores;
    };
    scores.extend(rate_errors((&intended, &sent), evidence, expect, validity));
    // The gaps of all threads together: a sum of independent Poisson streams is one.
    let mean = mean_gap_ns(rate);
    match arrivals {
        Arrivals::Poisson => {
            scores.push(poisson(&intended, evidence, expect, mean));
            scores.push(
                anderson(&sent, evidence, mean, Aspect::Sent)
                    .because("shown: a send may be late, which the law does not know"),
            );
        }
        Arrivals::Uniform => {
            scores.push(uniform(&intended, evidence, Aspect::Intended).within(0.0));
            scores.push(
                uniform(&sent, evidence, Aspect::Sent)
                    .because("shown: the largest lag, slots waited for included"),
            );
        }
    }
    scores
}

/// 99th percentile of send - intended.
fn lag(evidence: &Evidence, expect: &Expect, validity: &Validity) -> Score {
    let p99 = validity.lag.map_or(0, |lag| lag.p99_ns);
    let score = Score::new(ScoreName::LagP99, Unit::Nanoseconds).value(precise(p99));
    let limit = match (evidence.tier, expect.lag_p99) {
        (Tier::Virtual { .. }, _) => 0,
        (Tier::Real, None) => LAG_LIMIT_NS,
        (Tier::Real, Some(Limit::Unjudged)) => return score.because("not judged here"),
        // What the scenario gives is judged as it stands.
        (Tier::Real, Some(Limit::Within(tolerance))) => {
            return score.within(precise(tolerance.of_ns(0)));
        }
    };
    if p99 > limit && validity.one_in_a_hundred_waited() {
        return score.because("not judged: requests waited for a free slot");
    }
    let judged = score.within(precise(limit));
    if evidence.tier != Tier::Real || judged.verdict != Some(Verdict::Fail) {
        return judged;
    }
    // Lateness that the machine cannot be blamed for makes the run void; below that it is a mark.
    let busy = validity.cpu_share.iter().any(|share| *share > BUSY);
    Score {
        verdict: None,
        ..judged
    }
    .because(if busy {
        "flagged: the client was late, and busy for more than 60 % of the time"
    } else {
        "flagged: the client did not get a processor in time"
    })
}

/// The rate over the run and in the worst window, against the timetable's own count.
fn rate_errors(
    (intended, sent): (&[u64], &[u64]),
    evidence: &Evidence,
    expect: &Expect,
    validity: &Validity,
) -> [Score; 2] {
    let start = evidence.summary.started.as_nanos();
    let run = Score::new(ScoreName::RateErr, Unit::Share).of(Aspect::Run);
    let window = Score::new(ScoreName::RateErr, Unit::Share).of(Aspect::Window);
    let (Some(whole), Some(worst)) = (
        whole_run(intended, sent),
        worst_window(intended, sent, start),
    ) else {
        return [run, window].map(|score| score.because("too few requests"));
    };
    let (run, window) = (run.value(whole.error), window.value(worst.error));
    if validity.waited_for_slots() {
        let why = "not judged: requests waited for a free slot";
        return [run, window].map(|score| score.because(why));
    }
    // One stall of the machine moves all requests that were due in it to the next window, and one
    // at the end of the run makes it longer.
    let latest = validity.lateness.map_or(0, |lateness| lateness.max_ns);
    let moved = u128::from(latest) * u128::from(worst.wanted) / u128::from(WINDOW_NS) + 1;
    let judge = |score: Score, limit: Option<Limit>, usual, is_explained| match limit {
        None => unless(score.within(usual), is_explained),
        Some(Limit::Unjudged) => score.because("not judged here"),
        Some(Limit::Within(tolerance)) => score.within(tolerance.share),
    };
    let moved = u128::from(worst.off) <= moved;
    [
        judge(run, expect.rate, whole.limit, whole.off <= latest),
        judge(window, expect.rate_window, worst.limit, moved),
    ]
}

/// A score that is beyond its limit is only marked where a stall explains it.
fn unless(score: Score, is_explained: bool) -> Score {
    if score.verdict != Some(Verdict::Fail) || !is_explained {
        return score;
    }
    Score {
        verdict: None,
        ..score
    }
    .because("flagged: a stall of the machine explains it")
}

/// How a count or a time came out.
struct Rate {
    error: f64,
    limit: f64,
    /// Difference between found and wanted: requests of a window, nanoseconds of a run.
    off: u64,
    wanted: u64,
}

/// Sent per second against what the timetable has per second.
fn whole_run(intended: &[u64], sent: &[u64]) -> Option<Rate> {
    let span = |moments: &[u64]| Some(moments.last()? - moments.first()?);
    let (wanted, found) = (span(intended)?, span(sent)?);
    if intended.len() < 2 || wanted == 0 || found == 0 {
        return None;
    }
    // Gaps per second: (n - 1) / span.
    let rate = |count: usize, span: u64| (precise(count as u64) - 1.0) / precise(span);
    let (per_second, sent_per_second) = (rate(intended.len(), wanted), rate(sent.len(), found));
    Some(Rate {
        error: (sent_per_second - per_second).abs() / per_second,
        limit: RUN_LIMIT,
        off: found.abs_diff(wanted),
        wanted,
    })
}

/// The window of 100 ms whose number of sends is farthest from its number of intended moments.
fn worst_window(intended: &[u64], sent: &[u64], start: u64) -> Option<Rate> {
    let last = intended.last()?.checked_sub(start)?;
    let windows = last / WINDOW_NS;
    let count = |moments: &[u64], end: u64| moments.partition_point(|moment| *moment < end) as u64;
    let mut worst: Option<Rate> = None;
    for place in 0..windows {
        let (begin, end) = (start + place * WINDOW_NS, start + (place + 1) * WINDOW_NS);
        let wanted = count(intended, end) - count(intended, begin);
        let found = count(sent, end) - count(sent, begin);
        let off = wanted.abs_diff(found);
        let error = precise(off) / precise(wanted.max(1));
        if worst.as_ref().is_none_or(|worst| error > worst.error) {
            worst = Some(Rate {
                error,
                // A request more or less is no matter of the rate.
                limit: WINDOW_LIMIT.max(1.0 / precise(wanted.max(1))),
                off,
                wanted,
            });
        }
    }
    worst
}

fn poisson(intended: &[u64], evidence: &Evidence, expect: &Expect, mean: f64) -> Score {
    let score = anderson(intended, evidence, mean, Aspect::Intended);
    match expect.arrival {
        None => {}
        Some(Threshold::Unjudged) => return score.because("not judged here"),
        Some(Threshold::Below(limit)) => return score.within(limit),
    }
    // One of a hundred honest runs lies above the limit of 1 %; only what never happens fails one.
    if score
        .value
        .is_some_and(|a2| a2 > ad::ONE_PERCENT && a2 <= ad::NEVER)
    {
        return Score {
            limit: Some(ad::ONE_PERCENT),
            ..score
        }
        .because("one of a hundred runs does: not judged by itself");
    }
    score.within(ad::ONE_PERCENT)
}

fn anderson(moments: &[u64], evidence: &Evidence, mean: f64, of: Aspect) -> Score {
    let score = Score::new(ScoreName::ArrivalAD, Unit::Number).of(of);
    let start = evidence.summary.started.as_nanos();
    let before = std::iter::once(start).chain(moments.iter().copied());
    let gaps: Sorted = before
        .zip(moments)
        .map(|(before, moment)| moment.saturating_sub(before))
        .collect();
    match ad::exponential(&gaps, mean) {
        Some(a2) => score.value(a2),
        None => score.because("no arrivals"),
    }
}

/// The largest distance of a moment from the timetable's.
fn uniform(moments: &[u64], evidence: &Evidence, of: Aspect) -> Score {
    let score = Score::new(ScoreName::ArrivalAD, Unit::Nanoseconds).of(of);
    let derived = derived_moments(evidence).map(|(derived, _)| derived);
    let farthest = derived.and_then(|derived| {
        let pairs = moments.iter().zip(&derived);
        pairs.map(|(moment, due)| moment.abs_diff(*due)).max()
    });
    match farthest {
        Some(farthest) => score.value(precise(farthest)),
        None => score.because("no arrivals"),
    }
}

/// The moments of the first sends of all requests, in order; `None` when one was never sent.
fn sends(evidence: &Evidence) -> Option<Vec<u64>> {
    let joined = &evidence.joined;
    let paired = joined.pairs.iter().map(|pair| &pair.client);
    let rows = paired.chain(&joined.client_only).chain(&joined.excused);
    let first = |row: &&ClientRow| row.kind == RowKind::Load && row.attempt == 0;
    let mut sent = Vec::new();
    for row in rows.filter(first) {
        if row.outcome == Outcome::NotSent {
            return None;
        }
        sent.push(row.sent.as_nanos());
    }
    sent.sort_unstable();
    (sent.len() as u64 == evidence.summary.due).then_some(sent)
}

const WINDOW_NS: u64 = 100_000_000;
/// Limit of the lag's 99th percentile.
const LAG_LIMIT_NS: u64 = 100_000;
/// Share of a core up to which a client has no excuse for its lag.
const BUSY: f64 = 0.6;
/// Limit of the rate's error over a run.
const RUN_LIMIT: f64 = 0.001;
/// Limit of the rate's error in one window.
const WINDOW_LIMIT: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_of_a_run_is_gaps_over_time() {
        let wanted: Vec<u64> = (0..=1_000).map(|i| i * 1_000_000).collect();
        assert_eq!(whole_run(&wanted, &wanted).unwrap().error, 0.0);
        // A thousand gaps in 1.01 s instead of 1 s: 1/1.01 - 1.
        let mut late = wanted.clone();
        late[1_000] += 10_000_000;
        let found = whole_run(&wanted, &late).unwrap();
        assert!((found.error - 0.01 / 1.01).abs() < 1e-12, "{}", found.error);
        assert_eq!(found.off, 10_000_000);
        assert!(whole_run(&[5], &[5]).is_none());
    }

    #[test]
    fn worst_window_counts_the_sends_that_left_it() {
        // 100 a window over five windows; three of the second leave in the third.
        let wanted: Vec<u64> = (0..=500).map(|i| 7 + i * 1_000_000).collect();
        let mut sent = wanted.clone();
        for late in &mut sent[197..200] {
            *late = 200_000_007;
        }
        let worst = worst_window(&wanted, &sent, 7).unwrap();
        assert_eq!((worst.off, worst.wanted), (3, 100));
        assert!((worst.error - 0.03).abs() < 1e-12 && worst.limit == 0.02);
        // With ten a window one more or less is granted.
        let few: Vec<u64> = (0..=50).map(|i| i * 10_000_000).collect();
        assert_eq!(worst_window(&few, &few, 0).unwrap().limit, 0.1);
    }
}
