use proptest::prelude::*;
use rand_xoshiro::rand_core::SeedableRng;

use super::*;

const MS: f64 = 1e6;

fn law(text: &str) -> Distribution {
    text.parse().unwrap()
}

fn samples(law: &Distribution, seed: u64, count: usize) -> Vec<u64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..count).map(|_| law.sample_ns(&mut rng)).collect()
}

fn assert_close(found: f64, expected: f64, relative: f64, what: &str) {
    let error = (found - expected).abs();
    assert!(
        error <= relative * expected.abs(),
        "{what}: {found} is not {expected}"
    );
}

/// One of each, with its usual and with its odd parameters.
const LAWS: [&str; 21] = [
    "constant(1ms)",
    "uniform(1ms,3ms)",
    "uniform(0,1h)",
    "normal(mean=1ms,sd=200us)",
    "normal(mean=1ms,sd=2ms)",
    "normal(mean=0,sd=1ms)",
    "normal(mean=59m,sd=5m)",
    "lognormal(p50=300us,p99=2ms)",
    "lognormal(mean=1ms,sigma=0.5)",
    "lognormal(p50=30m,sigma=1)",
    "exponential(mean=1ms)",
    "exponential(mean=30m)",
    "pareto(min=1ms,shape=2.5,max=1s)",
    "pareto(min=1s,shape=0.5)",
    "mixture(99.3%:constant(1ms),0.7%:constant(50ms))",
    "mixture(60%:uniform(1ms,2ms),30%:exponential(mean=5ms),10%:constant(3ms))",
    "empirical(0%:1ms,50%:2ms,100%:20ms)",
    "empirical(0%:0,10%:1ms,90%:1ms,99%:1ms,100%:200ms)",
    concat!(
        "empirical(file=",
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/quantiles.csv)"
    ),
    concat!(
        "empirical(file=",
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/two-intervals.hlog,unit=us)"
    ),
    concat!(
        "replay(file=",
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/delays.txt)"
    ),
];

/// Kolmogorov and Smirnov: with 40,000 draws, a distance above 1.95 / sqrt(n) comes once in a
/// thousand; the seeds are fixed, so what passes once passes always. Draws are whole nanoseconds,
/// so the probabilities are taken half a nanosecond above and below.
#[test]
fn draws_follow_the_cumulative_probability() {
    const COUNT: usize = 40_000;
    for text in LAWS {
        let law = law(text);
        let mut drawn = samples(&law, 7, COUNT);
        drawn.sort_unstable();
        let mut distance = 0.0_f64;
        for group in drawn.chunk_by(|a, b| a == b) {
            let first = drawn.partition_point(|ns| *ns < group[0]);
            let (before, with) = (first as f64, (first + group.len()) as f64);
            let ns = group[0] as f64;
            distance = distance
                .max((law.cdf(ns + 0.5) - with / COUNT as f64).abs())
                .max((law.cdf(ns - 0.5) - before / COUNT as f64).abs());
        }
        let bound = 1.95 / (COUNT as f64).sqrt();
        assert!(distance < bound, "{text}: {distance} is not below {bound}");
    }
}

/// The distance between sample mean and mean is below four and a half standard errors.
#[test]
fn draws_have_the_mean() {
    const COUNT: usize = 40_000;
    for text in LAWS {
        let law = law(text);
        let drawn = samples(&law, 11, COUNT);
        let mean = drawn.iter().map(|ns| *ns as f64).sum::<f64>() / COUNT as f64;
        let square = |ns: &u64| (*ns as f64 - mean).powi(2);
        let variance = drawn.iter().map(square).sum::<f64>() / COUNT as f64;
        let error = (variance / COUNT as f64).sqrt();
        let distance = (mean - law.mean_ns()).abs();
        assert!(
            distance <= 4.5 * error + 0.5,
            "{text}: {mean}, not {}",
            law.mean_ns()
        );
    }
}

/// The mean is the integral of the quantile function over q; with q = 1 - u^3 the tail, where a heavy
/// one holds most of the mean, is cut into the finest steps.
#[test]
fn mean_and_quantiles_agree() {
    const STEPS: u32 = 50_000;
    for text in LAWS {
        let law = law(text);
        let middles = (0..STEPS).map(|step| (f64::from(step) + 0.5) / f64::from(STEPS));
        let pieces = middles.map(|u| law.quantile_ns(1.0 - u.powi(3)) * 3.0 * u * u);
        let integral = pieces.sum::<f64>() / f64::from(STEPS);
        assert_close(law.mean_ns(), integral, 1e-4, text);
    }
}

/// Values from tables and closed forms, by hand.
#[test]
fn known_quantiles_and_means_are_met() {
    for (text, q, ns) in [
        ("uniform(1ms,3ms)", 0.25, 1.5 * MS),
        (
            "normal(mean=10ms,sd=1ms)",
            0.975,
            11.959_963_984_540_054 * MS,
        ),
        ("normal(mean=0,sd=1ms)", 0.5, 0.674_489_750_196_081_7 * MS),
        ("lognormal(p50=300us,p99=2ms)", 0.5, 0.3 * MS),
        ("lognormal(p50=300us,p99=2ms)", 0.99, 2.0 * MS),
        ("exponential(mean=1ms)", 0.99, 100_f64.ln() * MS),
        ("pareto(min=1ms,shape=2)", 0.99, 10.0 * MS),
        ("pareto(min=1ms,shape=2,max=5ms)", 0.99, 5.0 * MS),
        ("mixture(99.3%:constant(1ms),0.7%:constant(50ms))", 0.99, MS),
        (
            "mixture(99.3%:constant(1ms),0.7%:constant(50ms))",
            0.994,
            50.0 * MS,
        ),
        (
            "mixture(50%:uniform(0,1ms),50%:uniform(2ms,3ms))",
            0.25,
            0.5 * MS,
        ),
        (
            "mixture(50%:uniform(0,1ms),50%:uniform(2ms,3ms))",
            0.75,
            2.5 * MS,
        ),
        ("mixture(50%:none,50%:constant(1ms))", 0.5, 0.0),
        ("empirical(0%:1ms,50%:2ms,100%:20ms)", 0.25, 1.5 * MS),
        ("empirical(0%:1ms,50%:2ms,100%:20ms)", 0.75, 11.0 * MS),
    ] {
        assert_close(law(text).quantile_ns(q), ns, 1e-12, text);
    }
    for (text, ns) in [
        ("none", 0.0),
        ("uniform(1ms,3ms)", 2.0 * MS),
        (
            "normal(mean=0,sd=1ms)",
            (2.0 / std::f64::consts::PI).sqrt() * MS,
        ),
        ("lognormal(mean=1ms,sigma=0.5)", MS),
        ("exponential(mean=1ms)", MS),
        ("pareto(min=1ms,shape=2,max=4ms)", 1.75 * MS),
        ("pareto(min=1ms,shape=1,max=1s)", (1.0 + 1000_f64.ln()) * MS),
        (
            "mixture(99.3%:constant(1ms),0.7%:constant(50ms))",
            1.343 * MS,
        ),
    ] {
        assert_close(law(text).mean_ns(), ns, 1e-12, text);
    }
}

#[test]
fn nothing_takes_longer_than_an_hour() {
    let heavy = law("pareto(min=1s,shape=0.01)");
    assert!(samples(&heavy, 1, 100).contains(&LONGEST_NS));
    assert_eq!(heavy.quantile_ns(1.0), LONGEST_NS as f64);
    for unbounded in [
        "normal(mean=1ms,sd=1ms)",
        "lognormal(p50=1ms,p99=2ms)",
        "exponential(mean=1ms)",
    ] {
        assert_eq!(
            law(unbounded).quantile_ns(1.0),
            LONGEST_NS as f64,
            "{unbounded}"
        );
    }
    assert_eq!(Distribution::constant(Duration::MAX), law("constant(1h)"));
    assert_eq!(
        "constant(61m)"
            .parse::<Distribution>()
            .unwrap_err()
            .to_string(),
        "min is 61m; expected at most 1h, at character 1 of 'constant(61m)'"
    );
}

#[test]
fn faulty_laws_are_refused_with_the_place() {
    for (text, message) in [
        ("", "expected a law, found the end, at character 1 of ''"),
        (
            "constant",
            "expected '(', found the end, at character 9 of 'constant'",
        ),
        (
            "constant()",
            "'' is not a duration: expected a number and a unit (ns, us, ms, s, m, h), as \
          in 1.5ms, at character 10 of 'constant()'",
        ),
        (
            "constant(5)",
            "'5' lacks a unit: expected ns, us, ms, s, m or h, as in 5ms, at character \
          10 of 'constant(5)'",
        ),
        (
            "constant(1ms,2ms)",
            "too many values, expected delay, at character 14 of \
          'constant(1ms,2ms)'",
        ),
        (
            "constant(1ms) x",
            "expected the end, found 'x', at character 15 of 'constant(1ms) x'",
        ),
        (
            "uniform(3ms,1ms)",
            "max is 1ms; expected at least min, at character 1 of \
          'uniform(3ms,1ms)'",
        ),
        (
            "uniform(1ms)",
            "'max' is missing, at character 1 of 'uniform(1ms)'",
        ),
        (
            "normal(mean=1ms,sigma=2)",
            "unknown parameter 'sigma', expected mean, sd, at character 17 \
          of 'normal(mean=1ms,sigma=2)'",
        ),
        (
            "normal(mean=1ms,mean=2ms)",
            "'mean' is given twice, at character 17 of \
          'normal(mean=1ms,mean=2ms)'",
        ),
        (
            "normal(1ms,0)",
            "sd is 0; expected a time above 0, at character 1 of 'normal(1ms,0)'",
        ),
        (
            "lognormal(p50=1ms)",
            "expected p50 and p99, p50 and sigma, or mean and sigma, at character \
          1 of 'lognormal(p50=1ms)'",
        ),
        (
            "lognormal(p50=2ms,p99=1ms)",
            "p99 is 1ms; expected a time above p50, at character 1 of \
          'lognormal(p50=2ms,p99=1ms)'",
        ),
        (
            "pareto(1ms,-1)",
            "'-1' is not a number, at character 12 of 'pareto(1ms,-1)'",
        ),
        (
            "pareto(1ms,0)",
            "shape is 0; expected a number above 0 and up to 1000, at character 1 of \
          'pareto(1ms,0)'",
        ),
        (
            "mixture()",
            "expected a share, as in 99.5%:constant(1ms), found ')', at character 9 of \
          'mixture()'",
        ),
        (
            "mixture(50:none)",
            "expected '%', found ':', at character 11 of 'mixture(50:none)'",
        ),
        (
            "mixture(50%:none,40%:none)",
            "the shares add up to 90%; expected 100%, at character 1 of \
          'mixture(50%:none,40%:none)'",
        ),
        (
            "mixture(100%:mixture(100%:none))",
            "a mixture holds no mixtures; expected their parts \
          instead, at character 14 of 'mixture(100%:mixture(100%:none))'",
        ),
        ("µ", "expected a law, found 'µ', at character 1 of 'µ'"),
    ] {
        assert_eq!(
            text.parse::<Distribution>().unwrap_err().to_string(),
            message
        );
    }
    let many = format!("mixture({})", vec!["1%:none"; 17].join(","));
    let error = many.parse::<Distribution>().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("a mixture of 17 parts; expected 1 to 16")
    );
}

fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![1_000..1_000_000_u64, 1_000..LONGEST_NS / 2].prop_map(Duration::from_nanos)
}

fn simple_law() -> impl Strategy<Value = Distribution> {
    let positive = 0.05..10.0_f64;
    prop_oneof![
        Just(Distribution::None),
        time().prop_map(Distribution::constant),
        (time(), time()).prop_map(|(a, b)| {
            Distribution::Uniform(Uniform::new(a.min(b), a.max(b)).unwrap())
        }),
        (time(), time()).prop_map(|(a, b)| Distribution::Normal(Normal::new(a, b).unwrap())),
        (time(), time()).prop_map(|(a, b)| {
            Distribution::Lognormal(Lognormal::from_percentiles(a, a + b).unwrap())
        }),
        (time(), positive.clone())
            .prop_map(|(a, b)| { Distribution::Lognormal(Lognormal::from_median(a, b).unwrap()) }),
        (time(), positive.clone())
            .prop_map(|(a, b)| { Distribution::Lognormal(Lognormal::from_mean(a, b).unwrap()) }),
        time().prop_map(|a| Distribution::Exponential(Exponential::new(a).unwrap())),
        (time(), positive, proptest::option::of(time())).prop_map(|(a, shape, more)| {
            let max = more.map(|more| a + more);
            Distribution::Pareto(Pareto::new(a, shape, max).unwrap())
        }),
    ]
}

fn any_law() -> impl Strategy<Value = Distribution> {
    let mixture = (simple_law(), simple_law(), 1..9_999_u32).prop_map(|(a, b, share)| {
        let percent = f64::from(share) / 100.0;
        let parts = vec![(percent, a), (100.0 - percent, b)];
        Distribution::Mixture(Mixture::new(parts).unwrap())
    });
    prop_oneof![4 => simple_law(), 1 => mixture]
}

proptest! {
    #[test]
    fn a_printed_law_parses_back(law in any_law()) {
        prop_assert_eq!(law.to_string().parse(), Ok(law));
    }

    #[test]
    fn quantiles_rise_and_hold_their_share(law in any_law(), a in 0.0..1.0_f64, b in 0.0..1.0_f64) {
        let (low, high) = (law.quantile_ns(a.min(b)), law.quantile_ns(a.max(b)));
        // A mixture finds its quantile to a millionth of a nanosecond.
        prop_assert!(low <= high + 2e-6);
        // A little above the quantile lies the share, a little below it less.
        let (q, margin) = (a.max(b), (high * 1e-9).max(1e-5));
        let (above, below) = (law.cdf(high + margin), law.cdf(high - margin));
        prop_assert!(above >= q - 1e-9 && below <= q + 1e-9, "{} {} {}", below, q, above);
    }

    #[test]
    fn draws_lie_between_the_outer_quantiles(law in any_law(), seed in any::<u64>()) {
        for ns in samples(&law, seed, 100) {
            prop_assert!(ns as f64 + 0.5 >= law.quantile_ns(0.0));
            prop_assert!(ns as f64 - 0.5 <= law.quantile_ns(1.0));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9.%:=,()@ µ]{0,40}") {
        let _ = text.parse::<Distribution>();
        let _ = text.parse::<super::super::Rule>();
        let _ = text.parse::<super::super::Freeze>();
    }
}
