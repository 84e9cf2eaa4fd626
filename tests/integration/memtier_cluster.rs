//! The recorded cases of memtier_benchmark in cluster mode, run again with our front end against
//! three real redis-servers 7.0, where that is installed.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::net::{SocketAddr, TcpListener};

use kvlab_bench_client::frontend::{ExitStatus, memtier};
use kvlab_timing::Clock;

use super::memtier_cases::{Case, assert_same_shape};
use super::resp_wire::{Client, RealServer};

/// Three nodes without replicas, each with a third of the slots.
struct Cluster {
    nodes: Vec<RealServer>,
}

impl Cluster {
    /// `None` if there is no server of the right version.
    fn start() -> Option<Self> {
        let mut nodes = Vec::new();
        for slots in SLOTS {
            let bus = TcpListener::bind("127.0.0.1:0")
                .and_then(|probe| probe.local_addr())
                .unwrap()
                .port()
                .to_string();
            let node = RealServer::with(&[
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus,
                "--cluster-node-timeout",
                "5000",
                "--save",
                "",
            ])?;
            let epoch = (nodes.len() + 1).to_string();
            ask(node.address, &format!("CLUSTER SET-CONFIG-EPOCH {epoch}"));
            ask(node.address, &format!("CLUSTER ADDSLOTSRANGE {slots}"));
            let port = node.address.port();
            if let Some(first) = nodes.first().map(|first: &RealServer| first.address) {
                ask(first, &format!("CLUSTER MEET 127.0.0.1 {port} {bus}"));
            }
            nodes.push(node);
        }
        let cluster = Self { nodes };
        let clock = Clock::real();
        let start = clock.now();
        for node in &cluster.nodes {
            let mut client = Client::connect(node.address, false);
            loop {
                let info = client.ask(&[b"CLUSTER", b"INFO"]).unwrap();
                let info = String::from_utf8(info).unwrap();
                if info.contains("cluster_state:ok") && info.contains("cluster_size:3") {
                    break;
                }
                let waited = clock.now().saturating_since(start);
                assert!(waited < 30_000_000_000, "no cluster: {info}");
                std::thread::yield_now();
            }
        }
        Some(cluster)
    }

    fn address(&self) -> SocketAddr {
        self.nodes[0].address
    }
}

fn ask(server: SocketAddr, words: &str) {
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    let mut client = Client::connect(server, false);
    assert_eq!(client.ask(&words).unwrap(), b"+OK\r\n");
}

/// Case 35 has keys that begin with `{t}`, which all belong to one slot: the original sends them by
/// the slot of the whole key, is sent elsewhere, does not follow, and stops at two thirds with rates
/// of 0 and exit code 0.
#[test]
fn cases_09_18_and_35_send_every_request_to_its_node() {
    let Some(cluster) = Cluster::start() else {
        println!("skipped: redis-server 7.0 is not installed");
        return;
    };
    for (number, count) in [("09", 1_800.0), ("18", 400.0), ("35", 2_000.0)] {
        let case = Case::load(number);
        let recorded = case.stdout.clone();
        let ran = case.run(cluster.address());
        assert_eq!(ran.status, ExitStatus::Done, "{number}: {}", ran.stderr);
        assert_same_shape(number, &ran.stdout, &recorded);
        assert_eq!(ran.total("Count"), count, "{number}");
        assert_eq!(ran.total("MOVED/sec"), 0.0, "{number}");
        assert!(ran.total("Ops/sec") > 0.0, "{number}");
    }
}

/// Case 33: one of the nodes goes away after a while. What the others did is kept, and what could
/// not be done is counted; the original says nothing of it and has exit code 0.
#[test]
fn case_33_keeps_what_was_measured_when_a_node_goes() {
    let Some(mut cluster) = Cluster::start() else {
        println!("skipped: redis-server 7.0 is not installed");
        return;
    };
    let address = cluster.address();
    let last = cluster.nodes.pop().unwrap();
    let stop = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(700));
        drop(last);
    });
    let case = Case::load("33");
    let recorded = case.stdout.clone();
    let ran = case.run(address);
    stop.join().unwrap();
    assert_ne!(ran.status, ExitStatus::Done, "{}", ran.stdout);
    assert_same_shape("33", &ran.stdout, &recorded);
    let count = ran.total("Count");
    assert!(count > 50.0, "{count}: {}", ran.stdout);
    assert!(ran.total("Connection Errors") > 0.0, "{}", ran.stdout);
    assert!(ran.stdout.contains("! FAILED REQUESTS"), "{}", ran.stdout);
}

/// The slot of the keys goes from one node to another while the load runs: first it is on its way,
/// and the old node says `ASK` for every key it has not; then it has a new home, and the next request
/// is answered with `MOVED`. Every request is answered by whoever has the key.
#[test]
fn a_slot_that_moves_during_a_run_costs_redirections_and_no_request() {
    let Some(cluster) = Cluster::start() else {
        println!("skipped: redis-server 7.0 is not installed");
        return;
    };
    // The slot of `t` belongs to the third node.
    let (first, third) = (cluster.nodes[0].address, cluster.nodes[2].address);
    let slot = text(third, "CLUSTER KEYSLOT t");
    let slot = slot.trim_start_matches(':').to_owned();
    let (to, from) = (text(first, "CLUSTER MYID"), text(third, "CLUSTER MYID"));
    ask(first, &format!("CLUSTER SETSLOT {slot} IMPORTING {from}"));
    ask(third, &format!("CLUSTER SETSLOT {slot} MIGRATING {to}"));
    let home = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(1_000));
        for node in [first, third] {
            ask(node, &format!("CLUSTER SETSLOT {slot} NODE {to}"));
        }
    });
    let json = std::env::temp_dir().join(format!("kvlab-moving-{}.json", std::process::id()));
    let line = "--cluster-mode --key-prefix {t} --key-maximum 1000 -t 1 -c 2 --test-time 2 \
                --hide-histogram -s 127.0.0.1 --rate-limiting 200 --max-errors 0 -p";
    let mut arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    arguments.extend([
        third.port().to_string(),
        "--json-out-file".to_owned(),
        json.display().to_string(),
    ]);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let status = memtier::run(arguments, None, &mut stdout, &mut stderr);
    home.join().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status, ExitStatus::Done, "{stderr}");
    let read = std::fs::read_to_string(&json).unwrap();
    std::fs::remove_file(json).unwrap();
    let value: serde_json::Value = serde_json::from_str(&read).unwrap();
    let total = |key: &str| value["ALL STATS"]["Totals"][key].as_f64().unwrap();
    // 200 a second for each of two clients' connections to each of three nodes.
    assert_eq!(total("Count"), 2_400.0);
    assert!(total("ASK/sec") > 10.0, "{}", total("ASK/sec"));
    assert!(total("MOVED/sec") > 0.0);
    assert!(total("MOVED/sec") < total("ASK/sec"));
}

/// The text of a reply of one line, or of a bulk string.
fn text(server: SocketAddr, words: &str) -> String {
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    let reply = Client::connect(server, false).ask(&words).unwrap();
    let reply = String::from_utf8(reply).unwrap();
    let mut lines = reply.lines();
    let line = lines.next().unwrap();
    lines.next().unwrap_or(line).to_owned()
}

const SLOTS: [&str; 3] = ["0 5460", "5461 10922", "10923 16383"];
