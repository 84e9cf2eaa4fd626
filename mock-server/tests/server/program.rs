//! `kvlab-server` as a process.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::wire::{Client, aerospike_node_name};

/// A running server; killed if the test fails.
struct Server {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_kvlab-server")).args(args))
    }

    /// A server that may have no more than so many open files.
    fn start_with_hard_limit(files: u32, args: &[&str]) -> Self {
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        let shell = ["-c", &script, env!("CARGO_BIN_EXE_kvlab-server")];
        Self::spawn(Command::new("sh").args(shell).args(args))
    }

    /// A server whose shell allows it this many open files, unless it asks for more.
    fn start_with_few_files(files: u32, args: &[&str]) -> Self {
        let script = format!("ulimit -S -n {files}; exec \"$0\" \"$@\"");
        let shell = ["-c", &script, env!("CARGO_BIN_EXE_kvlab-server")];
        Self::spawn(Command::new("sh").args(shell).args(args))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().map(BufReader::new);
        Self { child, stdout }
    }

    /// The address in the next line, which must be about `name`.
    fn listening(&mut self, name: &str) -> SocketAddr {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        let address = line.strip_prefix(&format!("listening {name} "));
        address
            .unwrap_or_else(|| panic!("{line}"))
            .trim_end()
            .parse()
            .unwrap()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Exit code, what is left of stdout, and stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        if let Some(mut pipe) = self.stdout.take() {
            pipe.read_to_string(&mut stdout).unwrap();
        }
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stdout, stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails when it has ended already, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file of this test's own, removed in the end.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, content: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let path = path.join(format!("{name}.{}", std::process::id()));
        fs::write(&path, content).unwrap();
        Self(path)
    }

    fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

const FREE_PORTS: [&str; 4] = ["--redis-port", "0", "--aerospike-port", "0"];

fn with_free_ports<'a>(more: &[&'a str]) -> Vec<&'a str> {
    FREE_PORTS.iter().chain(more).copied().collect()
}

#[test]
fn the_ports_file_names_the_ports_of_this_run() {
    let file = TempFile::new("ports", "redis=1\n");
    let mut server = Server::start(&with_free_ports(&["--ports-file", file.name()]));
    let (redis, aerospike) = (server.listening("redis"), server.listening("aerospike"));
    assert!(redis.ip().is_loopback() && aerospike.ip().is_loopback());
    let expected = format!("redis={}\naerospike={}\n", redis.port(), aerospike.port());
    assert_eq!(fs::read_to_string(&file.0).unwrap(), expected);
    assert_eq!(Client::connect(redis).ask("PING"), "+PONG");
    assert_eq!(aerospike_node_name(aerospike), "A1");
}

#[test]
fn one_port_serves_both_protocols() {
    let mut server = Server::start(&["--port", "0", "--node-name", "B7"]);
    let address = server.listening("shared");
    assert_eq!(Client::connect(address).ask("PING"), "+PONG");
    assert_eq!(aerospike_node_name(address), "B7");
}

#[test]
fn tls_ports_are_announced_and_their_authority_is_written() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.join(format!("tls.{}", std::process::id()));
    let file = TempFile::new("tls-ports", "");
    let tls = ["--redis-tls-port", "0", "--aerospike-tls-port", "0"];
    let rest = ["--tls-self-signed", folder.to_str().unwrap()];
    let args = [&FREE_PORTS[..], &tls, &rest, &["--ports-file", file.name()]].concat();
    let mut ports = String::new();
    let mut server = Server::start(&args);
    for name in ["redis", "aerospike", "redis-tls", "aerospike-tls"] {
        let port = server.listening(name).port();
        ports += &format!("{}={port}\n", name.replace('-', "_"));
    }
    assert_eq!(fs::read_to_string(&file.0).unwrap(), ports);
    let written = fs::read_to_string(folder.join("ca.pem")).unwrap();
    server.signal(Signal::TERM);
    assert_eq!(server.end(), (Some(0), String::new(), String::new()));
    // The next server goes on with what it finds.
    let mut server = Server::start(&args);
    server.listening("redis");
    server.signal(Signal::TERM);
    drop(server);
    assert_eq!(fs::read_to_string(folder.join("ca.pem")).unwrap(), written);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn required_tls_without_a_certificate_says_what_to_do() {
    let mut server = Server::start(&with_free_ports(&["--tls-required"]));
    let redis = server.listening("redis-tls");
    server.listening("aerospike-tls");
    assert!(Client::connect(redis).ask_and_lose("PING"));
    server.signal(Signal::TERM);
    let (code, stdout, stderr) = server.end();
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    assert!(stderr.contains("--tls-self-signed DIR"), "{stderr}");
    let (code, _, stderr) = Server::start(&["--tls-required", "--tls-cert", "/nonexistent"]).end();
    assert_eq!(code, Some(2));
    assert_eq!(
        stderr,
        "error: tls-key is 'missing'; expected the key of tls-cert\n"
    );
}

#[test]
fn a_taken_port_is_a_clear_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let file = TempFile::new("taken", "redis=1\n");
    let port = address.port().to_string();
    let args = [
        "--redis-port",
        &port,
        "--aerospike-port",
        "off",
        "--ports-file",
        file.name(),
    ];
    let (code, stdout, stderr) = Server::start(&args).end();
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    let expected = format!("error: cannot listen on {address}: Address already in use");
    assert!(
        stderr.starts_with(&expected) && stderr.contains("--redis-port"),
        "{stderr}"
    );
    assert!(
        !file.0.exists(),
        "the ports of an earlier run must not stay"
    );
}

#[test]
fn signals_stop_it_with_code_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start(&with_free_ports(&["--latency", "constant(1h)"]));
        let address = server.listening("redis");
        server.listening("aerospike");
        let mut client = Client::connect(address);
        assert_eq!(client.ask("PING"), "+PONG");
        server.signal(signal);
        assert_eq!(server.end(), (Some(0), String::new(), String::new()));
    }
}

#[test]
fn statistics_tell_what_was_done() {
    let rules = [
        "--stats",
        "--latency",
        "constant(1ms)",
        "--latency",
        "get=constant(3ms)",
    ];
    let mut server = Server::start(&with_free_ports(&rules));
    let mut client = Client::connect(server.listening("redis"));
    server.listening("aerospike");
    assert_eq!(client.ask("SET k v"), "+OK");
    assert_eq!(client.ask("GET k"), "v");
    assert_eq!(client.ask("PING"), "+PONG");
    server.signal(Signal::TERM);
    let (code, stdout, stderr) = server.end();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let line = |name: &str| {
        let line = stdout.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {stdout}"));
        line[name.len()..]
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // Three replies, one delayed by nothing, one by 1 ms and one by 3 ms.
    let wanted = line("wanted");
    assert_eq!(
        (wanted[0].as_str(), wanted[7].as_str()),
        ("3", "3.000ms"),
        "{stdout}"
    );
    assert_eq!(wanted[2], "1.000ms", "{stdout}");
    assert_eq!(line("calls redis get"), ["1"]);
    assert_eq!(line("calls redis set"), ["1"]);
    assert_eq!(line("calls redis ping"), ["1"]);
    assert_eq!(line("connections accepted"), ["1"]);
    let bytes = "SET k v\r\nGET k\r\nPING\r\n".len().to_string();
    assert_eq!(line("bytes read"), [bytes]);
    let bytes = "+OK\r\n$1\r\nv\r\n+PONG\r\n".len().to_string();
    assert_eq!(line("bytes written"), [bytes]);
}

#[test]
fn the_printed_configuration_can_be_fed_back() {
    let options = [
        "--print-config",
        "--redis-port",
        "0",
        "--aerospike-port",
        "off",
        "--seed",
        "7",
        "--latency",
        "get@user:*=lognormal(p50=300us,p99=2ms)",
        "--latency",
        "admin=none",
        "--freeze",
        "every=2s,for=150ms,first=1s",
        "--no-spin",
        "--namespace",
        "a",
        "--namespace",
        "b",
        "--redis-version",
        "7.0.15",
    ];
    let (code, printed, stderr) = Server::start(&options).end();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let file = TempFile::new("config", &printed);
    let (code, again, _) = Server::start(&["--config", file.name(), "--print-config"]).end();
    assert_eq!((code, again.as_str()), (Some(0), printed.as_str()));
    // Options beat the file.
    let args = [
        "--config",
        file.name(),
        "--print-config",
        "--seed",
        "8",
        "--latency",
        "none",
    ];
    let (_, changed, _) = Server::start(&args).end();
    let expected = printed
        .replace("seed = 7", "seed = 8")
        .lines()
        .map(|line| {
            if line.starts_with("latency") {
                "latency = [\"none\"]"
            } else {
                line
            }
        })
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    assert_eq!(changed, expected);
}

#[test]
fn a_faulty_file_is_told_with_its_place() {
    let file = TempFile::new("faulty", "seed = 1\nlatency = [\"constant(1)\"]\n");
    let (code, stdout, stderr) = Server::start(&["--config", file.name()]).end();
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    for part in [file.name(), "line 2", "latency", "lacks a unit"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    let (code, _, stderr) = Server::start(&["--config", "/nonexistent/kvlab.toml"]).end();
    assert_eq!(code, Some(2));
    assert!(stderr.contains("cannot read the configuration file /nonexistent/kvlab.toml"));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (args, part) in [
        (&["--latency", "x=1"][..], "'x' is no protocol"),
        (&["--freeze", "every=1s"], "'for' is missing"),
        (&["--workers", "0"], "the number of workers is '0'"),
        (
            &["--redis-port", "off", "--aerospike-port", "off"],
            "no port to listen on",
        ),
        (&["--namespace", "a;b"], "a namespace is 'a;b'"),
        (&["--nonsense"], "--nonsense"),
    ] {
        let (code, stdout, stderr) = Server::start(args).end();
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(stderr.contains(part), "{stderr}");
    }
}

#[test]
fn rows_of_every_request_are_written_at_the_end() {
    let file = TempFile::new("rows", "");
    let args = ["--rows", file.name(), "--latency", "get=constant(2ms)"];
    let mut server = Server::start(&with_free_ports(&args));
    let address = server.listening("redis");
    let mut client = Client::connect(address);
    assert_eq!(client.ask("PING"), "+PONG");
    assert_eq!(client.ask("GET nothing"), "$-1");
    server.signal(Signal::TERM);
    assert_eq!(server.end().0, Some(0));
    let text = fs::read_to_string(file.name()).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3, "{text}");
    let field = |row: usize, name: &str| {
        let column = rows[0].iter().position(|column| *column == name).unwrap();
        rows[row][column]
    };
    let number = |row: usize, name: &str| field(row, name).parse::<u64>().unwrap();
    for (row, command, wanted_ns) in [(1, "ping", 0), (2, "get", 2_000_000)] {
        assert_eq!(rows[row].len(), rows[0].len());
        assert_eq!(number(row, "ordinal"), 0);
        assert_eq!(number(row, "sequence"), row as u64 - 1);
        assert_eq!(field(row, "command"), command);
        assert_eq!(number(row, "wanted_ns"), wanted_ns);
        assert_eq!(number(row, "due_ns"), wanted_ns);
        assert!(number(row, "written_ns") >= wanted_ns);
        assert_eq!(field(row, "answered"), "true");
    }
    let (code, _, stderr) = Server::start(&["--rows", "/nonexistent/rows.csv"]).end();
    assert_eq!(code, Some(2));
    assert!(stderr.contains("/nonexistent/rows.csv"), "{stderr}");
}

#[test]
fn a_closed_stdout_ends_it_quietly() {
    let mut server = Server::start(&with_free_ports(&["--stats"]));
    server.listening("redis");
    server.listening("aerospike");
    server.stdout = None;
    server.signal(Signal::TERM);
    assert_eq!(server.end(), (Some(0), String::new(), String::new()));
}

#[test]
fn more_clients_are_served_than_the_soft_limit_of_files_allows() {
    let mut server =
        Server::start_with_few_files(64, &["--redis-port", "0", "--aerospike-port", "off"]);
    let address = server.listening("redis");
    let mut clients: Vec<Client> = (0..150).map(|_| Client::connect(address)).collect();
    for client in &mut clients {
        assert_eq!(client.ask("PING"), "+PONG");
    }
}

#[test]
fn a_server_that_may_open_too_few_files_for_its_connections_does_not_start() {
    let args = with_free_ports(&["--max-connections", "500"]);
    let (code, stdout, stderr) = Server::start_with_hard_limit(256, &args).end();
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(
        stderr.contains("500 connections and the server itself need"),
        "{stderr}"
    );
    let number = stderr.rsplit(' ').next().unwrap().trim_end();
    let args = ["--redis-port", "0", "--aerospike-port", "off"];
    let possible = [&args[..], &["--max-connections", number]].concat();
    let mut server = Server::start_with_hard_limit(256, &possible);
    let address = server.listening("redis");
    let most: usize = number.parse().unwrap();
    let mut clients: Vec<Client> = (0..most).map(|_| Client::connect(address)).collect();
    for client in &mut clients {
        assert_eq!(client.ask("PING"), "+PONG");
    }
    let told = Client::connect(address).rest().unwrap();
    assert_eq!(told, "-ERR max number of clients reached\r\n");
}
