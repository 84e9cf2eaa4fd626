//! When a server was to end connections, recomputed from the rule.
//!
//! ```text
//! A connection ends at the first cut after its acceptance that is for all connections or for its number.
//! What is read there or later is not read; what becomes due later is not answered.
//! ```

use std::collections::HashMap;
use std::net::SocketAddr;

use kvlab_bench_client::record::Outcome;
use kvlab_mock_server::latency::Cut;
use kvlab_mock_server::stamp::FaultKind;
use kvlab_timing::Stamp;

use super::{Joined, Pair};

/// The cuts of a server as moments of the clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    started: u64,
    all: Vec<Cut>,
    /// When the server ended connections for other reasons, which are checked elsewhere.
    ended: HashMap<(SocketAddr, u32), u64>,
}

impl Cuts {
    /// The cuts of a server that started at `started`.
    #[must_use]
    pub fn new(started: Stamp, cuts: &[Cut]) -> Self {
        Self {
            started: started.as_nanos(),
            all: cuts.to_vec(),
            ended: HashMap::new(),
        }
    }

    /// The same with the moments at which the server ended connections for other reasons.
    #[must_use]
    pub fn with_ends(mut self, ends: HashMap<(SocketAddr, u32), u64>) -> Self {
        self.ended = ends;
        self
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The first cut after `moment` of the connection of this number; of any connection where the
    /// number is not known.
    #[must_use]
    pub fn after(&self, connection: Option<u64>, moment: u64) -> Option<u64> {
        let concerned = self.all.iter().filter(|cut| match cut.connection {
            Some(only) => connection.is_none_or(|number| number == only),
            None => true,
        });
        let after = concerned.filter_map(|cut| {
            let first = self.started.checked_add(cut.when.first_ns)?;
            if first > moment {
                return Some(first);
            }
            let every = cut.when.every_ns?.max(1);
            let number = (moment - first) / every + 1;
            first.checked_add(every.checked_mul(number)?)
        });
        after.min()
    }

    /// Takes the requests off the client's rows without partner that met a cut on their way: they
    /// were sent before the client knew of it and arrived when the connection had ended.
    pub fn excuse(&self, joined: &mut Joined, leg_ns: u64) {
        if self.is_empty() {
            return;
        }
        let rows = joined.pairs.iter().map(|pair| &pair.server);
        let numbers: HashMap<_, _> = rows
            .chain(&joined.server_only)
            .map(|row| ((row.peer, row.ordinal), row.connection))
            .collect();
        let left_over = std::mem::take(&mut joined.client_only);
        for row in left_over {
            let number = numbers.get(&(row.local, row.ordinal)).copied();
            let sent = row.sent.as_nanos();
            let earliest = sent.saturating_sub(leg_ns).saturating_sub(1);
            let lost = row.outcome == Outcome::ConnectionLost
                && self
                    .after(number, earliest)
                    .is_some_and(|cut| cut <= sent + leg_ns);
            if lost {
                joined.excused.push(row);
            } else {
                joined.client_only.push(row);
            }
        }
    }

    /// Whether a pair keeps the rule on a connection whose first request was read at `first_read`.
    pub(super) fn keeps(&self, pair: &Pair, first_read: u64) -> bool {
        let server = &pair.server;
        // Later than the first read, since a cut at or before it would have prevented that.
        let cut = self.after(Some(server.connection), first_read);
        let ended = self.ended.get(&(server.peer, server.ordinal)).copied();
        if let Some(end) = ended.filter(|end| cut.is_none_or(|cut| *end < cut)) {
            return keeps_end(pair, end);
        }
        let cut = cut.unwrap_or(u64::MAX);
        let (read, due) = (server.read.as_nanos(), server.due.as_nanos());
        let was_cut = server.fault == FaultKind::Cut;
        read < cut
            && !(server.answered && due > cut)
            && !(was_cut && (server.answered || cut == u64::MAX || (server.started && due <= cut)))
    }
}

/// Whether a pair keeps an end that is no cut: what is due at that moment may be answered still, or not
/// any more.
fn keeps_end(pair: &Pair, end: u64) -> bool {
    let server = &pair.server;
    let (read, due) = (server.read.as_nanos(), server.due.as_nanos());
    let was_cut = server.fault == FaultKind::Cut;
    read <= end
        && !(server.answered && due > end)
        && !(was_cut && (server.answered || (server.started && due < end)))
}

#[cfg(test)]
mod tests {
    use super::super::join::tests::pair;
    use super::*;

    fn cuts(texts: &[&str]) -> Cuts {
        let all: Vec<Cut> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Cuts::new(Stamp::from_nanos(1_000), &all)
    }

    #[test]
    fn the_next_cut_is_the_earliest_that_is_later() {
        let cuts = cuts(&["every=100ns,first=30ns,connection=5", "at=150ns"]);
        for (connection, moment, next) in [
            (Some(5), 0, Some(1_030)),
            (Some(5), 1_030, Some(1_130)),
            (Some(5), 1_130, Some(1_150)),
            (Some(5), 1_150, Some(1_230)),
            (Some(4), 0, Some(1_150)),
            (Some(4), 1_150, None),
            (None, 0, Some(1_030)),
        ] {
            assert_eq!(cuts.after(connection, moment), next, "{moment}");
        }
    }

    #[test]
    fn answers_after_the_cut_and_cuts_without_reason_are_found() {
        // Read at 10 010, due at 11 010.
        let good = pair(7, 0, 10_000);
        let until = |ns: u64| cuts(&[&format!("at={}ns", ns - 1_000)]);
        assert!(until(11_010).keeps(&good, 10_010));
        assert!(!until(11_009).keeps(&good, 10_010));
        assert!(!until(10_010).keeps(&good, 9_000));
        let mut lost = good;
        lost.server.answered = false;
        assert!(until(11_009).keeps(&lost, 10_010));
        lost.server.fault = FaultKind::Cut;
        assert!(until(11_009).keeps(&lost, 10_010));
        assert!(!until(11_010).keeps(&lost, 10_010));
        assert!(!cuts(&[]).keeps(&lost, 10_010));
        lost.server.started = false;
        assert!(until(11_010).keeps(&lost, 10_010));
    }

    #[test]
    fn only_what_met_a_cut_on_its_way_is_excused() {
        // The cut is at 20 000 and a message takes 100.
        let cuts = cuts(&["at=19us"]);
        for (sent, excused) in [
            (19_899, false),
            (19_900, true),
            (20_100, true),
            (20_101, false),
        ] {
            let mut row = pair(7, 0, sent).client;
            row.outcome = Outcome::ConnectionLost;
            let mut joined = Joined {
                client_only: vec![row],
                ..Joined::default()
            };
            cuts.excuse(&mut joined, 100);
            assert_eq!(joined.excused.len(), usize::from(excused), "{sent}");
            assert_eq!(joined.client_only.len(), usize::from(!excused), "{sent}");
        }
    }
}
