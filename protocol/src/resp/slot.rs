//! The cluster slot of a key: CRC16 of the key, or of its hash tag, modulo 16384.
//!
//! The checksum is CRC-16/XMODEM (polynomial 0x1021, start 0, nothing reflected), as the Redis Cluster
//! specification says. A hash tag is what stands between the first `{` and the first `}` behind it, if
//! that is not empty.

/// Slots of a cluster.
pub const SLOTS: u16 = 16_384;

/// The slot of `key`.
///
/// ```
/// use kvlab_protocol::resp::slot;
///
/// assert_eq!(slot::of_key(b"123456789"), 0x31C3);
/// assert_eq!(slot::of_key(b"{user1}.name"), slot::of_key(b"user1"));
/// ```
#[must_use]
pub fn of_key(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) % SLOTS
}

/// The part of `key` that decides its slot.
#[must_use]
pub fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else {
        return key;
    };
    let tail = key.get(open + 1..).unwrap_or_default();
    match memchr::memchr(b'}', tail) {
        None | Some(0) => key,
        Some(close) => tail.get(..close).unwrap_or(key),
    }
}

/// CRC-16/XMODEM.
#[must_use]
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let [high, _] = crc.to_be_bytes();
        // A byte indexes a table of 256 entries.
        #[allow(clippy::indexing_slicing)]
        let step = TABLE[usize::from(high ^ byte)];
        crc << 8 ^ step
    })
}

const TABLE: [u16; 256] = table();

// A constant: an index out of range would not compile.
#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)]
const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x1021
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value_of_the_catalogue() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(crc16(b""), 0);
    }

    #[test]
    fn slots_of_a_real_server() {
        // CLUSTER KEYSLOT of redis-server 7.0.15 with cluster-enabled yes.
        for (key, slot) in [
            (&b""[..], 0),
            (b"foo", 12182),
            (b"bar", 5061),
            (b"somekey", 11058),
            (b"foo{hash_tag}", 2515),
            (b"foo{}{bar}", 8363),
            (b"foo{{bar}}zap", 4015),
            (b"foo{bar}{zap}", 5061),
            (b"}{a", 12925),
        ] {
            assert_eq!(of_key(key), slot, "{}", key.escape_ascii());
        }
    }
}
