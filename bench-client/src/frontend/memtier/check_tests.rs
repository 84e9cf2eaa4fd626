//! Rules, one line each: a command line that breaks it, and a part of what is said.

use super::super::getopt;
use super::*;

fn checked(line: &str) -> Result<Vec<String>, String> {
    let given = getopt::parse(shlex(line)).map_err(|error| error.to_string())?;
    let options = Options::read(&given).map_err(|error| error.to_string())?;
    check(&options).map_err(|error| error.to_string())
}

/// Blanks part, single quotes hold together.
fn shlex(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    quoted
        .flat_map(|(place, part)| {
            if place % 2 == 1 {
                vec![part.to_owned()]
            } else {
                part.split_whitespace().map(str::to_owned).collect()
            }
        })
        .collect()
}

#[test]
fn combinations_that_make_no_sense_are_refused() {
    for (line, part) in [
        ("-S /s -s h", "either --unix-socket or --server"),
        ("-S /s -p 1", "either --unix-socket or --port"),
        ("-S /s -u redis://h", "either --unix-socket or --uri"),
        (
            "-S /s --cluster-mode",
            "either --unix-socket or --cluster-mode",
        ),
        ("-n 5 --test-time 5", "either --test-time or --requests"),
        ("--test-time 5 -n 5", "either --test-time or --requests"),
        (
            "--test-time 5 -n allkeys",
            "either --test-time or --requests",
        ),
        (
            "--cluster-mode --reconnect-interval 5",
            "--reconnect-interval",
        ),
        ("--cluster-mode --wait-ratio 1:1", "--wait-ratio"),
        ("--cluster-mode --select-db 1", "--select-db"),
        ("--cluster-mode -u redis://h/1", "--select-db"),
        ("--cluster-mode --data-import f", "--data-import"),
        (
            "--cluster-mode --command 'MGET __key__ __key__'",
            "at most one __key__",
        ),
        (
            "--cluster-mode --multi-key-get 2",
            "a hash tag in --key-prefix",
        ),
        (
            "--cluster-mode --key-prefix {} --multi-key-get 2",
            "a hash tag in --key-prefix",
        ),
        ("--transaction", "a --command"),
        (
            "--transaction --command PING --read-preference nearest",
            "mutually exclusive",
        ),
        ("--command PING --ratio 1:1", "--command-ratio"),
        ("--command PING --key-pattern S:S", "--command-key-pattern"),
        (
            "--command PING --command-key-pattern P --command PING",
            "P for all commands or for none, found 1 of 2",
        ),
        ("--scan-incremental-iteration", "exactly one --command"),
        (
            "--scan-incremental-iteration --command PING",
            "of the form 'SCAN 0 …'",
        ),
        (
            "--scan-incremental-iteration --command SCAN",
            "of the form 'SCAN 0 …'",
        ),
        (
            "--scan-incremental-iteration --command 'SCAN 0' --pipeline 2",
            "--pipeline 1",
        ),
        (
            "--scan-incremental-iteration --command 'SCAN 0' --command PING",
            "exactly one --command",
        ),
        ("--clients-start 1", "--clients-step beside it"),
        (
            "--clients-start 1 --clients-step 1",
            "--step-duration beside it",
        ),
        ("--step-duration 1", "--clients-start beside it"),
        (
            "-c 5 --clients-start 5 --clients-step 1 --step-duration 1 --test-time 9",
            "fewer than --clients (5)",
        ),
        (
            "-c 5 --clients-start 1 --clients-step 1 --step-duration 1",
            "a --test-time beside it",
        ),
        (
            "-c 5 --clients-start 1 --clients-step 1 --step-duration 1 -n 5",
            "either --clients-start or --requests",
        ),
        (
            "--thread-conn-start-min-jitter-micros 2 --thread-conn-start-max-jitter-micros 1",
            "at most --thread-conn-start-max-jitter-micros (1), found 2",
        ),
        ("--data-verify", "a --data-import"),
        ("--verify-only", "a --data-import"),
        ("--no-expiry", "a --data-import"),
        (
            "--data-import f -d 5",
            "either --data-size or --data-import",
        ),
        (
            "--data-import f -R",
            "either --random-data or --data-import",
        ),
        ("--data-import f --key-prefix k", "--generate-keys"),
        (
            "-d 5 --data-size-list 1:1",
            "either --data-size or --data-size-list",
        ),
        (
            "-d 5 --data-size-range 1-2",
            "either --data-size or --data-size-range",
        ),
        (
            "--data-size-list 1:1 --data-size-range 1-2",
            "either --data-size-list or --data-size-range",
        ),
        (
            "--data-offset 1 --expiry-range 1-2",
            "either --data-offset or --expiry-range",
        ),
        (
            "--key-minimum 11 --key-maximum 10",
            "at most --key-maximum (10), found 11",
        ),
        ("--key-stddev 5", "a key pattern G"),
        ("--key-median 5 --key-pattern R:R", "a key pattern G"),
        (
            "--key-median 11 --key-pattern G:G --key-maximum 10",
            "a key between 0 and 10",
        ),
        ("-o f --json-out-file f", "another file than --out-file"),
    ] {
        let error = checked(line).unwrap_err();
        assert!(error.contains(part), "{line}: {error}");
        assert!(error.starts_with("--"), "{line}: {error}");
    }
}

#[test]
fn command_lines_of_the_field_are_legal() {
    for line in [
        "",
        "-a USERNAME:PASSWORD -s HOST -p 7000 --tls --tls-skip-verify -t 4 -n 10000 --ratio 1:1 \
         -c 25 -x 10 -d 100 --key-pattern S:S",
        "-t 2 -c 4 -n allkeys --key-pattern P:P --key-minimum 1 --key-maximum 1000 --ratio 1:0",
        "--command 'SET __key__ __data__' --command-ratio 2 --command-key-pattern S \
         --command 'GET __key__' -d 64",
        "--data-size-range 10-200 --expiry-range 5-10 --key-pattern G:G --key-stddev 3 -R",
        "--command 'GET __key__' --command-key-pattern G --key-median 7",
        "-c 6 --clients-start 2 --clients-step 2 --step-duration 1 --test-time 4",
        "--scan-incremental-iteration --command 'SCAN 0 COUNT 20' --pipeline 1",
        "--data-import f --data-verify --generate-keys --key-prefix k",
        "-o /dev/null --json-out-file /dev/null",
    ] {
        assert_eq!(checked(line), Ok(Vec::new()), "{line}");
    }
}

#[test]
fn what_has_no_effect_is_said() {
    for (line, part) in [
        ("-u redis://h:1 -s other", "--server is passed over"),
        ("-u redis://h:1 -p 2", "--port is passed over"),
        ("-u redis://a:b@h -a c", "--authenticate is passed over"),
        ("-u redis://h/1 --select-db 2", "--select-db is passed over"),
        (
            "--tls-skip-verify",
            "--tls-skip-verify has no effect without --tls",
        ),
        (
            "--read-preference secondary",
            "--read-preference has no effect",
        ),
        (
            "--command PING --wait-ratio 1:1",
            "--wait-ratio has no effect",
        ),
        ("--num-slaves 1-1", "--num-slaves has no effect"),
    ] {
        let warnings = checked(line).unwrap();
        assert!(
            warnings.iter().any(|warning| warning.contains(part)),
            "{line}: {warnings:?}"
        );
    }
    assert_eq!(checked("-u rediss://h --tls-skip-verify"), Ok(Vec::new()));
}
