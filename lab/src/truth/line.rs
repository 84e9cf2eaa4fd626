//! A station of a few servers, first come first served, worked through by plain arithmetic.
//!
//! ```text
//! begin   = the later of start and the moment at which the first of the servers is free
//! finish  = begin + service
//! refused : every server is busy at its start and as many wait as may
//! ```

use std::collections::{BTreeSet, VecDeque};

/// What a server was told of its queue, but for the law of its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRule {
    /// Requests served at a time.
    pub servers: usize,
    /// How many may wait.
    pub limit: Option<u64>,
}

/// The station at some moment.
#[derive(Clone, Debug)]
pub struct Line {
    rule: LineRule,
    /// Finishes of the last requests served, one of each server that was used, with a number that
    /// tells equal ones apart.
    finishes: BTreeSet<(u64, u64)>,
    /// Begins that lie ahead of the last request.
    waiting: VecDeque<u64>,
    served: u64,
}

impl Line {
    /// A station that nobody has entered.
    #[must_use]
    pub fn new(rule: LineRule) -> Self {
        Self {
            rule,
            finishes: BTreeSet::new(),
            waiting: VecDeque::new(),
            served: 0,
        }
    }

    /// When the next request begins, which starts at `start` and takes `service_ns`; `None` when it is
    /// refused.
    pub fn pass(&mut self, start: u64, service_ns: u64) -> Option<u64> {
        self.waiting.retain(|begin| *begin > start);
        let mut begin = start;
        if self.finishes.len() == self.rule.servers {
            let first = self.finishes.first().copied()?;
            if first.0 > start {
                let most = self.rule.limit.unwrap_or(u64::MAX);
                if self.waiting.len() as u64 >= most {
                    return None;
                }
                begin = first.0;
                self.waiting.push_back(begin);
            }
            self.finishes.remove(&first);
        }
        self.finishes.insert((begin + service_ns, self.served));
        self.served += 1;
        Some(begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(servers: usize, limit: Option<u64>, requests: &[(u64, u64)]) -> Vec<Option<u64>> {
        let mut line = Line::new(LineRule { servers, limit });
        let pass = |(start, service): &(u64, u64)| line.pass(*start, *service);
        requests.iter().map(pass).collect()
    }

    #[test]
    fn one_server_serves_one_after_the_other() {
        let found = begins(1, None, &[(0, 10), (3, 10), (4, 0), (30, 5), (35, 1)]);
        assert_eq!(found, [0, 10, 20, 30, 35].map(Some));
    }

    #[test]
    fn whoever_is_free_first_takes_the_next() {
        // Until 50 and until 20; the third goes where 20 was and stays until 45, the fourth too.
        let found = begins(2, None, &[(0, 50), (0, 20), (5, 25), (6, 9), (7, 1)]);
        assert_eq!(found, [0, 0, 20, 45, 50].map(Some));
        // Servers that finish together are two all the same.
        let found = begins(2, None, &[(0, 10), (0, 10), (1, 5), (1, 5), (1, 5)]);
        assert_eq!(found, [0, 0, 10, 10, 15].map(Some));
    }

    #[test]
    fn a_full_line_refuses() {
        let found = begins(1, Some(1), &[(0, 10), (1, 10), (2, 10), (10, 10), (19, 10)]);
        assert_eq!(found, [Some(0), Some(10), None, Some(20), None]);
        let found = begins(1, Some(0), &[(0, 10), (9, 10), (10, 10)]);
        assert_eq!(found, [Some(0), None, Some(10)]);
    }
}
