//! Requests are read as a real server reads them, down to the error texts and the silent closes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::BytesMut;
use kvlab_protocol::resp::{
    Args, DoubleStyle, ReplyWriter, RequestDecoder, RequestError, RequestLimits, Version,
};

use crate::vectors::{RequestCase, request_cases};

#[test]
fn decoder_answers_as_the_recorded_server() {
    for case in request_cases() {
        let request = case.request();
        for step in [request.len(), 1, 7] {
            let (reply, closed) = serve(&request, step, case.requirepass);
            assert_eq!(
                (reply.escape_ascii().to_string(), closed),
                (case.reply().escape_ascii().to_string(), case.closed),
                "{} in steps of {step}",
                case.name
            );
        }
    }
}

/// A server of three commands around the decoder: what it would send, and whether it would close.
fn serve(request: &[u8], step: usize, requirepass: bool) -> (Vec<u8>, bool) {
    let limits = if requirepass {
        RequestLimits::unauthenticated()
    } else {
        RequestLimits::default()
    };
    let mut decoder = RequestDecoder::new();
    let mut out = BytesMut::new();
    let (mut pos, mut arrived) = (0, 0);
    while arrived < request.len() {
        arrived = request.len().min(arrived + step);
        loop {
            let buf = &request[pos..arrived];
            match decoder.decode(buf, &limits) {
                Ok(Some(n)) => {
                    let args = decoder.args(&buf[..n]);
                    if !args.is_empty() && run(args, requirepass, &mut out) {
                        return (out.to_vec(), true);
                    }
                    pos += n;
                }
                Ok(None) => break,
                Err(error) => {
                    match error.reply_text() {
                        Some(text) => writer(&mut out).error_bytes(&text),
                        // A real server drops what it has not yet written, too.
                        None => out.clear(),
                    }
                    return (out.to_vec(), true);
                }
            }
        }
    }
    (out.to_vec(), false)
}

fn writer(out: &mut BytesMut) -> ReplyWriter<'_> {
    ReplyWriter::new(out, Version::Resp2, DoubleStyle::SeventeenDigits)
}

/// Answers one command; true if the connection ends.
fn run(args: Args<'_>, requirepass: bool, out: &mut BytesMut) -> bool {
    let mut writer = writer(out);
    match (args.name(), args.len()) {
        (b"QUIT", _) => {
            writer.simple("OK");
            return true;
        }
        _ if requirepass => writer.error("NOAUTH Authentication required."),
        (b"PING", 1) => writer.simple("PONG"),
        (b"ECHO", 2) => writer.bulk(args.arg(1)),
        _ => panic!("the vectors use no other command: {args:?}"),
    }
    false
}

#[test]
fn recorded_vectors_hold_on_an_installed_server() {
    let Some(mut open) = RealServer::start(&[]) else {
        eprintln!("skipped: redis-server is not installed, or is not version 7.0");
        return;
    };
    let mut closed = RealServer::start(&["--requirepass", "secret"]).expect("a second server");
    for case in request_cases() {
        let server = if case.requirepass {
            &mut closed
        } else {
            &mut open
        };
        let found = server.exchange(&case);
        assert_eq!(found, (case.reply(), case.closed), "{}", case.name);
    }
}

/// A redis-server of our own on a free port, ended on drop.
struct RealServer {
    process: Child,
    port: u16,
}

impl RealServer {
    fn start(options: &[&str]) -> Option<Self> {
        let version = Command::new("redis-server")
            .arg("--version")
            .output()
            .ok()?;
        if !String::from_utf8_lossy(&version.stdout).contains("v=7.0.") {
            return None;
        }
        // Ports found free may be taken by the time the server binds; then the next one is tried.
        for _ in 0..10 {
            let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = probe.local_addr().unwrap().port();
            drop(probe);
            let mut process = Command::new("redis-server")
                .args([
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--port",
                    &port.to_string(),
                ])
                .args(options)
                .stdout(Stdio::piped())
                .spawn()
                .ok()?;
            if announces_readiness(&mut process) {
                return Some(Self { process, port });
            }
            process.wait().unwrap();
        }
        None
    }

    /// Sends a request; gives the reply, and whether the server closed behind it.
    fn exchange(&mut self, case: &RequestCase) -> (Vec<u8>, bool) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // A server that closes early may reset the connection while we still write.
        let _ = stream.write_all(&case.request());
        let mut reply = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            // Long while something is owed, short to see that nothing more comes.
            let owed = reply.len() < case.reply().len() || case.closed;
            let patience = Duration::from_millis(if owed { 5000 } else { 40 });
            stream.set_read_timeout(Some(patience)).unwrap();
            match stream.read(&mut buffer) {
                Ok(0) => return (reply, true),
                Ok(n) => reply.extend_from_slice(&buffer[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return (reply, false);
                }
                Err(_) => return (reply, true),
            }
        }
    }
}

/// Reads the server's log up to the line that says it accepts connections.
fn announces_readiness(process: &mut Child) -> bool {
    use std::io::BufRead as _;
    let log = std::io::BufReader::new(process.stdout.take().expect("piped"));
    let mut lines = log.lines().map_while(Result::ok);
    let ready = lines.any(|line| line.contains("Ready to accept connections"));
    // Keep the pipe drained, so that the server never blocks on its log.
    std::thread::spawn(move || lines.for_each(drop));
    ready
}

impl Drop for RealServer {
    fn drop(&mut self) {
        // Nothing is left to do if it has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn limits_are_those_of_the_caller() {
    let limits = RequestLimits {
        max_inline: 8,
        max_bulk: 4,
        max_args: 2,
        ..RequestLimits::default()
    };
    let decode = |request: &[u8]| RequestDecoder::new().decode(request, &limits);
    assert_eq!(decode(b"*2\r\n$4\r\nPING\r\n$1\r\na\r\n"), Ok(Some(21)));
    assert_eq!(decode(b"*3\r\n"), Err(RequestError::InvalidMultibulkLength));
    assert_eq!(
        decode(b"*1\r\n$5\r\n"),
        Err(RequestError::InvalidBulkLength)
    );
    assert_eq!(decode(b"PING abc\r"), Err(RequestError::TooBigInline));
    assert_eq!(decode(b"PING abc\n"), Ok(Some(9)));
    assert_eq!(
        decode(b"*12345678"),
        Err(RequestError::TooBigMultibulkCount)
    );
}

#[test]
fn limit_may_change_between_two_calls_for_one_request() {
    let mut decoder = RequestDecoder::new();
    let request = b"*11\r\n$3\r\nDEL\r\n";
    assert_eq!(decoder.decode(request, &RequestLimits::default()), Ok(None));
    // The count was judged when its line was read, as a server does.
    assert_eq!(
        decoder.decode(request, &RequestLimits::unauthenticated()),
        Ok(None)
    );
}

#[test]
fn decoder_starts_afresh_after_an_error() {
    let (mut decoder, limits) = (RequestDecoder::new(), RequestLimits::default());
    assert!(decoder.decode(b"*1\r\n+", &limits).unwrap().is_none());
    assert!(decoder.decode(b"*1\r\n+\r\n", &limits).is_err());
    assert_eq!(decoder.decode(b"PING\r\n", &limits), Ok(Some(6)));
    assert_eq!(decoder.args(b"PING\r\n").name(), b"PING");
}

#[test]
fn arguments_of_a_foreign_frame_are_empty_not_a_panic() {
    let (mut decoder, limits) = (RequestDecoder::new(), RequestLimits::default());
    assert_eq!(
        decoder.decode(b"*1\r\n$4\r\nPING\r\n", &limits),
        Ok(Some(14))
    );
    assert_eq!(decoder.args(b"*1").name(), b"");
}
