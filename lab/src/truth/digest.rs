//! A hash over the joined rows of a run: two runs are the same exactly when their hashes are.
//!
//! FNV-1a with 64 bits (offset basis 0xcbf29ce484222325, prime 0x100000001b3) over the rows in the
//! order of their keys. Each number goes in as 8 bytes, lowest first. It is no defence against
//! forgery and need not be one; it is short, and anybody can recompute it.

use std::net::SocketAddr;

use kvlab_bench_client::record::{Outcome, RowKind};

use super::Pair;

/// FNV-1a, 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv1a {
    /// Takes bytes in.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Takes a number in, as 8 bytes, lowest first.
    pub fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// The hash so far.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }
}

/// The hash of the rows of a run, which are ordered by key.
#[must_use]
pub fn of_pairs(pairs: &[Pair]) -> u64 {
    let mut hash = Fnv1a::default();
    for Pair { client, server, .. } in pairs {
        address(&mut hash, client.local);
        for number in [
            u64::from(client.ordinal),
            client.sequence,
            kind_code(client.kind),
            u64::from(client.class.0),
            u64::from(client.attempt),
            u64::from(client.retried),
            client.intended.as_nanos(),
            client.sent.as_nanos(),
            client
                .received
                .map_or(u64::MAX, |received| received.as_nanos()),
        ] {
            hash.number(number);
        }
        outcome(&mut hash, client.outcome);
        hash.bytes(server.command.as_bytes());
        for number in [
            server.read.as_nanos(),
            server.start.as_nanos(),
            server.wanted_ns,
            server.due.as_nanos(),
            server.written.as_nanos(),
            u64::from(server.answered),
        ] {
            hash.number(number);
        }
    }
    hash.value()
}

/// The hash of the delays that the server drew: connection by connection in the order of their first
/// requests, the wanted delay of each request. Equal for equal settings, seed and number of requests
/// on each connection.
#[must_use]
pub fn of_delays(pairs: &[Pair]) -> u64 {
    let mut connections: Vec<&[Pair]> = pairs
        .chunk_by(|one, next| {
            let (one, next) = (one.key(), next.key());
            (one.address, one.ordinal) == (next.address, next.ordinal)
        })
        .collect();
    connections.sort_by_key(|rows| rows.first().map(|pair| (pair.server.read, pair.key())));
    let mut hash = Fnv1a::default();
    for pair in connections.into_iter().flatten() {
        hash.number(pair.server.wanted_ns);
    }
    hash.value()
}

fn address(hash: &mut Fnv1a, address: SocketAddr) {
    hash.bytes(address.to_string().as_bytes());
}

fn kind_code(kind: RowKind) -> u64 {
    match kind {
        RowKind::Handshake => 0,
        RowKind::Tend => 1,
        RowKind::Load => 2,
        RowKind::Warmup => 3,
    }
}

fn outcome(hash: &mut Fnv1a, outcome: Outcome) {
    let code = match outcome {
        Outcome::Hit => 0,
        Outcome::Miss => 1,
        Outcome::Error(kind) => {
            hash.bytes(kind.as_str().as_bytes());
            2
        }
        Outcome::Timeout => 3,
        Outcome::ConnectionLost => 4,
        Outcome::NotSent => 5,
    };
    hash.number(code);
}

#[cfg(test)]
mod tests {
    use super::super::join::tests::pair;
    use super::*;

    #[test]
    fn hash_is_fnv_1a_as_published() {
        // Test vectors of the reference code of FNV-1a.
        for (text, value) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut hash = Fnv1a::default();
            hash.bytes(text.as_bytes());
            assert_eq!(hash.value(), value, "{text:?}");
        }
    }

    #[test]
    fn delays_are_hashed_in_the_order_in_which_connections_began() {
        let delays = |ports: [u16; 2]| {
            let mut pairs = vec![pair(ports[0], 0, 100), pair(ports[1], 0, 200)];
            pairs[1].server.wanted_ns = 7;
            pairs.sort_by_key(Pair::key);
            of_delays(&pairs)
        };
        // FNV-1a over 1000 and 7, eight bytes each, lowest first.
        let mut expected = Fnv1a::default();
        expected.bytes(&[0xe8, 3, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(delays([1, 2]), expected.value());
        // The ports that the kernel gave do not matter.
        assert_eq!(delays([9, 2]), expected.value());
    }

    #[test]
    fn every_stamp_counts() {
        let base = pair(1, 0, 100);
        let hash = of_pairs(std::slice::from_ref(&base));
        assert_eq!(of_pairs(&[pair(1, 0, 100)]), hash);
        let mut changed = Vec::new();
        for change in 0..6 {
            let mut pair = base.clone();
            let later = |stamp: kvlab_timing::Stamp| stamp.add_nanos(1);
            match change {
                0 => pair.client.intended = later(pair.client.intended),
                1 => pair.client.sent = later(pair.client.sent),
                2 => pair.client.received = pair.client.received.map(later),
                3 => pair.server.read = later(pair.server.read),
                4 => pair.server.due = later(pair.server.due),
                _ => pair.server.written = later(pair.server.written),
            }
            changed.push(of_pairs(&[pair]));
        }
        assert!(!changed.contains(&hash));
        changed.sort_unstable();
        changed.dedup();
        assert_eq!(changed.len(), 6);
    }
}
