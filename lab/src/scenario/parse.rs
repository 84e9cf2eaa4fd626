//! The file as written: tables and keys, with places for messages.

use serde::Deserialize;
use toml::Spanned;

use super::client::{self, RawClient};
use super::expect::Expect;
use super::server::{RawServer, Wrong};
use super::words::Time;
use super::{Part, Scenario};

/// A scenario file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenario {
    name: Option<String>,
    #[serde(default)]
    description: String,
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
    /// Resolves everything; messages carry the line they are about.
    pub(super) fn resolve(self, name: &str, text: &str) -> Result<Scenario, String> {
        let server = match self.server {
            Some(server) => {
                let table = server.span().start;
                server
                    .into_inner()
                    .resolve()
                    .map_err(|wrong| at(text, table, wrong))?
            }
            None => RawServer::default()
                .resolve()
                .map_err(|wrong| at(text, 0, wrong))?,
        };
        let network_ns = self.network.delay.nanos();
        if network_ns == 0 {
            return Err("network.delay: expected a time longer than 0".to_owned());
        }
        if self.client.is_empty() {
            return Err("a scenario needs at least one [[client]]".to_owned());
        }
        let mut parts: Vec<Part> = Vec::with_capacity(self.client.len());
        for client in self.client {
            let table = client.span().start;
            let part = client::resolve(client.into_inner(), self.expect)
                .map_err(|wrong| at(text, table, wrong))?;
            if parts.iter().any(|other| other.name == part.name) {
                let message = format!("two clients are called '{}': give them names", part.name);
                return Err(at(text, table, (None, message)));
            }
            parts.push(part);
        }
        Ok(Scenario {
            name: self.name.unwrap_or_else(|| name.to_owned()),
            description: self.description,
            server,
            network_ns,
            parts,
        })
    }
}

/// A message with the line of its place, or else of the table it is about.
fn at(text: &str, table: usize, (place, message): Wrong) -> String {
    let before = text.get(..place.unwrap_or(table)).unwrap_or(text);
    let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
    format!("line {line}: {message}")
}
