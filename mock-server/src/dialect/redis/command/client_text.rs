//! One connection as CLIENT LIST and CLIENT INFO write it: `name=value` pairs on one line.

use crate::clients::ClientInfo;
use crate::config::RedisVersion;
use crate::dialect::redis::call::Call;
use crate::dialect::redis::table;

/// The line of `client`, without a line end.
///
/// Buffers are not accounted for: their sizes are those of an idle client of a real server.
pub(super) fn line(call: &Call<'_, '_>, client: &ClientInfo) -> Vec<u8> {
    let now = call.context.now;
    let seconds = |since| now.saturating_since(since) / 1_000_000_000;
    let own = client.id == call.context.client.id;
    let details = client.details().clone();
    let command = table::command_names()
        .get(usize::from(client.last_command()))
        .filter(|_| client.last_command() > 0)
        .unwrap_or(&"NULL");
    let mut flags = String::new();
    for (set, letter) in [
        (details.multi.is_some(), 'x'),
        (details.no_evict, 'e'),
        (details.no_touch, 'T'),
    ] {
        if set {
            flags.push(letter);
        }
    }
    if flags.is_empty() {
        flags.push('N');
    }
    let query_buffer = if own { call.args_len() } else { 0 };
    let mut line = format!(
        "id={} addr={} laddr={} fd={} name=",
        client.id.0,
        client.peer,
        client.local,
        FIRST_DESCRIPTOR + client.id.0,
    )
    .into_bytes();
    line.extend_from_slice(&details.name);
    line.extend_from_slice(
        format!(
            " age={} idle={} flags={flags} db={} sub=0 psub=0 ssub=0 multi={}",
            seconds(client.connected),
            if own {
                0
            } else {
                seconds(client.last_active())
            },
            details.db,
            details
                .multi
                .map_or_else(|| "-1".to_owned(), |queued| queued.to_string()),
        )
        .as_bytes(),
    );
    if call.state().version >= FIRST_WITH_WATCH {
        line.extend_from_slice(format!(" watch={}", details.watching).as_bytes());
    }
    line.extend_from_slice(
        format!(
            " qbuf={query_buffer} qbuf-free={} argv-mem={} multi-mem=0 rbs=1024 rbp=0 obl=0 oll=0 \
             omem=0 tot-mem=22298 events=r cmd={command} user=",
            if own {
                QUERY_BUFFER.saturating_sub(query_buffer)
            } else {
                0
            },
            if own { query_buffer } else { 0 },
        )
        .as_bytes(),
    );
    line.extend_from_slice(&details.user);
    line.extend_from_slice(format!(" redir=-1 resp={}", details.resp).as_bytes());
    if call.state().version >= FIRST_WITH_LIBRARY {
        line.extend_from_slice(b" lib-name=");
        line.extend_from_slice(&details.lib_name);
        line.extend_from_slice(b" lib-ver=");
        line.extend_from_slice(&details.lib_ver);
    }
    line
}

/// Descriptors below this are the server's own.
const FIRST_DESCRIPTOR: u64 = 7;
/// The buffer a server reads requests into.
const QUERY_BUFFER: usize = 20_474;
const FIRST_WITH_LIBRARY: RedisVersion = RedisVersion {
    major: 7,
    minor: 2,
    patch: 0,
};
const FIRST_WITH_WATCH: RedisVersion = RedisVersion {
    major: 7,
    minor: 4,
    patch: 0,
};
