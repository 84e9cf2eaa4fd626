//! Scenario files: what they give, and what is said about wrong ones.

use kvlab::scenario::{Limit, Scenario, Tolerance};
use kvlab_bench_client::settings::{Arrivals, KeyPattern, Load, PipelineMode, Target};

use super::support::scenario;

#[test]
fn everything_in_a_file_arrives_in_the_settings() {
    let scenario = scenario(
        r#"
        name = "all of it"
        [server]
        latency = ["constant(1ms)", "get=uniform(1ms,2ms)"]
        freeze = "every=2s,for=150ms,first=1s"
        workers = 2
        seed = 9
        redis-version = "6.2.14"
        spin = false
        [network]
        delay = "10us"
        [[client]]
        name = "first"
        target = "redis/3"
        model = "open"
        rate = "2.5k"
        arrivals = "poisson"
        connections = 8
        pipeline = 4
        pipeline-mode = "batch"
        threads = 2
        duration = "2s"
        warmup = "100ms"
        key-pattern = "zipf(1.1)"
        command = ["SET __key__ __data__", "3:GET __key__"]
        value-size = 100
        seed = 5
        timeout = "1s"
        [[client]]
        target = "aerospike/test/demo"
        requests = 1000
        expect = { failed = 7, service = { p50 = "none", "p99.9" = "3%" } }
        [expect]
        failed = 1
        "#,
    );
    let config = &scenario.server.config;
    assert_eq!(scenario.name, "all of it");
    assert_eq!((config.workers, config.seed, config.spin), (2, 9, false));
    assert_eq!(config.redis.version.to_string(), "6.2.14");
    assert_eq!(config.latency.rules().len(), 2);
    assert_eq!(config.freezes[0].when.first_ns, 1_000_000_000);
    assert_eq!(scenario.network_ns, 10_000);

    let [first, second] = &scenario.parts[..] else {
        panic!("two parts")
    };
    assert_eq!(first.name, "first");
    let settings = &first.settings;
    let Target::Redis(redis) = &settings.target else {
        panic!("redis")
    };
    assert_eq!(redis.database, 3);
    let names: Vec<_> = redis
        .operations
        .iter()
        .map(|op| (op.name.as_str(), op.weight))
        .collect();
    assert_eq!(names, [("SET", 1), ("GET", 3)]);
    assert_eq!(
        settings.load,
        Load::Open {
            rate: "2500".parse().unwrap(),
            arrivals: Arrivals::Poisson
        }
    );
    assert_eq!(settings.pipeline.mode, PipelineMode::Batch);
    assert_eq!((settings.connections.get(), settings.threads.get()), (8, 2));
    assert_eq!(settings.keys.pattern, KeyPattern::Zipf { exponent: 1.1 });
    assert!(settings.record_rows);
    assert_eq!(first.expect.failed, 1);

    assert_eq!(second.name, "aerospike closed loop");
    assert_eq!(second.settings.stop.requests, Some(1000));
    assert_eq!(second.expect.failed, 7);
    assert_eq!(second.expect.service.p50, Some(Limit::Unjudged));
    assert_eq!(
        second.expect.service.p99_9,
        Some(Limit::Within(Tolerance::new(0, 3.0)))
    );
    let Target::Aerospike(aerospike) = &second.settings.target else {
        panic!("aerospike")
    };
    assert_eq!(
        (aerospike.namespace.as_str(), aerospike.set.as_str()),
        ("test", "demo")
    );
}

#[test]
fn a_seed_from_outside_replaces_all_seeds() {
    let mut scenario = Scenario::quickstart().unwrap();
    scenario.set_seed(77);
    assert_eq!(scenario.server.config.seed, 77);
    assert!(scenario.parts.iter().all(|part| part.settings.seed == 77));
}

/// A wrong file, and what its message has to name.
const WRONG: [(&str, &[&str]); 23] = [
    ("", &["client"]),
    ("client = []\n", &["line 1", "client", "at least one"]),
    ("client = 5\n", &["line 1", "client"]),
    (
        "repeat = 0\n[[client]]\ntarget = 'redis'\n",
        &["line 1", "repeat", "1 to 100"],
    ),
    (
        "tiers = ['quick']\n[[client]]\ntarget = 'redis'\n",
        &["line 1", "tiers", "smoke"],
    ),
    (
        "[[client]]\ntarget = 'redis'\n[client.expect.service]\np51 = '1%'\n",
        &["line 4", "p51"],
    ),
    (
        "[sever]\n[[client]]\ntarget = 'redis'\n",
        &["line 1", "sever"],
    ),
    (
        "[server]\nlatancy = 'none'\n[[client]]\ntarget = 'redis'\n",
        &["line 2", "latancy"],
    ),
    (
        "[server]\nseed = 1\nlatency = 'constant(1)'\n[[client]]\ntarget = 'redis'\n",
        &["line 3", "latency", "unit"],
    ),
    (
        "[server]\nlatency = ['none', 'lognormal(p50=1ms)']\n[[client]]\ntarget = 'redis'\n",
        &["line 2", "latency"],
    ),
    (
        "[server]\nfreeze = 'every=1s'\n[[client]]\ntarget = 'redis'\n",
        &["line 2", "freeze", "for"],
    ),
    (
        "[server]\nredis-version = '7'\n[[client]]\ntarget = 'redis'\n",
        &["line 2", "redis-version", "three numbers"],
    ),
    (
        "[server]\nworkers = 0\n[[client]]\ntarget = 'redis'\n",
        &["line 1", "workers"],
    ),
    (
        "[network]\ndelay = '0'\n[[client]]\ntarget = 'redis'\n",
        &["line 2", "delay"],
    ),
    (
        "[network]\ndelay = '5'\n[[client]]\ntarget = 'redis'\n",
        &["line 2", "unit"],
    ),
    ("[[client]]\nrate = 5\n", &["line 1", "target"]),
    (
        "[[client]]\n\ntarget = 'memcached'\n",
        &["line 3", "memcached"],
    ),
    (
        "[[client]]\ntarget = 'redis'\nrat = 5\n",
        &["line 3", "rat"],
    ),
    (
        "[[client]]\ntarget = 'redis'\njson = 'x'\n",
        &["line 3", "json"],
    ),
    (
        "[[client]]\ntarget = 'redis'\nmodel = 'closed'\nrate = 5\n",
        &["line 3", "rate"],
    ),
    (
        "[[client]]\ntarget = 'redis'\n\nduration = '5 seconds'\n",
        &["line 4", "duration"],
    ),
    (
        "[[client]]\ntarget = 'aerospike'\nconnections = 4\npipeline = 2\n",
        &["one request at a time"],
    ),
    (
        "[[client]]\ntarget = 'redis'\n[expect.service]\np50 = '5 percent'\n",
        &["line 4", "tolerance"],
    ),
];

#[test]
fn wrong_files_are_refused_with_line_and_key() {
    for (text, parts) in WRONG {
        let error = Scenario::parse("wrong", text).expect_err(text).to_string();
        for part in parts {
            assert!(
                error.contains(part),
                "{part:?} is not in: {error}\nof\n{text}"
            );
        }
    }
}

#[test]
fn two_clients_of_one_name_are_refused() {
    let client = "[[client]]\ntarget = 'redis'\n";
    let error = Scenario::parse("twins", &client.repeat(2))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("line 3") && error.contains("redis closed loop"),
        "{error}"
    );
}

#[test]
fn every_file_that_comes_with_the_project_is_legal() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
            count += 1;
        }
    }
    assert!(count >= 4, "{count} scenarios");
}

#[test]
fn the_examples_of_the_document_are_legal() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/scenario-format.md");
    let document = std::fs::read_to_string(path).unwrap();
    let examples: Vec<&str> = document
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(examples.len(), 3);
    let parts = examples.iter().map(|text| {
        let scenario = Scenario::parse("example", text);
        scenario
            .unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
            .parts
            .len()
    });
    assert_eq!(parts.collect::<Vec<_>>(), [1, 6, 4]);
}
