//! A queue in front of the store: requests pass a station of a few servers, first come first served,
//! as on a machine with so many cores or disks.
//!
//! ```text
//! begin  = max(start, the moment at which the first server becomes free)
//! finish = begin + service
//! due    = max(finish + wanted, previous due of the connection, end of a freeze)
//! ```
//!
//! Every read and write of both protocols passes the one station of the whole server, in the order in
//! which they start. The station stands under a lock, which is held while a request is admitted and
//! executed; a server without a queue has none.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::str::FromStr;

use kvlab_timing::Stamp;

use super::Distribution;
use super::text::{ParseError, Problem, Values, arguments_of};

/// What a queue is made of. The text form is `servers=4,service=exponential(mean=1ms)`, with an
/// optional `limit=100`.
///
/// ```
/// use kvlab_mock_server::latency::Queue;
///
/// let queue: Queue = "servers=4,service=exponential(mean=1ms),limit=100".parse()?;
/// assert_eq!((queue.servers, queue.limit), (4, Some(100)));
/// # Ok::<(), kvlab_mock_server::latency::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// How many requests are served at a time; from 1 to [`Queue::MAX_SERVERS`].
    pub servers: usize,
    /// How long a server takes for one.
    pub service: Distribution,
    /// How many may wait; one that finds so many waiting is refused.
    pub limit: Option<u64>,
}

impl Queue {
    /// More servers are refused.
    pub const MAX_SERVERS: usize = 4096;

    /// A queue without a limit.
    ///
    /// # Errors
    /// When there are no servers or more than [`Queue::MAX_SERVERS`].
    pub fn new(servers: usize, service: Distribution) -> Result<Self, Problem> {
        if !(1..=Self::MAX_SERVERS).contains(&servers) {
            return Err(Problem::Servers {
                found: servers.to_string(),
            });
        }
        Ok(Self {
            servers,
            service,
            limit: None,
        })
    }
}

/// The station of a running server: who is served and who waits.
#[derive(Debug)]
pub(crate) struct Station {
    /// When each server that was ever used becomes free.
    busy_until: BinaryHeap<Reverse<Stamp>>,
    servers: usize,
    /// When those begin that had to wait.
    waiting: VecDeque<Stamp>,
    limit: usize,
    /// How many requests came, refused ones included.
    came: u64,
}

/// How a request passed the station.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Passage {
    /// Its place in the order in which requests came, from 0.
    pub(crate) place: u64,
    /// What it waited for a server.
    pub(crate) wait_ns: u64,
    /// What its server took.
    pub(crate) service_ns: u64,
}

impl Passage {
    /// From its start to the end of its service.
    pub(crate) fn total_ns(self) -> u64 {
        self.wait_ns + self.service_ns
    }
}

impl Station {
    pub(crate) fn new(queue: &Queue) -> Self {
        let limit = queue.limit.unwrap_or(u64::MAX);
        Self {
            busy_until: BinaryHeap::with_capacity(queue.servers),
            servers: queue.servers,
            waiting: VecDeque::new(),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            came: 0,
        }
    }

    /// Whether a request that starts at `start` has to be refused; then it has come and gone, and
    /// this is its place.
    pub(crate) fn refuses(&mut self, start: Stamp) -> Option<u64> {
        while self.waiting.front().is_some_and(|begin| *begin <= start) {
            self.waiting.pop_front();
        }
        let is_refused = self.waiting.len() >= self.limit && self.free_at(start) > start;
        is_refused.then(|| self.next_place())
    }

    /// A request that starts at `start`, and is not refused, is served for `service_ns`.
    pub(crate) fn serve(&mut self, start: Stamp, service_ns: u64) -> Passage {
        let begin = self.free_at(start).max(start);
        if self.busy_until.len() >= self.servers {
            self.busy_until.pop();
        }
        self.busy_until.push(Reverse(begin.add_nanos(service_ns)));
        if begin > start {
            self.waiting.push_back(begin);
        }
        Passage {
            place: self.next_place(),
            wait_ns: begin.saturating_since(start),
            service_ns,
        }
    }

    fn next_place(&mut self) -> u64 {
        self.came += 1;
        self.came - 1
    }

    /// When the first server is free; at once while one was never used.
    fn free_at(&self, now: Stamp) -> Stamp {
        match self.busy_until.peek() {
            Some(Reverse(first)) if self.busy_until.len() >= self.servers => *first,
            _ => now,
        }
    }
}

impl FromStr for Queue {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let arguments = arguments_of(text, 0);
        let values = Values::sort(text, 0, arguments, &["servers", "service", "limit"])?;
        let servers = values.count("servers")?;
        let (law, at) = values.text("service")?;
        let service = law.parse().map_err(|error: ParseError| {
            // The law's own message, with its place in the whole.
            ParseError::new(text, at + error.at, error.problem)
        })?;
        let servers = usize::try_from(servers).unwrap_or(usize::MAX);
        let queue = Self::new(servers, service).map_err(|problem| values.error(problem))?;
        Ok(Self {
            limit: values.optional_count("limit")?,
            ..queue
        })
    }
}

impl TryFrom<&str> for Queue {
    type Error = ParseError;

    fn try_from(text: &str) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "servers={},service={}", self.servers, self.service)?;
        match self.limit {
            Some(limit) => write!(f, ",limit={limit}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_is_read_and_printed() {
        for (text, printed) in [
            (
                "servers=4,service=exponential(mean=1ms)",
                "servers=4,service=exponential(mean=1ms)",
            ),
            (
                "limit=0, service=mixture(99%:uniform(1ms,3ms),1%:constant(50ms)), servers=1",
                "servers=1,service=mixture(99%:uniform(1ms,3ms),1%:constant(50ms)),limit=0",
            ),
        ] {
            let queue: Queue = text.parse().unwrap();
            assert_eq!(queue.to_string(), printed);
            assert_eq!(printed.parse(), Ok(queue));
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_place() {
        for (text, message) in [
            (
                "servers=4",
                "'service' is missing, at character 1 of 'servers=4'",
            ),
            (
                "servers=0,service=none",
                "0 servers; expected 1 to 4096, at character 1 of 'servers=0,service=none'",
            ),
            (
                "servers=1,service=constant(5)",
                "'5' lacks a unit: expected ns, us, ms, s, m or h, as in 5ms, at character 28 of \
                 'servers=1,service=constant(5)'",
            ),
            (
                "servers=x,service=none",
                "'x' is not a whole number, at character 9 of 'servers=x,service=none'",
            ),
        ] {
            assert_eq!(text.parse::<Queue>().unwrap_err().to_string(), message);
        }
    }

    /// Waits of requests (start, service), `None` for a refused one.
    fn waits(text: &str, requests: &[(u64, u64)]) -> Vec<Option<u64>> {
        let mut station = Station::new(&text.parse().unwrap());
        let wait = |(place, (start, service)): (usize, &(u64, u64))| {
            let start = Stamp::from_nanos(*start);
            if let Some(found) = station.refuses(start) {
                assert_eq!(found, place as u64);
                return None;
            }
            let passage = station.serve(start, *service);
            assert_eq!(passage.place, place as u64);
            assert_eq!(passage.total_ns(), passage.wait_ns + service);
            Some(passage.wait_ns)
        };
        requests.iter().enumerate().map(wait).collect()
    }

    #[test]
    fn the_first_free_server_takes_the_next_request() {
        // Two servers: 0-100 and 10-20; then 20-50, 50-60, and both are free at 200.
        let requests = [
            (0, 100),
            (10, 10),
            (15, 30),
            (16, 10),
            (200, 5),
            (200, 5),
            (200, 5),
        ];
        assert_eq!(
            waits("servers=2,service=none", &requests),
            [0, 0, 5, 34, 0, 0, 5].map(Some)
        );
    }

    #[test]
    fn one_that_finds_the_limit_waiting_is_refused() {
        // One server, one place to wait. At 100 the server is free and the one that waits begins.
        let requests = [(0, 100), (10, 100), (20, 1), (100, 100), (150, 1), (200, 1)];
        assert_eq!(
            waits("servers=1,service=none,limit=1", &requests),
            [Some(0), Some(90), None, Some(100), None, Some(100)]
        );
        // No place to wait at all.
        assert_eq!(
            waits(
                "servers=1,service=none,limit=0",
                &[(0, 10), (9, 10), (10, 10)]
            ),
            [Some(0), None, Some(0)]
        );
    }
}
