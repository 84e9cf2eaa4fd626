//! Record operations are atomic whichever worker runs them.

// A test that unwraps or indexes wrongly fails, as it should.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use bytes::BytesMut;
use kvlab_mock_server::dialect::aerospike::record::Moment;
use kvlab_mock_server::{MockServer, ServerConfig};
use kvlab_protocol::aerospike::digest::{Digest, Key, digest};
use kvlab_protocol::aerospike::message::{
    FieldKind, Info1, Info2, MessageHeader, MessageView, OpCode, ParticleType, put_message_frame,
};
use kvlab_protocol::aerospike::particle::Value;
use kvlab_protocol::aerospike::proto::{HEADER_LEN, decode_header};
use kvlab_protocol::aerospike::result_code::ResultCode;

const SET: &[u8] = b"s";
const CLIENTS: i64 = 4;
const ROUNDS: i64 = 1000;

fn request(record: &Digest, info1: Info1, info2: Info2, ops: &[(OpCode, &[u8], i64)]) -> BytesMut {
    let header = MessageHeader {
        info1,
        info2,
        ..MessageHeader::EMPTY
    };
    let mut out = BytesMut::new();
    put_message_frame(&mut out, &header, |message| {
        message.field(FieldKind::Namespace, b"test");
        message.field(FieldKind::Set, SET);
        message.field(FieldKind::Digest, record);
        for (code, bin, value) in ops {
            message.op(*code, ParticleType::Integer, bin, &value.to_be_bytes());
        }
    });
    out
}

fn exchange(socket: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    socket.write_all(request).unwrap();
    let mut head = [0; HEADER_LEN];
    socket.read_exact(&mut head).unwrap();
    let len = decode_header(&head).unwrap().unwrap().len;
    let mut body = vec![0; usize::try_from(len).unwrap()];
    socket.read_exact(&mut body).unwrap();
    body
}

/// Adds to both bins of a record and now and then looks whether they agree.
fn hammer(address: SocketAddr, record: &Digest) {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    let both = [
        (OpCode::Increment, &b"left"[..], 1),
        (OpCode::Increment, b"right", 1),
    ];
    let add = request(record, Info1::empty(), Info2::WRITE, &both);
    let get = request(record, Info1::READ | Info1::GET_ALL, Info2::empty(), &[]);
    for _ in 0..ROUNDS {
        let answer = exchange(&mut socket, &add);
        let view = MessageView::parse(&answer).unwrap();
        assert_eq!(view.header().result, ResultCode::Ok);
        let answer = exchange(&mut socket, &get);
        let view = MessageView::parse(&answer).unwrap();
        let values: Vec<_> = view.ops().map(|op| op.value).collect();
        let generation = i64::from(view.header().generation).to_be_bytes();
        assert_eq!(values, [&generation[..], &generation[..]], "a torn read");
    }
}

#[test]
fn writes_of_several_workers_are_all_counted_and_never_seen_half() {
    let server = MockServer::start(ServerConfig {
        redis_port: None,
        workers: 2,
        ..ServerConfig::default()
    })
    .unwrap();
    let address = server.aerospike_addr().unwrap();
    let record = digest(SET, Key::Integer(1));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| hammer(address, &record));
        }
    });
    let shared = server.shared();
    let now = Moment::new(shared.unix_nanos(server.clock().now()));
    let namespace = shared.aerospike.namespace(b"test").unwrap();
    let found = namespace.get(SET, Key::Integer(1), now).unwrap();
    let total = Value::Integer(CLIENTS * ROUNDS);
    let bins = [
        (b"left".to_vec(), total.clone()),
        (b"right".to_vec(), total),
    ];
    assert_eq!(found.bins, bins);
    assert_eq!(i64::from(found.meta.generation), CLIENTS * ROUNDS);
}
