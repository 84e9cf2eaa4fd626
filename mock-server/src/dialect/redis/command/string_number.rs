//! Numbers in strings: INCR and its relatives.

use crate::dialect::Flow;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::entry::{Entry, Value};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::text::Text;
use kvlab_protocol::resp::number::LongDouble;

pub(super) fn incr(call: &mut Call<'_, '_>) -> Outcome {
    add(call, 1)
}

pub(super) fn decr(call: &mut Call<'_, '_>) -> Outcome {
    add(call, -1)
}

pub(super) fn incrby(call: &mut Call<'_, '_>) -> Outcome {
    add(call, call.integer(2)?)
}

pub(super) fn decrby(call: &mut Call<'_, '_>) -> Outcome {
    let decrement = call.integer(2)?;
    match decrement.checked_neg() {
        Some(increment) => add(call, increment),
        None => Err(Fault::new("ERR decrement would overflow")),
    }
}

fn add(call: &mut Call<'_, '_>, increment: i64) -> Outcome {
    let (view, key) = (call.view(), call.args.arg(1));
    let sum = view.try_update(key, |place| {
        let old = match place {
            Some(entry) => entry.value.text()?.number().ok_or(Fault::NOT_AN_INTEGER)?,
            None => 0,
        };
        let sum = old
            .checked_add(increment)
            .ok_or(Fault::new("ERR increment or decrement would overflow"))?;
        replace(place, Text::Number(sum));
        Ok(sum)
    })?;
    view.touch(key);
    call.number(sum)
}

pub(super) fn incrbyfloat(call: &mut Call<'_, '_>) -> Outcome {
    let (view, key) = (call.view(), call.args.arg(1));
    let sum = view.try_update(key, |place| {
        let old = match place {
            Some(entry) => entry.value.text()?.with(LongDouble::parse),
            None => LongDouble::parse(b"0"),
        };
        let old = old.ok_or(Fault::NOT_A_FLOAT)?;
        let sum = old
            .checked_add(call.long_double(2)?)
            .filter(LongDouble::is_finite)
            .ok_or(Fault::new("ERR increment would produce NaN or Infinity"))?;
        let sum = sum.human_text();
        replace(place, Text::plain(sum.as_bytes()));
        Ok(sum)
    })?;
    view.touch(key);
    // A bulk string in both protocols, though it is a number.
    call.reply.bulk(sum.as_bytes());
    Ok(Flow::Done)
}

/// Puts `text` in place of the old string, whose expiry stays.
fn replace(place: &mut Option<Entry>, text: Text) {
    match place {
        Some(entry) => entry.value = Value::String(text),
        None => *place = Some(Entry::new(Value::String(text))),
    }
}
