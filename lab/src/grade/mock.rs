//! The server a tool is run against: the lab's own mock with a timing model.

use std::fmt;

use kvlab_mock_server::latency::{Cut, Freeze, LatencyRules, ParseError, Queue, Rule};
use kvlab_mock_server::{MockServer, ServerConfig, StartError};
use kvlab_protocol::aerospike::digest::Key;
use kvlab_protocol::aerospike::particle::Value;

use crate::subject::Records;

/// The timing model of a mock server.
#[derive(Clone, Debug, Default)]
pub struct Mock {
    /// The delays.
    pub latency: LatencyRules,
    /// The queue before them.
    pub queue: Option<Queue>,
    /// When it stands still.
    pub freezes: Vec<Freeze>,
    /// When it ends connections.
    pub cuts: Vec<Cut>,
    /// Seed of all that is drawn.
    pub seed: u64,
}

/// A timing model as texts.
#[derive(Clone, Copy, Debug, Default)]
pub struct MockTexts<'a> {
    /// Latency rules.
    pub latency: &'a [String],
    /// A queue.
    pub queue: Option<&'a str>,
    /// Freezes.
    pub freezes: &'a [String],
    /// Cuts.
    pub cuts: &'a [String],
}

impl Mock {
    /// The model that texts describe.
    ///
    /// # Errors
    /// When one of them cannot be read, or there are too many rules.
    pub fn parse(texts: &MockTexts<'_>, seed: u64) -> Result<Self, StartError> {
        let rules = texts.latency.iter().map(|text| text.parse());
        let rules: Vec<Rule> = rules.collect::<Result<_, ParseError>>()?;
        let freezes = texts.freezes.iter().map(|text| text.parse());
        let cuts = texts.cuts.iter().map(|text| text.parse());
        Ok(Self {
            latency: LatencyRules::new(rules)?,
            queue: texts.queue.map(str::parse).transpose()?,
            freezes: freezes.collect::<Result<_, ParseError>>()?,
            cuts: cuts.collect::<Result<_, ParseError>>()?,
            seed,
        })
    }

    /// The settings of a server of this model, with rows.
    #[must_use]
    pub fn config(&self) -> ServerConfig {
        ServerConfig {
            latency: self.latency.clone(),
            queue: self.queue.clone(),
            freezes: self.freezes.clone(),
            cuts: self.cuts.clone(),
            seed: self.seed,
            record_rows: true,
            ..ServerConfig::default()
        }
    }

    /// Whether it makes requests wait, so that there is something to be late with.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        !self.latency.is_none() || self.queue.is_some()
    }

    /// The same without any delay: what is left is the machine and the tool.
    #[must_use]
    pub fn without_delay(&self) -> Self {
        Self {
            seed: self.seed,
            ..Self::default()
        }
    }

    /// Starts a server on free ports, with the records a tool wants to find.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(&self, records: Option<&Records>) -> Result<MockServer, StartError> {
        let mut config = self.config();
        if let Some(records) = records {
            config.aerospike.namespaces = vec![records.namespace.clone()];
        }
        let server = MockServer::start(config)?;
        if let Some(records) = records
            && let Some(namespace) = server.aerospike(&records.namespace)
        {
            for key in records.first..records.first.saturating_add(records.count) {
                let bins = [("testbin", Value::Integer(key))];
                namespace.put(&records.set, Key::Integer(key), &bins);
            }
        }
        Ok(server)
    }
}

/// `latency constant(1ms), freeze every=2s,for=150ms`.
impl fmt::Display for Mock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self
            .latency
            .rules()
            .iter()
            .map(ToString::to_string)
            .collect();
        match rules.as_slice() {
            [] => f.write_str("no latency")?,
            rules => write!(f, "latency {}", rules.join(", "))?,
        }
        if let Some(queue) = &self.queue {
            write!(f, ", queue {queue}")?;
        }
        for freeze in &self.freezes {
            write!(f, ", freeze {freeze}")?;
        }
        for cut in &self.cuts {
            write!(f, ", cut {cut}")?;
        }
        Ok(())
    }
}
