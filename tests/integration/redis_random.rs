//! Random commands, put to the mock and to a real redis-server 7.0: every reply is the same.
//!
//! Two connections take turns, so that transactions are watched and broken. What depends on the time or
//! on an order that a server chooses freely is left out: times to live are far in the future or in the
//! past, and are not read back.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::resp_wire::{Client, RealServer, escape, mock};

/// Commands for each protocol and seed.
const COMMANDS: usize = 3000;

#[test]
fn a_real_server_and_the_mock_answer_alike() {
    let Some(real) = RealServer::start() else {
        println!("skipped: redis-server 7.0 is not installed");
        return;
    };
    let mock = mock(2);
    for seed in 1..=3 {
        for resp3 in [false, true] {
            compare(real.address, mock.redis_addr().unwrap(), seed, resp3);
        }
    }
}

fn compare(real: SocketAddr, mock: SocketAddr, seed: u64, resp3: bool) {
    let mut sides = [real, mock].map(|address| {
        let mut clients = [(); 2].map(|()| Client::connect(address, resp3));
        clients[0].ask(&[b"FLUSHALL"]).unwrap();
        clients
    });
    let mut dice = Dice(seed);
    let mut log = Vec::new();
    for round in 0..COMMANDS {
        let client = usize::from(dice.roll(4) == 0);
        let command = dice.command();
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let [expected, got] = [0, 1].map(|side| sides[side][client].ask(&words).unwrap());
        log.push((client, command.clone(), expected.clone()));
        if expected != got {
            let mut story = String::new();
            for (client, command, reply) in log.iter().rev().take(15).rev() {
                let command: Vec<_> = command.iter().map(|word| escape(word)).collect();
                let _ = writeln!(
                    story,
                    "{client}: {} -> {}",
                    command.join(" "),
                    escape(reply)
                );
            }
            panic!(
                "seed {seed}, RESP3 {resp3}, command {round}:\n{story}the mock answered {}",
                escape(&got)
            );
        }
    }
}

/// SplitMix64, as plain as a generator of test data may be.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len())]
    }

    fn command(&mut self) -> Vec<Vec<u8>> {
        let name = self.pick(NAMES);
        let count = [0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6][self.roll(11)];
        let mut words = vec![name];
        match name {
            "SELECT" => words.push(self.pick(&["0", "1", "x"])),
            "SWAPDB" => words.extend([self.pick(&["0", "1"]), self.pick(&["0", "1", "x"])]),
            "SETRANGE" => {
                let offset = self.pick(&["0", "3", "20", "-1", "x", "536870912"]);
                words.extend([self.pick(KEYS), offset, self.pick(VALUES)]);
            }
            "OBJECT" => {
                let what = self.pick(&["ENCODING", "REFCOUNT", "FREQ", "FOO"]);
                words.extend([what, self.pick(KEYS)]);
            }
            "WAIT" => words.extend(["0", self.pick(INTEGERS)]),
            "CLIENT" => {
                let what = self.pick(&["GETNAME", "GETREDIR", "TRACKINGINFO", "SETNAME", "FOO"]);
                words.extend([what, self.pick(VALUES)]);
                words.truncate(2 + self.roll(2));
            }
            _ => {
                for _ in 0..count {
                    let pool = match self.roll(20) {
                        0..9 => KEYS,
                        9..13 => INTEGERS,
                        13..16 => VALUES,
                        _ => OPTIONS,
                    };
                    words.push(self.pick(pool));
                }
            }
        }
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }
}

const NAMES: &[&str] = &[
    "APPEND",
    "DECR",
    "DECRBY",
    "GET",
    "GETDEL",
    "GETEX",
    "GETRANGE",
    "GETSET",
    "INCR",
    "INCRBY",
    "INCRBYFLOAT",
    "LCS",
    "MGET",
    "MSET",
    "MSETNX",
    "PSETEX",
    "SET",
    "SET",
    "SET",
    "SETEX",
    "SETNX",
    "SETRANGE",
    "STRLEN",
    "SUBSTR",
    "DEL",
    "UNLINK",
    "EXISTS",
    "TYPE",
    "PERSIST",
    "RENAME",
    "RENAMENX",
    "COPY",
    "MOVE",
    "TOUCH",
    "SELECT",
    "DBSIZE",
    "EXPIRE",
    "PEXPIRE",
    "EXPIREAT",
    "PEXPIREAT",
    "OBJECT",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH",
    "UNWATCH",
    "FLUSHDB",
    "SWAPDB",
    "PING",
    "ECHO",
    "WAIT",
    "CLIENT",
    "READONLY",
    "NOSUCH",
];

const KEYS: &[&str] = &["a", "b", "c", "d"];

/// As times to live these are over already or long.
const INTEGERS: &[&str] = &[
    "0",
    "-1",
    "-5",
    "100000",
    "99999999999",
    "4294967296",
    "9223372036854775807",
    "9223372036854775806",
    "-9223372036854775808",
    "9223372036854775",
    "x",
    "",
    "1.5",
    "00",
    " 7",
];

const VALUES: &[&str] = &[
    "",
    "100000",
    "hello",
    "-70",
    "3.25",
    "1e5",
    "\0\r\n",
    "9223372036854775807",
    "0.1",
    "inf",
    "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc",
];

const OPTIONS: &[&str] = &[
    "NX",
    "XX",
    "GET",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "PERSIST",
    "GT",
    "LT",
    "REPLACE",
    "DB",
    "LEN",
    "IDX",
    "MINMATCHLEN",
    "WITHMATCHLEN",
    "MATCH",
    "COUNT",
    "TYPE",
    "ASYNC",
    "FOO",
];
