//! Connections as clients of their own, under virtual time: what each of them sends.

use std::num::{NonZeroU32, NonZeroU64};

use super::fake::{Gate, MILLI, Script, World};
use kvlab_bench_client::Settings;
use kvlab_bench_client::settings::{
    Arrivals, Backoff, Clients, KeyPattern, KeySettings, Load, RedisTarget, Stop, Target,
};
use kvlab_timing::Rate;

const CONNECTIONS: u32 = 3;
const EACH: u64 = 7;

/// Three connections that SET seven keys each, one after the other in a part of their own.
fn settings(load: Load) -> Settings {
    let all = u64::from(CONNECTIONS) * EACH;
    let target = RedisTarget::new("127.0.0.1:6379".parse().unwrap(), 1, 0);
    Settings {
        clients: Clients::Separate,
        connections: NonZeroU32::new(CONNECTIONS).unwrap(),
        load,
        stop: Stop {
            duration: None,
            requests: Some(all),
        },
        keys: KeySettings {
            prefix: "k-".into(),
            width: 0,
            first: 100,
            count: NonZeroU64::new(all).unwrap(),
            pattern: KeyPattern::Parallel,
        },
        ..Settings::new(Target::Redis(target))
    }
}

/// The keys that each connection sent, in their order.
fn keys(world: &World) -> Vec<Vec<u64>> {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let keys = |text: String| {
        text.split("\r\n")
            .filter_map(|line| line.strip_prefix("k-"))
            .map(|number| number.parse().unwrap())
            .collect()
    };
    world.read.iter().map(text).map(keys).collect()
}

#[test]
fn each_connection_sends_its_own_requests_however_slow_it_is() {
    let open = Load::Open {
        rate: Rate::per_second(1000).unwrap(),
        arrivals: Arrivals::Uniform,
    };
    for load in [Load::Closed, open] {
        let mut world = World::new(MILLI, 0);
        world.gate = Box::new(|attempt, _| match attempt {
            // The others are through long before this one begins.
            1 => Gate::Hold(500 * MILLI),
            _ => Gate::Serve,
        });
        let result = world.run(&settings(load)).unwrap();
        let expected: Vec<Vec<u64>> = (0..u64::from(CONNECTIONS))
            .map(|part| (100 + part * EACH..100 + (part + 1) * EACH).collect())
            .collect();
        assert_eq!(keys(&world), expected, "{load:?}");
        assert_eq!(result.summary.tally.outcomes().hits, 21);
    }
}

#[test]
fn the_rest_of_a_connection_that_is_given_up_is_done_by_the_others() {
    for doomed in [1, 4, 20] {
        let mut world = World::new(MILLI, 0);
        world.script = Box::new(move |request| {
            if request == doomed {
                Script::Close
            } else {
                Script::Reply("+OK\r\n")
            }
        });
        world.refuse = Box::new(|attempt| attempt >= u64::from(CONNECTIONS));
        let settings = Settings {
            backoff: Backoff {
                attempts: 0,
                ..Backoff::default()
            },
            ..settings(Load::Closed)
        };
        let result = world.run(&settings).unwrap();
        let outcomes = result.summary.tally.outcomes();
        assert_eq!((outcomes.hits, outcomes.lost), (20, 1), "{doomed}");
        assert_eq!(outcomes.total(), 21);
    }
}
