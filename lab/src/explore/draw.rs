//! Random scenarios.
//!
//! Everything that a scenario can say is drawn: laws and selectors, freezes, both protocols, both
//! load models, pipelines, threads, time-outs, mixes, keys and values. They are small, about a
//! thousand requests, because a fault of the kind that is looked for shows in few requests once the
//! right things come together, and many small runs put more things together than few large ones.
//!
//! The same seed and number give the same scenario. The stream of numbers belongs to the scenario
//! alone, so how many there are and on how many threads they run changes none.

use kvlab_bench_client::random::{below, mix};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::plan::{Plan, Text, Value, number};

/// The scenario of this number among those of this seed.
#[must_use]
pub fn scenario(seed: u64, place: u64) -> Plan {
    let stream = Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ mix(place)));
    Draw(stream).scenario()
}

struct Draw(Xoshiro256PlusPlus);

/// What the parts of a scenario have to know of each other.
#[derive(Clone, Copy)]
struct Kind {
    redis: bool,
    open: bool,
    /// Whether requests may time out.
    hasty: bool,
    /// Whether the server ends connections.
    cut: bool,
}

impl Draw {
    fn scenario(&mut self) -> Plan {
        let kind = Kind {
            redis: !self.one_in(3),
            open: self.one_in(2),
            hasty: self.one_in(4),
            cut: self.one_in(8),
        };
        let mut plan = Plan::default();
        plan.table("[network]");
        // A closed loop without delay turns round in two of these.
        let legs: &[u64] = if kind.open {
            &[1, 100, 25_000, 400_000]
        } else {
            &[25_000, 400_000]
        };
        plan.key("delay", Text::time(self.one_of(legs), legs[0]));
        plan.table("[server]");
        self.server(&mut plan, kind);
        plan.table("[[client]]");
        self.client(&mut plan, kind);
        // What fails has to be accounted for, and that is all that is asked of it.
        plan.needed("expect", Value::Plain("{ failed = 1000000 }"));
        plan
    }

    fn server(&mut self, plan: &mut Plan, kind: Kind) {
        plan.key("seed", number(self.below(100), 0));
        if self.one_in(2) {
            plan.key("workers", number(self.between(2, 4), 1));
        }
        let mut rules = vec![self.law()];
        if self.one_in(3) {
            for _ in 0..self.between(1, 4) {
                let selector = self.selector(kind);
                let law = if selector.starts_with("admin") || selector.starts_with("all") {
                    // Connecting is bounded in time.
                    self.short_law()
                } else {
                    self.law()
                };
                rules.push(Text::word(selector).then_text(law));
            }
        }
        plan.key("latency", Value::List(rules));
        if self.one_in(3) {
            // Three halves of the time are more than a server may stand still.
            let many = self.one_of(&[1, 1, 1, 2]);
            let freezes = (0..many).map(|_| self.freeze()).collect();
            plan.key("freeze", Value::List(freezes));
        }
        if self.one_in(5) {
            let shapes = (0..self.between(1, 2)).map(|_| self.shape()).collect();
            plan.key("shape", Value::List(shapes));
        }
        if self.one_in(5) {
            plan.key("queue", self.queue());
        }
        if kind.cut {
            let cuts = (0..self.between(1, 2)).map(|_| self.cut()).collect();
            plan.key("cut", Value::List(cuts));
        }
    }

    fn selector(&mut self, kind: Kind) -> &'static str {
        if kind.redis {
            self.one_of(&[
                "get=",
                "set=",
                "read=",
                "write=",
                "redis=",
                "redis.get=",
                "get@key:*7=",
                "@key:*[13]=",
                "admin=",
                "all=",
            ])
        } else {
            self.one_of(&[
                "get=",
                "put=",
                "read=",
                "write=",
                "aerospike=",
                "aerospike.put=",
                "operate=",
                "batch=",
                "admin=",
                "all=",
            ])
        }
    }

    fn law(&mut self) -> Text {
        self.law_of(3_000)
    }

    /// A law whose delays are mostly below so many microseconds.
    fn law_of(&mut self, most_us: u64) -> Text {
        let (a, b) = (self.time(most_us), self.time(most_us));
        let time = |word: &str, ns: u64| Text::word(word).then_time(ns, 1);
        let constant = time("constant(", a).then(")");
        let law = match self.below(10) {
            0 => return Text::word("none"),
            1 => return constant.or(Text::word("none")),
            2 => time("uniform(", a.min(b))
                .then(",")
                .then_time(a.max(b) + 1_000, 1)
                .then(")"),
            3 => time("exponential(", a).then(")"),
            4 => time("lognormal(p50=", a)
                .then(",p99=")
                .then_time(2 * a + b, 1)
                .then(")"),
            5 => time("lognormal(mean=", a)
                .then(",sigma=")
                .then(self.one_of(&["0.1", "0.8", "2"]))
                .then(")"),
            6 => time("normal(", a + b)
                .then(",")
                .then_time(1 + a / 3, 1)
                .then(")"),
            7 => time("pareto(min=", a)
                .then(",shape=")
                .then(self.one_of(&["1.2", "2.5"]))
                .then(")"),
            8 => time("pareto(min=", a)
                .then(",shape=1.1,max=")
                .then_time(10 * a + b, 1)
                .then(")"),
            _ => time("mixture(90%:constant(", a)
                .then("),7%:uniform(")
                .then_time(a.min(b), 1)
                .then(",")
                .then_time(a.max(b) + 1_000, 1)
                .then("),3%:constant(")
                .then_time(self.time(40_000), 1)
                .then("))"),
        };
        law.or(constant.or(Text::word("none")))
    }

    /// A law without a long tail.
    fn short_law(&mut self) -> Text {
        Text::word("constant(")
            .then_time(self.time(1_000), 1)
            .then(")")
            .or(Text::word("none"))
    }

    fn freeze(&mut self) -> Text {
        // Mostly several in a run, now and then one that is longer than a second.
        let every_ms = if self.one_in(12) {
            self.between(1_500, 3_000)
        } else {
            self.between(50, 200)
        };
        let length = self.between(1, every_ms / 2) * MS;
        let once = self.one_in(4);
        let freeze = if once {
            Text::word("at=").then_time(self.time(100_000), 0)
        } else {
            Text::word("every=").then_time(every_ms * MS, MS)
        };
        let mut freeze = freeze.then(",for=").then_time(length, 1);
        if !once && self.one_in(3) {
            let first = self.time(100_000);
            freeze = freeze
                .clone()
                .then(",first=")
                .then_time(first, 0)
                .or(freeze);
        }
        if self.one_in(4) {
            let connection = self.below(6);
            freeze = freeze
                .clone()
                .then(",connection=")
                .then_number(connection, 0)
                .or(freeze);
        }
        freeze
    }

    /// A change of the delays over time.
    fn shape(&mut self) -> Text {
        let at = self.time(100_000);
        let shape = match self.below(3) {
            0 => Text::word("step(at=").then_time(at, 0),
            1 => Text::word("ramp(at=")
                .then_time(at, 0)
                .then(",over=")
                .then_time(self.time(100_000), 1),
            _ => Text::word("spike(at=")
                .then_time(at, 0)
                .then(",for=")
                .then_time(self.time(40_000), 1)
                .then(",every=")
                .then_time(self.between(50, 200) * MS, MS),
        };
        if self.one_in(2) {
            let add = self.time(5_000);
            shape.then(",add=").then_time(add, 1).then(")")
        } else {
            let factor = self.one_of(&["0", "0.5", "1.000001", "3", "12.345678"]);
            shape.then(",factor=").then(factor).then(")")
        }
    }

    /// A station that requests pass one after the other.
    fn queue(&mut self) -> Text {
        let queue = Text::word("servers=")
            .then_number(self.between(1, 6), 1)
            .then(",service=")
            .then_text(self.law_of(600));
        if self.one_in(3) {
            let limit = self.between(1, 50);
            return queue
                .clone()
                .then(",limit=")
                .then_number(limit, 1)
                .or(queue);
        }
        queue
    }

    /// Ends of connections. They come after the load has begun, and connecting takes less than the
    /// time between them.
    fn cut(&mut self) -> Text {
        let cut = if self.one_in(2) {
            Text::word("at=").then_time(20 * MS + self.time(200_000), MS)
        } else {
            Text::word("every=").then_time(self.between(40, 300) * MS, 20 * MS)
        };
        let mut cut = if self.one_in(3) {
            cut.clone().then(",how=reset").or(cut)
        } else {
            cut
        };
        if self.one_in(2) {
            let connection = self.below(8);
            cut = cut
                .clone()
                .then(",connection=")
                .then_number(connection, 0)
                .or(cut);
        }
        cut
    }

    fn client(&mut self, plan: &mut Plan, kind: Kind) {
        let target = if kind.redis {
            self.one_of(&["redis", "redis/2"])
        } else {
            self.one_of(&["aerospike", "aerospike/test/x"])
        };
        plan.needed("target", Text::word(target));
        let most = if self.one_in(6) { 40 } else { 12 };
        let connections = self.between(1, most);
        plan.key("connections", number(connections, 1));
        plan.key("threads", number(self.between(1, connections.min(3)), 1));
        plan.key("seed", number(self.below(1_000), 0));
        self.load(plan, kind);
        if kind.redis {
            self.redis(plan);
        } else {
            self.aerospike(plan);
        }
        self.data(plan);
    }

    fn load(&mut self, plan: &mut Plan, kind: Kind) {
        let mut requests = self.between(1, 2_000);
        if kind.open {
            let rate = if self.one_in(8) {
                self.between(20_000, 200_000)
            } else {
                self.between(200, 6_000)
            };
            let rate_text = Text::default().then_number(rate, 1);
            if self.one_in(4) {
                let exact = self.one_of(&[".3", ".125", ".999"]);
                plan.needed("rate", rate_text.clone().then(exact).or(rate_text));
            } else {
                plan.needed("rate", rate_text);
            }
            plan.key("arrivals", Text::word(self.one_of(&["uniform", "poisson"])));
            if !self.one_in(3) {
                // About as many in as much time, and what comes first ends it.
                let length = requests * 1_000_000_000 / rate + self.below(MS);
                plan.needed("duration", Text::time(length, MS));
                requests += self.below(1_000);
            }
        } else if self.one_in(3) {
            plan.key("duration", Text::time(self.between(1, 200) * MS, MS));
        }
        plan.needed("requests", number(requests, 1));
        if self.one_in(3) {
            let most = if kind.open { 60 } else { 3 };
            plan.key("warmup", Text::time(self.between(1, most) * MS, 0));
        }
        // Longer than any freeze and any queue behind it, or so short that many pass.
        let timeout = if kind.hasty {
            self.between(1, 40) * MS
        } else {
            3_600_000 * MS
        };
        plan.needed("timeout", Text::time(timeout, MS));
    }

    fn redis(&mut self, plan: &mut Plan) {
        if self.one_in(2) {
            plan.key("resp", number(3, 2));
        }
        if self.one_in(2) {
            plan.key("pipeline", number(self.one_of(&[2, 7, 32, 64]), 1));
            plan.key(
                "pipeline-mode",
                Text::word(self.one_of(&["window", "batch"])),
            );
        }
        if !self.one_in(4) {
            return self.ratio(plan);
        }
        let mut commands = Vec::new();
        for _ in 0..self.between(1, 4) {
            let weight = Text::default().then_number(self.between(1, 9), 1).then(":");
            // INCR of a random value and what is no command are errors, and those are replies.
            commands.push(weight.then(self.one_of(&[
                "GET __key__",
                "SET __key__ __data__",
                "INCR n:__key__",
                "INCR __key__",
                "APPEND __key__ x",
                "EXISTS __key__",
                "DEL __key__",
                "PING",
                "NOSUCHCOMMAND __key__",
            ])));
        }
        plan.key("command", Value::List(commands));
    }

    fn aerospike(&mut self, plan: &mut Plan) {
        if self.one_in(3) {
            plan.key("retries", number(self.between(1, 3), 0));
        }
        if self.one_in(5) {
            plan.key("send-key", Value::Plain("true"));
        }
        if !self.one_in(3) {
            return self.ratio(plan);
        }
        let mut operations = Vec::new();
        for _ in 0..self.between(1, 4) {
            let weight = Text::default().then_number(self.between(1, 9), 1).then(":");
            operations.push(weight.then(self.one_of(&[
                "put",
                "get",
                "exists",
                "remove",
                "touch",
                "operate",
                "batch-read(5)",
            ])));
        }
        plan.key("operation", Value::List(operations));
    }

    fn ratio(&mut self, plan: &mut Plan) {
        let ratio = self.one_of(&["1:0", "0:1", "1:10", "1:1"]);
        plan.key("ratio", Text::word(ratio));
    }

    fn data(&mut self, plan: &mut Plan) {
        if self.one_in(4) {
            plan.key("mix", Text::word("cycle"));
        }
        plan.key("keys", number(self.between(1, 1_000), 1));
        plan.key(
            "key-pattern",
            Text::word(self.one_of(&[
                "uniform",
                "sequential",
                "parallel",
                "zipf",
                "zipf(1.3)",
                "gaussian",
                "hot(keys=10%,operations=90%)",
            ])),
        );
        let sizes = self.one_of(&["0", "32", "1-3000", "10:9,70000:1"]);
        plan.key("value-size", Text::word(sizes));
    }

    /// A time of up to so many microseconds, in nanoseconds: some are round and some are not, so
    /// that moments meet and miss each other.
    fn time(&mut self, most_us: u64) -> u64 {
        let micros = self.between(1, most_us);
        match self.below(4) {
            0 => micros.div_ceil(1_000) * MS,
            1 => micros * 1_000 + self.below(1_000),
            _ => micros * 1_000,
        }
    }

    fn below(&mut self, count: u64) -> u64 {
        below(&mut self.0, count)
    }

    /// A number of this range, its ends included.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of a list that is not empty.
    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        let place = self.below(list.len() as u64);
        list[usize::try_from(place).unwrap_or(0)]
    }
}

const MS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn every_drawn_scenario_is_legal_and_has_its_own_numbers() {
        let mut texts = Vec::new();
        for place in 0..300 {
            let text = scenario(1, place).to_string();
            if let Err(error) = Scenario::parse("drawn", &text) {
                panic!("{error}\nin\n{text}");
            }
            texts.push(text);
        }
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 300);
    }

    #[test]
    fn the_same_seed_and_number_give_the_same_scenario() {
        assert_eq!(scenario(7, 3), scenario(7, 3));
        assert_ne!(scenario(7, 3), scenario(8, 3));
        assert_ne!(scenario(7, 3), scenario(7, 4));
    }
}
