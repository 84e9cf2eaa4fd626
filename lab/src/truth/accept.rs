//! Who was to be let in and when, recomputed from the rule.
//!
//! ```text
//! An attempt arrives a leg after its begin. In order of arrival, each
//!   finds a place, or is turned away, or waits for one;
//!   finds a token, or is turned away, or waits for one, or is held until there is one;
//!   is connected a leg after it was accepted, and read from the end of its hold on.
//! A place is free when the server has ended the connection, or when it has learned that the client did
//! and has written what it owed.
//! ```
//!
//! The bucket is not one here: an attempt conforms at the moment `late - (n - 1) x window / n`, where `late`
//! is the moment at which the bucket would be full again, counted in n-ths of a nanosecond so that nothing
//! is rounded.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::IpAddr;

use kvlab_mock_server::exchange::Protocol;
use kvlab_mock_server::limit::{AcceptLimit, ConnectionLimit, ConnectionLimits};

/// What the server was told, for one protocol.
#[derive(Clone, Debug)]
pub struct AcceptRule {
    started: u64,
    most: u64,
    most_per_address: Option<u64>,
    at_cap: ConnectionLimit,
    /// Tokens, and the nanoseconds in which as many come.
    rate: Option<(u128, u128)>,
    at_rate: AcceptLimit,
}

/// One attempt to connect, as the client noted it.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// When it began.
    pub begun: u64,
    /// Where it came from, if that is known.
    pub address: Option<IpAddr>,
    /// When it, or the connection it became, ended, and on which side that began.
    pub left: Option<(u64, Side)>,
    /// When the server wrote the last reply to it.
    pub last_written: u64,
}

/// One of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client's.
    Client,
    /// The server's.
    Server,
}

/// What was to become of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Accepted, and read from a moment on.
    In {
        /// When it was accepted.
        accepted: u64,
        /// From when on it is read.
        opened: u64,
        /// Whether it waited before it was accepted.
        waited: bool,
    },
    /// Accepted and turned away.
    Away {
        /// When.
        at: u64,
        /// How.
        how: Turn,
    },
    /// Never accepted.
    Outside,
}

/// How an attempt is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// With a line of text.
    Told,
    /// Without a word.
    Closed,
    /// By a reset.
    Reset,
}

impl AcceptRule {
    /// The rule of a server that started at `started`, for its clients of `protocol`.
    #[must_use]
    pub fn new(limits: &ConnectionLimits, protocol: Protocol, started: u64) -> Self {
        let (usual_most, usual) = match protocol {
            Protocol::Redis => (10_000, ConnectionLimit::Error),
            Protocol::Aerospike => (15_000, ConnectionLimit::Close),
        };
        // There is no line that an Aerospike client would understand.
        let speechless = protocol == Protocol::Aerospike;
        Self {
            started,
            most: limits.max.unwrap_or(usual_most),
            most_per_address: limits.max_per_address,
            at_cap: match limits.at_cap.unwrap_or(usual) {
                ConnectionLimit::Error if speechless => ConnectionLimit::Close,
                form => form,
            },
            rate: limits.rate.map(|rate| {
                let tokens = u128::from(rate.count) * u128::from(limits.cores);
                (tokens, rate.window.as_nanos())
            }),
            at_rate: match limits.at_rate {
                AcceptLimit::Error if speechless => AcceptLimit::Close,
                form => form,
            },
        }
    }

    /// What was to become of each attempt, which are given in the order in which they were begun; a
    /// message takes `leg_ns` from one side to the other.
    #[must_use]
    pub fn fates(&self, attempts: &[Attempt], leg_ns: u64) -> Vec<Fate> {
        Replay {
            rule: self,
            attempts,
            leg_ns,
            late: self
                .rate
                .map(|(tokens, _)| u128::from(self.started) * tokens),
            inside: 0,
            by_address: BTreeMap::new(),
            waiting: VecDeque::new(),
            fates: vec![Fate::Outside; attempts.len()],
            events: BinaryHeap::new(),
        }
        .run()
    }
}

struct Replay<'a> {
    rule: &'a AcceptRule,
    attempts: &'a [Attempt],
    leg_ns: u64,
    /// When the bucket would be full again, in n-ths of a nanosecond.
    late: Option<u128>,
    inside: u64,
    by_address: BTreeMap<Option<IpAddr>, u64>,
    waiting: VecDeque<usize>,
    fates: Vec<Fate>,
    /// Moment, what comes from the network before what the server does by itself, attempt.
    events: BinaryHeap<Reverse<(u64, Side, usize, Event)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives,
    Leaves,
}

impl PartialOrd for Side {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Side {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (*self as u8).cmp(&(*other as u8))
    }
}

impl Replay<'_> {
    fn run(mut self) -> Vec<Fate> {
        for (number, attempt) in self.attempts.iter().enumerate() {
            let arrival = attempt.begun + self.leg_ns;
            self.push(arrival, Side::Client, number, Event::Arrives);
            match attempt.left {
                Some((ended, Side::Client)) => {
                    self.push(ended + self.leg_ns, Side::Client, number, Event::Leaves);
                }
                Some((ended, Side::Server)) => {
                    let ended = ended.saturating_sub(self.leg_ns);
                    self.push(ended, Side::Server, number, Event::Leaves);
                }
                None => {}
            }
        }
        loop {
            let next = self.events.peek().map(|Reverse(event)| (event.0, event.1));
            if let Some(moment) = self.next_from_backlog()
                && next.is_none_or(|next| (moment, Side::Server) < next)
            {
                self.let_in(moment);
                continue;
            }
            let Some(Reverse((now, _, number, event))) = self.events.pop() else {
                return self.fates;
            };
            match event {
                Event::Arrives if self.waiting.is_empty() && !self.is_shut(now) => {
                    self.decide(now, number, false);
                }
                Event::Arrives => self.waiting.push_back(number),
                Event::Leaves => self.leave(now, number),
            }
            self.let_in(now);
        }
    }

    fn push(&mut self, moment: u64, side: Side, number: usize, event: Event) {
        self.events.push(Reverse((moment, side, number, event)));
    }

    /// Whether nobody may come in who is not turned away.
    fn is_shut(&self, now: u64) -> bool {
        let is_full = self.rule.at_cap == ConnectionLimit::Backlog && self.inside >= self.rule.most;
        let is_dry = self.rule.at_rate == AcceptLimit::Backlog
            && self.conforms_at().is_some_and(|moment| moment > now);
        is_full || is_dry
    }

    /// When somebody in the backlog may come in by time alone.
    fn next_from_backlog(&self) -> Option<u64> {
        self.waiting.front()?;
        let is_full = self.rule.at_cap == ConnectionLimit::Backlog && self.inside >= self.rule.most;
        if is_full || self.rule.at_rate != AcceptLimit::Backlog {
            return None;
        }
        self.conforms_at()
    }

    /// The moment from which on a token is there.
    fn conforms_at(&self) -> Option<u64> {
        let ((tokens, window), late) = (self.rule.rate?, self.late?);
        let earliest = late.saturating_sub((tokens - 1) * window);
        u64::try_from(earliest.div_ceil(tokens)).ok()
    }

    fn take_token(&mut self, now: u64) {
        if let (Some((tokens, window)), Some(late)) = (self.rule.rate, &mut self.late) {
            *late = (*late).max(u128::from(now) * tokens) + window;
        }
    }

    fn let_in(&mut self, now: u64) {
        while let Some(number) = self.waiting.front().copied() {
            if self.is_shut(now) {
                return;
            }
            self.waiting.pop_front();
            self.decide(now, number, true);
        }
    }

    fn decide(&mut self, now: u64, number: usize, waited: bool) {
        let address = self
            .attempts
            .get(number)
            .and_then(|attempt| attempt.address);
        let from_there = self.by_address.get(&address).copied().unwrap_or(0);
        let rule = self.rule;
        let full = self.inside >= rule.most
            || rule.most_per_address.is_some_and(|most| from_there >= most);
        let cap_turn = match rule.at_cap {
            ConnectionLimit::Error => Some(Turn::Told),
            ConnectionLimit::Close => Some(Turn::Closed),
            ConnectionLimit::Reset => Some(Turn::Reset),
            ConnectionLimit::Backlog => None,
        };
        if let Some(how) = cap_turn.filter(|_| full) {
            return self.set(number, Fate::Away { at: now, how });
        }
        let mut opened = now;
        if let Some(token) = self.conforms_at() {
            let rate_turn = match rule.at_rate {
                AcceptLimit::Error => Some(Turn::Told),
                AcceptLimit::Close => Some(Turn::Closed),
                AcceptLimit::Reset => Some(Turn::Reset),
                AcceptLimit::Delay | AcceptLimit::Backlog => None,
            };
            if let Some(how) = rate_turn.filter(|_| token > now) {
                return self.set(number, Fate::Away { at: now, how });
            }
            opened = now.max(token);
            self.take_token(opened);
        }
        self.inside += 1;
        *self.by_address.entry(address).or_default() += 1;
        let accepted = now;
        self.set(
            number,
            Fate::In {
                accepted,
                opened,
                waited,
            },
        );
    }

    fn leave(&mut self, now: u64, number: usize) {
        let Some(attempt) = self.attempts.get(number) else {
            return;
        };
        match self.fates.get(number) {
            Some(Fate::In { opened, .. }) => {
                // Neither is read what came before the hold ends, nor goes a session that owes.
                let earliest = (*opened).max(attempt.last_written);
                if earliest > now {
                    return self.push(earliest, Side::Server, number, Event::Leaves);
                }
                self.inside = self.inside.saturating_sub(1);
                if let Some(count) = self.by_address.get_mut(&attempt.address) {
                    *count = count.saturating_sub(1);
                }
            }
            _ => self.waiting.retain(|other| *other != number),
        }
    }

    fn set(&mut self, number: usize, fate: Fate) {
        if let Some(slot) = self.fates.get_mut(number) {
            *slot = fate;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LEG: u64 = 10;

    fn rule(change: impl FnOnce(&mut ConnectionLimits)) -> AcceptRule {
        let mut limits = ConnectionLimits::default();
        change(&mut limits);
        AcceptRule::new(&limits, Protocol::Redis, 0)
    }

    fn at(begun: u64) -> Attempt {
        Attempt {
            begun,
            address: None,
            left: None,
            last_written: 0,
        }
    }

    fn inside(accepted: u64, opened: u64, waited: bool) -> Fate {
        Fate::In {
            accepted,
            opened,
            waited,
        }
    }

    /// Three tokens of 10 ns in 3 parts each: by hand at 0, 0, 0, then a third of 10 ns each.
    #[test]
    fn held_ones_open_at_the_nanosecond_that_completes_their_token() {
        let rule = rule(|l| {
            l.rate = Some("3/10ns".parse().unwrap());
        });
        let fates = rule.fates(&[at(100); 7], LEG);
        let opened = [110, 110, 110, 114, 117, 120, 124];
        assert_eq!(fates, opened.map(|opened| inside(110, opened, false)));
    }

    #[test]
    fn who_comes_too_fast_is_turned_away_and_takes_no_token() {
        let rule = rule(|l| {
            l.rate = Some("2/20ns".parse().unwrap());
            l.at_rate = AcceptLimit::Reset;
        });
        let fates = rule.fates(&[100, 100, 100, 109, 110].map(at), LEG);
        let away = |at| Fate::Away {
            at,
            how: Turn::Reset,
        };
        let expected = [
            inside(110, 110, false),
            inside(110, 110, false),
            away(110),
            away(119),
            inside(120, 120, false),
        ];
        assert_eq!(fates, expected);
    }

    #[test]
    fn a_place_is_free_when_the_server_knows_that_the_client_has_gone() {
        let rule = rule(|l| l.max = Some(1));
        let mut first = at(100);
        first.left = Some((200, Side::Client));
        let away = |at| Fate::Away {
            at,
            how: Turn::Told,
        };
        let fates = rule.fates(&[first, at(150), at(199), at(200)], LEG);
        let expected = [
            inside(110, 110, false),
            away(160),
            away(209),
            inside(210, 210, false),
        ];
        assert_eq!(fates, expected);
        first.last_written = 500;
        assert_eq!(rule.fates(&[first, at(200)], LEG)[1], away(210));
        first.left = Some((230, Side::Server));
        first.last_written = 0;
        // The server ends it at 220, after what arrives then.
        let fates = rule.fates(&[first, at(210), at(211)], LEG);
        assert_eq!(fates[1..], [away(220), inside(221, 221, false)]);
    }

    #[test]
    fn the_backlog_is_let_in_in_order_by_places_and_by_tokens() {
        let capped = rule(|l| {
            l.max = Some(1);
            l.at_cap = Some(ConnectionLimit::Backlog);
        });
        let (mut first, mut second) = (at(100), at(101));
        first.left = Some((200, Side::Client));
        second.left = Some((150, Side::Client));
        let fates = capped.fates(&[first, second, at(102), at(103)], LEG);
        let expected = [
            inside(110, 110, false),
            Fate::Outside,
            inside(210, 210, true),
            Fate::Outside,
        ];
        assert_eq!(fates, expected);
        let rated = rule(|l| {
            l.rate = Some("1/50ns".parse().unwrap());
            l.at_rate = AcceptLimit::Backlog;
        });
        let fates = rated.fates(&[at(100), at(101), at(102)], LEG);
        let expected = [
            inside(110, 110, false),
            inside(160, 160, true),
            inside(210, 210, true),
        ];
        assert_eq!(fates, expected);
    }

    #[test]
    fn cores_multiply_both_capacity_and_refill() {
        let rule = rule(|l| {
            l.rate = Some("200/500ms".parse().unwrap());
            l.cores = 2;
        });
        let fates = rule.fates(&vec![at(100); 1_000], LEG);
        let opened = |number: usize| match fates[number] {
            Fate::In { opened, .. } => opened - 110,
            other => panic!("{other:?}"),
        };
        let last = Duration::from_millis(750).as_nanos();
        assert_eq!((opened(399), opened(400)), (0, 1_250_000));
        assert_eq!(u128::from(opened(999)), last);
    }
}
