//! What holds for every message, value and batch: round trips, the same bytes cut at every boundary,
//! and memory bounded by the length of the input.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use bytes::{Bytes, BytesMut};
use kvlab_protocol::aerospike::BatchFlags;
use kvlab_protocol::aerospike::batch::{BatchView, BatchWriter, RowHead};
use kvlab_protocol::aerospike::digest::{Digest, Key, digest};
use kvlab_protocol::aerospike::info::{
    Host, NamespaceReplicas, PartitionBitmap, Peer, Peers, Replicas,
};
use kvlab_protocol::aerospike::message::*;
use kvlab_protocol::aerospike::msgpack::{self, List, Map, Order, Value};
use kvlab_protocol::aerospike::order::compare;
use kvlab_protocol::aerospike::particle;
use kvlab_protocol::aerospike::proto::{Kind, decode_frame, split_frame};
use kvlab_protocol::aerospike::reply::{MultiReply, skim};
use kvlab_protocol::aerospike::request::{RecordKey, RecordTemplate, Target, WritePolicy};
use kvlab_protocol::aerospike::result_code::ResultCode;
use proptest::prelude::*;

fn bytes(max: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..max).prop_map(Bytes::from)
}

/// Values without the special ones that stand in arguments only, and without NaN, which is not
/// equal to itself.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Integer),
        (-300..70_000_i64).prop_map(Value::Integer),
        (i64::MAX as u64 + 1..=u64::MAX).prop_map(Value::Unsigned),
        any::<f64>()
            .prop_filter("NaN", |value| !value.is_nan())
            .prop_map(Value::Double),
        bytes(40).prop_map(Value::String),
        bytes(300).prop_map(Value::Blob),
        bytes(20).prop_map(Value::GeoJson),
        bytes(20).prop_map(|data| Value::Typed(ParticleType::Hll, data)),
        "[a-z]{0,20}".prop_map(|name| Value::Raw(name.into())),
    ];
    leaf.prop_recursive(4, 40, 20, |inner| {
        let order = || prop::option::of((0..32_u8).prop_map(Order::from_bits_retain));
        let items = prop::collection::vec(inner.clone(), 0..20);
        let entries = prop::collection::vec((inner.clone(), inner), 0..20);
        prop_oneof![
            (order(), items).prop_map(|(order, items)| Value::List(List { order, items })),
            (order(), entries).prop_map(|(order, entries)| Value::Map(Map { order, entries })),
        ]
    })
}

fn encoded(value: &Value) -> BytesMut {
    let mut out = BytesMut::new();
    value.encode(&mut out);
    out
}

/// Bytes a decoded value holds on to.
fn footprint(value: &Value) -> usize {
    match value {
        Value::String(data) | Value::Blob(data) | Value::GeoJson(data) | Value::Raw(data) => {
            data.len()
        }
        Value::Typed(_, data) | Value::Ext { data, .. } => data.len(),
        Value::List(list) => {
            list.items.capacity() * size_of::<Value>()
                + list.items.iter().map(footprint).sum::<usize>()
        }
        Value::Map(map) => {
            map.entries.capacity() * size_of::<(Value, Value)>()
                + map
                    .entries
                    .iter()
                    .map(|(k, v)| footprint(k) + footprint(v))
                    .sum::<usize>()
        }
        _ => 0,
    }
}

proptest! {
    #[test]
    fn msgpack_round_trips(value in value()) {
        let bytes = encoded(&value);
        prop_assert_eq!(msgpack::validate(&bytes), Ok(()));
        prop_assert_eq!(Value::decode(&bytes), Ok(value));
    }

    #[test]
    fn msgpack_cut_anywhere_is_an_error(value in value()) {
        let bytes = encoded(&value);
        for cut in 0..bytes.len() {
            prop_assert!(Value::decode(&bytes[..cut]).is_err());
            prop_assert!(msgpack::validate(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn msgpack_of_arbitrary_bytes_stays_small(data in bytes(400)) {
        if let Ok((value, _)) = Value::decode_prefix(&data) {
            // A vector's room is at most twice its elements, and every element took a byte.
            prop_assert!(footprint(&value) <= data.len() * 2 * size_of::<(Value, Value)>());
        }
    }

    #[test]
    fn order_is_total(a in value(), b in value(), c in value()) {
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        prop_assert_eq!(compare(&a, &a), std::cmp::Ordering::Equal);
        let mut sorted = [&a, &b, &c];
        sorted.sort_by(|left, right| compare(left, right));
        prop_assert!(compare(sorted[0], sorted[2]).is_le());
    }

    #[test]
    fn stored_maps_have_rising_keys_and_all_their_pairs(
        pairs in prop::collection::btree_map(any::<i64>(), any::<i64>(), 0..30),
        turn in any::<prop::sample::Index>(),
    ) {
        let mut entries: Vec<_> =
            pairs.iter().map(|(&key, &value)| (Value::from(key), Value::from(value))).collect();
        // Any order will do, so that it differs from the sorted one.
        if !entries.is_empty() {
            let middle = turn.index(entries.len());
            entries.rotate_left(middle);
        }
        let sent = encoded(&Value::Map(Map { order: None, entries }));
        let stored = particle::stored_form(ParticleType::Map, &sent).unwrap();
        let sorted = pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        prop_assert_eq!(Map::decode(&stored), Ok(Map { order: None, entries: sorted }));
    }

    #[test]
    fn messages_round_trip_and_wait_for_their_last_byte(
        flags in any::<[u8; 4]>(),
        numbers in any::<[u32; 3]>(),
        result in any::<u8>(),
        fields in prop::collection::vec((any::<u8>(), bytes(40)), 0..6),
        ops in prop::collection::vec((any::<[u8; 3]>(), bytes(20), bytes(60)), 0..6),
    ) {
        let header = MessageHeader {
            info1: Info1::from_bits_retain(flags[0]),
            info2: Info2::from_bits_retain(flags[1]),
            info3: Info3::from_bits_retain(flags[2]),
            info4: Info4::from_bits_retain(flags[3]),
            result: ResultCode::from(result),
            generation: numbers[0],
            record_ttl: numbers[1],
            transaction_ttl: numbers[2],
            n_fields: fields.len().try_into().unwrap(),
            n_ops: ops.len().try_into().unwrap(),
        };
        let mut out = BytesMut::new();
        put_message_frame(&mut out, &header, |message| {
            for (kind, data) in &fields {
                message.field(FieldKind::from_byte(*kind), data);
            }
            for ([op, particle, flags], name, value) in &ops {
                let (op, particle) = (OpCode::from_byte(*op), ParticleType::from_byte(*particle));
                message.op_with_flags(op, particle, *flags, name, value);
            }
        });
        for cut in 0..out.len() {
            prop_assert_eq!(decode_frame(&out[..cut]), Ok(None));
            prop_assert_eq!(skim(&out[..cut]), Ok(None));
        }
        let frame = split_frame(&out).unwrap().unwrap();
        let view = MessageView::parse(frame.body).unwrap();
        prop_assert_eq!(view.header(), &header);
        let fields_read: Vec<_> =
            view.fields().map(|field| (field.kind.byte(), Bytes::copy_from_slice(field.data))).collect();
        prop_assert_eq!(fields_read, fields);
        for (op, (bytes, name, value)) in view.ops().zip(&ops) {
            prop_assert_eq!([op.op.byte(), op.particle.byte(), op.flags], *bytes);
            prop_assert_eq!((op.name, op.value), (&name[..], &value[..]));
        }
        for cut in 0..frame.body.len() {
            prop_assert!(MessageView::parse(&frame.body[..cut]).is_err());
        }
    }

    #[test]
    fn batches_round_trip_and_are_errors_when_cut(
        rows in prop::collection::vec((any::<u32>(), any::<[u8; 20]>(), any::<bool>()), 1..20),
        generation in any::<u16>(),
        ttl in any::<u32>(),
    ) {
        let head = RowHead::write(Info1::READ, Info2::RESPOND_ALL_OPS, generation, ttl);
        let mut out = BytesMut::new();
        let mut batch = BatchWriter::begin(&mut out, BatchFlags::RESPOND_ALL);
        for (position, (index, digest, repeat)) in rows.iter().enumerate() {
            if *repeat && position > 0 {
                batch.repeat(*index, digest);
            } else {
                batch.row(*index, digest, &head, |row| {
                    row.field(FieldKind::Namespace, b"test");
                    row.op(OpCode::Write, ParticleType::Blob, b"b", &[7; 9]);
                });
            }
        }
        batch.finish();
        let view = BatchView::parse(&out).unwrap();
        let read: Vec<_> = view.rows().map(Result::unwrap).collect();
        prop_assert_eq!(read.len(), rows.len());
        for (row, (index, digest, _)) in read.iter().zip(&rows) {
            prop_assert_eq!((row.index, row.digest), (*index, digest));
            prop_assert_eq!((row.head(), row.n_ops()), (&head, 1));
            prop_assert_eq!(row.field(FieldKind::Namespace), Some(&b"test"[..]));
        }
        for cut in 0..out.len() {
            prop_assert!(BatchView::parse(&out[..cut]).and_then(|batch| batch.check()).is_err());
        }
    }

    #[test]
    fn answers_of_many_rows_read_the_same_however_they_arrive(
        rows in prop::collection::vec(prop::sample::select(vec![0_u8, 2, 27]), 0..30),
        frames in 1..6_usize,
        piece in 1..50_usize,
    ) {
        let mut wire = BytesMut::new();
        for chunk in rows.chunks(rows.len().div_ceil(frames).max(1)) {
            let frame = kvlab_protocol::aerospike::proto::begin_frame(Kind::Message, &mut wire);
            for (result, index) in chunk.iter().zip(0..) {
                let result = ResultCode::from(*result);
                let header = MessageHeader { transaction_ttl: index, ..MessageHeader::answer(result) };
                let message = begin_message(&header, &mut wire);
                finish_message(message, &mut wire);
            }
            kvlab_protocol::aerospike::proto::finish_frame(frame, &mut wire);
        }
        put_header_only(&mut wire, &MessageHeader { info3: Info3::LAST, ..MessageHeader::EMPTY });
        let mut reply = MultiReply::default();
        let mut buffer = BytesMut::new();
        for part in wire.chunks(piece) {
            prop_assert_eq!(reply.result(), None);
            buffer.extend_from_slice(part);
            while reply.result().is_none() {
                match reply.feed(&buffer, |_| {}).unwrap() {
                    Some(len) => drop(buffer.split_to(len)),
                    None => break,
                }
            }
        }
        prop_assert_eq!(reply.result(), Some(ResultCode::Ok));
        let count = |code: u8| rows.iter().filter(|row| **row == code).count() as u64;
        prop_assert_eq!((reply.found, reply.not_found, reply.failed), (count(0), count(2), count(27)));
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn templates_write_what_the_general_writer_writes(
        set in "[a-z]{0,10}",
        key in any::<i64>(),
        send_key in any::<bool>(),
        values in prop::collection::vec(bytes(50), 1..4),
    ) {
        let target = Target { namespace: b"test", set: set.as_bytes(), timeout_ms: 50, send_key };
        let names: Vec<_> = (0..values.len()).map(|index| format!("bin{index}")).collect();
        let bins: Vec<_> = names.iter().map(|name| (name.as_bytes(), ParticleType::Blob)).collect();
        let template = RecordTemplate::put(&target, &WritePolicy::default(), &bins);
        let digest: Digest = digest(set.as_bytes(), Key::Integer(key));
        let slices: Vec<_> = values.iter().map(|value| &value[..]).collect();
        let mut fast = BytesMut::new();
        let record = RecordKey { digest: &digest, key: Key::Integer(key) };
        template.emit(&record, &slices, &mut fast);

        let header =
            MessageHeader { info2: Info2::WRITE, transaction_ttl: 50, ..MessageHeader::EMPTY };
        let mut general = BytesMut::new();
        put_message_frame(&mut general, &header, |message| {
            message.field(FieldKind::Namespace, b"test");
            if !set.is_empty() {
                message.field(FieldKind::Set, set.as_bytes());
            }
            message.field(FieldKind::Digest, &digest);
            if send_key {
                let mut bytes = vec![1];
                bytes.extend(key.to_be_bytes());
                message.field(FieldKind::Key, &bytes);
            }
            for ((name, particle), value) in bins.iter().zip(&values) {
                message.op(OpCode::Write, *particle, name, value);
            }
        });
        prop_assert_eq!(fast, general);
    }

    #[test]
    fn peers_and_replicas_round_trip(
        generation in any::<u64>(),
        peers in prop::collection::vec(("[A-F0-9]{1,16}", "[a-z.]{1,12}", prop::option::of(any::<u16>())), 0..5),
        partitions in prop::collection::vec(0..4096_u16, 0..50),
        regime in any::<u32>(),
    ) {
        let peer = |(node, name, port): (String, String, Option<u16>)| Peer {
            node,
            tls_name: String::new(),
            hosts: vec![Host { name, port }],
        };
        let peers = peers.into_iter().map(peer).collect();
        let peers = Peers { generation, default_port: Some(3000), peers };
        let mut out = BytesMut::new();
        peers.put(&mut out);
        prop_assert_eq!(Peers::parse(&out), Ok(peers));

        let mut bitmap = PartitionBitmap::EMPTY;
        partitions.iter().for_each(|&partition| bitmap.insert(partition));
        let columns = vec![bitmap, PartitionBitmap::FULL];
        let namespaces = vec![NamespaceReplicas { namespace: "test".into(), regime, columns }];
        let replicas = Replicas { namespaces };
        out.clear();
        replicas.put(&mut out);
        prop_assert_eq!(Replicas::parse(&out), Ok(replicas));
        let mut sorted = partitions;
        sorted.sort_unstable();
        sorted.dedup();
        prop_assert_eq!(bitmap.iter().collect::<Vec<_>>(), sorted);
    }
}
