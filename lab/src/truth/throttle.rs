//! Throttles, worked through by plain arithmetic.
//!
//! ```text
//! level(t)  = min(capacity, level + amount * (t - as of) / window)
//! ask       : the request asks at the moment it would start otherwise; all throttles that select it
//! refuses   : one that refuses has fewer tokens than needed at that moment (of replies, not one);
//!             then nothing is taken anywhere
//! turn      = the first moment at which all its tokens have come, behind those who asked before
//! start     = the latest turn of the throttles that delay
//! reply     : takes its bytes as of its start; due no earlier than its turn
//! ```
//!
//! Tokens are counted in units of one window's nanoseconds: a nanosecond adds `amount` units and a
//! token is `window` of them, so nothing is rounded but the wait, up to whole nanoseconds.

use std::collections::BTreeMap;
use std::net::IpAddr;

use kvlab_mock_server::ServerRow;
use kvlab_mock_server::exchange::Class;
use kvlab_mock_server::latency::{Selector, What};
use kvlab_mock_server::limit::{AtLimit, Quantity, Scope, Throttle};
use kvlab_mock_server::stamp::FaultKind;

/// A bucket at a moment.
#[derive(Clone, Copy, Debug)]
struct Level {
    units: u128,
    as_of: u64,
}

/// One throttle with its buckets: that of the server, or those of the clients.
#[derive(Clone, Debug)]
struct Meter {
    throttle: Throttle,
    window_ns: u128,
    levels: BTreeMap<Option<IpAddr>, Level>,
    /// The latest moment at which anybody asked. One that is told later and lies before it counts as
    /// that one.
    latest: u64,
}

/// The throttles of a server at some moment.
#[derive(Clone, Debug, Default)]
pub struct Throttles(Vec<Meter>);

/// What a request is told that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It starts at this moment at the earliest.
    Turn(u64),
    /// It is answered with an error.
    Error,
    /// It is never answered.
    Drop,
}

impl Throttles {
    /// Throttles that nobody has asked.
    #[must_use]
    pub fn new(throttles: &[Throttle]) -> Self {
        let meter = |throttle: &Throttle| Meter {
            window_ns: throttle.window.as_nanos(),
            throttle: throttle.clone(),
            levels: BTreeMap::new(),
            latest: 0,
        };
        Self(throttles.iter().map(meter).collect())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a throttle selects the request.
    #[must_use]
    pub fn select(&self, row: &ServerRow) -> bool {
        self.0.iter().any(|meter| meter.selects(row))
    }

    /// Whether a throttle counts its reply.
    #[must_use]
    pub fn count_reply(&self, row: &ServerRow) -> bool {
        let counts = |meter: &Meter| meter.counts_replies() && meter.selects(row);
        self.0.iter().any(counts)
    }

    /// What the request is told that asks at `asked`.
    pub fn ask(&mut self, row: &ServerRow, asked: u64) -> Told {
        for meter in self.0.iter_mut().filter(|meter| meter.selects(row)) {
            let told = match meter.throttle.then {
                AtLimit::Delay => continue,
                AtLimit::Error => Told::Error,
                AtLimit::Drop => Told::Drop,
            };
            let needed = if meter.counts_replies() {
                1
            } else {
                meter.tokens(row)
            };
            if !meter.has(row, asked, needed) {
                return told;
            }
        }
        let mut turn = asked;
        for meter in self.0.iter_mut().filter(|meter| meter.selects(row)) {
            if !meter.counts_replies() {
                let tokens = meter.tokens(row);
                let own = meter.take(row, asked, tokens);
                if meter.throttle.then == AtLimit::Delay {
                    turn = turn.max(own);
                }
            }
        }
        Told::Turn(turn)
    }

    /// When the reply of a request that started at `start` may be written at the earliest.
    pub fn reply(&mut self, row: &ServerRow, start: u64) -> u64 {
        let mut turn = start;
        for meter in self.0.iter_mut().filter(|meter| meter.selects(row)) {
            if meter.counts_replies() {
                let own = meter.take(row, start, row.reply_bytes.into());
                if meter.throttle.then == AtLimit::Delay {
                    turn = turn.max(own);
                }
            }
        }
        turn
    }
}

impl Meter {
    fn counts_replies(&self) -> bool {
        self.throttle.quantity == Quantity::BytesOut
    }

    fn selects(&self, row: &ServerRow) -> bool {
        let Selector { protocol, what, .. } = &self.throttle.of;
        protocol.is_none_or(|protocol| protocol == row.protocol)
            && match what {
                What::All => true,
                What::Data => row.class != Class::Admin,
                What::Class(class) => *class == row.class,
                What::Command(name) => *name == row.command,
            }
    }

    fn tokens(&self, row: &ServerRow) -> u128 {
        match self.throttle.quantity {
            Quantity::Operations => 1,
            Quantity::BytesIn => row.request_bytes.into(),
            Quantity::BytesOut => row.reply_bytes.into(),
        }
    }

    /// The bucket as of `now`, or later if what was taken comes later.
    fn level(&mut self, row: &ServerRow, now: u64) -> &mut Level {
        let owner = match self.throttle.per {
            Scope::Server => None,
            Scope::Client => Some(row.peer.ip()),
        };
        let full = u128::from(self.throttle.burst.unwrap_or(self.throttle.amount)) * self.window_ns;
        let new = Level {
            units: full,
            as_of: now,
        };
        let level = self.levels.entry(owner).or_insert(new);
        if now > level.as_of {
            let gained = u128::from(now - level.as_of) * u128::from(self.throttle.amount);
            level.units = full.min(level.units + gained);
            level.as_of = now;
        }
        level
    }

    fn has(&mut self, row: &ServerRow, now: u64, tokens: u128) -> bool {
        let wanted = tokens * self.window_ns;
        self.latest = self.latest.max(now);
        let now = self.latest;
        let level = self.level(row, now);
        level.as_of == now && level.units >= wanted
    }

    fn take(&mut self, row: &ServerRow, now: u64, tokens: u128) -> u64 {
        let (wanted, amount) = (tokens * self.window_ns, u128::from(self.throttle.amount));
        self.latest = self.latest.max(now);
        let latest = self.latest;
        let level = self.level(row, latest);
        let wait = wanted.saturating_sub(level.units).div_ceil(amount);
        level.units = level.units + wait * amount - wanted;
        level.as_of = level
            .as_of
            .saturating_add(u64::try_from(wait).unwrap_or(u64::MAX));
        if level.as_of > latest {
            level.as_of
        } else {
            now
        }
    }
}

/// What the requests of a server did, for a check of the rule in the order in which they came to it.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    /// The row.
    pub row: &'a ServerRow,
    /// When it asked, by the rule of starts.
    pub asked_ns: u64,
}

/// The rows, by their places among `passed`, that did not fare as the rule says.
#[must_use]
pub fn differing(throttles: &Throttles, passed: &[Passed<'_>]) -> Vec<usize> {
    let mut throttles = throttles.clone();
    let mut wrong = Vec::new();
    let mut events = Vec::new();
    for (number, Passed { row, .. }) in passed.iter().enumerate() {
        let refused = matches!(row.fault, FaultKind::Throttled | FaultKind::Dropped);
        // A request behind one that was dropped does not ask; who was cut may not have come to it.
        let asks = throttles.select(row)
            && row.fault != FaultKind::TooLarge
            && (row.started || row.fault == FaultKind::Dropped);
        let is_behind = row.fault == FaultKind::Dropped && row.throttle_place.is_none();
        if (asks && !is_behind) != row.throttle_place.is_some() && row.started {
            wrong.push(number);
        }
        let replies = asks && row.started && !row.fault.prevents_execution();
        if (replies && throttles.count_reply(row)) != row.reply_place.is_some() {
            wrong.push(number);
        }
        if row.throttle_place.is_none()
            && (row.throttle_ns > 0 || row.fault == FaultKind::Throttled)
        {
            wrong.push(number);
        }
        if refused && row.throttle_ns > 0 || row.reply_place.is_none() && row.reply_wait_ns > 0 {
            wrong.push(number);
        }
        events.extend(row.throttle_place.map(|place| (place, false, number)));
        events.extend(row.reply_place.map(|place| (place, true, number)));
    }
    events.sort_unstable();
    for (expected, (place, is_reply, number)) in (0..).zip(events) {
        let Some(Passed { row, asked_ns }) = passed.get(number) else {
            continue;
        };
        let start = row.start.as_nanos();
        let holds = if is_reply {
            throttles.reply(row, start) == start + row.reply_wait_ns
        } else {
            match throttles.ask(row, *asked_ns) {
                Told::Error => row.fault == FaultKind::Throttled,
                Told::Drop => row.fault == FaultKind::Dropped,
                Told::Turn(turn) => {
                    let fault = row.fault;
                    turn == asked_ns + row.throttle_ns
                        && !matches!(fault, FaultKind::Throttled | FaultKind::Dropped)
                }
            }
        };
        if !holds || place != expected {
            wrong.push(number);
        }
    }
    wrong.sort_unstable();
    wrong.dedup();
    wrong
}

#[cfg(test)]
mod tests {
    use kvlab_timing::Stamp;

    use super::super::join::tests::pair;
    use super::*;

    fn rows(count: u64) -> Vec<ServerRow> {
        let row = |sequence| {
            let mut row = pair(7, sequence, 10_000).server;
            (row.request_bytes, row.reply_bytes) = (10, 20);
            row
        };
        (0..count).map(row).collect()
    }

    fn throttles(texts: &[&str]) -> Throttles {
        let all: Vec<Throttle> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Throttles::new(&all)
    }

    fn found(throttles: &Throttles, rows: &[ServerRow]) -> Vec<usize> {
        let passed: Vec<Passed<'_>> = rows
            .iter()
            .map(|row| Passed {
                row,
                asked_ns: row.read.as_nanos(),
            })
            .collect();
        differing(throttles, &passed)
    }

    /// Two at once, then one each third of a second: 333 333 334 ns, and so on, by hand.
    #[test]
    fn turns_come_in_the_order_of_asking() {
        let all = throttles(&["ops=3/s,burst=2"]);
        let mut rows = rows(5);
        let waits = [0, 0, 333_333_334, 666_666_667, 1_000_000_000];
        for (place, (row, wait)) in (0..).zip(rows.iter_mut().zip(waits)) {
            (row.throttle_place, row.throttle_ns) = (Some(place), wait);
        }
        assert!(found(&all, &rows).is_empty());
        rows[3].throttle_ns -= 1;
        assert_eq!(found(&all, &rows), [3]);
        rows[3].throttle_ns += 1;
        rows[4].throttle_place = None;
        assert_eq!(found(&all, &rows), [4]);
        assert!(!found(&Throttles::default(), &rows).is_empty());
    }

    #[test]
    fn who_is_refused_takes_nothing() {
        let all = throttles(&["ops=1000/s,burst=1,then=error"]);
        let mut rows = rows(4);
        for (place, row) in (0..).zip(&mut rows) {
            row.throttle_place = Some(place);
            // At 0, half a millisecond, one millisecond, and one and a half.
            row.read = Stamp::from_nanos(10_000 + place * 500_000);
            if place % 2 == 1 {
                row.fault = FaultKind::Throttled;
            }
        }
        assert!(found(&all, &rows).is_empty());
        rows[2].fault = FaultKind::Throttled;
        // The one behind it would have had its token then.
        assert_eq!(found(&all, &rows), [2]);
        rows[2].fault = FaultKind::None;
        rows[3].fault = FaultKind::None;
        assert_eq!(found(&all, &rows), [3]);
    }

    #[test]
    fn replies_take_their_bytes_at_their_start() {
        // 30 bytes at once, then one a millisecond; each reply has 20.
        let all = throttles(&["out=1KB/s,burst=30B"]);
        let mut rows = rows(3);
        for (place, row) in (0..).zip(&mut rows) {
            row.start = Stamp::from_nanos(10_000);
            (row.throttle_place, row.reply_place) = (Some(2 * place), Some(2 * place + 1));
        }
        let waits = [0, 10_000_000, 30_000_000];
        for (row, wait) in rows.iter_mut().zip(waits) {
            row.reply_wait_ns = wait;
        }
        assert!(found(&all, &rows).is_empty());
        rows[1].reply_wait_ns = 0;
        assert_eq!(found(&all, &rows), [1]);
    }
}
