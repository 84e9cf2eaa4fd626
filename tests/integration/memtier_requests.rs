//! What `kvlab memtier` sends, as servers see it: against the mock, and against a real redis-server
//! 7.0 where one is installed. What a server counts and holds afterwards is compared with exact
//! arithmetic.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use kvlab_bench_client::frontend::{ExitStatus, memtier};
use serde_json::Value;

use super::resp_wire::{Client, RealServer, mock};

static STARTED: AtomicU32 = AtomicU32::new(0);

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("kvlab-memtier-requests-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a call left behind.
struct Ran {
    status: ExitStatus,
    stdout: String,
    stderr: String,
    json: Value,
}

impl Ran {
    fn number(&self, row: &str, key: &str) -> f64 {
        let value = &self.json["ALL STATS"][row][key];
        value
            .as_f64()
            .unwrap_or_else(|| panic!("{row} {key}: {value}"))
    }

    fn counts(&self) -> (u64, u64) {
        let counts = &self.json["client verifications results"];
        let count = |key: &str| counts[key].as_u64().unwrap();
        (count("keys verified successfuly"), count("keys failed"))
    }
}

/// A server with what a test asks of it.
struct Server {
    address: SocketAddr,
    client: Client,
    real: bool,
}

impl Server {
    fn memtier(&self, words: &[&str]) -> Ran {
        let folder = Folder::new();
        let json = folder.0.join("out.json").display().to_string();
        let port = self.address.port().to_string();
        let place = ["-s", "127.0.0.1", "-p", &port, "--json-out-file", &json];
        let words = place.iter().chain(words).map(ToString::to_string);
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let status = memtier::run(words, None, &mut stdout, &mut stderr);
        let json = std::fs::read_to_string(&json).unwrap_or_else(|_| "null".to_owned());
        Ran {
            status,
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
            json: serde_json::from_str(&json).unwrap(),
        }
    }

    /// Runs a line that has to go well.
    #[track_caller]
    fn done(&self, words: &[&str]) -> Ran {
        let ran = self.memtier(words);
        assert_eq!(ran.status, ExitStatus::Done, "{words:?}: {}", ran.stderr);
        ran
    }

    fn ask(&mut self, command: &str) -> String {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        String::from_utf8(self.client.ask(&words).unwrap()).unwrap()
    }

    fn number(&mut self, command: &str) -> i64 {
        let reply = self.ask(command);
        let digits = reply.trim_start_matches(':').trim_end();
        digits
            .parse()
            .unwrap_or_else(|_| panic!("{command}: {reply}"))
    }

    /// Calls of a command since the last reset.
    fn calls(&mut self, name: &str) -> u64 {
        let stats = self.ask("INFO commandstats");
        let line = format!("cmdstat_{name}:calls=");
        let calls = stats.lines().find_map(|text| text.strip_prefix(&line));
        calls.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
    }

    #[track_caller]
    fn assert_calls(&mut self, expected: &[(&str, u64)]) {
        for (name, count) in expected {
            assert_eq!(self.calls(name), *count, "{name}");
        }
    }

    fn reset(&mut self) {
        for command in ["FLUSHALL", "CONFIG RESETSTAT"] {
            assert_eq!(self.ask(command), "+OK\r\n");
        }
    }
}

fn servers(test: impl Fn(&mut Server)) {
    let mock = mock(1);
    let address = mock.redis_addr().unwrap();
    test(&mut Server {
        address,
        client: Client::connect(address, false),
        real: false,
    });
    mock.stop();
    match RealServer::start() {
        Some(real) => test(&mut Server {
            address: real.address,
            client: Client::connect(real.address, false),
            real: true,
        }),
        None => println!("skipped: redis-server 7.0 is not installed"),
    }
}

#[test]
fn times_to_live_are_in_their_range() {
    servers(|server| {
        let ran = server.done(&[
            "-t",
            "1",
            "-c",
            "2",
            "-n",
            "200",
            "--ratio",
            "1:0",
            "--expiry-range",
            "1000-2000",
            "--key-maximum",
            "40",
            "--key-pattern",
            "S:S",
            "--hide-histogram",
        ]);
        assert_eq!(ran.number("Sets", "Count"), 400.0);
        server.assert_calls(&[("setex", 400), ("set", 0)]);
        assert_eq!(server.number("DBSIZE"), 41);
        let lives: Vec<i64> = (0..=40)
            .map(|key| server.number(&format!("TTL memtier-{key}")))
            .collect();
        // The run takes seconds at the most.
        assert!(
            lives.iter().all(|ttl| (980..=2000).contains(ttl)),
            "{lives:?}"
        );
        let (least, most) = (lives.iter().min().unwrap(), lives.iter().max().unwrap());
        // 41 draws all within a third of the range: a chance below 1e-17.
        assert!(most - least > 333, "{lives:?}");
    });
}

#[test]
fn waits_are_counted_by_the_server_as_by_the_table() {
    servers(|server| {
        server.reset();
        let ran = server.done(&[
            "-t",
            "1",
            "-c",
            "2",
            "-n",
            "100",
            "--ratio",
            "1:1",
            "--wait-ratio",
            "10:1",
            "--num-slaves",
            "0-1",
            "--wait-timeout",
            "1-2",
            "--hide-histogram",
        ]);
        let counts = ["Sets", "Gets", "Waits", "Totals"].map(|row| ran.number(row, "Count"));
        assert_eq!(counts, [96.0, 94.0, 10.0, 200.0]);
        server.assert_calls(&[("set", 96), ("get", 94), ("wait", 10)]);
        if server.real {
            // Half of them wait for a replica that is not there, for a millisecond at least.
            assert!(ran.number("Waits", "Max Latency") > 0.9);
        }
    });
    let closed = SocketAddr::from(([127, 0, 0, 1], 1)).port().to_string();
    for option in ["--num-slaves=0-0", "--wait-timeout=0-0"] {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let words = ["-p", &closed, "--wait-ratio=1:1", option].map(ToString::to_string);
        assert_eq!(
            memtier::run(words, None, &mut out, &mut err),
            ExitStatus::Usage
        );
    }
}

#[test]
fn a_version_is_asked_for_once_by_each_connection() {
    servers(|server| {
        for (protocol, hellos) in [("redis", 0), ("resp2", 3), ("resp3", 3)] {
            server.reset();
            let words = [
                "-t", "1", "-c", "3", "-n", "10", "--ratio", "1:1", "-P", protocol,
            ];
            let ran = server.done(&words);
            assert_eq!(ran.number("Totals", "Count"), 30.0);
            server.assert_calls(&[("hello", hellos)]);
        }
    });
}

const RECORDS: u32 = 20;

/// Twenty records; every fourth is to live 1000 seconds.
fn dump(folder: &Folder) -> String {
    let mut text =
        "dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n".to_owned();
    for record in 0..RECORDS {
        let (key, data) = (format!("rec:{record}"), "v".repeat(1 + record as usize * 3));
        let expiry = if record % 4 == 3 { 1000 } else { 0 };
        text.push_str(&format!(
            "0, 0, {expiry}, {}, 0, 0, 0, {}, {key}, {data}\n",
            data.len() + 2,
            key.len()
        ));
    }
    folder.file("dump.csv", &text)
}

#[test]
fn records_of_a_file_are_written_and_verified() {
    servers(|server| {
        let folder = Folder::new();
        let dump = dump(&folder);
        server.reset();
        let words = [
            "-t",
            "1",
            "-c",
            "2",
            "-n",
            "40",
            "--ratio",
            "1:1",
            "--data-import",
            &dump,
        ];
        let ran = server.done(&[&words[..], &["--data-verify"]].concat());
        assert_eq!(ran.counts(), (20, 0));
        assert!(
            ran.stdout
                .contains("20         keys verified successfuly.\n0          keys failed.")
        );
        assert_eq!(server.number("DBSIZE"), 20);
        // Two clients go through all records once; five of them have a time to live. One client
        // reads each again.
        server.assert_calls(&[("set", 30), ("setex", 10), ("get", 60)]);
        for record in 0..RECORDS {
            let len = server.number(&format!("STRLEN rec:{record}"));
            assert_eq!(len, 1 + i64::from(record) * 3);
            let ttl = server.number(&format!("TTL rec:{record}"));
            let lives = record % 4 == 3;
            assert!(
                if lives {
                    (980..=1000).contains(&ttl)
                } else {
                    ttl == -1
                },
                "{ttl}"
            );
        }
        assert!(ran.number("Gets", "Hits/sec") > 0.0);

        let again = server.done(&[&words[..], &["--verify-only"]].concat());
        assert_eq!(again.counts(), (20, 0));
        assert!(!again.stdout.contains("ALL STATS") && !again.stdout.contains("Threads"));
        assert!(again.json["ALL STATS"].is_null());

        server.ask("SET rec:5 other");
        server.ask("DEL rec:7");
        let broken = server.memtier(&[&words[..], &["--verify-only"]].concat());
        assert_eq!(broken.status, ExitStatus::TooManyErrors);
        assert_eq!(broken.counts(), (18, 2));
        assert!(
            broken
                .stderr
                .contains("2 of 20 keys failed: 1 are not there, 1 hold something else"),
            "{}",
            broken.stderr
        );

        server.reset();
        let kept = [&words[..], &["--no-expiry", "--data-verify", "-P", "resp3"]].concat();
        assert_eq!(server.done(&kept).counts(), (20, 0));
        assert_eq!(server.number("TTL rec:3"), -1);
        server.assert_calls(&[("set", 40), ("setex", 0)]);

        server.reset();
        let ranged = [&words[..], &["--expiry-range", "5000-6000"]].concat();
        server.done(&ranged);
        for record in [0, 3] {
            let ttl = server.number(&format!("TTL rec:{record}"));
            assert!((4980..=6000).contains(&ttl), "{ttl}");
        }
    });
}

#[test]
fn keys_of_the_options_take_the_values_of_a_file() {
    servers(|server| {
        let folder = Folder::new();
        let dump = dump(&folder);
        for (pattern, keys) in [
            ("S:S", Some(50)),
            ("P:P", Some(50)),
            ("R:R", None),
            ("Z:Z", None),
        ] {
            server.reset();
            let ran = server.done(&[
                "-t",
                "1",
                "-c",
                "2",
                "-n",
                "100",
                "--ratio",
                "1:1",
                "--data-import",
                &dump,
                "--generate-keys",
                "--key-minimum",
                "1",
                "--key-maximum",
                "50",
                "--key-prefix",
                "gen-",
                "--key-pattern",
                pattern,
                "--distinct-client-seed",
                "--data-verify",
            ]);
            let (verified, failed) = ran.counts();
            let size = server.number("DBSIZE");
            assert_eq!(
                (verified, failed),
                (size.try_into().unwrap(), 0),
                "{pattern}"
            );
            assert!(keys.is_none_or(|keys| keys == size), "{pattern}: {size}");
            // Key 24 is the fourth of the second time through the file.
            if keys.is_some() {
                assert_eq!(server.number("STRLEN gen-24"), 1 + 3 * 3);
                assert!(server.number("TTL gen-24") > 900);
            }
        }
    });
}

#[test]
fn a_test_that_time_ends_verifies_what_must_have_been_written() {
    servers(|server| {
        let folder = Folder::new();
        let dump = dump(&folder);
        server.reset();
        let words = [
            "-t",
            "1",
            "-c",
            "2",
            "--rate-limiting",
            "5",
            "--test-time",
            "1",
        ];
        let words = [&words[..], &["--ratio", "1:0", "--data-import", &dump]].concat();
        let ran = server.done(&[&words[..], &["--data-verify"]].concat());
        let (verified, failed) = ran.counts();
        let size: u64 = server.number("DBSIZE").try_into().unwrap();
        // Ten SETs of two clients, more or less one.
        assert!(
            failed == 0 && (4..=6).contains(&verified) && verified <= size,
            "{verified}"
        );
        let unknown = ["--generate-keys", "--data-verify"];
        let refused = server.memtier(&[&words[..], &unknown].concat());
        assert_eq!(refused.status, ExitStatus::Usage);
        assert!(
            refused.stderr.contains("--data-verify"),
            "{}",
            refused.stderr
        );
    });
}

#[test]
fn a_capture_is_replayed_line_by_line() {
    servers(|server| {
        let folder = Folder::new();
        let lines: String = (0..3000)
            .map(|line| format!("{line} [0 a:1] \"INCR\" \"count:{}\"\n", line % 10))
            .collect();
        let file = folder.file("capture", &lines);
        server.reset();
        let words = ["-t", "3", "-c", "2", "-n", "1500", "--monitor-input", &file];
        let commands = [
            "--command=__monitor_line@__",
            "--command-ratio=2",
            "--command=PING",
        ];
        let ran = server.done(&[&words[..], &commands].concat());
        // Each client sends a thousand lines: together twice the file.
        for counter in 0..10 {
            let count = server.ask(&format!("GET count:{counter}"));
            assert_eq!(count, "$3\r\n600\r\n");
        }
        server.assert_calls(&[("incr", 6000), ("ping", 3000)]);
        let counts = ["Incrs", "Pings", "Totals"].map(|row| ran.number(row, "Count"));
        assert_eq!(counts, [6000.0, 3000.0, 9000.0]);
        assert!(
            ran.stderr
                .contains("Loaded 3000 monitor commands from 3000 total lines")
        );
    });
}

/// The original counts a value of no bytes as a miss.
#[test]
fn an_empty_value_is_a_hit() {
    servers(|server| {
        server.reset();
        server.client.ask(&[b"SET", b"memtier-1", b""]).unwrap();
        let words = [
            "-t",
            "1",
            "-c",
            "1",
            "-n",
            "50",
            "--ratio",
            "0:1",
            "--key-minimum",
            "1",
        ];
        let ran = server.done(&[&words[..], &["--key-maximum", "1"]].concat());
        assert!(ran.number("Gets", "Hits/sec") > 0.0);
        assert_eq!(ran.number("Gets", "Misses/sec"), 0.0);
        let empty =
            server.done(&[&words[..], &["--key-maximum", "1", "--key-prefix", "no-"]].concat());
        assert_eq!(empty.number("Gets", "Hits/sec"), 0.0);
        assert!(empty.number("Gets", "Misses/sec") > 0.0);
    });
}

/// Ten keys are there, of twenty that are read four at a time.
#[test]
fn reads_of_several_keys_count_the_keys_they_find() {
    servers(|server| {
        server.reset();
        for key in (1..=20).step_by(2) {
            server.ask(&format!("SET memtier-{key} v"));
        }
        let ran = server.done(&[
            "-t",
            "1",
            "-c",
            "1",
            "-n",
            "100",
            "--ratio",
            "0:4",
            "--multi-key-get",
            "4",
            "--key-minimum",
            "1",
            "--key-maximum",
            "20",
            "--key-pattern",
            "S:S",
        ]);
        server.assert_calls(&[("mget", 100), ("get", 0)]);
        assert_eq!(ran.number("Gets", "Count"), 100.0);
        for row in ["Gets", "Totals"] {
            let rates = ["Ops/sec", "Hits/sec", "Misses/sec"].map(|key| ran.number(row, key));
            // Two of each four are there; the rates are rounded to two digits.
            let twice = 2.0 * rates[0];
            assert!(
                (rates[1] - twice).abs() < 0.03 && (rates[2] - twice).abs() < 0.03,
                "{rates:?}"
            );
        }
    });
}

/// The original adds the bytes of arbitrary commands to its totals twice.
#[test]
fn totals_are_the_sum_of_the_rows() {
    servers(|server| {
        let commands = [
            "--command=SET __key__ __data__",
            "--command-ratio=3",
            "--command=GET __key__",
            "--command=MSET __key__ a __key__ b",
            "--command-key-pattern=S",
            "-n",
            "100",
            "-t",
            "1",
        ];
        let ran = server.done(&commands);
        for key in ["Count", "Ops/sec", "KB/sec", "KB/sec RX", "KB/sec TX"] {
            let rows = ["Sets", "Gets", "Msets"].map(|row| ran.number(row, key));
            let (sum, total): (f64, f64) = (rows.iter().sum(), ran.number("Totals", key));
            // Each of the four is rounded to two digits.
            assert!((sum - total).abs() <= 0.021, "{key}: {rows:?} {total}");
        }
    });
}

/// Draws of the law that a key's number is its rank, counted by the server.
#[test]
fn zipf_keys_are_as_frequent_as_their_numbers_say() {
    servers(|server| {
        for (least, most) in [(1, 1000), (500, 1000)] {
            server.reset();
            let (low, high) = (least.to_string(), most.to_string());
            server.done(&[
                "-t",
                "2",
                "-c",
                "5",
                "-n",
                "3000",
                "--pipeline",
                "20",
                "--key-minimum",
                &low,
                "--key-maximum",
                &high,
                "--command=INCR __key__",
                "--command-key-pattern=Z",
                "--distinct-client-seed",
            ]);
            let mut seen = Vec::new();
            for key in least..=most {
                let reply = server.ask(&format!("GET memtier-{key}"));
                let digits = reply.lines().nth(1).unwrap_or("0");
                seen.push(digits.parse::<f64>().unwrap());
            }
            assert_eq!(seen.iter().sum::<f64>(), 30_000.0);
            let weights: Vec<f64> = (least..=most).map(|key| 1.0 / f64::from(key)).collect();
            let sum: f64 = weights.iter().sum();
            let chi: f64 = seen
                .iter()
                .zip(&weights)
                .map(|(n, weight)| {
                    let expected = weight / sum * 30_000.0;
                    (n - expected).powi(2) / expected
                })
                .sum();
            // Chi-square is nearly normal with so many degrees of freedom: mean f, deviation the
            // square root of 2 f. Five of them.
            let freedom = f64::from(most - least);
            assert!(
                chi < freedom + 5.0 * (2.0 * freedom).sqrt(),
                "{least}-{most}: {chi}"
            );
        }
    });
}
