//! The bodies of the fuzz targets on the stable toolchain: over their seeds, over every captured
//! exchange, and over captured bytes that were damaged at random.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use kvlab_protocol::fuzzing::aerospike::{
    aerospike_batch, aerospike_info, aerospike_message, aerospike_msgpack, aerospike_proto,
};
use proptest::prelude::*;

/// The seeds of each target, read once.
static SEEDS: LazyLock<[Vec<Vec<u8>>; 5]> = LazyLock::new(|| TARGETS.map(|(name, _)| seeds(name)));

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 5] = [
    ("aerospike_proto", aerospike_proto),
    ("aerospike_message", aerospike_message),
    ("aerospike_info", aerospike_info),
    ("aerospike_msgpack", aerospike_msgpack),
    ("aerospike_batch", aerospike_batch),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = root().join("fuzz/seeds").join(target);
    let files = std::fs::read_dir(folder).unwrap();
    files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect()
}

/// Requests and answers of all captured exchanges.
fn captured() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for file in std::fs::read_dir(root().join("golden/aerospike")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let scenario: serde_json::Value = serde_json::from_str(&text).unwrap();
        for exchange in scenario["exchanges"].as_array().unwrap() {
            all.extend(["req", "resp"].map(|side| hex(exchange[side].as_str().unwrap())));
        }
    }
    all
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn seeds_keep_the_promises_of_their_target() {
    for ((name, target), seeds) in TARGETS.iter().zip(SEEDS.iter()) {
        assert!(seeds.len() >= 10, "{name} has {} seeds", seeds.len());
        seeds.iter().for_each(|seed| target(seed));
    }
}

#[test]
fn captured_bytes_keep_the_promises_of_every_target() {
    for bytes in captured() {
        for (_, target) in TARGETS {
            target(&bytes);
            target(bytes.get(8..).unwrap_or_default());
        }
    }
}

/// A change of some bytes.
#[derive(Debug, Clone)]
enum Damage {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Remove(prop::sample::Index),
    Insert(prop::sample::Index, u8),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let len = bytes.len();
        match self {
            Self::Set(at, byte) => bytes[at.index(len)] = *byte,
            Self::Cut(at) => bytes.truncate(at.index(len)),
            Self::Remove(at) => drop(bytes.remove(at.index(len))),
            Self::Insert(at, byte) => bytes.insert(at.index(len), *byte),
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    // Small numbers and the limits of a byte find more than others: they are counts and sizes.
    let byte = || prop_oneof![0..4_u8, 0x80..0x84_u8, 0xc0..=0xff_u8, any::<u8>()];
    prop_oneof![
        4 => (at(), byte()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => at().prop_map(Damage::Cut),
        1 => at().prop_map(Damage::Remove),
        1 => (at(), byte()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn damaged_seeds_keep_the_promises(
        which in any::<prop::sample::Index>(),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        for ((_, target), seeds) in TARGETS.iter().zip(SEEDS.iter()) {
            let mut bytes = seeds[which.index(seeds.len())].clone();
            damages.iter().for_each(|damage| damage.apply(&mut bytes));
            target(&bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_keep_the_promises(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (_, target) in TARGETS {
            target(&bytes);
        }
    }
}
