//! What an open loop should have measured: its timetable, worked through by plain arithmetic.
//!
//! Given are the intended moments, the delay the server wanted for each request, the server's
//! freezes and the places the client has (connections times slots). The client sends a request at
//! its intended moment, or as soon as a slot is free; requests leave in the order of their intended
//! moments. Connections with a free slot stand in a queue: the first takes the next request and, if
//! it has another free slot, goes to the end (in batch mode it stays in front until all that is due
//! at that moment is sent, and is then closed until all its replies are there). The network takes
//! the same time for every message, and client and server take none.
//!
//! Nothing of the client's or the server's code is used, so what both have in common with this
//! simulation is only the rule.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::timing::Freezes;

/// One request of the timetable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it was to be sent.
    pub intended_ns: u64,
    /// The delay the server wanted for it.
    pub wanted_ns: u64,
}

/// The places of one client thread and the way to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The numbers its connections have on the server, in the order in which they are first used.
    pub connections: Vec<u64>,
    /// Requests in flight on one connection.
    pub depth: usize,
    /// Whether a connection takes new requests only when all its replies are there.
    pub batch: bool,
    /// Time of a message from one side to the other.
    pub leg_ns: u64,
    /// The server's freezes.
    pub freezes: Freezes,
}

/// When a request of the timetable was sent and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// The send.
    pub sent_ns: u64,
    /// The arrival of the reply at the client.
    pub received_ns: u64,
}

/// Works through the timetable of one thread, which is ordered by intended moment. The result has
/// one entry per arrival, in the same order.
#[must_use]
pub fn simulate(pool: &Pool, arrivals: &[Arrival]) -> Vec<Served> {
    let mut run = Run {
        pool,
        arrivals,
        served: Vec::with_capacity(arrivals.len()),
        connections: vec![Connection::default(); pool.connections.len()],
        free: (0..pool.connections.len()).collect(),
        replies: BinaryHeap::new(),
    };
    run.connections
        .iter_mut()
        .for_each(|connection| connection.is_free = true);
    while let Some(next) = arrivals.get(run.served.len()) {
        let reply = run.replies.peek().map(|Reverse((moment, ..))| *moment);
        match reply {
            // A reply that comes at the moment of an arrival frees its slot first.
            Some(moment) if moment <= next.intended_ns || run.free.is_empty() => run.take_replies(),
            None if run.free.is_empty() => break,
            _ => run.send(next.intended_ns),
        }
    }
    run.served
}

struct Run<'a> {
    pool: &'a Pool,
    arrivals: &'a [Arrival],
    served: Vec<Served>,
    connections: Vec<Connection>,
    free: VecDeque<usize>,
    /// Replies on their way: moment, connection.
    replies: BinaryHeap<Reverse<(u64, usize)>>,
}

#[derive(Clone, Debug, Default)]
struct Connection {
    in_flight: usize,
    last_due_ns: u64,
    is_free: bool,
}

impl Run<'_> {
    /// Takes the replies that arrive together on one connection, then sends what waits.
    fn take_replies(&mut self) {
        let Some(Reverse((moment, place))) = self.replies.pop() else {
            return;
        };
        let mut count = 1;
        while self.replies.peek() == Some(&Reverse((moment, place))) {
            self.replies.pop();
            count += 1;
        }
        let connection = &mut self.connections[place];
        connection.in_flight -= count;
        if !connection.is_free && (!self.pool.batch || connection.in_flight == 0) {
            connection.is_free = true;
            self.free.push_back(place);
        }
        self.send(moment);
    }

    /// Sends all that is due at `now`, as far as slots are free.
    fn send(&mut self, now: u64) {
        while let Some(place) = self.free.front().copied()
            && let Some(arrival) = self.arrivals.get(self.served.len())
            && arrival.intended_ns <= now
        {
            let served = self.serve(place, now, arrival.wanted_ns);
            self.served.push(served);
            let connection = &mut self.connections[place];
            if connection.in_flight == self.pool.depth {
                connection.is_free = false;
                self.free.pop_front();
            } else if !self.pool.batch {
                self.free.rotate_left(1);
            }
        }
        while self.pool.batch
            && let Some(place) = self.free.front().copied()
            && self.connections[place].in_flight > 0
        {
            self.connections[place].is_free = false;
            self.free.pop_front();
        }
    }

    fn serve(&mut self, place: usize, sent_ns: u64, wanted_ns: u64) -> Served {
        let number = self.pool.connections[place];
        let leave = |moment| self.pool.freezes.leave(number, moment);
        let connection = &mut self.connections[place];
        let start = leave(sent_ns + self.pool.leg_ns);
        let due = leave((start + wanted_ns).max(connection.last_due_ns));
        connection.last_due_ns = due;
        connection.in_flight += 1;
        let received_ns = due + self.pool.leg_ns;
        self.replies.push(Reverse((received_ns, place)));
        Served {
            sent_ns,
            received_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use kvlab_mock_server::latency::Freeze;
    use kvlab_timing::Stamp;

    use super::super::{Quantile, Sorted};
    use super::*;

    const MS: u64 = 1_000_000;

    fn pool(connections: u64, depth: usize) -> Pool {
        Pool {
            connections: (0..connections).collect(),
            depth,
            batch: false,
            leg_ns: 0,
            freezes: Freezes::default(),
        }
    }

    /// `count` requests, one each `gap_ns`, all of the same delay.
    fn uniform(count: u64, gap_ns: u64, wanted_ns: u64) -> Vec<Arrival> {
        (0..count)
            .map(|i| Arrival {
                intended_ns: i * gap_ns,
                wanted_ns,
            })
            .collect()
    }

    fn responses(arrivals: &[Arrival], served: &[Served]) -> Sorted {
        assert_eq!(arrivals.len(), served.len());
        arrivals
            .iter()
            .zip(served)
            .map(|(a, s)| s.received_ns - a.intended_ns)
            .collect()
    }

    /// 150 ms in each 2 s at one request per millisecond, from the start of a freeze on.
    fn frozen(pool: Pool) -> (Vec<Arrival>, Vec<Served>) {
        let arrivals = uniform(20_000, MS, MS);
        let served = simulate(&frozen_pool(pool), &arrivals);
        (arrivals, served)
    }

    fn frozen_pool(pool: Pool) -> Pool {
        let freeze: Freeze = "every=2s,for=150ms,first=1s".parse().unwrap();
        Pool {
            freezes: Freezes::new(Stamp::ZERO, &[freeze]),
            ..pool
        }
    }

    #[test]
    fn freeze_with_spare_slots_has_the_quantiles_of_the_closed_form() {
        // A request that the server reads x after a whole millisecond, 0 < x < 1. Of each 2000, one
        // is due in the first millisecond of the freeze and moves to its end: 151 - x. The 150 that
        // are read in the freeze start at its end and take 1 ms: 151 - x, 150 - x, ... 2 - x. So the
        // k-th from above is 153 - k - x from k = 2 on; p99 is rank 1980 of 2000 (k = 21) and p99.9
        // is rank 1998 (k = 3).
        for x in [1, 250_000, 999_999] {
            let (mut arrivals, _) = frozen(pool(10, 64));
            arrivals
                .iter_mut()
                .for_each(|arrival| arrival.intended_ns += x);
            let served = simulate(&frozen_pool(pool(10, 64)), &arrivals);
            let all = responses(&arrivals, &served);
            let at = |q| all.quantile(q).unwrap();
            assert_eq!(at(Quantile::P50), MS);
            assert_eq!(at(Quantile::P90), MS);
            assert_eq!(at(Quantile::P99), 132 * MS - x);
            assert_eq!(at(Quantile::P99_9), 150 * MS - x);
            assert_eq!(all.max(), 151 * MS - x);
        }
    }

    #[test]
    fn one_slot_per_connection_queues_behind_the_freeze() {
        // In the freeze ten requests are under way and the others wait. Each round of ten takes
        // 1 ms once it ends, while one more arrives: the queue of 140 shrinks by 9 a millisecond.
        let (arrivals, served) = frozen(pool(10, 1));
        let all = responses(&arrivals, &served);
        assert_eq!(all.quantile(Quantile::P50), Some(MS));
        // The first ten of a freeze start at its end (1150 ms) and are answered at 1151 ms; of the
        // other requests, the k-th (from 10) arrives at 1000 + k and goes in round k / 10: it is
        // answered at 1151 + floor(k / 10), as long as it would otherwise wait.
        for k in 0..160_u64 {
            let place = usize::try_from(1_000 + k).unwrap();
            // The one sent at 999 ms is due in the first moment of the freeze and holds a slot.
            let round = (k + 1) / 10;
            let answered = (1_150 + round).max(1_000 + k) + 1;
            let expected = if k == 9 { 1_151 } else { answered };
            let found = served[place].received_ns;
            assert!(
                found.abs_diff(expected * MS) <= MS,
                "{k}: {found} for {expected} ms"
            );
        }
        // Never idle: the queue is empty at the latest 17 ms after the freeze.
        assert_eq!(served[1_170].sent_ns, 1_170 * MS);
    }

    #[test]
    fn a_single_server_is_the_recursion_of_lindley() {
        // One connection, one slot, random gaps and delays from a small generator: the wait of a
        // request is max(0, wait + service - gap) of the one before.
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let leg_ns = 7;
        let mut arrivals = Vec::new();
        let mut now = 0;
        for _ in 0..1_000 {
            now += draw(1_000);
            arrivals.push(Arrival {
                intended_ns: now,
                wanted_ns: draw(900),
            });
        }
        let served = simulate(
            &Pool {
                leg_ns,
                ..pool(1, 1)
            },
            &arrivals,
        );
        let mut wait = 0;
        for (place, pair) in arrivals.windows(2).enumerate() {
            assert_eq!(served[place].sent_ns, pair[0].intended_ns + wait, "{place}");
            let service = pair[0].wanted_ns + 2 * leg_ns;
            let gap = pair[1].intended_ns - pair[0].intended_ns;
            wait = (wait + service).saturating_sub(gap);
        }
    }

    #[test]
    fn replies_of_a_connection_keep_their_order() {
        let arrivals = [(0, 100), (1, 5), (2, 200)].map(|(intended_ns, wanted_ns)| Arrival {
            intended_ns,
            wanted_ns,
        });
        let received = |depth| -> Vec<u64> {
            let served = simulate(&pool(1, depth), &arrivals);
            served.iter().map(|served| served.received_ns).collect()
        };
        assert_eq!(received(3), [100, 100, 202]);
        // With one slot each waits for the one before.
        assert_eq!(received(1), [100, 105, 305]);
    }

    #[test]
    fn a_batch_takes_no_more_until_all_its_replies_are_there() {
        let arrivals =
            [(0, 100), (0, 300), (10, 50), (20, 50), (301, 50)].map(|(intended_ns, wanted_ns)| {
                Arrival {
                    intended_ns,
                    wanted_ns,
                }
            });
        let batch = Pool {
            batch: true,
            ..pool(1, 4)
        };
        let served = simulate(&batch, &arrivals);
        let sent: Vec<u64> = served.iter().map(|served| served.sent_ns).collect();
        assert_eq!(sent, [0, 0, 300, 300, 350]);
    }
}
