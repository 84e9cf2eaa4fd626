//! `--show-config`: one `name = value` per line.
//!
//! The lines go to stdout and the frame around them to stderr, as in the original, so that what a
//! pipe takes is lines of that form and nothing else.

use std::fmt::Write as _;

use super::config::{Config, masked, masked_uri};

/// The frame's upper line, for stderr.
pub const FRAME_ABOVE: &str = "============== Configuration values: ==============\n";
/// The frame's lower line, for stderr.
pub const FRAME_BELOW: &str = "===================================================\n";

/// The lines.
#[must_use]
pub fn render(config: &Config) -> String {
    let mut lines = Lines(String::new());
    lines.text("server", &config.server);
    lines.text("port", config.port);
    lines.text("uri", masked_uri(&config.uri));
    lines.maybe("unix socket", config.unix_socket.as_deref());
    lines.text("address family", config.address_family.as_str());
    lines.text("protocol", &config.protocol);
    lines.switch("tls", config.tls);
    lines.maybe("cert", config.cert.as_deref());
    lines.maybe("key", config.key.as_deref());
    lines.maybe("cacert", config.cacert.as_deref());
    lines.switch("tls_skip_verify", config.tls_skip_verify);
    lines.maybe("sni", config.sni.as_deref());
    lines.maybe("out_file", config.out_file.as_deref());
    lines.maybe("client_stats", config.client_stats.as_deref());
    lines.text("run_count", config.run_count);
    lines.text("debug", config.debug);
    lines.text("requests", config.requests);
    lines.text("rate_limit", config.rate_limit);
    lines.text("clients", config.clients);
    lines.text("threads", config.threads);
    lines.text("test_time", config.test_time);
    lines.pair("ratio", config.ratio, ':');
    lines.text("pipeline", config.pipeline);
    lines.text("data_size", config.data_size);
    lines.text("data_offset", config.data_offset);
    lines.switch("random_data", config.random_data);
    lines.pair("data_size_range", config.data_size_range, '-');
    lines.text("data_size_list", &config.data_size_list);
    lines.text("data_size_pattern", &config.data_size_pattern);
    lines.pair("expiry_range", config.expiry_range, '-');
    lines.maybe("data_import", config.data_import.as_deref());
    lines.switch("data_verify", config.data_verify);
    lines.switch("verify_only", config.verify_only);
    lines.switch("generate_keys", config.generate_keys);
    lines.maybe("key_prefix", config.key_prefix.as_deref());
    lines.text("key_minimum", config.key_minimum);
    lines.text("key_maximum", config.key_maximum);
    lines.text("key_pattern", &config.key_pattern);
    lines.text("key_stddev", format!("{:.6}", config.key_stddev));
    lines.text("key_median", format!("{:.6}", config.key_median));
    lines.text("reconnect_interval", config.reconnect_interval);
    lines.text("connection_timeout", config.connection_timeout);
    lines.text(
        "thread_conn_start_min_jitter_micros",
        config.thread_conn_start_min_jitter_micros,
    );
    lines.text(
        "thread_conn_start_max_jitter_micros",
        config.thread_conn_start_max_jitter_micros,
    );
    lines.text("multi_key_get", config.multi_key_get);
    lines.text("authenticate", masked(&config.authenticate));
    lines.text("select-db", config.select_db);
    lines.switch("no-expiry", config.no_expiry);
    lines.pair("wait-ratio", config.wait_ratio, ':');
    lines.pair("num-slaves", config.num_slaves, '-');
    lines.pair("wait-timeout", config.wait_timeout, '-');
    lines.maybe("json-out-file", config.json_out_file.as_deref());
    lines.switch("print-all-runs", config.print_all_runs);
    if let Some(staircase) = &config.staircase {
        lines.text("clients_start", staircase.start);
        lines.text("clients_step", staircase.step);
        lines.text("step_duration", staircase.duration);
    }
    lines.0
}

struct Lines(String);

impl Lines {
    fn text(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{name} = {value}");
    }

    fn maybe(&mut self, name: &str, value: Option<&str>) {
        self.text(name, value.unwrap_or("(null)"));
    }

    fn switch(&mut self, name: &str, on: bool) {
        self.text(name, if on { "yes" } else { "no" });
    }

    fn pair(&mut self, name: &str, (first, second): (u64, u64), between: char) {
        self.text(name, format_args!("{first}{between}{second}"));
    }
}
