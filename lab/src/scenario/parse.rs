//! The file as written: tables and keys, with places for messages.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::client::RawClient;
use super::expect::Expect;
use super::server::RawServer;
use super::words::Time;
use super::{Part, Scenario};

/// A scenario file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenario {
    name: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    server: Option<Spanned<RawServer>>,
    #[serde(default)]
    network: RawNetwork,
    client: Vec<Spanned<RawClient>>,
    #[serde(default)]
    expect: Expect,
}

/// The network of a virtual run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawNetwork {
    delay: Time,
}

impl Default for RawNetwork {
    fn default() -> Self {
        Self {
            delay: Time::micros(25),
        }
    }
}

impl RawScenario {
    /// Resolves everything; messages carry the line of the table they are about.
    pub(super) fn resolve(self, name: &str, text: &str) -> Result<Scenario, String> {
        let server = match self.server {
            Some(server) => {
                let place = server.span();
                server.into_inner().resolve().map_err(|message| at(text, &place, &message))?
            }
            None => RawServer::default().resolve()?,
        };
        if self.client.is_empty() {
            return Err("a scenario needs at least one [[client]]".to_owned());
        }
        let mut parts: Vec<Part> = Vec::with_capacity(self.client.len());
        for client in self.client {
            let place = client.span();
            let part = client
                .into_inner()
                .resolve(&server.config, self.expect)
                .map_err(|message| at(text, &place, &message))?;
            if parts.iter().any(|other| other.name == part.name) {
                let message = format!("two clients are called '{}': give them names", part.name);
                return Err(at(text, &place, &message));
            }
            parts.push(part);
        }
        Ok(Scenario {
            name: self.name.unwrap_or_else(|| name.to_owned()),
            description: self.description,
            server,
            network_ns: self.network.delay.nanos(),
            parts,
        })
    }
}

/// A message with the line its table begins in.
fn at(text: &str, place: &Range<usize>, message: &str) -> String {
    let before = text.get(..place.start).unwrap_or(text);
    let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
    format!("line {line}: {message}")
}
