//! Charts: curves over a common grid of places, as inline SVG that needs no script.
//!
//! The SVG has no fixed width. Places along the x axis are percentages, and the curves are drawn in
//! a nested picture that is stretched while its strokes are not, so that text and lines keep their
//! size from a telephone to a wide screen. A table with the same numbers stands below each chart;
//! the script adds a read-out under the pointer or, with the arrow keys, under the focus.

use maud::{Markup, PreEscaped, Render, html};
use serde_json::json;

use super::axis::{Axis, Law, Tick, Unit};
use super::page::{scrolling, table};
use super::units::{round_rate, time};

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Name in the page; no other element has it.
    pub id: String,
    /// Title.
    pub title: String,
    /// What it shows, in a sentence or two.
    pub caption: String,
    /// The x axis.
    pub x: Axis,
    /// What it counts.
    pub x_title: String,
    /// The y axis.
    pub y: Axis,
    /// The common places of all curves.
    pub grid: Vec<Place>,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Stretches of the x axis that are marked.
    pub bands: Vec<Band>,
    /// What the marked stretches are.
    pub bands_are: &'static str,
    /// Values that are known within bounds.
    pub ranges: Vec<Range>,
    /// What they are.
    pub ranges_are: &'static str,
}

/// A value that is known within bounds, drawn as a bar from end to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Where it lies along the x axis, from 0 to 1.
    pub at: f64,
    /// The least it may be.
    pub low: u64,
    /// The most it may be.
    pub high: u64,
}

/// One of the places along the x axis for which the curves have values.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Where it lies, from 0 to 1.
    pub at: f64,
    /// Its name.
    pub label: String,
    /// Whether the table below the chart has it.
    pub in_table: bool,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// How it is drawn.
    pub look: Look,
    /// Its values, one for each place of the grid.
    pub values: Vec<Option<u64>>,
}

/// How a curve is drawn: colour, dashes and width differ, so that no difference rests on colour
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Wide and pale, below all others: what truly happened.
    Truth,
    /// The first of the others, a full line.
    First,
    /// The second, in long dashes.
    Second,
    /// The third, dotted.
    Third,
    /// The fourth, dashes and dots.
    Fourth,
    /// The truth behind [`Look::First`], where each curve has its own.
    TruthOfFirst,
    /// The truth behind [`Look::Second`].
    TruthOfSecond,
    /// The truth behind [`Look::Third`].
    TruthOfThird,
}

/// A marked stretch of the x axis, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Begin.
    pub from: f64,
    /// End.
    pub to: f64,
}

impl Look {
    /// The class of the style sheet.
    fn class(self) -> &'static str {
        match self {
            Self::Truth => "truth",
            Self::First => "first",
            Self::Second => "second",
            Self::Third => "third",
            Self::Fourth => "fourth",
            Self::TruthOfFirst => "truth first",
            Self::TruthOfSecond => "truth second",
            Self::TruthOfThird => "truth third",
        }
    }

    fn is_truth(self) -> bool {
        matches!(
            self,
            Self::Truth | Self::TruthOfFirst | Self::TruthOfSecond | Self::TruthOfThird
        )
    }
}

/// Height of the field in pixels.
const HEIGHT: f64 = 260.0;
/// Room above it.
const ABOVE: f64 = 10.0;
/// Room below it for the marks and the title of the axis.
const BELOW: f64 = 44.0;
/// Units across the stretched picture of the curves.
const WIDTH: f64 = 10_000.0;

impl Render for Chart {
    fn render(&self) -> Markup {
        let (title, about) = (format!("{}-title", self.id), format!("{}-about", self.id));
        html! {
            figure.chart id=(self.id) {
                figcaption {
                    h4 { (self.title) }
                    p { (self.caption) }
                }
                (self.legend())
                div.plot {
                    svg.field role="img" aria-labelledby={ (title) " " (about) }
                        height=(pixels(ABOVE + HEIGHT + BELOW)) {
                        title id=(title) { (self.title) }
                        desc id=(about) { (self.caption) " " (self.told()) }
                        svg y=(pixels(ABOVE)) width="100%" height=(pixels(HEIGHT)) overflow="visible" {
                            (self.marks())
                            (self.drawn_bands())
                            (self.lines())
                            (self.lone_values())
                            (self.drawn_ranges())
                            line.frame x1="0" x2="100%" y1=(pixels(HEIGHT)) y2=(pixels(HEIGHT)) {}
                            text.axis x="50%" y=(pixels(HEIGHT + 38.0)) text-anchor="middle" {
                                (self.x_title)
                            }
                            g.pointer {}
                        }
                    }
                    script type="application/json" { (self.data()) }
                }
                p.readout {}
                details.numbers {
                    summary { "The numbers as a table" }
                    (self.numbers())
                }
            }
        }
    }
}

impl Chart {
    fn legend(&self) -> Markup {
        html! {
            ul.legend {
                @for curve in &self.curves {
                    li {
                        svg width="30" height="10" aria-hidden="true" {
                            line.curve.(curve.look.class()) x1="1" x2="29" y1="5" y2="5" {}
                        }
                        (curve.name)
                    }
                }
                @if !self.ranges.is_empty() {
                    li {
                        svg.ranges width="30" height="12" aria-hidden="true" {
                            line x1="15" x2="15" y1="1" y2="11" {}
                            line x1="9" x2="21" y1="1" y2="1" {}
                            line x1="9" x2="21" y1="11" y2="11" {}
                        }
                        (self.ranges_are)
                    }
                }
                @if !self.bands.is_empty() {
                    li {
                        svg width="30" height="12" aria-hidden="true" {
                            rect.band x="4" y="0" width="22" height="12" {}
                        }
                        (self.bands_are)
                    }
                }
            }
        }
    }

    fn marks(&self) -> Markup {
        html! {
            g.marks aria-hidden="true" {
                @for tick in self.y.ticks() {
                    @let y = pixels(HEIGHT * (1.0 - tick.place));
                    line.(weight(tick)) x1="0" x2="100%" y1=(y) y2=(y) {}
                    @if !tick.minor {
                        text x="-8" y=(y) dy="0.32em" text-anchor="end" { (tick.label) }
                    }
                }
                @for tick in self.x.ticks() {
                    @let x = percent(tick.place);
                    line.(weight(tick)) x1=(x) x2=(x) y1="0" y2=(pixels(HEIGHT)) {}
                    text.(weight(tick)) x=(x) y=(pixels(HEIGHT + 18.0)) text-anchor=(anchor(tick)) {
                        (tick.label)
                    }
                }
            }
        }
    }

    fn drawn_bands(&self) -> Markup {
        html! {
            g.bands {
                @for band in &self.bands {
                    rect.band x=(percent(band.from)) y="0" width=(percent(band.to - band.from))
                        height=(pixels(HEIGHT)) {}
                }
            }
        }
    }

    /// Values without a neighbour, through which no line goes.
    fn lone_values(&self) -> Markup {
        let is_lone = |curve: &Curve, index: usize| {
            let before = index
                .checked_sub(1)
                .and_then(|index| curve.values.get(index));
            let after = curve.values.get(index + 1);
            before.copied().flatten().is_none() && after.copied().flatten().is_none()
        };
        html! {
            g.lone {
                @for curve in &self.curves {
                    @for (index, (place, value)) in self.grid.iter().zip(&curve.values).enumerate() {
                        @if let Some(value) = value.filter(|_| is_lone(curve, index)) {
                            @let y = HEIGHT * (1.0 - self.y.place(float(value)));
                            circle.(curve.look.class()) cx=(percent(place.at)) cy=(pixels(y)) r="3" {}
                        }
                    }
                }
            }
        }
    }

    /// Bars with caps; one that is too short to be seen is a line across.
    fn drawn_ranges(&self) -> Markup {
        let y = |value| pixels(HEIGHT * (1.0 - self.y.place(float(value))));
        html! {
            g.ranges {
                @for range in &self.ranges {
                    svg x=(percent(range.at)) overflow="visible" {
                        line x1="0" x2="0" y1=(y(range.low)) y2=(y(range.high)) {}
                        line x1="-6" x2="6" y1=(y(range.low)) y2=(y(range.low)) {}
                        line x1="-6" x2="6" y1=(y(range.high)) y2=(y(range.high)) {}
                    }
                }
            }
        }
    }

    /// Truth first, so that the others lie above it.
    fn lines(&self) -> Markup {
        let (below, above): (Vec<_>, Vec<_>) =
            self.curves.iter().partition(|curve| curve.look.is_truth());
        html! {
            svg.curves width="100%" height=(pixels(HEIGHT)) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) }
                preserveAspectRatio="none" {
                @for curve in below.into_iter().chain(above) {
                    path.curve.(curve.look.class()) d=(self.path(curve))
                        vector-effect="non-scaling-stroke" {}
                }
            }
        }
    }

    /// A line through the values, lifted where there are none.
    fn path(&self, curve: &Curve) -> String {
        let mut path = String::new();
        let mut last = None;
        let mut pen_down = false;
        for (place, value) in self.grid.iter().zip(&curve.values) {
            let Some(value) = value else {
                pen_down = false;
                continue;
            };
            let point = (
                format!("{:.0}", place.at * WIDTH),
                pixels(HEIGHT * (1.0 - self.y.place(float(*value)))),
            );
            if pen_down && last.as_ref() == Some(&point) {
                continue;
            }
            path.push(if pen_down { 'L' } else { 'M' });
            path += &format!("{} {}", point.0, point.1);
            pen_down = true;
            last = Some(point);
        }
        path
    }

    /// The chart in words, for those who hear it.
    fn told(&self) -> String {
        let ends = self.curves.iter().filter_map(|curve| {
            let least = curve.values.iter().flatten().min()?;
            let most = curve.values.iter().flatten().max()?;
            let (least, most) = (self.value(*least), self.value(*most));
            Some(format!("{}: from {least} to {most}.", curve.name))
        });
        let mut text = ends.collect::<Vec<_>>().join(" ");
        if !self.bands.is_empty() {
            text += &format!(" {} {} are marked.", self.bands.len(), self.bands_are);
        }
        text
    }

    fn numbers(&self) -> Markup {
        let heads = std::iter::once(self.x_title.clone())
            .chain(self.curves.iter().map(|curve| curve.name.clone()));
        let rows = self
            .grid
            .iter()
            .enumerate()
            .filter(|(_, place)| place.in_table);
        let rows = rows.map(|(index, place)| {
            let mut row = vec![html! { (place.label) }];
            for curve in &self.curves {
                let value = curve.values.get(index).copied().flatten();
                row.push(html! {
                    @match value {
                        Some(value) => (self.value(value)),
                        None => "\u{2013}",
                    }
                });
            }
            row
        });
        scrolling(&self.title, &table(&self.title, heads, rows))
    }

    fn value(&self, value: u64) -> String {
        match self.y.facts().3 {
            Unit::Time => time(value),
            Unit::Rate => round_rate(float(value)),
        }
    }

    /// What the script needs. `<` is written as an escape, so that no name ends the element.
    fn data(&self) -> PreEscaped<String> {
        let (law, low, high, unit) = self.y.facts();
        let curves: Vec<_> = self
            .curves
            .iter()
            .map(|curve| {
                json!({"name": curve.name, "look": curve.look.class(), "values": curve.values})
            })
            .collect();
        let places = self.grid.iter().map(|place| (place.at * WIDTH).round());
        let data = json!({
            "height": HEIGHT,
            "log": law == Law::Log,
            "low": low,
            "high": high,
            "unit": match unit { Unit::Time => "time", Unit::Rate => "rate" },
            "places": places.collect::<Vec<_>>(),
            "labels": self.grid.iter().map(|place| place.label.as_str()).collect::<Vec<_>>(),
            "curves": curves,
        });
        PreEscaped(data.to_string().replace('<', "\\u003c"))
    }
}

fn weight(tick: &Tick) -> &'static str {
    if tick.minor { "minor" } else { "major" }
}

/// Marks at the right end end there, so that nothing is cut off.
fn anchor(tick: &Tick) -> &'static str {
    if tick.place > 0.97 { "end" } else { "middle" }
}

/// Pixels with one digit behind the point.
fn pixels(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

fn percent(place: f64) -> String {
    format!("{:.3}%", place * 100.0)
}

#[expect(clippy::cast_precision_loss, reason = "a place on a drawing")]
fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let values = vec![Some(1_000_000), Some(2_000_000), None, Some(1_000_000)];
        Chart {
            id: "over-time".to_owned(),
            title: "Latency </script> over time".to_owned(),
            caption: "Each interval.".to_owned(),
            x: Axis::of_time(4_000_000_000),
            x_title: "time".to_owned(),
            y: Axis::of_values([2_000_000], Unit::Time),
            grid: (0..4_u32)
                .map(|index| Place {
                    at: f64::from(index) / 4.0,
                    label: format!("{index} s"),
                    in_table: index != 1,
                })
                .collect(),
            curves: vec![
                Curve {
                    name: "max".to_owned(),
                    look: Look::First,
                    values,
                },
                Curve {
                    name: "truth".to_owned(),
                    look: Look::Truth,
                    values: vec![None; 4],
                },
            ],
            bands: vec![Band {
                from: 0.25,
                to: 0.5,
            }],
            bands_are: "freezes",
            ranges: vec![Range {
                at: 0.5,
                low: 500_000,
                high: 1_000_000,
            }],
            ranges_are: "certified",
        }
    }

    #[test]
    fn curve_is_lifted_where_it_has_no_value() {
        let chart = chart();
        // The axis goes from 0 to 2.5 ms over 260 pixels.
        assert_eq!(chart.path(&chart.curves[0]), "M0 156L2500 52M7500 156");
        assert_eq!(chart.path(&chart.curves[1]), "");
    }

    #[test]
    fn a_value_without_a_neighbour_is_a_dot() {
        let text = chart().lone_values().into_string();
        assert_eq!(text.matches("<circle").count(), 1, "{text}");
        assert!(
            text.contains("class=\"first\" cx=\"75.000%\" cy=\"156\""),
            "{text}"
        );
    }

    #[test]
    fn truth_lies_below_and_bands_are_drawn() {
        let text = chart().render().into_string();
        let truth = text.find("class=\"curve truth\" d").unwrap();
        let first = text.find("class=\"curve first\" d").unwrap();
        assert!(truth < first, "{text}");
        assert!(
            text.contains("x=\"25.000%\" y=\"0\" width=\"25.000%\""),
            "{text}"
        );
    }

    #[test]
    fn a_range_is_a_bar_with_two_caps() {
        let text = chart().drawn_ranges().into_string();
        assert!(text.contains("x=\"50.000%\""), "{text}");
        assert!(text.contains("y1=\"208\" y2=\"156\""), "{text}");
        assert_eq!(text.matches("<line").count(), 3, "{text}");
    }

    #[test]
    fn names_cannot_end_the_data() {
        let text = chart().render().into_string();
        assert_eq!(text.matches("</script>").count(), 1, "{text}");
    }

    #[test]
    fn table_has_the_chosen_places() {
        let text = chart().numbers().into_string();
        assert_eq!(text.matches("<tr>").count(), 4, "{text}");
        assert!(text.contains("1.000 ms"), "{text}");
    }
}
