//! From checked options to the [`Plan`]: defaults, files, and what follows from both.

use std::sync::Arc;
use std::time::Duration;

use kvlab_protocol::resp::slot;

use super::command::{Command, What, name_of};
use super::import;
use super::monitor::Monitor;
use super::number::Ratio;
use super::options::{
    Breakdown, ConnectionOptions, KeyOptions, Options, ReadFallback, Requests, TlsVersion,
};
use super::pattern::Pattern;
use super::plan::{
    Cluster, Endpoint, Import, Keys, Length, OwnOutput, Plan, Reconnect, Request, Retry, SetGet,
    Size, Staircase, Step, Tls, Traffic, Values, Wait,
};
use super::refusal::Refusal;
use super::{Name, UsageError};
use crate::frontend::native::ErrorLimit;
use crate::settings::Records;

impl Plan {
    /// Resolves options that were checked. `entropy` is what `--randomize` takes its seed from.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold what it should, or a placeholder for a line that
    /// the monitor file does not have.
    pub fn resolve(options: Options, entropy: u64) -> Result<Self, Refusal> {
        let mut notes = Vec::new();
        let traffic = traffic(&options, &mut notes)?;
        let import = imported(&options, &mut notes)?;
        let test = &options.test;
        let (threads, clients) = (
            test.threads.unwrap_or(DEFAULT_THREADS),
            test.clients.unwrap_or(DEFAULT_CLIENTS),
        );
        let keys = keys(&options.keys);
        let sent = match &import {
            Some(import) if !import.generate_keys => keys.of_records(&import.records),
            _ => keys.clone(),
        };
        let length = length(
            &options,
            &sent,
            &traffic,
            u64::from(threads) * u64::from(clients),
        );
        let uri = options.connection.uri.as_ref();
        Ok(Self {
            endpoint: endpoint(&options.connection),
            uri: uri.map_or_else(String::new, ToString::to_string),
            login: uri
                .and_then(|uri| uri.credentials.clone())
                .or_else(|| options.connection.credentials.clone()),
            protocol: options.connection.protocol,
            database: database(&options.connection),
            tls: tls(&options.connection),
            cluster: options.connection.cluster_mode.then_some(Cluster {
                reads: options.connection.read_preference,
                fallback: options
                    .connection
                    .read_preference_fallback
                    .unwrap_or(ReadFallback::Error),
                transaction: options.connection.transaction,
            }),
            read_servers: options.connection.read_servers.clone(),
            threads,
            clients,
            length,
            all_keys: test.requests == Some(Requests::AllKeys),
            runs: options.connection.run_count.unwrap_or(1),
            warmup: options.own.warmup,
            rate: test.rate_limiting,
            from_send: options.own.from_send,
            pipeline: test.pipeline.unwrap_or(1),
            traffic,
            keys,
            values: values(&options),
            import,
            reconnect: reconnect(&options),
            retry: retry(&options),
            failed_keys: options.retry.failed_keys_file.clone(),
            staircase: staircase(&options, clients),
            seed: match options.own.seed {
                Some(seed) => seed,
                None if test.randomize => entropy,
                None => DEFAULT_SEED,
            },
            same_seed: options.own.same_seed,
            distinct_clients: test.distinct_client_seed,
            max_errors: options.own.max_errors.unwrap_or(ErrorLimit::Share(0.01)),
            tolerates_own_commands: options.own.max_errors.is_none()
                && !options.commands.commands.is_empty(),
            debug: options.connection.debug,
            own_output: OwnOutput {
                json_lines: options.own.json_lines.clone(),
                html: options.own.html.clone(),
                certify: options.own.certify,
            },
            output: options.output,
            notes,
        })
    }
}

fn endpoint(connection: &ConnectionOptions) -> Endpoint {
    if let Some(path) = &connection.unix_socket {
        return Endpoint::Unix(path.clone());
    }
    let uri = connection.uri.as_ref();
    let host = uri.map(|uri| uri.host.clone());
    Endpoint::Tcp {
        host: host
            .or_else(|| connection.server.clone())
            .unwrap_or_else(|| DEFAULT_HOST.to_owned()),
        port: uri
            .and_then(|uri| uri.port)
            .or(connection.port)
            .unwrap_or(DEFAULT_PORT),
        family: connection.family,
    }
}

/// The database of URI or option.
pub(super) fn database(connection: &ConnectionOptions) -> u32 {
    let uri = connection.uri.as_ref().and_then(|uri| uri.database);
    uri.or(connection.select_db).unwrap_or(0)
}

fn tls(connection: &ConnectionOptions) -> Option<Tls> {
    let wanted = connection.tls || connection.uri.as_ref().is_some_and(|uri| uri.tls);
    wanted.then(|| Tls {
        cert: connection.cert.clone(),
        key: connection.key.clone(),
        cacert: connection.cacert.clone(),
        skip_verify: connection.tls_skip_verify,
        versions: connection
            .tls_protocols
            .clone()
            .unwrap_or_else(|| vec![TlsVersion::V1_2, TlsVersion::V1_3]),
        sni: connection.sni.clone(),
    })
}

/// Whether the prefix alone decides the slot of every key.
pub(super) fn has_hash_tag(keys: &KeyOptions) -> bool {
    let prefix = keys.prefix.as_deref().unwrap_or_default().as_bytes();
    slot::hash_tag(prefix).len() < prefix.len()
}

/// Smallest and largest key.
pub(super) fn key_range(keys: &KeyOptions) -> (u64, u64) {
    (
        keys.minimum.unwrap_or(0),
        keys.maximum.unwrap_or(DEFAULT_KEY_MAXIMUM),
    )
}

fn keys(options: &KeyOptions) -> Keys {
    let (least, most) = key_range(options);
    Keys {
        prefix: options
            .prefix
            .clone()
            .unwrap_or_else(|| DEFAULT_PREFIX.to_owned()),
        least,
        most,
        stddev: options.stddev,
        median: options.median,
        zipf_exponent: options.zipf_exponent.unwrap_or(1.0),
    }
}

fn length(options: &Options, keys: &Keys, traffic: &Traffic, clients: u64) -> Length {
    if let Some(seconds) = options.test.test_time {
        return Length::Seconds(seconds);
    }
    Length::Requests(match options.test.requests {
        None => DEFAULT_REQUESTS,
        Some(Requests::Count(requests)) => requests,
        Some(Requests::AllKeys) if is_parallel(traffic) => keys.count().div_ceil(clients),
        Some(Requests::AllKeys) => keys.count(),
    })
}

/// Whether each client has its own part of the keys.
fn is_parallel(traffic: &Traffic) -> bool {
    match traffic {
        Traffic::SetGet(both) => both.patterns.set == Pattern::Parallel,
        Traffic::Commands(steps) => steps.iter().any(|step| step.pattern == Pattern::Parallel),
        Traffic::Scan { .. } => false,
    }
}

fn values(options: &Options) -> Values {
    let objects = &options.objects;
    let size = match (&objects.size_list, objects.size_range) {
        (Some(list), _) => Size::List(list.clone()),
        (None, Some(range)) if objects.sizes_by_key => Size::ByKey(range),
        (None, Some(range)) => Size::Random(range),
        (None, None) => Size::Fixed(objects.data_size.unwrap_or(DEFAULT_SIZE)),
    };
    Values {
        size,
        random: objects.random_data,
        offset: objects.data_offset.unwrap_or(0),
        expiry: objects.expiry_range,
    }
}

fn reconnect(options: &Options) -> Reconnect {
    let reconnect = &options.reconnect;
    let stage = match reconnect.stage_timeout {
        None => DEFAULT_STAGE_TIMEOUT,
        // The original waits without end; so that nothing hangs for good, this is an hour.
        Some(0) => LONGEST_STAGE_TIMEOUT,
        Some(seconds) => Duration::from_secs(u64::from(seconds)),
    };
    let connect = reconnect.connection_timeout.filter(|seconds| *seconds > 0);
    Reconnect {
        interval: reconnect.interval,
        on_error: reconnect.on_error,
        most_attempts: reconnect.max_attempts.unwrap_or(0),
        backoff_factor: reconnect.backoff_factor.unwrap_or(0.0),
        timeout: connect.map_or(stage, |seconds| Duration::from_secs(u64::from(seconds))),
        jitter_us: (
            reconnect.min_jitter_us.unwrap_or(0),
            reconnect.max_jitter_us.unwrap_or(0),
        ),
        rate: options.own.connect_rate,
    }
}

fn retry(options: &Options) -> Option<Retry> {
    let retry = &options.retry;
    retry.on_error.then(|| Retry {
        most: retry.max_retries,
        wait: Duration::from_millis(u64::from(retry.backoff_ms.unwrap_or(0))),
        factor: retry.backoff_factor.unwrap_or(0.0),
        only_on: retry.only_on.clone(),
        most_queued: match retry.max_queue {
            // As the original derives it.
            None | Some(0) => options.test.pipeline.unwrap_or(1).saturating_mul(4).max(64),
            Some(most) => most,
        },
    })
}

fn staircase(options: &Options, most: u32) -> Option<Staircase> {
    let test = &options.test;
    Some(Staircase {
        start: test.clients_start?,
        step: test.clients_step?,
        seconds: test.step_duration?,
        most,
    })
}

fn traffic(options: &Options, notes: &mut Vec<String>) -> Result<Traffic, Refusal> {
    let commands = &options.commands;
    if commands.commands.is_empty() {
        return Ok(Traffic::SetGet(SetGet {
            ratio: options.test.ratio.unwrap_or(DEFAULT_RATIO),
            patterns: options.keys.patterns.unwrap_or_default(),
            keys_per_get: options.test.multi_key_get.unwrap_or(1),
            wait: options.wait.ratio.map(|ratio| Wait {
                ratio,
                replicas: options.wait.replicas.unwrap_or_default(),
                timeout_ms: options.wait.timeout_ms.unwrap_or_default(),
            }),
        }));
    }
    let monitor = match &commands.monitor_input {
        None => None,
        Some(path) => {
            let monitor = Monitor::read(path).map_err(Refusal::usage)?;
            notes.push(monitor.summary());
            if monitor.broken > 0 {
                notes.push(format!(
                    "warning: --monitor-input: {} lines cannot be read as a command",
                    monitor.broken
                ));
            }
            Some(monitor)
        }
    };
    let steps = commands
        .commands
        .iter()
        .map(|command| step(command, monitor.as_ref(), options))
        .collect::<Result<Vec<_>, _>>()?;
    if commands.scan_iteration
        && let [
            Step {
                request: Request::Arguments(arguments),
                ..
            },
        ] = steps.as_slice()
    {
        return Ok(Traffic::Scan {
            arguments: arguments.clone(),
            most: commands.scan_max_iterations.unwrap_or(0),
        });
    }
    Ok(Traffic::Commands(steps))
}

fn step(
    command: &Command,
    monitor: Option<&Monitor>,
    options: &Options,
) -> Result<Step, UsageError> {
    let (name, request) = match (&command.what, monitor) {
        (What::Arguments(arguments), _) => {
            (name_of(arguments), Request::Arguments(arguments.clone()))
        }
        // Without a capture the placeholder is a command like any other; the server will not know
        // it.
        (_, None) => {
            let arguments = vec![command.text.clone().into_bytes()];
            (name_of(&arguments), Request::Arguments(arguments))
        }
        (What::MonitorNext, Some(monitor)) => (
            "MONITOR".to_owned(),
            Request::Replay {
                commands: Arc::clone(&monitor.commands),
                random: options.commands.monitor_random,
            },
        ),
        (What::MonitorLine(_) | What::Malformed, Some(monitor)) => {
            let line = match command.what {
                What::MonitorLine(line) => line,
                _ => 0,
            };
            let place = usize::try_from(line)
                .ok()
                .and_then(|line| line.checked_sub(1));
            let arguments = place.and_then(|place| monitor.commands.get(place));
            let arguments = arguments.ok_or_else(|| {
                UsageError::new(
                    Name::Command.spelled(),
                    format!(
                        "__monitor_line1__ to __monitor_line{}__, or __monitor_line@__",
                        monitor.commands.len()
                    ),
                    format_args!("the invalid monitor placeholder {:?}", command.text),
                )
            })?;
            let name = match options.output.breakdown {
                Breakdown::Line => {
                    format!("{} (Line {line})", name_of(arguments))
                }
                Breakdown::Command => name_of(arguments),
            };
            (name, Request::Arguments(arguments.clone()))
        }
    };
    Ok(Step {
        name,
        request,
        ratio: command.ratio,
        pattern: command.pattern,
        is_read: command.is_read,
    })
}

fn imported(options: &Options, notes: &mut Vec<String>) -> Result<Option<Import>, Refusal> {
    let objects = &options.objects;
    let Some(path) = &objects.import else {
        return Ok(None);
    };
    let items = import::read(path).map_err(Refusal::usage)?;
    if !objects.generate_keys {
        notes.push(format!(
            "Reading keys from {}... {} keys read.",
            path.display(),
            items.len()
        ));
    }
    let records = items
        .into_iter()
        .map(|item| (item.key, item.data, item.expiry));
    let records = Records::new(records)
        .ok_or_else(|| Refusal::usage("--data-import: more than 4 GiB of values"))?;
    Ok(Some(Import {
        path: path.clone(),
        records,
        generate_keys: objects.generate_keys,
        no_expiry: objects.no_expiry,
        verify: objects.verify || objects.verify_only,
        verify_only: objects.verify_only,
    }))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "key spaces above 2^53 lose single keys only"
)]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

const DEFAULT_HOST: &str = "localhost";
const DEFAULT_PORT: u16 = 6379;
const DEFAULT_THREADS: u32 = 4;
/// Clients of a thread without `--clients`.
pub(super) const DEFAULT_CLIENTS: u32 = 50;
const DEFAULT_REQUESTS: u64 = 10_000;
const DEFAULT_RATIO: Ratio = Ratio {
    first: 1,
    second: 10,
};
const DEFAULT_PREFIX: &str = "memtier-";
const DEFAULT_KEY_MAXIMUM: u64 = 10_000_000;
const DEFAULT_SIZE: u32 = 32;
const DEFAULT_SEED: u64 = 1;
/// Bound of set-up without options, as with the original's newer versions.
const DEFAULT_STAGE_TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST_STAGE_TIMEOUT: Duration = Duration::from_secs(3600);

#[cfg(test)]
#[path = "resolve_tests.rs"]
pub(super) mod tests;
