//! A RESP2 client over a socket, as much of one as these tests need.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use kvlab_protocol::resp::{ReplyDecoder, Value};

/// No answer takes longer, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Client {
    socket: TcpStream,
    input: Vec<u8>,
    decoder: ReplyDecoder,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            socket,
            input: Vec::new(),
            decoder: ReplyDecoder::new(),
        }
    }

    /// Sends an inline command.
    pub(crate) fn send(&mut self, command: &str) {
        let line = format!("{command}\r\n");
        self.socket.write_all(line.as_bytes()).unwrap();
    }

    /// The next reply, written as [`text`] does; `None` when the server closed the connection.
    pub(crate) fn reply(&mut self) -> Option<String> {
        loop {
            if let Some((value, len)) = self.decoder.decode(&self.input).unwrap() {
                self.input.drain(..len);
                return Some(text(&value));
            }
            let mut chunk = [0; 4096];
            match self.socket.read(&mut chunk) {
                Ok(0) => return None,
                Ok(len) => self.input.extend_from_slice(&chunk[..len]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no reply: {error}"),
            }
        }
    }

    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.send(command);
        self.reply().unwrap()
    }

    /// Sends inline commands in one go and returns the last reply.
    pub(crate) fn ask_all(&mut self, commands: &[&str]) -> String {
        self.send(&commands.join("\r\n"));
        let mut last = String::new();
        for _ in commands {
            last = self.reply().unwrap();
        }
        last
    }

    /// Whether nothing comes for a while.
    pub(crate) fn is_silent(&mut self) -> bool {
        let a_while = Some(Duration::from_millis(100));
        self.socket.set_read_timeout(a_while).unwrap();
        let read = self.socket.peek(&mut [0]);
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        matches!(
            read.map_err(|error| error.kind()),
            Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)
        )
    }
}

/// A reply on one line: strings, errors and numbers as they are, `(nil)`, `[one two]`.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Simple(bytes) | Value::Error(bytes) | Value::Bulk(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        Value::Integer(number) => number.to_string(),
        Value::Null | Value::NullArray => "(nil)".to_owned(),
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(text).collect();
            format!("[{}]", values.join(" "))
        }
        other => panic!("not of RESP2: {other:?}"),
    }
}

/// All replies in `bytes`, each on a line as [`text`] writes it.
pub(crate) fn texts(mut bytes: &[u8]) -> String {
    let mut all = Vec::new();
    let mut decoder = ReplyDecoder::new();
    while let Some((value, len)) = decoder.decode(bytes).unwrap() {
        all.push(text(&value));
        bytes = &bytes[len..];
    }
    assert!(bytes.is_empty(), "a reply without its end");
    all.join("\n")
}
