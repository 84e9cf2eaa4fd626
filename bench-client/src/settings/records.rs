//! Records that are written and read: keys, values and times to live from a list.
//!
//! Key number n stands for record `n - first`, and where there are more keys than records, the list
//! begins anew: so every client writes the same value to a key, and what a key must hold is known.

use std::fmt;
use std::sync::Arc;

/// A list of records; copies share it.
#[derive(Clone, PartialEq)]
pub struct Records(Arc<List>);

#[derive(PartialEq)]
struct List {
    /// All values, one behind the other.
    data: Arc<[u8]>,
    records: Vec<Record>,
}

#[derive(PartialEq)]
struct Record {
    key: Box<[u8]>,
    /// Place and length of its value.
    value: (u32, u32),
    /// Seconds to live; 0 is for ever.
    expiry: u32,
}

/// How records are sent instead of numbered keys and made-up values.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordSettings {
    /// The records; values are cut from them ([`super::SizeDistribution::Records`]).
    pub records: Records,
    /// Keys are those of the records, not prefix and number.
    pub own_keys: bool,
    /// `SET` becomes `SETEX` for records with a time to live.
    pub own_expiry: bool,
    /// Replies are compared with the record's value: another one is an error named `DIFFERENT`.
    pub compare: bool,
}

impl Records {
    /// A list of (key, value, seconds to live); `None` for none, and for values of more than 4 GiB
    /// together.
    #[must_use]
    pub fn new(items: impl IntoIterator<Item = (Vec<u8>, Vec<u8>, u32)>) -> Option<Self> {
        let mut data: Vec<u8> = Vec::new();
        let mut records = Vec::new();
        for (key, value, expiry) in items {
            let place = u32::try_from(data.len()).ok()?;
            let len = u32::try_from(value.len()).ok()?;
            place.checked_add(len)?;
            data.extend_from_slice(&value);
            records.push(Record {
                key: key.into(),
                value: (place, len),
                expiry,
            });
        }
        (!records.is_empty()).then(|| {
            Self(Arc::new(List {
                data: data.into(),
                records,
            }))
        })
    }

    /// Some of the records, or some more than once, each under a key of its own: (key, place).
    #[must_use]
    pub fn renamed(&self, keys: impl IntoIterator<Item = (Vec<u8>, usize)>) -> Option<Self> {
        let records: Vec<Record> = keys
            .into_iter()
            .map(|(key, place)| Record {
                key: key.into(),
                value: self.place(place),
                expiry: 0,
            })
            .collect();
        (!records.is_empty()).then(|| {
            Self(Arc::new(List {
                data: Arc::clone(&self.0.data),
                records,
            }))
        })
    }

    /// How many there are; at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.records.len()
    }

    /// The place of the record of a key number.
    #[must_use]
    pub fn of_number(&self, number: u64, first: u64) -> usize {
        let place = number.saturating_sub(first) % (self.count() as u64);
        // Below a number of records, which is a size.
        usize::try_from(place).unwrap_or(0)
    }

    /// The key of the record at this place; empty without one.
    #[must_use]
    pub fn key(&self, place: usize) -> &[u8] {
        self.0.records.get(place).map_or(&[], |record| &record.key)
    }

    /// Its value.
    #[must_use]
    pub fn value(&self, place: usize) -> &[u8] {
        let (start, len) = self.place(place);
        let start = start as usize;
        let end = start + len as usize;
        self.0.data.get(start..end).unwrap_or_default()
    }

    /// Its seconds to live; 0 is for ever.
    #[must_use]
    pub fn expiry(&self, place: usize) -> u32 {
        self.0.records.get(place).map_or(0, |record| record.expiry)
    }

    /// Where its value begins in [`Self::data`], and how long it is.
    pub(crate) fn place(&self, place: usize) -> (u32, u32) {
        self.0
            .records
            .get(place)
            .map_or((0, 0), |record| record.value)
    }

    /// All values, one behind the other.
    pub(crate) fn data(&self) -> &Arc<[u8]> {
        &self.0.data
    }

    /// Length of the longest value.
    pub(crate) fn longest(&self) -> u32 {
        let lens = self.0.records.iter().map(|record| record.value.1);
        lens.max().unwrap_or(0)
    }
}

/// Values may be megabytes.
impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("count", &self.count())
            .field("bytes", &self.0.data.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Records {
        let item = |key: &str, value: &str, expiry| (key.into(), value.into(), expiry);
        Records::new([item("a", "one", 0), item("b", "", 5), item("c", "three", 0)]).unwrap()
    }

    #[test]
    fn records_keep_key_value_and_expiry() {
        let records = records();
        assert_eq!((records.count(), records.longest()), (3, 5));
        assert_eq!(
            (records.key(1), records.value(1), records.expiry(1)),
            (&b"b"[..], &b""[..], 5)
        );
        assert_eq!(records.value(2), b"three");
        assert_eq!((records.key(3), records.value(3)), (&b""[..], &b""[..]));
        assert_eq!(Records::new([]), None);
    }

    #[test]
    fn numbers_go_round_the_list() {
        let places: Vec<usize> = (10..17).map(|n| records().of_number(n, 10)).collect();
        assert_eq!(places, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn renamed_records_share_the_values() {
        let records = records();
        let others = records
            .renamed([(b"x".to_vec(), 2), (b"y".to_vec(), 2)])
            .unwrap();
        assert_eq!((others.key(1), others.value(1)), (&b"y"[..], &b"three"[..]));
        assert!(Arc::ptr_eq(records.data(), others.data()));
    }
}
