//! The scenarios that come with the program, and the tiers they make.

use std::collections::BTreeSet;
use std::time::Duration;

use kvlab::cli::run::{RunArgs, run};
use kvlab::scenario::{Scenario, TierName};
use kvlab_bench_client::frontend::ExitStatus;

/// Status, stdout and stderr.
fn outcome(args: &RunArgs) -> (ExitStatus, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run(args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status, text(out), text(err))
}

#[test]
fn what_is_built_in_is_what_stands_in_the_folder() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let built_in: Vec<&str> = Scenario::shipped().iter().map(|(name, _)| *name).collect();
    assert!(files.iter().eq(&built_in), "{files:?} are not {built_in:?}");
    for name in built_in {
        let scenario = Scenario::named(name).unwrap().unwrap();
        assert_eq!(scenario.name, name);
    }
    assert!(Scenario::named("no-such-scenario").is_none());
}

#[test]
fn the_virtual_tier_passes_and_threads_change_no_byte() {
    let tier = RunArgs {
        tier: Some(TierName::Virtual),
        quiet: true,
        ..RunArgs::default()
    };
    let (status, out, err) = outcome(&tier);
    assert_eq!(status, ExitStatus::Done, "{out}{err}");
    assert!(out.ends_with(" clients: pass\n"), "{out}");
    for scenario in Scenario::of_tier(TierName::Virtual).unwrap() {
        let count = scenario.parts.len();
        let line = format!(
            "\n{}: pass, {count} of {count} clients passed\n",
            scenario.name
        );
        assert!(out.contains(&line), "{line} is not in {out}");
    }
    let on = |jobs| {
        outcome(&RunArgs {
            files: vec!["faults".into()],
            r#virtual: true,
            jobs: std::num::NonZeroUsize::new(jobs),
            ..RunArgs::default()
        })
    };
    let (one, three) = (on(1), on(3));
    assert_eq!(one.0, ExitStatus::Done, "{}", one.1);
    assert_eq!(one.1, three.1);
    // Progress keeps the order too.
    assert_eq!(one.2, three.2);
    assert!(one.1.lines().all(|line| out.contains(line)), "{}", one.1);
}

/// Length of a tier in real time, without retries.
fn length(tier: TierName) -> Duration {
    let scenarios = Scenario::of_tier(tier).unwrap();
    let floors = Duration::from_secs(2);
    let parts = scenarios.iter().flat_map(|scenario| {
        let each = |settings: &kvlab_bench_client::Settings| {
            (settings.warmup + settings.stop.duration.unwrap() + floors) * scenario.repeat
        };
        scenario.parts.iter().map(move |part| each(&part.settings))
    });
    parts.sum()
}

#[test]
fn the_tiers_in_real_time_have_the_length_they_say() {
    let smoke = length(TierName::Smoke).as_secs();
    assert!((40..=70).contains(&smoke), "{smoke} s");
    let full = length(TierName::Full).as_secs();
    // The grading of other tools takes a few minutes more.
    assert!((600..=1050).contains(&full), "{full} s");
}

#[test]
fn no_shipped_scenario_judges_a_quantile_at_the_edge_of_a_mode_in_real_time() {
    for (name, _) in Scenario::shipped() {
        let scenario = Scenario::named(name).unwrap().unwrap();
        if scenario.tiers == [TierName::Virtual] {
            continue;
        }
        let edges: Vec<_> = scenario.boundaries().collect();
        assert_eq!(edges, [], "{name}");
    }
}

#[test]
fn a_quantile_at_an_edge_is_refused_in_real_time_and_exact_under_virtual_time() {
    let folder = std::env::temp_dir().join(format!("kvlab-edge-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("edge.toml");
    std::fs::write(
        &file,
        "[server]\n\nlatency = 'mixture(99%:constant(1ms),1%:constant(50ms))'\n\
         [[client]]\ntarget = 'redis'\nrequests = 1000\nconnections = 10\n",
    )
    .unwrap();
    let args = RunArgs {
        files: vec![file],
        quiet: true,
        ..RunArgs::default()
    };
    let (status, out, err) = outcome(&args);
    assert_eq!((status, out.as_str()), (ExitStatus::Usage, ""), "{err}");
    for part in [
        "edge",
        "line 3",
        "server.latency",
        "p99",
        "redis closed loop",
    ] {
        assert!(err.contains(part), "{part} is not in {err}");
    }
    let exact = outcome(&RunArgs {
        r#virtual: true,
        ..args
    });
    assert_eq!(exact.0, ExitStatus::Done, "{}", exact.1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_list_names_the_clients_and_runs_none() {
    let (status, out, err) = outcome(&RunArgs {
        tier: Some(TierName::Full),
        list: true,
        ..RunArgs::default()
    });
    assert_eq!((status, err.as_str()), (ExitStatus::Done, ""));
    assert!(
        out.contains("long-freeze: freeze=4s, wire=aerospike\n"),
        "{out}"
    );
    assert!(out.contains("injection: redis closed loop\n"), "{out}");
    assert!(!out.contains("smoke"), "{out}");
}
