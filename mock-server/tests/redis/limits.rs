//! Limits on clients and on memory.

use kvlab_mock_server::config::RedisConfig;
use kvlab_mock_server::{MockServer, ServerConfig};

use crate::client::Client;
use crate::virtual_server::Laboratory;

fn with_parameter(name: &str, value: &str) -> ServerConfig {
    ServerConfig {
        redis: RedisConfig {
            parameters: vec![(name.to_owned(), value.to_owned())],
            ..RedisConfig::default()
        },
        ..ServerConfig::default()
    }
}

#[test]
fn a_client_too_many_is_told_so_before_it_asks() {
    let server = MockServer::start(with_parameter("maxclients", "2")).unwrap();
    let address = server.redis_addr().unwrap();
    let (mut first, mut second) = (Client::connect(address), Client::connect(address));
    assert_eq!(first.ask("PING"), "PONG");
    assert_eq!(second.ask("PING"), "PONG");
    let mut third = Client::connect(address);
    assert_eq!(
        third.reply().as_deref(),
        Some("ERR max number of clients reached")
    );
    assert_eq!(third.reply(), None);
    assert_eq!(first.ask("CONFIG SET maxclients 10"), "OK");
    let mut fourth = Client::connect(address);
    assert_eq!(fourth.ask("PING"), "PONG");
    let stats = first.ask("INFO stats");
    assert!(stats.contains("rejected_connections:1\r\n"), "{stats}");
}

#[test]
fn a_place_becomes_free_when_a_client_leaves() {
    let mut lab = Laboratory::new(with_parameter("maxclients", "1"));
    let first = lab.connect();
    let second = lab.connect();
    assert_eq!(lab.heard(second), "ERR max number of clients reached");
    assert!(lab.is_closed(second));
    lab.hang_up(first);
    let third = lab.connect();
    assert_eq!(lab.ask(third, "PING"), "PONG");
}

#[test]
fn memory_is_counted_by_values_and_freed_with_them() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let client = lab.connect();
    let used = |lab: &mut Laboratory| {
        let info = lab.ask(client, "INFO memory");
        let line = info.lines().find(|line| line.starts_with("used_memory:"));
        line.unwrap()["used_memory:".len()..]
            .parse::<u64>()
            .unwrap()
    };
    let empty = used(&mut lab);
    lab.ask(client, "SETRANGE a 999999 x");
    let full = used(&mut lab);
    assert!(full >= empty + 1_000_000, "{full} over {empty}");
    assert_eq!(lab.ask(client, "CONFIG SET maxmemory 1mb"), "OK");
    let refusal = "OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(lab.ask(client, "SET b 1"), refusal);
    assert_eq!(lab.ask(client, "STRLEN a"), "1000000");
    assert_eq!(lab.ask(client, "DEL a"), "1");
    assert_eq!(used(&mut lab), empty);
    assert_eq!(lab.ask(client, "SET b 1"), "OK");
    for command in [
        "FLUSHALL",
        "SET b 12345678901234567890123",
        "RENAME b c",
        "COPY c d",
    ] {
        lab.ask(client, command);
    }
    assert_eq!(used(&mut lab), empty + 2 * (100 + 23));
    lab.ask(client, "FLUSHALL");
    assert_eq!(used(&mut lab), empty);
}
