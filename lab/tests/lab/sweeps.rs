//! Sweeps: what a matrix of values becomes, and what is said about a wrong one.

use std::collections::BTreeSet;

use kvlab::scenario::{Limit, Scenario};
use kvlab_bench_client::settings::{Arrivals, Load};

use super::support::{assert_passes, run, scenario};

fn names(scenario: &Scenario) -> Vec<&str> {
    scenario
        .parts
        .iter()
        .map(|part| part.name.as_str())
        .collect()
}

#[test]
fn lists_of_values_give_their_full_product_with_names_that_say_it() {
    let scenario = scenario(
        r#"
        [sweep]
        "client.connections" = [1, 10]
        server.latency = ["constant(1ms)", "uniform(1ms,3ms)"]
        [server]
        seed = 9
        [[client]]
        target = "redis"
        requests = 100
        "#,
    );
    assert_eq!(
        names(&scenario),
        [
            "connections=1, latency=constant(1ms)",
            "connections=1, latency=uniform(1ms,3ms)",
            "connections=10, latency=constant(1ms)",
            "connections=10, latency=uniform(1ms,3ms)",
        ]
    );
    let found = scenario.parts.iter().map(|part| {
        let config = scenario.server_for(part);
        (
            part.settings.connections.get(),
            config.latency.rules()[0].to_string(),
            config.seed,
        )
    });
    let laws = ["constant(1ms)", "uniform(1ms,3ms)"];
    let expected = [1, 10]
        .iter()
        .flat_map(|connections| laws.map(|law| (*connections, law.to_owned(), 9)));
    assert!(found.eq(expected));
}

#[test]
fn an_axis_of_tables_sets_several_keys_and_the_expectations_that_go_with_them() {
    let scenario = scenario(
        r#"
        [[sweep.load]]
        name = "closed"
        [[sweep.load]]
        name = "overload"
        client = { rate = 9000, arrivals = "poisson", expect.failed = 3 }
        server.freeze = "every=1s,for=75ms"
        expect.response = { p90 = "none", "p99.9" = "4%" }

        [expect.response]
        p50 = "1ms"
        [[client]]
        target = "redis"
        [[client]]
        name = "wire"
        target = "aerospike"
        "#,
    );
    assert_eq!(
        names(&scenario),
        [
            "redis closed loop: load=closed",
            "wire: load=closed",
            "redis open loop: load=overload",
            "wire: load=overload",
        ]
    );
    let [closed, _, open, _] = &scenario.parts[..] else {
        panic!("four parts")
    };
    assert_eq!(closed.settings.load, Load::Closed);
    assert!(scenario.server_for(closed).freezes.is_empty());
    assert!(matches!(
        open.settings.load,
        Load::Open {
            arrivals: Arrivals::Poisson,
            ..
        }
    ));
    assert!(!scenario.server_for(open).freezes.is_empty());
    // The client's own table stands in the place of the file's.
    assert_eq!((closed.expect.failed, open.expect.failed), (0, 3));
    assert!(matches!(closed.expect.response.p50, Some(Limit::Within(_))));
    assert_eq!(closed.expect.response.p90, None);
}

#[test]
fn expectations_of_an_axis_are_put_together_with_those_of_the_file() {
    let scenario = scenario(
        "[sweep]\nexpect.response.\"p99.9\" = ['3%', 'none']\n\
         [expect.response]\np50 = '1ms'\n[[client]]\ntarget = 'redis'\n",
    );
    assert_eq!(names(&scenario), ["p99.9=3%", "p99.9=none"]);
    let limits = scenario.parts[1].expect.response;
    assert_eq!(limits.p99_9, Some(Limit::Unjudged));
    assert!(matches!(limits.p50, Some(Limit::Within(_))));
}

#[test]
fn a_pairwise_cover_has_every_pair_of_values_in_far_fewer_parts() {
    let scenario = scenario(
        r#"
        [sweep]
        cover = "pairwise"
        client.connections = [1, 2, 3, 4, 5]
        client.value-size = ["0", "32", "100"]
        client.keys = [10, 20, 30, 40]
        server.seed = [1, 2, 3]
        [[client]]
        target = "redis"
        "#,
    );
    // The product has 180; 20 are needed for the first and the third.
    let count = scenario.parts.len();
    assert!((20..=26).contains(&count), "{count}");
    let rows: Vec<Vec<&str>> = names(&scenario)
        .into_iter()
        .map(|name| name.split(", ").collect())
        .collect();
    for (one, other, pairs) in [
        (0, 1, 15),
        (0, 2, 20),
        (0, 3, 15),
        (1, 2, 12),
        (1, 3, 9),
        (2, 3, 12),
    ] {
        let met: BTreeSet<_> = rows.iter().map(|row| (row[one], row[other])).collect();
        assert_eq!(met.len(), pairs, "{:?}", (one, other));
    }
}

#[test]
fn a_rate_in_percent_is_a_share_of_the_capacity() {
    // Four slots, each held for 1.9 ms + 2 x 50 us: 2000 per second.
    let scenario = scenario(
        "[network]\ndelay = '50us'\n[server]\nlatency = 'constant(1900us)'\n\
         [sweep]\nclient.rate = ['50%', '100%']\n\
         [[client]]\ntarget = 'redis'\nconnections = 4\nduration = '1s'\n",
    );
    for (place, due) in [(0, 1000), (1, 2000)] {
        let (evidence, judgement) = run(&scenario, place);
        assert_passes(&judgement, &scenario.parts[place].name);
        assert_eq!(evidence.summary.due, due);
        // Up to its capacity nothing waits in the client.
        let max = judgement.figures[1].quantiles.last().unwrap().true_ns;
        assert_eq!(max, 2_000_000, "{place}");
    }
}

#[test]
fn a_queue_bounds_the_capacity_by_what_its_servers_get_done() {
    let rate = |queue: &str, connections: u32| {
        let scenario = scenario(&format!(
            "[server]\nlatency = 'constant(1ms)'\nqueue = '{queue}'\n\
             [[client]]\ntarget = 'redis'\nrate = '50%'\nconnections = {connections}\n"
        ));
        match scenario.parts[0].settings.load {
            Load::Open { rate, .. } => rate.as_f64(),
            Load::Closed => panic!("an open loop"),
        }
    };
    // Two servers that take 500 us each: 4000 a second. A request holds its slot for 1 ms + 500 us +
    // 2 x 25 us.
    assert_eq!(rate("servers=2,service=constant(500us)", 100), 2_000.0);
    assert_eq!(rate("servers=2,service=constant(500us)", 1), 322.581);
}

/// A wrong sweep, and what its message has to name.
const WRONG: [(&str, &[&str]); 17] = [
    ("sweep = 1", &["line 1", "sweep"]),
    ("[sweep]\ncover = 'all'", &["line 2", "cover", "pairwise"]),
    (
        "[sweep]\nclient.connections = []",
        &["line 2", "client.connections", "list"],
    ),
    (
        "[sweep]\nclient.connections = 5",
        &["line 2", "client.connections", "list"],
    ),
    ("[sweep]\nserver = [1]", &["line 2", "server"]),
    (
        "[sweep]\nclient.connections = [1, 1]",
        &["line 2", "connections", "'1' twice"],
    ),
    (
        "[sweep]\nload = [1, 2]",
        &["line 2", "sweep.load", "tables"],
    ),
    (
        "[[sweep.load]]\nclient.rate = 5",
        &["line 1", "sweep.load", "name"],
    ),
    (
        "[[sweep.load]]\nname = 'a'\nnetwork.delay = '1ms'",
        &["line 3", "sweep.load", "network"],
    ),
    (
        "[sweep]\nserver.seed = [1]\nclient.seed = [1]",
        &["line 3", "two axes are called seed"],
    ),
    (
        "[sweep]\nclient.rate = [1]\n[[sweep.load]]\nname = 'a'\nclient.rate = 2",
        &["line 3", "both set client.rate"],
    ),
    (
        "[sweep]\nclient.conections = [1]",
        &["line 2", "conections", "with conections=1"],
    ),
    ("[sweep]\nserver.latancy = ['none']", &["line 2", "latancy"]),
    (
        "[sweep]\nexpect.servise.p50 = ['1%']",
        &["line 2", "servise"],
    ),
    (
        "[sweep]\nclient.rate = ['5 %', '0%']",
        &["line 2", "rate", "0%"],
    ),
    (
        "[sweep]\nclient.rate = ['10%']\n[server]\nlatency = ['get=none', 'set=constant(1ms)']",
        &["line 2", "rate", "one latency law"],
    ),
    (
        "[sweep]\nclient.rate = ['1000%']\nclient.connections = [60]",
        &["line 2", "rate", "at most 10000000"],
    ),
];

#[test]
fn wrong_sweeps_are_refused_with_line_and_key() {
    for (sweep, parts) in WRONG {
        let text = format!("{sweep}\n[[client]]\ntarget = 'redis'\n");
        let error = Scenario::parse("wrong", &text)
            .expect_err(&text)
            .to_string();
        for part in parts {
            assert!(
                error.contains(part),
                "{part:?} is not in: {error}\nof\n{text}"
            );
        }
    }
}

#[test]
fn a_matrix_without_bound_is_refused_and_a_pairwise_cover_of_it_is_not() {
    let values = |key: &str| {
        let list: Vec<String> = (1..=13).map(|value| value.to_string()).collect();
        format!("{key} = [{}]\n", list.join(", "))
    };
    let axes = values("client.connections") + &values("client.keys") + &values("server.seed");
    let text = |cover: &str| format!("[sweep]\n{cover}{axes}[[client]]\ntarget = 'redis'\n");
    let error = Scenario::parse("large", &text("")).unwrap_err().to_string();
    assert!(error.contains("2000 combinations"), "{error}");
    let parts = scenario(&text("cover = 'pairwise'\n")).parts.len();
    assert!((169..=230).contains(&parts), "{parts}");
}

#[test]
fn a_seed_from_outside_reaches_every_combination() {
    let mut scenario = scenario(
        "[sweep]\nserver.latency = ['none', 'constant(1ms)']\n[[client]]\ntarget = 'redis'\n",
    );
    scenario.set_seed(77);
    for part in &scenario.parts {
        assert_eq!(scenario.server_for(part).seed, 77);
        assert_eq!(part.settings.seed, 77);
    }
}
