//! What truly happened in a run, from the server's rows alone.
//!
//! Nothing can be paired with the requests of a foreign tool, so whole distributions are compared:
//!
//! * the server's sojourn times (written - read) of the load, sorted; what is no load (handshake,
//!   introspection, cluster tending) is left out by the name of its command;
//! * for a load with a rate, the response times of its timetable: arrivals at even distances from
//!   the first request on, through the very freezes of this run, simulated with the connections and
//!   slots of the tool and once more without such limits.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

use kvlab_mock_server::latency::{Distribution, LatencyRules, Selector};
use kvlab_mock_server::stamp::{ServerRow, Truth};
use kvlab_timing::Stamp;
use serde::Serialize;

use super::mock::Mock;
use super::scenario::Aim;
use crate::check::Spread;
use crate::subject::Shape;
use crate::truth::line::LineRule;
use crate::truth::schedule::{Arrival, Pool, Server, simulate};
use crate::truth::timing::Freezes;
use crate::truth::{Quantile, Sorted};

/// What the server saw of a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Requests of the load that it read.
    pub read: u64,
    /// Those of them that it answered.
    pub answered: u64,
    /// Its sojourn times of those, sorted.
    pub sojourn: Sorted,
    /// The largest sojourn of a request that the tool must have waited for: the last ones of each
    /// connection may have been under way when it stopped.
    pub longest_settled_ns: u64,
    /// What it was late by.
    pub injection: Spread,
    /// When the requests of the load were read, in order.
    pub reads: Vec<Stamp>,
    /// When the first one was.
    pub first_read: Stamp,
    /// When the last one was.
    pub last_read: Stamp,
    /// When the last reply was written.
    pub last_written: Stamp,
    /// The connections that carried load, by their numbers on the server.
    pub connections: BTreeSet<u64>,
}

impl Seen {
    /// Reads the rows of a server. `depth` requests of a connection may be under way when a tool
    /// stops.
    #[must_use]
    pub fn new(truth: Truth) -> Self {
        let mut rows = truth.rows;
        rows.retain(|row| !is_control(row.command));
        rows.sort_by_key(|row| row.read);
        let answered = rows.iter().filter(|row| row.answered);
        let sojourn = |row: &ServerRow| row.written.saturating_since(row.read);
        let late = answered
            .clone()
            .map(|row| row.written.saturating_since(row.due));
        Self {
            read: rows.len() as u64,
            answered: answered.clone().count() as u64,
            longest_settled_ns: settled(&rows).map(sojourn).max().unwrap_or(0),
            injection: Spread::from(&late.collect::<Sorted>()),
            reads: rows.iter().map(|row| row.read).collect(),
            first_read: rows.first().map_or(Stamp::ZERO, |row| row.read),
            last_read: rows.last().map_or(Stamp::ZERO, |row| row.read),
            last_written: answered
                .clone()
                .map(|row| row.written)
                .max()
                .unwrap_or(Stamp::ZERO),
            connections: rows.iter().map(|row| row.connection).collect(),
            sojourn: answered.map(sojourn).collect(),
        }
    }

    /// Requests read per second.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.rate_since(self.first_read)
    }

    /// Requests read per second, where the first was due at `start`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate for a report")]
    pub fn rate_since(&self, start: Stamp) -> Option<f64> {
        let span = self.last_read.saturating_since(start);
        (self.read > 1 && span > 0).then(|| (self.read - 1) as f64 * 1e9 / span as f64)
    }

    /// When the first request of a timetable of this rate was due, as far as the reads tell: no
    /// request is read before it is due, so no later than any request allows. A first one that the
    /// machine held up does not shift the timetable; nor does a tool that hurries, by more than
    /// [`MOST_SHIFT_NS`].
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "moments in whole nanoseconds"
    )]
    pub fn start(&self, rate: f64) -> Stamp {
        let first = self.first_read.as_nanos();
        let due_after = |number: usize| (number as f64 * 1e9 / rate) as u64;
        let starts = self.reads.iter().enumerate();
        let starts = starts.map(|(number, read)| read.as_nanos().saturating_sub(due_after(number)));
        let earliest = first.saturating_sub(MOST_SHIFT_NS);
        Stamp::from_nanos(starts.min().unwrap_or(first).clamp(earliest, first))
    }
}

/// How far a timetable may begin before the first request was read.
pub const MOST_SHIFT_NS: u64 = 50_000_000;

/// Whether a command is no part of a load.
fn is_control(command: &str) -> bool {
    // Subcommands stand behind a bar: `config|get`.
    let command = command.split('|').next().unwrap_or(command);
    CONTROL.contains(&command)
}

/// What clients send before and beside their load: Redis, then Aerospike.
const CONTROL: [&str; 13] = [
    "config", "hello", "auth", "select", "client", "info", "command", "cluster", "readonly",
    "quit", "security", "unknown", "reset",
];

/// The moment the last request of each connection was read.
fn last_rows(rows: &[ServerRow]) -> HashMap<(SocketAddr, u32), Stamp> {
    let mut last = HashMap::new();
    for row in rows {
        last.insert((row.peer, row.ordinal), row.read);
    }
    last
}

/// Answered rows that were followed by another request of their connection.
fn settled(rows: &[ServerRow]) -> impl Iterator<Item = &ServerRow> {
    let last = last_rows(rows);
    rows.iter().filter(move |row| {
        let end = last.get(&(row.peer, row.ordinal));
        row.answered && end.is_some_and(|end| row.written <= *end)
    })
}

/// The truth that one report is held against.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Where the true times come from.
    pub source: Source,
    /// The true times, sorted.
    pub times: Sorted,
    /// The timetable without limits of the client.
    pub unlimited: Option<Sorted>,
    /// Requests that were due: those of the timetable, or those that the server read.
    pub due: u64,
    /// When the first of them was.
    pub start: Stamp,
    /// Whether the tool keeps no rate, though it is held against a timetable.
    pub is_borrowed: bool,
    /// What the server saw.
    pub seen: Seen,
}

/// Where true times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The server's stamps of the same run.
    Sojourn,
    /// The timetable, simulated.
    Timetable,
}

impl Facts {
    /// The truth for a run of a load of this shape.
    #[must_use]
    pub fn new(seen: Seen, aim: Aim, shape: &Shape, mock: &Mock, started: Stamp) -> Self {
        let Aim::Timetable { rate } = aim else {
            return Self {
                source: Source::Sojourn,
                times: seen.sojourn.clone(),
                unlimited: None,
                due: seen.read,
                start: seen.first_read,
                is_borrowed: false,
                seen,
            };
        };
        let rate = shape.rate.unwrap_or(rate);
        let is_borrowed = shape.rate.is_none();
        let asked = shape.due().filter(|_| !is_borrowed);
        let start = match is_borrowed {
            true => seen.first_read,
            false => seen.start(rate),
        };
        let span = seen.last_written.saturating_since(start);
        let count = asked.unwrap_or_else(|| arrivals_within(rate, span));
        let arrivals = arrivals(count.min(MOST_ARRIVALS), rate, start, mock);
        let pool = |connections: Vec<u64>, depth: u32| Pool {
            connections,
            depth: usize::try_from(depth).unwrap_or(usize::MAX),
            batch: shape.batch,
        };
        let server = Server {
            freezes: Freezes::new(started, &mock.freezes),
            line: mock.queue.as_ref().map(|queue| LineRule {
                servers: queue.servers,
                limit: queue.limit,
            }),
            ..Server::default()
        };
        // Those that were never made have no number, and no freeze of their own.
        let made = seen.connections.iter().copied();
        let made = made.chain(NO_NUMBER..);
        let slots = pool(made.take(shape.connections as usize).collect(), shape.depth);
        let times = responses(&server, slots, &arrivals);
        let many = pool((NO_NUMBER..).take(arrivals.len()).collect(), 1);
        Self {
            source: Source::Timetable,
            unlimited: Some(responses(&server, many, &arrivals)),
            times,
            due: if is_borrowed { seen.read } else { count },
            start,
            is_borrowed,
            seen,
        }
    }

    /// A true quantile.
    #[must_use]
    pub fn quantile(&self, q: Quantile) -> Option<u64> {
        self.times.quantile(q)
    }

    /// The true mean.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a mean for a report")]
    pub fn mean(&self) -> Option<f64> {
        (!self.times.is_empty()).then(|| self.times.sum() as f64 / self.times.len() as f64)
    }
}

/// From here on the numbers of connections that the server never saw.
const NO_NUMBER: u64 = 1 << 48;

/// Arrivals at a rate in a span of nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a number of requests; the cast saturates"
)]
fn arrivals_within(rate: f64, span_ns: u64) -> u64 {
    (rate * span_ns as f64 / 1e9) as u64
}

/// The timetable. Delays take all quantiles of the law at even distances, in an order without
/// pattern: closer to the law than any sample of it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "moments and delays in whole nanoseconds"
)]
fn arrivals(count: u64, rate: f64, first: Stamp, mock: &Mock) -> Vec<Arrival> {
    let law = single_law(&mock.latency);
    let service = mock.queue.as_ref().map(|queue| queue.service.clone());
    let service = service.unwrap_or_default();
    let share = |place: u64| (place as f64 + 0.5) / count as f64;
    let places = (shuffled(count, 1), shuffled(count, 2));
    (0..count)
        .zip(places.0.into_iter().zip(places.1))
        .map(|(number, (delay, work))| Arrival {
            intended_ns: first.as_nanos() + (number as f64 * 1e9 / rate) as u64,
            drawn_ns: law.quantile_ns(share(delay)).round() as u64,
            service_ns: service.quantile_ns(share(work)).round() as u64,
            is_data: true,
            is_too_large: false,
            row: 0,
            connection: 0,
        })
        .collect()
}

/// The numbers below `count` in an order without pattern, always the same one for a `salt`: by a mix of
/// their bits (splitmix64).
fn shuffled(count: u64, salt: u64) -> Vec<u64> {
    let mix = |number: u64| {
        let z = (number ^ salt << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    };
    let mut numbers: Vec<u64> = (0..count).collect();
    numbers.sort_unstable_by_key(|number| mix(*number));
    numbers
}

/// The law of all requests; several rules cannot be told apart without the tool's keys and commands,
/// and the first one stands for all.
fn single_law(latency: &LatencyRules) -> Distribution {
    let rules = latency.rules();
    let for_all = rules.iter().find(|rule| rule.selector == Selector::DATA);
    for_all
        .or(rules.first())
        .map_or(Distribution::None, |rule| rule.law.clone())
}

fn responses(server: &Server, pool: Pool, arrivals: &[Arrival]) -> Sorted {
    let served = simulate(server, &[(pool, arrivals.to_vec())]);
    arrivals
        .iter()
        .zip(served.into_iter().flatten())
        .map(|(arrival, served)| served.received_ns.saturating_sub(arrival.intended_ns))
        .collect()
}

/// Longer timetables are cut, which changes no quantile of a steady load.
const MOST_ARRIVALS: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::mock::MockTexts;
    use super::*;
    use crate::truth::join::tests::pair;

    const MS: u64 = 1_000_000;

    fn row(port: u16, command: &'static str, read: u64, written: u64) -> ServerRow {
        let at = Stamp::from_nanos;
        ServerRow {
            peer: SocketAddr::from(([127, 0, 0, 1], port)),
            connection: u64::from(port),
            command,
            read: at(read),
            due: at(written - 2),
            written: at(written),
            ..pair(port, 0, 0).server
        }
    }

    #[test]
    fn only_load_is_seen() {
        let mut lost = row(1, "get", 50, 90);
        lost.answered = false;
        let rows = vec![
            row(1, "get", 10, 30),
            row(1, "config|get", 0, 500),
            lost,
            row(2, "get", 20, 25),
            row(1, "get", 95, 400),
        ];
        let seen = Seen::new(Truth {
            rows,
            ..Truth::default()
        });
        assert_eq!(
            (seen.read, seen.answered, seen.connections.len()),
            (4, 3, 2)
        );
        assert_eq!(seen.sojourn.samples(), [5, 20, 305]);
        // The last request of a connection may have been under way when the tool stopped.
        assert_eq!(seen.longest_settled_ns, 20);
        assert_eq!(seen.injection.max_ns, 2);
        let moments = [seen.first_read, seen.last_read, seen.last_written];
        assert_eq!(moments.map(Stamp::as_nanos), [10, 95, 400]);
        // Three gaps in 85 ns.
        assert!((seen.rate().unwrap() - 3e9 / 85.0).abs() < 1.0);
    }

    #[test]
    fn a_timetable_begins_no_later_than_any_request_allows() {
        // Due each ms from 100 ms on; the first is held up by 3 ms, the second by 1.
        let rows = [103, 102, 102, 103, 104].map(|read| row(1, "get", read * MS, read * MS + 9));
        let seen = Seen::new(Truth {
            rows: rows.to_vec(),
            ..Truth::default()
        });
        assert_eq!(seen.first_read.as_nanos(), 102 * MS);
        assert_eq!(seen.start(1000.0).as_nanos(), 100 * MS);
        // 5 of 4 gaps in the 4 ms since then.
        assert_eq!(seen.rate_since(seen.start(1000.0)), Some(1000.0));
        // A tool that is ten times as fast does not move it far.
        assert_eq!(seen.start(10.0).as_nanos(), 52 * MS);
    }

    fn shape(connections: u32, depth: u32, rate: Option<f64>) -> Shape {
        Shape {
            connections,
            depth,
            batch: false,
            rate,
            duration: Some(Duration::from_secs(20)),
            requests: None,
        }
    }

    fn frozen() -> Mock {
        let texts = MockTexts {
            latency: &["constant(1ms)".to_owned()],
            freezes: &["every=2s,for=150ms,first=1s".to_owned()],
            ..MockTexts::default()
        };
        Mock::parse(&texts, 0).unwrap()
    }

    #[test]
    fn a_freeze_has_the_quantiles_of_its_uniform_law() {
        // Arrivals each ms from the server's start on. Of 2000 in a period, those of 150 ms wait for
        // the end of the freeze and those of the ms before it, due in it, too: 151 waits of 1 to 151
        // ms. 1 % are 20 of 2000: the p99 is the 21st largest wait, 131 ms.
        let seen = Seen::default();
        let aim = Aim::Timetable { rate: 1000.0 };
        let shape = shape(10, 64, Some(1000.0));
        let facts = Facts::new(seen, aim, &shape, &frozen(), Stamp::ZERO);
        assert_eq!((facts.due, facts.times.len()), (20_000, 20_000));
        assert_eq!(facts.quantile(Quantile::P50), Some(MS));
        assert_eq!(facts.quantile(Quantile::P90), Some(MS));
        let p99 = facts.quantile(Quantile::P99).unwrap();
        assert!(p99.abs_diff(131 * MS) <= MS, "{p99}");
        assert_eq!(facts.unlimited.as_ref(), Some(&facts.times));
        assert!(!facts.is_borrowed);
    }

    #[test]
    fn few_slots_queue_and_the_timetable_without_limits_does_not() {
        let aim = Aim::Timetable { rate: 1000.0 };
        let narrow = shape(10, 1, Some(1000.0));
        let facts = Facts::new(Seen::default(), aim, &narrow, &frozen(), Stamp::ZERO);
        let unlimited = facts.unlimited.as_ref().unwrap();
        assert!(facts.times.sum() > unlimited.sum());
    }

    #[test]
    fn a_tool_without_a_rate_is_held_against_the_timetable_of_its_time() {
        let seen = Seen {
            read: 77,
            first_read: Stamp::from_nanos(0),
            last_written: Stamp::from_nanos(4_000 * MS),
            ..Seen::default()
        };
        let aim = Aim::Timetable { rate: 1000.0 };
        let facts = Facts::new(seen, aim, &shape(10, 1, None), &frozen(), Stamp::ZERO);
        assert_eq!((facts.times.len(), facts.due), (4_000, 77));
        assert!(facts.is_borrowed);
    }

    #[test]
    fn delays_of_a_timetable_take_every_quantile_of_the_law_once() {
        let texts = MockTexts {
            latency: &["uniform(0ms,10ms)".to_owned()],
            queue: Some("servers=1,service=uniform(0ms,10ms)"),
            ..MockTexts::default()
        };
        let mock = Mock::parse(&texts, 0).unwrap();
        let list = arrivals(1000, 100.0, Stamp::ZERO, &mock);
        let drawn: Sorted = list.iter().map(|arrival| arrival.drawn_ns).collect();
        let services: Sorted = list.iter().map(|arrival| arrival.service_ns).collect();
        let expected: Vec<u64> = (0..1000).map(|n| n * 10_000 + 5_000).collect();
        assert_eq!(drawn.samples(), expected);
        assert_eq!(services, drawn);
        let together = list.iter().filter(|one| one.drawn_ns == one.service_ns);
        assert!(together.count() < 10);
        assert_eq!(list[999].intended_ns, 9_990 * MS);
        // No runs: about half of all steps go up.
        let steps = list.windows(2);
        let up = steps.filter(|pair| pair[0].drawn_ns < pair[1].drawn_ns);
        assert!((400..600).contains(&up.count()));
        assert!(arrivals(0, 1.0, Stamp::ZERO, &mock).is_empty());
    }
}
