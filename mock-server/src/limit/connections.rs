//! What connections are limited to: how many, how fast they may come, and when they end by themselves.
//!
//! ```text
//! max-connections = 100              connection-limit = "error"     connection-text = "ERR full"
//! max-connections-per-address = 10
//! accept-rate = "200/500ms"          accept-limit = "delay"         accept-text = "ERR too fast"
//! cores = 2
//! idle-timeout = "300s"   max-age = "12h"   output-limit = "hard=32MiB,soft=8MiB,for=60s"
//! ```
//!
//! The bucket of `accept-rate` holds count x cores connections and is refilled with as many per window,
//! continuously.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kvlab_timing::duration::{self, Human};
use kvlab_timing::{Rate, Stamp, TokenBucket};

use super::{ByteSize, LimitError};

/// The limits on connections. [`ConnectionLimits::default`] has none but those every real server has:
/// 10,000 RESP and 15,000 Aerospike connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// How many connections each protocol may have: `maxclients` and `proto-fd-max`.
    pub max: Option<u64>,
    /// How many connections of each protocol one client address may have.
    pub max_per_address: Option<u64>,
    /// What becomes of connections beyond these two; by default a RESP client is told, an Aerospike
    /// client is hung up on.
    pub at_cap: Option<ConnectionLimit>,
    /// What a RESP client beyond these two is told.
    pub text: Option<String>,
    /// How fast new connections may come.
    pub rate: Option<AcceptRate>,
    /// Multiplies the rate.
    pub cores: u32,
    /// What becomes of connections that come faster.
    pub at_rate: AcceptLimit,
    /// What a RESP client that comes faster is told.
    pub rate_text: Option<String>,
    /// How long a connection may be silent with nothing under way.
    pub idle: Option<Duration>,
    /// How long a connection may last.
    pub max_age: Option<Duration>,
    /// How many bytes of replies may wait for a client to take them.
    pub output: Option<OutputLimit>,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max: None,
            max_per_address: None,
            at_cap: None,
            text: None,
            rate: None,
            cores: 1,
            at_rate: AcceptLimit::default(),
            rate_text: None,
            idle: None,
            max_age: None,
            output: None,
        }
    }
}

impl ConnectionLimits {
    /// What a client beyond a limit is told where nothing else is said: the text of a Redis server.
    pub const TEXT: &'static str = "ERR max number of clients reached";
    /// RESP connections where nothing is said, as on a Redis server.
    pub const REDIS_MAX: u64 = 10_000;
    /// Aerospike connections where nothing is said, as on an Aerospike server.
    pub const AEROSPIKE_MAX: u64 = 15_000;
    /// More are refused.
    pub const MOST: u64 = 4_294_967_295;
    /// More cores are refused.
    pub const MAX_CORES: u32 = 1_024;

    /// The bucket of new connections, full at `now`, if there is one.
    #[must_use]
    pub fn bucket(&self, now: Stamp) -> Option<TokenBucket> {
        let rate = self.rate?;
        let capacity = rate.count.saturating_mul(u64::from(self.cores));
        let refill = Rate::per_period(capacity, rate.window).ok()?;
        Some(TokenBucket::new(now, capacity, refill))
    }

    /// Whether any connection may have to wait in the backlog.
    #[must_use]
    pub fn stops_accepting(&self) -> bool {
        self.at_cap == Some(ConnectionLimit::Backlog)
            || (self.rate.is_some() && self.at_rate == AcceptLimit::Backlog)
    }

    /// What is out of bounds: the setting, its value and what was expected.
    pub(crate) fn fault(&self) -> Option<(&'static str, String, &'static str)> {
        for (what, count) in [
            ("max-connections", self.max),
            ("max-connections-per-address", self.max_per_address),
        ] {
            if let Some(count) = count.filter(|count| !(1..=Self::MOST).contains(count)) {
                return Some((what, count.to_string(), "1 to 4294967295"));
            }
        }
        if !(1..=Self::MAX_CORES).contains(&self.cores) {
            return Some(("cores", self.cores.to_string(), "1 to 1024"));
        }
        if self.max_per_address.is_some() && self.at_cap == Some(ConnectionLimit::Backlog) {
            let expected = "error, close or reset where max-connections-per-address is set, since \
                            only an accepted connection has an address";
            return Some(("connection-limit", "backlog".to_owned(), expected));
        }
        if self.rate.is_some() && self.bucket(Stamp::ZERO).is_none() {
            let rate = self.rate.map(|rate| rate.to_string()).unwrap_or_default();
            return Some(("accept-rate", rate, "at most 10 billion per second"));
        }
        for (what, text) in [
            ("connection-text", &self.text),
            ("accept-text", &self.rate_text),
        ] {
            if let Some(text) = text
                && !is_line(text)
            {
                return Some((what, text.clone(), "one line of 1 to 512 characters"));
            }
        }
        for (what, time) in [("idle-timeout", self.idle), ("max-age", self.max_age)] {
            if time.is_some_and(|time| time.is_zero() || time > LONGEST) {
                let time = Human(time.unwrap_or_default()).to_string();
                return Some((what, time, "a time above 0, at most 10 years"));
            }
        }
        None
    }
}

/// Text of an error reply: it must not end the reply early.
fn is_line(text: &str) -> bool {
    (1..=512).contains(&text.len()) && !text.contains(['\r', '\n'])
}

const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

/// What becomes of a connection beyond the number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// A RESP client is told before it says anything, then the connection ends.
    Error,
    /// The connection ends without a word.
    Close,
    /// The connection is reset.
    Reset,
    /// It is not accepted before a place is free.
    Backlog,
}

impl FromStr for ConnectionLimit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        Ok(match text {
            "error" => Self::Error,
            "close" => Self::Close,
            "reset" => Self::Reset,
            "backlog" => Self::Backlog,
            _ => {
                let expected = "error, close, reset or backlog";
                return Err(LimitError::new("a connection limit", text, expected));
            }
        })
    }
}

impl fmt::Display for ConnectionLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Close => "close",
            Self::Reset => "reset",
            Self::Backlog => "backlog",
        })
    }
}

/// What becomes of a connection that comes too fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AcceptLimit {
    /// It is accepted at once and not read before its turn.
    #[default]
    Delay,
    /// A RESP client is told before it says anything, then the connection ends.
    Error,
    /// The connection ends without a word.
    Close,
    /// The connection is reset.
    Reset,
    /// It is not accepted before its turn.
    Backlog,
}

impl FromStr for AcceptLimit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        Ok(match text {
            "delay" => Self::Delay,
            "error" => Self::Error,
            "close" => Self::Close,
            "reset" => Self::Reset,
            "backlog" => Self::Backlog,
            _ => {
                let expected = "delay, error, close, reset or backlog";
                return Err(LimitError::new("an accept limit", text, expected));
            }
        })
    }
}

impl fmt::Display for AcceptLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delay => "delay",
            Self::Error => "error",
            Self::Close => "close",
            Self::Reset => "reset",
            Self::Backlog => "backlog",
        })
    }
}

/// New connections per time and core: `200/500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptRate {
    /// So many, at least 1.
    pub count: u64,
    /// In this time, above 0.
    pub window: Duration,
}

impl FromStr for AcceptRate {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let error = || {
            let expected = "a count and a time, both above 0, as in 200/500ms or 400/s";
            LimitError::new("an accept rate", text, expected)
        };
        let (count, window) = text.split_once('/').ok_or_else(error)?;
        let count = count.trim().parse().map_err(|_| error())?;
        let window = window.trim();
        let window = if window.starts_with(|first: char| first.is_ascii_digit()) {
            duration::parse(window)
        } else {
            duration::parse(&format!("1{window}"))
        };
        let window = window.map_err(|_| error())?;
        if count == 0 || window.is_zero() {
            return Err(error());
        }
        Ok(Self { count, window })
    }
}

impl fmt::Display for AcceptRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, Human(self.window))
    }
}

/// Bytes of replies that may wait for a client: beyond the hard limit its connection ends at once,
/// beyond the soft one when it has been so for a time. `32MiB` is a hard limit alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimit {
    /// The hard limit.
    pub hard: Option<ByteSize>,
    /// The soft limit and its time.
    pub soft: Option<(ByteSize, Duration)>,
}

impl FromStr for OutputLimit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let error = || {
            let expected = "a size above 0, or hard=SIZE, or soft=SIZE and for=TIME, or all three, as \
                            in hard=32MiB,soft=8MiB,for=60s";
            LimitError::new("an output limit", text, expected)
        };
        let size = |text: &str| match text.parse::<ByteSize>() {
            Ok(size) if size.0 > 0 => Ok(size),
            _ => Err(error()),
        };
        if !text.contains('=') {
            let hard = Some(size(text)?);
            return Ok(Self { hard, soft: None });
        }
        let (mut hard, mut soft, mut time) = (None, None, None);
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(error)?;
            let twice = match name.trim() {
                "hard" => hard.replace(size(value)?).is_some(),
                "soft" => soft.replace(size(value)?).is_some(),
                "for" => {
                    let length = duration::parse(value.trim()).map_err(|_| error())?;
                    time.replace(length).is_some()
                }
                _ => true,
            };
            if twice {
                return Err(error());
            }
        }
        let soft = match (soft, time) {
            (Some(soft), Some(time)) => Some((soft, time)),
            (None, None) if hard.is_some() => None,
            _ => return Err(error()),
        };
        Ok(Self { hard, soft })
    }
}

impl fmt::Display for OutputLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.hard, self.soft) {
            (Some(hard), None) => write!(f, "{hard}"),
            (hard, soft) => {
                if let Some(hard) = hard {
                    write!(f, "hard={hard},")?;
                }
                let (soft, time) = soft.unwrap_or((ByteSize(0), Duration::ZERO));
                write!(f, "soft={soft},for={}", Human(time))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prints_back<T>(text: &str)
    where
        T: FromStr<Err = LimitError> + fmt::Display,
    {
        assert_eq!(text.parse::<T>().unwrap().to_string(), text);
    }

    #[test]
    fn texts_print_as_they_are_read() {
        for text in ["error", "close", "reset", "backlog"] {
            prints_back::<ConnectionLimit>(text);
            prints_back::<AcceptLimit>(text);
        }
        prints_back::<AcceptLimit>("delay");
        for text in ["200/500ms", "400/1s", "1/1m"] {
            prints_back::<AcceptRate>(text);
        }
        let per_second: AcceptRate = "400/s".parse().unwrap();
        assert_eq!(per_second.window, Duration::from_secs(1));
        for text in ["32MiB", "hard=32MiB,soft=8MiB,for=1m", "soft=1KB,for=10ms"] {
            prints_back::<OutputLimit>(text);
        }
        assert_eq!(
            "hard=32MiB".parse::<OutputLimit>().unwrap().to_string(),
            "32MiB"
        );
    }

    #[test]
    fn other_texts_are_refused_with_what_was_expected() {
        for (text, part) in [("", "200/500ms"), ("200", "200/500ms"), ("0/1s", "above 0")] {
            let error = text.parse::<AcceptRate>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        for text in [
            "0",
            "soft=1MB",
            "for=1s",
            "hard=1,hard=2",
            "hard=1,x=2",
            "1s",
        ] {
            assert!(text.parse::<OutputLimit>().is_err(), "{text}");
        }
        let error = "drop".parse::<AcceptLimit>().unwrap_err().to_string();
        assert_eq!(
            error,
            "'drop' is not an accept limit: expected delay, error, close, reset or backlog"
        );
        assert!("delay".parse::<ConnectionLimit>().is_err());
    }

    #[test]
    fn settings_out_of_bounds_are_found() {
        type Change = fn(&mut ConnectionLimits);
        let cases: [(Change, &str); 7] = [
            (|l| l.max = Some(0), "max-connections"),
            (
                |l| l.max_per_address = Some(0),
                "max-connections-per-address",
            ),
            (|l| l.cores = 0, "cores"),
            (|l| l.text = Some("a\r\nb".to_owned()), "connection-text"),
            (|l| l.rate_text = Some(String::new()), "accept-text"),
            (|l| l.idle = Some(Duration::ZERO), "idle-timeout"),
            (
                |l| {
                    l.max_per_address = Some(1);
                    l.at_cap = Some(ConnectionLimit::Backlog);
                },
                "connection-limit",
            ),
        ];
        for (change, name) in cases {
            let mut limits = ConnectionLimits::default();
            assert_eq!(limits.fault(), None);
            change(&mut limits);
            assert_eq!(limits.fault().map(|fault| fault.0), Some(name));
        }
    }

    #[test]
    fn the_bucket_is_that_of_all_cores() {
        let limits = ConnectionLimits {
            rate: Some("200/500ms".parse().unwrap()),
            cores: 3,
            ..ConnectionLimits::default()
        };
        let bucket = limits.bucket(Stamp::ZERO).unwrap();
        assert_eq!(bucket.capacity(), 600);
        assert_eq!(bucket.refill(), Rate::per_second(1_200).unwrap());
    }
}
