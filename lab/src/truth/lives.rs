//! What was to become of every connection of a run under virtual time.
//!
//! The client's rows of its attempts are put in the order in which they reached the server, the rule says
//! what each was to meet ([`accept`](super::accept)), and requests are looked at in that light: those of a
//! connection that was turned away were never read, those of one that was held not before its moment.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use kvlab_bench_client::record::{Cause, ClientRow, ConnectRow, Outcome};

use super::Joined;
use super::accept::{AcceptRule, Attempt, Fate, Side, Turn};

/// The attempts of a run to connect, each with what was to become of it.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    /// The client's rows, in the order in which they were begun.
    pub rows: Vec<ConnectRow>,
    /// What was to become of each.
    pub fates: Vec<Fate>,
    /// Time of a message from one side to the other.
    leg_ns: u64,
    /// The place of a connection in both lists, by the client's end of it.
    places: HashMap<(SocketAddr, u32), usize>,
}

/// How many were to meet what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Let in.
    pub accepted: u64,
    /// Held before they were read.
    pub held: u64,
    /// Left waiting before they were accepted.
    pub waited: u64,
    /// Told why they are not served.
    pub told: u64,
    /// Closed without a word.
    pub closed: u64,
    /// Reset.
    pub reset: u64,
}

impl Lives {
    /// What was to become of `rows` by `rule`; `joined` tells what the server still wrote to each.
    #[must_use]
    pub fn new(rule: &AcceptRule, mut rows: Vec<ConnectRow>, joined: &Joined, leg_ns: u64) -> Self {
        // What begins at one moment begins thread by thread, place by place.
        rows.sort_by_key(|row| (row.begun, row.thread, row.place));
        let mut written: HashMap<(SocketAddr, u32), u64> = HashMap::new();
        let servers = joined.pairs.iter().map(|pair| &pair.server);
        for row in servers.chain(&joined.server_only) {
            let last = written.entry((row.peer, row.ordinal)).or_default();
            *last = (*last).max(row.written.as_nanos());
        }
        let attempts: Vec<Attempt> = rows
            .iter()
            .map(|row| Attempt {
                begun: row.begun.as_nanos(),
                address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
                left: row.ended.map(|ended| (ended.as_nanos(), side_of(row))),
                last_written: key(row)
                    .and_then(|key| written.get(&key).copied())
                    .unwrap_or(0),
            })
            .collect();
        let keys = rows.iter().map(key).enumerate();
        Self {
            fates: rule.fates(&attempts, leg_ns),
            leg_ns,
            places: keys
                .filter_map(|(place, key)| Some((key?, place)))
                .collect(),
            rows,
        }
    }

    /// The moment from which on the connection of a request was read, if it was let in.
    #[must_use]
    pub fn opened(&self, row: &ClientRow) -> Option<u64> {
        match self.fate(row)? {
            Fate::In { opened, .. } => Some(opened),
            Fate::Away { .. } | Fate::Outside => None,
        }
    }

    /// The moments at which the server ended connections that it had let in.
    pub fn ends(&self) -> impl Iterator<Item = ((SocketAddr, u32), u64)> + '_ {
        let lives = self.rows.iter().zip(&self.fates);
        lives.filter_map(|(row, fate)| {
            let ended = row.ended.filter(|_| side_of(row) == Side::Server)?;
            let is_in = matches!(fate, Fate::In { .. });
            is_in.then_some((key(row)?, ended.as_nanos().saturating_sub(self.leg_ns)))
        })
    }

    /// Takes the requests off the client's rows without partner that no server was to read: they were
    /// sent on connections that were turned away, or arrived when theirs had ended.
    pub fn excuse(&self, joined: &mut Joined) {
        let left_over = std::mem::take(&mut joined.client_only);
        let ends: HashMap<_, _> = self.ends().collect();
        for row in left_over {
            let arrived = row.sent.as_nanos() + self.leg_ns;
            let ended = ends.get(&(row.local, row.ordinal));
            let was_late = row.outcome == Outcome::ConnectionLost
                && ended.is_some_and(|ended| arrived >= *ended);
            let is_answered = matches!(row.outcome, Outcome::Hit | Outcome::Miss);
            let was_away = matches!(self.fate(&row), Some(Fate::Away { .. })) && !is_answered;
            if was_late || was_away {
                joined.excused.push(row);
            } else {
                joined.client_only.push(row);
            }
        }
    }

    /// Notes for each request how long it lay unread because its connection was held.
    pub fn note_holds(&self, joined: &mut Joined) {
        for pair in &mut joined.pairs {
            let arrived = pair.client.sent.as_nanos() + self.leg_ns;
            let opened = self.opened(&pair.client).unwrap_or(0);
            pair.held_ns = opened.saturating_sub(arrived);
        }
    }

    /// How many were to meet what.
    #[must_use]
    pub fn met(&self) -> Met {
        let mut met = Met::default();
        for fate in &self.fates {
            match fate {
                Fate::In {
                    accepted,
                    opened,
                    waited,
                } => {
                    met.accepted += 1;
                    met.held += u64::from(opened > accepted);
                    met.waited += u64::from(*waited);
                }
                Fate::Away { how, .. } => {
                    *match how {
                        Turn::Told => &mut met.told,
                        Turn::Closed => &mut met.closed,
                        Turn::Reset => &mut met.reset,
                    } += 1;
                }
                Fate::Outside => {}
            }
        }
        met
    }

    fn fate(&self, row: &ClientRow) -> Option<Fate> {
        let place = self.places.get(&(row.local, row.ordinal))?;
        self.fates.get(*place).copied()
    }
}

/// The client's end of a connection, once it is one.
fn key(row: &ConnectRow) -> Option<(SocketAddr, u32)> {
    Some((row.local?, row.ordinal))
}

/// On which side the end of a connection began.
fn side_of(row: &ConnectRow) -> Side {
    match row.cause {
        Some(
            Cause::ResetBeforeReply
            | Cause::ResetLater
            | Cause::ClosedBeforeReply
            | Cause::ClosedLater,
        ) => Side::Server,
        _ => Side::Client,
    }
}
