//! A client that measures wrongly is caught: each mutant hands over the result of the honest client
//! with one bias planted, and the lab has to fail it by the findings that tell this bias. The same
//! judges pass the honest client, without which none of this would say anything.
//!
//! They are judged twice: under virtual time, where the smallest bias counts, and as a run on
//! sockets would be, with tolerances and a floor that the same bent client measured.

use std::time::Duration;

use kvlab::check::judge;
use kvlab::noise::Floor;
use kvlab::runner::client::{Bent, Client, Own};
use kvlab::runner::{Evidence, Tier, virtual_time};
use kvlab::scenario::{Part, Scenario};
use kvlab::verdict::{Finding, Kind, Verdict};
use kvlab_bench_client::{Control, RunResult};

use super::bias;
use super::support::scenario;

/// A bias, the run it is planted into, and the findings that have to tell it.
struct Mutant {
    name: &'static str,
    run: &'static str,
    bias: fn(RunResult) -> RunResult,
    by: &'static [&'static str],
    /// Whether it is one that a run on sockets has to find as well. What is shorter than the
    /// tolerance, or shows in the floor too and contradicts no stamp, cannot be told there from the
    /// machine's own.
    in_real_time: bool,
}

/// An open loop with freezes and a queue in the client, on two threads.
const FREEZES: &str = "[server]\nlatency = 'exponential(1ms)'\nfreeze = 'every=200ms,for=40ms'\n\
    [[client]]\ntarget = 'redis'\nconnections = 4\nthreads = 2\nrate = 1600\nduration = '1s'\n\
    warmup = '100ms'\nratio = '0:1'\n";
/// Half of each second nothing is answered in time.
const TIME_OUTS: &str = "[server]\nlatency = 'constant(1ms)'\nfreeze = 'every=300ms,for=150ms'\n\
    [[client]]\ntarget = 'redis'\nconnections = 5\ntimeout = '50ms'\nrate = 1000\n\
    duration = '1s'\nexpect = { failed = 1000000 }\n";
/// A closed loop of batches.
const BATCHES: &str = "[server]\nlatency = 'uniform(1ms,3ms)'\n\
    [[client]]\ntarget = 'redis'\nconnections = 4\npipeline = 16\npipeline-mode = 'batch'\n\
    duration = '200ms'\n";
/// A freeze longer than a second.
const LONG_FREEZE: &str = "[server]\nlatency = 'constant(1ms)'\nfreeze = 'every=5s,for=1500ms'\n\
    [[client]]\ntarget = 'aerospike/test/s'\nconnections = 4\nrate = 500\nduration = '10s'\n\
    timeout = '1m'\n";
/// Operations that time out are tried again.
const RETRIES: &str = "[server]\nlatency = 'constant(1ms)'\nfreeze = 'every=300ms,for=150ms'\n\
    [[client]]\ntarget = 'aerospike/test/s'\nconnections = 5\ntimeout = '60ms'\nretries = 4\n\
    rate = 1000\nduration = '1s'\nexpect = { failed = 1000000 }\n";
const RUNS: [&str; 5] = [FREEZES, TIME_OUTS, BATCHES, LONG_FREEZE, RETRIES];

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "clock started late",
        run: FREEZES,
        bias: |result| bias::clock_started_late(result, 100_000),
        by: &["stamps"],
        in_real_time: true,
    },
    Mutant {
        name: "clock started late by a nanosecond",
        run: BATCHES,
        bias: |result| bias::clock_started_late(result, 1),
        by: &["exact"],
        in_real_time: false,
    },
    Mutant {
        name: "clock stopped early",
        run: FREEZES,
        bias: |result| bias::clock_stopped_early(result, 100_000),
        by: &["stamps"],
        in_real_time: true,
    },
    Mutant {
        name: "clock stopped early by a nanosecond",
        run: FREEZES,
        bias: |result| bias::clock_stopped_early(result, 1),
        by: &["exact", "timetable", "service", "response"],
        in_real_time: false,
    },
    Mutant {
        name: "clock stopped late by a nanosecond",
        run: FREEZES,
        bias: |result| bias::clock_stopped_late(result, 1),
        by: &["exact", "timetable", "service", "response"],
        in_real_time: false,
    },
    Mutant {
        name: "one sample dropped in a thousand",
        run: FREEZES,
        bias: bias::one_sample_dropped_in_a_thousand,
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "one request forgotten in a thousand",
        run: FREEZES,
        bias: bias::one_request_forgotten_in_a_thousand,
        by: &["rows", "due"],
        in_real_time: true,
    },
    Mutant {
        name: "one sample counted twice in a thousand",
        run: FREEZES,
        bias: bias::one_sample_counted_twice_in_a_thousand,
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "quantiles one rank low",
        run: FREEZES,
        bias: bias::quantiles_one_rank_low,
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "quantiles one rank high",
        run: FREEZES,
        bias: bias::quantiles_one_rank_high,
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "queueing left out",
        run: FREEZES,
        bias: bias::queueing_left_out,
        by: &["intended"],
        in_real_time: true,
    },
    Mutant {
        name: "service time recorded as response time",
        run: FREEZES,
        bias: bias::service_recorded_as_response,
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "timetable bent after a stall",
        run: FREEZES,
        bias: |result| bias::timetable_bent_after_a_stall(result, 20 * MS),
        by: &["intended"],
        in_real_time: true,
    },
    Mutant {
        name: "retries timed from their own send",
        run: RETRIES,
        bias: bias::retries_timed_from_their_own_send,
        by: &["intended"],
        in_real_time: true,
    },
    Mutant {
        name: "maximum clamped",
        run: FREEZES,
        bias: |result| bias::maximum_clamped(result, 20 * MS),
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "range too small",
        run: LONG_FREEZE,
        bias: |result| bias::range_too_small(result, 1_050 * MS),
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "resolution too coarse",
        run: BATCHES,
        bias: |result| bias::resolution_too_coarse(result, MS / 10),
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "mean in place of quantiles",
        run: FREEZES,
        bias: bias::mean_in_place_of_quantiles,
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "one thread merged twice",
        run: FREEZES,
        bias: bias::one_thread_merged_twice,
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "quantiles of threads averaged",
        run: FREEZES,
        bias: bias::quantiles_of_threads_averaged,
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "time of a batch divided by its requests",
        run: BATCHES,
        bias: bias::batch_time_divided,
        by: &["recorder"],
        in_real_time: true,
    },
    Mutant {
        name: "time-outs removed",
        run: TIME_OUTS,
        bias: bias::time_outs_removed,
        by: &["rows", "due"],
        in_real_time: true,
    },
    Mutant {
        name: "time-outs not counted",
        run: TIME_OUTS,
        bias: bias::time_outs_not_counted,
        by: &["accounting", "due"],
        in_real_time: true,
    },
    Mutant {
        name: "time-outs pass for answers",
        run: TIME_OUTS,
        bias: |result| bias::time_outs_pass_for_answers(result, 50 * MS),
        by: &["stamps"],
        in_real_time: true,
    },
    Mutant {
        name: "one arrival skipped",
        run: FREEZES,
        bias: bias::one_arrival_skipped,
        by: &["accounting", "due"],
        in_real_time: true,
    },
    Mutant {
        name: "warm-up measured",
        run: FREEZES,
        bias: bias::warm_up_measured,
        by: &["due"],
        in_real_time: true,
    },
    Mutant {
        name: "lag hidden",
        run: FREEZES,
        bias: bias::lag_hidden,
        by: &["recorder"],
        in_real_time: true,
    },
];

const MS: u64 = 1_000_000;

/// Runs the part under virtual time with this client.
fn run(client: &dyn Client, scenario: &Scenario) -> Evidence {
    let part = &scenario.parts[0];
    let config = scenario.server_for(part);
    let settings = part.settings.clone();
    virtual_time::run_by(
        client,
        config,
        settings,
        scenario.network_ns,
        &Control::new(),
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

/// Findings that do not hold.
fn broken(evidence: &Evidence, part: &Part, floor: Option<&Floor>) -> Vec<Finding> {
    let judgement = judge(evidence, &part.expect, floor);
    let broken: Vec<Finding> = judgement
        .findings
        .into_iter()
        .filter(|finding| finding.verdict != Verdict::Pass)
        .collect();
    assert_eq!(judgement.verdict == Verdict::Pass, broken.is_empty());
    broken
}

fn broken_under_virtual_time(client: &dyn Client, text: &str) -> Vec<Finding> {
    let scenario = scenario(text);
    broken(&run(client, &scenario), &scenario.parts[0], None)
}

/// Judges the rows and figures as those of a run on sockets, between two floors of this client.
fn broken_in_real_time(client: &dyn Client, text: &str) -> Vec<Finding> {
    let mut scenario = scenario(text);
    // What the network takes is the floor; a queue in the client would multiply a larger one.
    scenario.network_ns = 1_000;
    let mut evidence = run(client, &scenario);
    evidence.tier = Tier::Real;
    scenario.server.config.latency = kvlab_mock_server::latency::LatencyRules::default();
    scenario.server.config.freezes = Vec::new();
    scenario.parts[0].settings.stop.duration = Some(Duration::from_millis(20));
    let quiet = run(client, &scenario).joined.pairs;
    let floor = Floor::between(&quiet, &quiet);
    broken(&evidence, &scenario.parts[0], Some(&floor))
}

fn assert_caught(mutant: &Mutant, broken: &[Finding]) {
    let names: Vec<&str> = broken.iter().map(|finding| finding.name).collect();
    for name in mutant.by {
        assert!(
            names.contains(name),
            "{}: {name} is not among {names:?}",
            mutant.name
        );
    }
    // A fault of the client fails a run on any machine, be it void or not.
    assert!(
        broken
            .iter()
            .any(|finding| finding.kind == Kind::Proof && finding.verdict == Verdict::Fail),
        "{}: {broken:#?}",
        mutant.name
    );
}

#[test]
fn the_honest_client_passes_before_the_judges_of_the_mutants() {
    let written_anew = Bent(bias::recorded_from_rows);
    for text in RUNS {
        for client in [&Own as &dyn Client, &written_anew] {
            assert_eq!(broken_under_virtual_time(client, text), [], "{text}");
            assert_eq!(broken_in_real_time(client, text), [], "{text}");
        }
    }
}

#[test]
fn every_mutant_is_caught_under_virtual_time() {
    for mutant in MUTANTS {
        let broken = broken_under_virtual_time(&Bent(mutant.bias), mutant.run);
        assert_caught(mutant, &broken);
    }
}

#[test]
fn every_mutant_above_the_tolerance_is_caught_in_real_time() {
    for mutant in MUTANTS.iter().filter(|mutant| mutant.in_real_time) {
        let broken = broken_in_real_time(&Bent(mutant.bias), mutant.run);
        assert_caught(mutant, &broken);
    }
}

#[test]
fn a_server_that_is_late_and_hides_it_is_caught() {
    let scenario = scenario(FREEZES);
    let mut evidence = run(&Own, &scenario);
    for pair in &mut evidence.joined.pairs {
        pair.server.due = pair.server.due.add_nanos(50_000);
        pair.server.written = pair.server.due;
    }
    let broken = broken(&evidence, &scenario.parts[0], None);
    let names: Vec<&str> = broken.iter().map(|finding| finding.name).collect();
    assert!(
        names.contains(&"stamps") && names.contains(&"exact"),
        "{names:?}"
    );
}
