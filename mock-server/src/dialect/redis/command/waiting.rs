//! Commands that wait: their time-outs, and how long they have waited.

use std::time::Duration;

use kvlab_protocol::resp::number::parse_i64;

use crate::dialect::Flow;
use crate::dialect::redis::call::Call;
use crate::dialect::redis::fault::Fault;

/// Argument `position` as a time-out in milliseconds; `None` is forever.
///
/// # Errors
/// When it is no integer, or negative.
pub(super) fn timeout(call: &Call<'_, '_>, position: usize) -> Result<Option<Duration>, Fault> {
    let millis = parse_i64(call.args.arg(position))
        .ok_or(Fault::new("ERR timeout is not an integer or out of range"))?;
    let Ok(millis) = u64::try_from(millis) else {
        return Err(Fault::new("ERR timeout is negative"));
    };
    Ok((millis > 0).then(|| Duration::from_millis(millis)))
}

/// If the command of `call` has to wait on, how; `None` when it is satisfied, timed out, or may not
/// wait.
pub(super) fn wait_until(
    call: &mut Call<'_, '_>,
    satisfied: bool,
    timeout: Option<Duration>,
) -> Option<Flow> {
    if satisfied || !call.may_park {
        return None;
    }
    let now = call.context.now;
    let since = *call.peer.waiting_since.get_or_insert(now);
    let until = timeout
        .map(|timeout| since.add_nanos(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)));
    if until.is_some_and(|until| until <= now) {
        return None;
    }
    Some(Flow::Park { until })
}
