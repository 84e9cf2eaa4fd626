//! Replies are written as a real server writes them, and read back.

use bytes::BytesMut;
use kvlab_protocol::resp::{
    DecodeError, DecodeLimits, DoubleStyle, ReplyDecoder, ReplyKind, ReplySkimmer, ReplyWriter,
    Value, Version, error_prefix,
};

use crate::vectors::{bytes, rows};

#[test]
fn writer_sends_the_bytes_of_the_recorded_server() {
    for [name, resp2, resp3] in rows(include_str!("../data/resp/replies.json"), "replies") {
        for (version, recorded) in [(Version::Resp2, resp2), (Version::Resp3, resp3)] {
            let mut out = BytesMut::new();
            let mut writer = ReplyWriter::new(&mut out, version, DoubleStyle::SeventeenDigits);
            write_reply(&name, &mut writer);
            let sent = out.escape_ascii().to_string();
            assert_eq!(
                sent,
                bytes(&recorded).escape_ascii().to_string(),
                "{name} {version:?}"
            );
        }
    }
}

/// Writes what the server was asked for under that name.
fn write_reply(name: &str, reply: &mut ReplyWriter<'_>) {
    match name {
        "string" => reply.bulk(b"Hello World"),
        "integer" => reply.integer(12345),
        "double" => {
            // The server's choice, not an attempt at pi.
            #[allow(clippy::approx_constant)]
            reply.double(3.141);
        }
        "null" | "missing key" => reply.null(),
        "missing array" => reply.null_array(),
        "array" => {
            reply.array(3);
            (0..3).for_each(|n| reply.integer(n));
        }
        "set" => {
            reply.set(3);
            (0..3).for_each(|n| reply.integer(n));
        }
        "map" => {
            reply.map(3);
            for n in 0..3 {
                reply.integer(n);
                reply.boolean(n == 1);
            }
        }
        "attrib" => {
            reply.attribute(1, |reply| {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            });
            reply.bulk(b"Some real reply following the attribute");
        }
        "push" if reply.version() == Version::Resp2 => {
            reply.error("ERR RESP2 is not supported by this command");
        }
        "push" => {
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        "verbatim" => reply.verbatim(b"txt", b"This is a verbatim\nstring"),
        "true" => reply.boolean(true),
        "false" => reply.boolean(false),
        "bignum" => reply.big_number("1234567999999999999999999999999999999"),
        "empty bulk" => reply.bulk(b""),
        "infinity" => reply.double(f64::INFINITY),
        "minus infinity" => reply.double(f64::NEG_INFINITY),
        "error" => reply.error("ERR wrong number of arguments for 'get' command"),
        "bulk of ten" => reply.bulk(b"0123456789"),
        "bulk of 100" => reply.bulk(&[b'x'; 100]),
        "bulk of 1000" => reply.bulk(&[b'x'; 1000]),
        other => panic!("no such reply: {other}"),
    }
}

#[test]
fn line_ends_in_an_error_become_blanks() {
    let mut out = BytesMut::new();
    let mut writer = ReplyWriter::new(&mut out, Version::Resp2, DoubleStyle::Shortest);
    writer.error("ERR a\r\nb");
    writer.simple("c\nd");
    assert_eq!(&out[..], b"-ERR a  b\r\n+c d\r\n");
}

/// Decodes one reply, which must be the whole text.
fn decode(wire: &[u8]) -> Value {
    let (value, len) = ReplyDecoder::new()
        .decode(wire)
        .unwrap()
        .expect("a whole reply");
    assert_eq!(len, wire.len());
    value
}

fn bulk(text: &'static str) -> Value {
    Value::Bulk(text.into())
}

#[test]
fn every_type_of_the_specification_decodes() {
    // Examples of the RESP3 specification, and the forms RESP2 shares with it.
    let cases = [
        (&b"+OK\r\n"[..], Value::Simple("OK".into())),
        (b"-ERR this is\r\n", Value::Error("ERR this is".into())),
        (b":1234\r\n", Value::Integer(1234)),
        (b":+7\r\n", Value::Integer(7)),
        (b":-9223372036854775808\r\n", Value::Integer(i64::MIN)),
        (b"$11\r\nhello world\r\n", bulk("hello world")),
        (b"$0\r\n\r\n", bulk("")),
        (b"$-1\r\n", Value::Null),
        (b"*-1\r\n", Value::NullArray),
        (b"_\r\n", Value::Null),
        (b",1.23\r\n", Value::Double(1.23)),
        (b",10\r\n", Value::Double(10.0)),
        (b",1.5e-3\r\n", Value::Double(0.0015)),
        (b",inf\r\n", Value::Double(f64::INFINITY)),
        (b",-inf\r\n", Value::Double(f64::NEG_INFINITY)),
        (b"#t\r\n", Value::Boolean(true)),
        (b"#f\r\n", Value::Boolean(false)),
        (b"(-3492890328409238509324850943850943825024385\r\n", {
            Value::BigNumber("-3492890328409238509324850943850943825024385".into())
        }),
        (
            b"!21\r\nSYNTAX invalid syntax\r\n",
            Value::BulkError("SYNTAX invalid syntax".into()),
        ),
        (b"=15\r\ntxt:Some string\r\n", {
            Value::Verbatim {
                format: *b"txt",
                data: "Some string".into(),
            }
        }),
        (b"*0\r\n", Value::Array(vec![])),
        (b"*2\r\n*1\r\n:1\r\n#t\r\n", {
            Value::Array(vec![
                Value::Array(vec![Value::Integer(1)]),
                Value::Boolean(true),
            ])
        }),
        (b"%1\r\n+first\r\n:1\r\n", {
            Value::Map(vec![(Value::Simple("first".into()), Value::Integer(1))])
        }),
        (
            b"~2\r\n+a\r\n:1\r\n",
            Value::Set(vec![Value::Simple("a".into()), Value::Integer(1)]),
        ),
        (
            b">2\r\n$7\r\nmessage\r\n$1\r\nx\r\n",
            Value::Push(vec![bulk("message"), bulk("x")]),
        ),
        (b"|1\r\n+ttl\r\n:3600\r\n:9543892\r\n", {
            Value::Attribute {
                attributes: vec![(Value::Simple("ttl".into()), Value::Integer(3600))],
                value: Box::new(Value::Integer(9_543_892)),
            }
        }),
        (
            b"$?\r\n;4\r\nHell\r\n;5\r\no wor\r\n;1\r\nd\r\n;0\r\n",
            bulk("Hello word"),
        ),
        (b"$?\r\n;0\r\n", bulk("")),
        (b"*?\r\n:1\r\n*?\r\n.\r\n.\r\n", {
            Value::Array(vec![Value::Integer(1), Value::Array(vec![])])
        }),
        (b"~?\r\n:1\r\n.\r\n", Value::Set(vec![Value::Integer(1)])),
        (b"%?\r\n+a\r\n:1\r\n.\r\n", {
            Value::Map(vec![(Value::Simple("a".into()), Value::Integer(1))])
        }),
    ];
    for (wire, value) in cases {
        assert_eq!(decode(wire), value, "{}", wire.escape_ascii());
    }
}

#[test]
fn nan_decodes_in_any_spelling() {
    for wire in [b",nan\r\n", b",NaN\r\n"] {
        assert!(matches!(decode(wire), Value::Double(value) if value.is_nan()));
    }
    assert!(matches!(decode(b",-nan\r\n"), Value::Double(value) if value.is_nan()));
}

#[test]
fn attributes_inside_aggregates_belong_to_the_next_element() {
    let value = decode(b"*3\r\n:1\r\n:2\r\n|1\r\n+ttl\r\n:3600\r\n:3\r\n");
    let Value::Array(elements) = value else {
        panic!("an array")
    };
    assert_eq!(elements.len(), 3);
    assert!(matches!(&elements[2], Value::Attribute { value, .. } if **value == Value::Integer(3)));
}

#[test]
fn attributes_in_a_row_are_joined() {
    let Value::Attribute { attributes, value } =
        decode(b"|1\r\n:1\r\n:2\r\n|0\r\n|1\r\n:3\r\n:4\r\n_\r\n")
    else {
        panic!("an attribute");
    };
    assert_eq!(attributes.len(), 2);
    assert_eq!(*value, Value::Null);
}

#[test]
fn malformed_replies_are_named() {
    use DecodeError::{
        InvalidLength, InvalidValue, MissingLineEnd, UnexpectedStreamPart, UnknownType,
    };
    let cases = [
        (&b"hello\r\n"[..], UnknownType(b'h')),
        (b"\r\n", UnknownType(b'\r')),
        (b"+a\rb\r\n", MissingLineEnd),
        (b"+a\nb\r\n", MissingLineEnd),
        (b"$1\r\nab\r\n", MissingLineEnd),
        (b"$01\r\na\r\n", InvalidLength(b'$')),
        (b"$-2\r\n", InvalidLength(b'$')),
        (b"*-2\r\n", InvalidLength(b'*')),
        (b"%-1\r\n", InvalidLength(b'%')),
        (b"=3\r\ntxt\r\n", InvalidLength(b'=')),
        (b"!?\r\n", InvalidLength(b'!')),
        (b">?\r\n", InvalidLength(b'>')),
        (b"=4\r\ntxtx\r\n", InvalidValue(b'=')),
        (b":\r\n", InvalidValue(b':')),
        (b":1.5\r\n", InvalidValue(b':')),
        (b":9223372036854775808\r\n", InvalidValue(b':')),
        (b",one\r\n", InvalidValue(b',')),
        (b",0x10\r\n", InvalidValue(b',')),
        (b"#x\r\n", InvalidValue(b'#')),
        (b"_x\r\n", InvalidValue(b'_')),
        (b"(-\r\n", InvalidValue(b'(')),
        (b".\r\n", UnexpectedStreamPart(b'.')),
        (b";1\r\na\r\n", UnexpectedStreamPart(b';')),
        (b"*1\r\n.\r\n", UnexpectedStreamPart(b'.')),
        (b"*?\r\n*1\r\n.\r\n", UnexpectedStreamPart(b'.')),
        (b"%?\r\n:1\r\n.\r\n", UnexpectedStreamPart(b'.')),
        (b"*?\r\n|1\r\n:1\r\n:2\r\n.\r\n", UnexpectedStreamPart(b'.')),
        (b"$?\r\n:1\r\n", UnexpectedStreamPart(b':')),
    ];
    for (wire, error) in cases {
        assert_eq!(
            ReplyDecoder::new().decode(wire),
            Err(error),
            "{}",
            wire.escape_ascii()
        );
        assert_eq!(
            ReplySkimmer::new().skim(wire),
            Err(error),
            "{}",
            wire.escape_ascii()
        );
    }
}

#[test]
fn limits_hold_at_their_edges() {
    let limits = DecodeLimits {
        max_depth: 2,
        max_bulk: 3,
        max_elements: 4,
        max_frame: 40,
    };
    let skim = |wire: &[u8]| ReplySkimmer::with_limits(limits.clone()).skim(wire);
    assert!(skim(b"*1\r\n*1\r\n:1\r\n").unwrap().is_some());
    assert_eq!(
        skim(b"*1\r\n*1\r\n*1\r\n"),
        Err(DecodeError::TooDeep { limit: 2 })
    );
    assert!(skim(b"$3\r\nabc\r\n").unwrap().is_some());
    assert_eq!(
        skim(b"$4\r\nabcd\r\n"),
        Err(DecodeError::BulkTooLong { len: 4, limit: 3 })
    );
    assert!(skim(b"%2\r\n:1\r\n:2\r\n:3\r\n:4\r\n").unwrap().is_some());
    assert_eq!(
        skim(b"%3\r\n"),
        Err(DecodeError::TooManyElements { len: 6, limit: 4 })
    );
    let five = b"*?\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n";
    assert_eq!(
        skim(five),
        Err(DecodeError::TooManyElements { len: 5, limit: 4 })
    );
    assert!(
        skim(&[&b"+"[..], &[b'a'; 37], b"\r\n"].concat())
            .unwrap()
            .is_some()
    );
    let long = [&b"+"[..], &[b'a'; 40]].concat();
    assert_eq!(skim(&long), Err(DecodeError::FrameTooLong { limit: 40 }));
}

#[test]
fn skimmer_tells_the_kinds_apart() {
    let cases = [
        (&b"+OK\r\n"[..], ReplyKind::Ok),
        (b"+QUEUED\r\n", ReplyKind::Ok),
        (b"-ERR x\r\n", ReplyKind::Error),
        (b"!5\r\nERR x\r\n", ReplyKind::Error),
        (b"$-1\r\n", ReplyKind::Nil),
        (b"*-1\r\n", ReplyKind::Nil),
        (b"_\r\n", ReplyKind::Nil),
        (b"*1\r\n$-1\r\n", ReplyKind::Ok),
        (b"*1\r\n-ERR x\r\n", ReplyKind::Ok),
        (b"*0\r\n", ReplyKind::Ok),
        (b":0\r\n", ReplyKind::Ok),
        (b"$0\r\n\r\n", ReplyKind::Ok),
        (b">1\r\n_\r\n", ReplyKind::Push),
        (b">0\r\n", ReplyKind::Push),
        (b"|1\r\n-ERR\r\n_\r\n:1\r\n", ReplyKind::Ok),
        (b"|1\r\n:1\r\n:1\r\n-ERR x\r\n", ReplyKind::Error),
        (b"|0\r\n_\r\n", ReplyKind::Nil),
        (b"$?\r\n;0\r\n", ReplyKind::Ok),
    ];
    for (wire, kind) in cases {
        let skim = ReplySkimmer::new().skim(wire).unwrap().unwrap();
        assert_eq!(
            (skim.len, skim.kind),
            (wire.len(), kind),
            "{}",
            wire.escape_ascii()
        );
    }
}

#[test]
fn error_prefix_is_the_first_word() {
    let cases = [
        (&b"-MOVED 3999 127.0.0.1:6381\r\n"[..], &b"MOVED"[..]),
        (b"-ERR\r\n", b"ERR"),
        (b"-\r\n", b""),
        (b"!10\r\nBUSY a\r\nbc\r\n", b"BUSY"),
        (b"|1\r\n+a\r\n*1\r\n-X\r\n-NOAUTH b\r\n", b"NOAUTH"),
        (b"+OK\r\n", b""),
        (b"", b""),
        (b"|1\r\n", b""),
    ];
    for (frame, prefix) in cases {
        assert_eq!(error_prefix(frame), prefix, "{}", frame.escape_ascii());
    }
}
