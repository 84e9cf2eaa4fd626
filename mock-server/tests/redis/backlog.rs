//! A client that asks for much and reads nothing: replies are bounded, and none is lost.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kvlab_mock_server::dialect::{Dialect, Listener};
use kvlab_mock_server::exchange::Protocol;
use kvlab_mock_server::limit::Admission;
use kvlab_mock_server::session::{BACKLOG_LIMIT, REQUEST_LIMIT, Session};
use kvlab_mock_server::virtual_shell::VirtualServer;
use kvlab_mock_server::worker::Worker;
use kvlab_mock_server::{MockServer, ServerConfig};
use kvlab_timing::Stamp;

const VALUE: usize = 1 << 20;
const REQUESTS: usize = 200;
/// `$1048576\r\n`, the value, `\r\n`.
const REPLY: usize = 10 + VALUE + 2;

#[test]
fn requests_wait_while_too_much_is_unread_and_all_are_answered_in_the_end() {
    let shared = Arc::clone(VirtualServer::new(ServerConfig::default(), Stamp::ZERO).shared());
    let mut worker = Worker::new(0, Arc::clone(&shared));
    let address = "127.0.0.1:40000".parse().unwrap();
    let client = shared.clients.accept(Stamp::ZERO, 0, address, address);
    let dialect = Dialect::new(Listener::Redis, &shared);
    let admission = Admission::at_once(Protocol::Redis);
    let mut session = Session::new(client, dialect, admission, &mut worker);
    let now = Stamp::from_nanos(1);

    let mut set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${VALUE}\r\n").into_bytes();
    set.resize(set.len() + VALUE, b'v');
    set.extend_from_slice(b"\r\n");
    session.handle_bytes(now, &set, &mut worker);
    assert_eq!(session.poll_output(now, &mut worker), b"+OK\r\n");
    session.wrote(5, now, now, &mut worker);

    let gets = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".repeat(REQUESTS);
    session.handle_bytes(now, &gets, &mut worker);
    assert!(!session.wants_input(), "the shell stops reading");
    let mut total = 0;
    loop {
        let unread = session.poll_output(now, &mut worker).len();
        assert!(unread < BACKLOG_LIMIT + REPLY, "{unread} bytes wait");
        if unread == 0 {
            break;
        }
        let taken = unread.min(300_000);
        session.wrote(taken, now, now, &mut worker);
        total += taken;
    }
    assert_eq!(total, REQUESTS * REPLY);
    assert!(session.wants_input());
    let calls = &worker.truth(Stamp::ZERO).stats.calls;
    let gets = calls.iter().find(|((_, name), _)| *name == "get");
    assert_eq!(gets.map(|(_, count)| *count), Some(REQUESTS as u64));
}

#[test]
fn reading_goes_on_after_it_was_paused_for_too_many_requests() {
    let server = MockServer::builder()
        .latency("all=constant(200ms)")
        .start()
        .unwrap();
    let mut reader = TcpStream::connect(server.redis_addr().unwrap()).unwrap();
    reader
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut writer = reader.try_clone().unwrap();
    let requests = REQUEST_LIMIT + REQUEST_LIMIT / 4;
    let sender = thread::spawn(move || {
        let thousand = b"PING\r\n".repeat(1024);
        for _ in 0..requests / 1024 {
            writer.write_all(&thousand).unwrap();
        }
    });
    let mut left = requests / 1024 * 1024 * "+PONG\r\n".len();
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let read = reader.read(&mut buffer).unwrap();
        assert!(read > 0, "closed with {left} bytes to come");
        left -= read;
    }
    sender.join().unwrap();
}
