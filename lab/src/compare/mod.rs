//! Comparing two groups of runs.
//!
//! The unit is the run: two requests of one run are not independent of each other, two runs are. Of
//! each figure (a quantile, the mean, the rate) every run gives one value. The groups are held
//! against each other by the Mann-Whitney test ([`rank`]) and by the bootstrap interval of the ratio
//! of their medians ([`bootstrap`]). A difference is claimed when both agree: the interval leaves
//! out 1, and the p-value, corrected by Holm's method for the number of figures, is below 5 %. With
//! fewer than [`FEWEST_RUNS`] runs a side nothing is claimed.

pub mod bootstrap;
pub mod interleave;
pub mod rank;
pub mod report;
pub mod stored;

use serde::Serialize;
use serde_json::Value;

use bootstrap::{Ratio, median, ratio_of_medians};
use rank::mann_whitney;
use stored::{Group, Numbers, Stored, Times};

/// Two groups, figure by figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The first group.
    pub a: GroupFacts,
    /// The second group.
    pub b: GroupFacts,
    /// The figures.
    pub figures: Vec<Compared>,
    /// What a reader must know.
    pub notices: Vec<String>,
}

/// What a group is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupFacts {
    /// A path or a command.
    pub name: String,
    /// Runs.
    pub runs: usize,
}

/// One figure of both groups.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// `response p99`, `service mean`, `rate`.
    pub figure: String,
    /// Nanoseconds, or answered requests per second.
    pub unit: Unit,
    /// Values of the first group's runs.
    pub a: Vec<f64>,
    /// Values of the second group's runs.
    pub b: Vec<f64>,
    /// Median of the first group.
    pub a_median: Option<f64>,
    /// Median of the second group.
    pub b_median: Option<f64>,
    /// Ratio of the medians, second over first, with its 95 % interval.
    pub ratio: Option<Interval>,
    /// Two-sided p-value of the Mann-Whitney test.
    pub p: Option<f64>,
    /// The same, corrected for the number of figures.
    pub p_corrected: Option<f64>,
    /// What may be said.
    pub outcome: Outcome,
}

/// The unit of a compared figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Nanoseconds: less is better.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Answered requests per second: more is better.
    #[serde(rename = "1/s")]
    PerSecond,
}

/// A value and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl From<Ratio> for Interval {
    fn from(ratio: Ratio) -> Self {
        let Ratio { value, low, high } = ratio;
        Self { value, low, high }
    }
}

/// What may be said of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The second group's values are larger.
    Higher,
    /// The second group's values are smaller.
    Lower,
    /// No difference was shown; that does not show that there is none.
    NoDifference,
    /// Too few runs for a verdict.
    TooFewRuns,
    /// Some run lacks the figure.
    NotAvailable,
}

/// Why groups cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The runs of one group differ in what they did.
    #[error(
        "the runs of {group} differ in their settings ({keys}): a group is one thing, run several times"
    )]
    MixedGroup {
        /// The group.
        group: String,
        /// The settings that differ.
        keys: String,
    },
    /// One is an open loop, the other a closed one.
    #[error("{a} is {a_model} loop and {b} {b_model} loop: their latencies mean different things")]
    Models {
        /// The first group.
        a: String,
        /// Its model, with its article.
        a_model: String,
        /// The second group.
        b: String,
        /// Its model, with its article.
        b_model: String,
    },
}

/// Compares two groups.
///
/// # Errors
/// When the runs of a group did different things, or the groups' load models differ.
pub fn compare(a: &Group, b: &Group) -> Result<Comparison, CompareError> {
    for group in [a, b] {
        let differing = differing_in(group);
        if !differing.is_empty() {
            return Err(CompareError::MixedGroup {
                group: group.name.clone(),
                keys: differing.join(", "),
            });
        }
    }
    let (a_model, b_model) = (model(a), model(b));
    if a_model != b_model {
        let with_article = |model: &str| match model {
            "open" => "an open".to_owned(),
            other => format!("a {other}"),
        };
        return Err(CompareError::Models {
            a: a.name.clone(),
            a_model: with_article(a_model),
            b: b.name.clone(),
            b_model: with_article(b_model),
        });
    }
    let mut figures: Vec<Compared> = Figure::of_model(a_model)
        .into_iter()
        .map(|figure| figure.compared(a, b))
        .collect();
    correct(&mut figures);
    let enough = a.runs.len() >= FEWEST_RUNS && b.runs.len() >= FEWEST_RUNS;
    for figure in &mut figures {
        figure.outcome = outcome(figure, enough);
    }
    Ok(Comparison {
        a: facts(a),
        b: facts(b),
        figures,
        notices: notices(a, b),
    })
}

/// Runs a side from which on a verdict is given.
pub const FEWEST_RUNS: usize = 8;
/// Probability of claiming any difference where there is none.
const SIGNIFICANCE: f64 = 0.05;

fn facts(group: &Group) -> GroupFacts {
    GroupFacts {
        name: group.name.clone(),
        runs: group.runs.len(),
    }
}

fn model(group: &Group) -> &str {
    group.runs.first().map_or("", |run| &run.numbers.load_model)
}

/// The settings in which the runs of a group differ; the seed and the target may.
fn differing_in(group: &Group) -> Vec<String> {
    let Some((first, others)) = group.runs.split_first() else {
        return Vec::new();
    };
    let mut keys: Vec<String> = others
        .iter()
        .flat_map(|other| differing(&first.settings, &other.settings))
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

/// The settings in which two runs differ.
fn differing(one: &Value, other: &Value) -> Vec<String> {
    let (Value::Object(one), Value::Object(other)) = (one, other) else {
        return if one == other {
            Vec::new()
        } else {
            vec!["settings".to_owned()]
        };
    };
    let keys = one
        .keys()
        .chain(other.keys().filter(|key| !one.contains_key(*key)));
    keys.filter(|key| !FREE.contains(&key.as_str()))
        .filter(|key| one.get(*key) != other.get(*key))
        .cloned()
        .collect()
}

/// Settings that do not make two runs different things.
const FREE: [&str; 2] = ["seed", "target"];

/// A figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Response(Point),
    Service(Point),
    Rate,
}

/// A point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    Mean,
    P50,
    P90,
    P99,
    P99_9,
}

impl Point {
    const ALL: [Self; 5] = [Self::Mean, Self::P50, Self::P90, Self::P99, Self::P99_9];

    fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
        }
    }

    fn of(self, times: &Times) -> Option<f64> {
        let quantile = match self {
            Self::Mean => return times.mean_ns,
            Self::P50 => times.p50_ns,
            Self::P90 => times.p90_ns,
            Self::P99 => times.p99_ns,
            Self::P99_9 => times.p999_ns,
        };
        quantile.map(float)
    }
}

impl Figure {
    /// Those of a load model, in the order of a report.
    fn of_model(model: &str) -> Vec<Self> {
        let mut figures = Vec::new();
        if model == "open" {
            figures.extend(Point::ALL.map(Self::Response));
        }
        figures.extend(Point::ALL.map(Self::Service));
        figures.push(Self::Rate);
        figures
    }

    fn name(self) -> String {
        match self {
            Self::Response(point) => format!("response {}", point.name()),
            Self::Service(point) => format!("service {}", point.name()),
            Self::Rate => "rate".to_owned(),
        }
    }

    fn of(self, run: &Stored) -> Option<f64> {
        let numbers: &Numbers = &run.numbers;
        match self {
            Self::Response(point) => point.of(numbers.total.response.as_ref()?),
            Self::Service(point) => point.of(&numbers.total.service),
            Self::Rate => Some(numbers.rate_per_second),
        }
    }

    fn compared(self, a: &Group, b: &Group) -> Compared {
        let values = |group: &Group| -> Vec<f64> {
            group.runs.iter().filter_map(|run| self.of(run)).collect()
        };
        let (values_a, values_b) = (values(a), values(b));
        let complete = values_a.len() == a.runs.len() && values_b.len() == b.runs.len();
        let test = complete
            .then(|| mann_whitney(&values_a, &values_b))
            .flatten();
        Compared {
            figure: self.name(),
            unit: match self {
                Self::Rate => Unit::PerSecond,
                Self::Response(_) | Self::Service(_) => Unit::Nanoseconds,
            },
            a_median: median(&mut values_a.clone()),
            b_median: median(&mut values_b.clone()),
            ratio: complete
                .then(|| ratio_of_medians(&values_a, &values_b))
                .flatten()
                .map(Interval::from),
            p: test.map(|test| test.p),
            p_corrected: None,
            outcome: Outcome::NotAvailable,
            a: values_a,
            b: values_b,
        }
    }
}

/// Holm's correction: the smallest p-value times the number of figures, the next times one less,
/// and none below the one before it.
fn correct(figures: &mut [Compared]) {
    let mut tested: Vec<(f64, usize)> = figures
        .iter()
        .enumerate()
        .filter_map(|(place, figure)| Some((figure.p?, place)))
        .collect();
    tested.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut least = 0.0_f64;
    for (rank, (p, place)) in tested.iter().enumerate() {
        let factor = u32::try_from(tested.len() - rank).map_or(f64::INFINITY, f64::from);
        least = least.max(p * factor).min(1.0);
        figures[*place].p_corrected = Some(least);
    }
}

fn outcome(figure: &Compared, enough: bool) -> Outcome {
    let (Some(ratio), Some(p)) = (figure.ratio, figure.p_corrected) else {
        return Outcome::NotAvailable;
    };
    if !enough {
        return Outcome::TooFewRuns;
    }
    match (p < SIGNIFICANCE, ratio.low > 1.0, ratio.high < 1.0) {
        (true, true, _) => Outcome::Higher,
        (true, _, true) => Outcome::Lower,
        _ => Outcome::NoDifference,
    }
}

fn notices(a: &Group, b: &Group) -> Vec<String> {
    let mut notices = Vec::new();
    for group in [a, b] {
        if group.runs.len() < FEWEST_RUNS {
            notices.push(format!(
                "{} has {} of the {FEWEST_RUNS} runs that a verdict needs",
                group.name,
                group.runs.len()
            ));
        }
        let failed: u64 = group
            .runs
            .iter()
            .map(|run| run.numbers.total.outcomes.failed())
            .sum();
        if failed > 0 {
            notices.push(format!(
                "{}: {failed} requests failed; they are not in the latencies",
                group.name
            ));
        }
        let warned = group
            .runs
            .iter()
            .filter(|run| !run.numbers.notices.is_empty());
        let warned = warned.count();
        if warned > 0 {
            notices.push(format!(
                "{}: {warned} of {} runs carry notices of the client, which are in their reports",
                group.name,
                group.runs.len()
            ));
        }
    }
    if let (Some(one), Some(other)) = (a.runs.first(), b.runs.first()) {
        let keys = differing(&one.settings, &other.settings);
        if !keys.is_empty() {
            notices.push(format!(
                "the groups differ in their settings: {}",
                keys.join(", ")
            ));
        }
    }
    if !are_interleaved(a, b) {
        notices.push(
            "the runs were not interleaved: what changed on the machine in between counts as a \
             difference"
                .to_owned(),
        );
    }
    notices
}

/// Whether no group was finished before the other began.
fn are_interleaved(a: &Group, b: &Group) -> bool {
    let span = |group: &Group| {
        let starts = group.runs.iter().map(|run| run.numbers.started_unix_ns);
        starts.clone().min().zip(starts.max())
    };
    match (span(a), span(b)) {
        (Some(a), Some(b)) => a.0 < b.1 && b.0 < a.1,
        _ => true,
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers to be compared")]
fn float(ns: u64) -> f64 {
    ns as f64
}

#[cfg(test)]
mod tests;
