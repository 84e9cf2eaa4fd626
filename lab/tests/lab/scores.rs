//! The named figures, under virtual time, where every value is known.

use kvlab::check::score::{Aspect, Score, ScoreName};
use kvlab::check::{Judgement, judge};
use kvlab::truth::Quantile;
use kvlab::verdict::Verdict;

use super::support::{assert_passes, finding, run, scenario};

fn score(judgement: &Judgement, name: ScoreName, of: Option<Aspect>) -> &Score {
    judgement
        .scores
        .iter()
        .find(|score| score.name == name && score.of == of)
        .unwrap_or_else(|| panic!("no {name:?} in {:?}", judgement.scores))
}

const POISSON: &str = "[server]\nlatency = 'uniform(200us,2ms)'\n\
    [[client]]\ntarget = 'redis'\nconnections = 10\npipeline = 64\nthreads = 2\nrate = 2000\n\
    arrivals = 'poisson'\nwarmup = '200ms'\nduration = '5s'\n";

#[test]
fn every_error_of_an_exact_run_is_zero() {
    let (_, judgement) = run(&scenario(POISSON), 0);
    assert_passes(&judgement, POISSON);
    for score in &judgement.scores {
        let exact = match score.name {
            ScoreName::PairErr => 50_000.0,
            ScoreName::Clamp if score.of.is_none() => 3.6e12,
            ScoreName::ArrivalAD => continue,
            _ => 0.0,
        };
        if let Some(value) = score.value {
            assert_eq!(value, exact, "{score}");
        }
        assert_ne!(score.verdict, Some(Verdict::Fail), "{score}");
    }
    // 10 000 requests hold a p99, and not a p99.9.
    let of = |q| {
        judgement
            .scores
            .iter()
            .find(|score| score.name == ScoreName::ServErr && score.quantile == Some(q))
            .unwrap()
    };
    assert_eq!(of(Quantile::P99).verdict, Some(Verdict::Pass));
    assert_eq!(
        score(&judgement, ScoreName::Omission, None).value,
        Some(0.0)
    );
}

#[test]
fn poisson_arrivals_pass_their_test_in_nine_of_ten_seeds() {
    let mut passed = 0;
    for seed in 1..=10 {
        let mut scenario = scenario(POISSON);
        scenario.set_seed(seed);
        let (_, judgement) = run(&scenario, 0);
        let found = score(&judgement, ScoreName::ArrivalAD, Some(Aspect::Intended));
        passed += u32::from(found.value.unwrap() <= found.limit.unwrap());
    }
    assert!(passed >= 9, "{passed} of 10");
}

#[test]
fn a_poisson_moment_that_its_seed_does_not_give_is_found() {
    let scenario = scenario(POISSON);
    let (mut evidence, judgement) = run(&scenario, 0);
    assert_eq!(finding(&judgement, "intended").verdict, Verdict::Pass);
    let load = |pair: &&mut kvlab::truth::Pair| pair.is_measured();
    let pair = evidence.joined.pairs.iter_mut().find(load).unwrap();
    pair.client.intended = pair.client.intended.sub_nanos(2);
    let judgement = judge(&evidence, &scenario.parts[0].expect, None);
    assert_eq!(finding(&judgement, "intended").verdict, Verdict::Fail);
    // Another seed gives other moments altogether.
    evidence.settings.seed += 1;
    let judgement = judge(&evidence, &scenario.parts[0].expect, None);
    assert_eq!(finding(&judgement, "intended").verdict, Verdict::Fail);
}

#[test]
fn a_sample_less_than_requests_is_an_omission() {
    let scenario = scenario(POISSON);
    let (mut evidence, _) = run(&scenario, 0);
    let class = &mut evidence.summary.tally.classes[0];
    // Its histogram loses what was recorded last.
    let samples = class.service.histogram().clone();
    class.service.clear();
    let mut left = samples.len() - 1;
    for step in samples.iter_recorded() {
        for _ in 0..step.count_at_value().min(left) {
            class.service.record(step.value_iterated_to());
        }
        left -= step.count_at_value().min(left);
    }
    let judgement = judge(&evidence, &scenario.parts[0].expect, None);
    let found = score(&judgement, ScoreName::Omission, None);
    let due = f64::from(u32::try_from(evidence.summary.due).unwrap());
    assert!(
        (found.value.unwrap() - 1.0 / due).abs() < 1e-12,
        "{found:?}"
    );
    assert_eq!(finding(&judgement, "omission").verdict, Verdict::Fail);
}

#[test]
fn a_long_freeze_is_reported_whole() {
    let text = "[server]\nlatency = 'constant(1ms)'\nfreeze = 'at=1s,for=4s'\n\
        [[client]]\ntarget = 'redis'\nconnections = 10\npipeline = 512\nrate = 1000\n\
        timeout = '30s'\nduration = '10s'\n";
    let (_, judgement) = run(&scenario(text), 0);
    assert_passes(&judgement, text);
    let response = judgement
        .figures
        .iter()
        .find(|figure| figure.figure.as_str() == "response")
        .unwrap();
    let max = response
        .aspects
        .iter()
        .find(|row| row.of == Aspect::Max)
        .unwrap();
    // The request that meets the begin of the freeze waits for four seconds, give or take its place.
    assert!(
        max.reported_ns.abs_diff(4_000_000_000) < 3_000_000,
        "{max:?}"
    );
    let found = score(&judgement, ScoreName::RespErr, Some(Aspect::Max));
    assert_eq!(
        (found.value, found.verdict),
        (Some(0.0), Some(Verdict::Pass))
    );
}

#[test]
fn a_load_that_begins_in_a_queue_is_steady_later() {
    // The server stands still for the first 600 ms, and what came meanwhile is answered at once.
    let text = |freeze: &str| {
        format!(
            "[server]\nlatency = 'constant(1ms)'\n{freeze}\n\
             [[client]]\ntarget = 'redis'\nconnections = 10\npipeline = 512\nrate = 1000\n\
             duration = '10s'\n"
        )
    };
    let steady = |text: &str| {
        let (_, judgement) = run(&scenario(text), 0);
        assert_passes(&judgement, text);
        let found = judgement.warm_up.unwrap();
        assert!(found.is_steady, "{found:?}");
        // Exact runs are judged whole.
        assert_eq!((found.configured_ns, found.left_out_ns), (0, 0));
        (found.steady_mean_ns, found.steady_p99_ns)
    };
    assert_eq!(steady(&text("")), (0, 0));
    // Six windows of 100 ms, which MSER-5 cuts in fives.
    let queue = steady(&text("freeze = 'at=0ms,for=600ms'"));
    assert_eq!(queue, (1_000_000_000, 1_000_000_000));
}

#[test]
fn repeated_runs_under_virtual_time_are_the_same() {
    let text = format!("repeat = 3\n{POISSON}");
    let scenario = scenario(&text);
    let report = kvlab::runner::suite::run(
        &scenario,
        kvlab::runner::suite::Clock::Virtual,
        &kvlab_bench_client::Control::new(),
        &mut kvlab::runner::suite::Quiet,
    )
    .unwrap();
    let part = &report.parts[0];
    assert_eq!(part.runs, [Verdict::Pass; 3]);
    let repro = part
        .judgement
        .scores
        .iter()
        .filter(|score| score.name == ScoreName::Repro);
    let values: Vec<_> = repro.map(|score| score.value).collect();
    assert_eq!(values, [Some(0.0); 3]);
    assert_eq!(report.verdict, Verdict::Pass);
}
