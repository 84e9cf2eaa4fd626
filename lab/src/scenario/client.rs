//! A `[[client]]` table: the options of `kvlab bench` under their own names, without the dashes.
//!
//! The table is turned into the words of a command line and read by the load generator's own front
//! end, so a scenario takes what `kvlab bench` takes, with the same meaning and the same messages.
//! Keys of its own are `name`, `target` (in place of the URL), `model` and `expect`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clap::{Args, Command, FromArgMatches};
use kvlab_bench_client::Settings;
use kvlab_bench_client::frontend::native::{Addresses, BenchArgs};
use kvlab_bench_client::settings::KernelStamps;
use toml::{Spanned, Value};

use super::capacity::{Capacity, Share};
use super::server::Wrong;
use super::{Expect, Part, ServerPart};

/// A `[[client]]` table as written.
pub(super) type RawClient = BTreeMap<String, Spanned<Value>>;

/// What a client meets, for settings that depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) server: &'a ServerPart,
    pub(super) network_ns: u64,
}

/// Resolves a table, but for its expectations, which are read with their places.
pub(super) fn resolve(
    mut raw: RawClient,
    expect: Expect,
    surroundings: &Surroundings<'_>,
) -> Result<Part, Wrong> {
    let own = OwnKeys {
        name: text(&mut raw, "name")?,
        target: text(&mut raw, "target")?,
        model: text(&mut raw, "model")?,
    };
    let share = share_of_capacity(&mut raw)?;
    let mut settings = settings(own.target.as_ref(), &raw)?;
    if let Some(share) = share {
        let capacity = Capacity::new(&settings, surroundings);
        settings.load = capacity.load(share, settings.load)?;
    }
    check_model(own.model.as_ref(), &settings)?;
    let has_given_name = own.name.is_some();
    let name = own
        .name
        .map_or_else(|| usual_name(&settings), Spanned::into_inner);
    Ok(Part {
        name,
        has_given_name,
        server: None,
        boundaries: Vec::new(),
        settings,
        expect,
    })
}

/// Takes a rate that is a share of the capacity out of the table; a rate that is certainly legal
/// stands in for it until the other settings are known.
fn share_of_capacity(raw: &mut RawClient) -> Result<Option<Share>, Wrong> {
    let Some(value) = raw.get_mut("rate") else {
        return Ok(None);
    };
    let Value::String(text) = value.as_ref() else {
        return Ok(None);
    };
    let share = Share::parse(value.span().start, text).transpose()?;
    if share.is_some() {
        *value.as_mut() = Value::Integer(1);
    }
    Ok(share)
}

struct OwnKeys {
    name: Option<Spanned<String>>,
    target: Option<Spanned<String>>,
    model: Option<Spanned<String>>,
}

/// Takes a text out of the table.
fn text(raw: &mut RawClient, key: &str) -> Result<Option<Spanned<String>>, Wrong> {
    let Some(value) = raw.remove(key) else {
        return Ok(None);
    };
    let place = value.span();
    match value.into_inner() {
        Value::String(text) => Ok(Some(Spanned::new(place, text))),
        other => {
            let message = format!("{key}: expected a text, found {}", other.type_str());
            Err((Some(place.start), message))
        }
    }
}

/// Reads the table with the front end of `kvlab bench`.
fn settings(target: Option<&Spanned<String>>, raw: &RawClient) -> Result<Settings, Wrong> {
    let command = BenchArgs::augment_args(Command::new("client").no_binary_name(true));
    let mut words = Vec::new();
    for (key, value) in raw {
        if !is_load_option(&command, key) {
            let place = Some(value.span().start);
            return Err((
                place,
                format!(
                    "unknown key `{key}`; expected name, target, model, expect, or an option of the load of `kvlab bench`"
                ),
            ));
        }
        option(key, value.as_ref(), &mut words)
            .map_err(|message| (Some(value.span().start), format!("{key}: {message}")))?;
    }
    words.push(url(target)?);
    // The option a message is about, to say in which line it stands.
    let place = |message: &str| {
        raw.iter()
            .find(|(key, _)| message.contains(&format!("--{key}")))
            .map(|(_, value)| value.span().start)
    };
    let read = || -> Result<Settings, String> {
        let matches = command
            .clone()
            .try_get_matches_from(&words)
            .map_err(|error| {
                let text = error.to_string();
                // The usage lines behind the message speak of a command line.
                let message = text.split("\n\n").next().unwrap_or_default();
                message.trim_start_matches("error: ").trim().to_owned()
            })?;
        let args = BenchArgs::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        args.settings(&Addresses::one(PLACEHOLDER))
            .map_err(|error| error.to_string())
    };
    let mut settings = read().map_err(|message| (place(&message), message))?;
    settings.record_rows = true;
    if !raw.contains_key("kernel-stamps") {
        settings.kernel_stamps = KernelStamps::Auto;
    }
    Ok(settings)
}

/// Whether `key` is an option of the load, and not of where results go.
fn is_load_option(command: &Command, key: &str) -> bool {
    let known = command
        .get_arguments()
        .any(|argument| argument.get_long() == Some(key));
    known && !OWN_OPTIONS.contains(&key)
}

/// Options of `kvlab bench` that say where results go, or when the load begins: the lab has its own
/// ways.
const OWN_OPTIONS: [&str; 8] = [
    "json",
    "csv",
    "hdr-log",
    "html",
    "max-errors",
    "require-connections",
    "quiet",
    "start-at",
];

/// Appends the words that set an option.
fn option(key: &str, value: &Value, words: &mut Vec<String>) -> Result<(), String> {
    let word = match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(true) => {
            words.push(format!("--{key}"));
            return Ok(());
        }
        Value::Boolean(false) => return Ok(()),
        Value::Array(items) => return items.iter().try_for_each(|item| option(key, item, words)),
        other => {
            return Err(format!(
                "expected a text or a number, found {}",
                other.type_str()
            ));
        }
    };
    words.push(format!("--{key}={word}"));
    Ok(())
}

/// The URL of a target such as `redis`, `redis/3` or `aerospike/test/set`.
fn url(target: Option<&Spanned<String>>) -> Result<String, Wrong> {
    let expected = "target: expected redis, redis/DATABASE, aerospike or aerospike/NAMESPACE/SET";
    let Some(target) = target else {
        return Err((None, expected.to_owned()));
    };
    let (scheme, path) = target
        .as_ref()
        .split_once('/')
        .unwrap_or((target.as_ref(), ""));
    if !matches!(scheme, "redis" | "aerospike") {
        let message = format!("{expected}, found {:?}", target.as_ref());
        return Err((Some(target.span().start), message));
    }
    Ok(format!("{scheme}://{PLACEHOLDER}/{path}"))
}

/// The model is told by the rate; where it is named too, both have to agree.
fn check_model(model: Option<&Spanned<String>>, settings: &Settings) -> Result<(), Wrong> {
    let Some(model) = model else { return Ok(()) };
    let wrong = |message: &str| Err((Some(model.span().start), format!("model: {message}")));
    match (model.as_ref().as_str(), settings.load.is_open()) {
        ("open", true) | ("closed", false) => Ok(()),
        ("open", false) => wrong("an open loop needs a rate"),
        ("closed", true) => wrong("a closed loop has no rate"),
        _ => wrong("expected open or closed"),
    }
}

fn usual_name(settings: &Settings) -> String {
    let protocol = match settings.target {
        kvlab_bench_client::settings::Target::Redis(_) => "redis",
        kvlab_bench_client::settings::Target::Aerospike(_) => "aerospike",
    };
    let model = if settings.load.is_open() {
        "open loop"
    } else {
        "closed loop"
    };
    format!("{protocol} {model}")
}

/// Stands for the server until it is up.
const PLACEHOLDER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);
