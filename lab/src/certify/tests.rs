//! The certifier on machines made by hand: what the client adds is drawn from a seeded law, and now and
//! then a request is hit by something that takes long.

use kvlab_bench_client::record::Latency;
use kvlab_bench_client::report::QUANTILES;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::bound::Judge;
use super::{Curve, Distribution, Samples, blur, law, unfold::Blur};
use crate::certify::Calibration;

/// A machine: a floor of about 100 us that moves a little from run to run, and hiccups.
struct Machine {
    rng: Xoshiro256PlusPlus,
    /// The bias of the client.
    bend: fn(f64) -> f64,
}

impl Machine {
    fn new(seed: u64, bend: fn(f64) -> f64) -> Self {
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            bend,
        }
    }

    fn unit(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Nearly the bell curve: twelve uniform draws.
    fn bell(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (-self.unit()).ln_1p()
    }

    /// One run on it: what the client sees of these times of the server.
    fn run(&mut self, truth: Vec<f64>) -> Samples {
        let floor = 100e3 + 6e3 * self.bell();
        let seen = truth
            .iter()
            .map(|s| {
                let hiccup = if self.unit() < 0.008 {
                    self.exponential(300e3)
                } else {
                    0.0
                };
                (self.bend)(*s + (floor + 15e3 * self.bell()).max(30e3) + hiccup)
            })
            .collect::<Vec<f64>>();
        let recorded = recorded(&seen);
        Samples::new(truth, seen, &recorded).unwrap()
    }

    /// Times that the mock server takes when it is told this law, with its own lateness.
    fn mock(&mut self, law: &Distribution, requests: usize) -> Vec<f64> {
        (0..requests)
            .map(|_| law.quantile_ns(self.unit()) + 10e3 * self.bell().abs())
            .collect()
    }
}

fn constant(machine: &mut Machine) -> f64 {
    1e6 + 10e3 * machine.bell().abs()
}

fn exponential(machine: &mut Machine) -> f64 {
    machine.exponential(1e6)
}

fn two_modes(machine: &mut Machine) -> f64 {
    if machine.unit() < 0.03 {
        20e6
    } else {
        0.8e6 + 0.2e6 * machine.unit()
    }
}

fn recorded(seen: &[f64]) -> Latency {
    let mut latency = Latency::default();
    seen.iter().for_each(|ns| latency.record(ns.round() as u64));
    latency
}

/// A whole certification of a server whose times `server` draws: for p50, p90 and p99 whether the truth
/// is within the bound, and its half width.
fn certify(machine: &mut Machine, server: fn(&mut Machine) -> f64) -> Vec<Option<(bool, u64)>> {
    let calibrate = |machine: &mut Machine, law: &Curve| {
        let law = law::near(law).unwrap();
        let truth = machine.mock(&law, 2_500);
        machine.run(truth)
    };
    let truth: Vec<f64> = (0..1_000).map(|_| server(machine)).collect();
    let pilot = Curve::of_samples(machine.run(truth).seen().to_vec()).unwrap();
    let guess = pilot
        .points()
        .iter()
        .map(|ns| (ns - 90e3).max(0.0))
        .collect();
    let first = calibrate(machine, &Curve::from_points(guess));
    let law = Blur::of([&first]).unwrap().unfold(&pilot);
    let mut runs: Vec<Samples> = (0..4).map(|_| calibrate(machine, &law)).collect();

    let truth: Vec<f64> = (0..12_000).map(|_| server(machine)).collect();
    let measured = machine.run(truth);
    let latency = recorded(measured.seen());
    let law = Blur::of(&runs)
        .unwrap()
        .unfold(&Curve::of_latency(&latency).unwrap());
    runs.extend((0..4).map(|_| calibrate(machine, &law)));

    let mut truth = measured.truth().to_vec();
    truth.sort_by(f64::total_cmp);
    let judge = Judge::new(&latency, runs.iter().collect()).unwrap();
    QUANTILES
        .iter()
        .take(3)
        .map(|quantile| {
            let bound = judge.bound(quantile).ok()?;
            let rank = truth.len() - truth.len() / quantile.one_in as usize;
            let exact = truth[rank - 1].round() as u64;
            let inside = (bound.low_ns()..=bound.high_ns()).contains(&exact);
            Some((inside, bound.half_width_ns))
        })
        .collect()
}

/// Certifies servers of three laws `runs` times each: the truth of all three quantiles is within the
/// bound in all but one run of each. Few bounds are refused, and none of a median is wider than 60 us.
#[track_caller]
fn assert_certifies(runs: u64, bend: fn(f64) -> f64) {
    for (name, server) in [
        ("constant", constant as fn(&mut Machine) -> f64),
        ("exponential", exponential),
        ("two modes", two_modes),
    ] {
        let mut inside = 0;
        let mut refused = 0;
        for seed in 0..runs {
            let bounds = certify(&mut Machine::new(seed, bend), server);
            inside += u64::from(bounds.iter().flatten().all(|(inside, _)| *inside));
            refused += bounds.iter().filter(|bound| bound.is_none()).count();
            if let Some((_, half_width)) = bounds[0] {
                assert!(half_width <= 60_000, "{name} {seed}: {half_width}");
            }
        }
        assert!(inside >= runs - 1, "{name}: {inside} of {runs}");
        assert!(refused <= 3, "{name}: {refused} bounds refused");
    }
}

#[test]
fn the_truth_lies_within_the_bound_in_nine_of_ten_runs() {
    assert_certifies(10, |ns| ns);
}

/// The clock stops 120 us late: twice the widest bound of a median.
#[test]
fn a_client_that_is_always_late_is_covered() {
    assert_certifies(5, |ns| ns + 120e3);
}

/// The clock runs a tenth too fast: twice the widest bound of a median, which is 5 %.
#[test]
fn a_client_whose_clock_runs_fast_is_covered() {
    assert_certifies(5, |ns| ns * 1.1);
}

#[test]
fn calibration_without_answers_is_refused() {
    let none: [Calibration; 0] = [];
    assert!(blur(&none).is_err());
}
