//! Exploring: random scenarios under virtual time, each of which has to be exact.
//!
//! A scenario is drawn ([`draw`]) as a plan ([`plan`]), rendered to the text of a scenario file, and
//! put to the test ([`mod@trial`]): the lab's own checks have to hold, and more that is true only without
//! sockets ([`invariants`]). The first scenario that fails is made as small as it can be
//! ([`mod@shrink`]). Scenarios are independent of each other and run on all cores; what comes out
//! depends on the seed and the number of scenarios alone.

pub mod draw;
pub mod invariants;
pub mod plan;
pub mod shrink;
pub mod trial;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use kvlab_bench_client::Control;
use kvlab_timing::{Clock, Stamp};

use shrink::Shrunk;
use trial::{Broken, Depth, Outcome, Tally, trial};

use crate::runner::client::{Client, Own};

/// What to explore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Scenarios at most.
    pub runs: u64,
    /// Seed of the scenarios.
    pub seed: u64,
    /// Time after which no further scenario is begun.
    pub time: Option<Duration>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// The seed.
    pub seed: u64,
    /// Scenarios that hold, all of them before the one that fails.
    pub held: u64,
    /// What was seen in them.
    pub tally: Tally,
    /// The first scenario that fails, made small.
    pub failure: Option<Failure>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

/// A scenario that fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its number among those of the seed.
    pub place: u64,
    /// Keys it had as it was drawn.
    pub keys: usize,
    /// What is left of it.
    pub shrunk: Shrunk,
}

/// Explores until a scenario fails, all have held, the time is over or `control` stops it.
/// `progress` hears now and then how many have held.
#[must_use]
pub fn explore(
    settings: &Settings,
    control: &Control,
    progress: &mut dyn FnMut(u64),
) -> Exploration {
    explore_by(&Own, settings, control, progress)
}

/// The same with another client.
#[must_use]
pub fn explore_by(
    client: &(dyn Client + Sync),
    settings: &Settings,
    control: &Control,
    progress: &mut dyn FnMut(u64),
) -> Exploration {
    let clock = Clock::real();
    let search = Search {
        client,
        settings: *settings,
        clock,
        control,
        until: settings.time.map(|time| clock.now() + time),
        next: AtomicU64::new(0),
        limit: AtomicU64::new(settings.runs),
        results: Mutex::default(),
    };
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|_| scope.spawn(|| search.work()))
            .collect();
        let mut told = 0;
        while threads.iter().any(|thread| !thread.is_finished()) {
            thread::park_timeout(LOOK);
            let held = search.results().held;
            if held >= told + TELL_EVERY {
                told = held - held % TELL_EVERY;
                progress(told);
            }
        }
    });
    search.finish()
}

/// How often the results are looked at for the progress.
const LOOK: Duration = Duration::from_millis(20);
/// Scenarios between two words of progress.
const TELL_EVERY: u64 = 200;
/// Of so many scenarios one is run again.
const REPEAT_EVERY: u64 = 8;

struct Search<'a> {
    client: &'a (dyn Client + Sync),
    settings: Settings,
    clock: Clock,
    control: &'a Control,
    until: Option<Stamp>,
    /// The next scenario to run.
    next: AtomicU64,
    /// The end of those that have to be run: once one failed, those after it are of no interest.
    limit: AtomicU64,
    results: Mutex<Results>,
}

/// What holds without a gap from the first scenario on, and what is known beyond.
#[derive(Default)]
struct Results {
    held: u64,
    tally: Tally,
    beyond: BTreeMap<u64, Outcome>,
}

impl Search<'_> {
    fn work(&self) {
        loop {
            let in_time = self.until.is_none_or(|until| self.clock.now() < until);
            if !in_time || self.control.is_stopped() {
                return;
            }
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            if place >= self.limit.load(Ordering::Relaxed) {
                return;
            }
            let text = draw::scenario(self.settings.seed, place).to_string();
            let depth = if place.is_multiple_of(REPEAT_EVERY) {
                Depth::Again
            } else {
                Depth::Once
            };
            let name = name(self.settings.seed, place);
            let outcome = trial(self.client, &name, &text, depth, self.control);
            if matches!(outcome, Outcome::Broken(_)) {
                self.limit.fetch_min(place, Ordering::Relaxed);
            }
            self.results().add(place, outcome);
        }
    }

    fn results(&self) -> std::sync::MutexGuard<'_, Results> {
        // Adding to the results does not panic half way.
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, place: u64, broken: Broken) -> Failure {
        let plan = draw::scenario(self.settings.seed, place);
        Failure {
            place,
            keys: plan.keys(),
            shrunk: shrink::shrink(self.client, plan, broken, self.control),
        }
    }

    fn finish(&self) -> Exploration {
        let seed = self.settings.seed;
        let mut results = std::mem::take(&mut *self.results());
        let failure = match results.beyond.remove(&results.held) {
            Some(Outcome::Broken(broken)) => Some((results.held, broken)),
            _ => None,
        };
        Exploration {
            seed,
            held: results.held,
            tally: results.tally,
            failure: failure.map(|(place, broken)| self.failed(place, broken)),
            interrupted: self.control.is_stopped(),
        }
    }
}

impl Results {
    fn add(&mut self, place: u64, outcome: Outcome) {
        self.beyond.insert(place, outcome);
        while let Some(Outcome::Exact(tally)) = self.beyond.get(&self.held) {
            self.tally.add(tally);
            self.beyond.remove(&self.held);
            self.held += 1;
        }
    }
}

fn name(seed: u64, place: u64) -> String {
    format!("explore seed {seed} run {place}")
}

/// The report: what was seen, and the scenario that fails as a file.
impl fmt::Display for Exploration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed, held, tally, ..
        } = self;
        if let Some(failure) = &self.failure {
            return write!(
                f,
                "{}",
                Reported {
                    seed: *seed,
                    failure
                }
            );
        }
        writeln!(f, "{held} scenarios of seed {seed}: all exact, omission 0")?;
        write!(f, "{}", Seen(tally))
    }
}

/// What was seen, in lines.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a>(pub &'a Tally);

impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            clients,
            open,
            redis,
            frozen,
            cut,
            queued,
            shaped,
            simulated,
            timed_out,
            lost,
            refused,
            repeated,
            requests,
            hash,
        } = self.0;
        writeln!(
            f,
            "  {open} open loops, {} closed; {redis} RESP, {} Aerospike",
            clients - open,
            clients - redis,
        )?;
        writeln!(
            f,
            "  {frozen} with freezes, {cut} with cuts, {queued} with queues, {shaped} with delays that \
             change"
        )?;
        writeln!(
            f,
            "  {timed_out} had time-outs, {lost} lost requests with connections, {refused} had error \
             replies"
        )?;
        writeln!(
            f,
            "  {simulated} equal their simulated timetable, {repeated} run again with the same bytes"
        )?;
        writeln!(
            f,
            "  {requests} requests, hash of all rows {:016x}",
            hash.value()
        )
    }
}

/// A failure as a scenario file that reproduces it.
struct Reported<'a> {
    seed: u64,
    failure: &'a Failure,
}

impl fmt::Display for Reported<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure {
            place,
            keys,
            shrunk,
        } = self.failure;
        let Shrunk {
            plan,
            broken,
            tried,
        } = shrunk;
        writeln!(
            f,
            "# Scenario {place} of seed {} fails: {}",
            self.seed, broken.what
        )?;
        for line in broken.text.lines() {
            writeln!(f, "# {line}")?;
        }
        writeln!(
            f,
            "# {} of its {keys} keys are needed, as {tried} trials showed. To see it again:\n\
             # kvlab explore FILE",
            plan.keys()
        )?;
        write!(f, "{plan}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn few(seed: u64) -> Exploration {
        let settings = Settings {
            runs: 24,
            seed,
            time: None,
        };
        explore(&settings, &Control::new(), &mut |_| {})
    }

    #[test]
    fn the_same_seed_prints_the_same_bytes_and_another_one_others() {
        let report = few(5).to_string();
        assert_eq!(few(5).to_string(), report);
        assert_ne!(few(6).to_string(), report);
        assert!(
            report.starts_with("24 scenarios of seed 5: all exact"),
            "{report}"
        );
    }

    #[test]
    fn results_are_added_in_their_order_whatever_order_they_come_in() {
        let tally = |requests| {
            let mut tally = Tally {
                requests,
                ..Tally::default()
            };
            tally.hash.number(requests);
            tally
        };
        let add = |order: [u64; 4]| {
            let mut results = Results::default();
            for place in order {
                results.add(place, Outcome::Exact(tally(place)));
            }
            (results.held, results.tally, results.beyond.len())
        };
        assert_eq!(add([0, 1, 2, 3]), add([3, 1, 0, 2]));
        // Without the first, nothing holds from the first on.
        let (held, _, beyond) = add([1, 2, 3, 4]);
        assert_eq!((held, beyond), (0, 4));
    }

    #[test]
    fn a_stopped_exploration_says_so_and_reports_what_was_done() {
        let control = Control::new();
        control.stop();
        let settings = Settings {
            runs: 1_000,
            seed: 1,
            time: None,
        };
        let exploration = explore(&settings, &control, &mut |_| {});
        assert!(exploration.interrupted && exploration.failure.is_none());
        assert_eq!(exploration.held, 0);
    }
}
