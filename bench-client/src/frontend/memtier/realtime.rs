//! `--realtime-latencies`: a block on stderr each second instead of the progress line alone.
//!
//! ```text
//! [RUN #1 50%,   1 secs]  2 threads  5 conns:        1020 ops, …
//!                   ops/sec   misses %       p50 ms       p99 ms     p99.9 ms
//!   last second     1007.00      12.50        0.127        0.775        1.079
//!   last 60 s       1001.50      12.40        0.127        0.775        1.079
//!   whole run       1001.50      12.40        0.127        0.775        1.079
//! ```
//!
//! The window slides second by second: what leaves it is taken off its histogram again.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use super::model::{LatencyFrom, float, quantile};
use super::progress::Progress;
use super::text::percentile_title;
use crate::record::{Interval, Latency, Phase};

/// Makes the blocks of one run.
#[derive(Debug)]
pub struct Realtime {
    window: Duration,
    percentiles: Vec<f64>,
    from: LatencyFrom,
    /// The intervals in the window, oldest first.
    kept: VecDeque<Kept>,
    sliding: Sum,
    whole: Sum,
}

/// An interval that is still in the window: its histogram is packed, or an hour of them would take
/// a gigabyte.
#[derive(Debug)]
struct Kept {
    counts: Counts,
    packed: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    hits: u64,
    misses: u64,
    length_ns: u64,
}

/// Counts and latencies of some intervals.
#[derive(Debug)]
struct Sum {
    counts: Counts,
    histogram: Histogram<u64>,
}

impl Realtime {
    /// With a window of this length, at least a second.
    #[must_use]
    pub fn new(window: Duration, percentiles: &[f64], from: LatencyFrom) -> Self {
        Self {
            window: window.max(Duration::from_secs(1)),
            percentiles: percentiles.to_vec(),
            from,
            kept: VecDeque::new(),
            sliding: Sum::new(),
            whole: Sum::new(),
        }
    }

    /// The block after an interval, with its line feeds; `None` in the warm-up.
    pub fn interval(&mut self, interval: &Interval, line: &Progress) -> Option<String> {
        if interval.phase == Phase::Warmup {
            return None;
        }
        let outcomes = interval.tally.outcomes();
        let counts = Counts {
            hits: outcomes.hits,
            misses: outcomes.misses,
            length_ns: interval.end.saturating_since(interval.begin),
        };
        let latency = match self.from {
            LatencyFrom::Schedule => interval.tally.latency(),
            LatencyFrom::Send => interval.tally.service(),
        };
        self.whole.add(counts, latency.histogram());
        self.sliding.add(counts, latency.histogram());
        self.kept.push_back(Kept {
            counts,
            packed: pack(latency.histogram()),
        });
        self.slide();
        let mut text = format!("{line}\n{:<14}{:>12} {:>10}", "", "ops/sec", "misses %");
        for percentile in &self.percentiles {
            let title = format!("{} ms", percentile_title(*percentile));
            let _ = write!(text, " {title:>12}");
        }
        text.push('\n');
        let mut last = Sum::new();
        last.add(counts, latency.histogram());
        let window = format!("last {} s", self.window.as_secs());
        for (name, sum) in [
            ("last second", &last),
            (window.as_str(), &self.sliding),
            ("whole run", &self.whole),
        ] {
            sum.row(&mut text, name, &self.percentiles);
        }
        Some(text)
    }

    /// Takes off what lies before the window.
    fn slide(&mut self) {
        let window = u64::try_from(self.window.as_nanos()).unwrap_or(u64::MAX);
        while self.sliding.counts.length_ns > window && self.kept.len() > 1 {
            let Some(oldest) = self.kept.pop_front() else {
                return;
            };
            self.sliding.take_off(&oldest);
        }
    }
}

impl Sum {
    fn new() -> Self {
        Self {
            counts: Counts::default(),
            histogram: Latency::default().histogram().clone(),
        }
    }

    fn add(&mut self, counts: Counts, histogram: &Histogram<u64>) {
        self.counts.hits += counts.hits;
        self.counts.misses += counts.misses;
        self.counts.length_ns += counts.length_ns;
        // Both have the bounds of a latency, so it always fits.
        let _ = self.histogram.add(histogram);
    }

    fn take_off(&mut self, kept: &Kept) {
        self.counts.hits -= kept.counts.hits;
        self.counts.misses -= kept.counts.misses;
        self.counts.length_ns -= kept.counts.length_ns;
        let unpacked: Option<Histogram<u64>> = Deserializer::new()
            .deserialize(&mut kept.packed.as_slice())
            .ok();
        if let Some(histogram) = unpacked {
            // It was added before, so it can be taken off.
            let _ = self.histogram.subtract(&histogram);
        }
    }

    fn row(&self, text: &mut String, name: &str, percentiles: &[f64]) {
        let Counts {
            hits,
            misses,
            length_ns,
        } = self.counts;
        let good = hits + misses;
        let share = |part: u64, of: u64| {
            if of == 0 {
                0.0
            } else {
                float(part) / float(of)
            }
        };
        let rate = share(good, length_ns) * 1e9;
        let missed = share(misses, good) * 100.0;
        let _ = write!(text, "  {name:<12}{rate:12.2} {missed:10.2}");
        for percentile in percentiles {
            if self.histogram.is_empty() {
                let _ = write!(text, " {:>12}", "---");
            } else {
                let ns = self.histogram.value_at_quantile(quantile(*percentile));
                let _ = write!(text, " {:12.3}", float(ns) / 1e6);
            }
        }
        text.push('\n');
    }
}

fn pack(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    let _ = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use kvlab_timing::Stamp;

    use super::*;
    use crate::record::Tally;

    /// Second `number` with this many hits and misses of this latency.
    fn second(number: u64, hits: u64, misses: u64, ns: u64) -> Interval {
        let mut tally = Tally::new(1);
        let class = &mut tally.classes[0];
        (class.outcomes.hits, class.outcomes.misses) = (hits, misses);
        (0..hits + misses).for_each(|_| class.service.record(ns));
        Interval {
            index: number,
            phase: Phase::Measured,
            begin: Stamp::from_nanos(number * 1_000_000_000),
            end: Stamp::from_nanos((number + 1) * 1_000_000_000),
            elapsed: Duration::from_secs(number + 1),
            tally,
            ended: 0,
            progress: 0.0,
            connections: 1,
            connecting: 0,
            in_flight: 0,
            backlog: 0,
            threads: Vec::new(),
        }
    }

    fn cells(block: &str, row: usize) -> Vec<&str> {
        let line = block.lines().nth(2 + row).unwrap();
        line[14..].split_whitespace().collect()
    }

    /// 2^n - 1 is the highest value of its bucket, so that percentiles come out exactly.
    #[test]
    fn the_window_forgets_and_the_whole_does_not() {
        let mut realtime = Realtime::new(Duration::from_secs(2), &[50.0], LatencyFrom::Schedule);
        let line = Progress::default();
        let (slow, fast) = ((1 << 22) - 1, (1 << 20) - 1);
        realtime.interval(&second(0, 10, 30, slow), &line).unwrap();
        realtime.interval(&second(1, 10, 0, fast), &line).unwrap();
        let block = realtime.interval(&second(2, 20, 0, fast), &line).unwrap();
        assert!(block.starts_with("[RUN #0"));
        assert_eq!(cells(&block, 0), ["20.00", "0.00", "1.049"]);
        assert_eq!(cells(&block, 1), ["15.00", "0.00", "1.049"], "{block}");
        assert_eq!(cells(&block, 2), ["23.33", "42.86", "4.194"], "{block}");
    }

    #[test]
    fn a_silent_second_has_no_latency() {
        let mut realtime = Realtime::new(Duration::ZERO, &[50.0, 99.9], LatencyFrom::Send);
        let block = realtime
            .interval(&second(0, 0, 0, 1), &Progress::default())
            .unwrap();
        assert_eq!(cells(&block, 0), ["0.00", "0.00", "---", "---"]);
        assert!(block.contains("p99.9 ms"));
    }
}
