//! Key digests and partition numbers.
//!
//! A record's identity is the RIPEMD-160 of the set name, one byte of key type and the key, without
//! terminators; the namespace is not part of it. The low 12 bits of the first two bytes, read
//! little-endian, are the partition. Source: the vectors in `golden/aerospike` and the published
//! RIPEMD-160 test values.

use ripemd::{Digest as _, Ripemd160};

use super::message::ParticleType;

/// Bytes of a digest.
pub const DIGEST_LEN: usize = 20;

/// A record's digest.
pub type Digest = [u8; DIGEST_LEN];

/// A user key, with the type that is hashed in front of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Key<'a> {
    /// A 64-bit integer, hashed big-endian.
    Integer(i64),
    /// Text.
    String(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
    /// A double, hashed as its big-endian bits. Not all clients allow it.
    Double(f64),
}

impl Key<'_> {
    /// The particle type of the key.
    #[must_use]
    pub const fn particle_type(&self) -> ParticleType {
        match self {
            Self::Integer(_) => ParticleType::Integer,
            Self::String(_) => ParticleType::String,
            Self::Blob(_) => ParticleType::Blob,
            Self::Double(_) => ParticleType::Double,
        }
    }

    /// Calls `visit` with the bytes that are hashed and sent after the type byte.
    pub fn with_bytes<T>(&self, visit: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Integer(value) => visit(&value.to_be_bytes()),
            Self::String(bytes) | Self::Blob(bytes) => visit(bytes),
            Self::Double(value) => visit(&value.to_bits().to_be_bytes()),
        }
    }
}

/// The digest of a key in `set` (empty for no set).
#[must_use]
pub fn digest(set: &[u8], key: Key<'_>) -> Digest {
    let mut hash = Ripemd160::new();
    hash.update(set);
    hash.update([key.particle_type().byte()]);
    key.with_bytes(|bytes| hash.update(bytes));
    hash.finalize().into()
}

/// The partition a digest belongs to, 0 to 4095.
#[must_use]
#[inline]
pub const fn partition_id(digest: &Digest) -> u16 {
    let [low, high, ..] = *digest;
    u16::from_le_bytes([low, high & 0x0f])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks_exact(2);
        digits
            .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn hash_is_ripemd_160_as_published() {
        // From the authors' page of RIPEMD-160.
        let published = [
            ("", "9c1185a5c5e9fc54612808977ee8f548b2258d31"),
            ("a", "0bdc9d2d256b3ee9daae347be6f4dc835a467ffe"),
            ("abc", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"),
            ("message digest", "5d0689ef49d2fae572b881b123a85ffa21595f36"),
            (
                "abcdefghijklmnopqrstuvwxyz",
                "f71c27109c692c1b56bbdceb5b9d2865b3708dbc",
            ),
        ];
        for (text, digest) in published {
            assert_eq!(Ripemd160::digest(text).as_slice(), hex(digest));
        }
    }

    #[test]
    fn digests_agree_with_a_real_client() {
        let cases = [
            (
                "s1",
                Key::String(b"k1"),
                "d9b956fc256f8de98a2473e4ce3547180a3fd778",
            ),
            (
                "s1",
                Key::Integer(1),
                "b62daf787972868fffa2650898fba796c0e19918",
            ),
            (
                "s1",
                Key::Integer(-1),
                "58fff258d4497d517e5ee7b4b7e1a254fb0a69d8",
            ),
            (
                "s1",
                Key::Blob(b"blobkey"),
                "30329c38494c012e0f3a82bad3a801d8aba0960e",
            ),
            (
                "",
                Key::String(b"nokeyset"),
                "a768da9170519607d89824a51f21e6fdc37ecd96",
            ),
            (
                "rq",
                Key::Integer(1),
                "c8901e742fcb22349d9c7138d40cb90a799e8fdc",
            ),
        ];
        for (set, key, expected) in cases {
            assert_eq!(
                digest(set.as_bytes(), key).as_slice(),
                hex(expected),
                "{set} {key:?}"
            );
        }
    }

    #[test]
    fn partition_is_the_low_twelve_bits_little_endian() {
        assert_eq!(
            partition_id(&digest(b"rq", Key::Integer(1))),
            200 /* c8 90: 0x0c8 */
        );
        let mut all = [0xff; DIGEST_LEN];
        assert_eq!(partition_id(&all), 4095);
        all[1] = 0xf0;
        assert_eq!(partition_id(&all), 255);
    }
}
