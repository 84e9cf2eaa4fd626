//! The curves of a run, computed from its rows: latency by percentile and latency over time.
//!
//! They are drawn, not judged. Each is bounded whatever the length of the run: twenty percentiles to
//! a decade of samples, and at most [`MOST_INTERVALS`] intervals. Values are samples by their rank,
//! never averages.

use kvlab_bench_client::report::html::tail::Share;

use kvlab_timing::Stamp;

use crate::check::{Timetable, network_ns, timetable_from};
use crate::runner::Evidence;
use crate::truth::join::is_timed;
use crate::truth::{Pair, Quantile, Sorted};

/// The curves of one client's run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Latency by percentile.
    pub percentiles: Percentiles,
    /// Latency over time.
    pub over_time: OverTime,
    /// The server's freezes.
    pub freezes: Vec<Stretch>,
}

/// Latency by percentile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// Samples of the curve that has most.
    pub samples: u64,
    /// The percentiles, the largest sample left out.
    pub shares: Vec<Share>,
    /// The curves.
    pub curves: Vec<Percentile>,
}

/// One curve: a value for each share, and the largest sample after them.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentile {
    /// Which time.
    pub time: Time,
    /// The values in nanoseconds.
    pub values_ns: Vec<Option<u64>>,
}

/// Which time of a request a curve shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// What the response time should be, by the timetable.
    Timetable,
    /// What it should be by the server's stamps: its write minus the intended moment.
    Stamps,
    /// From the intended moment to the reply.
    Response,
    /// From the send to the reply.
    Service,
    /// From the send to the kernel's receive stamp, where there are such stamps.
    Network,
    /// From the server's read to its write.
    Sojourn,
}

/// Latency over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// From the begin of the measured part to its last reply.
    pub length_ns: u64,
    /// Length of an interval.
    pub interval_ns: u64,
    /// The client's times, by the interval in which a request was due: response time in an open
    /// loop, else service time.
    pub client: Vec<Option<Point>>,
    /// What the server's stamps say of the same requests.
    pub truth: Vec<Option<Point>>,
}

/// The requests of one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// How many.
    pub count: u64,
    /// Their median.
    pub p50_ns: u64,
    /// Their 99th percentile.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// A stretch of time from the begin of the measured part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Begin.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
}

/// Intervals at most.
pub const MOST_INTERVALS: u64 = 240;
/// Freezes at most; a picture of more would be one band.
pub const MOST_FREEZES: usize = 400;

impl Series {
    /// The curves of a run. The percentiles are those of the requests that are judged, which were
    /// intended from a moment on.
    #[must_use]
    pub fn new(evidence: &Evidence, from: Stamp) -> Self {
        let timed: Vec<&Pair> = evidence
            .joined
            .pairs
            .iter()
            .filter(|pair| is_timed(&pair.client))
            .collect();
        let begin = evidence.summary.started.as_nanos();
        let end = timed.iter().filter_map(|pair| pair.client.received);
        let end = end.max().map_or(begin, |stamp| stamp.as_nanos());
        let length_ns = end.saturating_sub(begin);
        Self {
            percentiles: Percentiles::new(evidence, from, &timed),
            over_time: OverTime::new(evidence, &timed, length_ns),
            freezes: freezes(evidence, begin, length_ns),
        }
    }
}

impl Percentiles {
    fn new(evidence: &Evidence, from: Stamp, timed: &[&Pair]) -> Self {
        let judged = |pair: &&&Pair| pair.client.intended >= from;
        let timed: Vec<&Pair> = timed.iter().filter(judged).copied().collect();
        let mut curves = Vec::new();
        if evidence.settings.load.is_open() {
            let truth = match timetable_from(evidence, from) {
                Timetable::Simulated { responses, .. } => (Time::Timetable, responses),
                _ => (Time::Stamps, by_stamps(evidence, &timed).collect()),
            };
            curves.push(truth);
            let response = timed.iter().filter_map(|pair| pair.response_ns());
            curves.push((Time::Response, response.collect()));
        }
        let service = timed.iter().filter_map(|pair| pair.service_ns());
        curves.push((Time::Service, service.collect()));
        let network: Sorted = timed.iter().filter_map(|pair| network_ns(pair)).collect();
        if !network.is_empty() {
            curves.push((Time::Network, network));
        }
        let sojourn = timed.iter().map(|pair| pair.sojourn_ns());
        curves.push((Time::Sojourn, sojourn.collect()));
        Self::of(&curves)
    }

    fn of(curves: &[(Time, Sorted)]) -> Self {
        let samples = curves.iter().map(|(_, sorted)| sorted.len()).max();
        let samples = samples.unwrap_or(0);
        let shares = Share::up_to(samples);
        let curve = |(time, sorted): &(Time, Sorted)| {
            let at = |share: &Share| sorted.at_rank(share.rank(sorted.len())?);
            let largest = (samples > 0 && sorted.len() == samples).then(|| sorted.max());
            let values_ns = shares.iter().map(at).chain([largest]).collect();
            Percentile {
                time: *time,
                values_ns,
            }
        };
        Self {
            samples,
            curves: curves.iter().map(curve).collect(),
            shares,
        }
    }
}

impl OverTime {
    fn new(evidence: &Evidence, timed: &[&Pair], length_ns: u64) -> Self {
        let interval_ns = interval_ns(length_ns);
        let begin = evidence.summary.started.as_nanos();
        let count = usize::try_from(length_ns / interval_ns + 1).unwrap_or(usize::MAX);
        let mut client = vec![Vec::new(); count];
        let mut truth = vec![Vec::new(); count];
        let is_open = evidence.settings.load.is_open();
        for (pair, stamped) in timed.iter().zip(by_stamps(evidence, timed)) {
            let due = pair.client.intended.as_nanos().saturating_sub(begin);
            let place = usize::try_from(due / interval_ns).unwrap_or(usize::MAX);
            let (seen, true_ns) = if is_open {
                (pair.response_ns(), stamped)
            } else {
                (pair.service_ns(), pair.sojourn_ns())
            };
            // A request that is timed has a reply, and was due before it.
            if let (Some(seen), Some(client), Some(truth)) =
                (seen, client.get_mut(place), truth.get_mut(place))
            {
                client.push(seen);
                truth.push(true_ns);
            }
        }
        Self {
            length_ns,
            interval_ns,
            client: client.into_iter().map(Point::of).collect(),
            truth: truth.into_iter().map(Point::of).collect(),
        }
    }
}

impl OverTime {
    /// Whether at least half of the intervals have the hundred requests of which one lies beyond the
    /// 99th percentile; with fewer it is the longest.
    #[must_use]
    pub fn tells_p99(&self) -> bool {
        let points = self.client.iter().flatten();
        let enough = points.clone().filter(|point| point.count >= 100);
        2 * enough.count() >= points.count()
    }
}

impl Point {
    fn of(samples: Vec<u64>) -> Option<Self> {
        let sorted = Sorted::new(samples);
        Some(Self {
            count: sorted.len(),
            p50_ns: sorted.quantile(Quantile::P50)?,
            p99_ns: sorted.quantile(Quantile::P99)?,
            max_ns: sorted.max(),
        })
    }
}

/// The response time that the server's stamps give: its write minus the intended moment, and the way
/// back where that is known.
fn by_stamps(evidence: &Evidence, timed: &[&Pair]) -> impl Iterator<Item = u64> {
    let leg_ns = evidence.tier.leg_ns();
    timed.iter().map(move |pair| {
        let written = pair.server.written;
        written.saturating_since(pair.client.intended) + leg_ns
    })
}

/// The shortest round interval (1, 2 or 5 times a power of ten) of which at most
/// [`MOST_INTERVALS`] are needed.
fn interval_ns(length_ns: u64) -> u64 {
    let mut power = 1_000_u64;
    loop {
        for digit in [1, 2, 5] {
            let interval = power.saturating_mul(digit);
            if length_ns / interval < MOST_INTERVALS {
                return interval;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The freezes that touch the measured part; none where there are more than [`MOST_FREEZES`].
fn freezes(evidence: &Evidence, begin: u64, length_ns: u64) -> Vec<Stretch> {
    let end = begin.saturating_add(length_ns);
    let frozen = evidence.server.freezes().between(begin, end, MOST_FREEZES);
    frozen
        .unwrap_or_default()
        .into_iter()
        .map(|frozen| Stretch {
            from_ns: frozen.begin.saturating_sub(begin),
            to_ns: frozen.end.min(end) - begin,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_round_and_not_too_many() {
        for (length_ns, interval) in [
            (0, 1_000),
            (239_999, 1_000),
            (240_000, 2_000),
            (20_000_000_000, 100_000_000),
            (600_000_000_000, 5_000_000_000),
        ] {
            assert_eq!(interval_ns(length_ns), interval, "{length_ns}");
            assert!(length_ns / interval < MOST_INTERVALS);
        }
    }

    #[test]
    fn curves_hold_samples_by_rank_and_end_with_the_largest() {
        let response: Sorted = (1..=1_000).collect();
        let fewer: Sorted = (1..=10).collect();
        let series = Percentiles::of(&[(Time::Response, response), (Time::Service, fewer)]);
        assert_eq!(series.samples, 1_000);
        let at = |curve: usize, label: &str| {
            let place = series
                .shares
                .iter()
                .position(|share| share.label() == label);
            series.curves[curve].values_ns[place.unwrap()]
        };
        assert_eq!(at(0, "min"), Some(1));
        assert_eq!(
            (at(0, "p50"), at(0, "p90"), at(0, "p99")),
            (Some(500), Some(900), Some(990))
        );
        // Of ten samples one lies beyond p90 and none beyond p99.
        assert_eq!((at(1, "p90"), at(1, "p99")), (Some(9), None));
        let last = |curve: usize| *series.curves[curve].values_ns.last().unwrap();
        assert_eq!((last(0), last(1)), (Some(1_000), None));
    }

    #[test]
    fn a_point_is_exact_and_an_empty_interval_has_none() {
        let point = Point::of((1..=200).rev().collect()).unwrap();
        assert_eq!(
            (point.count, point.p50_ns, point.p99_ns, point.max_ns),
            (200, 100, 198, 200)
        );
        assert_eq!(Point::of(Vec::new()), None);
    }
}
