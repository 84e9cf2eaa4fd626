//! Replays exchanges captured from a real Aerospike server against the mock: every byte that is not
//! masked and every close must be equal.
//!
//! The files and their format are described in `golden/aerospike/README.md`. Requests of the files
//! that a real client wrote share one connection, hand-made ones get a fresh connection each, as when
//! they were captured.

// A test that unwraps or indexes wrongly fails, as it should.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use kvlab_mock_server::dialect::Listener;
use kvlab_mock_server::event::ConnId;
use kvlab_mock_server::virtual_shell::VirtualServer;
use kvlab_mock_server::{MockServer, ServerConfig};
use kvlab_protocol::aerospike::message::{Info3, MessageHeader, Messages};
use kvlab_protocol::aerospike::proto::{Kind, split_frame};
use kvlab_timing::Stamp;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct File {
    exchanges: Vec<Exchange>,
}

#[derive(Debug, Deserialize)]
struct Exchange {
    id: String,
    desc: String,
    req: String,
    resp: String,
    #[serde(default)]
    resp_mask: Vec<(usize, usize)>,
    #[serde(default)]
    unordered: bool,
    #[serde(default)]
    volatile: bool,
    #[serde(default)]
    server_closes: bool,
    #[serde(default)]
    ignore_resp: bool,
    #[serde(default)]
    settle_ms: u64,
}

/// Files whose every exchange must agree, and whether each gets a connection of its own.
const DEMANDED: [(&str, bool); 5] = [
    ("kv", false),
    ("operate", false),
    ("info", true),
    ("malformed", true),
    ("security", true),
];

/// Batch files, with the exchanges that need what is not built yet.
const BATCHES: [(&str, bool, &[&str]); 2] = [
    // A filter that compares a bin: expressions are not evaluated.
    ("batch", false, &["batch-012"]),
    ("rawbatch", true, &[]),
];

fn load(name: &str) -> File {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../golden/aerospike/{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

fn show(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digits} {:?}", String::from_utf8_lossy(bytes))
}

/// How an answer differs from the captured one, if it does.
fn difference(exchange: &Exchange, answer: &[u8], closed: bool) -> Option<String> {
    let mut expected = hex(&exchange.resp);
    let mut answer = answer.to_vec();
    if exchange.ignore_resp {
        return None;
    }
    if closed != exchange.server_closes {
        return Some(format!(
            "closed: {closed}, expected {}",
            exchange.server_closes
        ));
    }
    if exchange.volatile {
        let shape = |bytes: &[u8]| (bytes.get(..2).map(<[u8]>::to_vec), bytes.is_empty());
        return (shape(&answer) != shape(&expected)).then(|| show(&answer));
    }
    for &(at, len) in &exchange.resp_mask {
        for bytes in [&mut expected, &mut answer] {
            if let Some(masked) = bytes.get_mut(at..at + len) {
                masked.fill(0);
            }
        }
    }
    let equal = if exchange.unordered {
        records(&expected) == records(&answer)
    } else {
        expected == answer
    };
    (!equal).then(|| format!("expected {}\n       got {}", show(&expected), show(&answer)))
}

/// The messages of an answer in any order, the last one apart.
fn records(answer: &[u8]) -> (Vec<String>, Option<MessageHeader>) {
    let (mut records, mut last) = (Vec::new(), None);
    let mut rest = answer;
    while let Some(frame) = split_frame(rest).unwrap() {
        rest = frame.rest;
        assert_eq!(frame.header.kind, Kind::Message);
        for message in Messages::new(frame.body) {
            let message = message.unwrap();
            if message.header().info3.contains(Info3::LAST) {
                last = Some(*message.header());
            } else {
                let parts = (message.header(), message.field_bytes(), message.op_bytes());
                records.push(format!("{parts:?}"));
            }
        }
    }
    records.sort();
    (records, last)
}

/// A server under virtual time, whose address is the one of the capturing server.
struct Replay {
    server: VirtualServer,
    now: Stamp,
    connection: Option<ConnId>,
    clients: u16,
}

impl Replay {
    fn new() -> Self {
        let now = Stamp::from_nanos(1);
        let server = VirtualServer::new(ServerConfig::default(), now);
        let address = server.address(Listener::Aerospike).unwrap();
        assert_eq!(address.to_string(), "127.0.0.1:3000");
        Self {
            server,
            now,
            connection: None,
            clients: 0,
        }
    }

    fn exchange(&mut self, exchange: &Exchange, fresh: bool) -> (Vec<u8>, bool) {
        self.now = self.now.add_nanos(1_000_000);
        let reused = self.connection.filter(|_| !fresh);
        let connection = reused.unwrap_or_else(|| {
            self.clients += 1;
            let peer = SocketAddr::from(([127, 0, 0, 1], 40_000 + self.clients));
            self.server.accept(self.now, Listener::Aerospike, peer)
        });
        self.connection = Some(connection);
        self.server
            .handle_bytes(self.now, connection, &hex(&exchange.req));
        let (mut answer, mut closed) = (Vec::new(), false);
        while let Some(output) = self.server.poll_output() {
            assert_eq!(output.connection, connection);
            answer.extend_from_slice(&output.bytes);
            closed |= output.close;
        }
        self.now = self.now.add_nanos(exchange.settle_ms * 1_000_000);
        (answer, closed)
    }

    /// Replays a file; the ids of the exchanges that differ, and how.
    fn file(&mut self, name: &str, fresh: bool) -> Vec<(String, String)> {
        let mut differences = Vec::new();
        for exchange in &load(name).exchanges {
            let (answer, closed) = self.exchange(exchange, fresh);
            if let Some(text) = difference(exchange, &answer, closed) {
                let text = format!("{} ({}): {text}", exchange.id, exchange.desc);
                differences.push((exchange.id.clone(), text));
            }
        }
        differences
    }
}

fn assert_none(differences: &[(String, String)]) {
    let texts: Vec<_> = differences.iter().map(|(_, text)| text.as_str()).collect();
    assert!(
        texts.is_empty(),
        "{} differ:\n{}",
        texts.len(),
        texts.join("\n")
    );
}

#[test]
fn demanded_files_agree_byte_for_byte() {
    for (name, fresh) in DEMANDED {
        assert_none(&Replay::new().file(name, fresh));
    }
}

#[test]
fn demanded_files_agree_in_one_server_in_any_order() {
    let mut replay = Replay::new();
    for (name, fresh) in DEMANDED.into_iter().rev() {
        assert_none(&replay.file(name, fresh));
    }
}

#[test]
fn batches_agree_but_for_what_is_listed() {
    for (name, fresh, missing) in BATCHES {
        let differences = Replay::new().file(name, fresh);
        let ids: Vec<_> = differences.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, missing, "{differences:#?}");
    }
}

#[test]
fn demanded_files_agree_over_sockets() {
    let config = ServerConfig {
        redis_port: None,
        ..ServerConfig::default()
    };
    for (name, fresh) in DEMANDED {
        let server = MockServer::start(config.clone()).unwrap();
        let address = server.aerospike_addr().unwrap();
        let mut socket = connect(address);
        let mut differences = Vec::new();
        for exchange in &load(name).exchanges {
            if fresh {
                socket = connect(address);
            }
            let exchange = at_port(exchange, address.port());
            let (answer, closed) = over_socket(&exchange, &mut socket, fresh);
            if let Some(text) = difference(&exchange, &answer, closed) {
                differences.push((exchange.id.clone(), format!("{}: {text}", exchange.id)));
            }
        }
        assert_none(&differences);
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket
}

/// The exchange as a server at another port would have it.
fn at_port(exchange: &Exchange, port: u16) -> Exchange {
    let mut resp = exchange.resp.clone();
    if exchange.id == "info-018" {
        let text = format!("service-clear-std\t127.0.0.1:{port}\n");
        let body: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        resp = format!("0201{:012x}{body}", text.len());
    }
    Exchange {
        id: exchange.id.clone(),
        desc: exchange.desc.clone(),
        req: exchange.req.clone(),
        resp,
        resp_mask: exchange.resp_mask.clone(),
        ..*exchange
    }
}

fn over_socket(exchange: &Exchange, socket: &mut TcpStream, fresh: bool) -> (Vec<u8>, bool) {
    socket.write_all(&hex(&exchange.req)).unwrap();
    let mut answer = Vec::new();
    if !fresh {
        answer.resize(exchange.resp.len() / 2, 0);
        socket.read_exact(&mut answer).unwrap();
        return (answer, false);
    }
    if !exchange.server_closes {
        // Whatever the server has to say comes before it closes in its turn.
        socket.shutdown(Shutdown::Write).unwrap();
    }
    socket.read_to_end(&mut answer).unwrap();
    (answer, exchange.server_closes)
}
