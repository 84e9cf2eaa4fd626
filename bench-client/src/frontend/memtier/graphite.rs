//! Events for Graphite: a mark at the beginning and at the end of a run.
//!
//! ```text
//! POST /events/ HTTP/1.1     {"what":"run 1 begins","tags":["memtier","default"],"data":"…"}
//! ```
//!
//! A mark that cannot be set is told once and holds nothing up for longer than half a second.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::json;

/// Where events go, with the tags of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graphite {
    /// The server, resolved by the caller.
    pub server: SocketAddr,
    /// Tags of each event: the prefix and the label of the metrics.
    pub tags: Vec<String>,
}

impl Graphite {
    /// Sends one event.
    ///
    /// # Errors
    /// No connection, no answer in time, or an answer that is not a success.
    pub fn event(&self, what: &str, data: &str) -> io::Result<()> {
        let body = json!({ "what": what, "tags": self.tags, "data": data }).to_string();
        let mut stream = TcpStream::connect_timeout(&self.server, LIMIT)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let head = format!(
            "POST /events/ HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.server,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = [0; STATUS_LINE];
        let mut taken = 0;
        while taken < answer.len() {
            match stream.read(&mut answer[taken..])? {
                0 => break,
                n => taken += n,
            }
        }
        let status = answer.get(9..10);
        if answer.starts_with(b"HTTP/1.") && status == Some(b"2") {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&answer[..taken]).into_owned();
        Err(io::Error::other(format!("the answer was {line:?}")))
    }
}

/// Bound of each step of an event.
const LIMIT: Duration = Duration::from_millis(500);
/// Bytes up to the status: `HTTP/1.1 200`.
const STATUS_LINE: usize = 12;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Answers one request and gives it back.
    fn serve(answer: &'static str) -> (SocketAddr, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(5)))
                .unwrap();
            let mut request = String::new();
            let mut buffer = [0; 1024];
            while !request.ends_with('}') {
                let n = stream.read(&mut buffer).unwrap();
                request.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
            }
            stream.write_all(answer.as_bytes()).unwrap();
            request
        });
        (address, server)
    }

    #[test]
    fn an_event_is_posted_with_its_tags() {
        let (server, request) = serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let graphite = Graphite {
            server,
            tags: vec!["memtier".to_owned(), "a\"b".to_owned()],
        };
        graphite.event("run 1 begins", "4 threads").unwrap();
        let request = request.join().unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /events/ HTTP/1.1\r\n"));
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["tags"], json!(["memtier", "a\"b"]));
    }

    #[test]
    fn a_refusal_is_an_error_with_the_servers_words() {
        let (server, request) = serve("HTTP/1.1 404 Not Found\r\n\r\n");
        let graphite = Graphite {
            server,
            tags: Vec::new(),
        };
        let error = graphite.event("x", "y").unwrap_err();
        assert!(error.to_string().contains("404"), "{error}");
        request.join().unwrap();
    }
}
