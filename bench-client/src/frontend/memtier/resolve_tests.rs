//! Tests of the resolved plan, against exact arithmetic.

use super::super::check::check;
use super::super::getopt;
use super::*;
use crate::frontend::memtier::options::Family;
use crate::frontend::memtier::pattern::Patterns;

pub(in super::super) fn plan(words: &[&str]) -> Plan {
    let given = getopt::parse(words).unwrap();
    let options = Options::read(&given).unwrap();
    check(&options).unwrap();
    Plan::resolve(options, 99).unwrap()
}

#[test]
fn defaults_are_those_of_the_original() {
    let plan = plan(&[]);
    assert_eq!(
        plan.endpoint,
        Endpoint::Tcp {
            host: "localhost".into(),
            port: 6379,
            family: Family::Any
        }
    );
    assert_eq!((plan.threads, plan.clients, plan.pipeline), (4, 50, 1));
    assert_eq!(plan.length, Length::Requests(10_000));
    assert_eq!(plan.requests(), Some(4 * 50 * 10_000));
    assert_eq!((plan.runs, plan.rate), (1, None));
    assert_eq!(
        plan.traffic,
        Traffic::SetGet(SetGet {
            ratio: Ratio {
                first: 1,
                second: 10
            },
            patterns: Patterns::default(),
            keys_per_get: 1,
            wait: None,
        })
    );
    assert_eq!(
        plan.keys,
        Keys {
            prefix: "memtier-".into(),
            least: 0,
            most: 10_000_000,
            stddev: None,
            median: None,
            zipf_exponent: 1.0,
        }
    );
    assert_eq!(plan.keys.count(), 10_000_001);
    assert_eq!(
        plan.values,
        Values {
            size: Size::Fixed(32),
            random: false,
            offset: 0,
            expiry: None,
        }
    );
    assert_eq!(plan.reconnect.timeout, Duration::from_secs(30));
    assert_eq!(plan.max_errors, ErrorLimit::Share(0.01));
    assert!(!plan.tolerates_own_commands);
}

#[test]
fn the_command_that_everybody_copies_is_understood() {
    let plan = plan(&[
        "-a",
        "USERNAME:PASSWORD",
        "-s",
        "HOST",
        "-p",
        "7000",
        "--tls",
        "--tls-skip-verify",
        "-t",
        "4",
        "-n",
        "10000",
        "--ratio",
        "1:1",
        "-c",
        "25",
        "-x",
        "10",
        "-d",
        "100",
        "--key-pattern",
        "S:S",
    ]);
    let login = plan.login.clone().unwrap();
    assert_eq!(login.user.as_deref(), Some("USERNAME"));
    assert_eq!(login.password, "PASSWORD");
    assert_eq!(
        plan.endpoint,
        Endpoint::Tcp {
            host: "HOST".into(),
            port: 7000,
            family: Family::Any
        }
    );
    assert!(plan.tls.as_ref().is_some_and(|tls| tls.skip_verify));
    assert_eq!((plan.threads, plan.clients, plan.runs), (4, 25, 10));
    assert_eq!(plan.requests(), Some(1_000_000));
    assert_eq!(plan.values.size, Size::Fixed(100));
    let Traffic::SetGet(both) = &plan.traffic else {
        panic!("{:?}", plan.traffic);
    };
    assert_eq!(both.patterns.as_text(), "S:S");
    assert_eq!((both.ratio.first, both.ratio.second), (1, 1));
}

#[test]
fn all_keys_is_the_number_of_keys_or_the_longest_part() {
    let keys = ["-t", "2", "-c", "4", "-n", "allkeys", "--key-minimum", "1"];
    let with = |more: &[&str]| plan(&[&keys[..], more].concat()).length;
    // Golden 08 prints 125 for these.
    assert_eq!(
        with(&["--key-maximum", "1000", "--key-pattern", "P:P"]),
        Length::Requests(125)
    );
    assert_eq!(
        with(&["--key-maximum", "1001", "--key-pattern", "P:P"]),
        Length::Requests(126)
    );
    assert_eq!(with(&["--key-maximum", "1000"]), Length::Requests(1000));
}

#[test]
fn parts_of_the_keys_cover_each_once() {
    for (count, clients) in [(1000_u64, 8), (1001, 8), (7, 8), (10, 7), (1, 3)] {
        let keys = Keys {
            prefix: String::new(),
            least: 5,
            most: 5 + count - 1,
            stddev: None,
            median: None,
            zipf_exponent: 1.0,
        };
        let mut next = keys.least;
        for client in 0..clients {
            let (first, length) = keys.part(client, clients);
            assert_eq!(first, next, "{count} {clients} {client}");
            assert!(length == count / clients || length == count / clients + 1);
            next += length;
        }
        assert_eq!(next, keys.most + 1);
    }
}

#[test]
fn the_uri_wins_where_it_says_something() {
    let tcp = |host: &str, port| Endpoint::Tcp {
        host: host.into(),
        port,
        family: Family::Any,
    };
    let one = plan(&[
        "-u",
        "rediss://a:b@h:1/2",
        "-s",
        "other",
        "-p",
        "9",
        "-a",
        "x",
    ]);
    assert_eq!(one.endpoint, tcp("h", 1));
    assert_eq!(one.database, 2);
    assert!(one.tls.is_some());
    assert_eq!(one.login.unwrap().as_text(), "a:b");
    let other = plan(&["-u", "redis://h", "-p", "9", "-a", "x", "--select-db", "3"]);
    assert_eq!(other.endpoint, tcp("h", 9));
    assert_eq!(other.database, 3);
    assert!(other.tls.is_none());
    assert_eq!(other.login.unwrap().as_text(), "x");
}

#[test]
fn runs_draw_differently_unless_told_otherwise() {
    let distinct = |plan: &Plan| {
        let seeds: std::collections::HashSet<u64> =
            (1..=10).map(|run| plan.seed_of_run(run)).collect();
        seeds.len()
    };
    let one = plan(&["-x", "10", "--seed", "7"]);
    assert_eq!(one.seed_of_run(1), 7);
    assert_eq!(distinct(&one), 10);
    assert_eq!(distinct(&plan(&["-x", "10", "--same-seed"])), 1);
    // The same from call to call, unless it is to be random.
    assert_eq!(plan(&[]).seed, 1);
    assert_eq!(plan(&["--randomize"]).seed, 99);
    assert_eq!(plan(&["--randomize", "--seed", "4"]).seed, 4);
}

#[test]
fn commands_of_ones_own_may_be_refused_unless_a_limit_is_given() {
    let tolerates = |words: &[&str]| plan(words).tolerates_own_commands;
    assert!(tolerates(&["--command", "HSET __key__ f v"]));
    assert!(!tolerates(&[
        "--command",
        "HSET __key__ f v",
        "--max-errors",
        "1%"
    ]));
    assert!(!tolerates(&["--ratio", "1:1"]));
}

#[test]
fn a_staircase_rises_to_all_clients() {
    let plan = plan(&[
        "-c",
        "7",
        "--clients-start",
        "2",
        "--clients-step",
        "2",
        "--step-duration",
        "3",
        "--test-time",
        "20",
    ]);
    let stairs = plan.staircase_plan().unwrap();
    let clients: Vec<u64> = [0, 2, 3, 5, 6, 9, 12, 1_000_000]
        .into_iter()
        .map(|second| stairs.active(second).per_thread)
        .collect();
    assert_eq!(clients, [2, 2, 4, 4, 6, 7, 7, 7]);
}

#[test]
fn time_limits_of_set_up_have_an_end() {
    let timeout = |words: &[&str]| plan(words).reconnect.timeout.as_secs();
    assert_eq!(timeout(&["--connection-timeout", "3"]), 3);
    assert_eq!(timeout(&["--connection-timeout", "0"]), 30);
    assert_eq!(timeout(&["--connection-stage-timeout", "7"]), 7);
    assert_eq!(timeout(&["--connection-stage-timeout", "0"]), 3600);
}

#[test]
fn commands_carry_the_options_behind_them() {
    let plan = plan(&[
        "--command",
        "SET __key__ __data__",
        "--command-ratio",
        "2",
        "--command-key-pattern",
        "S",
        "--command",
        "GET __key__",
    ]);
    let Traffic::Commands(steps) = &plan.traffic else {
        panic!("{:?}", plan.traffic);
    };
    let seen: Vec<_> = steps
        .iter()
        .map(|step| (step.name.as_str(), step.ratio, step.pattern))
        .collect();
    assert_eq!(
        seen,
        [("SET", 2, Pattern::Sequential), ("GET", 1, Pattern::Random)]
    );
}

#[test]
fn monitor_placeholders_are_resolved_against_the_file() {
    let path = std::env::temp_dir().join(format!("kvlab-plan-{}", std::process::id()));
    std::fs::write(
        &path,
        "1 [0 a] \"SET\" \"k\" \"v\"\n2 [0 a] \"get\" \"k\"\n",
    )
    .unwrap();
    let file = format!("--monitor-input={}", path.display());
    let steps = |words: &[&str]| {
        let plan = plan(&[&[file.as_str()], words].concat());
        assert_eq!(plan.notes, ["Loaded 2 monitor commands from 2 total lines"]);
        match plan.traffic {
            Traffic::Commands(steps) => steps,
            other => panic!("{other:?}"),
        }
    };
    let line = steps(&["--command=__monitor_line2__"]);
    assert_eq!(line[0].name, "GET");
    assert_eq!(
        line[0].request,
        Request::Arguments(vec![b"get".to_vec(), b"k".to_vec()])
    );
    let by_line = [
        "--command=__monitor_line2__",
        "--command-stats-breakdown=line",
    ];
    assert_eq!(steps(&by_line)[0].name, "GET (Line 2)");
    let next = steps(&["--command=__monitor_line@__", "--monitor-pattern=r"]);
    assert!(matches!(
        &next[0].request,
        Request::Replay { commands, random: true } if commands.len() == 2
    ));
    for placeholder in ["__monitor_line3__", "__monitor_line1", "__monitor_line0__"] {
        let given = getopt::parse([file.clone(), format!("--command={placeholder}")]).unwrap();
        let options = Options::read(&given).unwrap();
        let refusal = Plan::resolve(options, 0).unwrap_err();
        assert!(
            refusal.text.contains("invalid monitor placeholder"),
            "{refusal:?}"
        );
    }
    std::fs::remove_file(&path).unwrap();
    // Without a capture it is a command like any other.
    let literal = plan(&["--command=__monitor_line1__"]);
    let Traffic::Commands(steps) = literal.traffic else {
        panic!();
    };
    assert_eq!(
        steps[0].request,
        Request::Arguments(vec![b"__monitor_line1__".to_vec()])
    );
}
