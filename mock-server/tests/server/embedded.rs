//! The server as a part of a program or a test.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use kvlab_mock_server::exchange::{Class, Protocol};
use kvlab_mock_server::stamp::FaultKind;
use kvlab_mock_server::{MockServer, RunId, StartError, Truth};

use crate::wire::{Client, aerospike_node_name};

#[test]
fn it_serves_while_its_handle_lives() {
    let server = MockServer::builder().start().unwrap();
    let (redis, aerospike) = (
        server.redis_addr().unwrap(),
        server.aerospike_addr().unwrap(),
    );
    assert_eq!(Client::connect(redis).ask("PING"), "+PONG");
    assert_eq!(aerospike_node_name(aerospike), "A1");
    drop(server);
    assert!(TcpStream::connect(redis).is_err());
    assert!(TcpStream::connect(aerospike).is_err());
}

#[test]
fn ports_can_be_left_out_and_shared() {
    let server = MockServer::builder()
        .redis_port(None)
        .aerospike_port(None)
        .shared_port(0)
        .node_name("B7")
        .start()
        .unwrap();
    assert_eq!((server.redis_addr(), server.aerospike_addr()), (None, None));
    let address = server.addr().unwrap();
    assert_eq!(Client::connect(address).ask("PING"), "+PONG");
    assert_eq!(aerospike_node_name(address), "B7");
}

#[test]
fn a_taken_port_is_an_error() {
    let first = MockServer::builder().aerospike_port(None).start().unwrap();
    let address = first.redis_addr().unwrap();
    let second = MockServer::builder().redis_port(address.port()).start();
    assert!(matches!(second, Err(StartError::Bind { address: taken, .. }) if taken == address));
}

#[tokio::test]
async fn it_starts_and_stops_inside_a_runtime() {
    let server = MockServer::builder().workers(2).start().unwrap();
    let address = server.redis_addr().unwrap();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.writable().await.unwrap();
    assert_eq!(stream.try_write(b"PING\r\n").unwrap(), 6);
    let mut reply = [0; 16];
    let len = loop {
        stream.readable().await.unwrap();
        match stream.try_read(&mut reply) {
            Ok(len) => break len,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    };
    assert_eq!(&reply[..len], b"+PONG\r\n");
    let truth = server.stop();
    assert_eq!(truth.stats.calls[&(Protocol::Redis, "ping")], 1);
}

#[tokio::test]
async fn it_may_be_dropped_by_a_task() {
    let server = MockServer::builder().start().unwrap();
    tokio::spawn(async move { drop(server) }).await.unwrap();
}

#[test]
fn rows_and_distributions_tell_what_was_done() {
    let server = MockServer::builder()
        .latency("get=constant(2ms)")
        .record_rows(true)
        .start()
        .unwrap();
    let mut client = Client::connect(server.redis_addr().unwrap());
    client.ask("SET k v");
    client.ask("GET k");
    let truth = server.truth();
    let rows = truth
        .rows
        .iter()
        .map(|row| (row.sequence, row.command, row.wanted_ns));
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [(0, "set", 0), (1, "get", 2_000_000)]
    );
    for row in &truth.rows {
        assert!(row.answered && row.read <= row.start && row.due <= row.written);
        assert_eq!(row.due, row.start.add_nanos(row.wanted_ns));
    }
    assert_eq!(truth.stats.all.sojourn.len(), 2);
    assert!(truth.stats.all.sojourn.max() >= 2_000_000);
    server.reset_truth();
    assert!(server.truth().rows.is_empty());
}

#[test]
fn one_seed_draws_one_sequence_of_delays() {
    let draw = |seed| {
        let server = MockServer::builder()
            .latency("exponential(mean=50us)")
            .seed(seed)
            .record_rows(true)
            .start()
            .unwrap();
        let mut client = Client::connect(server.redis_addr().unwrap());
        for _ in 0..20 {
            client.ask("GET k");
        }
        let rows = server.stop().rows;
        rows.iter().map(|row| row.wanted_ns).collect::<Vec<_>>()
    };
    let first = draw(1);
    assert_eq!(first.len(), 20);
    assert_eq!(first, draw(1));
    assert_ne!(first, draw(2));
}

#[test]
fn a_freeze_holds_requests_back() {
    // Frozen from the first millisecond to the end of the first second, and long before it ends
    // the request has been read.
    let server = MockServer::builder()
        .freeze("every=1h,for=1s,first=0")
        .record_rows(true)
        .start()
        .unwrap();
    let mut client = Client::connect(server.redis_addr().unwrap());
    assert_eq!(client.ask("PING"), "+PONG");
    let started = server.shared().started;
    let [row] = &server.stop().rows[..] else {
        panic!("one row");
    };
    let freeze_end = started + Duration::from_secs(1);
    if row.read < freeze_end {
        assert_eq!((row.start, row.due), (freeze_end, freeze_end));
    }
    assert!(row.written >= freeze_end);
}

#[test]
fn a_freeze_of_one_connection_holds_that_one_alone() {
    let server = MockServer::builder()
        .workers(2)
        .freeze("at=0,for=700ms,connection=1")
        .record_rows(true)
        .start()
        .unwrap();
    let address = server.redis_addr().unwrap();
    // One after the other, so that they are accepted in this order.
    let mut clients = [(); 3].map(|()| {
        let mut client = Client::connect(address);
        client.send(b"PING\r\n");
        client
    });
    for client in &mut clients {
        assert_eq!(client.line(), "+PONG");
    }
    let end = server.shared().started + Duration::from_millis(700);
    let mut rows = server.stop().rows;
    rows.sort_by_key(|row| row.connection);
    assert_eq!(rows.len(), 3);
    for row in rows {
        let held = row.connection == 1 && row.read < end;
        assert_eq!(row.fault == FaultKind::Frozen, held, "{row:?}");
        assert_eq!(row.start, if held { end } else { row.read }, "{row:?}");
    }
}

#[test]
fn cut_connections_end_with_what_was_under_way_unanswered() {
    let server = MockServer::builder()
        .workers(2)
        .latency("get=constant(10s)")
        .cut("at=400ms,connection=1")
        .cut("at=400ms,connection=2,how=reset")
        .record_rows(true)
        .start()
        .unwrap();
    let address = server.redis_addr().unwrap();
    let [mut other, mut closed, mut reset] = [(); 3].map(|()| Client::connect(address));
    for client in [&mut closed, &mut reset] {
        client.send(b"PING\r\nGET key\r\nPING\r\n");
        assert_eq!(client.line(), "+PONG");
    }
    assert_eq!(closed.rest().unwrap(), "");
    let error = reset.rest().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(other.ask("PING"), "+PONG");
    let cut = server.shared().started + Duration::from_millis(400);
    let truth = server.stop();
    assert_eq!(
        (truth.stats.counts.closed, truth.stats.counts.reset),
        (1, 1)
    );
    for number in [1, 2] {
        let mut rows = truth.rows.iter().filter(|row| row.connection == number);
        let row = rows.next().unwrap();
        assert_eq!((row.command, row.answered), ("ping", true));
        assert!(
            row.read < cut,
            "the machine was too busy to connect in time"
        );
        // The last one was due at once, but behind the one before it.
        for command in ["get", "ping"] {
            let row = rows.next().unwrap();
            assert_eq!((row.command, row.answered), (command, false));
            assert_eq!((row.started, row.fault), (true, FaultKind::Cut));
        }
        assert_eq!(rows.next(), None);
    }
}

#[test]
fn a_server_serves_several_runs_and_keeps_them_apart() {
    let server = MockServer::builder()
        .latency("get=constant(150ms)")
        .freeze("at=0,for=1ms")
        .record_rows(true)
        .start()
        .unwrap();
    let mut client = Client::connect(server.redis_addr().unwrap());
    assert_eq!(client.ask("SET key value"), "+OK");
    let before = server.begin_run(7);
    assert_eq!((before.run, before.rows.len()), (RunId(0), 1));
    assert_eq!(before.stalls.len(), 1);
    assert_eq!(client.ask("PING"), "+PONG");
    // Read in run 7, answered in run 8.
    client.send(b"GET key\r\n");
    while server.truth().stats.calls.len() < 2 {
        std::thread::yield_now();
    }
    let seven = server.begin_run(8);
    assert_eq!(client.line(), "value");
    assert_eq!(client.ask("SET key other"), "+OK");
    let eight = server.finish_run();
    assert_eq!(client.ask("PING"), "+PONG");
    let after = server.stop();

    let commands =
        |truth: &Truth| -> Vec<&str> { truth.rows.iter().map(|row| row.command).collect() };
    assert_eq!((seven.run, commands(&seven)), (RunId(7), vec!["ping"]));
    assert_eq!(seven.stats.calls[&(Protocol::Redis, "get")], 1);
    assert_eq!(
        (seven.stats.counts.answered, seven.stats.counts.late),
        (1, 0)
    );
    assert!(seven.stalls.is_empty());
    assert_eq!((eight.run, commands(&eight)), (RunId(8), vec!["set"]));
    assert_eq!(
        (eight.stats.counts.answered, eight.stats.counts.late),
        (1, 1)
    );
    let kinds: Vec<_> = eight.stats.kinds.keys().map(|kind| kind.class).collect();
    assert_eq!(kinds, [Class::Write]);
    assert_eq!(eight.stats.calls.len(), 1);
    // The second row of the connection and the first of the run.
    assert_eq!(eight.rows[0].sequence, 3);
    assert_eq!((after.run, commands(&after)), (RunId(0), vec!["ping"]));
    assert!(seven.taken <= eight.begun && seven.begun >= before.begun);
}

#[test]
fn of_many_rows_the_last_are_kept_and_the_others_counted() {
    let server = MockServer::builder()
        .workers(2)
        .record_last_rows(5)
        .start()
        .unwrap();
    let address = server.redis_addr().unwrap();
    for _ in 0..2 {
        let mut client = Client::connect(address);
        for _ in 0..6 {
            assert_eq!(client.ask("PING"), "+PONG");
        }
    }
    let truth = server.stop();
    assert_eq!((truth.rows.len(), truth.rows_dropped), (5, 7));
    assert!(truth.rows.iter().all(|row| row.connection == 1));
    assert_eq!(truth.stats.counts.answered, 12);
}

#[test]
fn rows_are_written_to_a_file() {
    let path = std::env::temp_dir().join(format!("kvlab-embedded-{}.csv", std::process::id()));
    let server = MockServer::builder()
        .workers(2)
        .rows_file(&path)
        .start()
        .unwrap();
    let address = server.redis_addr().unwrap();
    for _ in 0..2 {
        assert_eq!(Client::connect(address).ask("SET key value"), "+OK");
    }
    let (truth, rows) = server.stop_all();
    rows.unwrap();
    assert!(truth.rows.is_empty());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines.iter().all(|line| line.contains(",redis,write,set,")),
        "{text}"
    );
    let full = MockServer::builder()
        .rows_file("/dev/full")
        .start()
        .unwrap_err();
    assert!(
        full.to_string()
            .starts_with("cannot write rows to /dev/full: "),
        "{full}"
    );
}
