//! Limits on connections under virtual time: each attempt of the client meets what the rule gives, and a
//! server that keeps another rule is found out.

use kvlab::check::judge;
use kvlab::runner::Evidence;
use kvlab::scenario::Expect;
use kvlab::truth::accept::{AcceptRule, Fate};
use kvlab::truth::lives::Lives;
use kvlab::verdict::Verdict;
use kvlab_mock_server::exchange::Protocol;
use kvlab_mock_server::limit::ConnectionLimits;

use super::support::{assert_passes, finding, run, scenario};

fn run_with(server: &str, client: &str, expect: &str) -> Evidence {
    let text = format!(
        "[server]\n{server}\n[[client]]\ntarget = 'redis'\nresp = 2\n{client}\n[expect]\n\
         failed = 100000\n{expect}\n"
    );
    let (evidence, judgement) = run(&scenario(&text), 0);
    assert_passes(&judgement, &text);
    finding(&judgement, "connections");
    evidence
}

/// 1,000 at once against 200 per 500 ms: 200 at once, then one every 2.5 ms, to the nanosecond.
#[test]
fn a_thousand_connections_open_as_the_bucket_says() {
    let evidence = run_with(
        "accept-rate = '200/500ms'",
        "connections = 1000\nrequests = 3000\nduration = '10s'",
        "connections = { accepted = 1000, held = 800 }",
    );
    let lives = evidence.lives.as_ref().unwrap();
    let mut opened = Vec::new();
    for (row, fate) in lives.rows.iter().zip(&lives.fates) {
        let Fate::In {
            accepted,
            opened: at,
            ..
        } = *fate
        else {
            panic!("{fate:?}");
        };
        assert_eq!(
            row.connected.unwrap().as_nanos(),
            accepted + evidence.tier.leg_ns()
        );
        opened.push(at - accepted);
    }
    let by_hand: Vec<u64> = (1..=1_000_u64)
        .map(|place| place.saturating_sub(200) * 2_500_000)
        .collect();
    assert_eq!(opened, by_hand);
    // The first request on a connection is read when it opens and not before.
    let pairs = &evidence.joined.pairs;
    let held = pairs.iter().filter(|pair| pair.held_ns > 0);
    assert!(held.count() > 0);
}

#[test]
fn connections_beyond_the_rate_are_reset_in_exact_numbers() {
    let evidence = run_with(
        "accept-rate = '200/1000h'\ncores = 2\naccept-limit = 'reset'",
        "connections = 1000\nrequests = 1000\nduration = '200ms'",
        "connections.accepted = 400",
    );
    let met = evidence.lives.as_ref().unwrap().met();
    assert!(met.reset >= 600, "{met:?}");
    assert_eq!(evidence.counts.accepting.reset, met.reset);
}

#[test]
fn a_server_that_keeps_another_rule_is_found_out() {
    for (server, change) in [
        (
            "max-connections = 6",
            (|limits| limits.max = Some(7)) as fn(&mut ConnectionLimits),
        ),
        ("max-connections = 6", |limits| {
            limits.at_cap = Some("close".parse().unwrap());
        }),
        ("accept-rate = '3/7ms'", |limits| {
            limits.rate = Some("3/8ms".parse().unwrap());
        }),
        (
            "accept-rate = '3/7ms'\naccept-limit = 'backlog'",
            |limits| {
                limits.rate = Some("3/8ms".parse().unwrap());
            },
        ),
        ("max-age = '40ms'", |limits| {
            limits.max_age = Some(std::time::Duration::from_millis(41));
        }),
    ] {
        // Long enough for connections to come of age.
        let client = "connections = 10\nrequests = 100000\nduration = '300ms'";
        let mut evidence = run_with(server, client, "");
        change(&mut evidence.server.connections);
        let rows = evidence.lives.take().unwrap().rows;
        let limits = &evidence.server.connections;
        let rule = AcceptRule::new(limits, Protocol::Redis, evidence.server.started.as_nanos());
        let lives = Lives::new(&rule, rows, &evidence.joined, evidence.tier.leg_ns());
        lives.note_holds(&mut evidence.joined);
        evidence.lives = Some(lives);
        let judgement = judge(&evidence, &Expect::default(), None);
        let found = ["connections", "ends", "accepting", "exact"]
            .map(|name| finding(&judgement, name).verdict == Verdict::Fail);
        assert!(found.contains(&true), "{server}: {:#?}", judgement.findings);
    }
}
