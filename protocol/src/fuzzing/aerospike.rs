//! Aerospike targets.

// A broken promise must panic here: that is how a fuzzer learns of it.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::missing_panics_doc
)]

use bytes::BytesMut;

use crate::aerospike::batch::{BatchView, BatchWriter};
use crate::aerospike::info::{self, Peers, Replicas, Services};
use crate::aerospike::message::{
    FieldKind, MESSAGE_HEADER_LEN, MessageView, MessageWriter, Messages, ParticleType,
};
use crate::aerospike::msgpack::{self, Value};
use crate::aerospike::particle::{self, stored_form};
use crate::aerospike::proto::{self, HEADER_LEN, decode_frame, decode_header, split_frame};
use crate::aerospike::reply::{MultiReply, skim};
use crate::aerospike::tree::{Frame, Sender};

/// Frames: a header is decided by its eight bytes, a frame is whole exactly from its last byte on, and
/// the skimmers agree with the splitter about its length. Whole frames are taken apart and built again.
pub fn aerospike_proto(data: &[u8]) {
    for cut in 0..data.len().min(HEADER_LEN) {
        assert_eq!(decode_header(&data[..cut]), Ok(None));
    }
    let Ok(Some((header, total))) = decode_frame(data) else {
        // Not whole or not a frame: then nothing else may say otherwise.
        assert!(!matches!(split_frame(data), Ok(Some(_))));
        assert!(!matches!(skim(data), Ok(Some(_))));
        return;
    };
    assert_eq!(decode_header(&data[..HEADER_LEN]), Ok(Some(header)));
    assert_eq!(decode_frame(&data[..total - 1]), Ok(None));
    let frame = split_frame(data).unwrap().unwrap();
    assert_eq!(total, data.len() - frame.rest.len());
    if let Ok(Some(reply)) = skim(data) {
        assert_eq!(reply.len, total);
    }
    let mut reply = MultiReply::default();
    if let Ok(Some(len)) = reply.feed(data, |_| {}) {
        assert_eq!(len, total);
    }
    for sender in [Sender::Client, Sender::Server] {
        stable(sender, &frame);
    }
}

/// Messages: what was checked once is read to the end, and a message is built again from its parts.
pub fn aerospike_message(data: &[u8]) {
    for message in Messages::new(data).flatten() {
        assert!(message.wire_len() <= data.len());
    }
    let Ok((view, rest)) = MessageView::parse_prefix(data) else {
        return;
    };
    assert_eq!(MessageView::parse(data).is_ok(), rest.is_empty());
    assert_eq!(view.wire_len() + rest.len(), data.len());
    assert_eq!(view.fields().count(), usize::from(view.header().n_fields));
    assert_eq!(view.ops().count(), usize::from(view.header().n_ops));
    let mut again = BytesMut::new();
    let mut writer = MessageWriter::begin(&mut again, view.header());
    for field in view.fields() {
        assert_eq!(
            view.field(field.kind).is_some(),
            view.fields().any(|f| f.kind == field.kind)
        );
        writer.field(field.kind, field.data);
    }
    for op in view.ops() {
        writer.op_with_flags(op.op, op.particle, op.flags, op.name, op.value);
        value(op.particle, op.value);
    }
    writer.finish();
    // The first byte is the header size, which nobody looks at.
    assert_eq!(again[0], 22);
    assert_eq!(again[1..], data[1..view.wire_len()]);
    assert!(again.len() >= MESSAGE_HEADER_LEN);
    let header = proto::Header {
        version: proto::VERSION,
        kind: proto::Kind::Message,
        len: data.len() as u64,
    };
    let frame = proto::Frame {
        header,
        body: data,
        rest: &[],
    };
    stable(Sender::Client, &frame);
    stable(Sender::Server, &frame);
}

/// Info: lines make up the body again, and structured values that parse are written as they parse.
pub fn aerospike_info(data: &[u8]) {
    let mut lines = Vec::new();
    for request in info::requests(data) {
        let _name_and_rest = (
            request.name(),
            request.params().count(),
            request.path().count(),
        );
        assert!(request.raw().starts_with(request.name()));
        lines.extend_from_slice(request.raw());
        lines.push(b'\n');
    }
    assert!(data.starts_with(&lines) && !data[lines.len()..].contains(&b'\n'));
    for answer in info::answers(data) {
        let _error = answer.ok().map_err(|error| error.to_string());
    }
    let mut out = BytesMut::new();
    if let Ok(peers) = Peers::parse(data) {
        peers.put(&mut out);
        assert_eq!(Peers::parse(&out), Ok(peers));
    }
    out.clear();
    if let Ok(services) = Services::parse(data) {
        services.put(&mut out);
        assert_eq!(Services::parse(&out), Ok(services));
    }
    out.clear();
    if let Ok(replicas) = Replicas::parse(data) {
        replicas.put(&mut out);
        assert_eq!(Replicas::parse(&out), Ok(replicas));
    }
}

/// msgpack: both walks give the same verdict, the shortest form is stable, and what is stored once is
/// stored the same again.
pub fn aerospike_msgpack(data: &[u8]) {
    let tree = Value::decode(data);
    assert_eq!(
        tree.as_ref().map(drop).map_err(|e| *e),
        msgpack::validate(data)
    );
    let prefix = Value::decode_prefix(data).map(|(_, rest)| data.len() - rest.len());
    assert_eq!(prefix, msgpack::skip(data));
    if let Ok(mut tree) = tree {
        let shortest = encoded(&tree);
        let again = Value::decode(&shortest).unwrap();
        assert_eq!(encoded(&again), shortest);
        let plain = msgpack::is_plain(data).unwrap();
        if msgpack::normalise(&mut tree).is_ok() {
            let normal = encoded(&tree);
            assert!(!plain || normal == shortest);
            msgpack::normalise(&mut tree).unwrap();
            assert_eq!(encoded(&tree), normal);
        } else {
            assert!(!plain);
        }
    }
    for particle in [ParticleType::List, ParticleType::Map] {
        value(particle, data);
    }
}

/// Batches: no panic, and the rows that can be read are written to a batch that reads the same.
pub fn aerospike_batch(data: &[u8]) {
    let Ok(batch) = BatchView::parse(data) else {
        return;
    };
    let rows: Vec<_> = batch.rows().map_while(Result::ok).collect();
    assert_eq!(batch.check().is_ok(), rows.len() == batch.len() as usize);
    let mut out = BytesMut::new();
    let mut writer = BatchWriter::begin(&mut out, batch.flags());
    for row in &rows {
        if row.repeat {
            writer.repeat(row.index, row.digest);
            continue;
        }
        writer.row(row.index, row.digest, row.head(), |writer| {
            row.fields()
                .for_each(|field| writer.field(field.kind, field.data));
            row.ops().for_each(|op| {
                writer.op_with_flags(op.op, op.particle, op.flags, op.name, op.value);
            });
        });
    }
    writer.finish();
    if rows.is_empty() {
        return;
    }
    let again = BatchView::parse(&out).unwrap();
    assert_eq!(
        (again.len() as usize, again.flags()),
        (rows.len(), batch.flags())
    );
    for (row, again) in rows.iter().zip(again.rows()) {
        let again = again.unwrap();
        assert_eq!(
            (row.index, row.digest, row.repeat),
            (again.index, again.digest, again.repeat)
        );
        assert_eq!(
            (row.head(), row.n_fields()),
            (again.head(), again.n_fields())
        );
        assert!(row.fields().eq(again.fields()) && row.ops().eq(again.ops()));
        assert_eq!(
            row.field(FieldKind::Namespace),
            again.field(FieldKind::Namespace)
        );
    }
}

/// A value: what can be stored can be decoded, and storing twice changes nothing.
fn value(particle: ParticleType, bytes: &[u8]) {
    let decoded = particle::Value::decode(particle, bytes);
    let Ok(stored) = stored_form(particle, bytes) else {
        return;
    };
    assert_eq!(decoded.unwrap().particle_type(), particle);
    assert_eq!(stored_form(particle, &stored).unwrap(), stored);
}

/// A tree that was built from a frame has bytes from which the same bytes come again.
fn stable(sender: Sender, frame: &proto::Frame<'_>) {
    let Ok(tree) = Frame::decode(sender, frame) else {
        return;
    };
    let mut once = BytesMut::new();
    tree.encode(&mut once);
    let again = split_frame(&once).unwrap().unwrap();
    assert_eq!(
        (again.header.kind, again.rest),
        (frame.header.kind, &b""[..])
    );
    let tree = Frame::decode(sender, &again).unwrap();
    let mut twice = BytesMut::new();
    tree.encode(&mut twice);
    assert_eq!(once, twice);
}

fn encoded(value: &Value) -> BytesMut {
    let mut out = BytesMut::new();
    value.encode(&mut out);
    out
}
