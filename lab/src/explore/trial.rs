//! One scenario put to the test: run under virtual time, judged, held against the invariants, and
//! now and then run again to see whether it repeats.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use kvlab_bench_client::Control;
use kvlab_bench_client::settings::Target;

use super::invariants;
use crate::check::{Judgement, judge};
use crate::report::{PartReport, Report, json};
use crate::runner::client::Client;
use crate::runner::{Evidence, PartError, Tier, virtual_time};
use crate::scenario::{Part, Scenario};
use crate::truth::digest::{Fnv1a, of_pairs};
use crate::verdict::{Finding, Verdict};

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything holds.
    Exact(Tally),
    /// Something does not.
    Broken(Broken),
    /// It was stopped before it was over.
    Stopped,
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What, in a word.
    pub what: &'static str,
    /// What was found.
    pub text: String,
    /// The client of the scenario.
    pub part: String,
}

/// What was seen in scenarios that hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Clients.
    pub clients: u64,
    /// Clients with an open loop.
    pub open: u64,
    /// Clients that spoke RESP.
    pub redis: u64,
    /// Clients that met a freeze.
    pub frozen: u64,
    /// Clients whose server ended connections.
    pub cut: u64,
    /// Clients whose requests passed a queue.
    pub queued: u64,
    /// Clients whose delays changed over time.
    pub shaped: u64,
    /// Clients whose timetable was worked through.
    pub simulated: u64,
    /// Clients of which a request timed out.
    pub timed_out: u64,
    /// Clients that lost a request with its connection.
    pub lost: u64,
    /// Clients that had error replies.
    pub refused: u64,
    /// Clients that were run again and repeated.
    pub repeated: u64,
    /// Requests that both sides know, handshakes among them.
    pub requests: u64,
    /// Hash over the hashes of all rows.
    pub hash: Fnv1a,
}

impl Tally {
    /// Adds what was seen after it.
    pub fn add(&mut self, other: &Self) {
        self.clients += other.clients;
        self.open += other.open;
        self.redis += other.redis;
        self.frozen += other.frozen;
        self.cut += other.cut;
        self.queued += other.queued;
        self.shaped += other.shaped;
        self.simulated += other.simulated;
        self.timed_out += other.timed_out;
        self.lost += other.lost;
        self.refused += other.refused;
        self.repeated += other.repeated;
        self.requests += other.requests;
        self.hash.number(other.hash.value());
    }
}

/// How thoroughly to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Run it once.
    Once,
    /// Run it again, and with another number of server threads, which must change nothing.
    Again,
}

/// Runs every client of a scenario, given as the text of its file, with this load generator.
#[must_use]
pub fn trial(
    client: &dyn Client,
    name: &str,
    text: &str,
    depth: Depth,
    control: &Control,
) -> Outcome {
    let caught = caught(|| {
        let scenario = match Scenario::parse(name, text) {
            Ok(scenario) => scenario,
            Err(error) => return Outcome::Broken(Broken::new("refused", error, "")),
        };
        let bench = Bench {
            client,
            scenario: &scenario,
            control,
        };
        let mut tally = Tally::default();
        for part in &scenario.parts {
            match bench.run_part(part, depth) {
                Ok(seen) => tally.add(&seen),
                Err(Ended::Stopped) => return Outcome::Stopped,
                Err(Ended::Broken(broken)) => return Outcome::Broken(broken),
            }
        }
        Outcome::Exact(tally)
    });
    caught.unwrap_or_else(|message| Outcome::Broken(Broken::new("panic", message, "")))
}

enum Ended {
    Broken(Broken),
    Stopped,
}

impl Broken {
    fn new(what: &'static str, text: impl ToString, part: &str) -> Self {
        Self {
            what,
            text: text.to_string(),
            part: part.to_owned(),
        }
    }
}

/// What a scenario is run with.
#[derive(Clone, Copy)]
struct Bench<'a> {
    client: &'a dyn Client,
    scenario: &'a Scenario,
    control: &'a Control,
}

impl Bench<'_> {
    fn run_part(&self, part: &Part, depth: Depth) -> Result<Tally, Ended> {
        let broken = |what, text: String| Ended::Broken(Broken::new(what, text, &part.name));
        let (evidence, judgement) = self.run(part)?;
        if let Some(finding) = first_broken(&judgement)
            && !(rests_on_chance(finding, &evidence) && self.holds_by_chance(finding)?)
        {
            let mut text = finding.text.clone();
            for example in &finding.examples {
                text += &format!("\n  {example}");
            }
            return Err(broken(finding.name, text));
        }
        if let Some((name, text)) = invariants::broken(&evidence) {
            return Err(broken(name, text));
        }
        let mut tally = seen(&evidence, &judgement);
        if depth == Depth::Again {
            let first = Printed::new(self.scenario, part, &evidence, judgement);
            let (evidence, judgement) = self.run(part)?;
            first
                .compare(&Printed::new(self.scenario, part, &evidence, judgement))
                .map_err(|text| broken("repeat", text))?;
            let mut other = self.scenario.clone();
            let workers = &mut other.server.config.workers;
            *workers = if *workers == 1 { 3 } else { 1 };
            let workers = *workers;
            let (evidence, _) = self.with(&other).run(part)?;
            if of_pairs(&evidence.joined.pairs) != first.hash {
                let text = format!("with {workers} server threads the rows are others");
                return Err(broken("workers", text));
            }
            tally.repeated = 1;
        }
        Ok(tally)
    }

    fn run(&self, part: &Part) -> Result<(Evidence, Judgement), Ended> {
        let (config, settings) = (self.scenario.server_for(part), part.settings.clone());
        let leg_ns = self.scenario.network_ns;
        match virtual_time::run_by(self.client, config, settings, leg_ns, self.control) {
            Ok(evidence) => {
                let judgement = judge(&evidence, &part.expect, None);
                Ok((evidence, judgement))
            }
            Err(PartError::Stopped) => Err(Ended::Stopped),
            Err(error) => Err(Ended::Broken(Broken::new("no result", error, &part.name))),
        }
    }

    /// Whether a finding that rests on chance holds with other seeds: what is wrong by chance is
    /// wrong with one seed, and what is wrong is wrong with all.
    fn holds_by_chance(&self, finding: &Finding) -> Result<bool, Ended> {
        for seed in OTHER_SEEDS {
            let mut other = self.scenario.clone();
            other.set_seed(seed);
            for part in &other.parts {
                let (_, judgement) = self.with(&other).run(part)?;
                let again = |found: &&Finding| found.name == finding.name;
                let found = judgement.findings.iter().find(again);
                if found.is_none_or(|found| found.verdict == Verdict::Pass) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn with<'a>(&'a self, scenario: &'a Scenario) -> Bench<'a> {
        Bench { scenario, ..*self }
    }
}

fn first_broken(judgement: &Judgement) -> Option<&Finding> {
    let mut findings = judgement.findings.iter();
    findings.find(|finding| finding.verdict != Verdict::Pass)
}

/// Whether a finding compares what was drawn with a law and is wrong once in a great many runs.
fn rests_on_chance(finding: &Finding, evidence: &Evidence) -> bool {
    use kvlab_bench_client::settings::{Arrivals, Load};
    let poisson = matches!(
        evidence.settings.load,
        Load::Open {
            arrivals: Arrivals::Poisson,
            ..
        }
    );
    matches!(finding.name, "law" | "service law") || (finding.name == "due" && poisson)
}

const OTHER_SEEDS: [u64; 2] = [0x5EED_0001, 0x5EED_0002];

fn seen(evidence: &Evidence, judgement: &Judgement) -> Tally {
    let accounting = &judgement.accounting;
    let has = |name: &str| judgement.findings.iter().any(|found| found.name == name);
    let mut tally = Tally {
        clients: 1,
        open: u64::from(evidence.settings.load.is_open()),
        redis: u64::from(matches!(evidence.settings.target, Target::Redis(_))),
        frozen: u64::from(!evidence.server.freezes.is_empty()),
        cut: u64::from(!evidence.server.cuts.is_empty()),
        queued: u64::from(evidence.server.queue.is_some()),
        shaped: u64::from(!evidence.server.shapes.is_empty()),
        simulated: u64::from(has("timetable")),
        timed_out: u64::from(accounting.timeouts > 0),
        lost: u64::from(accounting.lost > 0),
        refused: u64::from(accounting.errors > 0),
        requests: evidence.joined.pairs.len() as u64,
        ..Tally::default()
    };
    tally.hash.number(of_pairs(&evidence.joined.pairs));
    tally
}

/// Everything that is the same whenever a run is repeated.
struct Printed {
    hash: u64,
    text: String,
    json: String,
}

impl Printed {
    fn new(scenario: &Scenario, part: &Part, evidence: &Evidence, judgement: Judgement) -> Self {
        let tier = Tier::Virtual {
            leg_ns: scenario.network_ns,
        };
        let parts = vec![PartReport::new(part, evidence, judgement, 1)];
        let report = Report::new(scenario, tier, None, parts);
        Self {
            hash: of_pairs(&evidence.joined.pairs),
            text: report.to_string(),
            json: json::render(&[report]).unwrap_or_else(|error| error.to_string()),
        }
    }

    fn compare(&self, again: &Self) -> Result<(), String> {
        let differs = match self {
            _ if self.hash != again.hash => "rows",
            _ if self.text != again.text => "text of the report",
            _ if self.json != again.json => "JSON of the report",
            _ => return Ok(()),
        };
        Err(format!("the {differs} differs when it is run again"))
    }
}

thread_local! {
    /// What this thread said when it panicked in a trial; `None` outside of one.
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `trial` and catches its panic as a message. The panics of trials are not printed; those of
/// anybody else are, as before.
fn caught<T>(trial: impl FnOnce() -> T) -> Result<T, String> {
    static LISTEN: Once = Once::new();
    LISTEN.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_trial = HEARD.with_borrow_mut(|heard| {
                heard
                    .as_mut()
                    .map(|heard| *heard = info.to_string())
                    .is_some()
            });
            if !is_trial {
                usual(info);
            }
        }));
    });
    HEARD.set(Some(String::new()));
    // Nothing of a trial that panicked is used again.
    let result = panic::catch_unwind(AssertUnwindSafe(trial));
    let heard = HEARD.take().unwrap_or_default();
    result.map_err(|payload: Box<dyn Any + Send>| {
        drop(payload);
        heard
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::client::Own;

    fn trial_of(text: &str) -> Outcome {
        trial(&Own, "test", text, Depth::Again, &Control::new())
    }

    #[test]
    fn an_honest_scenario_is_exact_and_counted() {
        let outcome = trial_of(
            "[server]\nlatency = 'constant(1ms)'\n[[client]]\ntarget = 'redis'\n\
             connections = 2\nrate = 1000\nrequests = 100\nkeys = 9\n",
        );
        let Outcome::Exact(tally) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!((tally.clients, tally.open, tally.redis), (1, 1, 1));
        assert_eq!((tally.simulated, tally.repeated, tally.frozen), (1, 1, 0));
        // Both connections are opened without a request in RESP 2.
        assert_eq!(tally.requests, 100);
    }

    #[test]
    fn what_fails_is_told_by_its_name() {
        let refused = trial_of("[[client]]\ntarget = 'mongodb'\n");
        assert!(
            matches!(&refused, Outcome::Broken(broken) if broken.what == "refused"),
            "{refused:?}"
        );
        let failures = trial_of(
            "[server]\nlatency = 'constant(50ms)'\n[[client]]\ntarget = 'redis'\n\
             connections = 1\nrequests = 2\ntimeout = '10ms'\n",
        );
        assert!(
            matches!(&failures, Outcome::Broken(broken) if broken.what == "failures"),
            "{failures:?}"
        );
    }

    #[test]
    fn a_panic_is_caught_with_its_message_and_place() {
        let message = caught(|| panic!("number {}", 7)).map(|(): ()| ());
        let message = message.unwrap_err();
        assert!(
            message.contains("number 7") && message.contains("trial.rs"),
            "{message}"
        );
        assert_eq!(caught(|| 5), Ok(5));
    }

    #[test]
    fn a_trial_that_is_stopped_says_so() {
        let control = Control::new();
        control.stop();
        let text = "[[client]]\ntarget = 'redis'\nrequests = 100000\n";
        assert_eq!(
            trial(&Own, "test", text, Depth::Once, &control),
            Outcome::Stopped
        );
    }
}
