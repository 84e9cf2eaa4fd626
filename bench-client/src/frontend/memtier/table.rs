//! Every option: spelling, argument, group, origin and help.
//!
//! One row per option. The parser, the help text and the check of the documents read this table,
//! so an option cannot be known to one of them alone.

/// An option, whichever way it was spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "each is the option of that name; the table below describes it"
)]
pub enum Name {
    Server,
    Host,
    Port,
    UnixSocket,
    Ipv4,
    Ipv6,
    Protocol,
    Authenticate,
    Uri,
    Tls,
    Cert,
    Key,
    Cacert,
    TlsSkipVerify,
    TlsProtocols,
    Sni,
    RunCount,
    Debug,
    ClusterMode,
    Transaction,
    ReadPreference,
    ReadPreferenceFallback,
    ReadServer,
    Help,
    Version,
    OutFile,
    JsonOutFile,
    ClientStats,
    HdrFilePrefix,
    ShowConfig,
    HideHistogram,
    PrintPercentiles,
    PrintAllRuns,
    RealtimeLatencies,
    LatencyWindow,
    CommandStatsBreakdown,
    CommandMissTracking,
    MissRateThreshold,
    StatsdHost,
    StatsdPort,
    StatsdPrefix,
    StatsdRunLabel,
    GraphitePort,
    Requests,
    RateLimiting,
    Clients,
    Threads,
    TestTime,
    ClientsStart,
    ClientsStep,
    StepDuration,
    Ratio,
    Pipeline,
    ReconnectInterval,
    ReconnectOnError,
    MaxReconnectAttempts,
    ReconnectBackoffFactor,
    RetryOnError,
    MaxRetries,
    RetryBackoffMs,
    RetryBackoffFactor,
    RetryOn,
    MaxRetryQueue,
    FailedKeysFile,
    ConnectionTimeout,
    ConnectionStageTimeout,
    ThreadConnStartMinJitterMicros,
    ThreadConnStartMaxJitterMicros,
    MultiKeyGet,
    SelectDb,
    DistinctClientSeed,
    Randomize,
    Command,
    CommandRatio,
    CommandKeyPattern,
    CommandIsRead,
    MonitorInput,
    MonitorPattern,
    ScanIncrementalIteration,
    ScanIncrementalMaxIterations,
    DataSize,
    DataOffset,
    RandomData,
    DataSizeRange,
    DataSizeList,
    DataSizePattern,
    ExpiryRange,
    DataImport,
    DataVerify,
    VerifyOnly,
    GenerateKeys,
    NoExpiry,
    KeyPrefix,
    KeyMinimum,
    KeyMaximum,
    KeyPattern,
    KeyStddev,
    KeyMedian,
    KeyZipfExp,
    WaitRatio,
    NumSlaves,
    WaitTimeout,
    JsonLines,
    Html,
    ResponseTime,
    LatencyFrom,
    Warmup,
    Seed,
    SameSeed,
    MaxErrors,
    ConnectRate,
    Certify,
}

/// What an option belongs to; the groups of the help text, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Server, login, TLS.
    Connection,
    /// Files and what is printed.
    Output,
    /// How hard and for how long.
    Test,
    /// Commands of one's own.
    Commands,
    /// Sizes and content of values.
    Objects,
    /// Values from a file.
    Import,
    /// Keys.
    Keys,
    /// `WAIT`.
    Wait,
    /// What memtier_benchmark has not.
    Own,
}

/// Where an option comes from. A prefix that is unique among the older options stays unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// memtier_benchmark up to 2.3.
    Classic,
    /// memtier_benchmark 2.4 and later.
    Later,
    /// Ours.
    Own,
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which.
    pub name: Name,
    /// Long name with its dashes, for example `--port`.
    pub spelled: &'static str,
    /// Short name.
    pub short: Option<char>,
    /// Name of its argument in the help text; `None` takes none.
    pub argument: Option<&'static str>,
    /// Where it stands in the help text.
    pub group: Group,
    /// Where it comes from.
    pub origin: Origin,
    /// Help.
    pub help: &'static str,
}

impl Name {
    /// The row of the option; a test holds that each has one.
    #[must_use]
    pub fn row(self) -> &'static Row {
        TABLE
            .iter()
            .find(|row| row.name == self)
            .unwrap_or(&TABLE[0])
    }

    /// The option as it is written in messages, for example `--port`.
    #[must_use]
    pub fn spelled(self) -> &'static str {
        self.row().spelled
    }
}

impl Row {
    /// The long name without its dashes.
    #[must_use]
    pub fn long(&self) -> &'static str {
        self.spelled.trim_start_matches('-')
    }

    const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    const fn later(mut self) -> Self {
        self.origin = Origin::Later;
        self
    }
}

const fn flag(name: Name, spelled: &'static str, group: Group, help: &'static str) -> Row {
    let origin = match group {
        Group::Own => Origin::Own,
        _ => Origin::Classic,
    };
    Row {
        name,
        spelled,
        short: None,
        argument: None,
        group,
        origin,
        help,
    }
}

const fn takes(
    name: Name,
    spelled: &'static str,
    argument: &'static str,
    group: Group,
    help: &'static str,
) -> Row {
    let mut row = flag(name, spelled, group, help);
    row.argument = Some(argument);
    row
}

/// All options, in the order of the help text.
pub static TABLE: &[Row] = &[
    takes(Name::Server, "--server", "HOST", Group::Connection, "Server: a name, an IPv4 or an IPv6 address [default: localhost]").short('s'),
    takes(Name::Host, "--host", "HOST", Group::Connection, "The same as --server; -h is not help").short('h'),
    takes(Name::Port, "--port", "PORT", Group::Connection, "Port, 1 to 65535 [default: 6379]").short('p'),
    takes(Name::UnixSocket, "--unix-socket", "PATH", Group::Connection, "Socket file instead of host and port").short('S'),
    flag(Name::Ipv4, "--ipv4", Group::Connection, "Use IPv4 addresses of the host only").short('4'),
    flag(Name::Ipv6, "--ipv6", Group::Connection, "Use IPv6 addresses of the host only").short('6'),
    takes(Name::Protocol, "--protocol", "NAME", Group::Connection, "redis, resp2 or resp3; the last two begin with HELLO [default: redis]").short('P'),
    takes(Name::Authenticate, "--authenticate", "CREDENTIALS", Group::Connection, "PASSWORD, USER:PASSWORD, or :PASSWORD for a password with a colon").short('a'),
    takes(Name::Uri, "--uri", "URI", Group::Connection, "redis://[[user:]password@]host[:port][/db], or rediss:// for TLS; wins over the single options").short('u'),
    flag(Name::Tls, "--tls", Group::Connection, "Talk TLS; the certificate and the host name are checked"),
    takes(Name::Cert, "--cert", "FILE", Group::Connection, "PEM file with the client's certificate chain"),
    takes(Name::Key, "--key", "FILE", Group::Connection, "PEM file with the client's key [default: the file of --cert]"),
    takes(Name::Cacert, "--cacert", "FILE", Group::Connection, "PEM file with the authorities to trust"),
    flag(Name::TlsSkipVerify, "--tls-skip-verify", Group::Connection, "Trust any certificate and any host name"),
    takes(Name::TlsProtocols, "--tls-protocols", "LIST", Group::Connection, "Versions to offer, parted by commas: TLSv1.2, TLSv1.3 [default: both]"),
    takes(Name::Sni, "--sni", "NAME", Group::Connection, "Host name to send and to check instead of the server's"),
    flag(Name::ClusterMode, "--cluster-mode", Group::Connection, "Learn the slots of a cluster and talk to all its primaries"),
    flag(Name::Transaction, "--transaction", Group::Connection, "Cluster: keep one round of all --command on one shard, for MULTI and EXEC").later(),
    takes(Name::ReadPreference, "--read-preference", "MODE", Group::Connection, "Where reads go: primary, secondary, secondaryPreferred or nearest [default: primary]").later(),
    takes(Name::ReadPreferenceFallback, "--read-preference-fallback", "MODE", Group::Connection, "Without a replica: error, queue or primary [default: error]").later(),
    takes(Name::ReadServer, "--read-server", "HOST:PORT", Group::Connection, "A replica to read from, outside of cluster mode; may be repeated").later(),
    takes(Name::RunCount, "--run-count", "N", Group::Connection, "Repeat the whole test so many times [default: 1]").short('x'),
    flag(Name::Debug, "--debug", Group::Connection, "Say more on stderr; may be repeated").short('D'),
    flag(Name::Help, "--help", Group::Connection, "Print this and end with 0"),
    flag(Name::Version, "--version", Group::Connection, "Print the version and end with 0").short('v'),
    takes(Name::OutFile, "--out-file", "FILE", Group::Output, "Write the tables to this file [default: stdout]").short('o'),
    takes(Name::JsonOutFile, "--json-out-file", "FILE", Group::Output, "Write the results as JSON to this file"),
    takes(Name::ClientStats, "--client-stats", "PREFIX", Group::Output, "Write one CSV file per client and run"),
    takes(Name::HdrFilePrefix, "--hdr-file-prefix", "PREFIX", Group::Output, "Write the latency histograms of each run to files"),
    flag(Name::ShowConfig, "--show-config", Group::Output, "Print all settings before the test"),
    flag(Name::HideHistogram, "--hide-histogram", Group::Output, "Leave the latency distributions out"),
    takes(Name::PrintPercentiles, "--print-percentiles", "LIST", Group::Output, "Percentiles of the tables, 0 to 100 [default: 50,99,99.9]"),
    flag(Name::PrintAllRuns, "--print-all-runs", Group::Output, "With -x: print each run, not only the best and the worst"),
    flag(Name::RealtimeLatencies, "--realtime-latencies", Group::Output, "Show percentiles and misses each second").later(),
    takes(Name::LatencyWindow, "--latency-window", "SECONDS", Group::Output, "With --realtime-latencies: length of the sliding window, 0 to 3600 [default: 60]").later(),
    takes(Name::CommandStatsBreakdown, "--command-stats-breakdown", "HOW", Group::Output, "Rows of --command: one per command, or one per line [default: command]"),
    takes(Name::CommandMissTracking, "--command-miss-tracking", "WHEN", Group::Output, "Count misses of --command: auto or off [default: auto]").later(),
    takes(Name::MissRateThreshold, "--miss-rate-threshold", "PERCENT", Group::Output, "Warn when more reads miss than this [default: 1.0]").later(),
    takes(Name::StatsdHost, "--statsd-host", "HOST", Group::Output, "Send metrics each second to this StatsD server"),
    takes(Name::StatsdPort, "--statsd-port", "PORT", Group::Output, "Its UDP port [default: 8125]"),
    takes(Name::StatsdPrefix, "--statsd-prefix", "TEXT", Group::Output, "First part of the metric names [default: memtier]"),
    takes(Name::StatsdRunLabel, "--statsd-run-label", "TEXT", Group::Output, "Second part of the metric names [default: default]"),
    takes(Name::GraphitePort, "--graphite-port", "PORT", Group::Output, "HTTP port for events at begin and end of a run [default: 8080]"),
    takes(Name::Requests, "--requests", "N|allkeys", Group::Test, "Requests of each client; allkeys: as many as there are keys [default: 10000]").short('n'),
    takes(Name::RateLimiting, "--rate-limiting", "N", Group::Test, "Requests per second and connection, evenly spaced"),
    takes(Name::Clients, "--clients", "N", Group::Test, "Clients of each thread [default: 50]").short('c'),
    takes(Name::Threads, "--threads", "N", Group::Test, "Threads [default: 4]").short('t'),
    takes(Name::TestTime, "--test-time", "SECONDS", Group::Test, "Length of the test, instead of --requests"),
    takes(Name::ClientsStart, "--clients-start", "N", Group::Test, "Staircase: clients of each thread at the begin"),
    takes(Name::ClientsStep, "--clients-step", "N", Group::Test, "Staircase: clients to add with each step"),
    takes(Name::StepDuration, "--step-duration", "SECONDS", Group::Test, "Staircase: length of a step"),
    takes(Name::Ratio, "--ratio", "SET:GET", Group::Test, "So many SETs, then so many GETs, and so on [default: 1:10]"),
    takes(Name::Pipeline, "--pipeline", "N", Group::Test, "Requests in flight on one connection [default: 1]"),
    takes(Name::ReconnectInterval, "--reconnect-interval", "N", Group::Test, "Open a new connection after so many requests"),
    flag(Name::ReconnectOnError, "--reconnect-on-error", Group::Test, "Connect again and again after a connection is lost"),
    takes(Name::MaxReconnectAttempts, "--max-reconnect-attempts", "N", Group::Test, "Give up after so many attempts; 0 is never [default: 0]"),
    takes(Name::ReconnectBackoffFactor, "--reconnect-backoff-factor", "F", Group::Test, "Each wait is F times the one before, from 1 s on [default: all 1 s]"),
    flag(Name::RetryOnError, "--retry-on-error", Group::Test, "Send a request again after an error that may pass").later(),
    takes(Name::MaxRetries, "--max-retries", "N", Group::Test, "So often at most; -1 is without end [default: -1]").later(),
    takes(Name::RetryBackoffMs, "--retry-backoff-ms", "MS", Group::Test, "Wait before it is sent again [default: 0]").later(),
    takes(Name::RetryBackoffFactor, "--retry-backoff-factor", "F", Group::Test, "Each wait is F times the one before [default: all alike]").later(),
    takes(Name::RetryOn, "--retry-on", "LIST", Group::Test, "Only after these errors, as in LOADING,BUSY").later(),
    takes(Name::MaxRetryQueue, "--max-retry-queue", "N", Group::Test, "Requests of one connection that wait to be sent again [default: by the pipeline]").later(),
    takes(Name::FailedKeysFile, "--failed-keys-file", "FILE", Group::Test, "Append what failed for good as CSV").later(),
    takes(Name::ConnectionTimeout, "--connection-timeout", "SECONDS", Group::Test, "Bound of connecting; 0 leaves it to --connection-stage-timeout [default: 0]"),
    takes(Name::ConnectionStageTimeout, "--connection-stage-timeout", "SECONDS", Group::Test, "Bound of connecting and logging in before the load [default: 30]").later(),
    takes(Name::ThreadConnStartMinJitterMicros, "--thread-conn-start-min-jitter-micros", "US", Group::Test, "Least wait between two new connections of a thread [default: 0]"),
    takes(Name::ThreadConnStartMaxJitterMicros, "--thread-conn-start-max-jitter-micros", "US", Group::Test, "Longest wait between two new connections of a thread [default: 0]"),
    takes(Name::MultiKeyGet, "--multi-key-get", "N", Group::Test, "Read up to N keys with one MGET [default: 0, GET]"),
    takes(Name::SelectDb, "--select-db", "N", Group::Test, "Database [default: 0]"),
    flag(Name::DistinctClientSeed, "--distinct-client-seed", Group::Test, "Each client draws its own keys and values [default: all the same ones]"),
    flag(Name::Randomize, "--randomize", Group::Test, "Take the seed from the clock and the system [default: a fixed seed]"),
    takes(Name::Command, "--command", "COMMAND", Group::Commands, "Send this instead of SET and GET; __key__ and __data__ are filled in; may be repeated"),
    takes(Name::CommandRatio, "--command-ratio", "N", Group::Commands, "Send the --command before it so many times in a row [default: 1]"),
    takes(Name::CommandKeyPattern, "--command-key-pattern", "PATTERN", Group::Commands, "Keys of the --command before it: R, S, G, Z or P [default: R]"),
    flag(Name::CommandIsRead, "--command-is-read", Group::Commands, "The --command before it may go to a replica").later(),
    takes(Name::MonitorInput, "--monitor-input", "FILE", Group::Commands, "Commands from a MONITOR capture, for --command=__monitor_line3__ or __monitor_line@__"),
    takes(Name::MonitorPattern, "--monitor-pattern", "PATTERN", Group::Commands, "Order of __monitor_line@__: S one after the other, R at random [default: S]"),
    flag(Name::ScanIncrementalIteration, "--scan-incremental-iteration", Group::Commands, "Follow the cursor of --command='SCAN 0 …'"),
    takes(Name::ScanIncrementalMaxIterations, "--scan-incremental-max-iterations", "N", Group::Commands, "Begin anew after so many cursors; 0 is at the end of the scan [default: 0]"),
    takes(Name::DataSize, "--data-size", "BYTES", Group::Objects, "Size of the values [default: 32]").short('d'),
    takes(Name::DataOffset, "--data-offset", "BYTES", Group::Objects, "Write with SETRANGE and read with GETRANGE from this offset [default: 0]"),
    flag(Name::RandomData, "--random-data", Group::Objects, "Values of random bytes [default: all x]").short('R'),
    takes(Name::DataSizeRange, "--data-size-range", "MIN-MAX", Group::Objects, "Sizes between these, all alike likely"),
    takes(Name::DataSizeList, "--data-size-list", "SIZE:WEIGHT,…", Group::Objects, "Sizes by weight"),
    takes(Name::DataSizePattern, "--data-size-pattern", "R|S", Group::Objects, "With --data-size-range: R at random, S growing with the key [default: R]"),
    takes(Name::ExpiryRange, "--expiry-range", "MIN-MAX", Group::Objects, "Seconds to live, all alike likely; written with SETEX"),
    takes(Name::DataImport, "--data-import", "FILE", Group::Import, "Values from a CSV dump of memcached"),
    flag(Name::DataVerify, "--data-verify", Group::Import, "Read the values again after the test and compare"),
    flag(Name::VerifyOnly, "--verify-only", Group::Import, "Only compare, without a test before"),
    flag(Name::GenerateKeys, "--generate-keys", Group::Import, "Keys from the key options instead of the file"),
    flag(Name::NoExpiry, "--no-expiry", Group::Import, "Ignore the times to live of the file"),
    takes(Name::KeyPrefix, "--key-prefix", "TEXT", Group::Keys, "Text before the number of a key [default: memtier-]"),
    takes(Name::KeyMinimum, "--key-minimum", "N", Group::Keys, "Smallest number [default: 0]"),
    takes(Name::KeyMaximum, "--key-maximum", "N", Group::Keys, "Largest number [default: 10000000]"),
    takes(Name::KeyPattern, "--key-pattern", "SET:GET", Group::Keys, "Order of the keys: R random, S one after the other, P each client its own part, G gaussian, Z zipf [default: R:R]"),
    takes(Name::KeyStddev, "--key-stddev", "N", Group::Keys, "G: standard deviation [default: a sixth of the range]"),
    takes(Name::KeyMedian, "--key-median", "N", Group::Keys, "G: middle [default: of the range]"),
    takes(Name::KeyZipfExp, "--key-zipf-exp", "F", Group::Keys, "Z: exponent, between 0 and 5 [default: 1]"),
    takes(Name::WaitRatio, "--wait-ratio", "SET:WAIT", Group::Wait, "So many SETs to so many WAITs [default: no WAIT]"),
    takes(Name::NumSlaves, "--num-slaves", "MIN-MAX", Group::Wait, "Replicas that a WAIT waits for"),
    takes(Name::WaitTimeout, "--wait-timeout", "MIN-MAX", Group::Wait, "Milliseconds that a WAIT waits at most"),
    takes(Name::LatencyFrom, "--latency-from", "WHERE", Group::Own, "With --rate-limiting, latencies begin at the intended start or at the send: intended or send [default: intended]"),
    flag(Name::ResponseTime, "--response-time", Group::Own, "The same as --latency-from intended"),
    takes(Name::Warmup, "--warmup", "TIME", Group::Own, "Load before the test that is left out of the results, as in 500ms or 5s [default: 0]"),
    takes(Name::Seed, "--seed", "N", Group::Own, "Seed of all that is drawn at random [default: 1]"),
    flag(Name::SameSeed, "--same-seed", Group::Own, "With -x: draw the same in each run"),
    takes(Name::MaxErrors, "--max-errors", "LIMIT", Group::Own, "Requests that may fail before the exit status is 6: a number, a share as in 0.5%, or none [default: 1%]"),
    takes(Name::ConnectRate, "--connect-rate", "PER_SECOND", Group::Own, "New connections per second in all [default: at once]"),
    takes(Name::JsonLines, "--json-lines", "FILE", Group::Own, "Write one line of JSON per second; - is stdout"),
    takes(Name::Html, "--html", "FILE", Group::Own, "Write the results as a page with charts"),
    flag(Name::Certify, "--certify", Group::Own, "Say how far the latencies can be off, by runs against a known server"),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_option_has_one_row_and_names_of_its_own() {
        let names: HashSet<Name> = TABLE.iter().map(|row| row.name).collect();
        let long: HashSet<&str> = TABLE.iter().map(|row| row.spelled).collect();
        let short: Vec<char> = TABLE.iter().filter_map(|row| row.short).collect();
        assert_eq!(names.len(), TABLE.len());
        assert_eq!(long.len(), TABLE.len());
        assert_eq!(short.iter().collect::<HashSet<_>>().len(), short.len());
        // The last variant counts them all.
        assert_eq!(TABLE.len(), Name::Certify as usize + 1);
        for row in TABLE {
            assert_eq!(row.name.row().spelled, row.spelled);
            assert!(row.spelled.starts_with("--"), "{}", row.spelled);
        }
    }

    #[test]
    fn short_options_are_those_of_the_original() {
        // The set of the original's parser; a colon follows those that take an argument.
        let expected = "vs:S:p:P:o:x:DRn:c:t:d:a:h:46u:";
        let mut found: Vec<String> = TABLE
            .iter()
            .filter_map(|row| {
                let colon = if row.argument.is_some() { ":" } else { "" };
                row.short.map(|short| format!("{short}{colon}"))
            })
            .collect();
        found.sort();
        let mut all = Vec::new();
        for c in expected.chars() {
            match (c, all.last_mut()) {
                (':', Some(last)) => *last = format!("{last}:"),
                _ => all.push(c.to_string()),
            }
        }
        all.sort();
        assert_eq!(found, all);
    }
}
