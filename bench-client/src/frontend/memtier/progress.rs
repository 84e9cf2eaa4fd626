//! The progress lines on stderr, one per second, each ended by a carriage return alone.
//!
//! ```text
//! [RUN #1 50%,   1 secs]  2 threads  5 conns:        1020 ops,    1007 (avg:    1007) ops/sec,
//!     42.99KB/sec (avg: 42.99KB/sec),  0.15 (avg:  0.15) msec latency\r      (in one line)
//! ```
//!
//! ` N conn errors` follows `conns` when there were any, and `conns` counts those of one thread, as
//! in the original. Rates are of good operations; without operations the latency reads 0.00.

use std::fmt;
use std::time::Duration;

use super::model::{LatencyFrom, Run, float, per_second};
use super::staircase::StaircasePlan;
use crate::record::{Interval, Phase, Tally};

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Number of the run, from 1.
    pub run: u32,
    /// How far it is, 0 to 100.
    pub percent: f64,
    /// Seconds of the measured part, rounded down.
    pub seconds: u64,
    /// Threads at work.
    pub threads: u32,
    /// Connections of each thread.
    pub connections: u32,
    /// Connections that failed or were lost.
    pub connection_errors: u64,
    /// Good operations so far.
    pub ops: u64,
    /// Good operations per second in the last second and so far.
    pub rate: Pair,
    /// Bytes per second in the last second and so far.
    pub bytes: Pair,
    /// Mean latency in milliseconds in the last second and so far.
    pub latency_ms: Pair,
}

/// A number for the last second, and for the run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pair {
    /// Of the last second.
    pub last: f64,
    /// Of the run so far.
    pub average: f64,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[RUN #{} {:.0}%, {:3} secs] {:2} threads {:2} conns",
            self.run, self.percent, self.seconds, self.threads, self.connections
        )?;
        if self.connection_errors > 0 {
            write!(f, " {} conn errors", self.connection_errors)?;
        }
        write!(
            f,
            ": {:11} ops, {:7.0} (avg: {:7.0}) ops/sec, {}/sec (avg: {}/sec), ",
            self.ops,
            self.rate.last.floor(),
            self.rate.average.floor(),
            size(self.bytes.last),
            size(self.bytes.average)
        )?;
        write!(
            f,
            "{:5.2} (avg: {:5.2}) msec latency",
            self.latency_ms.last, self.latency_ms.average
        )
    }
}

/// Bytes in the unit that suits, of 1024 each; never below `KB`.
#[must_use]
pub fn size(bytes: f64) -> String {
    let kilo = bytes / 1024.0;
    match kilo {
        _ if kilo >= 1024.0 * 1024.0 => format!("{:.2}GB", kilo / (1024.0 * 1024.0)),
        _ if kilo >= 1024.0 => format!("{:.2}MB", kilo / 1024.0),
        _ => format!("{kilo:.2}KB"),
    }
}

/// Makes the lines of one run from its intervals.
#[derive(Clone, Debug)]
pub struct Meter {
    line: Progress,
    from: LatencyFrom,
    stairs: Option<StaircasePlan>,
    bytes: u64,
    latency_ns: u128,
    latencies: u64,
}

impl Meter {
    /// For run `run` with this many threads, and connections of each.
    #[must_use]
    pub fn new(run: u32, threads: u32, connections: u32, from: LatencyFrom) -> Self {
        Self {
            line: Progress {
                run,
                threads,
                connections,
                ..Progress::default()
            },
            from,
            stairs: None,
            bytes: 0,
            latency_ns: 0,
            latencies: 0,
        }
    }

    /// The same with clients that come step by step.
    #[must_use]
    pub fn with_staircase(self, stairs: Option<StaircasePlan>) -> Self {
        Self { stairs, ..self }
    }

    /// The line after an interval. `None` in the warm-up, and after the rest of a second at the
    /// end of a run: its rates would say little, and the last line follows at once.
    pub fn interval(&mut self, interval: &Interval) -> Option<&Progress> {
        let connects = &interval.tally.connects;
        self.line.connection_errors += connects.failed + connects.lost;
        if interval.phase == Phase::Warmup {
            return None;
        }
        let length = Duration::from_nanos(interval.end.saturating_since(interval.begin));
        let outcomes = interval.tally.outcomes();
        let good = outcomes.hits + outcomes.misses;
        let bytes = class_bytes(&interval.tally);
        let (count, sum_ns) = latency(&interval.tally, self.from);
        self.bytes += bytes;
        self.latencies += count;
        self.latency_ns += sum_ns;
        let line = &mut self.line;
        line.percent = interval.progress * 100.0;
        line.seconds = interval.elapsed.as_secs();
        if let Some(stairs) = &self.stairs {
            // Those of the second that begins, as the original has it.
            let clients = stairs.active(line.seconds).per_thread;
            line.connections = u32::try_from(clients).unwrap_or(u32::MAX);
        }
        line.ops += good;
        line.rate.average = per_second(line.ops, interval.elapsed);
        line.bytes.average = per_second(self.bytes, interval.elapsed);
        line.latency_ms.average = mean_ms(self.latency_ns, self.latencies);
        if length < WHOLE_SECOND {
            return None;
        }
        line.rate.last = per_second(good, length);
        line.bytes.last = per_second(bytes, length);
        line.latency_ms.last = mean_ms(sum_ns, count);
        Some(&self.line)
    }

    /// The last line of the run: no thread at work, and the averages of the whole.
    #[must_use]
    pub fn finish(mut self, run: &Run) -> Progress {
        let totals = run.totals();
        let latency = totals.latency(self.from);
        let line = &mut self.line;
        if run.is_whole() {
            line.percent = 100.0;
        }
        line.seconds = run.duration.as_secs();
        line.threads = 0;
        line.connection_errors = run.connection_errors;
        line.ops = totals.good();
        line.rate.average = run.rate();
        line.bytes.average = per_second(totals.bytes_in + totals.bytes_out, run.duration);
        line.latency_ms.average = latency.mean_ns() / 1e6;
        self.line
    }
}

fn class_bytes(tally: &Tally) -> u64 {
    let classes = tally.classes.iter();
    classes.map(|class| class.bytes_in + class.bytes_out).sum()
}

/// Count and sum of the latency that is shown.
fn latency(tally: &Tally, from: LatencyFrom) -> (u64, u128) {
    let classes = tally.classes.iter().map(|class| {
        if from == LatencyFrom::Send || class.response.is_empty() {
            &class.service
        } else {
            &class.response
        }
    });
    classes.fold((0, 0), |(count, sum), latency| {
        (count + latency.count(), sum + latency.sum_ns())
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a mean needs no more than 52 bits"
)]
fn mean_ms(sum_ns: u128, count: u64) -> f64 {
    if count == 0 {
        0.0
    } else {
        sum_ns as f64 / float(count) / 1e6
    }
}

/// Intervals as long as this are shown.
const WHOLE_SECOND: Duration = Duration::from_millis(900);

#[cfg(test)]
mod tests {
    use kvlab_timing::Stamp;

    use super::*;

    /// Lines of golden cases 04, 02, 24 and 26, without the numbers that are none.
    #[test]
    fn lines_are_those_of_the_original() {
        let line = Progress {
            run: 1,
            percent: 33.3,
            seconds: 0,
            threads: 1,
            connections: 2,
            connection_errors: 0,
            ops: 200,
            rate: Pair {
                last: 200.4,
                average: 200.9,
            },
            bytes: Pair {
                last: 8.57 * 1024.0,
                average: 8.57 * 1024.0,
            },
            latency_ms: Pair {
                last: 0.47,
                average: 0.47,
            },
        };
        assert_eq!(
            line.to_string(),
            "[RUN #1 33%,   0 secs]  1 threads  2 conns:         200 ops,     200 (avg:     200) \
             ops/sec, 8.57KB/sec (avg: 8.57KB/sec),  0.47 (avg:  0.47) msec latency"
        );
        let line = Progress {
            run: 2,
            percent: 100.0,
            seconds: 1,
            threads: 0,
            connections: 25,
            ops: 100_000,
            rate: Pair {
                last: 57_152.0,
                average: 66_772.0,
            },
            bytes: Pair {
                last: 7.69 * 1024.0 * 1024.0,
                average: 9.0 * 1024.0 * 1024.0,
            },
            latency_ms: Pair {
                last: 1.75,
                average: 1.49,
            },
            ..line
        };
        assert_eq!(
            line.to_string(),
            "[RUN #2 100%,   1 secs]  0 threads 25 conns:      100000 ops,   57152 (avg:   66772) \
             ops/sec, 7.69MB/sec (avg: 9.00MB/sec),  1.75 (avg:  1.49) msec latency"
        );
        let line = Progress {
            run: 1,
            percent: 41.0,
            seconds: 3,
            threads: 1,
            connections: 4,
            connection_errors: 4,
            ops: 980,
            rate: Pair {
                last: 195.0,
                average: 326.0,
            },
            bytes: Pair {
                last: 8.4 * 1024.0,
                average: 13.89 * 1024.0,
            },
            latency_ms: Pair {
                last: 0.28,
                average: 27.46,
            },
        };
        assert_eq!(
            line.to_string(),
            "[RUN #1 41%,   3 secs]  1 threads  4 conns 4 conn errors:         980 ops,     195 \
             (avg:     326) ops/sec, 8.40KB/sec (avg: 13.89KB/sec),  0.28 (avg: 27.46) msec latency"
        );
    }

    #[test]
    fn sizes_change_their_unit_at_1024() {
        for (bytes, text) in [
            (0.0, "0.00KB"),
            (1_048_575.0, "1024.00KB"),
            (1_048_576.0, "1.00MB"),
            (1_073_741_824.0, "1.00GB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn a_silent_second_reads_zero_and_leaves_the_average() {
        let mut meter = Meter::new(1, 2, 5, LatencyFrom::Schedule);
        let mut tally = Tally::new(1);
        let class = &mut tally.classes[0];
        (class.outcomes.hits, class.outcomes.errors) = (100, 7);
        (class.bytes_in, class.bytes_out) = (1_024, 1_024);
        for _ in 0..100 {
            class.service.record(2_000_000);
        }
        let interval = |number: u64, tally: Tally| Interval {
            index: number,
            phase: Phase::Measured,
            begin: Stamp::from_nanos(number * 1_000_000_000),
            end: Stamp::from_nanos((number + 1) * 1_000_000_000),
            elapsed: Duration::from_secs(number + 1),
            tally,
            ended: 0,
            progress: 0.25,
            connections: 10,
            connecting: 0,
            in_flight: 0,
            backlog: 0,
            threads: Vec::new(),
        };
        let line = meter.interval(&interval(0, tally)).unwrap().to_string();
        assert!(
            line.contains("  100 ops,     100 (avg:     100) ops/sec, 2.00KB/sec"),
            "{line}"
        );
        let mut rest = interval(1, Tally::new(1));
        rest.end = Stamp::from_nanos(1_100_000_000);
        assert!(meter.clone().interval(&rest).is_none(), "a tenth of it");
        let line = meter
            .interval(&interval(1, Tally::new(1)))
            .unwrap()
            .to_string();
        assert!(
            line.ends_with(
                "100 ops,       0 (avg:      50) ops/sec, 0.00KB/sec (avg: 1.00KB/sec),  0.00 \
                 (avg:  2.00) msec latency"
            ),
            "{line}"
        );
    }
}
