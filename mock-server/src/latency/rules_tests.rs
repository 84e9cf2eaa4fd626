use rand_xoshiro::rand_core::SeedableRng;

use super::*;
use crate::exchange::Protocol;

fn rules(texts: &[&str]) -> LatencyRules {
    LatencyRules::new(texts.iter().map(|text| text.parse().unwrap()).collect()).unwrap()
}

fn redis(command: &'static str, class: Class, key: &'static str) -> Exchange<'static> {
    Exchange {
        protocol: Protocol::Redis,
        command,
        class,
        key: key.as_bytes(),
    }
}

fn aerospike(command: &'static str, class: Class) -> Exchange<'static> {
    Exchange {
        protocol: Protocol::Aerospike,
        command,
        class,
        // A digest that happens to read like a key.
        key: b"user:xxxxxxxxxxxxxxx",
    }
}

fn wanted(rules: &LatencyRules, exchange: &Exchange<'_>) -> u64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let wanted = rules.wanted_ns(exchange, &mut rng);
    let law = rules.law(exchange);
    assert_eq!(
        law.sample_ns(&mut Xoshiro256PlusPlus::seed_from_u64(1)),
        wanted
    );
    wanted
}

#[test]
fn a_bare_law_delays_reads_and_writes_but_no_handshake() {
    for texts in [&["constant(7ns)"][..], &["constant(7ns)", "get@x=none"][..]] {
        let rules = rules(texts);
        assert!(!rules.is_none());
        assert_eq!(wanted(&rules, &redis("get", Class::Read, "k")), 7);
        assert_eq!(wanted(&rules, &redis("set", Class::Write, "k")), 7);
        assert_eq!(wanted(&rules, &redis("ping", Class::Admin, "")), 0);
        assert_eq!(wanted(&rules, &aerospike("get", Class::Read)), 7);
        assert_eq!(wanted(&rules, &aerospike("info", Class::Admin)), 0);
    }
}

#[test]
fn admin_all_and_command_names_reach_the_handshake() {
    for text in [
        "admin=constant(7ns)",
        "all=constant(7ns)",
        "PING=constant(7ns)",
    ] {
        assert_eq!(
            wanted(&rules(&[text]), &redis("ping", Class::Admin, "")),
            7,
            "{text}"
        );
    }
    let get = redis("get", Class::Read, "k");
    assert_eq!(wanted(&rules(&["all=constant(7ns)"]), &get), 7);
    assert_eq!(wanted(&rules(&["admin=constant(7ns)"]), &get), 0);
}

#[test]
fn the_most_specific_rule_wins_in_any_order() {
    // From the least to the most specific.
    let ladder = [
        "all=constant(1ns)",
        "redis.all=constant(2ns)",
        "constant(3ns)",
        "redis=constant(4ns)",
        "read=constant(5ns)",
        "redis.read=constant(6ns)",
        "get=constant(7ns)",
        "redis.get=constant(8ns)",
        "@user:*=constant(9ns)",
        "redis@user:*=constant(10ns)",
        "read@user:*=constant(11ns)",
        "get@user:*=constant(12ns)",
        "redis.get@user:*=constant(13ns)",
    ];
    let get = redis("get", Class::Read, "user:1");
    for top in 1..=ladder.len() {
        let mut texts = ladder[..top].to_vec();
        assert_eq!(wanted(&rules(&texts), &get), top as u64);
        texts.reverse();
        assert_eq!(wanted(&rules(&texts), &get), top as u64, "reversed");
    }
}

#[test]
fn among_equals_the_later_rule_wins() {
    let rules = rules(&[
        "get=constant(1ns)",
        "get=constant(2ns)",
        "set=constant(3ns)",
    ]);
    assert_eq!(wanted(&rules, &redis("get", Class::Read, "k")), 2);
}

#[test]
fn protocols_and_keys_are_told_apart() {
    let rules = rules(&[
        "redis=constant(1ns)",
        "aerospike=constant(2ns)",
        "get@user:*=constant(3ns)",
    ]);
    assert_eq!(wanted(&rules, &redis("get", Class::Read, "other")), 1);
    assert_eq!(wanted(&rules, &redis("set", Class::Write, "user:1")), 1);
    assert_eq!(wanted(&rules, &redis("get", Class::Read, "user:1")), 3);
    assert_eq!(wanted(&rules, &aerospike("get", Class::Read)), 2);
}

#[test]
fn rules_without_delay_cost_nothing() {
    assert!(LatencyRules::default().is_none());
    assert!(LatencyRules::constant(0).is_none());
    assert!(rules(&["none", "get=constant(0)"]).is_none());
    assert!(!rules(&["none", "get=constant(1ns)"]).is_none());
}

#[test]
fn the_number_of_rules_is_bounded() {
    let rule: Rule = "get=constant(1ms)".parse().unwrap();
    assert!(LatencyRules::new(vec![rule.clone(); LatencyRules::MAX_RULES]).is_ok());
    let error = LatencyRules::new(vec![rule; LatencyRules::MAX_RULES + 1]).unwrap_err();
    assert_eq!(error.to_string(), "257 latency rules; expected at most 256");
}

#[test]
fn rules_print_as_they_are_read() {
    for text in [
        "none",
        "constant(1.5ms)",
        "redis=none",
        "admin=constant(1ms)",
        "get=lognormal(p50=300us,p99=2ms)",
        "redis.get@user:*=uniform(1ms,3ms)",
        "@a=b(c=constant(1ms)",
        "@*=mixture(50%:constant(1ms),50%:none)",
    ] {
        let rule: Rule = text.parse().unwrap();
        assert_eq!(rule.to_string(), text);
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    let rule: Rule = "@a=b(c=constant(1ms)".parse().unwrap();
    assert_eq!(rule.selector.key.unwrap().to_string(), "a=b(c");
    let spaced: Rule = " Redis.GET = constant( 1ms ) ".parse().unwrap();
    assert_eq!(spaced.to_string(), "redis.get=constant(1ms)");
}

#[test]
fn faulty_selectors_are_refused_with_the_place() {
    for (text, message) in [
        (
            "=none",
            "expected a selector before '=', found '=', at character 1 of '=none'",
        ),
        (
            "gte=none",
            "'gte' is no protocol, class (read, write, admin, all) or command of this server, at \
             character 1 of 'gte=none'",
        ),
        (
            "aerospike.set=none",
            "'set' is no protocol, class (read, write, admin, all) or command of this server's \
             aerospike side, at character 1 of 'aerospike.set=none'",
        ),
        (
            "memcached.get=none",
            "unknown protocol 'memcached', expected redis or aerospike, at character 1 of \
             'memcached.get=none'",
        ),
        (
            "get@=none",
            "expected a key pattern behind '@', found nothing, at character 5 of 'get@=none'",
        ),
        (
            "aerospike@user:*=none",
            "Aerospike requests carry the digest of a key and not the key, so a key pattern cannot \
             select them, at character 10 of 'aerospike@user:*=none'",
        ),
        (
            "get=constnat(1ms)",
            "unknown law 'constnat', expected none, constant, uniform, normal, \
          lognormal, exponential, pareto, replay, mixture or empirical, at character 5 of 'get=constnat(1ms)'",
        ),
        (
            "get=constant(1ms",
            "expected ')', found the end, at character 17 of 'get=constant(1ms'",
        ),
    ] {
        assert_eq!(text.parse::<Rule>().unwrap_err().to_string(), message);
    }
}
