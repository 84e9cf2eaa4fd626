//! The commands, one file per family.

use bytes::Bytes;

use super::Call;
use super::entry::{Entry, Value};
use crate::dialect::Flow;

pub(super) fn ping(call: &mut Call<'_, '_>) -> Flow {
    call.reply.simple("PONG");
    Flow::Done
}

pub(super) fn get(call: &mut Call<'_, '_>) -> Flow {
    if let Some(database) = call
        .context
        .shared
        .redis
        .databases
        .get(call.choices.database)
    {
        database.read(call.args.arg(1), |entry| match entry {
            Some(Entry {
                value: Value::String(text),
                ..
            }) => call.reply.bulk(text),
            None => call.reply.null(),
        });
    }
    Flow::Done
}

pub(super) fn set(call: &mut Call<'_, '_>) -> Flow {
    if let Some(database) = call
        .context
        .shared
        .redis
        .databases
        .get(call.choices.database)
    {
        let value = Value::String(Bytes::copy_from_slice(call.args.arg(2)));
        database.update(call.args.arg(1), |entry| {
            *entry = Some(Entry {
                value,
                expires_at: None,
            })
        });
    }
    call.reply.simple("OK");
    Flow::Done
}
