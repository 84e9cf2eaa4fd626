//! The settings of a run as JSON: what would have to be typed to repeat it.

use kvlab_timing::Rate;
use serde::Serialize;
use serde_json::{Value, json};

use crate::report::{Head, nanos};
use crate::settings::{
    self, Arrivals, ClassSpec, Content, KernelStamps, KeyPattern, Load, MixOrder, PipelineMode,
    Polling, SizeDistribution, Target, Trust, WhenDown,
};

#[derive(Serialize)]
pub(in crate::report) struct Settings<'a> {
    target: &'a str,
    tls: Option<Tls>,
    threads: u32,
    connections: u32,
    pipeline: u32,
    pipeline_mode: &'static str,
    rate_per_second: Option<f64>,
    arrivals: Option<&'static str>,
    duration_ns: Option<u64>,
    requests: Option<u64>,
    warmup_ns: u64,
    timeout_ns: u64,
    connect: Connect,
    kernel_stamps: &'static str,
    poll: &'static str,
    start_at_unix_ns: Option<u64>,
    operations: Vec<Operation>,
    mix: &'static str,
    keys: Keys<'a>,
    values: Values,
    seed: u64,
}

#[derive(Serialize)]
struct Tls {
    server_name: String,
    trust: &'static str,
    client_certificate: bool,
}

#[derive(Serialize)]
struct Connect {
    rate_per_second: Option<f64>,
    burst: u32,
    jitter_ns: u64,
    timeout_ns: u64,
    setup_timeout_ns: u64,
    probe: bool,
    backoff_first_ns: u64,
    backoff_most_ns: u64,
    reconnect_attempts: u32,
    when_down: &'static str,
    reconnect_every: String,
}

#[derive(Serialize)]
struct Operation {
    name: String,
    weight: u32,
}

#[derive(Serialize)]
struct Keys<'a> {
    prefix: &'a str,
    first: u64,
    count: u64,
    pattern: Value,
}

#[derive(Serialize)]
struct Values {
    size_bytes: Value,
    content: &'static str,
}

impl<'a> Settings<'a> {
    pub(in crate::report) fn of(head: &'a Head) -> Self {
        let settings = &head.settings;
        let (rate, arrivals) = match settings.load {
            Load::Closed => (None, None),
            Load::Open { rate, arrivals } => (Some(rate.as_f64()), Some(arrivals)),
        };
        let classes = settings.target.classes().into_iter();
        Self {
            target: &head.target,
            tls: settings.tls.as_ref().map(|tls| Tls {
                server_name: tls.server_name.to_str().into_owned(),
                trust: match tls.trust {
                    Trust::System => "system",
                    Trust::Authorities(_) => "authorities",
                    Trust::Anything => "anything",
                },
                client_certificate: tls.identity.is_some(),
            }),
            threads: settings.threads.get(),
            connections: settings.connections.get(),
            pipeline: settings.pipeline.depth.get(),
            pipeline_mode: match settings.pipeline.mode {
                PipelineMode::Window => "window",
                PipelineMode::Batch => "batch",
            },
            rate_per_second: rate,
            arrivals: arrivals.map(|arrivals| match arrivals {
                Arrivals::Uniform => "uniform",
                Arrivals::Poisson => "poisson",
            }),
            duration_ns: settings.stop.duration.map(nanos),
            requests: settings.stop.requests,
            warmup_ns: nanos(settings.warmup),
            timeout_ns: nanos(settings.timeout),
            connect: Connect::of(settings),
            kernel_stamps: match settings.kernel_stamps {
                KernelStamps::Off => "off",
                KernelStamps::Auto => "auto",
                KernelStamps::On => "on",
            },
            poll: match settings.polling {
                Polling::Sleep => "sleep",
                Polling::Spin => "spin",
            },
            start_at_unix_ns: settings.start_at_unix_ns,
            operations: classes
                .map(|ClassSpec { name, weight, .. }| Operation { name, weight })
                .collect(),
            mix: match settings.mix {
                MixOrder::Random => "random",
                MixOrder::Cycle => "cycle",
            },
            keys: Keys {
                prefix: &settings.keys.prefix,
                first: settings.keys.first,
                count: settings.keys.count.get(),
                pattern: pattern(settings.keys.pattern),
            },
            values: Values {
                size_bytes: size(&settings.values.size),
                content: match settings.values.content {
                    Content::Random => "random",
                    Content::Text => "text",
                    Content::Fill(_) => "fill",
                },
            },
            seed: settings.seed,
        }
    }
}

impl Connect {
    fn of(settings: &settings::Settings) -> Self {
        let connects = &settings.connects;
        Self {
            rate_per_second: connects.rate.map(Rate::as_f64),
            burst: connects.burst.get(),
            jitter_ns: nanos(connects.jitter),
            timeout_ns: nanos(settings.connect_timeout),
            setup_timeout_ns: nanos(settings.setup_limit()),
            probe: matches!(&settings.target, Target::Redis(target) if target.probe),
            backoff_first_ns: nanos(settings.backoff.first),
            backoff_most_ns: nanos(settings.backoff.most),
            reconnect_attempts: settings.backoff.attempts,
            when_down: match connects.when_down {
                WhenDown::Wait => "wait",
                WhenDown::Drop => "drop",
            },
            reconnect_every: connects.renew.to_string(),
        }
    }
}

fn pattern(pattern: KeyPattern) -> Value {
    match pattern {
        KeyPattern::Sequential => json!({ "name": "sequential" }),
        KeyPattern::Uniform => json!({ "name": "uniform" }),
        KeyPattern::Parallel => json!({ "name": "parallel" }),
        KeyPattern::Zipf { exponent } => json!({ "name": "zipf", "exponent": exponent }),
        KeyPattern::ZipfByNumber { exponent } => {
            json!({ "name": "zipf_by_number", "exponent": exponent })
        }
        KeyPattern::Gaussian { mean, deviation } => {
            json!({ "name": "gaussian", "mean": mean, "deviation": deviation })
        }
        KeyPattern::HotSet { keys, operations } => {
            json!({ "name": "hot", "keys": keys, "operations": operations })
        }
    }
}

fn size(size: &SizeDistribution) -> Value {
    match size {
        SizeDistribution::Fixed(size) => json!({ "name": "fixed", "size": size }),
        SizeDistribution::Uniform { least, most } => {
            json!({ "name": "uniform", "least": least, "most": most })
        }
        SizeDistribution::ByKey { least, most } => {
            json!({ "name": "by_key", "least": least, "most": most })
        }
        SizeDistribution::Weighted(list) | SizeDistribution::Rotation(list) => {
            let sizes: Vec<Value> = list
                .iter()
                .map(|(size, weight)| json!({ "size": size, "weight": weight }))
                .collect();
            let rotates = matches!(size, SizeDistribution::Rotation(_));
            let name = if rotates { "rotation" } else { "weighted" };
            json!({ "name": name, "sizes": sizes })
        }
        SizeDistribution::Records(records) => {
            json!({ "name": "records", "records": records.count() })
        }
        SizeDistribution::Lognormal {
            median,
            sigma,
            most,
        } => json!({ "name": "lognormal", "median": median, "sigma": sigma, "most": most }),
    }
}
