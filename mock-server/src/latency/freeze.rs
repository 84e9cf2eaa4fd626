//! A periodic freeze: for a while in each period the server executes nothing and answers nothing,
//! though it goes on reading and stamping. This is what a stop-the-world collection, a fork or a
//! failover looks like from outside.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kvlab_timing::Stamp;
use kvlab_timing::duration::{self, Human};

use super::text::{ParseError, Problem, Values, arguments_of};

/// Freezes of equal length at equal distances. The text form is `every=2s,for=150ms` with an optional
/// `first=1s`; without it the first freeze begins when `every` has passed.
///
/// ```
/// use kvlab_mock_server::latency::Freeze;
///
/// let freeze: Freeze = "every=2s,for=150ms".parse()?;
/// assert_eq!(freeze.first_ns, 2_000_000_000);
/// # Ok::<(), kvlab_mock_server::latency::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    /// From the beginning of one freeze to the beginning of the next, in nanoseconds.
    pub every_ns: u64,
    /// How long each lasts, in nanoseconds; above 0 and below `every_ns`.
    pub length_ns: u64,
    /// From the server's start to the beginning of the first, in nanoseconds.
    pub first_ns: u64,
}

impl Freeze {
    /// Freezes that last `length`; the first begins `first` after the server's start, and then one
    /// every `every`, from beginning to beginning.
    ///
    /// # Errors
    /// When `length` is zero or not below `every`.
    pub fn new(every: Duration, length: Duration, first: Duration) -> Result<Self, Problem> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if length.is_zero() || nanos(length) >= nanos(every) {
            return Err(Problem::EndlessFreeze {
                length: duration::format(length),
                every: duration::format(every),
            });
        }
        Ok(Self {
            every_ns: nanos(every),
            length_ns: nanos(length),
            first_ns: nanos(first),
        })
    }

    /// If `now` lies in a freeze, the moment at which it ends.
    #[must_use]
    pub fn end(&self, started: Stamp, now: Stamp) -> Option<Stamp> {
        let since_first = now
            .as_nanos()
            .checked_sub(started.as_nanos())?
            .checked_sub(self.first_ns)?;
        let into = since_first % self.every_ns;
        (into < self.length_ns).then(|| now.add_nanos(self.length_ns - into))
    }

    /// `moment`, or the end of the freeze it lies in.
    #[must_use]
    pub fn after(&self, started: Stamp, moment: Stamp) -> Stamp {
        self.end(started, moment).unwrap_or(moment)
    }
}

impl FromStr for Freeze {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let arguments = arguments_of(text, 0);
        if let Some(bare) = arguments.iter().find(|argument| argument.name.is_none()) {
            let problem = Problem::Unexpected {
                expected: "every=TIME,for=TIME[,first=TIME]",
                found: format!("'{}'", bare.value),
            };
            return Err(ParseError::new(text, bare.at, problem));
        }
        let values = Values::sort(text, 0, arguments, &["every", "for", "first"])?;
        let (every, length) = (values.time("every")?, values.time("for")?);
        let first = values.optional_time("first")?.unwrap_or(every);
        Self::new(every, length, first).map_err(|problem| values.error(problem))
    }
}

impl TryFrom<&str> for Freeze {
    type Error = ParseError;

    fn try_from(text: &str) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl fmt::Display for Freeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |nanos| Human(Duration::from_nanos(nanos));
        write!(
            f,
            "every={},for={}",
            time(self.every_ns),
            time(self.length_ns)
        )?;
        if self.first_ns != self.every_ns {
            write!(f, ",first={}", time(self.first_ns))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_is_read_and_printed() {
        for (text, every_ns, length_ns, first_ns, printed) in [
            (
                "every=2s,for=150ms",
                2_000_000_000,
                150_000_000,
                2_000_000_000,
                "every=2s,for=150ms",
            ),
            (
                "for=1us, every=1ms ,first=0",
                1_000_000,
                1_000,
                0,
                "every=1ms,for=1us,first=0",
            ),
            (
                "every=1s,for=1ms,first=1s",
                1_000_000_000,
                1_000_000,
                1_000_000_000,
                "every=1s,for=1ms",
            ),
        ] {
            let freeze: Freeze = text.parse().unwrap();
            assert_eq!(
                freeze,
                Freeze {
                    every_ns,
                    length_ns,
                    first_ns
                },
                "{text}"
            );
            assert_eq!(freeze.to_string(), printed);
            assert_eq!(printed.parse(), Ok(freeze));
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_place() {
        for (text, message) in [
            (
                "",
                "expected every=TIME,for=TIME[,first=TIME], found '', at character 1 of ''",
            ),
            ("every=2s", "'for' is missing, at character 1 of 'every=2s'"),
            (
                "every=2s,len=1ms",
                "unknown parameter 'len', expected every, for, first, at character 10 of \
                 'every=2s,len=1ms'",
            ),
            (
                "every=2s,for=1ms,every=3s",
                "'every' is given twice, at character 18 of 'every=2s,for=1ms,every=3s'",
            ),
            (
                "every=1s,for=1s",
                "a freeze of 1s every 1s; expected 'for' to be above 0 and below 'every', at \
                 character 1 of 'every=1s,for=1s'",
            ),
            (
                "every=1s,for=0",
                "a freeze of 0 every 1s; expected 'for' to be above 0 and below 'every', at \
                 character 1 of 'every=1s,for=0'",
            ),
            (
                "every=1s,for=5",
                "'5' lacks a unit: expected ns, us, ms, s, m or h, as in 5ms, at character 14 of \
                 'every=1s,for=5'",
            ),
        ] {
            let error = text.parse::<Freeze>().unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn moments_in_a_freeze_move_to_its_end() {
        let freeze = Freeze {
            every_ns: 2000,
            length_ns: 150,
            first_ns: 1000,
        };
        let started = Stamp::from_nanos(50);
        let at = |ns: u64| freeze.after(started, Stamp::from_nanos(50 + ns)).as_nanos() - 50;
        assert_eq!(at(0), 0);
        assert_eq!(at(999), 999);
        assert_eq!(at(1000), 1150);
        assert_eq!(at(1149), 1150);
        assert_eq!(at(1150), 1150);
        assert_eq!(at(3100), 3150);
        assert_eq!(freeze.after(started, Stamp::from_nanos(10)).as_nanos(), 10);
    }
}
