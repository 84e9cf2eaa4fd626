//! The recorded cases of memtier_benchmark in cluster mode, run again with our front end against
//! three real redis-servers 7.0, where that is installed.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::net::{SocketAddr, TcpListener};

use kvlab_bench_client::frontend::ExitStatus;
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

const SLOTS: [&str; 3] = ["0 5460", "5461 10922", "10923 16383"];
