//! As much of a client as these tests need.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No answer takes longer, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A RESP client that sends inline commands and takes replies of one line, or bulk strings.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n").as_bytes());
        self.line()
    }

    /// Whether the server resets the connection in place of a reply.
    pub(crate) fn ask_and_lose(&mut self, command: &str) -> bool {
        self.send(format!("{command}\r\n").as_bytes());
        let error = self.stream.read_line(&mut String::new());
        error.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
    }

    /// Writes without waiting for a reply.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// All that comes until the server ends the connection.
    pub(crate) fn rest(&mut self) -> io::Result<String> {
        let mut rest = String::new();
        self.stream.read_to_string(&mut rest)?;
        Ok(rest)
    }

    /// The next reply.
    pub(crate) fn line(&mut self) -> String {
        let mut reply = String::new();
        self.stream.read_line(&mut reply).unwrap();
        if reply.starts_with('$') && !reply.starts_with("$-") {
            reply.clear();
            self.stream.read_line(&mut reply).unwrap();
        }
        reply.trim_end().to_owned()
    }
}

/// Asks an Aerospike node for its name.
pub(crate) fn aerospike_node_name(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    aerospike_info(&mut stream, "node")
}

/// The answer to an info request of version 2 and type 1.
pub(crate) fn aerospike_info(stream: &mut TcpStream, command: &str) -> String {
    let mut request = (2_u64 << 56 | 1 << 48 | (command.len() as u64 + 1))
        .to_be_bytes()
        .to_vec();
    request.extend_from_slice(command.as_bytes());
    request.push(b'\n');
    stream.write_all(&request).unwrap();
    let mut head = [0; 8];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[..2], [2, 1]);
    let length = u64::from_be_bytes(head) & 0xffff_ffff_ffff;
    let mut body = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let answer = body.strip_prefix(&format!("{command}\t")).unwrap();
    answer.trim_end().to_owned()
}
