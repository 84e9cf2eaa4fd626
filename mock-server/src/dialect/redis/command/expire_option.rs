//! Times to live as options of SET and GETEX, and as arguments of SETEX and PSETEX.

use crate::dialect::redis::call::Call;
use crate::dialect::redis::fault::Fault;

/// How a time to live is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// EX: seconds from now.
    Seconds,
    /// PX: milliseconds from now.
    Millis,
    /// EXAT: a second of the calendar.
    AtSeconds,
    /// PXAT: a millisecond of the calendar.
    AtMillis,
}

impl Unit {
    /// The unit an option names.
    pub(super) fn from_option(option: &[u8]) -> Option<Self> {
        [
            ("EX", Self::Seconds),
            ("PX", Self::Millis),
            ("EXAT", Self::AtSeconds),
            ("PXAT", Self::AtMillis),
        ]
        .into_iter()
        .find(|(name, _)| option.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, unit)| unit)
    }

    /// Whether it counts from now.
    pub(super) fn is_relative(self) -> bool {
        matches!(self, Self::Seconds | Self::Millis)
    }

    /// Argument `position` in this unit, as the millisecond of the calendar it means.
    ///
    /// # Errors
    /// When it is no integer, not positive, or beyond the end of the calendar.
    pub(super) fn expiry(self, call: &Call<'_, '_>, position: usize) -> Result<u64, Fault> {
        let given = call.integer(position)?;
        let invalid = || Fault::invalid_expire(call.command.name);
        if given <= 0 {
            return Err(invalid());
        }
        let millis = if matches!(self, Self::Seconds | Self::AtSeconds) {
            given.checked_mul(1000).ok_or_else(invalid)?
        } else {
            given
        };
        let base = if self.is_relative() {
            i64::try_from(call.context.unix_millis()).unwrap_or(i64::MAX)
        } else {
            0
        };
        let at = millis.checked_add(base).ok_or_else(invalid)?;
        u64::try_from(at).map_err(|_| invalid())
    }
}
