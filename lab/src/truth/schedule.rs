//! What an open loop should have measured: its timetable, worked through by plain arithmetic.
//!
//! Given are the intended moments, the delay and the service that were drawn for each request, the
//! server's freezes, queue and shapes, and the places each thread of the client has (connections times
//! slots). A thread sends a request at its intended moment, or as soon as a slot is free; requests
//! leave in the order of their intended moments. Connections with a free slot stand in a queue: the
//! first takes the next request and, if it has another free slot, goes to the end (in batch mode it
//! stays in front until all that is due at that moment is sent, and is then closed until all its
//! replies are there). The network takes the same time for every message, and client and server take
//! none.
//!
//! Where there are throttles, a request asks them when it would start otherwise and the one before it on
//! its connection has started ([`super::throttle`]); what it is told is held like by a freeze.
//!
//! What happens at one moment happens in this order: replies reach the client, requests reach the
//! server, requests held by a freeze start (all by the numbers of their connections, and a request that
//! arrives finds those before it on its connection started), new requests are due.
//!
//! Nothing of the client's or the server's code is used, so what both have in common with this
//! simulation is only the rule.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use kvlab_mock_server::ServerRow;

use super::line::{Line, LineRule};
use super::shapes::Shapes;
use super::throttle::{Throttles, Told};
use super::timing::Freezes;

/// One request of the timetable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it was to be sent.
    pub intended_ns: u64,
    /// The connection that took it, by its number on the server. It tells those apart that are due
    /// at the same nanosecond, which their moments do not.
    pub connection: u64,
    /// The delay that was drawn for it.
    pub drawn_ns: u64,
    /// The service that was drawn for it.
    pub service_ns: u64,
    /// Whether it reads or writes: then the queue and the shapes concern it.
    pub is_data: bool,
    /// Whether the server refuses it for its size.
    pub is_too_large: bool,
    /// Its row in [`Server::rows`], for the throttles to look at.
    pub row: usize,
}

/// The places of one client thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The numbers its connections have on the server, in the order in which they are first used.
    pub connections: Vec<u64>,
    /// Requests in flight on one connection.
    pub depth: usize,
    /// Whether a connection takes new requests only when all its replies are there.
    pub batch: bool,
}

/// The server and the way to it.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Time of a message from one side to the other.
    pub leg_ns: u64,
    /// Its freezes.
    pub freezes: Freezes,
    /// Its queue.
    pub line: Option<LineRule>,
    /// How it changes delays over time.
    pub shapes: Shapes,
    /// Its throttles, before anybody asked them.
    pub throttles: Throttles,
    /// What throttles look at of the requests: class, command and bytes. Empty without throttles.
    pub rows: Vec<ServerRow>,
}

/// When a request of the timetable was sent and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// The send.
    pub sent_ns: u64,
    /// The arrival of the reply at the client.
    pub received_ns: u64,
}

/// Works through the timetables of all threads, each ordered by intended moment. The result has one
/// entry per arrival, in the same order.
#[must_use]
pub fn simulate(server: &Server, threads: &[(Pool, Vec<Arrival>)]) -> Vec<Vec<Served>> {
    let mut run = Run {
        server,
        line: server.line.map(Line::new),
        throttles: server.throttles.clone(),
        threads: threads.iter().map(Thread::new).collect(),
        events: BinaryHeap::new(),
        count: 0,
    };
    for number in 0..run.threads.len() {
        run.arm(number);
    }
    while let Some(Reverse(event)) = run.events.pop() {
        match event.what {
            What::Reply => run.take_replies(&event),
            What::Arrive => run.arrive(&event),
            What::Leave => run.start_held(&event),
            What::Due => run.send(event.thread, event.moment),
        }
    }
    run.threads
        .into_iter()
        .map(Thread::in_given_order)
        .collect()
}

struct Run<'a> {
    server: &'a Server,
    line: Option<Line>,
    throttles: Throttles,
    threads: Vec<Thread<'a>>,
    events: BinaryHeap<Reverse<Event>>,
    /// Events so far, which tells those apart that are alike.
    count: u64,
}

/// The order of the fields is the order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    moment: u64,
    what: What,
    /// Number of the connection on the server.
    connection: u64,
    count: u64,
    thread: usize,
    place: usize,
    /// Which arrival of the thread it is about.
    index: usize,
}

/// What happens, in the order of what happens at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Reply,
    Arrive,
    Leave,
    Due,
}

struct Thread<'a> {
    pool: &'a Pool,
    /// What is to be sent, each with its place among the arrivals as they were given.
    arrivals: Vec<(Arrival, usize)>,
    served: Vec<Served>,
    connections: Vec<Connection>,
    free: VecDeque<usize>,
    /// The arrival that an event is set for.
    armed: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct Connection {
    in_flight: usize,
    last_due: u64,
    is_free: bool,
    last_start: u64,
    /// Requests that have not started.
    held: VecDeque<Held>,
}

/// A request that reached the server and has not started.
#[derive(Clone, Copy, Debug)]
struct Held {
    arrived: u64,
    index: usize,
    /// What the throttles told it, once it asked.
    told: Option<Told>,
}

impl<'a> Thread<'a> {
    fn new((pool, arrivals): &'a (Pool, Vec<Arrival>)) -> Self {
        let free = Connection {
            is_free: true,
            ..Connection::default()
        };
        Self {
            pool,
            arrivals: arrivals.iter().copied().zip(0..).collect(),
            served: Vec::with_capacity(arrivals.len()),
            connections: vec![free; pool.connections.len()],
            free: (0..pool.connections.len()).collect(),
            armed: None,
        }
    }

    /// The connection that takes the next request, and which that is, if one is due at `now`.
    fn next(&mut self, now: u64) -> Option<(usize, usize)> {
        let place = self.free.front().copied()?;
        let index = self.served.len();
        let due = self.arrivals.get(index)?.0.intended_ns;
        // Of those due at the same moment, the one that this connection took.
        let number = self.pool.connections.get(place).copied();
        let mut alike = self.arrivals[index..]
            .iter()
            .take_while(|(arrival, _)| arrival.intended_ns == due);
        if let Some(ahead) = alike.position(|(arrival, _)| Some(arrival.connection) == number) {
            self.arrivals[index..=index + ahead].rotate_right(1);
        }
        (due <= now).then_some((place, index))
    }

    /// What became of the arrivals, in the order in which they were given.
    fn in_given_order(self) -> Vec<Served> {
        let mut served = vec![Served::default(); self.served.len()];
        for ((_, place), found) in self.arrivals.iter().zip(self.served) {
            if let Some(entry) = served.get_mut(*place) {
                *entry = found;
            }
        }
        served
    }
}

impl Run<'_> {
    fn push(&mut self, moment: u64, what: What, (thread, place, index): (usize, usize, usize)) {
        let connections = &self.threads[thread].pool.connections;
        self.events.push(Reverse(Event {
            moment,
            what,
            connection: connections.get(place).copied().unwrap_or(0),
            count: self.count,
            thread,
            place,
            index,
        }));
        self.count += 1;
    }

    /// Sets an event for the next request, if it has to wait for its moment alone.
    fn arm(&mut self, number: usize) {
        let thread = &mut self.threads[number];
        let index = thread.served.len();
        if let Some(next) = thread.arrivals.get(index)
            && !thread.free.is_empty()
            && thread.armed != Some(index)
        {
            thread.armed = Some(index);
            let moment = next.0.intended_ns;
            self.push(moment, What::Due, (number, 0, index));
        }
    }

    /// Takes the replies that arrive together on one connection, then sends what waits.
    fn take_replies(&mut self, event: &Event) {
        let mut count = 1;
        while let Some(Reverse(next)) = self.events.peek()
            && (next.moment, next.what, next.connection)
                == (event.moment, What::Reply, event.connection)
        {
            self.events.pop();
            count += 1;
        }
        let thread = &mut self.threads[event.thread];
        let connection = &mut thread.connections[event.place];
        connection.in_flight -= count;
        if !connection.is_free && (!thread.pool.batch || connection.in_flight == 0) {
            connection.is_free = true;
            thread.free.push_back(event.place);
        }
        self.send(event.thread, event.moment);
    }

    /// Sends all that is due at `now`, as far as slots are free.
    fn send(&mut self, number: usize, now: u64) {
        let arrives = now + self.server.leg_ns;
        while let Some((place, index)) = self.threads[number].next(now) {
            let thread = &mut self.threads[number];
            thread.served.push(Served {
                sent_ns: now,
                received_ns: 0,
            });
            let connection = &mut thread.connections[place];
            connection.in_flight += 1;
            if connection.in_flight == thread.pool.depth {
                connection.is_free = false;
                thread.free.pop_front();
            } else if !thread.pool.batch {
                thread.free.rotate_left(1);
            }
            self.push(arrives, What::Arrive, (number, place, index));
        }
        let thread = &mut self.threads[number];
        while thread.pool.batch
            && let Some(place) = thread.free.front().copied()
            && thread.connections[place].in_flight > 0
        {
            thread.connections[place].is_free = false;
            thread.free.pop_front();
        }
        self.arm(number);
    }

    /// A request reaches the server.
    fn arrive(&mut self, event: &Event) {
        let connection = &mut self.threads[event.thread].connections[event.place];
        connection.held.push_back(Held {
            arrived: event.moment,
            index: event.index,
            told: None,
        });
        self.start_held(event);
    }

    /// Starts those held requests of a connection whose time has come, and sets an event for the next.
    fn start_held(&mut self, event: &Event) {
        let here = (event.thread, event.place);
        let server = self.server;
        let leave = |moment| server.freezes.leave(event.connection, moment);
        loop {
            let thread = &mut self.threads[event.thread];
            let connection = &mut thread.connections[event.place];
            let Some(next) = connection.held.front().copied() else {
                return;
            };
            let asks = leave(next.arrived.max(connection.last_start));
            if asks > event.moment {
                self.push(asks, What::Leave, (here.0, here.1, next.index));
                return;
            }
            let arrival = thread.arrivals.get(next.index).map(|(arrival, _)| *arrival);
            let row = arrival.filter(|arrival| !arrival.is_too_large);
            let row = row.and_then(|arrival| server.rows.get(arrival.row));
            let told = next.told.unwrap_or_else(|| match row {
                Some(row) => self.throttles.ask(row, asks),
                None => Told::Turn(asks),
            });
            let (starts, passes) = match told {
                Told::Turn(turn) => (leave(turn.max(asks)), true),
                Told::Error | Told::Drop => (asks, false),
            };
            if starts > event.moment {
                if let Some(front) = connection.held.front_mut() {
                    front.told = Some(told);
                }
                self.push(starts, What::Leave, (here.0, here.1, next.index));
                return;
            }
            connection.held.pop_front();
            connection.last_start = starts;
            self.start(event, next.index, passes);
        }
    }

    /// Request `index` of the event's thread starts on the event's connection, at its moment.
    fn start(&mut self, event: &Event, index: usize, passes: bool) {
        let thread = &mut self.threads[event.thread];
        let Some((arrival, _)) = thread.arrivals.get(index).copied() else {
            return;
        };
        let begin = match &mut self.line {
            _ if !passes || arrival.is_too_large => None,
            Some(line) if arrival.is_data => line.pass(event.moment, arrival.service_ns),
            _ => Some(event.moment),
        };
        let ready = match begin {
            Some(begin) if arrival.is_data => {
                let wanted = self.server.shapes.wanted(arrival.drawn_ns, event.moment);
                begin + arrival.service_ns + wanted
            }
            Some(begin) => begin + arrival.drawn_ns,
            // Refused at once.
            None => event.moment,
        };
        let written = match self.server.rows.get(arrival.row) {
            Some(row) if begin.is_some() => self.throttles.reply(row, event.moment),
            _ => event.moment,
        };
        let connection = &mut thread.connections[event.place];
        let due = ready.max(written).max(connection.last_due);
        let due = self.server.freezes.leave(event.connection, due);
        connection.last_due = due;
        let received = due + self.server.leg_ns;
        if let Some(served) = thread.served.get_mut(index) {
            served.received_ns = received;
        }
        self.push(received, What::Reply, (event.thread, event.place, index));
    }
}

#[cfg(test)]
mod tests {
    use kvlab_mock_server::latency::Freeze;
    use kvlab_timing::Stamp;

    use super::super::join::tests::pair;
    use super::super::{Quantile, Sorted};
    use super::*;

    const MS: u64 = 1_000_000;

    fn pool(connections: u64, depth: usize) -> Pool {
        Pool {
            connections: (0..connections).collect(),
            depth,
            batch: false,
        }
    }

    fn arrival(intended_ns: u64, drawn_ns: u64) -> Arrival {
        Arrival {
            intended_ns,
            connection: 0,
            drawn_ns,
            service_ns: 0,
            is_data: true,
            is_too_large: false,
            row: 0,
        }
    }

    /// One thread alone.
    fn alone(server: &Server, pool: Pool, arrivals: &[Arrival]) -> Vec<Served> {
        simulate(server, &[(pool, arrivals.to_vec())]).remove(0)
    }

    /// `count` requests, one each `gap_ns`, all of the same delay.
    fn uniform(count: u64, gap_ns: u64, wanted_ns: u64) -> Vec<Arrival> {
        (0..count).map(|i| arrival(i * gap_ns, wanted_ns)).collect()
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
        let served = alone(&freezing(), pool, &arrivals);
        (arrivals, served)
    }

    fn freezing() -> Server {
        let freeze: Freeze = "every=2s,for=150ms,first=1s".parse().unwrap();
        Server {
            freezes: Freezes::new(Stamp::ZERO, &[freeze]),
            ..Server::default()
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
            let served = alone(&freezing(), pool(10, 64), &arrivals);
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
            arrivals.push(arrival(now, draw(900)));
        }
        let server = Server {
            leg_ns,
            ..Server::default()
        };
        let served = alone(&server, pool(1, 1), &arrivals);
        let mut wait = 0;
        for (place, pair) in arrivals.windows(2).enumerate() {
            assert_eq!(served[place].sent_ns, pair[0].intended_ns + wait, "{place}");
            let service = pair[0].drawn_ns + 2 * leg_ns;
            let gap = pair[1].intended_ns - pair[0].intended_ns;
            wait = (wait + service).saturating_sub(gap);
        }
    }

    #[test]
    fn requests_due_at_the_same_moment_go_to_the_connections_that_took_them() {
        // The one of connection 9 stands second and takes long, but connection 9 is the first.
        let request = |intended_ns, connection, drawn_ns| Arrival {
            connection,
            ..arrival(intended_ns, drawn_ns)
        };
        let arrivals = [
            request(5, 4, 10),
            request(5, 9, 700),
            request(6, 4, 10),
            request(6, 4, 20),
        ];
        let pool = Pool {
            connections: vec![9, 4],
            ..pool(2, 1)
        };
        let served = simulate(&Server::default(), &[(pool, arrivals.to_vec())]);
        let moments: Vec<(u64, u64)> = served[0]
            .iter()
            .map(|served| (served.sent_ns, served.received_ns))
            .collect();
        assert_eq!(moments, [(5, 15), (5, 705), (15, 25), (25, 45)]);
    }

    #[test]
    fn replies_of_a_connection_keep_their_order() {
        let arrivals = [(0, 100), (1, 5), (2, 200)].map(|(at, delay)| arrival(at, delay));
        let received = |depth| -> Vec<u64> {
            let served = alone(&Server::default(), pool(1, depth), &arrivals);
            served.iter().map(|served| served.received_ns).collect()
        };
        assert_eq!(received(3), [100, 100, 202]);
        // With one slot each waits for the one before.
        assert_eq!(received(1), [100, 105, 305]);
    }

    #[test]
    fn a_batch_takes_no_more_until_all_its_replies_are_there() {
        let arrivals = [(0, 100), (0, 300), (10, 50), (20, 50), (301, 50)]
            .map(|(at, delay)| arrival(at, delay));
        let batch = Pool {
            batch: true,
            ..pool(1, 4)
        };
        let served = alone(&Server::default(), batch, &arrivals);
        let sent: Vec<u64> = served.iter().map(|served| served.sent_ns).collect();
        assert_eq!(sent, [0, 0, 300, 300, 350]);
    }

    #[test]
    fn all_threads_stand_in_one_line() {
        // One server, a service of 10 and a delay of 1 behind it; two threads of one connection each.
        let request = |intended_ns| Arrival {
            intended_ns,
            connection: 0,
            drawn_ns: 1,
            service_ns: 10,
            is_data: true,
            is_too_large: false,
            row: 0,
        };
        let thread = |number: u64, moments: &[u64]| {
            let pool = Pool {
                connections: vec![number],
                ..pool(1, 4)
            };
            let arrivals = moments.iter().copied().map(request).collect::<Vec<_>>();
            (pool, arrivals)
        };
        let server = |limit| Server {
            leg_ns: 100,
            line: Some(LineRule { servers: 1, limit }),
            ..Server::default()
        };
        let received = |server: &Server| -> Vec<Vec<u64>> {
            // At 0 both send; the connection with the lower number is served first.
            let threads = [thread(8, &[0, 3, 50]), thread(7, &[0, 12])];
            let served = simulate(server, &threads);
            served
                .iter()
                .map(|thread| thread.iter().map(|served| served.received_ns).collect())
                .collect()
        };
        assert_eq!(
            received(&server(None)),
            [vec![221, 231, 261], vec![211, 241]]
        );
        // One may wait: the request of 3 finds one waiting and is refused at once, behind the reply
        // before it on its connection.
        assert_eq!(
            received(&server(Some(1))),
            [vec![221, 221, 261], vec![211, 231]]
        );
    }

    #[test]
    fn requests_take_their_turns_by_the_throttles() {
        // One at once and one each microsecond; a batch of three, and one from another connection
        // while the second waits: connections take turns, as each has one request that asks.
        let row = pair(7, 0, 0).server;
        let throttle = "ops=1000000/s,burst=1".parse().unwrap();
        let server = Server {
            leg_ns: 100,
            throttles: Throttles::new(&[throttle]),
            rows: vec![row],
            ..Server::default()
        };
        let thread = |number: u64, moments: &[u64]| {
            let pool = Pool {
                connections: vec![number],
                ..pool(1, 4)
            };
            let arrivals = moments
                .iter()
                .map(|at| arrival(*at, 10))
                .collect::<Vec<_>>();
            (pool, arrivals)
        };
        let threads = [thread(0, &[0, 0, 0]), thread(1, &[500])];
        let served = simulate(&server, &threads);
        let received: Vec<Vec<u64>> = served
            .iter()
            .map(|thread| thread.iter().map(|served| served.received_ns).collect())
            .collect();
        assert_eq!(received, [vec![210, 1_210, 3_210], vec![2_210]]);
        // Refused at once, and behind what is refused nothing waits.
        let refusing = Server {
            throttles: Throttles::new(&["ops=1000000/s,burst=1,then=error".parse().unwrap()]),
            ..server
        };
        let served = simulate(&refusing, &[thread(0, &[0, 0, 1_000])]);
        let received: Vec<u64> = served[0].iter().map(|served| served.received_ns).collect();
        assert_eq!(received, [210, 210, 1_210]);
    }

    #[test]
    fn a_request_that_arrives_finds_those_held_before_it_started() {
        // A freeze until 1000. On connection 5 one waits for its end, on 9 one arrives right then.
        let freeze: Freeze = "at=0,for=1us".parse().unwrap();
        let server = Server {
            leg_ns: 100,
            freezes: Freezes::new(Stamp::ZERO, &[freeze]),
            line: Some(LineRule {
                servers: 1,
                limit: None,
            }),
            ..Server::default()
        };
        let request = |intended_ns| Arrival {
            intended_ns,
            connection: 0,
            drawn_ns: 0,
            service_ns: 10,
            is_data: true,
            is_too_large: false,
            row: 0,
        };
        let threads = [
            (
                Pool {
                    connections: vec![5],
                    ..pool(1, 4)
                },
                vec![request(0)],
            ),
            (
                Pool {
                    connections: vec![9],
                    ..pool(1, 4)
                },
                vec![request(200), request(900)],
            ),
        ];
        let served = simulate(&server, &threads);
        let received: Vec<u64> = served
            .iter()
            .flatten()
            .map(|served| served.received_ns)
            .collect();
        assert_eq!(received, [1_130, 1_110, 1_120]);
    }
}
