//! Errors against their tolerances: one bar for each, whose middle is no error and whose band is
//! what is allowed. Errors of microseconds and of milliseconds thus compare at a glance.

use maud::{Markup, Render, html};

use super::page::{Tone, badge};
use super::units::{difference, time};

/// Errors with their tolerances.
#[derive(Clone, Debug, Default)]
pub struct Deviations {
    /// One for each bar.
    pub rows: Vec<Deviation>,
}

/// One error.
#[derive(Clone, Debug, PartialEq)]
pub struct Deviation {
    /// Of what.
    pub name: String,
    /// The error in nanoseconds.
    pub error_ns: i64,
    /// What is allowed to either side, where it is judged.
    pub tolerance_ns: Option<u64>,
    /// How it came out, in a word.
    pub verdict: (Tone, String),
}

/// Half the width of the band, as a share of the bar.
const REACH: f64 = 0.3;

impl Render for Deviations {
    fn render(&self) -> Markup {
        html! {
            div.deviations role="list" {
                @for row in &self.rows {
                    (row)
                }
            }
        }
    }
}

impl Render for Deviation {
    fn render(&self) -> Markup {
        let (tone, word) = &self.verdict;
        let tone_class = match tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Doubtful | Tone::Plain => "plain",
        };
        html! {
            div.deviation role="listitem" {
                span.name { (self.name) }
                svg width="100%" height="22" aria-hidden="true" {
                    line.track x1="0" x2="100%" y1="11" y2="11" {}
                    @if self.tolerance_ns.is_some_and(|tolerance| tolerance > 0) {
                        rect.allowed x=(percent(0.5 - REACH)) width=(percent(2.0 * REACH)) y="3" height="16" rx="3" {}
                    }
                    line.zero x1="50%" x2="50%" y1="0" y2="22" {}
                    @if let Some(place) = self.place() {
                        @if (0.02..=0.98).contains(&place) {
                            circle.(tone_class) cx=(percent(place)) cy="11" r="5.5" {}
                        } @else {
                            (beyond(place, tone_class))
                        }
                    }
                }
                span.amount {
                    b { (difference(self.error_ns)) }
                    @match self.tolerance_ns {
                        Some(0) => ", must be exact",
                        Some(tolerance) => { " of ±" (time(tolerance)) },
                        None => "",
                    }
                }
                (badge(*tone, word))
            }
        }
    }
}

impl Deviation {
    /// Where the error lies on the bar, from 0 to 1; nothing where nothing is allowed or judged and
    /// there is an error.
    #[expect(clippy::cast_precision_loss, reason = "a place on a drawing")]
    fn place(&self) -> Option<f64> {
        let error = self.error_ns as f64;
        match self.tolerance_ns {
            None => None,
            Some(_) if self.error_ns == 0 => Some(0.5),
            Some(0) => Some(if error < 0.0 { 0.0 } else { 1.0 }),
            Some(tolerance) => Some((0.5 + REACH * error / tolerance as f64).clamp(0.0, 1.0)),
        }
    }
}

/// An arrow at the end of the bar beyond which the error lies.
fn beyond(place: f64, class: &str) -> Markup {
    let (x, points) = if place < 0.5 {
        ("0", "0,11 10,5 10,17")
    } else {
        ("100%", "0,11 -10,5 -10,17")
    };
    html! {
        svg x=(x) overflow="visible" { polygon.(class) points=(points) {} }
    }
}

fn percent(place: f64) -> String {
    format!("{:.2}%", place * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(error_ns: i64, tolerance_ns: Option<u64>) -> Option<f64> {
        let verdict = (Tone::Plain, String::new());
        Deviation {
            name: String::new(),
            error_ns,
            tolerance_ns,
            verdict,
        }
        .place()
    }

    #[test]
    fn the_edge_of_the_band_is_the_tolerance() {
        assert_eq!(place(0, Some(0)), Some(0.5));
        assert_eq!(place(50, Some(50)), Some(0.5 + REACH));
        assert_eq!(place(-50, Some(50)), Some(0.5 - REACH));
        assert_eq!(place(1, Some(0)), Some(1.0));
        assert_eq!(place(-1_000_000, Some(50)), Some(0.0));
        assert_eq!(place(5, None), None);
    }

    #[test]
    fn an_error_beyond_the_bar_is_an_arrow() {
        let verdict = (Tone::Bad, "fail".to_owned());
        let row = Deviation {
            name: "p50".into(),
            error_ns: 900,
            tolerance_ns: Some(100),
            verdict,
        };
        let text = row.render().into_string();
        assert!(
            text.contains("polygon") && !text.contains("circle"),
            "{text}"
        );
        assert!(
            text.contains("+900 ns") && text.contains("of ±100 ns"),
            "{text}"
        );
    }
}
