//! What option lines become, and which lines are refused with which words.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Parser;
use kvlab_timing::Rate;

use super::*;
use crate::settings::{
    Address, AerospikeTarget, AerospikeVerb, Arrivals, Backoff, ConnectSettings, KeyPattern, Load,
    MixOrder, PipelineMode, RedisTarget, Renew, RespVersion, SizeDistribution, Stop, Target,
    WhenDown,
};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    bench: BenchArgs,
}

fn parse(line: &str) -> Result<BenchArgs, clap::Error> {
    let words = std::iter::once("bench").chain(line.split('|'));
    Line::try_parse_from(words).map(|line| line.bench)
}

fn settings(line: &str) -> Result<Settings, UsageError> {
    let addresses = Addresses::one("127.0.0.1:7".parse().unwrap());
    parse(line).unwrap().settings(&addresses)
}

fn redis(line: &str) -> RedisTarget {
    match settings(line).unwrap().target {
        Target::Redis(target) => target,
        Target::Aerospike(_) => panic!("{line} is not for RESP"),
    }
}

#[test]
fn a_socket_file_takes_the_place_of_host_and_port() {
    let target = redis("redis://h/3|--unix-socket=/run/redis.sock");
    assert_eq!(target.address, Address::unix("/run/redis.sock"));
    assert_eq!(target.database, 3);
    for (line, expected) in [
        ("aerospike://h|--unix-socket=/s", "a RESP server"),
        ("rediss://h|--unix-socket=/s", "a URL without TLS"),
    ] {
        let error = settings(line).unwrap_err().to_string();
        assert!(
            error.starts_with("--unix-socket") && error.contains(expected),
            "{error}"
        );
    }
}

fn aerospike(line: &str) -> AerospikeTarget {
    match settings(line).unwrap().target {
        Target::Aerospike(target) => target,
        Target::Redis(_) => panic!("{line} is not for Aerospike"),
    }
}

#[test]
fn a_bare_url_runs_fifty_connections_closed_for_ten_seconds() {
    let settings = settings("redis://h").unwrap();
    assert_eq!(settings.threads.get(), 1);
    assert_eq!(settings.connections.get(), 50);
    assert_eq!(settings.pipeline.depth.get(), 1);
    assert_eq!(settings.load, Load::Closed);
    let stop = Stop {
        duration: Some(Duration::from_secs(10)),
        requests: None,
    };
    assert_eq!(settings.stop, stop);
    assert_eq!(settings.warmup, Duration::ZERO);
    assert_eq!(settings.keys.count.get(), 10_000);
    assert_eq!(settings.keys.pattern, KeyPattern::Uniform);
    assert_eq!(settings.values.size, SizeDistribution::Fixed(32));
    assert_eq!(settings.seed, 1);
    assert_eq!(settings.timeout, Duration::from_secs(5));
    let names: Vec<_> = settings
        .target
        .classes()
        .into_iter()
        .map(|class| (class.name, class.weight))
        .collect();
    assert_eq!(names, [("SET".to_owned(), 1), ("GET".to_owned(), 10)]);
}

#[test]
fn every_option_of_the_load_arrives() {
    let settings = settings(
        "redis://h|--threads=2|--connections=8|--pipeline=16|--pipeline-mode=batch|--rate=2.5k|\
         --arrivals=poisson|--duration=3s|--requests=1M|--warmup=500ms|--timeout=250ms|\
         --connect-timeout=2s|--drain=9s|--keys=100-199|--key-prefix=k|--key-pattern=zipf(1.1)|\
         --value-size=10-20|--seed=42|--mix=cycle|--ratio=0:1",
    )
    .unwrap();
    assert_eq!(settings.threads.get(), 2);
    assert_eq!(settings.connections.get(), 8);
    assert_eq!(settings.pipeline.depth.get(), 16);
    assert_eq!(settings.pipeline.mode, PipelineMode::Batch);
    let open = Load::Open {
        rate: Rate::per_second(2_500).unwrap(),
        arrivals: Arrivals::Poisson,
    };
    assert_eq!(settings.load, open);
    let stop = Stop {
        duration: Some(Duration::from_secs(3)),
        requests: Some(1_000_000),
    };
    assert_eq!(settings.stop, stop);
    assert_eq!(settings.warmup, Duration::from_millis(500));
    assert_eq!(settings.timeout, Duration::from_millis(250));
    assert_eq!(settings.connect_timeout, Duration::from_secs(2));
    assert_eq!(settings.drain, Duration::from_secs(9));
    assert_eq!((settings.keys.first, settings.keys.count.get()), (100, 100));
    assert_eq!(settings.keys.prefix, "k");
    assert_eq!(settings.keys.pattern, KeyPattern::Zipf { exponent: 1.1 });
    let size = SizeDistribution::Uniform {
        least: 10,
        most: 20,
    };
    assert_eq!(settings.values.size, size);
    assert_eq!(settings.seed, 42);
    assert_eq!(settings.mix, MixOrder::Cycle);
    assert_eq!(settings.target.classes().len(), 1);
}

#[test]
fn every_option_of_the_connections_arrives() {
    let settings = settings(
        "redis://h|--connections=100|--connect-rate=400|--connect-burst=50|--connect-jitter=5ms|\
         --connect-timeout=3s|--setup-timeout=20s|--connect-probe|--backoff=5ms..2s|\
         --reconnect-attempts=3|--when-down=drop|--reconnect-every=30s,exponential",
    )
    .unwrap();
    let expected = ConnectSettings {
        rate: Some(Rate::per_second(400).unwrap()),
        burst: NonZeroU32::new(50).unwrap(),
        jitter: Duration::from_millis(5),
        setup_timeout: Some(Duration::from_secs(20)),
        when_down: WhenDown::Drop,
        renew: Renew::Exponential(Duration::from_secs(30)),
    };
    assert_eq!(settings.connects, expected);
    assert_eq!(settings.connect_timeout, Duration::from_secs(3));
    let backoff = Backoff {
        first: Duration::from_millis(5),
        factor: 2.0,
        most: Duration::from_secs(2),
        attempts: 3,
    };
    assert_eq!(settings.backoff, backoff);
    assert!(redis("redis://h|--connect-probe").probe);
}

#[test]
fn the_set_up_has_time_for_its_ramp_and_three_attempts() {
    // 101 connections at 10 per second take 10 s, and three attempts of 5 s follow.
    let ramp = settings("redis://h|--connections=101|--connect-rate=10").unwrap();
    assert_eq!(ramp.setup_limit(), Duration::from_secs(25));
    let given = settings("redis://h|--setup-timeout=2s|--connect-timeout=9s").unwrap();
    assert_eq!(given.setup_limit(), Duration::from_secs(2));
}

#[test]
fn required_connections_are_all_or_a_number() {
    let required = |line: &str| {
        let all = NonZeroU32::new(40).unwrap();
        parse(line).unwrap().connect.required(all)
    };
    assert_eq!(required("redis://h"), None);
    assert_eq!(required("redis://h|--require-connections"), Some(40));
    assert_eq!(required("--require-connections=7|redis://h"), Some(7));
}

#[test]
fn a_number_of_requests_needs_no_duration() {
    let stop = settings("redis://h|--requests=10").unwrap().stop;
    let expected = Stop {
        duration: None,
        requests: Some(10),
    };
    assert_eq!(stop, expected);
}

#[test]
fn more_threads_bring_their_connections() {
    let settings = settings("redis://h|--threads=60").unwrap();
    assert_eq!(settings.connections.get(), 60);
}

#[test]
fn redis_target_comes_from_url_and_commands() {
    let target = redis("redis://joe:pw@h:1/3|--resp=3|--command=3:INCR __key__|--command=PING");
    assert_eq!(target.user.as_deref(), Some("joe"));
    assert_eq!(target.password.unwrap().reveal(), "pw");
    assert_eq!(target.database, 3);
    assert_eq!(target.version, RespVersion::Three);
    let operations: Vec<_> = target
        .operations
        .iter()
        .map(|operation| (operation.name.as_str(), operation.weight))
        .collect();
    assert_eq!(operations, [("INCR", 3), ("PING", 1)]);
    assert_eq!(
        target.operations[0].arguments,
        [b"INCR".to_vec(), b"__key__".to_vec()]
    );
}

#[test]
fn aerospike_target_comes_from_url_and_operations() {
    let target = aerospike(
        "aerospike://h/ns/people|--operation=9:get,1:put|--operation=batch-read(5)|--bin=v|\
         --ttl=60|--send-key|--retries=2",
    );
    assert_eq!(
        (target.namespace.as_str(), target.set.as_str()),
        ("ns", "people")
    );
    assert_eq!((target.bin.as_str(), target.ttl), ("v", 60));
    assert!(target.send_key);
    assert_eq!(target.retries.most, 2);
    let operations: Vec<_> = target
        .operations
        .iter()
        .map(|operation| (operation.verb, operation.weight))
        .collect();
    let five = NonZeroU32::new(5).unwrap();
    let expected = [
        (AerospikeVerb::Get, 9),
        (AerospikeVerb::Put, 1),
        (AerospikeVerb::BatchRead(five), 1),
    ];
    assert_eq!(operations, expected);
}

#[test]
fn senseless_combinations_name_the_option() {
    let table = [
        ("redis://h|--arrivals=poisson", "--arrivals"),
        ("redis://h|--threads=3|--connections=2", "--connections"),
        ("redis://h|--requests=0", "--requests"),
        ("aerospike://h|--connect-probe", "--connect-probe"),
        ("redis://h|--pipeline=65537", "--pipeline"),
        ("redis://h|--operation=get", "--operation"),
        ("redis://h|--ttl=1", "--ttl"),
        ("redis://h|--ratio=1:1|--command=PING", "--ratio"),
        (
            "redis://h|--command=0:PING",
            "--ratio, --command, --operation",
        ),
        ("redis://h|--command=GET \"x", "--command"),
        ("redis://h|--key-pattern=zipf(0)", "--keys, --key-pattern"),
        ("redis://h|--value-size=20-10", "--value-size"),
        ("aerospike://h|--command=PING", "--command"),
        ("aerospike://h|--resp=3", "--resp"),
        ("aerospike://h|--pipeline=2", "--pipeline"),
        ("aerospike://h|--operation=scan", "--operation"),
        ("aerospike://h|--bin=a-name-of-16-byte", "--bin"),
    ];
    for (line, option) in table {
        let error = settings(line).unwrap_err();
        assert_eq!(error.option, option, "{line}");
    }
}

#[test]
fn usage_errors_say_what_was_expected_and_found() {
    let error = settings("redis://h|--threads=3|--connections=2").unwrap_err();
    assert_eq!(
        error.to_string(),
        "--connections: expected at least as many as --threads (3), found 2"
    );
    let error = settings("aerospike://h|--operation=scan").unwrap_err();
    assert_eq!(
        error.to_string(),
        "--operation: expected put, get, exists, remove, touch, operate or batch-read(N), \
         found scan"
    );
}

#[test]
fn single_values_are_refused_by_the_parser() {
    for line in [
        "",
        "localhost",
        "redis://h|--threads=0",
        "redis://h|--rate=0",
        "redis://h|--rate=20M",
        "redis://h|--duration=10",
        "redis://h|--duration=0s",
        "redis://h|--resp=4",
        "redis://h|--max-errors=x",
        "redis://h|--pipeline-mode=slide",
        "redis://h|--no-such-option",
    ] {
        let error = parse(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn one_stdout_serves_one_output() {
    let clash = parse("redis://h|--json=-|--csv=-").unwrap();
    let error = clash.output.destinations().unwrap_err();
    assert_eq!(error.option, "--json, --csv, --hdr-log, --html");
    let clash = parse("redis://h|--json=a|--hdr-log=a").unwrap();
    assert!(clash.output.destinations().is_err());
    let fine = parse("redis://h|--json=a|--hdr-log=b|--csv=-").unwrap();
    assert!(fine.output.destinations().is_ok());
}

#[test]
fn options_of_the_login_beat_those_of_the_url() {
    let target = redis("redis://joe:pw@h|--user=ann|--password=s");
    assert_eq!(target.user.as_deref(), Some("ann"));
    assert_eq!(target.password.unwrap().reveal(), "s");
    let target = redis("redis://h|--password=s");
    assert_eq!((target.user, target.password.is_some()), (None, true));
    assert_eq!(
        aerospike("aerospike://joe:pw@h").login.unwrap().user(),
        "joe"
    );
    let target = aerospike("aerospike://h|--user=ann|--password=s");
    assert_eq!(target.login.unwrap().user(), "ann");
    assert!(aerospike("aerospike://h").login.is_none());
    for (line, words) in [
        (
            "redis://h|--user=ann",
            "--user: expected --password beside it",
        ),
        ("aerospike://:pw@h", "expected a user, which a login"),
    ] {
        let error = settings(line).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn no_debug_form_of_the_options_shows_a_password() {
    let args = parse("redis://joe:secret@h|--password=secret").unwrap();
    let settings = settings("redis://joe:secret@h|--password=secret").unwrap();
    assert!(!format!("{args:?} {settings:?}").contains("secret"));
}
