//! How connections are made, kept and renewed: the ramp-up, what is waited for, back-off, churn.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;
use std::time::Duration;

use kvlab_timing::{Pacer, Rate, Stamp};

use crate::random;

/// How connections are made, kept and renewed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectSettings {
    /// New connections per second in all while setting up; without it all are begun at once.
    pub rate: Option<Rate>,
    /// Connections begun at once before the rate applies.
    pub burst: NonZeroU32,
    /// Each connection is begun later by a random time from 0 to this.
    pub jitter: Duration,
    /// Bound of the whole set-up; see [`super::Settings::setup_limit`].
    pub setup_timeout: Option<Duration>,
    /// What happens to a request that is due while no connection to its server is up.
    pub when_down: WhenDown,
    /// When a connection is closed in order and made anew.
    pub renew: Renew,
}

/// What happens to a request of an open loop that is due while no connection to its server is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WhenDown {
    /// It waits, and its response time grows.
    #[default]
    Wait,
    /// It is given up at once and counted as not sent.
    Drop,
}

/// When a connection is closed in order, after its last reply, and made anew.
///
/// Text form: `never`, a number of requests as in `1000`, a lifetime as in `30s`, or one drawn from
/// the exponential law as in `30s,exponential`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Renew {
    /// Never.
    #[default]
    Never,
    /// After this many requests of the load.
    Requests(NonZeroU64),
    /// This long after it was ready.
    After(Duration),
    /// After a random time with this mean, by the exponential law.
    Exponential(Duration),
}

impl Default for ConnectSettings {
    fn default() -> Self {
        Self {
            rate: None,
            burst: NonZeroU32::MIN,
            jitter: Duration::ZERO,
            setup_timeout: None,
            when_down: WhenDown::default(),
            renew: Renew::default(),
        }
    }
}

impl ConnectSettings {
    /// When the connection of this number, from 0 over all threads, is to be begun in a ramp-up
    /// that begins at `start`: at once within the burst, then one by one at the rate; later by its
    /// jitter.
    #[must_use]
    pub fn wanted(&self, start: Stamp, number: u64, seed: u64) -> Stamp {
        let after_burst = (number + 1).saturating_sub(u64::from(self.burst.get()));
        let paced = match self.rate {
            Some(rate) => Pacer::uniform(rate, start, 0, 1).intended(after_burst),
            None => start,
        };
        let jitter_ns = super::nanos(self.jitter);
        if jitter_ns == 0 {
            return paced;
        }
        let bits = random::mix(seed ^ random::mix(JITTER ^ number));
        paced.add_nanos(random::scale(bits, jitter_ns.saturating_add(1)))
    }

    /// Time from the first to the last of this many connections at most.
    #[must_use]
    pub fn ramp(&self, connections: u32) -> Duration {
        let without = Self {
            jitter: Duration::ZERO,
            ..*self
        };
        let last = u64::from(connections).saturating_sub(1);
        let paced = without.wanted(Stamp::ZERO, last, 0);
        Duration::from_nanos(paced.as_nanos()).saturating_add(self.jitter)
    }
}

impl Renew {
    /// How long a connection lives, by the random bits; `None` where time does not end it.
    #[must_use]
    pub fn lifetime_ns(self, bits: u64) -> Option<u64> {
        match self {
            Self::Never | Self::Requests(_) => None,
            Self::After(time) => Some(super::nanos(time)),
            Self::Exponential(mean) => Some(random::exponential(super::nanos(mean), bits)),
        }
    }

    /// Requests of the load that a connection carries at most.
    #[must_use]
    pub fn requests(self) -> u64 {
        match self {
            Self::Requests(requests) => requests.get(),
            _ => u64::MAX,
        }
    }
}

impl FromStr for Renew {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected a number of requests as in 1000, a lifetime as in 30s or \
                 30s,exponential, or never, found {text:?}"
            )
        };
        if text == "never" {
            return Ok(Self::Never);
        }
        if let Ok(requests) = text.parse() {
            return Ok(Self::Requests(requests));
        }
        let (time, law) = text.split_once(',').unwrap_or((text, ""));
        let time = kvlab_timing::duration::parse(time.trim()).map_err(|_| expected())?;
        match law.trim() {
            _ if time.is_zero() => Err(expected()),
            "" if !text.contains(',') => Ok(Self::After(time)),
            "exponential" => Ok(Self::Exponential(time)),
            _ => Err(expected()),
        }
    }
}

impl fmt::Display for Renew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: &Duration| kvlab_timing::duration::format(*time);
        match self {
            Self::Never => f.write_str("never"),
            Self::Requests(requests) => write!(f, "{requests}"),
            Self::After(lifetime) => f.write_str(&time(lifetime)),
            Self::Exponential(mean) => write!(f, "{},exponential", time(mean)),
        }
    }
}

/// Sets the jitter's numbers apart from other uses of the seed.
const JITTER: u64 = 0x6A69_7474_6572_0000;

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(rate: u64, burst: u32) -> ConnectSettings {
        ConnectSettings {
            rate: Some(Rate::per_second(rate).unwrap()),
            burst: NonZeroU32::new(burst).unwrap(),
            ..ConnectSettings::default()
        }
    }

    fn moments(settings: &ConnectSettings, numbers: &[u64]) -> Vec<u64> {
        let start = Stamp::from_nanos(1_000);
        numbers
            .iter()
            .map(|number| settings.wanted(start, *number, 7).as_nanos() - 1_000)
            .collect()
    }

    #[test]
    fn a_ramp_begins_with_its_burst_and_goes_on_at_its_rate() {
        // 400 per second is one in 2.5 ms; the first after a burst of 3 is number 3.
        assert_eq!(
            moments(&ramp(400, 3), &[0, 1, 2, 3, 4, 13]),
            [0, 0, 0, 2_500_000, 5_000_000, 27_500_000]
        );
        assert_eq!(
            moments(&ramp(3, 1), &[0, 1, 2, 3]),
            [0, 333_333_333, 666_666_666, 1_000_000_000]
        );
        assert_eq!(ramp(400, 3).ramp(14), Duration::from_micros(27_500));
        assert_eq!(
            moments(&ConnectSettings::default(), &[0, 5, 999]),
            [0, 0, 0]
        );
    }

    #[test]
    fn jitter_delays_within_its_bound_and_differs_by_connection_and_seed() {
        let settings = ConnectSettings {
            jitter: Duration::from_millis(1),
            ..ConnectSettings::default()
        };
        let start = Stamp::from_nanos(1_000);
        let all = |seed| -> Vec<u64> {
            (0..1_000)
                .map(|number| settings.wanted(start, number, seed).as_nanos() - 1_000)
                .collect()
        };
        let first = all(1);
        assert!(first.iter().all(|ns| *ns <= 1_000_000));
        let mean = first.iter().sum::<u64>() / 1_000;
        // The mean of 1,000 uniform numbers is off by 1 % of the range at one sigma.
        assert!((450_000..550_000).contains(&mean), "{mean}");
        assert_ne!(first, all(2));
        assert_eq!(first, all(1));
    }

    #[test]
    fn the_forms_of_renewal_are_read_and_written() {
        for (text, renew) in [
            ("never", Renew::Never),
            ("1000", Renew::Requests(NonZeroU64::new(1_000).unwrap())),
            ("30s", Renew::After(Duration::from_secs(30))),
            (
                "250ms,exponential",
                Renew::Exponential(Duration::from_millis(250)),
            ),
        ] {
            assert_eq!(text.parse(), Ok(renew), "{text}");
            assert_eq!(renew.to_string(), text);
        }
        for wrong in ["", "0", "0s", "-1", "1s,", "1s,normal", "5,exponential,1"] {
            assert!(wrong.parse::<Renew>().is_err(), "{wrong}");
        }
    }
}
