//! The charts of one client's run.

use kvlab_bench_client::report::html::axis::{Axis, Unit};
use kvlab_bench_client::report::html::chart::{Band, Chart, Curve, Look, Place};
use kvlab_bench_client::report::html::units;

use crate::report::series::{OverTime, Percentiles, Point, Series, Stretch, Time};

/// Latency by percentile; nothing where nothing was answered.
pub(super) fn percentiles(series: &Percentiles, id: &str) -> Option<Chart> {
    if series.samples == 0 {
        return None;
    }
    let x = Axis::of_percentiles(series.samples);
    let mut grid: Vec<Place> = series
        .shares
        .iter()
        .map(|share| Place {
            at: x.place(share.one_in()),
            in_table: share.is_usual(),
            label: share.label(),
        })
        .collect();
    grid.push(Place {
        at: 1.0,
        label: format!("largest of {}", units::count(series.samples)),
        in_table: true,
    });
    let has_truth = |time| matches!(time, Time::Timetable | Time::Stamps);
    let open = series.curves.iter().any(|curve| has_truth(curve.time));
    let curves: Vec<Curve> = series
        .curves
        .iter()
        .map(|curve| Curve {
            name: name(curve.time, open).to_owned(),
            look: look(curve.time, open),
            values: curve.values_ns.clone(),
        })
        .collect();
    let values = curves
        .iter()
        .flat_map(|curve| curve.values.iter().flatten());
    Some(Chart {
        id: format!("{id}-percentiles"),
        title: "Latency by percentile".to_owned(),
        caption:
            "Each step to the right is ten times rarer. What the client reports should lie on \
                  the truth."
                .to_owned(),
        y: Axis::of_values(values.copied(), Unit::Time),
        x,
        x_title: "percentile".to_owned(),
        grid,
        curves,
        bands: Vec::new(),
        bands_are: "",
        ranges: Vec::new(),
        ranges_are: "",
    })
}

fn name(time: Time, open: bool) -> &'static str {
    match time {
        Time::Timetable => "truth, by the timetable",
        Time::Stamps => "truth, by the server's stamps",
        Time::Response => "response time",
        Time::Service => "service time",
        Time::Network => "to the kernel's receive stamp",
        Time::Sojourn if open => "server, read to write",
        Time::Sojourn => "truth: server, read to write",
    }
}

fn look(time: Time, open: bool) -> Look {
    match time {
        Time::Timetable | Time::Stamps => Look::Truth,
        Time::Response => Look::First,
        Time::Service if open => Look::Second,
        Time::Service => Look::First,
        Time::Network => Look::Fourth,
        Time::Sojourn if open => Look::Third,
        Time::Sojourn => Look::Truth,
    }
}

/// Latency over time with the server's freezes; nothing where nothing was answered.
pub(super) fn over_time(series: &Series, open: bool, id: &str) -> Option<Chart> {
    let over_time = &series.over_time;
    if over_time.client.iter().all(Option::is_none) {
        return None;
    }
    let which = if open {
        "response time"
    } else {
        "service time"
    };
    let kinds = [
        ("max", Look::TruthOfSecond, Look::Second),
        ("p99", Look::TruthOfThird, Look::Third),
        ("p50", Look::TruthOfFirst, Look::First),
    ];
    let mut curves = Vec::new();
    let tells_p99 = over_time.tells_p99();
    for (kind, below, above) in kinds {
        if kind == "p99" && !tells_p99 {
            continue;
        }
        let value = |point: &Point| match kind {
            "max" => point.max_ns,
            "p99" => point.p99_ns,
            _ => point.p50_ns,
        };
        let values = |points: &[Option<Point>]| {
            points
                .iter()
                .map(|point| point.as_ref().map(value))
                .collect()
        };
        curves.push(Curve {
            name: format!("{kind}, truth"),
            look: below,
            values: values(&over_time.truth),
        });
        curves.push(Curve {
            name: format!("{kind}, client"),
            look: above,
            values: values(&over_time.client),
        });
    }
    let values = curves
        .iter()
        .flat_map(|curve| curve.values.iter().flatten());
    let y = Axis::of_values(values.copied(), Unit::Time);
    let x = Axis::of_time(over_time.length_ns);
    Some(Chart {
        id: format!("{id}-over-time"),
        title: "Latency over time".to_owned(),
        caption: format!(
            "The {which} of the requests that were due in each {}: wide and pale what the server's \
             stamps say, thin what the client saw.{}",
            units::round_time_of(over_time.interval_ns),
            if tells_p99 {
                ""
            } else {
                " An interval has too few requests for its p99."
            }
        ),
        grid: places(over_time, &x),
        x,
        x_title: "time from the begin of the measured part".to_owned(),
        y,
        curves,
        bands: series
            .freezes
            .iter()
            .map(|freeze| band(freeze, over_time))
            .collect(),
        bands_are: "freezes",
        ranges: Vec::new(),
        ranges_are: "",
    })
}

/// The middles of the intervals.
#[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
fn places(over_time: &OverTime, x: &Axis) -> Vec<Place> {
    let interval = over_time.interval_ns;
    (0..over_time.client.len() as u64)
        .map(|index| {
            let begin = index * interval;
            let middle = (begin + interval / 2).min(begin.midpoint(over_time.length_ns));
            Place {
                at: x.place(middle as f64),
                label: units::round_time_of(begin),
                in_table: true,
            }
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
fn band(freeze: &Stretch, over_time: &OverTime) -> Band {
    let place = |ns: u64| ns as f64 / over_time.length_ns.max(1) as f64;
    Band {
        from: place(freeze.from_ns),
        to: place(freeze.to_ns),
    }
}
