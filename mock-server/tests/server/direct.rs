//! Data put in and looked up without the wire.

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
