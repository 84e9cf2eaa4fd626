//! Two workers on one set of keys: what touches several keys is seen whole or not at all.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kvlab_mock_server::{MockServer, ServerConfig};

use crate::client::Client;

/// Commands of each writer. Each takes a round trip, so this bounds the time.
const ROUNDS: usize = 1500;

/// Runs writers until they are done and readers until then, all over connections that are dealt to
/// two workers in turn.
fn hammer(
    writers: usize,
    write: impl Fn(&mut Client, usize) + Sync,
    read: impl Fn(&mut Client) + Sync,
) -> MockServer {
    let server = MockServer::start(ServerConfig {
        workers: 2,
        ..ServerConfig::default()
    })
    .unwrap();
    let address: SocketAddr = server.redis_addr().unwrap();
    let clients: Vec<_> = (0..writers + 2).map(|_| Client::connect(address)).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut clients = clients.into_iter();
        let readers: Vec<_> = clients.by_ref().take(2).collect();
        for mut client in readers {
            let (done, read) = (&done, &read);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    read(&mut client);
                }
            });
        }
        let writing: Vec<_> = clients
            .map(|mut client| {
                let write = &write;
                scope.spawn(move || (0..ROUNDS).for_each(|round| write(&mut client, round)))
            })
            .collect();
        let results: Vec<_> = writing.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok), "a writer failed");
    });
    server
}

fn words(reply: &str) -> Vec<&str> {
    reply.trim_matches(['[', ']']).split(' ').collect()
}

#[test]
fn mset_is_seen_whole() {
    // Many keys, so that a reader without the gate would often come in between.
    let keys: Vec<_> = (0..64).map(|number| format!("key:{number}")).collect();
    let get = format!("MGET {}", keys.join(" "));
    hammer(
        2,
        |client, round| {
            let value = format!("{:?}-{round}", thread::current().id());
            let pairs: Vec<_> = keys.iter().map(|key| format!("{key} {value}")).collect();
            assert_eq!(client.ask(&format!("MSET {}", pairs.join(" "))), "OK");
        },
        |client| {
            let reply = client.ask(&get);
            let values = words(&reply);
            assert!(
                values.iter().all(|value| *value == values[0]),
                "torn: {reply}"
            );
        },
    );
}

#[test]
fn no_watched_increment_is_lost() {
    let server = hammer(
        2,
        |client, _| {
            loop {
                assert_eq!(client.ask("WATCH count"), "OK");
                let count = client.ask("GET count").parse().unwrap_or(0) + 1;
                let set = format!("SET count {count}");
                let twin = format!("SET twin {count}");
                let reply = client.ask_all(&["MULTI", &set, &twin, "EXEC"]);
                match reply.as_str() {
                    "(nil)" => {}
                    reply => {
                        assert_eq!(reply, "[OK OK]");
                        return;
                    }
                }
            }
        },
        |client| {
            let reply = client.ask_all(&["MULTI", "GET count", "GET twin", "EXEC"]);
            let values = words(&reply);
            assert_eq!(values[0], values[1], "torn: {reply}");
        },
    );
    let mut client = Client::connect(server.redis_addr().unwrap());
    assert_eq!(client.ask("GET count"), (2 * ROUNDS).to_string());
}

#[test]
fn a_renamed_key_is_never_absent_nor_twice() {
    hammer(
        2,
        |client, round| {
            // Two writers carry one key between two names; who finds it gone loses the race.
            client.ask("SETNX b 1");
            let reply = client.ask(if round % 2 == 0 {
                "RENAME b c"
            } else {
                "RENAME c b"
            });
            assert!(reply == "OK" || reply == "ERR no such key", "{reply}");
            client.ask("DEL b c");
            let moves = ["SET x 1", "RENAME x y", "RENAME y x", "DEL x"];
            let last = client.ask_all(&[&["MULTI"], &moves[..], &["EXEC"]].concat());
            assert_eq!(last, "[OK OK OK 1]");
        },
        |client| {
            assert_eq!(client.ask("EXISTS x y"), "0");
        },
    );
}

#[test]
fn a_key_that_only_moves_is_always_somewhere() {
    let server = hammer(
        1,
        |client, round| {
            let command = match round {
                0 => "MSET a 1 moved 1",
                _ if round % 2 == 0 => "RENAME there a",
                _ => "RENAME a there",
            };
            assert_eq!(client.ask(command), "OK");
        },
        |client| {
            // The mark is set together with the key.
            let reply = client.ask("MGET a there moved");
            let expected = ["[(nil) (nil) (nil)]", "[1 (nil) 1]", "[(nil) 1 1]"];
            assert!(expected.contains(&reply.as_str()), "torn: {reply}");
        },
    );
    let mut client = Client::connect(server.redis_addr().unwrap());
    assert_eq!(client.ask("EXISTS a there"), "1");
}
