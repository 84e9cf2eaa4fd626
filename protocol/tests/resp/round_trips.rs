//! What is encoded decodes to the same, and arbitrary bytes break nothing.

use bytes::{Bytes, BytesMut};
use kvlab_protocol::fuzzing;
use kvlab_protocol::resp::request::{Template, encode_command, parse_command_line};
use kvlab_protocol::resp::{
    ReplyDecoder, ReplyKind, ReplySkimmer, RequestDecoder, RequestLimits, Value, Version,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn any_bytes(max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..max).prop_map(Bytes::from)
}

/// A text that fits on one line.
fn line() -> impl Strategy<Value = Bytes> {
    vec(
        any::<u8>().prop_filter("no line end", |b| !matches!(b, b'\r' | b'\n')),
        0..20,
    )
    .prop_map(Bytes::from)
}

/// Any value of RESP3; with `attributes`, some elements carry attributes.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        line().prop_map(Value::Simple),
        line().prop_map(Value::Error),
        any::<i64>().prop_map(Value::Integer),
        any_bytes(2000).prop_map(Value::Bulk),
        Just(Value::Null),
        any::<f64>()
            .prop_filter("equal to itself", |f| !f.is_nan())
            .prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        "-?[0-9]{1,40}".prop_map(|digits| Value::BigNumber(digits.into())),
        any_bytes(50).prop_map(Value::BulkError),
        (any::<[u8; 3]>(), any_bytes(50))
            .prop_map(|(format, data)| Value::Verbatim { format, data }),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let pairs = vec((inner.clone(), inner.clone()), 0..4);
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec(inner.clone(), 0..6).prop_map(Value::Set),
            vec(inner.clone(), 0..6).prop_map(Value::Push),
            pairs.clone().prop_map(Value::Map),
            (pairs, inner).prop_map(|(attributes, value)| match value {
                already @ Value::Attribute { .. } => already,
                plain => Value::Attribute {
                    attributes,
                    value: Box::new(plain)
                },
            }),
        ]
    })
}

/// The value as RESP2 can carry it.
fn older(value: &Value) -> Value {
    let all = |elements: &[Value]| elements.iter().map(older).collect();
    let flat = |pairs: &[(Value, Value)]| {
        pairs
            .iter()
            .flat_map(|(key, value)| [older(key), older(value)])
            .collect()
    };
    let one_line = |text: &Bytes| {
        text.iter()
            .map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b })
            .collect()
    };
    match value {
        Value::Boolean(value) => Value::Integer((*value).into()),
        Value::BigNumber(data) | Value::Verbatim { data, .. } => Value::Bulk(data.clone()),
        Value::BulkError(text) => Value::Error(one_line(text)),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => {
            Value::Array(all(elements))
        }
        Value::Map(pairs) => Value::Array(flat(pairs)),
        Value::Attribute { value, .. } => older(value),
        other => other.clone(),
    }
}

/// Doubles become bulk strings in RESP2; compare them as numbers.
fn doubles_as_bulks_agree(sent: &Value, got: &Value) -> bool {
    match (sent, got) {
        (Value::Double(sent), Value::Bulk(text)) => {
            std::str::from_utf8(text).unwrap().parse() == Ok(*sent)
        }
        (Value::Array(sent), Value::Array(got)) => {
            sent.len() == got.len()
                && sent
                    .iter()
                    .zip(got)
                    .all(|(sent, got)| doubles_as_bulks_agree(sent, got))
        }
        (sent, got) => sent == got,
    }
}

proptest! {
    #[test]
    fn values_round_trip(value in value()) {
        let mut wire = BytesMut::new();
        value.encode(Version::Resp3, &mut wire);
        let decoded = ReplyDecoder::new().decode(&wire).unwrap();
        prop_assert_eq!(decoded, Some((value.clone(), wire.len())));
        let skim = ReplySkimmer::new().skim(&wire).unwrap().unwrap();
        prop_assert_eq!(skim.len, wire.len());
        prop_assert_eq!(skim.kind == ReplyKind::Error, value.is_error());
    }

    #[test]
    fn older_version_carries_the_nearest_form(value in value()) {
        let mut wire = BytesMut::new();
        value.encode(Version::Resp2, &mut wire);
        let (decoded, len) = ReplyDecoder::new().decode(&wire).unwrap().unwrap();
        prop_assert_eq!(len, wire.len());
        prop_assert!(doubles_as_bulks_agree(&older(&value), &decoded), "{:?}", decoded);
    }

    #[test]
    fn requests_round_trip(args in vec(vec(any::<u8>(), 0..1200), 0..12)) {
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let mut wire = BytesMut::new();
        encode_command(&args, &mut wire);
        let (mut decoder, limits) = (RequestDecoder::new(), RequestLimits::default());
        prop_assert_eq!(decoder.decode(&wire, &limits), Ok(Some(wire.len())));
        prop_assert_eq!(decoder.args(&wire).iter().collect::<Vec<_>>(), args);
    }

    #[test]
    fn quoted_words_survive_an_inline_request(
        words in vec(vec(any::<u8>(), 0..30), 1..6),
    ) {
        let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let line = quoted.join(" ");
        let parsed = parse_command_line(&line).unwrap();
        prop_assert_eq!(&parsed, &words);
        let wire = format!("{line}\r\n");
        let (mut decoder, limits) = (RequestDecoder::new(), RequestLimits::default());
        prop_assert_eq!(decoder.decode(wire.as_bytes(), &limits), Ok(Some(wire.len())));
        let args = decoder.args(wire.as_bytes());
        prop_assert_eq!(args.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(), words);
    }

    #[test]
    fn template_encodes_what_the_plain_encoder_does(
        key: u64, width in 1usize..25, value in vec(any::<u8>(), 0..300), padded: bool, fixed: bool,
    ) {
        let builder = Template::builder().literal(b"SET");
        let builder = if padded { builder.key(b"k:", width) } else { builder.key_unpadded(b"k:") };
        let builder = if fixed { builder.value(value.len()) } else { builder.value_any() };
        let template = builder.literal(b"KEEPTTL").build();
        let key = key % template.max_key().saturating_add(1).max(1);
        let name = if padded { format!("k:{key:0width$}") } else { format!("k:{key}") };
        let (mut plain, mut templated) = (BytesMut::new(), BytesMut::new());
        encode_command(&[b"SET", name.as_bytes(), &value, b"KEEPTTL"], &mut plain);
        template.encode(key, &value, &mut templated);
        prop_assert_eq!(templated, plain);
    }

    #[test]
    fn template_with_numbers_encodes_what_the_plain_encoder_does(
        key: u64, numbers: [u64; 2], value in vec(any::<u8>(), 0..300), fixed: bool,
    ) {
        let builder = Template::builder().literal(b"SETEX").key_unpadded(b"k:").number();
        let builder = if fixed { builder.value(value.len()) } else { builder.value_any() };
        let template = builder.number().literal(b"END").build();
        prop_assert_eq!((template.number_slots(), template.key_slots()), (2, 1));
        let (name, texts) = (format!("k:{key}"), numbers.map(|number| number.to_string()));
        let (mut plain, mut templated) = (BytesMut::new(), BytesMut::new());
        let words: [&[u8]; 6] =
            [b"SETEX", name.as_bytes(), texts[0].as_bytes(), &value, texts[1].as_bytes(), b"END"];
        encode_command(&words, &mut plain);
        template.encode_with(|_| key, |slot| numbers[slot], &value, &mut templated);
        prop_assert_eq!(templated, plain);
    }

    #[test]
    fn arbitrary_bytes_break_nothing(data in vec(any::<u8>(), 0..200)) {
        run_all(&data);
    }

    #[test]
    fn bytes_of_the_protocol_in_any_order_break_nothing(
        parts in vec(prop::sample::select(PARTS), 0..40),
    ) {
        run_all(&parts.concat());
    }
}

/// Pieces that lead a decoder deep into its states more often than random bytes do.
const PARTS: &[&[u8]] = &[
    b"*",
    b"$",
    b"%",
    b"~",
    b">",
    b"|",
    b"=",
    b"!",
    b":",
    b",",
    b"#",
    b"(",
    b"_",
    b";",
    b".",
    b"+",
    b"-",
    b"?",
    b"\r\n",
    b"\r\n",
    b"\r\n",
    b"\r\n",
    b"\r",
    b"\n",
    b"0",
    b"1",
    b"2",
    b"3",
    b"-1",
    b"4\r\nPING\r\n",
    b"t",
    b"inf",
    b"\"",
    b"'",
    b"\\",
    b" ",
    b"\0",
    b"txt:",
    b"$1\r\na\r\n",
    b":1\r\n",
    b"*2\r\n",
    b"9223372036854775807",
];

fn run_all(data: &[u8]) {
    fuzzing::resp::resp_request(data);
    fuzzing::resp::resp_reply(data);
    fuzzing::resp::resp_round_trip(data);
}

fn quote(word: &[u8]) -> String {
    let escaped: String = word.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("\"{escaped}\"")
}

#[test]
fn template_pads_and_cuts_values_to_their_slot() {
    let template = Template::builder()
        .literal(b"SET")
        .key(b"", 2)
        .value(3)
        .build();
    let mut out = BytesMut::new();
    template.encode(123, b"a", &mut out);
    template.encode(4, b"abcd", &mut out);
    let first = b"*3\r\n$3\r\nSET\r\n$2\r\n23\r\n$3\r\naxx\r\n";
    let second = b"*3\r\n$3\r\nSET\r\n$2\r\n04\r\n$3\r\nabc\r\n";
    assert_eq!(&out[..], [&first[..], second].concat());
    assert_eq!(
        (
            template.max_key(),
            template.key_slots(),
            template.has_value()
        ),
        (99, 1, true)
    );
}

#[test]
fn template_of_a_typed_command_fills_its_placeholders() {
    let line = "MSET {__key__}:a __data__ {__key__}:b fixed__data__";
    let mut builder = Template::builder();
    for argument in parse_command_line(line).unwrap() {
        builder = builder.argument(&argument, b"p-", Some(3), None);
    }
    let template = builder.build();
    let (mut templated, mut plain) = (BytesMut::new(), BytesMut::new());
    template.encode_each(|slot| 7 + slot as u64, b"v", &mut templated);
    encode_command(
        &[b"MSET", b"{p-007}:a", b"v", b"{p-008}:b", b"fixedv"],
        &mut plain,
    );
    assert_eq!(templated, plain);
    assert_eq!(template.key_slots(), 2);
}
