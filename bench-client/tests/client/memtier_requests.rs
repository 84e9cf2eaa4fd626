//! What `kvlab memtier` sends, under virtual time: every request of every client, read by a server
//! that is no part of the project.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use super::fake::{MILLI, World};
use kvlab_bench_client::Settings;
use kvlab_bench_client::frontend::memtier::{Options, Plan, check::check, getopt};

/// The settings of a command line.
fn settings(words: &[&str]) -> Settings {
    let options = Options::read(&getopt::parse(words).unwrap()).unwrap();
    check(&options).unwrap();
    let plan = Plan::resolve(options, 0).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], 6379));
    plan.translate(address).unwrap().settings
}

/// The requests that each client sent, in their order.
fn sent(settings: &Settings) -> Vec<Vec<Vec<String>>> {
    let mut world = World::new(MILLI, 0);
    world.run(settings).unwrap();
    world.read.iter().map(|bytes| requests(bytes)).collect()
}

fn requests(mut bytes: &[u8]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let words = number(&mut bytes, b'*');
        let request = (0..words).map(|_| {
            let len = number(&mut bytes, b'$');
            let (word, rest) = bytes.split_at(len);
            bytes = rest.strip_prefix(b"\r\n").unwrap();
            String::from_utf8_lossy(word).into_owned()
        });
        all.push(request.collect());
    }
    all
}

fn number(bytes: &mut &[u8], sign: u8) -> usize {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n").unwrap();
    assert_eq!(bytes[0], sign);
    let number = std::str::from_utf8(&bytes[1..end]).unwrap().parse();
    *bytes = &bytes[end + 2..];
    number.unwrap()
}

/// How many requests of each name.
fn names(client: &[Vec<String>]) -> BTreeMap<&str, usize> {
    let mut names = BTreeMap::new();
    for request in client {
        *names.entry(request[0].as_str()).or_default() += 1;
    }
    names
}

/// The keys of a request, as numbers.
fn keys(request: &[String]) -> Vec<u64> {
    let keys = request.iter().filter_map(|word| word.strip_prefix("k-"));
    keys.map(|number| number.parse().unwrap()).collect()
}

/// The recorded run of the original with these options has 96 SETs, 94 GETs and 10 WAITs of its two
/// clients: 930.27, 910.89 and 96.90 a second.
#[test]
fn waits_are_as_many_as_the_original_counts() {
    let words =
        "-t 1 -c 2 -n 100 --ratio 1:1 --wait-ratio 10:1 --num-slaves 0-1 --wait-timeout 1-2";
    let words: Vec<&str> = words.split(' ').collect();
    for client in sent(&settings(&words)) {
        assert_eq!(
            names(&client),
            BTreeMap::from([("GET", 47), ("SET", 48), ("WAIT", 5)])
        );
        let mut sets = 0;
        let mut before = Vec::new();
        for request in &client {
            match request[0].as_str() {
                "SET" => sets += 1,
                "WAIT" => before.push(sets),
                _ => {}
            }
        }
        assert_eq!(before, [0, 11, 22, 33, 44], "SETs before each WAIT");
        for wait in client.iter().filter(|request| request[0] == "WAIT") {
            let numbers: Vec<u32> = wait[1..].iter().map(|word| word.parse().unwrap()).collect();
            assert!((0..=1).contains(&numbers[0]) && (1..=2).contains(&numbers[1]));
        }
    }
}

#[test]
fn times_to_live_cover_their_range_and_repeat_by_seed() {
    let words = ["-t", "1", "-c", "2", "-n", "200", "--ratio", "1:0"];
    let words = [&words[..], &["--expiry-range", "5-10"]].concat();
    let alike = sent(&settings(&words));
    assert_eq!(
        alike[0], alike[1],
        "clients draw the same unless told otherwise"
    );
    let words = [&words[..], &["--distinct-client-seed"]].concat();
    let first = sent(&settings(&words));
    assert_eq!(first, sent(&settings(&words)));
    for client in &first {
        let seconds: BTreeSet<u32> = client.iter().map(|set| set[2].parse().unwrap()).collect();
        assert_eq!(seconds, (5..=10).collect());
        assert!(client.iter().all(|set| set[0] == "SETEX" && set.len() == 4));
    }
    assert_ne!(first[0], first[1], "each client draws its own");
    let other = sent(&settings(&[&words[..], &["--seed", "9"]].concat()));
    assert_ne!(first, other);
}

#[test]
fn reads_of_several_keys_go_through_the_keys_of_their_pattern() {
    let run = |pattern: &str| {
        sent(&settings(&[
            "-t",
            "1",
            "-c",
            "2",
            "-n",
            "8",
            "--ratio",
            "0:10",
            "--multi-key-get",
            "4",
            "--key-prefix",
            "k-",
            "--key-minimum",
            "1",
            "--key-maximum",
            "40",
            "--key-pattern",
            pattern,
        ]))
    };
    for client in run("S:S") {
        // Twice 4, 4 and 2 keys, and the first two of the third round.
        let lens: Vec<usize> = client.iter().map(|request| request.len() - 1).collect();
        assert_eq!(lens, [4, 4, 2, 4, 4, 2, 4, 4]);
        let all: Vec<u64> = client.iter().flat_map(|request| keys(request)).collect();
        assert_eq!(all, (1..=28).collect::<Vec<_>>());
    }
    for (number, client) in run("P:P").iter().enumerate() {
        let part = 1 + 20 * number as u64..=20 + 20 * number as u64;
        let all: Vec<u64> = client.iter().flat_map(|request| keys(request)).collect();
        assert!(
            all.iter().all(|key| part.contains(key)),
            "{number}: {all:?}"
        );
    }
    for pattern in ["R:R", "G:G", "Z:Z"] {
        let clients = run(pattern);
        assert_eq!(clients, run(pattern), "{pattern}");
        let all: Vec<u64> = clients
            .iter()
            .flatten()
            .flat_map(|request| keys(request))
            .collect();
        assert!(
            all.iter().all(|key| (1..=40).contains(key)),
            "{pattern}: {all:?}"
        );
        let distinct: BTreeSet<u64> = all.iter().copied().collect();
        assert!(distinct.len() > 8, "{pattern}: {distinct:?}");
    }
}

/// A capture of `lines` commands of three names.
fn capture(name: &str, lines: usize) -> PathBuf {
    let path = std::env::temp_dir().join(format!("kvlab-{name}-{}", std::process::id()));
    let text: String = (0..lines)
        .map(|line| {
            let command = ["GET", "incr", "DEL"][line % 3];
            format!("1764031576.{line:06} [0 10.0.0.1:1] \"{command}\" \"line{line}\"\n")
        })
        .collect();
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_capture_of_thousands_of_lines_is_replayed_in_order_by_all_clients_together() {
    let path = capture("replay-order", 3000);
    let file = format!("--monitor-input={}", path.display());
    let words = [
        &file,
        "-t",
        "3",
        "-c",
        "2",
        "-n",
        "1000",
        "--command=__monitor_line@__",
    ];
    let settings = settings(&words);
    // A second run begins at the first line again.
    for _ in 0..2 {
        let clients = sent(&settings);
        let mut times = BTreeMap::new();
        for request in clients.iter().flatten() {
            *times.entry(request[1].clone()).or_insert(0) += 1;
        }
        assert_eq!(times.len(), 3000);
        assert!(
            times.values().all(|count| *count == 2),
            "6 x 1000 over 3000 lines"
        );
        for client in &clients {
            let lines: Vec<u32> = client
                .iter()
                .map(|request| request[1].strip_prefix("line").unwrap().parse().unwrap())
                .collect();
            let falls = lines.windows(2).filter(|pair| pair[1] <= pair[0]).count();
            assert!(falls <= 1, "two passes, in order: {lines:?}");
        }
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_random_replay_mixes_with_other_commands_and_repeats_by_seed() {
    let path = capture("replay-random", 2000);
    let file = format!("--monitor-input={}", path.display());
    let words = [
        &file,
        "--monitor-pattern=R",
        "-t",
        "1",
        "-c",
        "2",
        "-n",
        "3000",
        "--command=__monitor_line@__",
        "--command-ratio=2",
        "--command=PING",
        "--distinct-client-seed",
    ];
    let clients = sent(&settings(&words));
    assert_eq!(clients, sent(&settings(&words)));
    assert_ne!(clients[0], clients[1]);
    for client in &clients {
        assert_eq!(names(client)["PING"], 1000);
        let positions = (0..client.len()).filter(|place| client[*place][0] == "PING");
        assert!(
            positions
                .zip(0..)
                .all(|(place, number)| place == 3 * number + 2)
        );
        // Each of 2000 drawn values hits one of 2000 lines: 2000 (1 - 1/e) = 1264 distinct ones
        // are expected, with a standard deviation of 2000 (1/e - 2/e^2) to the half = 14.
        let lines: BTreeSet<&str> = client
            .iter()
            .filter_map(|r| r.get(1))
            .map(|s| &**s)
            .collect();
        assert!(lines.len().abs_diff(1264) < 70, "{}", lines.len());
    }
    let other = sent(&settings(&[&words[..], &["--seed=7"]].concat()));
    assert_ne!(clients, other);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_version_asked_for_is_the_first_thing_said() {
    for (protocol, expected) in [("redis", "GET"), ("resp2", "HELLO 2"), ("resp3", "HELLO 3")] {
        let words = [
            "-t", "1", "-c", "1", "-n", "1", "--ratio", "0:1", "-P", protocol,
        ];
        let clients = sent(&settings(&words));
        let first = clients[0][0].join(" ");
        assert!(first.starts_with(expected), "{protocol}: {first}");
    }
}
