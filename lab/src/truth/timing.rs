//! When replies were due, recomputed from the rule.
//!
//! ```text
//! start = the end of the freeze it falls into, if any, of
//!           RESP:      read, and no earlier than the start before it on the connection
//!           Aerospike: the later of read and the end of the write of the reply before
//!         and its turn by the throttles, which it asks at that moment ([`super::throttle`])
//! wanted = what was drawn, changed by the shapes as of start
//! due   = the end of the freeze it falls into, if any, of
//!           the latest of start + what it waits and takes in the queue + wanted, its reply's turn by
//!           the throttles, and the due moment before it on the connection
//! ```
//!
//! The lab checks every pair of rows against it, and the order of the stamps against causality:
//! nothing is read before it was sent, and nothing is received before it was written.

use std::collections::BTreeMap;

use kvlab_bench_client::record::STAMP_TOLERANCE_NS;
use kvlab_mock_server::exchange::{Class, Protocol};
use kvlab_mock_server::latency::Freeze;
use kvlab_mock_server::stamp::FaultKind;
use kvlab_timing::Stamp;

use super::Pair;
use super::cuts::Cuts;
use super::join::Key;
use super::line::{Line, LineRule};
use super::shapes::Shapes;
use super::throttle::{Passed, Throttles, differing};

/// The freezes of a server as moments of the clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Freezes {
    started: u64,
    all: Vec<Freeze>,
}

/// One freeze between two moments of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frozen {
    /// Its first nanosecond.
    pub begin: u64,
    /// The first nanosecond after it.
    pub end: u64,
    /// The only connection it held, by its number on the server; `None` when it held all.
    pub connection: Option<u64>,
}

impl Freezes {
    /// The freezes of a server that started at `started`.
    #[must_use]
    pub fn new(started: Stamp, freezes: &[Freeze]) -> Self {
        Self {
            started: started.as_nanos(),
            all: freezes.to_vec(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// `moment` on the connection of this number, or the end of the freeze it falls into, and of the
    /// one that this end falls into, and so on. The first nanosecond of a freeze belongs to it, its
    /// end does not.
    #[must_use]
    pub fn leave(&self, connection: u64, moment: u64) -> u64 {
        let mut now = moment;
        loop {
            let holding = self
                .all
                .iter()
                .filter(|freeze| freeze.connection.is_none_or(|only| only == connection))
                .filter_map(|freeze| self.frozen_at(freeze, now));
            match holding.map(|frozen| frozen.end).max() {
                Some(end) => now = end,
                None => return now,
            }
        }
    }

    /// All freezes that touch the time from `from` to before `to`, by their beginnings; `None` when
    /// there are more than `most`.
    #[must_use]
    pub fn between(&self, from: u64, to: u64, most: usize) -> Option<Vec<Frozen>> {
        let mut found = Vec::new();
        for freeze in &self.all {
            let first = self.started.saturating_add(freeze.when.first_ns);
            // The first one that ends after `from`.
            let passed = from.saturating_sub(first.saturating_add(freeze.length_ns) - 1);
            let skipped = freeze
                .when
                .every_ns
                .map_or(0, |every| passed.div_ceil(every.max(1)));
            for number in skipped.. {
                let Some(frozen) = self.numbered(freeze, number) else {
                    break;
                };
                if frozen.begin >= to {
                    break;
                }
                if frozen.end > from {
                    found.push(frozen);
                }
                if found.len() > most {
                    return None;
                }
            }
        }
        found.sort_unstable();
        Some(found)
    }

    /// The freeze of this rule that `moment` lies in.
    fn frozen_at(&self, freeze: &Freeze, moment: u64) -> Option<Frozen> {
        let first = self.started.saturating_add(freeze.when.first_ns);
        let since = moment.checked_sub(first)?;
        let number = freeze.when.every_ns.map_or(0, |every| since / every.max(1));
        self.numbered(freeze, number)
            .filter(|frozen| moment < frozen.end)
    }

    /// The freeze of this rule that comes after `number` others.
    fn numbered(&self, freeze: &Freeze, number: u64) -> Option<Frozen> {
        let distance = match freeze.when.every_ns {
            Some(every) => every.checked_mul(number)?,
            None if number == 0 => 0,
            None => return None,
        };
        let first = self.started.checked_add(freeze.when.first_ns)?;
        let begin = first.checked_add(distance)?;
        Some(Frozen {
            begin,
            end: begin.checked_add(freeze.length_ns)?,
            connection: freeze.connection,
        })
    }
}

/// A rule that a pair of rows breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Sent before it was intended.
    SentEarly,
    /// In a closed loop, intended at another moment than sent.
    NotClosed,
    /// Read by the server before it was sent.
    ReadBeforeSent,
    /// Started at another moment than the rule gives.
    Start,
    /// Due at another moment than the rule gives.
    Due,
    /// Delayed by more or less than the change over time makes of what was drawn.
    Shape,
    /// Waited in the queue for longer or shorter than the rule gives, or refused without reason.
    Queue,
    /// Waited for throttles for longer or shorter than the rule gives, or was let through or refused
    /// against it.
    Throttle,
    /// Answered after the cut of its connection, or cut without one.
    Cut,
    /// Rows of one connection with different numbers, or of different ones with the same.
    Connection,
    /// Written before it was due.
    WrittenEarly,
    /// The stamp after the write lies before the one before it.
    WriteBackwards,
    /// Received before it was written.
    ReceivedEarly,
    /// The kernel's receive stamp lies before the write or after the read, by more than its
    /// conversion may be off.
    Kernel,
    /// The client's time is shorter than the server's.
    ShorterThanSojourn,
    /// The client has a reply that the server did not write, or an end that fits no reply.
    Answer,
}

impl Fault {
    /// What is wrong.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::SentEarly => "sent before its intended moment",
            Self::NotClosed => "closed loop with an intended moment that is not the send",
            Self::ReadBeforeSent => "read by the server before it was sent",
            Self::Start => "started at another moment than the rule gives",
            Self::Due => "due at another moment than the rule gives",
            Self::Shape => "its delay did not change over time as the rule gives",
            Self::Queue => "did not pass the queue as the rule gives",
            Self::Throttle => "did not fare with the throttles as the rule gives",
            Self::Cut => "answered after its connection was cut, or cut without a reason",
            Self::Connection => "number of its connection is not its connection's alone",
            Self::WrittenEarly => "written before it was due",
            Self::WriteBackwards => "stamp after the write before the stamp before it",
            Self::ReceivedEarly => "received before it was written",
            Self::Kernel => "kernel's receive stamp outside of write and read",
            Self::ShorterThanSojourn => "client's time shorter than the server's",
            Self::Answer => "client and server disagree whether it was answered",
        }
    }
}

/// What the rows are checked against.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// The server's freezes.
    pub freezes: Freezes,
    /// How it was to change delays over time.
    pub shapes: Shapes,
    /// Its queue.
    pub line: Option<LineRule>,
    /// The moments at which it was to end connections.
    pub cuts: Cuts,
    /// Its throttles, before anybody asked them.
    pub throttles: Throttles,
    /// Whether the load was an open loop.
    pub open: bool,
}

/// Checks all pairs, which are ordered by key, and returns each fault with its request.
#[must_use]
pub fn faults(pairs: &[Pair], rule: &Rule) -> Vec<(Key, Fault)> {
    let mut found = Vec::new();
    let mut before: Option<&Pair> = None;
    // The latest due moment so far on the connection.
    let mut last_due = 0;
    // The first read of the connection.
    let mut first_read = 0;
    // Whether a request was dropped on the connection.
    let mut is_silent = false;
    let mut passed = Vec::new();
    let mut numbers = BTreeMap::new();
    for pair in pairs {
        let same = before.is_some_and(|before| {
            let (this, that) = (pair.key(), before.key());
            (this.address, this.ordinal) == (that.address, that.ordinal)
        });
        if !same {
            before = None;
            last_due = 0;
            is_silent = false;
            first_read = pair.server.read.as_nanos();
        }
        let is_dropped = pair.server.fault == FaultKind::Dropped;
        passed.push(Passed {
            row: &pair.server,
            asked_ns: asked(pair, before, rule),
        });
        let mut report = |fault| found.push((pair.key(), fault));
        check_client(pair, rule, &mut report);
        check_server(pair, before, last_due, rule, &mut report);
        check_both(pair, &mut report);
        // Behind one that is dropped nothing is answered.
        let first_dropped = pair.server.throttle_place.is_some();
        if (is_silent && !is_dropped) || (is_dropped && is_silent == first_dropped) {
            report(Fault::Throttle);
        }
        is_silent |= is_dropped;
        if !rule.cuts.keeps(pair, first_read) {
            report(Fault::Cut);
        }
        let owner = (pair.client.local, pair.client.ordinal);
        if *numbers.entry(pair.server.connection).or_insert(owner) != owner
            || before.is_some_and(|before| before.server.connection != pair.server.connection)
        {
            report(Fault::Connection);
        }
        last_due = last_due.max(pair.server.due.as_nanos());
        before = Some(pair);
    }
    check_line(pairs, rule, &mut |key| found.push((key, Fault::Queue)));
    let wrong = differing(&rule.throttles, &passed);
    let keys = wrong.into_iter().filter_map(|place| pairs.get(place));
    found.extend(keys.map(|pair| (pair.key(), Fault::Throttle)));
    found
}

/// When a request asks the throttles: the moment at which it would start without them.
fn asked(pair: &Pair, before: Option<&Pair>, rule: &Rule) -> u64 {
    let server = &pair.server;
    let earliest = match (server.protocol, before) {
        (Protocol::Aerospike, Some(before)) => server.read.max(before.server.written_after),
        (Protocol::Redis, Some(before)) if before.server.started => {
            server.read.max(before.server.start)
        }
        _ => server.read,
    };
    rule.freezes.leave(server.connection, earliest.as_nanos())
}

/// Sends the requests through a station of the lab's own, in the order in which they came to that of
/// the server. Each has to be there, and to wait as long as it did.
fn check_line(pairs: &[Pair], rule: &Rule, report: &mut impl FnMut(Key)) {
    let passes = |pair: &&Pair| {
        let server = &pair.server;
        let fault = server.fault;
        let never_came = fault.prevents_execution() && fault != FaultKind::Refused;
        rule.line.is_some() && server.started && server.class != Class::Admin && !never_came
    };
    let (mut passing, outside): (Vec<&Pair>, Vec<&Pair>) = pairs.iter().partition(passes);
    for pair in outside {
        let server = &pair.server;
        let asked = (server.queue_place, server.wait_ns, server.service_ns);
        if asked != (None, 0, 0) || server.fault == FaultKind::Refused {
            report(pair.key());
        }
    }
    passing.sort_by_key(|pair| pair.server.queue_place);
    let mut line = rule.line.map(Line::new);
    for (place, pair) in (0_u64..).zip(passing) {
        let server = &pair.server;
        let start = server.start.as_nanos();
        let begin = line
            .as_mut()
            .and_then(|line| line.pass(start, server.service_ns));
        let holds = match begin {
            Some(begin) => server.fault != FaultKind::Refused && server.wait_ns == begin - start,
            None => {
                let asked = (server.wait_ns, server.service_ns, server.wanted_ns);
                server.fault == FaultKind::Refused && asked == (0, 0, 0)
            }
        };
        if !holds || server.queue_place != Some(place) {
            report(pair.key());
        }
    }
}

fn check_client(pair: &Pair, rule: &Rule, report: &mut impl FnMut(Fault)) {
    let client = &pair.client;
    if client.intended > client.sent {
        report(Fault::SentEarly);
    }
    // A further attempt of an operation keeps the moment of the first.
    let is_first = pair.is_measured() && client.attempt == 0;
    if is_first && !rule.open && client.intended != client.sent {
        report(Fault::NotClosed);
    }
}

fn check_server(
    pair: &Pair,
    before: Option<&Pair>,
    last_due: u64,
    rule: &Rule,
    report: &mut impl FnMut(Fault),
) {
    let server = &pair.server;
    let leave = |moment| rule.freezes.leave(server.connection, moment);
    let wanted = match server.class {
        Class::Admin => server.drawn_ns,
        _ if server.fault.prevents_execution() || !server.started => 0,
        _ => rule.shapes.wanted(server.drawn_ns, server.start.as_nanos()),
    };
    if server.wanted_ns != wanted {
        report(Fault::Shape);
    }
    if server.started {
        check_moments(pair, asked(pair, before, rule), last_due, leave, report);
    }
    if server.answered && server.written < server.due {
        report(Fault::WrittenEarly);
    }
    if server.written_after < server.written {
        report(Fault::WriteBackwards);
    }
}

fn check_moments(
    pair: &Pair,
    asked: u64,
    last_due: u64,
    leave: impl Fn(u64) -> u64,
    report: &mut impl FnMut(Fault),
) {
    let server = &pair.server;
    let start = server.start.as_nanos();
    if start != leave(asked + server.throttle_ns) {
        report(Fault::Start);
    }
    let ready = start + server.wait_ns + server.service_ns + server.wanted_ns;
    let due = ready.max(start + server.reply_wait_ns).max(last_due);
    if server.due.as_nanos() != leave(due) {
        report(Fault::Due);
    }
}

fn check_both(pair: &Pair, report: &mut impl FnMut(Fault)) {
    let (client, server) = (&pair.client, &pair.server);
    if server.read < client.sent {
        report(Fault::ReadBeforeSent);
    }
    if client.outcome.is_answered() != client.received.is_some() {
        report(Fault::Answer);
    }
    let Some(received) = client.received else {
        return;
    };
    if !server.answered {
        report(Fault::Answer);
    }
    if received < server.written {
        report(Fault::ReceivedEarly);
    }
    if let Some(kernel) = client.kernel {
        let early = server.written.saturating_since(kernel);
        let late = kernel.saturating_since(received);
        if early.max(late) > STAMP_TOLERANCE_NS {
            report(Fault::Kernel);
        }
    }
    if received.saturating_since(client.sent) < pair.sojourn_ns() {
        report(Fault::ShorterThanSojourn);
    }
}

#[cfg(test)]
mod tests {
    use kvlab_bench_client::record::Outcome;

    use super::super::join::tests::pair;
    use super::*;

    fn open() -> Rule {
        Rule {
            open: true,
            ..Rule::default()
        }
    }

    fn freezes(texts: &[&str]) -> Freezes {
        let all: Vec<Freeze> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Freezes::new(Stamp::from_nanos(1_000), &all)
    }

    #[test]
    fn freezes_begin_with_their_first_nanosecond_and_end_before_their_end() {
        let freezes = freezes(&["every=100ns,for=10ns,first=30ns"]);
        for (moment, end) in [
            (0, 0),
            (1_029, 1_029),
            (1_030, 1_040),
            (1_039, 1_040),
            (1_040, 1_040),
            (1_129, 1_129),
            (1_130, 1_140),
            (9_035, 9_040),
        ] {
            assert_eq!(freezes.leave(5, moment), end, "{moment}");
        }
    }

    #[test]
    fn freezes_add_up_and_some_hold_one_connection() {
        // 1030 to 1040 and so on; 1038 to 1050 once; 1045 to 1060 on connection 5 alone.
        let freezes = freezes(&[
            "every=100ns,for=10ns,first=30ns",
            "at=38ns,for=12ns",
            "at=45ns,for=15ns,connection=5",
        ]);
        for (connection, moment, end) in [
            (0, 1_030, 1_050),
            (5, 1_030, 1_060),
            (0, 1_055, 1_055),
            (5, 1_055, 1_060),
            (0, 1_130, 1_140),
            (5, 1_138, 1_140),
        ] {
            assert_eq!(freezes.leave(connection, moment), end, "{moment}");
        }
        let frozen = |begin, end, connection| Frozen {
            begin,
            end,
            connection,
        };
        assert_eq!(
            freezes.between(1_039, 1_131, 4).unwrap(),
            [
                frozen(1_030, 1_040, None),
                frozen(1_038, 1_050, None),
                frozen(1_045, 1_060, Some(5)),
                frozen(1_130, 1_140, None),
            ]
        );
        assert_eq!(freezes.between(1_039, 1_131, 3), None);
        assert_eq!(freezes.between(1_060, 1_130, 9).unwrap(), []);
        assert_eq!(freezes.between(1_040, 1_046, 9).unwrap().len(), 2);
    }

    #[test]
    fn rows_that_keep_the_rule_have_no_fault() {
        let mut pairs: Vec<Pair> = (0..5).map(|n| pair(7, n, 10_000 * (n + 1))).collect();
        pairs[1].client.kernel = Some(pairs[1].server.written.sub_nanos(2_000));
        pairs[2].client.kernel = pairs[2].client.received.map(|at| at.add_nanos(2_000));
        assert_eq!(faults(&pairs, &open()), []);
        assert_eq!(faults(&pairs, &Rule::default()), []);
    }

    /// One change of a good row, and the fault it must be found by.
    type Bias = (fn(&mut Pair), Fault);

    #[test]
    fn every_broken_rule_is_found() {
        let biases: [Bias; 18] = [
            // A clock that is started late, after the server has read.
            (
                |pair| pair.client.sent = pair.client.sent.add_nanos(11),
                Fault::ReadBeforeSent,
            ),
            (
                |pair| pair.client.sent = pair.client.sent.sub_nanos(1),
                Fault::SentEarly,
            ),
            (
                |pair| pair.client.received = pair.client.received.map(|at| at.sub_nanos(11)),
                Fault::ReceivedEarly,
            ),
            (
                |pair| pair.client.kernel = Some(pair.server.written.sub_nanos(2_001)),
                Fault::Kernel,
            ),
            (
                |pair| {
                    let received = pair.client.received.unwrap();
                    pair.client.kernel = Some(received.add_nanos(2_001));
                },
                Fault::Kernel,
            ),
            (|pair| pair.client.received = None, Fault::Answer),
            (|pair| pair.client.outcome = Outcome::Timeout, Fault::Answer),
            (|pair| pair.server.answered = false, Fault::Answer),
            (
                |pair| pair.server.start = pair.server.start.add_nanos(1),
                Fault::Start,
            ),
            (|pair| pair.server.wanted_ns -= 1, Fault::Due),
            (|pair| pair.server.drawn_ns -= 1, Fault::Shape),
            (|pair| pair.server.wait_ns += 1, Fault::Queue),
            (|pair| pair.server.queue_place = Some(0), Fault::Queue),
            (|pair| pair.server.throttle_place = Some(0), Fault::Throttle),
            (|pair| pair.server.throttle_ns += 1, Fault::Throttle),
            (|pair| pair.server.connection += 1, Fault::Connection),
            (
                |pair| pair.server.written = pair.server.due.sub_nanos(1),
                Fault::WrittenEarly,
            ),
            (
                |pair| pair.server.written_after = pair.server.written.sub_nanos(1),
                Fault::WriteBackwards,
            ),
        ];
        for (place, (bias, expected)) in biases.into_iter().enumerate() {
            let mut pairs = vec![pair(7, 0, 10_000), pair(7, 1, 20_000)];
            bias(&mut pairs[1]);
            let found = faults(&pairs, &open());
            assert!(
                found.contains(&(pairs[1].key(), expected)),
                "change {place}: {found:?} lacks {expected:?}"
            );
        }
    }

    #[test]
    fn a_closed_loop_intends_what_it_sends() {
        let mut late = pair(7, 0, 10_000);
        late.client.intended = late.client.intended.sub_nanos(1);
        let closed = Rule::default();
        assert_eq!(
            faults(&[late.clone()], &closed),
            [(late.key(), Fault::NotClosed)]
        );
        assert_eq!(faults(&[late.clone()], &open()), []);
        late.client.attempt = 1;
        assert_eq!(faults(&[late], &closed), []);
    }

    #[test]
    fn a_reply_waits_for_the_one_before_on_its_connection_alone() {
        // Read 100 ns after the one before, wanted shorter: due with it.
        let mut second = pair(7, 1, 10_100);
        (second.server.drawn_ns, second.server.wanted_ns) = (500, 500);
        second.server.due = Stamp::from_nanos(11_010);
        second.server.written = second.server.due;
        let first = pair(7, 0, 10_000);
        let found = faults(&[first.clone(), second.clone()], &open());
        assert_eq!(found, []);
        second.client.local = pair(8, 0, 0).client.local;
        second.server.connection = pair(8, 0, 0).server.connection;
        let found = faults(&[first, second.clone()], &open());
        assert_eq!(found, [(second.key(), Fault::Due)]);
    }
}
