//! Data put in and looked up without the wire.

use std::time::Duration;

use bytes::Bytes;
use kvlab_mock_server::MockServer;
use kvlab_mock_server::direct::CommandError;
use kvlab_protocol::aerospike::digest::Key;
use kvlab_protocol::aerospike::particle::Value;

use crate::wire::Client;

#[test]
fn a_client_sees_what_was_set_and_the_handle_what_a_client_set() {
    let server = MockServer::builder()
        .latency("all=constant(1h)")
        .start()
        .unwrap();
    // The handle does not wait an hour.
    server.redis().set("a", "1").unwrap();
    assert_eq!(
        server.redis().get("a").unwrap(),
        Some(Bytes::from_static(b"1"))
    );
    assert_eq!(server.redis().get("b").unwrap(), None);
    assert!(server.truth().stats.calls.is_empty());

    let server = MockServer::builder().workers(2).start().unwrap();
    server.redis().set("a", "1").unwrap();
    let mut client = Client::connect(server.redis_addr().unwrap());
    assert_eq!(client.ask("GET a"), "1");
    assert_eq!(client.ask("SET b 2"), "+OK");
    assert_eq!(
        server.redis().get("b").unwrap(),
        Some(Bytes::from_static(b"2"))
    );
}

#[test]
fn keys_are_counted_listed_and_removed_by_database() {
    let server = MockServer::builder().start().unwrap();
    let (first, second) = (server.redis(), server.redis().database(1));
    first.set("a", "1").unwrap();
    first.set("b", [0xff]).unwrap();
    second.set("c", "3").unwrap();
    let mut keys = first.keys().unwrap();
    keys.sort();
    assert_eq!(keys, ["a", "b"]);
    assert_eq!(first.get("b").unwrap(), Some(Bytes::from_static(&[0xff])));
    assert!(first.remove("a").unwrap());
    assert!(!first.remove("a").unwrap());
    assert_eq!((first.count().unwrap(), second.count().unwrap()), (1, 1));
    first.flush().unwrap();
    assert_eq!((first.count().unwrap(), second.count().unwrap()), (0, 1));
    let beyond = first.database(16).set("a", "1").unwrap_err();
    assert_eq!(beyond.to_string(), "ERR DB index is out of range");
}

#[test]
fn the_handle_is_no_client() {
    let server = MockServer::builder().start().unwrap();
    let mut client = Client::connect(server.redis_addr().unwrap());
    assert_eq!(client.ask("CLIENT PAUSE 100000 WRITE"), "+OK");
    let paused = server.redis().set("a", "1").unwrap_err();
    assert_eq!(paused, CommandError::WouldWait);
    assert_eq!(server.redis().get("a").unwrap(), None);
    assert_eq!(server.shared().clients.len(), 1);
}

#[test]
fn what_lives_for_a_minute_is_gone_after_an_hour_on_the_clock() {
    let server = MockServer::builder().record_rows(true).start().unwrap();
    let redis = server.redis();
    redis.command(&["SET", "a", "1", "EX", "60"]).unwrap();
    redis.set("b", "2").unwrap();
    server.advance_clock(Duration::from_secs(59));
    assert!(redis.get("a").unwrap().is_some());
    server.advance_clock(Duration::from_secs(3600));
    assert_eq!(redis.get("a").unwrap(), None);
    assert!(redis.get("b").unwrap().is_some());
    // Stamps are not those of the calendar.
    let before = server.clock().now();
    let mut client = Client::connect(server.redis_addr().unwrap());
    assert_eq!(client.ask("GET b"), "2");
    let row = &server.truth().rows[0];
    assert!(before <= row.read && row.written_after <= server.clock().now());
}

#[test]
fn an_error_of_the_server_is_an_error() {
    let server = MockServer::builder().start().unwrap();
    let error = server.redis().command(&["NOSUCH"]).unwrap_err();
    assert!(matches!(&error, CommandError::Refused(text) if text.starts_with("ERR unknown")));
}

#[test]
fn records_are_put_and_found() {
    let server = MockServer::builder()
        .namespaces(["a", "b"])
        .start()
        .unwrap();
    assert!(server.aerospike("c").is_none());
    let namespace = server.aerospike("b").unwrap();
    let key = Key::String(b"ann");
    namespace.put("users", key, &[("age", Value::Integer(41))]);
    namespace.put("users", key, &[("age", Value::Integer(42))]);
    let record = namespace.get("users", key).unwrap();
    assert_eq!(record.meta.generation, 2);
    assert_eq!(record.bins, [(b"age".to_vec(), Value::Integer(42))]);
    assert_eq!(namespace.count(), 1);
    assert!(namespace.get("others", key).is_none());
    assert!(server.aerospike("a").unwrap().get("users", key).is_none());
}
