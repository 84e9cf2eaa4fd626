//! Examples of the dialect, mostly from the vectors of a real server.

use bytes::BytesMut;

use super::*;

fn encoded(value: &Value) -> Vec<u8> {
    let mut out = BytesMut::new();
    value.encode(&mut out);
    out.to_vec()
}

fn round_trip(bytes: &[u8]) -> Value {
    validate(bytes).unwrap();
    let value = Value::decode(bytes).unwrap();
    assert_eq!(encoded(&value), bytes);
    value
}

fn list(order: Option<Order>, items: &[i64]) -> Value {
    Value::List(List {
        order,
        items: items.iter().map(|&item| Value::Integer(item)).collect(),
    })
}

#[test]
fn integers_take_the_shortest_form() {
    let cases: [(i64, &[u8]); 15] = [
        (0, &[0]),
        (127, &[0x7f]),
        (128, &[0xcc, 0x80]),
        (255, &[0xcc, 0xff]),
        (256, &[0xcd, 1, 0]),
        (65_535, &[0xcd, 0xff, 0xff]),
        (65_536, &[0xce, 0, 1, 0, 0]),
        (1 << 32, &[0xcf, 0, 0, 0, 1, 0, 0, 0, 0]),
        (-1, &[0xff]),
        (-32, &[0xe0]),
        (-33, &[0xd0, 0xdf]),
        (-129, &[0xd1, 0xff, 0x7f]),
        (-32_769, &[0xd2, 0xff, 0xff, 0x7f, 0xff]),
        (
            -2_147_483_649,
            &[0xd3, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff],
        ),
        (i64::MIN, &[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0]),
    ];
    for (value, bytes) in cases {
        assert_eq!(round_trip(bytes), Value::Integer(value));
    }
    assert_eq!(
        round_trip(&[0xcf; 9]),
        Value::Unsigned(0xcfcf_cfcf_cfcf_cfcf)
    );
}

#[test]
fn strings_and_blobs_carry_a_type_byte() {
    assert_eq!(round_trip(&[0xa2, 3, b'a']), Value::string("a"));
    assert_eq!(
        round_trip(&[0xa2, 4, 1]),
        Value::Blob(Bytes::from_static(&[1]))
    );
    assert_eq!(
        round_trip(&[0xa3, 0x17, b'{', b'}']),
        Value::GeoJson(Bytes::from_static(b"{}"))
    );
    let python = Value::Typed(ParticleType::PythonBlob, Bytes::from_static(&[7]));
    assert_eq!(round_trip(&[0xa2, 9, 7]), python);
}

#[test]
fn names_have_no_type_byte_and_survive() {
    assert_eq!(
        round_trip(&[0xa1, b'i']),
        Value::Raw(Bytes::from_static(b"i"))
    );
    assert_eq!(round_trip(&[0xa0]), Value::Raw(Bytes::new()));
}

#[test]
fn text_headers_grow_with_the_length() {
    for (len, head) in [
        (30, vec![0xbf]),
        (31, vec![0xd9, 32]),
        (254, vec![0xd9, 255]),
    ] {
        let bytes = encoded(&Value::Blob(vec![0; len].into()));
        assert_eq!(bytes[..head.len()], head);
        round_trip(&bytes);
    }
    for (len, head) in [(255, vec![0xda, 1, 0]), (65_535, vec![0xdb, 0, 1, 0, 0])] {
        let bytes = encoded(&Value::Blob(vec![0; len].into()));
        assert_eq!(bytes[..head.len()], head);
        round_trip(&bytes);
    }
}

#[test]
fn other_forms_are_read_and_written_back_shortest() {
    let cases: [(&[u8], &[u8]); 5] = [
        (&[0xc4, 2, 4, 1], &[0xa2, 4, 1]),
        (
            &[0xca, 0x3f, 0x80, 0, 0],
            &[0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0],
        ),
        (&[0xd3, 0, 0, 0, 0, 0, 0, 0, 5], &[5]),
        (&[0xdd, 0, 0, 0, 1, 5], &[0x91, 5]),
        (&[0xdf, 0, 0, 0, 0], &[0x80]),
    ];
    for (long, short) in cases {
        assert_eq!(encoded(&Value::decode(long).unwrap()), short);
    }
}

#[test]
fn order_markers_are_taken_off_and_put_back() {
    let ordered = round_trip(&[0x96, 0xc7, 0, 1, 3, 4, 5, 6, 8]);
    assert_eq!(ordered, list(Some(Order::ORDERED), &[3, 4, 5, 6, 8]));
    let map = round_trip(&[0x83, 0xc7, 0, 1, 0xc0, 0xa2, 3, b'a', 2, 0xa2, 3, b'b', 1]);
    let entries = vec![
        (Value::string("a"), Value::Integer(2)),
        (Value::string("b"), Value::Integer(1)),
    ];
    assert_eq!(
        map,
        Value::Map(Map {
            order: Some(Order::ORDERED),
            entries
        })
    );
    let empty = round_trip(&[0x81, 0xc7, 0, 8, 0xc0]);
    assert_eq!(
        empty,
        Value::Map(Map {
            order: Some(Order::PRESERVE),
            entries: vec![]
        })
    );
}

#[test]
fn markers_elsewhere_are_refused() {
    let cases: [&[u8]; 5] = [
        &[0xc7, 0, 1],
        &[0x92, 5, 0xc7, 0, 1],
        &[0x82, 1, 1, 0xc7, 0, 1, 0xc0],
        &[0x81, 0xc7, 0, 1, 5],
        &[0x81, 1, 0xc7, 0, 1],
    ];
    for bytes in cases {
        assert_eq!(
            Value::decode(bytes),
            Err(MsgpackError::Marker),
            "{bytes:x?}"
        );
        assert_eq!(validate(bytes), Err(MsgpackError::Marker), "{bytes:x?}");
    }
}

#[test]
fn wildcard_and_infinity_are_named() {
    assert_eq!(round_trip(&[0xd4, 0xff, 0]), Value::Wildcard);
    assert_eq!(round_trip(&[0xd4, 0xff, 1]), Value::Infinity);
    let other = Value::Ext {
        kind: 5,
        data: Bytes::from_static(&[1, 2, 3]),
    };
    assert_eq!(round_trip(&[0xc7, 3, 5, 1, 2, 3]), other);
}

#[test]
fn broken_bytes_are_errors() {
    let cases: [(&[u8], MsgpackError); 6] = [
        (&[], MsgpackError::Truncated),
        (&[0xc1], MsgpackError::Head(0xc1)),
        (&[0x93, 1], MsgpackError::Truncated),
        (&[0xdd, 0xff, 0xff, 0xff, 0xff, 1], MsgpackError::Truncated),
        (&[0xdb, 0xff, 0xff, 0xff, 0xff, 1], MsgpackError::Truncated),
        (&[1, 2], MsgpackError::Trailing(1)),
    ];
    for (bytes, error) in cases {
        assert_eq!(Value::decode(bytes), Err(error));
        assert_eq!(validate(bytes), Err(error));
    }
}

#[test]
fn depth_is_limited_at_the_same_place_by_both_walks() {
    let nested = |depth: usize| [vec![0x91; depth], vec![0x00]].concat();
    assert!(Value::decode(&nested(MAX_DEPTH)).is_ok());
    assert!(validate(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(
        Value::decode(&nested(MAX_DEPTH + 1)),
        Err(MsgpackError::Depth)
    );
    assert_eq!(validate(&nested(MAX_DEPTH + 1)), Err(MsgpackError::Depth));
}

#[test]
fn stored_maps_are_sorted_by_key() {
    let mut value =
        Value::decode(&[0x83, 0xa2, 3, b'c', 1, 0xa2, 3, b'a', 2, 0xa2, 3, b'b', 3]).unwrap();
    normalise(&mut value).unwrap();
    let sorted = [0x83, 0xa2, 3, b'a', 2, 0xa2, 3, b'b', 3, 0xa2, 3, b'c', 1];
    assert_eq!(encoded(&value), sorted);
}

#[test]
fn duplicate_keys_and_broken_order_are_refused() {
    let cases: [(&[u8], MsgpackError); 3] = [
        (
            &[0x82, 0xa2, 3, b'a', 1, 0xa2, 3, b'a', 2],
            MsgpackError::DuplicateKey,
        ),
        (
            &[0x83, 0xc7, 0, 1, 0xc0, 0xa2, 3, b'b', 1, 0xa2, 3, b'a', 2],
            MsgpackError::NotOrdered,
        ),
        (&[0x94, 0xc7, 0, 1, 3, 1, 2], MsgpackError::NotOrdered),
    ];
    for (bytes, error) in cases {
        assert_eq!(normalise(&mut Value::decode(bytes).unwrap()), Err(error));
        assert_eq!(error.result_code(), ResultCode::ServerError);
    }
}
