//! Table tests: what each option takes, what it becomes, and what it refuses.

use super::super::getopt;
use super::super::table::TABLE;
use super::*;

fn read(words: &[&str]) -> Result<Options, String> {
    let given = getopt::parse(words).map_err(|error| error.to_string())?;
    Options::read(&given).map_err(|error| error.to_string())
}

/// A legal argument of each option that takes one.
fn example(name: Name) -> &'static str {
    match name {
        Name::Uri => "redis://h",
        Name::Protocol => "resp3",
        Name::TlsProtocols => "TLSv1.2,tlsv1.3",
        Name::ReadPreference => "secondaryPreferred",
        Name::ReadPreferenceFallback => "queue",
        Name::ReadServer => "h:1",
        Name::PrintPercentiles => "50,99.9",
        Name::CommandStatsBreakdown => "LINE",
        Name::CommandMissTracking => "off",
        Name::Ratio | Name::WaitRatio => "1:10",
        Name::Command => "GET __key__",
        Name::CommandKeyPattern => "Z",
        Name::MonitorPattern => "r",
        Name::DataSizeList => "1:2",
        Name::DataSizeRange | Name::ExpiryRange | Name::NumSlaves | Name::WaitTimeout => "1-9",
        Name::DataSizePattern => "S",
        Name::KeyPattern => "G:Z",
        Name::LatencyFrom => "send",
        Name::Warmup => "500ms",
        Name::MaxErrors => "0.5%",
        Name::ConnectRate => "100",
        _ => "4",
    }
}

#[test]
fn every_option_finds_its_place() {
    for row in TABLE {
        let mut words = vec![row.spelled];
        if row.argument.is_some() {
            words.push(example(row.name));
        }
        if matches!(
            row.name,
            Name::CommandRatio | Name::CommandKeyPattern | Name::CommandIsRead
        ) {
            let error = read(&words).unwrap_err();
            assert!(error.contains("a --command before it"), "{error}");
            words.splice(0..0, ["--command", "PING"]);
        }
        let options = read(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let changed = format!("{options:?}") != format!("{:?}", Options::default());
        // Two do not change the options, one asks for what is the case anyway.
        let idle = matches!(row.name, Name::Help | Name::Version | Name::ResponseTime);
        assert_eq!(changed, !idle, "{}", row.spelled);
    }
}

#[test]
fn every_argument_that_cannot_be_read_is_named_in_one_line() {
    for (option, wrong) in [
        ("--server", &[""][..]),
        ("--port", &["0", "70000", "-1", "x", "", "7e3"]),
        (
            "--protocol",
            &["memcache_text", "memcache_binary", "resp4", ""],
        ),
        ("--uri", &["", "not-a-uri", "invalid://h"]),
        (
            "--tls-protocols",
            &["", "TLSv1", "TLSv1.1", "TLSv1.4", "TLSv1.2,"],
        ),
        ("--read-preference", &["bogus", "Primary"]),
        ("--read-preference-fallback", &["bogus"]),
        ("--read-server", &["h", "h:", "h:x", ":1", ""]),
        ("--run-count", &["0", "-1", "1001"]),
        ("--select-db", &["-1", "x", "4294967296"]),
        ("--print-percentiles", &["150", "-1", "a"]),
        ("--latency-window", &["3601", "-1"]),
        ("--command-stats-breakdown", &["lines", ""]),
        ("--command-miss-tracking", &["on"]),
        ("--miss-rate-threshold", &["101", "-1"]),
        ("--statsd-port", &["0", "65536"]),
        ("--graphite-port", &["0", "65536"]),
        ("--requests", &["0", "-1", "all", "10k"]),
        ("--rate-limiting", &["0", "-1", "10000001"]),
        ("--clients", &["0", "-1", "4294967295"]),
        ("--threads", &["0", "-1", "1025"]),
        ("--test-time", &["0", "-1", "5s"]),
        ("--clients-start", &["0"]),
        ("--clients-step", &["0"]),
        ("--step-duration", &["0"]),
        ("--ratio", &["0:0", "1", "1:x", "-1:1"]),
        ("--pipeline", &["0", "-1", "65537"]),
        ("--multi-key-get", &["0"]),
        ("--reconnect-interval", &["0"]),
        ("--max-reconnect-attempts", &["-1"]),
        ("--reconnect-backoff-factor", &["0", "-1", "101"]),
        ("--connection-timeout", &["-1"]),
        ("--connection-stage-timeout", &["-1"]),
        ("--max-retries", &["-2", "x"]),
        ("--retry-on", &["", "A,,B"]),
        (
            "--command",
            &["", "__key__", "SET k \"v", "SET k x__data__"],
        ),
        ("--monitor-pattern", &["X", "SR"]),
        ("--data-size", &["0", "-1", "536870913"]),
        ("--data-offset", &["-1", "536870912"]),
        ("--data-size-range", &["0-9", "9", "1-536870913"]),
        ("--data-size-list", &["1", "1:0", "0:1"]),
        ("--data-size-pattern", &["X", "r"]),
        ("--expiry-range", &["0-0", "9", "1-4294967295"]),
        ("--key-minimum", &["-1", "18446744073709551615"]),
        ("--key-maximum", &["0", "-1"]),
        ("--key-pattern", &["R", "R:X", "P:R", "r:r"]),
        ("--key-stddev", &["0", "-1", "nan"]),
        ("--key-median", &["0", "-1"]),
        ("--key-zipf-exp", &["0", "5", "5.1", "-1"]),
        ("--wait-ratio", &["0:0", "1"]),
        ("--num-slaves", &["0-0", "1"]),
        ("--wait-timeout", &["0-0", "x-1"]),
        ("--latency-from", &["schedule"]),
        ("--warmup", &["5", "-1s"]),
        ("--seed", &["-1", "x"]),
        ("--max-errors", &["0.5", "101%"]),
        ("--connect-rate", &["0", "-1", "x"]),
    ] {
        for value in wrong {
            let error = read(&[&format!("{option}={value}")]).unwrap_err();
            assert!(
                error.starts_with(&format!("{option}: expected ")),
                "{option}={value}: {error}"
            );
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
    for option in [
        "--command-ratio=0",
        "--command-ratio=-1",
        "--command-key-pattern=X",
    ] {
        let error = read(&["--command=PING", option]).unwrap_err();
        assert!(
            option.starts_with(error.split(':').next().unwrap()),
            "{error}"
        );
    }
}

#[test]
fn memcache_is_refused_by_its_name() {
    for protocol in ["memcache_text", "memcache_binary"] {
        let error = read(&["-P", protocol]).unwrap_err();
        assert_eq!(
            error,
            format!(
                "--protocol: expected redis, resp2 or resp3; the memcache protocols are not \
                 supported, found {protocol:?}"
            )
        );
    }
}

#[test]
fn the_last_of_a_repeated_option_counts() {
    let options = read(&[
        "-s", "a", "-h", "b", "-4", "-6", "-D", "-D", "-n", "5", "-n", "allkeys",
    ]);
    let options = options.unwrap();
    assert_eq!(options.connection.server.as_deref(), Some("b"));
    assert_eq!(options.connection.family, Family::V6);
    assert_eq!(options.connection.debug, 2);
    assert_eq!(options.test.requests, Some(Requests::AllKeys));
}

#[test]
fn options_behind_a_command_speak_of_it_alone() {
    let options = read(&[
        "--command",
        "PING",
        "--command-ratio",
        "3",
        "--command",
        "GET __key__",
        "--command-key-pattern",
        "S",
        "--command-is-read",
    ])
    .unwrap();
    let seen: Vec<_> = options
        .commands
        .commands
        .iter()
        .map(|command| {
            (
                command.name(),
                command.ratio,
                command.pattern,
                command.is_read,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("PING".to_owned(), 3, Pattern::Random, false),
            ("GET".to_owned(), 1, Pattern::Sequential, true)
        ]
    );
}

#[test]
fn retries_without_end_are_minus_one() {
    let most = |value: &str| read(&["--max-retries", value]).unwrap().retry.max_retries;
    assert_eq!((most("-1"), most("0"), most("7")), (None, Some(0), Some(7)));
}

#[test]
fn verify_only_verifies() {
    let objects = read(&["--verify-only"]).unwrap().objects;
    assert!(objects.verify && objects.verify_only);
}

#[test]
fn no_debug_text_shows_a_password() {
    let options = read(&["-a", "bob:secret"]).unwrap();
    assert!(!format!("{options:?}").contains("secret"));
}
