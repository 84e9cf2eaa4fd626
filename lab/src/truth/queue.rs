//! The queue with `c` servers in closed form: Poisson arrivals, exponential service times, first come
//! first served (M/M/c).
//!
//! With arrivals `l` and `c` servers of rate `m` each, `a = l / m` and `u = a / c` below 1, a request
//! has to wait with the probability of Erlang's second formula, which follows from his first one by
//! its recursion:
//!
//! ```text
//! B(0) = 1,  B(k) = a B(k-1) / (k + a B(k-1)),  C = B(c) / (1 - u (1 - B(c)))
//! ```
//!
//! The wait of those who wait is exponential with rate `w = c m - l`, so for the response time, the
//! sum of wait and service,
//!
//! ```text
//! P(T > t) = (1 - C) e^(-m t) + C (w e^(-m t) - m e^(-w t)) / (w - m),     w <> m
//!          = (1 - C) e^(-m t) + C (1 + m t) e^(-m t),                      w = m
//! ```
//!
//! Source: any textbook on queues, e.g. Kleinrock, Queueing Systems, volume 1, chapter 3.

/// A queue with exponential service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// How many requests are served at the same time, at least 1.
    pub servers: u32,
    /// Mean service time in seconds, above 0.
    pub mean_service: f64,
}

impl Queue {
    /// Requests per second that all servers together can serve.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        f64::from(self.servers) / self.mean_service
    }

    /// The share of requests that wait, at `rate` arrivals per second: 1 from the capacity on.
    #[must_use]
    pub fn waiting_share(&self, rate: f64) -> f64 {
        let offered = rate * self.mean_service;
        let utilisation = offered / f64::from(self.servers);
        if utilisation >= 1.0 {
            return 1.0;
        }
        let mut blocked = 1.0;
        for server in 1..=self.servers {
            blocked = offered * blocked / (f64::from(server) + offered * blocked);
        }
        blocked / (1.0 - utilisation * (1.0 - blocked))
    }

    /// The share of requests whose response takes longer than `seconds`: 1 from the capacity on.
    #[must_use]
    pub fn beyond(&self, rate: f64, seconds: f64) -> f64 {
        let serve = 1.0 / self.mean_service;
        let drain = self.capacity() - rate;
        if drain <= 0.0 || seconds <= 0.0 {
            return 1.0;
        }
        let waiting = self.waiting_share(rate);
        let served = (-serve * seconds).exp();
        let both = if ((drain - serve) / serve).abs() < SAME {
            (1.0 + serve * seconds) * served
        } else {
            (drain * served - serve * (-drain * seconds).exp()) / (drain - serve)
        };
        (1.0 - waiting) * served + waiting * both
    }

    /// The largest rate at which at most `share` of the requests take longer than `seconds`; `None`
    /// when service alone breaks that.
    #[must_use]
    pub fn largest_rate(&self, share: f64, seconds: f64) -> Option<f64> {
        if self.beyond(0.0, seconds) > share {
            return None;
        }
        let (mut low, mut high) = (0.0, self.capacity());
        // Each step halves the interval, so this leaves nothing of it.
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.beyond(middle, seconds) > share {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(low)
    }
}

/// Relative difference of two rates below which they count as equal: the formula for unequal ones
/// loses as many digits as they have in common.
const SAME: f64 = 1e-6;
const HALVINGS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_near(found: f64, exact: f64) {
        assert!(
            (found - exact).abs() <= 1e-9 * exact.abs(),
            "{found} for {exact}"
        );
    }

    /// M/M/1: C = u, and the response time is exponential with rate m - l.
    #[test]
    fn one_server_is_the_exponential_law() {
        let queue = Queue {
            servers: 1,
            mean_service: 0.001,
        };
        assert_near(queue.waiting_share(700.0), 0.7);
        for (rate, seconds) in [(700.0, 0.01), (200.0, 0.002), (999.0, 1.0)] {
            assert_near(
                queue.beyond(rate, seconds),
                (-(1_000.0 - rate) * seconds).exp(),
            );
        }
        let exact = 1_000.0 - 100_f64.ln() / 0.02;
        assert_near(queue.largest_rate(0.01, 0.02).unwrap(), exact);
        assert_eq!(queue.largest_rate(0.01, 0.004), None);
    }

    /// By hand: c = 2, a = 1: B(1) = 1/2, B(2) = (1/2) / (5/2) = 1/5, C = (1/5) / (1 - 1/2 * 4/5) = 1/3.
    /// With m = 1, l = 1 the drain is 1 = m: P(T > t) = 2/3 e^-t + 1/3 (1 + t) e^-t.
    #[test]
    fn two_servers_by_hand_at_the_point_where_both_rates_are_equal() {
        let queue = Queue {
            servers: 2,
            mean_service: 1.0,
        };
        assert_near(queue.waiting_share(1.0), 1.0 / 3.0);
        let exact = |t: f64| (2.0 / 3.0 + (1.0 + t) / 3.0) * (-t).exp();
        assert_near(queue.beyond(1.0, 2.5), exact(2.5));
        // The other formula beside that point agrees with it.
        let beside = queue.beyond(1.0 + 1e-5, 2.5);
        assert!((beside - exact(2.5)).abs() < 1e-4, "{beside}");
    }

    /// Three servers, a = 2: B = 4/19, C = (4/19) / (1 - 2/3 * 15/19) = 4/9.
    #[test]
    fn erlangs_formulas_for_three_servers() {
        let queue = Queue {
            servers: 3,
            mean_service: 1.0,
        };
        assert_near(queue.waiting_share(2.0), 4.0 / 9.0);
    }

    #[test]
    fn beyond_the_capacity_nothing_is_in_time() {
        let queue = Queue {
            servers: 4,
            mean_service: 0.002,
        };
        assert_eq!(queue.capacity(), 2_000.0);
        assert_eq!(queue.beyond(2_000.0, 10.0), 1.0);
        assert_eq!(queue.waiting_share(3_000.0), 1.0);
        let rate = queue.largest_rate(0.01, 0.02).unwrap();
        assert_near(queue.beyond(rate, 0.02), 0.01);
    }
}
