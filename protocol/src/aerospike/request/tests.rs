//! Templates against the bytes of a real client.

use bytes::BytesMut;

use super::*;
use crate::aerospike::digest::{Digest, Key, digest};
use crate::aerospike::message::{FieldKind, MessageView, OpCode, ParticleType};

const TARGET: Target<'static> = Target {
    namespace: b"test",
    set: b"s1",
    timeout_ms: 1000,
    send_key: false,
};

#[track_caller]
fn emitted(template: &RecordTemplate, key: Key<'_>, values: &[&[u8]]) -> Vec<u8> {
    let mut out = BytesMut::from(&b"before"[..]);
    template.emit(
        &RecordKey {
            digest: &digest(b"s1", key),
            key,
        },
        values,
        &mut out,
    );
    let frame = crate::aerospike::proto::split_frame(&out[6..])
        .unwrap()
        .unwrap();
    assert!(frame.rest.is_empty());
    MessageView::parse(frame.body).unwrap();
    frame.body.to_vec()
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn put_and_get_are_those_of_a_real_client() {
    // kv-001 and kv-002: a=1 under "k1" in set s1, and reading it.
    const FIELDS: &str = "00000005007465737400000003017331\
        0000001504d9b956fc256f8de98a2473e4ce3547180a3fd778";
    let bins: [(&[u8], _); 1] = [(b"a", ParticleType::Integer)];
    let put = RecordTemplate::put(&TARGET, &WritePolicy::default(), &bins);
    let body = emitted(&put, Key::String(b"k1"), &[&1_i64.to_be_bytes()]);
    let header = "1600010000000000000000000000000003e800030001";
    let op = "0000000d02010001610000000000000001";
    assert_eq!(body, hex(&[header, FIELDS, op].concat()));
    let get = RecordTemplate::get(&TARGET);
    let body = emitted(&get, Key::String(b"k1"), &[]);
    let header = "1603000000000000000000000000000003e800030000";
    assert_eq!(body, hex(&[header, FIELDS].concat()));
}

#[test]
fn values_of_any_length_keep_the_sizes_right() {
    let bins: [(&[u8], _); 2] = [(b"a", ParticleType::String), (b"bb", ParticleType::Blob)];
    let target = Target {
        send_key: true,
        ..TARGET
    };
    let put = RecordTemplate::put(&target, &WritePolicy::default(), &bins);
    assert_eq!(put.value_slots(), 2);
    for len in [0, 1, 7, 300] {
        let long = vec![b'x'; len];
        let body = emitted(&put, Key::Integer(5), &[&long, b"tail"]);
        let view = MessageView::parse(&body).unwrap();
        assert_eq!(
            view.field(FieldKind::Key),
            Some(&[1, 0, 0, 0, 0, 0, 0, 0, 5][..])
        );
        let ops: Vec<_> = view.ops().map(|op| (op.name, op.value.to_vec())).collect();
        assert_eq!(ops, [(&b"a"[..], long), (b"bb", b"tail".to_vec())]);
    }
}

#[test]
fn user_key_has_its_type_byte() {
    let target = Target {
        send_key: true,
        ..TARGET
    };
    let get = RecordTemplate::exists(&target);
    let body = emitted(&get, Key::String(b"k2"), &[]);
    let view = MessageView::parse(&body).unwrap();
    assert_eq!(view.field(FieldKind::Key), Some(&b"\x03k2"[..]));
    assert_eq!(view.header().info1, Info1::READ | Info1::NO_BINS);
}

#[test]
fn policies_set_their_bits() {
    let policy = WritePolicy {
        exists: Exists::CreateOnly,
        generation: Generation::Equal(9),
        ttl: 30,
        durable_delete: true,
        commit_master: true,
        respond_all: true,
    };
    let body = emitted(
        &RecordTemplate::remove(&TARGET, &policy),
        Key::Integer(1),
        &[],
    );
    let header = *MessageView::parse(&body).unwrap().header();
    assert_eq!(
        (header.info2.bits(), header.info3.bits()),
        (0x01 | 0x02 | 0x04 | 0xb0, 0x02)
    );
    assert_eq!((header.generation, header.record_ttl), (9, 30));
    let cases = [
        (Exists::UpdateOnly, 0x08),
        (Exists::CreateOrReplace, 0x10),
        (Exists::ReplaceOnly, 0x20),
    ];
    for (exists, info3) in cases {
        let policy = WritePolicy {
            exists,
            generation: Generation::Below(2),
            ..Default::default()
        };
        let body = emitted(
            &RecordTemplate::touch(&TARGET, &policy),
            Key::Integer(1),
            &[],
        );
        let header = *MessageView::parse(&body).unwrap().header();
        assert_eq!((header.info2.bits(), header.info3.bits()), (0x09, info3));
    }
}

#[test]
fn operate_flags_follow_from_the_operations() {
    let ops = [
        TemplateOp::write(b"a", ParticleType::Integer),
        TemplateOp::read(b""),
        TemplateOp {
            op: OpCode::Increment,
            value: OpValue::Fixed(&[0; 8]),
            ..TemplateOp::write(b"b", ParticleType::Integer)
        },
    ];
    let template = RecordTemplate::operate(&TARGET, &WritePolicy::default(), &ops);
    let body = emitted(&template, Key::Integer(1), &[&[0; 8]]);
    let view = MessageView::parse(&body).unwrap();
    assert_eq!(
        (view.header().info1.bits(), view.header().info2.bits()),
        (3, 1)
    );
    assert_eq!(
        view.ops().map(|op| op.value.len()).collect::<Vec<_>>(),
        [8, 0, 8]
    );
    let reads = [TemplateOp::read(b"a")];
    let template = RecordTemplate::operate(&TARGET, &WritePolicy::default(), &reads);
    let body = emitted(&template, Key::Integer(1), &[]);
    let header = *MessageView::parse(&body).unwrap().header();
    assert_eq!((header.info1.bits(), header.info2.bits()), (1, 0));
}

#[test]
fn batch_is_that_of_a_real_client() {
    // batch-006: header-only reads of keys 1 and 99 in set bs.
    let digests: Vec<Digest> = [
        "458809673212366d425fda44bed17e5bc0f9bec7",
        "bb97a163114fa0efc1f21c164d81c14362170455",
    ]
    .map(|text| hex(text).try_into().unwrap())
    .into();
    let target = Target {
        set: b"bs",
        ..TARGET
    };
    let template = BatchTemplate::read(&target, BatchRead::NoBins);
    let mut out = BytesMut::new();
    template.emit((0..).zip(&digests), &mut out);
    let expected = "020300000000006d1608000000000000000000000000000003e80001000000000053\
        29000000020d00000000458809673212366d425fda44bed17e5bc0f9bec70a210000000000000002\
        0000000000050074657374000000030162730000000\
        1bb97a163114fa0efc1f21c164d81c1436217045501";
    assert_eq!(out, hex(expected));
}
