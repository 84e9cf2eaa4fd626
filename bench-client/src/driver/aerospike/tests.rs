//! The driver against pretend nodes that answer as the specification says.

use std::num::NonZeroU32;

use kvlab_protocol::aerospike::info::{
    AnswerWriter, NamespaceReplicas, PartitionBitmap, Replicas, requests,
};
use kvlab_protocol::aerospike::message::{Info3, MessageHeader, put_header_only};
use kvlab_protocol::aerospike::proto::split_frame;

use super::*;
use crate::driver::Plan;
use crate::settings::Address;
use crate::settings::KeySettings;

/// A node that answers info requests.
struct Node {
    name: &'static str,
    peers: &'static str,
    /// The same over TLS, with the names in certificates.
    tls_peers: &'static str,
    peers_generation: u32,
    partition_generation: u32,
    owns: fn(u16) -> bool,
}

impl Node {
    fn answer(&self, request: &[u8]) -> BytesMut {
        let body = split_frame(request).unwrap().unwrap().body;
        let mut out = BytesMut::new();
        let mut writer = AnswerWriter::begin(&mut out);
        for command in requests(body) {
            let value = match command.name() {
                b"node" => self.name.to_owned(),
                b"build" => "8.1.2.0".to_owned(),
                b"peers-generation" => self.peers_generation.to_string(),
                b"partition-generation" => self.partition_generation.to_string(),
                b"peers-clear-std" => self.peers.to_owned(),
                b"peers-tls-std" => self.tls_peers.to_owned(),
                b"replicas" => self.replicas(),
                b"user-agent-set" => "ok".to_owned(),
                other => panic!("the driver asked {:?}", String::from_utf8_lossy(other)),
            };
            writer.entry(command.raw(), value.as_bytes());
        }
        writer.finish();
        out
    }

    fn replicas(&self) -> String {
        let mut map = PartitionBitmap::EMPTY;
        (0..4096)
            .filter(|p| (self.owns)(*p))
            .for_each(|p| map.insert(p));
        let namespace = "test".to_owned();
        let replicas = Replicas {
            namespaces: vec![NamespaceReplicas {
                namespace,
                regime: 0,
                columns: vec![map],
            }],
        };
        let mut out = BytesMut::new();
        replicas.put(&mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }
}

/// One round of a tend connection; the number of requests it took.
fn tend(driver: &mut AerospikeDriver, session: &mut AerospikeSession, node: &Node) -> usize {
    for asked in 0.. {
        let mut out = BytesMut::new();
        match driver.converse(session, &mut out) {
            Step::Done => return asked,
            Step::Sent { requests } => assert_eq!(requests, 1),
        }
        let reply = node.answer(&out);
        let frame = driver.frame(session, &reply).unwrap().unwrap();
        assert_eq!(frame.len, reply.len());
        driver.take_reply(session, &reply).unwrap();
    }
    unreachable!()
}

fn driver(put: u32, get: u32) -> AerospikeDriver {
    let target = AerospikeTarget::new("127.0.0.1:3000".parse().unwrap(), "test", "s", put, get);
    AerospikeDriver::new(&target, Duration::from_secs(1))
}

fn plan(class: u8, key: u64) -> Plan {
    Plan {
        class: OpClass(class),
        request: 0,
        key,
        value_start: 0,
        value_len: 0,
        drawn: [0; 2],
        serial: 0,
    }
}

fn changes(driver: &mut AerospikeDriver) -> Vec<Topology> {
    std::iter::from_fn(|| driver.poll_topology()).collect()
}

const ALONE: Node = Node {
    name: "A1",
    peers: "0,3000,[]",
    tls_peers: "0,3000,[]",
    peers_generation: 0,
    partition_generation: 1,
    owns: |_| true,
};

#[test]
fn one_node_is_greeted_listed_and_mapped_and_then_only_watched() {
    let mut driver = driver(1, 1);
    let address = Address::Tcp("127.0.0.1:3000".parse().unwrap());
    let group = GroupId(0);
    assert_eq!(changes(&mut driver), [Topology::Tend { group, address }]);
    let mut session = driver.open(group, Role::Tend);
    assert!(!driver.is_settled());
    assert_eq!(
        tend(&mut driver, &mut session, &ALONE),
        5,
        "greeting, agent, generations, peers, map"
    );
    assert_eq!(changes(&mut driver), [Topology::Pool { group, address }]);
    assert!(driver.is_settled());
    assert_eq!(
        tend(&mut driver, &mut session, &ALONE),
        1,
        "nothing changed"
    );
    let moved = Node {
        partition_generation: 2,
        ..ALONE
    };
    assert_eq!(tend(&mut driver, &mut session, &moved), 2);
}

#[test]
fn over_tls_peers_are_asked_for_their_tls_addresses_and_names() {
    let mut driver = driver(0, 1).over_tls();
    changes(&mut driver);
    let node = Node {
        peers: "1,3000,[[B2,,[127.0.0.1:3101]],[C3,,[127.0.0.1:3102]]]",
        tls_peers: "1,4333,[[B2,node-b,[127.0.0.1:4301]],[C3,,[127.0.0.1]]]",
        ..ALONE
    };
    let mut session = driver.open(GroupId(0), Role::Tend);
    tend(&mut driver, &mut session, &node);
    let found = changes(&mut driver);
    for (number, address) in [(1, "127.0.0.1:4301"), (2, "127.0.0.1:4333")] {
        let tend = Topology::Tend {
            group: GroupId(number),
            address: Address::Tcp(address.parse().unwrap()),
        };
        assert!(found.contains(&tend), "{found:?}");
    }
    let names = [0, 1, 2].map(|number| driver.server_name(GroupId(number)));
    assert_eq!(names, [None, Some("node-b"), None]);
}

#[test]
fn a_peer_is_found_and_each_key_goes_to_the_master_of_its_partition() {
    let mut driver = driver(0, 1);
    changes(&mut driver);
    let even = Node {
        peers: "1,3000,[[B2,,[127.0.0.1:3101]]]",
        owns: |p| p % 2 == 0,
        ..ALONE
    };
    let odd = Node {
        name: "B2",
        peers: "1,3000,[[A1,,[127.0.0.1]]]",
        owns: |p| p % 2 == 1,
        ..ALONE
    };
    let mut first = driver.open(GroupId(0), Role::Tend);
    tend(&mut driver, &mut first, &even);
    let address = Address::Tcp("127.0.0.1:3101".parse().unwrap());
    assert!(changes(&mut driver).contains(&Topology::Tend {
        group: GroupId(1),
        address
    }));
    assert!(!driver.is_settled());
    let mut second = driver.open(GroupId(1), Role::Tend);
    tend(&mut driver, &mut second, &odd);
    assert_eq!(
        changes(&mut driver),
        [Topology::Pool {
            group: GroupId(1),
            address
        }]
    );
    assert!(driver.is_settled());
    let keys = KeySpace::new(&KeySettings {
        prefix: "k".into(),
        width: 0,
        ..KeySettings::default()
    });
    for number in 0..50 {
        let plan = plan(0, number);
        let operation = Operation {
            plan: &plan,
            value: &[],
            keys: &keys,
        };
        let digest = digest(b"s", Key::String(format!("k{number}").as_bytes()));
        let group = GroupId(partition_id(&digest) % 2);
        assert_eq!(driver.route(&operation), Route::To(group));
    }
    // The node goes away: nobody lists it any more and it does not answer.
    driver.tend_failed(GroupId(1));
    let alone = Node {
        peers_generation: 2,
        partition_generation: 2,
        ..ALONE
    };
    tend(&mut driver, &mut first, &alone);
    assert_eq!(
        changes(&mut driver),
        [Topology::Remove { group: GroupId(1) }]
    );
    assert!(driver.is_settled());
}

#[test]
fn another_node_at_a_known_address_is_not_used() {
    let mut driver = driver(1, 1);
    changes(&mut driver);
    let mut session = driver.open(GroupId(0), Role::Tend);
    tend(&mut driver, &mut session, &ALONE);
    let mut out = BytesMut::new();
    driver.converse(&mut session, &mut out);
    let stranger = Node {
        name: "C3",
        ..ALONE
    };
    driver
        .take_reply(&mut session, &stranger.answer(&out))
        .unwrap_err();
}

#[test]
fn a_get_is_the_captured_request_of_the_c_client() {
    // kv-002 of the captured exchanges: get of key "k1" in set s1, 1000 ms.
    let wire = "020300000000003f1603000000000000000000000000000003e8000300000000000500746573740000000301\
                73310000001504d9b956fc256f8de98a2473e4ce3547180a3fd778";
    let target = AerospikeTarget::new("127.0.0.1:3000".parse().unwrap(), "test", "s1", 0, 1);
    let mut driver = AerospikeDriver::new(&target, Duration::from_secs(1));
    let keys = KeySpace::new(&KeySettings {
        prefix: "k".into(),
        width: 0,
        ..KeySettings::default()
    });
    let plan = plan(0, 1);
    let mut session = driver.open(GroupId(0), Role::Load);
    let mut out = BytesMut::new();
    driver.encode(
        &Operation {
            plan: &plan,
            value: &[],
            keys: &keys,
        },
        &mut session,
        &mut out,
    );
    let hex: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, wire);
}

#[test]
fn answers_become_hits_misses_and_errors_by_name() {
    let mut driver = driver(0, 1);
    let keys = KeySpace::new(&KeySettings::default());
    for (code, expected) in [
        (ResultCode::Ok, Answer::Hit),
        (ResultCode::NotFound, Answer::Miss),
        (
            ResultCode::DeviceOverload,
            Answer::Error(error_kind(ResultCode::DeviceOverload)),
        ),
    ] {
        let plan = plan(0, 1);
        let mut session = driver.open(GroupId(0), Role::Load);
        let mut out = BytesMut::new();
        driver.encode(
            &Operation {
                plan: &plan,
                value: &[],
                keys: &keys,
            },
            &mut session,
            &mut out,
        );
        let mut reply = BytesMut::new();
        put_header_only(&mut reply, &MessageHeader::answer(code));
        for cut in 0..reply.len() {
            assert_eq!(driver.frame(&mut session, &reply[..cut]).unwrap(), None);
        }
        let frame = driver.frame(&mut session, &reply).unwrap().unwrap();
        assert_eq!((frame.len, frame.answer), (30, expected));
    }
}

#[test]
fn a_batch_ends_with_its_last_message_however_it_is_cut() {
    let mut target = AerospikeTarget::new("127.0.0.1:3000".parse().unwrap(), "test", "s", 0, 1);
    target.operations[0].verb = AerospikeVerb::BatchRead(NonZeroU32::new(2).unwrap());
    let mut driver = AerospikeDriver::new(&target, Duration::from_secs(1));
    let keys = KeySpace::new(&KeySettings::default());
    let mut reply = BytesMut::new();
    put_header_only(&mut reply, &MessageHeader::answer(ResultCode::Ok));
    put_header_only(&mut reply, &MessageHeader::answer(ResultCode::NotFound));
    put_header_only(
        &mut reply,
        &MessageHeader {
            info3: Info3::LAST,
            ..MessageHeader::EMPTY
        },
    );
    let plan = plan(0, 1);
    let mut session = driver.open(GroupId(0), Role::Load);
    let mut out = BytesMut::new();
    driver.encode(
        &Operation {
            plan: &plan,
            value: &[],
            keys: &keys,
        },
        &mut session,
        &mut out,
    );
    for cut in 0..reply.len() {
        assert_eq!(driver.frame(&mut session, &reply[..cut]).unwrap(), None);
    }
    let frame = driver.frame(&mut session, &reply).unwrap().unwrap();
    assert_eq!((frame.len, frame.answer), (reply.len(), Answer::Hit));
}

#[test]
fn only_errors_that_may_pass_are_tried_again() {
    let mut target = AerospikeTarget::new("127.0.0.1:3000".parse().unwrap(), "test", "s", 0, 1);
    target.retries.most = 2;
    let mut driver = AerospikeDriver::new(&target, Duration::from_secs(1));
    let class = OpClass(0);
    assert!(driver.retries(class, Outcome::Timeout, 0));
    assert!(driver.retries(class, Outcome::Timeout, 1));
    assert!(!driver.retries(class, Outcome::Timeout, 2));
    assert!(driver.retries(class, Outcome::Error(error_kind(ResultCode::KeyBusy)), 0));
    assert!(!driver.retries(class, Outcome::Error(error_kind(ResultCode::Generation)), 0));
    assert!(!driver.retries(class, Outcome::Miss, 0));
}
