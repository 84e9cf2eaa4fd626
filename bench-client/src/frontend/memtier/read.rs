//! Reading the options one after the other, each into its place.

use std::path::PathBuf;

use kvlab_timing::Rate;

use super::command::Command;
use super::credentials::Credentials;
use super::getopt::Given;
use super::number::{Range, Ratio, decimal, percentiles, sizes, whole};
use super::options::{
    Breakdown, CommandOptions, ConnectionOptions, Family, KeyOptions, ObjectOptions, Options,
    OutputOptions, OwnOptions, Protocol, ReadFallback, ReadPreference, ReconnectOptions, Requests,
    RetryOptions, TestOptions, TlsVersion, WaitOptions,
};
use super::pattern::{Pattern, Patterns};
use super::uri::{Uri, host_and_port};
use super::{Name, UsageError};
use crate::settings::MAX_VALUE_SIZE;

impl Options {
    /// Reads the options one after the other.
    ///
    /// # Errors
    /// The first one whose argument cannot be read, or that follows no `--command` although it
    /// speaks of one.
    pub fn read(given: &[Given]) -> Result<Self, UsageError> {
        let mut options = Self::default();
        for Given { name, value } in given {
            let (name, value) = (*name, value.as_str());
            // Each takes its own and leaves the rest to the next.
            let taken = options.connection.take(name, value)?
                || options.output.take(name, value)?
                || options.test.take(name, value)?
                || options.reconnect.take(name, value)?
                || options.retry.take(name, value)?
                || options.commands.take(name, value)?
                || options.objects.take(name, value)?
                || options.keys.take(name, value)?
                || options.wait.take(name, value)?
                || options.own.take(name, value)?;
            debug_assert!(
                taken || matches!(name, Name::Help | Name::Version),
                "{name:?}"
            );
        }
        Ok(options)
    }
}

impl ConnectionOptions {
    fn take(&mut self, name: Name, value: &str) -> Result<bool, UsageError> {
        match name {
            Name::Server | Name::Host => self.server = Some(text(name, value)?),
            Name::Port => self.port = Some(whole(name, value, 1..=u16::MAX)?),
            Name::UnixSocket => self.unix_socket = Some(path(name, value)?),
            Name::Ipv4 => self.family = Family::V4,
            Name::Ipv6 => self.family = Family::V6,
            Name::Protocol => self.protocol = protocol(value)?,
            Name::Authenticate => self.credentials = Credentials::parse(value),
            Name::Uri => self.uri = Some(Uri::parse(value)?),
            Name::Tls => self.tls = true,
            Name::Cert => self.cert = Some(path(name, value)?),
            Name::Key => self.key = Some(path(name, value)?),
            Name::Cacert => self.cacert = Some(path(name, value)?),
            Name::TlsSkipVerify => self.tls_skip_verify = true,
            Name::TlsProtocols => self.tls_protocols = Some(tls_versions(value)?),
            Name::Sni => self.sni = Some(text(name, value)?),
            Name::SelectDb => self.select_db = Some(whole(name, value, 0..=MAX_DATABASE)?),
            Name::RunCount => self.run_count = Some(whole(name, value, 1..=MAX_RUNS)?),
            Name::Debug => self.debug += 1,
            Name::ClusterMode => self.cluster_mode = true,
            Name::Transaction => self.transaction = true,
            Name::ReadPreference => {
                self.read_preference = choice(
                    name,
                    value,
                    &[
                        ("primary", ReadPreference::Primary),
                        ("secondary", ReadPreference::Secondary),
                        ("secondaryPreferred", ReadPreference::SecondaryPreferred),
                        ("nearest", ReadPreference::Nearest),
                    ],
                )?;
            }
            Name::ReadPreferenceFallback => {
                self.read_preference_fallback = Some(choice(
                    name,
                    value,
                    &[
                        ("error", ReadFallback::Error),
                        ("queue", ReadFallback::Queue),
                        ("primary", ReadFallback::Primary),
                    ],
                )?);
            }
            Name::ReadServer => self.read_servers.push(address(name, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl OutputOptions {
    fn take(&mut self, name: Name, value: &str) -> Result<bool, UsageError> {
        match name {
            Name::OutFile => self.out_file = Some(path(name, value)?),
            Name::JsonOutFile => self.json_out_file = Some(path(name, value)?),
            Name::ClientStats => self.client_stats = Some(text(name, value)?),
            Name::HdrFilePrefix => self.hdr_file_prefix = Some(text(name, value)?),
            Name::ShowConfig => self.show_config = true,
            Name::HideHistogram => self.hide_histogram = true,
            Name::PrintPercentiles => self.print_percentiles = Some(percentiles(name, value)?),
            Name::PrintAllRuns => self.print_all_runs = true,
            Name::RealtimeLatencies => self.realtime_latencies = true,
            Name::LatencyWindow => {
                self.latency_window = Some(whole(name, value, 0..=MAX_WINDOW_SECONDS)?);
            }
            Name::CommandStatsBreakdown => {
                self.breakdown = choice(
                    name,
                    &value.to_ascii_lowercase(),
                    &[("command", Breakdown::Command), ("line", Breakdown::Line)],
                )?;
            }
            Name::CommandMissTracking => {
                self.miss_tracking_off = choice(name, value, &[("auto", false), ("off", true)])?;
            }
            Name::MissRateThreshold => {
                // 0 is legal: it warns of the first miss.
                self.miss_rate_threshold = Some(decimal(name, value, -1.0, 100.0)?);
            }
            Name::StatsdHost => self.statsd.host = Some(text(name, value)?),
            Name::StatsdPort => self.statsd.port = whole(name, value, 1..=u16::MAX)?,
            Name::StatsdPrefix => value.clone_into(&mut self.statsd.prefix),
            Name::StatsdRunLabel => value.clone_into(&mut self.statsd.run_label),
            Name::GraphitePort => self.statsd.graphite_port = whole(name, value, 1..=u16::MAX)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl TestOptions {
    fn take(&mut self, name: Name, value: &str) -> Result<bool, UsageError> {
        let positive = |most| whole(name, value, 1..=most);
        match name {
            Name::Requests => {
                self.requests = Some(match value {
                    "allkeys" => Requests::AllKeys,
                    _ => Requests::Count(whole(name, value, 1..=MAX_REQUESTS)?),
                });
            }
            Name::RateLimiting => self.rate_limiting = Some(positive(MAX_RATE)?),
            Name::Clients => self.clients = Some(positive(MAX_CLIENTS)?),
            Name::Threads => self.threads = Some(positive(MAX_THREADS)?),
            Name::TestTime => self.test_time = Some(positive(MAX_SECONDS)?),
            Name::ClientsStart => self.clients_start = Some(positive(MAX_CLIENTS)?),
            Name::ClientsStep => self.clients_step = Some(positive(MAX_CLIENTS)?),
            Name::StepDuration => self.step_duration = Some(positive(MAX_SECONDS)?),
            Name::Ratio => self.ratio = Some(Ratio::parse(name, value)?),
            Name::Pipeline => self.pipeline = Some(positive(MAX_PIPELINE)?),
            Name::MultiKeyGet => self.multi_key_get = Some(positive(MAX_KEYS_OF_MGET)?),
            Name::DistinctClientSeed => self.distinct_client_seed = true,
            Name::Randomize => self.randomize = true,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl ReconnectOptions {
    fn take(&mut self, name: Name, value: &str) -> Result<bool, UsageError> {
        match name {
            Name::ReconnectInterval => self.interval = Some(whole(name, value, 1..=u32::MAX)?),
            Name::ReconnectOnError => self.on_error = true,
            Name::MaxReconnectAttempts => {
                self.max_attempts = Some(whole(name, value, 0..=u32::MAX)?);
            }
            Name::ReconnectBackoffFactor => {
                let factor = decimal(name, value, 0.0, MAX_FACTOR)?;
                if 0.0 < factor && factor < 1.0 {
                    return Err(wrong(name, "0 for equal waits, or 1 and more", value));
                }
                self.backoff_factor = Some(factor);
            }
            Name::ConnectionTimeout => {
                self.connection_timeout = Some(whole(name, value, 0..=MAX_SECONDS)?);
            }
            Name::ConnectionStageTimeout => {
                self.stage_timeout = Some(whole(name, value, 0..=MAX_SECONDS)?);
            }
            Name::ThreadConnStartMinJitterMicros => {
                self.min_jitter_us = Some(whole(name, value, 0..=u32::MAX)?);
            }
            Name::ThreadConnStartMaxJitterMicros => {
                self.max_jitter_us = Some(whole(name, value, 0..=u32::MAX)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl RetryOptions {
    fn take(&mut self, name: Name, value: &str) -> Result<bool, UsageError> {
        match name {
            Name::RetryOnError => self.on_error = true,
            Name::MaxRetries => {
                self.max_retries = match value {
                    "-1" => None,
                    _ => Some(whole(name, value, 0..=MAX_RETRIES)?),
                };
            }
            Name::RetryBackoffMs => self.backoff_ms = Some(whole(name, value, 0..=u32::MAX)?),
            Name::RetryBackoffFactor => {
                self.backoff_factor = Some(decimal(name, value, -1.0, MAX_FACTOR)?);
            }
            Name::RetryOn => {
                self.only_on = value.split(',').map(str::to_owned).collect();
                if self.only_on.iter().any(String::is_empty) {
                    return Err(wrong(
                        name,
                        "first words of errors, parted by commas",
                        value,
                    ));
                }
            }
            Name::MaxRetryQueue => self.max_queue = Some(whole(name, value, 0..=u32::MAX)?),
            Name::FailedKeysFile => self.failed_keys_file = Some(path(name, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl CommandOptions {
    fn take(&mut self, name: Name, value: &str) -> Result<bool, UsageError> {
        match name {
            Name::Command => self.commands.push(Command::parse(value)?),
            Name::CommandRatio => {
                let ratio = whole(name, value, 1..=MAX_COMMAND_RATIO)?;
                self.last(name)?.ratio = ratio;
            }
            Name::CommandKeyPattern => {
                let pattern = Pattern::of_letter(value);
                let expected = "one of the letters R, S, G, Z, P";
                self.last(name)?.pattern = pattern.ok_or_else(|| wrong(name, expected, value))?;
            }
            Name::CommandIsRead => self.last(name)?.is_read = true,
            Name::MonitorInput => self.monitor_input = Some(path(name, value)?),
            Name::MonitorPattern => {
                self.monitor_random = choice(
                    name,
                    &value.to_ascii_uppercase(),
                    &[("S", false), ("R", true)],
                )?;
            }
            Name::ScanIncrementalIteration => self.scan_iteration = true,
            Name::ScanIncrementalMaxIterations => {
                self.scan_max_iterations = Some(whole(name, value, 0..=u32::MAX)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The command that an option behind it speaks of.
    fn last(&mut self, name: Name) -> Result<&mut Command, UsageError> {
        let spelled = name.spelled();
        self.commands
            .last_mut()
            .ok_or_else(|| UsageError::new(spelled, "a --command before it", "none"))
    }
}

impl ObjectOptions {
    fn take(&mut self, name: Name, value: &str) -> Result<bool, UsageError> {
        match name {
            Name::DataSize => self.data_size = Some(whole(name, value, 1..=MAX_VALUE_SIZE)?),
            Name::DataOffset => self.data_offset = Some(whole(name, value, 0..=MAX_OFFSET)?),
            Name::RandomData => self.random_data = true,
            Name::DataSizeRange => {
                self.size_range = Some(Range::parse(name, value, 1, MAX_VALUE_SIZE)?);
            }
            Name::DataSizeList => self.size_list = Some(sizes(name, value, MAX_VALUE_SIZE)?),
            Name::DataSizePattern => {
                self.sizes_by_key = choice(name, value, &[("R", false), ("S", true)])?;
            }
            Name::ExpiryRange => {
                self.expiry_range = Some(Range::parse(name, value, 0, MAX_SIGNED)?);
            }
            Name::DataImport => self.import = Some(path(name, value)?),
            Name::DataVerify => self.verify = true,
            Name::VerifyOnly => (self.verify, self.verify_only) = (true, true),
            Name::GenerateKeys => self.generate_keys = true,
            Name::NoExpiry => self.no_expiry = true,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl KeyOptions {
    fn take(&mut self, name: Name, value: &str) -> Result<bool, UsageError> {
        match name {
            Name::KeyPrefix => {
                if value.len() > MAX_PREFIX {
                    let expected = format!("at most {MAX_PREFIX} bytes");
                    return Err(UsageError::new(name.spelled(), expected, value.len()));
                }
                self.prefix = Some(value.to_owned());
            }
            Name::KeyMinimum => self.minimum = Some(whole(name, value, 0..=MAX_KEY)?),
            Name::KeyMaximum => self.maximum = Some(whole(name, value, 1..=MAX_KEY)?),
            Name::KeyPattern => self.patterns = Some(Patterns::parse(value)?),
            Name::KeyStddev => self.stddev = Some(decimal(name, value, 0.0, f64::INFINITY)?),
            Name::KeyMedian => self.median = Some(decimal(name, value, 0.0, f64::INFINITY)?),
            Name::KeyZipfExp => {
                let exponent = decimal(name, value, 0.0, MAX_EXPONENT)?;
                if exponent >= MAX_EXPONENT {
                    return Err(wrong(name, "a number between 0 and 5, without them", value));
                }
                self.zipf_exponent = Some(exponent);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl WaitOptions {
    fn take(&mut self, name: Name, value: &str) -> Result<bool, UsageError> {
        match name {
            Name::WaitRatio => self.ratio = Some(Ratio::parse(name, value)?),
            Name::NumSlaves => self.replicas = Some(Range::parse(name, value, 0, MAX_SIGNED)?),
            Name::WaitTimeout => self.timeout_ms = Some(Range::parse(name, value, 0, MAX_SIGNED)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl OwnOptions {
    fn take(&mut self, name: Name, value: &str) -> Result<bool, UsageError> {
        let because = |expected: String| UsageError::new(name.spelled(), expected, value);
        match name {
            Name::LatencyFrom => {
                self.from_send = choice(name, value, &[("intended", false), ("send", true)])?;
            }
            Name::ResponseTime => self.from_send = false,
            Name::Warmup => {
                self.warmup = kvlab_timing::duration::parse(value)
                    .map_err(|error| because(error.to_string()))?;
            }
            Name::Seed => self.seed = Some(whole(name, value, 0..=u64::MAX)?),
            Name::SameSeed => self.same_seed = true,
            Name::MaxErrors => self.max_errors = Some(value.parse().map_err(because)?),
            Name::ConnectRate => {
                let rate = value.parse::<Rate>();
                self.connect_rate = Some(rate.map_err(|error| because(error.to_string()))?);
            }
            Name::JsonLines => self.json_lines = Some(path(name, value)?),
            Name::Html => self.html = Some(path(name, value)?),
            Name::Certify => self.certify = true,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn protocol(value: &str) -> Result<Protocol, UsageError> {
    if matches!(value, "memcache_text" | "memcache_binary") {
        return Err(wrong(
            Name::Protocol,
            "redis, resp2 or resp3; the memcache protocols are not supported",
            value,
        ));
    }
    choice(
        Name::Protocol,
        value,
        &[
            ("redis", Protocol::Redis),
            ("resp2", Protocol::Resp2),
            ("resp3", Protocol::Resp3),
        ],
    )
}

fn tls_versions(value: &str) -> Result<Vec<TlsVersion>, UsageError> {
    let mut versions = Vec::new();
    for word in value.split(',') {
        versions.push(match word.to_ascii_lowercase().as_str() {
            "tlsv1.2" => TlsVersion::V1_2,
            "tlsv1.3" => TlsVersion::V1_3,
            "tlsv1" | "tlsv1.1" => {
                let expected = "TLSv1.2 or TLSv1.3; older versions are not supported";
                return Err(wrong(Name::TlsProtocols, expected, word));
            }
            _ => {
                let expected = "TLSv1.2, TLSv1.3 or both, parted by a comma";
                return Err(wrong(Name::TlsProtocols, expected, word));
            }
        });
    }
    Ok(versions)
}

fn address(name: Name, value: &str) -> Result<(String, u16), UsageError> {
    match host_and_port(value) {
        Some((host, Some(port))) => Ok((host.to_owned(), port)),
        _ => Err(wrong(name, "HOST:PORT", value)),
    }
}

fn choice<T: Copy>(name: Name, value: &str, choices: &[(&str, T)]) -> Result<T, UsageError> {
    let found = choices.iter().find(|(word, _)| *word == value);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        wrong(name, &format!("one of {}", words.join(", ")), value)
    })
}

fn text(name: Name, value: &str) -> Result<String, UsageError> {
    if value.is_empty() {
        return Err(wrong(name, "a text that is not empty", value));
    }
    Ok(value.to_owned())
}

fn path(name: Name, value: &str) -> Result<PathBuf, UsageError> {
    text(name, value).map(PathBuf::from)
}

fn wrong(name: Name, expected: &str, found: &str) -> UsageError {
    UsageError::new(name.spelled(), expected, format_args!("{found:?}"))
}

/// Bound of `--select-db`: what the server's parser takes.
const MAX_DATABASE: u32 = MAX_SIGNED;
/// Bound of `--run-count`: all runs are kept to tell the best and the worst.
const MAX_RUNS: u32 = 1_000;
/// Attempts are counted in 16 bits.
const MAX_RETRIES: u32 = 65_535;
const MAX_WINDOW_SECONDS: u32 = 3_600;
const MAX_REQUESTS: u64 = 1_000_000_000_000_000;
/// Bound of requests per second and connection: above it no schedule could be kept.
const MAX_RATE: u32 = 10_000_000;
const MAX_CLIENTS: u32 = 1_000_000;
const MAX_THREADS: u32 = 1_024;
/// A year.
const MAX_SECONDS: u32 = 366 * 24 * 3_600;
/// As in the native front end.
const MAX_PIPELINE: u32 = 65_536;
const MAX_KEYS_OF_MGET: u32 = 10_000;
/// Bound of a factor between two waits, so that a few failures are not a wait of years.
const MAX_FACTOR: f64 = 100.0;
const MAX_COMMAND_RATIO: u32 = 1_000_000;
/// The largest offset of a string, as with the original.
const MAX_OFFSET: u32 = (1 << 29) - 1;
/// A key of the original has at most 249 bytes; 20 of them may be the number.
const MAX_PREFIX: usize = 229;
/// One below the largest number, so that the number of keys fits too.
const MAX_KEY: u64 = u64::MAX - 1;
const MAX_EXPONENT: f64 = 5.0;
/// Largest signed number of 32 bits, which servers read such arguments into.
const MAX_SIGNED: u32 = 0x7fff_ffff;

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
