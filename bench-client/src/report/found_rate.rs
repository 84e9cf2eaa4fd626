//! The answer of a search for the largest rate: a page for people and a JSON object for programs.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use super::number::{counted, ms, percent};
use super::table::Table;
use super::{Head, json, nanos, text};
use crate::search::{Answer, End, Flaw, Objective, Point, Search};

/// The answer of a search with all that was tried.
#[derive(Clone, Copy, Debug)]
pub struct FoundRate<'a> {
    /// What is known of the run; its settings are those of the first trial.
    pub head: &'a Head,
    /// What was tried.
    pub search: &'a Search,
    /// What came out.
    pub answer: &'a Answer,
}

impl FoundRate<'_> {
    /// Writes the page for people.
    ///
    /// # Errors
    /// What the writer says.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.page().as_bytes())?;
        out.flush()
    }

    /// Writes the JSON object.
    ///
    /// # Errors
    /// What the writer says.
    pub fn json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, &self.document())?;
        out.write_all(b"\n")?;
        out.flush()
    }

    fn page(&self) -> String {
        let settings = &self.head.settings;
        let objectives = &self.search.plan().objectives;
        let mut page = format!("{}\n", self.head.target);
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "the largest rate that keeps {}, {} arrivals",
            names(objectives),
            text::arrivals(&settings.load),
        );
        let _ = writeln!(
            page,
            "{}, {}, pipeline {}, seed {}; {}\n",
            counted(u64::from(settings.threads.get()), "thread"),
            counted(u64::from(settings.connections.get()), "connection"),
            settings.pipeline.depth,
            settings.seed,
            counted(u64::from(self.search.trials()), "trial"),
        );
        let _ = writeln!(page, "{}", self.table());
        let _ = writeln!(page, "{}", self.sentence());
        for point in self.search.points() {
            for flaw in point.flaws() {
                let _ = writeln!(page, "note: at {}/s {}", point.rate(), reason(flaw));
            }
        }
        for warning in self.head.host.warnings(settings) {
            let _ = writeln!(page, "note: {warning}");
        }
        page
    }

    fn table(&self) -> Table {
        let objectives = &self.search.plan().objectives;
        let mut heading = vec![
            "rate/s".to_owned(),
            "trials".to_owned(),
            "requests".to_owned(),
        ];
        for objective in objectives {
            heading.push(format!("{}, ms", objective.quantile_name()));
            heading.push(format!("beyond {objective}"));
        }
        heading.push(String::new());
        let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
        let mut table = Table::new(0, &heading);
        for point in self.search.points() {
            table.row(row(point, objectives));
        }
        table
    }

    /// The answer in a sentence.
    fn sentence(&self) -> String {
        let objectives = names(&self.search.plan().objectives);
        let Answer { met, broken, end } = *self.answer;
        match (met, broken) {
            (Some(met), Some(broken)) => {
                let unfinished = if end == End::OutOfTrials {
                    "; the trials ended before it could be narrowed further"
                } else {
                    ""
                };
                format!("{objectives}: kept at {met}/s, broken at {broken}/s{unfinished}")
            }
            (Some(met), None) => match end {
                End::AtMost => format!("{objectives}: kept up to {met}/s, the largest rate tried"),
                End::ClientLimit => format!(
                    "{objectives}: kept at {met}/s; beyond it the client itself is too slow to tell"
                ),
                _ => format!("{objectives}: kept at {met}/s; no rate was found that breaks it"),
            },
            (None, Some(broken)) => format!("{objectives}: broken even at {broken}/s"),
            (None, None) => format!("{objectives}: nothing was found out"),
        }
    }

    fn document(&self) -> impl Serialize {
        let plan = self.search.plan();
        Document {
            schema: "kvlab-find-rate",
            schema_version: 1,
            program: &self.head.program,
            host: &self.head.host,
            settings: json::Settings::of(self.head),
            objectives: plan
                .objectives
                .iter()
                .map(|objective| ObjectiveEntry {
                    text: objective.to_string(),
                    latency: objective.kind.name(),
                    quantile: objective.quantile(),
                    limit_ns: nanos(objective.limit),
                })
                .collect(),
            precision: plan.precision,
            trials: self.search.trials(),
            end: end_name(self.answer.end),
            met_per_second: self.answer.met.map(kvlab_timing::Rate::as_f64),
            broken_per_second: self.answer.broken.map(kvlab_timing::Rate::as_f64),
            sentence: self.sentence(),
            points: self.search.points().iter().map(PointEntry::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    program: &'a str,
    host: &'a crate::host::Host,
    settings: json::Settings<'a>,
    objectives: Vec<ObjectiveEntry>,
    precision: f64,
    trials: u32,
    end: &'static str,
    met_per_second: Option<f64>,
    broken_per_second: Option<f64>,
    sentence: String,
    points: Vec<PointEntry>,
}

#[derive(Serialize)]
struct ObjectiveEntry {
    text: String,
    latency: &'static str,
    quantile: f64,
    limit_ns: u64,
}

#[derive(Serialize)]
struct PointEntry {
    rate_per_second: f64,
    standing: &'static str,
    trials: u32,
    trials_piled_up: u32,
    spoilt: Vec<String>,
    requests: u64,
    /// For each objective.
    beyond: Vec<u64>,
    /// For each trial and objective.
    quantiles_ns: Vec<Vec<u64>>,
}

impl PointEntry {
    fn of(point: &Point) -> Self {
        let (requests, beyond) = point.totals();
        Self {
            rate_per_second: point.per_second(),
            standing: point.standing().name(),
            trials: point.trials(),
            trials_piled_up: point.piled_up(),
            spoilt: point.flaws().iter().map(reason).collect(),
            requests,
            beyond,
            quantiles_ns: point.quantiles_ns().to_vec(),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a search are far below 2^52"
)]
fn row(point: &Point, objectives: &[Objective]) -> Vec<String> {
    let (requests, beyond) = point.totals();
    let mut row = vec![
        point.rate().to_string(),
        point.trials().to_string(),
        requests.to_string(),
    ];
    for place in 0..objectives.len() {
        let quantiles = point.quantiles_ns().iter();
        let mut quantiles: Vec<u64> = quantiles
            .filter_map(|all| all.get(place).copied())
            .collect();
        quantiles.sort_unstable();
        row.push(match (quantiles.first(), quantiles.last()) {
            (Some(least), Some(most)) if least == most => ms(*least),
            (Some(least), Some(most)) => format!("{} to {}", ms(*least), ms(*most)),
            _ => "n/a".to_owned(),
        });
        row.push(match beyond.get(place) {
            Some(beyond) if requests > 0 => {
                let share = *beyond as f64 / requests as f64;
                format!("{:.2} %", share * 100.0)
            }
            _ => "n/a".to_owned(),
        });
    }
    let piles_up = if point.piled_up() > 0 {
        ", requests pile up"
    } else {
        ""
    };
    row.push(format!("{}{piles_up}", point.standing().name()));
    row
}

fn names(objectives: &[Objective]) -> String {
    let names: Vec<String> = objectives.iter().map(ToString::to_string).collect();
    names.join(" and ")
}

fn reason(flaw: &Flaw) -> String {
    match flaw {
        Flaw::Late {
            lateness_p99,
            limit,
        } => format!(
            "a trial does not count: the client itself was late by {} ms at p99, more than a tenth of \
             {} ms",
            ms(nanos(*lateness_p99)),
            ms(nanos(*limit))
        ),
        Flaw::Busy { cpu_share } => format!(
            "a trial does not count: a thread of the client worked {} of the time",
            percent(*cpu_share)
        ),
    }
}

fn end_name(end: End) -> &'static str {
    match end {
        End::Found => "found",
        End::AtMost => "at_most_rate",
        End::AtLeast => "at_least_rate",
        End::ClientLimit => "client_limit",
        End::OutOfTrials => "out_of_trials",
    }
}

#[cfg(test)]
mod tests {
    use kvlab_timing::Rate;

    use super::super::sample;
    use super::*;
    use crate::search::{Plan, Step, Stretch, Trial};

    /// Kept below 1500 per second, broken from there on; p99 is 1 or 3 ms.
    fn searched() -> (Search, Answer) {
        let first = Rate::per_second(1_000).unwrap();
        let mut plan = Plan::new(vec!["p99<2ms".parse().unwrap()], first);
        plan.precision = 0.2;
        let mut search = Search::new(plan);
        loop {
            match search.next() {
                Step::Done(answer) => return (search, answer),
                Step::Try(rate) => {
                    let kept = rate.as_f64() < 1_500.0;
                    let stretch = Stretch {
                        requests: 1_000,
                        beyond: vec![if kept { 5 } else { 50 }],
                        outstanding: 1,
                    };
                    let trial = Trial {
                        stretches: vec![stretch; 20],
                        quantiles_ns: vec![if kept { 1_000_000 } else { 3_000_000 }],
                        due: 20_000,
                        ..Trial::default()
                    };
                    search.record(rate, trial);
                }
            }
        }
    }

    #[test]
    fn the_page_shows_every_rate_and_the_answer() {
        let (search, answer) = searched();
        let head = sample::head();
        let found = FoundRate {
            head: &head,
            search: &search,
            answer: &answer,
        };
        let mut page = Vec::new();
        found.text(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        let words: Vec<Vec<&str>> = page
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        for row in [
            ["1414", "2", "40000", "1.000", "0.50", "%", "met"],
            ["2000", "1", "20000", "3.000", "5.00", "%", "broken"],
        ] {
            assert!(words.contains(&row.to_vec()), "{row:?} in\n{page}");
        }
        assert!(
            page.contains("p99<2ms: kept at 1414/s, broken at 1682/s\n"),
            "{page}"
        );
    }

    #[test]
    fn the_object_for_programs_holds_the_interval() {
        let (search, answer) = searched();
        let head = sample::head();
        let found = FoundRate {
            head: &head,
            search: &search,
            answer: &answer,
        };
        let mut json = Vec::new();
        found.json(&mut json).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(value["schema"], "kvlab-find-rate");
        assert_eq!(value["end"], "found");
        assert_eq!(value["met_per_second"], 1_414.0);
        assert_eq!(value["broken_per_second"], 1_682.0);
        assert_eq!(value["objectives"][0]["limit_ns"], 2_000_000);
        let points = value["points"].as_array().unwrap();
        assert_eq!(points.len(), 4);
        assert_eq!(points[1]["beyond"][0], 200);
        assert_eq!(points[1]["standing"], "met");
    }
}
