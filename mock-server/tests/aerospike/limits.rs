//! Limits on requests on the Aerospike side: throttles, sizes, stop-writes, blocked operations; over a
//! socket and in virtual time.

// A test that unwraps or indexes wrongly fails, as it should.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::BytesMut;
use kvlab_mock_server::dialect::Listener;
use kvlab_mock_server::event::ConnId;
use kvlab_mock_server::limit::ByteSize;
use kvlab_mock_server::virtual_shell::VirtualServer;
use kvlab_mock_server::{MockServer, ServerBuilder};
use kvlab_protocol::aerospike::digest::{Key, digest};
use kvlab_protocol::aerospike::info;
use kvlab_protocol::aerospike::message::{
    FieldKind, Info1, Info2, MessageHeader, MessageView, OpCode, put_message_frame,
};
use kvlab_protocol::aerospike::particle::Value;
use kvlab_protocol::aerospike::proto::split_frame;
use kvlab_protocol::aerospike::result_code::ResultCode;
use kvlab_timing::{Clock, Stamp};

const MILLI: u64 = 1_000_000;

/// A message about the record `name`, with its key in it, and the bins to write.
fn message(header: &MessageHeader, name: &str, bins: &[(&str, Vec<u8>)]) -> BytesMut {
    let mut out = BytesMut::new();
    put_message_frame(&mut out, header, |message| {
        message.field(FieldKind::Namespace, b"test");
        message.field(FieldKind::Set, b"s");
        // 3 is the type of a string.
        message.field(FieldKind::Key, &[&[3], name.as_bytes()].concat());
        message.field(
            FieldKind::Digest,
            &digest(b"s", Key::String(name.as_bytes())),
        );
        for (bin, value) in bins {
            let value = Value::Blob(value.clone().into());
            let particle = value.particle_type();
            message.op_with(OpCode::Write, particle, bin.as_bytes(), |out| {
                value.encode(out)
            });
        }
    });
    out
}

fn put(name: &str, len: usize) -> BytesMut {
    let header = MessageHeader {
        info2: Info2::WRITE,
        ..MessageHeader::EMPTY
    };
    message(&header, name, &[("a", vec![7; len])])
}

fn get(name: &str) -> BytesMut {
    let header = MessageHeader {
        info1: Info1::READ | Info1::GET_ALL,
        ..MessageHeader::EMPTY
    };
    message(&header, name, &[])
}

fn remove(name: &str) -> BytesMut {
    let header = MessageHeader {
        info2: Info2::WRITE | Info2::DELETE,
        ..MessageHeader::EMPTY
    };
    message(&header, name, &[])
}

fn ask_info(command: &str) -> BytesMut {
    let mut out = BytesMut::new();
    info::put_request([command], &mut out);
    out
}

/// The result codes of all messages in `answer`.
fn codes(mut answer: &[u8]) -> Vec<ResultCode> {
    let mut codes = Vec::new();
    while !answer.is_empty() {
        let frame = split_frame(answer).unwrap().unwrap();
        codes.push(MessageView::parse(frame.body).unwrap().header().result);
        answer = frame.rest;
    }
    codes
}

/// A server under virtual time with one client.
struct Lab {
    server: VirtualServer,
    now: Stamp,
    connection: ConnId,
    heard: Vec<u8>,
}

impl Lab {
    fn new(set: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let config = set(MockServer::builder()).into_config().unwrap();
        let now = Stamp::from_nanos(0);
        let mut server = VirtualServer::new(config, now);
        let peer = SocketAddr::from(([127, 0, 0, 1], 40_000));
        let connection = server.accept(now, Listener::Aerospike, peer);
        Self {
            server,
            now,
            connection,
            heard: Vec::new(),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.server.handle_bytes(self.now, self.connection, bytes);
        self.collect();
    }

    fn collect(&mut self) {
        while let Some(output) = self.server.poll_output() {
            assert!(!output.close);
            self.heard.extend_from_slice(&output.bytes);
        }
    }

    fn heard(&mut self) -> Vec<ResultCode> {
        codes(&std::mem::take(&mut self.heard))
    }

    fn ask(&mut self, bytes: &[u8]) -> ResultCode {
        self.send(bytes);
        let heard = self.heard();
        assert_eq!(heard.len(), 1);
        heard[0]
    }

    fn info(&mut self, command: &str) -> String {
        self.send(&ask_info(command));
        let heard = std::mem::take(&mut self.heard);
        let frame = split_frame(&heard).unwrap().unwrap();
        let answer = info::answers(frame.body).next().unwrap();
        String::from_utf8(answer.value.to_vec()).unwrap()
    }

    /// A pair of `namespace/test`.
    fn figure(&mut self, name: &str) -> String {
        let text = self.info("namespace/test");
        let mut pairs = text.split(';').filter_map(|pair| pair.split_once('='));
        let pair = pairs.find(|(known, _)| *known == name);
        pair.unwrap().1.to_owned()
    }

    fn pass(&mut self, nanos: u64) {
        let end = self.now.add_nanos(nanos);
        while let Some(due) = self.server.poll_timeout().filter(|due| *due <= end) {
            self.now = due;
            self.server.handle_timeout(due);
            self.collect();
        }
        self.now = end;
    }
}

#[test]
fn a_delayed_message_is_answered_at_its_turn() {
    let mut lab = Lab::new(|server| server.throttle("ops=1000/s,burst=1"));
    lab.send(&[get("a"), get("b"), get("c")].concat());
    assert_eq!(lab.heard(), [ResultCode::NotFound]);
    lab.pass(MILLI - 1);
    assert_eq!(lab.heard(), []);
    lab.pass(1);
    assert_eq!(lab.heard(), [ResultCode::NotFound]);
    lab.pass(MILLI);
    assert_eq!(lab.heard(), [ResultCode::NotFound]);
}

#[test]
fn operations_beyond_a_quota_get_83_and_bytes_18() {
    let mut lab = Lab::new(|server| {
        server
            .throttle("ops=2/s,of=read,then=error")
            .throttle("in=1KB/s,of=write,then=error")
    });
    for expected in [
        ResultCode::NotFound,
        ResultCode::NotFound,
        ResultCode::QuotaExceeded,
    ] {
        assert_eq!(lab.ask(&get("a")), expected);
    }
    assert_eq!(lab.ask(&put("a", 100)), ResultCode::Ok);
    assert_eq!(lab.ask(&put("a", 1_000)), ResultCode::DeviceOverload);
    // Text commands are not counted unless all are.
    assert_eq!(lab.info("status"), "ok");
    let mut all = Lab::new(|server| server.throttle("ops=1/s,of=all,then=error"));
    assert_eq!(all.info("status"), "ok");
    assert_eq!(all.info("status"), "ERROR:83:quota exceeded");
}

#[test]
fn a_message_that_is_too_large_is_refused_by_its_header() {
    let mut lab = Lab::new(|server| server.size_limit("request=300"));
    let large = put("a", 1_000_000);
    lab.send(&large[..8]);
    assert_eq!(lab.heard(), [ResultCode::RecordTooBig]);
    for part in large[8..].chunks(10_000) {
        lab.send(part);
        assert_eq!(lab.heard(), []);
    }
    assert_eq!(lab.ask(&get("a")), ResultCode::NotFound);
    assert_eq!(lab.ask(&put("a", 100)), ResultCode::Ok);
}

#[test]
fn records_keys_and_operations_have_their_limits() {
    let mut lab = Lab::new(|server| {
        server
            .size_limit("value=512")
            .size_limit("key=4")
            .size_limit("arguments=2")
    });
    // A record takes 35 bytes of head, 2 of its set, 4 and its key with type, 9 for the bin, rounded
    // up to 16: with a key of one byte and 460 of data that is 512.
    assert_eq!(lab.ask(&put("a", 460)), ResultCode::Ok);
    assert_eq!(lab.ask(&put("a", 461)), ResultCode::RecordTooBig);
    assert_eq!(lab.figure("fail_record_too_big"), "1");
    assert_eq!(lab.figure("max-record-size"), "512");
    assert_eq!(lab.ask(&put("abcd", 1)), ResultCode::Ok);
    assert_eq!(lab.ask(&put("abcde", 1)), ResultCode::Parameter);
    let header = MessageHeader {
        info2: Info2::WRITE,
        ..MessageHeader::EMPTY
    };
    let bins = ["a", "b", "c"].map(|bin| (bin, vec![1]));
    assert_eq!(lab.ask(&message(&header, "a", &bins[..2])), ResultCode::Ok);
    assert_eq!(
        lab.ask(&message(&header, "a", &bins)),
        ResultCode::Parameter
    );
}

#[test]
fn writes_stop_at_their_share_of_memory_and_removals_do_not() {
    // Records of 512 bytes, see above: 20 of them are 10,240 bytes, which is 51 % of 20,000, and 19
    // are 48 %.
    let mut lab = Lab::new(|server| {
        let server = server.max_memory(ByteSize(20_000));
        server.stop_writes("50%".parse().unwrap())
    });
    for number in 10..30 {
        let name = number.to_string();
        assert_eq!(lab.ask(&put(&name, 459)), ResultCode::Ok, "{number}");
    }
    assert_eq!(lab.figure("data_used_bytes"), "10240");
    assert_eq!(lab.figure("data_used_pct"), "51");
    assert_eq!(lab.figure("data_avail_pct"), "49");
    assert_eq!(lab.figure("data_total_bytes"), "20000");
    assert_eq!(lab.figure("storage-engine.stop-writes-used-pct"), "50");
    assert_eq!(lab.figure("stop_writes"), "true");
    assert_eq!(lab.ask(&put("30", 459)), ResultCode::OutOfSpace);
    assert_eq!(lab.ask(&put("10", 1)), ResultCode::OutOfSpace);
    assert_eq!(lab.figure("client_write_error"), "2");
    assert_eq!(lab.ask(&get("10")), ResultCode::Ok);
    assert_eq!(lab.ask(&remove("10")), ResultCode::Ok);
    assert_eq!(lab.figure("stop_writes"), "false");
    assert_eq!(lab.ask(&put("30", 459)), ResultCode::Ok);
}

#[test]
fn without_a_limit_on_memory_writes_go_on_and_the_figures_are_the_usual_ones() {
    let mut lab = Lab::new(|server| server);
    assert_eq!(lab.figure("data_total_bytes"), "1073741824");
    assert_eq!(lab.figure("storage-engine.stop-writes-used-pct"), "70");
    assert_eq!(lab.figure("stop_writes"), "false");
}

#[test]
fn blocked_operations_and_info_commands_are_forbidden() {
    let mut lab = Lab::new(|server| {
        server
            .block("aerospike.remove")
            .block("truncate")
            .block("redis.get")
    });
    assert_eq!(lab.ask(&remove("a")), ResultCode::Forbidden);
    assert_eq!(lab.ask(&get("a")), ResultCode::NotFound);
    assert_eq!(
        lab.info("truncate:namespace=test;set=s"),
        "ERROR:22:forbidden"
    );
    assert_eq!(lab.info("truncate-namespace:namespace=test"), "ok");
}

/// Sends over a socket and reads as many messages as were sent.
fn ask(socket: &mut TcpStream, requests: &[BytesMut]) -> Vec<ResultCode> {
    socket.write_all(&requests.concat()).unwrap();
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let mut rest = &answer[..];
        let mut whole = 0;
        while let Some(frame) = split_frame(rest).unwrap() {
            (rest, whole) = (frame.rest, whole + 1);
        }
        if whole == requests.len() {
            return codes(&answer);
        }
        let len = socket.read(&mut chunk).unwrap();
        assert!(len > 0);
        answer.extend_from_slice(&chunk[..len]);
    }
}

#[test]
fn limits_hold_over_a_socket() {
    let server = MockServer::builder()
        .throttle("ops=100/s,burst=5,of=aerospike.get")
        .throttle("ops=1/h,burst=2,of=aerospike.put,then=error")
        .throttle("ops=1/h,burst=1,of=aerospike.remove,then=drop")
        .size_limit("request=1KB")
        .block("aerospike.udf")
        .start()
        .unwrap();
    let mut socket = TcpStream::connect(server.aerospike_addr().unwrap()).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let clock = Clock::real();
    let begun = clock.now();
    // 5 at once and 10 at 100 per second.
    let codes = ask(&mut socket, &vec![get("a"); 15]);
    assert_eq!(codes, [ResultCode::NotFound; 15]);
    assert!(clock.now().saturating_since(begun) >= 99_000_000);
    assert_eq!(
        ask(
            &mut socket,
            &[put("a", 1), put("a", 2), put("a", 3), put("a", 2_000)]
        ),
        [
            ResultCode::Ok,
            ResultCode::Ok,
            ResultCode::QuotaExceeded,
            ResultCode::RecordTooBig
        ]
    );
    assert_eq!(ask(&mut socket, &[remove("a")]), [ResultCode::Ok]);
    socket.write_all(&remove("a")).unwrap();
    socket.write_all(&put("a", 1)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let error = socket.read(&mut [0]).unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut
    ));
    let counts = server.truth().stats.counts;
    assert_eq!((counts.throttled, counts.too_large), (1, 1));
    // A slow machine leaves time for tokens to come.
    assert!((1..=10).contains(&counts.delayed), "{counts:?}");
    assert_eq!(counts.dropped, 2);
}
