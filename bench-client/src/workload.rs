//! The workload: which operation comes next.
//!
//! Operation, key and value are drawn from independent seeded streams, so the sequence of a thread
//! depends on the seed alone and not on the timing of replies. Where each connection is a client of
//! its own ([`Clients::Separate`]) that holds for each connection, and not for the order in which
//! they take turns. A running hash over the sequence lets two runs be compared.

mod mix;

use rand_xoshiro::Xoshiro256PlusPlus;

use self::mix::Mix;
use crate::driver::Plan;
use crate::keyspace::{KeyStream, Share};
use crate::numbers::NumberStream;
use crate::random::{self, Use};
use crate::record::OpClass;
use crate::settings::{Clients, Settings};
use crate::values::{ValueBlock, ValueStream};

/// The operations of one thread, without end.
#[derive(Clone, Debug)]
pub struct Workload {
    requests: Vec<Request>,
    /// One for all connections of the thread, or one for each.
    clients: Vec<Client>,
    serial: u64,
    hash: u64,
}

/// A sequence of operations.
#[derive(Clone, Debug)]
struct Client {
    mix: Mix,
    /// Key streams; requests without a pattern of their own share the first.
    keys: Vec<KeyStream>,
    values: ValueStream,
    numbers: Vec<NumberStream>,
    further: Vec<Xoshiro256PlusPlus>,
}

/// A request that can be drawn.
#[derive(Clone, Debug)]
struct Request {
    class: OpClass,
    /// Place of its key stream.
    keys: usize,
    writes: bool,
    more: More,
}

/// What is drawn for a request beside its key and its value.
#[derive(Clone, Copy, Debug)]
enum More {
    Nothing,
    /// Numbers from the stream of this place.
    Numbers(usize),
    /// So many keys, with chance from the stream of this place.
    Keys {
        count: u64,
        stream: usize,
    },
}

impl Workload {
    /// The workload of a thread; `part` tells the measured part (0) from the warm-up (1).
    #[must_use]
    pub fn new(settings: &Settings, share: Share, part: u64, block: &ValueBlock) -> Self {
        let specs = settings.target.requests();
        let (mut keys, mut numbers, mut further) = (1, 0, 0);
        let next = |count: &mut usize| {
            *count += 1;
            *count - 1
        };
        let requests: Vec<Request> = specs
            .iter()
            .map(|spec| Request {
                class: spec.class,
                keys: match spec.pattern {
                    None => 0,
                    Some(_) if spec.goes_on => keys - 1,
                    Some(_) => next(&mut keys),
                },
                writes: spec.writes,
                more: if spec.numbers.is_empty() {
                    match spec.keys {
                        0 | 1 => More::Nothing,
                        count => More::Keys {
                            count: count as u64,
                            stream: next(&mut further),
                        },
                    }
                } else {
                    More::Numbers(next(&mut numbers))
                },
            })
            .collect();
        let client = |share: Share, stream: u32| {
            let rng = |usage| random::stream(settings.seed, part, stream, usage);
            let own = specs.iter().filter(|spec| !spec.goes_on);
            let own = own.filter_map(|spec| spec.pattern);
            let keys = std::iter::once(settings.keys.pattern)
                .chain(own)
                .zip(0_u16..)
                .map(|(pattern, number)| {
                    KeyStream::new(&settings.keys, pattern, share, rng(Use::Keys(number)))
                })
                .collect();
            let with_numbers = specs.iter().filter(|spec| !spec.numbers.is_empty());
            Client {
                mix: Mix::new(settings, &specs, part, &rng),
                keys,
                values: block.stream(&settings.values, &settings.keys, rng(Use::Values)),
                numbers: with_numbers
                    .zip(0_u16..)
                    .map(|(spec, number)| {
                        NumberStream::new(&spec.numbers, rng(Use::Numbers(number)))
                    })
                    .collect(),
                further: (0_u16..)
                    .take(further)
                    .map(|number| rng(Use::FurtherKeys(number)))
                    .collect(),
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
            Clients::Alike => (0..share.connections)
                .map(|lane| client(share.alone(lane), 0))
                .collect(),
        };
        Self {
            requests,
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
        let place = client.mix.next_request();
        let Some(request) = self.requests.get(place) else {
            // Settings are checked: the mix holds only requests that are there.
            unreachable!("request {place} of {}", self.requests.len());
        };
        let key = client
            .keys
            .get_mut(request.keys)
            .map_or(0, |keys| keys.next_key(lane));
        let (value_start, value_len) = if request.writes {
            client.values.next_value(key)
        } else {
            (0, 0)
        };
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        let mut plan = Plan {
            class: request.class,
            request: number,
            key,
            value_start,
            value_len,
            drawn: [0; 2],
            serial: self.serial,
        };
        if !matches!(request.more, More::Nothing) {
            plan.drawn = client.draw_more(request, lane);
            let [low, high] = plan.drawn;
            self.hash ^= random::mix(u64::from(high) << 32 | u64::from(low));
        }
        self.serial += 1;
        let shape = u64::from(number) << 32 | u64::from(value_len);
        self.hash = (self.hash ^ key).wrapping_mul(HASH_FACTOR).rotate_left(23)
            ^ shape.wrapping_mul(HASH_FACTOR);
        plan
    }

    /// Operations drawn so far.
    #[must_use]
    pub fn drawn(&self) -> u64 {
        self.serial
    }

    /// Hash over request, key, value size and numbers of all operations drawn so far, in order.
    #[must_use]
    pub fn hash(&self) -> u64 {
        random::mix(self.hash ^ self.serial)
    }
}

impl Client {
    /// The numbers of a request, or what its further keys follow from.
    #[cold]
    fn draw_more(&mut self, request: &Request, lane: usize) -> [u32; 2] {
        match request.more {
            More::Nothing => None,
            More::Numbers(place) => self.numbers.get_mut(place).map(NumberStream::next),
            More::Keys { count, stream } => {
                let keys = self.keys.get_mut(request.keys);
                let rng = self.further.get_mut(stream);
                keys.zip(rng)
                    .map(|(keys, rng)| keys.further(lane, count, rng))
            }
        }
        .unwrap_or_default()
    }
}

/// An odd number with scattered bits: 2^64 over the golden ratio.
const HASH_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::settings::{
        KeyPattern, KeySettings, MixOrder, NumberLaw, RedisOperation, RedisTarget, Target,
    };

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
        // Alike they draw one sequence, and still have parts of their own.
        let alike = |pattern| Settings {
            clients: Clients::Alike,
            ..settings(pattern)
        };
        let uniform = alike(KeyPattern::Uniform);
        let first = keys(&uniform, 0, 0, 50);
        for (thread, lane) in [(0, 1), (1, 0), (1, 1)] {
            assert_eq!(keys(&uniform, thread, lane, 50), first);
        }
        assert_eq!(keys(&alike(KeyPattern::Parallel), 1, 0, 3), [6, 7, 6]);
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

    fn expiring(range: NumberLaw, seed: u64) -> Settings {
        let address = "127.0.0.1:1".parse().unwrap();
        let mut target = RedisTarget::new(address, 0, 1);
        let mut setex = RedisOperation::parse("SETEX __key__ __number__ __data__", 1).unwrap();
        setex.numbers = vec![range];
        target.operations.push(setex);
        Settings {
            mix: MixOrder::Cycle,
            seed,
            ..Settings::new(Target::Redis(target))
        }
    }

    fn take(settings: &Settings, draws: usize) -> (Vec<Plan>, u64) {
        let block = ValueBlock::new(&settings.values, settings.seed);
        let mut workload = Workload::new(settings, SHARE, 0, &block);
        let plans = (0..draws).map(|_| workload.next_plan(0)).collect();
        (plans, workload.hash())
    }

    #[test]
    fn numbers_repeat_by_seed_and_leave_keys_and_values_as_they_are() {
        let law = |most| NumberLaw::Uniform { least: 10, most };
        let (plans, hash) = take(&expiring(law(20), 1), 2000);
        assert_eq!(take(&expiring(law(20), 1), 2000), (plans.clone(), hash));
        for plan in &plans {
            let reads = plan.request == 0;
            let [number, none] = plan.drawn;
            assert_eq!(none, 0);
            let legal = if reads { 0..=0 } else { 10..=20 };
            assert!(legal.contains(&number), "{plan:?}");
        }
        let (others, other_hash) = take(&expiring(law(19), 1), 2000);
        let without = |plans: &[Plan]| -> Vec<Plan> {
            let plans = plans.iter();
            plans
                .map(|plan| Plan {
                    drawn: [0; 2],
                    ..*plan
                })
                .collect()
        };
        assert_eq!(without(&plans), without(&others));
        assert_ne!(hash, other_hash, "the numbers are in the hash");
        assert_ne!(take(&expiring(law(20), 2), 2000).0, plans);
    }

    #[test]
    fn a_plain_mix_draws_nothing_more() {
        let mut workload = workload(1, 3, MixOrder::Random, 1, 0);
        assert!((0..1000).all(|_| workload.next_plan(0).drawn == [0; 2]));
    }
}
