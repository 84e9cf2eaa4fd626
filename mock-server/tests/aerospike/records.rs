//! What the Aerospike side does beyond the captured exchanges: time, atomicity, policies, batches,
//! and state that info commands show.

// A test that unwraps or indexes wrongly fails, as it should.

use std::net::SocketAddr;

use bytes::BytesMut;
use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::dialect::Listener;
use kvlab_mock_server::event::ConnId;
use kvlab_mock_server::virtual_shell::VirtualServer;
use kvlab_protocol::aerospike::BatchFlags;
use kvlab_protocol::aerospike::batch::{BatchWriter, RowHead};
use kvlab_protocol::aerospike::digest::{Digest, Key, digest};
use kvlab_protocol::aerospike::info;
use kvlab_protocol::aerospike::limits::{TTL_KEEP, VOID_TIME_EPOCH_UNIX_S};
use kvlab_protocol::aerospike::message::{
    FieldKind, Info1, Info2, Info3, MessageHeader, MessageView, MessageWriter, Messages, OpCode,
    put_message_frame,
};
use kvlab_protocol::aerospike::particle::Value;
use kvlab_protocol::aerospike::proto::{Kind, split_frame};
use kvlab_protocol::aerospike::result_code::ResultCode;
use kvlab_timing::Stamp;
use kvlab_timing::wall::WallClock;

/// A client of a server under virtual time, which starts at second 0 of its calendar.
struct Client {
    server: VirtualServer,
    now: Stamp,
    connection: ConnId,
}

/// An operation: code, bin, value.
type Op<'a> = (OpCode, &'a str, Value);

#[derive(Debug, Clone, PartialEq)]
struct Answer {
    result: ResultCode,
    generation: u32,
    void_time: u32,
    ops: Vec<(OpCode, String, Value)>,
}

impl Answer {
    fn of(view: &MessageView<'_>) -> Self {
        let header = view.header();
        let ops = view.ops().map(|op| {
            let name = String::from_utf8(op.name.to_vec()).unwrap();
            (op.op, name, Value::decode(op.particle, op.value).unwrap())
        });
        Self {
            result: header.result,
            generation: header.generation,
            void_time: header.record_ttl,
            ops: ops.collect(),
        }
    }

    fn values(&self) -> Vec<&Value> {
        self.ops.iter().map(|(_, _, value)| value).collect()
    }
}

const SET: &str = "s";

fn key(key: &str) -> Digest {
    digest(SET.as_bytes(), Key::String(key.as_bytes()))
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned().into())
}

fn read(bin: &str) -> Op<'_> {
    (OpCode::Read, bin, Value::Nil)
}

fn put_ops(message: &mut MessageWriter<'_>, ops: &[Op<'_>]) {
    for (code, bin, value) in ops {
        let particle = value.particle_type();
        message.op_with(*code, particle, bin.as_bytes(), |out| value.encode(out));
    }
}

impl Client {
    fn new() -> Self {
        Self::with(ServerConfig::default())
    }

    fn with(config: ServerConfig) -> Self {
        let now = Stamp::from_nanos(0);
        let mut server = VirtualServer::new(config, now);
        let peer = SocketAddr::from(([127, 0, 0, 1], 40_000));
        let connection = server.accept(now, Listener::Aerospike, peer);
        Self {
            server,
            now,
            connection,
        }
    }

    /// Second `seconds` of the calendar, as void-times count.
    fn void_time(seconds: u64) -> u32 {
        let epoch = WallClock::VIRTUAL_EPOCH_NS / 1_000_000_000 - VOID_TIME_EPOCH_UNIX_S;
        u32::try_from(epoch + seconds).unwrap()
    }

    fn at(&mut self, seconds: u64) -> &mut Self {
        self.now = Stamp::from_nanos(seconds * 1_000_000_000);
        self
    }

    fn send(&mut self, request: &[u8]) -> Vec<u8> {
        self.server.handle_bytes(self.now, self.connection, request);
        let mut answer = Vec::new();
        while let Some(output) = self.server.poll_output() {
            assert!(!output.close);
            answer.extend_from_slice(&output.bytes);
        }
        answer
    }

    fn record(&mut self, header: &MessageHeader, user_key: &str, ops: &[Op<'_>]) -> Answer {
        self.in_set(header, SET, user_key, ops)
    }

    fn in_set(
        &mut self,
        header: &MessageHeader,
        set: &str,
        user_key: &str,
        ops: &[Op<'_>],
    ) -> Answer {
        let mut out = BytesMut::new();
        put_message_frame(&mut out, header, |message| {
            message.field(FieldKind::Namespace, b"test");
            message.field(FieldKind::Set, set.as_bytes());
            message.field(FieldKind::Digest, &key(user_key));
            put_ops(message, ops);
        });
        let answer = self.send(&out);
        let frame = split_frame(&answer).unwrap().unwrap();
        assert_eq!((frame.header.kind, frame.rest), (Kind::Message, &b""[..]));
        Answer::of(&MessageView::parse(frame.body).unwrap())
    }

    fn put(&mut self, user_key: &str, ttl: u32, value: Value) -> Answer {
        self.record(&write(ttl), user_key, &[(OpCode::Write, "a", value)])
    }

    fn get(&mut self, user_key: &str) -> Answer {
        let header = MessageHeader {
            info1: Info1::READ | Info1::GET_ALL,
            ..MessageHeader::EMPTY
        };
        self.record(&header, user_key, &[])
    }

    fn remove(&mut self, user_key: &str) -> ResultCode {
        let header = MessageHeader {
            info2: Info2::WRITE | Info2::DELETE,
            ..MessageHeader::EMPTY
        };
        self.record(&header, user_key, &[]).result
    }

    fn batch(&mut self, flags: BatchFlags, rows: impl FnOnce(&mut BatchWriter<'_>)) -> Vec<u8> {
        let mut field = BytesMut::new();
        let mut batch = BatchWriter::begin(&mut field, flags);
        rows(&mut batch);
        batch.finish();
        let header = MessageHeader {
            info1: Info1::BATCH,
            ..MessageHeader::EMPTY
        };
        let mut out = BytesMut::new();
        put_message_frame(&mut out, &header, |message| {
            message.field(FieldKind::Batch, &field);
        });
        self.send(&out)
    }

    fn info(&mut self, command: &str) -> String {
        let mut out = BytesMut::new();
        info::put_request([command], &mut out);
        let answer = self.send(&out);
        let frame = split_frame(&answer).unwrap().unwrap();
        let answer = info::answers(frame.body).next().unwrap();
        assert_eq!(answer.command, command.as_bytes());
        String::from_utf8(answer.value.to_vec()).unwrap()
    }
}

fn write(ttl: u32) -> MessageHeader {
    MessageHeader {
        info2: Info2::WRITE,
        record_ttl: ttl,
        ..MessageHeader::EMPTY
    }
}

fn operate() -> MessageHeader {
    MessageHeader {
        info1: Info1::READ,
        ..write(0)
    }
}

#[test]
fn an_expired_record_is_missing_and_shows_its_past_until_it_is_purged() {
    let mut client = Client::new();
    let written = client.at(10).put("k", 3, Value::Integer(1));
    assert_eq!(written.void_time, Client::void_time(13));
    assert_eq!(
        client.at(13).get("k").result,
        ResultCode::Ok,
        "its last second"
    );
    let gone = client.at(14).get("k");
    assert_eq!(gone.result, ResultCode::NotFound);
    assert_eq!(
        (gone.generation, gone.void_time),
        (1, Client::void_time(13))
    );
    assert_eq!(client.remove("k"), ResultCode::NotFound);
    let update_only = MessageHeader {
        info3: Info3::UPDATE_ONLY,
        ..write(0)
    };
    let update = client.record(
        &update_only,
        "k",
        &[(OpCode::Write, "a", Value::Integer(2))],
    );
    assert_eq!(
        (update.result, update.generation),
        (ResultCode::NotFound, 1)
    );
    // The purge was planned for five seconds after the first message that found a void-time.
    let purged = client.at(30).get("k");
    assert_eq!(
        (purged.result, purged.generation),
        (ResultCode::NotFound, 0)
    );
}

#[test]
fn writing_over_an_expired_record_starts_anew() {
    let mut client = Client::new();
    let old = [
        (OpCode::Write, "a", Value::Integer(1)),
        (OpCode::Write, "b", Value::Integer(2)),
    ];
    client.at(1).record(&write(2), "k", &old);
    client.at(1).record(&write(2), "k", &old);
    let create_only = MessageHeader {
        info2: Info2::WRITE | Info2::CREATE_ONLY,
        ..write(0)
    };
    let again = client
        .at(2)
        .record(&create_only, "k", &[(OpCode::Write, "c", text("new"))]);
    assert_eq!(again.result, ResultCode::RecordExists);
    let again = client
        .at(4)
        .record(&create_only, "k", &[(OpCode::Write, "c", text("new"))]);
    assert_eq!((again.result, again.generation), (ResultCode::Ok, 1));
    let found = client.get("k");
    assert_eq!(found.ops, [(OpCode::Read, "c".to_owned(), text("new"))]);
    assert_eq!(found.void_time, 0);
}

#[test]
fn a_write_moves_the_end_of_a_record_and_may_keep_it() {
    let mut client = Client::new();
    client.at(1).put("k", 100, Value::Integer(1));
    let kept = client.at(5).put("k", TTL_KEEP, Value::Integer(2));
    assert_eq!(
        (kept.generation, kept.void_time),
        (2, Client::void_time(101))
    );
    let shorter = client.at(5).put("k", 10, Value::Integer(3));
    assert_eq!(shorter.void_time, Client::void_time(15));
    let never = client.at(5).put("k", 0, Value::Integer(4));
    assert_eq!(never.void_time, 0, "the namespace's default is for ever");
    let touch = [(OpCode::Touch, "", Value::Nil)];
    let touched = client.at(6).record(&write(10), "k", &touch);
    assert_eq!(
        (touched.generation, touched.void_time),
        (5, Client::void_time(16))
    );
}

#[test]
fn ttls_follow_the_settings_of_the_namespace() {
    let mut config = ServerConfig::default();
    config.aerospike.nsup_period_s = 0;
    let mut client = Client::with(config);
    assert_eq!(
        client.put("k", 5, Value::Integer(1)).result,
        ResultCode::Forbidden
    );
    assert_eq!(client.put("k", 0, Value::Integer(1)).result, ResultCode::Ok);
    let mut config = ServerConfig::default();
    config.aerospike.default_ttl_s = 60;
    let mut client = Client::with(config);
    let written = client.at(1).put("k", 0, Value::Integer(1));
    assert_eq!(written.void_time, Client::void_time(61));
    assert!(client.info("namespace/test").contains(";default-ttl=60;"));
}

#[test]
fn a_read_may_renew_a_record_near_its_end() {
    let mut client = Client::new();
    client.at(0).put("k", 100, Value::Integer(1));
    let touching = MessageHeader {
        info1: Info1::READ | Info1::GET_ALL,
        record_ttl: 80,
        ..MessageHeader::EMPTY
    };
    // 90 of 100 seconds are left, then 50.
    client.at(10).record(&touching, "k", &[]);
    assert_eq!(client.get("k").void_time, Client::void_time(100));
    let answer = client.at(50).record(&touching, "k", &[]);
    assert_eq!(answer.void_time, Client::void_time(100), "the state before");
    assert_eq!(client.get("k").void_time, Client::void_time(150));
}

#[test]
fn a_failing_operation_leaves_everything_as_it_was() {
    let mut client = Client::new();
    client.put("k", 0, text("x"));
    let ops = [
        (OpCode::Write, "a", Value::Integer(9)),
        (OpCode::Write, "b", Value::Integer(9)),
        read("b"),
        (OpCode::Append, "a", text("!")),
    ];
    let failed = client.record(&operate(), "k", &ops);
    assert_eq!(failed.result, ResultCode::IncompatibleType);
    assert_eq!((failed.generation, failed.ops.len()), (1, 0));
    let found = client.get("k");
    assert_eq!((found.generation, found.values()), (1, vec![&text("x")]));
    let failed = client.record(&operate(), "none", &ops);
    assert_eq!(
        (failed.result, failed.generation),
        (ResultCode::IncompatibleType, 0)
    );
    assert_eq!(client.get("none").result, ResultCode::NotFound);
}

#[test]
fn reads_inside_a_write_see_what_was_written_so_far() {
    let mut client = Client::new();
    let ops = [
        (OpCode::Write, "a", Value::Integer(1)),
        read("a"),
        (OpCode::Increment, "a", Value::Integer(4)),
        read("a"),
        (OpCode::DeleteAll, "", Value::Nil),
        (OpCode::Write, "b", Value::Float(0.5)),
        (OpCode::Increment, "b", Value::Float(0.25)),
        read("b"),
    ];
    let answer = client.record(&operate(), "k", &ops);
    let expected = [Value::Integer(1), Value::Integer(5), Value::Float(0.75)];
    assert_eq!(answer.values(), expected.iter().collect::<Vec<_>>());
    assert_eq!((answer.result, answer.generation), (ResultCode::Ok, 1));
}

#[test]
fn every_operation_is_answered_when_asked_except_a_touch() {
    let mut client = Client::new();
    client.put("k", 0, Value::Integer(1));
    let header = MessageHeader {
        info2: Info2::WRITE | Info2::RESPOND_ALL_OPS,
        ..operate()
    };
    let ops = [
        (OpCode::Touch, "", Value::Nil),
        (OpCode::Write, "s", text("x")),
        (OpCode::Append, "s", text("y")),
        read("s"),
        read("none"),
    ];
    let answer = client.record(&header, "k", &ops);
    let codes: Vec<_> = answer.ops.iter().map(|(code, ..)| *code).collect();
    let expected = [OpCode::Write, OpCode::Append, OpCode::Read, OpCode::Read];
    assert_eq!(codes, expected);
    let values = [&Value::Nil, &Value::Nil, &text("xy"), &Value::Nil];
    assert_eq!(answer.values(), values);
}

#[test]
fn illegal_combinations_are_refused_before_the_record_is_looked_at() {
    let mut client = Client::new();
    client.put("k", 0, Value::Integer(1));
    let replace = MessageHeader {
        info3: Info3::CREATE_OR_REPLACE,
        ..operate()
    };
    let get_all = MessageHeader {
        info1: Info1::READ | Info1::GET_ALL,
        ..operate()
    };
    let long = "n".repeat(16);
    let cases: [(&MessageHeader, Vec<Op<'_>>, ResultCode); 8] = [
        (
            &replace,
            vec![(OpCode::Write, "a", Value::Nil)],
            ResultCode::Parameter,
        ),
        (
            &replace,
            vec![(OpCode::DeleteAll, "", Value::Nil)],
            ResultCode::Parameter,
        ),
        (
            &replace,
            vec![(OpCode::Append, "a", text("x"))],
            ResultCode::Parameter,
        ),
        (&get_all, vec![read(""), read("a")], ResultCode::Parameter),
        (&write(0), vec![read("a")], ResultCode::Parameter),
        (&write(0), vec![], ResultCode::Parameter),
        (
            &write(0),
            vec![(OpCode::Write, &long, text("x"))],
            ResultCode::BinName,
        ),
        (
            &write(0),
            vec![(OpCode::Write, "a", text("x")); 32_769],
            ResultCode::Parameter,
        ),
    ];
    for (header, ops, code) in cases {
        let answer = client.record(header, "k", &ops);
        assert_eq!(
            (answer.result, answer.generation),
            (code, 0),
            "{:?}",
            ops.first()
        );
    }
    assert_eq!(client.get("k").generation, 1);
}

#[test]
fn a_record_keeps_its_set_and_wants_it_named() {
    let mut client = Client::new();
    client.put("k", 0, Value::Integer(1));
    let ops = [(OpCode::Write, "a", Value::Integer(2))];
    for set in ["", "other"] {
        let answer = client.in_set(&write(0), set, "k", &ops);
        assert_eq!(
            (answer.result, answer.generation),
            (ResultCode::Parameter, 1)
        );
    }
    let get = MessageHeader {
        info1: Info1::READ | Info1::GET_ALL,
        ..MessageHeader::EMPTY
    };
    assert_eq!(client.in_set(&get, "", "k", &[]).result, ResultCode::Ok);
    assert_eq!(
        client.in_set(&get, "other", "k", &[]).result,
        ResultCode::Parameter
    );
}

#[test]
fn generations_are_compared_and_count_every_write_once() {
    let mut client = Client::new();
    let expecting = |generation, how| MessageHeader {
        info2: Info2::WRITE | how,
        generation,
        ..write(0)
    };
    let one = [(OpCode::Write, "a", Value::Integer(1))];
    let new = client.record(&expecting(0, Info2::GENERATION_EQUAL), "k", &one);
    assert_eq!((new.result, new.generation), (ResultCode::Ok, 1));
    let greater = client.record(&expecting(9, Info2::GENERATION_GREATER), "k", &one);
    assert_eq!((greater.result, greater.generation), (ResultCode::Ok, 2));
    let equal = client.record(&expecting(2, Info2::GENERATION_GREATER), "k", &one);
    assert_eq!(
        (equal.result, equal.generation),
        (ResultCode::Generation, 2)
    );
    for _ in 2..u16::MAX {
        client.record(&write(0), "k", &one);
    }
    assert_eq!(client.get("k").generation, 65_535);
    assert_eq!(client.put("k", 0, Value::Integer(1)).generation, 1);
}

#[test]
fn a_record_is_at_most_a_mebibyte() {
    let mut client = Client::new();
    let fits = client.put("k", 0, Value::Blob(vec![7; 1_048_000].into()));
    assert_eq!(fits.result, ResultCode::Ok);
    let too_big = client.put("k", 0, Value::Blob(vec![7; 1_048_576].into()));
    assert_eq!(
        (too_big.result, too_big.generation),
        (ResultCode::RecordTooBig, 1)
    );
    assert!(
        client
            .info("namespace/test")
            .contains("fail_record_too_big=1;")
    );
}

#[test]
fn an_answer_that_grows_beyond_all_measure_is_refused() {
    let mut client = Client::new();
    client.put("k", 0, Value::Blob(vec![7; 1_000_000].into()));
    let reads = MessageHeader {
        info1: Info1::READ,
        ..MessageHeader::EMPTY
    };
    assert_eq!(client.record(&reads, "k", &vec![read("a"); 3]).ops.len(), 3);
    let answer = client.record(&reads, "k", &vec![read("a"); 140]);
    assert_eq!(
        (answer.result, answer.ops.len()),
        (ResultCode::RecordTooBig, 0)
    );
    let names: Vec<_> = (0..1000).map(|bin| format!("b{bin}")).collect();
    let put = |name| (OpCode::Write, name, Value::Bool(true));
    let bins: Vec<_> = names.iter().map(|name| put(name.as_str())).collect();
    client.record(&write(0), "many", &bins);
    let read_all = MessageHeader {
        info1: Info1::READ | Info1::GET_ALL,
        ..operate()
    };
    let answer = client.record(&read_all, "many", &vec![read(""); 65]);
    assert_eq!((answer.result, answer.ops.len()), (ResultCode::Ok, 65_000));
    let answer = client.record(&read_all, "many", &vec![read(""); 66]);
    assert_eq!(
        (answer.result, answer.ops.len()),
        (ResultCode::Parameter, 0)
    );
}

#[test]
fn a_large_batch_is_cut_into_frames_and_keeps_its_rows() {
    let mut client = Client::new();
    let value = Value::Blob(vec![1; 10_000].into());
    for index in 0..30 {
        client.put(&index.to_string(), 0, value.clone());
    }
    let head = RowHead::read(Info1::READ | Info1::GET_ALL);
    let answer = client.batch(BatchFlags::RESPOND_ALL, |batch| {
        for index in 0..40_u32 {
            batch.row(index, &key(&index.to_string()), &head, |row| {
                row.field(FieldKind::Namespace, b"test");
                row.field(FieldKind::Set, SET.as_bytes());
            });
        }
    });
    let (mut frames, mut rows) = (Vec::new(), Vec::new());
    let mut rest = &answer[..];
    while let Some(frame) = split_frame(rest).unwrap() {
        rest = frame.rest;
        frames.push(frame.body.len());
        for message in Messages::new(frame.body) {
            let message = message.unwrap();
            let (header, answer) = (message.header(), Answer::of(&message));
            if header.info3.contains(Info3::LAST) {
                assert_eq!((answer.result, rest), (ResultCode::Ok, &b""[..]));
            } else {
                rows.push((header.transaction_ttl, answer.result, answer.ops.len()));
            }
        }
    }
    // Fourteen rows of 10,031 bytes exceed 128 KiB, and no frame has many more.
    assert_eq!(frames, [14 * 10_031, 14 * 10_031, 2 * 10_031 + 10 * 22, 22]);
    let expected = (0..40).map(|index| match index {
        0..30 => (index, ResultCode::Ok, 1),
        _ => (index, ResultCode::NotFound, 0),
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
}

#[test]
fn truncation_empties_a_set_and_spares_what_was_written_later() {
    let mut client = Client::new();
    client.at(1).put("old", 0, Value::Integer(1));
    client.at(3).put("new", 0, Value::Integer(1));
    let lut = WallClock::VIRTUAL_EPOCH_NS + 2_000_000_000;
    let command = format!("truncate:namespace=test;set=s;lut={lut}");
    assert_eq!(client.info(&command), "ok");
    assert_eq!(client.get("old").result, ResultCode::NotFound);
    assert_eq!(client.get("new").result, ResultCode::Ok);
    assert_eq!(client.info("truncate:namespace=test;set=other"), "ok");
    assert_eq!(client.get("new").result, ResultCode::Ok);
    assert!(client.info("sets/test/s").starts_with("objects=1:"));
    assert_eq!(client.info("truncate-namespace:namespace=test"), "ok");
    assert_eq!(client.get("new").result, ResultCode::NotFound);
    assert!(client.info("sets/test/s").starts_with("objects=0:"));
}

#[test]
fn a_user_agent_is_told_once() {
    let mut client = Client::new();
    let command = "user-agent-set:value=MSxrdmxhYi0wLjEs";
    assert_eq!(client.info(command), "ok");
    assert_eq!(client.info(command), "ERROR:4:already set");
}

#[test]
fn indexes_are_defined_listed_renamed_and_counted() {
    let mut client = Client::new();
    for (user_key, value) in [
        ("1", Value::Integer(1)),
        ("2", Value::Integer(1)),
        ("3", text("x")),
    ] {
        client.put(user_key, 0, value);
    }
    let create = "sindex-create:namespace=test;set=s;indexname=i;bin=a;type=NUMERIC";
    assert_eq!(client.info(create), "ok");
    assert_eq!(client.info(create), "ok");
    let other = "sindex-create:ns=test;set=s;indexname=i;indexdata=b,numeric";
    let exists = "ERROR:200:'indexname' already exists with different definition";
    assert_eq!(client.info(other), exists);
    let line = "ns=test:indexname=i:set=s:bin=a:type=numeric:indextype=default:context=null:\
                exp=null:state=RW";
    assert_eq!(client.info("sindex-list:ns=test"), line);
    assert_eq!(client.info("sindex-exists:ns=test;indexname=i"), "true");
    let stat = client.info("sindex-stat:namespace=test;indexname=i");
    assert!(stat.starts_with("entries=2;"), "{stat}");
    assert!(
        stat.contains(";entries_per_bval=2;entries_per_rec=1;load_pct=100;"),
        "{stat}"
    );
    let renamed = "sindex-create:namespace=test;set=s;indexname=j;bin=a;type=NUMERIC";
    assert_eq!(client.info(renamed), "ok");
    assert_eq!(client.info("sindex-list"), line.replace("=i:", "=j:"));
    assert_eq!(
        client.info("sindex-delete:namespace=test;indexname=j"),
        "ok"
    );
    assert_eq!(client.info("sindex-list"), "");
}

#[test]
fn modules_are_kept_by_name() {
    let mut client = Client::new();
    // The SHA-1 of "abc" is a published test value.
    assert_eq!(
        client.info("udf-put:filename=a.lua;content=YWJj;content-len=4;udf-type=LUA;"),
        "ok"
    );
    let list = "filename=a.lua,hash=a9993e364706816aba3e25717850c26c9cd0d89d,type=LUA;";
    assert_eq!(client.info("udf-list"), list);
    assert_eq!(
        client.info("udf-get:filename=a.lua"),
        "type=LUA;content=YWJj;"
    );
    assert_eq!(
        client.info("udf-put:filename=a.lua;content=%"),
        "error=invalid_base64_content"
    );
    assert_eq!(client.info("udf-remove:filename=a.lua"), "ok");
    assert_eq!(client.info("udf-list"), "");
}

#[test]
fn settings_and_counts_are_shown() {
    let mut client = Client::new();
    client.put("k", 0, Value::Integer(1));
    client.get("k");
    client.get("none");
    client.remove("none");
    let namespace = client.info("namespace/test");
    for pair in [
        ";objects=1;",
        ";client_write_success=1;",
        ";client_read_success=1;",
        ";client_read_not_found=1;",
        ";client_delete_not_found=1;",
        ";nsup-period=5;",
    ] {
        assert!(namespace.contains(pair), "{pair}");
    }
    let settings = client.info("get-config:context=namespace;id=test");
    assert!(settings.starts_with("active-rack=0;"), "{settings}");
    assert!(
        client
            .info("get-config:context=network")
            .contains(";service.port=3000")
    );
    assert!(client.info("get-config").contains("cluster-name=lab;"));
    let statistics = client.info("statistics");
    assert!(statistics.contains(";client_connections=1;") && statistics.contains(";objects=1;"));
    assert!(!statistics.contains('$') && !namespace.contains('$'));
}

#[test]
fn several_namespaces_are_apart() {
    let mut config = ServerConfig::default();
    config.aerospike.namespaces = vec!["test".to_owned(), "more".to_owned()];
    let mut client = Client::with(config);
    client.put("k", 0, Value::Integer(1));
    assert_eq!(client.info("namespaces"), "test;more");
    assert!(client.info("namespace/more").contains(";objects=0;"));
    let replicas = client.info("replicas");
    assert!(replicas.starts_with("test:0,1,////") && replicas.contains("8=;more:0,1,////"));
    assert!(replicas.ends_with("8="));
}
