//! The gatekeeper: decides about every connection at the moment it arrives, for all ports of a server.
//!
//! ```text
//! arrival ──> place free? ──no──> told | closed | reset | waits in the backlog
//!                │yes
//!                v
//!             token there? ──no──> held until its moment | told | closed | reset | waits
//!                │yes
//!                v
//!             served
//! ```
//!
//! A connection has a place from its acceptance, held or not, to its end, and a place that becomes free
//! can be taken at once. What the number of connections refuses takes no token. Places are counted for
//! each protocol by itself, as `maxclients` and `proto-fd-max` are those of two servers; a connection of
//! the port for both counts as RESP until its first byte says otherwise. The bucket is one for all ports:
//! it stands for what lies before a server.
//!
//! In the backlog form nothing is asked when a connection arrives: the acceptor asks beforehand how many
//! it may accept ([`Gatekeeper::room`]) and leaves all others to the kernel.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;
use kvlab_timing::{Stamp, TokenBucket};

use super::connections::{AcceptLimit, ConnectionLimit, ConnectionLimits};
use crate::dialect::Listener;
use crate::exchange::Protocol;

/// Decides who is let in. See the module documentation.
#[derive(Debug)]
pub struct Gatekeeper {
    at_cap: [AtCap; 2],
    max_per_address: Option<u64>,
    at_rate: [AtRate; 2],
    stops_accepting: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    bucket: Option<TokenBucket>,
    sides: [Side; 2],
    counts: AcceptCounts,
    /// Who waits for a place to become free.
    wakers: Vec<Waker>,
}

/// The connections of one protocol.
#[derive(Debug, Default)]
struct Side {
    cap: u64,
    connected: u64,
    by_address: HashMap<IpAddr, u64>,
    statistics: SideStatistics,
}

/// What the statistics of a real server tell of its connections, since its start or their reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SideStatistics {
    /// Connections that were let in.
    pub opened: u64,
    /// Those of them that have ended.
    pub closed: u64,
    /// Connections that were turned away.
    pub refused: u64,
}

#[derive(Debug, Clone)]
enum AtCap {
    Refuse(Turned),
    Backlog,
}

#[derive(Debug, Clone)]
enum AtRate {
    Delay,
    Refuse(Turned),
    Backlog,
}

/// What is to become of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is served.
    Serve,
    /// It is served, and not read before this moment.
    Hold(Stamp),
    /// It is not served.
    Refuse(Turned),
}

/// How a connection was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// The side it is counted on.
    pub side: Protocol,
    /// The moment before which nothing of it is read.
    pub held_until: Option<Stamp>,
}

impl Admission {
    /// A connection of `side` that is read at once.
    #[must_use]
    pub fn at_once(side: Protocol) -> Self {
        Self {
            side,
            held_until: None,
        }
    }
}

/// How a connection is turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turned {
    /// It is sent these bytes, before anything is read, and ends.
    Told(Bytes),
    /// It ends without a word.
    Closed,
    /// It is reset.
    Reset,
}

/// How many connections may be accepted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// As many as one likes; each is decided about when it is there.
    Unbounded,
    /// So many, at least one; one more from `more_at` on, if nothing is accepted until then.
    Some {
        /// How many.
        count: u64,
        /// When there will be one more by itself.
        more_at: Option<Stamp>,
    },
    /// None before this moment; without a moment, before a place becomes free.
    None {
        /// When there will be one by itself.
        until: Option<Stamp>,
    },
}

/// What a gatekeeper did in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcceptCounts {
    /// Connections that were held until their moment.
    pub held: u64,
    /// Connections that waited in the backlog before they were accepted.
    pub waited: u64,
    /// Connections that were told why they are not served.
    pub told: u64,
    /// Connections that were closed without a word.
    pub closed: u64,
    /// Connections that were reset.
    pub reset: u64,
}

impl AcceptCounts {
    /// Adds what another one did.
    pub fn merge(&mut self, other: &Self) {
        self.held += other.held;
        self.waited += other.waited;
        self.told += other.told;
        self.closed += other.closed;
        self.reset += other.reset;
    }
}

impl Gatekeeper {
    /// The gatekeeper of a server with these limits that starts at `started`, and whose RESP side has
    /// room for `redis_max` connections.
    #[must_use]
    pub fn new(limits: &ConnectionLimits, redis_max: u64, started: Stamp) -> Self {
        let side = |cap| Side {
            cap,
            ..Side::default()
        };
        let aerospike_max = limits.max.unwrap_or(ConnectionLimits::AEROSPIKE_MAX);
        Self {
            at_cap: [Protocol::Redis, Protocol::Aerospike].map(|side| at_cap(limits, side)),
            max_per_address: limits.max_per_address,
            at_rate: [Protocol::Redis, Protocol::Aerospike].map(|side| at_rate(limits, side)),
            stops_accepting: limits.stops_accepting(),
            inner: Mutex::new(Inner {
                bucket: limits.bucket(started),
                sides: [side(redis_max), side(aerospike_max)],
                counts: AcceptCounts::default(),
                wakers: Vec::new(),
            }),
        }
    }

    /// The side that connections of a port belong to.
    #[must_use]
    pub fn side_of(listener: Listener) -> Protocol {
        match listener {
            Listener::Redis | Listener::Shared => Protocol::Redis,
            Listener::Aerospike => Protocol::Aerospike,
        }
    }

    /// Whether an acceptor has to ask for room before it accepts.
    #[must_use]
    pub fn stops_accepting(&self) -> bool {
        self.stops_accepting
    }

    /// How many connections of `side` may be accepted at `now`. Where there are none, or where more
    /// could be let in once a place is free, `waker` is woken when one is.
    pub fn room(&self, now: Stamp, side: Protocol, waker: Option<&Waker>) -> Room {
        let mut inner = self.lock();
        let (mut count, mut more_at) = (u64::MAX, None);
        if matches!(self.at_rate[side as usize], AtRate::Backlog)
            && let Some(bucket) = &inner.bucket
        {
            count = bucket.available(now);
            if count < bucket.capacity() {
                more_at = Some(bucket.next_available(now, count + 1));
            }
        }
        if matches!(self.at_cap[side as usize], AtCap::Backlog) {
            let of_side = &inner.sides[side as usize];
            let free = of_side.cap.saturating_sub(of_side.connected);
            if free <= count {
                // More tokens would let nobody in.
                (count, more_at) = (free, None);
            }
            if let Some(waker) = waker
                && !inner.wakers.iter().any(|known| known.will_wake(waker))
            {
                inner.wakers.push(waker.clone());
            }
        }
        match count {
            u64::MAX => Room::Unbounded,
            0 => Room::None { until: more_at },
            count => Room::Some { count, more_at },
        }
    }

    /// Decides about a connection of `side` from `address` that is there at `now`; `waited` says that
    /// it was left in the backlog before.
    pub fn admit(&self, now: Stamp, side: Protocol, address: IpAddr, waited: bool) -> Verdict {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let of_side = &mut inner.sides[side as usize];
        let from_there = of_side.by_address.get(&address).copied().unwrap_or(0);
        let is_full = of_side.connected >= of_side.cap
            || self.max_per_address.is_some_and(|most| from_there >= most);
        if is_full && let AtCap::Refuse(how) = &self.at_cap[side as usize] {
            return inner.refuse(side, how);
        }
        let mut until = None;
        if let Some(bucket) = &mut inner.bucket {
            match &self.at_rate[side as usize] {
                AtRate::Delay => until = Some(bucket.reserve(now, 1)).filter(|turn| *turn > now),
                AtRate::Refuse(how) => {
                    if !bucket.take(now, 1) {
                        return inner.refuse(side, how);
                    }
                }
                // There was room, so there is a token.
                AtRate::Backlog => drop(bucket.take(now, 1)),
            }
        }
        of_side.enter(address, self.max_per_address.is_some());
        inner.counts.waited += u64::from(waited);
        match until {
            Some(until) => {
                inner.counts.held += 1;
                Verdict::Hold(until)
            }
            None => Verdict::Serve,
        }
    }

    /// A connection that was let in has ended: its place is free.
    pub fn leave(&self, side: Protocol, address: IpAddr) {
        let wakers = {
            let mut inner = self.lock();
            inner.sides[side as usize].leave(address);
            std::mem::take(&mut inner.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// A connection of the port for both protocols turned out to be of another side than it was counted
    /// on. Whether there is a place for it; it has one in any case and ends without a word if not.
    pub fn change_side(&self, from: Protocol, to: Protocol, address: IpAddr) -> bool {
        if from == to {
            return true;
        }
        let (fits, wakers) = {
            let mut inner = self.lock();
            let inner = &mut *inner;
            let old = &mut inner.sides[from as usize];
            old.leave(address);
            // It never was one of them.
            old.statistics.opened = old.statistics.opened.saturating_sub(1);
            old.statistics.closed = old.statistics.closed.saturating_sub(1);
            let new = &mut inner.sides[to as usize];
            let from_there = new.by_address.get(&address).copied().unwrap_or(0);
            let fits = new.connected < new.cap
                && self.max_per_address.is_none_or(|most| from_there < most);
            new.enter(address, self.max_per_address.is_some());
            if !fits {
                new.statistics.refused += 1;
                inner.counts.closed += 1;
            }
            (fits, std::mem::take(&mut inner.wakers))
        };
        wakers.into_iter().for_each(Waker::wake);
        fits
    }

    /// How many connections `side` may have from now on; those it has stay.
    pub fn set_cap(&self, side: Protocol, cap: u64) {
        let wakers = {
            let mut inner = self.lock();
            inner.sides[side as usize].cap = cap;
            std::mem::take(&mut inner.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How many connections `side` may have.
    #[must_use]
    pub fn cap(&self, side: Protocol) -> u64 {
        self.lock().sides[side as usize].cap
    }

    /// How many connections `side` has.
    #[must_use]
    pub fn connected(&self, side: Protocol) -> u64 {
        self.lock().sides[side as usize].connected
    }

    /// What the statistics of a real server tell.
    #[must_use]
    pub fn statistics(&self, side: Protocol) -> SideStatistics {
        self.lock().sides[side as usize].statistics
    }

    /// Starts the statistics of a side again, as CONFIG RESETSTAT does.
    pub fn reset_statistics(&self, side: Protocol) {
        self.lock().sides[side as usize].statistics = SideStatistics::default();
    }

    /// What was done in the run so far.
    #[must_use]
    pub fn counts(&self) -> AcceptCounts {
        self.lock().counts
    }

    /// What was done in the run, which ends.
    pub fn take_counts(&self) -> AcceptCounts {
        std::mem::take(&mut self.lock().counts)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is complete when its guard goes, so a poisoned lock is still sound.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn refuse(&mut self, side: Protocol, how: &Turned) -> Verdict {
        *match how {
            Turned::Told(_) => &mut self.counts.told,
            Turned::Closed => &mut self.counts.closed,
            Turned::Reset => &mut self.counts.reset,
        } += 1;
        self.sides[side as usize].statistics.refused += 1;
        Verdict::Refuse(how.clone())
    }
}

impl Side {
    fn enter(&mut self, address: IpAddr, by_address: bool) {
        self.connected += 1;
        self.statistics.opened += 1;
        if by_address {
            *self.by_address.entry(address).or_default() += 1;
        }
    }

    fn leave(&mut self, address: IpAddr) {
        self.connected = self.connected.saturating_sub(1);
        self.statistics.closed += 1;
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

fn at_cap(limits: &ConnectionLimits, side: Protocol) -> AtCap {
    let usual = match side {
        Protocol::Redis => ConnectionLimit::Error,
        Protocol::Aerospike => ConnectionLimit::Close,
    };
    match limits.at_cap.unwrap_or(usual) {
        ConnectionLimit::Error => AtCap::Refuse(told(limits.text.as_deref(), side)),
        ConnectionLimit::Close => AtCap::Refuse(Turned::Closed),
        ConnectionLimit::Reset => AtCap::Refuse(Turned::Reset),
        ConnectionLimit::Backlog => AtCap::Backlog,
    }
}

fn at_rate(limits: &ConnectionLimits, side: Protocol) -> AtRate {
    match limits.at_rate {
        AcceptLimit::Delay => AtRate::Delay,
        AcceptLimit::Error => AtRate::Refuse(told(limits.rate_text.as_deref(), side)),
        AcceptLimit::Close => AtRate::Refuse(Turned::Closed),
        AcceptLimit::Reset => AtRate::Refuse(Turned::Reset),
        AcceptLimit::Backlog => AtRate::Backlog,
    }
}

/// An error reply where the protocol has one that nobody asked for.
fn told(text: Option<&str>, side: Protocol) -> Turned {
    match side {
        Protocol::Redis => {
            let text = text.unwrap_or(ConnectionLimits::TEXT);
            Turned::Told(Bytes::from(format!("-{text}\r\n")))
        }
        Protocol::Aerospike => Turned::Closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: Protocol = Protocol::Redis;
    const A: Protocol = Protocol::Aerospike;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    fn ms(millis: u64) -> Stamp {
        Stamp::from_nanos(millis * 1_000_000)
    }

    fn keeper(change: impl FnOnce(&mut ConnectionLimits)) -> Gatekeeper {
        let mut limits = ConnectionLimits::default();
        change(&mut limits);
        let redis_max = limits.max.unwrap_or(ConnectionLimits::REDIS_MAX);
        Gatekeeper::new(&limits, redis_max, Stamp::ZERO)
    }

    fn is_served(keeper: &Gatekeeper, side: Protocol, address: IpAddr) -> bool {
        keeper.admit(ms(0), side, address, false) == Verdict::Serve
    }

    #[test]
    fn the_cap_is_exact_and_a_free_place_is_free_at_once() {
        for side in [R, A] {
            let keeper = keeper(|l| l.max = Some(3));
            for _ in 0..3 {
                assert!(is_served(&keeper, side, ip(1)));
            }
            for _ in 0..2 {
                let expected = match side {
                    R => Turned::Told("-ERR max number of clients reached\r\n".into()),
                    A => Turned::Closed,
                };
                let verdict = keeper.admit(ms(0), side, ip(2), false);
                assert_eq!(verdict, Verdict::Refuse(expected));
            }
            keeper.leave(side, ip(1));
            assert!(is_served(&keeper, side, ip(2)));
            assert!(!is_served(&keeper, side, ip(2)));
            let expected = SideStatistics {
                opened: 4,
                closed: 1,
                refused: 3,
            };
            assert_eq!(keeper.statistics(side), expected);
        }
    }

    #[test]
    fn each_side_has_places_of_its_own() {
        let keeper = keeper(|l| l.max = Some(1));
        assert!(is_served(&keeper, R, ip(1)));
        assert!(is_served(&keeper, A, ip(1)));
        assert!(!is_served(&keeper, R, ip(1)));
        assert!(!is_served(&keeper, A, ip(1)));
    }

    #[test]
    fn a_connection_that_changes_sides_takes_its_place_along() {
        let keeper = keeper(|l| l.max = Some(1));
        assert!(is_served(&keeper, R, ip(1)));
        assert!(keeper.change_side(R, A, ip(1)));
        assert_eq!((keeper.connected(R), keeper.connected(A)), (0, 1));
        assert_eq!(keeper.statistics(R), SideStatistics::default());
        assert!(is_served(&keeper, R, ip(1)));
        assert!(!keeper.change_side(R, A, ip(1)));
        // It is there until it has been hung up on.
        assert_eq!((keeper.connected(R), keeper.connected(A)), (0, 2));
        keeper.leave(A, ip(1));
        assert_eq!(keeper.connected(A), 1);
        assert_eq!(keeper.counts().closed, 1);
    }

    #[test]
    fn addresses_are_counted_apart() {
        let keeper = keeper(|l| l.max_per_address = Some(2));
        for _ in 0..2 {
            assert!(is_served(&keeper, R, ip(1)));
        }
        assert!(!is_served(&keeper, R, ip(1)));
        assert!(is_served(&keeper, R, ip(2)));
        keeper.leave(R, ip(1));
        assert!(is_served(&keeper, R, ip(1)));
    }

    #[test]
    fn held_connections_have_a_place_and_refused_ones_take_no_token() {
        let keeper = keeper(|l| {
            l.max = Some(3);
            l.rate = Some("1/10ms".parse().unwrap());
        });
        assert_eq!(keeper.admit(ms(0), R, ip(1), false), Verdict::Serve);
        for turn in [10, 20] {
            let verdict = keeper.admit(ms(0), R, ip(1), false);
            assert_eq!(verdict, Verdict::Hold(ms(turn)));
        }
        for _ in 0..5 {
            assert!(!is_served(&keeper, R, ip(1)));
        }
        keeper.leave(R, ip(1));
        assert_eq!(keeper.admit(ms(0), R, ip(1), false), Verdict::Hold(ms(30)));
        assert_eq!((keeper.counts().held, keeper.counts().told), (3, 5));
    }

    /// 1,000 at once against 200 per 500 ms: the first 200 pass; with a second core twice as many.
    #[test]
    fn resets_come_in_exact_numbers() {
        for (cores, passing) in [(1, 200), (2, 400)] {
            let keeper = keeper(|l| {
                l.rate = Some("200/500ms".parse().unwrap());
                l.at_rate = AcceptLimit::Reset;
                l.cores = cores;
            });
            let verdicts = (0..1_000).map(|_| keeper.admit(ms(0), A, ip(1), false));
            let served = verdicts.filter(|verdict| *verdict == Verdict::Serve);
            assert_eq!(served.count(), passing);
            assert_eq!(keeper.counts().reset, 1_000 - passing as u64);
            // A token every 2.5 ms of one core is there, and not before.
            let wait = Stamp::from_nanos(2_500_000 / u64::from(cores));
            let refused = keeper.admit(wait.sub_nanos(1), A, ip(1), false);
            assert_eq!(refused, Verdict::Refuse(Turned::Reset));
            assert_eq!(keeper.admit(wait, A, ip(1), false), Verdict::Serve);
        }
    }

    #[test]
    fn the_backlog_form_says_beforehand_how_many() {
        let keeper = keeper(|l| {
            l.rate = Some("2/10ms".parse().unwrap());
            l.at_rate = AcceptLimit::Backlog;
        });
        let more_at = None;
        assert_eq!(
            keeper.room(ms(0), R, None),
            Room::Some { count: 2, more_at }
        );
        for _ in 0..2 {
            assert!(is_served(&keeper, R, ip(1)));
        }
        let until = Some(ms(5));
        assert_eq!(keeper.room(ms(0), R, None), Room::None { until });
        let more_at = Some(ms(10));
        assert_eq!(
            keeper.room(ms(5), R, None),
            Room::Some { count: 1, more_at }
        );
        assert_eq!(keeper.admit(ms(5), R, ip(1), true), Verdict::Serve);
        assert_eq!(keeper.counts().waited, 1);
    }

    #[test]
    fn a_full_server_has_room_when_somebody_leaves() {
        let keeper = keeper(|l| {
            l.max = Some(1);
            l.at_cap = Some(ConnectionLimit::Backlog);
        });
        assert!(keeper.stops_accepting());
        assert!(is_served(&keeper, R, ip(1)));
        let until = None;
        assert_eq!(keeper.room(ms(0), R, None), Room::None { until });
        keeper.leave(R, ip(1));
        let (count, more_at) = (1, None);
        assert_eq!(keeper.room(ms(0), R, None), Room::Some { count, more_at });
        keeper.set_cap(R, 0);
        assert_eq!(keeper.room(ms(0), R, None), Room::None { until });
    }
}
