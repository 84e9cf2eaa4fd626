//! Settings of a server in a program or a test, one call each.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::account::Account;
use crate::config::ServerConfig;
use crate::latency::{Cut, Freeze, LatencyRules, ParseError, Queue, Rule, Shape};
use crate::limit::{
    AcceptLimit, AcceptRate, BlockForm, Blocked, ByteSize, ConnectionLimit, Eviction, LimitError,
    OutputLimit, Share, SizeLimit, Throttle,
};
use crate::server::{MockServer, StartError};
use crate::tls::{CertificateSource, ClientAuth};

/// Settings of a server that is going to be started; see [`MockServer::builder`].
///
/// What cannot be read or is out of bounds is told by [`ServerBuilder::start`].
#[derive(Debug, Default)]
#[must_use]
pub struct ServerBuilder {
    config: ServerConfig,
    rules: Vec<Rule>,
    error: Option<StartError>,
}

impl ServerBuilder {
    /// The address to listen on; 127.0.0.1 by default.
    pub fn bind(mut self, address: IpAddr) -> Self {
        self.config.bind = address;
        self
    }

    /// The port for RESP: 0 (the default) picks a free one, `None` opens none.
    pub fn redis_port(mut self, port: impl Into<Option<u16>>) -> Self {
        self.config.redis_port = port.into();
        self
    }

    /// The port for Aerospike: 0 (the default) picks a free one, `None` opens none.
    pub fn aerospike_port(mut self, port: impl Into<Option<u16>>) -> Self {
        self.config.aerospike_port = port.into();
        self
    }

    /// A port that serves both protocols, beside the others: 0 picks a free one, `None` (the
    /// default) opens none.
    pub fn shared_port(mut self, port: impl Into<Option<u16>>) -> Self {
        self.config.shared_port = port.into();
        self
    }

    /// The port for RESP over TLS: 0 picks a free one, `None` (the default) opens none.
    pub fn redis_tls_port(mut self, port: impl Into<Option<u16>>) -> Self {
        self.config.tls.redis_port = port.into();
        self
    }

    /// The port for Aerospike over TLS: 0 picks a free one, `None` (the default) opens none.
    pub fn aerospike_tls_port(mut self, port: impl Into<Option<u16>>) -> Self {
        self.config.tls.aerospike_port = port.into();
        self
    }

    /// Whether no plain port is opened: the usual ports speak TLS then.
    pub fn tls_required(mut self, required: bool) -> Self {
        self.config.tls.required = required;
        self
    }

    /// The certificate and its private key, both in PEM form. Without this one is made for the run;
    /// [`MockServer::ca_pem`] gives the authority that clients have to trust.
    pub fn tls_cert(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.config.tls.certificate = CertificateSource::Files {
            certificate: certificate.into(),
            key: key.into(),
        };
        self
    }

    /// Makes a certificate and keeps it in this folder, with its authority in `ca.pem`.
    pub fn tls_self_signed(mut self, folder: impl Into<PathBuf>) -> Self {
        self.config.tls.certificate = CertificateSource::SelfSigned(folder.into());
        self
    }

    /// Verifies the certificates of clients against the authorities in this file, and refuses clients
    /// without one where they are required.
    pub fn tls_client_ca(mut self, file: impl Into<PathBuf>, auth: ClientAuth) -> Self {
        self.config.tls.client_ca = Some(file.into());
        self.config.tls.client_auth = auth;
        self
    }

    /// Worker threads, from 1 (the default) to [`ServerConfig::MAX_WORKERS`].
    pub fn workers(mut self, workers: usize) -> Self {
        self.config.workers = workers;
        self
    }

    /// Seeds everything that is drawn at random; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Adds a latency rule: a text such as `"get=lognormal(p50=300us,p99=2ms)"`, a [`Rule`], or a
    /// [`Distribution`](crate::latency::Distribution) for all reads and writes.
    pub fn latency<R>(mut self, rule: R) -> Self
    where
        R: TryInto<Rule>,
        ParseError: From<R::Error>,
    {
        match rule.try_into() {
            Ok(rule) => self.rules.push(rule),
            Err(error) => self.fail(ParseError::from(error)),
        }
        self
    }

    /// Adds a freeze: a text such as `"every=2s,for=150ms"`, or a [`Freeze`].
    pub fn freeze<F>(mut self, freeze: F) -> Self
    where
        F: TryInto<Freeze>,
        ParseError: From<F::Error>,
    {
        match freeze.try_into() {
            Ok(freeze) => self.config.freezes.push(freeze),
            Err(error) => self.fail(ParseError::from(error)),
        }
        self
    }

    /// Changes the delays of reads and writes over time: a text such as `"step(at=5s,factor=3)"`, or a
    /// [`Shape`]. Several work one after the other.
    pub fn shape<S>(mut self, shape: S) -> Self
    where
        S: TryInto<Shape>,
        ParseError: From<S::Error>,
    {
        match shape.try_into() {
            Ok(shape) => self.config.shapes.push(shape),
            Err(error) => self.fail(ParseError::from(error)),
        }
        self
    }

    /// Has reads and writes pass a queue: a text such as `"servers=4,service=exponential(mean=1ms)"`,
    /// or a [`Queue`].
    pub fn queue<Q>(mut self, queue: Q) -> Self
    where
        Q: TryInto<Queue>,
        ParseError: From<Q::Error>,
    {
        match queue.try_into() {
            Ok(queue) => self.config.queue = Some(queue),
            Err(error) => self.fail(ParseError::from(error)),
        }
        self
    }

    /// Adds moments at which connections are ended: a text such as `"every=2s,how=reset"`, or a
    /// [`Cut`].
    pub fn cut<C>(mut self, cut: C) -> Self
    where
        C: TryInto<Cut>,
        ParseError: From<C::Error>,
    {
        match cut.try_into() {
            Ok(cut) => self.config.cuts.push(cut),
            Err(error) => self.fail(ParseError::from(error)),
        }
        self
    }

    /// How many connections each protocol may have, by default 10,000 RESP and 15,000 Aerospike ones.
    pub fn max_connections(mut self, most: u64) -> Self {
        self.config.connections.max = Some(most);
        self
    }

    /// How many connections of each protocol one client address may have.
    pub fn max_connections_per_address(mut self, most: u64) -> Self {
        self.config.connections.max_per_address = Some(most);
        self
    }

    /// What becomes of connections beyond these two; by default a RESP client is told, an Aerospike
    /// client is hung up on.
    pub fn connection_limit(mut self, form: ConnectionLimit) -> Self {
        self.config.connections.at_cap = Some(form);
        self
    }

    /// What a RESP client beyond these two is told.
    pub fn connection_text(mut self, text: impl Into<String>) -> Self {
        self.config.connections.text = Some(text.into());
        self
    }

    /// How fast new connections may come on one core, as in `200/500ms`.
    pub fn accept_rate(mut self, rate: &str) -> Self {
        match rate.parse::<AcceptRate>() {
            Ok(rate) => self.config.connections.rate = Some(rate),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Multiplies the rate of [`ServerBuilder::accept_rate`]; 1 by default.
    pub fn cores(mut self, cores: u32) -> Self {
        self.config.connections.cores = cores;
        self
    }

    /// What becomes of connections that come faster; by default they are delayed.
    pub fn accept_limit(mut self, form: AcceptLimit) -> Self {
        self.config.connections.at_rate = form;
        self
    }

    /// What a RESP client that comes faster is told.
    pub fn accept_text(mut self, text: impl Into<String>) -> Self {
        self.config.connections.rate_text = Some(text.into());
        self
    }

    /// How long a connection may be silent with nothing under way.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.config.connections.idle = Some(time);
        self
    }

    /// How long a connection may last.
    pub fn max_age(mut self, time: Duration) -> Self {
        self.config.connections.max_age = Some(time);
        self
    }

    /// How many bytes of replies may wait for a client: `32MiB`, or `hard=32MiB,soft=8MiB,for=60s`.
    pub fn output_limit(mut self, limit: &str) -> Self {
        match limit.parse::<OutputLimit>() {
            Ok(limit) => self.config.connections.output = Some(limit),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Adds a throttle: a text such as `"ops=1000/s,then=error"`, or a [`Throttle`].
    pub fn throttle<T>(mut self, throttle: T) -> Self
    where
        T: TryInto<Throttle>,
        LimitError: From<T::Error>,
    {
        match throttle.try_into() {
            Ok(throttle) => self.config.requests.throttles.push(throttle),
            Err(error) => self.fail(LimitError::from(error)),
        }
        self
    }

    /// Limits sizes: a text such as `"key=32KB"`, or a [`SizeLimit`].
    pub fn size_limit<S>(mut self, limit: S) -> Self
    where
        S: TryInto<SizeLimit>,
        LimitError: From<S::Error>,
    {
        match limit.try_into() {
            Ok(limit) => self.config.requests.sizes.push(limit),
            Err(error) => self.fail(LimitError::from(error)),
        }
        self
    }

    /// How much memory the data of the RESP side, and that of each namespace, may take.
    pub fn max_memory(mut self, size: ByteSize) -> Self {
        self.config.requests.max_memory = Some(size);
        self
    }

    /// What the RESP side evicts when its memory is used up; nothing by default.
    pub fn eviction(mut self, policy: Eviction) -> Self {
        self.config.requests.eviction = Some(policy);
        self
    }

    /// From which share of its memory on a namespace takes no writes; 70 % by default.
    pub fn stop_writes(mut self, share: Share) -> Self {
        self.config.requests.stop_writes = Some(share);
        self
    }

    /// Lets nobody run a command: a name such as `"config"` or `"client|kill"`, or a [`Blocked`].
    pub fn block<B>(mut self, command: B) -> Self
    where
        B: TryInto<Blocked>,
        LimitError: From<B::Error>,
    {
        match command.try_into() {
            Ok(blocked) => self.config.requests.blocked.push(blocked),
            Err(error) => self.fail(LimitError::from(error)),
        }
        self
    }

    /// How a RESP client is told that a command is blocked; as one that does not exist by default.
    pub fn block_form(mut self, form: BlockForm) -> Self {
        self.config.requests.block_form = form;
        self
    }

    /// Number of Redis databases, from 1 to 65,536; 16 by default.
    pub fn databases(mut self, databases: usize) -> Self {
        self.config.redis.databases = databases;
        self
    }

    /// Whether to keep a row for every request; by default only distributions are kept.
    pub fn record_rows(mut self, record: bool) -> Self {
        self.config.record_rows = record;
        self
    }

    /// Keeps a row for each of the last `most` requests, and counts those that were dropped.
    pub fn record_last_rows(mut self, most: usize) -> Self {
        (self.config.record_rows, self.config.row_limit) = (true, Some(most));
        self
    }

    /// Writes a row for every request to a CSV file and keeps none in memory.
    pub fn rows_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.config.rows_file = Some(path.into());
        self
    }

    /// Whether waiting ends in a short spin (precise, the default) or in a plain wake-up (cheap).
    pub fn spin(mut self, spin: bool) -> Self {
        self.config.spin = spin;
        self
    }

    /// Adds a user who may log in, on both protocols; with any, clients have to.
    pub fn user(mut self, name: &str, password: &str) -> Self {
        match Account::new(name, password) {
            Ok(account) => self.config.users.push(account),
            Err(error) => self.fail(error),
        }
        self
    }

    /// The version of Redis to be, as in `7.0.15`; 7.2.4 by default.
    pub fn redis_version(mut self, version: &str) -> Self {
        match version.parse() {
            Ok(version) => self.config.redis.version = version,
            Err(error) => self.fail(error),
        }
        self
    }

    /// The name of the Aerospike node; `A1` by default.
    pub fn node_name(mut self, name: impl Into<String>) -> Self {
        self.config.aerospike.node_name = name.into();
        self
    }

    /// The name of the Aerospike cluster; `lab` by default.
    pub fn cluster_name(mut self, name: impl Into<String>) -> Self {
        self.config.aerospike.cluster_name = name.into();
        self
    }

    /// The Aerospike build to be; `8.1.2.0` by default.
    pub fn build(mut self, build: impl Into<String>) -> Self {
        self.config.aerospike.build = build.into();
        self
    }

    /// The Aerospike namespaces; `test` alone by default.
    pub fn namespaces<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.config.aerospike.namespaces = names.into_iter().map(Into::into).collect();
        self
    }

    /// The settings as they stand, for a server under virtual time.
    ///
    /// # Errors
    /// When a text could not be read or a setting is out of its bounds.
    pub fn into_config(self) -> Result<ServerConfig, StartError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut config = self.config;
        config.latency = LatencyRules::new(self.rules)?;
        config.check()?;
        Ok(config)
    }

    /// Starts the server on threads of its own; it stops when the handle is dropped.
    ///
    /// # Errors
    /// When a text could not be read, a setting is out of its bounds, a port is taken or not
    /// allowed, or the system gives no thread.
    pub fn start(self) -> Result<MockServer, StartError> {
        MockServer::start(self.into_config()?)
    }

    /// The first error is the one to tell.
    fn fail(&mut self, error: impl Into<StartError>) {
        self.error.get_or_insert(error.into());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::latency::Distribution;

    #[test]
    fn texts_and_values_say_the_same() {
        let config = MockServer::builder()
            .latency("constant(1ms)")
            .latency(Distribution::constant(Duration::from_millis(1)))
            .freeze("every=2s,for=150ms")
            .redis_version("7.0.15")
            .namespaces(["a", "b"])
            .into_config()
            .unwrap();
        let [text, value] = config.latency.rules() else {
            panic!("two rules");
        };
        assert_eq!(text, value);
        assert_eq!(config.freezes[0].length_ns, 150_000_000);
        assert_eq!(config.redis.version.to_string(), "7.0.15");
        assert_eq!(config.aerospike.namespaces, ["a", "b"]);
    }

    #[test]
    fn the_first_error_is_told_at_the_end() {
        let error = MockServer::builder()
            .latency("constant(1)")
            .freeze("every=1s,for=2s")
            .into_config()
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "'1' lacks a unit: expected ns, us, ms, s, m or h, as in 1ms, at character 10 of \
             'constant(1)'"
        );
        let error = MockServer::builder().workers(0).into_config().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the number of workers is '0'; expected 1 to 256"
        );
    }
}
