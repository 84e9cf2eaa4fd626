//! Rules that concern several options.
//!
//! Each is checked before anything is opened or connected; the first that is broken ends the
//! program with exit status 2 and one line. What the original merely passes over is a warning.

use std::path::Path;

use super::command::{What, keys_in};
use super::options::{ConnectionOptions, Options, ReadPreference};
use super::pattern::Pattern;
use super::resolve;
use super::{Name, UsageError};

/// Checks all rules, and gives the warnings.
///
/// # Errors
/// The first rule that is broken.
pub fn check(options: &Options) -> Result<Vec<String>, UsageError> {
    place(&options.connection)?;
    length(options)?;
    cluster(options)?;
    reads(options)?;
    commands(options)?;
    scan(options)?;
    staircase(options)?;
    jitter(options)?;
    import(options)?;
    sizes(options)?;
    keys(options)?;
    files(options)?;
    Ok(warnings(options))
}

/// A broken rule: this option, what it needs, and what there is.
fn broken(name: Name, expected: impl Into<String>, found: impl std::fmt::Display) -> UsageError {
    UsageError::new(name.spelled(), expected, found)
}

fn without(name: Name, other: Name, given: bool) -> Result<(), UsageError> {
    if given {
        let expected = format!("either {} or {}", name.spelled(), other.spelled());
        return Err(broken(name, expected, "both"));
    }
    Ok(())
}

fn place(connection: &ConnectionOptions) -> Result<(), UsageError> {
    if connection.unix_socket.is_some() {
        without(Name::UnixSocket, Name::Server, connection.server.is_some())?;
        without(Name::UnixSocket, Name::Port, connection.port.is_some())?;
        without(Name::UnixSocket, Name::Uri, connection.uri.is_some())?;
        without(Name::UnixSocket, Name::ClusterMode, connection.cluster_mode)?;
        without(Name::UnixSocket, Name::Tls, connection.tls)?;
    }
    Ok(())
}

fn length(options: &Options) -> Result<(), UsageError> {
    let test = &options.test;
    if test.test_time.is_some() {
        without(Name::TestTime, Name::Requests, test.requests.is_some())?;
    }
    Ok(())
}

fn cluster(options: &Options) -> Result<(), UsageError> {
    if !options.connection.cluster_mode {
        return Ok(());
    }
    let database = resolve::database(&options.connection);
    for (name, given) in [
        (
            Name::ReconnectInterval,
            options.reconnect.interval.is_some(),
        ),
        (Name::WaitRatio, options.wait.ratio.is_some()),
        (Name::SelectDb, database > 0),
        (Name::DataImport, options.objects.import.is_some()),
        (
            Name::ScanIncrementalIteration,
            options.commands.scan_iteration,
        ),
    ] {
        without(Name::ClusterMode, name, given)?;
    }
    let tagged = resolve::has_hash_tag(&options.keys);
    if let Some(keys) = options.test.multi_key_get.filter(|keys| *keys > 1)
        && !tagged
    {
        return Err(broken(
            Name::MultiKeyGet,
            "a hash tag in --key-prefix, as in '{tag}', with --cluster-mode: the keys of one MGET \
             must be in one slot",
            keys,
        ));
    }
    for command in &options.commands.commands {
        if let What::Arguments(arguments) = &command.what
            && keys_in(arguments) > 1
            && !tagged
        {
            return Err(broken(
                Name::Command,
                "at most one __key__ with --cluster-mode, because the key decides the node, or a hash \
                 tag in --key-prefix",
                format_args!("{:?}", command.text),
            ));
        }
    }
    Ok(())
}

fn reads(options: &Options) -> Result<(), UsageError> {
    let connection = &options.connection;
    if connection.transaction {
        if options.commands.commands.is_empty() {
            return Err(broken(Name::Transaction, "a --command", "none"));
        }
        let elsewhere = connection.read_preference != ReadPreference::Primary;
        if elsewhere {
            return Err(broken(
                Name::Transaction,
                "--read-preference=primary: the two are mutually exclusive otherwise",
                "another one",
            ));
        }
    }
    Ok(())
}

fn commands(options: &Options) -> Result<(), UsageError> {
    let commands = &options.commands.commands;
    if commands.is_empty() {
        return Ok(());
    }
    for (name, instead, given) in [
        (
            Name::Ratio,
            Name::CommandRatio,
            options.test.ratio.is_some(),
        ),
        (
            Name::KeyPattern,
            Name::CommandKeyPattern,
            options.keys.patterns.is_some(),
        ),
    ] {
        if given {
            let expected = format!("{} behind each --command instead", instead.spelled());
            return Err(broken(name, expected, "it beside --command"));
        }
    }
    let parallel = |pattern| pattern == Pattern::Parallel;
    let found = commands.iter().filter(|one| parallel(one.pattern)).count();
    if found > 0 && found < commands.len() {
        return Err(broken(
            Name::CommandKeyPattern,
            "P for all commands or for none",
            format_args!("{found} of {}", commands.len()),
        ));
    }
    Ok(())
}

fn scan(options: &Options) -> Result<(), UsageError> {
    if !options.commands.scan_iteration {
        return Ok(());
    }
    let name = Name::ScanIncrementalIteration;
    if let Some(depth) = options.test.pipeline.filter(|depth| *depth > 1) {
        return Err(broken(name, "--pipeline 1", depth));
    }
    let [command] = options.commands.commands.as_slice() else {
        let found = options.commands.commands.len();
        return Err(broken(name, "exactly one --command, a SCAN", found));
    };
    let words = match &command.what {
        What::Arguments(arguments) => arguments.len(),
        _ => 0,
    };
    if words < 2 || command.name() != "SCAN" {
        return Err(broken(
            name,
            "a --command of the form 'SCAN 0 …'",
            format_args!("{:?}", command.text),
        ));
    }
    Ok(())
}

fn staircase(options: &Options) -> Result<(), UsageError> {
    let test = &options.test;
    let parts = [
        (Name::ClientsStart, test.clients_start),
        (Name::ClientsStep, test.clients_step),
        (Name::StepDuration, test.step_duration),
    ];
    let Some((given, _)) = parts.iter().find(|(_, part)| part.is_some()) else {
        return Ok(());
    };
    for (name, part) in parts {
        if part.is_none() {
            return Err(broken(
                *given,
                format!("{} beside it", name.spelled()),
                "none",
            ));
        }
    }
    let clients = test.clients.unwrap_or(resolve::DEFAULT_CLIENTS);
    if let Some(start) = test.clients_start.filter(|start| *start >= clients) {
        let expected = format!("fewer than --clients ({clients})");
        return Err(broken(Name::ClientsStart, expected, start));
    }
    without(Name::ClientsStart, Name::Requests, test.requests.is_some())?;
    if test.test_time.is_none() {
        return Err(broken(
            Name::ClientsStart,
            "a --test-time beside it",
            "none",
        ));
    }
    Ok(())
}

fn jitter(options: &Options) -> Result<(), UsageError> {
    let least = options.reconnect.min_jitter_us.unwrap_or(0);
    let most = options.reconnect.max_jitter_us.unwrap_or(0);
    if least > most {
        let longest = Name::ThreadConnStartMaxJitterMicros.spelled();
        return Err(broken(
            Name::ThreadConnStartMinJitterMicros,
            format!("at most {longest} ({most})"),
            least,
        ));
    }
    Ok(())
}

fn import(options: &Options) -> Result<(), UsageError> {
    let (objects, keys) = (&options.objects, &options.keys);
    if objects.import.is_none() {
        for (name, given) in [
            (Name::VerifyOnly, objects.verify_only),
            (Name::DataVerify, objects.verify),
            (Name::NoExpiry, objects.no_expiry),
        ] {
            if given {
                return Err(broken(name, "a --data-import beside it", "none"));
            }
        }
        return Ok(());
    }
    let commands = !options.commands.commands.is_empty();
    without(Name::DataImport, Name::Command, commands)?;
    let sequential = keys
        .patterns
        .is_some_and(|both| both.set == Pattern::Sequential);
    if (objects.verify || objects.verify_only)
        && objects.generate_keys
        && options.test.test_time.is_some()
        && !sequential
    {
        return Err(broken(
            Name::DataVerify,
            "--requests, or keys that are written in order (--key-pattern S:…), because else it \
             is not known what was written",
            "--test-time and --generate-keys",
        ));
    }
    for (name, given) in [
        (Name::DataSize, objects.data_size.is_some()),
        (Name::DataSizeList, objects.size_list.is_some()),
        (Name::DataSizeRange, objects.size_range.is_some()),
        (Name::RandomData, objects.random_data),
    ] {
        without(name, Name::DataImport, given)?;
    }
    if !objects.generate_keys {
        for (name, given) in [
            (Name::KeyMinimum, keys.minimum.is_some()),
            (Name::KeyMaximum, keys.maximum.is_some()),
            (Name::KeyPrefix, keys.prefix.is_some()),
        ] {
            if given {
                let expected = "--generate-keys, or the keys of --data-import as they are";
                return Err(broken(name, expected, "neither"));
            }
        }
    }
    Ok(())
}

fn sizes(options: &Options) -> Result<(), UsageError> {
    let objects = &options.objects;
    if objects.data_size.is_some() {
        without(
            Name::DataSize,
            Name::DataSizeList,
            objects.size_list.is_some(),
        )?;
        without(
            Name::DataSize,
            Name::DataSizeRange,
            objects.size_range.is_some(),
        )?;
    }
    if objects.size_list.is_some() {
        let range = objects.size_range.is_some();
        without(Name::DataSizeList, Name::DataSizeRange, range)?;
    }
    if objects.data_offset.is_some_and(|offset| offset > 0) {
        let expiry = objects.expiry_range.is_some();
        without(Name::DataOffset, Name::ExpiryRange, expiry)?;
    }
    Ok(())
}

fn keys(options: &Options) -> Result<(), UsageError> {
    let keys = &options.keys;
    let (least, most) = resolve::key_range(keys);
    if least > most {
        let expected = format!("at most --key-maximum ({most})");
        return Err(broken(Name::KeyMinimum, expected, least));
    }
    let gaussian = |pattern| pattern == Pattern::Gaussian;
    let any = keys
        .patterns
        .is_some_and(|both| gaussian(both.set) || gaussian(both.get))
        || options
            .commands
            .commands
            .iter()
            .any(|one| gaussian(one.pattern));
    for (name, given) in [
        (Name::KeyStddev, keys.stddev.is_some()),
        (Name::KeyMedian, keys.median.is_some()),
    ] {
        if given && !any {
            return Err(broken(name, "a key pattern G", "none"));
        }
    }
    if let Some(median) = keys.median {
        let inside = resolve::float(least) <= median && median <= resolve::float(most);
        if !inside {
            let expected = format!("a key between {least} and {most}");
            return Err(broken(Name::KeyMedian, expected, median));
        }
    }
    Ok(())
}

fn files(options: &Options) -> Result<(), UsageError> {
    let (output, own) = (&options.output, &options.own);
    let mut seen: Vec<(Name, &Path)> = Vec::new();
    for (name, path) in [
        (Name::OutFile, &output.out_file),
        (Name::JsonOutFile, &output.json_out_file),
        (Name::JsonLines, &own.json_lines),
        (Name::Html, &own.html),
    ] {
        let Some(path) = path else { continue };
        // Devices may take more than one output.
        if let Some((other, _)) = seen.iter().find(|(_, other)| *other == path)
            && !path.starts_with("/dev")
        {
            let expected = format!("another file than {}", other.spelled());
            return Err(broken(name, expected, path.display()));
        }
        seen.push((name, path));
    }
    Ok(())
}

fn warnings(options: &Options) -> Vec<String> {
    let connection = &options.connection;
    let mut warnings = Vec::new();
    if let Some(uri) = &connection.uri {
        for (name, overruled) in [
            (
                Name::Server,
                connection
                    .server
                    .as_ref()
                    .is_some_and(|server| *server != uri.host),
            ),
            (
                Name::Port,
                uri.port.is_some() && connection.port.is_some() && uri.port != connection.port,
            ),
            (
                Name::Authenticate,
                uri.credentials.is_some() && connection.credentials.is_some(),
            ),
            (
                Name::SelectDb,
                uri.database.is_some() && connection.select_db.is_some(),
            ),
        ] {
            if overruled {
                let name = name.spelled();
                warnings.push(format!("{name} is passed over: --uri says something else"));
            }
        }
    }
    let tls = connection.tls || connection.uri.as_ref().is_some_and(|uri| uri.tls);
    let has_read_servers = !connection.read_servers.is_empty();
    let commands = !options.commands.commands.is_empty();
    for (name, idle, needs) in [
        (
            Name::TlsSkipVerify,
            connection.tls_skip_verify && !tls,
            "--tls",
        ),
        (Name::Cert, connection.cert.is_some() && !tls, "--tls"),
        (Name::Key, connection.key.is_some() && !tls, "--tls"),
        (Name::Cacert, connection.cacert.is_some() && !tls, "--tls"),
        (Name::Sni, connection.sni.is_some() && !tls, "--tls"),
        (
            Name::ReadPreference,
            connection.read_preference != ReadPreference::Primary
                && !connection.cluster_mode
                && !has_read_servers,
            "--cluster-mode or --read-server",
        ),
        (
            Name::GenerateKeys,
            options.objects.generate_keys && options.objects.import.is_none(),
            "--data-import",
        ),
        (
            Name::DataSizePattern,
            options.objects.sizes_by_key && options.objects.size_range.is_none(),
            "--data-size-range",
        ),
        (
            Name::WaitTimeout,
            options.wait.timeout_ms.is_some() && options.wait.ratio.is_none(),
            "--wait-ratio",
        ),
        (
            Name::NumSlaves,
            options.wait.replicas.is_some() && options.wait.ratio.is_none(),
            "--wait-ratio",
        ),
        (
            Name::MaxRetries,
            options.retry.max_retries.is_some() && !options.retry.on_error,
            "--retry-on-error",
        ),
        (
            Name::RetryBackoffMs,
            options.retry.backoff_ms.is_some() && !options.retry.on_error,
            "--retry-on-error",
        ),
        (
            Name::RetryOn,
            !options.retry.only_on.is_empty() && !options.retry.on_error,
            "--retry-on-error",
        ),
        (
            Name::MonitorInput,
            options.commands.monitor_input.is_some() && !commands,
            "--command=__monitor_line@__ or --command=__monitor_line1__",
        ),
    ] {
        if idle {
            let name = name.spelled();
            warnings.push(format!("{name} has no effect without {needs}"));
        }
    }
    if commands {
        for (name, idle) in [
            (Name::WaitRatio, options.wait.ratio.is_some()),
            (Name::MultiKeyGet, options.test.multi_key_get.is_some()),
        ] {
            if idle {
                let name = name.spelled();
                warnings.push(format!("{name} has no effect with --command"));
            }
        }
    }
    warnings
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
