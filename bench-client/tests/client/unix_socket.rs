//! Load over a Unix socket: against a tiny responder, and against a real redis-server where one is
//! installed.

use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use kvlab_bench_client::engine::Silent;
use kvlab_bench_client::frontend::{ExitStatus, memtier};
use kvlab_bench_client::settings::{Address, KernelStamps, RedisTarget, Stop, Target};
use kvlab_bench_client::{Control, RunError, Settings, run};

/// A folder that ends with the test. Paths of sockets are short, so it is not deep.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kvlab-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Answers each request with +OK until the other side closes.
fn responder(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    // The threads end with their connections and the process; nothing waits for them.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
}

fn serve(mut stream: UnixStream) {
    let mut chunk = vec![0; 65_536];
    while let Ok(n @ 1..) = stream.read(&mut chunk) {
        // Each request begins with a star, and its key has none.
        let requests = chunk[..n].iter().filter(|byte| **byte == b'*').count();
        if stream.write_all(&b"+OK\r\n".repeat(requests)).is_err() {
            return;
        }
    }
}

fn settings(path: &Path, connections: u32, requests: u64) -> Settings {
    let mut target = RedisTarget::new("127.0.0.1:1".parse().unwrap(), 0, 1);
    target.address = Address::unix(path);
    Settings {
        connections: NonZeroU32::new(connections).unwrap(),
        stop: Stop {
            duration: None,
            requests: Some(requests),
        },
        record_rows: true,
        ..Settings::new(Target::Redis(target))
    }
}

#[test]
fn every_request_over_a_socket_file_is_answered() {
    let folder = Folder::new("own");
    let path = folder.0.join("s");
    responder(&path);
    for (depth, stamps) in [
        (1, KernelStamps::Off),
        (16, KernelStamps::Off),
        (1, KernelStamps::Auto),
    ] {
        let mut settings = settings(&path, 5, 5_000);
        settings.threads = NonZeroU32::new(2).unwrap();
        settings.pipeline.depth = NonZeroU32::new(depth).unwrap();
        settings.kernel_stamps = stamps;
        let result = run(&settings, &Control::new(), &mut Silent).unwrap();
        assert_eq!(result.summary.tally.outcomes().hits, 5_000);
        assert!(result.rows.iter().all(|row| row.kernel.is_none()));
        // Sockets without an address are told apart by their ordinal.
        let mut sockets: Vec<_> = result.rows.iter().map(|row| row.ordinal).collect();
        sockets.sort_unstable();
        sockets.dedup();
        assert_eq!(sockets, [0, 1, 2, 3, 4]);
    }
}

#[test]
fn a_socket_file_without_a_server_is_no_connection() {
    let folder = Folder::new("none");
    let path = folder.0.join("s");
    let error = run(&settings(&path, 1, 1), &Control::new(), &mut Silent).unwrap_err();
    let RunError::NoConnection { address, error } = error else {
        panic!("{error}");
    };
    assert_eq!(address.to_string(), path.display().to_string());
    assert!(error.contains("No such file"), "{error}");
}

/// A redis-server that listens on a socket file alone, and ends with the test.
struct RealServer(Child);

impl RealServer {
    fn start(folder: &Path, socket: &Path) -> Option<Self> {
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(socket)
            .arg("--dir")
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        let server = Self(process);
        for _ in 0..2_000 {
            if UnixStream::connect(socket).is_ok() {
                return Some(server);
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server did not start");
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn memtier_fills_a_real_server_over_its_socket_file() {
    let folder = Folder::new("real");
    let socket = folder.0.join("s");
    let Some(_server) = RealServer::start(&folder.0, &socket) else {
        println!("skipped: redis-server is not installed");
        return;
    };
    let path = socket.display().to_string();
    let json = folder.0.join("out.json").display().to_string();
    let words = "-t 2 -c 3 -n 200 --ratio 1:0 --key-pattern P:P --key-minimum 1 --key-maximum 1200";
    let mut arguments: Vec<&str> = words.split(' ').collect();
    arguments.extend(["-S", &path, "--json-out-file", &json]);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let status = memtier::run(&arguments, None, &mut stdout, &mut stderr);
    assert_eq!(
        status,
        ExitStatus::Done,
        "{}",
        String::from_utf8_lossy(&stderr)
    );
    let json = fs::read_to_string(json).unwrap();
    assert!(
        json.contains(&format!("\"unix socket\": \"{path}\"")),
        "{json}"
    );
    let mut client = UnixStream::connect(&socket).unwrap();
    client.write_all(b"DBSIZE\r\n").unwrap();
    let mut reply = [0; 7];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b":1200\r\n");
}
