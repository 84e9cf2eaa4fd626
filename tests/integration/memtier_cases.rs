//! Every recorded case of memtier_benchmark, run again with our front end: against the mock, and
//! against a real redis-server 7.0 where one is installed.
//!
//! The tables must have the recording's words and numbers at the recording's columns, whatever the
//! numbers are. Where the original failed, the test says what has to happen instead. The commands
//! are the recorded ones; only address, files and lengths are changed.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use kvlab_bench_client::frontend::{ExitStatus, memtier};
use serde_json::Value;

use kvlab_mock_server::MockServer;

use super::resp_wire::{Client, RealServer, mock};

/// Cases with tables that went well in the original, too.
const PLAIN: [&str; 16] = [
    "01", "02", "03", "04", "05", "06", "07", "08", "17", "20", "26", "28", "29", "30", "31", "34",
];
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A command line, and what the original printed for it.
pub(crate) struct Case {
    name: String,
    arguments: Vec<String>,
    pub(crate) stdout: String,
}

/// What we did with it.
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    json: Option<String>,
}

impl Case {
    pub(crate) fn load(number: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench-client/tests/data/memtier");
        let path = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                name.starts_with(number) && name.ends_with(".cmd")
            })
            .unwrap_or_else(|| panic!("no case {number}"));
        let command = std::fs::read_to_string(&path).unwrap();
        Self {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            arguments: words(command.split(" # ").next().unwrap())[1..].to_vec(),
            stdout: std::fs::read_to_string(path.with_extension("stdout")).unwrap(),
        }
    }

    /// A command line that was not recorded.
    pub(crate) fn of(line: &str) -> Self {
        Self {
            name: "own".to_owned(),
            arguments: words(line),
            stdout: String::new(),
        }
    }

    /// Gives an option another value, where it is there.
    fn set(&mut self, option: &str, value: &str) {
        let place = self.arguments.iter().position(|word| word == option);
        if let Some(word) = place.and_then(|place| self.arguments.get_mut(place + 1)) {
            value.clone_into(word);
        }
    }

    /// Runs it against a server, in a folder of its own.
    pub(crate) fn run(mut self, server: SocketAddr) -> Ran {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder: PathBuf =
            std::env::temp_dir().join(format!("kvlab-cases-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).display().to_string();
        self.set("-s", "127.0.0.1");
        self.set("-p", &server.port().to_string());
        for word in self.arguments.iter_mut().filter(|word| *word == "JSON") {
            *word = path("out.json");
        }
        if self.name != "own" {
            self.set("--json-out-file", &path("out.json"));
            self.set("--hdr-file-prefix", &path("h"));
            self.set("--client-stats", &path("cs"));
            // Four seconds are those of the steps.
            if !self.name.starts_with("19") {
                self.set("--test-time", "2");
            }
        }
        // Ten runs of a hundred thousand requests say no more than ten of two thousand.
        if self.name.starts_with("02") {
            self.set("-n", "20");
        }
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let status = memtier::run(self.arguments, None, &mut stdout, &mut stderr);
        let json = std::fs::read_to_string(folder.join("out.json")).ok();
        std::fs::remove_dir_all(&folder).unwrap();
        Ran {
            status,
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
            json,
        }
    }
}

impl Ran {
    pub(crate) fn value(&self) -> Value {
        let json = self.json.as_deref().unwrap();
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
    }

    /// A number of the totals in the JSON.
    pub(crate) fn total(&self, key: &str) -> f64 {
        self.value()["ALL STATS"]["Totals"][key].as_f64().unwrap()
    }
}

/// The words of a command line; quotes are taken off, and a backslash stays for the front end.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.trim().chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The places of a line: where each word ends, and the word where it is no number. A number is the
/// count of its digits behind the point; the first word of a line begins at the left and may be of
/// any length.
fn places(line: &str) -> Vec<(usize, String)> {
    let mut places = Vec::new();
    let mut end = 0;
    for word in line.split(' ') {
        end += word.len();
        if !word.is_empty() {
            let number = word.chars().all(|c| c.is_ascii_digit() || c == '.');
            let digits = word.split_once('.').map_or(0, |(_, digits)| digits.len());
            let (end, word) = match (number, end == word.len()) {
                (true, true) => (0, "#".to_owned()),
                (true, false) => (end, format!("#{digits}")),
                _ => (end, word.to_owned()),
            };
            places.push((end, word));
        }
        end += 1;
    }
    places
}

/// Lines without distributions, whose length depends on the numbers, and without our own lines.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    let names = ["SET ", "GET ", "WAIT ", "HSET ", "SCAN "];
    for line in text.lines().filter(|line| !line.contains(" = ")) {
        if line.starts_with("# ") || line.starts_with("! ") {
            while lines.last() == Some(&"") {
                lines.pop();
            }
        } else if !names.iter().any(|name| line.starts_with(name)) {
            lines.push(line);
        }
    }
    lines
}

#[track_caller]
pub(crate) fn assert_same_shape(case: &str, ours: &str, theirs: &str) {
    let (mine, recorded) = (lines(ours), lines(theirs));
    for (mine, recorded) in mine.iter().zip(&recorded) {
        assert_eq!(places(mine), places(recorded), "{case}\n{mine}\n{recorded}");
    }
    assert_eq!(mine.len(), recorded.len(), "{case}\n{ours}");
}

/// Both at a time: most of a case is waiting.
fn servers(with: impl Fn(SocketAddr, Kind) + Sync) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let server = mock(1);
            with(server.redis_addr().unwrap(), Kind::Mock);
            server.stop();
        });
        match RealServer::start() {
            Some(real) => with(real.address, Kind::Real),
            None => println!("skipped: redis-server 7.0 is not installed"),
        }
    });
}

/// Runs a test for each of several cases at a time.
pub(crate) fn at_once(numbers: &[&str], test: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for number in numbers {
            scope.spawn(|| test(number));
        }
    });
}

/// Which server a case is run against.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mock,
    Real,
}

/// Cases with commands that the mock does not know.
const BEYOND_THE_MOCK: [&str; 1] = ["06"];

#[test]
fn plain_cases_have_the_shape_of_the_recordings() {
    servers(|server, kind| {
        for number in PLAIN {
            if kind == Kind::Mock && BEYOND_THE_MOCK.contains(&number) {
                continue;
            }
            let case = Case::load(number);
            let (name, recorded) = (case.name.clone(), case.stdout.clone());
            let ran = case.run(server);
            assert_eq!(ran.status, ExitStatus::Done, "{name}: {}", ran.stderr);
            assert_same_shape(&name, &ran.stdout, &recorded);
            if ran.json.is_some() {
                assert!(ran.value()["run information"].is_object(), "{name}");
            }
            assert!(
                ran.stderr.contains("msec latency\r"),
                "{name}: {}",
                ran.stderr
            );
        }
    });
}

/// Case 27: two records, of which one is written, read and verified.
#[test]
fn case_27_verifies_what_it_wrote() {
    servers(|server, _| {
        let mut case = Case::load("27");
        let recorded = case.stdout.clone();
        let name = format!("kvlab-case-27-{}-{}", std::process::id(), server.port());
        let path = std::env::temp_dir().join(name);
        let dump = "dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n\
                    0, 0, 0, 12, 0, 0, 0, 4, key1, xxxxxxxxxx\n\
                    0, 0, 0, 14, 0, 0, 0, 4, key2, aaaaaaaaaaaa\n";
        std::fs::write(&path, dump).unwrap();
        case.set("--data-import", &path.display().to_string());
        let ran = case.run(server);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(ran.status, ExitStatus::Done, "{}", ran.stderr);
        assert_same_shape("27", &ran.stdout, &recorded);
        assert!(ran.stdout.contains("1          keys verified successfuly."));
        let counts = &ran.value()["client verifications results"];
        assert_eq!(counts["keys verified successfuly"], 1);
        assert_eq!(counts["keys failed"], 0);
    });
}

/// 150 requests each of ten connections at 50 a second each: 1500 in 2.998 s. The original called
/// it 3.979 s and 377 a second.
#[test]
fn case_34_takes_as_long_as_it_takes() {
    let server = mock(1);
    let ran = Case::load("34").run(server.redis_addr().unwrap());
    server.stop();
    assert_eq!(ran.total("Count"), 1_500.0);
    let rate = ran.total("Ops/sec");
    assert!((rate - 500.0).abs() <= 2.5, "{rate}: within 0.5 %");
}

#[test]
fn case_15_no_server_is_an_exit_code_and_still_a_table_and_json() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let case = Case::load("15");
    let recorded = case.stdout.replace("           -nan", "            ---");
    let recorded = recorded.replace("        0.00700", "            ---");
    let ran = case.run(address);
    assert_eq!(ran.status, ExitStatus::NoConnection, "{}", ran.stderr);
    assert_same_shape("15", &ran.stdout, &recorded);
    assert_eq!(ran.total("KB/sec TX"), 0.0);
}

/// Case 10 skips the verification; case 32 verifies against the right authority; case 11 has none
/// and ended with exit code 0 and zeros in the original.
#[test]
fn cases_10_11_and_32_over_tls() {
    let folder = std::env::temp_dir().join(format!("kvlab-cases-tls-{}", std::process::id()));
    let server = MockServer::builder()
        .redis_port(None)
        .aerospike_port(None)
        .redis_tls_port(0)
        .tls_self_signed(&folder)
        .start()
        .unwrap();
    let address = server.redis_tls_addr().unwrap();
    for number in ["10", "32"] {
        let mut case = Case::load(number);
        let recorded = case.stdout.clone();
        case.set("--cacert", &folder.join("ca.pem").display().to_string());
        let ran = case.run(address);
        assert_eq!(ran.status, ExitStatus::Done, "{number}: {}", ran.stderr);
        assert_same_shape(number, &ran.stdout, &recorded);
    }
    let ran = Case::load("11").run(address);
    assert_eq!(ran.status, ExitStatus::NoConnection, "{}", ran.stderr);
    assert!(ran.stderr.contains("certificate"), "{}", ran.stderr);
    assert_eq!(ran.total("Count"), 0.0);
    server.stop();
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Case 16: twenty of forty connections find no place. The original dies of a signal.
#[test]
fn case_16_a_full_server_ends_with_its_words() {
    let server = MockServer::builder()
        .redis_port(0)
        .aerospike_port(None)
        .max_connections(20)
        .start()
        .unwrap();
    let ran = Case::load("16").run(server.redis_addr().unwrap());
    server.stop();
    assert_ne!(ran.status, ExitStatus::Done, "{}", ran.stdout);
    assert!(ran.stdout.contains("ALL STATS"), "{}", ran.stderr);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    // As the reply to a request, or as the line that turned a connection away.
    let words = ["ERR max number of clients reached", " ERR  "];
    assert!(words.iter().any(|word| said.contains(word)), "{said}");
    assert!(ran.value()["kvlab"].is_object());
}

/// Cases 12, 13 and 14: a user, a wrong password (the original never ends), none at all (it counts
/// the refusals as operations).
#[test]
fn cases_12_to_14_with_a_password() {
    let Some(real) = RealServer::start() else {
        println!("skipped: redis-server 7.0 is not installed");
        return;
    };
    let mut client = Client::connect(real.address, false);
    for command in [
        &["ACL", "SETUSER", "bob", "on", ">bobpw", "~*", "+@all"][..],
        &["CONFIG", "SET", "requirepass", "secret"],
    ] {
        let words: Vec<&[u8]> = command.iter().map(|word| word.as_bytes()).collect();
        assert_eq!(client.ask(&words).unwrap(), b"+OK\r\n");
    }
    let case = Case::load("12");
    let recorded = case.stdout.clone();
    let ran = case.run(real.address);
    assert_eq!(ran.status, ExitStatus::Done, "{}", ran.stderr);
    assert_same_shape("12", &ran.stdout, &recorded);
    assert!(!ran.json.as_deref().unwrap().contains("bobpw"));
    let ran = Case::load("13").run(real.address);
    assert_eq!(ran.status, ExitStatus::LoginRefused, "{}", ran.stderr);
    assert!(ran.stderr.contains("WRONGPASS"), "{}", ran.stderr);
    assert!(ran.value()["ALL STATS"].is_object());
    let ran = Case::load("14").run(real.address);
    assert_eq!(ran.status, ExitStatus::TooManyErrors, "{}", ran.stderr);
    assert_eq!((ran.total("Count"), ran.total("Ops/sec")), (0.0, 0.0));
    assert!(
        ran.stdout.contains("! GET            NOAUTH"),
        "{}",
        ran.stdout
    );
}

/// Cases 22 and 23: the server goes away after a second. The original shows zeros and exit code 0.
#[test]
fn cases_22_and_23_keep_what_was_measured_when_the_server_goes() {
    at_once(&["22", "23"], |number| {
        let server = mock(1);
        let address = server.redis_addr().unwrap();
        let stop = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_secs(1));
            server.stop();
        });
        let ran = Case::load(number).run(address);
        stop.join().unwrap();
        assert_eq!(
            ran.status,
            ExitStatus::NoConnection,
            "{number}: {}",
            ran.stderr
        );
        // Ten connections at 100 and at 200 a second, for a second.
        let count = ran.total("Count");
        let asked = if number == "22" { 1_000.0 } else { 2_000.0 };
        assert!(
            count > 0.5 * asked && count < 1.6 * asked,
            "{number}: {count}"
        );
        assert!(ran.total("Connection Errors") > 0.0, "{number}");
        assert!(
            ran.stdout
                .contains("! ALL            connections failed or lost")
        );
    });
}

/// Cases 24 and 25: the server comes back. The original with `--reconnect-on-error` never ends, and
/// without it drops what was measured before. The first asks for 4 x 600 requests at 400 a second;
/// a third of that does here.
#[test]
fn cases_24_and_25_go_on_when_the_server_comes_back() {
    at_once(&["24", "25"], |number| {
        let server = mock(1);
        let address = server.redis_addr().unwrap();
        let restart = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(800));
            server.stop();
            std::thread::sleep(std::time::Duration::from_millis(500));
            let again = MockServer::builder().redis_port(address.port());
            again.aerospike_port(None).start().unwrap()
        });
        let mut case = Case::load(number);
        case.set("-n", "200");
        let ran = case.run(address);
        restart.join().unwrap().stop();
        assert_eq!(ran.status, ExitStatus::Done, "{number}: {}", ran.stderr);
        // What was on its way is lost, one request of each client at most; all others are made up.
        let lost = ran.value()["ALL STATS"]["kvlab"]["Totals"]["lost"].clone();
        let (count, lost) = (ran.total("Count"), lost.as_f64().unwrap());
        assert!(
            lost <= 4.0 && count + lost == 800.0,
            "{number}: {count} {lost}"
        );
        assert!(ran.total("Connection Errors") >= 4.0, "{number}");
        assert!(ran.stderr.contains("4 connections were lost, reconnecting"));
        // The requests of the outage, half a second at least, waited for it.
        let slowest = ran.total("Max Latency");
        assert!(slowest > 500.0, "{number}: {slowest} ms");
    });
}

/// Case 21: the original aborts and prints a page about it. One request of ten is written, and the
/// reads of five keys each stand in the row of the reads.
#[test]
fn case_21_reads_several_keys_at_once() {
    let recorded = Case::load("20").stdout;
    servers(|server, _| {
        let ran = Case::load("21").run(server);
        assert_eq!(ran.status, ExitStatus::Done, "{}", ran.stderr);
        assert_same_shape("21", &ran.stdout, &recorded);
    });
}

/// Case 19: two clients in the first second, four in the second, six in the third and fourth. At 50
/// a second each that is 900; the original ended early with 636.
#[test]
fn case_19_lets_the_clients_come_step_by_step() {
    let server = mock(1);
    let case = Case::load("19");
    let recorded = case.stdout.clone();
    let ran = case.run(server.redis_addr().unwrap());
    server.stop();
    assert_eq!(ran.status, ExitStatus::Done, "{}", ran.stderr);
    assert_same_shape("19", &ran.stdout, &recorded);
    let seconds = &ran.value()["ALL STATS"]["Active Clients"];
    let clients = ["0", "1", "2", "3"].map(|second| seconds[second]["Total clients"].as_u64());
    assert_eq!(clients, [2, 4, 6, 6].map(Some), "{seconds}");
    let count = ran.total("Count");
    assert!((count - 900.0).abs() <= 9.0, "{count}");
    assert!(ran.stderr.contains("Step 2:"), "{}", ran.stderr);
}

/// Our own `--html`: a page with both runs.
#[test]
fn the_page_has_every_run() {
    let server = mock(1);
    let folder = std::env::temp_dir().join(format!("kvlab-page-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let page = folder.join("page.html");
    let port = server.redis_addr().unwrap().port().to_string();
    let mut arguments = words("-t 1 -c 2 -n 50 -x 2 --hide-histogram -s 127.0.0.1 -p");
    arguments.extend([port, "--html".to_owned(), page.display().to_string()]);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let status = memtier::run(arguments, None, &mut stdout, &mut stderr);
    server.stop();
    let page = std::fs::read_to_string(page).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(status, ExitStatus::Done);
    for text in [
        "id=\"run-1-percentiles\"",
        "id=\"run-2-percentiles\"",
        "kvlab memtier",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

/// Certificates come from the lab; where there is none, that is said before anything is sent.
#[test]
fn a_certificate_needs_someone_to_make_it() {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let arguments = words("-s 127.0.0.1 -p 1 --certify");
    let status = memtier::run(arguments, None, &mut stdout, &mut stderr);
    assert_eq!(status, ExitStatus::Usage);
    let text = String::from_utf8(stderr).unwrap();
    assert!(text.contains("--certify"), "{text}");
}
