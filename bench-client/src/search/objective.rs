//! What a server has to keep: a quantile of a latency below a limit.
//!
//! ```text
//! p99<2ms    p99.9<=10ms    service.p50<500us
//! ```
//!
//! A request that fails counts as one beyond the limit: nobody got an answer in time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kvlab_timing::duration;

use crate::record::{Latency, Tally};

/// A quantile that has to stay below a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Objective {
    /// Which latency.
    pub kind: LatencyKind,
    /// How many of a million requests may take longer.
    beyond_ppm: u32,
    /// The limit.
    pub limit: Duration,
}

/// Which latency of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatencyKind {
    /// From the intended start to the reply: what a user waits.
    #[default]
    Response,
    /// From the send to the reply.
    Service,
}

impl LatencyKind {
    /// Its name in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
        }
    }

    /// The latencies of this kind, all classes together.
    #[must_use]
    pub fn of(self, tally: &Tally) -> Latency {
        match self {
            Self::Response => tally.response(),
            Self::Service => tally.service(),
        }
    }
}

impl Objective {
    /// The objective that at most `beyond_ppm` of a million requests take longer than `limit`.
    /// `None` when the share is not above 0 and below 1, or the limit is 0.
    #[must_use]
    pub fn new(kind: LatencyKind, beyond_ppm: u32, limit: Duration) -> Option<Self> {
        let legal = (1..MILLION).contains(&beyond_ppm) && !limit.is_zero();
        legal.then_some(Self {
            kind,
            beyond_ppm,
            limit,
        })
    }

    /// The share of requests that may take longer, above 0 and below 1.
    #[must_use]
    pub fn share_beyond(&self) -> f64 {
        f64::from(self.beyond_ppm) / f64::from(MILLION)
    }

    /// The quantile, above 0 and below 1.
    #[must_use]
    pub fn quantile(&self) -> f64 {
        f64::from(MILLION - self.beyond_ppm) / f64::from(MILLION)
    }

    /// The limit in nanoseconds.
    #[must_use]
    pub fn limit_ns(&self) -> u64 {
        u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The quantile as people write it: `p99.9`.
    #[must_use]
    pub fn quantile_name(&self) -> String {
        let within = MILLION - self.beyond_ppm;
        let (whole, rest) = (within / PERCENT_PPM, within % PERCENT_PPM);
        if rest == 0 {
            return format!("p{whole}");
        }
        let digits = format!("{rest:04}");
        format!("p{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// `p99<2ms`, `service.p50<500us`.
impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == LatencyKind::Service {
            f.write_str("service.")?;
        }
        let limit = duration::format(self.limit);
        write!(f, "{}<{limit}", self.quantile_name())
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| {
            format!(
                "expected an objective such as p99<2ms or service.p50<500us: {why}, in {text:?}"
            )
        };
        let (left, limit) = text.split_once('<').ok_or_else(|| refuse("no <"))?;
        let limit = limit.strip_prefix('=').unwrap_or(limit).trim();
        let limit = duration::parse(limit).map_err(|error| refuse(&error.to_string()))?;
        let left = left.trim();
        let (kind, quantile) = match left.split_once('.') {
            Some(("response", quantile)) => (LatencyKind::Response, quantile),
            Some(("service", quantile)) => (LatencyKind::Service, quantile),
            _ => (LatencyKind::default(), left),
        };
        let percent = quantile
            .strip_prefix('p')
            .ok_or_else(|| refuse("no p before the percentile"))?;
        let within = percent_ppm(percent).ok_or_else(|| refuse("no percentile"))?;
        let beyond = MILLION
            .checked_sub(within)
            .ok_or_else(|| refuse("a percentile above 100"))?;
        Self::new(kind, beyond, limit)
            .ok_or_else(|| refuse("the percentile lies between 0 and 100, the limit above 0"))
    }
}

/// `99.95` as parts of a million; up to four decimals.
fn percent_ppm(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 4 {
        return None;
    }
    let fraction: u32 = format!("{fraction:0<4}").parse().ok()?;
    whole
        .parse::<u32>()
        .ok()?
        .checked_mul(PERCENT_PPM)?
        .checked_add(fraction)
}

const MILLION: u32 = 1_000_000;
/// Parts of a million in one percent.
const PERCENT_PPM: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_print_as_they_are_typed() {
        for text in [
            "p99<2ms",
            "p50<500us",
            "p99.9<10ms",
            "p99.99<1s",
            "p99.0001<1s",
            "service.p90<1.5ms",
        ] {
            let objective: Objective = text.parse().unwrap();
            assert_eq!(objective.to_string(), text);
        }
        let spaced: Objective = "response.p99 <= 2ms".parse().unwrap();
        assert_eq!(spaced.to_string(), "p99<2ms");
    }

    #[test]
    fn the_share_beyond_is_exact() {
        let objective: Objective = "p99.9<10ms".parse().unwrap();
        assert_eq!(objective.beyond_ppm, 1_000);
        assert_eq!(objective.share_beyond(), 0.001);
        assert_eq!(objective.quantile(), 0.999);
        assert_eq!(objective.limit_ns(), 10_000_000);
    }

    #[test]
    fn nonsense_is_refused_with_its_text() {
        for text in [
            "",
            "p99",
            "p99>2ms",
            "99<2ms",
            "p0<1ms",
            "p100<1ms",
            "p101<1ms",
            "p99.99999<1ms",
            "p99<0ms",
            "p99<2",
            "mean<2ms",
            "lag.p99<2ms",
        ] {
            let error = text.parse::<Objective>().unwrap_err();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
