//! Attempts by the arithmetic of a limit, and what is found in them.

use kvlab_timing::Stamp;

use super::*;
use crate::engine::worker::NAMELESS;
use crate::record::{ErrorKind, SocketEnd};

const MILLI: u64 = 1_000_000;
const START: u64 = 7_000_000_000;

fn row(connected: u64) -> ConnectRow {
    let at = Stamp::from_nanos(START + connected);
    ConnectRow {
        begun: at,
        wanted: at,
        connected: Some(at),
        ..ConnectRow::begin(ConnectKind::Load, NAMELESS.into())
    }
}

/// Connected at a moment, asked at once, answered at another; it lasts to the end.
fn served(connected: u64, reply: u64) -> ConnectRow {
    let at = |ns| Some(Stamp::from_nanos(START + ns));
    ConnectRow {
        logged_in: at(reply),
        first_sent: at(connected),
        first_reply: at(reply),
        ended: at(1_000_000 * MILLI),
        cause: Some(Cause::End),
        ..row(connected)
    }
}

fn away(connected: u64, cause: Cause) -> ConnectRow {
    ConnectRow {
        ended: Some(Stamp::from_nanos(START + connected)),
        cause: Some(cause),
        ..row(connected)
    }
}

/// The rule: connection n of a full bucket waits max(0, (n - B) / r).
fn all_at_once(n: u64, burst: u64, token_ns: u64, service: impl Fn(u64) -> u64) -> Vec<ConnectRow> {
    (1..=n)
        .map(|i| served(0, i.saturating_sub(burst) * token_ns + service(i)))
        .collect()
}

/// A bucket in whole numbers: `unit` parts make a token, one part comes per nanosecond.
struct Bucket {
    parts: u64,
    last: u64,
    capacity: u64,
    unit: u64,
}

impl Bucket {
    fn new(burst: u64, unit: u64) -> Self {
        Self {
            parts: burst * unit,
            last: 0,
            capacity: burst * unit,
            unit,
        }
    }

    fn take(&mut self, now: u64) -> bool {
        self.parts = (self.parts + now - self.last).min(self.capacity);
        self.last = now;
        let some = self.parts >= self.unit;
        if some {
            self.parts -= self.unit;
        }
        some
    }
}

#[test]
fn a_delaying_bucket_is_found_exactly_where_the_moments_are_exact() {
    let rows = all_at_once(1_000, 200, 2_500_000, |_| 300_000);
    let found = Limits::find(&rows).bucket.unwrap();
    assert_eq!(found.to_string(), "200 per 500 ms (burst 200, 400/s)");
    assert_eq!(found.form, LimitForm::Delay);
    assert!((found.measured_burst - 200.0).abs() < 1e-6, "{found:?}");
    assert!(
        (found.measured_per_second - 400.0).abs() < 1e-6,
        "{found:?}"
    );
    // Odd numbers stay odd: a burst of 37, one in 3.3 ms.
    let found = Limits::find(&all_at_once(90, 37, 3_300_000, |_| 1_000)).bucket;
    let found = found.unwrap();
    assert_eq!(found.burst, 37);
    assert!((found.per_second - 303.03).abs() < 0.4, "{found:?}");
}

#[test]
fn noise_of_a_machine_does_not_hide_the_round_numbers() {
    // Up to 4 ms more, without pattern.
    let noise = |i: u64| 200_000 + crate::random::mix(i) % (4 * MILLI);
    let found = Limits::find(&all_at_once(1_000, 200, 2_500_000, noise)).bucket;
    let found = found.unwrap();
    assert_eq!(found.to_string(), "200 per 500 ms (burst 200, 400/s)");
    assert!((found.measured_per_second - 400.0).abs() < 4.0, "{found:?}");
}

#[test]
fn what_is_not_known_of_the_first_moment_widens_what_is_rounded() {
    // Of 1,000 connects begun at 0 the client notices the first after 40 ms, and the server took it
    // after 25 ms: its tokens come 10 numbers later than the connect calls let expect.
    let late = 25 * MILLI;
    let noise = |i: u64| 200_000 + crate::random::mix(i) % (4 * MILLI);
    let rows: Vec<_> = all_at_once(1_000, 200, 2_500_000, |i| late + noise(i))
        .into_iter()
        .map(|row| ConnectRow {
            connected: Some(Stamp::from_nanos(START + 40 * MILLI)),
            first_sent: Some(Stamp::from_nanos(START + 40 * MILLI)),
            first_reply: row
                .first_reply
                .max(Some(Stamp::from_nanos(START + 41 * MILLI))),
            ..row
        })
        .collect();
    let found = Limits::find(&rows).bucket.unwrap();
    assert_eq!(found.to_string(), "200 per 500 ms (burst 200, 400/s)");
    assert!((found.measured_burst - 190.0).abs() < 3.0, "{found:?}");
}

#[test]
fn a_paced_ramp_faster_than_the_bucket_finds_it_too() {
    // One connection per millisecond, a burst of 20, a token per 4 ms: connection n, from 1, comes at
    // n - 1 ms and has its token at (n - 20) * 4 ms, if that is later.
    let rows: Vec<ConnectRow> = (1..=100_u64)
        .map(|n| {
            let came = (n - 1) * MILLI;
            let token = n.saturating_sub(20) * 4 * MILLI;
            served(came, came.max(token) + 50_000)
        })
        .collect();
    let found = Limits::find(&rows).bucket.unwrap();
    assert_eq!(found.to_string(), "20 per 80 ms (burst 20, 250/s)");
}

#[test]
fn nothing_is_claimed_where_no_bucket_is_seen() {
    // No limit at all.
    let free: Vec<_> = (0..500)
        .map(|n| served(n * 1_000, n * 1_000 + 90_000))
        .collect();
    assert_eq!(Limits::find(&free), Limits::default());
    // A server that takes its connections one by one.
    let slow = all_at_once(200, 0, 5 * MILLI, |_| 10_000);
    assert_eq!(Limits::find(&slow), Limits::default());
    // A freeze of 300 ms over half of the connections.
    let frozen: Vec<_> = (0..200)
        .map(|n| served(0, if n < 100 { 50_000 } else { 300 * MILLI + n }))
        .collect();
    assert_eq!(Limits::find(&frozen), Limits::default());
    // Too few delayed ones.
    let few = all_at_once(205, 200, 2_500_000, |_| 300_000);
    assert_eq!(Limits::find(&few), Limits::default());
    assert_eq!(Limits::find(&[]), Limits::default());
}

#[test]
fn a_bucket_that_resets_is_found_from_who_was_served() {
    // 300 at once against a burst of 50 and a token per 2 ms. Whoever is reset comes again after
    // 20 to 60 ms.
    let mut bucket = Bucket::new(50, 2 * MILLI);
    let mut due: std::collections::BTreeSet<(u64, u64)> = (0..300).map(|n| (0, n)).collect();
    let mut rows = Vec::new();
    while let Some((now, who)) = due.pop_first() {
        if bucket.take(now) {
            rows.push(served(now, now + 40_000));
        } else {
            rows.push(away(now, Cause::of(SocketEnd::Reset, false)));
            let wait = 20 * MILLI + crate::random::mix(now ^ who) % (40 * MILLI);
            due.insert((now + wait, who));
        }
    }
    let found = Limits::find(&rows);
    let bucket = found.bucket.unwrap();
    assert_eq!(bucket.to_string(), "50 per 100 ms (burst 50, 500/s)");
    assert_eq!((bucket.form, found.cap), (LimitForm::Reset, None));
    let resets = rows
        .iter()
        .filter(|row| row.cause != Some(Cause::End))
        .count();
    assert_eq!(bucket.evidence, resets as u64);
}

#[test]
fn a_cap_is_told_from_a_bucket_by_its_lasting() {
    let line = Cause::ErrorLine(ErrorKind::new(b"ERR"));
    let mut rows: Vec<_> = (0..100).map(|_| served(0, 40_000)).collect();
    for attempt in 0..40 {
        rows.push(away(attempt * 25 * MILLI, line));
    }
    let found = Limits::find(&rows);
    assert_eq!(found.cap.unwrap().to_string(), "at most 100 connections");
    assert_eq!(found.cap.unwrap().form, LimitForm::ErrorLine);
    assert_eq!(found.bucket, None);
    // Refusals of one moment say neither how long it takes nor why.
    let mut rows: Vec<_> = (0..100).map(|_| served(0, 40_000)).collect();
    rows.extend((0..40).map(|_| away(0, line)));
    assert_eq!(Limits::find(&rows), Limits::default());
}

#[test]
fn repeated_syns_are_told_by_the_time_they_take() {
    let connected_after = |ms: u64| ConnectRow {
        begun: Stamp::from_nanos(START),
        ..served(ms * MILLI, ms * MILLI + 50_000)
    };
    let rows: Vec<_> = [0, 1, 2, 1_003, 1_020, 2_053, 3_015, 7_040, 15_500]
        .map(connected_after)
        .into_iter()
        .collect();
    let found = Limits::find(&rows);
    let seen = found.retries.iter().filter(|(_, connects)| *connects > 0);
    let expected = [(1, 2), (2, 1), (3, 1), (7, 1), (15, 1)];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    // Other slow connects are no repetitions.
    let rows: Vec<_> = [0, 1_003, 1_500, 2_400, 5_900].map(connected_after).into();
    assert_eq!(Limits::find(&rows).retries.total(), 0);
    let mut hung = row(0);
    (hung.connected, hung.cause) = (None, Some(Cause::TimedOut));
    assert_eq!(Limits::find(&[hung]).hung, 1);
}
