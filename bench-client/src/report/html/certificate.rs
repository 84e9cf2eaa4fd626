//! The certificate on the page of a run.

use maud::{Markup, html};

use super::page::{scrolling, table};
use super::units::time;
use crate::record::{Certificate, CertifiedQuantile};

/// The bounds of the quantiles, or why there are none.
pub(super) fn section(certificate: &Certificate) -> Markup {
    let heads = [
        "quantile",
        "reported",
        "server's own time",
        "bound",
        "least",
        "most",
    ];
    let rows = certificate.quantiles.iter().map(row);
    let requests: u64 = certificate.runs.iter().map(|run| run.requests).sum();
    html! {
        h3 { "Certificate" }
        @if let Some(reason) = &certificate.refused {
            p { "None: " (reason) "." }
        } @else {
            (scrolling("Certificate", &table("Certificate", heads, rows)))
            @for quantile in &certificate.quantiles {
                @if let Err(reason) = &quantile.bound {
                    p.checks { (name(quantile)) " has no bound: " (reason) "." }
                }
            }
            p.checks {
                "The server's own time lies within the bound in 95 of 100 cases, by "
                (certificate.runs.len()) " runs of " (requests) " requests in all against a known server on "
                "this machine. The network between is no part of it."
            }
        }
    }
}

fn row(quantile: &CertifiedQuantile) -> Vec<Markup> {
    let mut row = vec![
        html! { (name(quantile)) },
        html! { (time(quantile.reported_ns)) },
    ];
    match &quantile.bound {
        Ok(bound) => {
            row.push(html! { (time(bound.server_ns)) });
            row.push(html! { "\u{b1}" (time(bound.half_width_ns)) });
            row.push(html! { (time(bound.low_ns())) });
            row.push(html! { (time(bound.high_ns())) });
        }
        Err(_) => row.resize_with(6, || html! { "n/a" }),
    }
    row
}

fn name(quantile: &CertifiedQuantile) -> String {
    format!("{} {}", quantile.latency.name(), quantile.title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Bound, CertifiedLatency};

    #[test]
    fn a_quantile_stands_with_both_ends_and_a_refused_one_with_its_reason() {
        let quantile = |title, bound| CertifiedQuantile {
            latency: CertifiedLatency::Service,
            q: 0.5,
            title,
            reported_ns: 1_840_000,
            bound,
        };
        let mut certificate = Certificate {
            quantiles: vec![
                quantile(
                    "p50",
                    Ok(Bound {
                        server_ns: 1_730_000,
                        half_width_ns: 60_000,
                    }),
                ),
                quantile("p99", Err("too <noisy>".to_owned())),
            ],
            ..Certificate::default()
        };
        let page = section(&certificate).into_string();
        for part in ["service p50", &time(1_670_000), &time(1_790_000)] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(
            page.contains("service p99 has no bound: too &lt;noisy&gt;."),
            "{page}"
        );
        certificate.refused = Some("interrupted".to_owned());
        let page = section(&certificate).into_string();
        assert!(
            page.contains("None: interrupted.") && !page.contains("<table"),
            "{page}"
        );
    }
}
