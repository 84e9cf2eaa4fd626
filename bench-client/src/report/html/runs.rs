//! The page of several runs of the same load, for front ends that repeat a test.

use maud::{Markup, html};

use super::page::{page, scrolling, table};
use super::progress::Progress;
use super::result::{badges, footer, lead, notes, sections, supported};
use super::units::{count, time};
use crate::record::{Interval, Summary};
use crate::report::quantile::QUANTILES;
use crate::report::{Head, Support, all_classes};

/// Collects what the page says of one run.
#[derive(Debug, Default)]
pub struct RunPart {
    progress: Progress,
}

impl RunPart {
    /// Takes in an interval of the run.
    pub fn interval(&mut self, interval: &Interval) {
        self.progress.add(interval);
    }
}

/// The page: a table of the runs where there are several, then the panels of each.
#[derive(Clone, Debug)]
pub struct Runs {
    /// What made it, for the line above the title.
    kind: &'static str,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    head: Head,
    lead: String,
    badges: Markup,
    row: Vec<Markup>,
    sections: Markup,
}

impl Part {
    /// The section of one of several runs; `folded` leaves its title alone to be seen at first.
    fn section(&self, number: usize, folded: bool) -> Markup {
        let id = format!("run-{number}");
        html! {
            section.part id=(id) aria-labelledby={ (id) "-title" } {
                div.title {
                    h2 id={ (id) "-title" } { "Run " (number) }
                    (self.badges)
                }
                p.lead { (self.lead) }
                @if folded {
                    details {
                        summary { "Curves and tables" }
                        (self.sections)
                    }
                } @else {
                    (self.sections)
                }
            }
        }
    }
}

impl Runs {
    /// A page without runs; `kind` is the command that makes it, for example `kvlab memtier`.
    #[must_use]
    pub fn new(kind: &'static str) -> Self {
        Self {
            kind,
            parts: Vec::new(),
        }
    }

    /// Adds a run that is over.
    pub fn add(&mut self, head: Head, mut part: RunPart, summary: &Summary) {
        let notes = notes(&head, summary);
        let number = self.parts.len() + 1;
        let id = format!("run-{number}-");
        self.parts.push(Part {
            lead: lead(&head, summary),
            badges: badges(summary, &notes),
            row: row(number, summary),
            sections: sections(&head, summary, part.progress.points(), &notes, &id),
            head,
        });
    }

    /// The page; `None` where no run has a result.
    #[must_use]
    pub fn render(&self) -> Option<String> {
        let first = self.parts.first()?;
        let kind = self.kind;
        let target = &first.head.target;
        let several = self.parts.len() > 1;
        let body = html! {
            header {
                p.kind { (kind) }
                div.title {
                    h1 { (target) }
                    @if !several { (first.badges) }
                }
                @if several {
                    p.lead { (self.parts.len()) " runs of the same load" }
                } @else {
                    p.lead { (first.lead) }
                }
            }
            main {
                @if several {
                    section.panel {
                        h3 { "Runs" }
                        (self.table())
                    }
                }
                @if several {
                    @for (number, part) in (1_usize..).zip(&self.parts) {
                        (part.section(number, self.parts.len() > OPEN_RUNS))
                    }
                } @else {
                    (first.sections)
                }
            }
            (footer(&first.head))
        };
        Some(page(&format!("{target}: {kind}"), &body))
    }

    fn table(&self) -> Markup {
        let rows = self.parts.iter().map(|part| part.row.clone());
        scrolling("runs", &table("The runs", HEADING, rows))
    }
}

/// Runs that are shown whole; of more the titles alone are seen at first.
const OPEN_RUNS: usize = 4;
const HEADING: [&str; 7] = [
    "run",
    "answered /s",
    "p50",
    "p99",
    "p99.9",
    "largest",
    "failed",
];

/// Quantiles of the latency a reader means: response time where there is a schedule.
fn row(number: usize, summary: &Summary) -> Vec<Markup> {
    let total = all_classes(&summary.tally);
    let latency = if summary.load.is_open() {
        &total.response
    } else {
        &total.service
    };
    let mut cells = vec![number.to_string(), format!("{:.0}", summary.rate())];
    for title in ["p50", "p99", "p99.9"] {
        let quantile = QUANTILES.iter().find(|quantile| quantile.title == title);
        let support = quantile.map_or(Support::None, |quantile| quantile.of(latency));
        cells.push(supported(support));
    }
    cells.push(if latency.is_empty() {
        "n/a".to_owned()
    } else {
        time(latency.max_ns())
    });
    cells.push(count(total.outcomes.failed()));
    cells.iter().map(|cell| html! { (cell) }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::*;

    fn page(runs: usize) -> String {
        let mut page = Runs::new("kvlab memtier");
        for _ in 0..runs {
            let mut part = RunPart::default();
            sample::intervals()
                .iter()
                .for_each(|interval| part.interval(interval));
            page.add(sample::head(), part, &sample::open_loop());
        }
        page.render().unwrap()
    }

    #[test]
    fn one_run_is_not_folded() {
        let page = page(1);
        assert!(page.contains("id=\"run-1-percentiles\""));
        assert!(!page.contains("Curves and tables"));
        assert!(Runs::new("kvlab memtier").render().is_none());
    }

    #[test]
    fn of_several_runs_no_two_elements_have_the_same_name() {
        let page = page(3);
        let mut names: Vec<&str> = page
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for number in 1..=3 {
            assert!(page.contains(&format!("id=\"run-{number}-percentiles\"")));
        }
        assert_eq!(page.matches("Curves and tables").count(), 0);
        assert_eq!(self::page(5).matches("Curves and tables").count(), 5);
    }
}
