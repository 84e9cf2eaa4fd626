//! Values: slices of one block of bytes, made once before the run.
//!
//! The block is a little longer than the largest value, so that values of the same size differ by
//! where they are cut. All threads share it; drawing a value is drawing a size and a place.

use std::sync::Arc;

use rand_distr::{Distribution, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::driver::Plan;
use crate::random::{self, Use};
use crate::settings::{Content, KeySettings, Records, SizeDistribution, ValueSettings};

/// The bytes that values are cut from.
#[derive(Clone, Debug)]
pub struct ValueBlock {
    bytes: Arc<[u8]>,
}

/// Sizes and places of values.
#[derive(Clone, Debug)]
pub struct ValueStream {
    sizes: Sizes,
    /// Number of places a value may begin at, beyond the first.
    room: u64,
    block: u64,
    rng: Xoshiro256PlusPlus,
}

#[derive(Clone, Debug)]
enum Sizes {
    Fixed(u32),
    Uniform {
        least: u32,
        sizes: u64,
    },
    Weighted {
        list: Vec<(u32, u64)>,
        total: u64,
    },
    Rotation {
        list: Vec<(u32, u32)>,
        place: usize,
        left: u32,
    },
    ByKey {
        least: u32,
        more: u32,
        first: u64,
        last: u64,
    },
    Records {
        records: Records,
        first: u64,
    },
    Lognormal {
        law: LogNormal<f64>,
        most: u32,
    },
}

impl ValueBlock {
    /// The block for checked settings.
    #[must_use]
    pub fn new(settings: &ValueSettings, seed: u64) -> Self {
        if let SizeDistribution::Records(records) = &settings.size {
            return Self {
                bytes: Arc::clone(records.data()),
            };
        }
        let most = usize::try_from(settings.size.most()).unwrap_or(usize::MAX);
        let room = match settings.content {
            Content::Fill(_) => 0,
            Content::Random | Content::Text => ROOM,
        };
        let mut bytes = vec![0; most + room];
        let mut rng = random::stream(seed, 0, 0, Use::Block);
        match settings.content {
            Content::Fill(byte) => bytes.fill(byte),
            Content::Random => rng.fill_bytes(&mut bytes),
            Content::Text => {
                for byte in &mut bytes {
                    let place = random::below(&mut rng, LETTERS.len() as u64);
                    *byte = LETTERS[usize::try_from(place).unwrap_or(0)];
                }
            }
        }
        Self {
            bytes: bytes.into(),
        }
    }

    /// The value of a plan.
    #[inline]
    #[must_use]
    pub fn value(&self, plan: &Plan) -> &[u8] {
        let start = plan.value_start as usize;
        self.bytes
            .get(start..start + plan.value_len as usize)
            .unwrap_or_default()
    }

    /// A stream of sizes and places in this block, for values of these keys.
    #[must_use]
    pub fn stream(
        &self,
        settings: &ValueSettings,
        keys: &KeySettings,
        rng: Xoshiro256PlusPlus,
    ) -> ValueStream {
        let sizes = match &settings.size {
            SizeDistribution::Fixed(size) => Sizes::Fixed(*size),
            SizeDistribution::Uniform { least, most } => Sizes::Uniform {
                least: *least,
                sizes: u64::from(most - least) + 1,
            },
            SizeDistribution::Weighted(list) => {
                let list: Vec<_> = list
                    .iter()
                    .map(|(size, weight)| (*size, u64::from(*weight)))
                    .collect();
                let total = list.iter().map(|(_, weight)| weight).sum();
                Sizes::Weighted { list, total }
            }
            SizeDistribution::Rotation(list) => Sizes::Rotation {
                list: list.clone(),
                place: 0,
                left: list.first().map_or(0, |(_, times)| *times),
            },
            SizeDistribution::Records(records) => Sizes::Records {
                records: records.clone(),
                first: keys.first,
            },
            SizeDistribution::ByKey { least, most } => Sizes::ByKey {
                least: *least,
                more: most - least,
                first: keys.first,
                last: keys.first + (keys.count.get() - 1),
            },
            SizeDistribution::Lognormal {
                median,
                sigma,
                most,
            } => {
                match LogNormal::new(median.ln(), *sigma) {
                    Ok(law) => Sizes::Lognormal { law, most: *most },
                    // Settings are checked: sigma is finite and not negative.
                    Err(_) => Sizes::Fixed(*most),
                }
            }
        };
        let block = self.bytes.len() as u64;
        let room = block - u64::from(settings.size.most());
        ValueStream {
            sizes,
            room,
            block,
            rng,
        }
    }
}

impl ValueStream {
    /// Place and length of the next value, which is that of this key.
    #[inline]
    pub fn next_value(&mut self, key: u64) -> (u32, u32) {
        let len = match &mut self.sizes {
            Sizes::Fixed(size) => *size,
            Sizes::Records { records, first } => {
                return records.place(records.of_number(key, *first));
            }
            Sizes::Uniform { least, sizes } => {
                let above = random::below(&mut self.rng, *sizes);
                // `above` is at most `most - least`.
                *least + u32::try_from(above).unwrap_or(0)
            }
            Sizes::Rotation { list, place, left } => {
                // Ends, because at least one size is to be taken more than 0 times.
                while *left == 0 {
                    *place = (*place + 1) % list.len();
                    *left = list[*place].1;
                }
                *left -= 1;
                list[*place].0
            }
            Sizes::ByKey {
                least,
                more,
                first,
                last,
            } => *least + portion(*more, key.saturating_sub(*first), *last - *first),
            Sizes::Weighted { list, total } => weighted(list, random::below(&mut self.rng, *total)),
            Sizes::Lognormal { law, most } => saturating(law.sample(&mut self.rng)).min(*most),
        };
        if self.room == 0 {
            return (0, len);
        }
        let places = (self.block - u64::from(len)).min(ROOM as u64) + 1;
        let start = random::below(&mut self.rng, places);
        (u32::try_from(start).unwrap_or(0), len)
    }
}

/// `more * place / of`, rounded down; at most `more`.
fn portion(more: u32, place: u64, of: u64) -> u32 {
    if of == 0 {
        return 0;
    }
    let part = u128::from(more) * u128::from(place.min(of)) / u128::from(of);
    u32::try_from(part).unwrap_or(more)
}

fn weighted(list: &[(u32, u64)], mut place: u64) -> u32 {
    for (size, weight) in list {
        if place < *weight {
            return *size;
        }
        place -= weight;
    }
    0
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and sizes are rounded to whole bytes"
)]
fn saturating(size: f64) -> u32 {
    size.round() as u32
}

/// Bytes of the block beyond the largest value.
const ROOM: usize = 64 * 1024;
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::record::OpClass;

    fn sizes(size: SizeDistribution, draws: usize) -> Vec<u32> {
        let settings = ValueSettings {
            size,
            content: Content::Random,
        };
        let block = ValueBlock::new(&settings, 1);
        let keys = KeySettings {
            first: 100,
            count: NonZeroU64::new(4).unwrap(),
            ..KeySettings::default()
        };
        let rng = random::stream(1, 0, 0, Use::Values);
        let mut stream = block.stream(&settings, &keys, rng);
        (0..draws)
            .map(|draw| {
                let (value_start, value_len) = stream.next_value(100 + draw as u64 % 4);
                let plan = Plan {
                    class: OpClass(0),
                    request: 0,
                    key: 0,
                    value_start,
                    value_len,
                    drawn: [0; 2],
                    serial: 0,
                };
                assert_eq!(block.value(&plan).len(), value_len as usize);
                value_len
            })
            .collect()
    }

    #[test]
    fn uniform_sizes_cover_both_ends() {
        let sizes = sizes(SizeDistribution::Uniform { least: 3, most: 6 }, 4000);
        for size in 3..=6 {
            let count = sizes.iter().filter(|s| **s == size).count();
            // Five standard errors of a binomial with p = 1/4: 137.
            assert!(count.abs_diff(1000) < 137, "{size}: {count}");
        }
    }

    #[test]
    fn weighted_sizes_follow_their_weights() {
        let list = vec![(10, 3), (20, 0), (70_000, 1)];
        let sizes = sizes(SizeDistribution::Weighted(list), 4000);
        let large = sizes.iter().filter(|size| **size == 70_000).count();
        assert!(large.abs_diff(1000) < 137, "{large}");
        assert!(!sizes.contains(&20));
    }

    #[test]
    fn rotating_sizes_follow_each_other_as_often_as_they_say() {
        let list = vec![(10, 2), (20, 0), (30, 1)];
        let sizes = sizes(SizeDistribution::Rotation(list), 7);
        assert_eq!(sizes, [10, 10, 30, 10, 10, 30, 10]);
    }

    #[test]
    fn sizes_grow_evenly_from_the_first_to_the_last_key() {
        let law = SizeDistribution::ByKey {
            least: 10,
            most: 20,
        };
        // Keys 100 to 103: thirds of 10, rounded down.
        assert_eq!(sizes(law, 5), [10, 13, 16, 20, 10]);
        assert_eq!(portion(u32::MAX, u64::MAX, u64::MAX), u32::MAX);
        assert_eq!(portion(7, 0, 0), 0);
    }

    #[test]
    fn lognormal_sizes_have_their_median_and_bound() {
        let law = SizeDistribution::Lognormal {
            median: 1000.0,
            sigma: 1.0,
            most: 5000,
        };
        let mut sizes = sizes(law, 20_001);
        sizes.sort_unstable();
        // Standard error of the median: 1.2533 * sigma / sqrt(n) = 0.9 % of it.
        assert!(sizes[10_000].abs_diff(1000) < 45, "{}", sizes[10_000]);
        assert_eq!(sizes[20_000], 5000);
    }

    #[test]
    fn filled_values_hold_one_byte_and_text_only_letters() {
        for (content, allowed) in [(Content::Fill(b'x'), &b"x"[..]), (Content::Text, LETTERS)] {
            let settings = ValueSettings {
                size: SizeDistribution::Fixed(100),
                content,
            };
            let block = ValueBlock::new(&settings, 5);
            let plan = Plan {
                class: OpClass(0),
                request: 0,
                key: 0,
                value_start: 0,
                value_len: 100,
                drawn: [0; 2],
                serial: 0,
            };
            assert!(block.value(&plan).iter().all(|byte| allowed.contains(byte)));
        }
    }
}
