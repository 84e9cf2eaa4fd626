//! SCAN, on the walking order of the keyspace: whatever key is there from the start of a walk to its
//! end is met exactly once.

use crate::dialect::Flow;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::glob;

pub(super) fn scan(call: &mut Call<'_, '_>) -> Outcome {
    let cursor = parse_cursor(call.args.arg(1)).ok_or(Fault::new("ERR invalid cursor"))?;
    let mut count = DEFAULT_COUNT;
    let (mut pattern, mut type_name) = (None, None);
    let mut position = 2;
    while position < call.args.len() {
        let value = call.args.get(position + 1).ok_or(Fault::SYNTAX)?;
        if call.is_word(position, "COUNT") {
            count = usize::try_from(call.integer(position + 1)?)
                .ok()
                .filter(|count| *count > 0)
                .ok_or(Fault::SYNTAX)?;
        } else if call.is_word(position, "MATCH") {
            pattern = Some(value);
        } else if call.is_word(position, "TYPE") {
            type_name = Some(value);
        } else {
            return Err(Fault::SYNTAX);
        }
        position += 2;
    }
    let view = call.view();
    let mut found = Vec::new();
    let next = view.database().keys.scan(cursor, count, |key| {
        if pattern.is_none_or(|pattern| glob::matches(pattern, key)) {
            found.push(key.to_vec());
        }
    });
    found.retain(|key| {
        if let Some(wanted) = type_name
            && !view.database().keys.read(key, |entry| {
                entry.is_some_and(|entry| {
                    entry
                        .value
                        .type_name()
                        .as_bytes()
                        .eq_ignore_ascii_case(wanted)
                })
            })
        {
            return false;
        }
        !view.purge(key) && view.exists(key)
    });
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(found.len());
    for key in found {
        call.reply.bulk(&key);
    }
    Ok(Flow::Done)
}

/// A cursor as C's `strtoul` reads it, without leading blanks: nothing at all is 0, a sign is taken.
fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.is_empty() {
        return Some(0);
    }
    if let Some(digits) = text.strip_prefix('-') {
        return parse_digits(digits).map(u64::wrapping_neg);
    }
    parse_digits(text.strip_prefix('+').unwrap_or(text))
}

fn parse_digits(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

const DEFAULT_COUNT: usize = 10;
