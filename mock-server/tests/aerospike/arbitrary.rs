//! Whatever arrives, the server answers in whole frames, or closes, and goes on serving others.
//!
//! The input is bytes of captured requests with a few changed, cut or repeated, which gets deeper than
//! arbitrary bytes would; those are tried too.

// A test that unwraps or indexes wrongly fails, as it should.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::LazyLock;

use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::dialect::Listener;
use kvlab_mock_server::virtual_shell::VirtualServer;
use kvlab_protocol::aerospike::proto::{Kind, split_frame};
use kvlab_protocol::aerospike::tree::{Frame, Sender};
use kvlab_timing::Stamp;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Every captured request.
static REQUESTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/aerospike");
    let mut requests = Vec::new();
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    names.sort();
    for name in names {
        let text = std::fs::read_to_string(name).unwrap();
        let file: serde_json::Value = serde_json::from_str(&text).unwrap();
        for exchange in file["exchanges"].as_array().unwrap() {
            let hex = exchange["req"].as_str().unwrap().as_bytes();
            let bytes = hex
                .chunks_exact(2)
                .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap());
            requests.push(bytes.collect());
        }
    }
    assert_eq!(requests.len(), 565);
    requests
});

/// A change to a request.
#[derive(Debug, Clone)]
enum Change {
    Set(Index, u8),
    Remove(Index),
    Repeat(Index, Index),
    /// The body's length is made right again, so that the message is looked at.
    Length,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => any::<Index>().prop_map(Change::Remove),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Repeat(from, to)),
        2 => Just(Change::Length),
    ]
}

fn apply(request: &mut Vec<u8>, change: &Change) {
    if request.len() <= 8 {
        return;
    }
    match change {
        Change::Set(at, byte) => {
            let at = at.index(request.len());
            request[at] = *byte;
        }
        Change::Remove(at) => {
            request.remove(at.index(request.len()));
        }
        Change::Repeat(from, to) => {
            let (from, to) = (from.index(request.len()), to.index(request.len()));
            let part = request[from.min(to)..from.max(to)].to_vec();
            request.splice(from.min(to)..from.min(to), part);
        }
        Change::Length => {
            let len = u64::try_from(request.len() - 8).unwrap();
            request[2..8].copy_from_slice(&len.to_be_bytes()[2..]);
        }
    }
}

fn changed_requests() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let request = (0..REQUESTS.len(), vec(change(), 0..4)).prop_map(|(at, changes)| {
        let mut request = REQUESTS[at].clone();
        changes
            .iter()
            .for_each(|change| apply(&mut request, change));
        request
    });
    vec(request, 1..20)
}

/// Sends requests over connections of their own; gives everything that was answered.
fn answers(requests: &[Vec<u8>], pieces: usize) -> Vec<Vec<u8>> {
    let mut server = VirtualServer::new(ServerConfig::default(), Stamp::from_nanos(0));
    let mut all = Vec::new();
    for (number, request) in (0_u16..).zip(requests) {
        let now = Stamp::from_nanos(u64::from(number) * 1_000_000_000);
        let peer = SocketAddr::from(([127, 0, 0, 1], 40_000 + number));
        let connection = server.accept(now, Listener::Aerospike, peer);
        let mut answer = Vec::new();
        for piece in request.chunks(request.len().div_ceil(pieces).max(1)) {
            server.handle_bytes(now, connection, piece);
            while let Some(output) = server.poll_output() {
                answer.extend_from_slice(&output.bytes);
            }
        }
        all.push(answer);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_requests_get_whole_answers(requests in changed_requests()) {
        let whole = answers(&requests, 1);
        for answer in &whole {
            let mut rest = &answer[..];
            while let Some(frame) = split_frame(rest).unwrap() {
                if frame.header.kind == Kind::Message {
                    let tree = Frame::decode(Sender::Server, &frame);
                    prop_assert!(tree.is_ok(), "{tree:?}");
                }
                rest = frame.rest;
            }
            prop_assert!(rest.is_empty());
        }
        prop_assert_eq!(&answers(&requests, 7), &whole, "cut into pieces");
    }

    #[test]
    fn arbitrary_bytes_end_or_wait(
        bytes in vec(any::<u8>(), 0..200),
        kind in select(vec![1_u8, 2, 3, 4, 5]),
    ) {
        let mut framed = vec![2, kind, 0, 0, 0, 0, 0, u8::try_from(bytes.len()).unwrap()];
        framed.extend_from_slice(&bytes);
        for answer in answers(&[bytes, framed], 1) {
            let mut rest = &answer[..];
            while let Some(frame) = split_frame(rest).unwrap() {
                rest = frame.rest;
            }
            prop_assert!(rest.is_empty());
        }
    }
}
