//! Key streams: which key number comes next.
//!
//! A stream is drawn from its own seeded generator, so the keys of a seed are the same in every
//! run. Sequential and parallel streams need no chance at all.

use rand_distr::{Distribution, StandardNormal, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use super::zipf::ZipfRange;
use super::{from_f64, to_f64};
use crate::random;
use crate::settings::{KeyPattern, KeySettings};

/// A stream of key numbers for one thread.
#[derive(Clone, Debug)]
pub struct KeyStream {
    first: u64,
    count: u64,
    rng: Xoshiro256PlusPlus,
    draw: Draw,
}

/// The share of a thread in the connections of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The thread, from 0.
    pub thread: u32,
    /// Threads in all.
    pub threads: u32,
    /// Connections of the threads before this one.
    pub first_connection: u32,
    /// Connections of this thread.
    pub connections: u32,
    /// Connections in all.
    pub all_connections: u32,
}

impl Share {
    /// The share of one of the connections as if it was a thread of its own.
    #[must_use]
    pub fn alone(self, lane: u32) -> Self {
        Self {
            thread: 0,
            threads: 1,
            first_connection: self.first_connection + lane,
            connections: 1,
            all_connections: self.all_connections,
        }
    }
}

#[derive(Clone, Debug)]
enum Draw {
    Sequential {
        next: u64,
        stride: u64,
    },
    Parallel {
        lanes: Vec<Lane>,
        first: u64,
        all: u64,
    },
    Chance(Chance),
}

/// The laws in which every key is drawn for itself.
#[derive(Clone, Debug)]
pub(super) enum Chance {
    Uniform,
    Zipf(Zipf<f64>),
    /// Of the keys from the place `skip` on.
    ZipfRange {
        skip: u64,
        law: ZipfRange,
    },
    Gaussian {
        mean: f64,
        deviation: f64,
    },
    HotSet {
        hot: u64,
        operations: f64,
    },
}

/// The range of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) first: u64,
    pub(super) count: u64,
    next: u64,
}

impl KeyStream {
    /// The stream of a pattern for a thread with this share of the connections.
    #[must_use]
    pub fn new(
        keys: &KeySettings,
        pattern: KeyPattern,
        share: Share,
        rng: Xoshiro256PlusPlus,
    ) -> Self {
        let count = keys.count.get();
        let draw = match Chance::of(keys, pattern) {
            Some(chance) => Draw::Chance(chance),
            None if pattern == KeyPattern::Parallel => Draw::Parallel {
                lanes: lanes(count, share),
                first: u64::from(share.first_connection),
                all: u64::from(share.all_connections),
            },
            None => Draw::Sequential {
                next: u64::from(share.thread) % count,
                stride: u64::from(share.threads) % count,
            },
        };
        Self {
            first: keys.first,
            count,
            rng,
            draw,
        }
    }

    /// The next key number. `lane` is the thread's own number of the connection, from 0; only
    /// parallel ranges look at it.
    #[inline]
    pub fn next_key(&mut self, lane: usize) -> u64 {
        let place = match &mut self.draw {
            Draw::Chance(chance) => chance.place(&mut self.rng, self.count),
            Draw::Sequential { next, stride } => {
                let place = *next;
                *next = step(place, *stride, self.count);
                place
            }
            Draw::Parallel { lanes, .. } => match lanes.get_mut(lane) {
                Some(lane) => lane.next(),
                None => 0,
            },
        };
        self.first + place
    }

    /// After the first key of a request with `keys` keys: what the others follow from (see
    /// [`super::FurtherKeys`]). The stream goes on behind them; chance comes from `rng`.
    pub fn further(&mut self, lane: usize, keys: u64, rng: &mut Xoshiro256PlusPlus) -> [u32; 2] {
        let low = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0);
        match &mut self.draw {
            Draw::Chance(_) => {
                let bits = rng.next_u64();
                [low(bits), low(bits >> 32)]
            }
            Draw::Sequential { next, stride } => {
                for _ in 1..keys {
                    *next = step(*next, *stride, self.count);
                }
                // A stride is a number of threads.
                [low(*stride), 0]
            }
            Draw::Parallel { lanes, first, all } => {
                if let Some(lane) = lanes.get_mut(lane) {
                    for _ in 1..keys {
                        lane.next();
                    }
                }
                [low(*first + lane as u64), low(*all)]
            }
        }
    }
}

impl Chance {
    /// The law of a pattern that has one.
    pub(super) fn of(keys: &KeySettings, pattern: KeyPattern) -> Option<Self> {
        let count = keys.count.get();
        Some(match pattern {
            KeyPattern::Sequential | KeyPattern::Parallel => return None,
            KeyPattern::Uniform => Self::Uniform,
            KeyPattern::Zipf { exponent } => zipf(count, exponent),
            KeyPattern::ZipfByNumber { exponent } => {
                // Number 0 has no rank.
                let skip = u64::from(keys.first == 0 && count > 1);
                Self::ZipfRange {
                    skip,
                    law: ZipfRange::new(keys.first + skip, count - skip, exponent),
                }
            }
            KeyPattern::Gaussian { mean, deviation } => {
                let count = to_f64(count);
                Self::Gaussian {
                    mean: mean * count,
                    deviation: deviation * count,
                }
            }
            KeyPattern::HotSet { keys, operations } => Self::HotSet {
                hot: hot_keys(keys, count),
                operations,
            },
        })
    }

    /// A place in a key space of `count`.
    #[inline]
    pub(super) fn place(&self, rng: &mut Xoshiro256PlusPlus, count: u64) -> u64 {
        match self {
            Self::Uniform => random::below(rng, count),
            Self::Zipf(zipf) => {
                let rank = zipf.sample(rng);
                from_f64(rank).saturating_sub(1).min(count - 1)
            }
            Self::ZipfRange { skip, law } => skip + law.sample(rng),
            Self::Gaussian { mean, deviation } => gaussian(rng, *mean, *deviation, count),
            Self::HotSet { hot, operations } => {
                let hot = *hot;
                if hot == count || random::unit(rng) < *operations {
                    random::below(rng, hot)
                } else {
                    hot + random::below(rng, count - hot)
                }
            }
        }
    }
}

impl Lane {
    /// The range of a connection among all: the first ranges take one more key where it does not
    /// come out even. With more connections than keys ranges are shared.
    pub(super) fn of(connection: u64, all: u64, count: u64) -> Self {
        let all = all.max(1);
        if count < all {
            return Self {
                first: connection % count,
                count: 1,
                next: 0,
            };
        }
        let (each, more) = (count / all, count % all);
        Self {
            first: connection * each + connection.min(more),
            count: each + u64::from(connection < more),
            next: 0,
        }
    }

    /// The next place, counted over the whole key space.
    fn next(&mut self) -> u64 {
        let place = self.first + self.next;
        self.next = step(self.next, 1, self.count);
        place
    }
}

/// `place + stride` in a ring of `count`, for a stride below `count`.
fn step(place: u64, stride: u64, count: u64) -> u64 {
    let room = count - place;
    if stride < room {
        place + stride
    } else {
        stride - room
    }
}

fn zipf(count: u64, exponent: f64) -> Chance {
    // Settings are checked: there is at least one key and the exponent is above 0.
    Zipf::new(to_f64(count), exponent).map_or(Chance::Uniform, Chance::Zipf)
}

/// Draws outside of the key space are drawn again. Where the bell hardly meets the key space that
/// could take long, so after [`MOST_DRAWS`] the nearest end is taken.
fn gaussian(rng: &mut Xoshiro256PlusPlus, mean: f64, deviation: f64, count: u64) -> u64 {
    let end = to_f64(count);
    let mut drawn = mean;
    for _ in 0..MOST_DRAWS {
        let normal: f64 = StandardNormal.sample(rng);
        drawn = mean + deviation * normal;
        if (0.0..end).contains(&drawn) {
            break;
        }
    }
    from_f64(drawn).min(count - 1)
}

const MOST_DRAWS: u32 = 1000;

/// At least one key is hot.
fn hot_keys(fraction: f64, count: u64) -> u64 {
    from_f64((fraction * to_f64(count)).round()).clamp(1, count)
}

/// The ranges of a thread's connections.
fn lanes(count: u64, share: Share) -> Vec<Lane> {
    let all = u64::from(share.all_connections);
    let first = u64::from(share.first_connection);
    (first..first + u64::from(share.connections))
        .map(|connection| Lane::of(connection, all, count))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::random::Use;

    const ALONE: Share = Share {
        thread: 0,
        threads: 1,
        first_connection: 0,
        connections: 4,
        all_connections: 4,
    };

    fn stream(count: u64, pattern: KeyPattern, share: Share) -> KeyStream {
        let keys = KeySettings {
            count: NonZeroU64::new(count).unwrap(),
            ..KeySettings::default()
        };
        let rng = random::stream(7, 0, share.thread, Use::Keys(0));
        KeyStream::new(&keys, pattern, share, rng)
    }

    fn histogram(count: u64, pattern: KeyPattern, draws: u32) -> Vec<u32> {
        let mut stream = stream(count, pattern, ALONE);
        let mut seen = vec![0; usize::try_from(count).unwrap()];
        for _ in 0..draws {
            seen[usize::try_from(stream.next_key(0)).unwrap()] += 1;
        }
        seen
    }

    #[test]
    fn threads_share_a_sequence_without_gap_or_overlap() {
        let share = |thread| Share {
            thread,
            threads: 2,
            ..ALONE
        };
        let take = |thread| {
            let mut stream = stream(6, KeyPattern::Sequential, share(thread));
            (0..4).map(|_| stream.next_key(0)).collect::<Vec<_>>()
        };
        assert_eq!(take(0), [0, 2, 4, 0]);
        assert_eq!(take(1), [1, 3, 5, 1]);
    }

    #[test]
    fn parallel_ranges_cover_the_key_space_once() {
        let mut seen = vec![0; 10];
        for (thread, first) in [(0, 0), (1, 2)] {
            let share = Share {
                thread,
                threads: 2,
                first_connection: first,
                connections: 2,
                all_connections: 4,
            };
            let mut stream = stream(10, KeyPattern::Parallel, share);
            // Ranges of 3, 3, 2 and 2 keys.
            for lane in 0..2 {
                for _ in 0..if thread == 0 { 3 } else { 2 } {
                    seen[usize::try_from(stream.next_key(lane)).unwrap()] += 1;
                }
            }
        }
        assert_eq!(seen, [1; 10]);
    }

    #[test]
    fn uniform_passes_chi_square() {
        let seen = histogram(100, KeyPattern::Uniform, 100_000);
        let chi: f64 = seen
            .iter()
            .map(|n| (f64::from(*n) - 1000.0).powi(2) / 1000.0)
            .sum();
        // 99.9 % of chi-square with 99 degrees of freedom.
        assert!(chi < 148.2, "{chi}");
    }

    #[test]
    fn zipf_matches_its_law() {
        let draws = 200_000;
        let seen = histogram(50, KeyPattern::Zipf { exponent: 0.99 }, draws);
        let weights: Vec<f64> = (1..=50).map(|rank| f64::from(rank).powf(-0.99)).collect();
        let sum: f64 = weights.iter().sum();
        let chi: f64 = seen
            .iter()
            .zip(&weights)
            .map(|(n, weight)| {
                let expected = weight / sum * f64::from(draws);
                (f64::from(*n) - expected).powi(2) / expected
            })
            .sum();
        // 99.9 % of chi-square with 49 degrees of freedom.
        assert!(chi < 85.4, "{chi}");
    }

    #[test]
    fn a_number_is_its_own_rank_and_0_has_none() {
        let draws = 200_000;
        for (first, ranks) in [(0_u32, 1..=49), (1, 1..=50), (40, 40..=89)] {
            let keys = KeySettings {
                first: u64::from(first),
                count: NonZeroU64::new(50).unwrap(),
                ..KeySettings::default()
            };
            let pattern = KeyPattern::ZipfByNumber { exponent: 1.3 };
            let rng = random::stream(7, 0, 0, Use::Keys(0));
            let mut stream = KeyStream::new(&keys, pattern, ALONE, rng);
            let mut seen = vec![0_u32; 90];
            for _ in 0..draws {
                seen[usize::try_from(stream.next_key(0)).unwrap()] += 1;
            }
            let weight = |rank: u32| f64::from(rank).powf(-1.3);
            let sum: f64 = ranks.clone().map(weight).sum();
            let chi: f64 = ranks
                .clone()
                .map(|rank| {
                    let expected = weight(rank) / sum * f64::from(draws);
                    (f64::from(seen[rank as usize]) - expected).powi(2) / expected
                })
                .sum();
            // 99.9 % of chi-square with 49 degrees of freedom.
            assert!(chi < 85.4, "{first}: {chi}");
            let inside: u32 = ranks.map(|rank| seen[rank as usize]).sum();
            assert_eq!(inside, draws, "{first}");
        }
        let only = KeySettings {
            count: NonZeroU64::MIN,
            ..KeySettings::default()
        };
        let rng = random::stream(7, 0, 0, Use::Keys(0));
        let pattern = KeyPattern::ZipfByNumber { exponent: 1.0 };
        assert_eq!(KeyStream::new(&only, pattern, ALONE, rng).next_key(0), 0);
    }

    #[test]
    fn gaussian_has_its_mean_and_deviation_and_stays_inside() {
        let mut stream = stream(
            10_000,
            KeyPattern::Gaussian {
                mean: 0.5,
                deviation: 0.1,
            },
            ALONE,
        );
        let draws: Vec<f64> = (0..100_000).map(|_| to_f64(stream.next_key(0))).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
        // Five standard errors: 1000/sqrt(1e5) = 3.2 for the mean, 2.2 for the deviation.
        assert!((mean - 5000.0).abs() < 16.0, "{mean}");
        assert!((variance.sqrt() - 1000.0).abs() < 12.0, "{variance}");
    }

    #[test]
    fn gaussian_off_the_edge_ends_and_stays_inside() {
        let mut stream = stream(
            10,
            KeyPattern::Gaussian {
                mean: 1.0,
                deviation: 1e-12,
            },
            ALONE,
        );
        assert!((0..100).all(|_| stream.next_key(0) < 10));
    }

    #[test]
    fn hot_set_gets_its_share() {
        let seen = histogram(
            100,
            KeyPattern::HotSet {
                keys: 0.2,
                operations: 0.8,
            },
            100_000,
        );
        let hot: u32 = seen[..20].iter().sum();
        // Five standard errors of a binomial with p = 0.8: 632.
        assert!(hot.abs_diff(80_000) < 632, "{hot}");
        assert!(seen.iter().all(|n| *n > 0));
    }
}
