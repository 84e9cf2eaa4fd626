//! Options of the connections: how they are made, awaited, renewed and tried again.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kvlab_timing::{Rate, duration};

use super::UsageError;
use super::quantity::{positive_time, time};
use crate::settings::{Address, Renew, Settings, Target, WhenDown};

/// How connections are made and kept.
#[derive(Args, Clone, Debug)]
#[group(skip)]
#[command(next_help_heading = "Connections")]
pub struct ConnectArgs {
    /// Connect to this socket file instead of the URL's host and port (RESP only, without TLS)
    #[arg(long, value_name = "PATH")]
    pub unix_socket: Option<PathBuf>,

    /// New connections per second in all while setting up, 0.1 to 10M; without it all are begun at
    /// once
    #[arg(long, value_name = "PER_SECOND")]
    pub connect_rate: Option<Rate>,

    /// Connections begun at once before --connect-rate applies [default: 1]
    #[arg(long, value_name = "N", requires = "connect_rate")]
    pub connect_burst: Option<NonZeroU32>,

    /// Begin each connection later by a random time from 0 to this [default: 0]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub connect_jitter: Option<Duration>,

    /// Bound of one attempt to connect, TLS and login included [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub connect_timeout: Option<Duration>,

    /// Bound of the whole set-up; then the load begins with the connections that are up [default:
    /// the ramp-up and three times --connect-timeout]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub setup_timeout: Option<Duration>,

    /// Count a connection as up only when it has answered a PING, so that the delays of a server
    /// that limits new connections are not in the latencies (RESP only)
    #[arg(long)]
    pub connect_probe: bool,

    /// Waits before attempts to reconnect: random, from 0 to a bound that doubles from FIRST up to
    /// MOST [default: 10ms..1s]
    #[arg(long, value_name = "FIRST..MOST")]
    pub backoff: Option<BackoffArg>,

    /// Failures in a row on one connection, time-outs of requests included, after which it is given
    /// up during the load [default: 8]
    #[arg(long, value_name = "N")]
    pub reconnect_attempts: Option<u32>,

    /// A request of an open loop that is due while no connection is up waits, or is dropped and
    /// counted as not sent [default: wait]
    #[arg(long, value_name = "MODE", value_enum)]
    pub when_down: Option<WhenDownArg>,

    /// Close each connection in order and make it anew after so many requests, as in 1000, or after
    /// a lifetime, as in 30s or 30s,exponential [default: never]
    #[arg(long, value_name = "N|TIME")]
    pub reconnect_every: Option<Renew>,

    /// Exit with status 7 when fewer connections than this were up when the load began [default
    /// without a number: all]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    pub require_connections: Option<Option<NonZeroU32>>,
}

/// What happens to a request that is due while no connection is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhenDownArg {
    /// It waits, and its response time grows
    Wait,
    /// It is counted as not sent
    Drop,
}

/// The bounds of the waits before attempts to reconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffArg {
    first: Duration,
    most: Duration,
}

impl ConnectArgs {
    /// How many connections have to be up when the load begins, of this many.
    pub(super) fn required(&self, all: NonZeroU32) -> Option<u64> {
        let required = self.require_connections?;
        Some(u64::from(required.unwrap_or(all).get()))
    }

    /// Writes what the options say into the settings.
    pub(super) fn apply(&self, settings: &mut Settings) -> Result<(), UsageError> {
        let connects = &mut settings.connects;
        connects.rate = self.connect_rate;
        if let Some(burst) = self.connect_burst {
            connects.burst = burst;
        }
        connects.jitter = self.connect_jitter.unwrap_or_default();
        connects.setup_timeout = self.setup_timeout;
        connects.when_down = match self.when_down {
            None | Some(WhenDownArg::Wait) => WhenDown::Wait,
            Some(WhenDownArg::Drop) => WhenDown::Drop,
        };
        connects.renew = self.reconnect_every.unwrap_or_default();
        if let Some(timeout) = self.connect_timeout {
            settings.connect_timeout = timeout;
        }
        if let Some(backoff) = self.backoff {
            (settings.backoff.first, settings.backoff.most) = (backoff.first, backoff.most);
        }
        if let Some(attempts) = self.reconnect_attempts {
            settings.backoff.attempts = attempts;
        }
        self.apply_socket(settings)?;
        match &mut settings.target {
            Target::Redis(target) => target.probe = self.connect_probe,
            Target::Aerospike(_) if self.connect_probe => {
                return Err(UsageError::new(
                    "--connect-probe",
                    "a RESP server",
                    "an Aerospike cluster",
                ));
            }
            Target::Aerospike(_) => {}
        }
        Ok(())
    }

    fn apply_socket(&self, settings: &mut Settings) -> Result<(), UsageError> {
        let Some(path) = &self.unix_socket else {
            return Ok(());
        };
        let wrong = |expected, found| Err(UsageError::new("--unix-socket", expected, found));
        match &mut settings.target {
            Target::Aerospike(_) => wrong("a RESP server", "an Aerospike cluster"),
            Target::Redis(_) if settings.tls.is_some() => {
                wrong("a URL without TLS", "one with TLS")
            }
            Target::Redis(target) => {
                target.address = Address::unix(path);
                Ok(())
            }
        }
    }
}

impl FromStr for BackoffArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected two times as in 10ms..1s, found {text:?}");
        let (first, most) = text.split_once("..").ok_or_else(expected)?;
        let read = |part: &str| duration::parse(part).map_err(|_| expected());
        let (first, most) = (read(first)?, read(most)?);
        if first > most {
            return Err(expected());
        }
        Ok(Self { first, most })
    }
}

impl fmt::Display for BackoffArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, most) = (duration::Human(self.first), duration::Human(self.most));
        write!(f, "{first}..{most}")
    }
}
