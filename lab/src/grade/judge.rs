//! From a run to figures, findings and a verdict.
//!
//! The figures and their tolerances are those of `kvlab run`, the same for every tool:
//!
//! * `ServErr(q) = (reported - true sojourn - floor) / true sojourn` of a closed loop;
//! * `RespErr(q) = (reported - timetable) / timetable` of a load with a rate;
//! * `Omission`, `RateErr`, and what no clock can excuse: a largest latency below the server's.

use super::run::{Job, Run, ToolFloor};
use super::truth::{Facts, Source};
use super::{Graded, words};
use crate::check::score::{Aspect, Score, ScoreName, Unit};
use crate::scenario::{default_response, default_service};
use crate::subject::process::End;
use crate::subject::{Reported, Shape, Subject};
use crate::truth::Quantile;
use crate::verdict::{Finding, Verdict, overall};

/// A tool that cannot do the load.
#[must_use]
pub fn not_run(subject: &dyn Subject, reason: String) -> Graded {
    Graded {
        tool: subject.name(),
        command: String::new(),
        shape: None,
        end: None,
        elapsed_ns: 0,
        reported: None,
        facts: None,
        floor: None,
        scores: Vec::new(),
        findings: Vec::new(),
        verdict: None,
        sentence: format!("not run: {reason}"),
        attempts: 0,
    }
}

/// Judges a run.
#[must_use]
pub fn judge(subject: &dyn Subject, job: &Job<'_>, run: Run, floor: Option<ToolFloor>) -> Graded {
    let mut findings = vec![ending(&run)];
    let shape = subject.shape(&run.arguments);
    let mut graded = Graded {
        tool: subject.name(),
        command: run.command,
        end: Some(run.finished.end),
        elapsed_ns: u64::try_from(run.finished.elapsed.as_nanos()).unwrap_or(u64::MAX),
        floor,
        attempts: 1,
        ..not_run(subject, String::new())
    };
    if let Ok(shape) = shape {
        let scenario = job.scenario;
        let facts = Facts::new(run.seen, scenario.aim, &shape, &scenario.mock, run.started);
        findings.extend(validity(&facts, &shape, scenario.mock.is_timed()));
        if let Some(machine) = run.machine {
            findings.push(steal(machine.steal_share));
        }
        match &run.reported {
            Ok(reported) => {
                graded.scores = scores(reported, &facts, &shape, floor);
                findings.extend(accounting(reported, &facts, &shape));
                findings.extend(graded.scores.iter().filter_map(finding));
            }
            Err(error) => findings.push(Finding::proof("report", false, error.clone())),
        }
        graded.shape = Some(shape);
        graded.facts = Some(facts);
    }
    graded.reported = run.reported.ok();
    graded.verdict = Some(overall(&findings));
    graded.findings = findings;
    graded.sentence = words::sentence(&graded);
    graded
}

/// How the process ended: a tool that hangs or dies has no verdict but this.
fn ending(run: &Run) -> Finding {
    let elapsed = run.finished.elapsed.as_secs_f64();
    let said = run
        .finished
        .stderr
        .lines()
        .chain(run.finished.stdout.lines());
    let said = said.map(str::trim).find(|line| !line.is_empty());
    let said = said.map_or_else(
        || "it said nothing".to_owned(),
        |line| format!("it said: {}", line.chars().take(SAID).collect::<String>()),
    );
    let (holds, text) = match run.finished.end {
        End::Exited(0) => (true, format!("ended after {elapsed:.1} s")),
        End::Exited(code) => (
            false,
            format!("died with exit code {code} after {elapsed:.1} s; {said}"),
        ),
        End::Signalled(signal) => (
            false,
            format!("died of signal {signal} after {elapsed:.1} s; {said}"),
        ),
        End::Hung => (false, format!("hung: killed after {elapsed:.1} s; {said}")),
        End::Interrupted => (false, "interrupted".to_owned()),
    };
    Finding::proof("end", holds, text)
}

/// Characters kept of what a tool said.
const SAID: usize = 120;

/// What a distribution shows beyond its median is the machine's, so the server's own lateness has to
/// be small: the limits of `kvlab run`.
fn validity(facts: &Facts, shape: &Shape, is_timed: bool) -> Option<Finding> {
    if !is_timed || facts.seen.answered == 0 {
        return None;
    }
    // In a closed loop all slots may be due together, and the last is written after the others.
    let burst = match facts.source {
        Source::Sojourn => (shape.slots() * WRITE_NS).min(BURST_NS),
        Source::Timetable => 0,
    };
    let found = &facts.seen.injection;
    let limits = [
        ("p50", found.p50_ns, INJECTION[0] + burst / 2),
        ("p90", found.p90_ns, INJECTION[1] + burst),
        ("p99", found.p99_ns, INJECTION[2] + burst),
    ];
    let holds = limits.iter().all(|(_, found, limit)| found <= limit);
    let list: Vec<String> = limits
        .iter()
        .map(|(q, found, limit)| format!("{q} {} of {} us", found / 1_000, limit / 1_000))
        .collect();
    let text = format!("injection error of the server: {}", list.join(", "));
    Some(Finding::validity("injection", holds, text))
}

const INJECTION: [u64; 3] = [20_000, 120_000, 500_000];
/// What writing one reply takes, about.
const WRITE_NS: u64 = 4_000;
const BURST_NS: u64 = 400_000;

fn steal(share: f64) -> Finding {
    let text = format!(
        "{:.1} % of processor time stolen, limit {:.1} %",
        share * 100.0,
        STEAL_SHARE * 100.0
    );
    Finding::validity("steal", share <= STEAL_SHARE, text)
}

const STEAL_SHARE: f64 = 0.02;

/// What holds on any machine, whatever its clock: sums, and that no client sees a request sooner
/// than the server.
fn accounting(reported: &Reported, facts: &Facts, shape: &Shape) -> Vec<Finding> {
    let mut findings = Vec::new();
    let seen = &facts.seen;
    if let Some(count) = reported.count {
        let text = format!(
            "{count} samples of {} requests that the server read",
            seen.read
        );
        findings.push(Finding::proof("count", count <= seen.read, text));
    }
    if let (Some(count), Some(operations)) = (reported.count, reported.operations) {
        let text = format!("{operations} operations printed, {count} of them in the latencies");
        let allowed = ROUNDING.max(operations / 500) + shape.slots();
        findings.push(Finding::proof(
            "dropped",
            operations <= count + allowed,
            text,
        ));
    }
    if let Some(max) = reported.max_ns
        && seen.longest_settled_ns > 0
    {
        let least = seen.longest_settled_ns;
        let text = format!(
            "largest latency {} ms, while the server took {} ms over one request",
            words::milliseconds(max),
            words::milliseconds(least)
        );
        // A hundredth for the coarseness of the tool's histogram.
        let holds = max.saturating_add(least / 100) >= least;
        findings.push(Finding::proof("max", holds, text));
    }
    findings
}

/// asbench prints rates of whole operations, from which their number is added up.
const ROUNDING: u64 = 5;

fn scores(
    reported: &Reported,
    facts: &Facts,
    shape: &Shape,
    floor: Option<ToolFloor>,
) -> Vec<Score> {
    let mut scores: Vec<Score> = Quantile::JUDGED
        .into_iter()
        .map(|q| quantile(q, reported, facts, floor))
        .collect();
    scores.push(mean(reported, facts, floor));
    scores.push(maximum(reported, facts));
    scores.push(omission(reported, facts, shape));
    if let (Some(asked), false) = (shape.rate, facts.is_borrowed) {
        scores.push(rate(asked, facts));
    }
    scores
}

fn name(source: Source) -> ScoreName {
    match source {
        Source::Sojourn => ScoreName::ServErr,
        Source::Timetable => ScoreName::RespErr,
    }
}

#[expect(clippy::cast_precision_loss, reason = "shares for a report")]
fn quantile(q: Quantile, reported: &Reported, facts: &Facts, floor: Option<ToolFloor>) -> Score {
    let score = Score::new(name(facts.source), Unit::Share).at(q);
    let (Some(truth), Some(reading)) = (facts.quantile(q), reported.quantiles.get(&q)) else {
        return score.because(match facts.times.is_empty() {
            true => "no request was answered",
            false => "the tool does not report it",
        });
    };
    let median = facts.quantile(Quantile::P50).unwrap_or(0);
    let added = floor.map_or(0, |floor| floor.median_ns);
    let spread = floor.map_or(0, |floor| floor.spread_ns(q));
    let (expected, tolerance, is_carried) = match facts.source {
        Source::Sojourn => {
            let width = match q >= Quantile::P99 {
                true => facts.times.half_width(q, Z_95),
                false => 0,
            };
            let usual = default_service(q).map_or(0, |tolerance| tolerance.of_ns(truth));
            (truth + added, usual + width + spread, false)
        }
        Source::Timetable => {
            let usual = default_response(q).map_or(0, |tolerance| tolerance.of_ns(truth));
            (truth, usual + added + spread, truth >= 2 * median)
        }
    };
    let found = reading.nearest(expected);
    let scale = truth.max(1) as f64;
    let score = score.value((found as f64 - expected as f64) / scale);
    if facts.source == Source::Timetable && !is_carried && is_at_an_edge(q, median, facts) {
        return score
            .because("most of what lies above it met the freeze: the machine's tail decides");
    }
    if q.is_supported_by(facts.times.len()) || is_carried {
        let mut score = score.within(tolerance as f64 / scale);
        // The floor is that of a run at full speed, and the tool may add less at another rate: what
        // lies between the server's time and that plus the floor is not wrong.
        if found < expected {
            let lowest = truth.saturating_sub(tolerance);
            score.verdict = Some(Verdict::from_holds(found >= lowest));
        }
        score
    } else {
        score.because(format!(
            "needs {} samples, has {}",
            q.samples_needed(),
            facts.times.len()
        ))
    }
}

/// Whether more than half of the times above the quantile are a freeze's or a queue's. Of the other
/// requests it is then a far higher quantile than its name says.
fn is_at_an_edge(q: Quantile, median: u64, facts: &Facts) -> bool {
    let all = facts.times.len();
    let above = all - q.rank(all);
    let slow = facts.times.samples().iter().rev();
    let carried = slow.take_while(|time| **time >= 2 * median).count() as u64;
    2 * carried > above
}

/// The mean; judged against a timetable, shown of a service time.
#[expect(clippy::cast_precision_loss, reason = "shares for a report")]
fn mean(reported: &Reported, facts: &Facts, floor: Option<ToolFloor>) -> Score {
    let score = Score::new(name(facts.source), Unit::Share).of(Aspect::Mean);
    let (Some(found), Some(truth)) = (reported.mean_ns, facts.mean()) else {
        return score.because("the tool does not report it");
    };
    let added = floor.map_or(0, |floor| floor.median_ns) as f64;
    match facts.source {
        Source::Sojourn => score
            .value((found - truth - added) / truth)
            .because("shown; the quantiles are judged"),
        Source::Timetable => score
            .value((found - truth) / truth)
            .within(MEAN_SHARE + added / truth),
    }
}

const MEAN_SHARE: f64 = 0.03;

/// The maximum; one sample, so it is shown. What it must not be below is a finding of its own.
#[expect(clippy::cast_precision_loss, reason = "shares for a report")]
fn maximum(reported: &Reported, facts: &Facts) -> Score {
    let score = Score::new(name(facts.source), Unit::Share).of(Aspect::Max);
    let truth = facts.times.max();
    match reported.max_ns {
        Some(found) if truth > 0 => score
            .value((found as f64 - truth as f64) / truth as f64)
            .because("one sample; shown"),
        _ => score.because("the tool does not report it"),
    }
}

/// Requests that are in no count of the tool. What may be under way when it stops is allowed.
#[expect(clippy::cast_precision_loss, reason = "shares for a report")]
fn omission(reported: &Reported, facts: &Facts, shape: &Shape) -> Score {
    let score = Score::new(ScoreName::Omission, Unit::Share);
    let Some(count) = reported.count.filter(|_| facts.due > 0) else {
        return score.because("the tool does not say how many samples it has");
    };
    let counted = count + reported.errors.unwrap_or(0);
    let due = facts.due as f64;
    let value = (due - counted as f64) / due;
    score
        .value(value.max(0.0))
        .within(shape.slots() as f64 / due)
}

fn rate(asked: f64, facts: &Facts) -> Score {
    let score = Score::new(ScoreName::RateErr, Unit::Share).of(Aspect::Run);
    match facts.seen.rate_since(facts.start) {
        Some(found) => score.value((found - asked) / asked).within(RATE_SHARE),
        None => score.because("the server read fewer than two requests"),
    }
}

const RATE_SHARE: f64 = 0.001;
/// Deviations of a 95 % interval.
const Z_95: f64 = 1.96;

/// A judged figure as a finding.
fn finding(score: &Score) -> Option<Finding> {
    let verdict = score.verdict?;
    let (value, limit) = (score.value?, score.limit?);
    let text = format!(
        "{score} {}, allowed {}",
        words::percent(value),
        words::percent(limit)
    );
    Some(Finding::measurement(
        "figure",
        verdict == Verdict::Pass,
        text,
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kvlab_timing::Stamp;

    use super::super::mock::{Mock, MockTexts};
    use super::super::scenario::Aim;
    use super::super::truth::Seen;
    use super::*;
    use crate::subject::{Kind, Reading};
    use crate::truth::Sorted;

    const MS: u64 = 1_000_000;

    fn shape(rate: Option<f64>) -> Shape {
        Shape {
            connections: 10,
            depth: 64,
            batch: false,
            rate,
            duration: Some(Duration::from_secs(20)),
            requests: None,
        }
    }

    /// 20,000 requests of 1 ms, of which `slow` take 50 ms.
    fn closed(slow: u64) -> Facts {
        let sojourn: Sorted = (0..20_000)
            .map(|n| if n < slow { 50 * MS } else { MS })
            .collect();
        let seen = Seen {
            read: 20_000,
            answered: 20_000,
            longest_settled_ns: sojourn.max(),
            sojourn,
            ..Seen::default()
        };
        let shape = shape(None);
        Facts::new(seen, Aim::Sojourn, &shape, &Mock::default(), Stamp::ZERO)
    }

    /// A thousand a second for 20 s through freezes of 150 ms each 2 s.
    fn open(read: u64) -> Facts {
        let texts = MockTexts {
            latency: &["constant(1ms)".to_owned()],
            freezes: &["every=2s,for=150ms,first=1s".to_owned()],
            ..MockTexts::default()
        };
        let mock = Mock::parse(&texts, 0).unwrap();
        let seen = Seen {
            read,
            answered: read,
            first_read: Stamp::ZERO,
            last_read: Stamp::from_nanos(19_999 * MS),
            longest_settled_ns: 151 * MS,
            ..Seen::default()
        };
        let aim = Aim::Timetable { rate: 1000.0 };
        Facts::new(seen, aim, &shape(Some(1000.0)), &mock, Stamp::ZERO)
    }

    fn report(count: u64, us: [u64; 4], max_us: u64) -> Reported {
        let readings = us.map(|us| Reading::exact(us * 1_000));
        Reported {
            kind: Kind::Service,
            count: Some(count),
            mean_ns: Some(1_343_000.0),
            quantiles: Quantile::JUDGED.into_iter().zip(readings).collect(),
            max_ns: Some(max_us * 1_000),
            ..Reported::default()
        }
    }

    const FLOOR: ToolFloor = ToolFloor {
        median_ns: 100_000,
        spread_p90_ns: 0,
        spread_p99_ns: 0,
    };

    fn verdicts(reported: &Reported, facts: &Facts, shape: &Shape) -> Vec<(String, bool)> {
        let scores = scores(reported, facts, shape, Some(FLOOR));
        let judged = scores.iter().filter_map(|score| {
            let verdict = score.verdict?;
            Some((score.to_string(), verdict == Verdict::Pass))
        });
        judged.collect()
    }

    #[test]
    fn a_closed_loop_passes_within_the_floor_and_fails_beyond() {
        // 140 of 20,000 slow ones: the p99 is fast, the p99.9 slow but not supported by 20 samples.
        let facts = closed(140);
        let good = report(20_000, [1_100, 1_120, 1_130, 50_100], 50_200);
        let expected = ["ServErr(p50)", "ServErr(p90)", "ServErr(p99)", "Omission"];
        let expected = expected.map(|name| (name.to_owned(), true)).to_vec();
        assert_eq!(verdicts(&good, &facts, &shape(None)), expected);
        // 50 us beyond the floor are allowed at the median, and as much below the server's time.
        for (us, holds) in [(1_150, true), (1_151, false), (950, true), (949, false)] {
            let mut reported = good.clone();
            reported
                .quantiles
                .insert(Quantile::P50, Reading::exact(us * 1_000));
            let found = verdicts(&reported, &facts, &shape(None));
            assert_eq!(found[0].1, holds, "{us}");
        }
    }

    #[test]
    fn a_timetable_is_judged_without_taking_off_a_floor() {
        let facts = open(20_000);
        // Truth: 1 ms at p50 and p90, 131 ms at p99; the freezes carry p99 and p99.9.
        let p99_9 = facts.quantile(Quantile::P99_9).unwrap() / 1_000;
        let mut good = report(20_000, [1_100, 1_100, 131_100, p99_9], 151_000);
        good.mean_ns = facts.mean();
        let found = verdicts(&good, &facts, &shape(Some(1000.0)));
        assert!(found.iter().all(|(_, holds)| *holds), "{found:?}");
        // 7.5 of the 10 % above p90 met a freeze, so p90 is p97 of the others and not judged.
        let judged = |name: &str| found.iter().any(|(judged, _)| judged == name);
        assert!(judged("RespErr(p50)") && !judged("RespErr(p90)") && judged("RespErr(p99)"));
        // What a client reports that starts its clock at the send.
        let bad = report(18_000, [1_100, 1_200, 13_800, 151_000], 151_000);
        let facts = open(18_000);
        let scores = scores(&bad, &facts, &shape(Some(1000.0)), Some(FLOOR));
        let p99 = &scores[2];
        assert_eq!(p99.verdict, Some(Verdict::Fail));
        let value = p99.value.unwrap();
        assert!((value + 0.894).abs() < 0.01, "{value}");
        let omission = &scores[6];
        assert_eq!(omission.name, ScoreName::Omission);
        assert_eq!(omission.value, Some(0.1));
        assert_eq!(omission.verdict, Some(Verdict::Fail));
        // 18,000 in the time of 20,000.
        let rate = &scores[7];
        assert_eq!(rate.name, ScoreName::RateErr);
        assert_eq!(rate.verdict, Some(Verdict::Fail));
        assert!((rate.value.unwrap() + 0.1).abs() < 0.001);
    }

    #[test]
    fn what_no_clock_can_excuse_is_found() {
        let facts = closed(140);
        let good = report(20_000, [1_100, 1_120, 1_130, 50_100], 50_200);
        let broken = |reported: &Reported| -> Vec<&str> {
            let findings = accounting(reported, &facts, &shape(None));
            let bad = findings.iter().filter(|one| one.verdict != Verdict::Pass);
            bad.map(|one| one.name).collect()
        };
        assert!(broken(&good).is_empty());
        let clamped = report(20_000, [1_100, 1_120, 1_130, 30_000], 30_000);
        assert_eq!(broken(&clamped), ["max"]);
        let invented = report(20_001, [1_100, 1_120, 1_130, 50_100], 50_200);
        assert_eq!(broken(&invented), ["count"]);
        let mut dropping = good.clone();
        dropping.count = Some(18_000);
        dropping.operations = Some(20_000);
        assert_eq!(broken(&dropping), ["dropped"]);
    }

    #[test]
    fn errors_that_are_counted_are_no_omission() {
        let facts = closed(0);
        let mut reported = report(19_000, [1_100, 1_120, 1_130, 1_140], 1_200);
        let omission = |reported: &Reported| omission(reported, &facts, &shape(None));
        assert_eq!(omission(&reported).verdict, Some(Verdict::Fail));
        reported.errors = Some(1_000);
        assert_eq!(omission(&reported).verdict, Some(Verdict::Pass));
        assert_eq!(omission(&reported).value, Some(0.0));
    }
}
