//! What one connection does to another: CLIENT PAUSE and CLIENT KILL, between two workers over sockets
//! and, with exact times, in the virtual shell.

use kvlab_mock_server::latency::LatencyRules;
use kvlab_mock_server::{MockServer, ServerConfig};

use crate::client::Client;
use crate::virtual_server::{Laboratory, MILLI};

fn two_workers() -> MockServer {
    MockServer::start(ServerConfig {
        workers: 2,
        ..ServerConfig::default()
    })
    .unwrap()
}

#[test]
fn a_pause_holds_the_other_worker_until_it_is_ended() {
    let server = two_workers();
    let address = server.redis_addr().unwrap();
    // Connections are dealt to the workers in turn.
    let (mut first, mut second) = (Client::connect(address), Client::connect(address));
    assert_eq!(second.ask("PING"), "PONG");
    assert_eq!(first.ask("CLIENT PAUSE 100000 WRITE"), "OK");
    second.send("SET a 1");
    assert!(second.is_silent());
    assert_eq!(first.ask("GET a"), "(nil)");
    assert_eq!(first.ask("CLIENT UNPAUSE"), "OK");
    assert_eq!(second.reply().unwrap(), "OK");
    assert_eq!(first.ask("GET a"), "1");
}

#[test]
fn a_pause_ends_by_itself() {
    let server = two_workers();
    let address = server.redis_addr().unwrap();
    let (mut first, mut second) = (Client::connect(address), Client::connect(address));
    assert_eq!(first.ask("CLIENT PAUSE 150"), "OK");
    let before = server.clock().now();
    assert_eq!(second.ask("PING"), "PONG");
    let waited = server.clock().now().saturating_since(before);
    assert!(waited >= 50 * MILLI, "waited {waited} ns only");
}

#[test]
fn a_kill_reaches_the_other_worker() {
    let server = two_workers();
    let address = server.redis_addr().unwrap();
    let (mut first, mut second) = (Client::connect(address), Client::connect(address));
    let id = second.ask("CLIENT ID");
    assert_eq!(first.ask(&format!("CLIENT KILL ID {id}")), "1");
    assert_eq!(second.reply(), None);
    assert!(!first.ask("CLIENT LIST").contains(&format!("id={id} ")));
    assert_eq!(first.ask(&format!("CLIENT KILL ID {id}")), "0");
}

#[test]
fn a_kill_reaches_a_client_that_waits() {
    let server = two_workers();
    let address = server.redis_addr().unwrap();
    let (mut first, mut second) = (Client::connect(address), Client::connect(address));
    let id = second.ask("CLIENT ID");
    second.send("WAIT 1 0");
    assert!(second.is_silent());
    assert_eq!(first.ask(&format!("CLIENT KILL ID {id} SKIPME yes")), "1");
    assert_eq!(second.reply(), None);
}

#[test]
fn virtual_pauses_end_to_the_nanosecond() {
    let mut lab = Laboratory::new(ServerConfig {
        workers: 2,
        latency: LatencyRules::constant(2 * MILLI),
        ..ServerConfig::default()
    });
    let (first, second) = (lab.connect(), lab.connect());
    assert_eq!(lab.ask(first, "CLIENT PAUSE 1000 WRITE"), "OK");
    lab.pass(10 * MILLI);
    assert_eq!(lab.ask(second, "GET a\r\nSET a 1\r\nGET a"), "");
    lab.pass(2 * MILLI);
    // The read is answered; the write waits, and the read behind it with the write.
    assert_eq!(lab.heard(second), "(nil)");
    lab.pass(988 * MILLI);
    assert_eq!(lab.heard(second), "");
    // Executed at the end of the pause, answered a latency later.
    lab.pass(2 * MILLI - 1);
    assert_eq!(lab.heard(second), "");
    lab.pass(1);
    assert_eq!(lab.heard(second), "OK\n1");
}

#[test]
fn virtual_pauses_can_be_ended_and_prolonged() {
    let mut lab = Laboratory::new(ServerConfig {
        workers: 2,
        ..ServerConfig::default()
    });
    let (first, second, third) = (lab.connect(), lab.connect(), lab.connect());
    assert_eq!(lab.ask(first, "CLIENT PAUSE 1000 WRITE"), "OK");
    assert_eq!(lab.ask(second, "INCR a"), "");
    assert_eq!(lab.ask(third, "INCR a"), "");
    lab.pass(500 * MILLI);
    assert_eq!(lab.ask(first, "CLIENT PAUSE 1000 WRITE"), "OK");
    lab.pass(999 * MILLI);
    assert_eq!(lab.heard(second), "");
    assert_eq!(lab.ask(first, "CLIENT UNPAUSE"), "OK");
    // Worker by worker: the third client is on that of the first.
    assert_eq!(lab.heard(third), "1");
    assert_eq!(lab.heard(second), "2");
    lab.pass(10 * MILLI);
    assert_eq!(lab.ask(second, "INCR a"), "3");
}

#[test]
fn a_shorter_pause_does_not_end_a_longer_one() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let (first, second) = (lab.connect(), lab.connect());
    assert_eq!(lab.ask(first, "CLIENT PAUSE 1000 WRITE"), "OK");
    assert_eq!(lab.ask(first, "CLIENT PAUSE 10 ALL"), "OK");
    assert_eq!(lab.ask(second, "GET a"), "");
    lab.pass(999 * MILLI);
    assert_eq!(lab.heard(second), "");
    lab.pass(MILLI);
    assert_eq!(lab.heard(second), "(nil)");
}

#[test]
fn virtual_kills_are_immediate() {
    let mut lab = Laboratory::new(ServerConfig {
        workers: 2,
        ..ServerConfig::default()
    });
    let (first, second, third) = (lab.connect(), lab.connect(), lab.connect());
    assert_eq!(lab.ask(second, "CLIENT PAUSE 1000 WRITE"), "OK");
    assert_eq!(lab.ask(third, "SET a 1"), "");
    let killed = lab.ask(first, &format!("CLIENT KILL ID {}", third.0));
    assert_eq!(killed, "1");
    assert!(lab.is_closed(third));
    assert!(!lab.is_closed(second));
    assert_eq!(lab.ask(first, "CLIENT KILL TYPE normal SKIPME no"), "2");
    assert!(lab.is_closed(first) && lab.is_closed(second));
}

#[test]
fn who_hangs_up_while_waiting_is_forgotten() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let (first, second) = (lab.connect(), lab.connect());
    assert_eq!(lab.ask(first, "CLIENT PAUSE 1000 WRITE"), "OK");
    assert_eq!(lab.ask(second, "SET a 1"), "");
    lab.hang_up(second);
    assert!(lab.is_closed(second));
    lab.pass(2000 * MILLI);
    assert_eq!(lab.ask(first, "GET a"), "(nil)");
}

#[test]
fn waiting_for_replicas_takes_as_long_as_allowed() {
    let mut lab = Laboratory::new(ServerConfig::default());
    let (first, second) = (lab.connect(), lab.connect());
    assert_eq!(lab.ask(first, "WAIT 1 250"), "");
    // The end of a pause wakes every waiting client; this one waits on.
    lab.pass(100 * MILLI);
    assert_eq!(lab.ask(second, "CLIENT UNPAUSE"), "OK");
    assert_eq!(lab.heard(first), "");
    assert_eq!(lab.until_due(), Some(150 * MILLI));
    lab.pass(150 * MILLI);
    assert_eq!(lab.heard(first), "0");
}
