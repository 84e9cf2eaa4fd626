//! A moment of the calendar as people type it, for a start that several machines share.
//!
//! ```text
//! 2026-03-01T12:00:00Z        RFC 3339, with its offset from UTC
//! 12:00:00                    the nearest such time of day, in UTC
//! 1772366400                  seconds since 1970, with a fraction if need be
//! +5s                         from now
//! ```
//!
//! A time of day is UTC and not local, because machines of one run may lie in several time zones.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use kvlab_timing::duration;

/// A moment, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since 1970.
    Unix(u64),
    /// Nanoseconds since midnight, UTC.
    TimeOfDay(u64),
    /// From now.
    In(Duration),
}

impl Moment {
    /// Nanoseconds since 1970, when it is `now_unix_ns`.
    #[must_use]
    pub fn unix_ns(self, now_unix_ns: u64) -> u64 {
        match self {
            Self::Unix(unix_ns) => unix_ns,
            Self::In(wait) => {
                let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
                now_unix_ns.saturating_add(wait)
            }
            Self::TimeOfDay(time) => {
                let today = now_unix_ns - now_unix_ns % DAY_NS + time;
                // Within half a day of now, before or after.
                if today > now_unix_ns.saturating_add(DAY_NS / 2) {
                    today - DAY_NS
                } else if today.saturating_add(DAY_NS / 2) < now_unix_ns {
                    today + DAY_NS
                } else {
                    today
                }
            }
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let moment = if let Some(wait) = text.strip_prefix('+') {
            duration::parse(wait).ok().map(Self::In)
        } else if text.contains('T') || text.contains(' ') {
            let stamp = text.parse::<Timestamp>().ok();
            stamp
                .and_then(|stamp| u64::try_from(stamp.as_nanosecond()).ok())
                .map(Self::Unix)
        } else if text.contains(':') {
            time_of_day(text).map(Self::TimeOfDay)
        } else {
            fraction(text).map(Self::Unix)
        };
        moment.ok_or_else(|| {
            format!(
                "expected 2026-03-01T12:00:00Z, 12:00:00 (UTC), seconds since 1970, or +5s, found \
                 {text:?}"
            )
        })
    }
}

/// A moment as RFC 3339 in UTC.
pub(super) fn text(unix_ns: u64) -> String {
    match Timestamp::from_nanosecond(unix_ns.into()) {
        Ok(moment) => moment.to_string(),
        Err(_) => format!("{unix_ns} ns after 1970"),
    }
}

/// `HH:MM:SS`, with a fraction of a second if need be.
fn time_of_day(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let mut two_digits = |most: u64| {
        let part = parts.next()?;
        let legal = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        let number = part.parse::<u64>().ok().filter(|number| *number <= most)?;
        legal.then_some(number)
    };
    let (hours, minutes) = (two_digits(23)?, two_digits(59)?);
    let seconds = parts.next()?;
    let whole = seconds.split('.').next().unwrap_or_default();
    let seconds_ns = fraction(seconds).filter(|ns| whole.len() == 2 && *ns < 60 * SECOND_NS)?;
    let rest = parts.next();
    rest.is_none()
        .then_some((hours * 60 + minutes) * 60 * SECOND_NS + seconds_ns)
}

/// Seconds with up to nine decimals, as nanoseconds.
fn fraction(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(decimals) || decimals.len() > 9 {
        return None;
    }
    let nanos: u64 = format!("{decimals:0<9}").parse().ok()?;
    seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(SECOND_NS)?
        .checked_add(nanos)
}

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

#[cfg(test)]
mod tests {
    use super::*;

    // 2024-02-29 12:00:00 UTC.
    const NOON: u64 = 1_709_208_000 * SECOND_NS;

    fn unix(text: &str, now: u64) -> u64 {
        text.parse::<Moment>().unwrap().unix_ns(now)
    }

    #[test]
    fn all_four_forms_name_the_same_moment() {
        for text in [
            "2024-02-29T12:00:05.25Z",
            "2024-02-29T13:00:05.25+01:00",
            "12:00:05.25",
            "1709208005.25",
            "+5250ms",
        ] {
            assert_eq!(unix(text, NOON), NOON + 5_250_000_000, "{text}");
        }
    }

    #[test]
    fn a_time_of_day_is_the_nearest_one() {
        let midnight = NOON + 12 * 3600 * SECOND_NS;
        assert_eq!(
            unix("00:00:10", midnight - SECOND_NS),
            midnight + 10 * SECOND_NS
        );
        assert_eq!(
            unix("23:59:50", midnight + SECOND_NS),
            midnight - 10 * SECOND_NS
        );
        assert_eq!(unix("11:59:59", NOON), NOON - SECOND_NS);
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "+",
            "+5",
            "-5s",
            "noon",
            "24:00:00",
            "12:60:00",
            "12:00:60",
            "1:2:3",
            "12:00",
            "12:00:00:00",
            "2024-02-30T12:00:00Z",
            "2024-02-29T12:00:00",
            "1.1234567890",
            "1e9",
            "1969-12-31T23:59:59Z",
            "12:00:5",
            "12:00:005",
        ] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }
}
