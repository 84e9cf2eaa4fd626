//! Scenario files: a server, clients to put on it one after the other, and what is expected.
//!
//! TOML; `docs/scenario-format.md` lists every key. Unknown keys are refused, and every error names
//! the line. What is written in the file (`parse`) is resolved into the settings that server and
//! load generator take, so a [`Scenario`] is legal by construction.

mod boundary;
mod capacity;
mod client;
mod cover;
mod expect;
mod parse;
mod server;
mod shipped;
mod sweep;
mod words;

use std::path::{Path, PathBuf};

use kvlab_bench_client::Settings;
use kvlab_bench_client::settings::Target;
use kvlab_mock_server::ServerConfig;

pub use expect::{
    Expect, Limit, Limits, Threshold, Tolerance, default_mean, default_response, default_service,
};
pub use parse::TierName;
pub use server::ServerPart;

/// A resolved scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name: given, or the file's.
    pub name: String,
    /// What it shows, in a sentence.
    pub description: String,
    /// The tiers it belongs to.
    pub tiers: Vec<TierName>,
    /// How often each client is run, with the same seed.
    pub repeat: u32,
    /// How often a void run is tried again; a failed one never is.
    pub retries: u32,
    /// The server; where a sweep varies it, that of the first combination.
    pub server: ServerPart,
    /// Time of a message from one side to the other in a virtual run.
    pub network_ns: u64,
    /// The clients, each run by itself against a server of its own.
    pub parts: Vec<Part>,
}

/// One client of a scenario and what is expected of it.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name in reports: given, or what it does, or in a sweep the values it stands for.
    pub name: String,
    /// Whether the file gives it a name.
    has_given_name: bool,
    /// The server where a sweep gives each combination its own.
    pub server: Option<ServerPart>,
    /// What it does. The address is a placeholder until the server is up.
    pub settings: Settings,
    /// What is expected.
    pub expect: Expect,
    /// Judged quantiles that lie at the edge of a mode, each with the line that puts it there.
    boundaries: Vec<String>,
}

/// Why there is no scenario.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is no scenario.
    #[error("{name}: {message}")]
    Text {
        /// Name of the scenario or file.
        name: String,
        /// What is wrong and in which line.
        message: String,
    },
}

impl Scenario {
    /// The scenario that is run when no file is given: both protocols, closed and open loop.
    ///
    /// # Errors
    /// Never; a test parses it.
    pub fn quickstart() -> Result<Self, ScenarioError> {
        Self::named("quickstart").unwrap_or_else(|| Self::parse("quickstart", ""))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is no scenario.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read {
            path: path.to_owned(),
            source,
        })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&stem, &text)
    }

    /// Reads a text; `name` stands in messages, and in reports unless the text has a name.
    ///
    /// # Errors
    /// When the text is no scenario; the message has the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let wrong = |message: String| ScenarioError::Text {
            name: name.to_owned(),
            message,
        };
        parse::scenario(name, text).map_err(wrong)
    }

    /// Replaces every seed of the scenario.
    pub fn set_seed(&mut self, seed: u64) {
        self.server.config.seed = seed;
        for part in &mut self.parts {
            part.settings.seed = seed;
            if let Some(server) = &mut part.server {
                server.config.seed = seed;
            }
        }
    }

    /// Judged quantiles that lie where the distribution jumps, so that a run in real time could say
    /// nothing about them: the client and why, with the line and the key that put them there.
    pub fn boundaries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts.iter().flat_map(|part| {
            let name = part.name.as_str();
            part.boundaries
                .iter()
                .map(move |edge| (name, edge.as_str()))
        })
    }

    /// The configuration of the server for one part: only the port the part needs is opened.
    #[must_use]
    pub fn server_for(&self, part: &Part) -> ServerConfig {
        let mut config = part.server.as_ref().unwrap_or(&self.server).config.clone();
        let redis = matches!(part.settings.target, Target::Redis(_));
        config.redis_port = redis.then_some(0);
        config.aerospike_port = (!redis).then_some(0);
        config.shared_port = None;
        config.record_rows = true;
        config
    }
}
