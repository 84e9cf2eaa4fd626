//! Cuts: moments at which the server ends connections, as a crash, a failover or an impatient
//! middlebox does. Requests under way then have no answer.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kvlab_timing::Stamp;
use kvlab_timing::duration::Human;

use super::occasions::Occasions;
use super::text::{ParseError, Problem, Values, arguments_of};

/// Ends of connections. The text form is `every=2s` with an optional `first=1s`, or `at=1s` for a
/// single one; `connection=3` cuts that connection alone, `how=reset` sends a reset in place of an
/// orderly end.
///
/// ```
/// use kvlab_mock_server::latency::{Cut, CutKind};
///
/// let cut: Cut = "at=1s,connection=0,how=reset".parse()?;
/// assert_eq!((cut.connection, cut.how), (Some(0), CutKind::Reset));
/// # Ok::<(), kvlab_mock_server::latency::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// When it happens.
    pub when: Occasions,
    /// The only connection it ends, by its number in the order of acceptance on the whole server,
    /// from 0; `None` when it ends all.
    pub connection: Option<u64>,
    /// What the client sees.
    pub how: CutKind,
}

/// What the client of a connection that is cut sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CutKind {
    /// The end of what the server sends (FIN).
    #[default]
    Close,
    /// A reset (RST), which may destroy replies on their way.
    Reset,
}

impl Cut {
    /// More are refused.
    pub const MAX: usize = 64;

    /// Cuts of all connections at these moments, in an orderly way.
    #[must_use]
    pub fn new(when: Occasions) -> Self {
        Self {
            when,
            connection: None,
            how: CutKind::Close,
        }
    }

    /// The first of `all` that ends a connection of this number, accepted at `accepted` on a server
    /// that started at `started`: the earliest moment after its acceptance.
    #[must_use]
    pub fn first_of(
        all: &[Self],
        started: Stamp,
        connection: u64,
        accepted: Stamp,
    ) -> Option<(Stamp, CutKind)> {
        let ending = all
            .iter()
            .filter(|cut| cut.connection.is_none_or(|only| only == connection));
        let moments = ending.filter_map(|cut| {
            // No moment of the server lies before its start.
            let since_start = accepted.saturating_since(started);
            let next = cut.when.next(since_start)?;
            Some((started.as_nanos().checked_add(next)?, cut.how))
        });
        let first = moments.min_by_key(|(moment, _)| *moment);
        first.map(|(moment, how)| (Stamp::from_nanos(moment), how))
    }
}

impl FromStr for Cut {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let arguments = arguments_of(text, 0);
        if let Some(bare) = arguments.iter().find(|argument| argument.name.is_none()) {
            let problem = Problem::Unexpected {
                expected: "every=TIME[,first=TIME] or at=TIME",
                found: format!("'{}'", bare.value),
            };
            return Err(ParseError::new(text, bare.at, problem));
        }
        let parameters = &["every", "at", "first", "connection", "how"];
        let values = Values::sort(text, 0, arguments, parameters)?;
        let how = match values.find("how") {
            None | Some(("close", _)) => CutKind::Close,
            Some(("reset", _)) => CutKind::Reset,
            Some((other, at)) => {
                let problem = Problem::Unexpected {
                    expected: "close or reset",
                    found: format!("'{other}'"),
                };
                return Err(ParseError::new(text, at, problem));
            }
        };
        Ok(Self {
            when: Occasions::from_values(&values)?,
            connection: values.optional_count("connection")?,
            how,
        })
    }
}

impl TryFrom<&str> for Cut {
    type Error = ParseError;

    fn try_from(text: &str) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |nanos| Human(Duration::from_nanos(nanos));
        let Occasions { first_ns, every_ns } = self.when;
        match every_ns {
            Some(every_ns) => {
                write!(f, "every={}", time(every_ns))?;
                if first_ns != every_ns {
                    write!(f, ",first={}", time(first_ns))?;
                }
            }
            None => write!(f, "at={}", time(first_ns))?,
        }
        if let Some(connection) = self.connection {
            write!(f, ",connection={connection}")?;
        }
        match self.how {
            CutKind::Close => Ok(()),
            CutKind::Reset => f.write_str(",how=reset"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_is_read_and_printed() {
        let s = 1_000_000_000;
        for (text, first_ns, every_ns, connection, how, printed) in [
            (
                "every=2s",
                2 * s,
                Some(2 * s),
                None,
                CutKind::Close,
                "every=2s",
            ),
            (
                "how=close, every=2s ,first=0",
                0,
                Some(2 * s),
                None,
                CutKind::Close,
                "every=2s,first=0",
            ),
            (
                "at=1s,how=reset,connection=4",
                s,
                None,
                Some(4),
                CutKind::Reset,
                "at=1s,connection=4,how=reset",
            ),
        ] {
            let cut: Cut = text.parse().unwrap();
            let when = Occasions { first_ns, every_ns };
            let expected = Cut {
                when,
                connection,
                how,
            };
            assert_eq!(cut, expected, "{text}");
            assert_eq!(cut.to_string(), printed);
            assert_eq!(printed.parse(), Ok(cut));
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_place() {
        for (text, message) in [
            (
                "2s",
                "expected every=TIME[,first=TIME] or at=TIME, found '2s', at character 1 of '2s'",
            ),
            (
                "connection=1",
                "'every or at' is missing, at character 1 of 'connection=1'",
            ),
            (
                "at=1s,how=kill",
                "expected close or reset, found 'kill', at character 11 of 'at=1s,how=kill'",
            ),
            (
                "every=0",
                "'every' is 0; expected a time above 0, at character 1 of 'every=0'",
            ),
        ] {
            assert_eq!(text.parse::<Cut>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_connection_ends_at_the_first_cut_after_its_acceptance() {
        let cuts: Vec<Cut> = ["every=100ns,connection=1", "at=150ns,how=reset"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        let started = Stamp::from_nanos(1_000);
        let first = |connection, accepted| {
            let accepted = Stamp::from_nanos(accepted);
            let cut = Cut::first_of(&cuts, started, connection, accepted);
            cut.map(|(moment, how)| (moment.as_nanos(), how))
        };
        assert_eq!(first(0, 1_000), Some((1_150, CutKind::Reset)));
        assert_eq!(first(0, 1_150), None);
        assert_eq!(first(1, 1_099), Some((1_100, CutKind::Close)));
        assert_eq!(first(1, 1_100), Some((1_150, CutKind::Reset)));
        assert_eq!(first(1, 1_150), Some((1_200, CutKind::Close)));
    }
}
