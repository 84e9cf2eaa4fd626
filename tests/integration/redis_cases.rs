//! The tables of `tests/cases/redis`: requests and the replies that redis-server 7.0.15 gave to them.
//!
//! Every table is run against the mock, in the version 7.0.15, with RESP2 and with RESP3; and, where
//! redis-server 7.0 is installed, against that too, so that a table cannot drift from what it was
//! recorded from.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::{Shutdown, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kvlab_protocol::resp::{RequestDecoder, RequestLimits};
use serde::Deserialize;

use crate::resp_wire::{Client, RealServer, escape, mock, reply_len};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    case: Vec<Case>,
    #[serde(default)]
    raw: Vec<Raw>,
}

/// Commands on a new connection to an empty server: command, reply, and the reply in RESP3 if that
/// is another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    steps: Vec<Vec<String>>,
}

/// Bytes as they are sent, and what comes back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    send: String,
    reply: String,
}

#[test]
fn the_mock_answers_as_recorded() {
    let exchanges = run_all(mock(1).redis_addr().unwrap());
    assert!(exchanges >= 350, "only {exchanges} exchanges were compared");
}

#[test]
fn two_workers_answer_as_recorded() {
    run_all(mock(2).redis_addr().unwrap());
}

#[test]
fn a_real_server_answers_as_recorded() {
    match RealServer::start() {
        Some(server) => {
            run_all(server.address);
        }
        None => println!("skipped: redis-server 7.0 is not installed"),
    }
}

/// Runs every table and returns how many replies were compared.
fn run_all(address: SocketAddr) -> usize {
    let mut exchanges = 0;
    let mut failures = String::new();
    for (file, table) in tables() {
        for case in &table.case {
            for resp3 in [false, true] {
                exchanges += case.steps.len();
                for failure in run_case(address, case, resp3) {
                    let protocol = if resp3 { "RESP3" } else { "RESP2" };
                    let _ = writeln!(failures, "{file} {} ({protocol}): {failure}", case.name);
                }
            }
        }
        for raw in &table.raw {
            for whole in [true, false] {
                exchanges += 1;
                if let Err(failure) = run_raw(address, raw, whole) {
                    let _ = writeln!(failures, "{file} {} (whole: {whole}): {failure}", raw.name);
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    exchanges
}

fn tables() -> Vec<(String, Table)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/redis");
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let table = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, table)
        })
        .collect()
}

fn run_case(address: SocketAddr, case: &Case, resp3: bool) -> Vec<String> {
    let mut clients: Vec<(char, Client)> = Vec::new();
    let mut failures = Vec::new();
    let mut first = Client::connect(address, resp3);
    first.ask(&[b"FLUSHALL"]).unwrap();
    first.ask(&[b"CONFIG", b"RESETSTAT"]).unwrap();
    clients.push(('1', first));
    for step in &case.steps {
        let (command, resp2) = (step[0].as_str(), step[1].as_str());
        let expected = match step.get(2) {
            Some(reply) if resp3 => reply,
            _ => resp2,
        };
        if let Some(millis) = command.strip_prefix("!sleep ") {
            // What is tested is that time passes.
            std::thread::sleep(Duration::from_millis(millis.parse().unwrap()));
            continue;
        }
        let (number, command) = match command.strip_prefix('@') {
            Some(rest) => (rest.chars().next().unwrap(), &rest[2..]),
            None => ('1', command),
        };
        if !clients.iter().any(|(known, _)| *known == number) {
            clients.push((number, Client::connect(address, resp3)));
        }
        let client = clients.iter_mut().find(|(known, _)| *known == number);
        if let Err(failure) = run_step(&mut client.unwrap().1, command, expected) {
            failures.push(format!("{command}\n{failure}"));
        }
    }
    failures
}

fn run_step(client: &mut Client, command: &str, expected: &str) -> Result<(), String> {
    let words = words(command);
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    if expected == "(none)" {
        client.send(&words);
        return Ok(());
    }
    let reply = client.ask(&words)?;
    if expected == "(any)" {
        return Ok(());
    }
    let (expected, closed) = match expected.strip_suffix("(closed)") {
        Some(expected) => (expected, true),
        None => (expected, false),
    };
    let equal = match expected.strip_prefix("(unordered)") {
        Some(expected) => sorted(&reply) == sorted(&unescape(expected)),
        None => reply == unescape(expected),
    };
    if !equal {
        return Err(format!(
            "  expected {expected}\n  got      {}",
            escape(&reply)
        ));
    }
    if closed && !client.is_at_end() {
        return Err("  the server did not close the connection".to_owned());
    }
    Ok(())
}

fn run_raw(address: SocketAddr, raw: &Raw, whole: bool) -> Result<(), String> {
    let request = unescape(&expand(&raw.send));
    let (expected, closed) = match raw.reply.strip_suffix("(closed)") {
        Some(expected) => (unescape(expected), true),
        None => (unescape(&raw.reply), false),
    };
    let mut client = Client::connect(address, false);
    let fragment = match (whole, request.len()) {
        (true, len) => len,
        (false, 0..2000) => 1,
        (false, _) => 997,
    };
    for part in request.chunks(fragment) {
        // A server that has seen enough may have closed already.
        if client.socket.write_all(part).is_err() {
            break;
        }
    }
    let mut reply = Vec::new();
    if !closed {
        while reply.len() < expected.len() && client.fill() {
            reply.append(&mut client.input);
        }
        // Whoever has nothing more to ask has nothing more to hear.
        client.socket.shutdown(Shutdown::Write).unwrap();
    }
    while client.fill() {
        reply.append(&mut client.input);
    }
    if reply != expected {
        return Err(format!(
            "\n  expected {}\n  got      {}",
            raw.reply,
            escape(&reply)
        ));
    }
    let alive = Client::connect(address, false).ask(&[b"PING"])?;
    if alive != b"+PONG\r\n" {
        return Err("the server no longer answers others".to_owned());
    }
    Ok(())
}

/// The parts of a reply, down to the last one, in an order of their own.
fn sorted(reply: &[u8]) -> Vec<Vec<u8>> {
    let line = reply.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2;
    let mut parts = vec![reply[..line].to_vec()];
    let mut rest = &reply[line..];
    if b"*~>%".contains(&reply[0]) {
        while !rest.is_empty() {
            let len = reply_len(rest).unwrap();
            parts.extend(sorted(&rest[..len]));
            rest = &rest[len..];
        }
    } else {
        parts.push(rest.to_vec());
    }
    parts.sort();
    parts
}

/// The words of a line, with quotes as redis-cli knows them.
fn words(line: &str) -> Vec<Vec<u8>> {
    let line = format!("{line}\r\n");
    let mut decoder = RequestDecoder::new();
    let len = decoder
        .decode(line.as_bytes(), &RequestLimits::default())
        .unwrap()
        .unwrap();
    let frame = &line.as_bytes()[..len];
    decoder.args(frame).iter().map(<[u8]>::to_vec).collect()
}

/// `{x*n}` stands for n times x.
fn expand(text: &str) -> String {
    let Some((before, rest)) = text.split_once('{') else {
        return text.to_owned();
    };
    let (inside, after) = rest.split_once('}').unwrap();
    let (repeated, count) = inside.rsplit_once('*').unwrap();
    before.to_owned() + &repeated.repeat(count.parse().unwrap()) + &expand(after)
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next().unwrap() {
            b'r' => b'\r',
            b'n' => b'\n',
            b't' => b'\t',
            b'x' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    bytes
}
