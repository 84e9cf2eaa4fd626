//! Parts and lengths of strings.

use crate::dialect::Flow;
use crate::dialect::redis::call::{Call, Outcome};
use crate::dialect::redis::entry::{Entry, Value};
use crate::dialect::redis::fault::Fault;
use crate::dialect::redis::text::Text;

pub(super) fn append(call: &mut Call<'_, '_>) -> Outcome {
    let (view, key, value) = (call.view(), call.args.arg(1), call.args.arg(2));
    let longest = call.state().settings.live().max_bulk();
    let len = view.try_update(key, |place| {
        let Some(entry) = place else {
            *place = Some(Entry::string(value));
            return Ok(value.len());
        };
        let text = entry.value.text_mut()?;
        let len = text.len() + value.len();
        if len as u64 > longest {
            return Err(Fault::STRING_TOO_LONG);
        }
        text.buffer().extend_from_slice(value);
        Ok(len)
    })?;
    view.touch(key);
    call.count(len)
}

pub(super) fn strlen(call: &mut Call<'_, '_>) -> Outcome {
    let key = call.args.arg(1);
    let len = call.view().try_read(key, |entry| match entry {
        Some(entry) => Ok(entry.value.text()?.len()),
        None => Ok(0),
    })?;
    call.count(len)
}

pub(super) fn setrange(call: &mut Call<'_, '_>) -> Outcome {
    let offset = call.integer(2)?;
    let Ok(offset) = u64::try_from(offset) else {
        return Err(Fault::new("ERR offset is out of range"));
    };
    let (view, key, value) = (call.view(), call.args.arg(1), call.args.arg(3));
    let longest = call.state().settings.live().max_bulk();
    let (len, changed) = view.try_update(key, |place| {
        if value.is_empty() {
            let len = match place {
                Some(entry) => entry.value.text()?.len(),
                None => 0,
            };
            return Ok((len, false));
        }
        if let Some(entry) = &place {
            entry.value.text()?;
        }
        let end = offset.saturating_add(value.len() as u64);
        if end > longest {
            return Err(Fault::STRING_TOO_LONG);
        }
        // The limit of a string is far below what a length can count.
        let end = usize::try_from(end).map_err(|_| Fault::STRING_TOO_LONG)?;
        let entry =
            place.get_or_insert_with(|| Entry::new(Value::String(Text::Buffer(Vec::new()))));
        let bytes = entry.value.text_mut()?.buffer();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        if let Some(part) = bytes.get_mut(end - value.len()..end) {
            part.copy_from_slice(value);
        }
        Ok((bytes.len(), true))
    })?;
    if changed {
        view.touch(key);
    }
    call.count(len)
}

pub(super) fn getrange(call: &mut Call<'_, '_>) -> Outcome {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let key = call.args.arg(1);
    call.view().read(key, |entry| {
        match entry {
            Some(entry) => entry
                .value
                .text()?
                .with(|bytes| call.reply.bulk(part(bytes, start, end))),
            None => call.reply.bulk(b""),
        }
        Ok(Flow::Done)
    })
}

/// The bytes from `start` to `end`, both counted from the end when negative.
fn part(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let len = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let from_start = |index: i64| {
        let index = if index < 0 {
            len.saturating_add(index)
        } else {
            index
        };
        usize::try_from(index.max(0)).unwrap_or(usize::MAX)
    };
    let (start, end) = (from_start(start), from_start(end));
    let end = end.saturating_add(1).min(bytes.len());
    bytes.get(start..end).unwrap_or_default()
}
