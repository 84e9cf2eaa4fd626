//! What a server does to a list or map that is written to a bin.
//!
//! Unordered maps are sorted by key at every depth; a key that comes twice, and elements or keys
//! that break the order their marker promises, are refused.

use core::cmp::Ordering;

use super::{MsgpackError, Order, Value};
use crate::aerospike::order::compare;

/// Brings a value into the form a server stores.
///
/// # Errors
/// [`MsgpackError::DuplicateKey`] and [`MsgpackError::NotOrdered`]; the value may be half sorted
/// then.
pub fn normalise(value: &mut Value) -> Result<(), MsgpackError> {
    match value {
        Value::List(list) => {
            list.items.iter_mut().try_for_each(normalise)?;
            let ordered = list
                .order
                .is_some_and(|order| order.contains(Order::ORDERED));
            if ordered
                && !list
                    .items
                    .is_sorted_by(|left, right| compare(left, right).is_le())
            {
                return Err(MsgpackError::NotOrdered);
            }
            Ok(())
        }
        Value::Map(map) => {
            for (key, value) in &mut map.entries {
                normalise(key)?;
                normalise(value)?;
            }
            let ordered = map
                .order
                .is_some_and(|order| order.contains(Order::ORDERED));
            if !ordered {
                map.entries
                    .sort_by(|left, right| compare(&left.0, &right.0));
            }
            check_keys(&map.entries)
        }
        _ => Ok(()),
    }
}

/// Keys must rise strictly.
fn check_keys(entries: &[(Value, Value)]) -> Result<(), MsgpackError> {
    for (left, right) in entries.iter().zip(entries.iter().skip(1)) {
        match compare(&left.0, &right.0) {
            Ordering::Less => {}
            Ordering::Equal => return Err(MsgpackError::DuplicateKey),
            Ordering::Greater => return Err(MsgpackError::NotOrdered),
        }
    }
    Ok(())
}
