//! The bins of a record, kept in the very bytes a read answers with.
//!
//! Each bin lies as a whole read operation of the wire: size (4), operation code 1, particle type,
//! flags 0, name length, name, value. Reading all bins is one copy; bins keep their place when they
//! change, as they do on a real server.

use std::ops::Range;

use kvlab_protocol::aerospike::message::{OpCode, ParticleType};

/// The bins of one record.
#[derive(Debug, Clone, Default)]
pub struct Bins {
    bytes: Vec<u8>,
    count: u16,
}

/// One bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The type of its value.
    pub particle: ParticleType,
    /// The bytes of its value.
    pub value: &'a [u8],
}

/// Bytes in front of the name: size, operation code, type, flags, name length.
const HEAD_LEN: usize = 8;

/// Bytes of an operation's size that the size itself does not count.
const SIZE_LEN: usize = 4;

impl Bins {
    /// How many bins there are.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Whether there is no bin.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All bins as the operations of an answer.
    #[must_use]
    pub fn as_ops(&self) -> &[u8] {
        &self.bytes
    }

    /// The bin called `name`.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<Bin<'_>> {
        self.iter().find(|bin| bin.name == name)
    }

    /// The bins in the order they were created in.
    pub fn iter(&self) -> impl Iterator<Item = Bin<'_>> {
        Places::new(&self.bytes).map(|(_, bin)| bin)
    }

    /// Gives `name` a value; creates the bin if it is missing.
    pub fn set(&mut self, name: &[u8], particle: ParticleType, value: &[u8]) {
        let found = Places::new(&self.bytes).find(|(_, bin)| bin.name == name);
        let Some((place, old)) = found.map(|(place, bin)| (place, bin.value.len())) else {
            self.push(name, particle, value);
            return;
        };
        let end = place.end;
        resize_tail(&mut self.bytes, end, old, value.len());
        let Some(bin) = self.bytes.get_mut(place.start..) else {
            return;
        };
        if let Some(head) = bin.first_chunk_mut::<HEAD_LEN>() {
            *head = head_bytes(particle, name, value.len());
        }
        let at = HEAD_LEN + name.len();
        if let Some(place) = bin.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
    }

    /// Removes the bin called `name`; false if there is none.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Some((place, _)) = Places::new(&self.bytes).find(|(_, bin)| bin.name == name) else {
            return false;
        };
        let end = place.end;
        resize_tail(&mut self.bytes, end, place.len(), 0);
        self.count -= 1;
        true
    }

    /// Removes all bins and keeps the room they took.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Becomes equal to `other`, in the room at hand if it suffices.
    pub fn assign(&mut self, other: &Self) {
        self.bytes.clear();
        self.bytes.reserve_exact(other.bytes.len());
        self.bytes.extend_from_slice(&other.bytes);
        self.count = other.count;
    }

    /// Gives room beyond `keep` bytes back, and the bins with it.
    pub(super) fn shrink(&mut self, keep: usize) {
        if self.bytes.capacity() > keep {
            *self = Self::default();
        }
    }

    fn push(&mut self, name: &[u8], particle: ParticleType, value: &[u8]) {
        self.bytes
            .extend_from_slice(&head_bytes(particle, name, value.len()));
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.count = self.count.saturating_add(1);
    }
}

fn head_bytes(particle: ParticleType, name: &[u8], value_len: usize) -> [u8; HEAD_LEN] {
    // Names are at most 15 bytes and values end with their message, so neither is ever cut.
    let name_len = u8::try_from(name.len()).unwrap_or(u8::MAX);
    let size = u32::try_from(HEAD_LEN - SIZE_LEN + name.len() + value_len).unwrap_or(u32::MAX);
    let [a, b, c, d] = size.to_be_bytes();
    let read = OpCode::Read.byte();
    [a, b, c, d, read, particle.byte(), 0, name_len]
}

/// Makes the part that ends at `end` longer or shorter, from `old` to `new` bytes.
fn resize_tail(bytes: &mut Vec<u8>, end: usize, old: usize, new: usize) {
    let len = bytes.len();
    if new > old {
        bytes.resize(len + (new - old), 0);
        bytes.copy_within(end..len, end + (new - old));
    } else {
        bytes.copy_within(end..len, end - (old - new));
        bytes.truncate(len - (old - new));
    }
}

/// Walks over packed bins: where each lies, and the bin.
#[derive(Debug)]
struct Places<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Places<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl<'a> Iterator for Places<'a> {
    type Item = (Range<usize>, Bin<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.bytes.get(self.at..)?.split_first_chunk::<HEAD_LEN>()?;
        let &[a, b, c, d, _, particle, _, name_len] = head;
        let size = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
        let body = rest.get(..size.checked_sub(HEAD_LEN - SIZE_LEN)?)?;
        let (name, value) = body.split_at_checked(usize::from(name_len))?;
        let start = self.at;
        self.at += SIZE_LEN + size;
        let particle = ParticleType::from_byte(particle);
        Some((
            start..self.at,
            Bin {
                name,
                particle,
                value,
            },
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bins: &Bins) -> Vec<(&[u8], &[u8])> {
        bins.iter().map(|bin| (bin.name, bin.value)).collect()
    }

    #[test]
    fn bins_keep_their_place_when_they_grow_and_shrink() {
        let mut bins = Bins::default();
        for name in [&b"a"[..], b"b", b"c"] {
            bins.set(name, ParticleType::String, b"12");
        }
        bins.set(b"b", ParticleType::Blob, b"12345");
        assert_eq!(
            names(&bins),
            [(&b"a"[..], &b"12"[..]), (b"b", b"12345"), (b"c", b"12")]
        );
        assert_eq!(bins.get(b"b").unwrap().particle, ParticleType::Blob);
        bins.set(b"a", ParticleType::String, b"");
        assert_eq!(
            names(&bins),
            [(&b"a"[..], &b""[..]), (b"b", b"12345"), (b"c", b"12")]
        );
        assert!(bins.remove(b"b") && !bins.remove(b"b"));
        assert_eq!(names(&bins), [(&b"a"[..], &b""[..]), (b"c", b"12")]);
        assert_eq!(bins.count(), 2);
    }

    #[test]
    fn stored_bytes_are_read_operations() {
        let mut bins = Bins::default();
        bins.set(b"a", ParticleType::Integer, &1_i64.to_be_bytes());
        let mut expected = vec![0, 0, 0, 13, 1, 1, 0, 1, b'a'];
        expected.extend(1_i64.to_be_bytes());
        assert_eq!(bins.as_ops(), expected);
    }

    #[test]
    fn an_empty_name_is_a_name() {
        let mut bins = Bins::default();
        bins.set(b"", ParticleType::String, b"x");
        bins.set(b"z", ParticleType::String, b"y");
        assert_eq!(bins.get(b"").unwrap().value, b"x");
        bins.clear();
        assert!(bins.is_empty() && bins.as_ops().is_empty());
    }
}
