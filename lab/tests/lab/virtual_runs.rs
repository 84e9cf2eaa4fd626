//! Runs under virtual time are exact, complete and reproducible.

use kvlab::explore::trial::{Depth, Outcome, trial};
use kvlab::report::json;
use kvlab::runner::client::Own;
use kvlab::runner::suite::{self, Clock};
use kvlab::scenario::Scenario;
use kvlab::truth::digest::of_pairs;
use kvlab::truth::{Pair, Quantile};
use kvlab_bench_client::Control;

use super::support::{assert_passes, finding, run, scenario};

/// Settings of server and client that each have to be exact.
const VARIANTS: [(&str, &str); 16] = [
    ("", "connections = 1\nrequests = 500"),
    (
        "latency = 'constant(1ms)'",
        "connections = 10\nduration = '500ms'",
    ),
    (
        "latency = 'constant(1ms)'",
        "connections = 4\npipeline = 16\nduration = '200ms'",
    ),
    (
        "latency = 'uniform(1ms,3ms)'",
        "connections = 4\npipeline = 16\nduration = '200ms'",
    ),
    (
        "latency = 'uniform(1ms,3ms)'",
        "connections = 4\npipeline = 16\npipeline-mode = 'batch'\nduration = '200ms'",
    ),
    (
        "latency = 'lognormal(p50=300us,p99=2ms)'",
        "connections = 7\nrate = 3000\nduration = '1s'",
    ),
    (
        "latency = 'exponential(1ms)'",
        "connections = 3\nrate = 2500\nduration = '1s'",
    ),
    (
        "latency = 'exponential(1ms)'",
        "connections = 3\nrate = 2500\narrivals = 'poisson'\nduration = '1s'\nwarmup = '100ms'",
    ),
    (
        "latency = 'uniform(100us,2ms)'",
        "connections = 3\npipeline = 8\nrate = 9000\narrivals = 'poisson'\nduration = '500ms'",
    ),
    (
        "latency = 'uniform(100us,2ms)'",
        "connections = 3\npipeline = 8\npipeline-mode = 'batch'\nrate = 9000\nduration = '500ms'",
    ),
    (
        "latency = 'constant(1ms)'\nfreeze = 'every=200ms,for=50ms'",
        "connections = 10\npipeline = 64\nrate = 1000\nduration = '1s'\nwarmup = '50ms'",
    ),
    (
        "latency = 'constant(1ms)'\nfreeze = 'every=200ms,for=50ms,first=30ms'",
        "connections = 10\nrate = 1000\nduration = '1s'",
    ),
    (
        "latency = 'constant(1ms)'\nfreeze = 'every=200ms,for=50ms'",
        "connections = 10\nthreads = 3\nduration = '1s'",
    ),
    (
        "latency = ['get=constant(1ms)', 'set=uniform(2ms,4ms)', 'admin=constant(3ms)']",
        "connections = 5\nthreads = 2\nrate = 2000\nduration = '500ms'",
    ),
    (
        "latency = 'pareto(min=200us,shape=1.5)'",
        "connections = 20\nthreads = 2\nrate = 5000\nduration = '500ms'",
    ),
    (
        "latency = 'constant(1ms)'",
        "connections = 5\nduration = '300ms'\nkey-pattern = 'zipf'\nvalue-size = '1-2000'",
    ),
];

fn both_protocols(server: &str, client: &str) -> [String; 2] {
    ["redis", "aerospike/test/s"].map(|target| {
        // Aerospike answers one request at a time on a connection.
        let client: Vec<&str> = client
            .lines()
            .filter(|line| target == "redis" || !line.starts_with("pipeline"))
            .collect();
        let server = if target == "redis" {
            server.to_owned()
        } else {
            server.replace("'set=", "'put=")
        };
        format!(
            "[server]\n{server}\n[[client]]\ntarget = '{target}'\n{}\n",
            client.join("\n")
        )
    })
}

#[test]
fn every_variant_is_exact_and_complete() {
    for (server, client) in VARIANTS {
        for text in both_protocols(server, client) {
            let (evidence, judgement) = run(&scenario(&text), 0);
            assert_passes(&judgement, &text);
            assert!(
                evidence.summary.due > 100,
                "{} due\n{text}",
                evidence.summary.due
            );
            finding(&judgement, "exact");
            if evidence.settings.load.is_open() {
                finding(&judgement, "timetable");
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_rows_and_another_seed_others() {
    let (server, client) = VARIANTS[8];
    for text in both_protocols(server, client) {
        let mut scenario = scenario(&text);
        let mut hash = |seed| {
            scenario.set_seed(seed);
            of_pairs(&run(&scenario, 0).0.joined.pairs)
        };
        let first = hash(7);
        assert_eq!(hash(7), first, "{text}");
        assert_ne!(hash(8), first, "{text}");
    }
}

#[test]
fn the_number_of_server_workers_changes_nothing() {
    let (server, client) = VARIANTS[3];
    let hashes = [1, 2, 5].map(|workers| {
        let text = format!(
            "[server]\nworkers = {workers}\n{server}\n[[client]]\ntarget = 'redis'\n{client}\n"
        );
        of_pairs(&run(&scenario(&text), 0).0.joined.pairs)
    });
    assert_eq!(hashes, [hashes[0]; 3]);
}

#[test]
fn time_outs_and_lost_connections_are_accounted_for_and_exact() {
    // What is sent in the first 100 ms of a freeze is not answered within 50 ms.
    for text in both_protocols(
        "latency = 'constant(1ms)'\nfreeze = 'every=300ms,for=150ms'",
        "connections = 5\ntimeout = '50ms'\nduration = '1s'\nexpect = { failed = 1000 }",
    ) {
        let (evidence, judgement) = run(&scenario(&text), 0);
        assert_passes(&judgement, &text);
        assert!(
            judgement.accounting.timeouts > 0,
            "{:?}",
            judgement.accounting
        );
        // The server answers all the same, on a connection that nobody reads any more.
        assert!(evidence.joined.pairs.iter().any(|pair| {
            pair.client.received.is_none()
                && pair.server.due.saturating_since(pair.client.sent) > 50 * MS
        }));
    }
}

#[test]
fn connections_that_the_server_ends_are_accounted_for_and_exact() {
    let server = "latency = 'uniform(1ms,3ms)'\ncut = ['at=150ms', 'every=300ms,how=reset']";
    for load in ["rate = 2000", "pipeline = 4", "rate = 3000\npipeline = 4"] {
        let client =
            format!("connections = 5\n{load}\nduration = '1s'\nexpect = {{ failed = 1000 }}");
        for text in both_protocols(server, &client) {
            let (evidence, judgement) = run(&scenario(&text), 0);
            assert_passes(&judgement, &text);
            let accounting = &judgement.accounting;
            assert!(accounting.lost > 0, "{accounting:?}\n{text}");
            assert_eq!(accounting.accounted, accounting.due, "{text}");
            // Each connection was made anew and carried load again.
            let again = |pair: &&Pair| pair.client.ordinal > 0 || pair.server.connection >= 5;
            assert!(
                evidence.joined.pairs.iter().filter(again).count() > 100,
                "{text}"
            );
        }
    }
}

#[test]
fn rows_text_and_json_are_the_same_bytes_whenever_a_variant_is_run_again() {
    let faults = [
        (
            "latency = 'constant(1ms)'\nfreeze = 'every=300ms,for=150ms'",
            "connections = 5\ntimeout = '50ms'\nduration = '1s'\nexpect = { failed = 1000 }",
        ),
        (
            "latency = 'uniform(1ms,3ms)'\ncut = 'every=100ms'",
            "connections = 5\nrate = 2000\nduration = '500ms'\nexpect = { failed = 1000 }",
        ),
    ];
    for (server, client) in VARIANTS.into_iter().chain(faults) {
        for text in both_protocols(server, client) {
            let outcome = trial(&Own, "variant", &text, Depth::Again, &Control::new());
            let Outcome::Exact(tally) = outcome else {
                panic!("{outcome:?}\nin\n{text}");
            };
            assert_eq!(tally.repeated, 1);
        }
    }
}

/// A scenario that comes with the project.
fn shipped(name: &str) -> Scenario {
    let path = format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::load(path.as_ref()).unwrap_or_else(|error| panic!("{error}"))
}

const MS: u64 = 1_000_000;
const LEG_NS: u64 = 25_000;

#[test]
fn freeze_with_slots_to_spare_has_the_quantiles_of_the_closed_form() {
    let (evidence, judgement) = run(&shipped("freeze"), 0);
    assert_passes(&judgement, "freeze.toml");
    // Arrivals reach the server x after the whole milliseconds at which freezes begin. Of each
    // 2000, 150 arrive in a freeze and stay there 150.7 - x, 149.7 - x, ... 1.7 - x; the one before
    // them is due in the freeze if x is at least 0.3, and stays 151 - x. The others stay 0.7 ms. p99
    // is the 21st from above, p99.9 the third.
    let x = (evidence.summary.started.as_nanos() + LEG_NS) % MS;
    assert!(x > 0);
    let delay = 7 * MS / 10;
    let one_before = if x >= MS - delay { 1 } else { 0 };
    let from_above = |rank: u64| 150 * MS + delay - x - (rank - 1 - one_before) * MS;
    let stay = |place: usize| {
        let service = &judgement.figures[0].quantiles[place];
        let response = &judgement.figures[1].quantiles[place];
        // With slots to spare nothing waits in the client.
        assert_eq!(response.true_ns, service.true_ns + 2 * LEG_NS);
        (service.quantile, service.true_ns)
    };
    assert_eq!(stay(0), (Quantile::P50, delay));
    assert_eq!(stay(1), (Quantile::P90, delay));
    assert_eq!(stay(2), (Quantile::P99, from_above(21)));
    assert_eq!(stay(3), (Quantile::P99_9, from_above(3)));
    assert_eq!(judgement.accounting.due, 20_000);
}

#[test]
fn freeze_with_one_slot_queues_in_the_client_and_only_the_response_time_tells() {
    let (_, judgement) = run(&shipped("freeze-one-slot"), 0);
    assert_passes(&judgement, "freeze-one-slot.toml");
    finding(&judgement, "timetable");
    let [service, response] = &judgement.figures[..] else {
        panic!("two figures")
    };
    let (of_service, of_response) = (&service.quantiles[2], &response.quantiles[2]);
    // Ten of 2000 requests are sent into a freeze: the service time's p99 knows nothing of it.
    assert_eq!(of_service.true_ns, 7 * MS / 10);
    // 150 arrive in it and about 12 more wait behind them: the 20th from above has about 131 ms
    // of the freeze before it and at most 17 rounds of 0.7 ms each behind it.
    let p99 = of_response.true_ns;
    assert!((130 * MS..143 * MS).contains(&p99), "{p99}");
}

#[test]
fn quickstart_passes_and_repeats() {
    let scenario = Scenario::quickstart().unwrap();
    assert_eq!(scenario.parts.len(), 4);
    for part in 0..scenario.parts.len() {
        let (evidence, judgement) = run(&scenario, part);
        assert_passes(&judgement, "quickstart.toml");
        let again = run(&scenario, part).0;
        assert_eq!(
            of_pairs(&evidence.joined.pairs),
            of_pairs(&again.joined.pairs)
        );
    }
}

/// The rows of `scenarios/fixed-hash.toml`. They change when the server's or the client's random
/// streams, the order of the virtual shell or the scenario change on purpose, and for no other
/// reason.
const FIXED_HASHES: [(&str, u64); 2] = [
    ("window", 0x8fa2_9955_dcf0_eb9e),
    ("closed", 0x692c_b9d2_90a7_671d),
];

#[test]
fn the_hash_of_a_committed_run_is_the_same_on_every_machine() {
    let scenario = shipped("fixed-hash");
    let found: Vec<(&str, u64)> = (0..scenario.parts.len())
        .map(|part| {
            let (evidence, judgement) = run(&scenario, part);
            assert_passes(&judgement, "fixed-hash.toml");
            (
                scenario.parts[part].name.as_str(),
                of_pairs(&evidence.joined.pairs),
            )
        })
        .collect();
    assert_eq!(found, FIXED_HASHES, "{found:x?}");
}

#[test]
fn a_report_under_virtual_time_is_the_same_each_time_and_knows_no_machine() {
    let mut scenario = shipped("freeze");
    scenario.parts[0].settings.stop.duration = Some(std::time::Duration::from_secs(4));
    let report = || {
        suite::run(
            &scenario,
            Clock::Virtual,
            &Control::new(),
            &mut suite::Quiet,
        )
        .unwrap()
    };
    let (first, second) = (report(), report());
    assert_eq!(first.to_string(), second.to_string());
    let document = json::render(&[first]).unwrap();
    assert_eq!(document, json::render(&[second]).unwrap());
    for word in ["machine", "floor", "kernel", "steal", "elapsed", "date"] {
        assert!(
            !document.contains(&format!("\"{word}")),
            "{word} in {document}"
        );
    }
    assert!(document.contains("\"schema_version\": 1"));
}
