//! The tables of one client: quantiles, what became of the requests, how the machine carried it.

use kvlab_bench_client::report::html::page::{Tone, badge, facts, scrolling, table};
use kvlab_bench_client::report::html::units::{count, difference, percent, time};
use maud::{Markup, html};

use super::verdict;
use crate::check::{
    AspectRow, Figure, FigureKind, QuantileRow, Score, Spread, TruthSource, WarmUp,
};
use crate::report::PartReport;
use crate::report::scores::amount;
use crate::runner::Tier;
use crate::verdict::Verdict;

/// One figure, quantile by quantile.
pub(super) fn figure(figure: &Figure, tier: Tier) -> Markup {
    let (name, truth) = match (figure.figure, figure.truth) {
        (FigureKind::Service, _) => ("Service time, from the send", "true sojourn"),
        (FigureKind::Response, TruthSource::Timetable) => (
            "Response time, from the intended moment",
            "true, by the timetable",
        ),
        (FigureKind::Response, _) => (
            "Response time, from the intended moment",
            "true, by the stamps",
        ),
        (FigureKind::Network, _) => (
            "Network time, from the send to the kernel's stamp",
            "true sojourn",
        ),
    };
    let error = match (figure.figure, tier) {
        (FigureKind::Service, Tier::Real) => "The error is reported \u{2212} true \u{2212} floor.",
        (FigureKind::Service, Tier::Virtual { .. }) => {
            "The error is reported \u{2212} true \u{2212} network."
        }
        (FigureKind::Response, Tier::Real) => {
            "The error is reported \u{2212} true, \u{2212} floor outside of a queue or freeze."
        }
        (FigureKind::Response | FigureKind::Network, _) => "The error is reported \u{2212} true.",
    };
    let heads = [
        "quantile",
        "injected",
        truth,
        "reported",
        "95 % interval",
        "error",
        "tolerance",
        "verdict",
    ];
    html! {
        section.panel {
            h3 { (name) }
            p.checks { (count(figure.samples)) " requests. " (error) }
            (scrolling(name, &table(name, heads, figure.quantiles.iter().map(cells).chain(figure.aspects.iter().map(aspect_cells)))))
        }
    }
}

fn cells(row: &QuantileRow) -> Vec<Markup> {
    vec![
        html! { (row.quantile) },
        html! { (time(row.injected_ns)) },
        html! { (time(row.true_ns)) },
        html! { (time(row.reported_ns)) },
        interval(Some(row.interval_ns)),
        html! { (difference(row.error_ns)) },
        tolerance(row.tolerance_ns),
        judged(row.verdict, row.reason.as_deref()),
    ]
}

fn aspect_cells(row: &AspectRow) -> Vec<Markup> {
    vec![
        html! { (row.of) },
        html! { "\u{2013}" },
        html! { (time(row.true_ns)) },
        html! { (time(row.reported_ns)) },
        interval(row.interval_ns),
        html! { (difference(row.error_ns)) },
        tolerance(row.tolerance_ns),
        judged(row.verdict, row.reason.as_deref()),
    ]
}

fn interval(interval: Option<(u64, u64)>) -> Markup {
    html! {
        @match interval {
            Some((low, high)) => { (time(low)) " to " (time(high)) },
            None => "\u{2013}",
        }
    }
}

fn tolerance(tolerance_ns: Option<u64>) -> Markup {
    html! {
        @match tolerance_ns {
            Some(0) => "exact",
            Some(tolerance) => { "±" (time(tolerance)) },
            None => "\u{2013}",
        }
    }
}

fn judged(found: Option<Verdict>, reason: Option<&str>) -> Markup {
    html! {
        @if let Some(reason) = reason { span.why { (reason) } }
        @match found {
            Some(found) => (verdict(found)),
            None => (badge(Tone::Plain, "n/a")),
        }
    }
}

/// The named accuracy figures.
pub(super) fn scores(scores: &[Score]) -> Markup {
    let name = "Accuracy figures";
    let heads = ["figure", "value", "95 % interval", "limit", "verdict"];
    let rows = scores.iter().map(|score| {
        let number = |value: f64| amount(value, score.unit, score.has_sign());
        vec![
            html! { (score) },
            html! {
                @match score.value {
                    Some(value) => (number(value)),
                    None => "n/a",
                }
            },
            html! {
                @match score.interval {
                    Some((low, high)) => { (number(low)) " to " (number(high)) },
                    None => "\u{2013}",
                }
            },
            html! {
                @match score.limit {
                    Some(limit) => {
                        @if score.limit_is_least() { "at least " }
                        (amount(limit, score.unit, false))
                    },
                    None => "\u{2013}",
                }
            },
            judged(score.verdict, score.reason.as_deref()),
        ]
    });
    html! {
        @if !scores.is_empty() {
            section.panel {
                h3 { (name) }
                (scrolling(name, &table(name, heads, rows)))
            }
        }
    }
}

/// What became of the requests.
pub(super) fn accounting(part: &PartReport) -> Markup {
    let requests = &part.judgement.accounting;
    let rows = [
        ("due", requests.due),
        ("sent", requests.sent),
        ("answered", requests.answered),
        ("hits", requests.hits),
        ("misses", requests.misses),
        ("errors", requests.errors),
        ("timed out", requests.timeouts),
        ("connection lost", requests.lost),
        ("not sent", requests.not_sent),
        ("accounted for", requests.accounted),
    ];
    let heads = rows.map(|(name, _)| name);
    let cells = rows.map(|(_, number)| html! { (count(number)) });
    let name = "What became of the requests";
    let head = std::iter::once("").chain(heads);
    let row = std::iter::once(html! { "requests" }).chain(cells).collect();
    html! {
        section.panel {
            h3 { (name) }
            (scrolling(name, &table(name, head, [row])))
        }
    }
}

/// How the machine carried the run.
pub(super) fn machine(part: &PartReport, tier: Tier) -> Markup {
    let measured = &part.judgement.validity;
    let mut rows = Vec::new();
    let mut spread = |name: &str, spread: &Spread| {
        rows.push(vec![
            html! { (name) },
            html! { (count(spread.count)) },
            html! { (time(spread.p50_ns)) },
            html! { (time(spread.p90_ns)) },
            html! { (time(spread.p99_ns)) },
            html! { (time(spread.max_ns)) },
        ]);
    };
    if let Some(lag) = &measured.lag {
        spread("lag: send \u{2212} intended", lag);
    }
    if let Some(lateness) = &measured.lateness {
        spread("lateness: send \u{2212} due with a free slot", lateness);
    }
    spread("order delay and freezes", &measured.order_delay);
    spread(
        "injection error, before the write",
        &measured.injection_error,
    );
    spread(
        "injection error, after the write",
        &measured.injection_error_after,
    );
    spread("client \u{2212} server, per request", &measured.pair_error);
    let name = if tier == Tier::Real {
        "How the machine carried it"
    } else {
        "Delays along the way"
    };
    let heads = ["", "samples", "p50", "p90", "p99", "max"];
    html! {
        section.panel {
            h3 { (name) }
            (scrolling(name, &table(name, heads, rows)))
            (facts(shares(part)))
        }
    }
}

fn shares(part: &PartReport) -> Vec<(&'static str, Markup)> {
    let measured = &part.judgement.validity;
    let mut list = vec![(
        "answers per second",
        html! { (format!("{:.0}", part.rate_per_second)) },
    )];
    if let Some(floor) = measured.floor_ns {
        let drift = measured.floor_drift_ns.unwrap_or(0);
        list.push(("floor", html! { (time(floor)) " ±" (time(drift)) }));
    }
    if let Some(floor) = measured.floor_in_step_ns {
        list.push(("floor in step", html! { (time(floor)) }));
    }
    if !measured.cpu_share.is_empty() {
        let threads: Vec<String> = measured
            .cpu_share
            .iter()
            .map(|share| percent(*share))
            .collect();
        list.push((
            "processor time of the client's threads",
            html! { (threads.join(", ")) },
        ));
    }
    if let Some(busy) = measured.busy_share {
        list.push(("machine busy", html! { (percent(busy)) }));
    }
    if let Some(steal) = measured.steal_share {
        list.push(("stolen by the hypervisor", html! { (percent(steal)) }));
    }
    let others = [
        ("used by other programs", measured.others_share),
        (
            "time in which a thread waited for a core",
            measured.pressure_share,
        ),
    ];
    for (name, share) in others {
        if let Some(share) = share {
            list.push((name, html! { (percent(share)) }));
        }
    }
    if let Some(switches) = measured.switches_per_second {
        list.push((
            "context switches per second",
            html! { (format!("{switches:.0}")) },
        ));
    }
    if let Some(warm_up) = &part.judgement.warm_up {
        list.push(("warm-up", html! { (warmed(warm_up)) }));
    }
    list.push((
        "hash of the operations",
        html! { code { (format!("{:016x}", part.sequence_hash)) } },
    ));
    list.push((
        "hash of the delays",
        html! { code { (format!("{:016x}", part.delays_hash)) } },
    ));
    if let Some(hash) = part.rows_hash {
        list.push((
            "hash of the rows",
            html! { code { (format!("{hash:016x}")) } },
        ));
    }
    list
}

fn warmed(warm_up: &WarmUp) -> String {
    let mut text = format!(
        "{} by the scenario; steady after {} by the mean, {} by p99",
        time(warm_up.configured_ns),
        time(warm_up.steady_mean_ns),
        time(warm_up.steady_p99_ns)
    );
    if !warm_up.is_steady {
        text += "; not settled in the first half of the run";
    }
    if warm_up.left_out_ns > 0 {
        text += &format!(
            "; {} more left out of the figures",
            time(warm_up.left_out_ns)
        );
    }
    text
}
