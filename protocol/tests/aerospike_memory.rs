//! Memory follows the bytes that arrived, never the counts and sizes that were announced; and a warm
//! path of single-record requests, batches and their answers does not allocate at all.
//!
//! A program of its own, with one test, as the counters are those of the whole process.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::alloc::System;

use bytes::BytesMut;
use kvlab_protocol::aerospike::batch::BatchView;
use kvlab_protocol::aerospike::digest::{Digest, Key, digest, partition_id};
use kvlab_protocol::aerospike::info::{AnswerWriter, requests};
use kvlab_protocol::aerospike::message::*;
use kvlab_protocol::aerospike::msgpack::{self, Value};
use kvlab_protocol::aerospike::particle::stored_form;
use kvlab_protocol::aerospike::proto::{
    Frame, Header, Kind, VERSION, begin_frame, finish_frame, split_frame,
};
use kvlab_protocol::aerospike::reply::{MultiReply, skim};
use kvlab_protocol::aerospike::request::{
    BatchRead, BatchTemplate, RecordKey, RecordTemplate, Target, WritePolicy,
};
use kvlab_protocol::aerospike::tree::{self, Sender};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const TARGET: Target<'static> = Target {
    namespace: b"test",
    set: b"s",
    timeout_ms: 1000,
    send_key: true,
};

#[test]
fn memory_follows_what_arrived() {
    announced_counts_allocate_nothing();
    counts_inside_counts_stay_bounded();
    warm_hot_path_does_not_allocate();
}

/// Runs `work` and gives the number of allocations and the bytes asked for.
fn count(work: impl FnOnce()) -> (usize, usize) {
    let region = Region::new(ALLOCATOR);
    work();
    let change = region.change();
    let grown = usize::try_from(change.bytes_reallocated).unwrap_or(0);
    (
        change.allocations + change.reallocations,
        change.bytes_allocated + grown,
    )
}

fn announced_counts_allocate_nothing() {
    let values: [&[u8]; 6] = [
        &[0xdd, 0xff, 0xff, 0xff, 0xff, 1, 2, 3],
        &[0xdf, 0xff, 0xff, 0xff, 0xff, 1, 2, 3],
        &[0xdb, 0xff, 0xff, 0xff, 0xff, 3, b'a'],
        &[0xc6, 0x7f, 0xff, 0xff, 0xff, 3, b'a'],
        &[0xc9, 0x7f, 0xff, 0xff, 0xff, 3, b'a'],
        &[0xdc, 0xff, 0xff, 1],
    ];
    for value in values {
        let (allocations, _) = count(|| {
            assert!(Value::decode(value).is_err());
            assert!(msgpack::validate(value).is_err());
        });
        assert_eq!(allocations, 0, "{value:x?}");
    }
    let mut body = MessageHeader::EMPTY.encode();
    body[18..].fill(0xff);
    let header = Header {
        version: VERSION,
        kind: Kind::Message,
        len: body.len() as u64,
    };
    let frame = Frame {
        header,
        body: &body,
        rest: &[],
    };
    let (allocations, _) = count(|| {
        assert!(tree::Frame::decode(Sender::Client, &frame).is_err());
        assert!(BatchView::parse(&[0xff; 100]).is_err());
        assert_eq!(split_frame(&[2, 3, 0, 0, 8, 0, 0, 0]), Ok(None));
    });
    assert_eq!(allocations, 0);
}

fn counts_inside_counts_stay_bounded() {
    // Every level claims as many elements as there are bytes left, and fails at the very end.
    let depth = msgpack::MAX_DEPTH;
    let mut value = Vec::new();
    for level in 0..depth {
        value.push(0xdc);
        value.extend(
            u16::try_from((depth - level) * 3 - 3)
                .unwrap()
                .to_be_bytes(),
        );
    }
    let (_, bytes) = count(|| assert!(Value::decode(&value).is_err()));
    // 40 bytes a value: all that follow at the outermost level, 16 at each other.
    assert!(bytes <= value.len() * 40 + depth * 16 * 40, "{bytes} bytes");
}

fn warm_hot_path_does_not_allocate() {
    let put = RecordTemplate::put(
        &TARGET,
        &WritePolicy::default(),
        &[(b"a", ParticleType::Integer), (b"b", ParticleType::List)],
    );
    let get = RecordTemplate::get(&TARGET);
    let batch = BatchTemplate::read(&TARGET, BatchRead::AllBins);
    let mut wire = BytesMut::with_capacity(8192);
    let mut answers = BytesMut::with_capacity(8192);
    let mut round = |number: i64| {
        wire.clear();
        answers.clear();
        let key = Key::Integer(number);
        let record_digest: Digest = digest(TARGET.set, key);
        assert!(partition_id(&record_digest) < 4096);
        let record = RecordKey {
            digest: &record_digest,
            key,
        };
        put.emit(&record, &[&number.to_be_bytes(), &[0x92, 1, 2]], &mut wire);
        get.emit(&record, &[], &mut wire);
        batch.emit((0..).zip([&record_digest; 5]), &mut wire);
        let mut rest = &wire[..];
        while let Some(frame) = split_frame(rest).unwrap() {
            serve(&frame, &mut answers);
            rest = frame.rest;
        }
        assert!(rest.is_empty());
        let mut at = 0;
        for _single in 0..2 {
            at += skim(&answers[at..]).unwrap().unwrap().len;
        }
        let mut reply = MultiReply::default();
        while reply.result().is_none() {
            at += reply.feed(&answers[at..], |_| {}).unwrap().unwrap();
        }
        assert_eq!((reply.rows, at), (5, answers.len()));
        answers.clear();
        let mut info = AnswerWriter::begin(&mut answers);
        for line in requests(b"node\npeers-generation\n") {
            info.entry(line.raw(), b"0");
        }
        info.finish();
    };
    round(1);
    let (allocations, _) = count(|| (2..100).for_each(&mut round));
    assert_eq!(allocations, 0);
}

/// Answers a request as a server would that has every record.
fn serve(frame: &Frame<'_>, out: &mut BytesMut) {
    let view = MessageView::parse(frame.body).unwrap();
    let Some(batch) = view.field(FieldKind::Batch) else {
        for op in view.ops() {
            assert_eq!(&*stored_form(op.particle, op.value).unwrap(), op.value);
        }
        return put_message_frame(out, &MessageHeader::EMPTY, |message| {
            message.op(OpCode::Read, ParticleType::Integer, b"a", &[0; 8]);
        });
    };
    let rows = begin_frame(Kind::Message, out);
    for row in BatchView::parse(batch).unwrap().rows() {
        let header = MessageHeader {
            transaction_ttl: row.unwrap().index,
            ..MessageHeader::EMPTY
        };
        finish_message(begin_message(&header, out), out);
    }
    finish_frame(rows, out);
    put_header_only(
        out,
        &MessageHeader {
            info3: Info3::LAST,
            ..MessageHeader::EMPTY
        },
    );
}
