//! Arguments of scans and queries: which partitions, where to resume, which index range.
//!
//! Partition ids are 2 bytes little-endian each ([`FieldKind::PartitionIds`]), digests to resume
//! after 20 bytes each ([`FieldKind::DigestArray`]), bin values 8 bytes little-endian each
//! ([`FieldKind::BinValueArray`]). An index range ([`FieldKind::IndexRange`]) is:
//!
//! | bytes | meaning |
//! |---|---|
//! | 1 | number of ranges, always 1 |
//! | 1 | length of the bin name |
//! | n | bin name; empty if the index is named or has an expression |
//! | 1 | particle type |
//! | 4 + n | length and bytes of the lower end |
//! | 4 + n | length and bytes of the upper end, inclusive |
//!
//! [`FieldKind::PartitionIds`]: super::message::FieldKind::PartitionIds
//! [`FieldKind::DigestArray`]: super::message::FieldKind::DigestArray
//! [`FieldKind::BinValueArray`]: super::message::FieldKind::BinValueArray
//! [`FieldKind::IndexRange`]: super::message::FieldKind::IndexRange

use bytes::{BufMut, BytesMut};

use super::digest::{DIGEST_LEN, Digest};
use super::message::ParticleType;
use super::result_code::ResultCode;
use super::writer::wire_len;
use crate::cursor::Cursor;

/// An argument of a scan or query that does not hold together; a server answers with
/// [`ResultCode::Parameter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// An array whose length is no multiple of its elements, or that has none.
    #[error("array of {found} bytes, expected a multiple of {element} and not zero")]
    Array {
        /// Bytes found.
        found: usize,
        /// Bytes of an element.
        element: usize,
    },
    /// A number of ranges other than one.
    #[error("{0} index ranges, expected 1")]
    Ranges(u8),
    /// An index range that ends early or has bytes left over.
    #[error("index range does not fit its field")]
    Range,
}

impl QueryError {
    /// What a server answers.
    #[must_use]
    pub const fn result_code(self) -> ResultCode {
        ResultCode::Parameter
    }
}

/// The ids of a partition array, in wire order; they may be out of range or come twice.
///
/// # Errors
/// [`QueryError::Array`] when the array is empty or has half an element.
pub fn partition_ids(data: &[u8]) -> Result<impl Iterator<Item = u16> + '_, QueryError> {
    elements::<2>(data).map(|ids| ids.map(|id| u16::from_le_bytes(*id)))
}

/// The digests of a digest array, in wire order.
///
/// # Errors
/// [`QueryError::Array`] when the array is empty or has part of an element.
pub fn digests(data: &[u8]) -> Result<impl Iterator<Item = &Digest>, QueryError> {
    elements::<DIGEST_LEN>(data)
}

/// The values of a bin value array, in wire order.
///
/// # Errors
/// [`QueryError::Array`] when the array is empty or has part of an element.
pub fn bin_values(data: &[u8]) -> Result<impl Iterator<Item = i64> + '_, QueryError> {
    elements::<8>(data).map(|values| values.map(|value| i64::from_le_bytes(*value)))
}

fn elements<const N: usize>(data: &[u8]) -> Result<impl Iterator<Item = &[u8; N]>, QueryError> {
    let (elements, rest) = data.as_chunks::<N>();
    if elements.is_empty() || !rest.is_empty() {
        return Err(QueryError::Array {
            found: data.len(),
            element: N,
        });
    }
    Ok(elements.iter())
}

/// A range of an index query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexRange<'a> {
    /// The bin; empty if the index is named or has an expression.
    pub bin: &'a [u8],
    /// The type of both ends.
    pub particle: ParticleType,
    /// The lower end.
    pub begin: &'a [u8],
    /// The upper end, inclusive.
    pub end: &'a [u8],
}

impl<'a> IndexRange<'a> {
    /// Parses the data of the field.
    ///
    /// # Errors
    /// [`QueryError`] when it is not exactly one range.
    pub fn parse(data: &'a [u8]) -> Result<Self, QueryError> {
        let mut cursor = Cursor::new(data);
        let count = cursor.u8().ok_or(QueryError::Range)?;
        if count != 1 {
            return Err(QueryError::Ranges(count));
        }
        let range = Self::body(&mut cursor).ok_or(QueryError::Range)?;
        if cursor.remaining() > 0 {
            return Err(QueryError::Range);
        }
        Ok(range)
    }

    fn body(cursor: &mut Cursor<'a>) -> Option<Self> {
        let name_len = cursor.u8()?;
        let bin = cursor.take(name_len.into())?;
        let particle = ParticleType::from_byte(cursor.u8()?);
        let begin = cursor.sized_u32()?;
        let end = cursor.sized_u32()?;
        Some(Self {
            bin,
            particle,
            begin,
            end,
        })
    }

    /// Appends the data of the field.
    ///
    /// # Panics
    /// When the bin name is longer than 255 bytes.
    pub fn put(&self, out: &mut BytesMut) {
        out.put_u8(1);
        out.put_u8(u8::try_from(self.bin.len()).expect("a bin name is shorter than 256 bytes"));
        out.put_slice(self.bin);
        out.put_u8(self.particle.byte());
        for end in [self.begin, self.end] {
            out.put_u32(wire_len(end.len()));
            out.put_slice(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_little_endian() {
        let ids: Vec<_> = partition_ids(&[0xc8, 0, 0, 0x10]).unwrap().collect();
        assert_eq!(ids, [200, 4096]);
        let values: Vec<_> = bin_values(&[2, 0, 0, 0, 0, 0, 0, 0]).unwrap().collect();
        assert_eq!(values, [2]);
        assert_eq!(digests(&[7; 40]).unwrap().count(), 2);
    }

    #[test]
    fn empty_arrays_and_parts_of_elements_are_errors() {
        assert!(partition_ids(&[]).is_err() && partition_ids(&[1]).is_err());
        assert!(digests(&[0; 19]).is_err());
        assert!(bin_values(&[0; 12]).is_err());
    }

    #[test]
    fn index_range_is_read_and_written() {
        let mut data = b"\x01\x01n\x01\0\0\0\x08\0\0\0\0\0\0\0\x01\0\0\0\x08".to_vec();
        data.extend_from_slice(&3_u64.to_be_bytes());
        let range = IndexRange::parse(&data).unwrap();
        assert_eq!(
            (range.bin, range.particle),
            (&b"n"[..], ParticleType::Integer)
        );
        assert_eq!(
            (range.begin, range.end),
            (&1_u64.to_be_bytes()[..], &3_u64.to_be_bytes()[..])
        );
        let mut out = BytesMut::new();
        range.put(&mut out);
        assert_eq!(out, data);
        for cut in 0..data.len() {
            assert!(IndexRange::parse(&data[..cut]).is_err());
        }
        data[0] = 2;
        assert_eq!(IndexRange::parse(&data), Err(QueryError::Ranges(2)));
    }
}
