//! The file as written: tables and keys, with places for messages.

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::boundary::{self, Cause};
use super::client::{self, RawClient};
use super::expect::Expect;
use super::server::{RawServer, Wrong};
use super::sweep::{Node, Sweep, Table, Variation};
use super::words::Time;
use super::{Part, Scenario, ServerPart};

/// A scenario file but for `[sweep]` and `[[client]]`, whose keys are looked at one by one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScenario {
    name: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    tiers: Vec<TierName>,
    #[serde(default = "once")]
    repeat: Spanned<u32>,
    #[serde(default = "thrice")]
    retries: Spanned<u32>,
    server: Option<Spanned<RawServer>>,
    #[serde(default)]
    network: RawNetwork,
    #[serde(default)]
    expect: Expect,
}

fn once() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn thrice() -> Spanned<u32> {
    Spanned::new(0..0, 3)
}

/// A group of scenarios that is run as one: `kvlab run --tier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum TierName {
    /// Under virtual time: exact, all of the matrix, in well under a minute
    Virtual,
    /// In real time, about a minute
    Smoke,
    /// In real time, about twenty minutes
    Full,
}

/// The network of a virtual run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawNetwork {
    delay: Spanned<Time>,
}

impl Default for RawNetwork {
    fn default() -> Self {
        Self {
            delay: Spanned::new(0..0, Time::micros(25)),
        }
    }
}

/// Reads a scenario; messages carry the line they are about.
pub(super) fn scenario(name: &str, text: &str) -> Result<Scenario, String> {
    let source = Source(text);
    let mut document = DeTable::parse(text)
        .map_err(|error| error.to_string())?
        .into_inner();
    let Some(sweep) = document.remove("sweep") else {
        return source.resolve(name, document);
    };
    let sweep = Sweep::read(sweep).map_err(|(place, message)| source.at(place, &message))?;
    let mut whole: Option<Scenario> = None;
    for variation in sweep.variations(&document) {
        let Variation {
            name: values,
            document,
        } = variation.map_err(|(place, message)| source.at(place, &message))?;
        let mut one = source
            .resolve(name, document)
            .map_err(|message| format!("{message} (with {values})"))?;
        let several = one.parts.len() > 1;
        for part in &mut one.parts {
            part.name = if several || part.has_given_name {
                format!("{}: {values}", part.name)
            } else {
                values.clone()
            };
            part.server = Some(one.server.clone());
        }
        match &mut whole {
            None => whole = Some(one),
            Some(whole) => whole.parts.append(&mut one.parts),
        }
    }
    whole.ok_or_else(|| "the sweep has no combination".to_owned())
}

/// Where the keys stand that can put a quantile at the edge of a mode.
#[derive(Clone, Copy, Debug)]
struct Places {
    latency: usize,
    freeze: usize,
}

impl Places {
    fn of(self, cause: Cause) -> usize {
        match cause {
            Cause::Latency => self.latency,
            Cause::Freeze => self.freeze,
        }
    }
}

/// The text of a file, to tell lines.
struct Source<'a>(&'a str);

impl<'a> Source<'a> {
    /// Resolves a document without sweep.
    fn resolve(&self, name: &str, mut document: Table<'a>) -> Result<Scenario, String> {
        let clients = self.clients(document.remove("client"))?;
        let place = |key| Some(document.get("server")?.get_ref().get(key)?.span().start);
        let places = Places {
            latency: place("latency").unwrap_or(0),
            freeze: place("freeze").unwrap_or(0),
        };
        let whole = 0..self.0.len();
        let raw = RawScenario::deserialize(Deserializer::from(Spanned::new(whole, document)))
            .map_err(|error| self.said(error))?;
        let server = match raw.server {
            Some(server) => {
                let table = server.span().start;
                server
                    .into_inner()
                    .resolve()
                    .map_err(|wrong| self.near(table, wrong))?
            }
            None => RawServer::default()
                .resolve()
                .map_err(|wrong| self.near(0, wrong))?,
        };
        let delay = raw.network.delay;
        let network_ns = delay.as_ref().nanos();
        if network_ns == 0 {
            let message = "network.delay: expected a time longer than 0";
            return Err(self.at(delay.span().start, message));
        }
        let repeat = self.within("repeat", &raw.repeat, 1, MAX_REPEATS)?;
        let retries = self.within("retries", &raw.retries, 0, MAX_RETRIES)?;
        Ok(Scenario {
            name: raw.name.unwrap_or_else(|| name.to_owned()),
            description: raw.description,
            tiers: raw.tiers,
            repeat,
            retries,
            parts: self.parts(clients, (&server, places), network_ns, raw.expect)?,
            server,
            network_ns,
        })
    }

    fn within(
        &self,
        key: &str,
        found: &Spanned<u32>,
        least: u32,
        most: u32,
    ) -> Result<u32, String> {
        let (place, found) = (found.span().start, *found.as_ref());
        if (least..=most).contains(&found) {
            return Ok(found);
        }
        let message = format!("{key}: expected {least} to {most}, found {found}");
        Err(self.at(place, &message))
    }

    /// The `[[client]]` tables.
    fn clients(&self, node: Option<Node<'a>>) -> Result<Vec<Node<'a>>, String> {
        let Some(node) = node else {
            return Err("client: a scenario needs at least one [[client]]".to_owned());
        };
        let place = node.span().start;
        match node.into_inner() {
            DeValue::Array(items) if !items.is_empty() => Ok(items.into_iter().collect()),
            _ => Err(self.at(place, "client: a scenario needs at least one [[client]]")),
        }
    }

    fn parts(
        &self,
        clients: Vec<Node<'a>>,
        (server, places): (&ServerPart, Places),
        network_ns: u64,
        usual: Expect,
    ) -> Result<Vec<Part>, String> {
        let mut parts: Vec<Part> = Vec::with_capacity(clients.len());
        for client in clients {
            let table = client.span().start;
            let DeValue::Table(entries) = client.into_inner() else {
                return Err(self.at(table, "client: expected a table"));
            };
            let (raw, expect) = self.client(entries)?;
            let expect = expect.unwrap_or(usual);
            let surroundings = client::Surroundings { server, network_ns };
            let mut part = client::resolve(raw, expect, &surroundings)
                .map_err(|wrong| self.near(table, wrong))?;
            part.boundaries = boundary::find(&part.settings, &part.expect, server, network_ns)
                .into_iter()
                .map(|edge| self.at(places.of(edge.cause), &edge.message))
                .collect();
            if parts.iter().any(|other| other.name == part.name) {
                let message = format!("two clients are called '{}': give them names", part.name);
                return Err(self.at(table, &message));
            }
            parts.push(part);
        }
        Ok(parts)
    }

    /// A `[[client]]` table by keys, and its own expectations.
    fn client(&self, entries: Table<'a>) -> Result<(RawClient, Option<Expect>), String> {
        let mut raw = RawClient::new();
        let mut expect = None;
        for (key, value) in entries {
            let span = value.span();
            let value = toml::de::ValueDeserializer::from(value);
            if key.get_ref() == "expect" {
                expect = Some(Expect::deserialize(value).map_err(|error| self.said(error))?);
                continue;
            }
            let value = toml::Value::deserialize(value).map_err(|error| self.said(error))?;
            raw.insert(key.into_inner().into_owned(), Spanned::new(span, value));
        }
        Ok((raw, expect))
    }

    /// A message of the reader, with the line it stands in.
    fn said(&self, mut error: toml::de::Error) -> String {
        error.set_input(Some(self.0));
        error.to_string()
    }

    /// A message with the line of its place, or else of the table it is about.
    fn near(&self, table: usize, (place, message): Wrong) -> String {
        self.at(place.unwrap_or(table), &message)
    }

    fn at(&self, place: usize, message: &str) -> String {
        let before = self.0.get(..place).unwrap_or(self.0);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        format!("line {line}: {message}")
    }
}

/// Bound of the runs of a client.
const MAX_REPEATS: u32 = 100;
/// Bound of the attempts after a void run.
const MAX_RETRIES: u32 = 10;
