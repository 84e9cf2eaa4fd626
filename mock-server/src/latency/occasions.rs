//! When something happens to a server: once, or again and again at equal distances. Freezes, cuts and
//! spikes share this and its text form.

use std::time::Duration;

use super::text::{ParseError, Problem, Values};

/// Moments counted from the server's start. The text form is `at=3s`, or `every=2s` with an optional
/// `first=1s`; without it the first comes when `every` has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Occasions {
    /// From the server's start to the first, in nanoseconds.
    pub first_ns: u64,
    /// From one to the next, in nanoseconds and above 0; `None` for one alone.
    pub every_ns: Option<u64>,
}

impl Occasions {
    /// One alone, `at` after the server's start.
    #[must_use]
    pub fn once(at: Duration) -> Self {
        Self {
            first_ns: nanos(at),
            every_ns: None,
        }
    }

    /// The latest at or before `since_start` nanoseconds after the server's start.
    #[must_use]
    #[inline]
    pub fn latest(&self, since_start: u64) -> Option<u64> {
        let since_first = since_start.checked_sub(self.first_ns)?;
        Some(match self.every_ns {
            Some(every) if every > 0 => since_start - since_first % every,
            _ => self.first_ns,
        })
    }

    /// The earliest after `since_start` nanoseconds from the server's start.
    #[must_use]
    pub fn next(&self, since_start: u64) -> Option<u64> {
        match (self.latest(since_start), self.every_ns) {
            (None, _) => Some(self.first_ns),
            (Some(latest), Some(every)) if every > 0 => latest.checked_add(every),
            (Some(_), _) => None,
        }
    }

    /// Reads `at`, or `every` and `first`, from the values of a text.
    pub(super) fn from_values(values: &Values<'_>) -> Result<Self, ParseError> {
        let (at, every) = (values.optional_time("at")?, values.optional_time("every")?);
        let first = values.optional_time("first")?;
        match (at, every, first) {
            (Some(at), None, None) => Ok(Self::once(at)),
            (None, Some(every), _) if every.is_zero() => {
                Err(values.error(Problem::NoTime { parameter: "every" }))
            }
            (None, Some(every), first) => Ok(Self {
                first_ns: nanos(first.unwrap_or(every)),
                every_ns: Some(nanos(every)),
            }),
            (None, None, _) => Err(values.error(Problem::Missing {
                name: "every or at",
            })),
            (Some(_), _, _) => Err(values.error(Problem::AtAndEvery)),
        }
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_and_the_next_enclose_a_moment() {
        let again = Occasions {
            first_ns: 30,
            every_ns: Some(100),
        };
        for (moment, latest, next) in [
            (0, None, 30),
            (29, None, 30),
            (30, Some(30), 130),
            (129, Some(30), 130),
            (130, Some(130), 230),
        ] {
            assert_eq!(again.latest(moment), latest, "{moment}");
            assert_eq!(again.next(moment), Some(next), "{moment}");
        }
        let once = Occasions::once(Duration::from_nanos(30));
        assert_eq!((once.latest(29), once.next(29)), (None, Some(30)));
        assert_eq!((once.latest(999), once.next(30)), (Some(30), None));
    }
}
