//! Freezes: for a while the server executes nothing and answers nothing, though it goes on reading
//! and stamping. This is what a stop-the-world collection, a fork or a failover looks like from
//! outside. A freeze comes once or again and again, and holds the whole server or one connection.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kvlab_timing::Stamp;
use kvlab_timing::duration::{self, Human};

use super::occasions::{Occasions, nanos};
use super::text::{ParseError, Problem, Values, arguments_of};

/// Freezes of equal length. The text form is `every=2s,for=150ms` with an optional `first=1s`, or
/// `at=3s,for=1.5s` for a single one; `connection=3` makes it one of that connection alone.
///
/// ```
/// use kvlab_mock_server::latency::Freeze;
///
/// let freeze: Freeze = "every=2s,for=150ms".parse()?;
/// assert_eq!(freeze.when.first_ns, 2_000_000_000);
/// let once: Freeze = "at=3s,for=1.5s,connection=0".parse()?;
/// assert_eq!((once.when.every_ns, once.connection), (None, Some(0)));
/// # Ok::<(), kvlab_mock_server::latency::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    /// When they begin.
    pub when: Occasions,
    /// How long each lasts, in nanoseconds; above 0, and below the distance of their beginnings.
    pub length_ns: u64,
    /// The only connection it holds, by its number in the order of acceptance on the whole server,
    /// from 0; `None` when it holds all.
    pub connection: Option<u64>,
}

impl Freeze {
    /// Freezes that last `length`; the first begins `first` after the server's start, and then one
    /// every `every`, from beginning to beginning.
    ///
    /// # Errors
    /// When `length` is zero or not below `every`.
    pub fn new(every: Duration, length: Duration, first: Duration) -> Result<Self, Problem> {
        Self::at(
            Occasions {
                first_ns: nanos(first),
                every_ns: Some(nanos(every)),
            },
            length,
        )
    }

    /// One freeze that begins `at` after the server's start and lasts `length`.
    ///
    /// # Errors
    /// When `length` is zero.
    pub fn once(at: Duration, length: Duration) -> Result<Self, Problem> {
        Self::at(Occasions::once(at), length)
    }

    fn at(when: Occasions, length: Duration) -> Result<Self, Problem> {
        if length.is_zero() {
            return Err(Problem::NoTime { parameter: "for" });
        }
        if let Some(every_ns) = when.every_ns.filter(|every| *every <= nanos(length)) {
            return Err(Problem::EndlessFreeze {
                length: duration::format(length),
                every: duration::format(Duration::from_nanos(every_ns)),
            });
        }
        Ok(Self {
            when,
            length_ns: nanos(length),
            connection: None,
        })
    }

    /// The same freeze of one connection alone, by its number in the order of acceptance, from 0.
    #[must_use]
    pub fn of_connection(self, number: u64) -> Self {
        Self {
            connection: Some(number),
            ..self
        }
    }

    /// Whether it holds the connection of this number.
    #[must_use]
    pub fn holds(&self, connection: u64) -> bool {
        self.connection.is_none_or(|only| only == connection)
    }

    /// The share of all time that it takes, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        let share = |every| self.length_ns as f64 / every as f64;
        self.when.every_ns.map_or(0.0, share)
    }

    /// If `since_start` lies in a freeze, its beginning and its end; all in nanoseconds from the
    /// server's start. The first nanosecond of a freeze belongs to it, its end does not.
    #[must_use]
    #[inline]
    pub fn around(&self, since_start: u64) -> Option<(u64, u64)> {
        let begin = self.when.latest(since_start)?;
        let end = begin.saturating_add(self.length_ns);
        (since_start < end).then_some((begin, end))
    }
}

/// The freezes that concern one connection, which may follow and overlap each other.
#[derive(Debug, Clone, Default)]
pub struct Freezes {
    started: Stamp,
    /// With their places in the list of all.
    list: Box<[(usize, Freeze)]>,
}

impl Freezes {
    /// More are refused: each request may look at all of them.
    pub const MAX: usize = 64;

    /// Freezes that together hold a connection for a larger share of the time are refused.
    pub const MOST_OF_TIME: f64 = 0.99;

    /// Those of `all` that hold the connection of this number, on a server that started at `started`.
    #[must_use]
    pub fn of_connection(all: &[Freeze], started: Stamp, connection: u64) -> Self {
        let all = all.iter().copied().enumerate();
        Self {
            started,
            list: all.filter(|(_, freeze)| freeze.holds(connection)).collect(),
        }
    }

    /// `moment`, or the end of the freezes it lies in. The end of one may lie in the next; then it is
    /// the end of that one, and so on.
    #[must_use]
    #[inline]
    pub fn leave(&self, moment: Stamp) -> Stamp {
        if self.list.is_empty() {
            return moment;
        }
        self.search(moment)
    }

    fn search(&self, moment: Stamp) -> Stamp {
        let Some(mut since_start) = moment.as_nanos().checked_sub(self.started.as_nanos()) else {
            return moment;
        };
        // Ends, because freezes together take less than all time; see
        // `share_of_time`.
        while let Some(end) = self.latest_end(since_start) {
            since_start = end;
        }
        self.started.add_nanos(since_start)
    }

    /// Calls `note` for each freeze that moved a moment from `moment` to `end`: with its place in the
    /// list of all freezes and its beginning in nanoseconds from the server's start.
    pub(crate) fn each_around(&self, moment: Stamp, end: Stamp, note: &mut impl FnMut(usize, u64)) {
        let started = self.started.as_nanos();
        let (mut since_start, end) = (
            moment.as_nanos().saturating_sub(started),
            end.as_nanos().saturating_sub(started),
        );
        while since_start < end {
            let around = |(place, freeze): &(usize, Freeze)| {
                let (begin, end) = freeze.around(since_start)?;
                Some((end, *place, begin))
            };
            let Some((next, place, begin)) = self.list.iter().filter_map(around).max() else {
                return;
            };
            note(place, begin);
            since_start = next;
        }
    }

    fn latest_end(&self, since_start: u64) -> Option<u64> {
        let around = self
            .list
            .iter()
            .filter_map(|(_, freeze)| freeze.around(since_start));
        around.map(|(_, end)| end).max()
    }

    /// The largest sum of shares of time, from 0 up, by which `all` hold one connection. While it
    /// is below 1, a moment outside of all of them always comes.
    #[must_use]
    pub fn share_of_time(all: &[Freeze]) -> f64 {
        let named = all.iter().filter_map(|freeze| freeze.connection);
        // A number that no freeze names stands for the connections held by the common ones alone.
        let shares = named.chain([u64::MAX]).map(|connection| {
            let holding = all.iter().filter(|freeze| freeze.holds(connection));
            holding.map(Freeze::share).sum()
        });
        shares.fold(0.0, f64::max)
    }
}

impl FromStr for Freeze {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let arguments = arguments_of(text, 0);
        if let Some(bare) = arguments.iter().find(|argument| argument.name.is_none()) {
            let problem = Problem::Unexpected {
                expected: "every=TIME,for=TIME[,first=TIME] or at=TIME,for=TIME",
                found: format!("'{}'", bare.value),
            };
            return Err(ParseError::new(text, bare.at, problem));
        }
        let parameters = &["every", "at", "for", "first", "connection"];
        let values = Values::sort(text, 0, arguments, parameters)?;
        let when = Occasions::from_values(&values)?;
        let freeze = Self::at(when, values.time("for")?);
        let connection = values.optional_count("connection")?;
        Ok(Self {
            connection,
            ..freeze.map_err(|problem| values.error(problem))?
        })
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
        let Occasions { first_ns, every_ns } = self.when;
        match every_ns {
            Some(every_ns) => {
                write!(f, "every={},for={}", time(every_ns), time(self.length_ns))?;
                if first_ns != every_ns {
                    write!(f, ",first={}", time(first_ns))?;
                }
            }
            None => write!(f, "at={},for={}", time(first_ns), time(self.length_ns))?,
        }
        if let Some(connection) = self.connection {
            write!(f, ",connection={connection}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periodic(every_ns: u64, length_ns: u64, first_ns: u64) -> Freeze {
        Freeze {
            when: Occasions {
                first_ns,
                every_ns: Some(every_ns),
            },
            length_ns,
            connection: None,
        }
    }

    #[test]
    fn the_text_form_is_read_and_printed() {
        let s = 1_000_000_000;
        let once = Freeze {
            when: Occasions {
                first_ns: 3 * s,
                every_ns: None,
            },
            length_ns: 1_500_000_000,
            connection: None,
        };
        for (text, expected, printed) in [
            (
                "every=2s,for=150ms",
                periodic(2 * s, 150_000_000, 2 * s),
                "every=2s,for=150ms",
            ),
            (
                "for=1us, every=1ms ,first=0",
                periodic(1_000_000, 1_000, 0),
                "every=1ms,for=1us,first=0",
            ),
            (
                "every=1s,for=1ms,first=1s",
                periodic(s, 1_000_000, s),
                "every=1s,for=1ms",
            ),
            ("at=3s,for=1.5s", once, "at=3s,for=1.5s"),
            (
                "connection=7,at=3s,for=1.5s",
                once.of_connection(7),
                "at=3s,for=1.5s,connection=7",
            ),
            (
                "every=2s,for=150ms,connection=0",
                periodic(2 * s, 150_000_000, 2 * s).of_connection(0),
                "every=2s,for=150ms,connection=0",
            ),
        ] {
            let freeze: Freeze = text.parse().unwrap();
            assert_eq!(freeze, expected, "{text}");
            assert_eq!(freeze.to_string(), printed);
            assert_eq!(printed.parse(), Ok(freeze));
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_place() {
        for (text, message) in [
            (
                "",
                "expected every=TIME,for=TIME[,first=TIME] or at=TIME,for=TIME, found '', at \
                 character 1 of ''",
            ),
            ("every=2s", "'for' is missing, at character 1 of 'every=2s'"),
            (
                "for=2s",
                "'every or at' is missing, at character 1 of 'for=2s'",
            ),
            (
                "every=2s,len=1ms",
                "unknown parameter 'len', expected every, at, for, first, connection, at character \
                 10 of 'every=2s,len=1ms'",
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
                "'for' is 0; expected a time above 0, at character 1 of 'every=1s,for=0'",
            ),
            (
                "at=1s,every=2s,for=1ms",
                "'at' is for something that happens once; expected it without 'every' and 'first', \
                 at character 1 of 'at=1s,every=2s,for=1ms'",
            ),
            (
                "at=1s,for=1s,connection=-1",
                "'-1' is not a whole number, at character 25 of 'at=1s,for=1s,connection=-1'",
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

    /// Where moments go that lie so long after the start of a server.
    fn moved(freezes: &[Freeze], connection: u64, since_start: u64) -> u64 {
        let started = Stamp::from_nanos(50);
        let freezes = Freezes::of_connection(freezes, started, connection);
        let moment = freezes.leave(started.add_nanos(since_start));
        moment.as_nanos() - started.as_nanos()
    }

    #[test]
    fn moments_in_a_freeze_move_to_its_end() {
        let freeze = [periodic(2000, 150, 1000)];
        for (moment, end) in [
            (0, 0),
            (999, 999),
            (1000, 1150),
            (1149, 1150),
            (1150, 1150),
            (3100, 3150),
        ] {
            assert_eq!(moved(&freeze, 0, moment), end);
        }
        let freezes = Freezes::of_connection(&freeze, Stamp::from_nanos(50), 0);
        let before = Stamp::from_nanos(10);
        assert_eq!(freezes.leave(before), before);
    }

    #[test]
    fn the_end_of_one_freeze_may_lie_in_the_next() {
        let once = |first_ns, length_ns| Freeze {
            when: Occasions {
                first_ns,
                every_ns: None,
            },
            length_ns,
            connection: None,
        };
        // 1000 to 1150 and so on, 1140 to 1300, 1300 to 1310, 500 to 600.
        let freezes = [
            once(1300, 10),
            periodic(2000, 150, 1000),
            once(500, 100),
            once(1140, 160),
        ];
        for (moment, end) in [
            (499, 499),
            (500, 600),
            (600, 600),
            (1000, 1310),
            (1145, 1310),
            (1200, 1310),
            (1310, 1310),
            (3000, 3150),
        ] {
            assert_eq!(moved(&freezes, 0, moment), end, "{moment}");
        }
    }

    #[test]
    fn a_freeze_of_one_connection_leaves_the_others_alone() {
        let freezes = [
            periodic(2000, 150, 1000).of_connection(3),
            periodic(2000, 50, 1000),
        ];
        assert_eq!(moved(&freezes, 3, 1010), 1150);
        assert_eq!(moved(&freezes, 2, 1010), 1050);
        assert_eq!(moved(&freezes, 2, 1100), 1100);
    }

    #[test]
    fn shares_of_time_add_up_by_connection() {
        let parts = [periodic(1000, 500, 0), periodic(1000, 250, 0)];
        assert_eq!(Freezes::share_of_time(&parts), 0.75);
        let apart = [parts[0].of_connection(1), parts[1].of_connection(2)];
        assert_eq!(Freezes::share_of_time(&apart), 0.5);
        let together = [parts[0].of_connection(1), parts[1]];
        assert_eq!(Freezes::share_of_time(&together), 0.75);
        assert_eq!(Freezes::share_of_time(&[]), 0.0);
    }
}
