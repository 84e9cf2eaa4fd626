//! The largest rate at which a server keeps its objectives, found by bisection.
//!
//! A [`Search`] has no clock and runs nothing: it says which rate to try next, is told what the trial
//! showed, and in the end gives an interval: the objectives were met at its lower end and broken at
//! its upper end. So the same search runs on sockets and under virtual time.
//!
//! ```text
//! raise or lower the rate by two until it is met at one and broken at another
//! narrow:   try the geometric middle; a rate that is too close to call is tried again, and if it
//!           stays so the gaps beside it are tried
//! confirm:  try both ends again; their trials count together, and an end that does not hold is moved
//! ```
//!
//! A trial that breaks an objective while the client itself was late or busy is no evidence. When a
//! rate never gives a valid trial, the client is what limits the search, and the answer says so.

mod evidence;
mod objective;
mod point;
mod trial;

pub use evidence::Proof;
pub use objective::{LatencyKind, Objective};
pub use point::{Point, Standing};
pub use trial::{Flaw, Stretch, Trial, Watch};

use kvlab_timing::Rate;

/// What to search for, and within which bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What has to be kept, at least one.
    pub objectives: Vec<Objective>,
    /// The rate to begin with.
    pub first: Rate,
    /// No rate below this one is tried.
    pub least: Rate,
    /// No rate above this one is tried.
    pub most: Rate,
    /// The answer's upper end is at most this share above its lower end, where the noise allows it.
    pub precision: f64,
    /// Bound of the trials in all.
    pub most_trials: u32,
}

impl Plan {
    /// A search between the least and the largest rate there is.
    #[must_use]
    pub fn new(objectives: Vec<Objective>, first: Rate) -> Self {
        Self {
            objectives,
            first,
            least: Rate::MIN,
            most: Rate::MAX,
            precision: 0.05,
            most_trials: 40,
        }
    }
}

/// The state of a search.
#[derive(Clone, Debug)]
pub struct Search {
    plan: Plan,
    /// Rates that were tried, ascending.
    points: Vec<Point>,
    trials: u32,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make a trial at this rate, and [`Search::record`] it.
    Try(Rate),
    /// The search is over.
    Done(Answer),
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// The largest rate at which the objectives were shown to be met, below every rate at which
    /// they were broken.
    pub met: Option<Rate>,
    /// The least rate at which an objective was shown to be broken, above every rate at which they
    /// were met.
    pub broken: Option<Rate>,
    /// Why it ended.
    pub end: End,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Both ends are found and confirmed.
    Found,
    /// Even the largest rate meets the objectives.
    AtMost,
    /// Even the least rate breaks them.
    AtLeast,
    /// Beyond the lower end the client is what is slow.
    ClientLimit,
    /// The bound of trials was reached before both ends were close and confirmed.
    OutOfTrials,
}

impl Search {
    /// A search that has tried nothing yet.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            points: Vec::new(),
            trials: 0,
        }
    }

    /// What is searched for.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The rates that were tried, ascending.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Trials so far.
    #[must_use]
    pub fn trials(&self) -> u32 {
        self.trials
    }

    /// Tells the outcome of a trial at `rate`, and gives what is known of this rate now.
    pub fn record(&mut self, rate: Rate, trial: Trial) -> Standing {
        self.trials += 1;
        let place = self
            .points
            .partition_point(|point| point.rate().as_f64() < rate.as_f64());
        if self
            .points
            .get(place)
            .is_none_or(|point| point.rate() != rate)
        {
            self.points.insert(place, Point::new(rate));
        }
        let point = &mut self.points[place];
        point.add(trial, &self.plan.objectives);
        point.standing()
    }

    /// What comes next.
    #[must_use]
    pub fn next(&self) -> Step {
        if self.trials >= self.plan.most_trials {
            return Step::Done(self.answer(End::OutOfTrials));
        }
        let again = self.points.iter().find(|point| point.may_become_clear());
        if let Some(point) = again {
            return Step::Try(point.rate());
        }
        let (Some(lowest), Some(highest)) = (self.points.first(), self.points.last()) else {
            return Step::Try(self.plan.first);
        };
        let Bounds { met, bad } = self.bounds();
        match (met, bad) {
            (Some(met), Some(bad)) => self.between(met, bad),
            (None, _) if lowest.rate().as_f64() <= self.plan.least.as_f64() => {
                Step::Done(self.answer(End::AtLeast))
            }
            (None, _) => {
                let lower = rounded(lowest.per_second() / STRIDE);
                Step::Try(larger(lower, self.plan.least))
            }
            (Some(_), None) if highest.rate().as_f64() >= self.plan.most.as_f64() => {
                Step::Done(self.answer(End::AtMost))
            }
            (Some(_), None) => {
                let higher = rounded(highest.per_second() * STRIDE);
                Step::Try(smaller(higher, self.plan.most))
            }
        }
    }

    /// What is known so far, for a search that is cut short.
    #[must_use]
    pub fn interrupted(&self) -> Answer {
        self.answer(End::OutOfTrials)
    }

    fn between(&self, met: usize, bad: usize) -> Step {
        let (low, high) = (&self.points[met], &self.points[bad]);
        // Rates that contradict each other are tried until they cannot be any more.
        let inside = self.points.get(met + 1..bad).unwrap_or_default();
        let contradicting = inside
            .iter()
            .filter(|point| point.standing() != Standing::Unclear && point.may_try_again())
            .min_by_key(|point| point.trials());
        if let Some(point) = contradicting {
            return Step::Try(point.rate());
        }
        if high.per_second() / low.per_second() > 1.0 + self.plan.precision {
            let first = inside.first().unwrap_or(high);
            let last = inside.last().unwrap_or(low);
            let below = (low.per_second(), first.per_second());
            let above = (last.per_second(), high.per_second());
            let wider = |(from, to): &(f64, f64)| to / from;
            let gap = if wider(&below) >= wider(&above) {
                below
            } else {
                above
            };
            let middle = rounded((gap.0 * gap.1).sqrt());
            let new = self.points.iter().all(|point| point.rate() != middle);
            if new && wider(&gap) > 1.0 + self.plan.precision / FINEST {
                return Step::Try(middle);
            }
            // Nothing is left to try but what was too close to call. The outermost of it is the likeliest
            // to become clear.
            let outermost = [inside.first(), inside.last()].into_iter().flatten();
            let again = outermost.filter(|point| point.may_try_again());
            if let Some(point) = again.min_by_key(|point| point.trials()) {
                return Step::Try(point.rate());
            }
        }
        for point in [low, high] {
            if point.trials() < CONFIRMED && point.may_try_again() {
                return Step::Try(point.rate());
            }
        }
        let end = match high.standing() {
            Standing::Blocked => End::ClientLimit,
            _ => End::Found,
        };
        Step::Done(self.answer(end))
    }

    /// The largest rate that is met below all that are not, and the least that is not above all that
    /// are.
    fn bounds(&self) -> Bounds {
        let is_met = |point: &Point| point.standing() == Standing::Met;
        let is_bad =
            |point: &Point| matches!(point.standing(), Standing::Broken | Standing::Blocked);
        let first_bad = self.points.iter().position(is_bad);
        let last_met = self.points.iter().rposition(is_met);
        let below = self.points.get(..first_bad.unwrap_or(self.points.len()));
        let above = last_met.map_or(0, |place| place + 1);
        let above = self.points.iter().enumerate().skip(above);
        Bounds {
            met: below.and_then(|points| points.iter().rposition(is_met)),
            bad: above
                .filter(|(_, point)| is_bad(point))
                .map(|(place, _)| place)
                .next(),
        }
    }

    fn answer(&self, end: End) -> Answer {
        let Bounds { met, bad } = self.bounds();
        let broken = bad
            .and_then(|place| self.points.get(place))
            .filter(|point| point.standing() == Standing::Broken);
        Answer {
            met: met
                .and_then(|place| self.points.get(place))
                .map(Point::rate),
            broken: broken.map(Point::rate),
            end,
        }
    }
}

/// Places in the list of points.
struct Bounds {
    met: Option<usize>,
    bad: Option<usize>,
}

/// The nearest rate of four digits, which is close enough and reads well.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive and clamped to the range of rates, in tenths"
)]
fn rounded(per_second: f64) -> Rate {
    let tenths = per_second.clamp(Rate::MIN.as_f64(), Rate::MAX.as_f64()) * 10.0;
    let unit = 10_f64.powf((tenths.log10().floor() - 3.0).max(0.0));
    let tenths = ((tenths / unit).round() * unit) as u64;
    // At least 1 tenth, so this cannot fail.
    Rate::new(tenths, 10).unwrap_or(Rate::MIN)
}

fn larger(one: Rate, other: Rate) -> Rate {
    if one.as_f64() < other.as_f64() {
        other
    } else {
        one
    }
}

fn smaller(one: Rate, other: Rate) -> Rate {
    if one.as_f64() > other.as_f64() {
        other
    } else {
        one
    }
}

/// Factor from one rate to the next until both ends are found.
const STRIDE: f64 = 2.0;
/// Trials at either end of the answer at least.
const CONFIRMED: u32 = 2;
/// Beside a rate that is too close to call, gaps down to this part of the precision are tried.
const FINEST: f64 = 2.0;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
