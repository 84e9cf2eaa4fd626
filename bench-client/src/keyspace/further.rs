//! The further keys of a request on several keys.
//!
//! A request may be sent again, long after it was drawn, and must touch the same keys then. So its
//! further keys are not kept but follow from its first key and from 64 bits that were drawn with it:
//!
//! | pattern | the bits | key `i` |
//! |---|---|---|
//! | sequential | how far the stream goes on with each key | the `i`-th after the first |
//! | parallel | number of the connection, connections in all | the `i`-th after the first in its range |
//! | others | chance | drawn by the pattern's law, with bits and `i` as the seed |

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::stream::{Chance, Lane};
use crate::driver::Plan;
use crate::random;
use crate::settings::{KeyPattern, KeySettings};

/// How further keys follow from the first.
#[derive(Clone, Debug)]
pub struct FurtherKeys {
    first: u64,
    count: u64,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Sequential,
    Parallel,
    Chance(Chance),
}

impl FurtherKeys {
    /// The keys of requests with this pattern.
    #[must_use]
    pub fn new(keys: &KeySettings, pattern: KeyPattern) -> Self {
        let law = match Chance::of(keys, pattern) {
            Some(chance) => Law::Chance(chance),
            None if pattern == KeyPattern::Parallel => Law::Parallel,
            None => Law::Sequential,
        };
        Self {
            first: keys.first,
            count: keys.count.get(),
            law,
        }
    }

    /// The number of the `index`-th key of a request, 0 being the plan's own.
    #[must_use]
    pub fn key(&self, plan: &Plan, index: u64) -> u64 {
        if index == 0 {
            return plan.key;
        }
        let place = plan.key.saturating_sub(self.first);
        let [low, high] = plan.drawn;
        self.first
            + match &self.law {
                Law::Sequential => around(place, index, u64::from(low), self.count),
                Law::Parallel => {
                    let lane = Lane::of(u64::from(low), u64::from(high), self.count);
                    let inside = place.saturating_sub(lane.first);
                    lane.first + around(inside, index, 1, lane.count)
                }
                Law::Chance(chance) => {
                    let seed = u64::from(high) << 32 | u64::from(low);
                    let mut rng =
                        Xoshiro256PlusPlus::seed_from_u64(random::mix(seed ^ random::mix(index)));
                    chance.place(&mut rng, self.count)
                }
            }
    }
}

/// `place + index * stride` in a ring of `count`.
fn around(place: u64, index: u64, stride: u64, count: u64) -> u64 {
    let sum = u128::from(place) + u128::from(index) * u128::from(stride);
    // Below `count`, which has 64 bits.
    u64::try_from(sum % u128::from(count.max(1))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::keyspace::{KeyStream, Share};
    use crate::random::Use;
    use crate::record::OpClass;

    fn keys(count: u64) -> KeySettings {
        KeySettings {
            first: 100,
            count: NonZeroU64::new(count).unwrap(),
            ..KeySettings::default()
        }
    }

    const SHARE: Share = Share {
        thread: 1,
        threads: 2,
        first_connection: 2,
        connections: 2,
        all_connections: 4,
    };

    /// The keys of so many requests with so many keys each, on one connection.
    fn drawn(count: u64, pattern: KeyPattern, requests: usize, each: u64) -> Vec<Vec<u64>> {
        let keys = keys(count);
        let rng = |usage| random::stream(5, 0, 1, usage);
        let mut stream = KeyStream::new(&keys, pattern, SHARE, rng(Use::Keys(0)));
        let mut further = rng(Use::FurtherKeys(0));
        let law = FurtherKeys::new(&keys, pattern);
        (0..requests)
            .map(|_| {
                let key = stream.next_key(1);
                let plan = Plan {
                    class: OpClass(0),
                    request: 0,
                    key,
                    value_start: 0,
                    value_len: 0,
                    drawn: stream.further(1, each, &mut further),
                    serial: 0,
                };
                let all: Vec<u64> = (0..each).map(|index| law.key(&plan, index)).collect();
                let again: Vec<u64> = (0..each).map(|index| law.key(&plan, index)).collect();
                assert_eq!(all, again, "sent again it touches the same keys");
                all
            })
            .collect()
    }

    #[test]
    fn sequential_requests_take_one_key_after_the_other_and_begin_anew() {
        // Thread 1 of 2 takes the odd places of ten.
        assert_eq!(
            drawn(10, KeyPattern::Sequential, 3, 3),
            [[101, 103, 105], [107, 109, 101], [103, 105, 107]]
        );
    }

    #[test]
    fn parallel_requests_stay_in_the_range_of_their_connection() {
        // Ten keys over four connections: 3, 3, 2, 2. Connection 3 has the last two.
        assert_eq!(
            drawn(10, KeyPattern::Parallel, 2, 3),
            [[108, 109, 108], [109, 108, 109]]
        );
        // Fewer keys than connections: the ranges are shared.
        assert_eq!(drawn(3, KeyPattern::Parallel, 1, 2), [[100, 100]]);
    }

    #[test]
    fn every_key_of_a_request_follows_the_law_of_its_pattern() {
        let (requests, each, count) = (20_000, 4_u32, 40);
        let patterns = [
            (KeyPattern::Uniform, vec![1.0; 40]),
            (
                KeyPattern::ZipfByNumber { exponent: 1.0 },
                (0..40).map(|k| 1.0 / f64::from(100 + k)).collect(),
            ),
            (
                KeyPattern::HotSet {
                    keys: 0.25,
                    operations: 0.75,
                },
                (0..40).map(|k| if k < 10 { 9.0 } else { 1.0 }).collect(),
            ),
        ];
        for (pattern, weights) in patterns {
            let drawn = drawn(count, pattern, requests, u64::from(each));
            let sum: f64 = weights.iter().sum();
            for index in [0, 1, 3] {
                let mut seen = vec![0.0; 40];
                for request in &drawn {
                    seen[usize::try_from(request[index] - 100).unwrap()] += 1.0;
                }
                let chi: f64 = seen
                    .iter()
                    .zip(&weights)
                    .map(|(n, weight): (&f64, &f64)| {
                        let expected = weight / sum * requests as f64;
                        (n - expected).powi(2) / expected
                    })
                    .sum();
                // 99.9 % of chi-square with 39 degrees of freedom.
                assert!(chi < 72.1, "{pattern:?} {index}: {chi}");
            }
        }
    }
}
