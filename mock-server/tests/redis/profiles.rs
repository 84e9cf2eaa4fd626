//! Every profile under virtual time: each of its figures is enforced.
//!
//! Three kinds of figures are checked as settings alone, because a test cannot reach them: amounts of
//! more than 64 MiB, what is said of TLS (`tests/server` starts such servers), and what a program
//! that is told to be another version says of itself beyond its name.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::exchange::Protocol;
use kvlab_mock_server::limit::gatekeeper::Room;
use kvlab_mock_server::limit::{
    AtLimit, BlockForm, Gatekeeper, Quantity, SizeKind, SizeLimit, Throttle, Turned, Verdict,
};
use kvlab_mock_server::profile::Profile;
use kvlab_timing::Stamp;

use crate::virtual_server::{Laboratory, MILLI};

const SECOND: u64 = 1_000 * MILLI;
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const REACH: u64 = 64 << 20;

/// All profiles with their servers, those of RESP alone if asked.
fn profiles() -> Vec<(Profile, ServerConfig)> {
    let all = Profile::all().unwrap().into_iter();
    all.map(|profile| {
        let config = profile.settings.resolve().unwrap();
        (profile, config)
    })
    .collect()
}

/// The RESP servers, without what is not under test: rates of connections and throttles.
fn open_servers() -> Vec<(String, ServerConfig)> {
    let is_redis = |name: &str| !name.starts_with("aerospike:");
    let all = profiles().into_iter();
    all.filter(|(profile, _)| is_redis(&profile.name))
        .map(|(profile, mut config)| {
            config.connections.rate = None;
            config.requests.throttles.clear();
            (profile.name, config)
        })
        .collect()
}

fn laboratory(mut config: ServerConfig) -> Laboratory {
    // Under virtual time there is no TLS: the port speaks plainly.
    config.tls = Default::default();
    Laboratory::new(config)
}

#[test]
fn the_last_connection_is_served_and_the_next_is_refused_as_the_profile_says() {
    for (profile, config) in profiles() {
        let name = &profile.name;
        let side = match name.starts_with("aerospike:") {
            true => Protocol::Aerospike,
            false => Protocol::Redis,
        };
        let most = config.connections.max.unwrap();
        let keeper = Gatekeeper::new(&config.connections, most, Stamp::ZERO);
        for number in 0..most {
            // Far enough apart for any rate.
            let now = Stamp::from_nanos(number * SECOND);
            assert_eq!(
                keeper.admit(now, side, ADDRESS, false),
                Verdict::Serve,
                "{name}"
            );
        }
        let now = Stamp::from_nanos(most * SECOND);
        let told = |text: &str| Verdict::Refuse(Turned::Told(format!("-{text}\r\n").into()));
        let expected = match (side, &profile.settings.connection_text) {
            (Protocol::Aerospike, _) => Verdict::Refuse(Turned::Closed),
            (Protocol::Redis, Some(text)) => told(text),
            (Protocol::Redis, None) => told("ERR max number of clients reached"),
        };
        assert_eq!(keeper.admit(now, side, ADDRESS, false), expected, "{name}");
        keeper.leave(side, ADDRESS);
        assert_eq!(
            keeper.admit(now, side, ADDRESS, false),
            Verdict::Serve,
            "{name}"
        );
    }
}

#[test]
fn new_connections_come_at_the_rate_of_the_profile_and_wait_in_the_backlog() {
    let mut limited = 0;
    for (profile, mut config) in profiles() {
        let Some(rate) = config.connections.rate else {
            continue;
        };
        limited += 1;
        // The figure of the page.
        assert_eq!(
            (rate.count, rate.window),
            (200, Duration::from_millis(500)),
            "{}",
            profile.name
        );
        for cores in [1, 4] {
            config.connections.cores = cores;
            let cores = u64::from(cores);
            let keeper = Gatekeeper::new(&config.connections, 10_000, Stamp::ZERO);
            let room = |now| keeper.room(now, Protocol::Redis, None);
            let Room::Some { count, .. } = room(Stamp::ZERO) else {
                panic!("no room at the start");
            };
            assert_eq!(count, 200 * cores);
            for _ in 0..count {
                keeper.admit(Stamp::ZERO, Protocol::Redis, ADDRESS, false);
            }
            // 400 a second and core after that.
            let next = Stamp::from_nanos(SECOND / (400 * cores));
            assert_eq!(room(Stamp::ZERO), Room::None { until: Some(next) });
            assert!(matches!(room(next), Room::Some { count: 1, .. }));
        }
    }
    assert_eq!(limited, 19, "the plans of Aiven");
}

#[test]
fn blocked_commands_are_refused_in_the_words_of_the_profile() {
    for (name, config) in open_servers() {
        let blocked = config.requests.blocked.clone();
        let form = config.requests.block_form.clone();
        let mut server = laboratory(config);
        let client = server.connect();
        for command in blocked {
            let (container, sub) = match command.name.split_once('|') {
                Some((container, sub)) => (container, Some(sub)),
                None => (command.name.as_str(), None),
            };
            let heard = server.ask(client, &format!("{container} {} x", sub.unwrap_or("x")));
            let heard = heard.trim_start_matches(['-', '(']);
            match &form {
                BlockForm::Unknown => {
                    let (first, rest) = heard.split_once('\'').unwrap_or((heard, ""));
                    // MODULE is none of this server's commands, so its subcommands are none either.
                    let unknown = match sub {
                        Some(sub) if container != "module" => ("ERR unknown subcommand ", sub),
                        _ => ("ERR unknown command ", container),
                    };
                    assert_eq!(first, unknown.0, "{name} {}: {heard}", command.name);
                    assert!(
                        rest.starts_with(unknown.1),
                        "{name} {}: {heard}",
                        command.name
                    );
                }
                BlockForm::Text(text) => {
                    let full = text.replace("{command}", &command.name);
                    assert!(heard.starts_with(&full), "{name} {}: {heard}", command.name);
                }
                BlockForm::NoPermission => panic!("{name}: no profile has this form"),
            }
        }
        assert!(server.ask(client, "ping").contains("PONG"), "{name}");
    }
}

#[test]
fn databases_and_version_are_those_of_the_profile() {
    for (name, config) in open_servers() {
        let (databases, version) = (config.redis.databases, config.redis.version);
        let mut server = laboratory(config);
        let client = server.connect();
        let last = server.ask(client, &format!("select {}", databases - 1));
        assert!(last.contains("OK"), "{name}: {last}");
        let beyond = server.ask(client, &format!("select {databases}"));
        assert!(
            beyond.contains("ERR DB index is out of range"),
            "{name}: {beyond}"
        );
        let info = server.ask(client, "info server");
        assert!(info.contains(&format!("redis_version:{version}")), "{name}");
    }
}

#[test]
fn memory_and_eviction_are_those_of_the_profile() {
    let mut filled = 0;
    for (name, config) in open_servers() {
        let limits = config.requests.clone();
        let mut server = laboratory(config);
        let client = server.connect();
        let info = server.ask(client, "info memory");
        let policy = limits.eviction.unwrap().name();
        assert!(
            info.contains(&format!("maxmemory_policy:{policy}")),
            "{name}"
        );
        let Some(most) = limits.max_memory else {
            continue;
        };
        assert!(
            info.contains(&format!("maxmemory:{}\r", most.0))
                || info.contains(&format!("maxmemory:{}\n", most.0)),
            "{name}: {info}"
        );
        if most.0 > REACH {
            continue;
        }
        filled += 1;
        let value = "x".repeat(50_000);
        let enough = most.0 / 50_000 + 2;
        let refused = (0..enough)
            .map(|key| server.ask(client, &format!("set key:{key} {value}")))
            .find(|heard| !heard.contains("OK"));
        // Without a key that expires volatile-lru has nothing to evict either.
        let refused = refused.unwrap();
        assert!(
            refused.contains("OOM command not allowed"),
            "{name}: {refused}"
        );
    }
    assert!(filled >= 3, "{filled}");
}

#[test]
fn sizes_are_limited_as_the_profile_says() {
    let mut checked = 0;
    for (name, config) in open_servers() {
        let limits = config.requests.sizes.clone();
        for limit in limits.iter().filter(|limit| limit.most <= REACH) {
            checked += 1;
            let mut server = laboratory(config.clone());
            let client = server.connect();
            let mut ask = |arguments: &[Vec<u8>]| {
                server.send(client, &request(arguments));
                server.heard(client)
            };
            let bytes = usize::try_from(limit.most).unwrap();
            let (fits, beyond) = match limit.kind {
                SizeKind::Key => (get(vec![b'k'; bytes]), get(vec![b'k'; bytes + 1])),
                SizeKind::Arguments => (mget(bytes - 1), mget(bytes)),
                SizeKind::Request => (set(bytes - 1_000), set(bytes)),
                SizeKind::Value | SizeKind::Pipeline => panic!("{name}: none within reach"),
            };
            let heard = ask(&fits);
            assert!(!heard.contains("ERR"), "{name}: {heard}");
            let actual = match limit.kind {
                SizeKind::Request => request(&beyond).len() as u64,
                _ => limit.most + 1,
            };
            let heard = ask(&beyond);
            assert!(heard.contains(&expected(limit, actual)), "{name}: {heard}");
        }
    }
    assert_eq!(
        checked,
        3 * 2 + 1,
        "upstash: request and key; serverless: arguments"
    );
}

/// What the page says, with the figures filled in.
fn expected(limit: &SizeLimit, actual: u64) -> String {
    match &limit.text {
        Some(text) => text
            .replace("{limit}", &limit.most.to_string())
            .replace("{actual}", &actual.to_string()),
        None => "ERR".to_owned(),
    }
}

fn get(key: Vec<u8>) -> Vec<Vec<u8>> {
    vec![b"get".to_vec(), key]
}

/// An MGET with so many keys.
fn mget(keys: usize) -> Vec<Vec<u8>> {
    let keys = std::iter::repeat_n(b"k".to_vec(), keys);
    std::iter::once(b"mget".to_vec()).chain(keys).collect()
}

fn set(value: usize) -> Vec<Vec<u8>> {
    vec![b"set".to_vec(), b"k".to_vec(), vec![b'x'; value]]
}

fn request(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[test]
fn throttles_let_through_what_the_profile_says() {
    let get = b"get k\r\n";
    let mut checked = 0;
    for (profile, config) in profiles() {
        for throttle in &config.requests.throttles {
            let Throttle {
                quantity,
                amount,
                then,
                ..
            } = throttle;
            if *quantity == Quantity::BytesOut || *amount > REACH {
                continue;
            }
            checked += 1;
            let name = format!("{} {throttle}", profile.name);
            let mut config = config.clone();
            config.connections.rate = None;
            config.requests.throttles = vec![throttle.clone()];
            let mut server = laboratory(config);
            let client = server.connect();
            // As many requests as pass at once, and one more.
            let size = match quantity {
                Quantity::BytesIn => get.len() as u64,
                _ => 1,
            };
            let pass = amount / size;
            let mut heard = 0;
            for _ in 0..pass {
                server.send(client, get);
                heard += server.heard_count(client) as u64;
            }
            assert_eq!(heard, pass, "{name}");
            server.send(client, get);
            match then {
                AtLimit::Error => {
                    let heard = server.heard(client);
                    let text = throttle.text.as_deref().unwrap();
                    assert!(heard.contains(text), "{name}: {heard}");
                }
                AtLimit::Delay => {
                    assert_eq!(server.heard_count(client), 0, "{name}");
                    // What is missing comes at the amount per window: exact to the nanosecond.
                    let missing = u128::from(size - amount % size.max(1) % size);
                    let missing = if *quantity == Quantity::Operations {
                        1
                    } else {
                        missing
                    };
                    let wait = (missing * throttle.window.as_nanos()).div_ceil(u128::from(*amount));
                    let wait = u64::try_from(wait).unwrap();
                    server.pass(wait - 1);
                    assert_eq!(server.heard_count(client), 0, "{name}");
                    server.pass(1);
                    assert_eq!(server.heard_count(client), 1, "{name}");
                }
                AtLimit::Drop => panic!("{name}: no profile drops"),
            }
        }
    }
    // Thirteen of Redis Cloud with operations and bytes, three of Upstash with 10,000 a second, and one of
    // those with a month's.
    assert_eq!(checked, 13 * 2 + 3 + 1);
}

#[test]
fn connections_end_when_the_profile_says() {
    for (name, config) in open_servers() {
        let (idle, age) = (config.connections.idle, config.connections.max_age);
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap();
        if let Some(idle) = idle.map(nanos) {
            let mut server = laboratory(config.clone());
            let client = server.connect();
            server.pass(idle - 1);
            assert!(!server.is_closed(client), "{name}");
            server.pass(1);
            assert!(server.is_closed(client), "{name}");
        }
        if let Some(age) = age.map(nanos) {
            let mut server = laboratory(config.clone());
            let client = server.connect();
            let step = idle.map_or(age / 10, nanos) / 2;
            let mut passed = 0;
            while passed + step < age {
                assert!(server.ask(client, "ping").contains("PONG"), "{name}");
                server.pass(step);
                passed += step;
            }
            server.ask(client, "ping");
            server.pass(age - passed - 1);
            assert!(!server.is_closed(client), "{name}");
            server.pass(1);
            assert!(server.is_closed(client), "{name}");
        }
    }
}

#[test]
fn services_that_need_tls_open_no_plain_port() {
    for (profile, config) in profiles() {
        let required = profile.settings.tls_required == Some(true);
        let service = profile.service();
        let expected = match service {
            "aiven" | "azure" | "heroku" | "upstash" => true,
            "elasticache" => profile.name == "elasticache:serverless",
            _ => false,
        };
        assert_eq!(required, expected, "{}", profile.name);
        assert_eq!(config.speaks_tls(), expected, "{}", profile.name);
    }
}
