//! What tests need to talk RESP, apart from the code of the project, which is under test; and a real
//! server to compare with.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kvlab_mock_server::config::{RedisConfig, RedisVersion};
use kvlab_mock_server::{MockServer, ServerConfig};
use kvlab_timing::Clock;

/// A mock that is a redis-server 7.0.15.
pub(crate) fn mock(workers: usize) -> MockServer {
    MockServer::start(ServerConfig {
        workers,
        redis: RedisConfig {
            version: RedisVersion {
                major: 7,
                minor: 0,
                patch: 15,
            },
            ..RedisConfig::default()
        },
        ..ServerConfig::default()
    })
    .unwrap()
}

/// Servers started by this process, so that each has a directory of its own.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A connection that reads one reply at a time, as raw bytes.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    /// What was read and not yet taken.
    pub(crate) input: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, resp3: bool) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut client = Self {
            socket,
            input: Vec::new(),
        };
        if resp3 {
            client.ask(&[b"HELLO", b"3"]).unwrap();
        }
        client
    }

    pub(crate) fn send(&mut self, words: &[&[u8]]) {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.socket.write_all(&request).unwrap();
    }

    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Result<Vec<u8>, String> {
        self.send(words);
        loop {
            if let Some(len) = reply_len(&self.input) {
                return Ok(self.input.drain(..len).collect());
            }
            if !self.fill() {
                let rest = escape(&self.input);
                return Err(format!("  no reply, but the end, behind '{rest}'"));
            }
        }
    }

    /// Reads once; false at the end.
    pub(crate) fn fill(&mut self) -> bool {
        let mut chunk = [0; 65536];
        match self.socket.read(&mut chunk) {
            Ok(0) => false,
            Ok(len) => {
                self.input.extend_from_slice(&chunk[..len]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("no answer: {error}"),
        }
    }

    pub(crate) fn is_at_end(&mut self) -> bool {
        !self.fill() && self.input.is_empty()
    }
}

/// Length of the reply at the front, if it is there to its end. Written apart from the decoders of the
/// project, which are under test.
pub(crate) fn reply_len(input: &[u8]) -> Option<usize> {
    let line = input.windows(2).position(|pair| pair == b"\r\n")?;
    let number = || -> Option<i64> { std::str::from_utf8(&input[1..line]).ok()?.parse().ok() };
    let mut len = line + 2;
    let elements = match input[0] {
        b'$' | b'=' | b'!' => {
            if let Ok(bytes) = usize::try_from(number()?) {
                len += bytes + 2;
            }
            0
        }
        b'*' | b'~' | b'>' => number()?.max(0),
        b'%' => number()?.max(0) * 2,
        _ => 0,
    };
    for _ in 0..elements {
        len += reply_len(input.get(len..)?)?;
    }
    (len <= input.len()).then_some(len)
}

/// Bytes as a test prints them.
pub(crate) fn escape(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// A redis-server of its own, which ends with the test.
#[derive(Debug)]
pub(crate) struct RealServer {
    process: Child,
    pub(crate) address: SocketAddr,
    directory: PathBuf,
}

impl RealServer {
    /// Starts one; `None` if there is none of the right version.
    pub(crate) fn start() -> Option<Self> {
        Self::with(&[])
    }

    /// Starts one with these arguments, too.
    pub(crate) fn with(arguments: &[&str]) -> Option<Self> {
        let version = Command::new("redis-server")
            .arg("--version")
            .output()
            .ok()?;
        if !String::from_utf8_lossy(&version.stdout).contains("v=7.0.") {
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|probe| probe.local_addr())
            .unwrap()
            .port();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("kvlab-redis-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(arguments)
            .current_dir(&directory)
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        let server = Self {
            process,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            directory,
        };
        let clock = Clock::real();
        let start = clock.now();
        while TcpStream::connect(server.address).is_err() {
            assert!(
                clock.now().saturating_since(start) < 20_000_000_000,
                "redis-server did not start"
            );
            std::thread::yield_now();
        }
        Some(server)
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
