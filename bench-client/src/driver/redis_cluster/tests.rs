//! The driver without sockets: what it sends, where it sends it, how redirections are followed.

use super::*;
use crate::driver::Plan;
use crate::record::ErrorKind;
use crate::settings::{KeySettings, RedisOperation};

const SLOTS: &[u8] = b"*2\r\n\
    *3\r\n:0\r\n:8191\r\n*2\r\n$9\r\n127.0.0.1\r\n:7000\r\n\
    *3\r\n:8192\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:7001\r\n";

fn keys(prefix: &str) -> KeySpace {
    KeySpace::new(&KeySettings {
        prefix: prefix.into(),
        width: 0,
        ..KeySettings::default()
    })
}

fn plan(class: u8, key: u64) -> Plan {
    Plan {
        class: OpClass(class),
        key,
        value_start: 0,
        value_len: 3,
        serial: 0,
        drawn: [0; 2],
        request: class.into(),
    }
}

/// A driver that has learnt the two nodes.
fn settled(target: &RedisTarget, keys: &KeySpace) -> RedisClusterDriver {
    let mut driver = RedisClusterDriver::new(target, keys, &ValueSettings::default());
    let mut session = driver.open(GroupId(0), Role::Tend);
    let mut out = BytesMut::new();
    assert_eq!(
        driver.converse(&mut session, &mut out),
        Step::Sent { requests: 1 }
    );
    assert_eq!(&out[..], b"*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n");
    driver.take_reply(&mut session, SLOTS).unwrap();
    assert_eq!(driver.converse(&mut session, &mut out), Step::Done);
    assert!(driver.is_settled());
    while driver.poll_topology().is_some() {}
    driver
}

fn target() -> RedisTarget {
    RedisTarget {
        cluster: true,
        ..RedisTarget::new("127.0.0.1:7000".parse().unwrap(), 1, 1)
    }
}

fn route(driver: &mut RedisClusterDriver, keys: &KeySpace, plan: &Plan) -> Route {
    driver.route(&Operation {
        plan,
        value: b"abc",
        keys,
    })
}

/// Keys with the slots that redis-server 7.0.15 names by `CLUSTER KEYSLOT`.
const KEYSLOTS: [(u64, u16); 7] = [
    (1, 15_698),
    (2, 3_377),
    (3, 7_440),
    (4, 11_767),
    (5, 15_830),
    (6, 3_509),
    (7, 7_572),
];

#[test]
fn keys_go_to_the_primary_of_their_slot_and_tags_decide() {
    let keys = keys("k-");
    let mut driver = settled(&target(), &keys);
    for (key, slot) in KEYSLOTS {
        let expected = Route::To(GroupId(u16::from(slot > 8_191)));
        assert_eq!(route(&mut driver, &keys, &plan(0, key)), expected, "{key}");
    }
    // All of them in the slot of k-1.
    let tagged = self::keys("{k-1}");
    for key in 1..100 {
        let found = route(&mut driver, &tagged, &plan(1, key));
        assert_eq!(found, Route::To(GroupId(1)));
    }
}

#[test]
fn a_moved_slot_is_remembered_and_an_ask_is_for_one_request() {
    let keys = keys("k-");
    let mut driver = settled(&target(), &keys);
    let plan = plan(1, 7);
    let own = slot::of_key(b"k-7");
    let Route::To(home) = route(&mut driver, &keys, &plan) else {
        panic!("no route")
    };
    let mut session = driver.open(home, Role::Load);
    let mut out = BytesMut::new();
    let operation = Operation {
        plan: &plan,
        value: b"",
        keys: &keys,
    };
    driver.encode(&operation, &mut session, &mut out);
    let asked = format!("-ASK {own} 127.0.0.1:7002\r\n");
    let frame = driver
        .frame(&mut session, asked.as_bytes())
        .unwrap()
        .unwrap();
    let to = Redirection::Ask(GroupId(2));
    let kind = ErrorKind::new(b"ASK");
    assert_eq!(frame.answer, Answer::Redirected { kind, to });
    // The node is new, and the slot stays where it was.
    assert!(matches!(
        driver.poll_topology(),
        Some(Topology::Pool {
            group: GroupId(2),
            ..
        })
    ));
    assert_eq!(route(&mut driver, &keys, &plan), Route::To(home));

    driver.encode(&operation, &mut session, &mut out);
    let moved = format!("-MOVED {own} 127.0.0.1:7002\r\n");
    let frame = driver
        .frame(&mut session, moved.as_bytes())
        .unwrap()
        .unwrap();
    let (kind, to) = (ErrorKind::new(b"MOVED"), Redirection::Moved);
    assert_eq!(frame.answer, Answer::Redirected { kind, to });
    assert_eq!(route(&mut driver, &keys, &plan), Route::To(GroupId(2)));

    // One that cannot be followed is an error like any other.
    driver.encode(&operation, &mut session, &mut out);
    let astray = b"-MOVED 99999 127.0.0.1:7002\r\n";
    let frame = driver.frame(&mut session, astray).unwrap().unwrap();
    assert_eq!(frame.answer, Answer::Error(kind));
}

#[test]
fn asking_and_its_request_are_one_request_with_one_reply() {
    let keys = keys("k-");
    let mut driver = settled(&target(), &keys);
    let mut session = driver.open(GroupId(1), Role::Load);
    let mut out = BytesMut::new();
    let plan = plan(1, 7);
    let operation = Operation {
        plan: &plan,
        value: b"",
        keys: &keys,
    };
    driver.encode(&operation, &mut session, &mut out);
    let before = out.len();
    driver.ask(&mut session, &mut out);
    driver.encode(&operation, &mut session, &mut out);
    assert!(out[before..].starts_with(b"*1\r\n$6\r\nASKING\r\n*2\r\n$3\r\nGET\r\n"));
    driver.encode(&operation, &mut session, &mut out);
    // However the replies are cut.
    let replies = b"$1\r\na\r\n+OK\r\n$2\r\nbc\r\n$-1\r\n";
    let mut lens = Vec::new();
    let (mut from, mut to) = (0, 0);
    while from < replies.len() {
        to += 1;
        if let Some(frame) = driver.frame(&mut session, &replies[from..to]).unwrap() {
            lens.push((frame.len, frame.answer));
            from += frame.len;
        }
    }
    assert_eq!(
        lens,
        [(7, Answer::Hit), (13, Answer::Hit), (5, Answer::Miss)]
    );
}

#[test]
fn commands_without_a_key_go_round_and_fixed_keys_follow_the_first_redirection() {
    let keys = keys("k-");
    let mut target = target();
    target.operations = vec![
        RedisOperation::parse("PING", 1).unwrap(),
        RedisOperation::parse("INCR counter", 1).unwrap(),
    ];
    let mut driver = settled(&target, &keys);
    let turns: Vec<Route> = (0..4)
        .map(|_| route(&mut driver, &keys, &plan(0, 0)))
        .collect();
    assert_eq!(turns[0], turns[2]);
    assert_ne!(turns[0], turns[1]);
    let home = route(&mut driver, &keys, &plan(1, 0));
    let mut session = driver.open(GroupId(0), Role::Load);
    let mut out = BytesMut::new();
    let plan = plan(1, 0);
    driver.encode(
        &Operation {
            plan: &plan,
            value: b"",
            keys: &keys,
        },
        &mut session,
        &mut out,
    );
    // The server knows better which argument is the key.
    let other = if home == Route::To(GroupId(0)) {
        9_000
    } else {
        5
    };
    let port = 7000 + u16::from(other == 9_000);
    let moved = format!("-MOVED {other} 127.0.0.1:{port}\r\n");
    driver.frame(&mut session, moved.as_bytes()).unwrap();
    assert_ne!(route(&mut driver, &keys, &plan), home);
}

#[test]
fn a_server_without_a_cluster_refuses_with_its_words() {
    let keys = keys("k-");
    let mut driver = RedisClusterDriver::new(&target(), &keys, &ValueSettings::default());
    let mut session = driver.open(GroupId(0), Role::Tend);
    driver.converse(&mut session, &mut BytesMut::new());
    let words = b"-ERR This instance has cluster support disabled\r\n";
    let refusal = driver.take_reply(&mut session, words).unwrap_err();
    assert_eq!(
        refusal.text,
        "ERR This instance has cluster support disabled"
    );
}

#[test]
fn a_server_that_knows_shards_only_is_asked_for_them() {
    let keys = keys("k-");
    let mut driver = RedisClusterDriver::new(&target(), &keys, &ValueSettings::default());
    let mut session = driver.open(GroupId(0), Role::Tend);
    let mut out = BytesMut::new();
    driver.converse(&mut session, &mut out);
    let unknown = b"-ERR unknown subcommand 'SLOTS'. Try CLUSTER HELP.\r\n";
    driver.take_reply(&mut session, unknown).unwrap();
    for _ in 0..2 {
        out.clear();
        let sent = driver.converse(&mut session, &mut out);
        assert_eq!(sent, Step::Sent { requests: 1 });
        assert_eq!(&out[..], b"*2\r\n$7\r\nCLUSTER\r\n$6\r\nSHARDS\r\n");
        let shards = b"*1\r\n*4\r\n$5\r\nslots\r\n*2\r\n:0\r\n:16383\r\n$5\r\nnodes\r\n*1\r\n\
            *6\r\n$4\r\nport\r\n:7000\r\n$8\r\nendpoint\r\n$0\r\n\r\n$4\r\nrole\r\n$6\r\nmaster\r\n";
        driver.take_reply(&mut session, shards).unwrap();
        assert_eq!(driver.converse(&mut session, &mut out), Step::Done);
    }
    assert!(driver.is_settled());
    assert_eq!(
        route(&mut driver, &keys, &plan(0, 1)),
        Route::To(GroupId(0))
    );
}
