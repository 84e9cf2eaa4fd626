//! Once warm, putting and getting a record allocates nothing.
//!
//! A program of its own, with one test, as the counters are those of the whole process.

// A test that unwraps or indexes wrongly fails, as it should.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::alloc::System;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::dialect::{Context, Dialect, Flow, Limited, Listener};
use kvlab_mock_server::event::PostOffice;
use kvlab_mock_server::shared::Shared;
use kvlab_protocol::aerospike::digest::{Key, digest};
use kvlab_protocol::aerospike::message::{
    FieldKind, Info1, Info2, MessageHeader, OpCode, ParticleType, put_message_frame,
};
use kvlab_timing::Stamp;
use kvlab_timing::wall::WallClock;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn request(info1: Info1, info2: Info2, value: Option<&[u8]>) -> BytesMut {
    let header = MessageHeader {
        info1,
        info2,
        ..MessageHeader::EMPTY
    };
    let mut out = BytesMut::new();
    put_message_frame(&mut out, &header, |message| {
        message.field(FieldKind::Namespace, b"test");
        message.field(FieldKind::Set, b"s");
        message.field(FieldKind::Digest, &digest(b"s", Key::Integer(1)));
        if let Some(value) = value {
            message.op(OpCode::Write, ParticleType::Blob, b"bin", value);
        }
    });
    out
}

#[test]
fn warm_puts_and_gets_allocate_nothing() {
    let now = Stamp::from_nanos(1);
    let wall = WallClock::fixed(now, WallClock::VIRTUAL_EPOCH_NS);
    let post = PostOffice::new(vec![Box::new(|| ())]);
    let shared = Arc::new(Shared::new(ServerConfig::default(), now, wall, post));
    let address = SocketAddr::from(([127, 0, 0, 1], 3000));
    let client = shared.clients.accept(now, 0, address, address);
    let mut dialect = Dialect::new(Listener::Aerospike, &shared);
    let mut out = BytesMut::with_capacity(4096);
    let frames = [
        request(Info1::empty(), Info2::WRITE, Some(&[7; 100])),
        request(Info1::READ | Info1::GET_ALL, Info2::empty(), None),
        request(Info1::READ | Info1::NO_BINS, Info2::empty(), None),
    ];
    let mut round = || {
        for frame in &frames {
            out.clear();
            let decoded = dialect.decode(frame).unwrap().unwrap();
            assert_eq!(decoded.len, frame.len());
            let mut context = Context {
                limited: Limited::default(),
                now,
                worker: 0,
                shared: &shared,
                client: &client,
            };
            assert_eq!(dialect.execute(frame, &mut context, &mut out), Flow::Done);
            assert_eq!(dialect.describe(frame).key, digest(b"s", Key::Integer(1)));
            assert_eq!(out[13], 0, "result code");
        }
    };
    round();
    let region = Region::new(ALLOCATOR);
    for _ in 0..100 {
        round();
    }
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0));
}
