//! Biases: what a client that measures wrongly makes of an honest result.
//!
//! Each takes the result of the project's own load generator, rows and summary, and gives back what
//! a client with one fault would have handed over in its place. With
//! [`kvlab::runner::client::Bent`] it stands in for the honest client, on sockets and under virtual
//! time. Some change the rows and write the histograms anew from them, as a client would that
//! believes its own rows; others leave the rows alone and spoil what is recorded of them.

use kvlab_bench_client::RunResult;
use kvlab_bench_client::record::{ClientRow, Latency, Outcome, Outcomes, RowKind};

/// The clock of a request is started `ns` after its send.
pub(crate) fn clock_started_late(mut result: RunResult, ns: u64) -> RunResult {
    for row in measured(&mut result) {
        row.sent = row.sent.add_nanos(ns);
    }
    recorded_from_rows(result)
}

/// The clock of a request is stopped `ns` before its reply is there.
pub(crate) fn clock_stopped_early(mut result: RunResult, ns: u64) -> RunResult {
    for row in measured(&mut result) {
        row.received = row.received.map(|at| at.sub_nanos(ns));
    }
    recorded_from_rows(result)
}

/// The clock of a request runs on for `ns` after its reply was there.
pub(crate) fn clock_stopped_late(mut result: RunResult, ns: u64) -> RunResult {
    for row in measured(&mut result) {
        row.received = row.received.map(|at| at.add_nanos(ns));
    }
    recorded_from_rows(result)
}

/// The clock runs too fast by this many percent.
pub(crate) fn clock_runs_fast(mut result: RunResult, percent: u64) -> RunResult {
    for row in measured(&mut result) {
        let sent = row.sent;
        row.received = row
            .received
            .map(|at| at.add_nanos(at.saturating_since(sent) * percent / 100));
    }
    recorded_from_rows(result)
}

/// Of each thousand requests, one is not recorded.
pub(crate) fn one_sample_dropped_in_a_thousand(result: RunResult) -> RunResult {
    recorded(result, |samples| {
        let numbered = samples.into_iter().enumerate();
        numbered
            .filter(|(place, _)| place % 1000 != 499)
            .map(|(_, ns)| ns)
            .collect()
    })
}

/// Of each thousand requests, one is forgotten altogether: no row, no count, no sample.
pub(crate) fn one_request_forgotten_in_a_thousand(mut result: RunResult) -> RunResult {
    let mut place = 0;
    result.rows.retain(|row| {
        place += u64::from(row.kind == RowKind::Load);
        row.kind != RowKind::Load || place % 1000 != 500
    });
    counted_from_rows(recorded_from_rows(result))
}

/// Of each thousand requests, one is recorded twice.
pub(crate) fn one_sample_counted_twice_in_a_thousand(result: RunResult) -> RunResult {
    recorded(result, |samples| {
        let numbered = samples.into_iter().enumerate();
        numbered
            .flat_map(|(place, ns)| vec![ns; 1 + usize::from(place % 1000 == 499)])
            .collect()
    })
}

/// Every quantile is the sample one rank below it; the ends of the distribution are right.
pub(crate) fn quantiles_one_rank_low(result: RunResult) -> RunResult {
    recorded(result, |mut samples| {
        samples.sort_unstable();
        let last = samples.len() - 1;
        (0..=last)
            .map(|place| {
                samples[if place == last {
                    last
                } else {
                    place.saturating_sub(1)
                }]
            })
            .collect()
    })
}

/// Every quantile is the sample one rank above it; the ends of the distribution are right.
pub(crate) fn quantiles_one_rank_high(result: RunResult) -> RunResult {
    recorded(result, |mut samples| {
        samples.sort_unstable();
        let last = samples.len() - 1;
        (0..=last)
            .map(|place| samples[if place == 0 { 0 } else { (place + 1).min(last) }])
            .collect()
    })
}

/// What a request waited in the client is left out: the intended moment is that of the send.
pub(crate) fn queueing_left_out(mut result: RunResult) -> RunResult {
    for row in measured(&mut result) {
        row.intended = row.sent;
    }
    recorded_from_rows(result)
}

/// The rows are honest, but the response time that is recorded is the service time.
pub(crate) fn service_recorded_as_response(mut result: RunResult) -> RunResult {
    for class in &mut result.summary.tally.classes {
        class.response = class.service.clone();
    }
    result
}

/// After a stall the timetable begins anew: what waited longer than `ns` counts from its send.
pub(crate) fn timetable_bent_after_a_stall(mut result: RunResult, ns: u64) -> RunResult {
    for row in measured(&mut result) {
        if row.sent.saturating_since(row.intended) > ns {
            row.intended = row.sent;
        }
    }
    recorded_from_rows(result)
}

/// The response time of an attempt that followed another counts from its own send.
pub(crate) fn retries_timed_from_their_own_send(mut result: RunResult) -> RunResult {
    for row in measured(&mut result).filter(|row| row.attempt > 0) {
        row.intended = row.sent;
    }
    recorded_from_rows(result)
}

/// Latencies above `ns` are recorded as `ns`.
pub(crate) fn maximum_clamped(result: RunResult, ns: u64) -> RunResult {
    recorded(result, |samples| {
        samples.into_iter().map(|sample| sample.min(ns)).collect()
    })
}

/// Latencies above `ns` have no bucket and are lost.
pub(crate) fn range_too_small(result: RunResult, ns: u64) -> RunResult {
    recorded(result, |samples| {
        samples.into_iter().filter(|sample| *sample <= ns).collect()
    })
}

/// Latencies are recorded in whole steps of `ns`, rounded down.
pub(crate) fn resolution_too_coarse(result: RunResult, ns: u64) -> RunResult {
    recorded(result, |samples| {
        samples.into_iter().map(|sample| sample / ns * ns).collect()
    })
}

/// Every quantile is the mean; count, least, largest and (to a rounding) sum are right.
pub(crate) fn mean_in_place_of_quantiles(result: RunResult) -> RunResult {
    recorded(result, |mut samples| {
        samples.sort_unstable();
        let last = samples.len() - 1;
        let inner = &mut samples[1..last];
        let sum: u64 = inner.iter().sum();
        let (count, whole) = (inner.len() as u64, inner.len());
        inner.fill(sum / count);
        // What the division leaves over goes to one of them, so that the sum is right.
        inner[whole - 1] += sum % count;
        samples.sort_unstable();
        samples
    })
}

/// Of two threads with equally many requests, one is merged twice and the other not at all.
pub(crate) fn one_thread_merged_twice(result: RunResult) -> RunResult {
    recorded(result, |samples| {
        let half = samples.len().div_ceil(2);
        let first = &samples[..half];
        let again = &samples[..samples.len() - half];
        [first, again].concat()
    })
}

/// The two threads' distributions are averaged rank by rank in place of being pooled.
pub(crate) fn quantiles_of_threads_averaged(result: RunResult) -> RunResult {
    recorded(result, |samples| {
        let half = samples.len() / 2;
        let sorted = |samples: &[u64]| {
            let mut samples = samples.to_vec();
            samples.sort_unstable();
            samples
        };
        let (first, second) = (sorted(&samples[..half]), sorted(&samples[half..]));
        let pairs = second.iter().enumerate().map(|(place, theirs)| {
            let mine = first[place.min(half - 1)];
            mine.midpoint(*theirs)
        });
        pairs.flat_map(|ns| [ns, ns]).take(samples.len()).collect()
    })
}

/// The time of a batch is divided by its requests.
pub(crate) fn batch_time_divided(result: RunResult) -> RunResult {
    let depth = u64::from(result.summary.pipeline.depth.get());
    recorded(result, |samples| {
        samples.into_iter().map(|ns| ns / depth).collect()
    })
}

/// Requests that timed out are taken out: no row, no count.
pub(crate) fn time_outs_removed(mut result: RunResult) -> RunResult {
    result.rows.retain(|row| row.outcome != Outcome::Timeout);
    counted_from_rows(recorded_from_rows(result))
}

/// Requests that timed out stay in the rows and are counted nowhere.
pub(crate) fn time_outs_not_counted(mut result: RunResult) -> RunResult {
    for class in &mut result.summary.tally.classes {
        result.summary.due -= class.outcomes.timeouts;
        class.outcomes.timeouts = 0;
    }
    result
}

/// Requests that timed out pass for answered ones that took as long as the time-out.
pub(crate) fn time_outs_pass_for_answers(mut result: RunResult, timeout_ns: u64) -> RunResult {
    for row in measured(&mut result).filter(|row| row.outcome == Outcome::Timeout) {
        row.outcome = Outcome::Hit;
        row.received = Some(row.sent.add_nanos(timeout_ns));
    }
    counted_from_rows(recorded_from_rows(result))
}

/// A request that was due is neither sent nor counted.
pub(crate) fn one_arrival_skipped(mut result: RunResult) -> RunResult {
    result.summary.due -= 1;
    result
}

/// The warm-up is measured too.
pub(crate) fn warm_up_measured(mut result: RunResult) -> RunResult {
    for row in &mut result.rows {
        if row.kind == RowKind::Warmup {
            row.kind = RowKind::Load;
        }
    }
    result.summary.warmup = Outcomes::default();
    counted_from_rows(recorded_from_rows(result))
}

/// The client says of itself that it kept every moment of the timetable.
pub(crate) fn lag_hidden(mut result: RunResult) -> RunResult {
    let lag = &mut result.summary.tally.lag;
    let count = lag.count();
    *lag = Latency::default();
    (0..count).for_each(|_| lag.record(0));
    result
}

/// Nothing is changed, and the histograms are written anew: no bias at all.
pub(crate) fn recorded_from_rows(mut result: RunResult) -> RunResult {
    let mut lag = Latency::default();
    for row in measured(&mut result).filter(|row| row.outcome != Outcome::NotSent) {
        lag.record(row.sent.saturating_since(row.intended));
    }
    if result.summary.load.is_open() {
        result.summary.tally.lag = lag;
    }
    recorded(result, |samples| samples)
}

/// The rows of the measured part, attempts that were followed by another among them.
fn measured(result: &mut RunResult) -> impl Iterator<Item = &mut ClientRow> {
    let rows = result.rows.iter_mut();
    rows.filter(|row| row.kind == RowKind::Load)
}

/// Writes the latencies of all classes anew from the rows: what `recorder` makes of the samples of
/// a class, in the order of the rows.
fn recorded(mut result: RunResult, recorder: impl Fn(Vec<u64>) -> Vec<u64>) -> RunResult {
    let is_open = result.summary.load.is_open();
    let bent = |samples: Vec<u64>| {
        let mut latency = Latency::default();
        if samples.len() > 2 {
            recorder(samples)
                .into_iter()
                .for_each(|ns| latency.record(ns));
        } else {
            // Too few for any recorder to do harm.
            samples.into_iter().for_each(|ns| latency.record(ns));
        }
        latency
    };
    for (place, class) in result.summary.tally.classes.iter_mut().enumerate() {
        let timed = result.rows.iter().filter(|row| {
            let counts = row.kind == RowKind::Load && !row.retried && row.class.index() == place;
            counts && matches!(row.outcome, Outcome::Hit | Outcome::Miss)
        });
        let times = timed.filter_map(|row| {
            let received = row.received?;
            Some((
                received.saturating_since(row.sent),
                received.saturating_since(row.intended),
            ))
        });
        let (service, response): (Vec<u64>, Vec<u64>) = times.unzip();
        class.service = bent(service);
        if is_open {
            class.response = bent(response);
        }
    }
    result
}

/// Counts outcomes anew from the rows, as if nothing else had been due.
fn counted_from_rows(mut result: RunResult) -> RunResult {
    for (place, class) in result.summary.tally.classes.iter_mut().enumerate() {
        class.outcomes = Outcomes::default();
        for row in &result.rows {
            if row.kind == RowKind::Load && !row.retried && row.class.index() == place {
                class.outcomes.count(row.outcome);
            }
        }
    }
    result.summary.due = result.summary.tally.outcomes().total();
    result
}
