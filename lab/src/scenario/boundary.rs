//! Quantiles that lie where the distribution jumps.
//!
//! When one in a hundred requests takes 50 ms and the others 1 ms, p99 is one or the other by the luck of
//! the draw, and no tolerance says anything about the client. So a quantile that is judged must not
//! lie at the edge of a mode: neither where the law itself jumps, nor where the share of the
//! requests that meet a freeze ends. "At the edge" means nearer than a fifth of what lies above the
//! quantile. Under virtual time every figure is exact and edges do no harm.

use kvlab_bench_client::Settings;
use kvlab_bench_client::settings::{Load, Target};
use kvlab_mock_server::dialect::command_names;
use kvlab_mock_server::exchange::{Class, Exchange, Protocol};
use kvlab_mock_server::latency::{Distribution, Freeze, LatencyRules};

use super::{Expect, Limit, Limits, ServerPart};
use crate::truth::Quantile;

/// A judged quantile at the edge of a mode.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Boundary {
    /// What puts it there.
    pub(super) cause: Cause,
    /// What is to be said about it.
    pub(super) message: String,
}

/// The key of the server that puts an edge somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Latency,
    Freeze,
}

/// The judged quantiles of a client that lie at an edge.
pub(super) fn find(
    settings: &Settings,
    expect: &Expect,
    server: &ServerPart,
    network_ns: u64,
) -> Vec<Boundary> {
    let mut found = Vec::new();
    let judged = |limits: &Limits, q| limits.at(q) != Some(Limit::Unjudged);
    let is_open = settings.load.is_open();
    let laws = Laws::of(settings, &server.config.latency);
    for q in Quantile::JUDGED {
        let is_judged = judged(&expect.service, q) || is_open && judged(&expect.response, q);
        if is_judged && let Some(jump) = laws.as_ref().and_then(|laws| laws.jump(q.as_f64())) {
            let message = format!(
                "server.latency: the delay jumps from {} to {} ms next to {q}; draw it from another \
                 law or do not judge {q} ({q} = \"none\" in expect.service and expect.response)",
                millis(jump.0),
                millis(jump.1),
            );
            found.push(Boundary {
                cause: Cause::Latency,
                message,
            });
        }
    }
    let mean_ns = laws.as_ref().map_or(0.0, Laws::mean_ns);
    let frozen = Frozen::new(settings, &server.config.freezes, mean_ns, network_ns);
    let figures = [
        ("service", &expect.service, frozen.service),
        ("response", &expect.response, frozen.response),
    ];
    for (name, limits, share) in figures {
        let Some((low, high)) = share else { continue };
        for q in Quantile::JUDGED {
            let above = 1.0 - q.as_f64();
            let is_near = low * (1.0 - MARGIN) <= above && above <= high / (1.0 - MARGIN);
            if is_near && judged(limits, q) {
                let message = format!(
                    "server.freeze: about {:.2} % of the {name} times meet a freeze, and {q} lies at \
                     that edge; freeze longer or shorter or do not judge it ({q} = \"none\" in \
                     expect.{name})",
                    high * 100.0,
                );
                found.push(Boundary {
                    cause: Cause::Freeze,
                    message,
                });
            }
        }
    }
    found
}

/// The laws of a client's requests, by share.
struct Laws(Vec<(f64, Distribution)>);

impl Laws {
    /// `None` where the share of a law cannot be told, because rules select keys or the server does not
    /// know a command.
    fn of(settings: &Settings, rules: &LatencyRules) -> Option<Self> {
        if rules.rules().iter().any(|rule| rule.selector.key.is_some()) {
            return None;
        }
        let protocol = match settings.target {
            Target::Redis(_) => Protocol::Redis,
            Target::Aerospike(_) => Protocol::Aerospike,
        };
        let classes = settings.target.classes();
        let all: u32 = classes.iter().map(|class| class.weight).sum();
        let mut laws = Vec::with_capacity(classes.len());
        for class in classes {
            let known = |command: &&&str| class.name.eq_ignore_ascii_case(command);
            // With one rule for everything the command does not matter.
            let command = match (command_names(protocol).iter().find(known), rules.rules()) {
                (Some(command), _) => command,
                (None, [] | [_]) => "get",
                (None, _) => return None,
            };
            let exchange = Exchange {
                protocol,
                command,
                class: if class.writes {
                    Class::Write
                } else {
                    Class::Read
                },
                key: b"",
            };
            let share = f64::from(class.weight) / f64::from(all.max(1));
            laws.push((share, rules.law(&exchange)));
        }
        Some(Self(laws))
    }

    fn mean_ns(&self) -> f64 {
        self.0
            .iter()
            .map(|(share, law)| share * law.mean_ns())
            .sum()
    }

    fn quantile_ns(&self, q: f64) -> f64 {
        match &self.0[..] {
            [(_, law)] => law.quantile_ns(q),
            laws if laws.iter().all(|(_, law)| *law == laws[0].1) => laws[0].1.quantile_ns(q),
            laws => {
                let cdf = |ns| -> f64 { laws.iter().map(|(share, law)| share * law.cdf(ns)).sum() };
                let (mut low, mut high) = (0.0, HOUR_NS);
                while high - low > 1.0 {
                    let middle = 0.5 * (low + high);
                    if cdf(middle) < q {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                high
            }
        }
    }

    /// The times before and after a jump near `q`: one step of many carries most of the rise around it.
    fn jump(&self, q: f64) -> Option<(f64, f64)> {
        let reach = MARGIN * q.min(1.0 - q);
        let at =
            |step: u32| self.quantile_ns(q + reach * (f64::from(step) / f64::from(STEPS) - 1.0));
        let times: Vec<f64> = (0..=2 * STEPS).map(at).collect();
        let rise = times[times.len() - 1] - times[0];
        let steepest = times
            .windows(2)
            .map(|pair| (pair[0], pair[1]))
            .max_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)))?;
        let step = steepest.1 - steepest.0;
        (step > 0.5 * rise && step > SMALL_SHARE * steepest.0 && step > SMALL_NS)
            .then_some(steepest)
    }
}

/// The share of the requests that meet a freeze, at least and at most; `None` without freezes, and
/// where the load is more than can be carried, so that there is no such share.
struct Frozen {
    service: Option<(f64, f64)>,
    response: Option<(f64, f64)>,
}

impl Frozen {
    fn new(settings: &Settings, freezes: &[Freeze], mean_ns: f64, network_ns: u64) -> Self {
        let connections = f64::from(settings.connections.get());
        let slots = connections * f64::from(settings.pipeline.depth.get());
        let held_ns = mean_ns + 2.0 * network_ns as f64;
        let run_ns = settings
            .stop
            .duration
            .map(|duration| duration.as_nanos() as f64);
        let mut sum = Self {
            service: None,
            response: None,
        };
        for freeze in freezes {
            let length_ns = freeze.length_ns as f64;
            let every_ns = freeze.when.every_ns.map(|every_ns| every_ns as f64);
            let Some(every_ns) = every_ns.or(run_ns).filter(|every| *every > length_ns) else {
                continue;
            };
            let weight = freeze.connection.map_or(1.0, |_| 1.0 / connections);
            let share = |ns: f64| weight * ns / every_ns;
            match settings.load {
                Load::Closed => {
                    // Of the rounds between two freezes, the one that meets it.
                    let rounds = |round_ns: f64| weight * round_ns / (every_ns - length_ns);
                    add(
                        &mut sum.service,
                        (rounds(mean_ns), rounds(mean_ns + ROUND_TRIP_NS)),
                    );
                }
                Load::Open { rate, .. } => {
                    let per_ns = rate.as_f64() / 1e9;
                    let capacity = slots / held_ns.max(1.0);
                    if per_ns >= capacity {
                        continue;
                    }
                    let queue_ns = (length_ns * per_ns - slots).max(0.0) / (capacity - per_ns);
                    add(
                        &mut sum.response,
                        (share(length_ns), share(length_ns + mean_ns + queue_ns)),
                    );
                    let sent = (length_ns + mean_ns).min(slots / per_ns);
                    add(&mut sum.service, (share(length_ns.min(sent)), share(sent)));
                }
            }
        }
        sum
    }
}

fn add(sum: &mut Option<(f64, f64)>, (low, high): (f64, f64)) {
    let (lowest, highest) = sum.unwrap_or_default();
    *sum = Some((lowest + low, highest + high));
}

fn millis(ns: f64) -> f64 {
    (ns / 1e3).round() / 1e3
}

/// How near an edge may lie, as a share of what is above the quantile (below it, for the median).
const MARGIN: f64 = 0.2;
/// Steps on either side in which a jump is looked for.
const STEPS: u32 = 32;
/// A step that is less than this share of the time, or shorter than that, is no jump.
const SMALL_SHARE: f64 = 0.05;
const SMALL_NS: f64 = 50_000.0;
/// What a round trip takes without delay, at most.
const ROUND_TRIP_NS: f64 = 300_000.0;
const HOUR_NS: f64 = 3.6e12;

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::Cause;

    fn causes(text: &str) -> Vec<(Cause, String)> {
        let scenario = Scenario::parse("test", text).unwrap();
        let part = &scenario.parts[0];
        let found = super::find(
            &part.settings,
            &part.expect,
            &scenario.server,
            scenario.network_ns,
        );
        found
            .into_iter()
            .map(|edge| (edge.cause, edge.message))
            .collect()
    }

    fn with(latency: &str, client: &str) -> Vec<(Cause, String)> {
        causes(&format!(
            "[server]\nlatency = {latency}\n[[client]]\ntarget = 'redis'\nduration = '20s'\n{client}\n"
        ))
    }

    #[test]
    fn a_mode_that_ends_at_a_quantile_is_found() {
        let mode = |percent: &str, rest: &str| {
            with(
                &format!("'mixture({rest}%:constant(1ms),{percent}%:constant(50ms))'"),
                "",
            )
        };
        for (percent, rest, quantile) in [
            ("1", "99", "p99"),
            ("0.9", "99.1", "p99"),
            ("10", "90", "p90"),
            ("50", "50", "p50"),
            ("0.1", "99.9", "p99.9"),
        ] {
            let found = mode(percent, rest);
            assert_eq!(found.len(), 1, "{percent}: {found:?}");
            assert_eq!(found[0].0, Cause::Latency);
            assert!(
                found[0].1.contains(&format!("next to {quantile};")),
                "{found:?}"
            );
            assert!(found[0].1.contains("from 1 to 50 ms"), "{found:?}");
        }
        for (percent, rest) in [
            ("0.7", "99.3"),
            ("1.5", "98.5"),
            ("0.3", "99.7"),
            ("25", "75"),
        ] {
            assert_eq!(mode(percent, rest), [], "{percent}");
        }
    }

    #[test]
    fn laws_without_modes_have_no_edge() {
        for law in [
            "'none'",
            "'constant(1ms)'",
            "'uniform(1ms,3ms)'",
            "'normal(mean=1ms,sd=200us)'",
            "'exponential(1ms)'",
            "'lognormal(p50=800us,p99=5ms)'",
            "'pareto(min=200us,shape=2.5)'",
            "'pareto(min=200us,shape=1.1)'",
            "'mixture(90%:constant(1ms),10%:constant(1020us))'",
        ] {
            assert_eq!(with(law, ""), [], "{law}");
        }
    }

    #[test]
    fn the_share_of_the_commands_with_a_law_of_their_own_counts() {
        let rules = "['constant(1ms)', 'set=constant(20ms)']";
        let ratio = |ratio: &str| with(rules, &format!("ratio = '{ratio}'"));
        // One in ten is a SET: the edge is p90; one in four: there is none.
        assert_eq!(ratio("1:9").len(), 1);
        assert!(ratio("1:9")[0].1.contains("next to p90"));
        assert_eq!(ratio("1:3"), []);
    }

    #[test]
    fn a_quantile_that_is_not_judged_may_lie_anywhere() {
        let law = "'mixture(99%:constant(1ms),1%:constant(50ms))'";
        assert_eq!(with(law, "expect.service.p99 = 'none'"), []);
        // An open loop has a response time too.
        let open = "rate = 100\nexpect.service.p99 = 'none'";
        assert_eq!(with(law, open).len(), 1);
        let both = "rate = 100\nexpect = { service.p99 = 'none', response.p99 = 'none' }";
        assert_eq!(with(law, both), []);
    }

    fn frozen(freeze: &str, client: &str) -> Vec<String> {
        let text = format!(
            "[server]\nlatency = 'constant(1ms)'\nfreeze = '{freeze}'\n\
             [[client]]\ntarget = 'redis'\nconnections = 10\nduration = '20s'\n{client}\n"
        );
        let found = causes(&text);
        assert!(
            found.iter().all(|(cause, _)| *cause == Cause::Freeze),
            "{found:?}"
        );
        found.into_iter().map(|(_, message)| message).collect()
    }

    #[test]
    fn the_share_of_the_requests_that_meet_a_freeze_is_no_quantile_either() {
        let spare = "rate = 1000\npipeline = 64";
        // A tenth of all requests, and of service and response alike: p90.
        let found = frozen("every=2s,for=200ms", spare);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("10.05 % of the service times"),
            "{found:?}"
        );
        assert!(found[1].contains("p90 lies at that edge"), "{found:?}");
        assert!(frozen("every=2s,for=150ms", spare).is_empty());
        // One slot for each connection: the queue behind the freeze reaches up to p90, and the ten
        // that were sent into it are half a per cent.
        let found = frozen("every=2s,for=150ms", "rate = 1000");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("response times") && found[0].contains("p90"),
            "{found:?}"
        );
        // A closed loop: ten of about twenty thousand in a period.
        assert!(frozen("every=2s,for=150ms", "").is_empty());
        let found = frozen("every=1s,for=75ms", "");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("p99.9"), "{found:?}");
    }

    #[test]
    fn a_freeze_that_comes_once_counts_by_the_length_of_the_run() {
        // 2 of 20 s.
        assert_eq!(
            frozen("at=3s,for=2s", "rate = 1000\npipeline = 640").len(),
            2
        );
        assert!(frozen("at=3s,for=1.5s", "rate = 1000\npipeline = 640").is_empty());
        // One connection of ten: a tenth of that, which is p99.
        let found = frozen("at=3s,for=2s,connection=1", "rate = 1000\npipeline = 640");
        assert!(
            found.iter().all(|message| message.contains("p99 lies")),
            "{found:?}"
        );
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
