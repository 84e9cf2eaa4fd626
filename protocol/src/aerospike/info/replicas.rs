//! Partition maps: which partitions of a namespace a node owns, per replica column.
//!
//! `replicas`: `<namespace>:<regime>,<R>,<map 0>,...,<map R-1>` per namespace, joined by `;`. A map
//! is 512 bytes in base64 with padding; partition p is owned if bit `0x80 >> (p & 7)` of byte
//! `p >> 3` is set. Column 0 is the master. Older clients ask for `replicas-all`
//! (`<namespace>:<R>,<maps>`) and `replicas-master` (`<namespace>:<map 0>`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, BytesMut};

use super::answer::ValueError;
use super::{parse_number, put_number, split_once};
use crate::aerospike::limits::PARTITIONS;

/// Bytes of a bitmap: one bit for each of the 4096 partitions.
pub const BITMAP_LEN: usize = PARTITIONS / 8;

/// Characters of a bitmap in base64.
const BITMAP_TEXT_LEN: usize = BITMAP_LEN.div_ceil(3) * 4;

/// The partitions a node owns in one replica column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PartitionBitmap([u8; BITMAP_LEN]);

impl PartitionBitmap {
    /// No partition.
    pub const EMPTY: Self = Self([0; BITMAP_LEN]);

    /// Every partition.
    pub const FULL: Self = Self([0xff; BITMAP_LEN]);

    /// Whether the partition (0 to 4095) is owned.
    #[must_use]
    #[inline]
    pub fn contains(&self, partition: u16) -> bool {
        let byte = self.0.get(usize::from(partition >> 3));
        byte.is_some_and(|byte| byte & (0x80 >> (partition & 7)) != 0)
    }

    /// Adds a partition; numbers above 4095 are ignored.
    pub fn insert(&mut self, partition: u16) {
        if let Some(byte) = self.0.get_mut(usize::from(partition >> 3)) {
            *byte |= 0x80 >> (partition & 7);
        }
    }

    /// The owned partitions in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0_u16..)
            .take(PARTITIONS)
            .filter(|&partition| self.contains(partition))
    }

    /// How many partitions are owned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// Whether no partition is owned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&byte| byte == 0)
    }

    /// Reads 684 characters of base64.
    ///
    /// # Errors
    /// [`ValueError`] when the text is not base64 of 512 bytes.
    pub fn parse(text: &[u8]) -> Result<Self, ValueError> {
        let error = ValueError {
            expected: "a bitmap of 684 base64 characters",
        };
        // decode_slice wants room for its estimate, which is up to two bytes above the truth.
        let mut bytes = [0; BITMAP_LEN + 2];
        match STANDARD.decode_slice(text, &mut bytes) {
            Ok(BITMAP_LEN) => {}
            _ => return Err(error),
        }
        bytes.first_chunk().map(|bitmap| Self(*bitmap)).ok_or(error)
    }

    /// Writes 684 characters of base64.
    pub fn put(&self, out: &mut BytesMut) {
        let mut text = [0; BITMAP_TEXT_LEN];
        let written = STANDARD.encode_slice(self.0, &mut text);
        debug_assert_eq!(written.ok(), Some(BITMAP_TEXT_LEN));
        out.put_slice(&text);
    }
}

impl core::fmt::Debug for PartitionBitmap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PartitionBitmap({} partitions)", self.len())
    }
}

/// What a node owns of one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceReplicas {
    /// The namespace.
    pub namespace: String,
    /// The regime: 0 in available mode; anything else makes clients assume strong consistency.
    pub regime: u32,
    /// One bitmap per replica column, the master column first.
    pub columns: Vec<PartitionBitmap>,
}

/// What a node owns of all namespaces: the value of `replicas`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replicas {
    /// The namespaces in wire order.
    pub namespaces: Vec<NamespaceReplicas>,
}

impl Replicas {
    /// Parses the value of `replicas`.
    ///
    /// # Errors
    /// [`ValueError`] where the text leaves the form above.
    pub fn parse(value: &[u8]) -> Result<Self, ValueError> {
        let items = value
            .split(|&byte| byte == b';')
            .filter(|item| !item.is_empty());
        let namespaces = items.map(namespace).collect::<Result<_, _>>()?;
        Ok(Self { namespaces })
    }

    /// Writes the value of `replicas`, without a trailing separator (some clients fail on one).
    pub fn put(&self, out: &mut BytesMut) {
        for (index, namespace) in self.namespaces.iter().enumerate() {
            if index > 0 {
                out.put_u8(b';');
            }
            out.put_slice(namespace.namespace.as_bytes());
            out.put_u8(b':');
            put_number(namespace.regime.into(), out);
            out.put_u8(b',');
            put_columns(namespace, out);
        }
    }
}

/// Writes the value of `replicas-all`.
pub fn put_replicas_all(replicas: &Replicas, out: &mut BytesMut) {
    for (index, namespace) in replicas.namespaces.iter().enumerate() {
        if index > 0 {
            out.put_u8(b';');
        }
        out.put_slice(namespace.namespace.as_bytes());
        out.put_u8(b':');
        put_columns(namespace, out);
    }
}

/// Writes the value of `replicas-master`.
pub fn put_replicas_master(replicas: &Replicas, out: &mut BytesMut) {
    for (index, namespace) in replicas.namespaces.iter().enumerate() {
        if index > 0 {
            out.put_u8(b';');
        }
        out.put_slice(namespace.namespace.as_bytes());
        out.put_u8(b':');
        namespace
            .columns
            .first()
            .unwrap_or(&PartitionBitmap::EMPTY)
            .put(out);
    }
}

fn put_columns(namespace: &NamespaceReplicas, out: &mut BytesMut) {
    put_number(namespace.columns.len() as u64, out);
    for column in &namespace.columns {
        out.put_u8(b',');
        column.put(out);
    }
}

fn namespace(item: &[u8]) -> Result<NamespaceReplicas, ValueError> {
    let expected = |expected| ValueError { expected };
    let (name, rest) = split_once(item, b':').ok_or(expected("a namespace and a colon"))?;
    let name = str::from_utf8(name).map_err(|_| expected("a namespace in UTF-8"))?;
    let mut parts = rest.split(|&byte| byte == b',');
    let regime = parts
        .next()
        .and_then(parse_number)
        .ok_or(expected("a regime"))?;
    let count: u8 = parts
        .next()
        .and_then(parse_number)
        .ok_or(expected("a replica count"))?;
    let columns = parts
        .map(PartitionBitmap::parse)
        .collect::<Result<Vec<_>, _>>()?;
    if columns.len() != usize::from(count) {
        return Err(expected("as many bitmaps as the replica count says"));
    }
    Ok(NamespaceReplicas {
        namespace: name.to_owned(),
        regime,
        columns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_partition_is_the_highest_bit_of_the_first_byte() {
        let mut bitmap = PartitionBitmap::EMPTY;
        bitmap.insert(0);
        bitmap.insert(4095);
        bitmap.insert(4096);
        assert_eq!(bitmap.iter().collect::<Vec<_>>(), [0, 4095]);
        assert_eq!((bitmap.len(), bitmap.0[0], bitmap.0[511]), (2, 0x80, 1));
        assert!(!bitmap.contains(u16::MAX));
    }

    #[test]
    fn full_and_empty_maps_have_the_known_text() {
        let mut out = BytesMut::new();
        PartitionBitmap::FULL.put(&mut out);
        assert_eq!(out.len(), 684);
        assert!(out.starts_with(&[b'/'; 682]) && out.ends_with(b"8="));
        assert_eq!(PartitionBitmap::parse(&out), Ok(PartitionBitmap::FULL));
        out.clear();
        PartitionBitmap::EMPTY.put(&mut out);
        assert!(out.starts_with(&[b'A'; 683]) && out.ends_with(b"="));
    }

    #[test]
    fn replicas_have_no_trailing_separator() {
        let one = |name: &str| NamespaceReplicas {
            namespace: name.into(),
            regime: 0,
            columns: vec![PartitionBitmap::FULL, PartitionBitmap::EMPTY],
        };
        let replicas = Replicas {
            namespaces: vec![one("test"), one("bar")],
        };
        let mut out = BytesMut::new();
        replicas.put(&mut out);
        assert!(out.starts_with(b"test:0,2,////") && out.ends_with(b"A="));
        assert_eq!(Replicas::parse(&out), Ok(replicas));
    }

    #[test]
    fn wrong_counts_and_maps_are_errors() {
        let mut out = BytesMut::from(&b"test:0,2,"[..]);
        PartitionBitmap::FULL.put(&mut out);
        assert!(Replicas::parse(&out).is_err());
        for value in [
            &b"test"[..],
            b"test:0",
            b"test:0,1",
            b"test:0,1,AAAA",
            b"test:x,0",
        ] {
            assert!(Replicas::parse(value).is_err());
        }
        assert_eq!(Replicas::parse(b"").unwrap().namespaces, []);
    }
}
