//! Memory limits: eviction by each policy, and what happens when nothing may go.
//!
//! A key counts 100 bytes and its value; an empty server 900,000. With a limit of 1,000,000 and values
//! of 400 bytes there is room for 200 keys, and one more fits before the limit is passed.

use kvlab_mock_server::event::ConnId;
use kvlab_mock_server::limit::{ByteSize, Eviction};
use kvlab_mock_server::{MockServer, ServerConfig};

use crate::client::Client;
use crate::virtual_server::{Laboratory, MILLI};

const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";

fn config(policy: Eviction) -> ServerConfig {
    MockServer::builder()
        .max_memory(ByteSize(1_000_000))
        .eviction(policy)
        .seed(5)
        .into_config()
        .unwrap()
}

fn full(policy: Eviction) -> (Laboratory, ConnId) {
    let mut lab = Laboratory::new(config(policy));
    let client = lab.connect();
    (lab, client)
}

/// Sets key `number` to 400 bytes.
fn set(lab: &mut Laboratory, client: ConnId, number: u32, more: &str) -> String {
    lab.ask(client, &format!("SET k{number} {}{more}", "x".repeat(400)))
}

fn stat(lab: &mut Laboratory, client: ConnId, name: &str) -> u64 {
    let info = lab.ask(client, "INFO everything");
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap().parse().unwrap()
}

fn exist(lab: &mut Laboratory, client: ConnId, numbers: std::ops::Range<u32>) -> usize {
    let exists = |number: &u32| lab.ask(client, &format!("EXISTS k{number}")) == "1";
    numbers.filter(exists).count()
}

#[test]
fn without_eviction_writes_are_refused_when_the_limit_is_passed() {
    let (mut lab, client) = full(Eviction::None);
    let stored = (0..300).filter(|number| set(&mut lab, client, *number, "") == "OK");
    assert_eq!(stored.count(), 201);
    assert_eq!(set(&mut lab, client, 0, ""), OOM);
    assert_eq!(lab.ask(client, "APPEND k0 x"), OOM);
    assert_eq!(lab.ask(client, "STRLEN k0"), "400");
    assert_eq!(stat(&mut lab, client, "used_memory"), 1_000_500);
    // In a transaction everything is refused that would be queued, as on a real server.
    assert_eq!(lab.ask(client, "MULTI"), "OK");
    assert_eq!(lab.ask(client, "GET k0"), OOM);
    assert!(lab.ask(client, "EXEC").starts_with("EXECABORT"));
    assert_eq!(lab.ask(client, "DEL k0 k1"), "2");
    assert_eq!(set(&mut lab, client, 0, ""), "OK");
    let info = lab.ask(client, "INFO errorstats");
    // 99 and two writes, and one in the transaction.
    assert!(info.contains("errorstat_OOM:count=102\r\n"), "{info}");
    assert_eq!(stat(&mut lab, client, "evicted_keys"), 0);
}

#[test]
fn every_policy_that_evicts_keeps_memory_within_its_limit() {
    for policy in Eviction::ALL.into_iter().skip(1) {
        let (mut lab, client) = full(policy);
        for number in 0..1_000 {
            let answer = set(&mut lab, client, number, " EX 1000");
            assert_eq!(answer, "OK", "{policy} {number}");
        }
        // The last one may stand above the limit until the next command, which has come with INFO.
        assert_eq!(stat(&mut lab, client, "evicted_keys"), 800, "{policy}");
        assert_eq!(lab.ask(client, "DBSIZE"), "200", "{policy}");
        assert_eq!(stat(&mut lab, client, "used_memory"), 1_000_000, "{policy}");
        assert_eq!(stat(&mut lab, client, "maxmemory"), 1_000_000);
        let info = lab.ask(client, "INFO memory");
        assert!(info.contains(&format!("maxmemory_policy:{policy}\r\n")));
    }
}

#[test]
fn volatile_policies_spare_keys_without_expiry() {
    for policy in Eviction::ALL
        .into_iter()
        .filter(|policy| policy.is_volatile())
    {
        let (mut lab, client) = full(policy);
        for number in 0..100 {
            set(&mut lab, client, number, "");
        }
        for number in 100..400 {
            assert_eq!(set(&mut lab, client, number, " EX 1000"), "OK", "{policy}");
        }
        assert_eq!(exist(&mut lab, client, 0..100), 100, "{policy}");
        // When all that expires is gone there is nothing left to evict.
        let stored = (400..1_000).filter(|number| set(&mut lab, client, *number, "") == "OK");
        assert_eq!(stored.count(), 101, "{policy}");
        assert_eq!(set(&mut lab, client, 1, ""), OOM);
    }
}

#[test]
fn the_least_recently_used_go_first() {
    let (mut lab, client) = full(Eviction::AllKeysLru);
    for number in 0..200 {
        set(&mut lab, client, number, "");
    }
    // The first hundred are used a minute later, so the others are the older ones.
    lab.pass(60_000 * MILLI);
    for number in 0..100 {
        lab.ask(client, &format!("GET k{number}"));
    }
    lab.pass(1_000 * MILLI);
    assert_eq!(lab.ask(client, "OBJECT IDLETIME k3"), "1");
    assert_eq!(lab.ask(client, "OBJECT IDLETIME k103"), "61");
    for number in 1_000..1_050 {
        set(&mut lab, client, number, "");
    }
    // Of 50 that went, five draws each: that none of five is old happens once in 32 times at first.
    assert_eq!(lab.ask(client, "PING"), "PONG");
    assert!(exist(&mut lab, client, 0..100) >= 97);
    assert!(exist(&mut lab, client, 100..200) <= 53);
}

#[test]
fn the_least_frequently_used_go_first_and_frequency_is_shown() {
    let (mut lab, client) = full(Eviction::AllKeysLfu);
    for number in 0..200 {
        set(&mut lab, client, number, "");
    }
    assert_eq!(lab.ask(client, "OBJECT FREQ k7"), "5");
    for _ in 0..20 {
        for number in 0..100 {
            lab.ask(client, &format!("GET k{number}"));
        }
    }
    // The first use raises it surely, further ones by chance: 1 in 11, then 1 in 21.
    let used: u64 = lab.ask(client, "OBJECT FREQ k7").parse().unwrap();
    assert!((6..=10).contains(&used), "{used}");
    assert!(
        lab.ask(client, "OBJECT IDLETIME k7")
            .starts_with("ERR An LFU")
    );
    for number in 1_000..1_050 {
        set(&mut lab, client, number, "");
    }
    assert!(exist(&mut lab, client, 0..100) >= 97);
    // A minute without use takes one.
    lab.pass(60_000 * MILLI);
    let later: u64 = lab.ask(client, "OBJECT FREQ k103").parse().unwrap_or(4);
    assert_eq!(later, 4);
}

#[test]
fn the_next_to_expire_go_first() {
    let (mut lab, client) = full(Eviction::VolatileTtl);
    for number in 0..200 {
        let seconds = if number < 100 { 10_000 } else { 1_000 };
        set(&mut lab, client, number, &format!(" EX {seconds}"));
    }
    for number in 1_000..1_050 {
        set(&mut lab, client, number, " EX 100000");
    }
    assert_eq!(lab.ask(client, "PING"), "PONG");
    assert!(exist(&mut lab, client, 0..100) >= 97);
}

#[test]
fn limit_and_policy_change_while_the_server_runs() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let client = lab.connect();
    for number in 0..500 {
        set(&mut lab, client, number, "");
    }
    assert_eq!(lab.ask(client, "CONFIG SET maxmemory 1000000"), "OK");
    assert_eq!(set(&mut lab, client, 1_000, ""), OOM);
    assert_eq!(lab.ask(client, "DBSIZE"), "500");
    assert_eq!(
        lab.ask(client, "CONFIG SET maxmemory-policy allkeys-random"),
        "OK"
    );
    // Any command makes room.
    assert_eq!(lab.ask(client, "PING"), "PONG");
    assert_eq!(lab.ask(client, "DBSIZE"), "200");
    assert_eq!(lab.ask(client, "CONFIG SET maxmemory 0"), "OK");
    assert_eq!(set(&mut lab, client, 1_000, ""), "OK");
    assert_eq!(lab.ask(client, "DBSIZE"), "201");
}

#[test]
fn what_is_evicted_depends_on_the_seed_alone() {
    let survivors = || {
        let (mut lab, client) = full(Eviction::AllKeysRandom);
        for number in 0..400 {
            set(&mut lab, client, number, "");
        }
        lab.ask(client, "KEYS *")
    };
    assert_eq!(survivors(), survivors());
}

#[test]
fn a_watched_key_that_is_evicted_has_changed() {
    let (mut lab, client) = full(Eviction::VolatileRandom);
    let other = lab.connect();
    set(&mut lab, client, 0, " EX 1000");
    assert_eq!(lab.ask(client, "WATCH k0"), "OK");
    for number in 1..205 {
        set(&mut lab, other, number, "");
    }
    assert_eq!(lab.ask(client, "EXISTS k0"), "0");
    for command in ["DEL k1 k2 k3 k4 k5", "MULTI", "PING"] {
        lab.ask(
            if command.starts_with("DEL") {
                other
            } else {
                client
            },
            command,
        );
    }
    assert_eq!(lab.ask(client, "EXEC"), "(nil)");
}

#[test]
fn keys_are_evicted_over_sockets_by_several_workers() {
    let mut config = config(Eviction::AllKeysLru);
    config.workers = 2;
    let server = MockServer::start(config).unwrap();
    let address = server.redis_addr().unwrap();
    std::thread::scope(|scope| {
        for client in 0..4 {
            scope.spawn(move || {
                let mut connection = Client::connect(address);
                for number in 0..500 {
                    let command = format!("SET k{client}-{number} {}", "x".repeat(400));
                    assert_eq!(connection.ask(&command), "OK");
                }
            });
        }
    });
    let mut client = Client::connect(address);
    assert_eq!(client.ask("PING"), "PONG");
    assert_eq!(client.ask("DBSIZE"), "200");
    let counts = server.truth().stats.counts;
    assert_eq!((counts.evicted, counts.out_of_memory), (1_800, 0));
    assert!(client.ask("INFO stats").contains("evicted_keys:1800\r\n"));
}
