//! Expiry on the injected clock, when somebody looks and when nobody does.

use kvlab_mock_server::ServerConfig;

use crate::virtual_server::{Laboratory, MILLI};

#[test]
fn a_key_lives_to_the_end_of_its_last_millisecond() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let client = lab.connect();
    assert_eq!(lab.ask(client, "SET a 1 PX 100"), "OK");
    lab.pass(100 * MILLI);
    // A real server lets a key go when its time is over, not when it has come.
    assert_eq!(lab.ask(client, "GET a"), "1");
    assert_eq!(lab.ask(client, "PTTL a"), "0");
    lab.pass(MILLI);
    assert_eq!(lab.ask(client, "GET a"), "(nil)");
    assert_eq!(lab.ask(client, "TTL a"), "-2");
    assert_eq!(lab.ask(client, "EXISTS a"), "0");
    assert_eq!(lab.ask(client, "SET a 2 NX"), "OK");
    assert_eq!(lab.ask(client, "TTL a"), "-1");
}

#[test]
fn writes_see_an_expired_key_as_absent() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let client = lab.connect();
    for (write, reply, left) in [
        ("APPEND a x", "1", "x"),
        ("INCR a", "1", "1"),
        ("SETRANGE a 1 x", "2", "\0x"),
        ("GETSET a x", "(nil)", "x"),
        ("SETNX a x", "1", "x"),
        ("SET a x XX", "(nil)", "(nil)"),
        ("GETDEL a", "(nil)", "(nil)"),
        ("PERSIST a", "0", "(nil)"),
        ("EXPIRE a 10", "0", "(nil)"),
        ("DEL a", "0", "(nil)"),
        ("RENAME a b", "ERR no such key", "(nil)"),
        ("COPY a b", "0", "(nil)"),
        ("MSETNX a x", "1", "x"),
    ] {
        lab.ask(client, "SET a 5 PX 1");
        lab.pass(2 * MILLI);
        assert_eq!(lab.ask(client, write), reply, "{write}");
        assert_eq!(lab.ask(client, "GET a"), left, "{write}");
        lab.ask(client, "FLUSHALL");
    }
}

#[test]
fn keys_nobody_looks_at_are_removed_in_the_background() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let client = lab.connect();
    for number in 0..1000 {
        lab.ask(client, &format!("SET {number} x PX 50"));
    }
    assert_eq!(lab.ask(client, "DBSIZE"), "1000");
    lab.ask(client, "SET other x");
    // A step is due at most every 100 ms, and it takes a few for all.
    for _ in 0..5 {
        lab.pass(100 * MILLI);
        lab.ask(client, "PING");
    }
    assert_eq!(lab.ask(client, "DBSIZE"), "1");
    let stats = lab.ask(client, "INFO stats");
    assert!(stats.contains("expired_keys:1000\r\n"), "{stats}");
    let keyspace = lab.ask(client, "INFO keyspace");
    assert!(
        keyspace.contains("db0:keys=1,expires=0,avg_ttl=0"),
        "{keyspace}"
    );
}

#[test]
fn nothing_expires_in_a_pause_but_it_looks_so() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let client = lab.connect();
    lab.ask(client, "SET a 1 PX 10");
    lab.ask(client, "CLIENT PAUSE 1000 WRITE");
    lab.pass(500 * MILLI);
    assert_eq!(lab.ask(client, "GET a"), "(nil)");
    assert_eq!(lab.ask(client, "DBSIZE"), "1");
    lab.pass(500 * MILLI);
    assert_eq!(lab.ask(client, "GET a"), "(nil)");
    assert_eq!(lab.ask(client, "DBSIZE"), "0");
}

#[test]
fn a_transaction_stands_at_one_moment() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let client = lab.connect();
    lab.ask(client, "SET a 1 PX 10");
    lab.pass(10 * MILLI);
    lab.ask(client, "MULTI\r\nGET a\r\nPEXPIRE a 5\r\nGET a");
    assert_eq!(lab.ask(client, "EXEC"), "[1 1 1]");
}

#[test]
fn a_watched_key_that_expires_counts_as_changed() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let (first, second) = (lab.connect(), lab.connect());
    for looked_at in [None, Some("GET a"), Some("PERSIST a"), Some("SCAN 0")] {
        lab.ask(first, "SET a 1 PX 10");
        lab.ask(first, "WATCH a");
        lab.pass(20 * MILLI);
        if let Some(look) = looked_at {
            lab.ask(second, look);
        }
        lab.ask(first, "MULTI\r\nPING");
        assert_eq!(lab.ask(first, "EXEC"), "(nil)", "{looked_at:?}");
    }
    lab.ask(first, "SET a 1 PX 10");
    lab.pass(20 * MILLI);
    lab.ask(first, "WATCH a");
    lab.ask(second, "GET a");
    lab.ask(first, "MULTI\r\nPING");
    assert_eq!(lab.ask(first, "EXEC"), "[PONG]");
}

#[test]
fn idle_time_counts_from_the_last_use() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let client = lab.connect();
    lab.ask(client, "SET a 1");
    lab.pass(5000 * MILLI);
    assert_eq!(lab.ask(client, "TTL a"), "-1");
    assert_eq!(lab.ask(client, "OBJECT IDLETIME a"), "5");
    assert_eq!(lab.ask(client, "CLIENT NO-TOUCH ON"), "OK");
    assert_eq!(lab.ask(client, "GET a"), "1");
    assert_eq!(lab.ask(client, "OBJECT IDLETIME a"), "5");
    assert_eq!(lab.ask(client, "TOUCH a"), "1");
    assert_eq!(lab.ask(client, "OBJECT IDLETIME a"), "0");
}
