//! Random scenarios under virtual time. Each has to be exact and fully accounted for; a failure
//! prints the scenario that shows it.

use std::fmt::Write;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::support::{assert_passes, run, scenario};

/// Draws scenarios.
struct Draw(Xoshiro256PlusPlus);

impl Draw {
    fn below(&mut self, count: u64) -> u64 {
        self.0.next_u64() % count
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.below(words.len() as u64)).unwrap()]
    }

    fn latency(&mut self) -> String {
        let (a, b) = (1 + self.below(3000), 1 + self.below(3000));
        match self.below(7) {
            0 => "none".to_owned(),
            1 => format!("constant({a}us)"),
            2 => format!("uniform({}us,{}us)", a.min(b), a.max(b) + 1),
            3 => format!("exponential({a}us)"),
            4 => format!("lognormal(p50={a}us,p99={}us)", 2 * a + b),
            5 => format!("normal({}us,{}us)", a + b, 1 + a / 3),
            _ => format!("pareto(min={a}us,shape=2.5)"),
        }
    }

    fn scenario(&mut self) -> String {
        let redis = !self.one_in(3);
        let mut text = "[network]\n".to_owned();
        let open = self.one_in(2);
        // A closed loop without delay turns round in two of these.
        let delays: &[u64] = if open {
            &[1, 100, 25_000, 400_000]
        } else {
            &[25_000, 400_000]
        };
        let delay = delays[usize::try_from(self.below(delays.len() as u64)).unwrap()];
        writeln!(text, "delay = '{delay}ns'\n[server]").unwrap();
        writeln!(
            text,
            "seed = {}\nworkers = {}",
            self.below(100),
            1 + self.below(3)
        )
        .unwrap();
        let law = self.latency();
        if self.one_in(4) {
            let writes = if redis { "set" } else { "put" };
            let other = self.latency();
            writeln!(
                text,
                "latency = ['{law}', '{writes}={other}', 'admin=constant(70us)']"
            )
            .unwrap();
        } else {
            writeln!(text, "latency = '{law}'").unwrap();
        }
        let freeze = self.one_in(3).then(|| {
            let every = 50 + self.below(150);
            format!(
                "freeze = 'every={every}ms,for={}ms'",
                1 + self.below(every / 2)
            )
        });
        writeln!(
            text,
            "{}\n[[client]]",
            freeze.as_deref().unwrap_or_default()
        )
        .unwrap();
        writeln!(
            text,
            "target = '{}'",
            if redis { "redis/2" } else { "aerospike/test/x" }
        )
        .unwrap();
        let connections = 1 + self.below(12);
        writeln!(text, "connections = {connections}").unwrap();
        writeln!(text, "threads = {}", 1 + self.below(connections.min(3))).unwrap();
        writeln!(text, "seed = {}", self.below(1000)).unwrap();
        if redis {
            writeln!(text, "resp = {}", self.one_of(&["2", "3"])).unwrap();
            writeln!(
                text,
                "pipeline = {}",
                [1, 1, 2, 7, 32][usize::try_from(self.below(5)).unwrap()]
            )
            .unwrap();
            writeln!(
                text,
                "pipeline-mode = '{}'",
                self.one_of(&["window", "batch"])
            )
            .unwrap();
        }
        if open {
            writeln!(text, "rate = {}", 200 + self.below(6000)).unwrap();
            writeln!(
                text,
                "arrivals = '{}'",
                self.one_of(&["uniform", "poisson"])
            )
            .unwrap();
        }
        if !open || self.one_in(3) {
            writeln!(text, "requests = {}", 1 + self.below(2000)).unwrap();
        } else {
            writeln!(text, "duration = '{}ms'", 20 + self.below(230)).unwrap();
        }
        if self.one_in(3) {
            let most = if open { 60 } else { 3 };
            writeln!(text, "warmup = '{}ms'", 1 + self.below(most)).unwrap();
        }
        if self.one_in(5) {
            writeln!(text, "timeout = '{}ms'", 2 + self.below(30)).unwrap();
            writeln!(text, "expect = {{ failed = 1000000 }}").unwrap();
        } else {
            // Longer than any freeze and any queue behind it.
            writeln!(text, "timeout = '1h'").unwrap();
            writeln!(text, "expect = {{ failed = 1000000 }}").unwrap();
        }
        writeln!(text, "keys = {}", 1 + self.below(1000)).unwrap();
        let pattern = self.one_of(&["uniform", "sequential", "parallel", "zipf"]);
        writeln!(text, "key-pattern = '{pattern}'").unwrap();
        writeln!(
            text,
            "value-size = '{}'",
            self.one_of(&["0", "32", "1-3000", "10:9,70000:1"])
        )
        .unwrap();
        writeln!(
            text,
            "ratio = '{}'",
            self.one_of(&["1:0", "0:1", "1:10", "1:1"])
        )
        .unwrap();
        text
    }
}

#[test]
fn random_scenarios_are_exact_and_fully_accounted_for() {
    for seed in 0..400 {
        let mut draw = Draw(Xoshiro256PlusPlus::seed_from_u64(seed));
        let text = draw.scenario();
        let text = format!("# drawn with seed {seed}\n{text}");
        let (evidence, judgement) = run(&scenario(&text), 0);
        assert_passes(&judgement, &text);
        assert_eq!(
            judgement.accounting.accounted, judgement.accounting.due,
            "{text}"
        );
        assert!(evidence.joined.client_only.is_empty(), "{text}");
    }
}
