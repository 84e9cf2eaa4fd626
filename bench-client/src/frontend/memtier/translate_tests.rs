//! Tests of the translation, against exact arithmetic.

use super::super::model::RowKind;
use super::super::resolve::tests::plan;
use super::*;
use crate::settings::{NumberLaw, Rotation, RotationRequest, StepKind};

fn translated(words: &[&str]) -> Settings {
    let translation = plan(words).translate(address()).unwrap();
    translation.settings.check().unwrap();
    translation.settings
}

fn address() -> SocketAddr {
    "127.0.0.1:7000".parse().unwrap()
}

fn lack(words: &[&str]) -> String {
    plan(words).translate(address()).unwrap_err().to_string()
}

fn operations(settings: &Settings) -> Vec<(String, u32, Option<KeyPattern>)> {
    let Target::Redis(target) = &settings.target else {
        panic!("{settings:?}");
    };
    target
        .operations
        .iter()
        .map(|operation| {
            let text: Vec<_> = operation
                .arguments
                .iter()
                .map(|argument| String::from_utf8_lossy(argument).into_owned())
                .collect();
            (text.join(" "), operation.weight, operation.pattern)
        })
        .collect()
}

#[test]
fn counts_are_per_client() {
    let settings = translated(&["-t", "3", "-c", "5", "-n", "70", "--pipeline", "4"]);
    assert_eq!(settings.threads.get(), 3);
    assert_eq!(settings.connections.get(), 15);
    assert_eq!(settings.stop.requests, Some(3 * 5 * 70));
    assert_eq!(settings.stop.duration, None);
    assert_eq!(settings.pipeline.depth.get(), 4);
    assert_eq!(settings.clients, Clients::Alike);
    let distinct = translated(&["--distinct-client-seed"]);
    assert_eq!(distinct.clients, Clients::Separate);
    assert_eq!(settings.load, Load::Closed);
    let timed = translated(&["--test-time", "3"]);
    assert_eq!(timed.stop.duration, Some(Duration::from_secs(3)));
    assert_eq!(timed.stop.requests, None);
}

#[test]
fn the_rate_is_that_of_all_connections() {
    let settings = translated(&["-t", "2", "-c", "3", "--rate-limiting", "51"]);
    assert_eq!(
        settings.load,
        Load::Open {
            rate: Rate::per_second(2 * 3 * 51).unwrap(),
            arrivals: Arrivals::Uniform,
        }
    );
}

#[test]
fn set_and_get_follow_each_other_in_a_cycle() {
    let settings = translated(&["--key-pattern", "S:R"]);
    assert_eq!(settings.mix, MixOrder::Cycle);
    assert_eq!(
        operations(&settings),
        [
            (
                "SET __key__ __data__".to_owned(),
                1,
                Some(KeyPattern::Sequential)
            ),
            ("GET __key__".to_owned(), 10, Some(KeyPattern::Uniform)),
        ]
    );
    let only = |ratio| operations(&translated(&["--ratio", ratio]));
    assert_eq!(only("1:0").len(), 1);
    assert_eq!(only("0:3")[0].0, "GET __key__");
}

#[test]
fn other_writes_and_reads_are_those_of_the_original() {
    let texts = |words: &[&str]| -> Vec<(String, u32)> {
        operations(&translated(words))
            .into_iter()
            .map(|(text, weight, _)| (text, weight))
            .collect()
    };
    assert_eq!(
        texts(&["--data-offset", "100", "--ratio", "1:1"]),
        [
            ("SETRANGE __key__ 100 __data__".to_owned(), 1),
            ("GETRANGE __key__ 100 -1".to_owned(), 1)
        ]
    );
    assert_eq!(
        texts(&["--expiry-range", "60-60", "--ratio", "1:0"]),
        [("SETEX __key__ 60 __data__".to_owned(), 1)]
    );
    assert_eq!(
        texts(&["--multi-key-get", "2"])[1],
        ("MGET __key__ __key__".to_owned(), 5)
    );
}

/// The steps of the rotation, each with the text of its request; `next` and `any` are replays.
fn steps(rotation: &Rotation) -> Vec<(String, u32)> {
    let text = |what| match what {
        StepKind::Request(place) => request_text(&rotation.requests[place]),
        StepKind::ReplayNext => "next".to_owned(),
        StepKind::ReplayAny => "any".to_owned(),
    };
    let steps = rotation.steps.iter();
    steps.map(|step| (text(step.what), step.times)).collect()
}

fn request_text(request: &RotationRequest) -> String {
    let words: Vec<_> = request
        .arguments
        .iter()
        .map(|argument| String::from_utf8_lossy(argument))
        .collect();
    words.join(" ")
}

fn rotation(words: &[&str]) -> Rotation {
    let Target::Redis(target) = translated(words).target else {
        panic!();
    };
    target.rotation.unwrap()
}

#[test]
fn the_last_read_of_a_round_has_the_keys_that_are_left() {
    for pattern in ["R:R", "S:S", "P:P", "G:G", "Z:Z"] {
        let rotation = rotation(&["--multi-key-get", "3", "--key-pattern", pattern]);
        // Ten keys three at a time.
        assert_eq!(
            steps(&rotation),
            [
                ("SET __key__ __data__".to_owned(), 1),
                ("MGET __key__ __key__ __key__".to_owned(), 3),
                ("MGET __key__".to_owned(), 1),
            ]
        );
        let operations: Vec<_> = rotation.requests.iter().map(|one| one.operation).collect();
        assert_eq!(operations, [0, 1, 1]);
    }
}

#[test]
fn times_to_live_are_drawn_from_their_range() {
    let settings = translated(&["--expiry-range", "20-10", "--ratio", "1:0"]);
    let Target::Redis(target) = &settings.target else {
        panic!();
    };
    assert_eq!(
        operations(&settings)[0].0,
        "SETEX __key__ __number__ __data__"
    );
    assert_eq!(
        target.operations[0].numbers,
        [NumberLaw::Uniform {
            least: 10,
            most: 20
        }]
    );
}

#[test]
fn waits_come_at_the_start_and_between_the_sets() {
    let words = [
        "--ratio",
        "1:1",
        "--wait-ratio",
        "10:3",
        "--num-slaves",
        "0-1",
        "--wait-timeout",
        "1-9",
    ];
    let rotation = rotation(&words);
    let between = rotation.between.unwrap();
    // 10 / 3, rounded down.
    assert_eq!((between.quotient, between.counted), (3, Some(0)));
    let wait = &rotation.requests[between.request];
    assert_eq!(request_text(wait), "WAIT __number__ __number__");
    assert_eq!(
        wait.numbers,
        [
            NumberLaw::Uniform { least: 0, most: 1 },
            NumberLaw::Bell { least: 1, most: 9 },
        ]
    );
    assert_eq!(steps(&rotation).len(), 2);
    let rows = plan(&words).translate(address()).unwrap().rows;
    assert_eq!(rows.row_of(wait.operation), Some(2), "the row of Waits");
    let reads = self::rotation(&["--ratio", "0:1", "--wait-ratio", "1:1"]);
    assert_eq!(reads.between.unwrap().counted, None);
    assert!(plan(&["--wait-ratio", "5:0"]).classes().is_ok());
    let Target::Redis(target) = translated(&["--wait-ratio", "5:0"]).target else {
        panic!();
    };
    assert_eq!(target.rotation, None, "no WAIT to so many SETs");
}

#[test]
fn commands_are_sent_as_often_in_a_row_as_their_ratio_says() {
    let translation = plan(&[
        "--command",
        "SET k:__key__:x __data__",
        "--command-ratio",
        "2",
        "--command",
        "GET __key__",
        "--command-key-pattern",
        "Z",
        "--command",
        "set a __data__",
    ])
    .translate(address())
    .unwrap();
    let Target::Redis(target) = &translation.settings.target else {
        panic!();
    };
    let rotation = target.rotation.as_ref().unwrap();
    assert_eq!(
        steps(rotation),
        [
            ("SET k:__key__:x __data__".to_owned(), 2),
            ("GET __key__".to_owned(), 1),
            ("set a __data__".to_owned(), 1),
        ]
    );
    let requests = rotation.requests.iter();
    let kinds: Vec<_> = requests.map(|one| (one.operation, one.pattern)).collect();
    let zipf = KeyPattern::ZipfByNumber { exponent: 1.0 };
    assert_eq!(
        kinds,
        [
            (0, Some(KeyPattern::Uniform)),
            (1, Some(zipf)),
            (0, Some(KeyPattern::Uniform)),
        ]
    );
    let rows: Vec<_> = translation.rows.rows().iter().map(RowKind::label).collect();
    assert_eq!(rows, ["Sets", "Gets"]);
    let places: Vec<_> = (0..3).map(|class| translation.rows.row_of(class)).collect();
    assert_eq!(places, [Some(0), Some(1), None]);
}

#[test]
fn a_hundred_commands_of_three_names_have_three_rows() {
    let mut words = Vec::new();
    let commands: Vec<String> = (0..100)
        .map(|n| format!("{} k{n}", ["GET", "INCR", "DEL"][n % 3]))
        .collect();
    for command in &commands {
        words.extend(["--command", command]);
    }
    let translation = plan(&words).translate(address()).unwrap();
    translation.settings.check().unwrap();
    let rows: Vec<_> = translation.rows.rows().iter().map(RowKind::label).collect();
    assert_eq!(rows, ["Gets", "Incrs", "Dels"]);
    assert_eq!(rotation(&words).steps.len(), 100);
    // A row for each line has its bound.
    words.extend(["--command-stats-breakdown", "line"]);
    assert_eq!(
        plan(&words).translate(address()).unwrap().rows.rows().len(),
        100
    );
    for command in commands.iter().chain(&commands) {
        words.extend(["--command", command]);
    }
    let text = lack(&words);
    assert!(text.contains("more than 255 rows"), "{text}");
}

#[test]
fn rows_per_line_keep_equal_commands_apart() {
    let translation = plan(&[
        "--command",
        "SET a __data__",
        "--command",
        "SET b __data__",
        "--command-stats-breakdown",
        "line",
    ])
    .translate(address())
    .unwrap();
    let rows: Vec<_> = translation.rows.rows().iter().map(RowKind::label).collect();
    assert_eq!(rows, ["Sets", "Sets"]);
}

#[test]
fn rows_of_set_and_get_are_there_without_them() {
    let translation = plan(&["--ratio", "0:1"]).translate(address()).unwrap();
    let rows: Vec<_> = translation.rows.rows().iter().map(RowKind::label).collect();
    assert_eq!(rows, ["Sets", "Gets", "Waits"]);
    assert_eq!(translation.rows.row_of(0), Some(1));
}

#[test]
fn gaussian_keys_have_the_middle_and_the_width_of_the_original() {
    let pattern = |words: &[&str]| {
        let keys = [
            "--key-pattern",
            "G:G",
            "--key-minimum",
            "101",
            "--key-maximum",
            "700",
        ];
        translated(&[&keys[..], words].concat()).keys.pattern
    };
    let KeyPattern::Gaussian { mean, deviation } = pattern(&[]) else {
        panic!();
    };
    // 600 keys; the ends are 599 apart.
    assert!((mean - 0.5).abs() < 1e-12, "{mean}");
    assert!(
        (deviation - 599.0 / 6.0 / 600.0).abs() < 1e-12,
        "{deviation}"
    );
    let KeyPattern::Gaussian { mean, deviation } =
        pattern(&["--key-median", "251", "--key-stddev", "30"])
    else {
        panic!();
    };
    assert!((mean - 150.0 / 600.0).abs() < 1e-12, "{mean}");
    assert!((deviation - 30.0 / 600.0).abs() < 1e-12, "{deviation}");
    let one = translated(&[
        "--key-pattern",
        "G:G",
        "--key-minimum",
        "5",
        "--key-maximum",
        "5",
    ]);
    assert_eq!(one.keys.pattern, KeyPattern::Uniform);
}

#[test]
fn key_numbers_are_not_padded_and_zipf_counts_from_one() {
    let keys = translated(&["--key-prefix", "p", "--key-maximum", "9"]).keys;
    assert_eq!(keys.prefix, "p");
    assert_eq!((keys.width, keys.first, keys.count.get()), (0, 0, 10));
    let keys = translated(&["--key-pattern", "Z:Z", "--key-maximum", "9"]).keys;
    assert_eq!((keys.first, keys.count.get()), (0, 10));
    assert_eq!(keys.pattern, KeyPattern::ZipfByNumber { exponent: 1.0 });
}

#[test]
fn values_are_x_or_random_and_as_long_as_asked_for() {
    let values = |words: &[&str]| translated(words).values;
    assert_eq!(
        values(&[]),
        ValueSettings {
            size: SizeDistribution::Fixed(32),
            content: Content::Fill(b'x'),
        }
    );
    assert_eq!(values(&["-R"]).content, Content::Random);
    assert_eq!(
        values(&["--data-size-range", "200-10"]).size,
        SizeDistribution::Uniform {
            least: 10,
            most: 200
        }
    );
    assert_eq!(
        values(&["--data-size-list", "32:9,1000:1"]).size,
        SizeDistribution::Rotation(vec![(32, 9), (1000, 1)])
    );
    assert_eq!(
        values(&["--data-size-range", "1-9", "--data-size-pattern", "S"]).size,
        SizeDistribution::ByKey { least: 1, most: 9 }
    );
}

#[test]
fn login_database_and_version_reach_the_target() {
    let settings = translated(&["-a", "bob:pw", "-P", "resp3", "--select-db", "4"]);
    let Target::Redis(target) = settings.target else {
        panic!();
    };
    assert_eq!(target.address, address().into());
    assert_eq!(target.user.as_deref(), Some("bob"));
    assert_eq!(target.password.as_ref().unwrap().reveal(), "pw");
    assert_eq!((target.database, target.version), (4, RespVersion::Three));
    for (protocol, expected) in [
        ("redis", RespVersion::Two),
        ("resp2", RespVersion::TwoByHello),
    ] {
        let Target::Redis(target) = translated(&["-P", protocol]).target else {
            panic!();
        };
        assert_eq!(target.version, expected);
    }
}

#[test]
fn nothing_waits_without_end() {
    let timeout = |words: &[&str]| translated(words).timeout.as_secs();
    assert_eq!(timeout(&[]), 30);
    assert_eq!(timeout(&["--test-time", "1"]), 5);
    assert_eq!(timeout(&["--test-time", "12"]), 12);
    assert_eq!(timeout(&["--test-time", "600"]), 30);
    assert_eq!(translated(&[]).connect_timeout.as_secs(), 30);
}

#[test]
fn connections_are_paced_and_renewed() {
    let connects = |words: &[&str]| translated(words).connects;
    assert_eq!(connects(&[]).rate, None);
    assert_eq!(connects(&[]).renew, Renew::Never);
    assert_eq!(connects(&[]).setup_timeout, Some(Duration::from_secs(30)));
    let renewed = connects(&["--reconnect-interval", "10"]).renew;
    assert_eq!(renewed, Renew::Requests(NonZeroU64::new(10).unwrap()));
    // Two threads with waits of 100 to 300 us, 200 us on average: 10,000 connections per second.
    let jitter = connects(&[
        "-t",
        "2",
        "-c",
        "3",
        "--thread-conn-start-min-jitter-micros",
        "100",
        "--thread-conn-start-max-jitter-micros",
        "300",
    ]);
    assert_eq!(jitter.rate, Some(Rate::per_second(10_000).unwrap()));
    assert_eq!(jitter.jitter, Duration::from_micros(200));
    // Five after the first at 100 us, the longest jitter and the time for set-up.
    let whole = Duration::from_secs(30) + Duration::from_micros(5 * 100 + 200);
    assert_eq!(jitter.setup_timeout, Some(whole));
    let own = connects(&["--connect-rate", "50"]);
    assert_eq!(own.rate, Some(Rate::per_second(50).unwrap()));
}

#[test]
fn reconnects_wait_as_in_the_original_when_asked_for() {
    let backoff = |words: &[&str]| translated(words).backoff;
    assert_eq!(backoff(&[]), Backoff::default());
    let second = Duration::from_secs(1);
    assert_eq!(
        backoff(&["--reconnect-on-error"]),
        Backoff {
            first: second,
            factor: 1.0,
            most: second,
            attempts: u32::MAX
        }
    );
    let some = backoff(&[
        "--reconnect-on-error",
        "--max-reconnect-attempts",
        "5",
        "--reconnect-backoff-factor",
        "1.5",
    ]);
    assert_eq!((some.most.as_secs(), some.attempts), (60, 5));
    // Whole random bits give the bound: 1, 1.5, 2.25 s and so on, up to a minute.
    let bounds = [1, 2, 3, 50].map(|failures| some.wait_ns(failures, u64::MAX) / 1_000_000);
    assert_eq!(bounds, [1_000, 1_500, 2_250, 60_000]);
}

#[test]
fn a_replay_is_a_step_with_all_lines_of_its_file_behind_it() {
    let path = std::env::temp_dir().join(format!("kvlab-replay-{}", std::process::id()));
    let lines: String = (0..5000)
        .map(|line| {
            format!(
                "{line} [0 a] \"{}\" \"c{line}\"\n",
                ["INCR", "get"][line % 2]
            )
        })
        .collect();
    std::fs::write(&path, lines).unwrap();
    let file = format!("--monitor-input={}", path.display());
    let words = [
        &file,
        "--command=__monitor_line@__",
        "--command-ratio=2",
        "--command=GET __key__",
        "--command=__monitor_line3__",
    ];
    let mixed = rotation(&words);
    assert_eq!(
        steps(&mixed),
        [
            ("next".to_owned(), 2),
            ("GET __key__".to_owned(), 1),
            ("INCR c2".to_owned(), 1),
        ]
    );
    assert_eq!((mixed.replay_from, mixed.requests.len()), (2, 5002));
    assert_eq!(request_text(&mixed.requests[2 + 4999]), "get c4999");
    // Two names, two rows, and no stream of keys for a line without a key.
    let replayed = &mixed.requests[2..4];
    assert_eq!((replayed[0].operation, replayed[1].operation), (1, 0));
    assert_eq!(replayed[0].pattern, None);
    let by_line = [&words[..], &["--command-stats-breakdown=line"]].concat();
    let rows = plan(&by_line).translate(address()).unwrap().rows;
    let rows: Vec<_> = rows.rows().iter().map(RowKind::label).collect();
    assert_eq!(rows, ["Gets", "Incr (line 3)s", "Incrs"]);
    let random = rotation(&[&file, "--command=__monitor_line@__", "--monitor-pattern=R"]);
    assert_eq!(steps(&random), [("any".to_owned(), 1)]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_command_with_several_keys_takes_any_pattern() {
    for letter in ["R", "S", "P", "G", "Z"] {
        let words = [
            "--command=MSET __key__ a __key__ b",
            "--command-key-pattern",
            letter,
        ];
        let settings = translated(&words);
        assert_eq!(operations(&settings)[0].0, "MSET __key__ a __key__ b");
    }
}

#[test]
fn records_of_a_file_are_numbered_from_one_and_written_in_order() {
    let path = std::env::temp_dir().join(format!("kvlab-records-{}", std::process::id()));
    let dump = "dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n\
                0, 0, 0, 5, 0, 0, 0, 1, a, one\n0, 0, 9, 5, 0, 0, 0, 1, b, two\n";
    std::fs::write(&path, dump).unwrap();
    let file = format!("--data-import={}", path.display());
    let settings = translated(&[&file, "-n", "allkeys", "-c", "1", "-t", "1"]);
    assert_eq!((settings.keys.first, settings.keys.count.get()), (1, 2));
    assert_eq!(settings.stop.requests, Some(2));
    let patterns: Vec<_> = operations(&settings).into_iter().map(|(.., p)| p).collect();
    assert_eq!(
        patterns,
        [Some(KeyPattern::Sequential), Some(KeyPattern::Uniform)]
    );
    let records = |words: &[&str]| {
        let Target::Redis(target) = translated(&[&[file.as_str()], words].concat()).target else {
            panic!();
        };
        let records = target.records.unwrap();
        assert_eq!(
            (records.records.key(1), records.records.value(1)),
            (&b"b"[..], &b"two"[..])
        );
        (records.own_keys, records.own_expiry)
    };
    assert_eq!(records(&[]), (true, true));
    assert_eq!(records(&["--no-expiry"]), (true, false));
    assert_eq!(records(&["--expiry-range", "1-2"]), (true, false));
    assert_eq!(records(&["--generate-keys"]), (false, true));
    let generated = translated(&[&file, "--generate-keys", "--key-minimum", "7"]);
    assert_eq!(generated.keys.first, 7);
    let none = translated(&[&file, "--no-expiry", "--expiry-range", "5-5"]);
    assert_eq!(operations(&none)[0].0, "SET __key__ __data__");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_scan_has_a_row_for_its_begin_and_one_for_going_on() {
    let translation = plan(&[
        "--scan-incremental-iteration",
        "--scan-incremental-max-iterations",
        "5",
        "--command",
        "SCAN 0 COUNT 20",
    ])
    .translate(address())
    .unwrap();
    let rows: Vec<_> = translation.rows.rows().iter().map(RowKind::label).collect();
    assert_eq!(rows, ["Scan 0s", "Scan <cursor>s"]);
    let Target::Redis(target) = translation.settings.target else {
        panic!();
    };
    assert_eq!(
        target.scan,
        Some(ScanSettings {
            arguments: vec![b"COUNT".to_vec(), b"20".to_vec()],
            most_cursors: 5,
        })
    );
}

#[test]
fn clients_that_come_step_by_step_are_those_of_each_thread() {
    let words = [
        "-t",
        "3",
        "-c",
        "9",
        "--clients-start",
        "2",
        "--clients-step",
        "4",
        "--step-duration",
        "5",
        "--test-time",
        "30",
        "--rate-limiting",
        "10",
    ];
    let settings = translated(&words);
    let stairs = settings.staircase.unwrap();
    assert_eq!((stairs.start.get(), stairs.step.get()), (2, 4));
    assert_eq!(stairs.length, Duration::from_secs(5));
    assert_eq!(settings.check(), Ok(()));
    // 2, 6 and then 9 clients of each of 3 threads, 10 requests a second each.
    let rates = [0, 1, 2].map(|steps| match stairs.load(settings.load, steps, 27, 3) {
        Ok(Load::Open { rate, .. }) => rate,
        other => panic!("{other:?}"),
    });
    let expected = [60, 180, 270].map(|rate| Rate::per_second(rate).unwrap());
    assert_eq!(rates, expected);
    assert_eq!(translated(&["-c", "9"]).staircase, None);
}

#[test]
fn a_socket_file_takes_the_place_of_host_and_port() {
    let plan = plan(&["-S", "/run/redis.sock"]);
    let file = Address::unix("/run/redis.sock");
    let Target::Redis(target) = plan.translate(file).unwrap().settings.target else {
        panic!("memtier talks to RESP servers");
    };
    assert_eq!(target.address, file);
    assert_eq!(
        plan.config().unix_socket.as_deref(),
        Some("/run/redis.sock")
    );
}

#[test]
fn retries_are_bounded_by_what_is_asked_for() {
    assert_eq!(translated(&["-c", "1"]).retry, None);
    let words = [
        "--retry-on-error",
        "--max-retries",
        "5",
        "--retry-backoff-ms",
        "20",
        "--retry-backoff-factor",
        "1.5",
        "--retry-on",
        "LOADING,BUSY",
        "--max-retry-queue",
        "7",
    ];
    let settings = translated(&words);
    let retry = settings.retry.unwrap();
    assert_eq!((retry.most, retry.most_waiting), (Some(5), 7));
    assert_eq!((retry.wait, retry.factor), (Duration::from_millis(20), 1.5));
    let on = |settings: &Settings| match &settings.target {
        Target::Redis(target) => target.retry_on.clone(),
        Target::Aerospike(_) => None,
    };
    let prefixes = vec!["LOADING".to_owned(), "BUSY".to_owned()];
    assert_eq!(on(&settings), Some(RetryOn { prefixes }));
    // As the original derives them: without end, at once, four pipelines and at least 64 in wait.
    let retry = translated(&["--retry-on-error", "--pipeline", "50"])
        .retry
        .unwrap();
    assert_eq!(
        (retry.most, retry.wait, retry.most_waiting),
        (None, Duration::ZERO, 200)
    );
    let retry = translated(&["--retry-on-error"]).retry.unwrap();
    assert_eq!(retry.most_waiting, 64);
    // A file of what failed needs the words of errors, and nothing is sent again for it.
    let told = translated(&["--failed-keys-file", "/tmp/failed"]);
    assert_eq!((told.retry, on(&told)), (None, Some(RetryOn::default())));
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    assert_eq!(
        lack(&["--read-server", "localhost:7001"]),
        "--read-server: reading from replicas is not supported yet"
    );
    assert_eq!(
        lack(&["--cluster-mode", "--read-preference", "nearest"]),
        "--read-preference: reading from replicas is not supported yet"
    );
    assert_eq!(
        lack(&["--cluster-mode", "--command", "MULTI", "--transaction"]),
        "--transaction: keeping a round of commands on one shard is not supported yet"
    );
}
