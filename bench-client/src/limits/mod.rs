//! What the attempts to connect say about the limits of the server.
//!
//! A server that limits new connections by a token bucket of capacity B and refill r lets, from the
//! moment t of the first on, at most `B + r * (now - t)` in. How it treats the others differs, and
//! with it what a client sees:
//!
//! ```text
//! delay      connected at once; first replies come when their token does      -> `admission`
//! refusals   reset, closed or a line of text; whoever finds a token is served -> `verdict`
//! cap        the same, but by how many are up, whatever the time              -> `cap`
//! backlog    the handshake itself is not answered; the kernel asks again after a second, and on
//! ```
//!
//! All are inferences from outside. One that the data do not support is not made: too few
//! connections were delayed or turned away, or no single bucket explains them. A server that works
//! off its connections one by one delays them too; it looks like a bucket of capacity 1, which is
//! therefore never claimed.

mod admission;
mod attempt;
mod cap;
mod round;
mod verdict;

use std::fmt;
use std::time::Duration;

use self::attempt::{Attempt, Verdict, attempts};
use crate::record::{Cause, ConnectKind, ConnectRow};

/// The limits found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// The limit of new connections.
    pub bucket: Option<FoundBucket>,
    /// The limit of connections at once.
    pub cap: Option<FoundCap>,
    /// Connects that the kernel had to ask for again.
    pub retries: SynRetries,
    /// Attempts that were given up while the connect call was still waiting.
    pub hung: u64,
}

/// A token bucket that explains how connections were let in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundBucket {
    /// Connections at once after a pause.
    pub burst: u64,
    /// Further connections per second.
    pub per_second: f64,
    /// The burst as measured, before it was rounded within the error of measurement.
    pub measured_burst: f64,
    /// The rate as measured, before it was rounded within the error of measurement.
    pub measured_per_second: f64,
    /// What becomes of the others.
    pub form: LimitForm,
    /// Connections that were delayed or turned away and agree with it.
    pub evidence: u64,
}

/// A bound of connections at once that explains why further ones were turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundCap {
    /// Connections at once.
    pub connections: u64,
    /// What becomes of the others.
    pub form: LimitForm,
    /// Connections that were turned away and agree with it.
    pub evidence: u64,
}

/// What a server does with connections beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitForm {
    /// They wait for their first reply.
    Delay,
    /// The connect call is refused.
    Refuse,
    /// They are connected and reset.
    Reset,
    /// They are connected and closed without a word.
    Close,
    /// They get a line of text and are closed.
    ErrorLine,
}

/// How many connects took so long as the kernel's repetitions of an unanswered SYN: after 1 s, 2 s
/// more, 4 s more and so on; since Linux 6.5 the first five times after one second each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynRetries {
    /// By the moment of the repetition: see [`SynRetries::iter`].
    pub counts: [u64; 9],
}

impl Limits {
    /// Looks for limits in the attempts to connect of a run.
    #[must_use]
    pub fn find(rows: &[ConnectRow]) -> Self {
        let attempts = attempts(rows);
        let cap = cap::find(&attempts);
        let bucket = admission::find(&attempts).or_else(|| match cap {
            None => verdict::find(&attempts),
            // What a bound of connections explains needs no other reason.
            Some(_) => None,
        });
        let loads = || rows.iter().filter(|row| row.kind == ConnectKind::Load);
        let hung = loads()
            .filter(|row| row.cause == Some(Cause::TimedOut) && row.connected.is_none())
            .count();
        Self {
            bucket,
            cap,
            retries: SynRetries::of(loads().filter_map(ConnectRow::tcp_ns)),
            hung: hung as u64,
        }
    }
}

impl FoundBucket {
    /// Time in which the whole burst is refilled.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "the nearest value is what is wanted"
    )]
    pub fn window(&self) -> Duration {
        let seconds = self.burst as f64 / self.per_second;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// As in `200 per 500 ms (burst 200, 400/s)`.
impl fmt::Display for FoundBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.window().as_secs_f64() * 1e3;
        write!(
            f,
            "{} per {} ms (burst {}, {}/s)",
            self.burst,
            three_digits(millis),
            self.burst,
            three_digits(self.per_second)
        )
    }
}

/// As in `at most 100 connections`.
impl fmt::Display for FoundCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} connections", self.connections)
    }
}

impl LimitForm {
    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Refuse => "refuse",
            Self::Reset => "reset",
            Self::Close => "close",
            Self::ErrorLine => "error",
        }
    }

    /// What happens to connections beyond the limit, for people.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Delay => "others wait for their first reply",
            Self::Refuse => "others are refused",
            Self::Reset => "others are reset",
            Self::Close => "others are closed without a word",
            Self::ErrorLine => "others get an error and are closed",
        }
    }
}

impl SynRetries {
    /// Sorts the lengths of connect calls. Unless nearly all slow ones fit, the delay has another
    /// reason, and none is counted.
    fn of(lengths: impl Iterator<Item = u64>) -> Self {
        let mut retries = Self::default();
        let mut slow = 0_u64;
        for ns in lengths.filter(|ns| *ns >= SLOW_NS) {
            slow += 1;
            let fits = |after: &u64| (*after..*after + after / 10 + SLACK_NS).contains(&ns);
            if let Some(place) = REPEATED_NS.iter().position(fits) {
                retries.counts[place] += 1;
            }
        }
        if retries.total() * 10 >= slow * 9 {
            retries
        } else {
            Self::default()
        }
    }

    /// Connects that were repeated at least once.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Pairs of seconds since the first try and the connects that took so long, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        REPEATED_NS
            .iter()
            .map(|ns| ns / 1_000_000_000)
            .zip(self.counts)
    }
}

/// Without digits that say nothing.
fn three_digits(value: f64) -> String {
    let decimals = match value {
        _ if (value - value.round()).abs() < 1e-6 * value.abs() => 0,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A connect that took so long was not merely waiting for its turn.
const SLOW_NS: u64 = 900_000_000;
/// When a kernel repeats its SYN, since the first.
const REPEATED_NS: [u64; 9] = [
    1_000_000_000,
    2_000_000_000,
    3_000_000_000,
    4_000_000_000,
    5_000_000_000,
    7_000_000_000,
    11_000_000_000,
    15_000_000_000,
    19_000_000_000,
];
/// What a connect may take longer beside a tenth of it.
const SLACK_NS: u64 = 50_000_000;

#[cfg(test)]
mod tests;
