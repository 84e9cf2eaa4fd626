//! A [`Plan`] in the terms of the outputs: settings as they are printed, heading, layout.

use std::path::Path;

use super::config::{AddressFamily, Config, Staircase};
use super::model::{Bound, Heading, LatencyFrom, Layout};
use super::options::{Family, Protocol};
use super::plan::{Endpoint, Keys, Length, Plan, Size, Traffic};
use super::staircase::StaircasePlan;

impl Plan {
    /// The settings as `--show-config` and the JSON print them.
    #[must_use]
    pub fn config(&self) -> Config {
        let mut config = Config {
            uri: self.uri.clone(),
            protocol: match self.protocol {
                Protocol::Redis => "redis",
                Protocol::Resp2 => "resp2",
                Protocol::Resp3 => "resp3",
            }
            .to_owned(),
            out_file: shown(self.output.out_file.as_deref()),
            json_out_file: shown(self.output.json_out_file.as_deref()),
            client_stats: self.output.client_stats.clone(),
            print_all_runs: self.output.print_all_runs,
            run_count: self.runs,
            debug: self.debug,
            rate_limit: self.rate.map_or(0, u64::from),
            clients: self.clients,
            threads: self.threads,
            pipeline: self.pipeline,
            authenticate: self
                .login
                .as_ref()
                .map_or_else(String::new, super::credentials::Credentials::as_text),
            select_db: u64::from(self.database),
            reconnect_interval: self.reconnect.interval.map_or(0, u64::from),
            connection_timeout: self.reconnect.timeout.as_secs(),
            thread_conn_start_min_jitter_micros: u64::from(self.reconnect.jitter_us.0),
            thread_conn_start_max_jitter_micros: u64::from(self.reconnect.jitter_us.1),
            staircase: self.staircase_plan().map(|plan| plan.staircase),
            seed: self.seed,
            ..Config::default()
        };
        match self.length {
            Length::Requests(each) => config.requests = each,
            Length::Seconds(seconds) => {
                (config.requests, config.test_time) = (0, u64::from(seconds));
            }
        }
        self.describe_place(&mut config);
        self.describe_traffic(&mut config);
        self.describe_values(&mut config);
        describe_keys(&self.keys, &mut config);
        if self
            .import
            .as_ref()
            .is_some_and(|import| !import.generate_keys)
        {
            // Keys of a file have no numbers.
            (config.key_minimum, config.key_maximum) = (0, 0);
        }
        config
    }

    fn describe_place(&self, config: &mut Config) {
        match &self.endpoint {
            Endpoint::Tcp { host, port, family } => {
                config.server.clone_from(host);
                config.port = *port;
                config.address_family = match family {
                    Family::Any => AddressFamily::Unspecified,
                    Family::V4 => AddressFamily::Ipv4,
                    Family::V6 => AddressFamily::Ipv6,
                };
            }
            Endpoint::Unix(path) => {
                config.server.clear();
                config.port = 0;
                config.unix_socket = shown(Some(path));
            }
        }
        if let Some(tls) = &self.tls {
            config.tls = true;
            config.cert = shown(tls.cert.as_deref());
            config.key = shown(tls.key.as_deref());
            config.cacert = shown(tls.cacert.as_deref());
            config.tls_skip_verify = tls.skip_verify;
            config.sni.clone_from(&tls.sni);
        }
    }

    fn describe_traffic(&self, config: &mut Config) {
        if let Traffic::SetGet(both) = &self.traffic {
            config.ratio = (u64::from(both.ratio.first), u64::from(both.ratio.second));
            config.key_pattern = both.patterns.as_text();
            if both.keys_per_get > 1 {
                config.multi_key_get = u64::from(both.keys_per_get);
            }
            if let Some(wait) = &both.wait {
                config.wait_ratio = (u64::from(wait.ratio.first), u64::from(wait.ratio.second));
                config.num_slaves = (
                    u64::from(wait.replicas.least),
                    u64::from(wait.replicas.most),
                );
                config.wait_timeout = (
                    u64::from(wait.timeout_ms.least),
                    u64::from(wait.timeout_ms.most),
                );
            }
        }
    }

    fn describe_values(&self, config: &mut Config) {
        let values = &self.values;
        config.data_offset = u64::from(values.offset);
        config.random_data = values.random;
        config.data_size = 0;
        match &values.size {
            Size::Fixed(size) => config.data_size = u64::from(*size),
            Size::Random(range) | Size::ByKey(range) => {
                config.data_size_range = (u64::from(range.least), u64::from(range.most));
            }
            Size::List(list) => {
                let items: Vec<_> = list
                    .iter()
                    .map(|(size, weight)| format!("{size}:{weight}"))
                    .collect();
                config.data_size_list = items.join(",");
            }
        }
        if matches!(values.size, Size::ByKey(_)) {
            "S".clone_into(&mut config.data_size_pattern);
        }
        if let Some(expiry) = values.expiry {
            config.expiry_range = (u64::from(expiry.least), u64::from(expiry.most));
        }
        if let Some(import) = &self.import {
            config.data_size = 0;
            config.data_import = shown(Some(&import.path));
            config.data_verify = import.verify;
            config.verify_only = import.verify_only;
            config.generate_keys = import.generate_keys;
            config.no_expiry = import.no_expiry;
        }
    }

    /// The staircase with what surrounds it, if clients come step by step.
    #[must_use]
    pub fn staircase_plan(&self) -> Option<StaircasePlan> {
        let stairs = self.staircase?;
        Some(StaircasePlan {
            staircase: Staircase {
                start: stairs.start,
                step: stairs.step,
                duration: u64::from(stairs.seconds),
            },
            clients: self.clients,
            threads: self.threads,
            test_time: match self.length {
                Length::Seconds(seconds) => u64::from(seconds),
                Length::Requests(_) => 0,
            },
        })
    }

    /// The lines above the tables.
    #[must_use]
    pub fn heading(&self) -> Heading {
        Heading {
            threads: self.threads,
            connections_per_thread: self.clients,
            bound: match self.length {
                Length::Requests(each) => Bound::Requests(each),
                Length::Seconds(seconds) => Bound::Seconds(u64::from(seconds)),
            },
        }
    }

    /// Which columns and blocks are printed.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let default = Layout::default();
        Layout {
            percentiles: self
                .output
                .print_percentiles
                .clone()
                .unwrap_or(default.percentiles),
            histogram: !self.output.hide_histogram,
            all_runs: self.output.print_all_runs,
            cluster: self.cluster.is_some(),
            commands: !matches!(self.traffic, Traffic::SetGet(_)),
            from: if self.from_send {
                LatencyFrom::Send
            } else {
                LatencyFrom::Schedule
            },
        }
    }
}

fn describe_keys(keys: &Keys, config: &mut Config) {
    config.key_prefix = Some(keys.prefix.clone());
    (config.key_minimum, config.key_maximum) = (keys.least, keys.most);
    config.key_stddev = keys.stddev.unwrap_or(0.0);
    config.key_median = keys.median.unwrap_or(0.0);
    config.key_zipf_exp = keys.zipf_exponent;
}

fn shown(path: Option<&Path>) -> Option<String> {
    path.map(|path| path.display().to_string())
}
