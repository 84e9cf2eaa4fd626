//! How requests end, and what they are counted under.

use std::fmt;
use std::ops::AddAssign;

/// The class of a request: its place in [`crate::settings::Target::classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpClass(pub u8);

impl OpClass {
    /// Requests of the handshake or the tend, which belong to no class of the mix.
    pub const CONTROL: Self = Self(u8::MAX);

    /// The place in the list of classes.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The one way in which a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Answered: done, or found.
    Hit,
    /// Answered: there was nothing under the key.
    Miss,
    /// Answered with an error.
    Error(ErrorKind),
    /// Not answered within the time-out.
    Timeout,
    /// Sent, at least in part, on a connection that ended before the reply.
    ConnectionLost,
    /// Due, but never handed to a socket.
    NotSent,
}

impl Outcome {
    /// Whether a reply came.
    #[must_use]
    pub fn is_answered(self) -> bool {
        matches!(self, Self::Hit | Self::Miss | Self::Error(_))
    }
}

/// The kind of an error reply: the prefix of a RESP error (`WRONGTYPE`), or the name of an
/// Aerospike result code. Kept inline so that an outcome needs no allocation; longer names are
/// cut off after [`ErrorKind::MAX_LEN`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorKind {
    text: [u8; Self::MAX_LEN],
    len: u8,
}

impl ErrorKind {
    /// Bytes of a name that are kept.
    pub const MAX_LEN: usize = 23;

    /// The kind of this name. Bytes that are not printable ASCII become `?`.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        let mut text = [0; Self::MAX_LEN];
        let mut len = 0;
        for (slot, byte) in text.iter_mut().zip(name) {
            *slot = if byte.is_ascii_graphic() || *byte == b' ' {
                *byte
            } else {
                b'?'
            };
            len += 1;
        }
        Self { text, len }
    }

    /// The kind of a line of text: its first word, up to a blank.
    #[must_use]
    pub fn first_word(line: &[u8]) -> Self {
        let end = line.iter().position(|byte| *byte == b' ');
        Self::new(line.get(..end.unwrap_or(line.len())).unwrap_or_default())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.text.get(..usize::from(self.len)).unwrap_or_default();
        // Only printable ASCII was stored.
        std::str::from_utf8(bytes).unwrap_or("?")
    }
}

impl fmt::Debug for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ErrorKind").field(&self.as_str()).finish()
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many requests ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// [`Outcome::Hit`].
    pub hits: u64,
    /// [`Outcome::Miss`].
    pub misses: u64,
    /// [`Outcome::Error`] of all kinds.
    pub errors: u64,
    /// [`Outcome::Timeout`].
    pub timeouts: u64,
    /// [`Outcome::ConnectionLost`].
    pub lost: u64,
    /// [`Outcome::NotSent`].
    pub not_sent: u64,
}

impl Outcomes {
    /// Counts one.
    pub fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Hit => &mut self.hits,
            Outcome::Miss => &mut self.misses,
            Outcome::Error(_) => &mut self.errors,
            Outcome::Timeout => &mut self.timeouts,
            Outcome::ConnectionLost => &mut self.lost,
            Outcome::NotSent => &mut self.not_sent,
        } += 1;
    }

    /// Requests that ended, in whichever way.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.answered() + self.timeouts + self.lost + self.not_sent
    }

    /// Requests that got a reply.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.hits + self.misses + self.errors
    }

    /// Requests that did not end well: neither hit nor miss.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors + self.timeouts + self.lost + self.not_sent
    }
}

impl AddAssign for Outcomes {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.errors += other.errors;
        self.timeouts += other.timeouts;
        self.lost += other.lost;
        self.not_sent += other.not_sent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_kind_keeps_its_name_up_to_the_bound() {
        assert_eq!(ErrorKind::new(b"WRONGTYPE").as_str(), "WRONGTYPE");
        assert_eq!(ErrorKind::new(b"a\xffb").as_str(), "a?b");
        assert_eq!(ErrorKind::new(&[b'x'; 40]).as_str(), "x".repeat(23));
        assert_eq!(ErrorKind::new(b"").as_str(), "");
    }

    #[test]
    fn every_outcome_is_counted_once() {
        let mut outcomes = Outcomes::default();
        let all = [
            Outcome::Hit,
            Outcome::Miss,
            Outcome::Error(ErrorKind::new(b"ERR")),
            Outcome::Timeout,
            Outcome::ConnectionLost,
            Outcome::NotSent,
        ];
        for outcome in all {
            outcomes.count(outcome);
        }
        assert_eq!(
            (outcomes.total(), outcomes.answered(), outcomes.failed()),
            (6, 3, 4)
        );
    }
}
