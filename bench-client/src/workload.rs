//! The workload: which operation comes next.
//!
//! Operation, key and value are drawn from independent seeded streams, so the sequence of a thread
//! depends on the seed alone and not on the timing of replies. Where each connection is a client of
//! its own ([`Clients::Separate`]) that holds for each connection, and not for the order in which
//! they take turns. A running hash over the sequence lets two runs be compared.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::driver::Plan;
use crate::keyspace::{KeyStream, Share};
use crate::random::{self, Use};
use crate::record::OpClass;
use crate::settings::{ClassSpec, Clients, MixOrder, Settings};
use crate::values::{ValueBlock, ValueStream};

/// The operations of one thread, without end.
#[derive(Clone, Debug)]
pub struct Workload {
    classes: Vec<Class>,
    /// One for all connections of the thread, or one for each.
    clients: Vec<Client>,
    serial: u64,
    hash: u64,
}

/// A sequence of operations.
#[derive(Clone, Debug)]
struct Client {
    mix: Mix,
    /// Key streams; classes without a pattern of their own share the first.
    keys: Vec<KeyStream>,
    values: ValueStream,
}

#[derive(Clone, Debug)]
struct Class {
    keys: usize,
    writes: bool,
}

#[derive(Clone, Debug)]
enum Mix {
    Only(OpClass),
    Random {
        until: Vec<u64>,
        total: u64,
        rng: Xoshiro256PlusPlus,
    },
    Cycle {
        weights: Vec<u32>,
        class: usize,
        left: u32,
    },
}

impl Workload {
    /// The workload of a thread; `part` tells the measured part (0) from the warm-up (1).
    #[must_use]
    pub fn new(settings: &Settings, share: Share, part: u64, block: &ValueBlock) -> Self {
        let specs = settings.target.classes();
        let mut streams = 1;
        let classes = specs
            .iter()
            .map(|spec| Class {
                keys: match spec.pattern {
                    None => 0,
                    Some(_) => {
                        streams += 1;
                        streams - 1
                    }
                },
                writes: spec.writes,
            })
            .collect();
        let client = |share: Share, stream: u32| {
            let rng = |usage| random::stream(settings.seed, part, stream, usage);
            let own = specs.iter().filter_map(|spec| spec.pattern);
            let keys = std::iter::once(settings.keys.pattern)
                .chain(own)
                .zip(0_u8..)
                .map(|(pattern, number)| {
                    KeyStream::new(&settings.keys, pattern, share, rng(Use::Keys(number)))
                })
                .collect();
            Client {
                mix: Mix::new(&specs, settings.mix, rng(Use::Mix)),
                keys,
                values: block.stream(&settings.values, &settings.keys, rng(Use::Values)),
            }
        };
        let clients = match settings.clients {
            Clients::Pooled => vec![client(share, share.thread)],
            Clients::Separate => (0..share.connections)
                .map(|lane| {
                    let connection = share.first_connection + lane;
                    client(share.alone(lane), connection)
                })
                .collect(),
        };
        Self {
            classes,
            clients,
            serial: 0,
            hash: random::mix(u64::from(share.thread)),
        }
    }

    /// Draws the next operation, for a connection of this number on the thread.
    #[inline]
    pub fn next_plan(&mut self, lane: usize) -> Plan {
        // The stream of a client of its own knows one lane only.
        let (client, lane) = if self.clients.len() == 1 {
            (0, lane)
        } else {
            (lane % self.clients.len(), 0)
        };
        let client = &mut self.clients[client];
        let class = client.mix.next_class();
        let (keys, writes) = self
            .classes
            .get(class.index())
            .map_or((0, false), |class| (class.keys, class.writes));
        let key = client
            .keys
            .get_mut(keys)
            .map_or(0, |keys| keys.next_key(lane));
        let (value_start, value_len) = if writes {
            client.values.next_value(key)
        } else {
            (0, 0)
        };
        let plan = Plan {
            class,
            key,
            value_start,
            value_len,
            serial: self.serial,
        };
        self.serial += 1;
        let shape = u64::from(class.0) << 32 | u64::from(value_len);
        self.hash = (self.hash ^ key).wrapping_mul(HASH_FACTOR).rotate_left(23)
            ^ shape.wrapping_mul(HASH_FACTOR);
        plan
    }

    /// Operations drawn so far.
    #[must_use]
    pub fn drawn(&self) -> u64 {
        self.serial
    }

    /// Hash over class, key and value size of all operations drawn so far, in order.
    #[must_use]
    pub fn hash(&self) -> u64 {
        random::mix(self.hash ^ self.serial)
    }
}

impl Mix {
    fn new(specs: &[ClassSpec], order: MixOrder, rng: Xoshiro256PlusPlus) -> Self {
        let weighted: Vec<usize> = (0..specs.len())
            .filter(|place| specs[*place].weight > 0)
            .collect();
        if let [only] = weighted[..] {
            return Self::Only(class(only));
        }
        match order {
            MixOrder::Random => {
                let mut total = 0;
                let until = specs
                    .iter()
                    .map(|spec| {
                        total += u64::from(spec.weight);
                        total
                    })
                    .collect();
                Self::Random { until, total, rng }
            }
            MixOrder::Cycle => {
                let weights: Vec<u32> = specs.iter().map(|spec| spec.weight).collect();
                let left = weights.first().copied().unwrap_or(0);
                Self::Cycle {
                    weights,
                    class: 0,
                    left,
                }
            }
        }
    }

    #[inline]
    fn next_class(&mut self) -> OpClass {
        match self {
            Self::Only(class) => *class,
            Self::Random { until, total, rng } => {
                let drawn = random::below(rng, *total);
                class(until.iter().position(|end| drawn < *end).unwrap_or(0))
            }
            Self::Cycle {
                weights,
                class: place,
                left,
            } => {
                // Ends, because at least one weight is above 0.
                while *left == 0 {
                    *place = (*place + 1) % weights.len();
                    *left = weights[*place];
                }
                *left -= 1;
                class(*place)
            }
        }
    }
}

/// The class at this place of the mix; there are at most 64.
fn class(place: usize) -> OpClass {
    OpClass(u8::try_from(place).unwrap_or(u8::MAX))
}

/// An odd number with scattered bits: 2^64 over the golden ratio.
const HASH_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::settings::{KeyPattern, KeySettings, RedisTarget, Target};

    const SHARE: Share = Share {
        thread: 0,
        threads: 1,
        first_connection: 0,
        connections: 1,
        all_connections: 1,
    };

    fn workload(set: u32, get: u32, mix: MixOrder, seed: u64, part: u64) -> Workload {
        let address = "127.0.0.1:1".parse().unwrap();
        let settings = Settings {
            mix,
            seed,
            ..Settings::new(Target::Redis(RedisTarget::new(address, set, get)))
        };
        Workload::new(
            &settings,
            SHARE,
            part,
            &ValueBlock::new(&settings.values, seed),
        )
    }

    #[test]
    fn one_seed_gives_one_sequence() {
        let take = |seed, part| {
            let mut workload = workload(1, 10, MixOrder::Random, seed, part);
            let plans: Vec<Plan> = (0..1000).map(|_| workload.next_plan(0)).collect();
            (plans, workload.hash())
        };
        assert_eq!(take(3, 0), take(3, 0));
        assert_ne!(take(3, 0), take(4, 0));
        assert_ne!(take(3, 0).0, take(3, 1).0);
    }

    #[test]
    fn hash_tells_order_and_length() {
        let mut one = workload(1, 1, MixOrder::Cycle, 1, 0);
        let before = one.hash();
        one.next_plan(0);
        let after = one.hash();
        one.next_plan(0);
        assert_ne!(before, after);
        assert_ne!(after, one.hash());
    }

    #[test]
    fn separate_clients_each_have_their_own_place_in_mix_and_keys() {
        let address = "127.0.0.1:1".parse().unwrap();
        let mut target = RedisTarget::new(address, 1, 2);
        for operation in &mut target.operations {
            operation.pattern = Some(KeyPattern::Sequential);
        }
        let settings = Settings {
            mix: MixOrder::Cycle,
            clients: Clients::Separate,
            ..Settings::new(Target::Redis(target))
        };
        let share = Share {
            connections: 2,
            all_connections: 2,
            ..SHARE
        };
        let block = ValueBlock::new(&settings.values, 1);
        let mut workload = Workload::new(&settings, share, 0, &block);
        // Connection 1 is three times as fast as connection 0.
        let mut seen = [Vec::new(), Vec::new()];
        for lane in [0, 1, 1, 1, 0, 1, 1, 1, 0, 1] {
            let plan = workload.next_plan(lane);
            seen[lane].push((plan.class.0, plan.key));
        }
        // SET and GET count their keys apart, both from the first key on.
        let sequence = [(0, 0), (1, 0), (1, 1), (0, 1), (1, 2), (1, 3), (0, 2)];
        assert_eq!(seen[0], sequence[..3]);
        assert_eq!(seen[1], sequence);
    }

    #[test]
    fn separate_clients_have_parts_of_the_keys_and_chances_of_their_own() {
        let settings = |pattern| Settings {
            clients: Clients::Separate,
            keys: KeySettings {
                count: NonZeroU64::new(10).unwrap(),
                pattern,
                ..KeySettings::default()
            },
            ..Settings::new(Target::Redis(RedisTarget::new(
                "127.0.0.1:1".parse().unwrap(),
                0,
                1,
            )))
        };
        let share = |thread: u32| Share {
            thread,
            threads: 2,
            first_connection: 2 * thread,
            connections: 2,
            all_connections: 4,
        };
        let keys = |settings: &Settings, thread, lane, draws: usize| -> Vec<u64> {
            let block = ValueBlock::new(&settings.values, 1);
            let mut workload = Workload::new(settings, share(thread), 0, &block);
            (0..draws).map(|_| workload.next_plan(lane).key).collect()
        };
        let parallel = settings(KeyPattern::Parallel);
        // Ten keys over four connections: 3, 3, 2, 2.
        assert_eq!(keys(&parallel, 0, 1, 4), [3, 4, 5, 3]);
        assert_eq!(keys(&parallel, 1, 0, 3), [6, 7, 6]);
        let uniform = settings(KeyPattern::Uniform);
        let mut drawn: Vec<_> = [(0, 0), (0, 1), (1, 0), (1, 1)]
            .map(|(thread, lane)| keys(&uniform, thread, lane, 50))
            .into();
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn.len(), 4);
    }

    #[test]
    fn cycle_repeats_each_class_by_its_weight() {
        let mut workload = workload(1, 3, MixOrder::Cycle, 1, 0);
        let classes: Vec<u8> = (0..9).map(|_| workload.next_plan(0).class.0).collect();
        assert_eq!(classes, [0, 1, 1, 1, 0, 1, 1, 1, 0]);
    }

    #[test]
    fn random_mix_keeps_the_ratio_and_only_writes_draw_values() {
        let mut workload = workload(1, 9, MixOrder::Random, 1, 0);
        let plans: Vec<Plan> = (0..10_000).map(|_| workload.next_plan(0)).collect();
        let sets = plans.iter().filter(|plan| plan.class == OpClass(0)).count();
        // Five standard errors of a binomial with p = 0.1: 150.
        assert!(sets.abs_diff(1000) < 150, "{sets}");
        assert!(
            plans
                .iter()
                .all(|plan| (plan.value_len == 32) == (plan.class == OpClass(0)))
        );
    }
}
