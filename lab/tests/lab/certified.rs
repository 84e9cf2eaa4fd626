//! Certificates under virtual time, where the machine adds nothing but the way, of honest clients and of
//! clients with a planted bias: the truth is within the bound, or there is none.

use std::num::NonZeroU32;
use std::time::Duration;

use kvlab::certify::{self, Certifier};
use kvlab::runner::client::{Bent, Client, Own};
use kvlab::runner::virtual_time;
use kvlab::truth::{Quantile, Sorted};
use kvlab_bench_client::record::{Certificate, CertifiedLatency};
use kvlab_bench_client::settings::{Arrivals, Load, RedisTarget, Stop, Target};
use kvlab_bench_client::{Control, RunResult, Settings};
use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::latency::LatencyRules;
use kvlab_timing::Rate;

use crate::bias;

const LEG_NS: u64 = 40_000;
const LAWS: [&str; 3] = [
    "constant(1ms)",
    "lognormal(p50=800us,p99=5ms)",
    "mixture(97%:uniform(600us,1ms),3%:constant(20ms))",
];

fn settings(load: Load) -> Settings {
    let address = "127.0.0.1:1".parse().unwrap();
    let mut settings = Settings::new(Target::Redis(RedisTarget::new(address, 1, 10)));
    settings.connections = NonZeroU32::new(20).unwrap();
    settings.load = load;
    settings.stop = Stop {
        duration: None,
        requests: Some(12_000),
    };
    settings
}

fn open() -> Load {
    Load::Open {
        rate: Rate::per_second(2_000).unwrap(),
        arrivals: Arrivals::Poisson,
    }
}

/// The certificate of a run against a server with this law, and the true sojourns of the run.
fn certified(client: &dyn Client, law: &str, load: Load) -> (Certificate, Sorted) {
    let control = Control::new();
    let settings = settings(load);
    let server = ServerConfig {
        seed: 99,
        record_rows: true,
        latency: LatencyRules::new(vec![law.parse().unwrap()]).unwrap(),
        ..ServerConfig::default()
    };
    let run = |config, settings| virtual_time::run_by(client, config, settings, LEG_NS, &control);
    let mut certifier = Certifier::new(
        &settings,
        Box::new(|config, _filling, settings| run(config, settings)),
    );
    let pilot = run(server.clone(), certify::pilot(&settings)).unwrap();
    certifier.before(&pilot.summary);
    let measured = run(server, settings.clone()).unwrap();
    let certificate = certifier.after(&measured.summary, None);
    let pairs = measured.joined.pairs.iter();
    let sojourns = pairs.filter(|pair| pair.is_measured());
    (
        certificate,
        sojourns.map(|pair| pair.sojourn_ns()).collect(),
    )
}

/// How many bounds of p50, p90 and p99 there are; those that do not hold the truth join the `missed`.
fn bounds(
    certificate: &Certificate,
    truth: &Sorted,
    what: &str,
    missed: &mut Vec<String>,
) -> usize {
    let service = certificate
        .quantiles
        .iter()
        .filter(|one| one.latency == CertifiedLatency::Service);
    let mut bounds = 0;
    for (one, quantile) in service.zip([Quantile::P50, Quantile::P90, Quantile::P99]) {
        let Ok(bound) = one.bound else {
            continue;
        };
        bounds += 1;
        let exact = truth.quantile(quantile).unwrap();
        if !(bound.low_ns()..=bound.high_ns()).contains(&exact) {
            missed.push(format!("{what} {quantile}: {exact} is not in {bound:?}"));
        }
    }
    bounds
}

#[test]
fn an_honest_client_is_certified_with_narrow_bounds() {
    let mut missed = Vec::new();
    for law in LAWS {
        for load in [open(), Load::Closed] {
            let (certificate, truth) = certified(&Own, law, load);
            assert_eq!(certificate.refused, None, "{law}");
            assert_eq!(certificate.runs.len(), 8);
            let found = bounds(&certificate, &truth, law, &mut missed);
            assert_eq!(found, 3, "{certificate:#?}");
            let median = certificate.quantiles[0].bound.as_ref().unwrap();
            assert!(median.half_width_ns <= 10_000, "{law}: {median:?}");
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Twice the widest bound of a median, which is 60 us or 5 %. The bounds are for 99 of 100: of these
/// eighteen one may miss.
#[test]
fn a_client_with_a_biased_clock_is_covered() {
    let mut missed = Vec::new();
    for law in LAWS {
        let late = |result: RunResult| bias::clock_stopped_late(result, 120_000);
        let (certificate, truth) = certified(&Bent(late), law, open());
        let found = bounds(&certificate, &truth, law, &mut missed);
        assert_eq!(found, 3, "{certificate:#?}");
        let fast = |result: RunResult| bias::clock_runs_fast(result, 10);
        let (certificate, truth) = certified(&Bent(fast), law, open());
        let found = bounds(&certificate, &truth, law, &mut missed);
        assert!(found >= 2, "{certificate:#?}");
    }
    assert!(missed.len() <= 1, "{missed:#?}");
}

#[test]
fn a_client_that_records_wrongly_is_refused() {
    let law = "lognormal(p50=800us,p99=5ms)";
    for (name, bend) in [
        (
            "clamped",
            (|result| bias::maximum_clamped(result, 3_000_000)) as fn(RunResult) -> RunResult,
        ),
        ("lost", |result| bias::range_too_small(result, 3_000_000)),
        ("coarse", |result| {
            bias::resolution_too_coarse(result, 1_000_000)
        }),
        ("mean", bias::mean_in_place_of_quantiles),
    ] {
        let (certificate, truth) = certified(&Bent(bend), law, open());
        let mut missed = Vec::new();
        bounds(&certificate, &truth, name, &mut missed);
        assert!(missed.is_empty(), "{missed:#?}");
        let reason = certificate.refused.unwrap_or_default();
        assert!(reason.contains("the client recorded"), "{name}: {reason}");
    }
}

#[test]
fn a_mock_that_carries_another_load_certifies_nothing() {
    let settings = settings(Load::Closed);
    let slow = |law: &str| ServerConfig {
        latency: LatencyRules::new(vec![law.parse().unwrap()]).unwrap(),
        ..ServerConfig::default()
    };
    let run = |config, settings: Settings| virtual_time::run(config, settings, LEG_NS);
    let mut certifier = Certifier::new(
        &settings,
        Box::new(|config, _filling, mut settings| {
            // A mock that cannot keep up with the real one.
            settings.connections = NonZeroU32::new(5).unwrap();
            run(config, settings)
        }),
    );
    certifier.before(
        &run(slow("constant(1ms)"), certify::pilot(&settings))
            .unwrap()
            .summary,
    );
    let measured = run(slow("constant(1ms)"), settings).unwrap();
    let certificate = certifier.after(&measured.summary, None);
    let reason = certificate.refused.unwrap_or_default();
    assert!(reason.contains("not the same load"), "{reason}");
    assert!(certificate.quantiles.is_empty());
}

/// The pilot is short, and waits for nobody.
#[test]
fn a_pilot_is_short() {
    let mut settings = settings(open());
    settings.start_at_unix_ns = Some(u64::MAX);
    let pilot = certify::pilot(&settings);
    assert_eq!(pilot.stop.duration, Some(Duration::from_millis(500)));
    assert_eq!(pilot.start_at_unix_ns, None);
}
