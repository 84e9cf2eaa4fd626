//! The page of `kvlab bench --html`.

use std::fmt;
use std::io::{self, Write};

use maud::{Markup, html};

use super::axis::{Axis, Unit};
use super::certificate;
use super::chart::{Chart, Curve, Look, Place, Range};
use super::page::{Tone, badge, facts, page, scrolling, table, tiles};
use super::progress::{Point, Progress};
use super::tail::Share;
use super::units::{count, percent, round_time_of, time};
use crate::record::{CertifiedLatency, ClassTally, CurvePoint, Interval, Latency, Summary};
use crate::report::number::{bytes_per_second, counted, rate};
use crate::report::quantile::QUANTILES;
use crate::report::{Head, Report, Support, all_classes, connections, nanos, notice};
use crate::settings::{Arrivals, Load, PipelineMode};

/// Writes the page at the end of a run.
pub struct Html<W: Write> {
    out: W,
    head: Head,
    progress: Progress,
}

impl<W: Write> Html<W> {
    /// Writes to `out`.
    pub fn new(out: W, head: Head) -> Self {
        let progress = Progress::default();
        Self {
            out,
            head,
            progress,
        }
    }
}

impl<W: Write> Report for Html<W> {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        self.progress.add(interval);
        Ok(())
    }

    fn finish(&mut self, summary: &Summary) -> io::Result<()> {
        let page = render(&self.head, summary, self.progress.points());
        self.out.write_all(page.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> fmt::Debug for Html<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Html").finish_non_exhaustive()
    }
}

fn render(head: &Head, summary: &Summary, points: &[Point]) -> String {
    let notes = notes(head, summary);
    let body = html! {
        header {
            p.kind { "kvlab bench" }
            div.title {
                h1 { (head.target) }
                (badges(summary, &notes))
            }
            p.lead { (lead(head, summary)) }
        }
        main { (sections(head, summary, points, &notes, "")) }
        (footer(head))
    };
    page(&format!("{}: kvlab bench", head.target), &body)
}

/// What a reader must know before trusting the numbers.
pub(super) fn notes(head: &Head, summary: &Summary) -> Vec<String> {
    let notices = summary.notices.iter().map(notice::sentence);
    notices.chain(head.host.warnings(&head.settings)).collect()
}

pub(super) fn badges(summary: &Summary, notes: &[String]) -> Markup {
    html! {
        @if summary.is_saturated() { (badge(Tone::Doubtful, "client saturated")) }
        @if let Some(mark) = connections::mark(summary) { (badge(Tone::Doubtful, &mark)) }
        @if summary.interrupted { (badge(Tone::Doubtful, "interrupted")) }
        @if !notes.is_empty() {
            (badge(Tone::Doubtful, &counted(notes.len() as u64, "note")))
        }
    }
}

pub(super) fn footer(head: &Head) -> Markup {
    html! {
        footer { p { "Made by " (head.program) ". docs/metrics.md says what each number means." } }
    }
}

/// The panels of a run; the names of its charts begin with `id`.
pub(super) fn sections(
    head: &Head,
    summary: &Summary,
    points: &[Point],
    notes: &[String],
    id: &str,
) -> Markup {
    let total = all_classes(&summary.tally);
    let panel = |chart| panel(chart, id);
    html! {
        @if !notes.is_empty() {
            section.panel {
                h3 { "Notes" }
                ul.notices { @for note in notes { li { (note) } } }
            }
        }
        section.panel { (headline(summary, &total)) }
        div.pair {
            (panel(percentiles(summary, &total)))
            (panel(over_time(summary, points)))
        }
        section.panel {
            h3 { "Latency" }
            (quantiles(summary, &total))
        }
        @if let Some(certificate) = &summary.certificate {
            section.panel { (certificate::section(certificate)) }
        }
        section.panel {
            h3 { "How the requests ended" }
            (outcomes(summary, &total))
        }
        (panel(rates(points)))
        section.panel {
            h3 { "The client" }
            (client(summary))
        }
        section.panel {
            h3 { "Connections" }
            (connections_part(summary))
        }
        (panel(set_up(summary)))
        section.panel {
            h3 { "Environment" }
            (environment(head, summary))
        }
    }
}

fn panel(chart: Option<Chart>, id: &str) -> Markup {
    let chart = chart.map(|chart| Chart {
        id: format!("{id}{}", chart.id),
        ..chart
    });
    html! { @if let Some(chart) = chart { section.panel { (chart) } } }
}

pub(super) fn lead(head: &Head, summary: &Summary) -> String {
    let model = match summary.load {
        Load::Closed => "closed loop".to_owned(),
        Load::Open { rate, arrivals } => {
            let law = match arrivals {
                Arrivals::Uniform => "uniform",
                Arrivals::Poisson => "Poisson",
            };
            format!("open loop, {rate} requests due per second, {law} arrivals")
        }
    };
    let mode = match summary.pipeline.mode {
        PipelineMode::Window => "window",
        PipelineMode::Batch => "batch",
    };
    format!(
        "{model}; {}, {}, pipeline {} ({mode}); {} measured",
        counted(summary.connections_wanted, "connection"),
        counted(u64::from(head.settings.threads.get()), "thread"),
        summary.pipeline.depth,
        time(nanos(summary.elapsed())),
    )
}

/// The kinds of latency that the run has, the one a reader means first.
fn kinds<'a>(summary: &Summary, class: &'a ClassTally) -> Vec<(&'static str, Look, &'a Latency)> {
    let mut kinds = Vec::new();
    if summary.load.is_open() {
        kinds.push(("response time", Look::First, &class.response));
        kinds.push(("service time", Look::Second, &class.service));
    } else {
        kinds.push(("service time", Look::First, &class.service));
    }
    if !class.network.is_empty() {
        kinds.push(("to the kernel's receive stamp", Look::Third, &class.network));
    }
    kinds
}

/// What a reader looks for first.
fn headline(summary: &Summary, total: &ClassTally) -> Markup {
    let Some((name, _, latency)) = kinds(summary, total).into_iter().next() else {
        return html! {};
    };
    let mut list: Vec<(String, Markup)> = QUANTILES
        .iter()
        .take(4)
        .map(|quantile| {
            let value = supported(quantile.of(latency));
            let bound = bound(summary, quantile.title);
            let value = html! {
                (value)
                @if let Some(bound) = bound { small { (bound) } }
            };
            (format!("{} {name}", quantile.title), value)
        })
        .collect();
    let largest = if latency.is_empty() {
        "n/a".to_owned()
    } else {
        time(latency.max_ns())
    };
    list.push(("largest".to_owned(), html! { (largest) }));
    let outcomes = &total.outcomes;
    list.push((
        "answered".to_owned(),
        html! {
            (format!("{:.0}", summary.rate())) "/s"
            small { (count(outcomes.answered())) " of " (count(summary.due)) }
        },
    ));
    list.push(("failed".to_owned(), html! { (count(outcomes.failed())) }));
    tiles(list)
}

/// What a certificate says of a quantile of the latency that a reader means first.
fn bound(summary: &Summary, title: &str) -> Option<String> {
    let certificate = summary.certificate.as_ref()?;
    let quantile = certificate
        .quantiles
        .iter()
        .find(|quantile| quantile.latency == certified_first(summary) && quantile.title == title)?;
    let bound = quantile.bound.as_ref().ok()?;
    Some(format!(
        "certified {} ±{}",
        time(bound.server_ns),
        time(bound.half_width_ns)
    ))
}

/// `~` marks a weak quantile, `n/a` one without support.
pub(super) fn supported(support: Support) -> String {
    match support {
        Support::Firm(ns) => time(ns),
        Support::Weak(ns) => format!("~{}", time(ns)),
        Support::None => "n/a".to_owned(),
    }
}

fn percentiles(summary: &Summary, total: &ClassTally) -> Option<Chart> {
    let kinds = kinds(summary, total);
    let samples = kinds.iter().map(|(_, _, latency)| latency.count()).max()?;
    if samples == 0 {
        return None;
    }
    let shares = Share::up_to(samples);
    let x = Axis::of_percentiles(samples);
    let mut grid: Vec<Place> = shares
        .iter()
        .map(|share| Place {
            at: x.place(share.one_in()),
            label: share.label(),
            in_table: share.is_usual(),
        })
        .collect();
    grid.push(Place {
        at: 1.0,
        label: format!("largest of {}", count(samples)),
        in_table: true,
    });
    let curves: Vec<Curve> = kinds
        .into_iter()
        .map(|(name, look, latency)| {
            let at = |share: &Share| {
                share.rank(latency.count())?;
                Some(latency.quantile_ns(share.q()))
            };
            let largest = (latency.count() == samples).then(|| latency.max_ns());
            Curve {
                name: name.to_owned(),
                look,
                values: shares.iter().map(at).chain([largest]).collect(),
            }
        })
        .collect();
    let ranges = ranges(summary, &x);
    let values = curves
        .iter()
        .flat_map(|curve| curve.values.iter().flatten().copied())
        .chain(ranges.iter().flat_map(|range| [range.low, range.high]));
    Some(Chart {
        id: "percentiles".to_owned(),
        title: "Latency by percentile".to_owned(),
        caption: "Each step to the right is ten times rarer.".to_owned(),
        y: Axis::of_values(values, Unit::Time),
        x,
        x_title: "percentile".to_owned(),
        grid,
        curves,
        bands: Vec::new(),
        bands_are: "",
        ranges,
        ranges_are: "server's own time, certified",
    })
}

/// The bounds of the latency that a reader means first.
fn ranges(summary: &Summary, x: &Axis) -> Vec<Range> {
    let Some(certificate) = &summary.certificate else {
        return Vec::new();
    };
    certificate
        .quantiles
        .iter()
        .filter(|quantile| quantile.latency == certified_first(summary))
        .filter_map(|quantile| {
            let bound = quantile.bound.as_ref().ok()?;
            Some(Range {
                at: x.place(1.0 / (1.0 - quantile.q)),
                low: bound.low_ns(),
                high: bound.high_ns(),
            })
        })
        .collect()
}

fn certified_first(summary: &Summary) -> CertifiedLatency {
    if summary.load.is_open() {
        CertifiedLatency::Response
    } else {
        CertifiedLatency::Service
    }
}

fn over_time(summary: &Summary, points: &[Point]) -> Option<Chart> {
    if points.iter().all(|point| point.latency_ns.is_none()) {
        return None;
    }
    let which = if summary.load.is_open() {
        "response time"
    } else {
        "service time"
    };
    let curve = |name: &str, look, place: usize| Curve {
        name: name.to_owned(),
        look,
        values: points
            .iter()
            .map(|point| point.latency_ns?.get(place).copied())
            .collect(),
    };
    let curves = vec![
        curve("max", Look::Second, 2),
        curve("p99", Look::Third, 1),
        curve("p50", Look::First, 0),
    ];
    let values = curves
        .iter()
        .flat_map(|curve| curve.values.iter().flatten());
    let x = time_axis(points);
    Some(Chart {
        id: "over-time".to_owned(),
        title: "Latency over time".to_owned(),
        caption: format!("The {which} of the requests that ended in each interval."),
        y: Axis::of_values(values.copied(), Unit::Time),
        grid: places(points, &x),
        x,
        x_title: "time from the begin of the measured part".to_owned(),
        curves,
        bands: Vec::new(),
        bands_are: "",
        ranges: Vec::new(),
        ranges_are: "",
    })
}

fn rates(points: &[Point]) -> Option<Chart> {
    let per_second = |of: fn(&Point) -> u64| -> Vec<Option<u64>> {
        let rate = |point: &Point| {
            let length = point.end_ns.saturating_sub(point.begin_ns);
            let per_second = u128::from(of(point)) * 1_000_000_000;
            u64::try_from(per_second.checked_div(u128::from(length))?).ok()
        };
        points.iter().map(rate).collect()
    };
    let answered = per_second(|point| point.answered);
    if answered.iter().all(Option::is_none) {
        return None;
    }
    let mut curves = vec![Curve {
        name: "answered".to_owned(),
        look: Look::First,
        values: answered,
    }];
    if points.iter().any(|point| point.failed > 0) {
        curves.push(Curve {
            name: "failed".to_owned(),
            look: Look::Second,
            values: per_second(|point| point.failed),
        });
    }
    let values = curves
        .iter()
        .flat_map(|curve| curve.values.iter().flatten());
    let x = time_axis(points);
    Some(Chart {
        id: "rate".to_owned(),
        title: "Requests per second".to_owned(),
        caption: "Requests that ended in each interval, per second.".to_owned(),
        y: Axis::of_values(values.copied(), Unit::Rate),
        grid: places(points, &x),
        x,
        x_title: "time from the begin of the measured part".to_owned(),
        curves,
        bands: Vec::new(),
        bands_are: "",
        ranges: Vec::new(),
        ranges_are: "",
    })
}

fn connections_part(summary: &Summary) -> Markup {
    let list = connections::facts(summary).into_iter();
    facts(list.map(|(name, value)| (name, html! { (value) })))
}

/// Connections over time while they were made, where that took a while.
fn set_up(summary: &Summary) -> Option<Chart> {
    let curve = &summary.setup.curve;
    let length = nanos(curve.last()?.at);
    if length < SHOWN_SET_UP_NS {
        return None;
    }
    let values = |of: fn(&CurvePoint) -> u64| curve.iter().map(|point| Some(of(point))).collect();
    let curves = vec![
        Curve {
            name: "up".to_owned(),
            look: Look::First,
            values: values(|point| point.up),
        },
        Curve {
            name: "connecting".to_owned(),
            look: Look::Second,
            values: values(|point| point.connecting),
        },
    ];
    let most = curve.iter().map(|point| point.up.max(point.connecting));
    let x = Axis::of_time(length);
    let place = |point: &CurvePoint| Place {
        at: x.place(point.at.as_secs_f64() * 1e9),
        label: time(nanos(point.at)),
        in_table: true,
    };
    Some(Chart {
        id: "set-up".to_owned(),
        title: "Connections during the set-up".to_owned(),
        caption: "How many were up, and how many were being made.".to_owned(),
        y: Axis::of_values(most, Unit::Rate),
        grid: curve.iter().map(place).collect(),
        x,
        x_title: "time from the begin of the set-up".to_owned(),
        curves,
        bands: Vec::new(),
        bands_are: "",
        ranges: Vec::new(),
        ranges_are: "",
    })
}

/// A shorter set-up needs no chart.
const SHOWN_SET_UP_NS: u64 = 50_000_000;

fn time_axis(points: &[Point]) -> Axis {
    Axis::of_time(points.last().map_or(1, |point| point.end_ns))
}

/// The middles of the intervals.
#[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
fn places(points: &[Point], x: &Axis) -> Vec<Place> {
    points
        .iter()
        .map(|point| Place {
            at: x.place(point.begin_ns.midpoint(point.end_ns) as f64),
            label: round_time_of(point.begin_ns),
            in_table: true,
        })
        .collect()
}

/// Every class with its kinds of latency.
fn quantiles(summary: &Summary, total: &ClassTally) -> Markup {
    let heads = ["class", "samples", "mean"]
        .into_iter()
        .chain(QUANTILES.iter().map(|quantile| quantile.title))
        .chain(["largest"]);
    let mut rows = Vec::new();
    for (name, class) in classes(summary, total) {
        for (kind, _, latency) in kinds(summary, class) {
            let mut row = vec![
                html! { (name) span.of { (kind) } },
                html! { (count(latency.count())) },
            ];
            let none = latency.is_empty();
            row.push(html! { @if none { "n/a" } @else { (mean(latency)) } });
            for quantile in QUANTILES {
                row.push(html! { (supported(quantile.of(latency))) });
            }
            row.push(html! { @if none { "n/a" } @else { (time(latency.max_ns())) } });
            rows.push(row);
        }
    }
    html! {
        (scrolling("Latency", &table("Latency", heads, rows)))
        p.checks {
            "~ marks a quantile with fewer than 100 samples beyond it, n/a one with fewer than 10. "
            @if summary.load.is_open() {
                "Response time counts from the intended start, service time from the send."
            } @else {
                "Service time counts from the send."
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the mean of latencies, rounded to the nanosecond"
)]
fn mean(latency: &Latency) -> String {
    time(latency.mean_ns().round() as u64)
}

/// The classes by name; all together at the end where there is more than one.
fn classes<'a>(summary: &'a Summary, total: &'a ClassTally) -> Vec<(&'a str, &'a ClassTally)> {
    let names = summary.classes.iter().map(String::as_str);
    let mut classes: Vec<_> = names.zip(&summary.tally.classes).collect();
    if classes.len() != 1 {
        classes.push(("total", total));
    }
    classes
}

fn outcomes(summary: &Summary, total: &ClassTally) -> Markup {
    let heads = [
        "class",
        "due",
        "answered/s",
        "hits",
        "misses",
        "errors",
        "timeouts",
        "lost",
        "not sent",
    ];
    let elapsed = summary.elapsed();
    let rows = classes(summary, total).into_iter().map(|(name, class)| {
        let outcomes = &class.outcomes;
        let mut row = vec![
            html! { (name) },
            html! { (count(outcomes.total())) },
            html! { (format!("{:.1}", rate(outcomes.answered(), elapsed))) },
        ];
        let counts = [
            outcomes.hits,
            outcomes.misses,
            outcomes.errors,
            outcomes.timeouts,
            outcomes.lost,
            outcomes.not_sent,
        ];
        row.extend(counts.map(|number| html! { (count(number)) }));
        row
    });
    let name = "How the requests ended";
    html! {
        (scrolling(name, &table(name, heads, rows)))
        @if total.outcomes.total() != summary.due {
            p.checks { (count(summary.due)) " were due: not all are accounted for." }
        }
        @if !total.errors.is_empty() {
            p.checks {
                "Errors: "
                @for (place, (kind, number)) in total.errors.iter().enumerate() {
                    @if place > 0 { ", " }
                    (kind.to_string()) " " (count(*number))
                }
                "."
            }
        }
    }
}

/// What says how far the client itself can be trusted.
fn client(summary: &Summary) -> Markup {
    let tally = &summary.tally;
    let elapsed = summary.elapsed();
    let spread = |latency: &Latency| {
        let parts = QUANTILES.iter().take(3);
        let parts: Vec<String> = parts
            .map(|quantile| format!("{} {}", quantile.title, supported(quantile.of(latency))))
            .collect();
        format!("{}, largest {}", parts.join(", "), time(latency.max_ns()))
    };
    let mut list = Vec::new();
    if summary.load.is_open() {
        list.push(("schedule lag", html! { (spread(&tally.lag)) }));
        list.push((
            "lateness, its own part",
            html! { (spread(&tally.lateness)) },
        ));
    }
    if !tally.read_delay.is_empty() {
        list.push((
            "from the kernel's stamp to the read",
            html! { (spread(&tally.read_delay)) },
        ));
    }
    if !tally.turns.is_empty() {
        list.push((
            "from one look at the sockets to the next",
            html! { (spread(&tally.turns)) },
        ));
    }
    let shares: Vec<String> = summary
        .threads
        .iter()
        .filter_map(|thread| thread.cpu_share.map(percent))
        .collect();
    if !shares.is_empty() {
        list.push((
            "processor time of each thread",
            html! { (shares.join(", ")) },
        ));
    }
    let bytes = |bytes| bytes_per_second(rate(bytes, elapsed));
    list.push((
        "traffic",
        html! { (bytes(tally.bytes_out)) " out, " (bytes(tally.bytes_in)) " in" },
    ));
    facts(list)
}

fn environment(head: &Head, summary: &Summary) -> Markup {
    let host = &head.host;
    let mut list = vec![("cores", html! { (host.cores) })];
    let named = [
        ("processor", &host.processor),
        ("kernel", &host.kernel),
        ("clock source", &host.clock_source),
        ("frequency governor", &host.governor),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            list.push((name, html! { (value) }));
        }
    }
    if let Some(load) = host.load_1_minute {
        list.push(("load before the run", html! { (load) }));
    }
    list.push(("seed", html! { (head.settings.seed) }));
    let hash = format!("{:016x}", summary.sequence_hash);
    list.push(("hash of the operations", html! { code { (hash) } }));
    facts(list)
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::*;
    use crate::record::{Bound, Certificate, CertifiedQuantile, Tally};

    fn finished(head: Head, summary: &Summary) -> String {
        let mut out = Vec::new();
        let mut report = Html::new(&mut out, head);
        for interval in sample::intervals() {
            report.interval(&interval).unwrap();
        }
        report.finish(summary).unwrap();
        drop(report);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn open_loop_has_both_times_and_all_charts() {
        let text = finished(sample::head(), &sample::open_loop());
        for id in ["percentiles", "over-time", "rate"] {
            assert!(
                text.contains(&format!("<figure class=\"chart\" id=\"{id}\">")),
                "{id}"
            );
        }
        // The classes and the total, each with response and service time.
        assert_eq!(text.matches("<th scope=\"row\">GET<").count(), 3, "{text}");
        // The longest 100 of 20 000 take 2^22 - 1 ns; 20 samples beyond p99.9 support it weakly.
        assert!(
            text.contains("<dt>p99.9 response time</dt><dd>~4.194 ms</dd>"),
            "{text}"
        );
        assert!(text.contains("<dt>largest</dt><dd>4.194 ms</dd>"), "{text}");
        assert!(text.contains("thread 1 used 75.0 % of a core"), "{text}");
    }

    #[test]
    fn a_certificate_stands_beside_its_quantiles_and_in_the_chart() {
        let quantile = |q, title, bound| CertifiedQuantile {
            latency: CertifiedLatency::Response,
            q,
            title,
            reported_ns: sample::B,
            bound,
        };
        let bound = Bound {
            server_ns: 1_000_000,
            half_width_ns: 60_000,
        };
        let mut summary = sample::open_loop();
        summary.certificate = Some(Certificate {
            quantiles: vec![
                quantile(0.5, "p50", Ok(bound)),
                quantile(0.999, "p99.9", Err("too few samples".to_owned())),
            ],
            refused: None,
            runs: Vec::new(),
        });
        let text = finished(sample::head(), &summary);
        assert!(text.contains("certified 1.000 ms ±60.0 µs"), "{text}");
        assert_eq!(text.matches("<h3>Certificate</h3>").count(), 1, "{text}");
        let ranges = text.split("<g class=\"ranges\">").nth(1).unwrap();
        let ranges = ranges.split("</g>").next().unwrap();
        assert_eq!(ranges.matches("<svg").count(), 1, "{ranges}");

        summary.certificate = Some(Certificate {
            refused: Some("the machine was too noisy".to_owned()),
            ..Certificate::default()
        });
        let text = finished(sample::head(), &summary);
        assert!(text.contains("the machine was too noisy"), "{text}");
    }

    #[test]
    fn closed_loop_has_no_response_time() {
        let text = finished(sample::closed_head(), &sample::closed_loop());
        assert!(!text.contains("response time"), "{text}");
        assert!(text.contains("interrupted"), "{text}");
    }

    #[test]
    fn a_run_without_a_single_answer_has_a_page_without_curves() {
        let mut summary = sample::closed_loop();
        summary.tally = Tally::new(1);
        (summary.first, summary.last, summary.due) = (None, None, 0);
        let mut out = Vec::new();
        Html::new(&mut out, sample::closed_head())
            .finish(&summary)
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains("<figure"), "{text}");
        assert!(text.contains("<td>n/a</td>"), "{text}");
    }
}
