//! The total order over values: ranks, ordered lists and map keys go by it.
//!
//! nil < boolean (false < true) < integer < string < list < map < blob < double < GeoJSON <
//! infinity. Strings and blobs go by their bytes, lists element by element and then by length, maps
//! by size and then pair by pair. A wildcard equals anything it is compared with, so it must not
//! take part in sorting. Order markers do not count. Source: `golden/aerospike/cdtedge.json`.

use core::cmp::Ordering;

use super::message::ParticleType;
use super::msgpack::Value;

/// Compares two values.
#[must_use]
pub fn compare(left: &Value, right: &Value) -> Ordering {
    use Value::{
        Bool, Double, GeoJson, Infinity, Integer, List, Map, Nil, String, Unsigned, Wildcard,
    };
    match (left, right) {
        (Wildcard, _) | (_, Wildcard) | (Nil, Nil) | (Infinity, Infinity) => Ordering::Equal,
        (Bool(left), Bool(right)) => left.cmp(right),
        (Integer(left), Integer(right)) => left.cmp(right),
        (Unsigned(left), Unsigned(right)) => left.cmp(right),
        // What does not fit an i64 is above everything that does.
        (Integer(_), Unsigned(_)) => Ordering::Less,
        (Unsigned(_), Integer(_)) => Ordering::Greater,
        (String(left), String(right)) | (GeoJson(left), GeoJson(right)) => left.cmp(right),
        (Double(left), Double(right)) => doubles(*left, *right),
        (List(left), List(right)) => lists(&left.items, &right.items),
        (Map(left), Map(right)) => maps(&left.entries, &right.entries),
        _ => match rank(left).cmp(&rank(right)) {
            Ordering::Equal => blob_parts(left).cmp(&blob_parts(right)),
            unequal => unequal,
        },
    }
}

/// The place of a value's type in the order.
const fn rank(value: &Value) -> u8 {
    match value {
        Value::Nil => 0,
        Value::Bool(_) => 1,
        Value::Integer(_) | Value::Unsigned(_) => 2,
        Value::String(_) => 3,
        Value::List(_) => 4,
        Value::Map(_) => 5,
        Value::Blob(_) | Value::Typed(..) | Value::Raw(_) => 6,
        Value::Double(_) => 7,
        Value::GeoJson(_) => 8,
        Value::Ext { .. } | Value::Wildcard => 9,
        Value::Infinity => 10,
    }
}

/// Type byte and data of what shares a rank with blobs: the type decides first.
fn blob_parts(value: &Value) -> (Option<u8>, &[u8]) {
    match value {
        Value::Blob(data) => (Some(ParticleType::Blob.byte()), data),
        Value::Typed(kind, data) => (Some(kind.byte()), data),
        Value::Raw(data) => match data.split_first() {
            Some((&kind, data)) => (Some(kind), data),
            None => (None, data),
        },
        Value::Ext { kind, data } => (Some(*kind), data),
        _ => (None, &[]),
    }
}

/// Zeros of both signs are equal; a NaN has its place by its bits, so that sorting cannot fail.
fn doubles(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right)
        .unwrap_or_else(|| left.total_cmp(&right))
}

fn lists(left: &[Value], right: &[Value]) -> Ordering {
    let elements = left
        .iter()
        .zip(right)
        .map(|(left, right)| compare(left, right));
    first_difference(elements).then_with(|| left.len().cmp(&right.len()))
}

fn maps(left: &[(Value, Value)], right: &[(Value, Value)]) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| {
        let pairs = left.iter().zip(right);
        first_difference(pairs.map(|(left, right)| {
            compare(&left.0, &right.0).then_with(|| compare(&left.1, &right.1))
        }))
    })
}

fn first_difference(mut orderings: impl Iterator<Item = Ordering>) -> Ordering {
    orderings
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::msgpack::{List, Map};
    use super::*;

    fn list(items: &[Value]) -> Value {
        Value::List(items.iter().cloned().collect())
    }

    fn map(entries: &[(i64, i64)]) -> Value {
        let entries = entries
            .iter()
            .map(|&(key, value)| (key.into(), value.into()))
            .collect();
        Value::Map(Map {
            order: None,
            entries,
        })
    }

    fn blob(data: &'static [u8]) -> Value {
        Value::Blob(Bytes::from_static(data))
    }

    #[test]
    fn values_of_all_types_stand_in_the_documented_order() {
        let rising = [
            Value::Nil,
            Value::Bool(false),
            Value::Bool(true),
            Value::Integer(i64::MIN),
            Value::Integer(-1),
            Value::Integer(7),
            Value::Unsigned(u64::MAX),
            Value::string(""),
            Value::string("a"),
            Value::string("ab"),
            Value::string("b"),
            list(&[]),
            list(&[Value::Integer(1)]),
            list(&[Value::Integer(1), Value::Nil]),
            list(&[Value::Integer(2)]),
            map(&[]),
            map(&[(9, 9)]),
            map(&[(1, 1), (2, 2)]),
            map(&[(1, 1), (2, 3)]),
            map(&[(1, 2), (2, 2)]),
            blob(b""),
            blob(b"\x01"),
            blob(b"\x02"),
            Value::Double(f64::NEG_INFINITY),
            Value::Double(-1.5),
            Value::Double(0.0),
            Value::Double(f64::INFINITY),
            Value::GeoJson(Bytes::from_static(b"{}")),
            Value::Infinity,
        ];
        for (low, left) in rising.iter().enumerate() {
            for (high, right) in rising.iter().enumerate() {
                assert_eq!(compare(left, right), low.cmp(&high), "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn wildcard_equals_anything_also_inside_a_list() {
        assert_eq!(
            compare(&Value::Wildcard, &Value::string("x")),
            Ordering::Equal
        );
        let pattern = list(&[Value::string("a"), Value::Wildcard]);
        let value = list(&[Value::string("a"), Value::Integer(5)]);
        assert_eq!(compare(&pattern, &value), Ordering::Equal);
    }

    #[test]
    fn order_markers_do_not_count() {
        let marked = Value::List(List {
            order: Some(super::super::msgpack::Order::ORDERED),
            items: vec![Value::Integer(1)],
        });
        assert_eq!(
            compare(&marked, &list(&[Value::Integer(1)])),
            Ordering::Equal
        );
        assert_eq!(
            compare(&Value::Double(0.0), &Value::Double(-0.0)),
            Ordering::Equal
        );
    }
}
