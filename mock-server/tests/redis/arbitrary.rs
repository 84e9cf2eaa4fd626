//! Whatever a client sends, it gets one well-formed reply for each command, and others are served.

use kvlab_mock_server::ServerConfig;
use kvlab_mock_server::dialect::redis::command_names;
use proptest::prelude::*;

use crate::virtual_server::{Laboratory, MILLI};

/// Commands that end the connection, change the form of replies, or make it wait.
const LEFT_OUT: &[&str] = &[
    "unknown",
    "quit",
    "hello",
    "wait",
    "waitaof",
    "client|reply",
    "client|kill",
    "client|pause",
    "info",
];

fn command() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let names: Vec<&'static str> = command_names()
        .iter()
        .copied()
        .filter(|name| !LEFT_OUT.contains(name))
        .collect();
    let argument = prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c"]).prop_map(|key| key.as_bytes().to_vec()),
        3 => prop::sample::select(vec!["0", "1", "-1", "100", "9223372036854775807", "x", "1.5"])
            .prop_map(|number| number.as_bytes().to_vec()),
        2 => prop::sample::select(vec!["NX", "GET", "EX", "PX", "KEEPTTL", "MATCH", "IDX", "DB"])
            .prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    (
        prop::sample::select(names),
        prop::collection::vec(argument, 0..7),
    )
        .prop_map(|(name, arguments)| {
            let words = name.split('|').map(|word| word.as_bytes().to_vec());
            words.chain(arguments).collect()
        })
}

fn request(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_command_is_answered_once(commands in prop::collection::vec(command(), 1..60)) {
        let mut lab = Laboratory::new(ServerConfig { workers: 2, ..ServerConfig::default() });
        let (first, second) = (lab.connect(), lab.connect());
        for (index, words) in commands.iter().enumerate() {
            let client = if index % 3 == 0 { second } else { first };
            lab.send(client, &request(words));
            prop_assert_eq!(lab.heard_count(client), 1, "{:?}", words);
            lab.pass(MILLI);
        }
    }

    #[test]
    fn arbitrary_bytes_harm_nobody_else(chunks in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 1..80), 1..20,
    )) {
        let mut lab = Laboratory::new(ServerConfig::default());
        let (first, second) = (lab.connect(), lab.connect());
        for chunk in chunks {
            if !lab.is_closed(first) {
                lab.send(first, &chunk);
                lab.heard_count(first);
            }
        }
        prop_assert_eq!(lab.ask(second, "PING"), "PONG");
    }
}
