//! What is expected of a client's numbers.

use std::fmt;
use std::time::Duration;

use kvlab_timing::duration;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::truth::Quantile;

/// An allowed error: the larger of a time and a share of the true value.
///
/// In text `50us`, `2%`, or both as `50us or 2%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The time.
    pub time: Duration,
    /// The share of the true value, 0 to 1.
    pub share: f64,
}

impl Tolerance {
    /// The larger of `micros` microseconds and `percent` percent.
    #[must_use]
    pub const fn new(micros: u64, percent: f64) -> Self {
        Self {
            time: Duration::from_micros(micros),
            share: percent / 100.0,
        }
    }

    /// The allowed error for a true value, in nanoseconds.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "rounded down; the cast saturates"
    )]
    pub fn of_ns(&self, truth_ns: u64) -> u64 {
        let time = u64::try_from(self.time.as_nanos()).unwrap_or(u64::MAX);
        time.max((truth_ns as f64 * self.share) as u64)
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// When it is not of that form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tolerance = Self {
            time: Duration::ZERO,
            share: 0.0,
        };
        for term in text.split(" or ").map(str::trim) {
            match term.strip_suffix('%') {
                Some(percent) => {
                    let percent: f64 = percent.trim().parse().map_err(|_| expected(text))?;
                    if !(0.0..=1000.0).contains(&percent) {
                        return Err(expected(text));
                    }
                    tolerance.share = percent / 100.0;
                }
                None => tolerance.time = duration::parse(term).map_err(|_| expected(text))?,
            }
        }
        Ok(tolerance)
    }
}

fn expected(text: &str) -> String {
    format!(
        "'{text}' is not a tolerance: expected a time, a percentage, both as in '50us or 2%', or 'none'"
    )
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.time.is_zero(), self.share == 0.0) {
            (false, false) => {
                write!(
                    f,
                    "{} or {}%",
                    duration::Human(self.time),
                    self.share * 100.0
                )
            }
            (true, false) => write!(f, "{}%", self.share * 100.0),
            _ => write!(f, "{}", duration::Human(self.time)),
        }
    }
}

impl Serialize for Tolerance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a scenario says of one figure: a tolerance, or `none`, which leaves it unjudged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Not judged.
    Unjudged,
    /// Judged by this tolerance.
    Within(Tolerance),
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "none" {
            return Ok(Self::Unjudged);
        }
        Tolerance::parse(&text)
            .map(Self::Within)
            .map_err(de::Error::custom)
    }
}

impl Limit {
    /// A limit of a figure that is a share: a time makes no sense there.
    fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        match Self::deserialize(deserializer)? {
            Self::Within(tolerance) if !tolerance.time.is_zero() => Err(de::Error::custom(
                format!("'{tolerance}' is not a percentage or 'none'"),
            )),
            limit => Ok(Some(limit)),
        }
    }

    /// A limit of a figure that is a time with nothing to be a share of.
    fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        match Self::deserialize(deserializer)? {
            Self::Within(tolerance) if tolerance.share != 0.0 => Err(de::Error::custom(format!(
                "'{tolerance}' is not a time or 'none'"
            ))),
            limit => Ok(Some(limit)),
        }
    }
}

/// What a scenario says of a figure that is a plain number: the largest that passes, or `none`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Not judged.
    Unjudged,
    /// Judged by this number.
    Below(f64),
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number or 'none'")]
        enum Form {
            Number(f64),
            Whole(u32),
            Word(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(number) if number > 0.0 => Ok(Self::Below(number)),
            Form::Whole(number) if number > 0 => Ok(Self::Below(f64::from(number))),
            Form::Word(word) if word == "none" => Ok(Self::Unjudged),
            _ => Err(de::Error::custom("expected a number above 0 or 'none'")),
        }
    }
}

/// Limits by quantile; what is not given has the default or is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// At the median.
    pub p50: Option<Limit>,
    /// At the 90th percentile.
    pub p90: Option<Limit>,
    /// At the 99th percentile.
    pub p99: Option<Limit>,
    /// At the 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<Limit>,
    /// Of the mean.
    pub mean: Option<Limit>,
}

impl Limits {
    /// What is said of a quantile, if anything.
    #[must_use]
    pub fn at(&self, q: Quantile) -> Option<Limit> {
        match q {
            Quantile::P50 => self.p50,
            Quantile::P90 => self.p90,
            Quantile::P99 => self.p99,
            Quantile::P99_9 => self.p99_9,
            _ => None,
        }
    }
}

/// What is expected of one client. What is not given has the default of its figure; the figures are
/// those of [`ScoreName`](crate::check::score::ScoreName).
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Expect {
    /// The reported service time against the true sojourn plus the floor: ServErr.
    pub service: Limits,
    /// The reported response time against the timetable: RespErr.
    pub response: Limits,
    /// The service time up to the kernel's receive stamp against the true sojourn: NetErr.
    pub kernel: Limits,
    /// The true sojourn against the law that was to be injected; by default not judged.
    pub sojourn: Limits,
    /// Client's time minus server's, request by request: PairErr.
    pub pair: Limits,
    /// Mean distance of the reported times from the true ones: W1; a share is one of the mean.
    pub w1: Option<Limit>,
    /// 99th percentile of send - intended: LagP99.
    #[serde(deserialize_with = "Limit::time")]
    pub lag_p99: Option<Limit>,
    /// Sent per second against wanted, over the run: RateErr.
    #[serde(deserialize_with = "Limit::share")]
    pub rate: Option<Limit>,
    /// The same in the worst window of 100 ms.
    #[serde(deserialize_with = "Limit::share")]
    pub rate_window: Option<Limit>,
    /// Anderson-Darling statistic of the arrivals: ArrivalAD.
    pub arrival: Option<Threshold>,
    /// What the server was late by: InjErr. Beyond it a run is void.
    pub injection: Limits,
    /// Spread over repeated runs, largest over least less 1: Repro.
    pub repro: Limits,
    /// Requests due that were not recorded: Omission.
    #[serde(deserialize_with = "Limit::share")]
    pub omission: Option<Limit>,
    /// The largest latency that has to be representable: Clamp.
    #[serde(deserialize_with = "Limit::time")]
    pub clamp: Option<Limit>,
    /// Requests that may fail: errors, time-outs, lost and never sent ones together.
    pub failed: u64,
    /// What the server is to have done with connections, by its own count.
    pub connections: ExpectedConnections,
    /// How many requests of the measured part end in a certain way, exactly.
    pub counts: Counts,
}

/// How many requests of the measured part end in a certain way; what is not given is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Counts {
    /// Answered to the client: done or found.
    pub hits: Option<u64>,
    /// Answered to the client: nothing there.
    pub misses: Option<u64>,
    /// Answered to the client with an error.
    pub errors: Option<u64>,
    /// Timed out at the client.
    pub timeouts: Option<u64>,
    /// Delayed by a throttle.
    pub delayed: Option<u64>,
    /// Refused by a throttle.
    pub throttled: Option<u64>,
    /// Dropped by a throttle.
    pub dropped: Option<u64>,
    /// Refused for their size.
    pub too_large: Option<u64>,
    /// Refused for lack of memory.
    pub out_of_memory: Option<u64>,
    /// Refused because nobody may run their command.
    pub blocked: Option<u64>,
}

/// How many connections are to have met what; what is not given is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExpectedConnections {
    /// Let in.
    pub accepted: Option<u64>,
    /// Held before they were read.
    pub held: Option<u64>,
    /// Left in the backlog before they were accepted.
    pub waited: Option<u64>,
    /// Told why they are not served.
    pub told: Option<u64>,
    /// Closed without a word.
    pub closed: Option<u64>,
    /// Reset when they came.
    pub reset: Option<u64>,
    /// Ended because they were idle.
    pub idle: Option<u64>,
    /// Ended because of their age.
    pub aged: Option<u64>,
    /// Ended because their replies were not taken.
    pub output: Option<u64>,
}

/// The default tolerance of the reported service time. To those above the median the floor's own
/// spread is added, to the tails half the width of the order-statistic interval.
#[must_use]
pub fn default_service(q: Quantile) -> Option<Tolerance> {
    match q {
        Quantile::P50 | Quantile::P90 => Some(Tolerance::new(50, 2.0)),
        Quantile::P99 => Some(Tolerance::new(250, 5.0)),
        Quantile::P99_9 => Some(Tolerance::new(250, 10.0)),
        _ => None,
    }
}

/// The default tolerance of the reported response time. The floor is added, and to the quantiles
/// above the median its spread.
#[must_use]
pub fn default_response(q: Quantile) -> Option<Tolerance> {
    match q {
        Quantile::P50 => Some(Tolerance::new(50, 2.0)),
        Quantile::P90 => Some(Tolerance::new(100, 3.0)),
        Quantile::P99 | Quantile::P99_9 => Some(Tolerance::new(250, 3.0)),
        _ => None,
    }
}

/// The default tolerance of a mean. How far the floor moved and its mean lies above its median is
/// added.
#[must_use]
pub fn default_mean() -> Tolerance {
    Tolerance::new(50, 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_key_and_its_kind_of_limit() {
        let text = "pair = { p50 = '20us', p99 = '500us' }\nw1 = '3%'\nlag-p99 = '100us'\n\
                    rate = '0.1%'\nrate-window = 'none'\narrival = 2.492\nclamp = '1h'\n\
                    injection.p90 = '1ms'\nrepro.p99 = '15%'\nomission = '0%'\nkernel.p50 = '60us'\n\
                    response.mean = '3%'";
        let expect: Expect = toml::from_str(text).unwrap();
        assert_eq!(
            expect.pair.p50,
            Some(Limit::Within(Tolerance::new(20, 0.0)))
        );
        assert_eq!(expect.w1, Some(Limit::Within(Tolerance::new(0, 3.0))));
        assert_eq!(expect.rate_window, Some(Limit::Unjudged));
        assert_eq!(expect.arrival, Some(Threshold::Below(2.492)));
        assert_eq!(expect.omission, Some(Limit::Within(Tolerance::new(0, 0.0))));
        assert_eq!(expect.service, Limits::default());
        for (text, word) in [
            ("lag-p99 = '3%'", "not a time"),
            ("rate = '3us'", "not a percentage"),
            ("arrival = '5%'", "number"),
            ("arrival = 0", "above 0"),
            ("lag = '3us'", "lag-p99"),
        ] {
            let error = toml::from_str::<Expect>(text).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("line 1"), "{error}");
        }
    }

    #[test]
    fn tolerance_is_the_larger_of_time_and_share() {
        let both = Tolerance::parse("50us or 2%").unwrap();
        assert_eq!(both, Tolerance::new(50, 2.0));
        assert_eq!(both.of_ns(1_000_000), 50_000);
        assert_eq!(both.of_ns(10_000_000), 200_000);
        assert_eq!(
            Tolerance::parse("3%").unwrap().of_ns(131_000_000),
            3_930_000
        );
        assert_eq!(
            Tolerance::parse("1.5ms").unwrap().of_ns(u64::MAX),
            1_500_000
        );
    }

    #[test]
    fn tolerance_prints_as_it_is_read() {
        for text in ["50us", "2%", "50us or 2%", "1.5ms or 0.5%"] {
            assert_eq!(Tolerance::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "50", "2 percent", "-1%", "50us and 2%", "nan%"] {
            assert!(Tolerance::parse(text).is_err(), "{text}");
        }
    }
}
