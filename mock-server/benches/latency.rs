//! What a delay costs: choosing the rule of a request and drawing from its law.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use kvlab_mock_server::exchange::{Class, Exchange, Protocol};
use kvlab_mock_server::latency::{Distribution, LatencyRules};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

const GET: Exchange<'static> = Exchange {
    protocol: Protocol::Redis,
    command: "get",
    class: Class::Read,
    key: b"user:1234",
};

const RULE_SETS: [(&str, &[&str]); 4] = [
    ("none", &[]),
    ("one-constant", &["constant(1ms)"]),
    ("by-class", &["read=constant(1ms)", "write=constant(2ms)"]),
    (
        "ten-by-key",
        &[
            "get@a:*=none",
            "get@b:*=none",
            "get@c:*=none",
            "get@d:*=none",
            "get@e:*=none",
            "get@f:*=none",
            "get@g:*=none",
            "get@h:*=none",
            "get@user:?*=constant(1ms)",
            "constant(2ms)",
        ],
    ),
];

const LAWS: [&str; 7] = [
    "constant(1ms)",
    "uniform(1ms,3ms)",
    "normal(mean=1ms,sd=200us)",
    "lognormal(p50=300us,p99=2ms)",
    "exponential(mean=1ms)",
    "pareto(min=1ms,shape=2.5,max=1s)",
    "mixture(99.3%:constant(1ms),0.7%:constant(50ms))",
];

fn benches(criterion: &mut Criterion) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for (name, texts) in RULE_SETS {
        let rules = texts.iter().map(|text| text.parse().unwrap()).collect();
        let rules = LatencyRules::new(rules).unwrap();
        criterion.bench_function(&format!("latency/rules/{name}"), |bencher| {
            bencher.iter(|| rules.wanted_ns(black_box(&GET), &mut rng));
        });
    }
    for text in LAWS {
        let law: Distribution = text.parse().unwrap();
        let name = text.split('(').next().unwrap_or(text);
        criterion.bench_function(&format!("latency/draw/{name}"), |bencher| {
            bencher.iter(|| black_box(&law).sample_ns(&mut rng));
        });
    }
}

criterion_group!(group, benches);
criterion_main!(group);
