//! The data without the wire: what a test or a tool puts into a namespace and looks up in it.

use bytes::BytesMut;
use kvlab_protocol::aerospike::digest::{Key, digest};
use kvlab_protocol::aerospike::particle::Value;

use super::bins::Bins;
use super::namespace::Namespace;
use super::record::{Meta, Moment, Record};

/// A copy of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordCopy {
    /// Its generation and void-time.
    pub meta: Meta,
    /// Its bins in the order they were created in.
    pub bins: Vec<(Vec<u8>, Value)>,
}

impl Namespace {
    /// Stores a record that never expires under `key` in `set` (empty for none), in place of the one
    /// that is there. Without bins it removes the record. Names and values are taken as they are.
    pub fn put(&self, set: &[u8], key: Key<'_>, bins: &[(&[u8], Value)], now: Moment) {
        let mut packed = Bins::default();
        let mut bytes = BytesMut::new();
        for (name, value) in bins {
            bytes.clear();
            value.encode(&mut bytes);
            packed.set(name, value.particle_type(), &bytes);
        }
        self.records().update(&digest(set, key), |place| {
            let old = place.as_ref().map_or(Meta::default(), |record| record.meta);
            self.discard(place);
            if packed.is_empty() {
                return;
            }
            let record = Record {
                meta: Meta {
                    generation: old.next_generation(),
                    void_time: 0,
                },
                updated_ns: now.unix_ns,
                set: self.sets().intern(set),
                key: None,
                bins: packed,
            };
            self.create(place, record);
        });
    }

    /// The record under `key` in `set`, unless it is missing or has expired by `now`.
    #[must_use]
    pub fn get(&self, set: &[u8], key: Key<'_>, now: Moment) -> Option<RecordCopy> {
        self.records().read(&digest(set, key), |record| {
            let record = record.filter(|record| !record.meta.is_expired(now))?;
            let bins = record.bins.iter().map(|bin| {
                // What is stored was checked when it came in.
                let value = Value::decode(bin.particle, bin.value).unwrap_or(Value::Nil);
                (bin.name.to_vec(), value)
            });
            Some(RecordCopy {
                meta: record.meta,
                bins: bins.collect(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::TtlRules;
    use super::*;

    #[test]
    fn what_is_put_is_found() {
        let rules = TtlRules {
            default_ttl: 0,
            nsup_period: 5,
        };
        let namespace = Namespace::new("test", 0, rules, 1);
        let now = Moment::new(0);
        let key = Key::String(b"k");
        let bins = [(&b"a"[..], Value::Integer(7)), (b"b", Value::Bool(true))];
        namespace.put(b"s", key, &bins, now);
        namespace.put(b"s", key, &bins, now);
        let copy = namespace.get(b"s", key, now).unwrap();
        assert_eq!(copy.meta.generation, 2);
        assert_eq!(copy.bins[0], (b"a".to_vec(), Value::Integer(7)));
        assert_eq!(copy.bins[1], (b"b".to_vec(), Value::Bool(true)));
        assert!(namespace.get(b"other", key, now).is_none());
        namespace.put(b"s", key, &[], now);
        assert!(namespace.get(b"s", key, now).is_none());
        assert_eq!(namespace.sets().find(b"s").unwrap().objects(), 0);
    }
}
