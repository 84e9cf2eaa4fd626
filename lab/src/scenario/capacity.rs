//! A rate as a share of what server and client can carry: `rate = "90%"`.
//!
//! The capacity is the number of slots, connections x pipeline, over the mean time that a request
//! holds one: the mean of the injected law and two network delays. Where the server has a queue, its
//! service time counts too, and the capacity is at most what its servers get done. It is exact for one
//! request in flight on a connection. With a pipeline it is an upper bound, since a reply also waits
//! for the ones before it on its connection; and a machine may carry less in real time.

use kvlab_bench_client::Settings;
use kvlab_bench_client::settings::Load;
use kvlab_mock_server::latency::Selector;
use kvlab_timing::Rate;

use super::client::Surroundings;
use super::server::Wrong;

/// A share of the capacity and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) place: usize,
    pub(super) percent: f64,
}

impl Share {
    /// Reads `90%`; `None` when the text is no percentage.
    pub(super) fn parse(place: usize, text: &str) -> Option<Result<Self, Wrong>> {
        let percent = text.strip_suffix('%')?.trim();
        Some(match percent.parse() {
            Ok(percent) if (0.1..=1000.0).contains(&percent) => Ok(Self { place, percent }),
            _ => Err((
                Some(place),
                format!("rate: '{text}' is no share of the capacity: expected 0.1% to 1000%"),
            )),
        })
    }
}

/// What server and client can carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    /// Requests per second; `None` where several laws apply.
    per_second: Option<f64>,
}

impl Capacity {
    pub(super) fn new(settings: &Settings, surroundings: &Surroundings<'_>) -> Self {
        let mean_ns = match surroundings.server.config.latency.rules() {
            [] => Some(0.0),
            [rule] if rule.selector == Selector::DATA => Some(rule.law.mean_ns()),
            _ => None,
        };
        let network_ns = surroundings.network_ns as f64;
        let queue = surroundings.server.config.queue.as_ref();
        let service_ns = queue.map_or(0.0, |queue| queue.service.mean_ns());
        let served = queue.map_or(f64::INFINITY, |queue| {
            queue.servers as f64 * 1e9 / service_ns
        });
        let slots =
            f64::from(settings.connections.get()) * f64::from(settings.pipeline.depth.get());
        Self {
            per_second: mean_ns.map(|mean_ns| {
                let held_ns = mean_ns + service_ns + 2.0 * network_ns;
                served.min(slots * 1e9 / held_ns)
            }),
        }
    }

    /// The open loop with this share of the capacity.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and the bounds of a rate are checked"
    )]
    pub(super) fn load(self, share: Share, load: Load) -> Result<Load, Wrong> {
        let wrong = |message: String| (Some(share.place), message);
        let Load::Open { arrivals, .. } = load else {
            return Ok(load);
        };
        let Some(capacity) = self.per_second else {
            let message = "rate: a share of the capacity needs one latency law for all requests";
            return Err(wrong(message.to_owned()));
        };
        let per_second = capacity * share.percent / 100.0;
        if per_second > Rate::MAX.as_f64() {
            let message = format!(
                "rate: {}% of the capacity is {per_second:.0} per second, at most {}",
                share.percent,
                Rate::MAX.as_f64()
            );
            return Err(wrong(message));
        }
        let rate = Rate::new((per_second * 1e3).round() as u64, 1_000)
            .map_err(|error| wrong(format!("rate: {}% of the capacity: {error}", share.percent)))?;
        Ok(Load::Open { rate, arrivals })
    }
}
