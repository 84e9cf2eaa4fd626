//! Speed of the Aerospike codecs by kind of frame and size: `aerospike/<what>/<case>/<size>`.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a broken bench")]

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kvlab_protocol::aerospike::batch::BatchView;
use kvlab_protocol::aerospike::digest::{Digest, Key, digest};
use kvlab_protocol::aerospike::info::{self, AnswerWriter, PartitionBitmap};
use kvlab_protocol::aerospike::message::*;
use kvlab_protocol::aerospike::msgpack::{self, List, Map, Value};
use kvlab_protocol::aerospike::particle::stored_form;
use kvlab_protocol::aerospike::proto::{decode_header, split_frame};
use kvlab_protocol::aerospike::reply::{MultiReply, skim};
use kvlab_protocol::aerospike::request::*;
use kvlab_protocol::aerospike::result_code::ResultCode;

const TARGET: Target<'static> = Target {
    namespace: b"test",
    set: b"bench",
    timeout_ms: 1000,
    send_key: false,
};
const SIZES: [usize; 3] = [16, 100, 4096];

/// Bytes of a request for key 7, made by a template.
fn request(template: &RecordTemplate, values: &[&[u8]]) -> BytesMut {
    let key = Key::Integer(7);
    let mut out = BytesMut::new();
    template.emit(
        &RecordKey {
            digest: &digest(b"bench", key),
            key,
        },
        values,
        &mut out,
    );
    out
}

fn put_template() -> RecordTemplate {
    RecordTemplate::put(
        &TARGET,
        &WritePolicy::default(),
        &[(b"bin", ParticleType::Blob)],
    )
}

fn answer(value: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    let header = MessageHeader {
        generation: 1,
        ..MessageHeader::EMPTY
    };
    put_message_frame(&mut out, &header, |message| {
        message.op(OpCode::Read, ParticleType::Blob, b"bin", value);
    });
    out
}

/// What a server does with every request: frame, message, the fields it needs, all operations.
fn serve(wire: &[u8]) -> usize {
    let frame = split_frame(wire).unwrap().unwrap();
    let view = MessageView::parse(frame.body).unwrap();
    let digest = view.field(FieldKind::Digest).map_or(0, <[u8]>::len);
    let set = view.field(FieldKind::Set).map_or(0, <[u8]>::len);
    digest + set + view.ops().map(|op| op.value.len()).sum::<usize>()
}

fn single_records(c: &mut Criterion) {
    let mut group = c.benchmark_group("aerospike/request");
    let get = request(&RecordTemplate::get(&TARGET), &[]);
    group.bench_function("decode/header", |b| {
        b.iter(|| decode_header(black_box(&get)))
    });
    group.bench_function("decode/get", |b| b.iter(|| serve(black_box(&get))));
    for size in SIZES {
        let put = request(&put_template(), &[&vec![7; size]]);
        group.bench_with_input(BenchmarkId::new("decode/put", size), &put, |b, put| {
            b.iter(|| serve(black_box(put)));
        });
    }
    let key = Key::Integer(7);
    let digest = digest(b"bench", key);
    let record = RecordKey {
        digest: &digest,
        key,
    };
    let mut out = BytesMut::with_capacity(8192);
    let get = RecordTemplate::get(&TARGET);
    group.bench_function("template/get", |b| {
        b.iter(|| {
            out.clear();
            get.emit(black_box(&record), &[], &mut out);
        });
    });
    let put = put_template();
    for size in SIZES {
        let value = vec![7; size];
        group.bench_with_input(
            BenchmarkId::new("template/put", size),
            &value,
            |b, value| {
                b.iter(|| {
                    out.clear();
                    put.emit(black_box(&record), &[value], &mut out);
                });
            },
        );
    }
    group.finish();
}

fn answers(c: &mut Criterion) {
    let mut group = c.benchmark_group("aerospike/answer");
    let mut out = BytesMut::with_capacity(8192);
    group.bench_function("encode/header_only", |b| {
        b.iter(|| {
            out.clear();
            put_header_only(&mut out, black_box(&MessageHeader::EMPTY));
        });
    });
    for size in SIZES {
        let value = vec![7; size];
        group.bench_with_input(
            BenchmarkId::new("encode/one_bin", size),
            &value,
            |b, value| {
                b.iter(|| {
                    out.clear();
                    put_message_frame(&mut out, black_box(&MessageHeader::EMPTY), |message| {
                        message.op(OpCode::Read, ParticleType::Blob, b"bin", value);
                    });
                });
            },
        );
        let wire = answer(&value);
        group.bench_with_input(BenchmarkId::new("skim/one_bin", size), &wire, |b, wire| {
            b.iter(|| skim(black_box(wire)).unwrap().unwrap());
        });
    }
    group.finish();
}

fn batches(c: &mut Criterion) {
    let mut group = c.benchmark_group("aerospike/batch");
    for rows in [10_u32, 1000] {
        group.throughput(Throughput::Elements(rows.into()));
        let digests: Vec<Digest> = (0..rows)
            .map(|row| digest(b"bench", Key::Integer(row.into())))
            .collect();
        let template = BatchTemplate::read(&TARGET, BatchRead::AllBins);
        let mut wire = BytesMut::new();
        group.bench_function(BenchmarkId::new("template/read", rows), |b| {
            b.iter(|| {
                wire.clear();
                template.emit((0..).zip(black_box(&digests)), &mut wire);
            });
        });
        wire.clear();
        template.emit((0..).zip(&digests), &mut wire);
        group.bench_function(BenchmarkId::new("decode/read", rows), |b| {
            b.iter(|| {
                let view = MessageView::parse(black_box(&wire[8..])).unwrap();
                let batch = BatchView::parse(view.field(FieldKind::Batch).unwrap()).unwrap();
                batch
                    .rows()
                    .filter(|row| row.is_ok_and(|row| row.n_fields() == 2))
                    .count()
            });
        });
        let mut reply = BytesMut::new();
        let frame = kvlab_protocol::aerospike::proto::begin_frame(
            kvlab_protocol::aerospike::proto::Kind::Message,
            &mut reply,
        );
        for row in 0..rows {
            let header = MessageHeader {
                transaction_ttl: row,
                ..MessageHeader::EMPTY
            };
            let mut message = MessageWriter::begin(&mut reply, &header);
            message.op(OpCode::Read, ParticleType::Blob, b"bin", &[7; 100]);
            message.finish();
        }
        kvlab_protocol::aerospike::proto::finish_frame(frame, &mut reply);
        put_header_only(
            &mut reply,
            &MessageHeader {
                info3: Info3::LAST,
                ..MessageHeader::EMPTY
            },
        );
        group.bench_function(BenchmarkId::new("answer/read", rows), |b| {
            b.iter(|| {
                let mut progress = MultiReply::default();
                let mut at = 0;
                while progress.result().is_none() {
                    at += progress
                        .feed(black_box(&reply[at..]), |_| {})
                        .unwrap()
                        .unwrap();
                }
                progress.found
            });
        });
    }
    group.finish();
}

fn collections(c: &mut Criterion) {
    let mut group = c.benchmark_group("aerospike/msgpack");
    for len in [10_i64, 1000] {
        group.throughput(Throughput::Elements(len.unsigned_abs()));
        let list: List = (0..len).map(|item| Value::Integer(item * 1000)).collect();
        let mut wire = BytesMut::new();
        list.encode(&mut wire);
        group.bench_function(BenchmarkId::new("decode/integers", len), |b| {
            b.iter(|| List::decode(black_box(&wire)).unwrap());
        });
        group.bench_function(BenchmarkId::new("validate/integers", len), |b| {
            b.iter(|| msgpack::validate(black_box(&wire)).unwrap());
        });
        let mut out = BytesMut::new();
        group.bench_function(BenchmarkId::new("encode/integers", len), |b| {
            b.iter(|| {
                out.clear();
                black_box(&list).encode(&mut out);
            });
        });
        let entries = (0..len)
            .rev()
            .map(|key| (Value::string(&key.to_string()), key.into()));
        let map = Map {
            order: None,
            entries: entries.collect(),
        };
        let mut wire = BytesMut::new();
        map.encode(&mut wire);
        group.bench_function(BenchmarkId::new("store/unsorted_map", len), |b| {
            b.iter(|| {
                stored_form(ParticleType::Map, black_box(&wire))
                    .unwrap()
                    .len()
            });
        });
    }
    group.finish();
}

fn texts_and_digests(c: &mut Criterion) {
    let mut group = c.benchmark_group("aerospike/info");
    let request = b"node\npeers-generation\npartition-generation\nrebalance-generation\n";
    group.bench_function("decode/tend", |b| {
        b.iter(|| {
            info::requests(black_box(request))
                .map(|line| line.name().len())
                .sum::<usize>()
        });
    });
    let mut out = BytesMut::new();
    group.bench_function("encode/tend", |b| {
        b.iter(|| {
            out.clear();
            let mut answer = AnswerWriter::begin(&mut out);
            for line in info::requests(black_box(request)) {
                answer.entry(line.raw(), b"0");
            }
            answer.finish();
        });
    });
    let mut bitmap = BytesMut::new();
    PartitionBitmap::FULL.put(&mut bitmap);
    group.bench_function("decode/partition_map", |b| {
        b.iter(|| PartitionBitmap::parse(black_box(&bitmap)).unwrap());
    });
    group.finish();

    let mut group = c.benchmark_group("aerospike/digest");
    group.bench_function("integer", |b| {
        b.iter(|| digest(black_box(b"bench"), black_box(Key::Integer(7))));
    });
    group.bench_function("string/20", |b| {
        b.iter(|| {
            digest(
                black_box(b"bench"),
                black_box(Key::String(b"key:0000000000000007")),
            )
        });
    });
    group.bench_function("result_code", |b| b.iter(|| ResultCode::from(black_box(2))));
    group.finish();
}

criterion_group!(
    benches,
    single_records,
    answers,
    batches,
    collections,
    texts_and_digests
);
criterion_main!(benches);
